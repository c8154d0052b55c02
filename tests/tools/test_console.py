"""What commands print, on terminals of several widths and into pipes."""

import io
import json
import sys

import pytest

from radixledger.tools import console
from radixledger.tools.table import print_table

COLUMNS = ("rank", "check", "first event")
ROWS = [(0, "double_free", 1234), (1, "every page has one owner", None)]


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_table_fits_80_columns_as_a_table(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    print_table(COLUMNS, ROWS, title="violations")
    title, header, _, first, second = capsys.readouterr().out.splitlines()
    assert title.rstrip() == "violations"
    assert header.split() == ["rank", "check", "first", "event"]
    assert first.split() == ["0", "double_free", "1,234"]
    assert second.split() == ["1", "every", "page", "has", "one", "owner"]


def test_a_table_too_wide_for_40_columns_becomes_records_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table(COLUMNS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "rank 0  check double_free",
        "  first event 1,234",
        "rank 1  check every page has one owner",
    ], "a field that has nothing in it is left out"


def test_one_row_that_is_too_wide_is_told_field_by_field(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    print_table(("rank", "check", "first event"), [(1, "every page has one owner", None)])
    assert capsys.readouterr().out.splitlines() == ["rank   1", "check  every page has one", "       owner"]


def test_a_long_fact_goes_on_below_its_beginning_and_a_command_does_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    console.print_facts(
        {"found": "request(98) expected, and free", "next": "radixledger replay blame RUN --page 57"}
    )
    assert capsys.readouterr().out.splitlines() == [
        "found  request(98) expected,",
        "       and free",
        "next   radixledger replay blame RUN --page 57",
    ]


def test_what_is_the_same_in_every_row_is_told_once_where_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest is a table again, if that fits; in a pipe and in JSON nothing is taken out."""
    columns, rows = ("run", "rank", "seq", "none"), [("a-long-name", 0, seq, "") for seq in (9, 10)]
    monkeypatch.setenv("COLUMNS", "20")
    print_table(columns, rows)
    assert capsys.readouterr().out.splitlines() == [
        "in every row: run",
        "a-long-name, rank 0",
        "seq",
        "───",
        "  9",
        " 10",
    ]
    monkeypatch.setenv("COLUMNS", "16")
    print_table(
        (*columns, "why"), [(*row, "because it was so") for row in rows[:1]] + [(*rows[1], "because")]
    )
    told = capsys.readouterr().out
    assert "seq 9" in told
    assert all(len(line) <= 16 or " " not in line.strip() for line in told.splitlines())
    monkeypatch.delenv("COLUMNS")
    print_table(columns, rows)
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize(
    ("texts", "right"),
    [
        (["7", "12"], True),
        (["7", None, "1,234"], True),
        (["0.5", "-1e+06", "~3", "41.9%"], True),
        ([1, 2.5], True),
        (["7", "seven"], False),
        (["1-2", "3"], False),
        ([None, ""], False),
        ([True, False], False),
    ],
)
def test_a_column_of_numbers_stands_to_the_right_however_it_is_typed(
    texts: list[object], right: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    print_table(("a wide name",), [(text,) for text in texts])
    for line in capsys.readouterr().out.splitlines()[2:]:
        assert not line.strip() or line.startswith(" ") == right


@pytest.mark.parametrize("width", ["20", "60", "200"])
def test_a_table_without_rows_says_so_at_every_width(
    width: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    print_table(COLUMNS, [], title="violations")
    assert capsys.readouterr().out.split("\n") == ["violations", "no rows", ""]


def test_columns_of_nought_are_no_width(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A container that was given a terminal of no size says so."""
    monkeypatch.setenv("COLUMNS", "0")
    print_table(COLUMNS, ROWS)
    assert capsys.readouterr().out.splitlines()[0].split() == ["rank", "check", "first", "event"]


def test_a_row_stays_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("wide", "end"), [("x" * 500, "last")])
    assert capsys.readouterr().out.splitlines()[-1].split() == ["x" * 500, "last"]


def test_text_is_never_markup(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("pages",), [("[3]",), ("[bold]",), (":smile:",)], title="[red]pages[/red]")
    console.print_facts({"slots": "[1, 2]"})
    out = capsys.readouterr().out
    assert all(text in out for text in ("[3]", "[bold]", ":smile:", "[red]pages[/red]", "slots  [1, 2]"))


def test_numbers_stand_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("n",), [(1,), (12345,)])
    assert capsys.readouterr().out.splitlines()[-2:] == ["     1", "12,345"]


def test_json_is_one_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    console.print_json({"hit": 0.5, "pages": [1, 2]})
    assert json.loads(capsys.readouterr().out) == {"hit": 0.5, "pages": [1, 2]}


def test_remarks_stay_out_of_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    console.remark("verifying")
    assert capsys.readouterr() == ("", "verifying\n")


def test_progress_is_silent_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress("fold", 3) as advance:
        advance(3)
    assert capsys.readouterr() == ("", "")


def sit_down_at(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal as stderr, and a clock that stands at zero. No fixture: pytest swaps stderr after those."""
    terminal = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("time.monotonic", lambda: 0.0)
    return terminal


def test_progress_shows_how_far_long_work_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = sit_down_at(monkeypatch)
    with console.progress("fold", 10) as advance:
        advance(2)
        monkeypatch.setattr("time.monotonic", lambda: 1.1)
        advance(3)
    assert "fold" in terminal.getvalue()
    assert "5/10" in terminal.getvalue()


def test_work_of_less_than_a_second_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = sit_down_at(monkeypatch)
    with console.progress("fold", 10) as advance:
        monkeypatch.setattr("time.monotonic", lambda: 0.9)
        advance(10)
    assert terminal.getvalue() == ""


def test_a_terminal_that_cannot_redraw_gets_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = sit_down_at(monkeypatch)
    monkeypatch.setenv("TERM", "dumb")
    with console.progress("fold", 10) as advance:
        monkeypatch.setattr("time.monotonic", lambda: 9.0)
        advance(10)
    assert terminal.getvalue() == ""


def test_work_that_cannot_tell_how_far_it_is_moves_a_line_and_clears_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = sit_down_at(monkeypatch)
    with console.waiting("compile [3]"):
        assert "compile [3]" in terminal.getvalue()
    shown = len(terminal.getvalue())
    monkeypatch.setenv("TERM", "dumb")
    with console.waiting("compile [3]"):
        pass
    assert len(terminal.getvalue()) == shown, "a terminal that cannot redraw gets no line"


def test_a_moving_line_stays_one_line_where_the_terminal_is_narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = sit_down_at(monkeypatch)
    monkeypatch.setenv("COLUMNS", "40")
    with console.waiting("compile for " + "many " * 20 + "requests"):
        (line,) = terminal.getvalue().strip().splitlines()
    assert "compile for many" in line
    assert "requests" not in line


def test_figures_are_for_people() -> None:
    assert console.count_text(1234567) == "1,234,567"
    assert [console.bytes_text(n) for n in (0, 1023, 1536, 3 * 2**20, 2**30, 2**41)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "3.0 MiB",
        "1.0 GiB",
        "2.0 TiB",
    ]
    assert [console.seconds_text(s) for s in (0.00035, 0.012, 4.21, 185)] == [
        "350 µs",
        "12 ms",
        "4.2 s",
        "3 min 5 s",
    ]


def test_examples_keep_their_lines() -> None:
    assert console.examples("radixledger sql run", "radixledger sql run -c Q") == (
        "\b\nExamples:\n  $ radixledger sql run\n  $ radixledger sql run -c Q"
    )
