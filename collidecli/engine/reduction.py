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

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.candidates import pair_limits, query_of
from collidecli.engine.cells import Instances
from collidecli.engine.compaction import write_scales
from collidecli.engine.contact_record import (
    ANCHOR,
    Candidates,
    ContactRecord,
    sort_many_by_features,
)
from collidecli.engine.device_model import DeviceModel, Margins, ShapeRows
from collidecli.engine.geometry.real import Real, Vec3, power
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.numerics.products import length, matmul, norm
from collidecli.numerics.trigonometry import cos, sincos
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

# State of a contact during a reduction, as a bit set in `ContactRecord.marks`: its bin, and whether
# it is kept.
#
# Bits 0 to 15 are the bin of the contact's normal, bit 16 is set for a contact that the reduction
# keeps. The marks are 0 before and after a reduction.

KEPT = wp.constant(1 << 16)
"""Bit of a kept contact."""
BIN = wp.constant((1 << 16) - 1)
"""Bits of the bin."""


@wp.struct
class PairContacts:
    """Contacts of a pair in a buffer: `count` rows from `first` on, `stride` apart. margin: sum of
    both surfaces' inflations [m]."""

    contact: wp.array[ContactRecord]
    first: int
    stride: int
    count: int
    margin: Real


@wp.func
def mark_kept(contact: wp.array[ContactRecord], at: int):
    """Marks a contact as kept."""
    contact[at].marks = contact[at].marks | KEPT


@wp.func
def is_kept(contact: ContactRecord) -> bool:
    """Whether a contact is kept."""
    return (contact.marks & KEPT) != 0


@wp.func
def depth_of(contact: ContactRecord, margin: Real) -> Real:
    """Penetration depth of the inflated surfaces [m]; negative where they are apart."""
    return margin - contact.separation


@wp.func
def middle_of(contact: ContactRecord) -> Vec3:
    """Midpoint of the two witness points, a's frame [m]."""
    return contact.point + Real(0.5) * contact.separation * contact.normal


# Fixed directions of the reduction: twenty bins of normals, and six tangential directions per bin.
#
# The bins are the faces of an icosahedron. It is rotated so that the axes of a frame, along which
# most normals point, are 10.7 degrees inside their bins, and the diagonals between two or three
# axes 5.3 degrees: normals that differ by rounding are in the same bin.

BIN_COUNT = 20
DIRECTION_COUNT = 6
_ROTATION_XYZW = np.array([0.893, -0.258, 0.260, 0.262])
"""Quaternion xyzw, found by a search over rotations; not normalized."""


def bin_normals() -> np.ndarray:
    """float64[20, 3]: unit normals of the bins; the normal of bin 19 - k is opposite to that of bin
    k."""
    golden = (1.0 + math.sqrt(5.0)) / 2.0
    half = [(1.0, y, z) for y in (-1.0, 1.0) for z in (-1.0, 1.0)]
    for sign in (-1.0, 1.0):
        half += [
            (0.0, sign / golden, golden),
            (1.0 / golden, sign * golden, 0.0),
            (golden, 0.0, sign / golden),
        ]
    first = np.array(half) / math.sqrt(3.0)
    return matmul(np.concatenate([first, -first[::-1]]), _rotation().T)


def bin_directions() -> np.ndarray:
    """float64[120, 3]: unit vectors orthogonal to each bin's normal, 60 degrees apart; rows 6 k to
    6 k + 5 are bin k's.

    Opposite bins have the same six directions, so that the extremes do not depend on the order of
    the two shapes.
    """
    normal = bin_normals()[: BIN_COUNT // 2]
    axis = np.eye(3)[np.argmin(np.abs(normal), axis=1)]
    u = np.cross(normal, axis)
    u /= norm(u)[:, None]
    v = np.cross(normal, u)
    angle = np.arange(DIRECTION_COUNT) * (2.0 * np.pi / DIRECTION_COUNT)
    sine, cosine = sincos(angle)
    first = cosine[:, None] * u[:, None] + sine[:, None] * v[:, None]
    return np.concatenate([first, first[::-1]]).reshape(-1, 3)


def _rotation() -> np.ndarray:
    x, y, z, w = _ROTATION_XYZW / length(_ROTATION_XYZW)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


# Direction of the resultant force of a pair's contacts, preserved by the reduction.
#
# The force of a contact is its depth times its normal. The kept contacts are the extremes of each
# bin, so a bin of a few contacts would have as much force as a bin of hundreds. Contacts are
# therefore added until the resultant of the kept contacts has the direction of the resultant of
# all.

DIRECTION_TOLERANCE = 1.0
"""Largest angle between the two resultants [degrees]."""
ALIGNED = wp.constant(Real(float(cos(math.radians(DIRECTION_TOLERANCE)))))
CANCELLED = wp.constant(Real(1.0e-6))
"""Forces cancel where their resultant is less than this fraction of the sum of their magnitudes: no
direction."""
MIN_GAIN = wp.constant(Real(1.0e-9))
"""Least increase of the cosine that counts as a gain; rounding alone gives 1e-15."""
HALVINGS = wp.constant(12)
"""Passes by depth: first contacts above half of the greatest depth, in the last pass all that
penetrate."""


@wp.func
def force_of(contact: ContactRecord, margin: Real) -> Vec3:
    """Depth times normal [m]; zero for separated surfaces."""
    return wp.max(depth_of(contact, margin), Real(0.0)) * contact.normal


@wp.func
def cosine_to(force: Vec3, direction: Vec3) -> Real:
    """Cosine of the angle to a unit vector; -1 for a zero force."""
    size = wp.length(force)
    return Real(-1.0) if size == Real(0.0) else wp.dot(force, direction) / size


@wp.func
def direction_of_all(pair: PairContacts) -> Vec3:
    """Unit vector of the resultant of all; zero where nothing penetrates or the forces cancel."""
    total = Vec3()
    sizes = Real(0.0)
    for i in range(pair.count):
        total = total + force_of(pair.contact[pair.first + i * pair.stride], pair.margin)
        sizes = sizes + wp.max(
            depth_of(pair.contact[pair.first + i * pair.stride], pair.margin), Real(0.0)
        )
    strength = wp.length(total)
    return Vec3() if strength <= CANCELLED * sizes else total / strength


@wp.func
def force_of_kept(pair: PairContacts) -> Vec3:
    """Resultant of the kept contacts."""
    kept = Vec3()
    for i in range(pair.count):
        if is_kept(pair.contact[pair.first + i * pair.stride]):
            kept = kept + force_of(pair.contact[pair.first + i * pair.stride], pair.margin)
    return kept


@wp.func
def balance(pair: PairContacts, direction: Vec3):
    """Marks further contacts as kept until their resultant is within DIRECTION_TOLERANCE of
    `direction`.

    Passes over all contacts, by decreasing depth, add each contact that reduces the angle. A last
    pass adds the rest in order until the tolerance is met; with all contacts the resultant is that
    of all.
    """
    kept = force_of_kept(pair)
    cosine = cosine_to(kept, direction)
    most = Real(0.0)
    for i in range(pair.count):
        most = wp.max(most, depth_of(pair.contact[pair.first + i * pair.stride], pair.margin))
    least = most
    halving = int(-1)
    while cosine < ALIGNED and halving <= HALVINGS:
        halving += 1
        least = Real(0.0) if halving >= HALVINGS else least * Real(0.5)
        for i in range(pair.count):
            at = pair.first + i * pair.stride
            if (
                cosine < ALIGNED
                and depth_of(pair.contact[at], pair.margin) > least
                and not is_kept(pair.contact[at])
            ):
                moved = kept + force_of(pair.contact[at], pair.margin)
                turned = cosine_to(moved, direction)
                if turned > cosine + MIN_GAIN or halving > HALVINGS:
                    mark_kept(pair.contact, at)
                    kept = moved
                    cosine = turned


@wp.func
def match_normals(pair: PairContacts, direction: Vec3):
    """Rotates the normals of the kept contacts, all by one rotation, so that their resultant is
    along `direction`.

    Each contact keeps its separation and the midpoint of its witness points; the witness points
    rotate about it.
    """
    kept = force_of_kept(pair)
    size = wp.length(kept)
    if size == Real(0.0):
        return
    toward = kept / size
    axis = wp.cross(toward, direction)
    cosine = wp.dot(toward, direction)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        if is_kept(pair.contact[at]):
            normal = pair.contact[at].normal
            # Rodrigues' formula, with (1 - cos) / sin^2 = 1 / (1 + cos); `balance` makes the angle
            # small.
            turned = (
                cosine * normal
                + wp.cross(axis, normal)
                + axis * (wp.dot(axis, normal) / (Real(1.0) + cosine))
            )
            turned = wp.normalize(turned)
            half = Real(0.5) * pair.contact[at].separation
            pair.contact[at].point = pair.contact[at].point + half * (normal - turned)
            pair.contact[at].normal = turned


# Anchor contact of a reduced pair, and the friction scale that preserves the friction moment of all
# contacts.

PATCH = wp.constant(3)
NOT_SCALED = wp.constant(wp.vec2f(1.0, 1.0))


@wp.func
def anchor_of(pair: PairContacts, direction: Vec3) -> ContactRecord:
    """Anchor contact: mean midpoint and mean depth of all contacts, both weighted by depth.

    Its witness points are on neither surface.
    """
    weight = Real(0.0)
    weighted = Vec3()
    squares = Real(0.0)
    most = Real(0.0)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        depth = wp.max(depth_of(pair.contact[at], pair.margin), Real(0.0))
        most = wp.max(most, depth)
        weight += depth
        weighted = weighted + depth * middle_of(pair.contact[at])
        squares += depth * depth
    anchor = ContactRecord()
    # Rounding may give a mean above the maximum.
    anchor.separation = pair.margin - wp.min(squares / weight, most)
    anchor.normal = direction
    anchor.point = weighted / weight - Real(0.5) * anchor.separation * direction
    anchor.feature_a = ANCHOR
    anchor.feature_b = ANCHOR
    anchor.kind = PATCH
    return anchor


@wp.func
def friction_scales(pair: PairContacts, anchor: ContactRecord) -> wp.vec2f:
    """Friction scales: of the kept contacts, and of their anchor.

    With normal forces in proportion to depth, the friction moment about the anchor's normal per
    newton of normal force equals that of all contacts, and the sliding friction is as without a
    scale. Where this would need a negative friction at the anchor, which has no lever arm, the
    anchor's scale is 0 and the others have all sliding friction.
    """
    axis = anchor.normal
    center = middle_of(anchor)
    force_all = Real(0.0)
    moment_all = Real(0.0)
    force = Real(0.0)
    moment = Real(0.0)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        depth = wp.max(depth_of(pair.contact[at], pair.margin), Real(0.0))
        arm = wp.length(wp.cross(middle_of(pair.contact[at]) - center, axis))
        force_all += depth
        moment_all += depth * arm
        if is_kept(pair.contact[at]):
            force += depth
            moment += depth * arm
    if moment == Real(0.0):
        return NOT_SCALED
    of_anchor = depth_of(anchor, pair.margin)
    together = force + of_anchor
    scale = wp.min(moment_all / force_all * together / moment, together / force)
    # Rounding would leave an anchor without friction slightly below 0.
    return wp.vec2f(
        wp.float32(scale), wp.float32(wp.max(together - scale * force, Real(0.0)) / of_anchor)
    )


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
    rule: ReductionRule,
    contact: wp.array[ContactRecord],
    scale: wp.array[wp.vec2f],
):
    """One thread per candidate: kept contacts to the front of its rows, and their friction scales.

    Input is sorted by the leading shape's features, output in canonical order, followed by the
    anchor.
    """
    thread = wp.tid()
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
    center = wp.zeros(shape=BINS, dtype=Vec3)
    deepest = wp.zeros(shape=BINS, dtype=int)
    sort_into_bins(rule, pair, to_frame, center, deepest)
    for i in range(rule.beta_count):
        keep_extremes(rule, pair, to_frame, center, deepest, rule.beta[i])
    direction = direction_of_all(pair)
    has_direction = wp.length_sq(direction) > Real(0.0)
    anchor = ContactRecord()
    if has_direction:
        balance(pair, direction)
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
        count: int,
        contact: wp.array,
        workspace: Workspace,
    ) -> wp.array | None:
        """Reduces the contacts of `count` candidates in place.

        Returns the friction scales where moments are matched, vec2f: of each candidate's contacts
        and of its anchor.
        """
        scale = workspace.array("friction_scale", count if self.matches_moments else 1, wp.vec2f)
        if self.matches_moments:
            workspace.fill(scale, NOT_SCALED)
        if self.rule is not None:
            rows = device_model.rows
            margins = device_model.margins
            arguments = [rows, margins, instances, candidates, self.rule, contact, scale]
            workspace.launch(reduce_contacts, count, arguments)
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
    types = len(ShapeType)
    reduced = np.zeros((types, types), np.uint8)
    for a, b in type_pairs:
        if options.reduce_pairs == "all" or a in MESH_TYPES or b in MESH_TYPES:
            reduced[a, b] = reduced[b, a] = 1
    if not reduced.any():
        return Reduction(None, True) if options.moment_matching else None
    rule = ReductionRule()
    rule.reduced = wp.array(reduced.ravel(), dtype=wp.uint8, device=device)
    rule.type_count = types
    rule.normal = wp.array(bin_normals(), dtype=Vec3, device=device)
    rule.direction = wp.array(bin_directions(), dtype=Vec3, device=device)
    rule.beta = wp.array(np.array(options.betas, np.float64), dtype=Real, device=device)
    rule.beta_count = len(options.betas)
    rule.match_normals = int(options.normal_matching)
    rule.anchor = int(options.anchor_contact or options.moment_matching)
    rule.match_moments = int(options.moment_matching)
    rule.limit = options.max_contacts_per_pair
    return Reduction(rule, options.moment_matching)
