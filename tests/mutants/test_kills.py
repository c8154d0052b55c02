"""The pairs of tests and mutants that are written down name what exists; `make mutants` runs them again."""

from ..contract_table import rows_of_tests
from .kills import ASKED, CHANGES, kills

WAITING = {
    "R158": "the ledger endpoint belongs to the HTTP server",
    "R159": "the ledger endpoint belongs to the HTTP server",
    "R160": "the ledger endpoint belongs to the HTTP server",
    "R202": "an order of work, nothing that a test could break",
}
"""Rows that nothing here can answer for yet, and why."""


def test_a_pair_names_a_test_of_its_row_and_a_mutant() -> None:
    """J28: a renamed test or mutant, or a docstring that lost its row, takes its proof along."""
    known = rows_of_tests()
    wrong = [
        f"{row}: {test} by {mutant}"
        for row, pairs in kills().items()
        for test, mutant in pairs
        if row not in known.get(test, ()) or mutant not in CHANGES
    ]
    assert wrong == [], "run `python -m tests.mutants.kills find`"


def test_no_row_is_proven_and_waiting_at_once() -> None:
    assert sorted(WAITING.keys() & kills().keys()) == []
    assert set(kills()) <= set(ASKED)
