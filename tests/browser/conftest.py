"""One Chromium for all tests here, and the pages that they look at.

Rule: a machine without a Chromium fails these tests, with how to get one; nothing here is passed over in silence.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    sync_playwright,
)

from radixledger.journal.units import Rank
from radixledger.tools.cli import run as radixledger
from radixledger.tools.drill import plant_double_free

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync")  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

TRACE = "".join(
    f'{{"timestamp": {i}, "input_length": {1600 + 60 * (i % 7)}, "output_length": 40, "hash_ids": [1, {2 + i % 3}, {i + 10}, {i + 50}]}}\n'
    for i in range(12)
)

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail(
            "no Chromium: apt-get install chromium, or name one: make browser CHROMIUM=/path/to/chrome"
        )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, one with a page that is freed twice."""
    folder = tmp_path_factory.mktemp("incident")
    (folder / "trace.jsonl").write_text(TRACE)
    sizes = ["--page-size=64", "--window=256", "--full-pages=70", "--swa-pages=30", "--dp-size=2"]
    drive = ["drive", str(folder / "trace.jsonl"), "--journal", str(folder / "run"), *sizes]
    assert radixledger([*drive, "--enable-unified-radix-tree"]) == 1, "six requests are refused"
    plant_double_free(folder / "run", folder / "incident", Rank(1))
    return folder / "incident"


@pytest.fixture(scope="session")
def page_file(incident: Path) -> Path:
    """The report of the incident."""
    target = incident.parent / "page.html"
    assert radixledger(["report", str(incident), "-o", str(target)]) == 1
    return target


@pytest.fixture
def opens(browser: Browser) -> Iterator[Open]:
    """Opens a page without a network and waits until it stands; any request, error or dialog fails the test."""
    contexts: list[BrowserContext] = []
    wrong: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith("file:"):
            wrong.append(request.url)

    def said(message: ConsoleMessage) -> None:
        if message.type == "error":
            wrong.append(message.text)

    def stopped(dialog: Dialog) -> None:
        wrong.append(dialog.message)
        dialog.dismiss()

    def opened(file: Path, *, ready: bool = True, init: str = "", **options: Any) -> Page:
        context = browser.new_context(offline=True, **options)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", asked)
        page.on("console", said)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", stopped)
        if init:
            page.add_init_script(init)
        page.goto(file.as_uri())
        if ready:
            page.wait_for_selector("body[data-ready]")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture
def page(opens: Open, page_file: Path) -> Page:
    """The report of the incident, opened on a desk."""
    return opens(page_file, viewport={"width": 1280, "height": 900})
