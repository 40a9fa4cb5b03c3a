"""The rooms of heightfields: a kernel of a triangle, whose contacts are joined as those of meshes are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.heightfields import field_of, field_triangle
from collidecli.engine.narrow_phase.heightfield.buried import collide_buried
from collidecli.engine.narrow_phase.heightfield.mid_phase import (
    BURIED,
    copy_field_triangles,
    count_field_triangles,
    write_field_triangles,
)
from collidecli.engine.narrow_phase.heightfield.sphere import collide_sphere_triangle
from collidecli.engine.narrow_phase.mesh.join import join_contacts
from collidecli.engine.narrow_phase.mesh.triangle import INEXACT, MAX_CONTACTS, collide_convex_triangle
from collidecli.engine.narrow_phase.query import hull_of, primitive_of, query_of
from collidecli.engine.narrow_phase.staging import Candidates, Staging
from collidecli.model.shape_types import ShapeType

FIELD_KERNELS = (count_field_triangles, copy_field_triangles, write_field_triangles, join_contacts)


def field_kernel(collide: Callable[..., Any], shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a shape kind against triangles of heightfields. shape_a: `primitive_of` or `hull_of`."""

    @wp.kernel(module="unique", enable_backward=False)
    def narrow_phase(
        rows: ShapeRows,
        instances: Instances,
        candidates: Candidates,
        piece: wp.array[wp.vec2i],
        most: int,
        inexact: wp.array[wp.int32],
        out: Staging,
        piece_found: wp.array[wp.int32],
    ):
        thread = wp.tid()
        candidate = piece[thread][0]
        query = query_of(rows, instances, candidates.pair[candidate], candidates.row[candidate])
        a = shape_a(rows, query.row_a)
        field = field_of(rows.heightfields, rows.heightfield[query.row_b])
        number = piece[thread][1]
        row = thread * most
        if number >= BURIED:
            b = field_triangle(field, number - BURIED)
            piece_found[thread] = collide_buried(a, b, query.pose_b_to_a, out, row)
            return
        b = field_triangle(field, number)
        found = collide(a, b, field, 0, 1, query.pose_b_to_a, query.reach, out, row)
        if found >= INEXACT:
            found -= INEXACT
            wp.atomic_add(inexact, 0, 1)
        piece_found[thread] = found

    return narrow_phase


def field_room(type_a: ShapeType) -> tuple[str, int, wp.Kernel]:
    """Name, most contacts of a triangle, and kernel of a type against heightfields."""
    if type_a == ShapeType.SPHERE:
        return _room("sphere")
    return _room("hull" if type_a == ShapeType.CONVEX_MESH else "convex")


@cache
def _room(kind: str) -> tuple[str, int, wp.Kernel]:
    if kind == "sphere":
        return "sphere_field", 1, field_kernel(collide_sphere_triangle, primitive_of)
    kernel = field_kernel(collide_convex_triangle, hull_of if kind == "hull" else primitive_of)
    return f"{kind}_field", MAX_CONTACTS, kernel
