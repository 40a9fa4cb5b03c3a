"""Selection of the colliders of a model, by pair of shape types, and their launches over the
candidates of a chunk."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk
from collidecli.engine.collider_query import hull_of, primitive_of
from collidecli.engine.contact_record import Candidates, ContactBuffer, ContactRecord
from collidecli.engine.device_model import (
    CONVEX_SURFACE,
    KIND_COUNT,
    KINDS_WITH_FIELD,
    DeviceModel,
    type_of_kind,
)
from collidecli.engine.narrowphase.collider import (
    Bucket,
    Collider,
    ColliderBatch,
    ColliderTable,
    ContactOutput,
    closed_form_kernel,
    convex_kernel,
)
from collidecli.engine.runtime.kernel_loader import is_loaded, load_kernels
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.shape_types import ShapeType

if TYPE_CHECKING:
    from collidecli.engine.geometry.signed_distance import FieldStore, SdfGrid

CLOSED_FORM = {
    "plane": {"sphere": 1, "capsule": 2, "box": 8, "cylinder": 5, "cone": 6, "ellipsoid": 1},
    "sphere": {"sphere": 1, "capsule": 1, "box": 1, "cylinder": 1, "cone": 1, "ellipsoid": 1},
    "capsule": {"capsule": 2, "box": 2},
    "box": {"box": 9},
}
"""Maximum number of contacts of the pairs with a closed-form collider `collide_<a>_<b>`, which
is in the module `box_box` or else in `closed_form`. Every other convex pair uses GJK with EPA or
MPR."""

SUB_PAIR_COLLIDERS = {
    "mesh": "triangles.convex_colliders.on_mesh",
    "meshes": "triangles.mesh_mesh.COLLIDER",
    "heightfield": "triangles.convex_colliders.on_heightfield",
    "heightfield_mesh": "triangles.heightfield_solid.COLLIDER",
    "heightfield_solid": "triangles.heightfield_solid.collider_for",
    "sdf": "signed_distance.COLLIDER",
}
"""Colliders of pairs with sub-pairs, see `sub_pairs`, or functions that return them by the type of
a."""

TOUCH_COLLIDERS = {
    "mesh": "triangles.convex_colliders.touches_mesh",
    "meshes": "triangles.heightfield_solid.touches_mesh",
    "heightfield": "triangles.convex_colliders.touches_heightfield",
    "heightfield_solid": "triangles.heightfield_solid.touches_heightfield",
}
"""Of method "touch": functions that return the colliders of sub-pairs."""

METHODS = {
    "gjk": "collide_convex_convex",
    "mpr": "collide_convex_convex_by_mpr",
    "touch": "touch_convex_convex",
}
"""Collision function of two convex shapes by method; "touch" finds whether there is a contact."""


def sub_pair_kind(type_a: ShapeType, type_b: ShapeType, has_field: bool) -> str:
    """Key of SUB_PAIR_COLLIDERS for a pair of types, type_a <= type_b; "" for none. has_field:
    whether either has an SDF.
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
def collider(
    type_a: ShapeType, type_b: ShapeType, method: str, has_field: bool = False
) -> Collider:
    """Collider of a pair of types, type_a <= type_b. method: of METHODS. has_field: as in
    `sub_pair_kind`."""
    kind = sub_pair_kind(type_a, type_b, has_field)
    if kind:
        colliders = SUB_PAIR_COLLIDERS | (TOUCH_COLLIDERS if method == "touch" else {})
        module, name = colliders[kind].rsplit(".", 1)
        found = getattr(importlib.import_module(f"collidecli.engine.narrowphase.{module}"), name)
        return found if isinstance(found, Collider) else found(type_a)
    name = f"{type_a.label}_{type_b.label}"
    if most := CLOSED_FORM.get(type_a.label, {}).get(type_b.label):
        module = name if name == "box_box" else "closed_form"
        functions = importlib.import_module(f"collidecli.engine.narrowphase.{module}")
        return Collider(
            name, most, closed_form_kernel(getattr(functions, f"collide_{name}")), by_pairs=True
        )
    is_hull = tuple(kind == ShapeType.CONVEX_MESH for kind in (type_a, type_b))
    return (
        plane_collider(is_hull[1])
        if type_a == ShapeType.PLANE
        else _convex_collider(method, *is_hull)
    )


@cache
def plane_collider(is_hull: bool) -> Collider:
    """Collider of a plane and hulls, or the primitives without a closed form, which have one
    contact."""
    from collidecli.engine.narrowphase import closed_form

    if is_hull:
        kernel = convex_kernel(closed_form.collide_plane_convex_mesh, primitive_of, hull_of)
        return Collider("plane_convex_mesh", closed_form.MAX_CONTACTS, kernel)
    return Collider(
        "plane_convex",
        1,
        convex_kernel(closed_form.collide_plane_primitive, primitive_of, primitive_of),
    )


@cache
def _convex_collider(method: str, a_is_hull: bool, b_is_hull: bool) -> Collider:
    """General convex collider; one for each combination of hulls, so that scenes without hulls do
    not compile them."""
    from collidecli.engine.narrowphase.convex import manifold

    kinds = [hull_of if is_hull else primitive_of for is_hull in (a_is_hull, b_is_hull)]
    kernel = convex_kernel(getattr(manifold, METHODS[method]), *kinds)
    name = "_".join("hull" if is_hull else "convex" for is_hull in (a_is_hull, b_is_hull))
    return Collider(f"{name}_{method}", manifold.MAX_CONTACTS, kernel, may_be_inexact=True)


@cache
def _convex_mesh_collider(type_a: ShapeType, method: str) -> Collider:
    """Collider of a convex shape and a convex mesh, which is collided as a hull. method: "touch",
    or another."""
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


def needed_colliders(
    kind_pairs: set[tuple[int, int]], method: str, device: wp.Device
) -> ColliderTable:
    """Colliders of pairs of kinds (see `ShapeRows`) in any order. method: of METHODS."""
    colliders: list[Collider] = []
    table = np.zeros((KIND_COUNT, KIND_COUNT), np.int32)
    for low, high in sorted({(min(p), max(p)) for p in kind_pairs}):
        of_pair = collider_of_kinds(low, high, method)
        if of_pair not in colliders:
            colliders.append(of_pair)
        table[low, high] = table[high, low] = colliders.index(of_pair)
    return ColliderTable(
        tuple(colliders), wp.array(table.ravel(), dtype=wp.int32, device=device), KIND_COUNT
    )


# Narrow phase of a chunk: the colliders of a model's pairs of kinds, their surfaces, and their
# launches.


@dataclass(frozen=True)
class NarrowPhase:
    """The colliders of a model. max_contacts_per_pair: 0 is no limit. surfaces: arguments of the
    colliders of sub-pairs, by name. field_seconds: time to build or load signed distance fields
    [s]."""

    device_model: DeviceModel
    table: ColliderTable
    max_contacts_per_pair: int = 0
    surfaces: dict[str, Any] = field(default_factory=dict)
    field_seconds: float = 0.0

    @classmethod
    def of(
        cls,
        device_model: DeviceModel,
        table: ColliderTable,
        store: FieldStore | None,
        max_contacts_per_pair: int = 0,
    ) -> NarrowPhase:
        """The narrow phase with its surfaces on the device. store: cache of signed distance
        fields."""
        return cls(
            device_model,
            table,
            max_contacts_per_pair,
            *_upload_surfaces(device_model, table, store),
        )

    def kernels(self) -> list[wp.Kernel]:
        """The kernels of the colliders, by increasing compile time: at first those that pairs of
        surfaces share."""
        table = self.table.colliders
        shared = [kernel for each in table for kernel in each.kernels if kernel is not each.kernel]
        return [
            *shared,
            *(each.kernel for each in sorted(table, key=lambda each: each.may_be_inexact)),
        ]

    def load_used(self, listed: CandidateList) -> tuple[tuple[float, float], ...]:
        """Compiles the kernels of the colliders that have candidates; begin and end of the time it
        took, if any."""
        starts = zip(pairwise(listed.starts), pairwise(listed.pair_starts), strict=True)
        # Without colliders there is one bucket.
        counted = zip(self.table.colliders, starts, strict=False)
        used = [
            collider.kernel
            for collider, counts in counted
            if any(begin < end for begin, end in counts)
        ]
        missing = [
            kernel for kernel in used[::-1] if not is_loaded(kernel, self.device_model.device)
        ]
        if not missing:
            return ()
        begin = time.perf_counter()
        load_kernels(missing, self.device_model.device)
        return ((begin, time.perf_counter()),)

    def measure_surfaces(self) -> None:
        """Sets the surfaces that contain meshes with their clearance; its kernel must be
        compiled."""
        surfaces = self.surfaces
        device_model = self.device_model
        if surfaces.keys() & {"measured_meshes", "meshes_and_heightfields"}:
            from collidecli.engine.geometry.mesh_clearance import measure_clearance

            surfaces["measured_meshes"] = measure_clearance(
                surfaces["meshes"], device_model.model.meshes, device_model.device
            )
        if "measured_solids" in surfaces:
            from collidecli.engine.narrowphase.triangles.heightfield_solid import measured

            surfaces["measured_solids"] = measured(surfaces["solids"], device_model.device)
        if "meshes_and_heightfields" in surfaces:
            from collidecli.engine.narrowphase.triangles.heightfield_solid import Surfaces

            both = surfaces["meshes_and_heightfields"] = Surfaces()
            both.meshes = surfaces["measured_meshes"]
            both.heightfields = surfaces["heightfields"]

    def collide(
        self, chunk: Chunk, candidates: Candidates, listed: CandidateList, workspace: Workspace
    ) -> tuple[ContactBuffer, wp.array | None]:
        """Sets the fields of each candidate except `end`; returns the buffer and the count of
        inexact pairs, if any."""
        if listed.count == 0:
            return workspace.struct(ContactBuffer), None
        order = listed.order
        starts = listed.starts
        sizes = [end - start for start, end in pairwise(starts)]
        needed = [
            size * collider.max_contacts
            for size, collider in zip(sizes, self.table.colliders, strict=True)
        ]
        shared = [self.device_model.rows, self.device_model.margins, chunk.instances, candidates]
        sub_pairs = {}
        for index, collider in enumerate(self.table.colliders):
            if collider.sub_pair_kernels and sizes[index]:
                bucket = ColliderBatch(
                    collider, shared, self.surfaces, order, starts[index], sizes[index]
                )
                sub_pairs[index] = collider.sub_pair_kernels.find(bucket, workspace)
                needed[index] = sub_pairs[index].rows
        first_rows = [0, *accumulate(needed)]
        contact = workspace.array("emitted_contact", first_rows[-1], ContactRecord)
        inexact = workspace.array("inexact_count", 1, wp.int32)
        may_be_inexact = any(
            collider.may_be_inexact and n
            for n, collider in zip(sizes, self.table.colliders, strict=True)
        )
        if may_be_inexact:
            workspace.fill(inexact, 0)
        limit = self.max_contacts_per_pair
        emitted = workspace.struct(ContactBuffer, contact=contact)
        for index, collider in enumerate(self.table.colliders):
            size = sizes[index]
            start = starts[index]
            first_row = first_rows[index]
            if not size:
                continue
            if collider.sub_pair_kernels:
                bucket = ColliderBatch(collider, shared, self.surfaces, order, start, size)
                out = ContactOutput(contact, first_row, limit, inexact)
                collider.sub_pair_kernels.collide(bucket, sub_pairs[index], out, workspace)
                continue
            bucket = workspace.struct(
                Bucket,
                order=order,
                start=start,
                first_pair=listed.pair_starts[index],
                limit=limit,
                inexact=inexact,
            )
            emitted = workspace.struct(
                ContactBuffer,
                contact=contact,
                start=first_row,
                most=collider.max_contacts,
                pair_count=size,
            )
            if collider.by_pairs:
                parts = chunk.lanes if workspace.has_own_memory else 1
                count = listed.pair_starts[index + 1] - listed.pair_starts[index]
                of_lanes = [listed.lanes, chunk.lanes.bit_length() - 1, parts]
                workspace.launch(
                    collider.kernel, count * parts, [*shared, *of_lanes, bucket, emitted]
                )
                continue
            workspace.launch(collider.kernel, size, [*shared, bucket, emitted])
            if collider.feature_remapping is not None:
                workspace.launch(
                    collider.feature_remapping,
                    size,
                    [self.device_model.rows, candidates, bucket, emitted],
                )
        return emitted, inexact if may_be_inexact else None


def _upload_surfaces(
    device_model: DeviceModel, table: ColliderTable, store: FieldStore | None
) -> tuple[dict[str, Any], float]:
    """Further arguments of the colliders of sub-pairs, by name, and the time for signed distance
    fields [s].

    The clearance of meshes is not measured yet (`NarrowPhase.measure_surfaces`), since that needs
    kernels.
    """
    model = device_model.model
    device = device_model.device
    surfaces: dict[str, Any] = dict.fromkeys(
        collider.sub_pair_kernels.surfaces
        for collider in table.colliders
        if collider.sub_pair_kernels
    )
    if surfaces.keys() & {"meshes", "measured_meshes", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.meshes import upload_meshes

        surfaces["meshes"] = upload_meshes(model.meshes, device)
    if surfaces.keys() & {"heightfields", "meshes_and_heightfields"}:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces["heightfields"] = upload_heightfields(model.heightfields, device)
    if surfaces.keys() & {"solids", "measured_solids"}:
        from collidecli.engine.narrowphase.triangles.heightfield_solid import upload_solids

        surfaces["solids"] = upload_solids(device_model)
    start = time.perf_counter()
    if "fields" in surfaces:
        surfaces["fields"] = _fields(device_model, store)
    return surfaces, time.perf_counter() - start


def _fields(device_model: DeviceModel, store: FieldStore | None) -> wp.array:
    from collidecli.engine.geometry.signed_distance import field_of
    from collidecli.engine.narrowphase.signed_distance import upload_fields

    model = device_model.model
    device = device_model.device
    grids: dict[str, SdfGrid] = {}
    for number, shape in enumerate(model.sdfs):
        if shape.field_key not in grids:
            where = f"shape '{model.shapes.path[int(np.argmax(model.shapes.sdf == number))]}'"
            grids[shape.field_key] = field_of(shape, device, store, where)
    return upload_fields(
        model, device_model.rows, [grids[shape.field_key] for shape in model.sdfs], device
    )
