"""The page of collide export: its example is run, its output met, its tables held against the arrays."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli import main as cli
from collidecli.commands.export import ENDINGS, NPZ_ENDING
from collidecli.scene.options import EXPORT_FORMATS
from collidecli.scene.tables import RIGID_COLUMNS
from tests.support.doc_examples import check_output

PAGE = (Path(__file__).parents[2] / "docs/howto/export-contacts.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)
LAYOUTS = [name for name in EXPORT_FORMATS if name not in ENDINGS]
MADE_UP = {"N": 5, "V": 12, "E": 30, "F": 3, "W": 1, "S": 3, "B": 2, "M": 5, "number of geoms": 3}
"""Extents of the example: contacts, velocities, entries of the Jacobian, frames, worlds, shapes, bodies, manifolds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """out.h5 of the example, and its output."""
    found = tmp_path_factory.mktemp("export")
    (scene,) = [body for language, body in FENCE.findall(PAGE) if language == "xml"]
    (found / "crates.xml").write_text(scene)
    return found


def commands() -> list[list[str]]:
    return [shlex.split(line)[1:] for line in next(b for name, b in FENCE.findall(PAGE) if name == "").splitlines()]


def test_the_example(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "120")
    run, *exports = commands()
    assert cli.main([*run, "-q", "--device", "cpu"]) == 0
    assert [cli.main(words) for words in exports] == [0, 0]
    real = capsys.readouterr().out
    (shown,) = [body for language, body in FENCE.findall(PAGE) if language == "text"]
    check_output(shown, real)
    (code,) = [body for language, body in FENCE.findall(PAGE) if language == "python"]
    exec(compile(code, "export.md", "exec"), {})
    said = re.search(r"print\(.*\)  # (.*)$", code, re.M)
    assert said is not None
    assert capsys.readouterr().out.strip() == said[1]


def rows(heading: str) -> list[list[str]]:
    """Cells of the first table behind a heading."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    found = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


def expected(heading: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each array that a table names; one type or shape in a cell is that of every name beside it."""
    found = {}
    for names, types, shapes, *_ in rows(heading):
        arrays = re.findall(r"`(\w+)`", names)
        kinds, extents = types.split(", "), re.findall(r"\[([^\]]*)\]", shapes)
        for k, name in enumerate(arrays):
            kind, extent = kinds[min(k, len(kinds) - 1)], extents[min(k, len(extents) - 1)]
            found[name] = (kind, tuple(size(one) for one in extent.split(", ") if one))
    return found


def size(text: str) -> int:
    if text.isdigit():
        return int(text)
    base, _, more = text.partition(" + ")
    return int(np.prod([MADE_UP[one] for one in base.split("·")])) + int(more or 0)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_table_of_each_layout(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    if not (folder / "out.h5").exists():
        assert cli.main([*commands()[0], "-q", "--device", "cpu"]) == 0
    scene = ["--scene", "crates.xml"] if name in ("mujoco", "jacobian") else []
    assert cli.main(["export", "out.h5", "--to", name, "-o", f"table.{name}.npz", "-q", *scene]) == 0
    known = {**expected("## Arrays in NPZ"), **expected(f"### {name}")}
    if name == "npz":
        for column in RIGID_COLUMNS:
            kind = column.dtype_for(np.dtype(np.float64)).name
            known[column.name] = (kind, (5,) if column.width == 1 else (5, column.width))
    with np.load(f"table.{name}.npz") as file:
        assert set(file.files) == set(known)
        for array in file.files:
            kind, shape = known[array]
            assert file[array].shape == shape, array
            held = "string" if file[array].dtype.kind == "U" else file[array].dtype.name
            assert held == ("float64" if kind == "real" else kind), array


def test_the_table_of_formats():
    found = {
        re.findall(r"`(\w+)`", row[0])[0]: tuple(re.findall(r"`([.\w]+)`", row[1])) for row in rows("# Export contacts")
    }
    assert found == {name: ENDINGS.get(name, NPZ_ENDING) for name in EXPORT_FORMATS}
