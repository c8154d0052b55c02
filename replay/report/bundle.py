"""One rank's track as bytes for the browser: a head in JSON and columns behind it, compressed together.

    gzip( length of the head, uint32 little-endian · head, UTF-8 JSON · columns )

The head says where each column begins and how long it is, and names all codes, so that a page can be read without this
project; `unknown` has the stretches whose states are not known: first missing event, the event that says so, last event, and the event
behind which what is told is told without holes. Columns of packets: `seq`, `time` (µs), `step` as differences; `tag`, `cause`, `request`, `line`, `size`; `bodies`
(see `packet`), one behind the other. `lines` are UTF-8, one a line.
"""

import base64
import gzip
import shlex
import struct
from typing import Any, get_args

import msgspec

from radixledger.journal.accounts import Pool
from radixledger.journal.causes import label
from radixledger.journal.events import AnyEvent
from radixledger.replay.report.cells import KINDS, NODE_FIELDS, NUMBER_FIELDS, POOLS, REQUEST_FIELDS
from radixledger.replay.report.occupancy import MARKS, Bucket
from radixledger.replay.report.packet import Encoder, Packet, column
from radixledger.replay.report.phrases import first_seq_of
from radixledger.replay.report.track import Track
from radixledger.replay.triage.triage import RankTriage
from radixledger.replay.verdict import Told

FORMAT = 1
LEVEL = 9
EVENT_NAMES: dict[int, str] = {kind.__struct_config__.tag: kind.__name__ for kind in get_args(AnyEvent)}


def bundle(name: str, track: Track, told: RankTriage, run: str) -> str:
    """A track with its verdict in base64, for the browser; `run` as a command names it."""
    columns = _columns(track)
    head = _head(name, track, told, run)
    at = 0
    for each, packed in columns.items():
        head["columns"][each] = (at, len(packed))
        at += len(packed)
    coded = msgspec.json.encode(head)
    raw = b"".join([struct.pack("<I", len(coded)), coded, *columns.values()])
    return base64.b64encode(gzip.compress(raw, LEVEL, mtime=0)).decode()


def _columns(track: Track) -> dict[str, bytes]:
    packets, encoder = track.packets, Encoder()
    bodies = [encoder.encode(packet) for packet in packets]
    return {
        "seq": column((each.seq for each in packets), deltas=True),
        "time": column((each.time_ns // 1000 for each in packets), deltas=True),
        "step": column((each.step for each in packets), deltas=True),
        "tag": column(each.tag for each in packets),
        "cause": column(each.cause for each in packets),
        "request": column(each.request for each in packets),
        "line": column((each.line for each in packets), deltas=True),
        "size": column(map(len, bodies)),
        "bodies": b"".join(bodies),
        "lines": "\n".join(track.lines).encode(),
    }


def _head(name: str, track: Track, told: RankTriage, run: str) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "name": name,
        "run": shlex.quote(run),
        "rank": told.rank,
        "route": track.opened.route if track.opened else "",
        "config": msgspec.structs.asdict(track.opened.config) if track.opened else {},
        "first": track.first_seq,
        "last": track.last_seq,
        "packets": len(track.packets),
        "detail": track.detail,
        "pools": POOLS,
        "kinds": KINDS,
        "node_fields": NODE_FIELDS,
        "request_fields": REQUEST_FIELDS,
        "number_fields": NUMBER_FIELDS,
        "marks": MARKS,
        "events": {str(tag): EVENT_NAMES[tag] for tag in sorted({each.tag for each in track.packets} - {0})},
        "causes": {str(code): label(code) for code in sorted(_causes(track.packets))},
        "buckets": _buckets(track.buckets),
        "unknown": track.unknown,
        "lives": track.lives,
        "lives_left_out": track.lives_left_out,
        "findings": _findings(told),
        "begin": first_seq_of(told),
        "texts": track.texts,
        "columns": {},
    }


def _causes(packets: list[Packet]) -> set[int]:
    return {each.cause for each in packets} - {0}


def _buckets(buckets: list[Bucket]) -> dict[str, list[Any]]:
    return {
        "seq": [each.seq for each in buckets],
        "time": [each.time_ns // 1000 for each in buckets],
        "step": [each.step for each in buckets],
        "numbers": [each.numbers for each in buckets],
        "least_free": [each.least_free for each in buckets],
        "marks": [each.marks for each in buckets],
        "known": [each.known for each in buckets],
    }


def _findings(told: RankTriage) -> list[Told]:
    """What the time line marks: the first wrong event, the findings, and what was turned down as nobody's to give."""
    found = list(told.report.findings)
    if told.explained is not None and told.explained.first not in found:
        found.append(told.explained.first)
    found += [
        Told(
            each.seq, 0, each.step, f"turned down: {each.reason}", each.detail,
            Pool(each.pool).name if each.pages and each.pool in list(Pool) else "", each.pages,
        )
        for each in told.ending.turned_down
    ]  # fmt: skip
    return sorted(found, key=lambda each: each.seq)
