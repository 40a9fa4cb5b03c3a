"""Each function that takes a scene in motion takes files, or a model and its poses, with one
result."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.motions.pose_arrays import PoseArray

SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="a" pos="0 0 .5"><freejoint/><geom name="a" type="sphere" size=".2"/></body>
<body name="b" pos=".3 0 .5"><freejoint/><geom name="b" type="box" size=".15 .1 .1"/></body>
</worldbody></mujoco>"""
SENSORS = '[[sensor]]\nname = "tip"\nsensing_bodies = ["a"]\n'
TIMES = np.arange(8) * 0.125


@dataclass(frozen=True)
class Given:
    """The arguments of one motion, of two worlds, as files in a folder and as a model."""

    folder: Path
    files: tuple[str, str]
    model: tuple[collidecli.Model, np.ndarray]


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Given:
    folder = tmp_path_factory.mktemp("scenes")
    rng = np.random.default_rng(3)
    poses = np.zeros((8, 2, 2, 7))
    poses[..., :3] = rng.uniform([-0.25, -0.25, 0.05], [0.25, 0.25, 0.55], (8, 2, 2, 3))
    turns = rng.normal([0.0, 0.0, 0.0, 2.0], 0.4, (8, 2, 2, 4))
    poses[..., 3:] = turns / np.linalg.norm(turns, axis=-1, keepdims=True)
    (folder / "scene.xml").write_text(SCENE)
    (folder / "sensors.toml").write_text(SENSORS)
    with h5py.File(folder / "motion.h5", "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file.attrs["creator"] = "test"
        file["time"] = TIMES
        file["body_name"] = ["a", "b"]
        file["body_q"] = poses
    builder = collidecli.ModelBuilder()
    builder.add_mjcf(folder / "scene.xml")
    return Given(folder, ("scene.xml", "motion.h5"), (builder.finalize(world_count=2), poses))


@pytest.fixture(autouse=True)
def here(given, monkeypatch) -> None:
    monkeypatch.chdir(given.folder)


def arrays_of(result: Any) -> dict[str, Any]:
    """The fields of a result that do not depend on files, times of the clock and memory."""
    if isinstance(result, collidecli.Contacts):
        return {"content": result.contact_set.content_sha256, "time": result.time}
    if isinstance(result, str):
        with collidecli.open_contacts(result) as contacts:
            return {"content": contacts.content_sha256}
    if isinstance(result, collidecli.Problem):
        return {name: value for name, value in result.arrays.items() if "sha" not in name}
    fields = vars(result)
    return {name: value for name, value in fields.items() if isinstance(value, np.ndarray)} or {
        name: value for name, value in fields.items() if name in COMPARED
    }


COMPARED = ("listed", "points", "rows", "pairs", "identical", "frames", "worlds")
CALLS: dict[str, Callable[..., Any]] = {
    "run": lambda *a, **k: collidecli.run(*a, device="cpu", gap=0.05, **k),
    "run to a file": lambda *a, **k: collidecli.run(
        *a, output="out.h5", force=True, device="cpu", **k
    ),
    "audit": lambda *a, **k: collidecli.audit(*a, max_depth="1cm", device="cpu", **k),
    "clearance": lambda *a, **k: collidecli.clearance(*a, device="cpu", **k),
    "sweep": lambda *a, **k: collidecli.sweep(*a, device="cpu", **k),
    "probe": lambda *a, **k: collidecli.probe(*a, vertices_of="b", device="cpu", **k),
    "profile": lambda *a, **k: collidecli.profile(*a, repeats=1, device="cpu", **k),
    "label_sensors": lambda *a, **k: collidecli.label_sensors(
        *a, sensors="sensors.toml", device="cpu", **k
    ),
    "problem": lambda *a, **k: collidecli.problem(*a, **k),
    "fidelity": lambda *a, **k: collidecli.fidelity(*a, engines="mujoco", device="cpu", **k),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("frames", ["", "1:7:2"])
def test_a_model_has_the_results_of_its_files(given, name, frames):
    found = arrays_of(CALLS[name](*given.files, frames=frames))
    ours = arrays_of(CALLS[name](*given.model, time=TIMES, frames=frames))
    assert found
    assert found.keys() == ours.keys()
    for key, value in found.items():
        np.testing.assert_array_equal(ours[key], value, err_msg=key)


class Closed(PoseArray):
    """Poses that are counted as closed."""

    count = 0

    def close(self) -> None:
        self.count += 1


@pytest.mark.parametrize("name", CALLS)
def test_a_motion_of_the_caller_stays_open(given, name):
    model, poses = given.model
    motion = Closed(poses, model, time=TIMES)
    found = arrays_of(CALLS[name](model, motion))
    assert motion.count == 0
    again = arrays_of(CALLS[name](model, motion))
    for key, value in found.items():
        np.testing.assert_array_equal(again[key], value, err_msg=key)


@pytest.mark.parametrize("name", [name for name in CALLS if name not in ("run to a file", "sweep")])
def test_a_model_without_a_motion_rests(given, name):
    """As its files do, in one frame."""
    resting = given.files[0], None
    found = arrays_of(CALLS[name](*resting, worlds=2))
    ours = arrays_of(CALLS[name](given.model[0]))
    for key, value in found.items():
        np.testing.assert_array_equal(ours[key], value, err_msg=key)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("option", "told"),
    [
        ({"worlds": 2}, "worlds: is an option of scene files"),
        ({"ground": True}, "ground: is an option of scene files"),
        ({"demos": "a"}, "demos: is an option of scene files"),
        ({"quaternion_order": "wxyz"}, "quaternion_order: is an option of scene files"),
        ({"time": "t"}, "time: time is 't'"),
        ({"time": TIMES[:3]}, r"time: has shape \(3,\)"),
        ({"time": TIMES, "fps": 4.0}, "time, fps: both are given"),
        ({"particle_q": np.zeros((8, 1, 1, 3))}, "particle_q: has shape"),
        ({"no_such_option": 1}, "there is no argument 'no_such_option'"),
    ],
)
def test_options_that_a_model_does_not_have_are_refused(given, name, option, told):
    with pytest.raises(InputError, match=told):
        CALLS[name](*given.model, **option)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_neither_files_nor_a_model_is_refused(given, name):
    model, poses = given.model
    scene, motion = given.files
    for arguments, option, told in (
        ((scene, poses), {}, "recording: is of the poses of a model, and files are given"),
        ((scene, motion), {"particle_q": poses}, "particle_q: is of the poses of a model"),
        ((scene, motion), {"time": TIMES}, "time: is of the poses of a model"),
        ((model, motion), {}, "recording motion.h5: is a file"),
        ((model, poses[..., :1, :]), {}, "recording: has shape"),
        ((model, poses[:, :1].repeat(3, axis=1)), {}, "the motion has 3 worlds"),
        ((3,), {}, "scene is 3"),
        (([scene, 3],), {}, r"scene is \["),
    ):
        with pytest.raises(InputError, match=told):
            CALLS[name](*arguments, **option)


def test_a_file_of_a_model_says_so_in_place_of_the_name_of_a_scene(given):
    """And has the hash of the model, as contacts in memory have."""
    model, poses = given.model
    path = collidecli.run(model, poses, "named.h5", time=TIMES, force=True, device="cpu")
    kept = collidecli.collide(model, poses, time=TIMES, device="cpu").contact_set
    with collidecli.open_contacts(path) as contacts:
        assert contacts.scene == kept.scene == "a model built in Python (of scene.xml)"
        assert contacts.scene_sha256 == kept.scene_sha256
        assert contacts.content_sha256 == kept.content_sha256
    assert collidecli.check(path).to_pandas().empty


def test_a_robot_is_of_scene_files(given):
    with pytest.raises(InputError, match=r"(?s)matrix: scene is a Model.*give a path"):
        collidecli.matrix(given.model[0], samples=5, device="cpu")
    with pytest.raises(InputError, match="declares no sensor"):
        collidecli.label_sensors(*given.model, device="cpu")
    with pytest.raises(InputError, match="run takes files"):
        collidecli.collide("scene.xml")
