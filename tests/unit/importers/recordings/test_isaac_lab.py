"""Isaac Lab's recorder: files in its layout, made by stepping MuJoCo, read over the USD and the
MJCF of one robot."""

import json

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.isaac_lab import GROUPS
from collidecli.importers.recordings.kinds import kind_of, open_motion, open_recording
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import RecordingOptions
from tests.support.twin_robots import ROBOT, check_poses, target_of, write_isaac_lab, write_twins
from tests.support.twin_robots import stepped_demo as stepped
from tests.support.usd_scenes import COLLIDER, at, mesh, sphere, write_usda

FRAMES = 7


@pytest.fixture
def twins(tmp_path):
    return write_twins(tmp_path, ROBOT, seed=2, ground=True)


@pytest.fixture
def demo(twins):
    return stepped(twins, FRAMES)


@pytest.fixture
def path(tmp_path, demo):
    return write_isaac_lab(tmp_path / "m.hdf5", [demo], 1)


@pytest.fixture
def sheet(twins):
    """The scene has a cloth too."""
    twins.usd.write_text(twins.usd.read_text() + SHEET)


def opened(path, target, **options):
    assert kind_of(path).NAME == "isaac-lab"
    motion = open_motion(open_recording(path), target, RecordingOptions(**{"fps": 60.0, **options}))
    assert isinstance(motion, ArticulationMotion)
    return motion


@pytest.mark.parametrize(("version", "order"), [(None, "wxyz"), (0, "wxyz"), (1, "xyzw")])
def test_poses_are_mujocos(tmp_path, twins, version, order):
    demo = stepped(twins, FRAMES)
    path = write_isaac_lab(tmp_path / "m.hdf5", [demo], version)
    motion = opened(path, target_of(twins.usd), joint_names=demo.names)
    assert (motion.world_count, len(motion.time), motion.warnings) == (1, FRAMES, ())
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / 60.0)
    poses = motion.read(range(FRAMES))[:, 0]
    for k, body in enumerate(target_of(twins.usd).model.bodies.path):
        check_poses(poses[:, k], demo.poses[body.rsplit("/", 1)[-1]], 1e-6)
    np.testing.assert_array_equal(motion.read(range(2, 6, 3)), motion.read(range(FRAMES))[2:6:3])
    facts = open_recording(path).describe()
    assert (facts.frames, facts.worlds, facts.quaternion_order) == (FRAMES, 1, order)
    assert facts.needs == ("--joint-names", "--fps")


def test_an_mjcf_scene_takes_it_too(tmp_path, twins):
    """Only simple joints agree by name with the MJCF: the robot of the file is named after its root
    body."""
    demo = stepped(twins, FRAMES)
    path = write_isaac_lab(tmp_path / "m.hdf5", [demo], 1, robot="base")
    mjcf_names = tuple(f"{name}_{axis}" for name, axis in zip(demo.names, demo.axes, strict=True))
    motion = opened(path, target_of(twins.mjcf), joint_names=mjcf_names)
    for k, body in enumerate(target_of(twins.mjcf).model.bodies.path):
        np.testing.assert_allclose(
            motion.read(range(FRAMES))[:, 0, k, :3], demo.poses[body][:, :3], atol=1e-6
        )


def test_demonstrations_are_worlds(tmp_path, twins):
    demos = [stepped(twins, FRAMES, seed) for seed in range(3)]
    path = write_isaac_lab(tmp_path / "m.hdf5", demos, 1)
    options = {"joint_names": demos[0].names, "demos": ("demo_2", "demo_0")}
    assert open_recording(path).world_count(RecordingOptions(**options)) == 2
    motion = opened(path, target_of(twins.usd, 2), **options)
    poses = motion.read(range(FRAMES))
    puck = target_of(twins.usd).model.bodies.path.index("/World/puck")
    for world, demo in enumerate((demos[2], demos[0])):
        np.testing.assert_allclose(poses[:, world, puck, :3], demo.poses["puck"][:, :3], atol=1e-6)
    with pytest.raises(InputError, match="the recording has 3 worlds, the scene 2"):
        opened(path, target_of(twins.usd, 2), joint_names=demos[0].names)


def test_the_time_is_that_of_env_args(twins, demo, path):
    with h5py.File(path, "a") as file:
        file["data"].attrs["env_args"] = json.dumps({"sim_args": {"dt": 0.005, "decimation": 4}})
    motion = open_motion(
        open_recording(path), target_of(twins.usd), RecordingOptions(joint_names=demo.names)
    )
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) * 0.02)
    assert open_recording(path).describe().needs == ("--joint-names",)
    motion.close()


def test_names_may_be_in_the_file(twins, demo, path):
    with h5py.File(path, "a") as file:
        file["data"].attrs["env_args"] = json.dumps({"sim_args": {"dt": 0.005, "decimation": 4}})
    with h5py.File(path, "a") as file:
        file["data/demo_0/states/articulation/robot"].attrs["joint_names"] = list(demo.names)
    assert opened(path, target_of(twins.usd)).warnings == ()


@pytest.mark.parametrize(
    ("break_it", "options", "message"),
    [
        (
            None,
            {"joint_names": ()},
            "4 joints are recorded, and no names are given\n.*--joint-names.*/shoulder_joint",
        ),
        (
            None,
            {"joint_names": ("shoulder_joint",)},
            "4 joints are recorded, and 1 names are given",
        ),
        (
            None,
            {"joint_names": tuple("abcd")},
            "no joint 'a', 'b', 'c', 'd'\n  its coordinates are '/World/robot/",
        ),
        (None, {"fps": None}, "contains no times\n +give the rate with --fps"),
        (None, {"quaternion_order": "wxyz"}, "quaternions are xyzw\n  remove --quaternion-order"),
        (
            lambda d: [d[f"{k}/rigid_object"].move("puck", "cube") for k in GROUPS],
            {},
            "no articulation or",
        ),
        (
            lambda d: d.__delitem__("states/rigid_object/puck/root_pose"),
            {},
            "root_pose: there is no such dataset",
        ),
        (
            lambda d: d["states/rigid_object/puck/root_pose"].resize(3, 0),
            {},
            "numbers of frames: robot 7, puck 4",
        ),
        (
            lambda d: d.__delitem__("initial_state/rigid_object"),
            {},
            "'puck' is not in both of initial_state and",
        ),
        (
            lambda d: d.file.attrs.__setitem__("format_version", 2),
            {},
            "format_version is 2.*\n  known versions: 0, 1",
        ),
    ],
    ids=[
        "names",
        "count",
        "unknown joint",
        "fps",
        "order",
        "unknown body",
        "root",
        "lengths",
        "initial",
        "version",
    ],
)
def test_refusals(twins, demo, path, break_it, options, message):
    if break_it is not None:
        with h5py.File(path, "a") as file:
            break_it(file["data/demo_0"])
    with pytest.raises(InputError, match=message):
        opened(path, target_of(twins.usd), **{"joint_names": demo.names, **options})


@pytest.mark.parametrize(
    ("dataset", "place", "value", "message"),
    [
        (
            "articulation/robot/joint_position",
            (3, 1),
            np.nan,
            "joint_position, frame 4, world 0: .* is nan",
        ),
        (
            "rigid_object/puck/root_pose",
            (1, 5),
            np.inf,
            "root_pose, frame 2, world 0, body '/World/puck': the po",
        ),
        ("rigid_object/puck/root_pose", (5, slice(3, 7)), 0.5001, None),
        (
            "rigid_object/puck/root_pose",
            (5, slice(3, 7)),
            0.51,
            "frame 6, world 0, body '/World/puck': .*1.02",
        ),
    ],
)
def test_bad_cells_are_named(twins, demo, path, dataset, place, value, message):
    """Frame 0 is the initial state: row r of the states is frame r + 1."""
    with h5py.File(path, "a") as file:
        held = file[f"data/demo_0/states/{dataset}"]
        assert isinstance(held, h5py.Dataset)
        held[place] = value
    motion = opened(path, target_of(twins.usd), joint_names=demo.names)
    if message is None:
        np.testing.assert_allclose(
            np.linalg.norm(motion.read(range(FRAMES))[..., 3:], axis=-1), 1.0
        )
        return
    with pytest.raises(InputError, match=message):
        motion.read(range(FRAMES))


def test_what_is_left_out_is_told(twins, demo, path):
    with h5py.File(path, "a") as file:
        for group in ("initial_state", "states"):
            del file[f"data/demo_0/{group}/rigid_object"]
            file.create_group(f"data/demo_0/{group}/deformable_object/cloth")
    motion = opened(path, target_of(twins.usd), joint_names=demo.names)
    assert any(
        "/data/demo_0/states/deformable_object: not used" in warning for warning in motion.warnings
    )
    assert any("'/World/puck'" in warning for warning in motion.warnings)


SHEET = mesh(
    "Sheet", [(0, 0, 5), (1, 0, 5), (0, 1, 5)], None, "", "bool collide:deformable = 1", COLLIDER
)


def write_nodes(path, nodes: np.ndarray, name: str = "sheet") -> None:
    """Adds nodal positions [frames, n, 3]; the first frame is that of the initial state."""
    with h5py.File(path, "a") as file:
        for group, rows in (("initial_state", nodes[:1]), ("states", nodes[1:])):
            file[f"data/demo_0/{group}/deformable_object/{name}/nodal_position"] = rows


def positions_in(motion, frames: range) -> np.ndarray:
    found = motion.read_particles(frames)
    assert found is not None
    return found


def test_nodes_of_deformable_objects_move_the_particles_of_the_scene(twins, demo, path, sheet):
    nodes = np.random.default_rng(4).normal(size=(FRAMES, 3, 3)).astype(np.float32)
    write_nodes(path, nodes)
    motion = opened(path, target_of(twins.usd), joint_names=demo.names)
    assert motion.warnings == ()
    np.testing.assert_array_equal(positions_in(motion, range(FRAMES))[:, 0], nodes.astype(float))
    np.testing.assert_array_equal(
        positions_in(motion, range(2, 6, 3))[:, 0], nodes[2:6:3].astype(float)
    )


@pytest.mark.parametrize(
    ("nodes", "name", "message"),
    [
        (np.zeros((FRAMES, 4, 3), np.float32), "sheet", r"not floats \[frames, 3, 3\]"),
        (
            np.zeros((FRAMES, 3, 3), np.float32),
            "towel",
            "the scene has no deformable objects 'towel'",
        ),
    ],
)
def test_deformable_objects_that_the_scene_does_not_have_are_refused(
    twins, demo, path, sheet, nodes, name, message
):
    write_nodes(path, nodes, name)
    with pytest.raises(InputError, match=message):
        opened(path, target_of(twins.usd), joint_names=demo.names)


def test_an_object_that_is_not_recorded_rests_with_a_warning(twins, demo, path, sheet):
    motion = opened(path, target_of(twins.usd), joint_names=demo.names)
    assert any("no positions of" in warning for warning in motion.warnings)
    assert positions_in(motion, range(2))[1, 0, 0].tolist() == [0.0, 0.0, 5.0]
    motion.close()


def test_positions_of_nan_are_refused(twins, demo, path, sheet):
    nodes = np.zeros((FRAMES, 3, 3), np.float32)
    nodes[3, 1, 2] = np.nan
    write_nodes(path, nodes)
    with pytest.raises(InputError, match="frame 3, world 0, particle 1"):
        opened(path, target_of(twins.usd), joint_names=demo.names).read_particles(range(FRAMES))


HINGE = """def PhysicsRevoluteJoint "hinge" {
    rel physics:body0 = <../base>
    rel physics:body1 = <../link>
    uniform token physics:axis = "Z"
    point3f physics:localPos1 = (-1, 0, 0)
}
"""


def environments(origins, radii, more: str = "") -> str:
    """A robot of two links and a cube in each environment. more: in the robot."""
    envs = ""
    for k, (origin, radius) in enumerate(zip(origins, radii, strict=True)):
        inside = sphere("base", "double radius = 0.1") + sphere(
            "link", f"double radius = {radius}\n{at(1, 0, 0)}"
        )
        robot = (
            'def Xform "Robot" (prepend apiSchemas = ["PhysicsArticulationRootAPI"])'
            f" {{\n{inside}{HINGE}{more}}}\n"
        )
        cube = sphere("Cube", f"double radius = 0.1\n{at(0, 0, 3)}")
        envs += f'def Xform "env_{k}" {{\n{at(*origin)}{robot}{cube}}}\n'
    return (
        f'def Xform "World" {{\ndef Plane "ground" {COLLIDER} {{\n}}\ndef Xform "envs"'
        f" {{\n{envs}}}\n}}\n"
    )


@pytest.mark.parametrize(
    "radii", [(0.1, 0.1, 0.1), (0.1, 0.2, 0.1)], ids=["alike", "two templates"]
)
def test_poses_are_relative_to_the_environment(tmp_path, radii):
    """Names differ in capitals from the prims', as Isaac Lab's scene entities do. Poses worked out
    by hand."""
    origins = np.array([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    scene_path = write_usda(tmp_path, environments(origins.tolist(), radii))
    rng = np.random.default_rng(0)
    path = tmp_path / "m.hdf5"
    angle = rng.uniform(-3, 3, (3, 4))
    root = rng.normal(size=(3, 4, 3))
    cube = rng.normal(size=(3, 4, 3))
    with h5py.File(path, "w") as file:
        for k in range(3):
            states = file.create_group(f"data/demo_{k}/states")
            states["articulation/robot/joint_position"] = angle[k][:, None]
            states["articulation/robot/root_pose"] = np.concatenate(
                [root[k], np.tile([1.0, 0, 0, 0], (4, 1))], axis=1
            )
            states["rigid_object/cube/root_pose"] = np.concatenate(
                [cube[k], np.tile([1.0, 0, 0, 0], (4, 1))], axis=1
            )
    options = RecordingOptions(joint_names=("hinge",), fps=10.0)
    request = SceneRequest(scenes=[str(scene_path)], trajectory=str(path), recording=options)
    scene, motion = scene_in_motion(request)
    assert scene.model.world_count == 3
    poses = motion.read(range(4))
    names = [body.split("/", 4)[-1] for body in scene.model.bodies.path]
    for world in range(3):
        for row, name in enumerate(names):
            if scene.model.bodies.template[row] not in (-1, scene.model.world_template[world]):
                continue
            wanted = (cube if name == "Cube" else root)[world] + origins[world]
            if name == "Robot/link":
                wanted = wanted + np.stack(
                    [np.cos(angle[world]), np.sin(angle[world]), np.zeros(4)], axis=1
                )
            np.testing.assert_allclose(poses[:, world, row, :3], wanted, atol=1e-9)
    motion.close()


RAIL = """def PhysicsPrismaticJoint "rail" {
    rel physics:body1 = <../base>
    uniform token physics:axis = "X"
}
"""


def test_a_root_that_a_joint_places_moves_with_its_environment(tmp_path):
    scene_path = write_usda(tmp_path, environments([(0, 0, 0), (4, 0, 0)], (0.1, 0.1), RAIL))
    joints = np.random.default_rng(0).uniform(-1, 1, (2, 5, 2))
    path = tmp_path / "m.hdf5"
    with h5py.File(path, "w") as file:
        for k in range(2):
            asset = file.create_group(f"data/demo_{k}/states/articulation/robot")
            asset["joint_position"] = joints[k]
            asset["root_pose"] = np.tile([9.0, 9, 9, 1, 0, 0, 0], (5, 1))
    options = RecordingOptions(joint_names=("hinge", "rail"), fps=10.0)
    request = SceneRequest(scenes=[str(scene_path)], trajectory=str(path), recording=options)
    scene, motion = scene_in_motion(request)
    assert any("root_pose: not used: joints position" in warning for warning in motion.warnings)
    poses = motion.read(range(5))
    names = [body.rsplit("/", 1)[-1] for body in scene.model.bodies.path]
    for k, (angle, slide) in enumerate(joints.transpose(0, 2, 1)):
        base = np.stack([4.0 * k + slide, np.zeros(5), np.zeros(5)], axis=1)
        link = base + np.stack([np.cos(angle), np.sin(angle), np.zeros(5)], axis=1)
        for name, expected in (("base", base), ("link", link), ("Cube", [[4.0 * k, 0.0, 3.0]] * 5)):
            np.testing.assert_allclose(poses[:, k, names.index(name), :3], expected, atol=1e-9)
