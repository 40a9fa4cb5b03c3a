"""The rooms of meshes: a kernel of a triangle, and what is launched around it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.meshes import HEADER, triangle_shape
from collidecli.engine.narrow_phase.mesh.buried import contact_buried
from collidecli.engine.narrow_phase.mesh.join import join_contacts
from collidecli.engine.narrow_phase.mesh.mesh_mesh import collide_meshes
from collidecli.engine.narrow_phase.mesh.mid_phase import Pieces, count_triangles, write_triangles
from collidecli.engine.narrow_phase.mesh.triangle import INEXACT, MAX_CONTACTS, collide_convex_triangle
from collidecli.engine.narrow_phase.pairs import plane_mesh
from collidecli.engine.narrow_phase.query import hull_of, primitive_of, query_of
from collidecli.engine.narrow_phase.staging import Candidates, Staging
from collidecli.engine.workspace import Workspace
from collidecli.model.shape_types import ShapeType

SHARED_KERNELS = (count_triangles, write_triangles, join_contacts)


def triangle_kernel(collide: Callable[..., Any], shape_a: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a shape kind against triangles. shape_a: `primitive_of` or `hull_of`."""

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
        mesh = rows.mesh[query.row_b]
        if piece[thread][1] < 0:
            face = ~piece[thread][1]
            piece_found[thread] = contact_buried(a, rows.meshes, mesh, face, query.pose_b_to_a, out, thread * most)
            return
        b = triangle_shape(rows.meshes, mesh, piece[thread][1])
        closed = rows.meshes.header[wp.static(HEADER) * mesh + 5]
        found = collide(a, b, rows.meshes, mesh, closed, query.pose_b_to_a, query.reach, out, thread * most)
        if found >= INEXACT:
            found -= INEXACT
            wp.atomic_add(inexact, 0, 1)
        piece_found[thread] = found

    return narrow_phase


def mesh_room(type_a: ShapeType) -> tuple[str, int, wp.Kernel]:
    """Name, most contacts of a triangle (0: they are counted), and kernel of a type against meshes."""
    if type_a == ShapeType.MESH:
        return "mesh_mesh", 0, collide_meshes
    if type_a == ShapeType.PLANE:
        return _room("plane")
    return _room("hull" if type_a == ShapeType.CONVEX_MESH else "convex")


@cache
def _room(kind: str) -> tuple[str, int, wp.Kernel]:
    if kind == "plane":
        kernel = triangle_kernel(plane_mesh.collide_plane_triangle, primitive_of)
        return "plane_triangles", plane_mesh.MAX_CONTACTS, kernel
    kernel = triangle_kernel(collide_convex_triangle, hull_of if kind == "hull" else primitive_of)
    return f"{kind}_triangles", MAX_CONTACTS, kernel


def collide_pieces(
    kernel: wp.Kernel,
    shared: list[Any],
    pieces: Pieces,
    order: wp.array,
    bucket: tuple[int, int, int],
    inexact: wp.array,
    staged: tuple[wp.array, int, int],
    workspace: Workspace,
) -> None:
    """Contacts of a bucket's pieces, joined to those of its candidates.

    shared: rows, instances, candidates. bucket: where it starts in `order`, its size, and how many contacts a pair may
    keep. staged: the contacts, the first row, and the most of a piece.
    """
    start, size, limit = bucket
    contact, first_row, most = staged
    piece_found = workspace.array("piece_found", pieces.count, wp.int32)
    # Rows one after another: those of a piece, and of a candidate's pieces, stand together.
    out = workspace.struct(Staging, contact=contact, start=first_row, most=1, pair_count=1)
    workspace.launch(kernel, pieces.count, [*shared, pieces.piece, most, inexact, out, piece_found])
    rows, _, candidates = shared
    arguments = [rows, candidates, order, start, limit, pieces.end, piece_found, contact, first_row, most]
    workspace.launch(join_contacts, size, arguments)
