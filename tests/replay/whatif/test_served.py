"""Runs of the engine sent again: its scheduler is another than the driver's, and nobody asks it."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from radixledger.tools.serve.requests import Request

from ...cache.server import Server, text
from ...tools.serve.house import House, ask, prompt_of
from .recorded import Taken, sent, taken_of
from .test_redrive import strayed


def talk(**more: Any) -> list[Request]:
    """Six conversations of three turns over one beginning."""
    begin = prompt_of(3, 24)
    return [
        ask(f"c{who}t{turn}", begin + prompt_of(300 + who, 12 * (turn + 1) + who), 6 + who % 5, **more)
        for turn in range(3)
        for who in range(6)
    ]


def served(room: Path, *requests: Request, **sizes: Any) -> Taken:
    house = House(page_size=4, chunk_tokens=16, **sizes)
    house.serve(*requests)
    journal = house.journals[0]
    return taken_of([journal.opened, *journal.events], room)


@pytest.mark.parametrize("route", ["unified", "legacy", "swa_chunk", "radix", "chunk"])
@pytest.mark.parametrize(("full_pages", "swa_pages"), [(64, 64), (24, 20)])
def test_a_served_run_that_is_sent_again_is_the_served_run(
    route: str, full_pages: int, swa_pages: int, tmp_path: Path
) -> None:
    """J17, N7: the positions of its steps are enough, under pressure too."""
    record = served(tmp_path / "taken", *talk(), route=route, full_pages=full_pages, swa_pages=swa_pages)
    redrive, end = sent(record)
    assert end == record.digest
    assert redrive.figures == record.figures
    assert (redrive.broken, strayed(redrive)) == ([], {})
    assert (record.figures.retractions > 0) == (full_pages == 24)


def test_what_was_served_without_keeping_anything_is_sent_so(tmp_path: Path) -> None:
    """E10: forced misses are forced again; the keys that nobody told are made up, and do not matter."""
    record = served(tmp_path / "taken", *talk(), full_pages=30, swa_pages=24, running=6, force_miss=True)
    redrive, end = sent(record)
    assert (end, redrive.figures) == (record.digest, record.figures)
    assert redrive.figures.hit_tokens == 0
    assert strayed(redrive).keys() == {"unknown_jobs", "unknown_pages"}


def test_aborts_and_namespaces_are_sent_as_they_were(tmp_path: Path) -> None:
    """R141, B84: between chunks, and while they decode."""
    requests = [*talk(abort_after=3)[:6], *talk(extra_key="tenant")[6:]]
    record = served(tmp_path / "taken", *requests)
    redrive, end = sent(record)
    assert record.figures.aborted == 6
    assert (end, redrive.figures) == (record.digest, record.figures)


def test_a_server_with_rows_of_its_own_is_sent_again(tmp_path: Path) -> None:
    """R28: its pages are handed out to nobody first; what its requests did is told all the same."""
    server = Server(4, 4, full_pages=40, swa_pages=30)
    for turn in range(6):
        for letter, tokens in (("a", 10 + 3 * (turn % 3)), ("b", 9 + turn)):
            request = server.start(text(letter, 0, tokens))
            for _ in range(4):
                server.decode(request)
                server.reclaim(request)
            server.end(request)
    journal = server.journal
    record = taken_of([journal.opened, *journal.events], tmp_path / "taken")
    redrive, _ = sent(record)
    sent_again, told = asdict(redrive.figures), asdict(record.figures)
    # It gives its window back behind a step, and here that is done before the next one.
    assert {name for name in told if sent_again[name] != told[name]} <= {"swa_used"}
    assert record.figures.hit_tokens > 0
    assert (redrive.broken, strayed(redrive)) == ([], {})


def test_a_served_run_goes_through_every_other_route(tmp_path: Path) -> None:
    """N7: all requests end, and no law is broken."""
    record = served(tmp_path / "taken", *talk(), full_pages=40, swa_pages=30)
    for route in ("legacy", "swa_chunk", "radix", "chunk"):
        redrive, _ = sent(record, route=route)
        assert redrive.figures.finished == 18, route
        assert redrive.broken == [], route
