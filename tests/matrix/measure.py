"""The engine's answers held against what is true, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.model.shape_types import ShapeType
from tests.matrix.forms import CONVEX_AS_TRIANGLES, FORMS, Form
from tests.matrix.runs import GAP, SIZES, Cell, contacts_of, nearest, poses_for
from tests.matrix.truth import Truth, truth_of

ROUNDING_BAND = 1e-6
"""A distance this near to the gap may be on either side of it, of the size: contacts are written in float32."""
SHALLOW = 0.05
"""Overlaps up to here are left by the least translation where the surface is convex, of the size."""


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
    """Of a convex shape in a convex mesh of triangles: poses and largest error of overlaps up to SHALLOW.

    more, less: of deeper ones, how much deeper than the least translation the way out is at most, and how much less.
    """

    shallow: int
    shallow_error: float
    deep: int
    more: float
    less: float


def measure_depths(count: int, seed: int = 1) -> dict[Form, Depths]:
    """Each convex form against the triangles of a convex mesh, whose least translation is known."""
    hull = next(form for form in FORMS if form.name == "convex mesh")
    cells = [(form, CONVEX_AS_TRIANGLES) for form in FORMS[1:] if form.is_convex]
    poses = poses_for(cells, count, seed)
    found = _least_distances(cells, poses)
    result = {}
    for world, (form, _) in enumerate(cells):
        true = np.broadcast_to(truth_of(form, hull, poses[:, world]).distance, found.shape[:2])
        ours = found[:, :, world]
        shallow, deep = (true <= 0.0) & (true > -SHALLOW), true <= -SHALLOW
        off = ours - true
        result[form] = Depths(
            shallow=int(shallow.sum()),
            shallow_error=float(np.abs(off[shallow]).max(initial=0.0)),
            deep=int(deep.sum()),
            more=float(-off[deep].min(initial=0.0)),
            less=float(off[deep].max(initial=0.0)),
        )
    return result
