"""Cells of the matrix of shape types: poses, collider, measured errors, and the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

import collidecli
from collidecli.engine.narrowphase import dispatch
from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import CELLS, CONVEX_AS_TRIANGLES, FORMS, Form
from tests.matrix.truth import Truth, truth_of

# All cells of the matrix in one model, a world each, through the public API.

SIZES = (1e-3, 1.0, 1e3)
GAP = 0.25
"""Of the size."""
SPREAD = 1.15
"""How far apart two bodies are put at most, of what both reach from their origins."""
FAR = 10.0
"""A gap in which everything is found, of the size."""

GOALS = (None, 0.0, GAP * 1.01, None, 1e-4, GAP * 0.99, None, -1e-2, GAP * 0.5)
"""Distances that poses are moved to, of the size; None leaves them."""

Cell = tuple[Form, Form]


def model_of(cells: Sequence[Cell], scale: float, gap: float):
    """A world a cell, of two bodies."""
    builder = collidecli.ModelBuilder()
    for first, second in cells:
        builder.begin_world()
        first.add(builder, scale, gap * scale)
        second.add(builder, scale, gap * scale)
        builder.end_world()
    return builder.finalize()


def contacts_of(cells: Sequence[Cell], poses: np.ndarray, scale: float, gap: float = GAP):
    """What the engine finds at poses [P, cells, 2, 7] of unit size, scaled."""
    count, worlds = poses.shape[:2]
    moved = np.zeros((count, worlds, 2 * worlds, 7))
    moved[..., 6] = 1.0
    for world in range(worlds):  # the bodies of the other worlds are not in this one
        moved[:, world, 2 * world : 2 * world + 2] = poses[:, world]
    moved[..., :3] *= scale
    return collidecli.collide(model_of(cells, scale, gap), moved, device="cpu", cache_limit=0)


def nearest(contacts, frame: int, world: int) -> tuple[float, np.ndarray]:
    """Least distance and its normal; infinite where there is no contact."""
    cell = contacts.cell(frame, world)
    if not len(cell.distance):
        return np.inf, np.zeros(3)
    row = int(np.argmin(cell.distance))
    return float(cell.distance[row]), cell.normal[row].astype(float)


def poses_for(cells: Sequence[Cell], count: int, seed: int = 0) -> np.ndarray:
    """float64[count, cells, 2, 7] of unit size: a third as they fall, the others near to touching or the gap.

    The others are moved along what the engine says is the normal: where it is wrong they are only elsewhere,
    as what is true of them is asked of the oracle. They start far off, so that most of them are not deep.
    """
    rng = np.random.default_rng(seed)
    poses = rng.normal(size=(count, len(cells), 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    goals = [GOALS[frame % len(GOALS)] for frame in range(count)]
    least = np.array([0.0 if goal is None else 0.6 for goal in goals])[:, None, None]
    max_separation = np.array([first.max_separation + second.max_separation for first, second in cells])[None, :, None]
    way = rng.normal(size=(count, len(cells), 3))
    way *= (
        max_separation * rng.uniform(least, SPREAD, (*way.shape[:2], 1)) / np.linalg.norm(way, axis=-1, keepdims=True)
    )
    poses[:, :, 1, :3] = poses[:, :, 0, :3] + way
    found = contacts_of(cells, poses, 1.0, FAR)
    for frame, goal in enumerate(goals):
        if goal is None:
            continue
        for world in range(len(cells)):
            distance, normal = nearest(found, frame, world)
            if np.isfinite(distance):
                poses[frame, world, 1, :3] += (goal - distance) * normal
    return poses


# The engine's answers held against what is true, cell by cell.

ROUNDING_BAND = 1e-6
"""A distance this near to the gap may be on either side of it, of the size: contacts are written in float32."""


@dataclass(frozen=True)
class Errors:
    """Of one cell over all poses and sizes, relative to the size.

    apart, overlapping: poses of each kind, those that are found. apart_error: the largest, of distances. depth_error:
    the largest, of depths, where the true one is known. least_share, short: else the least depth, as a share of how
    deep the deepest place of one is inside the other, and by how much it falls short of that at most. strays: poses
    with a contact at the gap or beyond, or with none below it; but for those nearer to the gap than rounding, or than
    half a voxel.
    """

    poses: int
    apart: int
    overlapping: int
    apart_error: float
    depth_error: float | None
    least_share: float | None
    short: float | None
    strays: int


def measure(cells: Sequence[Cell], count: int, seed: int = 0) -> dict[Cell, Errors]:
    """`count` random poses of each cell, at every size."""
    poses = poses_for(cells, count, seed)
    truths = [truth_of(*cell, poses[:, world]) for world, cell in enumerate(cells)]
    found = _least_distances(cells, poses)
    return {cell: _errors(truths[world], found[:, :, world], _band(cell)) for world, cell in enumerate(cells)}


def _least_distances(cells: Sequence[Cell], poses: np.ndarray) -> np.ndarray:
    """float64[sizes, poses, cells], relative to the size; infinite where nothing is found."""
    result = np.empty((len(SIZES), len(poses), len(cells)))
    for k, size in enumerate(SIZES):
        contacts = contacts_of(cells, poses, size)
        for frame in range(len(poses)):
            for world in range(len(cells)):
                result[k, frame, world] = nearest(contacts, frame, world)[0] / size
    return result


def field_voxel(cell: Cell) -> float | None:
    """Side of a voxel, of the size, of pairs that a signed distance field answers for; else None."""
    is_exact = cell[0].type == ShapeType.PLANE or any(form.type == ShapeType.HEIGHTFIELD for form in cell)
    fields = [form.voxel for form in cell if form.has_field]
    return None if is_exact or not fields else max(fields)


def _band(cell: Cell) -> float:
    voxel = field_voxel(cell)
    return ROUNDING_BAND if voxel is None else 0.5 * voxel


def _errors(truth: Truth, found: np.ndarray, band: float) -> Errors:
    true = np.broadcast_to(truth.distance, found.shape)
    exact = np.broadcast_to(truth.is_exact, found.shape)
    is_found = np.isfinite(found)
    strays = (is_found != (true < GAP)) & (np.abs(true - GAP) > band)
    apart, over = is_found & (true > 0.0), is_found & (true <= 0.0)
    off = np.abs(np.where(is_found, found, 0.0) - true)
    deep = over & ~exact & (true < -band)
    known = (over & exact).any()
    return Errors(
        poses=found.size,
        apart=int(apart.sum()),
        overlapping=int(over.sum()),
        apart_error=float(off[apart].max(initial=0.0)),
        depth_error=float(off[over & exact].max()) if known else None,
        least_share=float((found[deep] / true[deep]).min()) if deep.any() else None,
        short=float((found - true)[deep].max()) if deep.any() else None,
        strays=int(strays.sum()),
    )


@dataclass(frozen=True)
class Depths:
    """Of a shape in a convex mesh of triangles: how many overlap, how deep at most; the largest error of a depth."""

    overlapping: int
    deepest: float
    error: float


def measure_depths(count: int, seed: int = 1) -> dict[Form, Depths]:
    """Each convex form, and such a mesh itself, against the triangles of a convex mesh: the least translation is known.

    Half of the poses are deep ones.
    """
    hull = next(form for form in FORMS if form.name == "convex mesh")
    forms = [*(form for form in FORMS[1:] if form.is_convex), CONVEX_AS_TRIANGLES]
    cells = [(form, CONVEX_AS_TRIANGLES) for form in forms]
    poses = poses_for(cells, count, seed)
    way = poses[::2, :, 1, :3] - poses[::2, :, 0, :3]
    poses[::2, :, 1, :3] -= 0.7 * way
    found = _least_distances(cells, poses)
    result = {}
    for world, form in enumerate(forms):
        solid = hull if form is CONVEX_AS_TRIANGLES else form
        true = np.broadcast_to(truth_of(solid, hull, poses[:, world]).distance, found.shape[:2])
        over = true <= 0.0
        result[form] = Depths(
            overlapping=int(over.sum()),
            deepest=-float(true.min()),
            error=float(np.abs(found[:, :, world] - true)[over].max()),
        )
    return result


# Which collider of the engine computes each cell.

NEVER = "no contact"
"""Of two planes, which are infinite."""


def route(first: Form, second: Form) -> str:
    """What the engine goes by, in a word or two."""
    if first.type == second.type == ShapeType.PLANE:
        return NEVER
    if field_voxel((first, second)) is not None:
        return "SDF"
    collider = dispatch.collider(*sorted((first.type, second.type)), "gjk")
    kind = collider.sub_pair_kernels.name if collider.sub_pair_kernels else ""
    if kind == "heightfield":
        return "cells"
    if kind == "mesh_heightfield":
        return "cells and tree"
    if kind in ("meshes", "heightfields"):
        return "trees of both"
    of_vertices = (ShapeType.CONVEX_MESH, ShapeType.MESH, ShapeType.HEIGHTFIELD)
    if first.type == ShapeType.PLANE and second.type in of_vertices:
        return "vertices"
    if kind == "mesh":
        return "tree"
    return "closed form" if (first.type.label, second.type.label) in dispatch.CLOSED_FORM else "GJK, EPA"


# The tables of docs/reference/shape-matrix.md.

MARKS = re.compile(r"(<!-- matrix: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| pair | found by | apart | error | overlapping | depth |\n|---|---|---|---|---|---|"
ROW = re.compile(r"^\| ([\w ]+)–([\w ]+) \| ([^|]+) \|", re.MULTILINE)


def cell_name(cell: Cell) -> str:
    return f"{cell[0].name}–{cell[1].name}"


def error_table(errors: Mapping[Cell, Errors]) -> str:
    """A row a cell."""
    rows = [HEAD]
    for cell in CELLS:
        if cell not in errors:
            rows.append(f"| {cell_name(cell)} | {route(*cell)} | | | | |")
            continue
        facts, voxel = errors[cell], field_voxel(cell)
        columns = (
            cell_name(cell),
            route(*cell),
            str(facts.apart),
            _length(facts.apart_error, voxel),
            str(facts.overlapping),
            _depth(facts, voxel),
        )
        rows.append(f"| {' | '.join(columns)} |")
    return "\n".join(rows)


def _length(value: float, voxel: float | None) -> str:
    return f"{value:.0e}" if voxel is None else f"{value / voxel:.2f} voxel"


def _depth(facts: Errors, voxel: float | None) -> str:
    if facts.depth_error is not None:
        return _length(facts.depth_error, voxel)
    if facts.short is None or facts.least_share is None:
        return ""
    if voxel is not None:
        return f"short by {_length(max(facts.short, 0.0), voxel)}"
    return f"{min(facts.least_share, 1.0):.2f} of the deepest"


def depth_table(depths: Mapping[Form, Depths]) -> str:
    """A row a form."""
    rows = ["| in a convex triangle mesh | overlapping | deepest | error |", "|---|---|---|---|"]
    for form, facts in depths.items():
        rows.append(f"| {form.name} | {facts.overlapping} | {facts.deepest:.2f} | {facts.error:.0e} |")
    return "\n".join(rows)


def refreshed(text: str, tables: Mapping[str, str]) -> str:
    """A page with each table between its two marks."""
    return MARKS.sub(lambda mark: f"{mark[1]}{tables[mark[2]]}\n{mark[3]}", text)


def listed(text: str) -> dict[tuple[str, str], str]:
    """The cells that a page lists, by the names of both, and what it says of how they are found."""
    return {(first, second): words for first, second, words in ROW.findall(text)}


def expected() -> dict[tuple[str, str], str]:
    """What a page must list."""
    return {(cell[0].name, cell[1].name): route(*cell) for cell in CELLS}
