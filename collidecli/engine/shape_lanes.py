"""World poses and bounds of one shape in consecutive lanes, in C++ (see geometry/real.h).

Poses and bounds are those of the scalar functions of geometry.bounds and of Warp's transforms, to the bit: the C++ has
their operations in their order.
"""

from __future__ import annotations

from typing import Any

import warp as wp

from collidecli.engine.device_model import LANES, MOVED_BY_WORLD
from collidecli.engine.geometry.bounds import INFINITE, OUTWARD
from collidecli.engine.geometry.real import (
    COMPOSITION,
    CONE,
    EPILOGUE,
    LANE_STEP,
    LOAD,
    PLANE,
    PRELUDE,
    Pose,
    Vec3,
)
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


@wp.func_native(native(__file__, "place_lanes", **_VALUES))
def place_lanes(
    body_pose: wp.array[Pose],
    world_shift: wp.array[Pose],
    lane_cell: wp.array[wp.int32],
    first_pose: wp.array[wp.int32],
    cell_world: wp.array[wp.int32],
    first_lane: int,
    body: int,
    shifts: int,
    shape_pose: wp.array[Pose],
    row: int,
    type: int,
    size: Vec3,
    radius: wp.float32,
    inflation: wp.float32,
    first: int,
    count: int,
    instance_pose: wp.array[Pose],
    bound: wp.array[wp.float32],
):
    """Writes world poses and bounds of a shape's instances `first` to `first + count - 1`, lanes from `first_lane` on.

    Args:
        body: of the shape; MOVED_BY_WORLD or static. shifts: 1 if the body moves with the origin of its world.
        shape_pose, row: the shape's pose in its body is element `row`.
        type, size, radius, inflation: of the shape, see ShapeRows.
    """
    ...


@wp.func_native(native(__file__, "read_ahead"))
def read_ahead(
    body_pose: wp.array[Pose],
    lane_cell: wp.array[wp.int32],
    first_pose: wp.array[wp.int32],
    first_lane: int,
    lanes: int,
    part: int,
    parts: int,
):
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
