"""Colliders of a plane and a heightfield, and of two heightfields: as those of the closed meshes of the solids.

Features are those of the heightfield, see `scene.heightfield_mesh.solid_features`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.contact_record import Candidates, ContactRecord
from collidecli.engine.device_model import DeviceModel, ShapeRows
from collidecli.engine.geometry.clearance import measure_clearance
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.shape_codes import HEIGHTFIELD
from collidecli.engine.narrowphase.collider import Collider, ColliderBatch
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels, SubPairs
from collidecli.engine.narrowphase.triangles import mesh_colliders, mesh_mesh
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.heightfield_mesh import solid_features, solid_mesh
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh


@dataclass(frozen=True)
class Solids:
    """The meshes of a model's heightfields.

    rows: the model's, with the index of each heightfield's mesh in `mesh`. features, first: see `solid_features`; the
    start of each heightfield's in `features`.
    """

    shapes: tuple[TriangleMesh, ...]
    rows: ShapeRows
    meshes: Meshes
    features: wp.array
    first: wp.array


def upload_solids(device_model: DeviceModel) -> Solids:
    """Device arrays of the meshes of every heightfield."""
    model, device = device_model.model, device_model.device
    shapes = tuple(solid_mesh(field) for field in model.heightfields)
    rows = ShapeRows()
    for name in ShapeRows.vars:
        setattr(rows, name, getattr(device_model.rows, name))
    rows.mesh = device_model.rows.heightfield
    names = [solid_features(field, mesh) for field, mesh in zip(model.heightfields, shapes, strict=True)]
    first = np.cumsum([0, *(len(each) for each in names)])
    return Solids(
        shapes,
        rows,
        upload_meshes(shapes, device),
        wp.array(np.concatenate(names), dtype=wp.int32, device=device),
        wp.array(first.astype(np.int32), dtype=wp.int32, device=device),
    )


def measured(solids: Solids, device: wp.Device) -> Solids:
    """`solids` with the clearance of their meshes; its kernel must be compiled."""
    return replace(solids, meshes=measure_clearance(solids.meshes, solids.shapes, device))


@wp.func
def solid_feature(
    rows: ShapeRows, row: int, feature: int, features: wp.array[wp.int32], first: wp.array[wp.int32]
) -> int:
    """The heightfield's id of a feature of the mesh of a row; -1 and other shapes' ids are unchanged."""
    if rows.type[row] != HEIGHTFIELD or feature < 0:
        return feature
    return features[first[rows.heightfield[row]] + feature]


@kernel
def name_solid_features(
    rows: ShapeRows,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    features: wp.array[wp.int32],
    first: wp.array[wp.int32],
    contact: wp.array[ContactRecord],
):
    """Replaces feature ids of meshes by those of their heightfields; one thread per candidate of a batch."""
    candidate = order[start + wp.tid()]
    pair = candidates.row[candidate]
    row_a = pair[0]
    row_b = pair[1]
    if rows.type[row_a] > rows.type[row_b]:
        row_a = pair[1]
        row_b = pair[0]
    for i in range(candidates.found[candidate]):
        slot = candidates.first[candidate] + i * candidates.stride[candidate]
        record = contact[slot]
        record.feature_a = solid_feature(rows, row_a, record.feature_a, features, first)
        record.feature_b = solid_feature(rows, row_b, record.feature_b, features, first)
        contact[slot] = record


@dataclass(frozen=True)
class SolidKernels(SubPairKernels):
    """Kernels of pairs with meshes, for the meshes of heightfields."""

    @property
    def kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition to the collider's own."""
        return [*super().kernels, name_solid_features]

    def collide(
        self,
        bucket: ColliderBatch,
        sub_pairs: SubPairs,
        contact_rows: tuple[wp.array, int],
        limit: int,
        inexact: wp.array,
        workspace: Workspace,
    ) -> None:
        """Emits the contacts of a batch's sub-pairs, merged by candidate, with the features of heightfields."""
        solids: Solids = bucket.surfaces[self.surfaces]
        super().collide(bucket, sub_pairs, contact_rows, limit, inexact, workspace)
        candidates = bucket.shared[3]
        arguments = [bucket.shared[0], candidates, bucket.order, bucket.start, solids.features, solids.first]
        workspace.launch(name_solid_features, bucket.size, [*arguments, contact_rows[0]])

    def bound(self, bucket: ColliderBatch) -> ColliderBatch:
        """The batch with the heightfields' meshes."""
        solids: Solids = bucket.surfaces[self.surfaces]
        shared: list[Any] = [solids.rows, *bucket.shared[1:]]
        return replace(bucket, shared=shared, surfaces={self.surfaces: solids.meshes})


def _of_solids(name: str, surfaces: str, of_meshes: Collider) -> Collider:
    """The collider of pairs with meshes, for the meshes of heightfields."""
    kernels = of_meshes.sub_pair_kernels
    assert isinstance(kernels, SubPairKernels)
    values = {item.name: getattr(kernels, item.name) for item in fields(SubPairKernels)}
    return replace(
        of_meshes, name=name, sub_pair_kernels=SolidKernels(**{**values, "name": name, "surfaces": surfaces})
    )


ON_PLANE = _of_solids("plane_heightfield", "solids", mesh_colliders.collider_for(ShapeType.PLANE))
HEIGHTFIELDS = _of_solids("heightfields", "measured_solids", mesh_mesh.COLLIDER)


def collider_for(type_a: ShapeType) -> Collider:
    """The collider of planes, or of heightfields, with heightfields."""
    return ON_PLANE if type_a == ShapeType.PLANE else HEIGHTFIELDS
