"""The ranks of a report in a browser: the one that is shown is the one that was chosen, at the step where the other was."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_another_rank_is_shown_at_the_same_step(page: Page) -> None:
    page.locator("#slider").fill("150")
    expect(page.locator("body")).to_have_attribute("data-seq", "150")
    before = re.search(r"step ([\d,]+)", page.locator("#told").inner_text())
    page.locator("#track").select_option("0")
    expect(page.locator("body")).to_have_attribute("data-track", "0")
    after = re.search(r"step ([\d,]+)", page.locator("#told").inner_text())
    assert before is not None
    assert after is not None
    assert before[1] == after[1]


def test_who_changes_his_mind_while_a_rank_is_unpacked_gets_the_rank_that_he_chose_last(page: Page) -> None:
    page.evaluate("""() => {
      const choose = key => {
        document.getElementById("track").value = key;
        document.getElementById("track").dispatchEvent(new Event("change"));
      };
      choose("0");  // is still packed
      choose("1");  // is there already
    }""")
    expect(page.locator("script.track[data-track='0']")).to_have_count(0)
    page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    expect(page.locator("#track")).to_have_value("1")
    expect(page.locator("body")).to_have_attribute("data-track", "1")
