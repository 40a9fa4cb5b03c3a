"""Where a pair's room puts its contacts: rows of its own, in the frame of the pair's first shape."""

from __future__ import annotations

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.workspace import Workspace

INNER_A = wp.constant(1)
"""Role of a contact whose point is inside b, by its depth: no shorter translation separates the two."""
INNER_B = wp.constant(2)
"""The same of b's point inside a."""
CROSSING_A = wp.constant(3)
"""Role of an end of an edge of a, the contact's point, that goes through a triangle of the open surface b. Its normal
and separation are left open."""
CROSSING_B = wp.constant(4)
"""The same of an edge of b through a triangle of a."""
OF_REGION = wp.constant(5)
"""Role of the contact of a region of overlap, whose depth is the region's."""
SPARE = wp.constant(6)
"""Role of a row kept for a contact that may be found later."""


@wp.struct
class ContactRecord:
    """A contact as the rooms of the narrow phase write it: whole in one place, since most rows stay empty.

    point: witness on a's surface, a's frame [m]. normal: unit, from a to b, a's frame.
    separation: signed distance of the two un-inflated surfaces along normal [m]; b's witness is
    point + separation * normal. feature_a, feature_b: -1 none. kind: point, edge, face, patch.
    priority: 0 for a contact that always counts; a contact of a higher value counts by the rule of the collider's merge
    kernel, see `contact_merging.merge_kernel`. Not read after merging.
    role: what it is until the contacts of a pair's pieces are joined, one of those below; 0 a contact.
    """

    point: Vec3
    normal: Vec3
    separation: Real
    feature_a: int
    feature_b: int
    kind: int
    priority: int
    role: int


@wp.struct
class ContactBuffer:
    """Rows that contacts are written to: `most` consecutive rows for each pair of a bucket of `pair_count` pairs.

    In memory the first contacts of all pairs stand together from `start` on, then the second ones, and so on: most
    pairs have one contact, and those are then read one after another.
    """

    contact: wp.array[ContactRecord]
    start: int
    most: int
    pair_count: int


@wp.func
def memory_row(out: ContactBuffer, row: int) -> int:
    """Where a row stands in memory."""
    pair = row // out.most
    return out.start + (row - pair * out.most) * out.pair_count + pair


@wp.func
def emit_contact(
    out: ContactBuffer,
    row: int,
    point: Vec3,
    normal: Vec3,
    separation: Real,
    feature_a: int,
    feature_b: int,
    kind: int,
    priority: int = 0,
):
    """Writes one contact into `row`."""
    contact = ContactRecord()
    contact.point = point
    contact.normal = normal
    contact.separation = separation
    contact.feature_a = feature_a
    contact.feature_b = feature_b
    contact.kind = kind
    contact.priority = priority
    out.contact[memory_row(out, row)] = contact


@wp.func
def set_kind(out: ContactBuffer, row: int, count: int, kind: int):
    """Gives the contacts in rows row .. row + count - 1 their kind, once it is known how many there are."""
    for i in range(row, row + count):
        out.contact[memory_row(out, i)].kind = kind


@wp.struct
class Candidates:
    """The candidates of a chunk, and what the narrow phase found of each.

    pair: their two instances. row: the two shapes' rows, noted by the partition.
    found: contacts of each. count: those that stay, when their number is limited.
    first, stride: where its first contact stands in the staging, and how far apart they are.
    """

    pair: wp.array[wp.vec2i]
    row: wp.array[wp.vec2i]
    found: wp.array[wp.int32]
    count: wp.array[wp.int32]
    first: wp.array[wp.int32]
    stride: wp.array[wp.int32]


_FOUND = {"row": wp.vec2i, "found": wp.int32, "count": wp.int32, "first": wp.int32, "stride": wp.int32}


def new_candidates(workspace: Workspace, pair: wp.array, count: int) -> Candidates:
    """Room for what will be found of `count` candidates."""
    workspace.table("of_candidate", Candidates, count, _FOUND)
    return workspace.struct(Candidates, pair=pair)
