"""The Python API: its example, the same contacts as a run's file, scene files in a builder, refusals."""

from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

import collidecli
from collidecli import InputError, ModelBuilder, ShapeConfig
from collidecli.commands.run import RunRequest, run
from collidecli.scene.motion import RestingMotion
from collidecli.scene.options import EngineOptions
from collidecli.scene.tables import RIGID_COLUMNS

BODIES = ("a", "b", "c")
SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="a" pos="0 0 1"><freejoint/><geom name="a" type="sphere" size="0.5"/></body>
    <body name="b" pos="3 0 1"><freejoint/><geom name="b" type="box" size="0.3 0.4 0.5"/></body>
    <body name="c" pos="6 0 1"><freejoint/><geom name="c" type="capsule" size="0.2 0.5"/></body>
  </worldbody>
</mujoco>
"""
STAGE = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
def Sphere "Ball" (
    prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]
)
{
    double radius = 0.5
    double3 xformOp:translate = (0, 0, 0.4)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""


@pytest.fixture(scope="module")
def body_q() -> np.ndarray:
    """float64[5, 2, 3, 7]: bodies close to each other and to the floor; quaternions off the unit by 1e-4."""
    rng = np.random.default_rng(0)
    poses = np.concatenate([rng.uniform(0.0, 1.0, (5, 2, 3, 3)), rng.normal(size=(5, 2, 3, 4))], axis=-1)
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses[..., 3:] *= 1.0 + 1e-4
    return poses


def write_trajectory(path, poses: np.ndarray) -> None:
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array((1, 0), np.int32)
        file["time"] = np.arange(len(poses)) / 100.0
        file["body_q"] = poses
        file.create_dataset("body_name", data=list(BODIES), dtype=h5py.string_dtype())


def mjcf_model(tmp_path, world_count: int = 1):
    (tmp_path / "scene.xml").write_text(SCENE)
    builder = ModelBuilder()
    builder.add_mjcf(tmp_path / "scene.xml")
    return builder.finalize(world_count=world_count)


def test_example():
    assert doctest.testmod(collidecli).attempted > 5
    assert doctest.testmod(collidecli).failed == 0


def test_example_of_the_documents():
    text = Path("docs/reference/python.md").read_text()
    exec(text.split("```python")[1].split("```")[0], {})


def test_importing_the_package_alone_is_light():
    code = "import collidecli, sys; print(any(m in sys.modules for m in ('numpy', 'warp', 'h5py', 'pxr', 'mujoco')))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


def test_every_public_name_is_there():
    for name in collidecli.__all__:
        assert getattr(collidecli, name).__name__ == name
        assert name in dir(collidecli)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = collidecli.no_such_name


@pytest.mark.parametrize("float_type", ["float32", "float64"])
def test_same_contacts_as_the_file_of_a_run(tmp_path, body_q, float_type):
    poses = body_q.astype(float_type)
    write_trajectory(tmp_path / "motion.h5", poses)
    model = mjcf_model(tmp_path, 2)
    output = str(tmp_path / "out.contacts.h5")
    scene, motion = str(tmp_path / "scene.xml"), str(tmp_path / "motion.h5")
    run(RunRequest(scenes=[scene], output=output, trajectory=motion, worlds=2))
    contacts = collidecli.collide(model, poses)
    assert contacts.point0.dtype == float_type
    with collidecli.open_contacts(output) as written:
        assert contacts.rigid_contact_count == written.contact_count > 20
        np.testing.assert_array_equal(contacts.cell_start, written.cell_start())
        for column in RIGID_COLUMNS:
            np.testing.assert_array_equal(getattr(contacts, column.name), written.column(column.name))
            assert getattr(contacts, column.name).dtype == written.column(column.name, slice(0, 0)).dtype
        for frame, world in ((0, 0), (3, 1), (4, 1)):
            cell, block = contacts.cell(frame, world), written.cell(frame, world)
            assert cell.rigid_contact_count == block.contact_count == cell.cell_start[-1]
            np.testing.assert_array_equal(cell.distance, block.columns["distance"])


def test_no_motion_is_the_resting_pose_and_a_motion_may_be_given(tmp_path):
    builder = ModelBuilder()
    imported = builder.add_usd(tmp_path_with_stage(tmp_path))
    builder.add_ground_plane()
    model = builder.finalize()
    assert imported.motion(model) is None
    contacts = collidecli.collide(model)
    assert (contacts.frame_count, contacts.world_count, contacts.rigid_contact_count) == (1, 1, 1)
    np.testing.assert_allclose(contacts.distance, [-0.1], atol=1e-7)
    again = collidecli.collide(model, RestingMotion(model.resting_poses()))
    np.testing.assert_array_equal(again.point0, contacts.point0)


def tmp_path_with_stage(tmp_path):
    (tmp_path / "ball.usda").write_text(STAGE)
    return tmp_path / "ball.usda"


def test_options_reach_the_engine(tmp_path, body_q):
    model = mjcf_model(tmp_path, 2)

    def count(**options) -> int:
        return collidecli.collide(model, body_q, **options).rigid_contact_count

    plain = count()
    assert count(gap=0.5) > plain
    assert count(gap=0.5, gap_rule="sum") > count(gap=0.5, gap_rule="max")
    assert count(margin=0.1) > plain
    assert 0 < count(max_contacts_per_pair=1) < plain
    assert count(broad_phase="nxn", threads=1, chunk_cells=3, device="cpu", pipeline="unified") == plain
    assert count(pipeline="standard", narrow_phase="mpr") == plain


def test_a_model_without_bodies_and_a_builder_without_anything():
    empty = collidecli.collide(ModelBuilder().finalize(world_count=3))
    assert empty.cell_start.tolist() == [0, 0, 0, 0]
    assert empty.normal.shape == (0, 3)
    builder = ModelBuilder()
    for x in (0.0, 0.9):
        builder.add_shape_sphere(-1, [x, 0, 0, 0, 0, 0, 1], radius=0.5)
    assert collidecli.collide(builder.finalize()).rigid_contact_count == 0
    assert collidecli.collide(builder.finalize(static_pairs=True), np.zeros((2, 1, 0, 7))).cell_start.tolist() == [
        0,
        1,
        2,
    ]


def one_ball() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(gap=0.0))
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5)
    return builder


def pose(frames: int = 2, worlds: int = 1, bodies: int = 1) -> np.ndarray:
    return np.broadcast_to([0, 0, 0.4, 0, 0, 0, 1.0], (frames, worlds, bodies, 7)).copy()


@pytest.mark.parametrize(
    ("body_q", "words"),
    [
        (pose()[0], r"body_q: has shape \(1, 1, 7\)"),
        (pose(bodies=2), "frames, worlds, 1, 7"),
        (pose()[..., :6], "has shape"),
        (pose().astype(int), "is of type int64"),
        (pose(worlds=2), "the motion has 2 worlds, the scene 3"),
        (pose(worlds=0), "the motion has 0 worlds"),
        (pose(frames=0), "no frames"),
        (pose() * np.nan, "frame 0, world 0, body 'ball': the pose is not finite"),
    ],
)
def test_poses_that_do_not_fit_are_refused(body_q, words):
    with pytest.raises(InputError, match=words):
        collidecli.collide(one_ball().finalize(world_count=3), body_q)


def test_a_bad_pose_is_named():
    poses = pose(frames=9)
    poses[7, 0, 0, 3:] = 0.0
    with pytest.raises(InputError, match="body_q, frame 7, world 0, body 'ball': the quaternion has norm 0"):
        collidecli.collide(one_ball().finalize(), poses, chunk_cells=2)


@pytest.mark.parametrize(
    "options",
    [
        {"broad_phase": "octree"},
        {"narrow_phase": "sat"},
        {"pipeline": "classic"},
        {"gap_rule": "mean"},
        {"gap": -0.1},
        {"margin": float("nan")},
        {"max_contacts_per_pair": -1},
        {"threads": 1.5},
        {"chunk_cells": -2},
        {"device": "abacus"},
        {"pipeline": "standard", "broad_phase": "sap"},
        {"hydro": "some"},
        {"hydro_stiffness": 0.0},
        {"hydro_resolution": 0},
        {"hydro_fallback": "box"},
    ],
)
def test_options_that_are_none_are_refused_by_name(options):
    with pytest.raises(InputError, match=str(next(iter(options)))):
        collidecli.collide(one_ball().finalize(), **options)


@pytest.mark.parametrize("place", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_cell_that_is_not_there_is_refused(place):
    with pytest.raises(InputError, match=f"frame {place[0]}, world {place[1]} does not exist"):
        collidecli.collide(one_ball().finalize()).cell(*place)


def test_open_contacts_refuses_what_is_no_contact_set(tmp_path):
    with pytest.raises(InputError, match=r"nothing\.h5"):
        collidecli.open_contacts(tmp_path / "nothing.h5")


def test_options_of_a_run_are_checked_alike():
    with pytest.raises(InputError, match="chunk_cells is -1"):
        replace(EngineOptions(), chunk_cells=-1).checked()


def ball_on_floor() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(xform=(0, 0, 0.4, 0, 0, 0, 1)), radius=0.5)
    return builder


def test_a_builder_is_no_model_and_the_message_says_what_to_do():
    with pytest.raises(InputError, match=r"model is a ModelBuilder\n.*finalize"):
        collidecli.collide(ball_on_floor(), device="cpu")  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("gap", ["0.1", (0.1, 0.2), np.zeros(2)])
def test_a_gap_that_is_no_number(gap):
    with pytest.raises(InputError, match="gap must be at least zero"):
        collidecli.collide(ball_on_floor().finalize(), device="cpu", gap=gap)


def test_one_optional_column_may_be_named_without_a_list():
    contacts = collidecli.collide(ball_on_floor().finalize(), device="cpu", columns="friction")
    assert list(contacts.columns) == ["friction"]
    assert repr(contacts) == "<Contacts contacts=1 frames=1 worlds=1 columns=friction>"


def test_a_file_of_another_kind_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"add_usd reads it"):
        ModelBuilder().add_mjcf(tmp_path / "a.usda")
    with pytest.raises(InputError, match=r"add_mjcf reads it"):
        ModelBuilder().add_usd(tmp_path / "a.XML")


def test_zeros_have_no_sign():
    """Of a ball and the floor the normal is turned round, from the floor's: its zeros would be -0."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    builder.add_ground_plane()
    pose = np.zeros((1, 1, 1, 7))
    pose[..., 2], pose[..., 6] = 0.5, 1.0
    found = collidecli.collide(builder.finalize(), pose)
    assert found.normal.tolist() == [[0.0, 0.0, -1.0]]
    for column in RIGID_COLUMNS:
        values = getattr(found, column.name)
        assert not np.any(np.signbit(values.astype(float)) & (values == 0)), column.name


SAMPLE = Path(__file__).parents[3] / "samples" / "02_humanoid"


def test_run_gives_the_contacts_of_the_command(tmp_path):
    scene, motion, output = SAMPLE / "humanoid.xml", SAMPLE / "motion.h5", tmp_path / "out.h5"
    options = {"frames": "0:40", "gap": 0.02, "device": "cpu", "columns": "friction"}
    assert collidecli.run(scene, motion, output, **options) == str(output)
    held = collidecli.run(scene, motion, **options)
    assert isinstance(held, collidecli.Contacts)
    assert held.rigid_contact_count > 0
    assert repr(collidecli.run(scene, motion, **options | {"frames": slice(0, 40)})) == repr(held)
    assert repr(collidecli.run(scene, motion, **options | {"frames": 39})).endswith(
        "frames=1 worlds=1 columns=friction>"
    )
    with collidecli.open_contacts(output) as written:
        assert held.shape_path == held.cell(39).shape_path == written.shapes.path
        assert (held.frame_count, held.world_count) == (written.frame_count, written.world_count) == (40, 1)
        for name in (*(column.name for column in RIGID_COLUMNS), "friction"):
            values = held.columns[name] if name == "friction" else getattr(held, name)
            np.testing.assert_array_equal(values, written.column(name))
        assert written.config["gap"] == 0.02
    with pytest.raises(collidecli.OutputError, match="exists already"):
        collidecli.run(scene, motion, output, **options)
    assert collidecli.run(scene, motion, output, force=True, **options) == str(output)
    with pytest.raises(InputError, match="'gapp' is no option of a run"):
        collidecli.run(scene, gapp=1.0)
    with pytest.raises(InputError, match="neither a scene nor a recording"):
        collidecli.run(None)


def test_a_recording_and_its_poses():
    recording = collidecli.open_recording(SAMPLE / "motion.h5")
    assert (recording.kind, recording.frames, recording.worlds) == ("trajectory", 500, 1)
    assert recording.end > recording.start == 0.0
    model, motion = recording.with_scene(SAMPLE / "humanoid.xml", frames="10:30")
    try:
        assert motion.read(range(0, 20)).shape == (20, 1, len(model.bodies.path), 7)
        contacts = collidecli.collide(model, motion, device="cpu")
    finally:
        motion.close()
    same = collidecli.run(SAMPLE / "humanoid.xml", SAMPLE / "motion.h5", frames="10:30", device="cpu")
    np.testing.assert_array_equal(contacts.distance, same.distance)
    with pytest.raises(InputError):
        collidecli.open_recording(SAMPLE / "humanoid.xml")


def test_the_version_and_the_package_as_a_program():
    done = subprocess.run([sys.executable, "-m", "collidecli", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"collide {collidecli.__version__}\n"


def test_an_asset_map_is_a_mapping_or_texts():
    from collidecli.commands.python_api import asset_texts

    assert asset_texts({"package://robot": "/meshes", "a": "b"}) == asset_texts(["package://robot=/meshes", "a=b"])


@pytest.mark.parametrize("form", [dict, lambda entries: [f"{old}={new}" for old, new in entries]])
def test_every_method_for_files_takes_an_asset_map(tmp_path, form):
    (tmp_path / "parts").mkdir()
    ball = '(\ndefaultPrim = "p"\n)\ndef Sphere "p" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}\n'
    (tmp_path / "parts" / "ball.usda").write_text(f"#usda 1.0\n{ball}")
    (tmp_path / "s.usda").write_text('#usda 1.0\ndef "p" (references = @/gone/ball.usda@) {}\n')
    corners = ["v 0 0 0", "v 1 0 0", "v 0 1 0", "v 0 0 1", "f 1 3 2", "f 1 2 4", "f 1 4 3", "f 2 3 4"]
    (tmp_path / "parts" / "wedge.obj").write_text("\n".join(corners))
    mesh = '<mesh name="m" file="/gone/wedge.obj"/>'
    geom = '<geom type="mesh" mesh="m"/>'
    (tmp_path / "s.xml").write_text(f"<mujoco><asset>{mesh}</asset><worldbody>{geom}</worldbody></mujoco>")
    link = '<collision><geometry><mesh filename="/gone/wedge.obj"/></geometry></collision>'
    (tmp_path / "s.urdf").write_text(f'<robot name="r"><link name="l">{link}</link></robot>')
    given = form([("/gone", str(tmp_path / "parts"))])
    for name, add in (("s.usda", "add_usd"), ("s.xml", "add_mjcf"), ("s.urdf", "add_mjcf")):
        builder = collidecli.ModelBuilder()
        getattr(builder, add)(tmp_path / name, asset_map=given)
        assert len(builder.finalize().shapes.path) == 1, name


def test_hydroelastic_surfaces_in_memory():
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(is_hydroelastic=True, k_hydro=float("inf")))
    cfg = ShapeConfig(is_hydroelastic=True, k_hydro=1e6)
    builder.add_shape_box(builder.add_body((0.0, 0.0, 0.45, 0.0, 0.0, 0.0, 1.0)), cfg=cfg)
    contacts = collidecli.collide(builder.finalize(), hydro_surface=True)
    patches = contacts.groups["hydro_patches"]
    # p is 1e6 N/m^3 times the depth of 0.05 m, and falls to 0 at the rim.
    np.testing.assert_allclose(patches.columns["force"], [[0.0, 0.0, 5e4 * (1 - 0.1 + 0.01 / 3)]], atol=1e-6)
    assert contacts.cell(0).groups["hydro_faces"].row_count == contacts.groups["hydro_faces"].row_count == 5


def test_an_open_mesh_that_cannot_be_hydroelastic_is_warned_of():
    builder = ModelBuilder()
    cfg = ShapeConfig(is_hydroelastic=True)
    builder.add_ground_plane(cfg=cfg)
    body = builder.add_body()
    builder.add_shape_mesh(body, np.eye(3), np.array([[0, 1, 2]]), cfg=cfg, key="sheet")
    with pytest.warns(RuntimeWarning, match="'sheet' is an open mesh"):
        collidecli.collide(builder.finalize())
    with pytest.raises(InputError, match="sheet"):
        collidecli.collide(builder.finalize(), hydro_fallback="refuse")
