"""The account of lost reuse over journals on disk: hashed or plain, whole or from a snapshot on, and beside SQL."""

from pathlib import Path

import pytest

from radixledger.analytics.load import load
from radixledger.analytics.queries import ask, find
from radixledger.analytics.store import Database
from radixledger.journal.reader import JournalReader
from radixledger.journal.retention import Retention
from radixledger.journal.writer import JournalWriter
from radixledger.replay.reuse.misses import KINDS, Miss
from radixledger.replay.reuse.reuse import EVENTS_KEPT, Reading, Reuse

from ..cache.driven import FULL_SHAPES, SHAPES, opened
from .runs import RANK, Clock, written


def read(run: Path) -> tuple[list[Miss], Reuse]:
    """All misses of a run, and its account."""
    reading = Reading(JournalReader(run, RANK))
    return list(reading), reading.account


def test_hashed_keys_tell_what_plain_ones_do(tmp_path: Path) -> None:
    """J10: within a run the same content has the same hash, so nothing of a miss needs the text."""
    for redaction in ("plain", "hashed"):
        written(tmp_path / redaction, 250, redaction=redaction)
    plain, hashed = (read(tmp_path / redaction)[0] for redaction in ("plain", "hashed"))
    assert plain == hashed
    assert sum(miss.lost_tokens for miss in plain) > 0


def test_an_account_is_the_sum_of_its_misses(tmp_path: Path) -> None:
    written(tmp_path / "run", 300)
    misses, account = read(tmp_path / "run")
    assert account.requests == len(misses) > 0
    assert account.prompt_tokens == sum(miss.prompt for miss in misses) == sum(account.kinds.values())
    assert account.kinds == {kind: sum(miss.kinds[kind] for miss in misses) for kind in KINDS}
    lost = sum(miss.lost_tokens for miss in misses)
    assert sum(each.tokens for each in account.causes()) == lost > 0
    assert sum(each.tokens for each in account.worst_events(EVENTS_KEPT)) == lost
    assert [each.tokens for each in account.causes()] == sorted(
        (each.tokens for each in account.causes()), reverse=True
    )


def test_what_was_not_kept_in_the_first_place_is_added_up_by_cause(tmp_path: Path) -> None:
    """N14: windows that requests gave back themselves, and leaves that were vetoed."""
    written(tmp_path / "run", 400, seed=3)
    misses, account = read(tmp_path / "run")
    told = [each for miss in misses for each in miss.stretches if each.seq]
    assert {(each.kind, each.event, each.cause) for each in told} == {("not_usable", "Reclaimed", "reclaim")}
    (reason,) = account.reasons()
    assert (reason.cause, reason.kind, reason.tokens) == (
        "reclaim",
        "not_usable",
        sum(each.stop - each.start for each in told),
    )


@pytest.mark.parametrize(
    ("shape", "route"), [(SHAPES[1], "unified"), (SHAPES[1], "legacy"), (FULL_SHAPES[1], "radix")]
)
def test_sql_and_replay_agree_on_why_matches_stopped(
    tmp_path: Path, shape: tuple[int, ...], route: str
) -> None:
    """J23: two witnesses that share no code count the same requests, hits and tokens lost to dead windows, by stop."""
    written(tmp_path / "run", 300, shape=shape, route=route)
    _, account = read(tmp_path / "run")
    database = Database()
    load(database, tmp_path / "run")
    answer = ask(database.questioned(), find("hit_rate_by_stop"), {})
    theirs = {
        row["stop"]: row for row in (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    }
    assert theirs.keys() == account.by_stop.keys()
    for stop, mine in account.by_stop.items():
        row = theirs[stop]
        assert (mine.requests, mine.prompt_tokens, mine.cached_tokens, mine.lost_to_window) == (
            row["requests"],
            row["prompt_tokens"],
            row["cached_tokens"],
            row["lost_to_window"],
        )


def test_causes_are_spelled_as_sql_spells_them(tmp_path: Path) -> None:
    written(tmp_path / "run", 300)
    _, account = read(tmp_path / "run")
    database = Database()
    load(database, tmp_path / "run")
    answer = ask(database.questioned(), find("evictions_by_cause"), {})
    evicted = {
        (row["cause"], row["event"])
        for row in (dict(zip(answer.columns, row, strict=True)) for row in answer.rows)
    }
    assert {(each.cause, each.event) for each in account.causes()} <= evicted


def test_a_journal_without_its_beginning_says_where_its_knowledge_begins(tmp_path: Path) -> None:
    """What its snapshot holds is known; what was lost before is not, and is not guessed."""
    written(tmp_path / "run", 250, snapshots=(150,), rotate_bytes=4096)
    whole = {miss.request: miss for miss in read(tmp_path / "run")[0]}
    writer = JournalWriter.open(tmp_path / "run", opened(), clock=Clock(), resume=True)
    writer.retain(Retention(keep_bytes=1))
    writer.close()
    misses, account = read(tmp_path / "run")
    assert account.begins_at == JournalReader(tmp_path / "run", RANK).snapshots()[0].seq
    assert misses
    for miss in misses:
        assert miss.hit == whole[miss.request].hit
        assert miss.lost_tokens <= whole[miss.request].lost_tokens
        assert all(lost.seq > account.begins_at for lost in miss.lost)


def test_events_that_cost_most_are_kept_when_there_are_too_many(tmp_path: Path) -> None:
    written(tmp_path / "run", 300)
    misses, account = read(tmp_path / "run")
    best = account.worst_events(1)[0]
    crowded = Reuse("run", 0, "unified")
    lost = [(miss, each) for miss in misses for each in miss.lost]
    for copy in range(EVENTS_KEPT // len(lost) + 2):
        for miss, each in lost:
            shifted = type(each)(
                **{name: getattr(each, name) for name in each.__struct_fields__}
                | {"seq": each.seq + copy * 100_000}
            )
            crowded.add(
                type(miss)(
                    **{name: getattr(miss, name) for name in miss.__struct_fields__} | {"lost": [shifted]}
                )
            )
    assert len(crowded.worst) <= EVENTS_KEPT
    assert crowded.worst_events(1)[0].tokens == best.lost.tokens or best.requests > 1
