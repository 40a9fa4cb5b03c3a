"""Tables of joints with titles: joints, units, times and a root by name, or a refusal.

Poses are compared with those of MuJoCo for positions that the test computes itself. The Euler
angles of `rotation_about` are products of matrices of single turns.
"""

from contextlib import closing

import h5py
import mujoco
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.recordings.column_titles import joint_title
from collidecli.importers.recordings.kinds import open_recording
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.scene.options import EULER_ORDERS, RecordingOptions

ROBOT = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="pelvis" pos="0 0 1"><freejoint name="root"/><geom size="0.1"/>
      <body name="thigh" pos="0 0.1 -0.1">
        <joint name="left_hip_joint" axis="0 1 0" range="-1.5 1.5" limited="true"/>
        <geom size="0.05"/>
        <body name="shin" pos="0 0 -0.4">
          <joint name="left_knee_joint" axis="0 1 0.2" range="-1.5 1.5" limited="true"/>
          <geom size="0.05"/>
          <body name="pad" pos="0 0.1 -0.2">
            <joint name="pad" type="slide" axis="1 0 0"/><geom size="0.02"/></body>
        </body></body></body>
  </worldbody>
</mujoco>"""
JOINTS = ("left_hip_joint", "left_knee_joint", "pad")
FRAMES = 7
DEG = np.degrees(1.0)
EXACT = 1e-12
"""Rounding of a dozen products of numbers near 1, written with 17 digits."""


@pytest.fixture
def scene(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT)
    return path


def drawn(seed=0):
    """Positions [F, 3] of `JOINTS`, root positions [F, 3] and Euler angles [F, 3]."""
    random = np.random.default_rng(seed)
    joints = random.uniform(-1.0, 1.0, (FRAMES, 3)) * [1.0, 1.0, 0.03]
    return joints, random.uniform(-1, 1, (FRAMES, 3)), random.uniform(-1.2, 1.2, (FRAMES, 3))


def expected(joints, root=None, quaternion=None):
    """float64[F, 4, 7] xyzw by MuJoCo. quaternion: wxyz."""
    model = mujoco.MjModel.from_xml_string(ROBOT)
    data = mujoco.MjData(model)
    out = []
    for frame in range(len(joints)):
        data.qpos[:] = model.qpos0
        data.qpos[7:] = joints[frame]
        if root is not None:
            data.qpos[:3] = root[frame]
            data.qpos[3:7] = quaternion[frame]
        mujoco.mj_kinematics(model, data)
        out.append(np.concatenate([data.xpos, data.xquat[:, [1, 2, 3, 0]]], axis=1)[1:])
    return np.array(out)


def written(path, columns, separator=",", decimal=".", first=""):
    """A table of columns by title."""
    lines = [first + separator.join(columns)]
    for row in np.stack(list(columns.values()), axis=1):
        lines.append(separator.join(f"{value:.17g}" for value in row).replace(".", decimal))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read(scene, recording, **options):
    """Poses float64[F, 4, 7] and the motion."""
    request = SceneRequest(
        scenes=[str(scene)], trajectory=str(recording), recording=RecordingOptions(**options)
    )
    loaded, motion = scene_in_motion(request)
    poses = motion.read(range(len(motion.time)))[:, 0]
    motion.close()
    paths = list(loaded.model.bodies.path)
    return poses[:, [paths.index(name) for name in ("pelvis", "thigh", "shin", "pad")]], motion


def apart(poses, other):
    """The largest difference of poses, of quaternions up to sign."""
    sign = np.sign((poses[..., 3:] * other[..., 3:]).sum(-1, keepdims=True))
    return np.abs(np.concatenate([poses[..., :3], poses[..., 3:] * sign], -1) - other).max()


def joint_columns(joints, form="{}"):
    return {form.format(name): joints[:, k] for k, name in enumerate(JOINTS)}


@pytest.mark.parametrize(
    "form",
    [
        *("{}", "q_{}", "pos_{}", "{}.pos", "{}_pos", "position.{}", "joint_states/{}"),
        *("/joint_states/{}/position", "observation.state.{}.pos", "{}_meas", "Q_{}"),
    ],
)
def test_a_title_is_a_joints_name_with_known_words(tmp_path, scene, form):
    joints, _, _ = drawn()
    table = joint_columns(joints, form)
    times = {"time": np.arange(FRAMES) / 8.0}
    mixed = dict(list((times | table).items())[::-1])
    poses, motion = read(scene, written(tmp_path / "m.csv", mixed))
    assert apart(poses, expected(joints)) < EXACT
    np.testing.assert_array_equal(motion.time, np.arange(FRAMES) / 8.0)


@pytest.mark.parametrize(
    ("separator", "decimal"), [(",", "."), (";", "."), (";", ","), ("\t", ",")]
)
@pytest.mark.parametrize("first", ["", "\ufeff", "# "])
def test_separators_and_decimal_commas(tmp_path, scene, separator, decimal, first):
    joints, _, _ = drawn(1)
    table = {"t": np.arange(FRAMES) * 0.25} | joint_columns(joints)
    path = written(tmp_path / "m.csv", table, separator, decimal, first)
    poses, motion = read(scene, path)
    assert apart(poses, expected(joints)) < EXACT
    assert motion.time[-1] == 0.25 * (FRAMES - 1)


@pytest.mark.parametrize(
    ("title", "factor"),
    [
        *(("time", 1.0), ("t", 1.0), ("timestamp", 1.0), ("time [s]", 1.0), ("__time", 1.0)),
        *(("time_ms", 1e3), ("Time (ms)", 1e3), ("timestamp_ns", 1e9), ("t[us]", 1e6)),
        ("seconds", 1.0),
    ],
)
def test_times_by_title_and_unit(tmp_path, scene, title, factor):
    joints, _, _ = drawn(2)
    time = 3.0 + np.arange(FRAMES) * 0.125
    path = written(tmp_path / "m.csv", {title: time * factor} | joint_columns(joints))
    _, motion = read(scene, path)
    np.testing.assert_allclose(motion.time, time, rtol=1e-12)
    assert motion.warnings == ()
    _, motion = read(scene, path, fps=50.0)
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / 50.0)


@pytest.mark.parametrize(
    ("whole", "part", "unit"),
    [
        ("secs", "nsecs", 1e9),
        ("stamp_sec", "stamp_nanosec", 1e9),
        ("time.sec", "time.usec", 1e6),
        ("t_sec", "t_ms", 1e3),
    ],
)
def test_seconds_and_their_parts_are_one_time(tmp_path, scene, whole, part, unit):
    joints, _, _ = drawn(2)
    time = 3.0 + np.arange(FRAMES) * 0.375
    parts = {part: np.round(time % 1.0 * unit), whole: np.floor(time)}
    path = written(tmp_path / "m.csv", parts | joint_columns(joints))
    np.testing.assert_allclose(read(scene, path)[1].time, time, rtol=1e-12)


@pytest.mark.parametrize(("first", "second"), [("secs", "stamp_nsec"), ("time_s", "time_ms")])
def test_two_clocks_are_asked_for(tmp_path, scene, first, second):
    joints, _, _ = drawn(2)
    time = np.arange(FRAMES) * 0.375
    path = written(tmp_path / "m.csv", {first: time, second: time * 1e3} | joint_columns(joints))
    with pytest.raises(InputError, match="--time"):
        read(scene, path)
    motion = read(scene, path, time=first)[1]
    np.testing.assert_allclose(motion.time, time)


def test_milliseconds_without_a_unit_are_warned_of(tmp_path, scene):
    joints, _, _ = drawn(2)
    path = written(tmp_path / "m.csv", {"time": np.arange(FRAMES) * 20.0} | joint_columns(joints))
    assert "steps are 20 s; a title such as time [ms]" in read(scene, path)[1].warnings[0]


@pytest.mark.parametrize(
    ("hip", "knee", "pad", "options"),
    [
        ("left_hip_joint [rad]", "left_knee_joint (deg)", "pad [mm]", {}),
        ("left_hip_joint", "left_knee_joint_deg", "pad_cm", {}),
        ("left_hip_joint [rad]", "left_knee_joint", "pad", {"length_units": "cm"}),
        ("pos_left_hip_joint (rad)", "left_knee_joint [°]", "pad_pos_mm", {}),
    ],
)
def test_units(tmp_path, scene, hip, knee, pad, options):
    joints, _, _ = drawn(3)
    if options:
        options = {**options, "joint_scale": (f"left_knee_joint={np.pi / 180.0!r}",)}
    pad_factor = 1000.0 if "mm" in pad else 100.0
    table = {knee: joints[:, 1] * DEG, hip: joints[:, 0], pad: joints[:, 2] * pad_factor}
    poses, motion = read(scene, written(tmp_path / "m.csv", table), fps=10.0, **options)
    assert apart(poses, expected(joints)) < EXACT
    assert motion.warnings == ()


def test_units_by_option_and_a_warning_without_it(tmp_path, scene):
    joints, _, _ = drawn(4)
    path = written(tmp_path / "m.csv", joint_columns(joints * [DEG, DEG, 1000.0]))
    poses, _ = read(scene, path, fps=10.0, joint_units="degrees", length_units="mm")
    assert apart(poses, expected(joints)) < EXACT
    assert any("--joint-units" in text for text in read(scene, path, fps=10.0)[1].warnings)


def turn(axis, angle):
    """The matrix of a turn [rad] about x, y or z (0, 1, 2)."""
    out = np.eye(3)
    i = (axis + 1) % 3
    j = (axis + 2) % 3
    out[i, i] = out[j, j] = np.cos(angle)
    out[j, i] = np.sin(angle)
    out[i, j] = -np.sin(angle)
    return out


def rotation_about(order, angles):
    """Quaternions wxyz [F, 4] of angles about x, y, z [F, 3] by products of matrices."""
    frame, axes = order.split("-")
    out = []
    for row in angles:
        matrix = np.eye(3)
        for letter in axes:
            single = turn("xyz".index(letter), row["xyz".index(letter)])
            matrix = single @ matrix if frame == "fixed" else matrix @ single
        quaternion = np.empty(4)
        mujoco.mju_mat2Quat(quaternion, matrix.ravel())
        out.append(quaternion)
    return np.array(out)


def placed(root, titles=("x", "y", "z")):
    return {title: root[:, k] for k, title in enumerate(titles)}


@pytest.mark.parametrize("order", EULER_ORDERS)
def test_a_root_by_euler_angles(tmp_path, scene, order):
    joints, root, angles = drawn(5)
    table = joint_columns(joints) | placed(root) | placed(angles, ("roll", "pitch", "yaw"))
    poses, _ = read(scene, written(tmp_path / "m.csv", table), fps=10.0, euler_order=order)
    assert apart(poses, expected(joints, root, rotation_about(order, angles))) < 1e-7


@pytest.mark.parametrize(
    ("position", "rotation", "scale"),
    [
        (("base_x", "base_y", "base_z"), ("base_qx", "base_qy", "base_qz", "base_qw"), 1.0),
        (("p_x [cm]", "p_y [cm]", "p_z [cm]"), ("quat_x", "quat_y", "quat_z", "quat_w"), 100.0),
        (("x_mm", "y_mm", "z_mm"), ("rot_x", "rot_y", "rot_z", "rot_w"), 1000.0),
        (("px", "py", "pz"), ("qx", "qy", "qz", "qw"), 1.0),
    ],
)
def test_a_root_by_quaternion(tmp_path, scene, position, rotation, scale):
    joints, root, angles = drawn(6)
    wxyz = rotation_about("fixed-xyz", angles)
    turned = {title: wxyz[:, (k + 1) % 4] for k, title in enumerate(rotation)}
    shuffled = dict(list((placed(root * scale, position) | turned).items())[::-1])
    table = joint_columns(joints, "{}_pos") | shuffled | {"time": np.arange(FRAMES) / 2.0}
    poses, _ = read(scene, written(tmp_path / "m.csv", table))
    assert apart(poses, expected(joints, root, wxyz)) < 1e-7


def test_euler_angles_in_degrees_and_centimetres(tmp_path, scene):
    joints, root, angles = drawn(7)
    turned = placed(angles * DEG, ("root_rx_deg", "root_ry_deg", "root_rz_deg"))
    table = placed(root * 100.0, ("root_x", "root_y", "root_z")) | turned | joint_columns(joints)
    path = written(tmp_path / "m.csv", table)
    poses, _ = read(
        scene, path, fps=9.0, length_units="cm", euler_order="body-zyx", joint_scale=("pad=1",)
    )
    assert apart(poses, expected(joints, root, rotation_about("body-zyx", angles))) < 1e-7


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("body", ["ee", "hand", "cube", "goal"])
def test_the_pose_of_another_body_is_not_the_roots(tmp_path, scene, first, body):
    """The first seven columns of a humanoid motion too."""
    joints, root, _ = drawn(5)
    turned = np.tile([0.0, 0.6, 0.0, 0.8], (FRAMES, 1))
    axes = ("x", "y", "z", "qx", "qy", "qz", "qw")
    values = np.concatenate([root, turned], axis=1)

    def table(prefix):
        pose = {f"{prefix}_{axis}": values[:, k] for k, axis in enumerate(axes)}
        return pose | joint_columns(joints) if first else joint_columns(joints) | pose

    path = written(tmp_path / "m.csv", table(body))
    with pytest.raises(InputError, match=f"'{body}' are a pose that no title says"):
        read(scene, path, fps=10.0)
    if not first:
        poses, _ = read(scene, path, fps=10.0, ignore_joints=(f"{body}*",))
        assert apart(poses, expected(joints)) < EXACT
    for prefix in ("base", "pelvis", "floating_base", "robot_root"):
        poses, _ = read(scene, written(tmp_path / "m.csv", table(prefix)), fps=10.0)
        assert apart(poses, expected(joints, root, turned[:, [3, 0, 1, 2]])) < EXACT


def test_a_root_is_known_by_its_name_in_the_scene(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(ROBOT.replace("pelvis", "g1.hull"))
    axes = ("x", "y", "z", "qw", "qx", "qy", "qz")
    values = np.tile([1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0], (FRAMES, 1))
    table = {f"g1.hull_{axis}": values[:, k] for k, axis in enumerate(axes)}
    request = SceneRequest(
        scenes=[str(path)],
        trajectory=str(written(tmp_path / "m.csv", table)),
        recording=RecordingOptions(fps=10.0),
    )
    loaded, motion = scene_in_motion(request)
    place = list(loaded.model.bodies.path).index("g1.hull")
    np.testing.assert_array_equal(motion.read(range(1))[0, 0, place, :3], [1.0, 2.0, 3.0])
    motion.close()


@pytest.mark.parametrize("start", [0, 1])
def test_running_numbers_in_the_first_line_are_no_frame(tmp_path, scene, start):
    """A table of pandas without names of columns."""
    joints, _, _ = drawn(6)
    table = {str(start + k): joints[:, k] for k in range(3)}
    path = written(tmp_path / "m.csv", table)
    with pytest.raises(InputError, match=f"numbers {start} to {start + 2}, which may be those"):
        read(scene, path, fps=10.0, joint_names=JOINTS)
    lines = path.read_text().replace(f"{start},", f"{start}.0,", 1)
    path.write_text(lines)
    poses, _ = read(scene, path, fps=10.0, joint_names=JOINTS)
    frame = np.arange(start, start + 3, dtype=float)
    assert apart(poses[:1], expected(frame[None])) < EXACT
    assert apart(poses[1:], expected(joints)) < EXACT


def test_normalised_joints_beside_a_root(tmp_path, scene):
    joints, root, angles = drawn(16)
    shares = {name: joints[:, k] / 1.5 * 100.0 for k, name in enumerate(JOINTS[:2])}
    table = placed(root) | placed(angles, ("rx", "ry", "rz")) | shares
    options = {"joint_units": "normalised", "euler_order": "fixed-xyz", "fps": 10.0}
    poses, _ = read(scene, written(tmp_path / "m.csv", table), **options)
    other = expected(joints * [1, 1, 0], root, rotation_about("fixed-xyz", angles))
    assert apart(poses, other) < 1e-7


def test_a_root_alone(tmp_path, scene):
    _, root, angles = drawn(15)
    wxyz = rotation_about("fixed-xyz", angles)
    table = placed(wxyz[:, 1:], ("qx", "qy", "qz")) | {"qw": wxyz[:, 0]} | placed(root)
    poses, motion = read(scene, written(tmp_path / "m.csv", table), fps=10.0)
    assert apart(poses, expected(np.zeros((FRAMES, 3)), root, wxyz)) < 1e-7
    assert "stay as in the scene" in motion.warnings[0]


def test_bones_seed(tmp_path, scene):
    """Units, order and rate by NVlabs/ProtoMotions at 0c4d6654, data/scripts/
    convert_g1_csv_to_proto.py, and its page seed_g1_csv_preparation."""
    joints, root, angles = drawn(8)
    table = {"Frame": np.arange(FRAMES)}
    table |= placed(root * 100.0, [f"root_translate{axis}" for axis in "XYZ"])
    table |= placed(angles * DEG, [f"root_rotate{axis}" for axis in "XYZ"])
    table |= joint_columns(joints * [DEG, DEG, 100.0], "{}_dof")
    path = written(tmp_path / "m.csv", table)
    description = open_recording(path).describe()
    assert ("layout", "BONES-SEED") in description.details
    assert description.needs == ()
    poses, motion = read(scene, path)
    assert apart(poses, expected(joints, root, rotation_about("fixed-xyz", angles))) < 1e-7
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / 120.0)
    assert "BONES-SEED" in motion.warnings[0]
    np.testing.assert_allclose(read(scene, path, fps=30.0)[1].time, np.arange(FRAMES) / 30.0)


def test_other_quantities_are_named_in_one_warning(tmp_path, scene):
    joints, _, _ = drawn(9)
    table = {"frame": np.arange(FRAMES)} | joint_columns(joints)
    table |= joint_columns(joints + 5.0, "{}_vel") | joint_columns(joints - 9.0, "effort_{}")
    table |= joint_columns(joints + 7.0, "{} [rad/s]")
    poses, motion = read(scene, written(tmp_path / "m.csv", table), fps=5.0)
    assert apart(poses, expected(joints)) < EXACT
    assert len(motion.warnings) == 1
    assert "9 columns not used: 'left_hip_joint_vel'" in motion.warnings[0]


def test_commands_and_measured_positions(tmp_path, scene):
    joints, _, _ = drawn(10)
    commands = joint_columns(joints + 0.1, "{}_cmd")
    both = written(tmp_path / "m.csv", commands | joint_columns(joints, "{}_meas"))
    with pytest.raises(InputError, match=r"several columns: .*left_hip_joint_cmd.*\n.*--state"):
        read(scene, both, fps=5.0)
    poses, motion = read(scene, both, fps=5.0, state="*_meas")
    assert apart(poses, expected(joints)) < EXACT
    assert "3 columns not used: 'left_hip_joint_cmd'" in motion.warnings[0]
    poses, _ = read(scene, both, fps=5.0, state="re:.*_(cmd|set)")
    assert apart(poses, expected(joints + 0.1)) < EXACT
    alone = written(tmp_path / "c.csv", commands)
    with pytest.raises(InputError, match="are commands, no measured positions"):
        read(scene, alone, fps=5.0)


def test_columns_of_no_joint(tmp_path, scene):
    joints, _, _ = drawn(11)
    rest = {"load_cell": joints[:, 0], "ee_x": joints[:, 1], "note": joints[:, 1]}
    path = written(tmp_path / "m.csv", rest | joint_columns(joints))
    with pytest.raises(InputError, match="3 columns of no joint of the scene: 'load_cell', 'ee_x'"):
        read(scene, path, fps=5.0)
    poses, motion = read(scene, path, fps=5.0, ignore_joints=("load_cell", "e?_*", "re:not[a-f]"))
    assert apart(poses, expected(joints)) < EXACT
    assert "3 columns not used: 'load_cell', 'ee_x', 'note'" in motion.warnings[0]
    with pytest.raises(InputError, match="no joint 'hand_"):
        read(scene, path, fps=5.0, ignore_joints=("hand_*",))


def test_missing_joints_stay_and_are_named(tmp_path, scene):
    joints, _, _ = drawn(12)
    path = written(tmp_path / "m.csv", {"left_knee_joint": joints[:, 1], "pad": joints[:, 2]})
    poses, motion = read(scene, path, fps=5.0)
    assert apart(poses, expected(joints * [0.0, 1.0, 1.0])) < EXACT
    assert "stay as in the scene: 'left_hip_joint'" in motion.warnings[0]


def test_names_by_option(tmp_path, scene):
    joints, _, _ = drawn(13)
    order = [2, 0, 1]
    names = tuple(JOINTS[k] for k in order)
    titled = {"time": np.arange(FRAMES) * 1.0} | {f"q{k}": joints[:, k] for k in order}
    titled |= {f"dq{k}": joints[:, k] + 3.0 for k in order}
    path = written(tmp_path / "m.csv", titled)
    with pytest.raises(InputError, match="6 columns without a known title, and 3 names"):
        read(scene, path, joint_names=names)
    given = (*names, "-", "-", "-")
    assert apart(read(scene, path, joint_names=given)[0], expected(joints)) < EXACT
    bare = tmp_path / "bare.csv"
    np.savetxt(bare, joints[:, order], delimiter=",", fmt="%.17g")
    assert open_recording(bare).describe().needs == ("--fps", "--joint-names")
    assert apart(read(scene, bare, fps=4.0, joint_names=names)[0], expected(joints)) < EXACT
    with pytest.raises(InputError, match="3 columns without a known title, and no names"):
        read(scene, bare, fps=4.0)


def test_many_columns_without_titles_are_a_root_or_joints(tmp_path, scene):
    joints, _, _ = drawn(14)
    bare = tmp_path / "bare.csv"
    time = np.arange(FRAMES)[:, None] * 0.5
    rows = np.concatenate([time, joints, joints + 1.0, joints - 1.0], axis=1)
    np.savetxt(bare, rows, delimiter=",", fmt="%.17g")
    with pytest.raises(InputError, match=r"first line has no names(.|\n)*name all 10 columns"):
        read(scene, bare, fps=4.0)
    names = ("time", *JOINTS, *"------")
    poses, motion = read(scene, bare, joint_names=names)
    assert apart(poses, expected(joints)) < EXACT
    assert motion.time[1] == 0.5


@pytest.mark.parametrize(
    ("titles", "options", "message"),
    [
        ("x,y,z,roll,pitch,yaw,pad", {}, r"order of its Euler angles\n +give --euler-order"),
        ("x,y,z,qx,qy,qz,pad,pad_pos", {}, "columns of no joint of the scene: 'x', 'y', 'z', 'qx'"),
        (
            "a_x,a_y,a_z,a_qw,a_qx,a_qy,a_qz,pad_pos,b_x,b_y,b_z,b_rx,b_ry,b_rz",
            {},
            "the columns 'a' are a pose that no title says",
        ),
        ("time,timestamp,pad", {"fps": None}, "'time', 'timestamp' may be the times"),
        ("pad,left_hip_joint", {"fps": None}, "the recording contains no times"),
        ("pad,pad_pos", {}, "a joint has several columns: 'pad', 'pad_pos'"),
        ("pad [deg],left_hip_joint", {}, "joint 'pad' is recorded in 'degrees', not in m, cm, mm"),
        ("pad,left_hip_joint [ticks]", {}, "recorded in 'ticks', not in radians, degrees"),
        ("pad,left_hip_joint [rad]", {"joint_units": "degrees"}, "in radians, and the option is"),
        ("x_cm,y_cm,z_cm,qx,qy,qz,qw,pad", {"length_units": "mm"}, "name the unit cm, the option"),
        ("x [in],y [in],z [in],qx,qy,qz,qw,pad", {}, "'in', not one of m, cm, mm"),
        ("pad_vel,left_hip_joint_vel", {}, "no column is the position of a joint"),
        ("pad,other", {"time": "other"}, "--time and --fps"),
        ("pad,other", {"time": "clock", "fps": None}, "there is no column 'clock'"),
        ("pad,Left_hip_joint", {}, "of no joint of the scene: 'Left_hip_joint'"),
    ],
)
def test_refusals(tmp_path, scene, titles, options, message):
    path = tmp_path / "m.csv"
    path.write_text(titles + "\n" + ",".join(["0.01"] * (titles.count(",") + 1)) + "\n")
    with pytest.raises(InputError, match=message):
        read(scene, path, **{"fps": 5.0, **options})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pad,left_hip_joint\n0,1,0,2\n", "not a recording of a known kind"),
        ("pad,left_hip_joint\n0,1\n0,1,2\n", r"m.csv, line 3: the rows .* 3 cells here, 2 in"),
        ("pad;left_hip_joint\n1.234,5;1\n", "could not convert string '1.234.5'"),
        ("pad,left_hip_joint\n0,\n", "not a recording|could not convert string ''"),
        ("pad,left_hip_joint\n0,nan\n", "joint 'left_hip_joint' is nan"),
        ("pad,left_hip_joint\n", "the recording has no frames"),
        ("time,pad\n1,0\n0.5,0\n", "time decreases"),
        ("pad,label\n0,walk\n", "of no joint of the scene: 'label'"),
    ],
)
def test_faults_of_the_rows(tmp_path, scene, text, message):
    (tmp_path / "m.csv").write_text(text)
    options = {} if text.startswith("time") else {"fps": 5.0}
    with pytest.raises(InputError, match=message):
        read(scene, tmp_path / "m.csv", **options)


def test_texts_in_ignored_columns_are_not_read(tmp_path, scene):
    (tmp_path / "m.csv").write_text('"pad","label"\n0.02,walk\n0.03,run\n')
    poses, _ = read(scene, tmp_path / "m.csv", fps=5.0, ignore_joints=("label",))
    assert apart(poses, expected(np.array([[0, 0, 0.02], [0, 0, 0.03]]))) < EXACT


@pytest.mark.parametrize(
    ("title", "found"),
    [
        ("pos_arm_deg", ("pos_arm", "position", "degrees")),
        ("arm", ("arm", "position", "")),
        ("q_arm", ("arm", "position", "")),
        ("arm_vel", ("arm", "other", "")),
        ("vel arm [rad]", ("arm", "other", "radians")),
        ("arm [rad/s^2]", ("arm", "other", "rad/s^2")),
        ("arm_target (deg)", ("arm", "command", "degrees")),
        ("forearm", None),
        ("armpos", None),
        ("arm_2", None),
        ("arm[2]", None),
        ("Arm", None),
    ],
)
def test_what_a_title_says(title, found):
    told = joint_title(title, {"arm", "pos_arm"})
    assert (told and (told.name, told.quantity, told.unit)) == found


@pytest.mark.parametrize(
    ("titles", "lacking"),
    [
        ("cup_x,cup_y,cup_z", "cup_qx, cup_qy, cup_qz, cup_qw lack"),
        ("cup_x,cup_y,cup_z,cup_qx,cup_qy,cup_qz", "cup_qw lack"),
        ("cup_qx,cup_qy,cup_qz,cup_qw", "cup_x, cup_y, cup_z lack"),
        ("cup_x,cup_z,cup_roll,cup_pitch,cup_yaw", "cup_y lack"),
    ],
)
def test_a_pose_of_which_columns_lack_is_refused_by_their_names(collide, tmp_path, titles, lacking):
    scene = tmp_path / "cup.xml"
    scene.write_text(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="cup" pos="0 0 1">'
        '<freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    )
    table = tmp_path / "cup.csv"
    row = ",".join(["0"] * titles.count(","))
    table.write_text(f"time,{titles}\n0,{row},0\n1,{row},0\n")
    collide.refused(f"run {scene} -t {table}", told=lacking)
    assert f"cup: {lacking.removesuffix(' lack')}" in collide.ok(f"inspect {table}").out


def test_a_name_of_the_scene_comes_before_a_word_for_any_root(collide, tmp_path):
    """A free joint "free" beside a robot: its pose is not the robot's."""
    scene = tmp_path / "scene.xml"
    scene.write_text(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="robot" pos="0 0 9">'
        '<freejoint name="root"/><geom size="0.1"/><body name="arm"><joint name="hinge"/>'
        '<geom size="0.1"/></body></body><body name="cup" pos="1 0 9"><freejoint name="free"/>'
        '<geom size="0.05"/></body></worldbody></mujoco>'
    )
    axes = ("x", "y", "z", "qw", "qx", "qy", "qz")
    table = tmp_path / "table.csv"
    table.write_text(
        f"time,hinge,{','.join(f'free_{axis}' for axis in axes)}\n0,0,1,0,0.04,1,0,0,0\n"
    )
    collide.ok(f"run {scene} -t {table} -o {tmp_path / 'out.h5'}")
    with collidecli.open_contacts(tmp_path / "out.h5") as contacts:
        paths = [contacts.shapes.path[k] for k in contacts.cell(0).columns["shape1"]]
    assert paths == ["cup/geom#3"]


def test_the_bodies_of_the_columns_of_a_table_are_shown(collide, tmp_path):
    axes = ("x", "y", "z", "qx", "qy", "qz", "qw")
    table = tmp_path / "bodies.csv"
    titles = [f"{body}_{axis}" for body in ("cup", "base", "lid") for axis in axes]
    table.write_text(f"time,{','.join(titles)}\n0{',0' * 21}\n")
    assert collide.result(f"inspect {table}")["bodies"] == ["cup", "lid"]


WHEEL = """<mujoco><worldbody><body name="wheel"><joint name="turn" axis="0 1 0"/>
<geom size="0.1"/><body name="arm" pos="0 0 0.15"><joint name="lift" range="-30 30"/>
<geom name="hand" size="0.1"/></body></body><geom name="wall" size="0.05"/></worldbody></mujoco>"""


@pytest.fixture
def wheel(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wheel.xml").write_text(WHEEL)
    turns = [f"{k},{2.5 * k},0.1" for k in range(20)]
    (tmp_path / "turns.csv").write_text("time,turn,lift\n" + "\n".join(turns) + "\n")
    (tmp_path / "degrees.csv").write_text("time,turn,lift\n0,0,0\n1,80,60\n")
    return tmp_path


def test_turns_of_a_joint_without_limits_cause_no_warning(collide, wheel):
    assert collide.ok("run wheel.xml -t turns.csv -o turns.h5").err == ""
    told = collide.ok("run wheel.xml -t degrees.csv -o degrees.h5").err
    assert "joint 'lift' is beyond its limits" in told
    assert "moves by 80 from one frame to the next" in told
    (wheel / "begin.csv").write_text("time,turn,lift\n0,90,0\n1,91,0.1\n")
    assert "begins at 90" in collide.ok("run wheel.xml -t begin.csv -o begin.h5").err


def test_a_table_has_no_demonstrations(collide, wheel):
    """Neither its contact set nor what is made of it."""
    texts = [collide.ok("run wheel.xml -t turns.csv -o turns.h5").out]
    texts += [collide.ok(f"{verb} turns.h5").out for verb in ("inspect", "events")]
    collide.ok("export turns.h5 --to csv -o rows.csv")
    collide.ok("events turns.h5 --csv touches.csv")
    assert not [text for text in texts if "demonstration" in text]
    assert "frame 0, world 0: " in texts[0]
    for name in ("rows", "touches"):
        assert "episode" not in pandas.read_csv(f"{name}.csv").columns
    with collidecli.open_contacts(wheel / "turns.h5") as contacts:
        assert contacts.episodes is None
        assert "episode" not in contacts.to_pandas().columns


@pytest.fixture
def earlier(collide, wheel):
    """A trajectory as it was once made of a table: with one episode, named "the table"."""
    path = wheel / "turns.trajectory.h5"
    collide.ok(f"traj convert turns.csv --scene wheel.xml -o {path.name}")
    with h5py.File(path, "a") as file:
        file.create_dataset("episode/name", data=["the table"], dtype=h5py.string_dtype())
        file["episode/world"] = np.zeros(1, np.int32)
        file["episode/first_frame"] = np.zeros(1, np.int64)
        file["episode/frame_count"] = np.array([len(file["time"])], np.int64)
    return path.name


def test_an_unnamed_episode_is_not_in_texts(collide, wheel, earlier):
    """Of files that were written before: the world stands alone."""
    texts = [collide.ok(f"run wheel.xml -t {earlier} -o turns.h5").out]
    texts += [collide.ok(f"{verb} turns.h5").out for verb in ("inspect", "events")]
    texts.append(collide.ok("report turns.h5 -o turns.html").out)
    texts.append((wheel / "turns.html").read_text())
    collide.ok(f"view turns.h5 --scene wheel.xml -t {earlier} --export view.html")
    texts.append((wheel / "view.html").read_text())
    assert not [text for text in texts if "the table" in text]
    assert "frame 0, world 0: " in texts[0]
    assert "demonstration  " not in texts[1]
    with collidecli.open_contacts(wheel / "turns.h5") as contacts:
        assert contacts.episodes.name == ("the table",)


def test_rows_of_an_unnamed_episode_have_the_name_of_the_file(collide, wheel, earlier):
    """A row of a table stands without its contact set."""
    collide.ok(f"run wheel.xml -t {earlier} -o turns.contacts.h5")
    collide.ok("export turns.contacts.h5 --to csv -o rows.csv")
    collide.ok("export turns.contacts.h5 --to parquet -o rows.parquet")
    collide.ok("events turns.contacts.h5 --csv touches.csv")
    names = [pandas.read_csv(f"{name}.csv")["episode"] for name in ("rows", "touches")]
    names.append(pandas.read_parquet("rows.parquet")["episode"])
    with collidecli.open_contacts(wheel / "turns.contacts.h5") as contacts:
        names += [contacts.to_pandas()["episode"], contacts.to_xarray()["episode"].to_series()]
        names.append(pandas.Series(contacts.events()["episode"]))
    assert [set(column) for column in names] == [{"turns"}] * 6


def test_arrays_of_one_length_are_the_columns_of_a_table(tmp_path, scene):
    joints, root, _ = drawn()
    columns = {f"q_{name}": joints[:, k].astype(np.float32) for k, name in enumerate(JOINTS)}
    columns |= {f"dq_{name}": joints[:, k] * 7.0 for k, name in enumerate(JOINTS)}
    columns |= {f"base_{axis}": root[:, k] for k, axis in enumerate("xyz")}
    turned = np.tile([0.0, 0.0, 0.6, 0.8], (FRAMES, 1))
    columns |= {f"base_q{axis}": turned[:, k] for k, axis in enumerate("xyzw")}
    np.savez(tmp_path / "m.npz", **columns, frame=np.arange(FRAMES))
    poses, motion = read(scene, tmp_path / "m.npz", fps=50.0)
    single = joints.astype(np.float32).astype(np.float64)
    true = expected(single, root, turned[:, [3, 0, 1, 2]])
    assert apart(poses, true) < EXACT
    np.testing.assert_allclose(motion.time, np.arange(FRAMES) / 50.0)
    assert any("3 columns not used: 'dq_left_hip_joint'" in w for w in motion.warnings)


@pytest.mark.parametrize(
    "more",
    [
        {"names": np.array(["a", "b"])},
        {"split_points": np.arange(2)},
        {"dof": np.zeros((FRAMES, 3))},
        {"rate": np.array(50.0)},
    ],
    ids=lambda more: next(iter(more)),
)
def test_arrays_of_other_shapes_are_no_table(tmp_path, more):
    joints, _, _ = drawn()
    columns = {f"q_{name}": joints[:, k] for k, name in enumerate(JOINTS)}
    np.savez(tmp_path / "m.npz", **columns, **more)
    if "dof" in more:
        with closing(open_recording(tmp_path / "m.npz")) as recording:
            assert recording.NAME == "arrays"
    else:
        with pytest.raises(InputError, match="not a recording of a known kind: a npz file with q_"):
            open_recording(tmp_path / "m.npz")
    np.savez(tmp_path / "m.npz", **columns)
    with closing(open_recording(tmp_path / "m.npz")) as recording:
        assert recording.NAME == "joint-table"


def test_a_table_of_arrays_without_frames(tmp_path, scene):
    np.savez(tmp_path / "m.npz", **{name: np.zeros(0) for name in JOINTS})
    with pytest.raises(InputError, match="the recording has no frames"):
        read(scene, tmp_path / "m.npz", fps=50.0)
