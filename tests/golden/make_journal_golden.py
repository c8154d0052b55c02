"""Makes the golden journal of the vocabulary and file format of today: one event of every type, in every form of file.

    python -m tests.golden.make_journal_golden

Rule: a released version's journal is never made again; it must always decode. While a version is being made, a change
of its vocabulary makes this one anew, and `tests/journal/test_golden.py` tells when that is due.
"""

import shutil
from pathlib import Path
from typing import Any, get_args

from msgspec import inspect

from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Config, Gap, Opened
from radixledger.journal.units import Rank, TokenCount
from radixledger.journal.writer import JournalWriter, Sealing

FOLDER = Path(__file__).parent / "journals"
LABELS = {"model": "golden"}


def opened(redaction: str) -> Opened:
    """Fixed in every field, so that the journal is the same on every machine."""
    config = Config(4, 64, 32, 8, rows=16, context_pages=99, formula="tight", tombstone_leaf="materialise")
    return Opened(
        run="",
        rank=Rank(3),
        ranks=4,
        epoch=0,
        route="unified",
        config=config,
        window_need=TokenCount(8),
        stride=16,
        redaction=redaction,
        code="golden",
        dirty=True,
        labels=LABELS,
        seed=11,
    )


def one_of_each() -> list[AnyEvent]:
    """An event of every type but `Opened` and `Gap`, its fields filled with different values."""
    kinds = [kind for kind in get_args(AnyEvent) if kind not in (Opened, Gap)]
    return [_filled(kind) for kind in sorted(kinds, key=_tag)]


def _tag(kind: type) -> int:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    assert isinstance(described.tag, int)
    return described.tag


def _filled(kind: type) -> AnyEvent:
    described = inspect.type_info(kind)
    assert isinstance(described, inspect.StructType)
    values = {field.name: _value(field.type, place) for place, field in enumerate(described.fields, 1)}
    event: AnyEvent = kind(**values)
    return event


def _value(kind: inspect.Type, place: int) -> object:
    match kind:
        case inspect.BoolType():
            return place % 2 == 0
        case inspect.StrType():
            return f"text {place}"
        case inspect.BytesType():
            return place.to_bytes(16)
        case _:
            return place * 1_000_003


def make(run: Path) -> None:
    """Write the golden run: a sealed hashed epoch with a snapshot, and a live plain one."""
    ticks = iter(range(10**18, 2 * 10**18, 10**9))
    options: dict[str, Any] = {"clock": lambda: next(ticks), "key": bytes(range(32)), "resume": True}
    with JournalWriter.open(run, opened("hashed"), sealing=Sealing.INLINE, **options) as writer:
        for event in one_of_each():
            writer.append(event)
            writer.end_command()
        writer.end_step(5)
        writer.write_snapshot(b"the image of a state", b"its digest")
    with JournalWriter.open(run, opened("plain"), sealing=Sealing.NEVER, **options) as writer:
        for event in one_of_each():
            writer.append(event)
        writer.end_command()


def main() -> None:
    """Replace the golden run of this version."""
    run = FOLDER / f"v{SCHEMA_VERSION}"
    shutil.rmtree(run, ignore_errors=True)
    make(run)
    (run / "rank-0003" / "lock").unlink()


if __name__ == "__main__":
    main()
