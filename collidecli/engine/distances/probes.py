"""Points or rays of a motion beside the shapes that each is measured from, on a device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import upload_model
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.hydroelastic.solids import upload_solids
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.engine.runtime.workspace import (
    ChunkTooLarge,
    Workspace,
    load_launched,
    parts_that_fit,
)
from collidecli.errors import InputError
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

CULL_ROUNDING = wp.constant(Real(1.0e-12))
"""Growth of bounding balls relative to distance and radius, above their rounding."""
MEMORY_LIMIT = 1 << 32
"""Scratch memory of one thread [bytes]; a block of cells that needs more is halved."""


@wp.struct
class Partners:
    """The shapes that points or rays are measured from, by group.

    start: first entry of each group, and the end. row: of the shapes, ascending in a group. margin:
    of each entry [m]. of_template: of each shape of the model, -1 for every world. has_inside: 1 or
    0, of each shape of the model.
    """

    start: wp.array[int]
    row: wp.array[int]
    margin: wp.array[Real]
    of_template: wp.array[int]
    has_inside: wp.array[int]


@wp.struct
class ProbePoints:
    """Points or rays. point: each in its frame [m]. along: unit directions of rays, in their
    frames; of points none. frame, group: numbers of each."""

    point: wp.array[Vec3]
    along: wp.array[Vec3]
    frame: wp.array[int]
    group: wp.array[int]


@wp.struct
class Placement:
    """Poses in some cells. shape_pose: of all shapes, cell by cell. frame_pose, is_present: of the
    points' frames, cell by cell. of_template: of each cell's world."""

    shape_pose: wp.array[Pose]
    frame_pose: wp.array[Pose]
    is_present: wp.array[wp.uint8]
    of_template: wp.array[int]
    shape_count: int
    frame_count: int


@wp.struct
class PlacedProbe:
    """A point or the start of a ray in a cell: base + offset, which are added last, so that the
    point's distance from a shape does not depend on where the scene stands.

    base: origin of its frame in the world [m]. offset: from there, turned into the world [m].
    first, end: its entries of `Partners`; none where the cell lacks its frame.
    """

    base: Vec3
    offset: Vec3
    first: int
    end: int


@wp.func
def placed_probe(
    partners: Partners, points: ProbePoints, placed: Placement, cell: int, number: int
) -> PlacedProbe:
    """Point or ray `number` in a cell."""
    owner = cell * placed.frame_count + points.frame[number]
    probe = PlacedProbe()
    probe.first = partners.start[points.group[number]]
    probe.end = partners.start[points.group[number] + 1]
    if placed.is_present[owner] == 0:
        probe.first = probe.end
    frame = placed.frame_pose[owner]
    probe.base = wp.transform_get_translation(frame)
    probe.offset = wp.quat_rotate(wp.transform_get_rotation(frame), points.point[number])
    return probe


@wp.func
def is_in_cell(partners: Partners, placed: Placement, row: int, cell: int) -> bool:
    """Whether a shape is in the template of a cell's world, or in every world."""
    template = partners.of_template[row]
    return template < 0 or template == placed.of_template[cell]


@wp.func
def pose_in_cell(placed: Placement, row: int, cell: int) -> Pose:
    """World pose of a shape in a cell."""
    return placed.shape_pose[cell * placed.shape_count + row]


@wp.func
def offset_from_shape(probe: PlacedProbe, pose: Pose) -> Vec3:
    """From a shape's origin to the point, in the world [m]."""
    return (probe.base - wp.transform_get_translation(pose)) + probe.offset


@dataclass(frozen=True)
class ProbePlan:
    """Which shapes each point or ray is measured from.

    frame: int32[V], number of the frame that a point is fixed in. group: int32[V]. start:
    int[G + 1], row: int[n], margin: float64[n]: the shapes of each group, rows ascending, and the
    length by which the surface is inflated [m]. every_template: measure from the shapes of all
    templates, whatever the cell's.
    """

    model: Model
    frame: np.ndarray
    group: np.ndarray
    start: np.ndarray
    row: np.ndarray
    margin: np.ndarray
    every_template: bool = False

    @property
    def frame_count(self) -> int:
        """Number of frames that points are fixed in."""
        return int(self.frame.max(initial=0)) + 1


class Prober:
    """Launches a kernel of points or rays on cells of a motion.

    Args:
        points: float64[V, 3] [m]. kernel_of: the kernel, with the code of meshes or without.
        along: float64[V, 3], unit directions of rays.
    """

    @one_at_a_time
    def __init__(
        self,
        plan: ProbePlan,
        points: np.ndarray,
        device: wp.Device,
        kernel_of: Callable[[bool], wp.Kernel],
        along: np.ndarray | None = None,
    ) -> None:
        model = with_solid_meshes(plan.model)
        self._plan = plan
        self._device = device
        device_model = upload_model(model, device)
        sampled = np.zeros(len(model.shapes), bool)
        sampled[plan.row] = True
        polygons = (ShapeType.MESH, ShapeType.CONVEX_MESH)
        self._kernel = kernel_of(bool(np.isin(model.shapes.type[sampled], polygons).any()))
        load_launched([self._kernel], device)
        self._solids = upload_solids(device_model, sampled)
        self._partners = Partners()
        self._partners.start = device_array(plan.start.astype(np.int32), wp.int32, device)
        self._partners.row = device_array(plan.row.astype(np.int32), wp.int32, device)
        self._partners.margin = device_array(plan.margin.astype(np.float64), Real, device)
        template = np.full(len(model.shapes), -1) if plan.every_template else model.shapes.template
        self._partners.of_template = device_array(template.astype(np.int32), wp.int32, device)
        self._partners.has_inside = device_array(_has_inside(model), wp.int32, device)
        self._points = ProbePoints()
        self._points.point = device_array(np.ascontiguousarray(points), Vec3, device)
        none = np.zeros((0, 3)) if along is None else along
        self._points.along = device_array(np.ascontiguousarray(none), Vec3, device)
        self._points.frame = device_array(plan.frame.astype(np.int32), wp.int32, device)
        self._points.group = device_array(plan.group.astype(np.int32), wp.int32, device)
        self._local = threading.local()

    def run(
        self,
        shape_pose: np.ndarray,
        frame_pose: np.ndarray,
        template: np.ndarray,
        fields: Sequence[tuple[str, Any]],
    ) -> list[np.ndarray]:
        """Arrays [C, V, ...] that the kernel fills, by name and type, of C cells; see
        `PointDistances.measure`."""
        count = len(self._plan.frame)
        cells = len(template)

        def part(begin: int, end: int) -> list[np.ndarray]:
            workspace = getattr(self._local, "workspace", None)
            if workspace is None:
                workspace = self._local.workspace = Workspace(self._device, MEMORY_LIMIT)
            rows = slice(begin, end)
            try:
                placed = _placement(
                    workspace, shape_pose[rows], frame_pose[rows], template[rows].astype(np.int32)
                )
                arrays = [
                    workspace.array(name, (end - begin) * count, kind) for name, kind in fields
                ]
                arguments = [self._solids, self._partners, self._points, placed, *arrays]
                workspace.launch(self._kernel, (end - begin) * count, arguments)
                found = [workspace.host(array, (end - begin) * count).copy() for array in arrays]
            except ChunkTooLarge as too_large:
                self._local.workspace = None
                if end - begin > 1:
                    raise
                needed = f"needs {too_large.needed / 2**30:.1f} GiB of scratch memory"
                what = f"one world with {count} points {needed}"
                raise InputError(what, fix="give fewer points") from None
            return [each.reshape(end - begin, count, *each.shape[1:]) for each in found]

        parts = parts_that_fit(cells, part)
        return [np.concatenate(of_field) for of_field in zip(*parts, strict=True)]


def _placement(
    workspace: Workspace, shape_pose: np.ndarray, frame_pose: np.ndarray, template: np.ndarray
) -> Placement:
    is_present = np.logical_and.reduce(np.isfinite(frame_pose), axis=2)
    frames = np.where(is_present[..., None], frame_pose, 0.0)
    placed = Placement()
    placed.shape_pose = workspace.uploaded(
        np.ascontiguousarray(shape_pose, np.float64).reshape(-1, 7), Pose
    )
    placed.frame_pose = workspace.uploaded(np.ascontiguousarray(frames).reshape(-1, 7), Pose)
    placed.is_present = workspace.uploaded(is_present.reshape(-1).astype(np.uint8), wp.uint8)
    placed.of_template = workspace.uploaded(np.ascontiguousarray(template), wp.int32)
    placed.shape_count = shape_pose.shape[1]
    placed.frame_count = frame_pose.shape[1]
    return placed


def with_solid_meshes(model: Model) -> Model:
    """The model with each heightfield as the closed mesh of its solid, in the heightfield's
    frame."""
    shapes = model.shapes
    is_field = shapes.type == ShapeType.HEIGHTFIELD
    if not is_field.any():
        return model
    kind = np.where(is_field, ShapeType.MESH, shapes.type).astype(shapes.type.dtype)
    mesh = shapes.mesh.copy()
    mesh[is_field] = len(model.meshes) + shapes.heightfield[is_field]
    field = np.full_like(shapes.heightfield, -1)
    meshes = (*model.meshes, *map(solid_mesh, model.heightfields))
    return replace(
        model,
        shapes=replace(shapes, type=kind, mesh=mesh, heightfield=field),
        meshes=meshes,
        heightfields=(),
    )


def _has_inside(model: Model) -> np.ndarray:
    """int32[S]: 1 for shapes with an inside, 0 for open and hollow meshes."""
    of_mesh = np.array([mesh.is_closed for mesh in model.meshes] + [True])
    is_mesh = model.shapes.type == ShapeType.MESH
    return np.where(is_mesh, of_mesh[model.shapes.mesh], True).astype(np.int32)
