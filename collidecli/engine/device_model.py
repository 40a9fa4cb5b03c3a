"""Arrays of a model on a device, in the layout of the kernels.

An *instance* is a shape in a cell. The shapes of a template have slots 0, 1, ... in ascending row
order; `width` is the largest number of shapes of a template, rounded up to whole groups of LANES.
In a block of cells (cell_blocks) the cells are lanes: `instance = (block * width + slot) * lanes +
lane`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.hulls import Hulls, upload_hulls
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.poses import is_identity
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import ball_radius

LANES = 8
"""Slots in a group, whose boxes are tested at once; instances in a group, whose bounds are."""
KINDS_WITH_FIELD = len(ShapeType)
CONVEX_SURFACE = 2 * KINDS_WITH_FIELD
"""Kind of a triangle mesh that is the whole surface of a convex solid: it collides with convex
shapes as its hull."""
KIND_COUNT = CONVEX_SURFACE + 1
MOVED_BY_WORLD = -2
"""Body of a static shape that moves with the origin of its world."""


@wp.struct
class ShapeRows:
    """Shapes, one row each as in the model.

    kind: the type, KINDS_WITH_FIELD on top for a shape that has a signed distance field; or
    CONVEX_SURFACE. body: as in the model, but MOVED_BY_WORLD for a static shape whose pose differs
    between worlds of its template. radius: of the bounding ball about the shape's origin.
    size: see size_blocks. inflation: see bounds_inflation. hull: index in `hulls`, or -1; the hulls
    of convex meshes follow those of the model. mesh, heightfield: index in the model's, or -1.
    Their surfaces are arguments of the colliders that read them, since compile and call time grow
    with the number of arrays (docs/adr/0117).
    """

    type: wp.array[wp.int32]
    kind: wp.array[wp.int32]
    body: wp.array[wp.int32]
    pose: wp.array[Pose]
    size: wp.array[Vec3]
    radius: wp.array[wp.float32]
    inflation: wp.array[wp.float32]
    hull: wp.array[wp.int32]
    hulls: Hulls
    mesh: wp.array[wp.int32]
    heightfield: wp.array[wp.int32]


@wp.struct
class Margins:
    """Margins and gaps [m] by row, and those of forced pairs.

    forced_start: first pair of each row in `forced`, which has their second rows; one more at the
    end.
    """

    margin: wp.array[Real]
    gap: wp.array[Real]
    gap_is_sum: int
    forced_start: wp.array[wp.int32]
    forced: wp.array[wp.int32]
    forced_gap: wp.array[Real]
    forced_margin: wp.array[Real]


@wp.struct
class Filter:
    """Pair filter: classes of rows, and excluded and forced pairs by their first row, in the layout
    of `Margins`."""

    shape_class: wp.array[wp.int32]
    class_count: int
    class_table: wp.array[wp.uint8]
    excluded_start: wp.array[wp.int32]
    excluded: wp.array[wp.int32]
    forced_start: wp.array[wp.int32]
    forced: wp.array[wp.int32]


@wp.struct
class Layout:
    """Layout of the instances of a cell.

    width: slots per cell. slot_row: row of each slot, template-major; -1 beyond the template's
    shapes. slot_count: shapes of each template.
    """

    width: int
    slot_row: wp.array[wp.int32]
    slot_count: wp.array[wp.int32]


@dataclass(frozen=True)
class DeviceModel:
    """A model on a device.

    template_rows: rows of each template, by slot. world_shift: Pose[W], `Model.world_shift`; unused
    where that is None. body_shifts: int32[B], 1 for a body that moves with its world, 0 for a
    global one.
    """

    model: Model
    device: wp.Device
    rows: ShapeRows
    margins: Margins
    pair_filter: Filter
    layout: Layout
    template_rows: tuple[np.ndarray, ...]
    world_shift: wp.array
    body_shifts: wp.array

    @property
    def template_count(self) -> int:
        return len(self.template_rows)


def upload_model(model: Model, device: wp.Device) -> DeviceModel:
    """Copies a model's arrays to `device`."""
    put = partial(device_array, device=device)
    shapes = model.shapes
    rows = ShapeRows()
    rows.type = put(shapes.type, wp.int32)
    rows.kind = put(kinds_of(model), wp.int32)
    rows.body = put(_body_or_world(model), wp.int32)
    rows.pose = put(shapes.pose, Pose)
    rows.size = put(size_blocks(shapes.size), Vec3)
    rows.radius = put(bounding_radius(shapes.type, shapes.size), wp.float32)
    inflation = bounds_inflation(model)
    rows.inflation = put(np.nextafter(inflation.astype(np.float32), np.float32(np.inf)), wp.float32)
    surfaces = [surface for surface in model.convex_surfaces if surface is not None]
    convex = np.array([surface is not None for surface in model.convex_surfaces] + [False])
    number = len(model.hulls) - 1 + np.cumsum(convex)
    rows.hull = put(
        np.where(convex[shapes.mesh], number[shapes.mesh], shapes.hull).astype(np.int32), wp.int32
    )
    rows.hulls = upload_hulls(model.hulls, device, surfaces)
    rows.mesh = put(shapes.mesh, wp.int32)
    rows.heightfield = put(shapes.heightfield, wp.int32)

    template_count = int(model.world_template.max()) + 1
    template_rows = tuple(model.template_shapes(t) for t in range(template_count))
    layout = Layout()
    layout.width = LANES * max(1, -(-max(len(p) for p in template_rows) // LANES))
    slot_row = np.full((template_count, layout.width), -1, np.int32)
    for template, rows_here in enumerate(template_rows):
        slot_row[template, : len(rows_here)] = rows_here
    layout.slot_row = put(slot_row.ravel(), wp.int32)
    layout.slot_count = put(np.array([len(p) for p in template_rows], np.int32), wp.int32)
    world_shift = put(np.zeros((0, 7)) if model.world_shift is None else model.world_shift, Pose)
    body_shifts = put((model.bodies.template != GLOBAL_TEMPLATE).astype(np.int32), wp.int32)
    margins, pair_filter = _upload_pairs(model, device)
    return DeviceModel(
        model, device, rows, margins, pair_filter, layout, template_rows, world_shift, body_shifts
    )


def _upload_pairs(model: Model, device: wp.Device) -> tuple[Margins, Filter]:
    put = partial(device_array, device=device)
    shapes = model.shapes
    pair_filter = model.pair_filter
    excluded_start, excluded = _by_row(pair_filter.excluded, len(shapes))
    forced_start, forced = _by_row(pair_filter.forced, len(shapes))
    forced_gap, forced_margin = (
        values if len(values) else np.full(len(forced), np.nan)
        for values in (model.forced_gap, model.forced_margin)
    )
    margins = Margins()
    lists = Filter()
    margins.margin = put(shapes.margin, Real)
    margins.gap = put(shapes.gap, Real)
    margins.gap_is_sum = int(model.gap_rule == "sum")
    margins.forced_start = lists.forced_start = put(forced_start, wp.int32)
    margins.forced = lists.forced = put(forced, wp.int32)
    margins.forced_gap = put(forced_gap, Real)
    margins.forced_margin = put(forced_margin, Real)
    lists.shape_class = put(pair_filter.shape_class, wp.int32)
    lists.class_count = len(pair_filter.class_table)
    lists.class_table = put(pair_filter.class_table.astype(np.uint8).ravel(), wp.uint8)
    lists.excluded_start = put(excluded_start, wp.int32)
    lists.excluded = put(excluded, wp.int32)
    return margins, lists


def _body_or_world(model: Model) -> np.ndarray:
    """int32[S]: each shape's body, or MOVED_BY_WORLD."""
    shapes = model.shapes
    if model.world_shift is None:
        return shapes.body
    moved = distinct(model.world_template[~is_identity(model.world_shift)])
    placed = (shapes.body == STATIC_BODY) & np.isin(shapes.template, moved)
    return np.where(placed, MOVED_BY_WORLD, shapes.body).astype(np.int32)


def kinds_of(model: Model) -> np.ndarray:
    """int32[S]: each shape's kind, see `ShapeRows`; pair colliders are selected by pairs of
    kinds."""
    has_field = model.shapes.sdf >= 0
    kinds = model.shapes.type + KINDS_WITH_FIELD * has_field
    convex = np.array([surface is not None for surface in model.convex_surfaces] + [False])
    kinds[convex[model.shapes.mesh] & ~has_field] = CONVEX_SURFACE
    return kinds.astype(np.int32)


def type_of_kind(kind: int) -> ShapeType:
    """The shape type of a kind."""
    return ShapeType.MESH if kind == CONVEX_SURFACE else ShapeType(kind % KINDS_WITH_FIELD)


def bounds_inflation(model: Model) -> np.ndarray:
    """float64[S]: inflation of each shape's bounds [m]; two shapes within their maximum separation
    overlap.

    With the rule "max" it is margin + g_i - g_min/2: the sum of two gaps is g_i + g_j - g_min >=
    max(g_i, g_j). Shapes of forced pairs, whose maximum separation may exceed the sum of their own,
    have at least half of the largest one. Grown by more than `pair_limits.above` adds to a sum.
    """
    margin = model.shapes.margin
    gap = model.shapes.gap
    forced = model.pair_filter.forced
    inflation = margin + (gap if model.gap_rule == "sum" else gap - 0.5 * gap.min(initial=np.inf))
    if len(forced):
        nothing = np.full(len(forced), np.nan)
        own_margin = model.forced_margin if len(model.forced_margin) else nothing
        own_gap = model.forced_gap if len(model.forced_gap) else nothing
        pair_margin = np.where(np.isnan(own_margin), margin[forced].sum(axis=1), own_margin)
        pair_gap = np.where(np.isnan(own_gap), gap[forced].sum(axis=1), own_gap)
        inflation[distinct(forced)] = np.maximum(
            inflation[distinct(forced)], 0.5 * (pair_margin + pair_gap).max()
        )
    return inflation * (1.0 + 2.0**-22)


def size_blocks(size: np.ndarray) -> np.ndarray:
    """float64[S * blocks, 3]: the first three sizes of every shape, then the next three of every
    shape, if any type has more."""
    width = -(-size.shape[1] // 3) * 3
    padded = np.zeros((len(size), width))
    padded[:, : size.shape[1]] = size
    return np.concatenate([padded[:, first : first + 3] for first in range(0, width, 3)])


def bounding_radius(shape_type: np.ndarray, size: np.ndarray) -> np.ndarray:
    """float32[S]: radius of each shape's bounding ball about its origin, rounded up; infinite for a
    plane [m]."""
    radius = ball_radius(shape_type, size, size)
    return np.nextafter(radius.astype(np.float32), np.float32(np.inf))


def _by_row(pairs: np.ndarray, row_count: int) -> tuple[np.ndarray, np.ndarray]:
    """CSR form of pairs sorted by their first row: start per row, and second rows."""
    start = np.searchsorted(pairs[:, 0], np.arange(row_count + 1)).astype(np.int32)
    return start, pairs[:, 1].astype(np.int32)
