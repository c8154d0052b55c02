"""The vocabulary is complete where it is used, and the docs tell it as it is."""

from typing import get_args

from radixledger.cache.evolve import EVOLVE
from radixledger.journal.events import AnyEvent

from .vocabulary_table import PATH, table


def test_every_event_has_one_evolve_function_and_no_other_type_has() -> None:
    """J2: an event that `evolve` does not know would be a fact without effect."""
    assert set(EVOLVE) == set(get_args(AnyEvent))


def test_no_two_events_share_a_tag() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(AnyEvent)]
    assert len(set(tags)) == len(tags)


def test_the_event_table_of_the_docs_is_the_vocabulary() -> None:
    assert PATH.read_text() == table(), (
        "run `python -m tests.vocabulary_table` to bring docs/vocabulary.md up to date"
    )
