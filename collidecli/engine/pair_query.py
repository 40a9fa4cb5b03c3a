"""Query of a pair collider: the two shapes in type order and their relative pose."""

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.hulls import HullShape, hull_shape
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.geometry.support import Primitive, primitive
from collidecli.engine.pair_filter import pair_limits


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
    return Pose(wp.quat_rotate_inv(rotation_a, offset), wp.quat_inverse(rotation_a) * wp.transform_get_rotation(pose_b))


@wp.func
def query_of(rows: ShapeRows, margins: Margins, instances: Instances, pair: wp.vec2i, row: wp.vec2i) -> Query:
    """Query of a pair of instances; the relative pose is computed in float64."""
    row0 = row[0]
    row1 = row[1]
    query = Query()
    limits = pair_limits(margins, row0, row1)
    query.max_separation = limits.gap + limits.margin
    pose0 = instances.pose[pair[0]]
    pose1 = instances.pose[pair[1]]
    if rows.type[row0] <= rows.type[row1]:
        query.row_a = row0
        query.row_b = row1
        query.pose_b_to_a = relative_pose(pose0, pose1)
    else:
        query.row_a = row1
        query.row_b = row0
        query.pose_b_to_a = relative_pose(pose1, pose0)
    return query


@wp.func
def primitive_of(rows: ShapeRows, row: int) -> Primitive:
    """Primitive of a row."""
    return primitive(rows.type[row], rows.size[row])


@wp.func
def hull_of(rows: ShapeRows, row: int) -> HullShape:
    """Hull of a row."""
    return hull_shape(rows.hulls, rows.hull[row], rows.type[row], rows.size[row])
