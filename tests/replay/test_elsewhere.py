"""What performs commands by another revision's deciders asks of that revision what it has."""

import ast
from collections.abc import Iterator
from pathlib import Path

from radixledger.journal.fields import NODES_IN, PAGES_IN
from radixledger.replay.schedule import elsewhere
from radixledger.replay.schedule.named_event import NODES, PAGES
from radixledger.replay.schedule.naming import pool_of

ROOM = "radixledger.replay.schedule"
ASKED = {
    "cache.config": {"key_stride"},
    "cache.decide": {"faces"},
    "cache.decide.faces": {"Written"},
    "cache.evolve": {"evolve"},
    "cache.face_rank": {"FaceRank"},
    "cache.image": {"image", "restore"},
    "cache.keys": {"KEY_MODES"},
    "cache.ledger": {"PoolBook"},
    "cache.locks": {"receipt_of"},
    "cache.match": {"find_child"},
    "cache.refusals": {"Refusal"},
    "cache.slices": {"Slice"},
    "cache.state": {"Node", "Receipt", "State"},
    "cache.window": {"pages_for"},
    "journal": {"events"},
    "journal.accounts": {"Kind", "Pool", "describe", "request_account"},
    "journal.causes": {"Operation"},
    "journal.codec": {"Encoder", "decoder_for"},
    "journal.events": {"AnyEvent", "Config", "Opened", "SCHEMA_VERSION"},
    "journal.moves": {"takings"},
    "journal.redact": {"PLAIN"},
    "journal.units": {
        "FIRST", "NodeId", "Pages", "ROOT", "Rank", "RequestId", "Seq", "TO_ROOT", "TransferId", "UNBOUND",
    },
}  # fmt: skip
"""Names of another revision, by module. One more, and every revision that lacks it can perform nothing any more."""


def imports(file: Path) -> Iterator[tuple[str, str]]:
    """Each name of ours that a module imports, with the module that has it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("radixledger"):
            yield from ((node.module, alias.name) for alias in node.names)


def asked_from(first: str) -> dict[str, set[str]]:
    """What a module of the room, and all that it needs there, imports from outside of it."""
    folder = Path(elsewhere.__file__).parent
    todo, seen, asked = [first], set[str](), dict[str, set[str]]()
    while todo:
        name = todo.pop()
        if name in seen:
            continue
        seen.add(name)
        for module, imported in imports(folder / f"{name}.py"):
            if module == ROOM:
                todo.append(imported)
            elif module.startswith(f"{ROOM}."):
                todo.append(module.removeprefix(f"{ROOM}."))
            else:
                asked.setdefault(module.removeprefix("radixledger."), set()).add(imported)
    return asked


def test_what_the_room_keeps_of_its_own_is_what_the_journal_says() -> None:
    """Which fields name nodes, and which columns are of which pool, stands twice: another revision need not have `journal.fields`."""
    assert {name for names in NODES_IN.values() for name in names} == NODES
    columns = {(kind, name): pool for kind, own in PAGES_IN.items() for name, pool in own.items()}
    assert {name for _, name in columns} == set(PAGES)
    assert {each: pool_of(*each) for each in columns} == columns


def test_what_performs_commands_asks_of_another_revision_what_it_always_had() -> None:
    """N20: beside the room itself, everything comes from the other revision, replay among it."""
    assert asked_from("elsewhere") == ASKED
