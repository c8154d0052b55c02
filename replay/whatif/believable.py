"""What a schedule believes of an event: no length beyond the row that it is said of, and no text that no cache would take.

What is made of a length, a key of so many pages, would be as large as the lie. Rule: it raises ValueError, and changes nothing.
"""

from radixledger.cache.arguments import name_space, number, text
from radixledger.cache.state import State
from radixledger.journal.events import Aborted, Admitted, AnyEvent, Bound, Finished, Retracted


def believe(state: State, event: AnyEvent) -> None:
    """Raise ValueError where no cache in `state` can have written the event."""
    match event:
        case Admitted():
            text(event.rid, "rid"), name_space(event.namespace), number(event.priority, "priority")
            in_a_row(state, event.prompt)
        case Finished() | Retracted() | Aborted():
            in_a_row(state, event.tokens)
        case Bound():
            in_a_row(state, event.length)
        case _:
            pass  # what it says is no length of a request


def in_a_row(state: State, tokens: int) -> None:
    """Raise ValueError where a request cannot have so many tokens."""
    if not 0 <= tokens <= longest(state):
        raise ValueError(f"a row has {longest(state)} tokens, and not {tokens}")


def longest(state: State) -> int:
    """Tokens that a row holds."""
    return state.config.context_pages * state.page_size
