"""Journals in the formats of others, as a person asks for them, and as a router hears them over real sockets."""

import gzip
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zmq

from radixledger.journal.events import Admitted, Config
from radixledger.journal.reader import JournalReader
from radixledger.journal.recorder import Recorder
from radixledger.replay.export.kv_events import batches
from radixledger.replay.seek import seq_at, state_at
from radixledger.tools import cli
from radixledger.tools.drill import plant_double_free
from radixledger.tools.export.publisher import END, Publisher

from ..replay.runs import RANK, written
from ..replay.subscriber import Subscriber
from ..replay.test_kv_events import prefixes

Told = Callable[..., tuple[int, str, str]]
encode = msgspec.msgpack.Encoder().encode


@pytest.fixture
def told(capfd: pytest.CaptureFixture[str]) -> Told:
    """Run `radixledger export`: its exit code, stdout and stderr."""

    def run(*words: object) -> tuple[int, str, str]:
        code = cli.run(["export", *map(str, words)])
        out, err = capfd.readouterr()
        return code, out, err

    return run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    written(tmp_path / "run", steps=200)
    return tmp_path / "run"


# -- perfetto ------------------------------------------------------------------------------------------------


def traced(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    trace = json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)
    entries: list[dict[str, Any]] = trace["traceEvents"]
    return entries


def test_every_request_is_a_slice_of_its_row_and_rows_have_one_at_a_time(
    told: Told, run: Path, tmp_path: Path
) -> None:
    code, out, _ = told("perfetto", run, "-o", tmp_path / "run.json")
    assert code == 0
    assert "open it in https://ui.perfetto.dev" in out
    entries = traced(tmp_path / "run.json")
    requests = [each for each in entries if each.get("cat") == "request"]
    admitted = [
        event.rid
        for frame in JournalReader(run, RANK).frames()
        for event in frame.events
        if isinstance(event, Admitted)
    ]
    assert Counter(each["name"] for each in requests) == Counter(admitted)
    by_row = defaultdict(list)
    for each in requests:
        by_row[each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    for spans in by_row.values():
        spans.sort()
        assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    named = {(each["pid"], each["tid"]) for each in entries if each["ph"] == "M"}
    assert {(each["pid"], each["tid"]) for each in entries if each["ph"] in "Xi"} <= named


def test_counters_show_the_pools_as_replay_folds_them(told: Told, run: Path, tmp_path: Path) -> None:
    told("perfetto", run, "-o", tmp_path / "run.json.gz")
    counters = [each for each in traced(tmp_path / "run.json.gz") if each["ph"] == "C"]
    reader = JournalReader(run, RANK)
    begun = next(iter(reader.frames())).time_ns
    for pool, book in (("FULL", "full"), ("SWA", "swa")):
        of_pool = [each for each in counters if each["name"] == f"{pool} pages"]
        assert len(of_pool) > 20
        for each in of_pool[::7]:
            state = state_at(reader, seq_at(reader, begun + round(each["ts"] * 1000)))
            held = getattr(state, book).held
            assert each["args"]["free"] == held[0]
            assert sum(each["args"].values()) == getattr(state, book).capacity


def test_what_broke_a_law_is_marked_and_the_exit_code_says_so(told: Told, run: Path, tmp_path: Path) -> None:
    plant_double_free(run, tmp_path / "incident", RANK)
    code, out, err = told("perfetto", tmp_path / "incident", "-o", tmp_path / "it.json", "--json")
    assert code == 1
    assert json.loads(out)["findings"] >= 1
    assert "`broken laws`" in err
    assert [each for each in traced(tmp_path / "it.json") if each["name"] == "a_page_is_freed_once"]


def test_a_file_that_is_there_is_written_over_only_by_force(told: Told, run: Path, tmp_path: Path) -> None:
    (tmp_path / "it.json").write_text("mine")
    code, _, err = told("perfetto", run, "-o", tmp_path / "it.json")
    assert (code, (tmp_path / "it.json").read_text()) == (2, "mine")
    assert "--force" in err
    assert told("perfetto", run, "-o", tmp_path / "it.json", "--force")[0] == 0
    assert traced(tmp_path / "it.json")


def test_a_trace_that_could_not_be_finished_leaves_no_file(told: Told, run: Path, tmp_path: Path) -> None:
    (segment,) = run.rglob("*.sealed")
    segment.write_bytes(segment.read_bytes()[:-2000])
    code, _, _ = told("perfetto", run, "-o", tmp_path / "it.json")
    assert code == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run"]


def test_where_the_clock_was_set_back_slices_nest_counters_go_on_and_it_is_said(
    told: Told, tmp_path: Path
) -> None:
    """Somebody set the clock of the host: times of frames go back, and what happened did not."""
    ticks = chain([50_000, 90_000, 20_000, 95_000, -(10**15), 97_000], repeat(96_000))
    config = Config(page_size=4, full_pages=60, swa_pages=0, window_tokens=0, rows=8)
    with Recorder.open(tmp_path / "run", config, clock=lambda: next(ticks)) as recorder:
        for page in range(1, 6):
            rid = str(page)
            recorder.admitted(rid, 4)
            recorder.extended([rid], [4], takers=[rid], counts=[1], full=[page])
            recorder.step_began(page, [rid], [0], [4])
            recorder.step_ended(page)
            recorder.freed([page], rid=rid)
            recorder.aborted(rid, 4)
    code, _, err = told("perfetto", tmp_path / "run", "-o", tmp_path / "it.json")
    assert code == 0
    assert "the clock was set back" in err
    entries = [each for each in traced(tmp_path / "it.json") if each["ph"] != "M"]
    assert min(each["ts"] for each in entries) >= 0
    counted = [each["ts"] for each in entries if each["ph"] == "C"]
    assert counted == sorted(counted)
    by_track = defaultdict(list)
    for each in entries:
        if each["ph"] == "X":
            by_track[each["tid"]].append((each["ts"], each["ts"] + each["dur"]))
    for spans in by_track.values():
        assert all(end <= begin for (_, end), (begin, _) in pairwise(sorted(spans)))


# -- kv events -----------------------------------------------------------------------------------------------


def test_kv_events_are_told_as_json_lines_where_no_endpoint_is_given(told: Told, run: Path) -> None:
    code, out, err = told("kv-events", run)
    assert (code, err) == (0, "")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["number"] for line in lines] == list(range(len(lines)))
    assert lines[0]["events"] == [["AllBlocksCleared"]]
    router = Subscriber()
    for line in lines:
        router.take(encode([line["ts"], line["events"], line["data_parallel_rank"]]))
    reader = JournalReader(run, RANK)
    assert router.seen("GPU") == prefixes(state_at(reader, reader.last_seq))


class Interrupted:
    """A publisher whose person presses Ctrl-C when all is published and it is asked to go on answering."""

    published = replayed = 0
    endpoints = ("tcp://127.0.0.1:1", "tcp://127.0.0.1:2")

    def __enter__(self) -> "Interrupted":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def wait_for_subscriber(self, _: int) -> bool:
        return True

    def publish(self, _: bytes) -> None:
        self.published += 1

    def answer(self, wait_ms: int) -> None:
        if wait_ms:
            raise KeyboardInterrupt


def test_who_publishes_is_told_what_it_waits_for_and_what_ends_it(
    told: Told, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("radixledger.tools.export.kv_events._publisher", lambda *_: Interrupted())
    ends = ["--bind", "tcp://127.0.0.1:1", "--replay-bind", "tcp://127.0.0.1:2"]
    code, out, err = told("kv-events", run, *ends)
    begun, published, stopped = err.splitlines()
    assert (code, out) == (0, "")
    assert begun.endswith("answering on tcp://127.0.0.1:2, from the first subscriber on: Ctrl-C ends it")
    assert published.endswith(" batches published; still answering about them: Ctrl-C ends it")
    assert stopped.startswith("stopped after ")
    _, _, err = told("kv-events", run, *ends, "--leave")
    assert err.splitlines()[1].endswith(" batches published")


def test_what_goes_together_is_asked_for_together(told: Told, run: Path) -> None:
    code, _, err = told("kv-events", run, "--replay-bind", "tcp://127.0.0.1:*")
    assert code == 2
    assert "--bind" in err
    code, _, err = told("kv-events", run, "--bind", "nonsense")
    assert code == 2
    assert "cannot be bound" in err


@contextmanager
def publishing(run: Path) -> Iterator[tuple[Publisher, Callable[[], None]]]:
    """A publisher on ports of its own; the function publishes everything."""

    def again() -> Iterator[bytes]:
        return map(encode, batches(JournalReader(run, RANK)))

    with Publisher("tcp://127.0.0.1:*", "tcp://127.0.0.1:*", "kv-events", again) as publisher:

        def publish() -> None:
            for batch in again():
                publisher.publish(batch)

        yield publisher, publish


def test_a_router_hears_every_batch_with_its_number(run: Path) -> None:
    with publishing(run) as (publisher, publish), zmq.Context() as context, context.socket(zmq.SUB) as router:
        router.connect(publisher.endpoints[0])
        router.setsockopt(zmq.SUBSCRIBE, b"kv-events")
        assert publisher.wait_for_subscriber(10_000)
        publish()
        follower, numbers = Subscriber(), []
        for _ in range(publisher.published):
            assert router.poll(10_000)
            topic, number, batch = router.recv_multipart()
            assert topic == b"kv-events"
            numbers.append(int.from_bytes(number, "big"))
            follower.take(batch)
    assert numbers == list(range(len(numbers)))
    reader = JournalReader(run, RANK)
    assert follower.seen("GPU") == prefixes(state_at(reader, reader.last_seq))


@pytest.mark.parametrize("kept", [10_000, 3])
def test_who_missed_batches_gets_them_from_the_number_that_he_asks_for(
    run: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that are kept no longer: the journal is read again."""
    monkeypatch.setattr("radixledger.tools.export.publisher.KEPT", kept)
    with (
        publishing(run) as (publisher, publish),
        zmq.Context() as context,
        context.socket(zmq.DEALER) as asker,
    ):
        publish()
        asker.connect(str(publisher.endpoints[1]))
        for start in (0, 5, publisher.published - 1, publisher.published, 1 << 40):
            asker.send_multipart((b"", start.to_bytes(8, "big")))
            answering = threading.Thread(target=publisher.answer, args=(10_000,))
            answering.start()
            numbers = []
            while True:
                assert asker.poll(10_000)
                _, number, batch = asker.recv_multipart()
                if number == END:
                    assert batch == b""
                    break
                numbers.append(int.from_bytes(number, "big"))
            answering.join()
            assert numbers == list(range(start, publisher.published))


def test_a_question_that_is_none_is_passed_over(run: Path) -> None:
    with (
        publishing(run) as (publisher, publish),
        zmq.Context() as context,
        context.socket(zmq.DEALER) as asker,
    ):
        publish()
        asker.connect(str(publisher.endpoints[1]))
        for question in ((b"",), (b"", b"seven"), (b"x" * 9,), (b"", b"", b"", b"ninebytes")):
            asker.send_multipart(question)
        asker.send_multipart((b"", publisher.published.to_bytes(8, "big")))
        answering = threading.Thread(target=publisher.answer, args=(10_000,))
        answering.start()
        while not asker.poll(100):
            publisher.answer(100) if not answering.is_alive() else answering.join(0.1)
        assert asker.recv_multipart()[-2:] == [END, b""]
        answering.join()
