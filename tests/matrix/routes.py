"""Which collider of the engine computes each cell."""

from __future__ import annotations

from collidecli.engine.narrowphase import dispatch
from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import Form
from tests.matrix.measure import field_voxel

NEVER = "no contact"
"""Of two planes, which are infinite."""


def route(first: Form, second: Form) -> str:
    """What the engine goes by, in a word or two."""
    if first.type == second.type == ShapeType.PLANE:
        return NEVER
    if field_voxel((first, second)) is not None:
        return "SDF"
    collider = dispatch.collider(*sorted((first.type, second.type)), "gjk")
    kind = collider.sub_pair_kernels.name if collider.sub_pair_kernels else ""
    if kind == "heightfield":
        return "cells"
    if kind == "mesh_heightfield":
        return "cells and tree"
    if kind in ("meshes", "heightfields"):
        return "trees of both"
    of_vertices = (ShapeType.CONVEX_MESH, ShapeType.MESH, ShapeType.HEIGHTFIELD)
    if first.type == ShapeType.PLANE and second.type in of_vertices:
        return "vertices"
    if kind == "mesh":
        return "tree"
    return "closed form" if (first.type.label, second.type.label) in dispatch.CLOSED_FORM else "GJK, EPA"
