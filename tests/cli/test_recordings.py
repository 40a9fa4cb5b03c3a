"""Recordings of other programs on the command line: run, inspect, check, traj convert."""

from __future__ import annotations

import json
import zipfile

import h5py
import mujoco
import numpy as np
import pytest

from tests.cli.conftest import SCENE

FRAMES = 12
RUN = ("--device", "cpu", "--json", "--gap", "0.2")


def falling(scene: str = SCENE, frames: int = FRAMES, start: float = 0.0) -> np.ndarray:
    """float64[frames, 1 + nq + nv]: time, qpos and qvel of MuJoCo's steps, from a fall onto the base at once."""
    model = mujoco.MjModel.from_xml_string(scene)
    data = mujoco.MjData(model)
    data.qpos[2] = 0.9
    data.time = start
    rows = np.zeros((frames, 1 + model.nq + model.nv))
    for row in rows:
        row[:] = [data.time, *data.qpos, *data.qvel]
        mujoco.mj_step(model, data, 5)
    return rows


def write_demos(path, demos, scenes=None, **attributes) -> None:
    """demos: states by name. scenes: model_file by name; None is the scene for all."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs.update(attributes)
        for name, states in demos.items():
            demo = data.create_group(name)
            demo["states"] = states
            text = SCENE if scenes is None else scenes.get(name)
            if text is not None:
                demo.attrs["model_file"] = text


LAYER = """#usda 1.0
(
 timeCodesPerSecond = 50
)
over "ball" {
 double3 xformOp:translate.timeSamples = { 0: (0, 0, 0.9), 5: (0, 0, 0.7) }
}
"""
USD_SCENE = """#usda 1.0
(
 metersPerUnit = 1
 upAxis = "Z"
)
def Sphere "base" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
 double radius = 0.5
}
def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {
 double radius = 0.3
 double3 xformOp:translate = (0, 0, 2)
 uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""


@pytest.fixture
def recordings(here):
    """One small recording of each kind, in the current folder."""
    write_demos(here / "demos.hdf5", {"demo_10": falling(), "demo_2": falling(start=3.0)})
    np.save(here / "states.npy", falling())
    np.savez(here / "states.npz", states=np.stack([falling(), falling()]))
    with h5py.File(here / "states.h5", "w") as file:
        file["states"] = falling()
    (here / "scene.usda").write_text(USD_SCENE)
    (here / "layer.usda").write_text(LAYER)
    return here


def run(collide, *args):
    answer = collide("run", *args, *RUN, "--force")
    assert answer.code == 0, answer.err
    return json.loads(answer.out), answer.err


def test_demos_bring_their_scene_and_are_worlds_in_numeric_order(recordings, collide):
    result, err = run(collide, "-t", "demos.hdf5")
    assert (result["worlds"], result["frames"]) == (2, FRAMES)
    assert result["output"] == "demos.contacts.h5"
    assert "clocks differ" in err
    with h5py.File("demos.contacts.h5") as file:
        np.testing.assert_allclose(file["time/time"], 0.01 * np.arange(FRAMES), atol=1e-9)
        assert file.attrs["scene"] == "demos.hdf5"
        assert len(file.attrs["scene_sha256"]) == 64


def test_chosen_demos_are_worlds_in_the_order_asked(recordings, collide):
    write_demos(recordings / "demos.hdf5", {"demo_0": falling(), "demo_1": falling()[::1] + 0.0})
    with h5py.File(recordings / "demos.hdf5", "r+") as file:
        file["data/demo_1/states"][:, 3] += 0.05  # the ball higher by 5 cm
    first, _ = run(collide, "-t", "demos.hdf5", "--demos", "demo_0,demo_1", "-o", "a.h5")
    second, _ = run(collide, "-t", "demos.hdf5", "--demos", "demo_1,demo_0", "-o", "b.h5")
    alone, _ = run(collide, "-t", "demos.hdf5", "--demos", "demo_1", "-o", "c.h5")
    assert first["deepest"]["world"] == 0
    assert second["deepest"]["world"] == 1
    assert alone["deepest"]["distance"] == pytest.approx(first["deepest"]["distance"] + 0.05, abs=1e-6)


def test_a_recording_with_its_scene_takes_the_place_of_the_scene(recordings, collide):
    with_option, _ = run(collide, "-t", "demos.hdf5", "-o", "a.h5")
    alone, _ = run(collide, "demos.hdf5")
    assert alone["output"] == "demos.contacts.h5"
    assert alone["trajectory"] == "demos.hdf5"
    assert alone["content_sha256"] == with_option["content_sha256"]
    refused = collide("run", "states.h5", *RUN)
    assert refused.code == 2
    assert "it contains no scene" in refused.err


def test_demos_are_chosen_by_patterns_ranges_and_masks(recordings, collide):
    write_demos(recordings / "demos.hdf5", {f"demo_{k}": falling() for k in (0, 1, 2, 10)})
    with h5py.File(recordings / "demos.hdf5", "r+") as file:
        file["mask/train"] = np.array([b"demo_10", b"demo_0"])
        file["mask/broken"] = np.array([b"demo_9"])
        file["mask/numbers"] = np.arange(3)
    worlds = {"demo_?": 3, "demo_1..demo_10": 3, "train": 2, "demo_1*,demo_0": 3, "demo_*,demo_1": 4}
    for entry, count in worlds.items():
        result, _ = run(collide, "demos.hdf5", "--demos", entry, "-o", "a.h5")
        assert result["worlds"] == count, entry
        with h5py.File("a.h5") as file:  # names, which a merge compares
            assert len(json.loads(file.attrs["config"])["demos"]) == count
    for entry, words in {
        "test": "there is no demonstration 'test'",
        "demo_1..demo_11": "there is no demonstration 'demo_11'",
        "demo_2..demo_1": "write demo_1..demo_2",
        "broken": "the mask 'broken' names the demonstration 'demo_9'",
        "numbers": "the mask is not a list of names",
    }.items():
        refused = collide("run", "demos.hdf5", "--demos", entry, *RUN, "--force")
        assert refused.code == 2, entry
        assert words in refused.err
    assert "train" in collide("inspect", "demos.hdf5").out


def test_different_scenes_are_different_templates(recordings, collide):
    larger = SCENE.replace('size="0.5"', 'size="0.52"')
    # Both balls are where MuJoCo put them over the smaller base.
    write_demos(
        recordings / "demos.hdf5",
        {"demo_0": falling(), "demo_1": falling()},
        {"demo_0": SCENE, "demo_1": larger},
    )
    result, _ = run(collide, "-t", "demos.hdf5")
    assert result["worlds"] == 2
    assert result["deepest"]["world"] == 1
    with h5py.File("demos.contacts.h5") as file:
        assert file["model/world/template"][()].tolist() == [0, 1]
        cells = np.diff(file["rigid_contacts/cell_start"])
        cell = np.repeat(np.arange(len(cells)), cells)
        distance = file["rigid_contacts/distance"][()]
    small, large = distance[cell % 2 == 0], distance[cell % 2 == 1]
    np.testing.assert_allclose(small[: len(small)] - large[: len(small)], 0.02, atol=1e-6)
    # Equal scenes are one template.
    write_demos(recordings / "demos.hdf5", {"demo_0": falling(), "demo_1": falling()})
    run(collide, "-t", "demos.hdf5")
    with h5py.File("demos.contacts.h5") as file:
        assert file["model/world/template"][()].tolist() == [0, 0]


def test_uneven_demos_are_refused_cut_or_held(recordings, collide):
    write_demos(recordings / "demos.hdf5", {"demo_0": falling(), "demo_1": falling(frames=7)})
    answer = collide("run", "-t", "demos.hdf5", *RUN)
    assert answer.code == 2
    for words in ("7 to 12 frames", "demo_1 7", "--uneven-demos cut", "--uneven-demos hold", "--demos"):
        assert words in answer.err
    cut, _ = run(collide, "-t", "demos.hdf5", "--uneven-demos", "cut")
    assert cut["frames"] == 7
    held, _ = run(collide, "-t", "demos.hdf5", "--uneven-demos", "hold")
    assert held["frames"] == 12
    assert collide("traj", "convert", "demos.hdf5", "--uneven-demos", "hold", "-o", "m.h5").code == 0
    with h5py.File("m.h5") as file:
        poses = file["body_q"][()]
    np.testing.assert_array_equal(poses[:7, 0], poses[:7, 1])
    np.testing.assert_array_equal(poses[6:, 1], np.repeat(poses[6:7, 1], 6, axis=0))
    assert not np.array_equal(poses[7, 0], poses[7, 1])


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("demos.hdf5", "--demos", "demo_10"), "robosuite"),
        (("states.npy", "--scene", "scene.xml"), "mujoco-states"),
        (("states.npz", "--scene", "scene.xml", "--state-spec", "fullphysics"), "mujoco-states"),
        (("states.h5", "--scene", "scene.xml", "--state-spec", "time|qpos|qvel"), "mujoco-states"),
        (("motion.h5", "--scene", "scene.xml"), "trajectory"),
        (("layer.usda", "--scene", "scene.usda"), "usd-layer"),
    ],
)
def test_a_converted_recording_gives_the_same_contacts(recordings, collide, args, kind):
    answer = collide("traj", "convert", *args, "-o", "converted.h5", "--json")
    assert answer.code == 0, answer.err
    result = json.loads(answer.out)
    assert (result["schema"], result["kind"], result["output"]) == ("collide.traj.convert/1", kind, "converted.h5")
    assert collide("check", "converted.h5").code == 0
    with h5py.File("converted.h5") as file:
        assert file["body_q"].dtype == np.float64
        assert file["body_q"].shape[:2] == (result["frames"], result["worlds"])
    named = [*args[1:]]
    scene = [named.pop(named.index("--scene") + 1)] if "--scene" in named else []
    if "--scene" in named:
        named.remove("--scene")
    before, _ = run(collide, *scene, "-t", args[0], *named, "-o", "before.h5")
    after, _ = run(collide, *(scene or ["scene.xml"]), "-t", "converted.h5", "-o", "after.h5")
    assert before["contacts"] == after["contacts"] > 0
    with h5py.File("before.h5") as a, h5py.File("after.h5") as b:
        for column in ("distance", "normal", "point0", "feature0", "cell_start"):
            np.testing.assert_array_equal(a["rigid_contacts"][column], b["rigid_contacts"][column])


def test_generalized_coordinates_of_ours_become_poses(here, collide):
    assert collide("record", "scene.xml", "--frames", "6", "--joint", "-o", "q.h5").code == 0
    assert collide("traj", "convert", "q.h5", "--scene", "scene.xml", "-o", "poses.h5", "--frames", "1:5:2").code == 0
    with h5py.File("q.h5") as q, h5py.File("poses.h5") as poses:
        np.testing.assert_allclose(poses["body_q"][:, 0, 0, :3], q["joint_q"][1:5:2, 0, :3], atol=1e-12)
        assert poses["step"][()].tolist() == q["step"][1:5:2].tolist()


def test_a_conversion_leaves_nothing_when_it_fails(recordings, collide):
    with h5py.File("states.h5", "r+") as file:
        file["states"][9, 3] = np.nan
    answer = collide("traj", "convert", "states.h5", "--scene", "scene.xml", "-o", "m.h5")
    assert answer.code == 2
    for words in ("states.h5: /states, frame 9", "'ball'", "qpos[2] is nan"):
        assert words in answer.err
    assert not (recordings / "m.h5").exists()
    assert not list(recordings.glob(".m.h5*"))


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        ((), 2, "'RECORDING'"),
        (("nowhere.npy",), 2, "there is no such file"),
        (("states.npy",), 2, "--scene"),
        (("motion.h5",), 2, "--scene"),
        (("scene.xml", "--scene", "scene.xml"), 2, "known kinds"),
        (("states.npy", "--scene", "scene.xml", "-o", "motion.h5"), 3, "motion.h5"),
        (("states.npy", "--scene", "scene.xml", "-o", "states.npy", "--force"), 3, "input"),
        (("states.npy", "--scene", "scene.xml", "--worlds", "0"), 2, "--worlds"),
        (("states.npz", "--scene", "scene.xml", "--worlds", "3"), 2, "--worlds 2"),
        (("states.npy", "--scene", "scene.xml", "--fps", "-3"), 2, "above zero"),
        (("states.npy", "--scene", "scene.usda"), 2, "MJCF"),
        (("layer.usda", "--scene", "scene.xml"), 2, "USD scene"),
        (("demos.hdf5", "--demos", "demo_3"), 2, "demo_2"),
        (("demos.hdf5", "--demos", "demo_2,demo_2"), 2, "twice"),
        (("demos.hdf5", "--demos", "demo_2", "--frames", "90:"), 2, "--frames"),
        (("demos.hdf5", "--compression", "lzf"), 2, "--compression"),
    ],
)
def test_refusals_of_convert(recordings, collide, args, code, words):
    answer = collide("traj", "convert", *args)
    assert (answer.code, answer.out) == (code, "")
    assert words in answer.err


def test_traj_by_itself_shows_its_verbs(here, collide):
    answer = collide("traj")
    assert answer.code == 2
    assert "convert" in answer.err
    assert collide("traj", "converd").code == 2


def test_without_a_scene(recordings, collide):
    assert "SCENE" in collide("run").err
    answer = collide("run", "-t", "states.npy")
    assert answer.code == 2
    assert "contains no scene" in answer.err
    write_demos(recordings / "demos.hdf5", {"demo_0": falling()}, scenes={})
    answer = collide("run", "-t", "demos.hdf5")
    assert "model_file" in answer.err
    assert "/data/demo_0" in answer.err
    result, _ = run(collide, "scene.xml", "-t", "demos.hdf5")
    assert result["frames"] == FRAMES


@pytest.mark.parametrize(
    ("name", "kind", "frames", "worlds", "words"),
    [
        ("demos.hdf5", "robosuite", FRAMES, 2, "demo_2 12, demo_10 12"),
        ("states.npy", "mujoco-states", FRAMES, 1, "--state-spec"),
        ("states.npz", "mujoco-states", FRAMES, 2, "numbers a state"),
        ("states.h5", "mujoco-states", FRAMES, 1, "/states"),
        ("layer.usda", "usd-layer", 2, 1, "/ball"),
    ],
)
def test_inspect(recordings, collide, name, kind, frames, worlds, words):
    result = json.loads(collide("inspect", name, "--json").out)
    assert result["schema"] == "collide.inspect.recording/1"
    assert (result["kind"], result["frames"], result["worlds"]) == (kind, frames, worlds)
    assert words in collide("inspect", name).out
    answer = collide("inspect", name, "--pairs")
    assert answer.code == 2


def test_check_says_that_it_checks_ours_only(recordings, collide):
    for name in ("demos.hdf5", "states.npy", "layer.usda"):
        answer = collide("check", name)
        assert answer.code == 2
        assert "traj convert" in answer.err


def test_unknown_and_hostile_content(recordings, collide):
    with h5py.File("foreign.h5", "w") as file:
        file["observations/images"] = np.zeros(3)
        file.attrs["maker"] = "somebody"
    np.save("pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("pickled.npz", states=np.array([print, 1], dtype=object))
    (recordings / "cut.npy").write_bytes((recordings / "states.npy").read_bytes()[:-8])
    (recordings / "cut.npz").write_bytes((recordings / "states.npz").read_bytes()[:-8])
    with zipfile.ZipFile("other.npz", "w") as archive:
        archive.writestr("readme.txt", "words")
    np.savez("several.npz", a=np.zeros((3, 4)), b=np.zeros((3, 4)))
    (recordings / "noise.bin").write_bytes(bytes(range(256)))
    (recordings / "empty.npz").write_bytes(b"")
    for name, words in {
        "foreign.h5": ("attribute maker", "/observations", "known kinds"),
        "pickled.npy": ("pickled", "would run code"),
        "pickled.npz": ("pickled", "would run code", "states"),
        "cut.npy": ("declares",),
        "cut.npz": ("damaged",),
        "other.npz": ("known kinds",),
        "several.npz": ("known kinds", "float64[3, 4]"),
        "noise.bin": ("known kinds",),
        "empty.npz": ("empty",),
        ".": ("folder",),
    }.items():
        answer = collide("run", "scene.xml", "-t", name, "--device", "cpu")
        assert answer.code == 2, name
        for word in (name, *words):
            assert word in answer.err, (name, word, answer.err)


def test_a_sliced_motion_keeps_its_warnings(here, collide):
    answer = collide("run", "scene.xml", "-t", "motion.h5", "--frames", "2:9", *RUN)
    assert "'far'" in answer.err


def test_options_of_convert_in_the_file(recordings, collide):
    (recordings / "collide.toml").write_text('state-spec = "PHYSICS"\n[traj.convert]\noutput = "named.h5"\n')
    answer = collide("traj", "convert", "states.npy", "--scene", "scene.xml")
    assert "PHYSICS" in answer.err
    (recordings / "collide.toml").write_text('[traj.convert]\noutput = "named.h5"\n')
    assert collide("traj", "convert", "demos.hdf5").code == 0
    assert (recordings / "named.h5").exists()
    (recordings / "collide.toml").write_text('[traj.convertt]\noutput = "named.h5"\n')
    assert "traj.convert" in collide("traj", "convert", "demos.hdf5").err


def test_options_of_convert_in_variables(recordings, collide, monkeypatch):
    monkeypatch.setenv("COLLIDE_TRAJ_CONVERT_OUTPUT", "named.h5")
    answer = collide("traj", "convert", "demos.hdf5", "--demos", "demo_2")
    assert answer.code == 0
    assert "sets no option" not in answer.err
    assert (recordings / "named.h5").exists()


def test_demos_of_different_scenes_convert_to_one_trajectory(recordings, collide):
    """The second scene has a body of its own, and lacks one of the first."""
    other = SCENE.replace(
        "</worldbody>", '<body name="own" pos="0 0 3"><geom size="0.1"/><freejoint/></body></worldbody>'
    )
    other = other.replace('name="far"', 'name="further"')
    (recordings / "other.xml").write_text(other)
    states = falling(other)
    states[:, 1 + 14 : 1 + 17] = [0.0, 0.0, 0.55]  # `own` within the base
    write_demos(recordings / "demos.hdf5", {"demo_0": falling(), "demo_1": states}, {"demo_0": SCENE, "demo_1": other})
    assert collide("traj", "convert", "demos.hdf5", "-o", "converted.h5").code == 0
    with h5py.File("converted.h5") as file:
        assert file["body_name"].asstr()[()].tolist() == ["ball", "far", "further", "own"]
    run(collide, "-t", "demos.hdf5", "-o", "before.h5")
    run(collide, "scene.xml", "other.xml", "-t", "converted.h5", "-o", "after.h5")
    with h5py.File("before.h5") as a, h5py.File("after.h5") as b:
        assert "own" in a["model/body/path"].asstr()[()].tolist()
        for column in ("distance", "shape0", "shape1", "point0", "cell_start"):
            np.testing.assert_array_equal(a["rigid_contacts"][column], b["rigid_contacts"][column])


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("-t", "motion.h5", "--fps", "10"), "--fps has no effect on a trajectory"),
        (("-t", "states.npy", "--demos", "demo_0"), "--demos has no effect on MuJoCo states"),
        (("-t", "states.npy", "--quaternion-order", "xyzw"), "options with an effect: --state-spec, --fps"),
        (("--joint-names", "a,b"), "--joint-names has no effect without a recording"),
    ],
)
def test_options_without_effect_are_refused(recordings, collide, args, words):
    answer = collide("run", "scene.xml", *args)
    assert answer.code == 2
    assert words in answer.err


def test_every_option_of_recordings_helps_some_kind():
    from dataclasses import fields

    from collidecli.importers.recordings.kinds import known_kinds
    from collidecli.scene.options import RecordingOptions

    assert {name for kind in known_kinds() for name in kind.OPTIONS} == {f.name for f in fields(RecordingOptions)}


def test_profile_needs_no_scene_either(recordings, collide):
    answer = collide("profile", "-t", "demos.hdf5", "--repeats", "1", "--device", "cpu", "--json")
    assert answer.code == 0, answer.err
    assert json.loads(answer.out)["output"] == "demos.profile.h5"
    assert "SCENE" in collide("profile").err


def add_particles(path) -> None:
    with h5py.File(path, "a") as file:
        file["particle_q"] = np.zeros((len(file["time"]), 1, 3, 3), np.float32)


@pytest.mark.parametrize(
    "args",
    [
        ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu"),
        ("profile", "scene.xml", "-t", "motion.h5", "--repeats", "1"),
        ("traj", "convert", "motion.h5", "--scene", "scene.xml", "-o", "converted.h5"),
    ],
)
def test_particles_are_refused_by_name_or_ignored_with_a_warning(here, collide, args):
    add_particles(here / "motion.h5")
    before = sorted(here.iterdir())
    refused = collide(*args)
    assert (refused.code, refused.out) == (2, "")
    assert "motion.h5: /particle_q: the recording has 3 particles" in refused.err
    assert "--ignore-particles" in refused.err
    assert sorted(here.iterdir()) == before
    ignored = collide(*args, "--ignore-particles")
    assert ignored.code == 0, ignored.err
    assert "/particle_q is ignored" in ignored.err


def test_ignored_particles_change_no_contact_set_and_are_refused_for_other_recordings(here, collide):
    run(collide, "scene.xml", "-t", "motion.h5", "-o", "a.h5")
    add_particles(here / "motion.h5")
    run(collide, "scene.xml", "-t", "motion.h5", "-o", "b.h5", "--ignore-particles")
    answer = collide("diff", "a.h5", "b.h5")
    assert answer.code == 0, answer.out
    with h5py.File("a.h5") as a, h5py.File("b.h5") as b:
        assert a.attrs["config"] == b.attrs["config"]
    refused = collide("run", "scene.xml", "--ignore-particles")
    assert refused.code == 2
    assert "--ignore-particles has no effect" in refused.err


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_times_that_are_not_finite_are_shown_as_they_are(here, collide, value):
    states = falling()
    states[[0, -1], 0] = value
    write_demos(here / "demos.hdf5", {"demo_0": states})
    answer = collide("inspect", "demos.hdf5")
    assert (answer.code, f"from {value} s to {value} s" in answer.out) == (0, True), answer.err
    answer = collide("run", "-t", "demos.hdf5", "-o", "out.h5")
    assert (answer.code, f"the time is {value:g}" in answer.err) == (2, True)
