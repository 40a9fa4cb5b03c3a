"""Which collider of the engine computes each cell, or the message that refuses it."""

from __future__ import annotations

import numpy as np

import collidecli
from collidecli.engine.narrowphase import dispatch
from collidecli.scene.shape_types import ShapeType
from tests.matrix.forms import CELLS, Form
from tests.matrix.measure import field_voxel
from tests.matrix.runs import Cell, model_of

NEVER = "no contact"
"""Of two planes, which are infinite."""
FAR = 1e3


def refusals() -> dict[Cell, str]:
    """The words of each refusal, asked of the engine by a scene of the two alone, far from each other.

    Only of pairs without a convex solid: were others refused, nothing of them could be measured.
    """
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, 1, 2] = FAR
    refused = {}
    for cell in CELLS:
        if any(form.is_convex and form.type != ShapeType.PLANE for form in cell):
            continue
        try:
            collidecli.collide(model_of([cell], 1.0, 0.1), body_q, device="cpu", cache_limit=0)
        except collidecli.InputError as error:
            refused[cell] = error.what
    return refused


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
    if kind == "meshes":
        return "trees of both"
    if first.type == ShapeType.PLANE and second.type in (ShapeType.CONVEX_MESH, ShapeType.MESH):
        return "vertices"
    if kind == "mesh":
        return "tree"
    return "closed form" if (first.type.label, second.type.label) in dispatch.CLOSED_FORM else "GJK, EPA"
