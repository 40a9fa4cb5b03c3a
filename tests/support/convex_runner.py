"""Runs the manifold and the general collider over arrays of poses of any two convex shapes."""

from __future__ import annotations

from functools import cache

import numpy as np
import warp as wp

from collidecli.engine.contact_record import ContactBuffer, ContactRecord
from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.manifold import MAX_CONTACTS, MAX_MANIFOLD, contact_manifold, witness_of
from collidecli.engine.narrowphase.dispatch import collider
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType
from tests.support.collider_runner import PairContacts, launch_collider
from tests.support.oracle import rotation_of


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
                witness_of(separation[i], normal[i], point_a[i]),
                out,
                i * MAX_MANIFOLD,
            )

    return run_manifold


def run_manifold(
    type_a, size_a, type_b, size_b, pose, max_separation, separation, normal, point_a=None
) -> PairContacts:
    """`contact_manifold` where separation [P] is below reach; without point_a, a contact at the witness is nan."""
    pose = np.atleast_2d(np.asarray(pose, np.float64))
    point = np.full((len(pose), 3), np.nan) if point_a is None else np.atleast_2d(point_a)
    out = _contact_buffer(len(pose) * MAX_MANIFOLD)
    count = wp.zeros(len(pose), dtype=int)
    inputs = [
        *(int(type_a), int(type_b), Vec3(*size_a), Vec3(*size_b), max_separation, wp.array(pose, dtype=Pose)),
        *(wp.array(np.atleast_1d(separation), dtype=Real), wp.array(np.atleast_2d(normal), dtype=Vec3)),
        *(wp.array(point, dtype=Vec3), out, count),
    ]
    wp.launch(_manifold_kernel(), dim=len(pose), inputs=inputs)
    return _contacts(out, count, MAX_MANIFOLD)


def run_convex(type_a, size_a, type_b, size_b, pose, max_separation) -> PairContacts:
    """The general collider, by GJK, at poses [P, 7]."""
    kernel = collider(ShapeType.CYLINDER, ShapeType.CYLINDER, "gjk").kernel
    return launch_collider(kernel, MAX_CONTACTS, int(type_a), size_a, int(type_b), size_b, pose, max_separation)


def both_points(pose, contacts: PairContacts, i: int = 0) -> np.ndarray:
    """Witness pairs of pair i, float64[count, 6]: a's point, then b's point, both in a's frame."""
    n = contacts.count[i]
    point, normal, separation = contacts.point[i, :n], contacts.normal[i, :n], contacts.separation[i, :n]
    return np.concatenate([point, point + separation[:, None] * normal], -1)


def swapped_pose(pose: np.ndarray) -> np.ndarray:
    """Poses of a in b's frame, from those of b in a's [P, 7]."""
    back = -np.einsum("pji,pj->pi", rotation_of(pose), pose[:, :3])
    return np.concatenate([back, pose[:, 3:] * [-1.0, -1.0, -1.0, 1.0]], -1)


def same_points(found: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether two sets of points [N, D], [M, D] are the same, in any order."""
    found, expected = np.atleast_2d(found), np.atleast_2d(np.asarray(expected, np.float64))
    if found.shape != expected.shape:
        return False
    distance = np.abs(found[:, None] - expected[None]).max(-1)
    return bool(np.all(distance.min(0) <= tolerance) and np.all(distance.min(1) <= tolerance))


def _contact_buffer(rows: int) -> ContactBuffer:
    records = np.zeros(rows, ContactRecord.numpy_dtype())
    records["point"] = records["normal"] = records["separation"] = np.nan
    out = ContactBuffer()
    out.contact = wp.array(records, dtype=ContactRecord)
    out.start, out.most, out.pair_count = 0, 1, rows
    return out


def _contacts(out: ContactBuffer, count: wp.array, rows: int) -> PairContacts:
    contact = out.contact.numpy().reshape(len(count), rows)
    feature = np.stack([contact["feature_a"], contact["feature_b"]], -1)
    return PairContacts(
        count.numpy(), contact["point"], contact["normal"], contact["separation"], feature, contact["kind"]
    )
