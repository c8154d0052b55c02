"""What strangers wrote into a journal is shown and never obeyed: no escape, no line of theirs that looks like one of ours."""

import io
import json
import sys
from pathlib import Path

import pytest
from msgspec.structs import fields, replace

from radixledger.journal.events import AnyEvent, Opened, Refused
from radixledger.tools.cli import run as radixledger
from radixledger.tools.printable import in_a_line, printable, speak_as_the_streams_can

from ..cache.driven import SHAPES, Driven, FrameList, opened
from ..incidents.journals import put_down

Capture = pytest.CaptureFixture[str]
OBEYED = "\x1b[31mred\x1b]0;title\x07\r\x7f\x9b31m\u2028\u202etxt"
HOSTILE = f"{OBEYED}\nrank 0: clean\n"
COMMANDS = (
    "triage RUN --no-report", "replay verify RUN", "replay state RUN", "replay locks RUN", "replay blame RUN --node 2",
    "replay blame RUN --pool full --page 3", "replay lost-reuse RUN", "replay lost-reuse RUN --each",
    "replay tail RUN --once --last 1000", "replay diff RUN@20 RUN", "replay bisect RUN --predicate requests>0 --first",
    "replay why-miss RUN RID", "journal cat RUN", "whatif RUN --processes 1", "reduce RUN --seconds 0.1",
)  # fmt: skip


def hostile(event: AnyEvent) -> AnyEvent:
    """The event with somebody's text before every text of it."""
    named = {field.name: getattr(event, field.name) for field in fields(event)}
    return replace(event, **{name: HOSTILE + text for name, text in named.items() if isinstance(text, str)})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hostile") / "run"
    journal = FrameList(opened(SHAPES[1], redaction="plain", labels={HOSTILE: HOSTILE}, code=HOSTILE))
    Driven(3, SHAPES[1], recorder=journal).run(60)
    commands = [
        [each if isinstance(each, Opened) else hostile(each) for each in frame.events]
        for frame in journal.frames
    ]
    put_down(place, [*commands, [Refused(HOSTILE, HOSTILE)]])
    return place


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("a_terminal")
def test_no_text_of_a_journal_is_obeyed_or_looks_like_a_line_of_ours(
    run: Path, capsys: Capture, command: str
) -> None:
    words = [each.replace("RUN", str(run)).replace("RID", HOSTILE + "r3") for each in command.split()]
    assert radixledger(words) in (0, 1, 2)
    told = capsys.readouterr()
    said = told.out + told.err
    assert said
    assert not {each for each in OBEYED if not each.isprintable()} & set(said)
    assert "rank 0: clean" not in said.splitlines()


@pytest.fixture
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """click takes escapes out of what goes to no terminal; here it does not."""
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)


def test_json_reads_back_what_was_spelled_out() -> None:
    assert json.loads(printable(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE


def test_text_in_many_letters_stays_as_it_is() -> None:
    for text in ("Grüße, 世界 🙂", "a b", "", "│ ─ ~"):
        assert printable(text) == in_a_line(text) == text
    assert printable("a\n\tb") == "a\n\tb"
    assert in_a_line("a\n\tb\r") == r"a\n\tb\r"


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_stream_that_has_no_bytes_for_a_sign_is_told_what_says_the_same(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LANG=C, PYTHONIOENCODING=ascii: nothing fails, and what is not ours is spelled as JSON reads it."""
    into = io.BytesIO()
    stream = io.TextIOWrapper(into, encoding=encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    speak_as_the_streams_can()
    stream.write("free \u2192 request(\u4e16\U0001f600), \u2588\u2588")
    said = into.getvalue().decode("ascii")
    assert said == "free -> request(\\u4e16\\ud83d\\ude00), ##"
    assert json.loads('"\\u4e16\\ud83d\\ude00"') == "\u4e16\U0001f600"


def test_a_stream_of_utf_8_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf8", errors="surrogateescape")
    monkeypatch.setattr(sys, "stdout", stream)
    speak_as_the_streams_can()
    assert stream.errors == "surrogateescape"
