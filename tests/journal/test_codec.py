"""Events to bytes and back, in this vocabulary and in those of other versions."""

import tracemalloc
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from radixledger.journal import codec
from radixledger.journal.codec import Decoder, Encoder, NotEvents, gap_frame
from radixledger.journal.events import SCHEMA_VERSION, AnyEvent, Freed, Gap, Transferred
from radixledger.journal.redact import Redactor

from .events_sample import events, opened
from .every_event import KINDS, any_event, of_kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_comes_back_as_it_was(kind: type) -> None:
    @given(of_kind(kind))
    def round_trip(event: AnyEvent) -> None:
        body = Encoder().encode([event])
        assert Decoder().decode(body, 1) == [event]

    round_trip()


@given(st.lists(any_event, max_size=20))
def test_a_list_of_events_comes_back_in_its_order(events: list[AnyEvent]) -> None:
    assert Decoder().decode(Encoder().encode(events), len(events)) == events


def test_a_busy_stream_comes_back_as_it_was() -> None:
    stream = events(seed=5, count=3_000)
    assert Decoder().decode(Encoder().encode(stream), len(stream)) == stream


def test_the_fingerprint_covers_names_types_order_and_defaults() -> None:
    """J5: the golden journals hold released versions to it."""
    assert len(codec.fingerprint()) == 8
    lines = codec.vocabulary().splitlines()
    assert len(lines) == len(KINDS)
    assert (
        " 20 Repointed(request: int, start: int, full: bytes, protected: int, node: int, cause: int = 0)"
        in lines
    )


def test_fields_that_were_added_with_defaults_are_filled_in_for_older_writers() -> None:
    body = msgspec.msgpack.encode([[16, 3, b"", b"", b""]])
    assert Decoder().decode(body, 1) == [Freed(3, b"", b"", b"")]  # type: ignore[arg-type]


def test_events_of_an_older_version_are_told_in_todays_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """J5: version 1 had its reason before its count; two upcasters in a row bring it up to version 3."""
    monkeypatch.setattr(codec, "SCHEMA_VERSION", 3)

    def swap(event: codec.RawEvent) -> codec.RawEvent:
        return [28, event[2], event[1]] if event[0] == 28 else event

    def double(event: codec.RawEvent) -> codec.RawEvent:
        return [28, 2 * event[1], event[2]] if event[0] == 28 else event

    decoder = Decoder(schema=1, upcasters={1: swap, 2: double})
    assert decoder.decode(msgspec.msgpack.encode([[28, "disk full", 4]]), 1) == [Gap(8, "disk full")]
    assert Decoder(schema=2, upcasters={1: swap, 2: double}).decode(
        msgspec.msgpack.encode([[28, 4, "disk full"]]), 1
    ) == [Gap(8, "disk full")]


def test_an_upcaster_that_fails_on_hostile_bytes_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "SCHEMA_VERSION", 2)
    decoder = Decoder(schema=1, upcasters={1: lambda event: [event[0], event[99]]})
    with pytest.raises(NotEvents):
        decoder.decode(msgspec.msgpack.encode([[17]]), 1)


def test_a_newer_schema_is_not_decoded() -> None:
    with pytest.raises(ValueError, match="schema 2 is newer"):
        Decoder(schema=SCHEMA_VERSION + 1)


@pytest.mark.parametrize(
    ("body", "count"),
    [
        (b"", 0),
        (b"\x90", 1),
        (b"\xdd\xff\xff\xff\xff", 2**32 - 1),
        (b"\xdd\x00\x00\x00\x02\x91\x11", 2),
        (msgspec.msgpack.encode([[17], [17]]), 1),
        (msgspec.msgpack.encode([[999, 1]]), 1),
        (msgspec.msgpack.encode([[16, "no account"]]), 1),
        (msgspec.msgpack.encode([["Freed"]]), 1),
        (msgspec.msgpack.encode([[17]]) + b"\x00", 1),
        (msgspec.msgpack.encode({"tag": 1}), 1),
    ],
    ids=[
        "empty",
        "short",
        "absurd",
        "cut",
        "one_more",
        "no_such_tag",
        "wrong_type",
        "named",
        "trailing",
        "map",
    ],
)
def test_bytes_that_are_no_events_are_refused(body: bytes, count: int) -> None:
    with pytest.raises(NotEvents):
        Decoder().decode(body, count)


@given(st.binary(max_size=64), st.integers(0, 2**32))
def test_random_bytes_are_refused_or_decode_to_what_they_announce(body: bytes, count: int) -> None:
    with suppress(NotEvents):
        assert len(Decoder().decode(body, count)) == count


def test_what_is_built_grows_with_the_bytes_and_not_with_their_claims() -> None:
    """An array that claims four billion events and holds ten thousand."""
    tracemalloc.start()
    with pytest.raises(NotEvents):
        Decoder().decode(b"\xdd\xff\xff\xff\xff" + b"\x91\x11" * 10_000, 2**32 - 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000


def test_an_encoder_with_a_redactor_lets_no_key_and_no_namespace_through() -> None:
    """J10."""
    redactor = Redactor(b"k" * 32, 4)
    secret = Transferred(1, 0, 3, b"text", b"page", b"", namespace=b"tenant")  # type: ignore[arg-type]
    body = Encoder(redactor).encode([opened(page_size=1), secret])
    assert b"text" not in body
    assert b"tenant" not in body
    first, second = Decoder().decode(body, 2)
    assert first.stride == 8  # type: ignore[union-attr]
    assert second.key == redactor.page_hashes(b"text")  # type: ignore[union-attr]
    assert Encoder().encode([secret]).count(b"text") == 1


def test_a_gap_frame_stands_in_the_last_of_the_places_that_were_lost() -> None:
    """J11."""
    raw = gap_frame(5, 105, "disk full", 7, 8)
    assert (raw.seq_begin, raw.seq_first, raw.seq_next) == (100, 104, 105)
    assert Decoder().decode(raw.body, 1) == [Gap(5, "disk full")]
