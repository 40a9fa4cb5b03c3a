"""The table of routes: it is whole, names what there is, and agrees with the colliders made of it,
the page and `inspect --colliders`."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from collidecli.engine.device_model import KIND_COUNT
from collidecli.engine.narrowphase import collider_factory, collider_table
from collidecli.engine.narrowphase.closed_forms import planes
from collidecli.engine.narrowphase.collider_table import KINDS, METHODS, OWN_SURFACE, ROUTES
from collidecli.engine.narrowphase.convex import convex_convex
from collidecli.scene.shape_types import ShapeType
from tests.matrix.cells import collider_table as page_table
from tests.matrix.cells import table_between

PAGE = Path(__file__).parents[4] / "docs/reference/shape-matrix.md"
SUB_PAIRS = ("triangles", "field")


def test_the_table_has_every_pair():
    assert set(ROUTES) == {collider_table.ordered(a, b) for a in KINDS for b in KINDS}


def test_every_row_of_the_table_is_used():
    used = {id(route) for route in ROUTES.values()}
    unused = {
        (first, second)
        for first, row in collider_table.TABLE.items()
        for second, route in row.items()
        if id(route) not in used
    }
    # Every type of today has a closed form against a plane: that entry is for new types.
    assert unused <= {("plane", collider_table.CONVEX)}


def test_an_entry_of_one_kind_has_precedence():
    assert ROUTES["box", "box"].kind == "closed form"
    assert ROUTES["box", "cylinder"] is collider_table.GJK
    assert ROUTES["plane", "convex_mesh"] is collider_table.LOWEST_FACE
    assert ROUTES["sphere", "convex_mesh"] is collider_table.GJK


def test_capacities_are_those_of_the_functions():
    assert (
        collider_table.GJK.contacts
        == collider_table.GJK_ON_SURFACE.contacts
        == convex_convex.MAX_CONTACTS
    )
    assert collider_table.LOWEST_FACE.contacts == planes.MAX_CONTACTS


@pytest.mark.parametrize("method", METHODS)
def test_colliders_are_of_their_routes(method):
    for (first, second), route in ROUTES.items():
        if route is OWN_SURFACE:
            continue
        collider = collider_factory.collider_of_names(first, second, method)
        assert (collider.sub_pair_kernels is not None) == (route.kind in SUB_PAIRS), (first, second)
        assert collider.by_pairs == (route.kind == "closed form")
        if route.kind in ("closed form", "lowest point", "convex"):
            assert collider.max_contacts == route.contacts
        if route.kind == "closed form":
            assert collider.name == f"{first}_{second}"
        if route.kind == "convex":
            has_other = bool(getattr(route, method, ""))
            assert f"_{method if has_other else 'gjk'}" in collider.name
        is_remapped = bool(route.features) and method != "touch"
        assert (collider.feature_remapping is not None) == is_remapped


def test_hulls_have_kernels_of_their_own():
    """A convex surface is a hull whose features are remapped; by MPR it is searched by GJK."""
    of_names = collider_factory.collider_of_names
    assert of_names("box", collider_table.CONVEX_SURFACE, "gjk").name == "convex_hull_gjk_surface"
    assert of_names("box", collider_table.CONVEX_SURFACE, "mpr").name == "convex_hull_gjk_surface"
    assert of_names("box", collider_table.CONVEX_SURFACE, "touch").name == "convex_hull_touch"
    assert (
        of_names("convex_mesh", collider_table.CONVEX_SURFACE, "gjk").name
        == "hull_hull_gjk_surface"
    )
    assert of_names("sphere", "convex_mesh", "mpr").name == "convex_hull_mpr"
    assert of_names("plane", "convex_mesh", "gjk").name == "plane_convex_mesh"


def test_primitives_share_one_kernel():
    of_names = collider_factory.collider_of_names
    assert of_names("box", "cylinder", "gjk") == of_names("cone", "ellipsoid", "gjk")


def test_a_field_counts_where_its_route_does():
    """A box with a field against a plane is a box; a mesh with one against a heightfield a mesh."""
    for first in ShapeType:
        for second in list(ShapeType)[first:]:
            plain = collider_factory.collider(first, second, "gjk")
            found = collider_factory.collider(first, second, "gjk", has_field=True)
            has_own = first == ShapeType.PLANE or second == ShapeType.HEIGHTFIELD
            assert found.name == (plain.name if has_own else "sdf"), (first, second)


def test_kinds_of_rows_have_one_collider_in_either_order():
    of_kinds = np.arange(KIND_COUNT)
    assert {collider_factory.kind_name(kind) for kind in of_kinds.tolist()} == set(KINDS)
    for kind_a in of_kinds.tolist():
        for kind_b in of_kinds.tolist():
            one = collider_factory.collider_of_kinds(kind_a, kind_b, "gjk")
            assert one == collider_factory.collider_of_kinds(kind_b, kind_a, "gjk")


def test_the_page_has_the_table():
    assert table_between(PAGE.read_text(), "colliders") == page_table()


def test_the_table_is_read_without_warp():
    code = "import sys, collidecli.engine.narrowphase.collider_table; print('warp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
