"""Launches a collider's kernel, as scenes use it, over arrays of poses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import Instances, PairLanes
from collidecli.engine.contact_record import Candidates, ContactBuffer, ContactRecord
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.hulls import upload_hulls
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import Bucket
from collidecli.scene.convex_hull import ConvexHull


@dataclass(frozen=True)
class PairContacts:
    """Contacts that a collider emitted for P pairs: count int[P]; the rest [P, K, ...], unused from count on.

    inexact: in how many pairs the depth is an upper bound.
    """

    count: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    separation: np.ndarray
    feature: np.ndarray
    kind: np.ndarray
    inexact: int = 0

    @property
    def used(self) -> np.ndarray:
        """bool[P, K]: rows that hold a contact."""
        return np.arange(self.separation.shape[1]) < self.count[:, None]

    def least(self) -> np.ndarray:
        """float64[P]: smallest separation of each pair; infinite where it has no contact."""
        return np.where(self.used, self.separation, np.inf).min(1)


def launch_collider(
    kernel: wp.Kernel,
    max_contacts: int,
    type_a: int,
    size_a,
    type_b: int,
    size_b,
    pose_b_to_a,
    max_separation,
    device="cpu",
    hulls: Sequence[ConvexHull] = (),
    hull_a=-1,
    hull_b=-1,
) -> PairContacts:
    """The collider's contacts at poses [P, 7] of b in a's frame; sizes, max_separation and hull numbers are broadcast.

    type_a must not come after type_b, as the query would swap the two; closed-form colliders do not read them.
    """
    assert type_a <= type_b
    pose = np.atleast_2d(np.asarray(pose_b_to_a, np.float64))
    pairs = len(pose)
    with wp.ScopedDevice(device):
        out, candidates, bucket = _contact_buffer(pairs, max_contacts), _candidates(pairs), Bucket()
        bucket.order = wp.array(np.arange(pairs), dtype=wp.int32)
        bucket.inexact = wp.zeros(1, dtype=wp.int32)
        rows, margins = _rows(pairs, (type_a, type_b), (size_a, size_b), max_separation)
        if len(hulls):
            numbers = np.stack([np.broadcast_to(one, pairs) for one in (hull_a, hull_b)], 1)
            rows.hull = wp.array(numbers.ravel().astype(np.int32), dtype=wp.int32)
            rows.hulls = upload_hulls(hulls, wp.get_device(device))
        instances = Instances()
        instances.pose = wp.array(_beside(np.array([0, 0, 0, 0, 0, 0, 1.0]), pose, pairs), dtype=Pose)
        shared = [rows, margins, instances, candidates]
        if len(kernel.adj.args) > len([*shared, bucket, out]):
            shared += [_lanes(pairs), 0, 1]
        wp.launch(kernel, dim=pairs, inputs=[*shared, bucket, out])
        contact = out.contact.numpy().reshape(max_contacts, pairs).T
        return PairContacts(
            candidates.found.numpy(),
            contact["point"],
            contact["normal"],
            contact["separation"],
            np.stack([contact["feature_a"], contact["feature_b"]], -1),
            contact["kind"],
            int(bucket.inexact.numpy()[0]),
        )


def _lanes(pairs: int) -> PairLanes:
    """Pairs of slots 2 i and 2 i + 1, with one lane each."""
    lanes, both = PairLanes(), np.arange(2 * pairs, dtype=np.int32).reshape(-1, 2)
    lanes.slots, lanes.row = (wp.array(both, dtype=wp.vec2i) for _ in range(2))
    lanes.mask = wp.array(np.ones(pairs, np.uint32), dtype=wp.uint32)
    lanes.first, lanes.order = (wp.array(np.arange(pairs, dtype=np.int32), dtype=wp.int32) for _ in range(2))
    return lanes


def _beside(of_a, of_b, pairs: int) -> np.ndarray:
    """What each pair's two have, broadcast and beside each other: [2 P, ...]."""
    both = [np.broadcast_to(one, (pairs, *np.shape(of_b)[1:])) for one in (of_a, of_b)]
    return np.stack(both, 1).reshape(2 * pairs, *both[0].shape[1:])


def _rows(pairs: int, types: tuple[int, int], sizes: tuple, max_separation) -> tuple[ShapeRows, Margins]:
    """Rows 2 i and 2 i + 1 are pair i. The reach is a gap: no shape has a margin."""
    rows, margins = ShapeRows(), Margins()
    rows.type = wp.array(np.tile(types, pairs), dtype=wp.int32)
    of_a, of_b = (np.broadcast_to(np.asarray(size, np.float64), (pairs, 3)) for size in sizes)
    rows.size = wp.array(_beside(of_a, of_b, pairs), dtype=Vec3)
    margins.margin = wp.zeros(2 * pairs, dtype=Real)
    gap = np.broadcast_to(np.asarray(max_separation, np.float64), pairs)
    margins.gap = wp.array(_beside(gap, gap, pairs), dtype=Real)
    margins.forced_start = wp.zeros(2 * pairs + 1, dtype=wp.int32)
    return rows, margins


def _candidates(pairs: int) -> Candidates:
    both = wp.array(np.arange(2 * pairs).reshape(pairs, 2), dtype=wp.vec2i)
    candidates = Candidates()
    candidates.pair = candidates.row = both
    for name in ("found", "count", "end", "first", "stride"):
        setattr(candidates, name, wp.zeros(pairs, dtype=wp.int32))
    return candidates


def _contact_buffer(pairs: int, max_contacts: int) -> ContactBuffer:
    """Rows in which an unused one shows."""
    records = np.zeros(pairs * max_contacts, ContactRecord.numpy_dtype())
    records["point"] = records["normal"] = records["separation"] = np.nan
    records["feature_a"] = records["feature_b"] = -7
    records["kind"] = 77
    out = ContactBuffer()
    out.contact = wp.array(records, dtype=ContactRecord)
    out.start, out.most, out.pair_count = 0, max_contacts, pairs
    return out
