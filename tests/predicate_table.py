"""The table of names in `docs/bisect.md`, made from `replay/search/state_view.py`.

Run it to bring the page up to date; `replay/test_predicate.py` holds the page against it.
"""

from pathlib import Path

from radixledger.replay.search.predicate import described

PATH = Path(__file__).parent.parent / "docs" / "bisect.md"
MARK = "<!-- from replay/search/state_view.py -->\n"


def table() -> str:
    """Every name that a predicate may use, a row each."""
    head = "| of a | name | gives a | which is |\n|---|---|---|---|\n"
    return head + "".join(f"| {of} | `{name}` | {kind} | {what} |\n" for of, name, kind, what in described())


def page() -> str:
    """The page with its table."""
    return PATH.read_text("utf-8").partition(MARK)[0] + MARK + "\n" + table()


if __name__ == "__main__":
    PATH.write_text(page(), "utf-8")
