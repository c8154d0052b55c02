"""The correctness gate that needs no accelerator: runs what `manifest.toml` lists, and writes down what it saw.

    python -m tests.gate_cpu [--out FOLDER] [-n WORKERS]

Evidence, in FOLDER: the manifest, pytest's report, the output of every check, and `gate.json`, which names the commit,
the versions, what each section ran, and the SHA-256 of every other file. Exit code 0 for PASS, 1 for FAIL.

Rules: a test file that no section lists fails the gate, as does a skip or an expected failure that the manifest does not
allow (R213, R214), and a test function that the report does not know: deselected, renamed, overwritten, under a condition.
What counts is read off the reports, never what a test says of itself; nothing that stands around the tests can take
part, neither hooks nor the environment nor a second configuration. A gate on a changed tree is told as such: it closes
nothing.
"""

import argparse
import ast
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
MANIFEST = "tests/manifest.toml"
MANIFEST_VERSION = 1
CHECKS = {
    "ruff": ("ruff", "check", "."),
    "ruff-format": ("ruff", "format", "--check", "."),
    "mypy": ("mypy",),
    "layers": ("lint-imports",),
}
TURNED_OFF = {"skip", "skipif", "xfail", "importorskip"}
"""Names of pytest by which a test does not count."""


SWAYING = ("PYTEST_", "PYTHONOPTIMIZE", "PYTHONWARNINGS", "PYTHONINSPECT", "PYTHONSTARTUP")
"""Beginnings of variables by which a shell would choose tests, or take their assertions away."""


class ManifestError(Exception):
    """A manifest that cannot be run: of another version, or without sections."""


@dataclass(frozen=True)
class Manifest:
    """What the gate runs: files by section, with the rows that a section is for, and the skips that are allowed.

    left: tests by their ids, or files, that are left to others, as too long for a gate or of another machine; each with its
    reason.
    """

    sections: dict[str, tuple[str, ...]]
    rows: dict[str, tuple[str, ...]]
    allowed: dict[str, str]
    left: dict[str, str]
    sha256: str

    @property
    def files(self) -> list[str]:
        """Every listed file, once."""
        return sorted({file for files in self.sections.values() for file in files})


@dataclass
class Section:
    """What one section ran."""

    rows: tuple[str, ...]
    files: int
    tests: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass
class Verdict:
    """What the gate found; no finding means PASS."""

    sections: dict[str, Section]
    findings: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings


def read_manifest(root: Path) -> Manifest:
    """The manifest of a tree; raises ManifestError for one that this gate does not know."""
    coded = (root / MANIFEST).read_bytes()
    told = tomllib.loads(coded.decode())
    if told.get("version") != MANIFEST_VERSION:
        raise ManifestError(
            f"{MANIFEST} has version {told.get('version')}; this gate runs version {MANIFEST_VERSION}"
        )
    sections = told.get("section", {})
    if not sections:
        raise ManifestError(f"{MANIFEST} has no section")
    return Manifest(
        sections={name: tuple(each["files"]) for name, each in sections.items()},
        rows={name: tuple(each["rows"]) for name, each in sections.items()},
        allowed=dict(told.get("allowed", {})),
        left=dict(told.get("left", {})),
        sha256=hashlib.sha256(coded).hexdigest(),
    )


def files_astray(root: Path, manifest: Manifest) -> Iterator[str]:
    """Test files that no section lists, listed ones that are not there, and tests in files of other names (R212)."""
    there = {path.relative_to(root).as_posix() for path in (root / "tests").rglob("test_*.py")}
    yield from (f"{file} is in no section" for file in sorted(there - set(manifest.files)))
    yield from (f"{file} is listed and does not exist" for file in sorted(set(manifest.files) - there))
    for path in sorted((root / "tests").rglob("*.py")):
        if not path.name.startswith("test_") and (tests := written_in(path)):
            yield f"{path.relative_to(root).as_posix()} is no test file, and has {tests[0]}, which nothing runs"


def written_in(path: Path) -> list[str]:
    """The test functions that a file has, by its text: `name` or `Class::name`; one that stands there twice is there twice."""
    module = ast.parse(path.read_text("utf-8"))
    classes = [
        each for each in module.body if isinstance(each, ast.ClassDef) and each.name.startswith("Test")
    ]
    scopes: list[tuple[str, ast.AST]] = [("", module), *((f"{each.name}::", each) for each in classes)]
    return [
        prefix + name for prefix, scope in scopes for name in _functions(scope) if name.startswith("test")
    ]


def _functions(scope: ast.AST) -> Iterator[str]:
    """The functions of a scope, those under conditions too; not those inside other functions and classes."""
    for each in ast.iter_child_nodes(scope):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield each.name
        elif not isinstance(each, ast.ClassDef):
            yield from _functions(each)


def hooks(root: Path, manifest: Manifest) -> Iterator[str]:
    """Hooks of pytest that a tree brings along: they could choose tests, or say how they ended."""
    for path in sorted([*root.glob("conftest.py"), *(root / "tests").rglob("conftest.py")]):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            told = next(filter(None, (getattr(node, each, None) for each in ("asname", "name", "id"))), None)
            sways = isinstance(told, str) and told.startswith(("pytest_", "collect_ignore"))
            if sways and name not in manifest.allowed:
                yield f"{name}:{getattr(node, 'lineno', 0)} has {told}, and {MANIFEST} does not allow it"


def turned_off(root: Path, manifest: Manifest) -> Iterator[str]:
    """Marks in the code of tests that would keep a test from counting (R214)."""
    for path in sorted((root / "tests").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Attribute) or node.attr not in TURNED_OFF:
                continue
            if "pytest" in ast.unparse(node) and name not in manifest.allowed:
                yield f"{name}:{node.lineno} has pytest's {node.attr}, and {MANIFEST} does not allow it"


def judged(manifest: Manifest, report: str, root: Path | None = None) -> Verdict:
    """What pytest's report says of every section: failures, and tests that did not count without leave.

    root: the tree whose files are held against the report.
    """
    sections = {name: Section(manifest.rows[name], len(files)) for name, files in manifest.sections.items()}
    verdict = Verdict(sections)
    of_file: dict[str, list[str]] = {}
    for name, files in manifest.sections.items():
        for file in files:
            of_file.setdefault(file, []).append(name)
    seen, names = set[str](), set[str]()
    for case in ET.fromstring(report).iter("testcase"):
        file = _file_of(case, of_file)
        test = f"{file}::{case.get('name')}"
        seen.add(file)
        names.add(f"{file}::{_scope_of(case, file)}{(case.get('name') or '').partition('[')[0]}")
        wrong = next((kind for kind in ("failure", "error") if case.find(kind) is not None), "")
        skipped = case.find("skipped")
        for name in of_file.get(file, ()):
            sections[name].tests += 1
            sections[name].failed += bool(wrong)
            sections[name].skipped += skipped is not None
        if wrong:
            verdict.findings.append(f"{test}: {wrong}")
        if skipped is not None and test not in manifest.allowed and file not in manifest.allowed:
            verdict.findings.append(
                f"{test} did not count: {skipped.get('type', 'skip')}, {skipped.get('message', '')}"
            )
    verdict.findings += [
        f"{file} ran no test" for file in manifest.files if file not in seen and file not in manifest.left
    ]
    verdict.findings += _never_ran(root, manifest, names) if root else []
    return verdict


def _never_ran(root: Path, manifest: Manifest, names: set[str]) -> Iterator[str]:
    """Test functions that the files have and the report does not know."""
    for file in manifest.files:
        if file in manifest.left:
            continue
        tests = written_in(root / file) if (root / file).exists() else []
        for test in dict.fromkeys(tests):
            if tests.count(test) > 1:
                yield f"{file}::{test} is there {tests.count(test)} times; the last one alone can run"
            if f"{file}::{test}" not in names | set(manifest.left) and file not in manifest.allowed:
                yield f"{file}::{test} did not run"


def _scope_of(case: ET.Element, file: str) -> str:
    """The class of a test, as a prefix of its name."""
    dotted = file.removesuffix(".py").replace("/", ".")
    inner = (case.get("classname") or "").removeprefix(dotted).strip(".")
    return f"{inner.replace('.', '::')}::" if inner else ""


def _file_of(case: ET.Element, of_file: dict[str, list[str]]) -> str:
    """The file of a test: pytest tells it as a dotted name, behind which a class may stand."""
    dotted = case.get("classname") or case.get("name") or ""
    file = dotted.replace(".", "/") + ".py"
    while file not in of_file and "/" in file:
        file = file.rpartition("/")[0] + ".py"
    return file


def run(
    root: Path, out: Path, *, workers: int = 2, checks: Mapping[str, Sequence[str]] | None = None
) -> bool:
    """Run the gate on a tree and write its evidence; True for PASS."""
    manifest = read_manifest(root)
    out.mkdir(parents=True, exist_ok=False)
    shutil.copy(root / MANIFEST, out / "manifest.toml")
    commit = _git(root, "rev-parse", "HEAD")
    findings = [*files_astray(root, manifest), *turned_off(root, manifest), *hooks(root, manifest)]
    for name, command in (CHECKS if checks is None else checks).items():
        if not _checked(root, out / f"{name}.txt", command):
            findings.append(f"{name} is not clean, see {name}.txt")
    report = out / "pytest.xml"
    there = [file for file in manifest.files if (root / file).exists()]
    ran = _checked(
        root, out / "pytest.txt", ("pytest", "-q", *_settled(root, manifest, workers), f"--junitxml={report}", *there)
    )  # fmt: skip
    if report.exists():
        verdict = judged(manifest, report.read_text("utf-8"), root)
        findings += verdict.findings
    else:
        verdict = Verdict({})
        findings.append("pytest wrote no report, see pytest.txt")
    if not ran and not verdict.findings:
        findings.append("pytest failed, see pytest.txt")
    if _git(root, "rev-parse", "HEAD") != commit:
        findings.append(f"the tree was at {commit} when the gate began, and is at another commit now")
    told = _evidence(root, out, manifest, verdict, findings)
    (out / "gate.json").write_text(json.dumps(told, indent=2, sort_keys=True) + "\n", "utf-8")
    return not findings


def _settled(root: Path, manifest: Manifest, workers: int) -> list[str]:
    """How pytest runs here, whatever else says otherwise: all marks, one configuration, and what is left out by its name."""
    settings = ["-m", "", *(f"--deselect={test}" for test in manifest.left)]
    if (root / "pyproject.toml").exists():
        settings += ["-c", "pyproject.toml", f"--rootdir={root}"]
    return settings + (["-n", str(workers)] if workers else [])


def _checked(root: Path, output: Path, command: Sequence[str]) -> bool:
    """Run a check, keep what it says, and whether it was content."""
    path = shutil.which(command[0], path=str(Path(sys.executable).parent)) or command[0]
    calm = {name: value for name, value in os.environ.items() if not name.startswith(SWAYING)}
    done = subprocess.run(
        [path, *command[1:]], cwd=root, env=calm, capture_output=True, text=True, check=False
    )
    output.write_text(done.stdout + done.stderr, "utf-8")
    return done.returncode == 0


def _evidence(
    root: Path, out: Path, manifest: Manifest, verdict: Verdict, findings: list[str]
) -> dict[str, Any]:
    """What `gate.json` says."""
    changed = _git(root, "status", "--porcelain")
    return {
        "verdict": "FAIL" if findings else "PASS",
        "findings": findings,
        "manifest_version": MANIFEST_VERSION,
        "manifest_sha256": manifest.sha256,
        "commit": _git(root, "rev-parse", "HEAD"),
        "clean": changed == "",
        "sections": {name: asdict(section) for name, section in verdict.sections.items()},
        "allowed": manifest.allowed,
        "left": manifest.left,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(sorted((each.name, each.version) for each in distributions())),
        "files": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(out.iterdir())},
    }


def _git(root: Path, *words: str) -> str:
    """What git says of a tree; a word that is no commit where there is none."""
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else "unknown"


def main() -> int:
    """Run the gate and print its verdict."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, default=ROOT / "runs" / "gate-cpu", help="a new folder for the evidence"
    )
    parser.add_argument("-n", dest="workers", type=int, default=2, help="processes for the tests")
    given = parser.parse_args()
    if given.out.exists():
        parser.error(
            f"{given.out} exists: evidence of two runs is not mixed; name another folder or move it away"
        )
    passed = run(ROOT, given.out, workers=given.workers)
    told = json.loads((given.out / "gate.json").read_text("utf-8"))
    for name, section in told["sections"].items():
        counts = f"{section['tests']:6,} tests  {section['failed']} failed  {section['skipped']} skipped"
        sys.stdout.write(f"{name:14} {counts}  ({', '.join(section['rows'])})\n")
    for finding in told["findings"]:
        sys.stdout.write(f"  {finding}\n")
    tree = "" if told["clean"] else " on a changed tree, which closes nothing"
    sys.stdout.write(
        f"{told['verdict']}{tree}: evidence in {given.out}, manifest {told['manifest_sha256'][:12]}\n"
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
