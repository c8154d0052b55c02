"""The page of `radixledger report` on a narrow screen: all of it is there, read downwards, nothing scrolled sideways."""

from pathlib import Path

import pytest
from playwright.sync_api import expect

from radixledger.journal.events import Transferred
from radixledger.journal.reader import JournalReader

from .conftest import Open
from .test_report import WRONG, at

pytestmark = pytest.mark.browser


def test_a_phone_shows_all_of_it_without_scrolling_sideways(opens: Open, page_file: Path) -> None:
    page = opens(page_file, viewport={"width": 390, "height": 844}, has_touch=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#to-next").tap()
    for button in page.locator(".buttons button").all():
        box = button.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 42
    assert page.locator("#tree canvas").bounding_box()["width"] > 330  # type: ignore[index]


@pytest.mark.parametrize("width", [360, 500, 1280])
def test_the_ranks_are_read_without_scrolling_and_their_names_stay_on_a_line(
    opens: Open, page_file: Path, width: int
) -> None:
    page = opens(page_file, viewport={"width": width, "height": 900})
    cells = page.locator(".ranks td").all()
    assert len(cells) == 2 * 6
    for cell in cells:
        box = cell.bounding_box()
        if box is not None:  # a narrow page leaves out cells that have nothing in them
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
    heights = "cells => cells.map(cell => cell.getBoundingClientRect().height / parseFloat(getComputedStyle(cell).lineHeight))"
    names = page.locator(".ranks td:first-child").evaluate_all(heights)
    laws = page.locator(".ranks td[data-name='first wrong event']").evaluate_all(heights)
    assert (max(names) < 2, max(laws) < 4) == (True, True), "in lines, with what is above and below them"


@pytest.mark.parametrize("width", [360, 480])
def test_on_a_narrow_page_every_table_is_read_downwards_with_the_name_of_each_cell(
    opens: Open, page_file: Path, incident: Path, width: int
) -> None:
    """The slice, the findings, requests of a moment: none is scrolled sideways, and no cell is without its column's name."""
    page = opens(page_file, viewport={"width": width, "height": 900})
    frames = JournalReader(incident, WRONG).frames()
    seq = next(
        frame.seq_first + at
        for frame in frames
        for at, event in enumerate(frame.events)
        if isinstance(event, Transferred)
    )
    page.locator("#wanted").fill(f"event {seq}")
    page.locator("#wanted").press("Enter")
    at(page, seq)
    beyond = "boxes => boxes.map(box => box.scrollWidth - box.clientWidth)"
    boxes = page.locator(".wide")
    assert boxes.evaluate_all(beyond) == [0] * boxes.count()
    unnamed = page.locator(".wide td:not([data-name]), .wide td[data-name='']")
    assert (boxes.count(), unnamed.count()) == (6, 0), (
        "of ranks, what led to it, findings, a card, requests, detail"
    )
    row = page.locator("#findings tr.wrong")
    said = "row => [...row.cells].map(cell => getComputedStyle(cell, '::before').content)"
    assert row.evaluate(said) == ['"event "', '"step "', '"what "', '"why "', '"did "']
    expect(page.locator("#findings th").first).to_be_hidden()
    page.set_viewport_size({"width": 1000, "height": 900})
    expect(page.locator("#findings th").first).to_be_visible()
