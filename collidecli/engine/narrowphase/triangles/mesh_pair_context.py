"""One mesh of a pair as the other sees it, and how its contacts are written.

Everything is in the frame of the other mesh. `way` is a unit direction from the mesh's own surface to the other's.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import CROSSING_A, CROSSING_B, INNER_A, INNER_B, ContactRecord
from collidecli.engine.geometry.clearance import clearance_at
from collidecli.engine.geometry.mesh_nearest import feature_of_place, is_inside_mesh, nearest_place_within
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.contact_merging import RANK
from collidecli.engine.narrowphase.sub_pairs import ContactRows
from collidecli.engine.narrowphase.triangles.convex_triangle import FALLBACK
from collidecli.engine.narrowphase.triangles.heightfield_interior import HeightfieldPair, depth_in_field, exit_place
from collidecli.engine.narrowphase.triangles.heightfield_nearest import is_inside
from collidecli.engine.narrowphase.triangles.triangle_queries import feature_on, is_front_facing, origin_on, outward_on

# ruff: noqa: F811

TOUCHES = wp.constant(Real(1.0e-9))
"""Share of the larger mesh's size: surfaces this near touch, and places this near to an edge or vertex are on it."""


@wp.struct
class View:
    """Meshes `own` and `other` of a pair. pose: own's frame in other's. origin: of own's frame. reach [m].

    is_a: 1 where own is the pair's first shape. pose_other_to_a: other's frame in that shape's. own_front, other_front:
    1 where that mesh has a front; own_closed, other_closed: where it has an inside. touch: TOUCHES of the size [m].
    """

    own: int
    other: int
    pose: Pose
    origin: Vec3
    max_separation: Real
    is_a: int
    pose_other_to_a: Pose
    own_front: int
    own_closed: int
    other_front: int
    other_closed: int
    touch: Real


@wp.func
def view_of(
    meshes: Meshes, mesh_a: int, mesh_b: int, pose_b_to_a: Pose, max_separation: Real, size: Real, is_a: bool
) -> View:
    """How b sees a, or where not `is_a` how a sees b. size: of the larger mesh [m]."""
    view = View()
    view.max_separation = max_separation
    view.touch = TOUCHES * size
    if is_a:
        view.is_a = 1
        view.own = mesh_a
        view.other = mesh_b
        view.pose = wp.transform_inverse(pose_b_to_a)
        view.pose_other_to_a = pose_b_to_a
    else:
        view.own = mesh_b
        view.other = mesh_a
        view.pose = pose_b_to_a
        view.pose_other_to_a = wp.transform_identity(dtype=Real)
    view.origin = wp.transform_get_translation(view.pose)
    view.own_front = meshes.header[view.own].has_front
    view.own_closed = meshes.header[view.own].is_closed
    view.other_front = meshes.header[view.other].has_front
    view.other_closed = meshes.header[view.other].is_closed
    return view


@wp.func(inline=False)
def put(
    view: View,
    rows: ContactRows,
    count: int,
    on_own: Vec3,
    way: Vec3,
    separation: Real,
    feature_own: int,
    feature_other: int,
    kind: int,
    is_inner: int,
) -> int:
    """Writes contact `count` of a piece, or counts it; returns how many there are then.

    is_inner: 1 where own's point is inside other by the contact's depth.
    """
    if rows.first + count >= rows.end:
        return count + 1
    contact = ContactRecord()
    contact.separation = separation
    contact.kind = kind
    if view.is_a == 1:
        contact.point = wp.transform_point(view.pose_other_to_a, on_own)
        contact.normal = wp.transform_vector(view.pose_other_to_a, way)
        contact.feature_a = feature_own
        contact.feature_b = feature_other
    else:
        contact.point = on_own + separation * way
        contact.normal = -way
        contact.feature_a = feature_other
        contact.feature_b = feature_own
    if is_inner == 1:
        contact.role = wp.where(view.is_a == 1, INNER_A, INNER_B)
    rows.contact[rows.first + count] = contact
    return count + 1


@wp.func(inline=False)
def emit_crossing(view: View, rows: ContactRows, count: int, on_own: Vec3, feature_own: int) -> int:
    """Writes an end of an edge of own that goes through other, or counts it; returns how many there are then."""
    if rows.first + count >= rows.end:
        return count + 1
    contact = ContactRecord()
    contact.separation = Real(wp.inf)
    contact.kind = FALLBACK * RANK
    contact.point = on_own
    contact.role = CROSSING_B
    contact.feature_b = feature_own
    if view.is_a == 1:
        contact.point = wp.transform_point(view.pose_other_to_a, on_own)
        contact.role = CROSSING_A
        contact.feature_a = feature_own
    rows.contact[rows.first + count] = contact
    return count + 1


@wp.func
def own_direction(view: View, way: Vec3) -> Vec3:
    """A direction in own's frame."""
    return wp.quat_rotate_inv(wp.transform_get_rotation(view.pose), way)


@wp.func
def faces(view: View, meshes: Any, face: int, part: int, way: Vec3) -> bool:
    """Whether a place of own's surface looks along a direction; all of a surface without a front does."""
    if view.own_front == 0:
        return True
    return is_front_facing(outward_on(meshes, view.own, face, part), own_direction(view, way))


@wp.func
def is_in_box(meshes: Meshes, mesh: int, point: Vec3) -> bool:
    """Whether a point is in the box around a mesh."""
    root = meshes.header[mesh].first_node
    inside = bool(True)
    for axis in range(3):
        inside = inside and point[axis] >= meshes.lower[root][axis] and point[axis] <= meshes.upper[root][axis]
    return inside


@wp.func(inline=False)
def depth_inside(meshes: Meshes, mesh: int, point: Vec3, touch: Real) -> Real:
    """How deep a point is inside a closed mesh, negative outside [m]; -inf without a search where it is far outside.

    touch: how far outside is not called far at least [m].
    """
    if not is_in_box(meshes, mesh, point):
        return -Real(wp.inf)
    clearance = clearance_at(meshes, mesh, point)
    if clearance.free > touch:
        return -Real(wp.inf)
    place = nearest_place_within(meshes, mesh, point, clearance.square)
    depth = wp.sqrt(place.square)
    if not is_inside_mesh(meshes, mesh, point, place):
        return -depth
    return depth


@wp.func
def depth_inside(heightfield_pair: HeightfieldPair, mesh: int, point: Vec3, touch: Real) -> Real:
    """The same."""
    if mesh < 0:
        return depth_in_field(heightfield_pair, point, touch)
    return depth_inside(heightfield_pair.meshes, mesh, point, touch)


@wp.func
def origin_of(view: View, meshes: Any, point: Vec3) -> Vec3:
    """What tells on which side of an open surface a point of own is, other's frame."""
    return origin_on(meshes, view.own, view.origin, view.pose, point)


@wp.struct
class Behind:
    """Whether a point of own is inside other. way: unit; depth [m].

    feature: of the place that it leaves by.
    """

    found: int
    way: Vec3
    depth: Real
    feature: int


@wp.func
def behind_mesh(view: View, meshes: Meshes, point: Vec3) -> Behind:
    """Of a point in other's frame. An open mesh has no inside."""
    result = Behind()
    if view.other_closed == 0:
        return result
    clearance = clearance_at(meshes, view.other, point)
    if clearance.free > Real(0.0) or not is_in_box(meshes, view.other, point):
        return result
    place = nearest_place_within(meshes, view.other, point, clearance.square)
    result.depth = wp.sqrt(place.square)
    if result.depth <= view.touch:
        return result
    off = point - place.point
    if not is_inside_mesh(meshes, view.other, point, place):
        return result
    result.found = 1
    result.way = off / result.depth
    result.feature = feature_of_place(meshes, view.other, place.face, place.part)
    return result


@wp.func
def behind_field(view: View, heightfield_pair: HeightfieldPair, point: Vec3) -> Behind:
    """Of a point in the heightfield's frame."""
    result = Behind()
    if not is_inside(heightfield_pair.field, point):
        return result
    place = exit_place(heightfield_pair, point)
    result.depth = wp.sqrt(place.square)
    if result.depth <= view.touch:
        return result
    result.found = 1
    result.way = (point - place.point) / result.depth
    result.feature = feature_on(heightfield_pair, view.other, place.face, place.part)
    return result


@wp.func(inline=False)
def behind_of(view: View, meshes: Meshes, point: Vec3) -> Behind:
    """Of a point of own in other's frame."""
    return behind_mesh(view, meshes, point)


@wp.func(inline=False)
def behind_of(view: View, heightfield_pair: HeightfieldPair, point: Vec3) -> Behind:
    """The same."""
    if view.other < 0:
        return behind_field(view, heightfield_pair, point)
    return behind_mesh(view, heightfield_pair.meshes, point)
