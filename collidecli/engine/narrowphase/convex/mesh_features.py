"""Feature ids of a convex mesh, which collides as its hull: those of the hull become the mesh's."""

import warp as wp

from collidecli.engine.contact_record import Candidates, ContactBuffer, memory_row
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import MESH
from collidecli.engine.narrowphase.collider import Bucket, candidate_of
from collidecli.engine.runtime.kernel import kernel


@wp.func
def mesh_feature(rows: ShapeRows, row: int, feature: int) -> int:
    """The mesh's id of a feature of the hull of a row; other shapes' ids are unchanged."""
    if rows.type[row] != MESH or feature < 0:
        return feature
    return rows.hulls.table[rows.hulls.header[rows.hull[row]].name + feature]


@kernel
def name_features(rows: ShapeRows, candidates: Candidates, bucket: Bucket, out: ContactBuffer):
    """Replaces hull feature ids by mesh feature ids; one thread per candidate of a bucket."""
    thread = wp.tid()
    candidate = candidate_of(bucket, thread)
    if candidate < 0:
        return
    pair = candidates.row[candidate]
    swapped = rows.type[pair[0]] > rows.type[pair[1]]
    row_a = wp.where(swapped, pair[1], pair[0])
    row_b = wp.where(swapped, pair[0], pair[1])
    for i in range(candidates.found[candidate]):
        slot = memory_row(out, thread * out.most + i)
        contact = out.contact[slot]
        contact.feature_a = mesh_feature(rows, row_a, contact.feature_a)
        contact.feature_b = mesh_feature(rows, row_b, contact.feature_b)
        out.contact[slot] = contact
