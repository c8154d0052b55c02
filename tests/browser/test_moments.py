"""The card of an event and the panel: what was before, what is behind, and nothing that is left out in silence."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from radixledger.journal.reader import JournalReader
from radixledger.journal.units import Rank
from radixledger.replay.seek import state_at
from radixledger.replay.verify import verify_rank
from radixledger.tools.cli import run as radixledger

from .conftest import Open
from .test_report import at

pytestmark = pytest.mark.browser

WRONG = Rank(1)
SHIPPED = Path(__file__).parents[2] / "docs" / "incident"


def test_the_wrong_event_shows_what_each_owner_had_before_it_and_has_behind_it(
    opens: Open, tmp_path: Path
) -> None:
    """J14: the node that was robbed, with the pages that it had; and nothing on the card is left out in silence."""
    wrong = verify_rank(SHIPPED, WRONG).findings
    seq, reader = wrong[0].seq, JournalReader(SHIPPED, WRONG)
    before = state_at(reader, seq - 1).nodes[20].full
    assert list(memoryview(before).cast("i")) == [50, 51], "what the tutorial says of it"
    assert radixledger(["report", str(SHIPPED), "-o", str(tmp_path / "page.html")]) == 1
    page = opens(tmp_path / "page.html", viewport={"width": 1280, "height": 900})
    at(page, seq)
    for fold in page.locator("#told details").all():
        fold.locator("summary").first.click()
    card = page.locator("#told")
    row = card.locator("tr", has_text="node 20 of the tree").filter(has_text="FULL")
    assert row.locator("td").all_inner_texts() == ["node 20 of the tree", "FULL", "50\u201351", "none"]
    assert card.locator(".wrong").count() == sum(each.seq == seq for each in wrong) > 3
    states = state_at(reader, seq - 1), state_at(reader, seq)
    for pool, (old, new) in {
        "FULL": tuple(each.full.account for each in states),
        "SWA": tuple(each.swa.account for each in states),
    }.items():
        lines = [text for text in card.locator("p.soft").all_inner_texts() if text.startswith(pool)]
        listed = [int(number) for text in lines for number in re.findall(r"\d+", text.split(":")[0])]
        assert set(listed) <= set((old != new).nonzero()[0].tolist())
        assert {min(listed), max(listed)} == {
            int((old != new).nonzero()[0].min()),
            int((old != new).nonzero()[0].max()),
        }
    page.locator("#wanted").fill("node 20")
    page.keyboard.press("Enter")
    facts = page.locator("#panel dl").first
    expect(facts).to_contain_text("FULL pages\nnone\nbefore this event\n50\u201351", use_inner_text=True)
    expect(facts).to_contain_text("2 FULL pages that it no longer owns")
    page.locator("#wanted").fill("full 50")
    page.keyboard.press("Enter")
    expect(page.locator("#panel dl").first).to_contain_text("before this event\nnode 20", use_inner_text=True)


def test_what_a_list_leaves_out_is_counted_and_can_be_opened(
    opens: Open, page_file: Path, tmp_path: Path
) -> None:
    page = opens(page_file, viewport={"width": 1280, "height": 900})
    told = """most => {
      const list = document.createElement("div");
      list.append(...folded(Array.from({ length: 30 }, (_, place) => el("p", {}, String(place))), most));
      const count = () => list.querySelectorAll("p").length, before = [count(), list.querySelector("summary")?.textContent];
      return new Promise(resolve => {
        const fold = list.querySelector("details");
        if (!fold) return resolve([...before, count()]);
        fold.addEventListener("toggle", () => resolve([...before, count()]));
        fold.open = true;
      });
    }"""
    assert page.evaluate(told, 6) == [6, "and 24 more", 30]
    assert page.evaluate(told, 30) == [30, None, 30]
    runs = "pages => runsIn(pages).textContent"
    assert page.evaluate(runs, [3, 1, 2, 9]) == "1\u20133, 9"
    assert page.evaluate(runs, list(range(0, 40, 2))).endswith("20, 22and 8 more")
