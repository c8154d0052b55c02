"""What is built is what stands on disk, under one import root, and light where it promises to be.

Each test is a trap that some layout of this repository fell into. Not here: whether the code works.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from radixledger.tools.cli import COMMANDS
from radixledger.tools.lazy_group import ENGINE_PACKAGES

ROOT = Path(__file__).parents[1]
FOLDERS = ("journal", "cache", "replay", "analytics", "tools")
ENGINE_MODULES = ("radixledger.cache.pool", "radixledger.tools.serve.")
LIGHT_COMMANDS = frozenset({"journal", "replay", "load", "sql", "drive", "report"})
DEVELOPMENT = frozenset(
    {
        "pytest",
        "hypothesis",
        "mypy",
        "grimp",
        "importlinter",
        "playwright",
        "xdist",
        "setuptools",
        "viztracer",
        "pip",
    }
)

BLOCK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked by a test", name=name)
sys.meta_path.insert(0, Blocker())
"""


def run_without(names: frozenset[str], program: str, path: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python program that sees the package under `path` and cannot import `names`."""
    return subprocess.run(
        [sys.executable, "-c", BLOCK.format(names=set(names)) + program],
        env=os.environ | {"PYTHONPATH": str(path)},
        cwd=path,
        capture_output=True,
        text=True,
        check=False,
    )


def files_on_disk() -> set[str]:
    """What a wheel has to hold, as paths under site-packages."""
    kept = {".py", ".sql", ".json", ".html", ".css", ".js"}
    ours = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in kept]
    inside = {f"radixledger/{path.relative_to(ROOT).as_posix()}" for path in ours}
    return inside | {"radixledger/__init__.py", "radixledger/py.typed"}


def modules_on_disk() -> list[str]:
    names = {
        name.removesuffix(".py").removesuffix("/__init__") for name in files_on_disk() if name.endswith(".py")
    }
    return sorted(name.replace("/", ".") for name in names)


def copy_of_the_sources(target: Path) -> Path:
    """What a clone holds, without caches and environments; links stay links."""
    target.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target)
    for folder in (*FOLDERS, "src"):
        litter = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / folder, target / folder, symlinks=True, ignore=litter)
    return target


def build(what: str, source: Path, dist: Path) -> Path:
    """Call the build backend in a process of its own, as pip would; the file it made."""
    program = f"from setuptools import build_meta; print(build_meta.build_{what}({str(dist)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=source, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dist / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked, built from the unpacked source distribution: all that a stranger would get."""
    place = tmp_path_factory.mktemp("build")
    archive = build("sdist", copy_of_the_sources(place / "clone"), place)
    subprocess.run([sys.executable, "-m", "tarfile", "-e", archive, place / "sdist"], check=True)
    (unpacked,) = (place / "sdist").iterdir()
    with zipfile.ZipFile(build("wheel", unpacked, place)) as built:
        built.extractall(place / "site")
    return place / "site"


def test_the_package_list_is_the_disk() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    inits = [init for folder in FOLDERS for init in (ROOT / folder).rglob("__init__.py")]
    on_disk = {".".join(["radixledger", *init.parent.relative_to(ROOT).parts]) for init in inits}
    assert set(setuptools["packages"]) == on_disk | {"radixledger"}
    assert setuptools["package-dir"] == {
        "radixledger": "src/radixledger",
        **{f"radixledger.{folder}": folder for folder in FOLDERS},
    }


def test_every_folder_with_code_is_a_package() -> None:
    code = [path.parent for folder in (*FOLDERS, "tests") for path in (ROOT / folder).rglob("*.py")]
    assert [folder for folder in code if not (folder / "__init__.py").exists()] == []


def test_nothing_that_is_printed_names_a_page_that_is_not_installed() -> None:
    """The pages of `docs` are in a checkout alone."""
    printing = [*(ROOT / "tools").rglob("*.py"), *(ROOT / "analytics").rglob("*.sql")]
    assert len(printing) > 100
    assert [path.name for path in printing if "docs/" in path.read_text("utf-8")] == []


def test_the_five_links_are_relative_links() -> None:
    for folder in FOLDERS:
        link = ROOT / "src" / "radixledger" / folder
        assert link.is_symlink(), f"{link} must be a link; git on Windows needs core.symlinks=true"
        assert link.readlink() == Path("../..") / folder


def test_a_wheel_holds_every_file_and_nothing_beside_the_one_root(wheel: Path) -> None:
    files = {path.relative_to(wheel).as_posix() for path in wheel.rglob("*") if path.is_file()}
    ours = {name for name in files if not name.partition("/")[0].endswith(".dist-info")}
    assert ours == files_on_disk()
    assert any(name.endswith("licenses/LICENSE") for name in files)


def test_the_command_line_of_a_wheel_starts_without_development_packages_and_without_jax(wheel: Path) -> None:
    program = "import radixledger.tools.cli as cli; print(cli.__file__); sys.exit(cli.run(['--help']))"
    done = run_without(DEVELOPMENT | ENGINE_PACKAGES, program, wheel)
    assert done.returncode == 0, done.stderr
    assert str(wheel) in done.stdout
    assert all(name in done.stdout for name in COMMANDS)


def test_help_of_all_commands_imports_none_of_them(wheel: Path) -> None:
    program = "from radixledger.tools.cli import run; run(['--help']); print(*sys.modules)"
    loaded = set(run_without(frozenset(), program, wheel).stdout.split())
    assert {entry.module for entry in COMMANDS.values()} & loaded == set()
    assert {"numpy", "duckdb", "jax"} & loaded == set()


def test_commands_about_journals_run_without_jax(wheel: Path) -> None:
    for name in LIGHT_COMMANDS & COMMANDS.keys():
        program = f"from radixledger.tools.cli import run; sys.exit(run([{name!r}, '--help']))"
        done = run_without(ENGINE_PACKAGES, program, wheel)
        assert done.returncode == 0, f"{name}: {done.stderr}"


def test_only_the_engine_and_the_device_pools_import_jax(wheel: Path) -> None:
    light = [name for name in modules_on_disk() if not f"{name}.".startswith(ENGINE_MODULES)]
    done = run_without(ENGINE_PACKAGES, f"import importlib; [*map(importlib.import_module, {light})]", wheel)
    assert done.returncode == 0, done.stderr


def test_no_package_brings_in_jax_where_jax_is_installed(wheel: Path) -> None:
    packages = [name for name in modules_on_disk() if (wheel / name.replace(".", "/")).is_dir()]
    program = f"import importlib; [*map(importlib.import_module, {packages})]; print('jax' in sys.modules)"
    done = run_without(frozenset(), program, wheel)
    assert done.stdout == "False\n", done.stderr


def test_the_folders_cannot_be_imported_by_their_plain_names() -> None:
    for folder in FOLDERS:
        hint = "run the `pytest` script, not `python -m pytest`, which puts the root on the path"
        assert importlib.util.find_spec(folder) is None, hint


def test_lint_refuses_the_plain_names() -> None:
    source = "".join(f"import {folder}\n" for folder in FOLDERS)
    command = [sys.executable, "-m", "ruff", "check", "--select", "TID251", "--output-format", "concise"]
    done = subprocess.run(
        [*command, "--stdin-filename", "tests/sample.py", "-"],
        input=source,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.count("TID251") == len(FOLDERS)
