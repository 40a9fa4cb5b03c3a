"""Interface of pair colliders: kernels, contact records of candidates, and batches of
candidates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import warp as wp

from collidecli.engine.block_pairs import PairLanes, first_lane, lanes_below
from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import pose_of_pair, relative_pose, row_pair
from collidecli.engine.contact_record import Candidates, ContactBuffer, memory_row
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.geometry.real import Pose
from collidecli.engine.runtime.kernel import Occupancy, kernel
from collidecli.engine.runtime.workspace import Workspace

INEXACT = wp.constant(1 << 16)
"""Added to a contact count if a depth is an upper bound, as a limit ended the search for it. Counts
are below it."""


@wp.struct
class Bucket:
    """Candidates of one collider: order[start[index]] to order[start[index + 1] - 1] are their
    indices. pair_index: as `index`, of its pairs of slots (see `CandidateList.start`).

    limit: maximum number of contacts kept for each, 0 for all. inexact: count of pairs whose
    penetration search hit a limit; one element, for colliders that may be inexact.
    """

    order: wp.array[wp.int32]
    start: wp.array[wp.int32]
    index: int
    pair_index: int
    limit: int
    inexact: wp.array[wp.int32]


@wp.func
def candidate_of(bucket: Bucket, thread: int) -> int:
    """The candidate of a thread of a bucket; -1 for a thread beyond the last."""
    at = bucket.start[bucket.index] + thread
    if at >= bucket.start[bucket.index + 1]:
        return -1
    return bucket.order[at]


@wp.func
def record_counts(
    candidates: Candidates, bucket: Bucket, out: ContactBuffer, candidate: int, row: int, count: int
):
    """Records a candidate's number of contacts found, number kept, and the rows that contain
    them."""
    candidates.found[candidate] = count
    candidates.count[candidate] = wp.where(bucket.limit > 0, wp.min(count, bucket.limit), count)
    candidates.first[candidate] = memory_row(out, row)
    candidates.stride[candidate] = out.pair_count


PER_THREAD = 64
"""Candidates of a convex collider of one thread on the CPU: two blocks of frames of a pair."""


@wp.func_native("""
#if defined(__CUDA_ARCH__)
    return false;  // a thread of a device has one candidate
#else
    const double* one = (const double*)&first;
    const double* other = (const double*)&second;
    bool equal = true;
    for (int k = 0; k < 7; ++k)
        equal = equal && one[k] == other[k] && (one[k] != 0.0 || 1.0 / one[k] == 1.0 / other[k]);
    return equal;
#endif
""")
def is_repeated(first: Pose, second: Pose) -> bool:
    """Whether two poses have the same bits: 0 and -0 differ, as a sign may select a feature."""
    ...


@wp.func
def repeat_contacts(out: ContactBuffer, row: int, count: int):
    """Copies the contacts of the pair before the one with first row `row`, which has `count` of
    them."""
    for k in range(count):
        out.contact[memory_row(out, row + k)] = out.contact[memory_row(out, row - out.most + k)]


def closed_form_kernel(collide: Callable[..., Any]) -> wp.Kernel:
    """Kernel of a collider `collide_<a>_<b>`, in a module of its own so that a scene compiles only
    what it needs."""

    @kernel
    def narrow_phase(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        pairs: PairLanes,
        shift: int,
        parts: int,
        bucket: Bucket,
        out: ContactBuffer,
    ):
        """One thread per pair of slots and part of its lanes, which are 1 << shift in all."""
        thread = wp.tid()
        number = thread // parts
        at = bucket.start[bucket.pair_index] + number
        if at >= bucket.start[bucket.pair_index + 1]:
            return
        pair = pairs.order[at]
        mask = pairs.mask[pair]
        shapes = row_pair(rows, margins, pairs.row[pair])
        size_a = rows.size[shapes.row_a]
        size_b = rows.size[shapes.row_b]
        slot_a = wp.where(shapes.swapped, pairs.slots[pair][1], pairs.slots[pair][0])
        slot_b = wp.where(shapes.swapped, pairs.slots[pair][0], pairs.slots[pair][1])
        pose_before = Pose()
        count = int(-1)
        left = mask
        if parts > 1:  # one lane a part
            left = mask & (wp.uint32(1) << wp.uint32(thread - number * parts))
        while left != wp.uint32(0):
            lane = first_lane(left)
            left = left & (left - wp.uint32(1))
            index = pairs.first[pair] + lanes_below(mask, lane)
            pose_b_to_a = relative_pose(
                instances.pose[(slot_a << shift) + lane], instances.pose[(slot_b << shift) + lane]
            )
            row = (index - bucket.start[bucket.index]) * out.most
            if count >= 0 and is_repeated(pose_b_to_a, pose_before):
                repeat_contacts(out, row, count)
            else:
                count = collide(size_a, size_b, pose_b_to_a, shapes.max_separation, out, row)
            pose_before = pose_b_to_a
            record_counts(candidates, bucket, out, bucket.order[index], row, count)

    return narrow_phase


def convex_kernel(
    collide: Callable[..., Any],
    shape_a: Callable[..., Any],
    shape_b: Callable[..., Any],
    occupancy: Occupancy | None = None,
) -> wp.Kernel:
    """Kernel of the general convex collider, which reads shape types at run time.

    shape_a, shape_b: `primitive_of` or `hull_of`. `collide` adds INEXACT to its contact count if a
    depth is an upper bound. occupancy: of the kernel on a CUDA device.
    """

    def narrow_phase(
        rows: ShapeRows,
        margins: Margins,
        instances: Instances,
        candidates: Candidates,
        per_thread: int,
        bucket: Bucket,
        out: ContactBuffer,
    ):
        """One thread per `per_thread` candidates."""
        first = wp.tid() * per_thread
        candidate = candidate_of(bucket, first)
        if candidate < 0:
            return
        rows_before = candidates.row[candidate]
        shapes = row_pair(rows, margins, rows_before)
        a = shape_a(rows, shapes.row_a)
        b = shape_b(rows, shapes.row_b)
        pose_before = Pose()
        count = int(-1)
        begin = bucket.start[bucket.index]
        last = wp.min(first + per_thread, bucket.start[bucket.index + 1] - begin)
        for index in range(first, last):
            candidate = bucket.order[begin + index]
            pair_rows = candidates.row[candidate]
            if pair_rows[0] != rows_before[0] or pair_rows[1] != rows_before[1]:
                rows_before = pair_rows
                shapes = row_pair(rows, margins, rows_before)
                a = shape_a(rows, shapes.row_a)
                b = shape_b(rows, shapes.row_b)
                count = -1
            pose_b_to_a = pose_of_pair(instances, candidates.pair[candidate], shapes.swapped)
            row = index * out.most
            if count >= 0 and is_repeated(pose_b_to_a, pose_before):
                repeat_contacts(out, row, count % INEXACT)
            else:
                count = collide(a, b, pose_b_to_a, shapes.max_separation, out, row)
            pose_before = pose_b_to_a
            if count >= INEXACT:
                wp.atomic_add(bucket.inexact, 0, 1)
            record_counts(candidates, bucket, out, candidate, row, count % INEXACT)

    return kernel(narrow_phase, occupancy)


class SubPairMethod(Protocol):
    """Collision of pairs by sub-pairs; implemented by `sub_pairs.SubPairKernels`."""

    @property
    def surfaces(self) -> str:
        """Name of the model's surfaces that the kernels read."""
        ...

    @property
    def kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition to the collider's own."""
        ...

    @property
    def device_kernels(self) -> list[wp.Kernel]:
        """Kernels launched in addition on a device with a memory of its own."""
        ...

    def find(self, batch: ColliderBatch, workspace: Workspace) -> Any:
        """Sub-pairs of a batch."""
        ...

    def collide(
        self, batch: ColliderBatch, sub_pairs: Any, out: ContactOutput, workspace: Workspace
    ) -> None:
        """Emits the contacts of a batch's sub-pairs, merged by pair."""
        ...


@dataclass(frozen=True)
class Collider:
    """Collision function of a pair of shape types: name, maximum number of contacts of a pair, and
    kernel.

    may_be_inexact: whether the kernel counts pairs whose depth is an upper bound. by_pairs: whether
    a thread of the kernel has a pair of slots in all lanes, as of `closed_form_kernel`.
    sub_pair_kernels: of colliders that split pairs into sub-pairs, "triangles" and "field" of
    `collider_table`; `max_contacts` and kernel then refer to a sub-pair, 0 if contacts are counted
    first.
    feature_remapping: kernel that remaps feature ids where a mesh is collided as its hull,
    `convex.mesh_features`.
    region_depths: kernel that gives merged contacts the depths of their regions,
    `triangles.convex_region_depths`.
    """

    name: str
    max_contacts: int
    kernel: wp.Kernel
    may_be_inexact: bool = False
    by_pairs: bool = False
    sub_pair_kernels: SubPairMethod | None = None
    feature_remapping: wp.Kernel | None = None
    region_depths: wp.Kernel | None = None

    @property
    def kernels(self) -> list[wp.Kernel]:
        """All kernels that the collider launches."""
        others = self.sub_pair_kernels.kernels if self.sub_pair_kernels is not None else []
        kernels_of_pair = [self.kernel, self.feature_remapping, self.region_depths]
        return [*(item for item in kernels_of_pair if item is not None), *others]


@dataclass(frozen=True)
class ColliderBatch:
    """The candidates of a collider: order[start[index]] to order[start[index + 1] - 1].

    shared: rows, margins, instances, candidates. surfaces: by name. size: number of candidates, or
    their capacity.
    """

    collider: Collider
    shared: list[Any]
    surfaces: dict[str, Any]
    order: wp.array
    start: wp.array
    index: int
    size: int

    def bucket(self, workspace: Workspace, **fields: Any) -> Bucket:
        """The candidates for a kernel that is launched next; fields: limit or inexact."""
        return workspace.struct(
            Bucket, order=self.order, start=self.start, index=self.index, **fields
        )


@dataclass(frozen=True)
class ContactOutput:
    """Rows of contacts, from first_row on, for the contacts of a batch. limit, inexact: as in
    `Bucket`."""

    contact: wp.array
    first_row: int
    limit: int
    inexact: wp.array


@dataclass(frozen=True)
class ColliderTable:
    """The colliders of a model. of_kinds: int32[K * K] on the device, the collider index of each
    ordered pair of kinds.
    """

    colliders: tuple[Collider, ...]
    of_kinds: wp.array
    kind_count: int
