"""Contacts and distances from Python: arrays, totals, timing, memory."""

import doctest
import gc
import inspect
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli import InputError, ModelBuilder, Shape, ShapeConfig
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.motion import RestingMotion
from collidecli.scene.options import EngineOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.verbs.run.run import RunRequest, run
from tests.cli.conftest import write_poses
from tests.support.contact_sets import Touch, touching_set
from tests.support.engine_runs import random_cloud
from tests.support.meshes import blob, grid, point_distances, torus, windings
from tests.support.oracle import rotation_of
from tests.support.supports import surface_residual

SCENE = """<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="a" pos="0 0 1"><freejoint/><geom name="a" type="sphere" size="0.5"/></body>
    <body name="b" pos="3 0 1"><freejoint/><geom name="b" type="box" size="0.3 0.4 0.5"/></body>
    <body name="c" pos="6 0 1"><freejoint/><geom name="c" type="capsule" size="0.2 0.5"/></body>
  </worldbody>
</mujoco>
"""


def test_examples_of_the_package():
    tried = doctest.testmod(collidecli)
    assert (tried.attempted > 5, tried.failed) == (True, 0)


def test_public_names_are_those_of_their_objects():
    for name in collidecli.__all__:
        assert getattr(collidecli, name).__name__ == name
        assert name in dir(collidecli)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = collidecli.no_such_name


def test_the_package_is_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "collidecli", "--version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"collide {collidecli.__version__}\n"


@pytest.mark.parametrize("float_type", ["float32", "float64"])
def test_same_contacts_as_the_file_of_a_run(tmp_path, float_type):
    """Bodies are close to each other and to the floor; quaternions are off the unit by 1e-4."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    poses = np.concatenate(
        [rng.uniform(0.0, 1.0, (5, 2, 3, 3)), rng.normal(size=(5, 2, 3, 4))], axis=-1
    )
    poses[..., 3:] *= (1.0 + 1e-4) / np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses = poses.astype(float_type)
    write_poses(tmp_path / "motion.h5", poses, "abc")
    (tmp_path / "scene.xml").write_text(SCENE)
    builder.add_mjcf(tmp_path / "scene.xml")
    model = builder.finalize(world_count=2)
    output, scene, motion = (
        str(tmp_path / name) for name in ("out.contacts.h5", "scene.xml", "motion.h5")
    )
    run(RunRequest(scenes=[scene], output=output, trajectory=motion, worlds=2))
    contacts = collidecli.collide(model, poses)
    assert contacts.point0.dtype == float_type
    with collidecli.open_contacts(output) as written:
        assert contacts.rigid_contact_count == written.contact_count > 20
        np.testing.assert_array_equal(contacts.cell_start, written.cell_start())
        for column in RIGID_COLUMNS:
            np.testing.assert_array_equal(
                getattr(contacts, column.name), written.column(column.name)
            )
            assert (
                getattr(contacts, column.name).dtype
                == written.column(column.name, slice(0, 0)).dtype
            )
        for frame, world in ((0, 0), (3, 1), (4, 1)):
            cell = contacts.cell(frame, world)
            block = written.cell(frame, world)
            assert cell.rigid_contact_count == block.contact_count == cell.cell_start[-1]
            np.testing.assert_array_equal(cell.distance, block.columns["distance"])


def test_no_motion_is_the_resting_pose():
    model = ball_on_floor().finalize()
    contacts = collidecli.collide(model)
    assert (contacts.frame_count, contacts.world_count, contacts.rigid_contact_count) == (1, 1, 1)
    np.testing.assert_allclose(contacts.distance, [-0.1], atol=1e-7)
    again = collidecli.collide(model, RestingMotion(model.resting_poses()))
    np.testing.assert_array_equal(again.point0, contacts.point0)


def test_a_builder_without_anything_has_no_contacts():
    empty = collidecli.collide(ModelBuilder().finalize(world_count=3))
    assert empty.cell_start.tolist() == [0, 0, 0, 0]
    assert empty.normal.shape == (0, 3)


def test_a_model_may_have_no_bodies():
    builder = ModelBuilder()
    for x in (0.0, 0.9):
        builder.add_shape_sphere(-1, [x, 0, 0, 0, 0, 0, 1], radius=0.5)
    assert collidecli.collide(builder.finalize()).rigid_contact_count == 0
    touching = collidecli.collide(builder.finalize(static_pairs=True), np.zeros((2, 1, 0, 7)))
    assert touching.cell_start.tolist() == [0, 1, 2]


def ball_on_floor() -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(
        builder.add_body(xform=(0, 0, 0.4, 0, 0, 0, 1), key="ball"), radius=0.5
    )
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
        collidecli.collide(ball_on_floor().finalize(world_count=3), body_q, chunk_cells=2)


WRONG_OPTIONS = {
    **{
        "broad_phase": "octree",
        "narrow_phase": "sat",
        "pipeline": "classic",
        "gap_rule": "mean",
        "gap": -0.1,
    },
    **{
        "margin": float("nan"),
        "max_contacts_per_pair": -1,
        "threads": 1.5,
        "chunk_cells": -2,
        "device": "abacus",
    },
    **{"hydro": "some", "hydro_stiffness": 0.0, "hydro_resolution": 0, "hydro_fallback": "box"},
}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(({name: value}, name) for name, value in WRONG_OPTIONS.items()),
        ({"pipeline": "standard", "broad_phase": "sap"}, "pipeline"),
        ({"gaps": 0.1}, r"(?s)'gaps'.*did you mean gap"),
        ({"gap": "1 mile"}, "'1 mile' is not a length"),
        ({"gap": "-1mm"}, "gap must be at least zero"),
        ({"gap": (0.1, 0.2)}, r"gap is \(0.1, 0.2\)"),
        ({"gap": np.zeros(2)}, r"gap is an array float64\[2\]"),
    ],
    ids=str,
)
def test_options_that_are_none_are_refused_by_name(options, words):
    with pytest.raises(InputError, match=words):
        collidecli.collide(ball_on_floor().finalize(), **options)


def test_options_of_a_run_are_parameters_by_name():
    parameters = inspect.signature(collidecli.collide).parameters
    assert parameters["gap"].default is None
    assert parameters["cache_limit"].default == EngineOptions().cache_limit
    assert parameters.keys() & {"static_pairs", "buffer_fraction", "options"} == set()
    with pytest.raises(InputError, match="chunk_cells is -1"):
        replace(EngineOptions(), chunk_cells=-1).checked()


@pytest.mark.parametrize("place", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_cell_that_is_not_there_is_refused(place):
    with pytest.raises(InputError, match=f"frame {place[0]}, world {place[1]} does not exist"):
        collidecli.collide(ball_on_floor().finalize()).cell(*place)


def test_one_optional_column_may_be_named_without_a_list():
    contacts = collidecli.collide(ball_on_floor().finalize(), device="cpu", columns="friction")
    assert [name for name in contacts.columns if not hasattr(contacts, name)] == ["friction"]
    assert repr(contacts) == "<Contacts contacts=1 frames=1 worlds=1 columns=friction>"


def test_arguments_of_another_kind_are_refused(tmp_path):
    for words, call in (
        (r"nothing\.h5", lambda: collidecli.open_contacts(tmp_path / "nothing.h5")),
        ("add_usd reads it", lambda: ModelBuilder().add_mjcf(tmp_path / "a.usda")),
        ("add_mjcf reads it", lambda: ModelBuilder().add_usd(tmp_path / "a.XML")),
        (
            r"model is a ModelBuilder\n.*finalize",
            lambda: collidecli.collide(ball_on_floor(), device="cpu"),
        ),
    ):
        with pytest.raises(InputError, match=words):
            call()


def test_zeros_have_no_sign():
    """Of a ball and the floor the normal is turned round, from the floor's: its zeros would be
    -0."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body((0, 0, 0.5, 0, 0, 0, 1)), radius=0.5)
    builder.add_ground_plane()
    found = collidecli.collide(builder.finalize())
    assert found.normal.tolist() == [[0.0, 0.0, -1.0]]
    for column in RIGID_COLUMNS:
        values = getattr(found, column.name)
        assert not np.any(np.signbit(values.astype(float)) & (values == 0)), column.name


SAMPLE = Path(__file__).parents[3] / "samples" / "02_humanoid"


def test_run_gives_the_contacts_of_the_command_with_their_tables(tmp_path):
    pandas = pytest.importorskip("pandas")
    scene = SAMPLE / "humanoid.xml"
    motion = SAMPLE / "motion.h5"
    output = tmp_path / "out.h5"
    options = {"frames": "0:40:2", "gap": "2cm", "device": "cpu", "columns": "friction"}
    assert collidecli.run(scene, motion, output, **options) == str(output)
    held = collidecli.run(scene, motion, **options)
    assert repr(collidecli.run(scene, motion, **options | {"frames": slice(0, 40, 2)})) == repr(
        held
    )
    last = collidecli.run(scene, motion, **options | {"frames": 39, "gap": 0.02})
    assert repr(last).endswith("frames=1 worlds=1 columns=friction>")
    with collidecli.open_contacts(output) as written:
        assert held.shape_path == held.cell(19).shape_path == written.shapes.path
        assert (
            (held.frame_count, held.world_count)
            == (written.frame_count, written.world_count)
            == (20, 1)
        )
        np.testing.assert_array_equal(held.columns["friction"], written.column("friction"))
        assert (written.config["gap"], held.time.tolist()) == (0.02, written.time.tolist())
        assert held.cell(3).time.tolist() == written.time[3:4].tolist()
        assert len(held) == len(held.to_pandas()) == written.contact_count > 0
        pandas.testing.assert_frame_equal(
            held.to_pandas(include="foot*"), written.to_pandas(include="foot*")
        )
        np.testing.assert_equal(dict(held.events(by="bodies")), dict(written.events(by="bodies")))
        assert f'<td style="text-align: left">{len(held)}</td>' in held._repr_html_()
        labels = [collidecli.label(given).touch for given in (held, written, output)]
        audits = [collidecli.audit(given).pairs for given in (held, written, output)]
    assert all(np.array_equal(touch, labels[0]) for touch in labels)
    assert all(pairs == audits[0] for pairs in audits)
    with pytest.raises(InputError, match="contacts of one cell"):
        held.cell(3).events()
    folder = Path(held.contact_set.path).parent
    del held
    gc.collect()
    assert not folder.exists()
    with pytest.raises(collidecli.OutputError, match="exists already"):
        collidecli.run(scene, motion, output, **options)
    assert collidecli.run(scene, motion, output, force=True, **options) == str(output)
    for given, words in (
        ((scene,), "there is no argument 'gapp'"),
        ((None,), "neither a scene nor a recording"),
    ):
        with pytest.raises(InputError, match=words):
            collidecli.run(*given, **{"gapp": 1.0} if given[0] else {})


def test_a_recording_gives_its_poses():
    recording = collidecli.open_recording(SAMPLE / "motion.h5")
    assert (recording.kind, recording.frames, recording.worlds) == ("trajectory", 500, 1)
    assert recording.end > recording.start == 0.0
    model, motion = recording.with_scene(SAMPLE / "humanoid.xml", frames="10:30")
    with closing(motion):
        assert motion.read(range(0, 20)).shape == (20, 1, len(model.bodies.path), 7)
        contacts = collidecli.collide(model, motion, device="cpu")
    same = collidecli.run(
        SAMPLE / "humanoid.xml", SAMPLE / "motion.h5", frames="10:30", device="cpu"
    )
    np.testing.assert_array_equal(contacts.distance, same.distance)
    with pytest.raises(InputError):
        collidecli.open_recording(SAMPLE / "humanoid.xml")


@pytest.mark.parametrize("form", [dict, lambda entries: [f"{old}={new}" for old, new in entries]])
def test_every_method_for_files_takes_an_asset_map(tmp_path, form):
    ball = (
        '(\ndefaultPrim = "p"\n)\ndef Sphere "p" (prepend apiSchemas = ["PhysicsCollisionAPI"])'
        " {}\n"
    )
    corners = [
        "v 0 0 0",
        "v 1 0 0",
        "v 0 1 0",
        "v 0 0 1",
        "f 1 3 2",
        "f 1 2 4",
        "f 1 4 3",
        "f 2 3 4",
    ]
    mesh = '<mesh name="m" file="/gone/wedge.obj"/>'
    geom = '<geom type="mesh" mesh="m"/>'
    link = '<collision><geometry><mesh filename="/gone/wedge.obj"/></geometry></collision>'
    (tmp_path / "parts").mkdir()
    for name, text in {
        "parts/ball.usda": f"#usda 1.0\n{ball}",
        "s.usda": '#usda 1.0\ndef "p" (references = @/gone/ball.usda@) {}\n',
        "parts/wedge.obj": "\n".join(corners),
        "s.xml": f"<mujoco><asset>{mesh}</asset><worldbody>{geom}</worldbody></mujoco>",
        "s.urdf": f'<robot name="r"><link name="l">{link}</link></robot>',
    }.items():
        (tmp_path / name).write_text(text)
    given = form([("/gone", str(tmp_path / "parts"))])
    for name, add in (("s.usda", "add_usd"), ("s.xml", "add_mjcf"), ("s.urdf", "add_mjcf")):
        builder = collidecli.ModelBuilder()
        imported = getattr(builder, add)(tmp_path / name, asset_map=given)
        model = builder.finalize()
        assert (len(model.shapes.path), imported.motion(model)) == (1, None), name


def test_hydroelastic_surfaces_in_memory():
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(is_hydroelastic=True, k_hydro=float("inf")))
    cfg = ShapeConfig(is_hydroelastic=True, k_hydro=1e6)
    builder.add_shape_box(builder.add_body((0.0, 0.0, 0.45, 0.0, 0.0, 0.0, 1.0)), cfg=cfg)
    contacts = collidecli.collide(builder.finalize(), hydro_surface=True)
    patches = contacts.groups["hydro_patches"]
    # p is 1e6 N/m^3 times the depth of 0.05 m, and falls to 0 at the rim.
    np.testing.assert_allclose(
        patches.columns["force"], [[0.0, 0.0, 5e4 * (1 - 0.1 + 0.01 / 3)]], atol=1e-6
    )
    assert (
        contacts.cell(0).groups["hydro_faces"].row_count
        == contacts.groups["hydro_faces"].row_count
        == 5
    )


def test_an_open_mesh_that_cannot_be_hydroelastic_is_warned_of():
    builder = ModelBuilder()
    cfg = ShapeConfig(is_hydroelastic=True)
    builder.add_ground_plane(cfg=cfg)
    builder.add_shape_mesh(
        builder.add_body(), np.eye(3), np.array([[0, 1, 2]]), cfg=cfg, key="sheet"
    )
    with pytest.warns(RuntimeWarning, match="'sheet' is an open mesh"):
        collidecli.collide(builder.finalize())
    with pytest.raises(InputError, match="sheet"):
        collidecli.collide(builder.finalize(), hydro_fallback="refuse")


FAR = (0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0)
TURNED = (
    0.3,
    -0.2,
    0.1,
    *(np.array([0.1, 0.7, -0.2, 0.6]) / np.linalg.norm([0.1, 0.7, -0.2, 0.6])).tolist(),
)


def points(seed: int, spread: float = 2.0, count: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-spread, spread, (count, 3))


def of_solid(kind: str, sizes, given: np.ndarray) -> np.ndarray:
    """Signed distances of points from a shape of these sizes."""
    return surface_residual(
        ShapeType[kind.upper()], np.tile([*sizes, 0.0, 0.0][:3], (len(given), 1)), given
    )


FORMS = {
    "plane": {},
    "sphere": {"radius": 0.7},
    "box": {"hx": 0.5, "hy": 0.9, "hz": 0.3},
    "capsule": {"radius": 0.3, "half_height": 0.8},
    "cylinder": {"radius": 0.4, "half_height": 0.7},
    "cone": {"radius": 0.6, "half_height": 0.5},
}


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", FORMS)
def test_signed_distances_of_primitives_have_their_closed_form(kind, size):
    given = points(1)
    pose = np.array(TURNED)
    sizes = FORMS[kind]
    placed = size * (given @ rotation_of(pose).T + pose[:3])
    shape = Shape(
        kind,
        xform=[*size * pose[:3], *pose[3:]],
        **{name: size * value for name, value in sizes.items()},
    )
    found = collidecli.signed_distance(placed, shape)
    np.testing.assert_allclose(
        found, size * of_solid(kind, sizes.values(), given), atol=1e-12 * size
    )
    assert found.min() < 0.0 < found.max()


@pytest.mark.parametrize("kind", ["ellipsoid", "convex_hull"])
def test_signed_distances_of_other_convex_shapes_are_those_of_a_small_sphere(kind):
    sizes = {"ellipsoid": {"rx": 0.3, "ry": 0.6, "rz": 1.0}}
    shape = Shape(
        kind, **sizes.get(kind, {"vertices": 4.0 * random_cloud(np.random.default_rng(2))})
    )
    given = points(3, 1.2, 100)
    poses = np.column_stack([given, np.tile([0.0, 0.0, 0.0, 1.0], (100, 1))])
    truth = collidecli.distance(shape, Shape("sphere", radius=1e-3), pose_b=poses).distance + 1e-3
    found = collidecli.signed_distance(given, shape)
    np.testing.assert_allclose(found, truth, atol=1e-8)
    assert (found < 0.0).any()


def test_signed_distances_of_a_mesh_are_those_of_its_triangles():
    vertices, faces = torus()
    given = points(4, 1.5)
    shape = Shape("mesh", vertices=vertices, faces=faces)
    corners = vertices[faces]
    sign = 1.0 - 2.0 * (windings(corners, given) > 0.5)
    truth = sign * np.array([point_distances(corners, point).min() for point in given])
    np.testing.assert_allclose(collidecli.signed_distance(given, shape), truth, atol=1e-12)
    sheet = Shape("mesh", vertices=grid(4)[0], faces=grid(4)[1])
    assert collidecli.signed_distance([0.1, 0.1, -0.5], sheet) == pytest.approx(0.5, abs=1e-14)
    assert collidecli.signed_distance(np.zeros((0, 3)), shape).shape == (0,)


def test_signed_distances_of_a_heightfield_are_those_of_its_solid():
    given = points(4, 1.5)
    field = Shape("heightfield", heights=np.zeros((3, 4)), hx=1.0, hy=0.8, base=0.4)
    truth = of_solid("box", (1.0, 0.8, 0.2), given + np.array([0.0, 0.0, 0.2]))
    np.testing.assert_allclose(collidecli.signed_distance(given, field), truth, atol=1e-12)


def test_distance_of_two_shapes():
    box = Shape("box", hx=1.0, hy=1.0, hz=1.0)
    ball = Shape("sphere", xform=FAR, radius=0.5)
    found = collidecli.distance(box, ball)
    assert found.distance == pytest.approx(1.5, abs=1e-14)
    np.testing.assert_allclose(
        [found.normal, found.point0, found.point1], np.outer([1, 1, 2.5], [0, 0, 1]), atol=1e-12
    )


def test_distance_of_two_shapes_at_many_poses():
    box = Shape("box", hx=1.0, hy=1.0, hz=1.0)
    ball = Shape("sphere", xform=FAR, radius=0.5)
    moved = np.array([[0, 0, z, 0, 0, 0, 1.0] for z in (-1.4, -2.0, 7.0)])
    many = collidecli.distance(ball, box, pose_a=moved)
    np.testing.assert_allclose(many.distance, [0.1, -0.5, 8.5], atol=1e-12)
    np.testing.assert_allclose(many.normal, np.tile([0, 0, -1], (3, 1)), atol=1e-12)
    assert (many.error < 1e-12).tolist() == [True, False, True]


def test_clearance_of_a_model_in_motion():
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(margin=0.01))
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5, key="ball")
    builder.add_shape_mesh(
        builder.add_body(key="blob"), *blob(np.random.default_rng(2), 6, 8), key="blob"
    )
    poses = np.zeros((3, 2, 2, 7))
    poses[..., 6] = 1.0
    poses[:, :, 0, 2] = [[1.0, 1.1], [0.7, 0.7], [0.4, 5.0]]
    poses[:, :, 1, :3] = [8.0, 0.0, 3.0]
    model = builder.finalize(world_count=2)
    found = collidecli.clearance(model, poses)
    assert found.items == (("ground_plane", "ball"), ("ground_plane", "blob"), ("ball", "blob"))
    np.testing.assert_allclose(found.distance[..., 0], poses[:, :, 0, 2] - 0.51, atol=1e-15)
    np.testing.assert_allclose(found.point1[..., 0, 2], poses[:, :, 0, 2] - 0.5, atol=1e-15)
    by_body = collidecli.clearance(model, poses, by="body")
    np.testing.assert_array_equal(by_body.distance[..., 0], found.distance[..., [0, 2]].min(axis=2))
    assert by_body.items == ("ball", "blob", "ground_plane")
    assert collidecli.clearance(model, poses, top=1).items == (("ground_plane", "ball"),)
    one = collidecli.clearance(model, poses, between=("ball", "*"), margin=0.0)
    np.testing.assert_allclose(
        one.distance[2, :, 0], [-0.1, found.distance[2, 1, [0, 2]].min()], atol=0.011
    )
    assert (one.shape0[0, 0, 0], one.shape1[0, 0, 0]) == (0, 1)
    assert repr(found) == "<Clearances frames=3 worlds=2 items=3>"
    rows = found.to_pandas()
    assert len(rows) == len(found) == found.distance.size
    np.testing.assert_array_equal(rows.distance, found.distance.ravel())
    assert rows.loc[3, ["frame", "world", "shape0", "shape1"]].tolist() == [
        0,
        1,
        "ground_plane",
        "ball",
    ]
    assert (
        rows.loc[3, ["point1_x", "point1_y", "point1_z"]].tolist() == found.point1[0, 1, 0].tolist()
    )
    touches = found.events("20cm").to_pandas()
    of_ball = touches[touches.shape1 == "ball"][
        ["world", "begin_frame", "last_frame", "begin_time", "touching_frames", "end_known"]
    ]
    assert of_ball[:2].to_numpy().tolist() == [[0, 1, 2, 1.0, 2, False], [1, 1, 1, 1.0, 1, True]]
    assert by_body.events().to_pandas().body.tolist() == ["ball", "ground_plane"]
    cells = (
        '<th style="text-align: left">least distance</th><td style="text-align: left">-0.11 m</td>'
    )
    assert cells in found._repr_html_()


def test_environments_of_one_template_move_with_their_static_shapes():
    builder = ModelBuilder()
    world = ModelBuilder()
    world.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.1, key="table")
    world.add_shape_sphere(world.add_body((0, 0, 0.5, 0, 0, 0, 1)), radius=0.1, key="ball")
    builder.add_world(world, count=2)
    origins = np.array([[0.0, 0.0, 0.0, *TURNED[3:]], [5.0, 0.0, 0.0, *TURNED[3:]]])
    found = collidecli.clearance(replace(builder.finalize(), world_pose=origins))
    np.testing.assert_allclose(found.distance, np.full((1, 2, 1), 0.3), atol=1e-12)
    assert abs(found.point0[0, 1, 0, 0] - found.point0[0, 0, 0, 0] - 5.0) < 1e-12


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda box: Shape("ball"), "kind is 'ball'"),
        (lambda box: Shape("spher"), r"kind is 'spher'\n *did you mean sphere\?"),
        (lambda box: Shape("box", size=1.0), "its arguments are: xform, hx, hy, hz, cfg, key"),
        (lambda box: Shape("box", hx=-1.0), "size"),
        (lambda box: Shape("box", xform=(0, 0)), "pose"),
        (lambda box: collidecli.signed_distance([1, 2], box), "shape"),
        (lambda box: collidecli.signed_distance([1, 2, np.nan], box), "finite"),
        (lambda box: collidecli.distance(box, 3), r"(?s)distance: b is 3.*give a Shape"),
        (lambda box: collidecli.distance(box, box, pose_a=np.zeros((2, 7))), "quaternion"),
        (lambda box: collidecli.distance(box, box, pose_a=np.zeros((2, 6))), "pose_a has shape"),
        (
            lambda box: collidecli.distance(box, box, pose_a=[FAR] * 2, pose_b=[FAR] * 3),
            "2 and 3 poses",
        ),
        (
            lambda box: collidecli.distance(Shape("plane"), Shape("plane")),
            "^'a' and 'b': two planes",
        ),
        (lambda box: collidecli.sweep(box.model), r"^sweep: .*\n  give a recording, or select"),
        (
            lambda box: collidecli.sweep(box.model, tolerance=-1.0),
            r"^sweep: tolerance is -1\n.*above 0",
        ),
        (
            lambda box: collidecli.sweep(box.model, tolerance=0),
            r"^sweep: tolerance is 0\n.*above 0",
        ),
        (lambda box: collidecli.merge([], "none.h5"), "^merge: there is no contact set\n"),
        (
            lambda box: collidecli.merge(["a.h5"], "none.h5"),
            "^merge: there is only one contact set",
        ),
        (
            lambda box: collidecli.label_sensors(box.model, sensors="nope.toml"),
            r"^nope.toml: cannot be read.*\n  see docs/reference/sensors.md",
        ),
        (lambda box: collidecli.clearance(3), "scene is 3"),
        (lambda box: collidecli.clearance(ModelBuilder().finalize()), "no pair"),
        (lambda box: collidecli.clearance(box.model, by="pairs"), "by is 'pairs'"),
        (lambda box: collidecli.clearance(box.model, margin=float("nan")), "margin"),
    ],
)
def test_invalid_arguments(call, words):
    with pytest.raises(collidecli.InputError, match=words):
        call(Shape("box", hx=1.0, hy=1.0, hz=1.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"between": "ball"}, r"^between: 1 pattern is given\n  give two, as"),
        ({"between": ("a", "b", "c")}, r"^between: 3 patterns are given\n"),
        ({"between": "a,b", "sensors": "a"}, "^between: is in place of sensors and partners"),
    ],
)
def test_patterns_between_are_two(tmp_path, arguments, words):
    path = touching_set([Touch(0, 0, 0, 1, -0.01)], 1, 1).write(tmp_path / "a.h5")
    with pytest.raises(collidecli.InputError, match=words):
        collidecli.label(path, **arguments)


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda path: collidecli.open_contacts(path).events(by="body"), "did you mean bodies?"),
        (lambda path: collidecli.label(path, by="body"), "did you mean bodies?"),
        (lambda path: collidecli.label(path, by="everything"), "give one of: shapes, bodies"),
        (
            lambda path: collidecli.clearance(Shape("sphere").model, by="bodies"),
            "did you mean body?",
        ),
    ],
)
def test_a_similar_choice_of_by_is_named(tmp_path, call, remedy):
    path = touching_set([Touch(0, 0, 0, 1, -0.01)], 1, 1).write(tmp_path / "a.h5")
    with pytest.raises(collidecli.InputError) as error:
        call(path)
    assert error.value.fix == remedy


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("sphere", {"radius": 1.0}),
        ("capsule", {"radius": 1.0, "half_height": 0.5}),
        ("cylinder", {"radius": 1.0, "half_height": 0.5}),
        ("cone", {"radius": 1.0, "half_height": 0.5}),
        ("box", {"hx": 0.5, "hy": 0.5, "hz": 0.5}),
        ("ellipsoid", {"rx": 1.0, "ry": 0.75, "rz": 0.5}),
        ("heightfield", {"hx": 1.0, "hy": 1.0, "base": 1.0}),
    ],
)
def test_documented_sizes_of_a_shape_are_the_defaults(kind, sizes):
    """Those of `help(Shape.__init__)` and of the reference; a size without words there fails."""
    text = " ".join((Shape.__init__.__doc__ or "").split())
    assert "a radius of 1; half heights, and hx, hy and hz of a box, of 0.5" in text
    assert "rx=1, ry=0.75, rz=0.5; hx, hy and base of a heightfield of 1" in text
    of_builder = signature(getattr(ModelBuilder, f"add_shape_{kind}")).parameters
    found = {name: one.default for name, one in of_builder.items()}
    assert {name: value for name, value in found.items() if isinstance(value, float)} == sizes
