"""Query of a pair collider: the two shapes in type order and their relative pose."""

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.hulls import HullShape, hull_shape
from collidecli.engine.geometry.primitives import Primitive, primitive_at
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.pair_limits import max_separation_of, pair_limits


@wp.struct
class Query:
    """Input of a pair collider; a is the shape whose type is smaller.

    max_separation: separation up to which contacts are reported, margin + gap [m].
    """

    row_a: int
    row_b: int
    pose_b_to_a: Pose
    max_separation: Real


@wp.func
def relative_pose(pose_a: Pose, pose_b: Pose) -> Pose:
    """Pose of frame b in frame a, from both poses in a common frame."""
    rotation_a = wp.transform_get_rotation(pose_a)
    offset = wp.transform_get_translation(pose_b) - wp.transform_get_translation(pose_a)
    return Pose(
        wp.quat_rotate_inv(rotation_a, offset),
        wp.quat_inverse(rotation_a) * wp.transform_get_rotation(pose_b),
    )


@wp.struct
class RowPair:
    """The two shapes of a pair in type order; a is the one whose type is smaller.

    swapped: whether a is shape1. max_separation: separation up to which contacts are reported,
    margin + gap [m].
    """

    row_a: int
    row_b: int
    swapped: bool
    max_separation: Real


@wp.func
def row_pair(rows: ShapeRows, margins: Margins, row: wp.vec2i) -> RowPair:
    """The pair of rows (shape0, shape1)."""
    result = RowPair()
    limits = pair_limits(margins, row[0], row[1])
    result.max_separation = max_separation_of(limits)
    result.swapped = rows.type[row[0]] > rows.type[row[1]]
    result.row_a = wp.where(result.swapped, row[1], row[0])
    result.row_b = wp.where(result.swapped, row[0], row[1])
    return result


@wp.func
def pose_of_pair(instances: Instances, pair: wp.vec2i, swapped: bool) -> Pose:
    """Pose of shape b of a pair of instances in the frame of a, in float64."""
    if swapped:
        return relative_pose(instances.pose[pair[1]], instances.pose[pair[0]])
    return relative_pose(instances.pose[pair[0]], instances.pose[pair[1]])


@wp.func
def query_of(
    rows: ShapeRows, margins: Margins, instances: Instances, pair: wp.vec2i, row: wp.vec2i
) -> Query:
    """Query of a pair of instances; the relative pose is computed in float64."""
    of_rows = row_pair(rows, margins, row)
    query = Query()
    query.row_a = of_rows.row_a
    query.row_b = of_rows.row_b
    query.max_separation = of_rows.max_separation
    query.pose_b_to_a = pose_of_pair(instances, pair, of_rows.swapped)
    return query


@wp.func
def primitive_of(rows: ShapeRows, row: int) -> Primitive:
    """Primitive of a row."""
    return primitive_at(rows.type, rows.size, row)


@wp.func
def hull_of(rows: ShapeRows, row: int) -> HullShape:
    """Hull of a row."""
    return hull_shape(rows.hulls, rows.hull[row], rows.type[row], rows.size[row])
