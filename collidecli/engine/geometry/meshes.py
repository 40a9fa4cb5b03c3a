"""Triangle meshes on the device: all meshes in a few arrays, triangles as convex shapes, and
point-triangle distances.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import by_reference, device_array
from collidecli.engine.geometry.mesh_tree import MeshTree, tree_of_triangles
from collidecli.engine.geometry.real import MESH, Real, Vec3
from collidecli.engine.runtime.warp_internals import struct_of
from collidecli.numerics.products import dot, norm
from collidecli.numerics.trigonometry import atan2
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model
from collidecli.scene.sdf_options import facets
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh

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
    ends = distinct(
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


@wp.func
def mesh_corner(meshes: Meshes, face: int, k: int) -> Vec3:
    """Corner k of a triangle; 3 and 4 are 0 and 1."""
    return meshes.arrays[0].point[meshes.arrays[0].corner[3 * face + k % 3]]
