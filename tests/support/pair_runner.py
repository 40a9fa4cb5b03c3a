"""Runs colliders, the manifold and `separate` over arrays of poses; checks contacts against
contract and oracle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import warp as wp

from collidecli.engine.block_pairs import PairLanes
from collidecli.engine.cells import Instances
from collidecli.engine.contact_record import Candidates, ContactBuffer, ContactRecord
from collidecli.engine.device_model import Margins, ShapeRows, size_blocks
from collidecli.engine.geometry.hulls import upload_hulls
from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import Bucket, closed_form_kernel
from collidecli.engine.narrowphase.collider_factory import collider
from collidecli.engine.narrowphase.convex.convex_convex import MAX_CONTACTS
from collidecli.engine.narrowphase.convex.manifold import MAX_MANIFOLD, contact_manifold
from collidecli.engine.narrowphase.convex.separation import separate, separate_by_mpr
from collidecli.engine.narrowphase.convex.witness import Witness
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import SIZE_COUNT, SIZE_WIDTH, ShapeType
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.poses import pose_set
from tests.support.supports import extents, surface_residual


@dataclass(frozen=True)
class PairContacts:
    """Contacts that a collider emitted for P pairs: count int[P]; the rest [P, K, ...], unused from
    count on.

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
    """The collider's contacts at poses [P, 7] of b in a's frame; sizes, max_separation and hull
    numbers are broadcast.

    type_a must not come after type_b, as the query would swap the two; closed-form colliders do not
    read them.
    """
    assert type_a <= type_b
    pose = np.atleast_2d(np.asarray(pose_b_to_a, np.float64))
    pairs = len(pose)
    with wp.ScopedDevice(device):
        out = _contact_buffer(pairs, max_contacts)
        candidates = _candidates(pairs)
        bucket = Bucket()
        bucket.order = wp.array(np.arange(pairs), dtype=wp.int32)
        bucket.start = wp.array([0, pairs, 0, pairs], dtype=wp.int32)
        bucket.pair_index = 2
        bucket.inexact = wp.zeros(1, dtype=wp.int32)
        rows, margins = _rows(pairs, (type_a, type_b), (size_a, size_b), max_separation)
        if len(hulls):
            numbers = np.stack([np.broadcast_to(one, pairs) for one in (hull_a, hull_b)], 1)
            rows.hull = wp.array(numbers.ravel().astype(np.int32), dtype=wp.int32)
            rows.hulls = upload_hulls(hulls, wp.get_device(device))
        instances = Instances()
        instances.pose = wp.array(
            _beside(np.array([0, 0, 0, 0, 0, 0, 1.0]), pose, pairs), dtype=Pose
        )
        shared = [rows, margins, instances, candidates]
        names = [argument.label for argument in kernel.adj.args]
        shared += [_lanes(pairs), 0, 1] if "pairs" in names else [1]
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
    lanes = PairLanes()
    both = np.arange(2 * pairs, dtype=np.int32).reshape(-1, 2)
    lanes.slots, lanes.row = (wp.array(both, dtype=wp.vec2i) for _ in range(2))
    lanes.mask = wp.array(np.ones(pairs, np.uint32), dtype=wp.uint32)
    lanes.first, lanes.order = (
        wp.array(np.arange(pairs, dtype=np.int32), dtype=wp.int32) for _ in range(2)
    )
    return lanes


def _beside(of_a, of_b, pairs: int) -> np.ndarray:
    """What each pair's two have, broadcast and beside each other: [2 P, ...]."""
    both = [np.broadcast_to(one, (pairs, *np.shape(of_b)[1:])) for one in (of_a, of_b)]
    return np.stack(both, 1).reshape(2 * pairs, *both[0].shape[1:])


def _rows(
    pairs: int, types: tuple[int, int], sizes: tuple, max_separation
) -> tuple[ShapeRows, Margins]:
    """Rows 2 i and 2 i + 1 are pair i. The reach is a gap: no shape has a margin."""
    rows = ShapeRows()
    margins = Margins()
    rows.type = wp.array(np.tile(types, pairs), dtype=wp.int32)
    full = np.zeros((2, pairs, SIZE_WIDTH))
    for side, size in enumerate(np.asarray(size, np.float64) for size in sizes):
        full[side, :, : size.shape[-1]] = size
    rows.size = wp.array(size_blocks(_beside(*full, pairs)), dtype=Vec3)
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
    out.start = 0
    out.most = max_contacts
    out.pair_count = pairs
    return out


DISTANCE_TOLERANCE = 1e-8  # of the pair's scale; the contract asks for 1e-5
SURFACE_TOLERANCE = (
    # of the pair's scale: manifold points of nearly parallel shapes are off by a square of the
    # angle
    2e-6
)

SHAPES = {
    ShapeType.PLANE: (0.0, 0.0, 0.0),
    ShapeType.SPHERE: (0.7, 0.0, 0.0),
    ShapeType.CAPSULE: (0.3, 0.8, 0.0),
    ShapeType.BOX: (0.5, 0.9, 0.3),
    ShapeType.CYLINDER: (0.4, 0.7, 0.0),
    ShapeType.CONE: (0.6, 0.5, 0.0),
    ShapeType.ELLIPSOID: (0.3, 0.6, 1.0),
}
"""One ordinary size of each type, around 1 m."""

SCALES = [(1e-3, 1e-3), (1.0, 1.0), (1e3, 1e3), (1e-3, 1.0), (1.0, 1e-3), (1e3, 1.0), (1e-1, 1e2)]
"""Scales of a and of b."""

THIN = {
    ShapeType.PLANE: (0.0, 0.0, 0.0),
    ShapeType.SPHERE: (0.7, 0.0, 0.0),
    ShapeType.CAPSULE: (0.01, 1.0, 0.0),
    ShapeType.BOX: (1.0, 0.6, 0.01),
    ShapeType.CYLINDER: (1.0, 0.01, 0.0),
    ShapeType.CONE: (0.02, 1.0, 0.0),
    ShapeType.ELLIPSOID: (1.0, 1.0, 0.02),
}
"""A slender or flat one of each type."""


@cache
def _kernel(collider: Callable) -> wp.Kernel:
    return closed_form_kernel(collider)


def run_collider(
    collider: Callable,
    max_contacts: int,
    size_a,
    size_b,
    pose_b_to_a,
    max_separation,
    device: str = "cpu",
) -> PairContacts:
    """A closed-form collider at poses [P, 7]; size_a, size_b, max_separation are broadcast to
    them."""
    return launch_collider(
        _kernel(collider), max_contacts, 0, size_a, 0, size_b, pose_b_to_a, max_separation, device
    )


def pair_scale(type_a, size_a, type_b, size_b) -> float:
    """Length that tolerances of this pair are shares of: the larger shape's largest half extent
    [m]."""
    kinds = ((type_a, size_a), (type_b, size_b))
    return max(
        extents(t, np.asarray(s, np.float64)[None]).max() for t, s in kinds if t != ShapeType.PLANE
    )


def check_contract(
    type_a, size_a, type_b, size_b, pose, max_separation, contacts: PairContacts, tolerance: float
) -> None:
    """Asserts the parts of the colliders' contract that need no oracle; `tolerance` in metres, of
    surfaces."""
    used = contacts.used
    pair = np.nonzero(used)[0]
    point = contacts.point[used]
    normal = contacts.normal[used]
    separation = contacts.separation[used]
    assert np.all(contacts.count <= used.shape[1])
    assert np.all(np.isnan(contacts.separation[~used])), "a row beyond the count was written"
    assert np.all(np.isfinite(point))
    assert np.all(np.isfinite(normal))
    assert np.all(np.isfinite(separation))
    np.testing.assert_allclose(np.linalg.norm(normal, axis=-1), 1.0, atol=1e-12)
    # a separation that float32 rounds to the limit is reported
    limit = np.broadcast_to(max_separation, len(pose))[pair] * (1.0 + 2.0**-25)
    assert np.all(separation <= limit)
    point_b = point + separation[:, None] * normal - pose[pair, :3]
    point_b = np.einsum("pji,pj->pi", rotation_of(pose[pair]), point_b)
    for shape_type, size, witness in ((type_a, size_a, point), (type_b, size_b, point_b)):
        off = np.abs(
            surface_residual(
                shape_type, np.tile(np.asarray(size, np.float64), (len(pair), 1)), witness
            )
        )
        worst = int(np.argmax(off)) if len(off) else 0
        assert np.all(off <= tolerance), (
            f"witness on {shape_type.label} is {off[worst]} off, pose {pose[pair[worst]]}"
        )
    features = {(p, *f) for p, f in zip(pair, contacts.feature[used].tolist(), strict=True)}
    assert len(features) == len(pair), "two contacts of one pair have the same features"
    assert set(contacts.kind[used].tolist()) <= {0, 1, 2}


def check_against_oracle(
    type_a, size_a, type_b, size_b, pose, max_separation, contacts, distance, scale: float
) -> None:
    """Asserts that contacts are there where the oracle's `distance` [P] is below reach, with that
    distance and normal.

    A normal is right when it attains the distance: the right question also where it is not unique.
    """
    tolerance = DISTANCE_TOLERANCE * scale
    assert np.all(contacts.count[distance < max_separation - tolerance] > 0), (
        "a contact below reach is missing"
    )
    assert np.all(contacts.count[distance > max_separation + tolerance] == 0), (
        "a contact beyond the maximum separation was written"
    )
    hit = contacts.count > 0
    least = contacts.least()
    error = np.where(hit, np.abs(np.where(hit, least, 0.0) - distance), 0.0)
    worst = int(np.argmax(error))
    assert error[worst] <= tolerance, (
        f"off by {error[worst]}: {least[worst]}, oracle {distance[worst]}, {pose[worst]!r}"
    )
    normal = np.where(contacts.used[..., None], contacts.normal, [0.0, 0.0, 1.0])
    attained = separation_along(type_a, size_a, type_b, size_b, pose, normal)
    short = np.where(contacts.used, distance[:, None] - attained, 0.0).max(1)
    worst = int(np.argmax(short))
    assert short[worst] <= 10 * tolerance, (
        f"normal falls short by {short[worst]} at pose {pose[worst]!r}"
    )


def check_collider(
    collider: Callable, max_contacts: int, type_a, size_a, type_b, size_b, pose
) -> PairContacts:
    """Runs a collider on poses [P, 7] with a large maximum separation and one amid the distances;
    returns the first."""
    scale = pair_scale(type_a, size_a, type_b, size_b)
    distance, _ = signed_distance(type_a, size_a, type_b, size_b, pose)
    results = []
    for max_separation in (100 * scale, 0.1 * scale, 0.0):
        contacts = run_collider(collider, max_contacts, size_a, size_b, pose, max_separation)
        arguments = (type_a, size_a, type_b, size_b, pose, max_separation, contacts)
        check_contract(*arguments, SURFACE_TOLERANCE * scale)
        check_against_oracle(*arguments, distance, scale)
        results.append(contacts)
    return results[0]


def scaled(size, scale: float) -> np.ndarray:
    return np.asarray(size, np.float64) * scale


def size_cases(type_a: ShapeType, type_b: ShapeType) -> list:
    """pytest parameters (size_a, size_b): every scale of the ordinary sizes, and slender and flat
    shapes."""
    scales = SCALES if SIZE_COUNT[type_a] else [(1.0, 1e-3), (1.0, 1.0), (1.0, 1e3)]
    cases = [
        pytest.param(scaled(SHAPES[type_a], x), scaled(SHAPES[type_b], y), id=f"{x:g}-{y:g}")
        for x, y in scales
    ]
    kinds = {"thin-thin": (THIN, THIN), "thin-plain": (THIN, SHAPES), "plain-thin": (SHAPES, THIN)}
    return cases + [
        pytest.param(scaled(a[type_a], 1), scaled(b[type_b], 1), id=k)
        for k, (a, b) in kinds.items()
    ]


def poses_for(type_a, size_a, type_b, size_b, count: int = 200) -> np.ndarray:
    """`count` poses [count, 7] drawn from `pose_set`, others for every size; about half of them
    degenerate."""
    poses = pose_set(type_a, size_a, type_b, size_b, count // 6)
    drawn = 3 * (count // 6)
    rng = np.random.default_rng(abs(hash((float(np.sum(size_a)), float(np.sum(size_b))))))
    degenerate = drawn + rng.choice(len(poses) - drawn, count - drawn, replace=False)
    return np.concatenate([poses[:drawn], poses[degenerate]])


@cache
def _manifold_kernel() -> wp.Kernel:
    @kernel
    def run_manifold(
        type_a: int,
        type_b: int,
        size_a: Vec3,
        size_b: Vec3,
        max_separation: Real,
        pose_b_to_a: wp.array[Pose],
        separation: wp.array[Real],
        normal: wp.array[Vec3],
        point_a: wp.array[Vec3],
        out: ContactBuffer,
        count: wp.array[int],
    ):
        i = wp.tid()
        if separation[i] < max_separation:
            count[i] = contact_manifold(
                primitive(type_a, size_a),
                primitive(type_b, size_b),
                pose_b_to_a[i],
                max_separation,
                Witness(separation[i], normal[i], point_a[i]),
                out,
                i * MAX_MANIFOLD,
            )

    return run_manifold


def run_manifold(
    type_a, size_a, type_b, size_b, pose, max_separation, separation, normal, point_a=None
) -> PairContacts:
    """`contact_manifold` where separation [P] is below reach; without point_a, a contact at the
    witness is nan."""
    pose = np.atleast_2d(np.asarray(pose, np.float64))
    point = np.full((len(pose), 3), np.nan) if point_a is None else np.atleast_2d(point_a)
    out = _contact_buffer(len(pose) * MAX_MANIFOLD, 1)
    count = wp.zeros(len(pose), dtype=int)
    inputs = [
        *(
            int(type_a),
            int(type_b),
            Vec3(*size_a),
            Vec3(*size_b),
            max_separation,
            wp.array(pose, dtype=Pose),
        ),
        *(
            wp.array(np.atleast_1d(separation), dtype=Real),
            wp.array(np.atleast_2d(normal), dtype=Vec3),
        ),
        *(wp.array(point, dtype=Vec3), out, count),
    ]
    wp.launch(_manifold_kernel(), dim=len(pose), inputs=inputs)
    return _contacts(out, count, MAX_MANIFOLD)


def run_convex(type_a, size_a, type_b, size_b, pose, max_separation) -> PairContacts:
    """The general collider, by GJK, at poses [P, 7]."""
    kernel = collider(ShapeType.CYLINDER, ShapeType.CYLINDER, "gjk").kernel
    return launch_collider(
        kernel, MAX_CONTACTS, int(type_a), size_a, int(type_b), size_b, pose, max_separation
    )


def both_points(pose, contacts: PairContacts, i: int = 0) -> np.ndarray:
    """Witness pairs of pair i, float64[count, 6]: a's point, then b's point, both in a's frame."""
    n = contacts.count[i]
    point = contacts.point[i, :n]
    normal = contacts.normal[i, :n]
    separation = contacts.separation[i, :n]
    return np.concatenate([point, point + separation[:, None] * normal], -1)


def same_points(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether two sets of points [N, D], [M, D] are the same, in any order."""
    found = np.atleast_2d(found)
    expected = np.atleast_2d(np.asarray(expected, np.float64))
    if found.shape != expected.shape:
        return False
    distance = np.abs(found[:, None] - expected[None]).max(-1)
    return bool(np.all(distance.min(0) <= tolerance) and np.all(distance.min(1) <= tolerance))


def _contacts(out: ContactBuffer, count: wp.array, rows: int) -> PairContacts:
    contact = out.contact.numpy().reshape(len(count), rows)
    feature = np.stack([contact["feature_a"], contact["feature_b"]], -1)
    return PairContacts(
        count.numpy(),
        contact["point"],
        contact["normal"],
        contact["separation"],
        feature,
        contact["kind"],
    )


CONVEX = (
    ShapeType.SPHERE,
    ShapeType.CAPSULE,
    ShapeType.BOX,
    ShapeType.CYLINDER,
    ShapeType.CONE,
    ShapeType.ELLIPSOID,
)
SIZES = {
    ShapeType.SPHERE: (0.5, 0.0, 0.0),
    ShapeType.CAPSULE: (0.3, 0.6, 0.0),
    ShapeType.BOX: (0.4, 0.5, 0.6),
    ShapeType.CYLINDER: (0.4, 0.6, 0.0),
    ShapeType.CONE: (0.5, 0.6, 0.0),
    ShapeType.ELLIPSOID: (0.4, 0.5, 0.7),
}
PAIRS = [(a, b) for i, a in enumerate(CONVEX) for b in CONVEX[i:]]


@dataclass(frozen=True)
class Found:
    """What `separate` returned for each pose: arrays of its fields."""

    separation: np.ndarray
    normal: np.ndarray
    point_a: np.ndarray
    exact: np.ndarray


@cache
def _separate_kernel(separate: Callable) -> wp.Kernel:
    @kernel
    def run_separate(
        type_a: int,
        size_a: Vec3,
        type_b: int,
        size_b: Vec3,
        pose_b_to_a: wp.array[Pose],
        max_separation: Real,
        separation: wp.array[Real],
        normal: wp.array[Vec3],
        point_a: wp.array[Vec3],
        exact: wp.array[int],
    ):
        i = wp.tid()
        found = separate(
            primitive(type_a, size_a), primitive(type_b, size_b), pose_b_to_a[i], max_separation
        )
        separation[i] = found.separation
        normal[i] = found.normal
        point_a[i] = found.point_a
        exact[i] = found.exact

    return run_separate


def run_separate(
    type_a, size_a, type_b, size_b, poses, max_separation=1e300, by_mpr=False
) -> Found:
    """`separate`, or `separate_by_mpr`, at poses [P, 7] of b in a's frame."""
    poses = np.ascontiguousarray(np.atleast_2d(poses), np.float64)
    count = len(poses)
    out = [wp.zeros(count, dtype=dtype, device="cpu") for dtype in (Real, Vec3, Vec3, int)]
    pose_array = wp.array(poses, dtype=Pose, device="cpu")
    inputs = [
        int(type_a),
        Vec3(*size_a),
        int(type_b),
        Vec3(*size_b),
        pose_array,
        Real(max_separation),
    ]
    wp.launch(
        _separate_kernel(separate_by_mpr if by_mpr else separate), count, inputs, out, device="cpu"
    )
    return Found(*(x.numpy() for x in out))
