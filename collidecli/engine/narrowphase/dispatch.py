"""Selection of the collider of a pair of shape types, and its kernel."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cache

import numpy as np
import warp as wp

from collidecli.engine.candidates import hull_of, primitive_of
from collidecli.engine.device_model import CONVEX_SURFACE, KIND_COUNT, KINDS_WITH_FIELD, type_of_kind
from collidecli.engine.narrowphase.collider import Collider, ColliderTable, closed_form_kernel, convex_kernel
from collidecli.scene.shape_types import ShapeType

CLOSED_FORM = {
    "plane": {"sphere": 1, "capsule": 2, "box": 8, "cylinder": 5, "cone": 5, "ellipsoid": 1},
    "sphere": {"sphere": 1, "capsule": 1, "box": 1, "cylinder": 1, "cone": 1, "ellipsoid": 1},
    "capsule": {"capsule": 2, "box": 2},
    "box": {"box": 9},
}
"""Maximum number of contacts of the pairs with a closed-form collider `collide_<a>_<b>`, which is in the module
`primitive.<a>_<b>` for box_box, else in `primitive.closed_form`. Every other convex pair uses GJK with EPA or MPR."""

SUB_PAIR_COLLIDERS = {
    "mesh": "triangles.convex_colliders.on_mesh",
    "meshes": "triangles.mesh_mesh.COLLIDER",
    "heightfield": "triangles.convex_colliders.on_heightfield",
    "heightfield_mesh": "triangles.heightfield_solid.COLLIDER",
    "heightfield_solid": "triangles.heightfield_solid.collider_for",
    "sdf": "signed_distance.COLLIDER",
}
"""Colliders of pairs with sub-pairs, see `sub_pairs`, or functions that return them by the type of a."""

TOUCH_COLLIDERS = {
    "mesh": "triangles.convex_colliders.touches_mesh",
    "meshes": "triangles.heightfield_solid.touches_mesh",
    "heightfield": "triangles.convex_colliders.touches_heightfield",
    "heightfield_solid": "triangles.heightfield_solid.touches_heightfield",
}
"""Of method "touch": functions that return the colliders of sub-pairs."""

METHODS = {"gjk": "collide_convex_convex", "mpr": "collide_convex_convex_by_mpr", "touch": "touch_convex_convex"}
"""Collision function of two convex shapes by method; "touch" finds whether there is a contact."""


def sub_pair_kind(type_a: ShapeType, type_b: ShapeType, has_field: bool) -> str:
    """Key of SUB_PAIR_COLLIDERS for a pair of types, type_a <= type_b; "" for none. has_field: whether either has an
    SDF.
    """
    # Planes and heightfields collide with the surface itself, not with its field.
    if has_field and type_a != ShapeType.PLANE and type_b != ShapeType.HEIGHTFIELD:
        return "sdf"
    if type_b == ShapeType.HEIGHTFIELD:
        if type_a in (ShapeType.PLANE, ShapeType.HEIGHTFIELD):
            return "heightfield_solid"
        return "heightfield_mesh" if type_a == ShapeType.MESH else "heightfield"
    if type_b == ShapeType.MESH:
        return "meshes" if type_a == ShapeType.MESH else "mesh"
    return ""


@cache
def collider(type_a: ShapeType, type_b: ShapeType, method: str, has_field: bool = False) -> Collider:
    """Collider of a pair of types, type_a <= type_b. method: of METHODS. has_field: as in `sub_pair_kind`."""
    kind = sub_pair_kind(type_a, type_b, has_field)
    if kind:
        colliders = SUB_PAIR_COLLIDERS | (TOUCH_COLLIDERS if method == "touch" else {})
        module, name = colliders[kind].rsplit(".", 1)
        found = getattr(importlib.import_module(f"collidecli.engine.narrowphase.{module}"), name)
        return found if isinstance(found, Collider) else found(type_a)
    name = f"{type_a.label}_{type_b.label}"
    if most := CLOSED_FORM.get(type_a.label, {}).get(type_b.label):
        module = name if name == "box_box" else "closed_form"
        functions = importlib.import_module(f"collidecli.engine.narrowphase.primitive.{module}")
        return Collider(name, most, closed_form_kernel(getattr(functions, f"collide_{name}")), by_pairs=True)
    is_hull = tuple(kind == ShapeType.CONVEX_MESH for kind in (type_a, type_b))
    return plane_collider(is_hull[1]) if type_a == ShapeType.PLANE else _convex_collider(method, *is_hull)


@cache
def plane_collider(is_hull: bool) -> Collider:
    """Collider of a plane and hulls, or the primitives without a closed form, which have one contact."""
    from collidecli.engine.narrowphase.primitive import closed_form

    if is_hull:
        kernel = convex_kernel(closed_form.collide_plane_convex_mesh, primitive_of, hull_of)
        return Collider("plane_convex_mesh", closed_form.MAX_CONTACTS, kernel)
    return Collider("plane_convex", 1, convex_kernel(closed_form.collide_plane_primitive, primitive_of, primitive_of))


@cache
def _convex_collider(method: str, a_is_hull: bool, b_is_hull: bool) -> Collider:
    """General convex collider; one for each combination of hulls, so that scenes without hulls do not compile them."""
    from collidecli.engine.narrowphase.convex import manifold

    kinds = [hull_of if is_hull else primitive_of for is_hull in (a_is_hull, b_is_hull)]
    kernel = convex_kernel(getattr(manifold, METHODS[method]), *kinds)
    name = "_".join("hull" if is_hull else "convex" for is_hull in (a_is_hull, b_is_hull))
    return Collider(f"{name}_{method}", manifold.MAX_CONTACTS, kernel, may_be_inexact=True)


@cache
def _convex_mesh_collider(type_a: ShapeType, method: str) -> Collider:
    """Collider of a convex shape and a convex mesh, which is collided as a hull. method: "touch", or another."""
    from collidecli.engine.narrowphase.convex.manifold import name_features

    a_is_hull = type_a >= ShapeType.CONVEX_MESH
    if method == "touch":
        return _convex_collider(method, a_is_hull, True)
    collider = _convex_collider("gjk", a_is_hull, True)
    return replace(collider, name=f"{collider.name}_surface", feature_remapping=name_features)


def collider_of_kinds(kind_a: int, kind_b: int, method: str) -> Collider:
    """Collider of a pair of kinds (see `ShapeRows`) in any order. method: of METHODS."""
    low, high = sorted((kind_a, kind_b))
    type_a, type_b = sorted(type_of_kind(kind) for kind in (low, high))
    has_field = any(KINDS_WITH_FIELD <= kind < CONVEX_SURFACE for kind in (low, high))
    is_against_triangles = low in (ShapeType.PLANE, ShapeType.MESH, ShapeType.HEIGHTFIELD)
    if high == CONVEX_SURFACE and not is_against_triangles and not has_field:
        return _convex_mesh_collider(type_a, method)
    return collider(type_a, type_b, method, has_field)


def needed_colliders(kind_pairs: set[tuple[int, int]], method: str, device: wp.Device) -> ColliderTable:
    """Colliders of pairs of kinds (see `ShapeRows`) in any order. method: of METHODS."""
    colliders: list[Collider] = []
    table = np.zeros((KIND_COUNT, KIND_COUNT), np.int32)
    for low, high in sorted({(min(p), max(p)) for p in kind_pairs}):
        of_pair = collider_of_kinds(low, high, method)
        if of_pair not in colliders:
            colliders.append(of_pair)
        table[low, high] = table[high, low] = colliders.index(of_pair)
    return ColliderTable(tuple(colliders), wp.array(table.ravel(), dtype=wp.int32, device=device), KIND_COUNT)
