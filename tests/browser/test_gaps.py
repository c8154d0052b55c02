"""Where events are missing a page shows what events behind the gap say, and of the rest that it is not known (J11, J14)."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from radixledger.cache.state import State
from radixledger.journal.reader import JournalReader
from radixledger.replay.seek import state_at
from radixledger.tools.cli import run as radixledger

from ..replay.report_reader import DATA
from ..replay.runs import RANK, written
from .conftest import Open
from .test_report import at

pytestmark = pytest.mark.browser

SHIPPED = Path(__file__).parents[2] / "docs" / "incident"
LOST, LAST = 905, 1190
"""The gap stands in the last place of the segment that is taken away, from event 466 on."""
DESK = {"width": 1280, "height": 900}
SHOWN = """async ([coded, seqs]) => {
  const track = new Track(await unpacked(coded));
  return seqs.map(seq => {
    const tables = track.shown(track.placeShowing(seq));
    return {
      known: !tables.unknown, kinds: tables.kind.map(each => [...each]), holders: tables.holder.map(each => [...each]),
      nodes: [...tables.nodes.keys()], requests: [...tables.requests].map(([number, each]) => [number, each[track.ask.length]]),
      mapped: [...tables.mapped],
    };
  });
}"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the healthy rank of the shipped incident, its middle segment gone."""
    place = tmp_path_factory.mktemp("gap")
    shutil.copytree(SHIPPED / "rank-0000", place / "run" / "rank-0000")
    (place / "run" / "rank-0000" / "00000000000000000466.sealed").unlink()
    assert radixledger(["report", str(place / "run"), "-o", str(place / "page.html")]) == 1
    return place / "page.html"


@pytest.fixture
def page(opens: Open, file: Path) -> Page:
    return opens(file, viewport=DESK)


def asked(page: Page, text: str) -> None:
    """Type something into Find."""
    page.locator("#wanted").fill(text)
    page.locator("#wanted").press("Enter")


def goes_to(page: Page, seq: int) -> None:
    asked(page, f"event {seq}")
    at(page, seq)


def moments(page: Page, file: Path, seqs: Sequence[int]) -> list[dict[str, Any]]:
    """What the page shows behind each of these events."""
    (coded,) = [data for _, _, data in DATA.findall(file.read_text())]
    shown: list[dict[str, Any]] = page.evaluate(SHOWN, [coded, list(seqs)])
    return shown


def assert_true(shown: dict[str, Any], state: State) -> int:
    """Whatever is shown of pages and requests is so; how many pages it says something of."""
    told = 0
    for book, kinds, holders in zip(state.books, shown["kinds"], shown["holders"], strict=True):
        for page in range(1, book.capacity + 1):
            if kinds[page] != 255:
                told += 1
                assert (kinds[page], holders[page]) == (book.account[page] & 7, book.account[page] >> 3)
    for number, length in shown["requests"]:
        assert length == state.rows.length[state.requests[number].row]
    return told


def test_what_is_shown_behind_a_gap_is_what_the_whole_journal_says(page: Page, file: Path) -> None:
    """J11: at every tenth moment; the tree, its locks and the mapping are not shown at all."""
    whole = JournalReader(SHIPPED, RANK)
    told, seqs = [], [1, 300, 465, *range(LOST, LAST, 10), LAST]
    for seq, shown in zip(seqs, moments(page, file, seqs), strict=True):
        state = state_at(whole, seq)
        assert shown["known"] == (seq < LOST)
        told.append(assert_true(shown, state))
        if shown["known"]:
            assert set(shown["nodes"]) == set(state.nodes)
        else:
            assert (shown["nodes"], set(shown["mapped"])) == ([], {0})
    pages = sum(book.capacity for book in state_at(whole, LAST).books)
    assert (told[0], told[3]) == (pages, 0), "just behind the gap nothing is known"
    assert pages / 4 < told[-1] < pages


def test_from_a_snapshot_on_everything_is_shown_again(opens: Open, tmp_path: Path) -> None:
    """J12: the state of a snapshot stands in, and the pages of its event are not said to have moved."""
    written(tmp_path / "run", 250, snapshots=(170,), rotate_bytes=3_000)
    shutil.copytree(tmp_path / "run", tmp_path / "whole")
    sorted((tmp_path / "run" / "rank-0000").glob("*.sealed"))[2].unlink()
    assert radixledger(["report", str(tmp_path / "run"), "-o", str(tmp_path / "page.html")]) == 1
    page, whole = opens(tmp_path / "page.html", viewport=DESK), JournalReader(tmp_path / "whole", RANK)
    snapshot = whole.snapshots()[0].seq
    seqs = [snapshot, *range(snapshot + 1, whole.last_seq, 29)]
    before, *behind = moments(page, tmp_path / "page.html", seqs)
    assert not before["known"]
    for seq, shown in zip(seqs[1:], behind, strict=True):
        state = state_at(whole, seq)
        assert shown["known"]
        assert assert_true(shown, state) == sum(book.capacity for book in state.books)
        assert set(shown["nodes"]) == set(state.nodes)
    goes_to(page, snapshot + 1)
    expect(page.locator("#told")).to_contain_text("Snapshotted")
    expect(page.locator("#told p")).to_have_count(2)
    expect(page.locator("#tree canvas")).to_be_visible()


def test_cards_say_so_in_words_and_do_with_the_keyboard_alone(page: Page) -> None:
    """J14: on the card, beside the charts, of a page, a node and a request, and in the tree's place."""
    words = f"not known behind event {LOST}\u2019s gap"
    goes_to(page, 1000)
    expect(page.locator("#told .unknown-note")).to_contain_text(
        f"{words}: what led to it from event 466 on is missing"
    )
    expect(page.locator("#told")).not_to_contain_text("device step runs")
    assert page.locator("#slider").get_attribute("aria-valuetext") == "event 1,000, Stepped, not known"
    assert page.locator("#close .pool .soft").all_inner_texts() == [words, words]
    expect(page.locator("#tree .note")).to_contain_text(f"The tree is {words}")
    expect(page.locator("#tree canvas")).to_be_hidden()
    expect(page.locator("#requests")).to_contain_text(
        f"Who lives of those that were admitted before is {words}"
    )
    asked(page, "full 50")
    facts = page.locator("#panel dl").first
    expect(facts).to_contain_text(f"now\n{words}\nmapped with\n{words}", use_inner_text=True)
    expect(page.locator("#panel [aria-current]")).to_contain_text(
        f"event {LOST} \u2192 not known: events are missing"
    )
    asked(page, "node 20")
    expect(page.locator("#panel")).to_contain_text(f"Whether it is in the tree is {words}")
    expect(page.locator("#panel dl").first).to_contain_text("none that is known")
    asked(page, "chat-19")
    expect(page.locator("#panel dl").first).to_contain_text(f"now\n{words}", use_inner_text=True)
    page.locator("#maps canvas").first.focus()
    expect(page.locator("#maps [role=status]").first).to_have_text(f"page 1: {words}")
    page.keyboard.press("Escape")
    page.locator("#strip").scroll_into_view_if_needed()
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Home")
    at(page, 1)
    expect(page.locator("#told .unknown-note")).to_have_count(0)
    expect(page.locator("#tree canvas")).to_be_visible()


def test_curves_end_at_a_gap_and_what_follows_is_shaded(page: Page) -> None:
    """J14: no curve goes on over what is not known, in the charts of the run and in those close by."""
    for chart in page.locator("#occupancy svg.chart").all():
        shade = chart.locator("rect.unknown")
        begin = float(shade.get_attribute("x") or 0)
        assert begin == pytest.approx(1000 * (465 - 1) / (LAST - 1), abs=0.1)
        assert begin + float(shade.get_attribute("width") or 0) == pytest.approx(1000, abs=0.2)
        ends = chart.locator("path").evaluate_all(
            "paths => paths.map(each => each.getBBox().x + each.getBBox().width)"
        )
        assert max(ends) <= begin + 0.2
    expect(page.locator("#occupancy .pool .soft").first).to_contain_text(
        "not known, and shaded: events 466 to 1,190"
    )
    goes_to(page, LOST + 10)
    for close in page.locator("#close svg.chart").all():
        begin = float(close.locator("rect.unknown").get_attribute("x") or 0)
        areas = close.locator("path").evaluate_all(
            "paths => paths.map(each => each.getTotalLength() && each.getBBox())"
        )
        assert areas
        assert 0 < begin < 1000
    assert page.locator("#strip rect.unknown").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_shading_is_seen_in_both_colour_schemes_and_in_print(opens: Open, file: Path, scheme: Any) -> None:
    page = opens(file, viewport=DESK, color_scheme=scheme)
    fills = "document.querySelectorAll('#hatch rect')"
    shade = f"[...{fills}].map(each => getComputedStyle(each).fill).concat(getComputedStyle(document.querySelector('.unknown')).fill)"
    ground, line, pattern = page.evaluate(shade)
    assert ground != line
    assert pattern.startswith('url("#hatch")')
    goes_to(page, LOST)
    share = """wanted => { const canvas = document.querySelector('#maps canvas'), found = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
      let painted = 0;
      for (let at = 0; at < found.length; at += 4) painted += wanted.every((each, place) => found[at + place] === each);
      return painted / found.length * 4; }"""
    wanted = page.evaluate("colour('unknown')")
    assert page.evaluate(share, [int(wanted[i : i + 2], 16) for i in (1, 3, 5)]) > 0.3
    expect(page.locator("#map-key")).to_be_visible()
    page.emulate_media(media="print", color_scheme=scheme)
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    expect(page.locator("#occupancy rect.unknown").first).to_be_visible()
    assert page.evaluate(shade)[0] == "rgb(255, 255, 255)"


def test_a_page_without_a_gap_says_nothing_of_one(opens: Open, page_file: Path) -> None:
    page = opens(page_file, viewport=DESK)
    expect(page.locator("rect.unknown")).to_have_count(0)
    expect(page.locator("#map-key")).to_be_hidden()
    expect(page.locator(".k-unknown:visible")).to_have_count(0)
