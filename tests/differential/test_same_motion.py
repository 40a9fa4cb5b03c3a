"""One motion, made by stepping MuJoCo, in every format that recordings come in: the contacts must
be the same."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import collide
from collidecli.scene.options import RecordingOptions
from collidecli.storage.trajectory_writer import TrajectoryWriter
from tests.support.twin_robots import (
    MJCF,
    RATE,
    USD_ROOT,
    WORLDS,
    SteppedMotion,
    stepped,
    usd_layer,
    usd_scene,
)

GAP = 0.02
SAME_DISTANCE = 1e-6
"""[m]: distances are float32 columns of lengths below 1 m, so rounding is below 1e-7."""

Contact = tuple[int, int, str, str, int, int]
Writer = Callable[[Path, SteppedMotion], SceneRequest]


@pytest.fixture(scope="module")
def motion() -> SteppedMotion:
    return stepped()


@pytest.fixture(scope="module")
def expected(
    motion: SteppedMotion, tmp_path_factory: pytest.TempPathFactory
) -> dict[Contact, float]:
    """Contacts from the poses that MuJoCo itself has in memory: no file of a motion is read."""
    from collidecli.importers.mujoco.scene import add_mjcf
    from collidecli.scene.builder import ModelBuilder

    path = tmp_path_factory.mktemp("expected") / "twin.xml"
    path.write_text(MJCF)
    builder = ModelBuilder()
    add_mjcf(builder, path)
    model = builder.finalize(world_count=WORLDS)
    assert model.bodies.path == motion.body_names
    found = by_name(
        collide(model, motion.body_q, gap=GAP, gap_rule="max", device="cpu"), model.shapes.path
    )
    # Touching and apart, of several kinds, in both worlds: the motion is worth comparing.
    assert len({contact[2:4] for contact in found}) >= 8
    assert {contact[1] for contact in found} == set(range(WORLDS))
    assert min(found.values()) < 0.0 < max(found.values())
    return found


def by_name(contacts: Contacts, paths: tuple[str, ...]) -> dict[Contact, float]:
    """Distance of each contact by frame, world, the two shapes' last names in order, and their
    features."""
    cell = np.repeat(np.arange(len(contacts.cell_start) - 1), np.diff(contacts.cell_start))
    frame, world = np.divmod(cell, contacts.world_count)
    found: dict[Contact, float] = {}
    for k in range(contacts.rigid_contact_count):
        a, b = (paths[row].rsplit("/", 1)[-1] for row in (contacts.shape0[k], contacts.shape1[k]))
        features = int(contacts.feature0[k]), int(contacts.feature1[k])
        if a > b:
            a, b, features = b, a, features[::-1]
        found[(int(frame[k]), int(world[k]), a, b, *features)] = float(contacts.distance[k])
    assert len(found) == contacts.rigid_contact_count
    return found


def contacts_of(request: SceneRequest) -> tuple[dict[Contact, float], np.ndarray]:
    scene, played = scene_in_motion(request)
    try:
        contacts = collide(scene.model, played, gap=GAP, gap_rule="max", device="cpu")
        return by_name(contacts, scene.model.shapes.path), played.time
    finally:
        played.close()


def mjcf_scene(folder: Path) -> str:
    (folder / "scene.xml").write_text(MJCF)
    return str(folder / "scene.xml")


def our_bodies(folder: Path, motion: SteppedMotion) -> SceneRequest:
    return our_poses(folder, motion, mjcf_scene(folder), "")


def our_bodies_of_usd(folder: Path, motion: SteppedMotion) -> SceneRequest:
    (folder / "scene.usda").write_text(usd_scene(motion.mj_model))
    return our_poses(folder, motion, str(folder / "scene.usda"), f"{USD_ROOT}/")


def our_poses(folder: Path, motion: SteppedMotion, scene: str, prefix: str) -> SceneRequest:
    path = str(folder / "motion.dat")
    names = tuple(prefix + name for name in motion.body_names)
    with TrajectoryWriter(path, world_count=WORLDS, body_names=names) as writer:
        writer.append(motion.time, np.arange(len(motion.time)), body_q=motion.body_q)
    return SceneRequest(scenes=[scene], trajectory=path)


def our_coordinates(folder: Path, motion: SteppedMotion) -> SceneRequest:
    path = str(folder / "motion.dat")
    with TrajectoryWriter(path, world_count=WORLDS, coordinate_count=motion.mj_model.nq) as writer:
        writer.append(
            motion.time, np.arange(len(motion.time)), joint_q=motion.qpos.transpose(1, 0, 2)
        )
    return SceneRequest(scenes=[mjcf_scene(folder)], trajectory=path)


def write_demos(path: Path, motion: SteppedMotion, carried: bool = True) -> None:
    """As robomimic lays a file out: what collide does not need is there too."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = '{"env_name": "Lift", "type": 1, "env_kwargs": {}}'
        data.attrs["total"] = WORLDS * len(motion.time)
        for world in range(WORLDS):
            demo = data.create_group(f"demo_{world}")
            demo.attrs["num_samples"] = len(motion.time)
            if carried:
                demo.attrs["model_file"] = MJCF
            states = np.concatenate(
                [motion.time[:, None], motion.qpos[world], motion.qvel[world]], axis=1
            )
            demo.create_dataset(
                "states", data=states, chunks=(16, states.shape[1]), compression="gzip"
            )
            demo["actions"] = np.zeros((len(states), 7))
            demo.create_group("obs")["robot0_eef_pos"] = np.zeros((len(states), 3))
        mask = file.create_group("mask")
        mask["train"], mask["valid"] = np.array([b"demo_0"]), np.array([b"demo_1"])


def robosuite(folder: Path, motion: SteppedMotion) -> SceneRequest:
    write_demos(folder / "demos.dat", motion)
    return SceneRequest(scenes=[], trajectory=str(folder / "demos.dat"))


def robosuite_with_a_scene(folder: Path, motion: SteppedMotion) -> SceneRequest:
    write_demos(folder / "demos.dat", motion, carried=False)
    return SceneRequest(scenes=[mjcf_scene(folder)], trajectory=str(folder / "demos.dat"))


def states_npy(folder: Path, motion: SteppedMotion) -> SceneRequest:
    with open(folder / "states.dat", "wb") as file:
        np.save(file, motion.states)
    return SceneRequest(scenes=[mjcf_scene(folder)], trajectory=str(folder / "states.dat"))


def states_npz(folder: Path, motion: SteppedMotion) -> SceneRequest:
    with open(folder / "states.dat", "wb") as file:
        np.savez_compressed(
            file, states=motion.states, control=np.zeros((WORLDS, len(motion.time), 1))
        )
    return SceneRequest(scenes=[mjcf_scene(folder)], trajectory=str(folder / "states.dat"))


def states_h5(folder: Path, motion: SteppedMotion) -> SceneRequest:
    with h5py.File(folder / "states.dat", "w") as file:
        file.create_dataset("states", data=motion.qpos, chunks=True)
    options = RecordingOptions(state_spec="mjSTATE_QPOS", fps=RATE, first_axis="worlds")
    return SceneRequest(
        scenes=[mjcf_scene(folder)], trajectory=str(folder / "states.dat"), recording=options
    )


def isaac_lab(folder: Path, motion: SteppedMotion) -> SceneRequest:
    """As Isaac Lab's recorder lays a file out, a demonstration a world; in float64, so that
    contacts can be compared.

    The scene is USD, so its own forward kinematics is at work.
    """
    (folder / "scene.usda").write_text(usd_scene(motion.mj_model))
    free = ("ball", "block", "can", "egg")
    names = {"cart": ("rail", "pivot"), "flail": ("socket:x", "socket:y", "socket:z", "socket:w")}
    with h5py.File(folder / "demos.dat", "w") as file:
        data = file.create_group("data")
        data.attrs["format_version"] = 1
        data.attrs["env_args"] = '{"env_name": "", "type": 2}'
        for world in range(WORLDS):
            for part, rows in (("initial_state", slice(0, 1)), ("states", slice(1, None))):
                demo = data.require_group(f"demo_{world}/{part}")
                for name in (*free, *names):
                    asset = demo.create_group(
                        f"{'rigid_object' if name in free else 'articulation'}/{name}"
                    )
                    asset["root_pose"] = motion.body_q[rows, world, motion.body_names.index(name)]
                    if name in names:
                        columns = joint_columns(motion, world, names[name])
                        asset.create_dataset(
                            "joint_position", data=columns[rows], compression="gzip"
                        )
                        asset.attrs["joint_names"] = list(names[name])
    options = RecordingOptions(fps=RATE)
    return SceneRequest(
        scenes=[str(folder / "scene.usda")], trajectory=str(folder / "demos.dat"), recording=options
    )


def joint_columns(motion: SteppedMotion, world: int, names: tuple[str, ...]) -> np.ndarray:
    """float64[F, k]: coordinates as USD's joints have them, of a quaternion `:x` to `:w`."""
    columns = []
    for name in names:
        joint, _, part = name.partition(":")
        place = int(motion.mj_model.jnt_qposadr[motion.mj_model.joint(joint).id])
        columns.append(motion.qpos[world, :, place + ("wxyz".index(part) if part else 0)])
    return np.stack(columns, axis=1)


WRITERS: dict[str, Writer] = {
    writer.__name__: writer
    for writer in (
        our_bodies,
        our_bodies_of_usd,
        our_coordinates,
        robosuite,
        robosuite_with_a_scene,
        states_npy,
        states_npz,
        states_h5,
        isaac_lab,
    )
}
"""Each writes every world of the motion; names of the files say nothing of what they are."""


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_same_contacts(name, tmp_path, motion, expected):
    found, time = contacts_of(WRITERS[name](tmp_path, motion))
    np.testing.assert_allclose(time, motion.time, atol=1e-9)
    same(found, expected)


@pytest.mark.parametrize(("rate", "unit"), [(RATE, 1.0), (24.0, 1.0), (RATE, 0.01)])
def test_a_usd_layer_gives_the_same_contacts(rate, unit, tmp_path, motion, expected):
    """At the recording's own rate, at another than the scene's, and in centimetres; one world, as a
    stage has."""
    (tmp_path / "scene.usda").write_text(usd_scene(motion.mj_model, unit))
    (tmp_path / "motion.usda").write_text(usd_layer(motion, 1, rate, unit))
    request = SceneRequest(
        scenes=[str(tmp_path / "scene.usda")], trajectory=str(tmp_path / "motion.usda")
    )
    found, time = contacts_of(request)
    np.testing.assert_allclose(time, motion.time, atol=1e-9)
    same(
        found, {(frame, 0, *rest): d for (frame, world, *rest), d in expected.items() if world == 1}
    )


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
@pytest.mark.parametrize("ending", ["xml", "usda"])
def test_poses_of_bodies_give_the_same_contacts(order, ending, tmp_path, motion, expected):
    """A tracker's .npz of every body; one world, as such files have."""
    poses = motion.body_q[:, 1][
        ..., [0, 1, 2, *((6, 3, 4, 5) if order == "wxyz" else (3, 4, 5, 6))]
    ]
    with open(tmp_path / "motion.dat", "wb") as file:
        np.savez(
            file,
            fps=np.array([RATE]),
            body_names=np.array(motion.body_names),
            body_pos_w=poses[..., :3],
            body_quat_w=poses[..., 3:],
        )
    (tmp_path / "scene.usda").write_text(usd_scene(motion.mj_model))
    mjcf_scene(tmp_path)
    request = SceneRequest(
        scenes=[str(tmp_path / f"scene.{ending}")],
        trajectory=str(tmp_path / "motion.dat"),
        recording=RecordingOptions(quaternion_order=order),
    )
    found, _ = contacts_of(request)
    same(
        found, {(frame, 0, *rest): d for (frame, world, *rest), d in expected.items() if world == 1}
    )


@pytest.mark.parametrize("ending", ["xml", "usda"])
@pytest.mark.parametrize("storage", ["npz", "csv"])
def test_root_and_joints_give_the_same_contacts(storage, ending, tmp_path, motion):
    """Cart and pole move, by their joints; what else the scene has rests."""
    columns = joint_columns(motion, 1, ("pivot", "rail"))
    root = motion.body_q[:, 1, motion.body_names.index("cart")]
    options = RecordingOptions(joint_names=("pivot", "rail"), quaternion_order="xyzw", fps=RATE)
    if storage == "csv":
        np.savetxt(
            tmp_path / "motion.dat",
            np.concatenate([root, columns], axis=1),
            delimiter=",",
            fmt="%.17g",
        )
    else:
        with open(tmp_path / "motion.dat", "wb") as file:
            np.savez(file, root_pos=root[:, :3], root_rot=root[:, 3:], dof_pos=columns)
    (tmp_path / "scene.usda").write_text(usd_scene(motion.mj_model))
    mjcf_scene(tmp_path)
    request = SceneRequest(
        scenes=[str(tmp_path / f"scene.{ending}")],
        trajectory=str(tmp_path / "motion.dat"),
        recording=options,
    )
    found, _ = contacts_of(request)
    still = np.repeat(motion.body_q[:1, :1], len(motion.time), axis=0)
    moving = [motion.body_names.index(name) for name in ("cart", "pole")]
    still[:, 0, moving] = motion.body_q[:, 1, moving]
    rest = [k for k in range(len(motion.body_names)) if k not in moving]
    still[:, 0, rest] = resting_poses(motion)[rest]
    (tmp_path / "bodies").mkdir()
    truth = replace(motion, body_q=np.repeat(still, WORLDS, axis=1))
    wanted, _ = contacts_of(our_bodies(tmp_path / "bodies", truth))
    wanted = {(frame, 0, *parts): d for (frame, world, *parts), d in wanted.items() if world == 1}
    assert {contact[2:4] for contact in wanted} >= {("block", "pole"), ("floor", "pole")}
    same(found, wanted)


def resting_poses(motion: SteppedMotion) -> np.ndarray:
    """float64[B, 7] of the scene as it is written."""
    import mujoco

    data = mujoco.MjData(motion.mj_model)
    mujoco.mj_kinematics(motion.mj_model, data)
    return np.concatenate([data.xpos[1:], data.xquat[1:][:, [1, 2, 3, 0]]], axis=1)


def same(found: dict[Contact, float], expected: dict[Contact, float]) -> None:
    """The same contacts with the same distances; one at the very edge of the gap may be in one set
    only."""
    for contact in found.keys() ^ expected.keys():
        distance = found.get(contact, expected.get(contact, 0.0))
        assert abs(distance - GAP) < SAME_DISTANCE, contact
    for contact in found.keys() & expected.keys():
        assert found[contact] == pytest.approx(expected[contact], abs=SAME_DISTANCE), contact
