"""Hypothesis strategies for every event of the vocabulary, read off its types: new events come along by themselves."""

from typing import get_args

from hypothesis import strategies as st
from msgspec import NODEFAULT, inspect

from radixledger.journal.events import AnyEvent, Gap

KINDS: tuple[type, ...] = get_args(AnyEvent)

_INTS = st.integers(0, 300) | st.integers(-(2**63), 2**64 - 1)
_BYTES = st.integers(0, 5).flatmap(lambda pages: st.binary(min_size=4 * pages, max_size=4 * pages))


def values(kind: inspect.Type) -> st.SearchStrategy[object]:
    """Any value of a type that events use."""
    match kind:
        case inspect.IntType():
            return _INTS
        case inspect.BoolType():
            return st.booleans()
        case inspect.StrType():
            return st.text(max_size=12)
        case inspect.BytesType():
            return _BYTES
        case inspect.DictType():
            return st.dictionaries(values(kind.key_type), values(kind.value_type), max_size=3)
        case inspect.StructType():
            return structs(kind)
        case _:
            raise AssertionError(f"events use a type that this module does not know: {kind}")


def structs(kind: inspect.StructType) -> st.SearchStrategy[object]:
    """Any struct of one type, defaults used now and then."""
    columns = {}
    for field in kind.fields:
        strategy = values(field.type)
        if field.default is not NODEFAULT:
            strategy |= st.just(field.default)
        columns[field.name] = strategy
    return st.fixed_dictionaries(columns).map(lambda values: kind.cls(**values))


def _struct_type(kind: type) -> inspect.StructType:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    return described


def of_kind(kind: type) -> st.SearchStrategy[AnyEvent]:
    """Any event of one type."""
    return structs(_struct_type(kind))  # type: ignore[return-value]


any_event: st.SearchStrategy[AnyEvent] = st.sampled_from([kind for kind in KINDS if kind is not Gap]).flatmap(
    of_kind
)
"""Any event that a command may append; gaps are the writer's own."""
