"""Contacts of meshes that met as the hulls they are, named as the meshes' own features."""

import warp as wp

from collidecli.engine.contact_record import Candidates, ContactBuffer, memory_row
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.shape_codes import MESH
from collidecli.engine.narrowphase.collider import Bucket
from collidecli.engine.runtime.kernel import kernel


@wp.func
def named(rows: ShapeRows, row: int, feature: int) -> int:
    """What a feature of a row's hull is called."""
    if rows.type[row] != MESH or feature < 0:
        return feature
    return rows.hulls.table[rows.hulls.header[rows.hull[row]].name + feature]


@kernel
def name_features(rows: ShapeRows, candidates: Candidates, bucket: Bucket, out: ContactBuffer):
    """One thread a candidate of a bucket."""
    thread = wp.tid()
    candidate = bucket.order[bucket.start + thread]
    pair = candidates.row[candidate]
    row_a = pair[0]
    row_b = pair[1]
    if rows.type[row_a] > rows.type[row_b]:
        row_a = pair[1]
        row_b = pair[0]
    for i in range(candidates.found[candidate]):
        place = memory_row(out, thread * out.most + i)
        contact = out.contact[place]
        contact.feature_a = named(rows, row_a, contact.feature_a)
        contact.feature_b = named(rows, row_b, contact.feature_b)
        out.contact[place] = contact
