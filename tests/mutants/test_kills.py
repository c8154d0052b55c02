"""The pairs of tests and mutants that are written down name what exists; `make mutants` runs them again."""

import pytest

from ..contract_table import rows_of_tests
from .killed import ASKED, OPEN, WAITING, kills
from .kills import CHANGES, ROWS
from .slip import Slip
from .slips import SLIPS


def test_a_pair_names_a_test_and_a_mutant_of_its_row() -> None:
    """J28: a renamed test or mutant, or one that lost its row, takes its proof along."""
    known = rows_of_tests()
    wrong = [
        f"{row}: {test} by {mutant}"
        for row, pairs in kills().items()
        for test, mutant in pairs
        if row not in known.get(test, ()) or row not in ROWS.get(mutant, ())
    ]
    assert wrong == [], "run `python -m tests.mutants.kills find`"


def test_every_row_has_a_pair_or_says_why_it_has_none() -> None:
    """J28: a row is tested, waits for what does not exist yet, or is open; never two of these."""
    found = kills()
    assert [row for row in ASKED if (row in found) + (row in WAITING) + (row in OPEN) != 1] == []
    assert {*found, *WAITING, *OPEN} <= set(ASKED)


def test_every_slip_is_noticed_by_a_test_that_stands_in_a_pair() -> None:
    """J28: one that nobody notices says nothing, and one of a mutant's name would hide it."""
    noticed = {mutant for pairs in kills().values() for _, mutant in pairs}
    assert sorted(SLIPS.keys() - noticed) == []
    assert sorted(SLIPS.keys() & CHANGES.keys()) == []


@pytest.mark.parametrize("slip", SLIPS.values(), ids=lambda slip: slip.name)
def test_what_a_slip_changes_stands_in_its_file_once(slip: Slip) -> None:
    """J28: a line that was rewritten takes its slip along, which would pass for one that is noticed."""
    text = slip.path.read_text("utf-8")
    assert text.count(slip.was) == 1
    assert slip.text() != text
