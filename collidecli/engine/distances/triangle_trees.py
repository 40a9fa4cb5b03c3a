"""Triangles of meshes and heightfields with a BVH each, for searches of least distances."""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.geometry.mesh_tree import WIDENING, split_tree
from collidecli.engine.geometry.meshes import TriangleShape
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.shape_codes import MESH
from collidecli.scene.heightfield_mesh import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh

STACK = 80
"""Boxes, or pairs of boxes, that wait while one tree or two are descended: one a level of each, and a tree of 2^31
triangles has 32 levels."""


@wp.struct
class TriangleTrees:
    """The triangles of several surfaces, and a BVH of each in depth-first order.

    lower, upper, skip, leaf: see `MeshTree`; skip and leaf count through all surfaces. corner: three points a triangle,
    in the shape's frame [m]. first_node: of each surface. surface: of each shape row, -1 for none.
    """

    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    skip: wp.array[int]
    leaf: wp.array[int]
    corner: wp.array[Vec3]
    first_node: wp.array[int]
    surface: wp.array[int]


@wp.func
def first_node_of(trees: TriangleTrees, row: int) -> int:
    """Root of the tree of a shape row that has a surface."""
    return trees.first_node[trees.surface[row]]


@wp.func
def tree_triangle(trees: TriangleTrees, number: int) -> TriangleShape:
    """Triangle `number` as a convex shape, without features."""
    shape = TriangleShape()
    shape.type = MESH
    shape.number = number
    shape.p = trees.corner[3 * number]
    shape.q = trees.corner[3 * number + 1]
    shape.r = trees.corner[3 * number + 2]
    shape.size = Real(0.5) * (wp.max(shape.p, wp.max(shape.q, shape.r)) - wp.min(shape.p, wp.min(shape.q, shape.r)))
    return shape


@wp.func
def box_middle(trees: TriangleTrees, node: int) -> Vec3:
    """Centre of a box."""
    return Real(0.5) * (trees.lower[node] + trees.upper[node])


@wp.func
def box_half(trees: TriangleTrees, node: int) -> Vec3:
    """Half extents of a box."""
    return Real(0.5) * (trees.upper[node] - trees.lower[node])


def mesh_corners(mesh: TriangleMesh) -> np.ndarray:
    """float64[F, 3, 3]: corners of the triangles that bound the solid."""
    seen = ~mesh.hidden
    return mesh.vertex[mesh.face[seen] if seen.any() else mesh.face]


def _boxes(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper corners, skip and triangle of each node of the tree of some triangles, see `MeshTree`."""
    low, high = corners.min(axis=1), corners.max(axis=1)
    skip, face, inner = split_tree(0.5 * (low + high), np.arange(len(low)))
    lower, upper = np.zeros((len(skip), 3)), np.zeros((len(skip), 3))
    leaves = face >= 0
    lower[leaves], upper[leaves] = low[face[leaves]], high[face[leaves]]
    for parent, right in reversed(inner):
        lower[parent] = np.minimum(lower[parent + 1], lower[right])
        upper[parent] = np.maximum(upper[parent + 1], upper[right])
    grown = WIDENING * float(np.abs(corners).max())
    return lower - grown, upper + grown, skip, face


def upload_trees(model: Model, device: wp.Device) -> TriangleTrees:
    """The trees of all meshes and heightfields of a model."""
    shapes = model.shapes
    parts: list[np.ndarray] = [mesh_corners(mesh) for mesh in model.meshes]
    parts += [mesh_corners(solid_mesh(field)) for field in model.heightfields]
    trees = [_boxes(part) for part in parts]
    nodes = np.cumsum([0, *(len(tree[2]) for tree in trees)])
    faces = np.cumsum([0, *(len(part) for part in parts)])
    surface = np.where(shapes.type == ShapeType.MESH, shapes.mesh, -1)
    is_field = shapes.type == ShapeType.HEIGHTFIELD
    surface[is_field] = len(model.meshes) + shapes.heightfield[is_field]
    result = TriangleTrees()
    result.corner = wp.array(_filled([p.reshape(-1, 3) for p in parts]), dtype=Vec3, device=device)
    for name, index in (("lower", 0), ("upper", 1)):
        setattr(result, name, wp.array(_filled([tree[index] for tree in trees]), dtype=Vec3, device=device))
    skip = [tree[2] + nodes[k] for k, tree in enumerate(trees)]
    leaf = [np.where(tree[3] >= 0, tree[3] + faces[k], -1) for k, tree in enumerate(trees)]
    for name, values in (("skip", skip), ("leaf", leaf), ("first_node", [nodes[:-1]]), ("surface", [surface])):
        whole = np.concatenate([*values, [0]]).astype(np.int32)
        setattr(result, name, wp.array(whole, dtype=wp.int32, device=device))
    return result


def _filled(points: list[np.ndarray]) -> np.ndarray:
    # Warp kernels take no array of length zero, so one unused element is appended.
    return np.ascontiguousarray(np.concatenate([*points, np.zeros((1, 3))]))
