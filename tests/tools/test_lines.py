"""Lines that somebody hands over, and what has no lines at all."""

from pathlib import Path

import pytest

from radixledger.tools import lines
from radixledger.tools.cli import run
from radixledger.tools.lines import LineTooLong, lines_of
from radixledger.tools.streams import BadTrace, read_trace


def test_lines_come_as_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\nb\r\nc\rd\x0be")
    assert list(lines_of(path)) == [b"a\n", b"\n", b"b\r\n", b"c\rd\x0be"]


def test_a_line_without_end_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"12345\n123456\n")
    read = lines_of(path, most=6)
    assert next(read) == b"12345\n"
    with pytest.raises(LineTooLong, match=r"lines, line 2: it has more than 6 bytes"):
        next(read)


@pytest.fixture
def short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a line may have is what this test can afford."""
    monkeypatch.setattr(lines_of, "__defaults__", (4096,))
    assert lines.LINE_BYTES_MAX > 4096


@pytest.mark.usefixtures("short_lines")
def test_a_device_is_no_trace_and_no_file_of_requests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadTrace, match="/dev/zero, line 1: it has more than 4096 bytes"):
        next(read_trace(Path("/dev/zero")))
    output, journal = tmp_path / "results", tmp_path / "run"
    assert run(["drive", "/dev/zero", "--journal", str(journal)]) == 3
    assert "line 1: it has more than 4096 bytes" in capsys.readouterr().err
    serve = ["serve", "--offline", "/dev/zero", "--output", str(output), "--model-path", "tiny"]
    assert run([*serve, "--journal", str(journal)]) == 3
    assert "line 1: it has more than 4096 bytes" in capsys.readouterr().err
    assert not output.exists()
