"""Tests that hold for both trees of hybrid models ask for `both_trees`: they are run once for each."""

import pytest

from .server import Server


@pytest.fixture(params=["unified", "legacy"])
def both_trees(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `Server` that names no route is served by the unified tree, then by the rollback one (R6, R211)."""
    monkeypatch.setattr(Server, "usual_route", request.param)
