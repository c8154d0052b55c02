"""RUN as a URL: every command that takes a run fetches it, says what is wrong with it, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest

from radixledger.tools.cli import run as radixledger
from radixledger.tools.run_argument import spoken

from ..replay.runs import written

Capture = pytest.CaptureFixture[str]

ASKED = [
    ("journal", "cat", "RUN", "--rank", "0"),
    ("journal", "stats", "RUN"),
    ("journal", "doctor", "RUN"),
    ("replay", "verify", "RUN"),
    ("replay", "state", "RUN", "--at", "40", "--json"),
    ("replay", "blame", "RUN", "--pool", "full", "--page", "3"),
    ("replay", "bisect", "RUN", "--predicate", "seq > 40"),
    ("replay", "diff", "RUN", "RUN"),
    ("replay", "locks", "RUN"),
    ("sql", "RUN", "-c", "SELECT count(*) AS events FROM events"),
]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clean run of one rank, with a snapshot."""
    run = tmp_path_factory.mktemp("kept") / "run"
    written(run, 80, snapshots=(40,))
    return run


@pytest.fixture
def store(kept: Path) -> Iterator[str]:
    """The same in the memory of this process, as `memory://bucket/run`."""
    files = fsspec.filesystem("memory")
    files.put(str(kept), "/bucket/run", recursive=True)
    yield "memory://bucket/run"
    files.rm("/bucket", recursive=True)


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made: empty again when a command has ended."""
    room = tmp_path / "room"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    return room


def told(capfd: Capture, *words: object, code: int = 0) -> str:
    """What a command prints, leaving with `code`."""
    found = radixledger([*map(str, words)])
    out, err = capfd.readouterr()
    assert found == code, out + err
    return out + err


@pytest.mark.parametrize("words", ASKED, ids=lambda words: " ".join(words[:2]))
def test_a_command_says_of_a_url_what_it_says_of_the_folder(
    words: tuple[str, ...], kept: Path, store: str, room: Path, capfd: Capture
) -> None:
    of_folder, of_url, of_file = (
        told(capfd, *(run if word == "RUN" else word for word in words), code=words[1] in ("bisect", "locks"))
        for run in (kept, store, kept.as_uri())
    )
    if words[1] != "verify":  # tells how long it took
        assert of_url.replace(store, str(kept)) == of_folder == of_file.replace(kept.as_uri(), str(kept))
    assert list(room.iterdir()) == []


def test_a_run_can_be_loaded_and_recovered_from_a_url(
    store: str, tmp_path: Path, room: Path, capfd: Capture
) -> None:
    loaded = told(capfd, "load", store, "--to", tmp_path / "runs.duckdb", "--json")
    assert json.loads(loaded)["ranks"][0]["events"] > 80
    assert "copy/rank-0000" in told(capfd, "journal", "recover", store, "--to", tmp_path / "copy")
    assert "clean" in told(capfd, "replay", "verify", tmp_path / "copy")
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("place", ["runs.duckdb", "parquet/"])
def test_what_load_made_can_be_asked_by_its_url(
    place: str, kept: Path, tmp_path: Path, capfd: Capture
) -> None:
    told(capfd, "load", kept, "--to", f"{tmp_path}/{place}")
    files = fsspec.filesystem("memory")
    files.put(f"{tmp_path}/{place}", f"/loaded/{place}", recursive=place.endswith("/"))
    try:
        out = told(
            capfd, "sql", f"memory://loaded/{place}", "-c", "SELECT count(*) AS events FROM events", "--json"
        )
    finally:
        files.rm("/loaded", recursive=True)
    assert json.loads(out)[0]["events"] > 80


def test_only_the_ranks_in_question_are_fetched_and_only_journal_files(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    files = fsspec.filesystem("memory")
    written(tmp_path / "run", 20, rank=1, ranks=2, snapshots=(10,))
    for name in ("rank-0001", "rank-1", "rank-00001", "elsewhere"):
        files.put(str(tmp_path / "run" / "rank-0001"), f"/bucket/run/{name}", recursive=True)
    files.pipe("/bucket/run/rank-0001/notes.txt", b"nobody's business")
    fetched: list[str] = []
    get = type(files).get_file

    def seen(self: object, source: str, *more: object, **options: object) -> None:
        fetched.append(source)
        get(self, source, *more, **options)

    monkeypatch.setattr(type(files), "get_file", seen)
    told(capfd, "replay", "state", store, "--rank", "1")
    names = {Path(name).parent.name + "/" + Path(name).suffix for name in fetched}
    assert names <= {"rank-0001/.sealed", "rank-0001/.seg", "rank-0001/.snap"}
    assert names
    fetched.clear()
    out = told(capfd, "replay", "state", store, code=2)
    assert f"{store} has ranks 0, 1: say which with --rank" in out
    assert fetched == [], "nothing is fetched before it is clear of what"


def test_messages_name_the_url_and_not_the_copy(kept: Path, store: str, capfd: Capture) -> None:
    files = fsspec.filesystem("memory")
    (segment,) = (name for name in files.ls("/bucket/run/rank-0000", detail=False) if "sealed" in name)
    data = files.cat_file(segment)
    files.pipe(segment, data[:200] + bytes(byte ^ 255 for byte in data[200:300]) + data[300:])
    out = told(capfd, "replay", "state", store, code=3)
    assert f"{store}/rank-0000/" in out
    assert "radixledger-" not in out


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("memory://nowhere/run", 3, "there is nothing here"),
        ("memory://bucket", 3, "it is no run"),
        ("memory://bucket/run/rank-0000", 3, "it is no run"),
        ("nonsense://bucket/run", 2, "Protocol not known: nonsense"),
        ("s3://bucket/run", 2, "pip install 'fsspec[s3]'"),
        ("file:///no/such/run", 3, "there is no such folder"),
    ],
)
def test_a_url_without_a_run_is_told_plainly(
    url: str, code: int, said: str, store: str, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store
    monkeypatch.setitem(sys.modules, "s3fs", None)
    out = told(capfd, "replay", "verify", url, code=code)
    assert out.startswith("Error: ") or "unreadable" in out
    assert said in out
    assert url.removeprefix("file://") in out


def test_a_password_in_a_url_is_not_printed(capfd: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paramiko", None)
    out = told(capfd, "replay", "verify", "sftp://me:sesame@host/run", code=2)
    assert "sftp://me@host/run" in out
    assert "sesame" not in out
    assert spoken("s3://bucket/a:b@7") == "s3://bucket/a:b@7"
    assert spoken("ftp://me@host/run") == "ftp://me@host/run"


def test_a_rank_that_is_not_there_is_told_with_those_that_are(store: str, capfd: Capture) -> None:
    out = told(capfd, "replay", "state", store, "--rank", "7", code=3)
    assert "rank 7 has no journal here (this run has ranks 0)" in out


def test_a_copy_cannot_be_followed(store: str, capfd: Capture) -> None:
    assert "fetched once" in told(capfd, "export", "kv-events", store, "--follow", code=2)
    assert "fetched once" in told(capfd, "journal", "cat", store, "--rank", "0", "--follow", code=2)


def test_a_run_behind_a_web_server_is_fetched(kept: Path) -> None:
    """In a process of its own, as somebody would: the client keeps threads that pytest would count."""
    serve = partial(Quiet, directory=str(kept.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/run"
        command = [sys.executable, "-m", "radixledger.tools.cli", "replay", "verify"]
        found = subprocess.run([*command, url, "--json"], capture_output=True, text=True, check=False)
        missing = subprocess.run([*command, url + "x"], capture_output=True, text=True, check=False)
        server.shutdown()
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["clean"]
    assert (missing.returncode, missing.stderr) == (3, f"Error: {url}x: there is nothing here\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT], ids=lambda each: each.name)
def test_who_is_told_to_go_while_fetching_leaves_no_copy(kept: Path, room: Path, number: int) -> None:
    serve = partial(Stuck, directory=str(kept.parent))
    Stuck.asked.clear()
    Stuck.over.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/run"
        command = [sys.executable, "-m", "radixledger.tools.cli", "triage", url]
        with subprocess.Popen(
            command, env=os.environ | {"TMPDIR": str(room)}, stderr=subprocess.PIPE
        ) as child:
            assert Stuck.asked.wait(60)
            assert [each.name[:12] for each in room.iterdir()] == ["radixledger-"]
            child.send_signal(number)
            _, err = child.communicate()
        Stuck.over.set()
        server.shutdown()
    assert child.returncode == 128 + number
    assert b"Traceback" not in err
    assert list(room.iterdir()) == []


@pytest.mark.parametrize(
    ("kind", "code"), [(OSError, 3), (RuntimeError, 3), (ValueError, 2), (ImportError, 2)]
)
def test_what_a_library_of_others_says_is_cut(
    capfd: Capture, monkeypatch: pytest.MonkeyPatch, kind: type[Exception], code: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise kind("bytes that a server sent: " + "x" * 100_000)

    monkeypatch.setattr("radixledger.tools.fetch.url_to_fs", refuse)
    out = told(capfd, "replay", "verify", "memory://bucket/run", code=code)
    assert "bytes that a server sent: xxx" in out
    assert len(out) < 600


class Quiet(SimpleHTTPRequestHandler):
    """A web server that keeps no log."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the name that callers use
        """Say nothing."""


class Stuck(Quiet):
    """One that lists a run, and never sends a file of it."""

    asked, over = threading.Event(), threading.Event()

    def do_GET(self) -> None:
        """A listing, or nothing."""
        if self.path.endswith("/"):
            super().do_GET()
        else:
            self.asked.set()
            self.over.wait(60)
