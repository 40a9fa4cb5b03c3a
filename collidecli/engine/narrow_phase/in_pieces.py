"""Rooms whose pairs are tested in pieces, as a mesh's triangles: how the pieces are found and collided.

Scenes without such rooms do not import this: defining its kernels would take half of a short run's start.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import warp as wp

from collidecli.engine.narrow_phase.dispatch import Room
from collidecli.engine.narrow_phase.heightfield.mid_phase import find_field_triangles
from collidecli.engine.narrow_phase.heightfield.room import FIELD_KERNELS
from collidecli.engine.narrow_phase.mesh.mesh_mesh import MESH_PAIR_KERNELS, collide_mesh_pairs, find_mesh_pieces
from collidecli.engine.narrow_phase.mesh.mid_phase import find_triangles
from collidecli.engine.narrow_phase.mesh.room import SHARED_KERNELS, collide_pieces
from collidecli.engine.narrow_phase.sdf.fields import Fields
from collidecli.engine.narrow_phase.sdf.room import SDF_KERNELS
from collidecli.engine.narrow_phase.sdf.room import collide_pieces as collide_field_pieces
from collidecli.engine.narrow_phase.sdf.room import find_pieces as find_field_pieces
from collidecli.engine.workspace import Workspace


def kernels_of(rooms: Sequence[Room]) -> list[wp.Kernel]:
    """What these rooms launch besides a kernel of their own."""
    needed: list[wp.Kernel] = []
    if any(room.of_mesh and not room.of_meshes for room in rooms):
        needed += SHARED_KERNELS
    if any(room.of_meshes for room in rooms):
        needed += MESH_PAIR_KERNELS
    if any(room.of_field for room in rooms):
        needed += FIELD_KERNELS
    if any(room.of_sdf for room in rooms):
        needed += SDF_KERNELS
    return needed


def find(
    room: Room, shared: list[Any], fields: Fields | None, order: wp.array, start: int, size: int, workspace: Workspace
) -> tuple[Any, int]:
    """The pieces of a room's candidates, order[start:start + size], and how many rows of staging they need."""
    where = (order, start, size, workspace)
    if room.of_meshes:
        pieces = find_mesh_pieces(shared, *where)
        return pieces, pieces.rows
    if room.of_sdf:
        pieces = find_field_pieces(shared, fields, *where)
        return pieces, pieces.rows
    pieces = (find_field_triangles if room.of_field else find_triangles)(room.name, shared, *where)
    return pieces, pieces.count * room.max_contacts


def collide(
    room: Room,
    shared: list[Any],
    fields: Fields | None,
    pieces: Any,
    order: wp.array,
    bucket: tuple[int, int, int],
    inexact: wp.array,
    contact: wp.array,
    first_row: int,
    workspace: Workspace,
) -> None:
    """Fills in what is found of a room's candidates. bucket: their start, their number, contacts that each may keep."""
    if room.of_meshes:
        collide_mesh_pairs(shared, pieces, order, bucket, (contact, first_row), workspace)
    elif room.of_sdf:
        collide_field_pieces(shared, fields, pieces, order, bucket, (contact, first_row), workspace)
    else:
        rows = (contact, first_row, room.max_contacts)
        collide_pieces(room.kernel, shared, pieces, order, bucket, inexact, rows, workspace)
