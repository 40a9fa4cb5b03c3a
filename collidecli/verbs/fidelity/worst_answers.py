"""The worst answers of engines as a view, and as repros."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.adapters.problem import Problem, write_rows
from collidecli.adapters.repros import Repro
from collidecli.adapters.rows import EngineRows
from collidecli.errors import OutputError
from collidecli.escaping import utf8
from collidecli.pages.view.frames import ViewFrames
from collidecli.pages.view.page import view_page
from collidecli.pages.view.touches import touches_of
from collidecli.results.outputs import output_folders, write_output
from collidecli.scene.particles import Particles
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.fidelity.answers import ROW_FIELDS

if TYPE_CHECKING:
    from collidecli.verbs.fidelity.exact_distances import Exact
    from collidecli.verbs.fidelity.request import FidelityRequest


class ProblemFrames(ViewFrames):
    """The frames of a problem, of whose shapes the poses are known, and two contact sets of it."""

    def __init__(self, problem: Problem, ours: ContactSet, theirs: ContactSet) -> None:
        model = replace(problem.model, particles=Particles())
        super().__init__(ours, range(problem.frames), model, second=theirs, against="the engines")
        self._poses = problem.arrays["pose"]
        self._row = problem.cell_of(np.arange(problem.frames * model.world_count))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        return self._poses[self._row[self._cell(index, world)]]


def write_worst_view(
    exact: Exact,
    engines: Mapping[str, EngineRows],
    worst: Sequence[Mapping[str, Any]],
    request: FidelityRequest,
) -> None:
    """Writes a view of the pairs of the worst answers in all frames: exact contacts, and those of
    the engines.

    Raises InputError without viser and for a motion that is too large for a page, OutputError.
    """
    problem = exact.problem
    pair = exact.pair
    count = len(problem.arrays["pair"])
    is_worst = np.isin(exact.key, [row["cell"] * count + row["row"] for row in worst])
    is_near = is_worst | (exact.rows.distance <= problem.arrays["pair_gap"][pair])
    mine = np.flatnonzero(np.isin(pair, [row["row"] for row in worst]) & is_near)
    exact_rows = {name: getattr(exact.rows, name)[mine] for name in ROW_FIELDS}
    exact_rows |= {"cell": exact.cell[mine], "pair": pair[mine]}
    parts = []
    for name, rows in engines.items():
        asked = [row["row"] for row in worst if row["engine"] == name]
        usable = np.isfinite(np.column_stack([getattr(rows, field) for field in ROW_FIELDS])).all(
            axis=1
        )
        chosen = np.isin(rows.pair, asked) & usable
        parts.append(
            {field: getattr(rows, field)[chosen] for field in (*ROW_FIELDS, "cell", "pair")}
        )
    their_rows = {name: np.concatenate([field[name] for field in parts]) for name in exact_rows}
    like = next(iter(engines.values()))
    plain = {
        "point_rule": "both",
        "shapes": None,
        "asked": np.ones(count, bool),
        "seconds": np.full(2, np.nan),
    }
    with TemporaryFolder("worst") as folder, ExitStack() as stack:
        sets = []
        for name, rows in (("exact", exact_rows), ("engines", their_rows)):
            path = os.path.join(folder, f"{name}.h5")
            write_rows(problem, replace(like, engine=name, **plain, **rows), path, False)
            sets.append(stack.enter_context(ContactSet.open(path)))
        worlds = sorted({row["world"] for row in worst}) or [0]
        up_axis = sets[0].up_axis
        title = f"{problem.scene.name}: worst answers"
        page = view_page(ProblemFrames(problem, *sets), touches_of(sets), title, up_axis, worlds)
    write_output(request.view, utf8(page), request.force)


def check_repro_folder(folder: str | None, force: bool) -> None:
    """Raises OutputError for a file, and for a folder with files unless they may be replaced."""
    if folder is not None and os.path.lexists(folder):
        if not os.path.isdir(folder):
            raise OutputError("repros need a folder, and this is a file", folder, "give another")
        if not force and os.listdir(folder):
            raise OutputError("has files", folder, "choose another folder, or pass --force")


def write_repros(folder: str, repros: Sequence[Repro], force: bool) -> None:
    """Writes the MJCF and the script of each repro. Raises OutputError."""
    with output_folders([os.path.join(folder, "")]):
        for name, text in (file for repro in repros for file in repro.files):
            write_output(os.path.join(folder, name), utf8(text), force)
