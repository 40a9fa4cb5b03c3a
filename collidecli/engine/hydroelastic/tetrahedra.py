"""Contact surface within a tetrahedron of a voxel, in which distances are linear.

The distance inside a cylinder, a cone or a box is the largest of the distances from its sides: of a
cap and the curved side, of a base and the side, of a box's faces. Each of them is smooth across the
edge between two sides, where the distance itself has a kink, and outside of which it is round. So
where a tetrahedron is at an edge, the surface is cut for each combination of the shapes' sides and
clipped to where these are the largest: the error at an edge is of second order in the voxel, as
elsewhere. Sides of meshes are planes of the faces nearest to the tetrahedron's corners.
"""

import warp as wp

from collidecli.engine.geometry.real import BOX, CONE, CYLINDER, Real, Vec2, Vec3
from collidecli.engine.hydroelastic.mesh_sides import (
    MISFIT,
    Mat43,
    Vec4,
    is_flat_at,
    mesh_sides,
    misfit,
)
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.polygon_faces import (
    IN_PLANE,
    Clipped,
    HydroFace,
    LinearField,
    clip_by_depth,
    clip_polygon,
    face_of_polygon,
    value_at,
)
from collidecli.engine.hydroelastic.solids import Solids, mesh_distance

FACE_CORNERS = wp.constant(9)
"""Most corners of a face: a quadrilateral clipped by the depth, and by two other sides of each
shape."""
LOCAL_CORNERS = 20


@wp.struct
class Tetrahedron:
    """Corners of a tetrahedron, both distances there, and their `pressure_difference`. step: of
    each axis the number of the step along it, from corner `step` to the next. side: of the voxel
    [m]."""

    first: Vec4
    second: Vec4
    difference: Vec4
    point: Mat43
    step: wp.vec3i
    side: Real


@wp.func
def change_along(tetrahedron: Tetrahedron, value: Vec4, step: int) -> Real:
    """Derivative of a linear function along the axis of a step. Without a variable index, which
    stalls a processor."""
    change = value[1] - value[0]
    if step == 1:
        change = value[2] - value[1]
    elif step == 2:
        change = value[3] - value[2]
    return change / tetrahedron.side


@wp.func
def linear_in(tetrahedron: Tetrahedron, value: Vec4) -> LinearField:
    """The linear function with these values at the corners."""
    slope = Vec3(
        change_along(tetrahedron, value, tetrahedron.step[0]),
        change_along(tetrahedron, value, tetrahedron.step[1]),
        change_along(tetrahedron, value, tetrahedron.step[2]),
    )
    return LinearField(slope, value[0] - wp.dot(slope, tetrahedron.point[0]))


@wp.func
def crossing(tetrahedron: Tetrahedron, low: int, high: int) -> Vec3:
    """The point between a negative and another corner where the difference is zero."""
    p = tetrahedron.point[low]
    t = tetrahedron.difference[low] / (tetrahedron.difference[low] - tetrahedron.difference[high])
    return p + t * (tetrahedron.point[high] - p)


@wp.func
def zero_polygon(tetrahedron: Tetrahedron, corner: wp.array[Vec3], normal: Vec3) -> int:
    """The triangle or quadrilateral where the difference is zero, counterclockwise about `normal`;
    its corner count.

    A difference of zero counts as positive, so that a polygon in a face of two tetrahedra belongs
    to the one where the difference is negative.
    """
    order = wp.vec4i(0, 0, 0, 0)
    negative = int(0)
    for k in range(4):
        if tetrahedron.difference[k] < Real(0.0):
            order[negative] = k
            negative += 1
    if negative == 0 or negative == 4:
        return 0
    at = negative
    for k in range(4):
        if tetrahedron.difference[k] >= Real(0.0):
            order[at] = k
            at += 1
    count = int(3)
    if negative == 1:
        for k in range(3):
            corner[k] = crossing(tetrahedron, order[0], order[k + 1])
    elif negative == 3:
        for k in range(3):
            corner[k] = crossing(tetrahedron, order[k], order[3])
    else:
        corner[0] = crossing(tetrahedron, order[0], order[2])
        corner[1] = crossing(tetrahedron, order[0], order[3])
        corner[2] = crossing(tetrahedron, order[1], order[3])
        corner[3] = crossing(tetrahedron, order[1], order[2])
        count = 4
    area = wp.cross(corner[1] - corner[0], corner[2] - corner[0])
    if count == 4:
        area = wp.cross(corner[2] - corner[0], corner[3] - corner[1])
    if wp.dot(area, normal) < Real(0.0):
        swap = corner[0]
        corner[0] = corner[count - 1]
        corner[count - 1] = swap
        if count == 4:
            swap = corner[1]
            corner[1] = corner[2]
            corner[2] = swap
    return count


@wp.func
def pressure_difference(pair: HydroPair, distance: Vec2) -> Real:
    """Weighted distance from the reference shape less that from the other; 0 within rounding.

    A flat side of a rigid reference shape may lie in the grid's boundary. The grid has voxels on
    its inner side only, where the difference is negative: see `zero_polygon`.
    """
    difference = pair.sign * (pair.weight0 * distance[0] - pair.weight1 * distance[1])
    if wp.abs(difference) <= IN_PLANE * pair.size:
        return Real(0.0)
    return difference


@wp.func
def side_count(shape_type: int) -> int:
    """Number of smooth functions whose largest is the distance inside a shape; 1 for the distance
    itself."""
    if shape_type == BOX:
        return 3
    return 2 if shape_type == CYLINDER or shape_type == CONE else 1


@wp.func
def side_distance(shape_type: int, size: Vec3, point: Vec3, side: int) -> Real:
    """Signed distance of a point of the shape's frame from one of its sides, extended beyond its
    edges [m]."""
    if shape_type == BOX:
        return wp.abs(point[side]) - size[side]
    across = wp.sqrt(point[0] * point[0] + point[1] * point[1])
    if shape_type == CYLINDER:
        return across - size[0] if side == 0 else wp.abs(point[2]) - size[1]
    if side == 1:
        return -point[2] - size[1]
    height = Real(2.0) * size[1]
    return (height * across + size[0] * (point[2] - size[1])) / wp.sqrt(
        height * height + size[0] * size[0]
    )


@wp.func
def has_edges(solids: Solids, pair: HydroPair, of: int) -> bool:
    """Whether shape 0 or 1 has several sides. A margin rounds the edges between them."""
    row = wp.where(of == 0, pair.row0, pair.row1)
    margin = wp.where(of == 0, pair.margin0, pair.margin1)
    return (side_count(solids.rows.type[row]) > 1 or solids.mesh[row] >= 0) and margin == Real(0.0)


@wp.func
def is_mesh(solids: Solids, pair: HydroPair, of: int) -> bool:
    """Whether the surface of shape 0 or 1 is made of triangles."""
    return solids.mesh[wp.where(of == 0, pair.row0, pair.row1)] >= 0


@wp.func
def sides_of(solids: Solids, pair: HydroPair, of: int, point: Vec3) -> Vec3:
    """Distances of a point of the reference frame from each side of shape 0 or 1; -inf of sides it
    does not have."""
    row = wp.where(of == 0, pair.row0, pair.row1)
    pose = wp.where(of == 0, pair.pose0, pair.pose1)
    local = wp.transform_point(wp.transform_inverse(pose), point)
    kind = solids.rows.type[row]
    sides = Vec3()
    for side in range(3):
        sides[side] = -Real(wp.inf)
        if side < side_count(kind):
            sides[side] = side_distance(kind, solids.rows.size[row], local, side)
    return sides


@wp.func
def is_near_edge(solids: Solids, pair: HydroPair, of: int, point: Vec3, reach: Real) -> bool:
    """Whether two sides of shape 0 or 1, which is no mesh, are equally far from a point, to `reach`
    [m]."""
    if is_mesh(solids, pair, of) or not has_edges(solids, pair, of):
        return False
    sides = sides_of(solids, pair, of, point)
    most = wp.max(sides)
    near = int(0)
    for side in range(3):
        if sides[side] >= most - reach:
            near += 1
    return near > 1


@wp.func
def sides_at(solids: Solids, pair: HydroPair, of: int, tetrahedron: Tetrahedron) -> Mat43:
    """`sides_of` the corners, one row each."""
    result = Mat43()
    for k in range(4):
        sides = sides_of(solids, pair, of, tetrahedron.point[k])
        for side in range(3):
            result[k, side] = sides[side]
    return result


@wp.func
def is_at_edge(sides: Mat43) -> bool:
    """Whether two corners are nearest to different sides, or one is outside of two sides."""
    common = int(-1)
    result = bool(False)
    for k in range(4):
        nearest = int(0)
        outside = int(0)
        for side in range(3):
            if sides[k, side] > sides[k, nearest]:
                nearest = side
            if sides[k, side] > Real(0.0):
                outside += 1
        result = result or outside > 1 or (common >= 0 and nearest != common)
        common = nearest
    return result


@wp.struct
class Edges:
    """The sides that a tetrahedron is cut by. count0, count1: number of each shape's, 1 for the
    distance alone.

    sides0, sides1: distances of the corners from them, set where there are several.
    slack0, slack1: of the distance inside a mesh from that of the nearest side [m].
    """

    count0: int
    count1: int
    sides0: Mat43
    sides1: Mat43
    slack0: Real
    slack1: Real


@wp.struct
class ShapeSides:
    """The sides of one shape that a tetrahedron is cut by. count: 1 for the distance alone. value:
    distances of the corners from them, set where there are several [m]. slack: see `Edges`."""

    count: int
    value: Mat43
    slack: Real


@wp.func
def sides_of_mesh(
    solids: Solids, pair: HydroPair, of: int, tetrahedron: Tetrahedron, feature: wp.vec4i
) -> ShapeSides:
    """The sides of shape 0 or 1, a mesh, where the tetrahedron is at an edge of it."""
    if is_flat_at(solids.meshes, feature):
        return ShapeSides(1, Mat43(), Real(0.0))
    to_local = wp.transform_inverse(wp.where(of == 0, pair.pose0, pair.pose1))
    local = Mat43()
    for k in range(4):
        point = wp.transform_point(to_local, tetrahedron.point[k])
        for axis in range(3):
            local[k, axis] = point[axis]
    distance = wp.where(of == 0, tetrahedron.first, tetrahedron.second)
    mesh = mesh_sides(solids.meshes, feature, local, distance, tetrahedron.side)
    result = ShapeSides(1, mesh.value, misfit(mesh, tetrahedron.side))
    if mesh.count > 1 and is_at_edge(mesh.value):
        result.count = mesh.count
    return result


@wp.func
def sides_in(
    solids: Solids, pair: HydroPair, of: int, tetrahedron: Tetrahedron, feature: wp.vec4i
) -> ShapeSides:
    """The sides of shape 0 or 1 where the tetrahedron is at an edge of it."""
    result = ShapeSides(1, Mat43(), Real(0.0))
    if has_edges(solids, pair, of):
        if is_mesh(solids, pair, of):
            return sides_of_mesh(solids, pair, of, tetrahedron, feature)
        result.value = sides_at(solids, pair, of, tetrahedron)
        if is_at_edge(result.value):
            result.count = side_count(solids.rows.type[wp.where(of == 0, pair.row0, pair.row1)])
    return result


@wp.func(inline=False)
def edges_in(solids: Solids, pair: HydroPair, tetrahedron: Tetrahedron) -> Edges:
    """The sides of both shapes, which are no meshes, where the tetrahedron is at an edge of
    theirs."""
    result = Edges()
    result.count0 = 1
    result.count1 = 1
    if has_edges(solids, pair, 0):
        result.sides0 = sides_at(solids, pair, 0, tetrahedron)
        if is_at_edge(result.sides0):
            result.count0 = side_count(solids.rows.type[pair.row0])
    if has_edges(solids, pair, 1):
        result.sides1 = sides_at(solids, pair, 1, tetrahedron)
        if is_at_edge(result.sides1):
            result.count1 = side_count(solids.rows.type[pair.row1])
    return result


@wp.func
def edges_with_meshes(
    solids: Solids,
    pair: HydroPair,
    tetrahedron: Tetrahedron,
    feature0: wp.vec4i,
    feature1: wp.vec4i,
) -> Edges:
    """`edges_in` where a shape is a mesh. feature0, feature1: nearest to each corner, see
    `feature_number`."""
    first = sides_in(solids, pair, 0, tetrahedron, feature0)
    second = sides_in(solids, pair, 1, tetrahedron, feature1)
    return Edges(first.count, second.count, first.value, second.value, first.slack, second.slack)


@wp.func
def column(sides: Mat43, side: int) -> Vec4:
    """Distances of the four corners from one side [m]."""
    return Vec4(sides[0, side], sides[1, side], sides[2, side], sides[3, side])


@wp.func
def clip_to_side(
    pair: HydroPair,
    tetrahedron: Tetrahedron,
    sides: Mat43,
    side: int,
    count: int,
    corner: wp.array[Vec3],
    polygon: Clipped,
) -> Clipped:
    """The part of a polygon where one side's distance is the largest.

    A polygon in the border of two sides' parts counts in the one in which the difference is
    negative, as in `zero_polygon`: also where the difference is zero in the other, in all of it.
    """
    result = polygon
    rise = linear_in(tetrahedron, tetrahedron.difference).slope
    for other in range(count):
        if other != side and result.count >= 3:
            excess = linear_in(tetrahedron, column(sides, other) - column(sides, side))
            result = clip_polygon(corner, result, excess.slope, -excess.value, IN_PLANE * pair.size)
            if result.in_plane == 1 and wp.dot(rise, excess.slope) <= Real(0.0):
                result.count = 0
    return result


@wp.func
def with_sides(
    pair: HydroPair, tetrahedron: Tetrahedron, edges: Edges, side0: int, side1: int
) -> Tetrahedron:
    """The tetrahedron with distances from one side of each shape that it is at an edge of."""
    result = tetrahedron
    if edges.count0 > 1:
        result.first = column(edges.sides0, side0)
    if edges.count1 > 1:
        result.second = column(edges.sides1, side1)
    for k in range(4):
        result.difference[k] = pressure_difference(pair, Vec2(result.first[k], result.second[k]))
    return result


@wp.func
def face_in(pair: HydroPair, tetrahedron: Tetrahedron, corner: wp.array[Vec3]) -> HydroFace:
    """The surface within a tetrahedron; its corners are in `corner` from `first_corner` on."""
    if wp.min(tetrahedron.difference) >= Real(0.0) or wp.max(tetrahedron.difference) < Real(0.0):
        return HydroFace()
    phi0 = linear_in(tetrahedron, tetrahedron.first)
    phi1 = linear_in(tetrahedron, tetrahedron.second)
    difference = linear_in(tetrahedron, tetrahedron.difference)
    length = wp.length(difference.slope)
    if length == Real(0.0):
        return HydroFace()
    normal = pair.sign * difference.slope / length
    polygon = Clipped(
        zero_polygon(tetrahedron, corner, normal), 0, 0, wp.static(LOCAL_CORNERS // 2)
    )
    if polygon.count == 0:
        return HydroFace()
    polygon = clip_by_depth(pair, phi0, phi1, corner, polygon)
    if polygon.count < 3:
        return HydroFace()
    return face_of_polygon(pair, phi0, phi1, normal, corner, polygon)


@wp.func(inline=False)
def face_of_sides(
    pair: HydroPair, whole: Tetrahedron, edges: Edges, part: int, corner: wp.array[Vec3]
) -> HydroFace:
    """The surface of one combination of sides within a tetrahedron, as `face_in`.

    part: number of the combination, 0 to count0 * count1 - 1.
    """
    side0 = part / edges.count1
    side1 = part % edges.count1
    tetrahedron = with_sides(pair, whole, edges, side0, side1)
    face = face_in(pair, tetrahedron, corner)
    if face.count == 0 or edges.count0 * edges.count1 == 1:
        return face
    polygon = Clipped(
        face.count, 0, face.first_corner, wp.static(LOCAL_CORNERS // 2) - face.first_corner
    )
    if edges.count0 > 1:
        polygon = clip_to_side(
            pair, tetrahedron, edges.sides0, side0, edges.count0, corner, polygon
        )
    if edges.count1 > 1:
        polygon = clip_to_side(
            pair, tetrahedron, edges.sides1, side1, edges.count1, corner, polygon
        )
    if polygon.count < 3:
        return HydroFace()
    phi0 = linear_in(tetrahedron, tetrahedron.first)
    phi1 = linear_in(tetrahedron, tetrahedron.second)
    normal = pair.sign * wp.normalize(linear_in(tetrahedron, tetrahedron.difference).slope)
    return face_of_polygon(pair, phi0, phi1, normal, corner, polygon)


@wp.func(inline=False)
def is_on_side(
    solids: Solids,
    pair: HydroPair,
    of: int,
    tetrahedron: Tetrahedron,
    sides: Vec4,
    point: Vec3,
    slack: Real,
) -> bool:
    """Whether the exact distance of a point from shape 0 or 1, a mesh, is that from one of its
    sides, and no less deep.

    sides: distances of the corners from the side [m]. slack: see `Edges`.
    """
    row = wp.where(of == 0, pair.row0, pair.row1)
    pose = wp.where(of == 0, pair.pose0, pair.pose1)
    local = wp.transform_point(wp.transform_inverse(pose), point)
    exact = mesh_distance(solids.meshes, solids.mesh[row], local)
    above = value_at(linear_in(tetrahedron, sides), point) - exact.value
    return above <= slack and above >= -MISFIT * tetrahedron.side


@wp.func(inline=False)
def deepest_corner(
    pair: HydroPair,
    tetrahedron: Tetrahedron,
    edges: Edges,
    part: int,
    face: HydroFace,
    corner: wp.array[Vec3],
) -> Vec3:
    """Corner of a face with the least separation."""
    sided = with_sides(pair, tetrahedron, edges, part / edges.count1, part % edges.count1)
    separation = linear_in(tetrahedron, sided.first + sided.second)
    result = corner[face.first_corner]
    for k in range(face.count):
        if value_at(separation, corner[face.first_corner + k]) < value_at(separation, result):
            result = corner[face.first_corner + k]
    return result


@wp.func(inline=False)
def verified(
    solids: Solids, pair: HydroPair, tetrahedron: Tetrahedron, edges: Edges, corner: wp.array[Vec3]
) -> Edges:
    """The sides that a tetrahedron is cut by, without those of a mesh whose exact distances differ
    from theirs.

    A face of the mesh may be nearest to no corner of the tetrahedron, as at a rod or a wall thinner
    than a voxel: the surface would not end there. So the distances are compared at the centroid and
    the deepest corner of each face.
    """
    result = edges
    parts = edges.count0 * edges.count1
    for part in range(parts):
        face = face_of_sides(pair, tetrahedron, edges, part, corner)
        if face.count > 0:
            deepest = deepest_corner(pair, tetrahedron, edges, part, face, corner)
            middle = face.area_moment / face.area
            if edges.count0 > 1 and is_mesh(solids, pair, 0):
                sides = column(edges.sides0, part / edges.count1)
                at_middle = is_on_side(solids, pair, 0, tetrahedron, sides, middle, edges.slack0)
                if not (
                    at_middle
                    and is_on_side(solids, pair, 0, tetrahedron, sides, deepest, edges.slack0)
                ):
                    result.count0 = 1
            if edges.count1 > 1 and is_mesh(solids, pair, 1):
                sides = column(edges.sides1, part % edges.count1)
                at_middle = is_on_side(solids, pair, 1, tetrahedron, sides, middle, edges.slack1)
                if not (
                    at_middle
                    and is_on_side(solids, pair, 1, tetrahedron, sides, deepest, edges.slack1)
                ):
                    result.count1 = 1
    return result
