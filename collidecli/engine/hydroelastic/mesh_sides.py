"""Planes of a mesh's faces that are nearest to the corners of a tetrahedron.

Where a mesh is convex near the tetrahedron, as at the edge of a flat face or across a thin wall,
the distance inside the mesh is the largest of the distances from these planes. They have no kink,
unlike the distance. A mesh that is not convex there is recognised by its exact distances at the
corners, and has no such planes; without them the error is of first order in the voxel only in the
few voxels around a corner at which convex and concave edges meet.
"""

import warp as wp

from collidecli.engine.geometry.mesh_points import EDGE_PART, FACE_PART
from collidecli.engine.geometry.meshes import Meshes, mesh_corner
from collidecli.engine.geometry.real import Real, Vec3

Vec4 = wp.vec4d
Mat43 = wp.types.matrix((4, 3), Real)

NO_FEATURE = wp.constant(-1)
"""Nearest feature of a shape that is not a mesh."""
PARTS = wp.constant(7)
"""Features of a triangle: see `MeshPoint`."""
SAME_SIDE = wp.constant(Real(0.98))
"""Cosine of the angle up to which faces are one side: 11 degrees. Normals of a curved surface of 64
voxels that is divided more finely than the voxels differ by 3 degrees within a voxel; the surface
is linear there as it is."""
MISFIT = wp.constant(Real(1.0e-3))
"""Difference of the distance from the nearest side, as a fraction of a voxel's side, up to which a
mesh is convex in a tetrahedron, beside that of the faces of one side."""


@wp.struct
class MeshSides:
    """Distances of a tetrahedron's corners from the sides of a mesh.

    count: of the sides, 1 where the mesh has no edge or is not convex; -1 where there are more than
    three. value, least: a row for each corner and a column for each side: the largest and the least
    distance from its faces' planes; value is -inf from `count` on [m]. normal: of the first face of
    each side, in the mesh's frame.
    """

    count: int
    value: Mat43
    least: Mat43
    normal: wp.mat33d


@wp.func
def feature_number(face: int, part: int) -> int:
    """Number of a feature of a triangle, from which its quotient and remainder by PARTS restore
    both."""
    return PARTS * face + part


@wp.func
def with_plane(sides: MeshSides, point: Mat43, origin: Vec3, normal: Vec3) -> MeshSides:
    """The sides with the plane through `origin` too: in a side of a normal within SAME_SIDE, or in
    one more."""
    result = sides
    if result.count < 0:
        return result
    for side in range(3):
        if side < sides.count and wp.dot(sides.normal[side], normal) >= SAME_SIDE:
            for k in range(4):
                height = wp.dot(normal, point[k] - origin)
                result.value[k, side] = wp.max(sides.value[k, side], height)
                result.least[k, side] = wp.min(sides.least[k, side], height)
            return result
    if sides.count == 3:
        result.count = -1
        return result
    for side in range(3):
        if side == sides.count:
            result.normal[side] = normal
            for k in range(4):
                height = wp.dot(normal, point[k] - origin)
                result.value[k, side] = height
                result.least[k, side] = height
    result.count = sides.count + 1
    return result


@wp.func(inline=False)
def with_neighbors(meshes: Meshes, face: int, k: int, sides: MeshSides, point: Mat43) -> MeshSides:
    """The sides with the planes of the other triangles at side k of a triangle too."""
    result = sides
    start = mesh_corner(meshes, face, k)
    end = mesh_corner(meshes, face, k + 1)
    opposite = meshes.arrays[0].corner[3 * face + (k + 2) % 3]
    edge = meshes.arrays[0].side[3 * face + k]
    for item in range(meshes.arrays[0].rim[edge], meshes.arrays[0].rim[edge + 1]):
        vertex = meshes.arrays[0].across[item]
        if vertex != opposite:
            # A neighbour's corners are in the opposite order along the edge.
            normal = wp.normalize(wp.cross(start - end, meshes.arrays[0].point[vertex] - end))
            result = with_plane(result, point, start, normal)
    return result


@wp.func(inline=False)
def with_feature(meshes: Meshes, feature: int, sides: MeshSides, point: Mat43) -> MeshSides:
    """The sides with the planes of the triangles at the nearest feature of a corner too.

    Of a vertex, those of a triangle and of its neighbours at the vertex.
    """
    face = feature / PARTS
    part = feature % PARTS
    result = with_plane(
        sides, point, mesh_corner(meshes, face, 0), meshes.arrays[0].face_normal[face]
    )
    if part == FACE_PART:
        return result
    if part >= EDGE_PART:
        return with_neighbors(meshes, face, part - EDGE_PART, result, point)
    result = with_neighbors(meshes, face, part, result, point)
    return with_neighbors(meshes, face, (part + 2) % 3, result, point)


@wp.func
def misfit(sides: MeshSides, side: Real) -> Real:
    """Difference of a distance from the nearest side up to which a mesh is convex there [m]. side:
    of a voxel [m]."""
    spread = Real(0.0)
    for k in range(4):
        for column in range(3):
            if column < sides.count:
                spread = wp.max(spread, sides.value[k, column] - sides.least[k, column])
    return MISFIT * side + spread


@wp.func
def is_flat_near(meshes: Meshes, feature: int, other: int) -> bool:
    """Whether the nearest features of two points are in faces of one side."""
    if feature % PARTS != FACE_PART or other % PARTS != FACE_PART:
        return False
    normal = meshes.arrays[0].face_normal[feature / PARTS]
    return wp.dot(normal, meshes.arrays[0].face_normal[other / PARTS]) >= SAME_SIDE


@wp.func(inline=False)
def is_flat_at(meshes: Meshes, feature: wp.vec4i) -> bool:
    """Whether the nearest features of a tetrahedron's corners are in faces of one side: then it has
    no others."""
    return (
        is_flat_near(meshes, feature[0], feature[1])
        and is_flat_near(meshes, feature[0], feature[2])
        and is_flat_near(meshes, feature[0], feature[3])
    )


@wp.func
def is_repeated(feature: wp.vec4i, k: int) -> bool:
    """Whether a corner has the nearest feature of an earlier one."""
    result = bool(False)
    for earlier in range(4):
        result = result or (earlier < k and feature[earlier] == feature[k])
    return result


@wp.func(inline=False)
def mesh_sides(
    meshes: Meshes, feature: wp.vec4i, point: Mat43, distance: Vec4, side: Real
) -> MeshSides:
    """The sides of a mesh at a tetrahedron, as far as the distances of the corners agree with them.

    feature: nearest to each corner. point: corners in the mesh's frame. distance: of them from the
    mesh [m]. side: of a voxel [m].
    """
    result = MeshSides()
    for k in range(4):
        for column in range(3):
            result.value[k, column] = -Real(wp.inf)
    corners = int(4)  # a variable: the loop is not unrolled
    for k in range(corners):
        if not is_repeated(feature, k):
            result = with_feature(meshes, feature[k], result, point)
    slack = misfit(result, side)
    for k in range(4):
        most = wp.max(result.value[k])
        # Outside, beyond an edge, the distance is round and exceeds those from the planes.
        fits = most > -slack if distance[k] > Real(0.0) else wp.abs(most - distance[k]) <= slack
        if not fits:
            result.count = 1
    return result
