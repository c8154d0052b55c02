"""A redrive's hits and its bound are of the same prompts, also where others come in than in the record."""

from pathlib import Path

import pytest

from radixledger.replay.crew import Steps
from radixledger.replay.whatif.pieces import send
from radixledger.replay.whatif.schedule import Leave
from radixledger.replay.whatif.settings import configured

from .recorded import Taken, drive, taken, without


def rates(record: Taken, **settings: str) -> tuple[int, int]:
    """Prompt tokens of a redrive under its hits, which are no more than its bound's."""
    found = send(record.schedule, configured(record.schedule.opened, settings), Steps(lambda _: None))
    assert found.figures.hit_tokens <= found.bound.hit
    return found.figures.prompt_tokens, found.bound.asked


@pytest.mark.parametrize(
    "pages", [{}, {"full_pages": "200", "swa_pages": "120"}, {"full_pages": "40", "swa_pages": "17"}]
)
def test_a_bound_is_of_the_prompts_that_came_in_under_any_pressure(
    pages: dict[str, str], tmp_path: Path
) -> None:
    """J17: as often as they came in: retracted ones again, spared ones once."""
    drive(tmp_path / "run")
    prompts, asked = rates(taken(tmp_path / "run", tmp_path / "taken"), **pages)
    assert prompts == asked > 0


def test_who_still_waits_at_the_end_is_in_no_bound(tmp_path: Path) -> None:
    """J17: where nobody leaves, some never come in: a rate over all of the record would stand below that of those who did."""
    drive(tmp_path / "run", full=200, swa=120)
    record = taken(tmp_path / "run", tmp_path / "taken")
    stuck = without(
        record,
        acts=[act for act in record.schedule.acts() if not isinstance(act, Leave)],
        room=tmp_path / "stuck",
    )
    prompts, asked = rates(stuck, full_pages="60", swa_pages="40")
    assert prompts == asked < rates(stuck)[1]
