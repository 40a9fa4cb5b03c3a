"""Reduced contact sets: rows of the full one, the oracle's choice, one answer however they are
made."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import collidecli
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import assert_identical, cells_of, contacts_of, pipeline_of
from tests.support.meshes import blob, grid
from tests.support.poses import random_quaternions

REDUCED = ContactOptions(reduce_contacts=True)


@cache
def crowd(world_count: int = 1) -> Model:
    """A bumpy floor, and on it a blob, the hull of another, a box, and two that have no mesh."""
    rng = np.random.default_rng(5)
    config = ShapeConfig(gap=0.06, margin=0.003)
    mesh = replace(config, collision_group=-1)
    builder = ModelBuilder()
    builder.add_shape_mesh(
        -1, *grid(60, 3.0, lambda x, y: 0.03 * np.sin(9.0 * x) * np.cos(8.0 * y)), cfg=mesh
    )
    builder.add_shape_mesh(builder.add_body(), *blob(rng, 24, 32, bump=0.2), cfg=mesh)
    builder.add_shape_convex_hull(builder.add_body(), 0.7 * blob(rng, bump=0.1)[0], cfg=config)
    builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.4, hz=0.2, cfg=config)
    builder.add_shape_capsule(builder.add_body(), radius=0.3, half_height=0.4, cfg=config)
    return builder.finalize(world_count=world_count)


def crowd_poses(frames: int = 6) -> np.ndarray:
    """float64[frames, 1, 4, 7]: about the middle of the floor, penetrating it and each other."""
    rng = np.random.default_rng(6)
    body_q = np.zeros((frames, 1, 4, 7))
    body_q[..., :3] = rng.uniform([-0.7, -0.7, 0.0], [0.7, 0.7, 0.5], (frames, 1, 4, 3))
    body_q[..., 3:] = random_quaternions(rng, frames, 1, 4)
    return body_q


def pairs_of(contacts: Contacts) -> dict[tuple[int, int, int], np.ndarray]:
    """Cell and shapes to the rows of that pair."""
    keys = np.stack([cells_of(contacts), contacts.shape0, contacts.shape1], axis=1)
    unique, place = np.unique(keys, axis=0, return_inverse=True)
    return {tuple(key): np.flatnonzero(place.ravel() == k) for k, key in enumerate(unique.tolist())}


def rows_of(contacts: Contacts) -> set[bytes]:
    """Every row as its bytes, with its cell."""
    columns = [cells_of(contacts), *(getattr(contacts, column.name) for column in RIGID_COLUMNS)]
    return {
        b"".join(values)
        for values in zip(*([x.tobytes() for x in column] for column in columns), strict=True)
    }


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Degrees."""
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))


def force(contacts: Contacts, rows: np.ndarray) -> np.ndarray:
    depth = np.maximum(-contacts.distance[rows].astype(np.float64), 0.0)
    return depth @ contacts.normal[rows].astype(np.float64)


def check_reduced(full: Contacts, kept: Contacts) -> float:
    """Every row one of the full set's, every pair and its deepest contact there, forces within 2
    degrees.

    Returns the largest angle between the forces of a pair [degrees].
    """
    assert rows_of(kept) < rows_of(full)
    of_full = pairs_of(full)
    of_kept = pairs_of(kept)
    assert of_full.keys() == of_kept.keys()
    worst = 0.0
    for key, rows in of_full.items():
        assert kept.distance[of_kept[key]].min() == full.distance[rows].min()
        whole = force(full, rows)
        if np.linalg.norm(whole) > 1e-4 * np.abs(full.distance[rows]).sum():
            worst = max(worst, angle(whole, force(kept, of_kept[key])))
    assert worst < 2.0
    return worst


@pytest.fixture(scope="module")
def poses() -> np.ndarray:
    return crowd_poses()


@pytest.fixture(scope="module")
def pipeline(poses) -> CollisionPipeline:
    return pipeline_of(crowd(), poses, REDUCED, broad_phase="nxn")


@pytest.fixture(scope="module")
def reference(pipeline, poses) -> Contacts:
    return contacts_of(pipeline, poses)


def test_kept_rows_are_rows_of_the_full_set(pipeline, reference, poses):
    full = contacts_of(replace(pipeline, reduction=None), poses)
    assert full.rigid_contact_count > 2 * reference.rigid_contact_count
    check_reduced(full, reference)


@pytest.mark.rest
def test_every_world_is_the_first(poses, reference):
    model = crowd(world_count=3)
    contacts = contacts_of(pipeline_of(model, poses, REDUCED, broad_phase="sap"), poses, chunk=7)
    for frame in range(len(poses)):
        for world in range(3):
            assert_identical(contacts.cell(frame, world), reference.cell(frame))


def test_pairs_of_primitives_are_reduced_when_asked(poses):
    model = crowd()
    plain = collidecli.collide(model, poses, reduce_contacts=True)
    every = collidecli.collide(model, poses, reduce_contacts=True, reduce_pairs="all", betas=[10.0])
    primitive = {key: len(rows) for key, rows in pairs_of(plain).items() if key[1] > 2}
    full = pairs_of(collidecli.collide(model, poses))
    assert primitive == {key: len(full[key]) for key in primitive}
    assert every.rigid_contact_count < plain.rigid_contact_count


def test_a_scene_without_meshes_is_left_alone():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(xform=(0, 0, 0.4, 0, 0, 0, 1)), hx=0.5, hy=0.5, hz=0.5)
    model = builder.finalize()
    sample = model.bodies.pose[None, None]
    assert pipeline_of(model, sample, REDUCED).reduction is None
    scaled = collidecli.collide(model, reduce_contacts=True, moment_matching=True)
    np.testing.assert_array_equal(
        scaled.columns["friction_scale"], np.ones(scaled.rigid_contact_count)
    )


def test_the_limit_comes_last(poses, reference):
    cut = contacts_of(pipeline_of(crowd(), poses, replace(REDUCED, max_contacts_per_pair=3)), poses)
    of_cut = pairs_of(cut)
    assert rows_of(cut) < rows_of(reference)
    for key, rows in pairs_of(reference).items():
        order = np.lexsort((rows, reference.distance[rows]))[:3]
        np.testing.assert_array_equal(
            cut.feature1[of_cut[key]], reference.feature1[np.sort(rows[order])]
        )


def test_options_add_what_they_say(poses):
    anchored = collidecli.collide(crowd(), poses, reduce_contacts=True, moment_matching=True)
    anchors = anchored.feature0 == -2
    assert anchors.sum() >= 5
    assert (anchored.kind[anchors] == 3).all()
    # Poses that `collide` normalizes round differently from those that a pipeline is given.
    reduced = collidecli.collide(crowd(), poses, reduce_contacts=True)
    assert anchored.rigid_contact_count == reduced.rigid_contact_count + anchors.sum()
    scale = anchored.columns["friction_scale"]
    assert scale.dtype == np.float32
    assert (scale >= 0.0).all()
    assert not (scale == 1.0).all()
    for contacts in (
        anchored,
        collidecli.collide(crowd(), poses, reduce_contacts=True, normal_matching=True),
    ):
        apart = ((contacts.point1 - contacts.point0) * contacts.normal).sum(axis=1)
        np.testing.assert_allclose(apart, contacts.distance + 0.006, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-6)


# Reduction of two triangle meshes against each other.

FRAMES = 4


def side_by_side() -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: turned at random, in penetration."""
    rng = np.random.default_rng(2)
    body_q = np.zeros((FRAMES, 1, 2, 7))
    body_q[..., 3:] = random_quaternions(rng, FRAMES, 1, 2)
    away = rng.normal(size=(FRAMES, 3))
    body_q[:, 0, 1, :3] = 1.5 * away / np.linalg.norm(away, axis=1, keepdims=True)
    return body_q


def model_of(*meshes: tuple[np.ndarray, np.ndarray], world_count: int = 1) -> Model:
    builder = ModelBuilder()
    for vertices, faces in meshes:
        builder.add_shape_mesh(builder.add_body(), vertices, faces, cfg=ShapeConfig(gap=0.01))
    return builder.finalize(world_count=world_count)


def blobs() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(3)
    return [blob(rng, 28, 40, bump=0.15), blob(rng, 24, 32, bump=0.15)]


@pytest.fixture(scope="module")
def case() -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, Contacts, Contacts]:
    """Meshes, poses, the full set and the reduced one."""
    meshes = blobs()
    body_q = side_by_side()
    full = collidecli.collide(model_of(*meshes), body_q)
    return meshes, body_q, full, collidecli.collide(model_of(*meshes), body_q, reduce_contacts=True)


def test_the_force_is_kept(case):
    _, _, full, kept = case
    assert full.rigid_contact_count > 500
    assert kept.rigid_contact_count < 0.4 * full.rigid_contact_count
    assert check_reduced(full, kept) <= 1.0 + 1e-3


def test_matched_normals_have_the_force_of_all(case):
    meshes, body_q, full, kept = case
    matched = collidecli.collide(
        model_of(*meshes), body_q, reduce_contacts=True, normal_matching=True
    )
    np.testing.assert_array_equal(matched.distance, kept.distance)
    for frame in range(FRAMES):
        forces = []
        for contacts in (full.cell(frame), matched.cell(frame)):
            depth = np.maximum(-contacts.distance.astype(np.float64), 0.0)
            forces.append(depth @ contacts.normal.astype(np.float64))
        # Normals and distances are float32.
        np.testing.assert_allclose(*(force / np.linalg.norm(force) for force in forces), atol=1e-5)
    apart = ((matched.point1 - matched.point0) * matched.normal).sum(axis=1)
    np.testing.assert_allclose(apart, matched.distance, atol=1e-7)


@pytest.mark.share(2, 2)
@pytest.mark.parametrize(
    "options", [{"broad_phase": "sap", "threads": 3, "chunk_cells": 1}, {"pipeline": "standard"}]
)
def test_one_answer(case, options):
    meshes, body_q, _, kept = case
    worlds = collidecli.collide(
        model_of(*meshes, world_count=2), body_q[:2], reduce_contacts=True, **options
    )
    for frame, world in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert_identical(worlds.cell(frame, world), kept.cell(frame))


def test_which_shape_stands_first_does_not_matter(case):
    meshes, body_q, _, kept = case
    swapped = collidecli.collide(model_of(*meshes[::-1]), body_q[:, :, ::-1], reduce_contacts=True)

    def features(contacts: Contacts, names: tuple[str, str]) -> set[tuple[int, ...]]:
        return set(
            zip(
                *(c.tolist() for c in (cells_of(contacts), *(getattr(contacts, n) for n in names))),
                strict=True,
            )
        )

    ours = features(kept, ("feature0", "feature1"))
    theirs = features(swapped, ("feature1", "feature0"))
    assert ours == theirs
