"""The language of predicates: what its names mean, and that nothing but reading can be said in it."""

from collections.abc import Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from radixledger.cache.state import State
from radixledger.journal.accounts import Kind, describe
from radixledger.replay.fold import Unfoldable, fold
from radixledger.replay.search.predicate import BadPredicate, Predicate, described
from radixledger.replay.search.state_view import KINDS

from ..cache.driven import SHAPES, STATE_SHAPES, Driven
from ..cache.hosted import all_of_it
from ..predicate_table import PATH, page
from .runs import framed
from .test_fold import spoiled

DRIVEN = Driven(7).run(150)
STATE = DRIVEN.cache.state


def value(text: str, state: State = STATE) -> str:
    """What a name stands for, as the predicate shows it."""
    return Predicate(f"{text} == {text}").values(state).removeprefix(f"{text} = ")


def test_names_are_the_fields_of_the_state() -> None:
    held = STATE.full.held
    assert value("seq") == str(STATE.seq)
    assert [value(f"full.{name}") for name in ("free", "requests", "tree")] == [
        str(held[kind]) for kind in (Kind.FREE, Kind.REQUEST, Kind.TREE)
    ]
    assert value("swa.evictable") == str(STATE.swa_evictable)
    assert value("tombstones") == str(sum(not node.swa for node in STATE.nodes.values()) - 1)
    for number in (0, 1, 30, 60):
        assert value(f"full[{number}].owner") == repr(describe(int(STATE.full.account[number])))
        assert value(f"full[{number}].partner") == str(STATE.mapping.swa_of[number] or "nothing")
    request = next(iter(STATE.requests.values()))
    assert value(f'request["{request.rid}"].id'.replace('"', "'")) == str(request.id)
    assert value(f"request[{request.id}].length") == str(STATE.rows.length[request.row])
    assert value(f"request[{request.id}].node.stop") == str(STATE.nodes[request.node].end * STATE.page_size)


@pytest.mark.parametrize(
    "state",
    [
        fold(all_of_it().journal.frames),
        *(Driven(1, shape).run(90).cache.state for shape in (*SHAPES, *STATE_SHAPES)),
    ],
)
def test_every_name_can_be_read_of_every_state(state: State) -> None:
    for path, kind in paths():
        if kind in KINDS:
            assert Predicate(path).holds(state) in (True, False)
        else:
            assert value(path, state)


def paths() -> Iterator[tuple[str, str]]:
    """Names as deep as they go, with what they give; of many, the first and one that is not there."""
    todo = [(name, field.kind) for name, field in KINDS["state"].fields.items()]
    for path, kind in todo:
        yield path, kind
        if kind in KINDS and path.count(".") < 2:
            todo += [(f"{path}.{name}", field.kind) for name, field in KINDS[kind].fields.items()]
            item = KINDS[kind].item
            if item is not None:
                todo += [(f"{path}[{key}]", item.kind) for key in (1, 8, 12345)]


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("full.capacity == 60 and swa.capacity == 40", True),
        ("full.capacity == 60 and not swa.capacity == 40", False),
        ("full.capacity == 1 or swa.capacity == 40", True),
        ("1 < full.capacity <= 60", True),
        ("1 < full.capacity < 60", False),
        ("full.free + full.pending + full.requests + full.tree + full.in_flight == full.capacity", True),
        ("-full.capacity + 61 == 1", True),
        ("full.capacity // 7 * 7 + full.capacity % 7 == full.capacity", True),
        ("full.capacity / 8 == 7", False),
        ("full.capacity // 0 == 0", False),
        ("not full.capacity // 0 == 0", True),
        ("node[123456]", False),
        ("not node[123456]", True),
        ("node[123456].stop < 5", False),
        ("node[123456].stop >= 5", False),
        ("node[123456].parent.parent.id == 0", False),
        ('request["nobody"].length > 0', False),
        ('full[0].owner == "reserved"', True),
        ("full[61]", False),
        ("full[0] and True", True),
        ("group_open == False", True),
    ],
)  # fmt: skip
def test_an_expression_means_what_it_says(text: str, answer: bool) -> None:
    assert Predicate(text).holds(STATE) is answer


def test_where_it_holds_the_values_are_told() -> None:
    assert Predicate("full.capacity > 59 and seq > 0")(STATE) == f"full.capacity = 60, seq = {STATE.seq}"
    assert Predicate("full.capacity > 60")(STATE) == ""
    assert Predicate("1 == 1")(STATE) == "it holds"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("__import__('os').system('true')", "cannot be asked"),
        ("seq.__class__", "seq is a number, and has no fields"),
        ("full.__class__", "a pool has no __class__; it has capacity, free"),
        ("full.account", "a pool has no account"),
        ("(lambda: 1)()", "cannot be asked"),
        ("[seq for seq in ()]", "cannot be asked"),
        ("seq if seq else seq", "cannot be asked"),
        ("f'{seq}'", "cannot be asked"),
        ("(seq := 3)", "cannot be asked"),
        ("seq ** seq", "cannot be asked"),
        ("seq << 9", "cannot be asked"),
        ("seq is seq", "cannot be asked"),
        ("seq in (1, 2)", "cannot be asked"),
        ("full[seq]", "no name of the state"),
        ("full[True]", "names none of pool: a number goes there"),
        ("full['x']", "names none of pool: a number goes there"),
        ("request[1.5]", "no name of the state"),
        ("seq[1]", "seq is a number"),
        ("full[1].owner", "it is a text"),
        ("'a' < 'b'", "a text has no order"),
        ("full == full", "a pool and a pool cannot be compared"),
        ("seq == 'x'", "a number and a text cannot be compared"),
        ("full.free + group_open == 1", "group_open is a flag, and no number"),
        ("full.fre", "it has capacity, free, pending"),
        ("nobody", "a state has no nobody; it has seq"),
        ("seq <", "this is no expression"),
        ("import os", "this is no expression"),
        ("", "this is no expression"),
        ("\0", "this is no expression"),
        ("not " * 900 + "seq", "nested more than 40 deep"),
        ("node[1]" + ".parent" * 500, "more than 40 parts"),
        ("(" * 300 + "seq" + ")" * 300, "this is no expression"),
        ("1" * 4097, "longer than 4096 characters"),
    ],
)  # fmt: skip
def test_what_is_no_question_is_refused_before_a_state_is_looked_at(text: str, why: str) -> None:
    with pytest.raises(BadPredicate) as refused:
        Predicate(text)
    assert why in str(refused.value)


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            [
                "seq",
                "full",
                ".free",
                "[1]",
                "(",
                ")",
                "not ",
                " and ",
                "<",
                "9",
                "'",
                "node",
                ".parent",
                "+",
                "%",
                "/",
                "0",
                '"',
            ]
        ),
        max_size=14,
    ).map("".join)
)
@example('"\\d" == full[1].owner')
def test_any_text_is_a_question_or_is_refused(text: str) -> None:
    try:
        asked = Predicate(text)
    except BadPredicate:
        return
    assert asked.holds(STATE) in (True, False)
    assert isinstance(asked.values(STATE), str)


@given(seed=st.integers(0, 1000), chance=st.data())
def test_any_state_can_be_asked(seed: int, chance: st.DataObject) -> None:
    """A state that was folded from a lawless journal too."""
    try:
        state = fold(framed(spoiled(Driven(seed).run(25).journal.events, chance)))
    except Unfoldable:
        return
    for path, kind in paths():
        if kind not in KINDS:
            assert value(path, state)


def test_the_page_shows_every_name() -> None:
    """`python -m tests.predicate_table` brings it up to date."""
    assert PATH.read_text("utf-8") == page()


def test_every_name_is_described() -> None:
    names = [(of, name) for of, name, _, _ in described()]
    assert len(names) == len(set(names)) > 50
    assert all(what for *_, what in described())
