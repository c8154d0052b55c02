"""`radixledger export kv-events`: the blocks that a cache holds, to a file as they were or over ZeroMQ as they become.

Not here: what an event says (`radixledger.replay.export.kv_events`) and the sockets (`radixledger.tools.export.publisher`), which
need pyzmq and are imported when an endpoint is given.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from time import sleep
from typing import Any

import click
import msgspec

from radixledger.journal.events import Closed
from radixledger.journal.frame import Frame
from radixledger.journal.reader import JournalReader
from radixledger.journal.redact import HASHED
from radixledger.journal.units import Seq
from radixledger.replay.export.kv_events import batches
from radixledger.replay.known import Known, unknown_words
from radixledger.replay.seek import standing_in
from radixledger.tools.console import (
    FINDINGS,
    USAGE,
    CommandFailure,
    count_text,
    examples,
    exit_with,
    remark,
)
from radixledger.tools.event_lines import refuse_to_follow_a_copy
from radixledger.tools.lazy_group import imported
from radixledger.tools.printable import say_lines
from radixledger.tools.ranks import rank_option, the_rank
from radixledger.tools.replay.arguments import salvage_flag
from radixledger.tools.run_argument import run_of_one_rank_argument

POLL_MS = 200


@click.command(
    short_help="Tell what the cache holds, as vLLM and SGLang do.",
    epilog=examples(
        "radixledger export kv-events RUN > blocks.jsonl",
        "radixledger export kv-events RUN --bind 'tcp://*:5557' --replay-bind 'tcp://*:5558'",
        "radixledger export kv-events RUN --rank 1 --follow --bind 'tcp://*:5559'",
    ),
)
@run_of_one_rank_argument
@rank_option
@click.option("--bind", metavar="ENDPOINT", help="Publish over ZeroMQ here.  [default: JSON lines to stdout]")
@click.option("--replay-bind", metavar="ENDPOINT", help="Answer here who asks for earlier batches.")
@click.option("--topic", default="kv-events", show_default=True, help="The topic of the messages.")
@click.option("--follow", is_flag=True, help="Go on with what the writer adds, until it closes.")
@click.option(
    "--stay/--leave",
    default=True,
    show_default=True,
    help="At the end, go on answering until Ctrl-C, where there is --replay-bind.",
)
@salvage_flag
def command(
    run: Path, rank: int | None, bind: str | None, replay_bind: str | None, topic: str, *, follow: bool, stay: bool,
    salvage: bool,
) -> None:  # fmt: skip
    """Tell what the cache holds in the wire form that vLLM and SGLang publish.

    The events are BlockStored, BlockRemoved and AllBlocksCleared. With --bind, a finished run is published when the first subscriber is there; who comes later asks --replay-bind for what
    was before. Token ids are in the events only of a run that was written with --tokens plain. SWA is not told: a router
    may think a prefix usable whose window is gone. Where events are missing, AllBlocksCleared is told, for nothing is known to be held, and
    the exit code is 1.
    """
    if replay_bind is not None and bind is None:
        raise CommandFailure("--replay-bind answers about what --bind publishes: give both", USAGE)
    if follow:
        refuse_to_follow_a_copy(run, "export kv-events --follow")
    reader = JournalReader(run, the_rank(run, rank), salvage=salvage)
    if reader.opened.redaction == HASHED:
        remark("this run holds hashes, no tokens: `token_ids` will be empty")
    known = Known(standing_in(reader))
    if bind is None:
        _to_stdout(reader, known, follow=follow)
    else:
        _to_subscribers(reader, known, bind, replay_bind, topic, follow=follow, stay=stay)
    for notice in reader.notices:
        remark(notice)
    for each in known.stretches:
        remark(
            f"{unknown_words(each.lost_at)}; told there, from AllBlocksCleared on, is what events say of blocks"
        )
    if known.stretches:
        exit_with(FINDINGS)


def _to_stdout(reader: JournalReader, known: Known, *, follow: bool) -> None:
    encode = msgspec.json.Encoder().encode
    frames = _following(reader, _nothing_to_do) if follow else None
    for number, batch in enumerate(batches(reader, frames, known)):
        say_lines(encode({"number": number} | msgspec.structs.asdict(batch)))
        if follow:
            sys.stdout.flush()


def _nothing_to_do(wait_ms: int) -> None:
    sleep(wait_ms / 1000)


def _to_subscribers(
    reader: JournalReader,
    known: Known,
    bind: str,
    replay_bind: str | None,
    topic: str,
    *,
    follow: bool,
    stay: bool,
) -> None:
    encode = msgspec.msgpack.Encoder().encode
    with _publisher(bind, replay_bind, topic, lambda: map(encode, batches(reader))) as publisher:
        told, asked = publisher.endpoints
        begins = "as the journal grows" if follow else "from the first subscriber on"
        remark(f"publishing on {told}{f', answering on {asked}' if asked else ''}, {begins}: Ctrl-C ends it")
        try:
            if not follow:
                _wait_for_subscriber(publisher)
            for batch in batches(reader, _following(reader, publisher.answer) if follow else None, known):
                publisher.publish(encode(batch))
                publisher.answer(0)
            more = stay and replay_bind is not None
            remark(
                f"{count_text(publisher.published)} batches published"
                + ("; still answering about them: Ctrl-C ends it" if more else "")
            )
            while stay and replay_bind is not None:
                publisher.answer(POLL_MS)
        except KeyboardInterrupt:
            remark(
                f"stopped after {count_text(publisher.published)} batches; {count_text(publisher.replayed)} were told again"
            )


def _publisher(bind: str, replay_bind: str | None, topic: str, again: Callable[[], Iterable[bytes]]) -> Any:
    try:
        return imported("radixledger.tools.export.publisher", "Publisher")(bind, replay_bind, topic, again)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "zmq":
            raise
        raise CommandFailure(
            "--bind needs pyzmq: pip install 'radixledger[export]'; in a checkout '.[export]'", USAGE
        ) from error
    except imported("zmq", "ZMQError") as error:
        raise CommandFailure(f"{bind} or {replay_bind} cannot be bound: {error}", USAGE) from error


def _wait_for_subscriber(publisher: Any) -> None:
    """Answers, too: who only asks for the past need not subscribe."""
    while not publisher.wait_for_subscriber(POLL_MS):
        publisher.answer(0)
        if publisher.replayed:
            return


def _following(reader: JournalReader, wait: Callable[[int], None]) -> Callable[[int], Iterator[Frame]]:
    """Frames from an event on, and on with what the writer adds until it closes."""

    def frames(first: int) -> Iterator[Frame]:
        closed = False

        def more() -> bool:
            if not closed:
                wait(POLL_MS)
            return not closed

        for frame in reader.follow(Seq(first), wait=more):
            closed = isinstance(frame.events[-1], Closed)
            yield frame

    return frames
