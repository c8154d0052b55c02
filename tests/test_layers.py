"""The contracts of `pyproject.toml` about who may import whom can be broken.

That they are kept is checked by `lint-imports` itself, a step of `make test`; here a copy of the
sources breaks each of them.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLANTED = {
    "journal": "radixledger.cache",
    "cache": "radixledger.replay",
    "replay": "radixledger.analytics",
    "analytics": "radixledger.cache",
    "tools": "jax",
}


def lint_imports(place: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(place / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


def copy_of_the_sources(target: Path) -> Path:
    target.mkdir()
    shutil.copy(ROOT / "pyproject.toml", target)
    for folder in (*PLANTED, "src"):
        shutil.copytree(
            ROOT / folder, target / folder, symlinks=True, ignore=shutil.ignore_patterns("__pycache__")
        )
    return target


def test_each_contract_sees_what_breaks_it(tmp_path: Path) -> None:
    place = copy_of_the_sources(tmp_path / "copy")
    for folder, module in PLANTED.items():
        (place / folder / "planted.py").write_text(f'"""Breaks a rule."""\n\nimport {module}\n')
    (place / "cache" / "planted_too.py").write_text('"""Breaks another."""\n\nimport jax\n')
    face = "radixledger.cache.faces.unified"
    (place / "cache" / "decide" / "planted.py").write_text(f'"""Breaks a third."""\n\nimport {face}\n')
    done = lint_imports(place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Contracts: 0 kept, 5 broken." in done.stdout, done.stdout
    assert f"radixledger.cache.decide.planted -> {face}" in done.stdout
    for folder, module in PLANTED.items():
        assert f"radixledger.{folder}.planted -> {module}" in done.stdout
    assert "radixledger.cache.planted_too -> jax" in done.stdout


def test_a_new_folder_must_find_its_place_in_the_layers(tmp_path: Path) -> None:
    place = copy_of_the_sources(tmp_path / "copy")
    (place / "src" / "radixledger" / "newcomer.py").write_text('"""Of no layer."""\n')
    done = lint_imports(place)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "newcomer" in done.stdout
