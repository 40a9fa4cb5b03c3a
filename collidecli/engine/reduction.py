"""Reduction of a pair's contact manifold from hundreds of contacts to a few.

Contacts are grouped into bins by their normals. Each bin keeps its deepest contact and, for each
beta, the extreme contacts along six fixed directions, scored by position and depth. Where the
resultant force of the kept contacts has another direction than that of all, more contacts are kept
(`balance`). The result depends on the pair's contacts only, in the order of their features; one
thread per pair.

Scores are computed in float64 and compared in float32: a difference by rounding is a tie, and of
equal scores the first contact by features is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.anchor_contact import NOT_SCALED, anchor_of, friction_scales
from collidecli.engine.cells import Instances
from collidecli.engine.collider_query import query_of
from collidecli.engine.contact_record import (
    Candidates,
    ContactRecord,
    sort_many_by_features,
    start_of,
)
from collidecli.engine.device_model import DeviceModel, Margins, ShapeRows
from collidecli.engine.geometry.elementary_functions import power
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.ordered_contacts import write_scales
from collidecli.engine.pair_limits import pair_limits
from collidecli.engine.reduction_directions import (
    BIN_COUNT,
    DIRECTION_COUNT,
    bin_directions,
    bin_normals,
)
from collidecli.engine.reduction_marks import (
    BIN,
    PairContacts,
    depth_of,
    is_kept,
    mark_kept,
    middle_of,
)
from collidecli.engine.resultant_force import balance, direction_of_all, match_normals
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

BINS = wp.constant(BIN_COUNT)
DIRECTIONS = wp.constant(DIRECTION_COUNT)
SLOTS = wp.constant(BIN_COUNT * DIRECTION_COUNT)
MESH_TYPES = (ShapeType.CONVEX_MESH, ShapeType.MESH, ShapeType.HEIGHTFIELD)
"""Shape types whose pairs `reduce_pairs = "meshes"` reduces."""


@wp.struct
class ReductionRule:
    """Parameters of a reduction. reduced: uint8[types * types], 1 for pairs of types that are
    reduced. limit: contacts that a pair may keep, 0 all. normal, direction: `bin_normals`,
    `bin_directions`. beta: see `score_of`.
    """

    reduced: wp.array[wp.uint8]
    type_count: int
    normal: wp.array[Vec3]
    direction: wp.array[Vec3]
    beta: wp.array[Real]
    beta_count: int
    match_normals: int
    anchor: int
    match_moments: int
    limit: int


@wp.func
def bin_for(rule: ReductionRule, normal: Vec3) -> int:
    """The bin whose normal is nearest; of equal ones the first."""
    best = int(0)
    most = wp.float32(wp.dot(normal, rule.normal[0]))
    for k in range(1, BINS):
        along = wp.float32(wp.dot(normal, rule.normal[k]))
        if along > most:
            most = along
            best = k
    return best


@wp.func
def sort_into_bins(
    rule: ReductionRule,
    pair: PairContacts,
    to_frame: wp.quatd,
    center: wp.array[Vec3],
    deepest: wp.array[int],
):
    """Sets each contact's bin, each bin's mean midpoint (`center`) and deepest contact, -1 in an
    empty bin."""
    size = wp.zeros(shape=BINS, dtype=int)
    for k in range(BINS):
        deepest[k] = -1
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        k = bin_for(rule, wp.quat_rotate(to_frame, pair.contact[at].normal))
        pair.contact[at].marks = k
        size[k] = size[k] + 1
        center[k] = center[k] + wp.quat_rotate(to_frame, middle_of(pair.contact[at]))
        least = deepest[k]
        if least < 0:
            least = at
        if depth_of(pair.contact[at], pair.margin) > depth_of(pair.contact[least], pair.margin):
            least = at
        deepest[k] = least
    for k in range(BINS):
        if size[k] > 0:
            center[k] = center[k] / Real(size[k])
            mark_kept(pair.contact, deepest[k])


@wp.func
def score_of(position: Real, depth: Real, beta: Real) -> wp.float32:
    """Score of a contact: position along a direction [m] + depth * beta; position * depth^-beta for
    a negative beta."""
    if beta >= Real(0.0):
        return wp.float32(position + depth * beta)
    return wp.float32(position * power(depth, -beta)) if depth > Real(0.0) else wp.float32(position)


@wp.func
def keep_extremes(
    rule: ReductionRule,
    pair: PairContacts,
    to_frame: wp.quatd,
    center: wp.array[Vec3],
    deepest: wp.array[int],
    beta: Real,
):
    """Marks the contact of the highest score along each direction of each bin as kept.

    A negative beta scores no separated contacts: in a bin with contacts that penetrate, only these
    count.
    """
    best = wp.zeros(shape=SLOTS, dtype=int)
    most = wp.zeros(shape=SLOTS, dtype=wp.float32)
    for slot in range(SLOTS):
        best[slot] = -1
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        k = pair.contact[at].marks & BIN
        depth = depth_of(pair.contact[at], pair.margin)
        counts = (
            beta >= Real(0.0)
            or depth > Real(0.0)
            or depth_of(pair.contact[deepest[k]], pair.margin) <= Real(0.0)
        )
        if counts:
            offset = wp.quat_rotate(to_frame, middle_of(pair.contact[at])) - center[k]
            for d in range(DIRECTIONS):
                slot = k * DIRECTIONS + d
                score = score_of(wp.dot(offset, rule.direction[slot]), depth, beta)
                if best[slot] < 0 or score > most[slot]:
                    best[slot] = at
                    most[slot] = score
    for slot in range(SLOTS):
        if best[slot] >= 0:
            mark_kept(pair.contact, best[slot])


@wp.func
def mark_relevant(rule: ReductionRule, pair: PairContacts, to_frame: wp.quatd) -> Vec3:
    """Marks the contacts that a reduction keeps; returns `direction_of_all`, to which they are
    balanced.

    to_frame: rotation of the contacts' frame to that of the bins.
    """
    center = wp.zeros(shape=BINS, dtype=Vec3)
    deepest = wp.zeros(shape=BINS, dtype=int)
    sort_into_bins(rule, pair, to_frame, center, deepest)
    for i in range(rule.beta_count):
        keep_extremes(rule, pair, to_frame, center, deepest, rule.beta[i])
    direction = direction_of_all(pair)
    if wp.length_sq(direction) > Real(0.0):
        balance(pair, direction)
    return direction


@wp.func
def gather_kept(pair: PairContacts) -> int:
    """Moves the kept contacts to the front, in order and without marks; returns their number."""
    kept = int(0)
    for i in range(pair.count):
        if is_kept(pair.contact[pair.first + i * pair.stride]):
            pair.contact[pair.first + kept * pair.stride] = pair.contact[
                pair.first + i * pair.stride
            ]
            pair.contact[pair.first + kept * pair.stride].marks = 0
            kept += 1
    return kept


@partial(kernel, fuse_fp=False)
def reduce_contacts(
    rows: ShapeRows,
    margins: Margins,
    instances: Instances,
    candidates: Candidates,
    bound: wp.array[wp.int32],
    rule: ReductionRule,
    contact: wp.array[ContactRecord],
    scale: wp.array[wp.vec2f],
):
    """One thread per candidate: kept contacts to the front of its rows, and their friction scales.

    Input is sorted by the leading shape's features, output in canonical order, followed by the
    anchor. There are as many candidates as the bound.
    """
    thread = wp.tid()
    if thread >= bound[0]:
        return
    count = candidates.found[thread]
    row = candidates.row[thread]
    if count < 2 or rule.reduced[
        rows.type[row[0]] * rule.type_count + rows.type[row[1]]
    ] == wp.uint8(0):
        return
    first = int(candidates.first[thread])
    stride = int(candidates.stride[thread])
    pair = PairContacts(contact, first, stride, count, pair_limits(margins, row[0], row[1]).margin)
    query = query_of(rows, margins, instances, candidates.pair[thread], row)
    # Of two shapes of one type the larger leads, so that the result does not depend on their order
    # in the scene.
    same_type = rows.type[query.row_a] == rows.type[query.row_b]
    b_leads = same_type and rows.radius[query.row_b] > rows.radius[query.row_a]
    rotation = wp.transform_get_rotation(query.pose_b_to_a)
    to_frame = wp.quat_inverse(rotation) if b_leads else wp.quat_identity(dtype=Real)
    sort_many_by_features(contact, first, stride, count, b_leads)
    direction = mark_relevant(rule, pair, to_frame)
    has_direction = wp.length_sq(direction) > Real(0.0)
    anchor = ContactRecord()
    if has_direction:
        anchor = anchor_of(pair, direction)
        if rule.match_moments != 0:
            scale[thread] = friction_scales(pair, anchor)
        if rule.match_normals != 0:
            match_normals(pair, direction)
    kept = gather_kept(pair)
    swapped = query.row_a != row[0]
    if swapped != b_leads:
        sort_many_by_features(contact, first, stride, kept, swapped)
    if kept < count and has_direction and rule.anchor != 0:
        contact[first + kept * stride] = anchor
        kept += 1
    elif rule.match_moments != 0:
        scale[thread] = NOT_SCALED
    candidates.found[thread] = kept
    candidates.count[thread] = wp.where(rule.limit > 0, wp.min(kept, rule.limit), kept)


@partial(kernel, fuse_fp=False)
def mark_groups(rule: ReductionRule, contact: wp.array[ContactRecord], end: wp.array[wp.int32]):
    """One thread per group of contacts, in one frame and without margins: marks those that are
    kept. end: of each group's contacts."""
    thread = wp.tid()
    first = start_of(end, thread)
    pair = PairContacts(contact, first, 1, end[thread] - first, Real(0.0))
    mark_relevant(rule, pair, wp.quat_identity(dtype=Real))


@dataclass(frozen=True)
class Reduction:
    """Reduction of a pipeline, on its device. rule: None where no pair that may touch is reduced.

    matches_moments: whether contacts have a friction scale, which is 1 for pairs that are not
    reduced.
    """

    rule: ReductionRule | None
    matches_moments: bool

    def reduce(
        self,
        device_model: DeviceModel,
        instances: Instances,
        candidates: Candidates,
        count: ElementCount,
        contact: wp.array,
        workspace: Workspace,
    ) -> wp.array | None:
        """Reduces the contacts of `count` candidates in place.

        Returns the friction scales where moments are matched, vec2f: of each candidate's contacts
        and of its anchor.
        """
        scale = workspace.array(
            "friction_scale", count.most if self.matches_moments else 1, wp.vec2f
        )
        if self.matches_moments:
            workspace.fill(scale, NOT_SCALED, count.most)
        if self.rule is not None:
            rows = device_model.rows
            margins = device_model.margins
            arguments = [rows, margins, instances, candidates, count.bound]
            arguments += [self.rule, contact, scale]
            workspace.launch(reduce_contacts, count.most, arguments)
        return scale if self.matches_moments else None

    def kernels(self) -> list[wp.Kernel]:
        """All kernels of the reduction and of its output."""
        kernels = [] if self.rule is None else [reduce_contacts]
        return [*kernels, write_scales] if self.matches_moments else kernels


def reduction_of(
    options: ContactOptions, type_pairs: set[tuple[int, int]], device: wp.Device
) -> Reduction | None:
    """The reduction by `options` for a model whose shapes may touch in pairs of these types.

    None where no pair is reduced and no friction scale is written.
    """
    reduced = reduced_types(options, type_pairs)
    if not reduced.any():
        return Reduction(None, True) if options.moment_matching else None
    return Reduction(rule_of(options, reduced, device), options.moment_matching)


def reduced_types(options: ContactOptions, type_pairs: Iterable[tuple[int, int]]) -> np.ndarray:
    """uint8[types, types]: 1 for those of these pairs of types that the options reduce."""
    reduced = np.zeros((len(ShapeType), len(ShapeType)), np.uint8)
    for a, b in type_pairs:
        if options.reduce_pairs == "all" or a in MESH_TYPES or b in MESH_TYPES:
            reduced[a, b] = reduced[b, a] = 1
    return reduced


def rule_of(options: ContactOptions, reduced: np.ndarray, device: wp.Device) -> ReductionRule:
    """The rule of a reduction by `options`. reduced: uint8[types, types]."""
    rule = ReductionRule()
    rule.reduced = wp.array(reduced.ravel(), dtype=wp.uint8, device=device)
    rule.type_count = len(reduced)
    rule.normal = wp.array(bin_normals(), dtype=Vec3, device=device)
    rule.direction = wp.array(bin_directions(), dtype=Vec3, device=device)
    rule.beta = wp.array(np.array(options.betas, np.float64), dtype=Real, device=device)
    rule.beta_count = len(options.betas)
    rule.match_normals = int(options.normal_matching)
    rule.anchor = int(options.anchor_contact or options.moment_matching)
    rule.match_moments = int(options.moment_matching)
    rule.limit = options.max_contacts_per_pair
    return rule
