"""Contacts followed from frame to frame, against a tracker in plain loops, and one answer however a run is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collidecli
from collidecli.analysis.contact_tracking import _nearest_first
from collidecli.commands.python_api import Contacts
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import assert_identical
from tests.support.meshes import grid
from tests.support.oracle import rotation_of

FRAMES = 12
STICK = 0.02
MARGIN = 0.004


def scene(world_count: int = 1) -> Model:
    """A bumpy floor; a box, a ball and a can that move."""
    config = ShapeConfig(gap=0.02, margin=MARGIN / 2)
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *grid(12, 2.0, lambda x, y: 0.02 * np.sin(5.0 * x + 2.0 * y)), cfg=config)
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1, cfg=config)
    builder.add_shape_sphere(builder.add_body(), radius=0.2, cfg=config)
    builder.add_shape_cylinder(builder.add_body(), radius=0.15, half_height=0.2, cfg=config)
    return builder.finalize(world_count=world_count)


def motion() -> np.ndarray:
    """float64[FRAMES, 1, 3, 7]: slow slides and turns near the floor, the box and the can into each other."""
    time = np.arange(FRAMES)
    angle = np.stack([0.02 * time, 0.03 * time, 0.05 * time], axis=1)
    body_q = np.zeros((FRAMES, 1, 3, 7))
    body_q[:, 0, :, 0] = np.array([-0.2, 0.6, 0.2]) + np.stack([0.006 * time, 0.01 * time, -0.004 * time], axis=1)
    body_q[:, 0, :, 1] = [0.1, -0.5, 0.1]
    body_q[:, 0, :, 2] = [0.1, 0.19, 0.19]
    axis = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.6, 0.0, 0.8]])
    body_q[:, 0, :, 3:6] = np.sin(angle / 2)[..., None] * axis
    body_q[:, 0, :, 6] = np.cos(angle / 2)
    return body_q


def rows(contacts: Contacts, frame: int) -> list[dict[str, Any]]:
    """A frame's contacts, the points in float64."""
    cell = contacts.cell(frame)
    names = ("shape0", "shape1", "feature0", "feature1", "normal", "point0", "point1")
    return [{name: getattr(cell, name)[row] for name in names} for row in range(cell.rigid_contact_count)]


def followed(model: Model, body_q: np.ndarray, contacts: Contacts, stick: float) -> tuple[list[int], np.ndarray]:
    """Ids and, at both ends, points of all contacts: what the documents say, said by loops. contacts: as found."""
    ids: list[int] = []
    points: list[np.ndarray] = []
    before: list[dict[str, Any]] = []
    new = 0
    for frame in range(len(body_q)):

        def pose(shape: int, frame: int = frame) -> tuple[np.ndarray, np.ndarray]:
            body = model.shapes.body[shape]
            if body < 0:
                return np.eye(3), np.zeros(3)
            return rotation_of(body_q[frame, 0, body][None])[0], body_q[frame, 0, body, :3]

        def carried(row: dict[str, Any], pose=pose) -> np.ndarray:
            ends = [pose(row[f"shape{k}"]) for k in (0, 1)]
            return sum(r @ row["kept"][k] + t for k, (r, t) in enumerate(ends)) / 2

        def middle(row: dict[str, Any]) -> np.ndarray:
            return (row["point0"] + row["point1"]) / 2

        now = rows(contacts, frame)
        keys = ("shape0", "shape1", "feature0", "feature1")
        known = {tuple(other[k] for k in keys): j for j, other in enumerate(before)}
        named = [tuple(row[k] for k in keys) for row in now]
        match = {i: known[name] for i, name in enumerate(named) if name in known}
        ways = sorted(
            (np.linalg.norm(middle(row) - carried(other)), i, j)
            for i, row in enumerate(now)
            for j, other in enumerate(before)
            if i not in match and j not in match.values() and all(row[k] == other[k] for k in keys[:2])
        )
        for way, i, j in ways:
            if stick and way <= stick and i not in match and j not in match.values():
                match[i] = j
        for i, row in enumerate(now):
            row["id"] = before[match[i]]["id"] if i in match else new
            new += i not in match
            shift = np.zeros(3)
            if stick and i in match:
                n = row["normal"].astype(np.float64)
                shift = carried(before[match[i]]) - middle(row)
                shift = shift - n * (n @ shift) / (n @ n)
                if np.linalg.norm(shift) > stick:
                    shift = np.zeros(3)
            row["point0"], row["point1"] = row["point0"] + shift, row["point1"] + shift
            row["kept"] = [
                r.T @ (row[f"point{k}"] - t) for k, (r, t) in enumerate(map(pose, (row["shape0"], row["shape1"])))
            ]
            ids.append(row["id"])
            points.append(np.concatenate([row["point0"], row["point1"]]))
        before = now
    return ids, np.array(points)


@pytest.fixture(scope="module")
def found() -> Contacts:
    contacts = collidecli.collide(scene(), motion())
    assert contacts.rigid_contact_count > 100
    return contacts


@pytest.fixture(scope="module")
def sticky() -> Contacts:
    return collidecli.collide(scene(), motion(), sticky_contacts=STICK)


def test_ids_alone_change_nothing_else(found):
    contacts = collidecli.collide(scene(), motion(), contact_ids=True)
    ids = contacts.columns["contact_id"]
    assert ids.dtype == np.int64
    assert ids.tolist() == followed(scene(), motion(), found, 0.0)[0]
    assert 10 < len(set(ids.tolist())) < len(ids) / 2
    contacts.columns.pop("contact_id")
    assert_identical(contacts, found)


def test_sticky_contacts_are_those_of_the_loops(found, sticky):
    ids, points = followed(scene(), motion(), found, STICK)
    assert sticky.columns["contact_id"].tolist() == ids
    # Offsets, which say where a contact was on its body, are float32.
    np.testing.assert_allclose(np.concatenate([sticky.point0, sticky.point1], axis=1), points, atol=2e-6)
    moved = np.linalg.norm(sticky.point0 - found.point0, axis=1)
    assert 0.2 < (moved > 1e-4).mean() < 1.0
    assert len(set(ids)) < len(set(followed(scene(), motion(), found, 0.0)[0]))


def test_what_sticks_keeps_distance_normal_and_the_equation(found, sticky):
    for name in ("shape0", "shape1", "distance", "normal", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(sticky, name), getattr(found, name))
    way = sticky.point0 - found.point0
    assert np.linalg.norm(way, axis=1).max() <= STICK + 1e-12
    np.testing.assert_allclose((way * found.normal).sum(axis=1), 0.0, atol=1e-9)
    apart = ((sticky.point1 - sticky.point0) * sticky.normal).sum(axis=1)
    np.testing.assert_allclose(apart, sticky.distance + MARGIN, atol=1e-7)
    model, body_q = scene(), motion()
    frame = np.repeat(np.arange(FRAMES), np.diff(sticky.cell_start))
    for side in "01":
        body = model.shapes.body[getattr(sticky, f"shape{side}")]
        pose = body_q[frame, 0, np.maximum(body, 0)]
        world = np.einsum("nij,nj->ni", rotation_of(pose), getattr(sticky, f"offset{side}")) + pose[:, :3]
        point = getattr(sticky, f"point{side}")
        world = np.where((body < 0)[:, None], getattr(sticky, f"offset{side}"), world)
        np.testing.assert_allclose(world, point, atol=1e-6)


@pytest.mark.parametrize("options", [{"chunk_cells": 1}, {"chunk_cells": 5, "threads": 3}, {"broad_phase": "sap"}])
def test_one_answer(sticky, options):
    assert_identical(collidecli.collide(scene(), motion(), sticky_contacts=STICK, **options), sticky)


def test_every_world_is_the_first(sticky):
    contacts = collidecli.collide(scene(world_count=3), motion(), sticky_contacts=STICK, chunk_cells=4)
    for frame in range(FRAMES):
        for world in range(3):
            assert_identical(contacts.cell(frame, world), sticky.cell(frame))


def test_a_contact_at_rest_stays_where_it_was_first_found():
    """A ball that rocks by less than the distance, and at last by more."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    body_q = np.zeros((6, 1, 1, 7))
    angle = np.array([0.0, 0.01, -0.01, 0.012, 0.0, 0.4])
    body_q[:, 0, 0, 2] = 0.5
    body_q[:, 0, 0, 4], body_q[:, 0, 0, 6] = np.sin(angle / 2), np.cos(angle / 2)
    contacts = collidecli.collide(builder.finalize(), body_q, sticky_contacts=0.05)
    # On the ball the place turns with it and on the plane it rests: the mean of the two is kept.
    np.testing.assert_allclose(contacts.point0[1, 0], -0.5 * 0.5 * np.sin(0.01), atol=1e-7)
    assert np.abs(contacts.point0[:5, 0]).max() < 0.01
    assert contacts.columns["contact_id"].tolist() == [0] * 6
    np.testing.assert_allclose(contacts.point0[5, :2], 0.0, atol=1e-7)  # turned too far: as found


@pytest.mark.parametrize("seed", range(4))
def test_the_nearest_are_matched_first(seed):
    rng = np.random.default_rng(seed)
    # A lattice, so that many ways are equal.
    here, there = (rng.integers(0, 4, (int(rng.integers(1, 20)), 3)).astype(float) for _ in range(2))
    matched: dict[int, int] = {}
    for way, i, j in sorted((np.linalg.norm(p - q), i, j) for i, p in enumerate(here) for j, q in enumerate(there)):
        if way <= 2.0 and i not in matched and j not in matched.values():
            matched[i] = j
    assert dict(_nearest_first(here, there, 2.0)) == matched


def test_a_distance_is_a_length():
    with pytest.raises(InputError, match="sticky_contacts"):
        collidecli.collide(scene(), motion(), sticky_contacts=-1.0)
