"""The incidents, written once for all tests of a session."""

import pytest

from .journals import Incident, journaled


@pytest.fixture(scope="session")
def incidents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Incident]:
    """Every incident, by name."""
    return journaled(tmp_path_factory.mktemp("incidents"))
