"""The gate fails where it must: what is not listed, does not run or does not count is told, and evidence is kept."""

import hashlib
import json
import sys
from pathlib import Path

import pytest

from .gate_cpu import ROOT, ManifestError, files_astray, hooks, judged, read_manifest, run, turned_off

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
    assert list(hooks(ROOT, manifest)) == []
    assert {row for rows in manifest.rows.values() for row in rows} >= {f"R{row}" for row in range(205, 212)}


def test_every_file_that_needs_a_browser_is_left_by_name_to_who_has_one() -> None:
    """R212: the gate runs on machines without one, whatever marks say."""
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "tests" / "browser").glob("test_*.py")}
    assert files == {name for name in read_manifest(ROOT).left if name.startswith("tests/browser/")}


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


TWO = GOOD + "\n\n{between}def test_that() -> None:\n    assert 2 + 2 == 4\n"
MARKED = "import pytest\n\n\n" + GOOD + "\n\n@pytest.mark.later\ndef test_that() -> None:\n    assert False\n"
PYPROJECT = """[tool.pytest.ini_options]
addopts = ["-m", "not later", "--import-mode=importlib"]
markers = ["later: not now"]
"""


@pytest.mark.parametrize(
    ("test", "told"),
    [
        (GOOD + "\n\ntest_it.__test__ = False\n\n\ndef test_that() -> None:\n    pass\n", "::test_it did not run"),
        (TWO.format(between="if 1 > 2:\n\n    ").replace("\n    assert 2", "\n        assert 2"), "::test_that did not run"),
        (GOOD + "\n\n" + GOOD, "::test_it is there 2 times; the last one alone can run"),
        (GOOD + "\n\ndel test_it\n\n\ndef test_that() -> None:\n    pass\n", "::test_it did not run"),
        (GOOD + "\n\nclass TestIt:\n    __test__ = False\n\n    def test_that(self) -> None:\n        pass\n", "::TestIt::test_that did not run"),
    ],
)  # fmt: skip
def test_a_test_that_is_written_and_not_run_fails_the_gate(tmp_path: Path, test: str, told: str) -> None:
    """R213: a test can be kept from counting without a word to pytest."""
    passed, found = gated(house(tmp_path, test))
    assert not passed
    assert told in str(found["findings"])


def test_tests_of_classes_and_with_parameters_are_known_by_their_functions(tmp_path: Path) -> None:
    test = (
        "import pytest\n\n\n@pytest.mark.parametrize('at', ['a[b', 'c::d'])\ndef test_it(at: str) -> None:\n    assert at\n"
        "\n\nclass TestIt:\n    def test_that(self) -> None:\n        pass\n"
    )
    passed, told = gated(house(tmp_path, test))
    assert told["findings"] == []
    assert passed


def test_no_mark_and_no_second_configuration_chooses_what_the_gate_runs(tmp_path: Path) -> None:
    """R214: what is left out stands in the manifest, by its name and with its reason."""
    house(tmp_path, MARKED)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "tests" / "pytest.ini").write_text("[pytest]\naddopts = -k test_it\n")
    passed, found = gated(tmp_path)
    assert not passed
    assert "tests/test_one.py::test_that: failure" in str(found["findings"])


def test_a_whole_file_can_be_left_to_others(tmp_path: Path) -> None:
    """R214: as one that needs what this machine may lack; it stays in its section, and its reason in the evidence."""
    more = '[section.more]\nrows = ["R206"]\nfiles = ["tests/test_two.py"]\n'
    house(tmp_path, MARKED, f'{LISTED}{more}[left]\n"tests/test_one.py" = "needs a browser"\n')
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    (tmp_path / "tests" / "test_two.py").write_text(GOOD)
    passed, told = gated(tmp_path)
    assert told["findings"] == []
    assert passed
    assert told["left"] == {"tests/test_one.py": "needs a browser"}


def test_what_is_left_to_others_is_told_in_the_evidence(tmp_path: Path) -> None:
    """R215."""
    left = LISTED + '[left]\n"tests/test_one.py::test_that" = "hours"\n'
    house(tmp_path, MARKED, left)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    passed, told = gated(tmp_path)
    assert passed
    assert told["left"] == {"tests/test_one.py::test_that": "hours"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("PYTEST_ADDOPTS", "-k test_it"), ("PYTHONOPTIMIZE", "1"), ("PYTEST_PLUGINS", "nowhere")],
)
def test_the_environment_chooses_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    house(tmp_path, TWO.format(between="").replace("2 == 4", "2 == 5"))
    (tmp_path / "tests" / "beside.py").write_text("def claim() -> None:\n    assert False\n")
    passed, found = gated(tmp_path)
    assert not passed
    assert found["findings"] == ["tests/test_one.py::test_that: failure"]


HOOK = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


@pytest.mark.parametrize(
    ("where", "text", "told"),
    [
        ("tests/conftest.py", HOOK, "tests/conftest.py:5 has pytest_runtest_makereport"),
        ("conftest.py", HOOK, "conftest.py:5 has pytest_runtest_makereport"),
        ("tests/conftest.py", "from os import path as pytest_collection_modifyitems\n", "pytest_collection_modifyitems"),
        ("tests/conftest.py", "collect_ignore = []\n", "tests/conftest.py:1 has collect_ignore"),
        ("tests/conftest.py", "pytest_plugins = []\n", "tests/conftest.py:1 has pytest_plugins"),
    ],
)  # fmt: skip
def test_a_tree_that_brings_hooks_fails_the_gate(tmp_path: Path, where: str, text: str, told: str) -> None:
    """A hook can say that a test passed which did not."""
    house(tmp_path)
    (tmp_path / where).write_text(text)
    assert told in str([*hooks(tmp_path, read_manifest(tmp_path))])
    (tmp_path / where).write_text("import pytest\n\n\n@pytest.fixture\ndef one() -> int:\n    return 1\n")
    assert [*hooks(tmp_path, read_manifest(tmp_path))] == []


@pytest.mark.parametrize("name", ["one_test.py", "check_it.py", "nightly/more.py"])
def test_tests_in_a_file_of_another_name_fail_the_gate(tmp_path: Path, name: str) -> None:
    """R212: a test file that is renamed and struck off the list is not lost in silence."""
    house(tmp_path)
    (tmp_path / "tests" / "nightly").mkdir()
    (tmp_path / "tests" / name).write_text(GOOD)
    told = f"tests/{name} is no test file, and has test_it, which nothing runs"
    assert [*files_astray(tmp_path, read_manifest(tmp_path))] == [told]


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
