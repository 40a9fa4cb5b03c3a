"""Recordings of other programs and demonstrations of unequal lengths: run, inspect, check, traj
convert."""

import pickle
import shutil
import zipfile
from contextlib import chdir
from pathlib import Path

import h5py
import mujoco
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.storage.contact_sets.check import check_file
from tests.cli.conftest import RUN as SPHERES
from tests.cli.conftest import SCENE, CommandLine, arrays, attributes, refusals, sha
from tests.support.usd_scenes import COLLIDER, at, moving, sphere, write_usda

FRAMES = 12
RUN = ("--device", "cpu", "--gap", "0.2")


def falling(scene: str = SCENE, frames: int = FRAMES, start: float = 0.0) -> np.ndarray:
    """float64[frames, 1 + nq + nv]: time, qpos and qvel of MuJoCo's steps, from a fall onto the
    base at once."""
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
            if states is not None:
                demo["states"] = states
            text = SCENE if scenes is None else scenes.get(name)
            if text is not None:
                demo.attrs["model_file"] = text


LAYER = f'over "ball" {{{moving("0: (0, 0, 0.9), 5: (0, 0, 0.7)")}}}\n'
USD_SCENE = sphere("base", "double radius = 0.5", COLLIDER) + sphere(
    "ball", f"double radius = 0.3\n{at(0, 0, 2)}"
)


@pytest.fixture
def recordings(here):
    """One small recording of each kind, in the current folder."""
    write_demos(here / "demos.hdf5", {"demo_10": falling(), "demo_2": falling(start=3.0)})
    np.save(here / "states.npy", falling())
    np.savez(here / "states.npz", states=np.stack([falling(), falling()]))
    coordinates = mujoco.MjModel.from_xml_string(SCENE).nq
    np.savez(here / "qpos.npz", qpos=falling()[:, 1 : 1 + coordinates], time=falling()[:, 0])
    with h5py.File(here / "states.h5", "w") as file:
        file["states"] = falling()
    write_usda(here, USD_SCENE, name="scene.usda")
    write_usda(here, LAYER, "timeCodesPerSecond = 50", "layer.usda")
    return here


def run(collide, *words):
    return collide.result("run", *words, *RUN, "--force")


def test_demos_are_worlds_of_their_own_scene(recordings, collide):
    result = run(collide, "-t", "demos.hdf5")
    assert (result["worlds"], result["frames"], result["output"]) == (
        2,
        FRAMES,
        "demos.contacts.h5",
    )
    assert any("clocks differ" in warning for warning in result["warnings"])
    np.testing.assert_allclose(
        arrays("demos.contacts.h5")["time/time"], 0.01 * np.arange(FRAMES), atol=1e-9
    )
    held = attributes("demos.contacts.h5")
    assert (held["scene"], len(held["scene_sha256"])) == ("demos.hdf5", 64)
    alone = run(collide, "demos.hdf5")
    assert (alone["output"], alone["trajectory"]) == ("demos.contacts.h5", "demos.hdf5")
    assert alone["content_sha256"] == result["content_sha256"]
    assert (
        collide.result("profile -t demos.hdf5 --repeats 1 --device cpu")["output"]
        == "demos.profile.h5"
    )


def test_chosen_demos_are_worlds_in_the_order_asked(recordings, collide):
    higher = falling()
    higher[:, 3] += 0.05  # the ball
    write_demos(recordings / "demos.hdf5", {"demo_0": falling(), "demo_1": higher})
    deepest = {}
    for demos in ("demo_0,demo_1", "demo_1,demo_0", "demo_1"):
        deepest[demos] = run(collide, "-t", "demos.hdf5", "--demos", demos)["deepest"]
    assert [one["world"] for one in deepest.values()] == [0, 1, 0]
    first = deepest["demo_0,demo_1"]["distance"]
    assert deepest["demo_1"]["distance"] == pytest.approx(first + 0.05, abs=1e-6)


def test_demos_are_chosen_by_patterns_ranges_or_masks(more_recordings, collide):
    worlds = {
        "demo_?": 3,
        "demo_1..demo_10": 3,
        "train": 2,
        "demo_1*,demo_0": 3,
        "demo_*,demo_1": 4,
    }
    for entry, count in worlds.items():
        result = run(collide, "masked.hdf5", "--demos", entry, "-o", "a.h5")
        # A merge compares the names.
        assert (result["worlds"], len(attributes("a.h5")["config"]["demos"])) == (
            count,
            count,
        ), entry
    assert "train" in collide("inspect masked.hdf5").out


def test_different_scenes_are_different_templates(recordings, collide):
    larger = SCENE.replace('size="0.5"', 'size="0.52"')
    # Both balls are where MuJoCo put them over the smaller base.
    both = {"demo_0": falling(), "demo_1": falling()}
    write_demos("demos.hdf5", both, {"demo_0": SCENE, "demo_1": larger})
    result = run(collide, "-t", "demos.hdf5")
    assert (result["worlds"], result["deepest"]["world"]) == (2, 1)
    found = arrays("demos.contacts.h5")
    assert found["model/world/template"].tolist() == [0, 1]
    counts = np.diff(found["rigid_contacts/cell_start"])
    small, large = (
        found["rigid_contacts/distance"][np.repeat(np.arange(len(counts)), counts) % 2 == k]
        for k in (0, 1)
    )
    np.testing.assert_allclose(small - large[: len(small)], 0.02, atol=1e-6)
    write_demos("demos.hdf5", both)
    run(collide, "-t", "demos.hdf5")
    assert arrays("demos.contacts.h5")["model/world/template"].tolist() == [
        0,
        0,
    ], "equal scenes are one template"


def test_uneven_demos_are_cut_or_held(more_recordings, collide):
    for way, frames in (("cut", 7), ("hold", 12)):
        assert run(collide, "-t", "uneven.hdf5", "--uneven-demos", way)["frames"] == frames
    collide.ok("traj convert uneven.hdf5 --uneven-demos hold -o m.h5")
    poses = arrays("m.h5")["body_q"]
    np.testing.assert_array_equal(poses[:7, 0], poses[:7, 1])
    np.testing.assert_array_equal(poses[6:, 1], np.repeat(poses[6:7, 1], 6, axis=0))
    assert not np.array_equal(poses[7, 0], poses[7, 1])


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("recording", "scene", "options", "kind"),
    [
        ("demos.hdf5", "", "--demos demo_10", "robosuite"),
        ("states.npy", "scene.xml", "", "mujoco-states"),
        ("states.npz", "scene.xml", "--state-spec fullphysics", "mujoco-states"),
        ("states.h5", "scene.xml", "--state-spec time|qpos|qvel", "mujoco-states"),
        ("qpos.npz", "scene.xml", "", "mujoco-states"),
        ("motion.h5", "scene.xml", "", "trajectory"),
        ("layer.usda", "scene.usda", "", "usd-layer"),
    ],
)
def test_a_converted_recording_gives_the_same_contacts(
    recordings, collide, recording, scene, options, kind
):
    named = ("--scene", scene) if scene else ()
    result = collide.result(
        "traj convert", recording, *named, *options.split(), "-o", "converted.h5"
    )
    assert (result["schema"], result["kind"], result["output"]) == (
        "collide.traj.convert/1",
        kind,
        "converted.h5",
    )
    collide.ok("check converted.h5")
    poses = arrays("converted.h5")["body_q"]
    assert (poses.dtype, *poses.shape[:2]) == (np.float64, result["frames"], result["worlds"])
    before = run(collide, *scene.split(), "-t", recording, *options.split(), "-o", "before.h5")
    after = run(collide, scene or "scene.xml", "-t", "converted.h5", "-o", "after.h5")
    assert before["contacts"] == after["contacts"] > 0
    equal_columns("distance", "normal", "point0", "feature0", "cell_start")


def equal_columns(*names: str) -> None:
    """Of before.h5 and after.h5."""
    one = arrays("before.h5")
    other = arrays("after.h5")
    for name in names:
        np.testing.assert_array_equal(
            one[f"rigid_contacts/{name}"], other[f"rigid_contacts/{name}"]
        )


def test_generalized_coordinates_of_ours_become_poses(here, collide):
    collide.ok("record scene.xml --frames 6 --joint -o q.h5")
    collide.ok("traj convert q.h5 --scene scene.xml -o poses.h5 --frames 1:5:2")
    q = arrays("q.h5")
    poses = arrays("poses.h5")
    np.testing.assert_allclose(poses["body_q"][:, 0, 0, :3], q["joint_q"][1:5:2, 0, :3], atol=1e-12)
    assert poses["step"].tolist() == q["step"][1:5:2].tolist()


@pytest.fixture
def more_recordings(recordings):
    """Recordings without a scene, of several worlds, and files that are no recordings, beside one
    of each kind."""
    write_demos("bare.hdf5", {"demo_0": falling()}, scenes={})
    with h5py.File("foreign.h5", "w") as file:
        file["observations/images"] = np.zeros(3)
        file.attrs["maker"] = "somebody"
    np.save("pickled.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez("pickled.npz", states=np.array([print, 1], dtype=object))
    for name in ("npy", "npz"):
        (recordings / f"cut.{name}").write_bytes((recordings / f"states.{name}").read_bytes()[:-8])
    with zipfile.ZipFile("other.npz", "w") as archive:
        archive.writestr("readme.txt", "words")
    np.savez("several.npz", a=np.zeros((3, 4)), b=np.zeros((3, 4)))
    (recordings / "noise.bin").write_bytes(bytes(range(256)))
    (recordings / "empty.npz").write_bytes(b"")
    write_demos("masked.hdf5", {f"demo_{k}": falling() for k in (0, 1, 2, 10)})
    with h5py.File("masked.hdf5", "r+") as file:
        file["mask/train"] = np.array([b"demo_10", b"demo_0"])
        file["mask/broken"] = np.array([b"demo_9"])
        file["mask/numbers"] = np.arange(3)
    write_demos("uneven.hdf5", {"demo_0": falling(), "demo_1": falling(frames=7)})
    shutil.copy("states.h5", "nan.h5")
    with h5py.File("nan.h5", "r+") as file:
        file["states"][9, 3] = np.nan
    shutil.copy("motion.h5", "particles.h5")
    add_particles("particles.h5")


KINDS = "demos.hdf5", "states.npy", "states.npz", "states.h5", "layer.usda"
PARTICLES = "particles.h5: /particle_q: the recording has 3 particles", "--ignore-particles"
test_refused = refusals(
    "",
    ("traj converd", "converd"),
    ("traj convert", "'RECORDING...'"),
    *(
        (f"traj convert {words}", *told)
        for words, *told in (
            ("nowhere.npy", "there is no such file"),
            ("states.npy", "--scene"),
            ("motion.h5", "--scene"),
            ("scene.xml --scene scene.xml", "known kinds"),
            ("states.npy --scene scene.xml -o motion.h5", "motion.h5", 3),
            ("states.npy --scene scene.xml -o states.npy --force", "input", 3),
            ("states.npy --scene scene.xml --worlds 0", "--worlds"),
            ("states.npz --scene scene.xml --worlds 3", "--worlds 2"),
            ("states.npy --scene scene.xml --fps -3", "above zero"),
            ("states.npy --scene scene.usda", "MJCF"),
            ("layer.usda --scene scene.xml", "USD scene"),
            ("demos.hdf5 --demos demo_3", "demo_2"),
            ("demos.hdf5 --demos demo_2,demo_2", "twice"),
            ("demos.hdf5 --demos demo_2 --frames 90:", "--frames"),
            ("demos.hdf5 --compression lzf", "--compression"),
            (
                "nan.h5 --scene scene.xml -o m.h5",
                ("nan.h5: /states, frame 9", "'ball'", "qpos[2] is nan"),
            ),
            ("particles.h5 --scene scene.xml", PARTICLES),
        )
    ),
    ("run", "SCENE"),
    ("profile", "SCENE"),
    ("run states.h5", "it contains no scene"),
    ("run -t states.npy", "contains no scene"),
    ("run -t bare.hdf5", ("model_file", "/data/demo_0")),
    (
        "run -t uneven.hdf5",
        ("7 to 12 frames", "demo_1 7", "--uneven-demos cut", "--uneven-demos hold", "--demos"),
    ),
    *(
        (f"run masked.hdf5 --demos {entry}", told)
        for entry, told in (
            ("test", "there is no demonstration 'test'"),
            ("demo_1..demo_11", "there is no demonstration 'demo_11'"),
            ("demo_2..demo_1", "write demo_1..demo_2"),
            ("broken", "the mask 'broken' names the demonstration 'demo_9'"),
            ("numbers", "the mask is not a list of names"),
        )
    ),
    *(
        (f"run scene.xml -t {name}", (name, *told))
        for name, *told in (
            ("foreign.h5", "attribute maker", "/observations", "known kinds"),
            ("pickled.npy", "a pickle file with 0/a int64[]", "known kinds"),
            ("pickled.npz", "states, byte", "builtins.print", "is not"),
            ("cut.npy", "declares"),
            ("cut.npz", "damaged"),
            ("other.npz", "known kinds"),
            ("several.npz", "--state", "float64[3, 4]"),
            ("noise.bin", "known kinds"),
            ("empty.npz", "empty"),
            (".", "folder"),
        )
    ),
    ("run scene.xml -t motion.h5 --fps 10", "--fps has no effect on a trajectory"),
    ("run scene.xml -t states.npy --demos demo_0", "--demos has no effect on MuJoCo states"),
    (
        "run scene.xml -t states.npy --joint-units degrees",
        "with an effect: --state-spec, --first-axis, --quaternion-order, --fps",
    ),
    ("run scene.xml --joint-names a,b", "--joint-names has no effect without a recording"),
    ("run scene.xml --ignore-particles", "--ignore-particles has no effect"),
    ("run scene.xml -t particles.h5", PARTICLES),
    ("profile scene.xml -t particles.h5", PARTICLES),
    *((f"check {name}", "traj convert") for name in ("demos.hdf5", "states.npy", "layer.usda")),
    *((f"inspect {name} --pairs", name) for name in KINDS if name != "demos.hdf5"),
    needs="more_recordings",
)


def test_a_scene_for_demonstrations_without_one(more_recordings, collide):
    assert run(collide, "scene.xml", "-t", "bare.hdf5")["frames"] == FRAMES


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
    result = collide.result("inspect", name)
    assert result["schema"] == "collide.inspect.recording/1"
    assert (result["kind"], result["frames"], result["worlds"]) == (kind, frames, worlds)
    assert words in collide("inspect", name).out


def test_inspect_says_what_a_named_array_needs(here, collide):
    arrays = {"q": np.zeros((7, 2)), "p": np.zeros((4, 7)), "time": np.arange(7.0)}
    np.savez("log.npz", **arrays, joint_names=np.array(["a", "b"]))
    result = collide.result("inspect log.npz")
    assert (result["frames"], result["needs"]) == (0, ["--state"])
    assert "those of the array that --state names" in collide("inspect log.npz").out
    result = collide.result("inspect log.npz --state q")
    assert (result["frames"], result["worlds"], result["coordinates"]) == (7, 1, 2)
    assert result["needs"] == []
    np.savez("bare.npz", q=arrays["q"], p=arrays["p"])
    needs = ["--time or --fps", "--joint-names"]
    assert collide.result("inspect bare.npz")["needs"] == ["--state", *needs]
    assert collide.result("inspect bare.npz --state q")["needs"] == needs
    collide.refused("inspect log.npz --state none", told="there is no array 'none'")
    collide.refused("inspect log.npz --state time", told="not floats [frames, numbers]")
    collide.refused("inspect motion.h5 --state q", told="--state is for recordings of arrays")
    np.savetxt("log.csv", arrays["q"], delimiter=",", header="a,b", comments="")
    collide.refused("inspect log.csv --state q", told="--state changes nothing")


def test_why_in_the_scene_of_a_recording(recordings, collide):
    (pair,) = collide.result("inspect demos.hdf5 --why base ball")["why"]["pairs"]
    assert (pair["shape0"], pair["shape1"], pair["may_touch"]) == ("base", "ball", True)
    assert ["base", "ball"] in collide.result("inspect demos.hdf5 --pairs")["pairs"]


def test_a_sliced_motion_keeps_its_warnings(here, collide):
    answer = collide("run scene.xml -t motion.h5 --frames 2:9", *RUN)
    assert "'far'" in answer.err


def test_coordinates_of_programs_with_the_real_part_last(tmp_path, collide):
    """A free and a ball joint, as Pinocchio writes them, against MuJoCo's order."""
    ball = '<body pos="0 0 1"><joint type="ball"/><geom size="0.1"/></body>'
    (tmp_path / "both.xml").write_text(SCENE.replace("</worldbody>", f"{ball}</worldbody>"))
    rng = np.random.default_rng(3)
    qpos = rng.normal(size=(4, 18))
    for start in (3, 10, 14):
        qpos[:, start : start + 4] /= np.linalg.norm(
            qpos[:, start : start + 4], axis=1, keepdims=True
        )
    order = [*range(3), 4, 5, 6, 3, *range(7, 10), 11, 12, 13, 10, 15, 16, 17, 14]
    np.savez("wxyz.npz", qpos=qpos, time=np.arange(4.0))
    np.savez("xyzw.npz", qpos=qpos[:, order], time=np.arange(4.0))
    poses = []
    for name in ("wxyz", "xyzw"):
        collide.ok(
            f"traj convert {name}.npz --scene both.xml -o {name}.h5 --quaternion-order {name}"
        )
        found = arrays(f"{name}.h5")
        poses.append(found.get("body_q", found.get("joint_q")))
    assert np.array_equal(*poses)
    assert not np.array_equal(qpos, qpos[:, order])


def test_options_of_convert_may_be_in_a_file_or_a_variable(recordings, collide, monkeypatch):
    for text, words, told in (
        (
            'state-spec = "PHYSICS"\n[traj.convert]\noutput = "named.h5"\n',
            "states.npy --scene scene.xml",
            "PHYSICS",
        ),
        ('[traj.convertt]\noutput = "named.h5"\n', "demos.hdf5", "traj.convert"),
    ):
        (recordings / "collide.toml").write_text(text)
        assert told in collide("traj convert", *words.split()).err
    (recordings / "collide.toml").write_text('[traj.convert]\noutput = "named.h5"\n')
    collide.ok("traj convert demos.hdf5")
    (recordings / "named.h5").rename("earlier.h5")
    (recordings / "collide.toml").unlink()
    monkeypatch.setenv("COLLIDE_TRAJ_CONVERT_OUTPUT", "named.h5")
    assert "sets no option" not in collide.ok("traj convert demos.hdf5 --demos demo_2").err
    assert (recordings / "named.h5").exists()


def test_demos_of_different_scenes_convert_to_one_trajectory(recordings, collide):
    """The second scene has a body of its own, and lacks one of the first."""
    body = '<body name="own" pos="0 0 3"><geom size="0.1"/><freejoint/></body>'
    other = SCENE.replace("</worldbody>", f"{body}</worldbody>").replace(
        'name="far"', 'name="further"'
    )
    (recordings / "other.xml").write_text(other)
    states = falling(other)
    states[:, 1 + 14 : 1 + 17] = [0.0, 0.0, 0.55]  # `own` within the base
    write_demos(
        recordings / "demos.hdf5",
        {"demo_0": falling(), "demo_1": states},
        {"demo_0": SCENE, "demo_1": other},
    )
    collide.ok("traj convert demos.hdf5 -o converted.h5")
    assert arrays("converted.h5")["body_name"].tolist() == ["ball", "far", "further", "own"]
    run(collide, "-t", "demos.hdf5", "-o", "before.h5")
    run(collide, "scene.xml", "other.xml", "-t", "converted.h5", "-o", "after.h5")
    assert "own" in arrays("before.h5")["model/body/path"]
    equal_columns("distance", "shape0", "shape1", "point0", "cell_start")


def test_every_option_of_recordings_helps_some_kind():
    from dataclasses import fields

    from collidecli.importers.recordings.kinds import known_kinds
    from collidecli.scene.options import RecordingOptions

    assert {name for kind in known_kinds() for name in kind.OPTIONS} == {
        f.name for f in fields(RecordingOptions)
    }


def add_particles(path) -> None:
    with h5py.File(path, "a") as file:
        file["particle_q"] = np.zeros((len(file["time"]), 1, 3, 3), np.float32)


def test_ignored_particles_change_no_contact_set(here, ran, collide):
    ran("a.h5")
    add_particles(here / "motion.h5")
    convert = "traj convert motion.h5 --scene scene.xml -o converted.h5"
    for words in (
        f"{' '.join(SPHERES)} -o b.h5",
        "profile scene.xml -t motion.h5 --repeats 1",
        convert,
    ):
        assert "/particle_q is ignored" in collide.ok(words, "--ignore-particles").err
    collide.ok("diff a.h5 b.h5")
    assert attributes("a.h5")["config"] == attributes("b.h5")["config"]


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_times_that_are_not_finite_are_shown_as_they_are(here, collide, value):
    states = falling()
    states[[0, -1], 0] = value
    write_demos(here / "demos.hdf5", {"demo_0": states})
    answer = collide("inspect demos.hdf5")
    assert (answer.code, f"from {value} s to {value} s" in answer.out) == (0, True), answer.err
    collide.refused("run -t demos.hdf5 -o out.h5", told=f"the time is {value:g}")


LONG = 12
SHORT = 7
UNEVEN = ("--device", "cpu", "--gap", "0.2", "--uneven-demos", "hold")
APART = 0.9
TOUCHING = 0.79
"""Heights of the ball over the base [m]: 0.1 apart, 0.01 deep."""


def states(frames: int, begin: int, end: int | None = None) -> np.ndarray:
    """A ball that touches the base in frames begin to end - 1, at 10 frames per second."""
    rows = np.zeros((frames, 1 + 14 + 12))
    rows[:, 0] = np.arange(frames) / 10
    rows[:, 3] = APART
    rows[begin:end, 3] = TOUCHING
    rows[:, [4, 11]] = 1.0
    rows[:, 8] = 9.0
    return rows


@pytest.fixture(scope="module")
def computed_demos(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("demos")
    write_demos(folder / "demos.hdf5", {"demo_0": states(LONG, 4, 10), "demo_1": states(SHORT, 5)})
    with chdir(folder):
        CommandLine().ok("run -t demos.hdf5 -o out.h5", *UNEVEN)
    return folder


@pytest.fixture
def demos(computed_demos, here) -> Path:
    """demo_0 touches in its frames 4 to 9; demo_1, shorter, from 5 on to its end."""
    return Path(shutil.copytree(computed_demos, here, dirs_exist_ok=True))


def table(path) -> list[tuple]:
    """Name, world, first frame and number of frames of each episode of a good set."""
    assert check_file(path) == []
    found = arrays(path)
    columns = (
        found[f"episode/{name}"].tolist()
        for name in ("name", "world", "first_frame", "frame_count")
    )
    return list(zip(*columns, strict=True))


def test_no_contact_is_beyond_the_end(demos, collide):
    assert table("out.h5") == [("demo_0", 0, 0, LONG), ("demo_1", 1, 0, SHORT)]
    found = arrays("out.h5")
    assert attributes("out.h5")["format_version"].tolist() == [1, 3]
    counts = np.diff(found["rigid_contacts/cell_start"]).reshape(LONG, 2)
    assert counts.T.tolist() == [[1] * LONG, [1] * SHORT + [0] * (LONG - SHORT)]
    result = collide.result("run -t demos.hdf5 -o again.h5", *UNEVEN)
    assert (result["contacts"], result["contact_pair_cells"]) == (LONG + SHORT, LONG + SHORT)
    for options in ("--chunk-cells 3", "--threads 2", "--broad-phase nxn"):
        collide.ok("run -t demos.hdf5 -o other.h5 --force", *UNEVEN, *options.split())
        assert sha("other.h5") == sha("out.h5")
    collide.ok("run -t demos.hdf5", *UNEVEN, "-o", "ids.h5", "--contact-ids")
    assert arrays("ids.h5")["rigid_contacts/contact_id"].tolist() == [0] * (LONG + SHORT)


def test_events_end_with_their_demonstration(demos, collide):
    result = collide.result("events out.h5 --csv e.csv")
    keys = ("episode", "begin_frame", "last_frame", "end_known", "end_time", "seconds")
    found = [tuple(one[key] for key in keys) for one in result["listed"]]
    assert found == [
        ("demo_0", 4, 9, True, pytest.approx(1.0), pytest.approx(0.6)),
        ("demo_1", 5, 6, False, None, pytest.approx(0.1)),
    ]
    assert result["frames"]["episodes"] == {
        "count": 2,
        "frames": LONG + SHORT,
        "seconds": pytest.approx(1.7),
    }
    assert (result["intervals"]["ends"], result["intervals"]["unknown_ends"]) == (1, 1)
    assert pandas.read_csv("e.csv")["episode"].tolist() == ["demo_1", "demo_0"]
    shown = collide("events out.h5").out
    assert "1 (demo_1)" in shown
    assert "5 to 6>" in shown
    sliced = collide.result("events out.h5 --frames 6:8")
    found = [(one["episode"], one["begin_known"], one["end_known"]) for one in sliced["listed"]]
    assert found == [("demo_0", False, False), ("demo_1", False, False)]


@pytest.mark.rest
def test_every_verb_names_the_demonstration(demos, collide, no_charts):
    result = collide.result("inspect out.h5")
    assert [(one["name"], one["frame_count"], one["seconds"]) for one in result["episodes"]] == [
        ("demo_0", LONG, pytest.approx(1.1)),
        ("demo_1", SHORT, pytest.approx(0.6)),
    ]
    assert (result["duration"], result["deepest"]["episode"]) == (pytest.approx(1.7), "demo_0")
    assert "world 0 (demo_0)" in collide("inspect out.h5").out
    report = collide.result("report out.h5 -o r.html")
    assert report["demonstrations"] == ["demo_0", "demo_1"]
    assert any("1 of 2 demonstrations end before frame 11" in note for note in report["notes"])
    collide.result("export out.h5 --to csv -o c.csv")
    assert pandas.read_csv("c.csv").query("world == 1")["episode"].unique().tolist() == ["demo_1"]
    collide.result("export out.h5 --to npz -o c.npz --frames 5: --world 1")
    with np.load("c.npz") as arrays:
        held = [
            arrays[f"episode_{name}"].tolist()
            for name in ("name", "world", "first_frame", "frame_count")
        ]
    assert held == [["demo_1"], [1], [0], [2]]
    with collidecli.ContactSet.open("out.h5") as contacts:
        frame = contacts.to_pandas()
        assert frame["episode"][frame["world"] == 1].unique().tolist() == ["demo_1"]
        assert contacts.to_xarray()["episode"].values[-1] == "demo_0"
        assert contacts.events()["episode"].tolist() == ["demo_0", "demo_1"]


def test_episodes_are_those_of_the_chosen_frames(demos, collide):
    for words, expected in {
        "--uneven-demos hold --frames 8:": [("demo_0", 0, 0, 4), ("demo_1", 1, 0, 0)],
        "--uneven-demos hold --frames 1::2": [("demo_0", 0, 0, 6), ("demo_1", 1, 0, 3)],
        "--demos demo_1 --worlds 2": [("demo_1#0", 0, 0, SHORT), ("demo_1#1", 1, 0, SHORT)],
        "--uneven-demos cut": [("demo_0", 0, 0, SHORT), ("demo_1", 1, 0, SHORT)],
    }.items():
        run(collide, "-t", "demos.hdf5", "-o", "some.h5", *words.split())
        assert table("some.h5") == expected


def test_merge_by_frames_is_the_run_of_all(demos, collide):
    for name, frames in (("a.h5", "0:6"), ("b.h5", "6:9"), ("c.h5", "9:")):
        collide.ok("run -t demos.hdf5", *UNEVEN, "-o", name, "--frames", frames)
    collide.result("merge c.h5 a.h5 b.h5 -o merged.h5")
    assert (table("merged.h5"), sha("merged.h5")) == (table("out.h5"), sha("out.h5"))


def test_merge_by_worlds(demos, collide):
    write_demos(demos / "more.hdf5", {"demo_0": states(SHORT, 2)})
    for words in (
        "demos.hdf5 -o a.h5 --demos demo_0 --frames 0:7",
        "demos.hdf5 -o b.h5 --demos demo_1",
        "more.hdf5 -o c.h5",
    ):
        run(collide, "-t", *words.split())
    for other, names in (("b.h5", ("demo_0", "demo_1")), ("c.h5", ("demo_0#0", "demo_0#1"))):
        collide.result("merge a.h5 --worlds -o m.h5 --force", other)
        assert table("m.h5") == [(name, world, 0, SHORT) for world, name in enumerate(names)]


def test_a_converted_recording_keeps_its_demonstrations(demos, collide):
    (demos / "scene.xml").write_text(SCENE)
    collide.ok("traj convert demos.hdf5 --uneven-demos hold -o m.h5")
    collide.ok("check m.h5")
    collide.ok("run scene.xml -t m.h5 -o again.h5 --gap 0.2 --device cpu")
    assert table("again.h5") == table("out.h5")
    one, other = (
        arrays(name)["rigid_contacts/cell_start"].tolist() for name in ("out.h5", "again.h5")
    )
    assert one == other
    with h5py.File("m.h5", "a") as file:
        file["episode/world"][1] = 5
    assert "episode/world, row 1: is no world" in collide("check m.h5").out


def test_a_difference_of_length_is_a_difference(demos, collide):
    collide.ok("run -t demos.hdf5", *UNEVEN, "-o", "same.h5")
    collide.ok("diff out.h5 same.h5")
    # Without contacts in its last frame the contacts are equal, and only the lengths differ.
    longer = {
        "demo_0": states(LONG, 4, 10),
        "demo_1": np.concatenate([states(SHORT, 5), states(SHORT + 1, 5)[-1:]]),
    }
    longer["demo_1"][-1, 1] = 7.0
    write_demos(demos / "demos.hdf5", longer)
    collide.ok("run -t demos.hdf5", *UNEVEN, "-o", "longer.h5")
    assert "1 frame of a demonstration only in B" in " ".join(
        collide.found("diff out.h5 longer.h5").split()
    )


@pytest.mark.parametrize(
    ("column", "row", "value", "words"),
    [
        ("name", 1, "demo_0", "name, row 1: is the name of an earlier episode"),
        ("world", 1, 2, "world, row 1: is no world"),
        ("world", 1, 0, "first_frame, row 1: is before the end of another episode"),
        ("first_frame", 0, -1, "first_frame, row 0: is no frame"),
        ("frame_count", 0, LONG + 1, "frame_count, row 0: exceeds the frames"),
        ("frame_count", 1, SHORT - 1, "has contacts outside every episode"),
    ],
)
def test_a_broken_table_of_episodes_is_refused(demos, collide, column, row, value, words):
    with h5py.File("out.h5", "a") as file:
        file[f"episode/{column}"][row] = value
    assert words in " ".join(collide.found("check out.h5").split())
    for verb in ("inspect", "events", "report -o r.html") if "outside" not in words else ():
        collide.refused(verb, "out.h5")


def test_a_folder_of_pickles_is_one_command(collide, more_recordings):
    """A trajectory of each, of which one alone is the same; a file that is refused stops no other."""
    states = np.load("states.npy")
    frames = states.shape[-2]
    value = {
        "fps": 50.0,
        "root_pos": np.zeros((frames, 3)),
        "root_rot": np.tile([0.0, 0.0, 0.0, 1.0], (frames, 1)),
        "dof_pos": np.linspace(0.0, 0.5, frames)[:, None],
        "local_body_pos": None,
        "link_body_list": None,
    }
    Path("robot.xml").write_text(LEGS)
    for name in ("walk", "deep/run"):
        path = Path("motions", f"{name}.pkl")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(value | {"fps": 50.0 + len(name)}))
    words = ("traj convert motions -o out --scene robot.xml --joint-names knee",)
    made = collide.result(*words)
    assert (made["schema"], made["counts"]["done"]) == ("collide.traj_list/1", 2)
    assert {item["output"] for item in made["items"]} == {
        "out/walk.motion.h5",
        "out/deep/run.motion.h5",
    }
    collide.ok("traj convert motions/walk.pkl -o alone/ --scene robot.xml --joint-names knee")
    one = arrays("alone/walk.motion.h5")
    other = arrays("out/walk.motion.h5")
    for name in ("body_q", "time"):
        np.testing.assert_array_equal(one[name], other[name])
    assert not np.array_equal(other["body_q"][0], other["body_q"][-1])
    collide.refused(*words, told=("the output exists", "--skip-existing"), code=3)
    again = collide.result(*words, "--skip-existing")
    assert again["counts"] == {"done": 0, "failed": 0, "skipped": 2}
    Path("motions/bad.pkl").write_bytes(b"\x80\x04cposix\nsystem\n.")
    answer = collide(*words, "--force", "--json")
    assert answer.code == 1
    assert "motions/bad.pkl, byte 2: it needs posix.system" in answer.err
    run(collide, "robot.xml", "-t", "motions/walk.pkl", "--joint-names", "knee", "-o", "w.h5")


LEGS = """<mujoco><worldbody>
<geom name="floor" type="plane" size="5 5 0.1"/>
<body name="pelvis" pos="0 0 1"><freejoint/><geom size="0.1"/>
  <body name="shin" pos="0 0 -0.5"><joint name="knee" axis="0 1 0" range="-90 90"/>
    <geom size="0.1" pos="0 0 -0.3"/></body></body>
</worldbody></mujoco>"""


def test_tables_and_skeletons_are_read_or_refused_with_what_to_do(collide):
    Path("scene.xml").write_text(SCENE)
    Path("m.csv").write_text(
        "time;ball_x;ball_y;ball_z;ball_roll;ball_pitch;ball_yaw\n0;0;0;1,2;0;0;0\n"
    )
    Path("joints.csv").write_text("time,elbow\n0,1\n")
    bvh = "HIERARCHY\nROOT ball\n{\nOFFSET 0 0 0\nCHANNELS 3 Xposition Yposition Zposition\n}\n"
    Path("m.bvh").write_text(f"{bvh}MOTION\nFrames: 2\nFrame Time: 0.1\n0 0.8 0\n0 0.7 0\n")
    Path("short.bvh").write_text(f"{bvh}MOTION\nFrames: 2\nFrame Time: 0.1\n0 0.8 0\n")
    for name, told in {
        "joints.csv": ("1 column of no joint of the scene: 'elbow'", "--ignore-joints"),
        "short.bvh": ("1 frames of 3 numbers, not 2 of 3", "export the motion again"),
    }.items():
        collide.refused("run scene.xml -t", name, told=told)
        assert not Path("scene.contacts.h5").exists()
    assert collide.result("run scene.xml -t m.bvh")["frames"] == 2
    described = collide.result("inspect m.csv")
    assert described["needs"] == ["--euler-order"]


NAMES_OF_PATHS = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
<body name="arm/link" pos="0 0 1"><joint name="arm/j1" axis="0 1 0"/><geom size="0.1"/></body>
<body name="kit/cup" pos="1 0 1"><freejoint name="kit/float"/><geom size="0.1"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("names", [("arm/j1", "kit/float"), ("j1", "float"), ("arm/j1", "float")])
def test_names_are_whole_or_the_last_element_of_a_path_in_every_format(
    tmp_path, collide, monkeypatch, names
):
    monkeypatch.chdir(tmp_path)
    Path("scene.xml").write_text(NAMES_OF_PATHS)
    joint, free = names
    rows = np.array([[0.1, 1, 0, 1, 0, 0, 0, 1], [0.2, 1, 0, 0.09, 0, 0, 0, 1]])
    np.savez("m.npz", qpos=rows, joint_names=np.array([joint, free]), time=np.arange(2.0))
    axes = ("x", "y", "z", "qx", "qy", "qz", "qw")
    titles = ",".join(["time", joint, *(f"{free}_{axis}" for axis in axes)])
    np.savetxt("m.csv", np.c_[np.arange(2.0), rows], delimiter=",", header=titles, comments="")
    collide.ok("run scene.xml -t m.npz --state qpos --quaternion-order xyzw -o npz.h5")
    collide.ok("run scene.xml -t m.csv -o csv.h5")
    collide.ok("diff npz.h5 csv.h5")
    assert collide.result("inspect csv.h5")["contacts"] == 1


def test_the_arrays_of_poses_that_body_from_takes_are_named(tmp_path, collide, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("m.npz", qpos=np.zeros((3, 2)), cup=np.ones((3, 7)), other=np.ones((5, 7)))
    shown = collide.ok("inspect m.npz --state qpos").out
    assert "'cup': --body-from BODY=ARRAY moves a body" in " ".join(shown.split())
    assert "'other': --body" not in shown
