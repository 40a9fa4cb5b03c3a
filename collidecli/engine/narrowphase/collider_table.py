"""Table of the pairs of kinds of shapes: the collider of each pair, and the method it applies.

Imports no Warp. A kind is the label of a shape type, `CONVEX_SURFACE` or `FIELD`. Colliders are
named by module and function below this package, and `collider_factory` imports them on use.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations_with_replacement

from collidecli.scene.shape_types import ShapeType

CONVEX_SURFACE = "convex_surface"
"""Kind of a triangle mesh that is the whole surface of a convex solid."""
FIELD = "field"
"""Kind of a shape of any type that has a signed distance field."""
KINDS = (*(kind.label for kind in ShapeType), CONVEX_SURFACE, FIELD)
"""All kinds, in the order of the two kinds of a pair."""
CONVEX = "convex"
"""Key of a row or an entry of all convex kinds: the types with a support function, but the plane.
An entry of one kind has precedence over it."""
CONVEX_KINDS = tuple(
    kind.label for kind in ShapeType if ShapeType.PLANE < kind <= ShapeType.CONVEX_MESH
)
METHODS = ("gjk", "mpr", "touch")
"""Methods of narrow phases; "touch" finds whether there is a contact."""


@dataclass(frozen=True)
class Route:
    """How the contacts of a pair are computed.

    kind: what `collider_factory` makes a collider of. "closed form": a function of both sizes and
    the relative pose; "lowest point": a function of the plane and the other shape; "convex": one of
    two shapes with support functions; "triangles", "field": a collider with sub-pairs, or a
    function that returns one by the first type; "own surface": the route of the shapes without
    their fields; "none": a pair that has no contacts. method: in words. collider: of method "gjk".
    contacts: the most of a pair; None without a limit. mpr, touch: as `collider`, of these methods;
    empty if they have no other. features: kernel that remaps the features of hulls to those of
    meshes.
    """

    kind: str
    method: str
    collider: str
    contacts: int | None = None
    mpr: str = ""
    touch: str = ""
    features: str = ""

    def of(self, method: str) -> str:
        """The name of the collider of a method of METHODS."""
        return {"gjk": "", "mpr": self.mpr, "touch": self.touch}[method] or self.collider


def _closed_form(collider: str, contacts: int) -> Route:
    return Route("closed form", "closed form", collider, contacts)


NO_CONTACT = Route("none", "no contact", "", 0)
OWN_SURFACE = Route("own surface", "as without the field", "")
LOWEST_POINT = Route(
    "lowest point", "lowest point", "closed_forms.planes.collide_plane_primitive", 1
)
LOWEST_FACE = Route("lowest point", "vertices", "closed_forms.planes.collide_plane_convex_mesh", 7)
GJK = Route(
    "convex",
    "GJK, EPA",
    "convex.convex_convex.collide_convex_convex",
    13,
    mpr="convex.convex_convex.collide_convex_convex_by_mpr",
    touch="convex.convex_convex.touch_convex_convex",
)
GJK_ON_SURFACE = Route(
    "convex",
    "GJK, EPA",
    "convex.convex_convex.collide_convex_convex",
    13,
    touch="convex.convex_convex.touch_convex_convex",
    features="convex.mesh_features.name_features",
)
PLANE_ON_MESH = Route(
    "triangles",
    "vertices",
    "triangles.convex_colliders.on_mesh",
    touch="triangles.convex_colliders.touches_mesh",
)
PLANE_ON_HEIGHTFIELD = Route(
    "triangles",
    "vertices",
    "triangles.heightfield_colliders.collider_for",
    touch="triangles.heightfield_colliders.touches_heightfield",
)
ON_MESH = Route(
    "triangles",
    "tree",
    "triangles.convex_colliders.on_mesh",
    touch="triangles.convex_colliders.touches_mesh",
)
ON_HEIGHTFIELD = Route(
    "triangles",
    "cells",
    "triangles.convex_colliders.on_heightfield",
    touch="triangles.convex_colliders.touches_heightfield",
)
MESHES = Route(
    "triangles",
    "trees of both",
    "triangles.mesh_mesh.COLLIDER",
    touch="triangles.heightfield_colliders.touches_mesh",
)
HEIGHTFIELDS = Route(
    "triangles",
    "trees of both",
    "triangles.heightfield_colliders.collider_for",
    touch="triangles.heightfield_colliders.touches_heightfield",
)
MESH_ON_HEIGHTFIELD = Route(
    "triangles", "cells and tree", "triangles.heightfield_colliders.COLLIDER"
)
SDF = Route("field", "SDF", "field_collider.COLLIDER")

TABLE = {
    "plane": {
        "plane": NO_CONTACT,
        "sphere": _closed_form("closed_forms.planes.collide_plane_sphere", 1),
        "capsule": _closed_form("closed_forms.planes.collide_plane_capsule", 2),
        "box": _closed_form("closed_forms.planes.collide_plane_box", 8),
        "cylinder": _closed_form("closed_forms.planes.collide_plane_cylinder", 5),
        "cone": _closed_form("closed_forms.planes.collide_plane_cone", 6),
        "ellipsoid": _closed_form("closed_forms.planes.collide_plane_ellipsoid", 1),
        CONVEX: LOWEST_POINT,
        "convex_mesh": LOWEST_FACE,
        "mesh": PLANE_ON_MESH,
        "heightfield": PLANE_ON_HEIGHTFIELD,
        CONVEX_SURFACE: PLANE_ON_MESH,
        FIELD: OWN_SURFACE,
    },
    "sphere": {
        "sphere": _closed_form("closed_forms.spheres.collide_sphere_sphere", 1),
        "capsule": _closed_form("closed_forms.spheres.collide_sphere_capsule", 1),
        "box": _closed_form("closed_forms.spheres.collide_sphere_box", 1),
        "cylinder": _closed_form("closed_forms.spheres.collide_sphere_cylinder", 1),
        "cone": _closed_form("closed_forms.spheres.collide_sphere_cone", 1),
        "ellipsoid": _closed_form("closed_forms.spheres.collide_sphere_ellipsoid", 1),
    },
    "capsule": {
        "capsule": _closed_form("closed_forms.capsules.collide_capsule_capsule", 2),
        "box": _closed_form("closed_forms.capsules.collide_capsule_box", 2),
    },
    "box": {"box": _closed_form("closed_forms.boxes.collide_box_box", 9)},
    CONVEX: {
        CONVEX: GJK,
        "mesh": ON_MESH,
        "heightfield": ON_HEIGHTFIELD,
        CONVEX_SURFACE: GJK_ON_SURFACE,
        FIELD: SDF,
    },
    "mesh": {
        "mesh": MESHES,
        "heightfield": MESH_ON_HEIGHTFIELD,
        CONVEX_SURFACE: MESHES,
        FIELD: SDF,
    },
    "heightfield": {
        "heightfield": HEIGHTFIELDS,
        CONVEX_SURFACE: MESH_ON_HEIGHTFIELD,
        FIELD: OWN_SURFACE,
    },
    CONVEX_SURFACE: {CONVEX_SURFACE: GJK_ON_SURFACE, FIELD: SDF},
    FIELD: {FIELD: SDF},
}
"""Routes by the first and the second kind of a pair."""


def _keys(kind: str) -> tuple[str, ...]:
    return (kind, CONVEX) if kind in CONVEX_KINDS else (kind,)


def _route(first: str, second: str) -> Route:
    rows = [TABLE[key] for key in _keys(first) if key in TABLE]
    return next(row[key] for row in rows for key in _keys(second) if key in row)


ROUTES = {pair: _route(*pair) for pair in combinations_with_replacement(KINDS, 2)}
"""TABLE by every pair of kinds, in the order of KINDS."""


def ordered(kind_a: str, kind_b: str) -> tuple[str, str]:
    """A pair of kinds in the order of KINDS."""
    first, second = sorted((kind_a, kind_b), key=KINDS.index)
    return first, second


def closed_forms() -> dict[tuple[str, str], Route]:
    """Routes of the pairs with a closed form."""
    return {pair: route for pair, route in ROUTES.items() if route.kind == "closed form"}
