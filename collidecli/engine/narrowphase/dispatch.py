"""From a pair of shape types to the room that answers for it, and the kernel of each bucket."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.contact_buffer import Candidates, Staging, place_of
from collidecli.engine.device_model import (
    CONVEX_SURFACE,
    KIND_COUNT,
    KINDS_WITH_FIELD,
    Margins,
    ShapeRows,
    type_of_kind,
)
from collidecli.engine.pair_query import hull_of, primitive_of, query_of
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType

if TYPE_CHECKING:
    from collidecli.engine.narrowphase.sub_pairs import PieceKind

CLOSED_FORM = (
    ("plane", "sphere"),
    ("plane", "capsule"),
    ("plane", "box"),
    ("plane", "cylinder"),
    ("plane", "cone"),
    ("plane", "ellipsoid"),
    ("sphere", "sphere"),
    ("sphere", "capsule"),
    ("sphere", "box"),
    ("sphere", "cylinder"),
    ("sphere", "cone"),
    ("sphere", "ellipsoid"),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
)
"""Pairs that have a room of their own; every other convex pair goes through GJK and EPA, or MPR."""

IN_PIECES = {
    "mesh": "mesh.room",
    "meshes": "mesh.mesh_mesh",
    "heightfield": "heightfield.room",
    "ground": "heightfield.mesh_room",
    "sdf": "sdf.room",
}
"""Kinds of rooms whose pairs are tested in pieces, and the module whose `room_of` has them, see `in_pieces`."""

METHODS = {"gjk": "collide_convex_convex", "mpr": "collide_convex_convex_by_mpr"}


@wp.struct
class Bucket:
    """Candidates of one pair of types: order[start:] are their numbers. limit: contacts that each may keep, 0 all.

    inexact: how many pairs hit a limit of the search for the depth; of one element, for rooms that may.
    """

    order: wp.array[wp.int32]
    start: int
    limit: int
    inexact: wp.array[wp.int32]


@wp.func
def note(candidates: Candidates, bucket: Bucket, out: Staging, candidate: int, row: int, found: int):
    """Notes how many contacts a candidate has, how many of them stay, and where they stand."""
    candidates.found[candidate] = found
    candidates.count[candidate] = wp.where(bucket.limit > 0, wp.min(found, bucket.limit), found)
    candidates.first[candidate] = place_of(out, row)
    candidates.stride[candidate] = out.pair_count


def closed_form_kernel(collide: Callable[..., Any]) -> wp.Kernel:
    """The kernel of a room `collide_<a>_<b>`, a module of its own so that only what a scene needs is compiled."""

    @kernel
    def narrow_phase(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        bucket: Bucket,
        out: Staging,
    ):
        thread = wp.tid()
        candidate = bucket.order[bucket.start + thread]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        row = thread * out.most
        found = collide(rows.size[query.row_a], rows.size[query.row_b], query.pose_b_to_a, query.reach, out, row)
        note(candidates, bucket, out, candidate, row, found)

    return narrow_phase


def convex_kernel(
    collide: Callable[..., Any], inexact: int, shape_a: Callable[..., Any], shape_b: Callable[..., Any]
) -> wp.Kernel:
    """The one kernel of all pairs without a room of their own: the shape types are read at run time.

    shape_a, shape_b: `primitive_of` or `hull_of`. inexact: what `collide` adds to its count where the depth is an upper
    bound.
    """

    @kernel
    def narrow_phase(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        bucket: Bucket,
        out: Staging,
    ):
        thread = wp.tid()
        candidate = bucket.order[bucket.start + thread]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        row = thread * out.most
        a = shape_a(rows, query.row_a)
        b = shape_b(rows, query.row_b)
        found = collide(a, b, query.pose_b_to_a, query.reach, out, row)
        if found >= wp.static(inexact):
            found -= wp.static(inexact)
            wp.atomic_add(bucket.inexact, 0, 1)
        note(candidates, bucket, out, candidate, row, found)

    return narrow_phase


@dataclass(frozen=True)
class Room:
    """A bucket's name, the most contacts that its pairs can have, and its kernel, which may count inexact pairs.

    kind: of rooms whose pairs are tested in pieces, see IN_PIECES; `max_contacts` and the kernel are then of a piece,
    0 where contacts are counted. naming: where a mesh meets as its hull, what gives the features their names, see
    `mesh.as_hull`. settle: what gives joined contacts the depths of their regions, see `mesh.least_translation`.
    """

    name: str
    max_contacts: int
    kernel: wp.Kernel
    may_be_inexact: bool = False
    kind: PieceKind | None = None
    naming: wp.Kernel | None = None
    settle: wp.Kernel | None = None


@dataclass(frozen=True)
class RoomBucket:
    """The candidates order[start:start + size] of a room.

    shared: rows, margins, instances, candidates. surfaces: by name.
    """

    room: Room
    shared: list[Any]
    surfaces: dict[str, Any]
    order: wp.array
    start: int
    size: int


def kind_in_pieces(type_a: ShapeType, type_b: ShapeType, has_field: bool) -> str:
    """Which of IN_PIECES a pair of types is, type_a <= type_b; "" for none. has_field: one of the two at least."""
    # Planes and heightfields meet the surface itself, not its field.
    if has_field and type_a != ShapeType.PLANE and type_b != ShapeType.HEIGHTFIELD:
        return "sdf"
    if type_b == ShapeType.HEIGHTFIELD:
        return "ground" if type_a == ShapeType.MESH else "heightfield"
    if type_b == ShapeType.MESH:
        return "meshes" if type_a == ShapeType.MESH else "mesh"
    return ""


@cache
def room(type_a: ShapeType, type_b: ShapeType, method: str, has_field: bool = False) -> Room:
    """The room of a pair of types, type_a <= type_b. method: "gjk" or "mpr". has_field: as in `kind_in_pieces`."""
    kind = kind_in_pieces(type_a, type_b, has_field)
    if kind:
        return importlib.import_module(f"collidecli.engine.narrowphase.{IN_PIECES[kind]}").room_of(type_a)
    name = f"{type_a.label}_{type_b.label}"
    if (type_a.label, type_b.label) in CLOSED_FORM:
        module = importlib.import_module(f"collidecli.engine.narrowphase.primitive.{name}")
        return Room(name, module.MAX_CONTACTS, closed_form_kernel(getattr(module, f"collide_{name}")))
    is_hull = tuple(kind == ShapeType.CONVEX_MESH for kind in (type_a, type_b))
    if type_a == ShapeType.PLANE:
        from collidecli.engine.narrowphase.primitive import plane_convex_mesh as room_of_planes

        kernel = convex_kernel(room_of_planes.collide_plane_convex_mesh, 1 << 30, primitive_of, hull_of)
        return Room(name, room_of_planes.MAX_CONTACTS, kernel)
    return _convex_room(method, *is_hull)


@cache
def _convex_room(method: str, a_is_hull: bool, b_is_hull: bool) -> Room:
    """Rooms of hulls are their own: scenes without one do not compile them."""
    from collidecli.engine.narrowphase.primitive import convex_convex

    kinds = [hull_of if is_hull else primitive_of for is_hull in (a_is_hull, b_is_hull)]
    kernel = convex_kernel(getattr(convex_convex, METHODS[method]), int(convex_convex.INEXACT), *kinds)
    name = "_".join("hull" if is_hull else "convex" for is_hull in (a_is_hull, b_is_hull))
    return Room(f"{name}_{method}", convex_convex.MAX_CONTACTS, kernel, may_be_inexact=True)


@cache
def _surface_room(type_a: ShapeType) -> Room:
    """A convex shape and a mesh that is convex meet as two hulls would."""
    from collidecli.engine.narrowphase.triangles.convex_mesh import name_features

    room = _convex_room("gjk", type_a >= ShapeType.CONVEX_MESH, True)
    return replace(room, name=f"{room.name}_surface", naming=name_features)


@dataclass(frozen=True)
class RoomTable:
    """The rooms that a model needs. of_kinds: on the device, int32[K * K], the room of each ordered pair of kinds."""

    rooms: tuple[Room, ...]
    of_kinds: wp.array
    kind_count: int


def needed_rooms(kind_pairs: set[tuple[int, int]], method: str, device: wp.Device) -> RoomTable:
    """The rooms of some pairs of kinds (see `ShapeRows`) in any order. method: "gjk" or "mpr"."""
    rooms: list[Room] = []
    table = np.zeros((KIND_COUNT, KIND_COUNT), np.int32)
    for low, high in sorted({(min(p), max(p)) for p in kind_pairs}):
        type_a, type_b = sorted(type_of_kind(kind) for kind in (low, high))
        if type_a == type_b == ShapeType.HEIGHTFIELD:
            continue  # those that the filter left have been refused
        has_field = any(KINDS_WITH_FIELD <= kind < CONVEX_SURFACE for kind in (low, high))
        meets_triangles = low in (ShapeType.PLANE, ShapeType.MESH, ShapeType.HEIGHTFIELD)
        if high == CONVEX_SURFACE and not meets_triangles and not has_field:
            here = _surface_room(type_a)
        else:
            here = room(type_a, type_b, method, has_field)
        if here not in rooms:
            rooms.append(here)
        table[low, high] = table[high, low] = rooms.index(here)
    return RoomTable(tuple(rooms), wp.array(table.ravel(), dtype=wp.int32, device=device), KIND_COUNT)
