"""World poses and bounds of one shape in consecutive lanes, in C++ (see geometry/real.h).

Poses and bounds are those of the scalar functions of geometry.bounds and of Warp's transforms, to the bit: the C++ has
their operations in their order.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.device_model import LANES, MOVED_BY_WORLD, ShapeRows
from collidecli.engine.geometry.bounds import INFINITE, OUTWARD
from collidecli.engine.geometry.real import COMPOSITION, CONE, EPILOGUE, LANE_STEP, LOAD, PLANE, PRELUDE, Pose
from collidecli.engine.runtime.kernel import native
from collidecli.scene.shape_types import ShapeType

BOUND_NUMBERS = 10
BOX_NUMBERS = 6
CENTER = wp.constant(0)
RADIUS = wp.constant(3)
LOWER = wp.constant(4)
UPPER = wp.constant(7)
"""Indices of an instance's bounds: centre and radius of its bounding ball, lower and upper corner of its AABB."""

_VALUES: dict[str, Any] = {"PRELUDE": PRELUDE, "LOAD": LOAD, "COMPOSITION": COMPOSITION, "EPILOGUE": EPILOGUE}
_VALUES |= {"OUTWARD": OUTWARD, "INFINITE": INFINITE, "MOVED_BY_WORLD": MOVED_BY_WORLD, "PLANE": PLANE, "CONE": CONE}
_VALUES |= {"LANES": LANES, "LANE_STEP": LANE_STEP, "BOUND_NUMBERS": BOUND_NUMBERS, "BOX_NUMBERS": BOX_NUMBERS}
_VALUES |= {"CENTER": CENTER, "RADIUS": RADIUS, "LOWER": LOWER, "UPPER": UPPER}
_VALUES["STORE"] = native(__file__, "store", LANE_STEP=LANE_STEP)
_VALUES["EXTENTS"] = native(__file__, "extents", **{kind.name: int(kind) for kind in ShapeType})
"""Values of the sections of C++."""


@wp.struct
class Instances:
    """All shapes of all cells of a chunk.

    pose: world pose. bound: groups of LANES consecutive instances, the numbers CENTER to UPPER of each (shape_lanes),
    inflated by `bounds_inflation` and rounded outwards. block_box: lower and upper corner of the box around each slot's
    bounds in each block, groups of LANES consecutive slots, six numbers of each.
    """

    pose: wp.array[Pose]
    bound: wp.array[wp.float32]
    block_box: wp.array[wp.float32]


@wp.struct
class ChunkCells:
    """The cells of a chunk.

    cell_template, cell_world: template and world of each. first_pose: index of each cell's first body pose.
    cell_lane, lane_cell, block_template, block_size: see CellBlocks. shift: a block has 1 << shift lanes.
    world_shift, body_shifts: see DeviceModel. shared: 1 where worlds with different origins use one recorded world.
    """

    cell_template: wp.array[wp.int32]
    cell_world: wp.array[wp.int32]
    first_pose: wp.array[wp.int32]
    cell_lane: wp.array[wp.int32]
    lane_cell: wp.array[wp.int32]
    block_template: wp.array[wp.int32]
    block_size: wp.array[wp.int32]
    shift: int
    body_pose: wp.array[Pose]
    world_shift: wp.array[Pose]
    body_shifts: wp.array[wp.int32]
    shared: int


@wp.func_native(native(__file__, "place_lanes", **_VALUES))
def place_lanes(
    rows: ShapeRows, chunk: ChunkCells, instances: Instances, row: int, first_lane: int, first: int, count: int
):
    """Writes world poses and bounds of a shape's instances `first` to `first + count - 1`, lanes from `first_lane` on.

    row: of the shape.
    """
    ...


@wp.func_native(native(__file__, "read_ahead"))
def read_ahead(chunk: ChunkCells, first_lane: int, lanes: int, part: int, parts: int):
    """Requests one of `parts` equal parts of the poses of `lanes` lanes from memory; the processor's own reading ahead
    follows fewer lines of addresses than a block has cells."""
    ...


@wp.func_native(native(__file__, "place_empty", **_VALUES))
def place_empty(bound: wp.array[wp.float32], first: int, count: int):
    """Sets inverted boxes, beyond a plane's bounds, for the instances of a slot that is not used."""
    ...


@wp.func_native(native(__file__, "bound_block", **_VALUES))
def bound_block(bound: wp.array[wp.float32], slot: int, lanes: int, block_box: wp.array[wp.float32]):
    """Writes the box around the bounds of a slot in all lanes of its block. lanes: 1 or a multiple of LANES."""
    ...
