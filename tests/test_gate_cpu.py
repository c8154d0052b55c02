"""The gate fails where it must: what is not listed, does not run or does not count is told, and evidence is kept."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from .gate_cpu import ROOT, ManifestError, files_astray, judged, read_manifest, run, turned_off

LISTED = """
version = 1
[section.one]
rows = ["R205"]
files = ["tests/test_one.py"]
[allowed]
"""
GOOD = "def test_it() -> None:\n    assert 1 + 1 == 2\n"


def house(folder: Path, test: str = GOOD, manifest: str = LISTED) -> Path:
    """A tree with one test file and a manifest."""
    (folder / "tests").mkdir()
    (folder / "tests" / "test_one.py").write_text(test)
    (folder / "tests" / "manifest.toml").write_text(manifest)
    return folder


def gated(folder: Path, **checks: tuple[str, ...]) -> tuple[bool, dict[str, object]]:
    """Run the gate on a tree; whether it passed, and its `gate.json`."""
    passed = run(folder, folder / "evidence", workers=0, checks=checks)
    told: dict[str, object] = json.loads((folder / "evidence" / "gate.json").read_text())
    return passed, told


def test_every_test_file_of_the_project_is_in_the_manifest_and_none_is_turned_off() -> None:
    """R205-R214: what the gate runs is what there is."""
    manifest = read_manifest(ROOT)
    assert list(files_astray(ROOT, manifest)) == []
    assert list(turned_off(ROOT, manifest)) == []
    assert {row for rows in manifest.rows.values() for row in rows} >= {f"R{row}" for row in range(205, 212)}


def test_a_tree_that_is_as_its_manifest_says_passes_and_leaves_its_evidence(tmp_path: Path) -> None:
    """R212, R215: the manifest's hash, the counts, the checks' output, and the hash of each file."""
    passed, told = gated(house(tmp_path), lint=(sys.executable, "-c", "print('spotless')"))
    assert passed
    assert told["verdict"] == "PASS"
    assert told["manifest_sha256"] == hashlib.sha256(LISTED.encode()).hexdigest()
    assert told["sections"] == {"one": {"rows": ["R205"], "files": 1, "tests": 1, "failed": 0, "skipped": 0}}
    assert (tmp_path / "evidence" / "lint.txt").read_text() == "spotless\n"
    files = told["files"]
    assert isinstance(files, dict)
    assert set(files) == {"manifest.toml", "lint.txt", "pytest.txt", "pytest.xml"}
    report = (tmp_path / "evidence" / "pytest.xml").read_bytes()
    assert files["pytest.xml"] == hashlib.sha256(report).hexdigest()


OFF = "import pytest\n\n\n@pytest.mark.{mark}\ndef test_it() -> None:\n    assert {truth}\n"


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("def test_it() -> None:\n    assert 1 + 1 == 3\n", "tests/test_one.py::test_it: failure"),
        (OFF.format(mark="skip(reason='later')", truth=True), "has pytest's skip"),
        (OFF.format(mark="skip(reason='later')", truth=True), "did not count: pytest.skip, later"),
        (OFF.format(mark="xfail", truth=False), "did not count: pytest.xfail"),
        ("import pytest\n\n\ndef test_it() -> None:\n    pytest.skip('no chip')\n", "did not count: pytest.skip, no chip"),
        ("import nowhere\n", "error"),
        ("TESTS = 0\n", "tests/test_one.py ran no test"),
    ],
)  # fmt: skip
def test_a_test_that_fails_or_does_not_count_fails_the_gate(tmp_path: Path, test: str, told: str) -> None:
    """R213, R214."""
    passed, found = gated(house(tmp_path, test))
    assert not passed
    assert told in str(found["findings"])


def test_a_skip_that_the_manifest_explains_is_allowed(tmp_path: Path) -> None:
    """R213."""
    allowed = LISTED + '"tests/test_one.py::test_it" = "needs a chip"\n"tests/test_one.py" = "has a mark"\n'
    passed, told = gated(house(tmp_path, OFF.format(mark="skip(reason='later')", truth=True), allowed))
    assert passed
    assert told["allowed"] == {
        "tests/test_one.py::test_it": "needs a chip",
        "tests/test_one.py": "has a mark",
    }


def test_files_that_are_not_listed_or_not_there_fail_the_gate(tmp_path: Path) -> None:
    """R212."""
    house(tmp_path)
    (tmp_path / "tests" / "test_two.py").write_text(GOOD)
    (tmp_path / "tests" / "test_one.py").unlink()
    assert list(files_astray(tmp_path, read_manifest(tmp_path))) == [
        "tests/test_two.py is in no section",
        "tests/test_one.py is listed and does not exist",
    ]


def test_a_check_that_is_not_content_fails_the_gate(tmp_path: Path) -> None:
    """R215."""
    passed, told = gated(house(tmp_path), lint=(sys.executable, "-c", "raise SystemExit('line 1 is ugly')"))
    assert not passed
    assert told["findings"] == ["lint is not clean, see lint.txt"]


@pytest.mark.parametrize("manifest", ["version = 2\n[section.one]\nrows = []\nfiles = []\n", "version = 1\n"])
def test_a_manifest_of_another_version_or_without_sections_is_refused(tmp_path: Path, manifest: str) -> None:
    with pytest.raises(ManifestError):
        read_manifest(house(tmp_path, manifest=manifest))


def test_evidence_of_two_runs_is_not_mixed(tmp_path: Path) -> None:
    """R194."""
    house(tmp_path)
    gated(tmp_path)
    with pytest.raises(FileExistsError):
        gated(tmp_path)


def test_tests_of_a_class_and_of_a_setup_that_breaks_are_counted_for_their_file(tmp_path: Path) -> None:
    report = (
        '<testsuites><testsuite><testcase classname="tests.test_one.TestIt" name="test_a"/>'
        '<testcase classname="tests.test_one" name="test_b"><error message="no"/></testcase></testsuite></testsuites>'
    )
    verdict = judged(read_manifest(house(tmp_path)), report)
    assert (verdict.sections["one"].tests, verdict.sections["one"].failed) == (2, 1)
    assert not verdict.passed
