"""Every fault of the list is played under `tests/faults/`, or says why it cannot happen here; the page tells which."""

from .fault_table import ELSEWHERE, NUMBERS, PATH, page, plays


def test_each_fault_that_applies_is_played_by_its_name() -> None:
    played = plays()
    missing = [
        number
        for number in NUMBERS
        if number not in ELSEWHERE and not any(test.startswith("faults/") for test, _ in played[number])
    ]
    assert missing == []


def test_the_page_of_faults_is_up_to_date() -> None:
    assert PATH.read_text("utf-8") == page(), "run `python -m tests.fault_table`"
