"""What moves the environments of a stage: recordings, and the stage's own animation."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import h5py
import numpy as np
import pytest
from pxr import Gf, Sdf

import collidecli
from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError
from collidecli.scene.options import SceneOptions
from tests.support.environment_stages import COUNT, attribute, env, flattened_alone, rows, stage_writer

BIGGER_SHELF = attribute(env(3, "/shelf"), "size", 0.7)


@pytest.fixture
def stage_of(tmp_path):
    return stage_writer(tmp_path)


def test_worlds_that_do_not_agree_are_refused(stage_of, tmp_path):
    path = stage_of()
    assert load_scene([path], COUNT).model.world_count == COUNT
    with pytest.raises(InputError, match="3 worlds, and the scene has 5 worlds of its own"):
        load_scene([path], 3)
    with pytest.raises(InputError, match="2 scenes, and the scene has 5 worlds of its own"):
        load_scene([path, path], None)
    recording = write_recording(tmp_path, ["Robot/link_0"], np.zeros((1, 4, 1, 7)))
    with pytest.raises(InputError, match="4 worlds of the recording, and the scene has 5 worlds of its own"):
        load_scene([path], None, trajectory=recording)


def write_recording(folder, names, poses):
    path = folder / "motion.h5"
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "collide-trajectory", "format_version": np.array([1, 0], np.int32)})
        file.attrs["creator"] = "test"
        file["time"] = np.arange(len(poses)) * 0.1
        file["body_name"] = names
        file["body_q"] = poses
    return path


@pytest.mark.parametrize("prefix", [env(0, "/"), env(4, "/"), ""])
def test_recordings_name_bodies_in_any_environment(stage_of, tmp_path, prefix):
    """Each world has poses of its own; the odd one's bodies are meant too; what is left out rests in each world."""
    rng = np.random.default_rng(3)
    poses = np.zeros((2, COUNT, 2, 7))
    poses[..., :3], poses[..., 6] = rng.uniform(-1, 1, (2, COUNT, 2, 3)), 1.0
    path = write_recording(tmp_path, [prefix + "Robot/link_2", prefix + "Robot/link_0"], poses)
    scene = load_scene([stage_of(BIGGER_SHELF)], None, trajectory=path)
    assert scene.model.world_template.tolist() == [0, 0, 0, 1, 0]
    motion = scene.motion()
    read = motion.read(range(2))
    motion.close()
    for world in range(COUNT):
        first = env(3 if world == 3 else 0)
        row = scene.model.bodies.path.index
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_2")], poses[:, world, 0])
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_0")], poses[:, world, 1])
        resting = scene.model.resting_poses()[world, row(f"{first}/Robot/link_1")]
        np.testing.assert_array_equal(read[:, world, row(f"{first}/Robot/link_1")], [resting, resting])


@pytest.mark.parametrize(("name", "origin"), [(env(2, "/Robot/link_0"), 2), ("Robot/link_0", 0)])
def test_a_recording_of_one_world_moves_with_each_origin(stage_of, tmp_path, name, origin):
    pose = np.array((7.0, 8.0, 9.0, 0, 0, 0, 1))
    path = write_recording(tmp_path, [name], pose[None, None, None])
    scene = load_scene([stage_of(BIGGER_SHELF)], None, trajectory=path)
    motion = scene.motion()
    placed = scene.model.moved_with_worlds(motion.read(range(1)))[0]
    assert any("of one world" in warning for warning in motion.warnings)
    motion.close()
    origins = scene.model.world_pose[:, :3]
    for world in range(COUNT):
        row = scene.model.bodies.path.index(env(3 if world == 3 else 0, "/Robot/link_0"))
        expected = pose[:3] + origins[world] - origins[origin]
        np.testing.assert_allclose(placed[world, row, :3], expected, rtol=0.0, atol=1e-14)


def test_one_body_of_several_environments_is_refused(stage_of, tmp_path):
    path = write_recording(tmp_path, [env(0, "/Robot/link_0"), env(1, "/Robot/link_0")], np.ones((1, 1, 2, 7)))
    scene = load_scene([stage_of()], None, trajectory=path)
    with pytest.raises(InputError, match="one body in several environments"):
        scene.motion()


def animate(layer, path, values):
    spec = Sdf.CreatePrimInLayer(layer, path)
    if "xformOp:translate" not in spec.attributes:
        Sdf.AttributeSpec(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3)
    for time, value in values.items():
        layer.SetTimeSample(f"{path}.xformOp:translate", time, Gf.Vec3d(*value))


def check_motion_against_alone(path, folder):
    scene = load_scene([path], None)
    motion = scene.motion()
    together = collidecli.collide(scene.model, motion, device="cpu")
    count = 0
    for world, root in enumerate(scene.model.world_path):
        target = flattened_alone(path, root, folder)
        single = load_scene([target], None, options=SceneOptions(environments="none"))
        own = single.motion()
        times = [int(t * 24) for t in motion.time]
        expected = collidecli.collide(single.model, own, device="cpu")
        for frame, time in enumerate(times):
            theirs = list((own.time * 24).astype(int)).index(time) if len(own.time) > 1 else 0
            ours = rows(together.cell(frame, world), scene.model)
            other = rows(expected.cell(theirs, 0), single.model)
            assert ours[0] == other[0]
            np.testing.assert_allclose(ours[1], other[1], rtol=0.0, atol=2e-7)
            count += len(ours[0])
    assert count > 0
    return scene.model


def test_an_animation_that_all_have(stage_of, tmp_path):
    def change(layer):
        for k in range(COUNT):
            animate(layer, env(k, "/Robot/link_2"), {0: (0.4, 0.1, 0.3), 24: (0.3, 0.35, 0.3)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0] * COUNT


def test_an_animation_of_one(stage_of, tmp_path):
    def change(layer):
        animate(layer, env(3, "/Robot/link_2"), {0: (0.4, 0.1, 0.3), 24: (0.3, 0.35, 0.3)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0, 0, 0, 1, 0]


def test_an_environment_that_moves_as_a_whole(stage_of, tmp_path):
    def change(layer):
        animate(layer, env(3), {0: (2.5, 0.0, 0.0), 24: (2.5, 0.4, 0.5)})

    assert check_motion_against_alone(stage_of(change), tmp_path).world_template.tolist() == [0, 0, 0, 1, 0]
