"""Collision of a convex shape and one triangle of a surface.

Separated: GJK's closest points, where their direction is in the normal cone of the surface there
(see `NormalCone`); else the triangle has no closest point of its own, and the features of the shape
above it have contacts along its normal.

Crossing: EPA's least translation off the triangle, where its direction is in the normal cone. The
least translation off a single triangle often crosses an edge at which neighbours continue the
surface; the contacts are then along the triangle's normal: features of the shape behind the
triangle count, unless another triangle is closer to them. The side is the triangle's front for
surfaces that have one, and for others the side on which the shape's middle is.

Behind: where its rounding crosses the triangle closest to it, a core has a contact with that
triangle. A shape behind a triangle has no contact with the triangle unless it reaches it.
"""

from typing import Any

import warp as wp

from collidecli.engine.collider_query import Query
from collidecli.engine.contact_record import (
    FALLBACK,
    UNPROVEN,
    ContactBuffer,
    emit_contact,
    memory_row,
)
from collidecli.engine.geometry.mesh_points import (
    RISE,
    NormalCone,
    feature_of_mesh_point,
    mesh_point_on_triangle,
    outward_at,
)
from collidecli.engine.geometry.meshes import TriangleShape, barycentric_of
from collidecli.engine.geometry.primitives import (
    Vertex,
    core_is_flat,
    middle_of,
    radius_of,
    support_point,
)
from collidecli.engine.geometry.real import CAPSULE, SPHERE, Pose, Real, Vec3
from collidecli.engine.narrowphase.contact_merging import MIDDLE_INSIDE
from collidecli.engine.narrowphase.convex.directions import along_face, separation_along
from collidecli.engine.narrowphase.convex.distance_bounds import nearest_cores
from collidecli.engine.narrowphase.convex.feature_overlap import feature_contacts
from collidecli.engine.narrowphase.convex.feature_types import is_partly_sampled
from collidecli.engine.narrowphase.convex.features import (
    corner_of,
    feature_at,
    support_feature,
    triangle_feature_at,
)
from collidecli.engine.narrowphase.convex.gjk import BEYOND_MAX_SEPARATION, OVERLAP
from collidecli.engine.narrowphase.convex.manifold import contact_manifold, nearest_emitted
from collidecli.engine.narrowphase.convex.off_samples import overlap_off_samples
from collidecli.engine.narrowphase.convex.penetration import (
    depth_by_epa,
    minkowski_difference,
    sum_of_sizes,
    witness_by_gjk,
)
from collidecli.engine.narrowphase.convex.primitive_distance import toward
from collidecli.engine.narrowphase.convex.witness import Witness
from collidecli.engine.narrowphase.triangles.convex_surface import (
    FieldSurface,
    MeshSurface,
    has_nearer,
    is_at_border,
    is_behind,
    is_one_sided,
    is_sharp,
    named_of,
    normal_cone_at,
    normal_cone_of_edge,
)

MAX_CONTACTS = 20
"""Nine of a triangle clipped by six sides along its normal, and the contacts along the normal of an
edge or corner."""
MOST_ON_BORDER = wp.constant(MAX_CONTACTS - 9 - 1)
NEARER = wp.constant(Real(1.0 - 1.0e-6))
"""Another triangle is closer where its distance is below this fraction."""
CROSSES = wp.constant(Real(1.0e-9))
"""Sine of the angle between a segment and an edge above which they have one common
perpendicular."""
WITHIN = wp.constant(Real(-1.0e-9))
"""Least barycentric coordinate of a point above a triangle."""


LEAST_CROSSING = wp.constant(Real(4.0e-9))
"""Fraction of the pair's size: a shape that overlaps a triangle by no more only touches it. Twice
the error of the depth of cores that touch, see `penetration.separate`."""
PROVEN = wp.constant(Real(1.0e-11))
"""Fraction of the sizes' sum by which EPA's plane must separate a core from a triangle to prove
that it does not cross: the rounding of the plane, see `epa.EXACT`."""
PROVES = wp.constant(Real(1.02))
"""A contact is that of the least translation off its triangle up to this multiple of it."""
EXIT = wp.constant(Real(1.0e-6))
"""Fraction of a triangle's size at which the side of a surface beyond one of its points is decided:
above the error of witnesses, 5e-8."""

# ruff: noqa: F811

AT_SURFACE = wp.constant(Real(1.0e-9))
"""Fraction of a size: for a point closer to a triangle than this the exit direction is the
triangle's normal."""


@wp.func
def nearest_on_triangle(shape: TriangleShape, point: Vec3) -> Vec3:
    """Closest point of a triangle to a point [m]."""
    weights = barycentric_of(shape.p, shape.q, shape.r, point)
    if weights[0] >= Real(0.0) and weights[1] >= Real(0.0) and weights[2] >= Real(0.0):
        return point - wp.dot(point - shape.p, shape.normal) * shape.normal
    result = shape.p
    square = Real(wp.inf)
    for k in range(3):
        start = corner_of(shape, k)
        along = corner_of(shape, k + 1) - start
        t = wp.clamp(wp.dot(point - start, along) / wp.dot(along, along), Real(0.0), Real(1.0))
        foot = start + t * along
        if wp.length_sq(point - foot) < square:
            square = wp.length_sq(point - foot)
            result = foot
    return result


@wp.func(inline=False)
def middle_inside(
    a: Any, surface: MeshSurface, face: int, pose_b_to_a: Pose, out: ContactBuffer, row: int
) -> int:
    """Writes the contact of a shape whose middle is inside a closed mesh; returns 1, the number of
    contacts.

    Its normal is the direction from the closest point of the mesh, on triangle `face`, to the
    middle; its depth is that of the shape's farthest point behind the plane through the closest
    point. It counts where it is deeper than all others of the pair. Degenerate: for a middle on the
    surface the normal is the surface's.
    """
    middle = wp.transform_point(wp.transform_inverse(pose_b_to_a), middle_of(a))
    closest = mesh_point_on_triangle(surface.meshes, face, middle)
    outward = closest.point - middle
    if wp.length(outward) > Real(0.0):
        outward = wp.normalize(outward)
    else:
        outward = wp.normalize(outward_at(surface.meshes, face, closest.part))
    normal = -wp.transform_vector(pose_b_to_a, outward)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, closest.point) - point, normal)
    code = feature_of_mesh_point(surface.meshes, surface.mesh, face, closest.part)
    emit_contact(
        out, row, point, normal, separation, feature_at(a, point, normal), code, 0, MIDDLE_INSIDE
    )
    return 1


@wp.func
def middle_inside(
    a: Any, surface: FieldSurface, face: int, pose_b_to_a: Pose, out: ContactBuffer, row: int
) -> int:
    """Writes the contact of a shape whose middle is inside a heightfield with `face`, the triangle
    closest to it.

    Its normal is the direction between the middle and the closest point; its depth is that of the
    shape's farthest point behind the plane through the closest point. It is a fallback, except for
    spheres, whose depth it is. Returns 1.
    """
    b = named_of(surface, face)
    middle = wp.transform_point(wp.transform_inverse(pose_b_to_a), middle_of(a))
    foot = nearest_on_triangle(b, middle)
    outward = foot - middle
    if wp.length(outward) < AT_SURFACE * wp.max(b.size[0], wp.max(b.size[1], b.size[2])):
        outward = b.normal
    outward = wp.normalize(outward)
    normal = -wp.quat_rotate(wp.transform_get_rotation(pose_b_to_a), outward)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, foot) - point, normal)
    priority = wp.where(a.type == SPHERE, 0, FALLBACK)
    code = triangle_feature_at(b, foot)
    emit_contact(
        out, row, point, normal, separation, feature_at(a, point, normal), code, 0, priority
    )
    return 1


@wp.struct
class Crossing:
    """Penetration of a core into a triangle: depth [m], negative where separated; unit normal from
    a to the triangle.

    on_a: core a's witness, a's frame, as is the normal. belongs: 1 where the normal is in the
    surface's normal cone. exact: as in `Separation`.
    """

    depth: Real
    normal: Vec3
    on_a: Vec3
    belongs: int
    exact: int


@wp.func
def exits_behind(
    b: TriangleShape, surface: Any, point: Vec3, direction: Vec3, outward: Vec3
) -> bool:
    """Whether a unit direction leads from a point of a triangle behind the surface, or along it.
    outward: as in `NormalCone`."""
    ahead = (
        nearest_on_triangle(b, point)
        + EXIT * wp.max(b.size[0], wp.max(b.size[1], b.size[2])) * direction
    )
    is_along = wp.dot(direction, outward) <= RISE * wp.length(outward)
    return is_along or is_behind(surface, ahead, direction, outward)


@wp.func
def push_side(a: Any, shape: TriangleShape, surface: Any, query: Query) -> Vec3:
    """The triangle's normal on the side to which a crossing shape exits, the mesh's frame.

    For a surface with a front, that side of the triangle's point closest to the shape's middle.
    """
    middle = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), middle_of(a))
    if surface.front == 0:
        return wp.where(
            wp.dot(shape.normal, middle - shape.p) < Real(0.0), -shape.normal, shape.normal
        )
    turns = exits_behind(shape, surface, middle, shape.normal, shape.normal)
    return wp.where(turns, -shape.normal, shape.normal)


@wp.func(inline=False)
def flat_crossing(
    difference: Any, surface: Any, query: Query, side: Vec3, simplex: wp.array[Vertex]
) -> Crossing:
    """Penetration of a point or segment, by separating axes: the triangle's side, or across one of
    its edges."""
    result = Crossing()
    result.exact = 1
    half = Vec3()
    if difference.a.type == CAPSULE:
        half = difference.a.size[1] * Vec3(
            difference.rotation[2, 0], difference.rotation[2, 1], difference.rotation[2, 2]
        )
    middle = -(wp.transpose(difference.rotation) * difference.position)
    # The least depth over the axes in normal cones, the side's included; the least over all axes
    # only until one is. Of equal ones the side counts: a core that ends at an edge has depth 0
    # along axes on both sides of the triangle.
    tie = PROVEN * sum_of_sizes(difference)
    least = wp.dot(side, difference.b.p - middle) + wp.abs(wp.dot(side, half))
    result.depth = least
    best = side
    for k in range(3):
        edge = corner_of(difference.b, k + 1) - corner_of(difference.b, k)
        direction = wp.cross(half, edge)
        length = wp.length(direction)
        if length > CROSSES * wp.length(half) * wp.length(edge):
            direction = direction / length
            if wp.dot(
                direction, corner_of(difference.b, (k + 2) % 3) - corner_of(difference.b, k)
            ) > Real(0.0):
                direction = -direction
            depth = wp.dot(direction, corner_of(difference.b, k) - middle)
            normal_cone = normal_cone_of_edge(surface, difference.b, k, direction, RISE)
            belongs = normal_cone.belongs == 1
            if belongs and surface.front == 1:
                on_edge = Real(0.5) * (corner_of(difference.b, k) + corner_of(difference.b, k + 1))
                belongs = not exits_behind(
                    difference.b, surface, on_edge, direction, normal_cone.outward
                )
            if belongs and depth < least:
                least = depth
                best = direction
                result.depth = depth
                result.belongs = 1
            elif result.belongs == 0 and depth < result.depth - tie:
                result.depth = depth
                best = direction
    result.normal = -(difference.rotation * best)
    if wp.length_sq(half) > Real(0.0):
        result.on_a = witness_by_gjk(difference, result.depth, result.normal, simplex)
    return result


@wp.func(inline=False)
def solid_crossing(
    difference: Any, surface: Any, query: Query, simplex: wp.array[Vertex], count: int
) -> Crossing:
    """Penetration of a core with volume, by EPA."""
    epa = depth_by_epa(difference, simplex, count)
    result = Crossing()
    result.depth = epa.depth
    result.normal = epa.normal
    result.on_a = epa.on_a
    result.exact = epa.exact
    direction = -(wp.transpose(difference.rotation) * epa.normal)
    on_b = wp.transpose(difference.rotation) * (
        epa.on_a - epa.depth * epa.normal - difference.position
    )
    normal_cone = normal_cone_at(surface, difference.b, on_b, direction)
    result.belongs = normal_cone.belongs
    if surface.front == 1 and exits_behind(
        difference.b, surface, on_b, direction, normal_cone.outward
    ):
        result.belongs = 0
    return result


@wp.func
def penetrates(out: ContactBuffer, row: int, count: int) -> bool:
    """Whether one of the contacts in `count` rows from `row` on has a negative separation."""
    return count > 0 and nearest_emitted(out, row, count) < Real(0.0)


@wp.func(inline=False)
def contact_off_samples(
    a: Any, b: TriangleShape, query: Query, normal: Vec3, out: ContactBuffer, row: int
) -> int:
    """Writes the contact of a triangle and a sampled face of a shape whose polygon it does not
    reach; 0 for none."""
    normal_in_b = wp.quat_rotate_inv(wp.transform_get_rotation(query.pose_b_to_a), normal)
    feature_a = support_feature(a, normal)
    feature_b = support_feature(b, -normal_in_b)
    if not is_partly_sampled(feature_a, feature_b):
        return 0
    common = overlap_off_samples(a, b, query.pose_b_to_a, normal, normal_in_b, feature_a, feature_b)
    if common.found == 0 or common.separation >= query.max_separation:
        return 0
    foot = wp.transform_point(
        wp.transform_inverse(query.pose_b_to_a), common.point + common.separation * normal
    )
    code = feature_at(a, common.point, normal)
    emit_contact(
        out, row, common.point, normal, common.separation, code, triangle_feature_at(b, foot), 0
    )
    return 1


@wp.func(inline=False)
def contacts_above(
    a: Any,
    b: TriangleShape,
    surface: Any,
    query: Query,
    direction: Vec3,
    crosses: bool,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts along one direction of the features of a shape above a triangle, or also behind it
    where `crosses`.

    direction: unit, off the triangle, the mesh's frame. Contacts behind the triangle to which
    another is closer are left out.
    """
    rotation = wp.transform_get_rotation(query.pose_b_to_a)
    into_b = wp.transform_inverse(query.pose_b_to_a)
    normal = -wp.quat_rotate(rotation, direction)
    radius = radius_of(a)
    count = feature_contacts(a, b, query.pose_b_to_a, query.max_separation, normal, out, row)
    if count == 0:
        count = contact_off_samples(a, b, query, normal, out, row)
    if not penetrates(out, row, count):
        # Contacts that are apart, which the maximum separation adds, do not replace one that
        # penetrates.
        point = support_point(a, normal)
        separation = separation_along(a, b, query.pose_b_to_a, normal)
        foot = wp.transform_point(into_b, point + separation * normal)
        weights = barycentric_of(b.p, b.q, b.r, foot)
        limit = wp.where(count == 0, query.max_separation, Real(0.0))
        if separation < limit and wp.min(weights[0], wp.min(weights[1], weights[2])) >= WITHIN:
            code = feature_at(a, point, normal)
            emit_contact(
                out, row + count, point, normal, separation, code, triangle_feature_at(b, foot), 0
            )
            count += 1
    kept = int(0)
    at_surface = AT_SURFACE * wp.max(b.size[0], wp.max(b.size[1], b.size[2]))
    for k in range(count):
        contact = out.contact[memory_row(out, row + k)]
        height = contact.separation + radius
        core = wp.transform_point(into_b, contact.point - radius * normal)
        stays = bool(True)
        if height < Real(0.0):
            counts = crosses or height > -at_surface
            stays = counts and not has_nearer(surface, core, -height * NEARER, direction)
        elif surface.front == 1 and height > at_surface:
            stays = not is_behind(surface, core, direction, direction)
        if stays:
            contact.priority += 1
            out.contact[memory_row(out, row + kept)] = contact
            kept += 1
    return kept


@wp.func(inline=False)
def keep_in_normal_cone(
    surface: Any,
    b: TriangleShape,
    pose_b_to_a: Pose,
    normal: Vec3,
    out: ContactBuffer,
    row: int,
    count: int,
) -> int:
    """Keeps the contacts whose normal is in the normal cone of their surface point, and the
    deepest; returns how many.

    The normal of an edge need not be in the cones of the points beside it.
    """
    into_b = wp.transform_inverse(pose_b_to_a)
    direction = -wp.transform_vector(into_b, normal)
    nearest = int(0)
    for k in range(count):
        if (
            out.contact[memory_row(out, row + k)].separation
            < out.contact[memory_row(out, row + nearest)].separation
        ):
            nearest = k
    kept = int(0)
    for k in range(count):
        contact = out.contact[memory_row(out, row + k)]
        normal_cone = normal_cone_at(
            surface,
            b,
            wp.transform_point(into_b, contact.point + contact.separation * normal),
            direction,
        )
        if k == nearest or (normal_cone.belongs == 1 and kept < MOST_ON_BORDER):
            out.contact[memory_row(out, row + kept)] = contact
            kept += 1
    return kept


@wp.func(inline=False)
def contacts_inside(
    a: Any,
    b: TriangleShape,
    surface: Any,
    query: Query,
    inward: Vec3,
    distance: Real,
    core_point: Vec3,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a shape whose core is wholly behind a triangle of a closed mesh.

    inward: unit, from the triangle to the core, the mesh's frame. distance: between them [m].
    core_point: the core's closest point, a's frame.
    """
    in_mesh = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), core_point)
    if has_nearer(surface, in_mesh, distance * NEARER, Vec3()):
        return 0
    normal = wp.quat_rotate(wp.transform_get_rotation(query.pose_b_to_a), inward)
    count = int(0)
    if a.type != SPHERE:
        count = contacts_above(a, b, surface, query, -inward, True, out, row)
        if penetrates(out, row, count):
            return count
    point = support_point(a, normal)
    foot = in_mesh - distance * inward
    separation = wp.dot(wp.transform_point(query.pose_b_to_a, foot) - point, normal)
    code = triangle_feature_at(b, foot)
    priority = wp.where(a.type != SPHERE, FALLBACK, 0)
    emit_contact(
        out, row + count, point, normal, separation, feature_at(a, point, normal), code, 0, priority
    )
    return count + 1


@wp.func(inline=False)
def contacts_along(
    a: Any,
    b: TriangleShape,
    surface: Any,
    query: Query,
    crossing: Crossing,
    crosses: bool,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts along a direction in a normal cone; of an edge or corner, also those along the
    triangle's normal."""
    radius = radius_of(a)
    best = along_face(a, b, query.pose_b_to_a, -crossing.depth - radius, crossing.normal)
    if best.separation >= query.max_separation:
        return 0
    witness = Witness(best.separation, best.normal, crossing.on_a + radius * best.normal)
    count = contact_manifold(a, b, query.pose_b_to_a, query.max_separation, witness, out, row)
    direction = -wp.quat_rotate_inv(wp.transform_get_rotation(query.pose_b_to_a), best.normal)
    if wp.length(wp.cross(direction, b.normal)) >= RISE:
        count = keep_in_normal_cone(surface, b, query.pose_b_to_a, best.normal, out, row, count)
        along = wp.dot(direction, b.normal)
        if surface.front == 0 or along > Real(0.0):
            side = wp.where(along < Real(0.0), -b.normal, b.normal)
            count += contacts_above(a, b, surface, query, side, crosses, out, row + count)
    return count


@wp.func
def cone_at(surface: Any, b: TriangleShape, difference: Any, crossing: Crossing) -> NormalCone:
    """Normal cone at the triangle's witness, for the direction off the triangle."""
    on_b = wp.transpose(difference.rotation) * (
        crossing.on_a - crossing.depth * crossing.normal - difference.position
    )
    return normal_cone_at(surface, b, on_b, -(wp.transpose(difference.rotation) * crossing.normal))


@wp.func
def contacts_beside(
    a: Any,
    b: TriangleShape,
    difference: Any,
    surface: Any,
    query: Query,
    beside: Crossing,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a shape whose core is apart from a triangle, or touches one of a sheet, by its
    closest points."""
    direction = -(wp.transpose(difference.rotation) * beside.normal)
    normal_cone = cone_at(surface, b, difference, beside)
    if normal_cone.belongs == 0:
        along = wp.dot(direction, b.normal)
        if surface.front == 1 and along < Real(0.0):
            return 0
        side = wp.where(along < Real(0.0), -b.normal, b.normal)
        return contacts_above(a, b, surface, query, side, False, out, row)
    core = wp.transform_point(wp.transform_inverse(query.pose_b_to_a), beside.on_a)
    if surface.front == 1 and is_behind(surface, core, direction, normal_cone.outward):
        if wp.max(-beside.depth, Real(0.0)) >= difference.radius_a:
            # Out of its reach. A shape that reaches no triangle has the depth of its middle, at any
            # maximum separation.
            return 0
        return contacts_inside(
            a, b, surface, query, direction, -beside.depth, beside.on_a, out, row
        )
    return contacts_along(a, b, surface, query, beside, False, out, row)


@wp.func
def mark_unproven(
    a: Any, b: TriangleShape, surface: Any, depth: Real, out: ContactBuffer, row: int, count: int
):
    """Marks contacts deeper than the least translation off a triangle that has a sharp edge.

    depth: length of that translation [m], 0 where it is not known: every translation that separates
    the pair is at least that long. Axes of flat cores are those in normal cones.
    """
    most = PROVES * wp.max(depth, Real(0.0))
    if core_is_flat(a.type) or not penetrates(out, row, count):
        return
    if nearest_emitted(out, row, count) < -most and is_sharp(surface, b):
        for k in range(count):
            contact = out.contact[memory_row(out, row + k)]
            if contact.separation < -most:
                contact.role = UNPROVEN
                out.contact[memory_row(out, row + k)] = contact


@wp.func
def off_triangle(
    a: Any, b: TriangleShape, query: Query, side: Vec3, crossing: Crossing, radius: Real
) -> Crossing:
    """The translation along a triangle's normal, where the least one off it may lead behind it.

    side: that normal, the mesh's frame. radius: of the shape about its core [m].
    """
    result = crossing
    result.normal = -wp.transform_vector(query.pose_b_to_a, side)
    result.depth = -separation_along(a, b, query.pose_b_to_a, result.normal) - radius
    result.on_a = support_point(a, result.normal) - radius * result.normal
    return result


@wp.func
def emit_fallback(
    a: Any,
    b: TriangleShape,
    query: Query,
    crossing: Crossing,
    radius: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Writes the contact of a translation off a triangle, which another contact of the pair
    replaces if there is one; returns 0 where it is beyond the maximum separation."""
    separation = -crossing.depth - radius
    if separation >= query.max_separation:
        return 0
    point = crossing.on_a + radius * crossing.normal
    into_b = wp.transform_inverse(query.pose_b_to_a)
    foot = wp.transform_point(into_b, point + separation * crossing.normal)
    code_a = feature_at(a, point, crossing.normal)
    code_b = triangle_feature_at(b, foot)
    emit_contact(out, row, point, crossing.normal, separation, code_a, code_b, 0, FALLBACK)
    return 1


@wp.func
def contacts_of_crossing(
    a: Any,
    b: TriangleShape,
    difference: Any,
    surface: Any,
    query: Query,
    simplex: wp.array[Vertex],
    simplex_count: int,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a shape whose core crosses a triangle, from EPA or separating axes."""
    side = push_side(a, b, surface, query)
    crossing = Crossing()
    if core_is_flat(a.type):
        crossing = flat_crossing(difference, surface, query, side, simplex)
    else:
        crossing = solid_crossing(difference, surface, query, simplex, simplex_count)
    # Of a depth that EPA has not proved neither the witness nor a multiple of the depth decides
    # anything.
    proven = wp.where(crossing.exact == 1, crossing.depth + difference.radius_a, Real(0.0))
    # GJK's overlap is no proof. A core that is apart has the contacts that it has where a small
    # maximum separation ends GJK before: none behind the triangle.
    crosses = crossing.depth >= -PROVEN * sum_of_sizes(difference)
    overlaps = crossing.depth > LEAST_CROSSING * (sum_of_sizes(difference) + difference.radius_a)
    into_b = wp.transform_inverse(query.pose_b_to_a)
    if is_one_sided(surface) and not overlaps:
        # What touches a sheet is beside it. At a corner the direction in which it only touches may
        # be any.
        if cone_at(surface, b, difference, crossing).belongs == 1:
            return contacts_beside(a, b, difference, surface, query, crossing, out, row)
        if wp.dot(side, wp.transform_vector(into_b, crossing.normal)) > RISE:
            return 0
        crosses = False
    if crossing.belongs == 1 and crossing.exact == 1:
        # Along a direction of the surface's a shape that only touches the triangle is beside the
        # surface.
        count = contacts_along(a, b, surface, query, crossing, overlaps, out, row)
        mark_unproven(a, b, surface, proven, out, row, count)
        return count
    if not overlaps and is_at_border(surface, b, wp.transform_point(into_b, crossing.on_a)):
        crosses = False
    count = contacts_above(a, b, surface, query, side, crosses, out, row)
    if penetrates(out, row, count):
        mark_unproven(a, b, surface, proven, out, row, count)
        return count
    if overlaps and is_one_sided(surface):
        crossing = off_triangle(a, b, query, side, crossing, difference.radius_a)
    if emit_fallback(a, b, query, crossing, difference.radius_a, out, row + count) == 0:
        return count
    if overlaps and not core_is_flat(a.type):
        # The translation is in no normal cone, or not proved: it need not separate the shape from
        # other triangles.
        out.contact[memory_row(out, row + count)].role = UNPROVEN
    return count + 1


@wp.func
def toward_triangle(difference: Any, b: TriangleShape, pose_b_to_a: Pose) -> Vec3:
    """First search direction of GJK: unit, from the shape's origin to the triangle's centroid, the
    shape's frame."""
    middle = wp.transform_point(pose_b_to_a, (b.p + b.q + b.r) / Real(3.0))
    if wp.length(middle) > Real(0.0):
        return wp.normalize(middle)
    return toward(difference)


@wp.func
def collide_convex_triangle(
    a: Any, b: TriangleShape, surface: Any, query: Query, out: ContactBuffer, row: int
) -> int:
    """Contacts of a convex shape and a triangle of a surface.

    Args:
        a: `Primitive` of any type but plane, or `HullShape`.
        surface: of `convex_surface`.
        out, row: contacts go to rows `row` and up; with their priorities.
    Returns:
        the number written, at most MAX_CONTACTS. A depth that is an upper bound has the role
            UNPROVEN.
    """
    difference = minkowski_difference(a, b, query.pose_b_to_a)
    simplex = wp.zeros(shape=4, dtype=Vertex)
    start = toward_triangle(difference, b, query.pose_b_to_a)
    nearest = nearest_cores(difference, start, query.max_separation + difference.radius_a, simplex)
    if nearest.state == OVERLAP:
        return contacts_of_crossing(
            a, b, difference, surface, query, simplex, nearest.count, out, row
        )
    if (
        nearest.state == BEYOND_MAX_SEPARATION
        or nearest.distance - difference.radius_a >= query.max_separation
    ):
        return 0
    beside = Crossing()
    beside.depth = -nearest.distance
    beside.normal = nearest.normal
    beside.on_a = nearest.on_a
    return contacts_beside(a, b, difference, surface, query, beside, out, row)
