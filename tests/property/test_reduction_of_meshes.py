"""Reduction where it is needed most: a nut on a bolt, and two blobs, as triangle meshes against each other."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.commands.python_api import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.property.test_reduction import check_reduced
from tests.support.engine_runs import assert_identical, cells_of
from tests.support.meshes import blob
from tests.support.threads import PITCH, bolt, nut

FRAMES = 4


def on_the_bolt() -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: the nut turned and risen along its thread, off its place by less than the clearance."""
    rng = np.random.default_rng(1)
    angle = rng.uniform(0.0, 6.0, FRAMES)
    body_q = np.zeros((FRAMES, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[:, 0, 1, :3] = rng.normal(size=(FRAMES, 3)) * [0.006, 0.006, 0.01]
    body_q[:, 0, 1, 2] += angle / (2.0 * np.pi) * PITCH
    body_q[:, 0, 1, 5], body_q[:, 0, 1, 6] = np.sin(angle / 2), np.cos(angle / 2)
    return body_q


def side_by_side() -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: turned at random, in penetration."""
    rng = np.random.default_rng(2)
    body_q = np.zeros((FRAMES, 1, 2, 7))
    quaternion = rng.normal(size=(FRAMES, 1, 2, 4))
    body_q[..., 3:] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
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


SCENES = {"nut and bolt": ([bolt(), nut()], on_the_bolt()), "blobs": (blobs(), side_by_side())}


@pytest.fixture(scope="module", params=SCENES)
def case(request) -> tuple[list[tuple[np.ndarray, np.ndarray]], np.ndarray, Contacts, Contacts]:
    """Meshes, poses, the full set and the reduced one."""
    meshes, body_q = SCENES[request.param]
    full = collidecli.collide(model_of(*meshes), body_q)
    return meshes, body_q, full, collidecli.collide(model_of(*meshes), body_q, reduce_contacts=True)


def test_the_force_and_the_deepest_are_kept(case):
    _, _, full, kept = case
    assert full.rigid_contact_count > 500
    assert kept.rigid_contact_count < 0.4 * full.rigid_contact_count
    assert check_reduced(full, kept) <= 1.0 + 1e-3


def test_matched_normals_have_the_force_of_all(case):
    meshes, body_q, full, kept = case
    matched = collidecli.collide(model_of(*meshes), body_q, reduce_contacts=True, normal_matching=True)
    np.testing.assert_array_equal(matched.distance, kept.distance)
    for frame in range(FRAMES):
        forces = []
        for contacts in (full.cell(frame), matched.cell(frame)):
            depth = np.maximum(-contacts.distance.astype(np.float64), 0.0)
            forces.append(depth @ contacts.normal.astype(np.float64))
        # Normals and distances are float32; the forces of a nut hold each other down to a tenth.
        np.testing.assert_allclose(*(force / np.linalg.norm(force) for force in forces), atol=1e-5)
    apart = ((matched.point1 - matched.point0) * matched.normal).sum(axis=1)
    np.testing.assert_allclose(apart, matched.distance, atol=1e-7)


@pytest.mark.parametrize("options", [{"broad_phase": "sap", "threads": 3, "chunk_cells": 1}, {"pipeline": "standard"}])
def test_one_answer(case, options):
    meshes, body_q, _, kept = case
    worlds = collidecli.collide(model_of(*meshes, world_count=2), body_q[:2], reduce_contacts=True, **options)
    for frame, world in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert_identical(worlds.cell(frame, world), kept.cell(frame))


def test_which_shape_stands_first_does_not_matter(case):
    meshes, body_q, _, kept = case
    swapped = collidecli.collide(model_of(*meshes[::-1]), body_q[:, :, ::-1], reduce_contacts=True)

    def features(contacts: Contacts, names: tuple[str, str]) -> set[tuple[int, ...]]:
        return set(
            zip(*(c.tolist() for c in (cells_of(contacts), *(getattr(contacts, n) for n in names))), strict=True)
        )

    ours, theirs = features(kept, ("feature0", "feature1")), features(swapped, ("feature1", "feature0"))
    # In a nut, whose turns are all alike, rounding may choose among contacts that are equal.
    assert len(ours ^ theirs) <= 0.01 * len(ours)
