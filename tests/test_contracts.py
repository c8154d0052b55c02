"""Every contract that the code claims stands in docs/contracts.md, with a test that exists and says so."""

from .contract_table import WAITING, contracts, linked, rows_in, rows_of_code, rows_of_tests
from .mutants.killed import ASKED, OPEN, kills


def test_each_contract_has_words_and_a_test_that_names_its_row() -> None:
    known = rows_of_tests()
    said = [contract for contract in contracts() if not contract.words.startswith(WAITING)]
    assert [contract.row for contract in said if not contract.words or not contract.tests] == []
    wrong = [
        f"{contract.row}: {test}"
        for contract in contracts()
        for test in contract.tests
        if contract.row not in known.get(test, ())
    ]
    assert wrong == []


def test_each_row_that_the_code_cites_is_a_contract() -> None:
    missing = sorted(rows_of_code() - {contract.row for contract in contracts()})
    assert missing == [], "run `python -m tests.contract_table` and write the words of the new lines"


def test_a_row_that_waits_says_what_for_and_is_not_called_tested() -> None:
    waiting = [contract for contract in contracts() if contract.words.startswith(WAITING)]
    assert [contract.row for contract in waiting if contract.tests or len(contract.words) < 40] == []
    assert {contract.row for contract in waiting} <= {"R7", "R22", "R158", "R159", "R160"}


def test_each_row_shows_a_wrong_version_that_its_first_test_kills() -> None:
    """J28: what `make mutants` runs, or why there is none."""
    told = {contract.row: (contract.tests[:1], contract.mutant) for contract in contracts()}
    shown = {row: ((pairs[0][0],), linked(pairs[0][1])) for row, pairs in kills().items()}
    wrong = [row for row, pair in shown.items() if told.get(row) != pair]
    assert wrong == [], "run `python -m tests.contract_table`"
    assert [row for row, why in OPEN.items() if told[row][1] != why or not why.startswith("open: ")] == []
    assert [row for row in ASKED if row not in told] == []


def test_rows_are_read_off_a_text_one_by_one_and_by_range() -> None:
    assert rows_in("the ledger (R34-R36, R39), J4 and J6; not XR7 or R") == {
        "R34",
        "R35",
        "R36",
        "R39",
        "J4",
        "J6",
    }
