"""Events as columns: a batch of frames becomes numpy arrays, one set of them for each stored table.

Not a fold: nothing here depends on an event of another batch, so batches are loaded one by one, and
loading can stop and go on anywhere. Rule: what a table stores is decided in `tables.py`; this module
only lays out the arrays that its expressions read.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from radixledger.analytics.batch import NONE, Array, Batch, Columns, Group, fields_of, flatten
from radixledger.analytics.page_rows import page_columns
from radixledger.analytics.state_rows import state_copies, state_tracks
from radixledger.analytics.tables import ARRAYS, TABLES
from radixledger.journal.accounts import describe
from radixledger.journal.events import (
    Aborted,
    Admitted,
    Adopted,
    BackupBegun,
    BackupEnded,
    Closed,
    Config,
    Demoted,
    Digested,
    Event,
    Evicted,
    Extended,
    Finished,
    Gap,
    Gathered,
    Healed,
    HostDropped,
    LedgerTaken,
    LoadBegun,
    LoadEnded,
    Locked,
    Matched,
    Opened,
    Reclaimed,
    Refused,
    Removed,
    Repointed,
    Retracted,
    Snapshotted,
    Split,
    StateCopied,
    StateTracked,
    Stepped,
    Tombstoned,
    Transferred,
    Unlocked,
    Violated,
)
from radixledger.journal.frame import Frame
from radixledger.journal.moves import pages_of


def columns(frames: Sequence[Frame]) -> dict[str, Columns]:
    """The arrays of every stored table that these frames have rows for, of one rank.

    Each has `seq`, `epoch`, `step` and what its table's expressions name. Raises MalformedEvent.
    """
    if not any(frame.events for frame in frames):
        return {}
    batch = flatten(frames)
    tables = {"events": {name: getattr(batch, name) for name in ARRAYS["events"]}}
    tables |= page_columns(batch)
    for name, (read, kinds) in _READERS.items():
        rows = _rows_end_to_end([read(group) for kind in kinds if (group := batch.group(kind))])
        if rows and len(rows["at"]):
            tables[name] = _with_spine(batch, name, rows)
    return tables


def end_to_end(parts: Sequence[dict[str, Columns]]) -> dict[str, Columns]:
    """Consecutive batches as one: the rows of each table under each other."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _rows_end_to_end([part[name] for part in parts if name in part]) for name in names}


def _with_spine(batch: Batch, table: str, rows: Columns) -> Columns:
    """The arrays of a table: those of its rows, and what every event has, from the place of each row's event."""
    return {name: _array(batch, rows, name) for name in ARRAYS[table]}


def _array(batch: Batch, rows: Columns, name: str) -> Array:
    if name in rows:
        return rows[name]
    if name in Batch._fields:
        everywhere: Array = getattr(batch, name)
        return everywhere[rows["at"]]
    return np.full(len(rows["at"]), NONE, np.int64)


def _rows_end_to_end(parts: list[Columns]) -> Columns:
    """The rows of several event types under each other; a column that one of them lacks is NONE there."""
    if len(parts) <= 1:
        return parts[0] if parts else {}
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: np.concatenate([_column_or_none(part, name) for part in parts]) for name in names}


def _column_or_none(part: Columns, name: str) -> Array:
    return part[name] if name in part else np.full(len(part["at"]), NONE, np.int64)


_Reader: TypeAlias = Callable[[Group], Columns]


def _fields(ints: tuple[str, ...] = (), objects: tuple[str, ...] = ()) -> _Reader:
    """A reader that takes fields as they stand, one row an event; it leaves out what the type does not have."""

    def read(group: Group) -> Columns:
        present = group.kind.__struct_fields__
        numbers = {name: group.ints(name) for name in ints if name in present}
        return {"at": group.at} | numbers | {name: group.objects(name) for name in objects}

    return read


def _openings(group: Group) -> Columns:
    rows = _fields(
        ints=("rank", "ranks", "window_need", "stride", "schema", "dirty", "seed"),
        objects=("run", "route", "redaction", "key_id", "code"),
    )(group)
    rows["opened_rank"], rows["opened_run"] = rows.pop("rank"), rows.pop("run")
    for column in TABLES["openings"]:
        if column.name in Config.__struct_fields__:
            read = group.objects if column.type == "VARCHAR" else group.ints
            rows[column.name] = read(f"config.{column.name}")
    return rows


def _opened_labels(group: Group) -> Columns:
    places = zip(group.at.tolist(), group.events, strict=True)
    labels = [(at, key, value) for at, event in places for key, value in event.labels.items()]
    return {
        "at": np.array([at for at, _, _ in labels], np.int64),
        "key": _texts([key for _, key, _ in labels]),
        "value": _texts([value for _, _, value in labels]),
    }


_SIGNS: dict[type[Event], dict[str, int]] = {
    Transferred: {"full": 1, "swa": 1},
    Tombstoned: {"swa": -1},
    Healed: {"swa": 1},
    Removed: {"full": -1, "swa": -1},
    BackupBegun: {"host": 1},
    HostDropped: {"host": -1},
    Demoted: {"full": -1},
    Adopted: {"full": 1},
}
"""Which of an event's page columns its node gains (1) or loses (-1)."""


def _node_gains(group: Group) -> Columns:
    """One row for the node: the pages that it gained or lost, and its parent where the event names one."""
    rows = {"at": group.at, "node": group.ints("node")}
    signs = _SIGNS[group.kind]
    for pool in ("full", "swa", "host"):
        sign = signs.get(pool, 0)
        rows[f"{pool}_delta"] = sign * group.lengths(pool) if sign else np.zeros_like(group.at)
    return rows | ({"parent": group.ints("parent")} if group.kind is Transferred else {})


def _node_of_copy(group: Group) -> Columns:
    """A copy ended: the node has FULL pages again, or no HOST pages after all."""
    landed, node = group.ints("landed"), group.ints("node")
    if group.kind is LoadEnded:
        full, host = landed * group.lengths("full"), np.zeros_like(group.at)
    else:
        full, host = np.zeros_like(group.at), (landed - 1) * group.lengths("host")
    told = ((full != 0) | (host != 0)) & (node != 0)
    return {
        "at": group.at[told],
        "node": node[told],
        "full_delta": full[told],
        "swa_delta": np.zeros_like(full[told]),
        "host_delta": host[told],
    }


def _copies(group: Group) -> Columns:
    """One row for each event of a copy: its pages, and whether they landed where it ended."""
    rows = _fields(ints=("transfer", "landed"))(group)
    pages = "host" if group.kind in (BackupBegun, BackupEnded) else "full"
    return rows | {"pages": np.zeros_like(group.at) if group.kind is Gathered else group.lengths(pages)}


def _node_cut(group: Group) -> Columns:
    """Two rows: the upper node gains what the lower one loses, and stands between it and its parent."""
    full, swa, host = group.lengths("full"), group.lengths("swa"), group.lengths("host")
    node, upper, boundary = group.ints("node"), group.ints("upper"), group.ints("boundary")
    return {
        "at": np.concatenate([group.at, group.at]),
        "node": np.concatenate([node, upper]),
        "parent": np.concatenate([upper, group.ints("parent")]),
        "full_delta": np.concatenate([-full, full]),
        "swa_delta": np.concatenate([-swa, swa]),
        "host_delta": np.concatenate([-host, host]),
        "boundary": np.concatenate([boundary, boundary]),
    }


def _node_changes(group: Group) -> Columns:
    if group.kind in (BackupEnded, LoadEnded):
        return _node_of_copy(group)
    return _node_cut(group) if group.kind is Split else _node_gains(group)


def _lock_changes(group: Group) -> Columns:
    rows = _fields(ints=("boundary", "marked"))(group)
    return rows | ({"skipped": group.lengths("skipped", width=8)} if group.kind is Locked else {})


def _reclaims(group: Group) -> Columns:
    rows = _fields(ints=("start", "stop", "in_flight", "pre"))(group)
    return rows | {"pages": group.lengths("swa")}


def _takings(group: Group) -> Columns:
    """One row for each request that took pages: how many, and the tokens that it grew by."""
    taken = group.lengths("takers", width=8)
    alike = group.lengths("requests", width=8) == group.lengths("grown")
    group.demand(alike, "requests and grown differ in length")
    group.demand(taken == group.lengths("counts"), "takers and counts differ in length")
    group = group.where(taken > 0)  # in most steps everybody grows and nobody takes a page
    requests, grown = group.packed("requests", width=8), group.packed("grown")
    takers, counts = group.packed("takers", width=8), group.packed("counts")
    _, named = np.unique(np.concatenate([requests.values, takers.values]), return_inverse=True)
    size, events = int(named.max()) + 1 if named.size else 1, np.arange(len(group.at))
    grew = requests.spread(events) * size + named[: requests.values.size]
    took = takers.spread(events) * size + named[requests.values.size :]
    order = np.argsort(grew, kind="stable")
    place = np.minimum(np.searchsorted(grew[order], took), max(0, grew.size - 1))
    known = grew[order][place] == took if grew.size else np.zeros(took.size, np.bool_)
    tokens = np.where(known, grown.values[order][place], 0) if grew.size else np.zeros(took.size, np.int64)
    at = takers.spread(group.at)
    return {"at": at, "request": takers.values, "grown": tokens, "pages": counts.values}


def _repointings(group: Group) -> Columns:
    return _fields(ints=("start", "protected"))(group) | {"pages": group.lengths("full")}


def _step_changes(group: Group) -> Columns:
    """Step number and phase, how many requests the step runs, and how many tokens it writes."""
    starts, stops = group.packed("starts"), group.packed("stops")
    rows = {"at": group.at, "number": group.ints("step"), "phase": group.ints("phase")}
    return rows | {"requests": group.lengths("requests", width=8), "tokens": stops.sums() - starts.sums()}


def _step_spans(group: Group) -> Columns:
    """One row for each request of a step: the tokens that it writes."""
    requests, starts, stops = group.packed("requests", width=8), group.packed("starts"), group.packed("stops")
    for field, packed in (("starts", starts), ("stops", stops)):
        group.demand(packed.counts == requests.counts, f"requests and {field} differ in length")
    spread = {"at": requests.spread(group.at), "number": requests.spread(group.ints("step"))}
    return spread | {"request": requests.values, "start": starts.values, "stop": stops.values}


def _findings(group: Group) -> Columns:
    """Refused and Violated: the pages as a list of numbers, the accounts in words."""
    rows = _fields(ints=("pool", "since"), objects=("reason" if group.kind is Refused else "law", "detail"))(
        group
    )
    for name in ("expected", "found"):
        rows[name] = _texts([describe(getattr(event, name)) for event in group.events])
    rows["pages"] = _texts([str(pages_of(event.pages).tolist()) for event in group.events])
    return rows


def _digests(group: Group) -> Columns:
    return {"at": group.at, "digest": _texts([event.digest.hex() for event in group.events])}


def _ledgers(group: Group) -> Columns:
    numbers = tuple(name for name in LedgerTaken.__struct_fields__ if name not in ("phase", "digest"))
    return _fields(ints=numbers, objects=("phase",))(group)


def _texts(values: list[str]) -> Array:
    texts = np.empty(len(values), object)
    texts[:] = values
    return texts


_READERS: dict[str, tuple[_Reader, tuple[type[Event], ...]]] = {
    "openings": (_openings, (Opened,)),
    "opened_labels": (_opened_labels, (Opened,)),
    "admissions": (_fields(ints=("prompt", "prefix", "priority"), objects=("rid", "namespace")), (Admitted,)),
    "endings": (_fields(ints=("tokens", "cached")), (Finished, Retracted, Aborted)),
    "matches": (
        _fields(
            ints=("asked", "full_hit", "hit", "stop", "host_hit", "full_only"), objects=("rid", "namespace")
        ),
        (Matched,),
    ),
    "node_changes": (_node_changes, (Split, BackupEnded, LoadEnded, *_SIGNS)),
    "copies": (_copies, (BackupBegun, Gathered, BackupEnded, LoadBegun, LoadEnded)),
    "lock_changes": (_lock_changes, (Locked, Unlocked)),
    "reclaims": (_reclaims, (Reclaimed,)),
    "takings": (_takings, (Extended,)),
    "repointings": (_repointings, (Repointed,)),
    "step_changes": (_step_changes, (Stepped,)),
    "step_spans": (_step_spans, (Stepped,)),
    "evictions": (_fields(ints=fields_of(Evicted, "cause")), (Evicted,)),
    "state_copies": (state_copies, (StateCopied,)),
    "state_tracks": (state_tracks, (StateTracked,)),
    "ledgers": (_ledgers, (LedgerTaken,)),
    "refusals": (_findings, (Refused,)),
    "violations": (_findings, (Violated,)),
    "gaps": (_fields(ints=("lost",), objects=("reason",)), (Gap,)),
    "digests": (_digests, (LedgerTaken, Snapshotted, Closed, Digested)),
}
