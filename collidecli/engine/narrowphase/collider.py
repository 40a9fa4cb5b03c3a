"""The contract of a pair collider: its kernel, its contacts, and the candidates that it is launched on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import warp as wp

from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import Candidates, ContactBuffer, memory_row
from collidecli.engine.device_model import Margins, ShapeRows
from collidecli.engine.pair_query import query_of
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace


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
def note(candidates: Candidates, bucket: Bucket, out: ContactBuffer, candidate: int, row: int, found: int):
    """Notes how many contacts a candidate has, how many of them stay, and where they stand."""
    candidates.found[candidate] = found
    candidates.count[candidate] = wp.where(bucket.limit > 0, wp.min(found, bucket.limit), found)
    candidates.first[candidate] = memory_row(out, row)
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
        out: ContactBuffer,
    ):
        thread = wp.tid()
        candidate = bucket.order[bucket.start + thread]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        row = thread * out.most
        found = collide(
            rows.size[query.row_a], rows.size[query.row_b], query.pose_b_to_a, query.max_separation, out, row
        )
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
        out: ContactBuffer,
    ):
        thread = wp.tid()
        candidate = bucket.order[bucket.start + thread]
        query = query_of(rows, margins, instances, candidates.pair[candidate], candidates.row[candidate])
        row = thread * out.most
        a = shape_a(rows, query.row_a)
        b = shape_b(rows, query.row_b)
        found = collide(a, b, query.pose_b_to_a, query.max_separation, out, row)
        if found >= wp.static(inexact):
            found -= wp.static(inexact)
            wp.atomic_add(bucket.inexact, 0, 1)
        note(candidates, bucket, out, candidate, row, found)

    return narrow_phase


class SubPairMethod(Protocol):
    """How pairs that are split into sub-pairs are collided; implemented by `sub_pairs.SubPairKernels`."""

    @property
    def surfaces(self) -> str:
        """Name of the model's surfaces that the kernels read."""
        ...

    @property
    def kernels(self) -> list[wp.Kernel]:
        """The kernels that are launched besides the collider's own."""
        ...

    def find(self, bucket: ColliderBatch, workspace: Workspace) -> Any:
        """The sub-pairs of a batch."""
        ...

    def collide(
        self,
        bucket: ColliderBatch,
        sub_pairs: Any,
        staged: tuple[wp.array, int],
        limit: int,
        inexact: wp.array,
        workspace: Workspace,
    ) -> None:
        """Emits the contacts of a batch's sub-pairs, merged to those of its pairs."""
        ...


@dataclass(frozen=True)
class Collider:
    """A bucket's name, the most contacts that its pairs can have, and its kernel, which may count inexact pairs.

    kind: of colliders whose pairs are split into sub-pairs, see SUB_PAIR_COLLIDERS; `max_contacts` and the kernel are
    then of a sub-pair, 0 where contacts are counted. naming: where a mesh meets as its hull, what gives the features
    their names, see
    `mesh.as_hull`. settle: what gives joined contacts the depths of their regions, see `mesh.least_translation`.
    """

    name: str
    max_contacts: int
    kernel: wp.Kernel
    may_be_inexact: bool = False
    kind: SubPairMethod | None = None
    naming: wp.Kernel | None = None
    settle: wp.Kernel | None = None


@dataclass(frozen=True)
class ColliderBatch:
    """The candidates order[start:start + size] of a room.

    shared: rows, margins, instances, candidates. surfaces: by name.
    """

    collider: Collider
    shared: list[Any]
    surfaces: dict[str, Any]
    order: wp.array
    start: int
    size: int


@dataclass(frozen=True)
class ColliderTable:
    """The rooms that a model needs. of_kinds: on the device, int32[K * K], the room of each ordered pair of kinds."""

    colliders: tuple[Collider, ...]
    of_kinds: wp.array
    kind_count: int
