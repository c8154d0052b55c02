"""`radixledger whatif`: what it prints, draws and refuses."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from radixledger.tools.cli import run as radixledger
from radixledger.tools.whatif_tables import too_coarse

SAMPLE = Path(__file__).parent.parent / "data" / "mooncake_sample.jsonl"

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty-four requests of the sample on two ranks, under pressure."""
    run = tmp_path_factory.mktemp("whatif") / "run"
    words = ["drive", str(SAMPLE), "--journal", str(run), "--unified", "--limit", "24", "--dp-size", "2"]
    assert radixledger([*words, "--full-pages", "700", "--swa-pages", "150", "--json"]) == 0
    return run


def whatif(run: Path, *words: str, code: int = 0) -> None:
    assert radixledger(["whatif", str(run), "--processes", "1", *words]) == code


def test_it_says_as_json_what_was_recorded_and_what_would_have_been(recorded: Path, capfd: Capture) -> None:
    """J17: one document; the recorded configuration sent again has the recorded figures and state."""
    whatif(recorded, "--set", "swa_pages=300", "--grid", "policy=slru,use", "--json")
    told = json.loads(capfd.readouterr().out)
    assert (told["requests"], told["ranks"]) == (24, [0, 1])
    assert told["as_recorded"]["figures"] == told["recorded"]
    assert told["as_recorded"]["same_state"] is True
    names = [each["name"] for each in told["configurations"]]
    assert names == ["swa_pages=300", "policy=slru", "policy=use"]
    roomy, slru, use = told["configurations"]
    assert roomy["configuration"]["swa_pages"] == 300
    assert (roomy["estimate"], slru["estimate"]) == (True, False)
    assert (slru["configuration"]["eviction"], use["configuration"]["swa_victims"]) == ("slru", "use")
    assert all(each["figures"]["hit_rate"] <= each["bound_rate"] for each in told["configurations"])


def test_several_processes_say_the_same_as_one(recorded: Path, capfd: Capture) -> None:
    def told(processes: str) -> object:
        whatif(
            recorded, "--set", "route=legacy", "--set", "page_size=256", "--processes", processes, "--json"
        )
        text = capfd.readouterr().out
        return re.sub(r'"(cpu_seconds|peak_bytes)": [\d.e-]+', "", text)

    assert told("1") == told("2")


@pytest.mark.parametrize(("bars", "coarse"), [((6, 6, 6), True), ((6, 5, 4), False)])
def test_bars_that_do_not_tell_rates_apart_are_too_coarse(bars: tuple[int, ...], coarse: bool) -> None:
    rates = ("0.419", "~0.372", "~0.403")
    assert (
        too_coarse([["", rate, "", "", "█" * bar] for rate, bar in zip(rates, bars, strict=True)]) == coarse
    )
    assert not too_coarse([["", rate, "", "", "█" * 6] for rate in ("0.419", "~0.419")])


@pytest.mark.parametrize("width", [60, 80, 100])
def test_prose_is_wrapped_where_the_terminal_ends(
    recorded: Path, width: int, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    whatif(recorded, "--set", "swa_pages=300,full_pages=900", "--set", "policy=use")
    out = capfd.readouterr().out
    assert "an estimate" in out
    assert max(len(line.rstrip()) for line in out.splitlines()[1:]) <= width, "but for the path of the run"


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_of_a_table_is_wider_than_the_terminal(
    recorded: Path, width: int, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    whatif(recorded, "--set", "page_size=256,policy=slru+use,swa_pages=100", "--grid", "full_pages=300,500")
    lines = capfd.readouterr().out.splitlines()
    assert max(len(line) for line in lines if line.startswith(("recorded", "no. ", "run", "─"))) <= width
    assert any("page_size=256,policy=slru+use,swa_pages=100" in line for line in lines)
    assert sum(line.startswith("recorded ") for line in lines) == 4
    assert any("an estimate" in line for line in lines)


def test_a_run_without_settings_is_sent_again_as_it_was(recorded: Path, capfd: Capture) -> None:
    whatif(recorded, "--rank", "1")
    told = capfd.readouterr().out
    assert "12 requests" in told
    assert "every figure is the recorded one, and so is the state at the end" in told


@pytest.mark.parametrize("ending", ["svg", "html"])
def test_the_plot_shows_every_configuration_with_its_figures(
    recorded: Path, ending: str, tmp_path: Path, capfd: Capture
) -> None:
    """One file that needs nothing else; names are text in it, never markup."""
    plot = tmp_path / f"plot.{ending}"
    whatif(recorded, "--grid", "full_pages=300,400,500", "--plot", str(plot), "--json")
    told = json.loads(capfd.readouterr().out)
    text = plot.read_text("utf-8")
    drawing = ET.fromstring(re.search(r"<svg.*</svg>", text, re.DOTALL)[0])  # type: ignore[index]
    words = {element.text for element in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"recorded", "full_pages=300", "full_pages=500", "Hit rate over full pages"} <= words
    for each in told["configurations"]:
        mark = "~" if each["estimate"] else ""
        assert f"{mark}{each['figures']['hit_rate']:.3f}" in words
    assert not re.findall(r"(?:src|href)=|url\(|@import", text)
    whatif(recorded, "--plot", str(plot), code=2)
    assert "is there already: name another file, or replace it with --force" in capfd.readouterr().err
    assert plot.read_text("utf-8") == text
    whatif(recorded, "--plot", str(plot), "--force")
    assert plot.read_text("utf-8") != text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--set", "pages=5"], "--set: pages"),
        (["--set", "full_page=5"], "--set: full_page: is none of page_size, "),
        (["--set", "full_page=5"], "; did you mean full_pages"),
        (["--grid", "rout=legacy,radix"], "; did you mean route"),
        (["--set", "full_pages=none"], "--set: full_pages"),
        (["--set", "page_size=96"], "--set: page_size: 96 tokens are no multiple of 128"),
        (["--set", "route=tree"], "--set: route"),
        (["--set", "route=legacy,policy=use"], "--set: policy"),
        (["--grid", "full_pages=10,x"], "--grid: full_pages"),
        (["--grid", "full_pages=10,0"], "--grid: full_pages"),
        (["--grid", "full_pages=1", "--grid", "full_pages=2"], "--grid: full_pages is named twice"),
        (["--grid", "full_pages=" + ",".join(map(str, range(1, 103)))], "--grid: "),
        (["--rank", "7"], "rank 7"),
        (["--plot", "plot.png"], "--plot"),
        (["--plot", "nowhere/plot.svg"], "nowhere is no folder: make it first"),
        (["--processes", "0"], "--processes"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(
    recorded: Path, words: list[str], said: str, capfd: Capture
) -> None:
    """Exit 2, with the flag; a rank that is not there is a journal that cannot be read."""
    whatif(recorded, *words, code=3 if "--rank" in words else 2)
    captured = capfd.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_damage_is_told_and_salvage_says_what_is_left(recorded: Path, tmp_path: Path, capfd: Capture) -> None:
    """Exit 3, and no traceback; with --salvage an estimate."""
    words = ["drive", str(SAMPLE), "--journal", str(tmp_path / "run"), "--unified", "--limit", "24"]
    assert radixledger(words) == 0
    (segment,) = (tmp_path / "run").rglob("*.sealed")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    capfd.readouterr()
    whatif(tmp_path / "run", code=3)
    captured = capfd.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_a_journal_without_requests_has_nothing_to_send(tmp_path: Path, capfd: Capture) -> None:
    trace = tmp_path / "empty.jsonl"
    trace.write_text("")
    assert radixledger(["drive", str(trace), "--journal", str(tmp_path / "run"), "--unified"]) == 0
    capfd.readouterr()
    whatif(tmp_path / "run", code=3)
    assert "nothing to send again" in capfd.readouterr().err
