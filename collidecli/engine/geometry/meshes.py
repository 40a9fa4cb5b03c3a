"""Triangle meshes on the device: all meshes in a few arrays, triangles as convex shapes, and
point-triangle distances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.geometry.line_crossings import line_crosses_triangle
from collidecli.engine.geometry.real import MESH, Real, Vec3, by_reference, device_array
from collidecli.engine.runtime.warp_internals import struct_of
from collidecli.numerics.products import dot, norm
from collidecli.numerics.trigonometry import atan2
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import facets
from collidecli.scene.triangle_mesh import TriangleMesh

# BVH of axis-aligned boxes over the triangles of a mesh, in depth-first order; depends on the mesh
# alone.

WIDENING = 1e-12
"""Growth of the boxes relative to the mesh's size: exceeds the rounding of the queries."""


@dataclass(frozen=True)
class MeshTree:
    """Boxes in depth-first order: the traversal continues at `skip` when it skips a box and its
    subtree.

    lower, upper: float64[N, 3] [m]. skip: int32[N]. face: int32[N], the triangle of a leaf; -1 for
    inner nodes.
    """

    lower: np.ndarray
    upper: np.ndarray
    skip: np.ndarray
    face: np.ndarray


def tree_of_triangles(
    corners: np.ndarray, size: float, chosen: np.ndarray | None = None
) -> MeshTree:
    """BVH with one triangle a leaf, by median splits of the triangles' centres along the longest
    side of the centres' box.

    corners: float64[F, 3, 3] of the triangles [m]. size: by WIDENING of which boxes are grown [m].
    chosen: int64[n], indices of the triangles to include; None for all.
    """
    low = corners.min(axis=1)
    high = corners.max(axis=1)
    skip, face, inner = split_tree(
        0.5 * (low + high), np.arange(len(low)) if chosen is None else chosen
    )
    lower = np.zeros((len(skip), 3))
    upper = np.zeros((len(skip), 3))
    leaves = face >= 0
    lower[leaves] = low[face[leaves]]
    upper[leaves] = high[face[leaves]]
    for parent, right in reversed(inner):
        lower[parent] = np.minimum(lower[parent + 1], lower[right])
        upper[parent] = np.maximum(upper[parent + 1], upper[right])
    return MeshTree(lower - WIDENING * size, upper + WIDENING * size, skip, face)


def split_tree(
    middle: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """A BVH with one item a leaf, by median splits of the items' centres along the longest side of
    the centres' box.

    middle: float64[n, 3], centres of all items [m]. chosen: int64, items to include; of none there
    are no nodes.
    Returns:
        skip and item of each node, see `MeshTree`; and of each level the inner nodes and their
        second children, the
        first child being the next node.
    """
    order = chosen
    count = max(2 * len(order) - 1, 0)
    skip = np.zeros(count, np.int32)
    item = np.full(count, -1, np.int32)
    first = np.zeros(1, np.int64)
    size = np.array([len(order)])
    node = np.zeros(1, np.int64)
    inner: list[tuple[np.ndarray, np.ndarray]] = []
    while len(order) and len(first):
        # A subtree of n items has 2 n - 1 nodes, so the counts alone determine each node's index.
        skip[node] = node + 2 * size - 1
        leaf = size == 1
        item[node[leaf]] = order[first[leaf]]
        first = first[~leaf]
        size = size[~leaf]
        node = node[~leaf]
        if not len(first):
            break
        order = _halved(order, middle, first, size)
        left = size // 2
        right_node = node + 2 * left
        inner.append((node, right_node))
        first, size, node = (
            np.stack(pair, axis=1).reshape(-1)
            for pair in ((first, first + left), (left, size - left), (node + 1, right_node))
        )
    return skip, item, inner


def _halved(
    order: np.ndarray, middle: np.ndarray, first: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """`order` with each group's slots sorted by item centre along the group's longest side."""
    slots = np.concatenate([np.arange(f, f + s) for f, s in zip(first, size, strict=True)])
    group = np.repeat(np.arange(len(first)), size)
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    items = order[slots]
    points = middle[items]
    extent = np.maximum.reduceat(points, starts) - np.minimum.reduceat(points, starts)
    along = points[np.arange(len(points)), np.argmax(extent, axis=1)[group]]
    result = order.copy()
    # Ties are broken by the item's index.
    result[slots] = items[np.lexsort((items, along, group))]
    return result


SALIENT = 1e-7
"""Sine of the dihedral angle above which a convex edge counts as salient, so that it can be in
contact before its faces.
"""

CANCELLED = 1e-9
"""Length below which a sum of normals is zero, as for back-to-back triangles of a two-sided
sheet."""

GRIDS = ("clear", "grid_box", "grid")
"""Arrays of `MeshArrays` that are filled by `clearance.measure_clearance`."""


@wp.struct
class MeshHeader:
    """First vertex, edge and triangle of a mesh, and its trees; all indices count through all
    meshes.

    first_node, end_node: nodes of the tree of its triangles that are not hidden
    (`TriangleMesh.hidden`). has_front, is_closed: 1 or 0, see `TriangleMesh`. first_winding_node,
    end_winding_node: nodes of the tree of all its triangles where the winding number separates
    inside from outside; -1 where the nearest triangle does.
    """

    first_vertex: int
    first_edge: int
    first_face: int
    first_node: int
    end_node: int
    has_front: int
    is_closed: int
    first_winding_node: int
    end_winding_node: int


@wp.struct
class MeshArrays:
    """Every mesh of a model; indices of vertices, edges and triangles count through all meshes.

    point: vertices. vertex_normal, edge_normal, face_normal: outward; the first two are sums, not
    unit, zero where they cancel. corner, side: three vertices and three edges of each triangle,
    side k from corner k to the next. owned: bits of each triangle: k where it is the first with its
    corner k, 3 + k the first with its side k; 6 + k where corner k, 9 + k where side k is salient:
    convex, or on the border of the surface; 12 + k where corner k is on the border. rim: start of
    the vertices opposite each edge in `across`, plus the end. ring: start of the neighbours of each
    vertex in `around`, plus the end. lower, upper, skip, leaf: see `MeshTree`; skip and leaf count
    through all meshes. header: one for each mesh. Queries other than the winding number return no
    hidden triangle. clear, grid_box, grid: for models in which two meshes may collide, see
    `clearance`: distances of cells; two corners of each mesh's grid; start of its cells in `clear`,
    and their counts along x, y and z.
    """

    point: wp.array[Vec3]
    vertex_normal: wp.array[Vec3]
    edge_normal: wp.array[Vec3]
    face_normal: wp.array[Vec3]
    corner: wp.array[int]
    side: wp.array[int]
    owned: wp.array[int]
    rim: wp.array[int]
    across: wp.array[int]
    ring: wp.array[int]
    around: wp.array[int]
    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    skip: wp.array[int]
    leaf: wp.array[int]
    header: wp.array[MeshHeader]
    clear: wp.array[wp.float32]
    grid_box: wp.array[Vec3]
    grid: wp.array[int]


@wp.struct
class Meshes:
    """Every mesh of a model, by reference: functions get these 56 bytes, not the 1064 of
    `MeshArrays`.

    arrays: one element.
    """

    arrays: wp.array[MeshArrays]


@wp.struct
class TriangleShape:
    """A triangle of a mesh as a convex shape. type, size: as in `Primitive`; size: half extents of
    its box [m].

    p, q, r: corners, in the mesh's frame [m]. normal: unit. half_width: half of its least height
    [m]. vertex, edge, face: feature numbers. number: index of the triangle in `Meshes`.
    """

    type: int
    size: Vec3
    p: Vec3
    q: Vec3
    r: Vec3
    normal: Vec3
    half_width: Real
    vertex: wp.vec3i
    edge: wp.vec3i
    face: int
    number: int


@wp.func
def triangle_shape(meshes: Meshes, mesh: int, number: int) -> TriangleShape:
    """Triangle `number` of a mesh as a shape, counted through all meshes."""
    shape = TriangleShape()
    shape.type = MESH
    shape.number = number
    shape.p = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number]]
    shape.q = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number + 1]]
    shape.r = meshes.arrays[0].point[meshes.arrays[0].corner[3 * number + 2]]
    shape.size = Real(0.5) * (
        wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r))
    )
    shape.normal = meshes.arrays[0].face_normal[number]
    area = wp.length(wp.cross(shape.q - shape.p, shape.r - shape.p))
    longest = wp.max(
        wp.length(shape.q - shape.p),
        wp.max(wp.length(shape.r - shape.q), wp.length(shape.p - shape.r)),
    )
    shape.half_width = Real(0.5) * area / longest
    for k in range(3):
        shape.vertex[k] = 3 * (
            meshes.arrays[0].corner[3 * number + k] - meshes.arrays[0].header[mesh].first_vertex
        )
        shape.edge[k] = (
            3 * (meshes.arrays[0].side[3 * number + k] - meshes.arrays[0].header[mesh].first_edge)
            + 1
        )
    shape.face = 3 * (number - meshes.arrays[0].header[mesh].first_face) + 2
    return shape


@wp.func
def barycentric_of(p: Vec3, q: Vec3, r: Vec3, point: Vec3) -> Vec3:
    """Barycentric coordinates of a point's projection onto the plane of p, q, r; their sum is 1."""
    normal = wp.cross(q - p, r - p)
    square = wp.dot(normal, normal)
    of_q = wp.dot(wp.cross(point - p, r - p), normal) / square
    of_r = wp.dot(wp.cross(q - p, point - p), normal) / square
    return Vec3(Real(1.0) - of_q - of_r, of_q, of_r)


@wp.func
def square_to_segment(p: Vec3, q: Vec3, point: Vec3) -> Real:
    """Squared distance of a point to a segment [m^2]."""
    along = q - p
    t = wp.clamp(wp.dot(point - p, along) / wp.dot(along, along), Real(0.0), Real(1.0))
    return wp.length_sq(point - p - t * along)


@wp.func
def square_to_triangle(p: Vec3, q: Vec3, r: Vec3, normal: Vec3, point: Vec3) -> Real:
    """Squared distance of a point to a triangle with unit normal [m^2]."""
    barycentric = barycentric_of(p, q, r, point)
    if barycentric[0] >= Real(0.0) and barycentric[1] >= Real(0.0) and barycentric[2] >= Real(0.0):
        height = wp.dot(point - p, normal)
        return height * height
    return wp.min(
        square_to_segment(p, q, point),
        wp.min(square_to_segment(q, r, point), square_to_segment(r, p, point)),
    )


@wp.func(inline=False)
def is_nearer_elsewhere(
    meshes: Meshes, mesh: int, point: Vec3, distance: Real, outward: Vec3
) -> bool:
    """Whether a triangle that does not face against `outward` is closer to a point than `distance`
    [m].

    point: in the mesh's frame. outward: unit; the zero vector includes every triangle.
    """
    node = meshes.arrays[0].header[mesh].first_node
    end = meshes.arrays[0].header[mesh].end_node
    square = distance * distance
    while node < end:
        off = point - wp.max(
            meshes.arrays[0].lower[node], wp.min(meshes.arrays[0].upper[node], point)
        )
        if wp.dot(off, off) >= square:
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        if face >= 0 and wp.dot(meshes.arrays[0].face_normal[face], outward) > Real(-0.7):
            p = mesh_corner(meshes, face, 0)
            q = mesh_corner(meshes, face, 1)
            r = mesh_corner(meshes, face, 2)
            if square_to_triangle(p, q, r, meshes.arrays[0].face_normal[face], point) < square:
                return True
        node += 1
    return False


def upload_meshes(meshes: Sequence[TriangleMesh], device: wp.Device) -> Meshes:
    """Device arrays of the meshes."""
    arrays_of: dict[str, list[np.ndarray]] = {
        name: [] for name in struct_of(MeshArrays).vars if name not in (*GRIDS, "header")
    }
    header: list[tuple[int, ...]] = []
    at: dict[str, int] = dict.fromkeys(("vertex", "edge", "face", "node", "across", "around"), 0)
    for mesh in meshes:
        arrays, whole = _arrays(mesh)
        nodes = len(arrays["skip"])
        begins = (at["vertex"], at["edge"], at["face"], at["node"], at["node"] + (whole or nodes))
        winding = (at["node"] + whole, at["node"] + nodes) if mesh.needs_winding else (-1, -1)
        header.append((*begins, int(mesh.has_front), int(mesh.is_closed), *winding))
        shift = {
            "corner": at["vertex"],
            "across": at["vertex"],
            "around": at["vertex"],
            "side": at["edge"],
            "rim": at["across"],
            "ring": at["around"],
            "skip": at["node"],
        }
        for name, values in arrays.items():
            arrays_of[name].append(values + shift[name] if name in shift else values)
        arrays_of["leaf"][-1] = np.where(arrays["leaf"] >= 0, arrays["leaf"] + at["face"], -1)
        for name, grown in (
            ("vertex", len(mesh.vertex)),
            ("edge", mesh.edge_count),
            ("face", len(mesh.face)),
            ("node", nodes),
            ("across", len(arrays["across"])),
            ("around", len(arrays["around"])),
        ):
            at[name] += grown
    arrays_of["rim"].append(np.array([at["across"]]))
    arrays_of["ring"].append(np.array([at["around"]]))
    result = MeshArrays()
    struct = struct_of(MeshHeader)
    records = np.array([*header, (0,) * len(struct.vars)], struct.numpy_dtype())
    result.header = wp.array(records, dtype=MeshHeader, device=device)
    for name, parts in arrays_of.items():
        is_point = name in (
            "point",
            "vertex_normal",
            "edge_normal",
            "face_normal",
            "lower",
            "upper",
        )
        values = np.concatenate(
            [*parts, np.zeros((0, 3) if is_point else 0, np.float64 if is_point else np.int32)]
        )
        setattr(result, name, device_array(values, Vec3 if is_point else wp.int32, device))
    return meshes_of(result, device)


def facet_meshes(model: Model, rows: np.ndarray) -> tuple[list[TriangleMesh], np.ndarray]:
    """The distinct meshes of the triangles of shapes (`facets`), and int32[S], that of each row, -1
    for none. rows: int[n], of the shapes."""
    shapes = model.shapes
    found: list[TriangleMesh] = []
    number: dict[tuple[ShapeType, bytes, int, int], int] = {}
    of_row = np.full(len(shapes), -1, np.int32)
    for row in rows:
        shape_type = ShapeType(shapes.type[row])
        key = (shape_type, shapes.size[row].tobytes(), int(shapes.hull[row]), int(shapes.mesh[row]))
        if key not in number:
            hull = model.hulls[key[2]] if shape_type == ShapeType.CONVEX_MESH else None
            mesh = model.meshes[key[3]] if shape_type == ShapeType.MESH else None
            triangles = facets(shape_type, shapes.size[row], hull, mesh)
            number[key] = -1 if triangles is None else len(found)
            found += [] if triangles is None else [triangles]
        of_row[row] = number[key]
    return found, of_row


def meshes_of(arrays: Any, device: wp.Device) -> Meshes:
    """Meshes with a copy of the struct `arrays`, a `MeshArrays`; later changes of it have no
    effect."""
    result = Meshes()
    result.arrays = by_reference(MeshArrays, [arrays], device)
    return result


def _trees(mesh: TriangleMesh) -> tuple[MeshTree, int]:
    """BVH of the visible triangles, followed by a BVH of all triangles if some are hidden; and the
    start of the second, or 0.
    """
    corners = mesh.vertex[mesh.face]
    size = float(mesh.half_extents.max())
    hidden = mesh.hidden
    every = tree_of_triangles(corners, size)
    if not hidden.any() or hidden.all():
        return every, 0
    seen = tree_of_triangles(corners, size, np.flatnonzero(~hidden))
    first = len(seen.skip)
    both = MeshTree(
        np.concatenate([seen.lower, every.lower]),
        np.concatenate([seen.upper, every.upper]),
        np.concatenate([seen.skip, every.skip + first]),
        np.concatenate([seen.face, every.face]),
    )
    return both, first


def _arrays(mesh: TriangleMesh) -> tuple[dict[str, np.ndarray], int]:
    """Arrays of one mesh except the header, indices from 0; and the start of its second BVH, or
    0."""
    face = mesh.face
    edge = mesh.face_edge
    tree, whole = _trees(mesh)
    flat = face.reshape(-1)
    vertex_normal = np.zeros_like(mesh.vertex)
    edge_normal = np.zeros((mesh.edge_count, 3))
    following = np.roll(face, -1, axis=1).reshape(-1)
    before = np.roll(face, 1, axis=1).reshape(-1)
    u, v = mesh.vertex[following] - mesh.vertex[flat], mesh.vertex[before] - mesh.vertex[flat]
    angle = atan2(norm(np.cross(u, v)), dot(u, v))
    spread = np.repeat(mesh.face_normal, 3, axis=0)
    # The sign of the angle-weighted sum separates inside from outside at a vertex: Baerentzen and
    # Aanaes 2005.
    np.add.at(vertex_normal, flat, angle[:, None] * spread)
    np.add.at(edge_normal, edge.reshape(-1), spread)
    for normal in (vertex_normal, edge_normal):
        normal[norm(normal) < CANCELLED] = 0.0
    by_edge = np.argsort(edge.reshape(-1), kind="stable")
    rim = np.searchsorted(edge.reshape(-1)[by_edge], np.arange(mesh.edge_count))
    ends = np.unique(
        np.stack([np.concatenate([flat, following]), np.concatenate([following, flat])], axis=1),
        axis=0,
    )
    salient = _salient(mesh, by_edge, rim, before)[edge.reshape(-1)]
    on_border = (np.bincount(edge.reshape(-1), minlength=mesh.edge_count) == 1)[edge.reshape(-1)]
    is_salient, is_on_border = np.zeros((2, len(mesh.vertex)), bool)
    for ends_of_side in (flat, following):
        is_salient[ends_of_side[salient]] = True
        is_on_border[ends_of_side[on_border]] = True
    owned = np.zeros((5, len(flat)), bool)
    # Vertices and edges shared by hidden and visible triangles belong to the visible ones.
    order = np.argsort(np.repeat(mesh.hidden, 3), kind="stable")
    owned[0, order[np.unique(flat[order], return_index=True)[1]]] = True
    owned[1, order[np.unique(edge.reshape(-1)[order], return_index=True)[1]]] = True
    owned[2:] = is_salient[flat], salient, is_on_border[flat]
    arrays = {
        "point": mesh.vertex,
        "vertex_normal": vertex_normal,
        "edge_normal": edge_normal,
        "face_normal": mesh.face_normal,
        "corner": flat,
        "side": edge.reshape(-1),
        "owned": (owned.reshape(5, -1, 3) << np.arange(15).reshape(5, 1, 3)).sum(axis=(0, 2)),
        "rim": rim,
        "across": before[by_edge],
        "ring": np.searchsorted(ends[:, 0], np.arange(len(mesh.vertex))),
        "around": ends[:, 1],
        "lower": tree.lower,
        "upper": tree.upper,
        "skip": tree.skip,
        "leaf": tree.face,
    }
    return arrays, whole


def _salient(
    mesh: TriangleMesh, by_edge: np.ndarray, rim: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """bool[E]: edges that are convex on the front, or on either side without a front; and all
    without exactly two triangles.

    by_edge: sides sorted by edge. rim: start of each edge's sides. before: vertex opposite each
    side.
    """
    counts = np.diff(np.append(rim, len(by_edge)))
    salient = counts != 2
    pair = np.flatnonzero(~salient)
    first = by_edge[rim[pair]]
    second = by_edge[rim[pair] + 1]
    flat = mesh.face.reshape(-1)
    start = mesh.vertex[flat[second]]
    end = mesh.vertex[np.roll(mesh.face, -1, axis=1).reshape(-1)[second]]
    along = (end - start) / norm(end - start)[:, None]
    inward = mesh.vertex[before[second]] - start
    inward -= dot(inward, along)[:, None] * along
    rise = dot(mesh.face_normal[first // 3], inward) / norm(inward)
    folded_back = dot(mesh.face_normal[first // 3], mesh.face_normal[second // 3]) < -0.9
    same_direction = flat[first] == flat[second]
    salient[pair] = (rise < -SALIENT) | same_direction | folded_back
    if not mesh.has_front:
        salient[pair] |= rise > SALIENT
    return salient


# Closest point of a mesh to a point, inside test, and segment-triangle intersection.

EDGE_PART = wp.constant(3)
FACE_PART = wp.constant(6)
MAX_TREE_NODES = 40
"""Boxes that wait while a tree is descended: one a level, and a tree of 2^31 boxes has 32."""


@wp.struct
class MeshPoint:
    """A point of a mesh's surface. face: index of its triangle, counted through all meshes, -1 for
    none.

    part: feature of the triangle that contains the point: 0 to 2 corner, EDGE_PART + k side k,
    FACE_PART interior. square: squared distance to the query point [m^2].
    """

    point: Vec3
    face: int
    part: int
    square: Real


@wp.func
def mesh_corner(meshes: Meshes, face: int, k: int) -> Vec3:
    """Corner k of a triangle; 3 and 4 are 0 and 1."""
    return meshes.arrays[0].point[meshes.arrays[0].corner[3 * face + k % 3]]


@wp.func
def nearest_triangle_point(p: Vec3, q: Vec3, r: Vec3, normal: Vec3, point: Vec3) -> MeshPoint:
    """Closest point of triangle p, q, r with unit normal to a point; `face` is not set.

    Source: Ericson 2005, 5.1.5.
    """
    nearest = MeshPoint()
    pq = q - p
    pr = r - p
    off = point - p
    d1 = wp.dot(pq, off)
    d2 = wp.dot(pr, off)
    off = point - q
    d3 = wp.dot(pq, off)
    d4 = wp.dot(pr, off)
    off = point - r
    d5 = wp.dot(pq, off)
    d6 = wp.dot(pr, off)
    of_r = d1 * d4 - d3 * d2
    of_q = d5 * d2 - d1 * d6
    of_p = d3 * d6 - d5 * d4
    zero = Real(0.0)
    if d1 <= zero and d2 <= zero:
        nearest.part = 0
        nearest.point = p
    elif d3 >= zero and d4 <= d3:
        nearest.part = 1
        nearest.point = q
    elif d6 >= zero and d5 <= d6:
        nearest.part = 2
        nearest.point = r
    elif of_r <= zero and d1 >= zero and d3 <= zero:
        nearest.part = EDGE_PART
        nearest.point = p + (d1 / (d1 - d3)) * pq
    elif of_q <= zero and d2 >= zero and d6 <= zero:
        nearest.part = EDGE_PART + 2
        nearest.point = p + (d2 / (d2 - d6)) * pr
    elif of_p <= zero and d4 - d3 >= zero and d5 - d6 >= zero:
        nearest.part = EDGE_PART + 1
        nearest.point = q + ((d4 - d3) / ((d4 - d3) + (d5 - d6))) * (r - q)
    else:
        nearest.part = FACE_PART
        nearest.point = point - wp.dot(point - p, normal) * normal
    nearest.square = wp.length_sq(point - nearest.point)
    return nearest


@wp.func(inline=False)
def mesh_point_on_triangle(meshes: Meshes, face: int, point: Vec3) -> MeshPoint:
    """Closest point of one triangle of a mesh to a point."""
    p = mesh_corner(meshes, face, 0)
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    nearest = nearest_triangle_point(p, q, r, meshes.arrays[0].face_normal[face], point)
    nearest.face = face
    return nearest


@wp.func
def square_to_box(meshes: Meshes, node: int, point: Vec3) -> Real:
    """Squared distance of a point to a box of the BVH, 0 inside [m^2]."""
    off = point - wp.max(meshes.arrays[0].lower[node], wp.min(meshes.arrays[0].upper[node], point))
    return wp.dot(off, off)


@wp.func(inline=False)
def nearest_mesh_point_within(meshes: Meshes, mesh: int, point: Vec3, square: Real) -> MeshPoint:
    """Closest point of a mesh closer than the square root of `square` [m^2], face -1 for none.

    Depth-first traversal of the BVH, closer child first. If such a point exists, it is that of
    `nearest_mesh_point`.
    """
    stack = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=int)
    stack_square = wp.zeros(shape=wp.static(MAX_TREE_NODES), dtype=Real)
    best = MeshPoint()
    best.face = -1
    best.square = square
    count = int(0)
    node = meshes.arrays[0].header[mesh].first_node
    while node >= 0:
        following = int(-1)
        face = meshes.arrays[0].leaf[node]
        if face >= 0:
            nearest = mesh_point_on_triangle(meshes, face, point)
            if nearest.square < best.square:
                best = nearest
        else:
            near = node + 1
            far = meshes.arrays[0].skip[near]
            square_near = square_to_box(meshes, near, point)
            square_far = square_to_box(meshes, far, point)
            if square_far < square_near:
                near = far
                far = node + 1
                swap = square_near
                square_near = square_far
                square_far = swap
            if square_far < best.square:
                stack[count] = far
                stack_square[count] = square_far
                count += 1
            if square_near < best.square:
                following = near
        while following < 0 and count > 0:
            count -= 1
            if stack_square[count] < best.square:
                following = stack[count]
        node = following
    return best


@wp.func
def nearest_mesh_point(meshes: Meshes, mesh: int, point: Vec3) -> MeshPoint:
    """Closest point of a mesh to a point in the mesh's frame; of equally close ones the first in
    traversal order."""
    return nearest_mesh_point_within(meshes, mesh, point, Real(wp.inf))


@wp.func
def outward_at(meshes: Meshes, face: int, part: int) -> Vec3:
    """Angle-weighted pseudonormal of a feature, not unit: its sign separates outside from inside.

    Source: Baerentzen and Aanaes 2005.
    """
    if part == FACE_PART:
        return meshes.arrays[0].face_normal[face]
    if part >= EDGE_PART:
        return meshes.arrays[0].edge_normal[meshes.arrays[0].side[3 * face + part - EDGE_PART]]
    return meshes.arrays[0].vertex_normal[meshes.arrays[0].corner[3 * face + part]]


@wp.func
def edge_crossing(low: Vec3, high: Vec3, point: Vec3, forward: bool) -> int:
    """1 if an edge crosses a line along x through a point, at larger y, upwards in z; -1 if
    downwards; else 0.

    low, high: ends ordered by vertex index, so that both adjacent triangles round identically.
    forward: from low to high.
    """
    low_above = low[2] >= point[2]
    high_above = high[2] >= point[2]
    if low_above == high_above:
        return 0
    area = (low[1] - point[1]) * (high[2] - point[2]) - (low[2] - point[2]) * (high[1] - point[1])
    return 0 if (area > Real(0.0)) != high_above else wp.where(forward == high_above, 1, -1)


@wp.func
def triangle_crossing(meshes: Meshes, face: int, point: Vec3) -> int:
    """1 if a line along +x through a point crosses a triangle from back to front, -1 from front to
    back, else 0.

    The contributions of a shared edge cancel between its triangles: a line through an edge or
    vertex is counted once.
    """
    crossing = int(0)
    for k in range(3):
        first = meshes.arrays[0].corner[3 * face + k]
        second = meshes.arrays[0].corner[3 * face + (k + 1) % 3]
        low = meshes.arrays[0].point[wp.min(first, second)]
        high = meshes.arrays[0].point[wp.max(first, second)]
        crossing += edge_crossing(low, high, point, first < second)
    return crossing


@wp.func(inline=False)
def winding_number(meshes: Meshes, mesh: int, point: Vec3) -> int:
    """Winding number of a mesh around a point, for meshes with `TriangleMesh.needs_winding`.

    Exact except within rounding of the surface. Source: see `scene.mesh_crossings.winding_at`.
    """
    node = meshes.arrays[0].header[mesh].first_winding_node
    stop = meshes.arrays[0].header[mesh].end_winding_node
    number = int(0)
    while node < stop:
        lower = meshes.arrays[0].lower[node]
        upper = meshes.arrays[0].upper[node]
        apart = upper[0] < point[0]
        for axis in range(1, 3):
            apart = apart or lower[axis] > point[axis] or upper[axis] < point[axis]
        if apart:
            node = meshes.arrays[0].skip[node]
            continue
        face = meshes.arrays[0].leaf[node]
        if face >= 0:
            crossing = triangle_crossing(meshes, face, point)
            if crossing != 0:
                p = mesh_corner(meshes, face, 0)
                q = mesh_corner(meshes, face, 1)
                r = mesh_corner(meshes, face, 2)
                height = wp.dot(point - p, wp.cross(q - p, r - p)) * Real(crossing)
                if point[0] < wp.min(p[0], wp.min(q[0], r[0])) or height < Real(0.0):
                    number += crossing
        node += 1
    return number


@wp.func
def is_behind_mesh(meshes: Meshes, mesh: int, point: Vec3, off: Vec3, outward: Vec3) -> bool:
    """Whether a point is inside a mesh, or behind an open mesh that has a front.

    By the winding number where the surface crosses itself, else by the pseudonormal of the closest
    feature. off: from the closest point of the surface to the point. outward: pseudonormal there,
    see `outward_at`.
    """
    if meshes.arrays[0].header[mesh].first_winding_node >= 0:
        return winding_number(meshes, mesh, point) != 0
    return wp.dot(off, outward) < Real(0.0)


@wp.func
def is_inside_mesh(meshes: Meshes, mesh: int, point: Vec3, nearest: MeshPoint) -> bool:
    """`is_behind_mesh` for a point with its closest point of the whole surface."""
    outward = outward_at(meshes, nearest.face, nearest.part)
    return is_behind_mesh(meshes, mesh, point, point - nearest.point, outward)


@wp.func
def feature_of_mesh_point(meshes: Meshes, mesh: int, face: int, part: int) -> int:
    """Feature number: 3 v of a vertex, 3 e + 1 of an edge, 3 f + 2 of a triangle, numbered within
    the mesh."""
    if part == FACE_PART:
        return 3 * (face - meshes.arrays[0].header[mesh].first_face) + 2
    if part >= EDGE_PART:
        return (
            3
            * (
                meshes.arrays[0].side[3 * face + part - EDGE_PART]
                - meshes.arrays[0].header[mesh].first_edge
            )
            + 1
        )
    return 3 * (
        meshes.arrays[0].corner[3 * face + part] - meshes.arrays[0].header[mesh].first_vertex
    )


@wp.func
def segment_crosses_triangle(meshes: Meshes, face: int, start: Vec3, end: Vec3) -> bool:
    """Whether a segment crosses a triangle, see `line_crosses_triangle`."""
    p = mesh_corner(meshes, face, 0)
    normal = meshes.arrays[0].face_normal[face]
    if (wp.dot(start - p, normal) >= Real(0.0)) == (wp.dot(end - p, normal) >= Real(0.0)):
        return False
    q = mesh_corner(meshes, face, 1)
    r = mesh_corner(meshes, face, 2)
    return line_crosses_triangle(start, end - start, p, q, r)


RISE = wp.constant(Real(1.0e-5))
"""Sine of the angle by which a triangle may rise along a direction in its normal cone: GJK's
directions are good to 1e-6."""


@wp.struct
class NormalCone:
    """The normal cone of a surface feature, for one direction: along none of its directions does a
    triangle rise.

    The feature is the closest one of its neighbourhood to points in these directions. A triangle's
    cone is its normal; that of an edge has the directions between the normals of its triangles
    where the surface is convex, and is empty where it is concave or flat, so that an edge between
    coplanar triangles bends no normal; that of a border edge has all directions off the triangle.
    belongs: 1 where the direction is in the cone. outward: a vector on the surface's outer side
    there, not unit.
    """

    belongs: int
    outward: Vec3


@wp.func
def rises(direction: Vec3, along: Vec3, rise: Real) -> bool:
    """Whether a vector rises along a unit direction by an angle whose sine is more than `rise`."""
    return wp.dot(direction, along) > rise * wp.length(along)


@wp.func
def rises_across(direction: Vec3, along: Vec3, inward: Vec3, rise: Real) -> bool:
    """Whether a face rises along a direction from its edge, which is parallel to unit vector
    `along`."""
    return rises(direction, inward - wp.dot(inward, along) * along, rise)


@wp.func
def mesh_edge_cone_contains(meshes: Meshes, face: int, k: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of the interior of side k of a triangle."""
    start = mesh_corner(meshes, face, k)
    along = wp.normalize(mesh_corner(meshes, face, k + 1) - start)
    edge = meshes.arrays[0].side[3 * face + k]
    at = meshes.arrays[0].rim[edge]
    end = meshes.arrays[0].rim[edge + 1]
    contains = bool(True)
    while at < end:
        if rises_across(
            direction, along, meshes.arrays[0].point[meshes.arrays[0].across[at]] - start, rise
        ):
            contains = False
        at += 1
    return contains


@wp.func
def mesh_vertex_cone_contains(meshes: Meshes, vertex: int, direction: Vec3, rise: Real) -> bool:
    """Whether a unit direction is in the normal cone of a vertex."""
    at = meshes.arrays[0].ring[vertex]
    end = meshes.arrays[0].ring[vertex + 1]
    contains = bool(True)
    while at < end:
        along = meshes.arrays[0].point[meshes.arrays[0].around[at]] - meshes.arrays[0].point[vertex]
        if rises(direction, along, rise):
            contains = False
        at += 1
    return contains
