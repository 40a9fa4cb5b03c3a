"""Blocks of contact maps, points and rays: one answer for all sizes and threads."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.importers.probe_files import ProbeFile
from collidecli.motions.probes import ProbedMotion, probes_of_file, vertices_of
from collidecli.python.contacts import motion_of
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import EngineOptions
from tests.support.meshes import blob

WORLDS = 3
FRAMES = 7


def robot() -> ModelBuilder:
    """A hand of two shapes, a cup, and a table that every world has."""
    builder = ModelBuilder()
    hand = builder.add_body(key="hand")
    builder.add_shape_box(hand, hx=0.1, hy=0.2, hz=0.05, key="fist", xform=[0.1, 0, 0, 0, 0, 0, 1])
    builder.add_shape_capsule(
        hand, radius=0.03, half_height=0.1, key="thumb", xform=[0.3, 0, 0, 0, 0.6, 0, 0.8]
    )
    cup = builder.add_body(key="cup")
    vertices, faces = blob(np.random.default_rng(1), 6, 8)
    builder.add_shape_mesh(cup, vertices * 0.1, faces, key="cup_mesh")
    builder.add_shape_sphere(cup, radius=0.05, key="lid", xform=[0.0, 0.0, 0.1, 0, 0, 0, 1])
    builder.add_shape_plane(-1, key="table")
    return builder


def scene_of(model) -> SimpleNamespace:
    bodies = tuple(model.bodies.path[b] if b >= 0 else "" for b in model.shapes.body)
    return SimpleNamespace(model=model, shape_bodies=bodies)


@pytest.fixture
def moved():
    model = robot().finalize(world_count=WORLDS)
    rng = np.random.default_rng(2)
    poses = np.empty((FRAMES, WORLDS, 2, 7))
    poses[..., :3] = rng.normal(size=(FRAMES, WORLDS, 2, 3)) * 0.3 + [0.0, 0.0, 0.3]
    poses[..., 3:] = (
        Rotation.random(FRAMES * WORLDS * 2, rng=rng).as_quat().reshape(FRAMES, WORLDS, 2, 4)
    )
    return model, motion_of(model, poses)


def results(moved, probes, at_once: int, threads: int):
    model, motion = moved
    engine = EngineOptions(threads=threads, device="cpu")
    probed = ProbedMotion(engine, model, motion, probes, find_device("cpu"))
    blocks = list(probed.blocks(at_once))
    assert [block.first for block in blocks] == np.cumsum(
        [0, *(len(block.distance) for block in blocks[:-1])]
    ).tolist()
    fields = ("distance", "shape", "normal")
    return {
        name: np.concatenate([getattr(block, name) for block in blocks])
        for name in fields
        if getattr(blocks[0], name) is not None
    }


def rays(count: int) -> ProbeFile:
    rng = np.random.default_rng(3)
    along = rng.normal(size=(count, 3))
    along /= np.linalg.norm(along, axis=1)[:, None]
    return ProbeFile(rng.normal(size=(count, 3)) * 0.3, along, ("", "hand") * (count // 2))


@pytest.mark.parametrize("kind", ["vertices", "points", "rays"])
def test_block_size_nor_threads_change_a_bit(moved, kind):
    scene = scene_of(moved[0])
    if kind == "vertices":
        probes = vertices_of(scene, moved[0], ["hand"], [], 0.05)
    else:
        file = rays(20)
        file = file if kind == "rays" else ProbeFile(file.point, None, file.body)
        probes = probes_of_file(scene, moved[0], file, "--points", [])
    first = results(moved, probes, 1 << 16, 1)
    assert first["distance"].shape == (FRAMES, WORLDS, len(probes))
    for at_once, threads in ((1, 1), (1, 3), (2 * WORLDS * len(probes), 2)):
        other = results(moved, probes, at_once, threads)
        assert first.keys() == other.keys()
        for name, values in first.items():
            assert values.tobytes() == other[name].tobytes()


def test_vertices_are_measured_from_what_their_shape_may_touch(moved):
    model = moved[0]
    probes = vertices_of(scene_of(model), model, ["hand"], [], 0.0)
    found = results(moved, probes, 1 << 16, 1)
    paths = np.array(model.shapes.path)
    # never from the hand itself
    assert {"cup_mesh", "lid", "table"} >= set(paths[np.unique(found["shape"])].tolist())
    poses = moved[1].read(range(FRAMES))
    hand = poses[:, :, 0]
    turned = (
        Rotation.from_quat(hand[..., 3:].reshape(-1, 4))
        .as_matrix()
        .reshape(FRAMES, WORLDS, 1, 3, 3)
    )
    world = hand[:, :, None, :3] + (turned @ probes.point[None, None, :, :, None])[..., 0]
    cup = poses[:, :, 1]
    lid = cup[..., :3] + Rotation.from_quat(cup[..., 3:].reshape(-1, 4)).apply(
        [0.0, 0.0, 0.1]
    ).reshape(FRAMES, WORLDS, 3)
    to_lid = np.linalg.norm(world - lid[:, :, None], axis=-1) - 0.05
    truth = np.minimum(world[..., 2], to_lid)
    assert (found["distance"] <= truth + 1e-12).all()
    is_mesh = paths[found["shape"]] == "cup_mesh"
    assert 0.05 < is_mesh.mean() < 0.95
    assert np.abs(found["distance"] - truth)[~is_mesh].max() < 1e-12
    alone = vertices_of(scene_of(model), model, ["fist"], ["table"], 0.0)
    assert len(alone) == 8
    of_table = results(moved, alone, 1 << 16, 1)
    assert np.abs(of_table["distance"] - world[:, :, :8, 2]).max() < 1e-12


def test_a_point_of_a_body_is_not_measured_from_that_body(moved):
    model = moved[0]
    file = ProbeFile(np.array([[0.1, 0.0, 0.0], [0.0, 0.0, 0.0]]), None, ("hand", "cup"))
    found = results(moved, probes_of_file(scene_of(model), model, file, "--points", []), 1 << 16, 1)
    body = model.shapes.body[found["shape"]]
    assert (body[..., 0] != 0).all()
    assert (body[..., 1] != 1).all()


def test_worlds_without_the_body_have_no_distance():
    joined = ModelBuilder()
    other = ModelBuilder()
    other.add_shape_sphere(other.add_body(key="ball"), radius=0.1, key="ball")
    other.add_shape_plane(-1, key="ground")
    for builder in (robot(), other):
        joined.add_world(builder)
    model = joined.finalize()
    motion = motion_of(model, np.tile(model.bodies.pose, (2, 2, 1, 1)))
    scene = scene_of(model)
    maps = vertices_of(scene, model, ["fist", "ball"], [], 0.0)
    found = results((model, motion), maps, 1 << 16, 1)
    of_fist = model.shapes.template[maps.shape] == 0
    assert 0 < of_fist.sum() < len(maps)
    assert np.array_equal(np.isnan(found["distance"][0, 0]), ~of_fist)
    assert np.array_equal(np.isnan(found["distance"][0, 1]), of_fist)
    assert np.array_equal(found["shape"] < 0, np.isnan(found["distance"]))
    file = ProbeFile(np.zeros((1, 3)), None, ("ball",))
    point = results((model, motion), probes_of_file(scene, model, file, "--points", []), 9, 1)
    assert np.array_equal(np.isnan(point["distance"][:, :, 0]), [[True, False]] * 2)


def test_what_cannot_be_measured_is_refused(moved):
    model = moved[0]
    scene = scene_of(model)
    with pytest.raises(InputError, match="planes or triggers alone"):
        vertices_of(scene, model, ["table"], [], 0.0)
    with pytest.raises(InputError, match="may touch another one that matches --partners"):
        vertices_of(scene, model, ["fist"], ["thumb"], 0.0)
    file = ProbeFile(np.zeros((1, 3)), None, ("cupp",))
    with pytest.raises(InputError, match="is no body") as error:
        probes_of_file(scene, model, file, "--points", [])
    assert "cup" in error.value.fix
    file = ProbeFile(np.zeros((1, 3)), None, ("cup",))
    with pytest.raises(InputError, match="no shape to measure from"):
        probes_of_file(scene, model, file, "--points", ["lid"])
