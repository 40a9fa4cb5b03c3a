"""Contacts of pairs of bodies reduced together: the oracle's choice, one answer however they are
made."""

from functools import cache

import h5py
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import assert_identical, cells_of
from tests.support.meshes import blob, grid
from tests.support.poses import random_quaternions
from tests.support.reduction import kept_contacts
from tests.support.usd_scenes import BODY_APIS, sphere, write_usda

MARGIN = 0.004
OPTIONS = {"gap": 0.05, "reduce_contacts": True, "reduce_pairs": "all", "reduce_by": "bodies"}


@cache
def crates(world_count: int = 1) -> Model:
    """A bumpy floor with a step, and two crates of boards, a blob and a ball."""
    random = np.random.default_rng(3)
    config = ShapeConfig(margin=MARGIN)
    builder = ModelBuilder()
    bumps = grid(20, 3.0, lambda x, y: 0.03 * np.sin(9.0 * x) * np.cos(8.0 * y))
    builder.add_shape_mesh(-1, *bumps, cfg=config)
    builder.add_shape_box(-1, xform=(0.8, 0, 0.1, 0, 0, 0, 1), hx=0.3, hy=1.0, hz=0.1, cfg=config)
    for _ in range(2):
        crate = builder.add_body()
        for board in range(5):
            place = (0.2 * board - 0.4, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
            builder.add_shape_box(crate, xform=place, hx=0.1, hy=0.4, hz=0.15, cfg=config)
    both = builder.add_body()
    builder.add_shape_mesh(both, *blob(random, 12, 16, bump=0.2), cfg=config)
    builder.add_shape_sphere(both, xform=(0.5, 0, 0, 0, 0, 0, 1), radius=0.3, cfg=config)
    return builder.finalize(world_count=world_count)


def crate_poses(frames: int = 4, away: float = 0.0) -> np.ndarray:
    """float64[frames, 1, 3, 7]: in penetration. away: distance to the origin [m]."""
    random = np.random.default_rng(4)
    poses = np.zeros((frames, 1, 3, 7))
    poses[..., :3] = random.uniform([-0.4, -0.4, 0.1], [0.4, 0.4, 0.5], (frames, 1, 3, 3))
    poses[..., 0] += away
    poses[..., 3:] = random_quaternions(random, frames, 1, 3)
    return poses


def groups_of(contacts: Contacts, model: Model) -> dict[tuple[int, int, int], np.ndarray]:
    """Cell and bodies, the lesser first, to the rows of that pair."""
    body = np.sort(
        np.stack([model.shapes.body[contacts.shape0], model.shapes.body[contacts.shape1]]), axis=0
    )
    keys = np.stack([cells_of(contacts), *body], axis=1)
    unique, place = np.unique(keys, axis=0, return_inverse=True)
    return {tuple(key): np.flatnonzero(place.ravel() == k) for k, key in enumerate(unique.tolist())}


def chosen_by_the_oracle(full: Contacts, model: Model, poses: np.ndarray) -> np.ndarray:
    """Ascending rows of the full set, by the rule in plain Python, from the points in the world."""
    kept: list[int] = []
    for (cell, first, _), rows in groups_of(full, model).items():
        sign = np.where(model.shapes.body[full.shape0[rows]] == first, 1.0, -1.0)[:, None]
        normal = sign * full.normal[rows].astype(np.float64)
        middle = 0.5 * (full.point0[rows].astype(np.float64) + full.point1[rows])
        if first >= 0:
            pose = poses[cell, 0, first]
            turn = Rotation.from_quat(pose[3:]).inv()
            normal, middle = turn.apply(normal), turn.apply(middle - pose[:3])
        chosen = kept_contacts(normal, middle, -full.distance[rows].astype(np.float64))
        kept += rows[chosen].tolist() if len(rows) > 1 else rows.tolist()
    return np.sort(kept)


def row_keys(contacts: Contacts) -> list[tuple[int, ...]]:
    names = ("shape0", "shape1", "feature0", "feature1")
    return list(
        zip(
            cells_of(contacts).tolist(),
            *(getattr(contacts, name).tolist() for name in names),
            strict=True,
        )
    )


@pytest.mark.parametrize("away", [0.0, 50.0])
def test_the_rows_that_the_oracle_chooses_are_kept(away):
    model = crates()
    poses = crate_poses(away=away)
    full = collidecli.collide(model, poses, gap=0.05)
    kept = collidecli.collide(model, poses, **OPTIONS)
    expected = chosen_by_the_oracle(full, model, poses)
    keys = row_keys(full)
    assert full.rigid_contact_count > kept.rigid_contact_count
    assert row_keys(kept) == [keys[row] for row in expected]
    for column in ("distance", "normal", "point0", "point1", "offset0", "offset1"):
        np.testing.assert_array_equal(getattr(kept, column), getattr(full, column)[expected])


def test_fewer_are_kept_than_of_pairs_of_shapes_and_the_deepest_of_bodies():
    model = crates()
    poses = crate_poses()
    full, kept = (
        collidecli.collide(model, poses, **options) for options in ({"gap": 0.05}, OPTIONS)
    )
    by_shapes = collidecli.collide(model, poses, **{**OPTIONS, "reduce_by": "shapes"})
    assert kept.rigid_contact_count < by_shapes.rigid_contact_count
    of_full, of_kept = (groups_of(contacts, model) for contacts in (full, kept))
    assert of_full.keys() == of_kept.keys()
    for key, rows in of_full.items():
        assert kept.distance[of_kept[key]].min() == full.distance[rows].min()


@pytest.mark.parametrize(
    "options",
    [
        {"broad_phase": "sap", "threads": 3, "chunk_cells": 1},
        {"broad_phase": "nxn", "chunk_cells": 5},
        {"pipeline": "standard"},
    ],
)
def test_one_answer(options):
    poses = crate_poses()
    kept = collidecli.collide(crates(), poses, **OPTIONS)
    worlds = collidecli.collide(crates(2), poses, **OPTIONS, **options)
    for frame in range(len(poses)):
        for world in range(2):
            assert_identical(worlds.cell(frame, world), kept.cell(frame))


def test_the_limit_is_of_a_pair_of_bodies():
    model = crates()
    poses = crate_poses()
    kept = collidecli.collide(model, poses, **OPTIONS)
    cut = collidecli.collide(model, poses, **OPTIONS, max_contacts_per_pair=3)
    keys = row_keys(kept)
    expected = []
    for rows in groups_of(kept, model).values():
        order = np.lexsort((rows, kept.distance[rows]))[:3]
        expected += rows[order].tolist()
    assert row_keys(cut) == [keys[row] for row in sorted(expected)]


def test_pairs_without_meshes_are_left_alone_unless_asked_for():
    model = crates()
    poses = crate_poses()
    full = collidecli.collide(model, poses, gap=0.05)
    kept = collidecli.collide(model, poses, **{**OPTIONS, "reduce_pairs": "meshes"})
    left = set(row_keys(full)) - set(row_keys(kept))
    meshes = {0, len(model.shapes) - 2}
    assert left
    assert all(key[1] in meshes or key[2] in meshes for key in left)


@pytest.mark.parametrize("name", ["normal_matching", "moment_matching", "anchor_contact"])
def test_options_of_pairs_of_shapes_are_refused(name):
    with pytest.raises(InputError, match=f"{name} is of a pair of shapes"):
        collidecli.collide(crates(), crate_poses(), **OPTIONS, **{name: True})


@pytest.mark.filterwarnings("ignore:.*collisionEnabled changes over time")
def test_a_disabled_shape_takes_no_part(tmp_path):
    """A ball above a plate that is disabled in the second frame, and another plate below it: the
    deepest contact of the two bodies is then of the other plate."""
    plates = "".join(
        f'def Cube "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\n double size = 1\n'
        f" double3 xformOp:translate = (0, 0, {z})\n"
        f' uniform token[] xformOpOrder = ["xformOp:translate"]\n {more}\n}}\n'
        for name, z, more in (
            ("near", -0.5, "bool physics:collisionEnabled.timeSamples = { 0: 1, 1: 0 }"),
            ("far", -0.51, ""),
        )
    )
    falling = (
        "double radius = 0.1\n double3 xformOp:translate.timeSamples"
        " = { 0: (0, 0, 0.08), 1: (0, 0, 0.08) }\n"
        'uniform token[] xformOpOrder = ["xformOp:translate"]'
    )
    write_usda(
        tmp_path,
        plates + sphere("ball", falling, BODY_APIS),
        'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = 1',
    )
    options = {**OPTIONS, "gap": 0.0, "max_contacts_per_pair": 1}
    collidecli.run(tmp_path / "s.usda", output=tmp_path / "s.h5", **options)
    with h5py.File(tmp_path / "s.h5") as file:
        distance = file["rigid_contacts/distance"][()]
    np.testing.assert_allclose(distance, [-0.02, -0.01], atol=1e-6)
