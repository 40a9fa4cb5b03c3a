"""The documentation as a site: pages of the four kinds, figures, and the build by Sphinx."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KINDS = ("tutorial", "howto", "reference", "explanation")
PAGES = [path for kind in KINDS for path in sorted((DOCS / kind).glob("*.md"))]
OPENING = {
    "tutorial": r"After (this|these) ",
    "howto": r"After this page |Each page solves",
    "reference": r"Look up here ",
    "explanation": r"After reading this page |Read here ",
}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_page_begins_with_its_use(path):
    title, opening = path.read_text(encoding="utf-8").split("\n\n")[:2]
    assert re.fullmatch(r"# .*", title)
    assert re.match(OPENING[path.parent.name], opening), opening


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_in_the_index_of_its_kind(kind):
    listed = set((DOCS / kind / "index.md").read_text(encoding="utf-8").splitlines())
    for path in (DOCS / kind).glob("*.md"):
        assert path.stem == "index" or path.stem in listed, path.name


def test_every_figure_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    script = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "figures").glob("make_*.py"))
    for figure in (DOCS / "figures").glob("*.svg"):
        assert f"figures/{figure.name})" in text, figure.name
        assert f'"{figure.stem}")' in script, figure.name


def test_readme_fits_on_a_screen_or_two():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_site_builds_without_warnings(tmp_path):
    for name in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_click"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "searchindex.js").exists()
