"""A result is there whole or not at all, and what it takes the place of stays until then."""

from pathlib import Path

import pytest

from radixledger.replay.whole_file import whole_file


def test_a_file_that_is_written_to_its_end_takes_the_place_of_another(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("before")
    with whole_file(tmp_path / "page") as file:
        file.write(b"behind")
        assert (tmp_path / "page").read_text() == "before"
    assert (tmp_path / "page").read_text() == "behind"
    assert list(tmp_path.iterdir()) == [tmp_path / "page"]


@pytest.mark.parametrize("there", [True, False])
def test_a_file_that_fails_half_way_leaves_what_was_there(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "page").write_text("before")
    with pytest.raises(OSError, match="No space left"), whole_file(tmp_path / "page") as file:
        file.write(b"half")
        raise OSError(28, "No space left on device")
    assert [each.read_text() for each in tmp_path.iterdir()] == ["before"] * there
