"""The page "Add a shape type": its example, applied to a copy of the package, is a shape type."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/add-a-shape-type.md"
BLOCKS = re.findall(r"^```diff\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
MOST_FILES = 6
"""Files of the package that a convex shape type changes."""


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A folder with the package as the page changes it, and the tests."""
    folder = tmp_path_factory.mktemp("new_type")
    skipped = shutil.ignore_patterns("__pycache__", "kernels", "node_modules")
    for name in ("collidecli", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=skipped)
    shutil.copy(ROOT / "pyproject.toml", folder)
    # Within a repository `git apply` passes over files that are not below its root.
    variables = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    for block in BLOCKS:
        subprocess.run(
            ["git", "apply", "-"],
            input=block.encode(),
            cwd=folder,
            env=variables,
            check=True,
        )
    return folder


def run_in(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A Python program in the folder, with its package and no other."""
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True)


def test_a_type_changes_few_files():
    files = re.findall(r"^--- a/(.*)$", "".join(BLOCKS), re.M)
    assert len(set(files)) == len(BLOCKS) == 5 <= MOST_FILES
    assert all((ROOT / name).is_file() for name in files)


@pytest.mark.rest
def test_all_places_state_one_type(changed):
    """The checks of each type's places, and of its routes, with the new type among them."""
    checks = "stated_by_shape_type or forms or sizes_after or every_pair"
    files = [
        "tests/unit/scene/test_builder.py",
        "tests/unit/engine/narrowphase/test_collider_table.py",
    ]
    done = run_in(
        changed, "-m", "pytest", "-q", "-m", "", "-p", "no:randomly", "-k", checks, *files
    )
    assert done.returncode == 0, done.stdout + done.stderr
    code = "from collidecli.engine.narrowphase.collider_table import ROUTES, GJK, LOWEST_POINT\n"
    code += "assert ROUTES['box', 'rounded_box'] is ROUTES['rounded_box', 'convex_mesh'] is GJK\n"
    code += "assert ROUTES['plane', 'rounded_box'] is LOWEST_POINT\n"
    code += "import collidecli\nprint(collidecli.__file__)"
    routes = run_in(changed, "-c", code)
    assert routes.stdout.strip() == str(changed / "collidecli/__init__.py"), routes.stderr


@pytest.mark.rest
def test_distances_are_those_of_formulas(changed):
    done = run_in(changed, "tests/support/rounded_box.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("error") == 18


@pytest.mark.slow
def test_distances_from_a_mesh_are_those_of_its_triangles(changed):
    done = run_in(changed, "tests/support/rounded_box.py", "mesh")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("mesh: ")
