"""Pairs whose relative pose repeats from one frame to the next, as of bodies that sleep."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.real import Pose
from collidecli.engine.narrowphase.collider import is_repeated
from collidecli.engine.runtime.kernel import kernel
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import (
    assert_identical,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)

REPEATS = (1, 3, 2, 40, 1, 70)
"""Frames in which each group of bodies stays: more than a block of frames, and than a thread has
candidates."""


def resting_poses(body_count: int) -> np.ndarray:
    """float64[frames, 1, bodies, 7]: crowded bodies that move in some frames, every fourth of them
    in all."""
    rng = np.random.default_rng(5)
    places = random_poses(rng, (len(REPEATS), 1, body_count), 0.35)
    poses = np.repeat(places, REPEATS, axis=0)
    moving = poses[:, :, ::4]
    moving[..., :3] += 0.01 * rng.normal(size=moving[..., :3].shape)
    return poses


@pytest.mark.parametrize("method", ["gjk", "mpr"])
@pytest.mark.parametrize("most", [0, 2])
def test_contacts_of_repeated_poses_are_those_of_single_frames(method, most):
    model = mixed_builder(seed=8, count=28).finalize()
    poses = resting_poses(28)
    contact = ContactOptions(narrow_phase=method, max_contacts_per_pair=most)
    pipeline = pipeline_of(model, poses[:4], contact)
    together = contacts_of(pipeline, poses)
    alone = contacts_of(pipeline, poses, chunk=1)
    assert len(together.distance) > 50 * len(poses)
    assert_identical(together, alone)


def row_of_pairs(radii: list[float]) -> tuple[Model, np.ndarray]:
    """Pairs of a cylinder and an ellipsoid, 16 m apart, of equal relative poses; and one frame."""
    builder = ModelBuilder()
    poses = []
    for index, radius in enumerate(radii):
        for kind, size in ((ShapeType.CYLINDER, (radius, 0.2)), (ShapeType.ELLIPSOID, 3 * (0.25,))):
            body = builder.add_body(key=f"{kind.label}{index}")
            builder.add_shape(body, kind, size, key=f"{kind.label}{index}")
        poses += [[16.0 * index, 0, 0, 0, 0, 0, 1], [16.0 * index + 0.5, 0.125, 0, 0, 0, 0, 1]]
    return builder.finalize(), np.array(poses)[None, None]


def test_pairs_of_equal_poses_and_other_sizes_have_their_own_contacts():
    radii = [0.25, 0.27, 0.3, 0.24]
    together = collided(*row_of_pairs(radii))
    alone = [collided(*row_of_pairs([radius])) for radius in radii]
    assert together.distance.tolist() == [float(each.distance[0]) for each in alone]
    assert len(set(together.distance.tolist())) == len(radii)


def collided(model: Model, poses: np.ndarray) -> Contacts:
    """Contacts of one chunk."""
    return contacts_of(pipeline_of(model, poses), poses)


@kernel
def compare(first: wp.array[Pose], second: wp.array[Pose], same: wp.array[wp.bool]):
    """One thread per pair of poses."""
    same[wp.tid()] = is_repeated(first[wp.tid()], second[wp.tid()])


def test_poses_are_repeated_only_with_equal_bits():
    pose = np.array([0.1, 0.0, -0.3, 0.5, -0.5, 0.5, 0.5])
    others = np.tile(pose, (9, 1))
    others[1:8] = np.where(np.eye(7, dtype=bool), np.nextafter(pose, 1.0), pose)
    others[8, 1] = -0.0
    same = wp.zeros(9, dtype=wp.bool, device="cpu")
    arrays = [wp.array(values, dtype=Pose, device="cpu") for values in (0 * others + pose, others)]
    wp.launch(compare, 9, [*arrays, same], device="cpu")
    assert same.numpy().tolist() == [True] + 8 * [False]
