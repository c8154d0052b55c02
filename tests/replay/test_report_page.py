"""The page of a report as text: complete without a script, and nothing of a hostile journal becomes markup."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from radixledger.journal.accounts import request_account
from radixledger.journal.events import Admitted, Freed, Refused, Violated
from radixledger.journal.reader import JournalReader
from radixledger.journal.units import NO_PAGES, ROOT, Pages, Rank, RequestId, TokenCount
from radixledger.journal.writer import JournalWriter
from radixledger.replay.report.write import ReportSummary, write_report
from radixledger.tools.drill import plant_double_free

from ..cache.driven import Driven, opened
from .report_reader import tracks_of
from .runs import Clock, written

HOSTILE = "</script><script>document.title='had'</script><img src=x onerror=alert(1)>\"'&\u202e\u0007\n"
"""What somebody could send as the id of a request: ends of elements, handlers, quotes, a turn of direction, a bell."""


class Elements(HTMLParser):
    """Every element of a page with its attributes, and what texts there are."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def reported(runs: list[Path], page: Path) -> ReportSummary:
    return write_report(runs, page, tell=str, made="made by a test")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run in which everything that can be a text is an attack."""
    folder = tmp_path_factory.mktemp("hostile")
    run = folder / "<b>run"
    writer = JournalWriter.open(run, opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(30)
    number = RequestId(1 << 20)
    writer.append(Admitted(number, HOSTILE, TokenCount(5), TokenCount(0), ROOT))
    writer.append(Refused(HOSTILE, HOSTILE, number))
    writer.append(Violated(HOSTILE, HOSTILE, number))
    page, _ = driven.cache.alloc(1)
    writer.append(Freed(request_account(number), page, NO_PAGES, NO_PAGES))
    writer.end_command()
    writer.close()
    reported([run], folder / "page.html")
    return folder / "page.html"


def test_what_a_hostile_journal_says_is_text(hostile: Path) -> None:
    """No element, no attribute and no character that reads differently than it is comes out of a journal."""
    text = hostile.read_text("utf-8")
    elements = Elements(text)
    assert [
        tag for tag, _ in elements.found if tag in ("img", "iframe", "object", "embed", "link", "b" * 3)
    ] == []
    assert [name for _, attributes in elements.found for name in attributes if name.startswith("on")] == []
    assert len([tag for tag, attributes in elements.found if tag == "script" and not attributes]) == 1
    assert any("<img src=x onerror=alert(1)>" in each for each in elements.texts)
    assert "\u202e" not in text
    assert "\u0007" not in text
    (read,) = tracks_of(hostile)
    assert HOSTILE in [life[1] for life in read.head["lives"]]


def test_the_policy_lets_its_own_script_and_style_run_and_nothing_else(hostile: Path) -> None:
    text = hostile.read_text("utf-8")
    ((_, attributes),) = [
        each for each in Elements(text).found if each[1].get("http-equiv") == "Content-Security-Policy"
    ]
    policy = dict(part.strip().split(" ", 1) for part in (attributes["content"] or "").split(";"))
    for name, element in (("script-src", "script"), ("style-src", "style")):
        (inline,) = re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)
        assert (
            policy.pop(name)
            == f"'sha256-{base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()}'"
        )
    assert policy == dict.fromkeys(("default-src", "connect-src", "base-uri", "form-action"), "'none'")


def test_nothing_is_asked_of_a_network(hostile: Path) -> None:
    text = hostile.read_text("utf-8")
    asked = [
        name
        for _, attributes in Elements(text).found
        for name in attributes
        if name in ("src", "href", "action")
    ]
    assert asked == ["href"]
    assert 'class="skip" href="#moment"' in text
    addresses = set(re.findall(r"\w+://[^\s\"'<)]+", text))
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_the_verdict_the_charts_and_the_findings_need_no_script(tmp_path: Path) -> None:
    """What is printed, and what a viewer shows that lets no script run."""
    writer = JournalWriter.open(tmp_path / "run", opened(redaction="plain"), clock=Clock())
    driven = Driven(7, recorder=writer).run(200)
    page, _ = driven.cache.alloc(1)
    driven.cache.free(page)
    writer.append(Freed(request_account(RequestId(0)), page, NO_PAGES, NO_PAGES))
    writer.end_command()
    writer.close()
    reported([tmp_path / "run"], tmp_path / "page.html")
    told = re.sub(r"<script.*?</script>", "", (tmp_path / "page.html").read_text("utf-8"), flags=re.DOTALL)
    number = int.from_bytes(page, "little")
    assert "First wrong event: <button" in told
    assert f"a caller without a request freed FULL page {number} again" in told
    assert f"event {writer.last_seq:,}</button>" in told
    assert "a_<wbr>page_<wbr>is_<wbr>freed_<wbr>once" in told
    assert "What led to it, and what came of it" in told
    assert f"<b>wrong:</b> FULL page {number}" in told
    charts = re.findall(r'<svg class="chart".*?</svg>', told)
    assert len(charts) == 2
    for chart in charts:
        assert {"a-free", "a-request", "a-evictable", "a-reserved"} <= set(
            re.findall(r'class="([^"]+)"', chart)
        )
    assert re.search(r"[\d,]+ tombstones</span><svg", told)
    assert "every event" in told


def test_several_runs_stand_on_one_page_each_under_its_name(tmp_path: Path) -> None:
    written(tmp_path / "before", 30)
    written(tmp_path / "after", 30, rank=0, ranks=2)
    written(tmp_path / "after", 30, rank=1, ranks=2)
    summary = reported([tmp_path / "before", tmp_path / "after"], tmp_path / "page.html")
    labels = re.findall(r'data-label="([^"]+)"', (tmp_path / "page.html").read_text("utf-8"))
    assert labels == ["before, rank 0", "after, rank 0", "after, rank 1"]
    assert {each.kind for each in summary.ranks} == {"clean"}
    assert len(tracks_of(tmp_path / "page.html")) == 3


def test_of_many_ranks_those_without_a_finding_are_folded_away(tmp_path: Path) -> None:
    for rank in range(6):
        written(tmp_path / "run", 5, rank=rank, ranks=7)
    with JournalWriter.open(
        tmp_path / "run", opened(rank=Rank(6), ranks=7, redaction="plain"), clock=Clock()
    ) as writer:
        writer.append(Freed(request_account(RequestId(7)), Pages(b"\1\0\0\0"), NO_PAGES, NO_PAGES))
        writer.end_command()
    reported([tmp_path / "run"], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert re.findall(r"<details><summary>(.*?)</summary>", text) == [
        f"rank {rank}, clean" for rank in range(6)
    ]
    assert "First wrong event, rank 6: <button" in text


def test_what_cannot_be_read_is_told_and_what_could_be_is_shown(tmp_path: Path) -> None:
    """J7: damage in the middle; a rank without a beginning beside a sound one."""
    written(tmp_path / "run", 80, rotate_bytes=4_000, ranks=2)
    written(tmp_path / "run", 20, rank=1, ranks=2)
    spoiled = sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[1]
    spoiled.write_bytes(spoiled.read_bytes()[:300] + b"\0" * 40 + spoiled.read_bytes()[340:])
    (lost,) = (tmp_path / "run" / "rank-0001").glob("*.s*")
    lost.write_bytes(b"\0" * 100)
    summary = reported([tmp_path / "run"], tmp_path / "page.html")
    assert [each.kind for each in summary.ranks] == ["damaged", "unreadable"]
    assert [each.events > 0 for each in summary.ranks] == [True, False]
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "&#10005; Damaged, rank 0" in text
    assert " lost in " in text
    assert re.search(r"[\d,]+ gaps?</span><svg", text)
    assert "No event could be read." in text
    (read,) = tracks_of(tmp_path / "page.html")
    assert read.seq[-1] == JournalReader(tmp_path / "run", Rank(0)).last_seq


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path / "run", 10)
    (tmp_path / "page.html").write_text("the page before")

    def full(self: Path, _: Path) -> Path:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        reported([tmp_path / "run"], tmp_path / "page.html")
    monkeypatch.undo()
    assert (tmp_path / "page.html").read_text() == "the page before"
    assert [each.name for each in sorted(tmp_path.iterdir())] == ["page.html", "run"]


def test_the_same_run_gives_the_same_page(tmp_path: Path) -> None:
    written(tmp_path / "run", 30)
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page in pages:
        reported([tmp_path / "run"], page)
    assert pages[0].read_bytes() == pages[1].read_bytes()


def test_of_many_ranks_the_clean_ones_are_folded_away_behind_the_wrong_one(tmp_path: Path) -> None:
    for rank in range(11):
        written(tmp_path / "run", 110, seed=11, rank=rank, ranks=11)
    plant_double_free(tmp_path / "run", tmp_path / "wrong", Rank(4))
    reported([tmp_path / "wrong"], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    banner, shown, folded = (
        page.index("First wrong event, rank 4"),
        page.index('data-name="rank">rank 4'),
        page.index("The other 10 ranks (0-3, 5-10): clean"),
    )
    assert (
        banner
        < shown
        < folded
        < page.index('data-name="rank">rank 0')
        < page.index('data-name="rank">rank 10')
    )
    charts = page[page.index("How full the pools were") :]
    assert (
        charts.index("<h3>rank 4") < charts.index("10 clean ranks") < charts.index("<summary>rank 0, clean")
    )
