"""The engine's answers held against what is true, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import CONVEX_AS_TRIANGLES, FORMS, Form
from tests.matrix.runs import GAP, SIZES, Cell, contacts_of, nearest, poses_for
from tests.matrix.truth import Truth, truth_of

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
