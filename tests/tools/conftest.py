"""What every test of the command line shares: no terminal around it.

Rule: a width is what a test sets. GNU readline, which pytest loads, hands its own COLUMNS to the workers of xdist.
"""

import pytest


@pytest.fixture(autouse=True)
def no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Output goes to a pipe, which has no edge."""
    for name in ("COLUMNS", "LINES"):
        monkeypatch.delenv(name, raising=False)
