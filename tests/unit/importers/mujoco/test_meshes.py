"""Mesh geoms of MJCF: where their vertices are, which hull they become, how often it is made, what is refused."""

from __future__ import annotations

from itertools import product

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError
from collidecli.importers.mujoco import scene as geoms
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))
FLOAT32 = 1e-6
"""MuJoCo's vertices are float32, and turned into the mesh's own frame; here they are some 4 m from the origin."""
SEEN = 'contype="0" conaffinity="0"'
FLAT = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.3, 0]], float)


def cloud(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3)) * [1.0, 0.6, 0.3] + [0.5, -1.0, 2.0]


def mesh(points: np.ndarray, more: str = "", name: str = "m") -> str:
    return f'<mesh name="{name}" vertex="{" ".join(f"{x:.9g}" for x in points.ravel())}" {more}/>'


def scene(tmp_path, assets: str, geoms: str, compiler: str = "", world: str = ""):
    path = tmp_path / "scene.xml"
    path.write_text(
        f"<mujoco><compiler {compiler}/><asset>{assets}</asset><worldbody>{world}"
        f'<body name="b" pos="1 2 3" euler="20 30 40"><freejoint/>{geoms}</body></worldbody></mujoco>'
    )
    builder = ModelBuilder()
    imported = add_mjcf(builder, path)
    return imported, builder.finalize()


def in_body(model: Model, row: int) -> np.ndarray:
    """A convex mesh's vertices in its body's frame, sorted."""
    pose = model.shapes.pose[row]
    points = model.hulls[model.shapes.hull[row]].vertex @ Rotation.from_quat(pose[3:]).as_matrix().T + pose[:3]
    return points[np.lexsort(np.round(points, 4).T)]


def corners_of(points: np.ndarray) -> np.ndarray:
    """The points that are on their hull, sorted alike."""
    points = points[ConvexHull(points).vertices]
    return points[np.lexsort(np.round(points, 4).T)]


@pytest.mark.parametrize(
    ("more", "refpos", "refquat", "scale"),
    [
        ("", 0, [0, 0, 0, 1], 1),
        *((f'inertia="{kind}"', 0, [0, 0, 0, 1], 1) for kind in ("exact", "convex", "legacy", "shell")),
        ('scale="1 2 0.5"', 0, [0, 0, 0, 1], [1, 2, 0.5]),
        ('scale="-1 1 2"', 0, [0, 0, 0, 1], [-1, 1, 2]),
        ('refpos="1 0 2"', [1, 0, 2], [0, 0, 0, 1], 1),
        ('refpos="1 0 2" refquat="1 1 0 0" scale="2 2 -1"', [1, 0, 2], [1, 0, 0, 1], [2, 2, -1]),
    ],
)
@pytest.mark.parametrize("count", [5, 60])
def test_vertices_are_where_the_file_has_them(tmp_path, more, refpos, refquat, scale, count):
    """Moved by -refpos, turned back by refquat, scaled, then in the geom's own frame, as MuJoCo's documentation has
    it; however MuJoCo moves the mesh to its inertial frame."""
    points = cloud(count)
    geom = '<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" quat="0.5 0.5 -0.5 0.5"/>'
    _, model = scene(tmp_path, mesh(points, more), geom)
    shape = Rotation.from_quat(refquat).inv().apply(points - refpos) * scale
    expected = np.array([0.1, 0.2, 0.3]) + Rotation.from_quat([0.5, -0.5, 0.5, 0.5]).apply(shape)
    np.testing.assert_allclose(in_body(model, 0), corners_of(expected), atol=4 * FLOAT32)


def test_a_static_mesh_is_where_its_body_is(tmp_path):
    points = cloud(30)
    world = '<body name="rock" pos="4 5 6" quat="0.5 0.5 0.5 0.5"><geom type="mesh" mesh="m" pos="1 0 0"/></body>'
    _, model = scene(tmp_path, mesh(points), '<geom size="0.1"/>', world=world)
    geom = np.array([1, 0, 0]) + points
    expected = np.array([4, 5, 6]) + Rotation.from_quat([0.5, 0.5, 0.5, 0.5]).apply(geom)
    assert model.shapes.body[0] == -1
    np.testing.assert_allclose(in_body(model, 0), corners_of(expected), atol=FLOAT32 * 8)


@pytest.mark.parametrize("points", [CUBE * [0.3, 0.2, 0.1], cloud(9), cloud(12), cloud(200)])
def test_maxhullvert_is_the_hull_that_mujoco_collides_with(tmp_path, points):
    """Every direction in turn: a small sphere far away is as far as MuJoCo says, which for few vertices is without."""
    imported, model = scene(
        tmp_path,
        mesh(points, 'maxhullvert="6"'),
        '<geom type="mesh" mesh="m"/>',
        world='<body name="probe" mocap="true"><geom size="0.01" gap="100"/></body>',
    )
    mj_model, data = imported.mj_model, mujoco.MjData(imported.mj_model)
    mj_model.opt.ccd_tolerance, mj_model.opt.ccd_iterations = 1e-12, 500
    rng = np.random.default_rng(1)
    count = 60
    body_q = np.zeros((count, 1, 2, 7))
    body_q[..., 6] = 1.0
    theirs = np.empty(count)
    for frame in range(count):
        away = rng.normal(size=3)
        data.mocap_pos[0] = body_q[frame, 0, 0, :3] = 12.0 * away / np.linalg.norm(away)
        body_q[frame, 0, 1, 3:] = Rotation.random(random_state=frame).as_quat()
        data.qpos[:] = [0, 0, 0, *np.roll(body_q[frame, 0, 1, 3:], 1)]
        mujoco.mj_kinematics(mj_model, data)
        theirs[frame] = mujoco.mj_geomDistance(mj_model, data, 0, 1, 100.0, None)
    ours = collidecli.collide(model, body_q).distance
    np.testing.assert_allclose(ours, theirs, atol=FLOAT32 * 4)
    assert len(model.hulls[0].vertex) == (6 if len(points) >= 10 else len(ConvexHull(points).vertices))


def test_geoms_of_one_mesh_have_one_hull_and_it_is_made_once(tmp_path, monkeypatch):
    """That of a mesh that is only seen is never made."""
    made = []

    def counted(points, where):
        made.append(where)
        return kept(points, where)

    kept = geoms.cached_hull
    monkeypatch.setattr(geoms, "cached_hull", counted)
    elements = '<geom name="a" type="mesh" mesh="m"/><geom name="b" type="mesh" mesh="m" pos="1 0 0"/>'
    imported, model = scene(
        tmp_path,
        mesh(cloud(30)) + mesh(cloud(40, 1), name="look"),
        elements + f'<geom name="seen" type="mesh" mesh="look" {SEEN}/><geom name="too" type="mesh" mesh="m" {SEEN}/>',
    )
    assert made == ["geom 'a', mesh 'm'"]
    assert (len(model.hulls), model.shapes.hull.tolist()) == (1, [0, 0])
    assert imported.left_out == ("seen", "too")


def test_a_primitive_fitted_to_a_mesh_stays_one(tmp_path):
    kinds = ["sphere", "capsule", "box", "cylinder", "ellipsoid"]
    elements = "".join(f'<geom type="{kind}" mesh="m"/>' for kind in kinds)
    imported, model = scene(tmp_path, mesh(cloud(40)), elements)
    assert [kind.label for kind in model.shapes.types()] == kinds
    np.testing.assert_array_equal(model.shapes.size[2], imported.mj_model.geom_size[2])
    assert model.hulls == ()


@pytest.mark.parametrize("more", ["", 'inertia="shell"'])
def test_a_flat_mesh_is_refused_by_name_where_it_collides(tmp_path, more):
    with pytest.raises(InputError, match=r"geom 'g' collides, and its mesh 'm' cannot be used: .*coplanar") as refusal:
        scene(tmp_path, mesh(FLAT, more), '<geom name="g" type="mesh" mesh="m"/>')
    assert refusal.value.where.endswith("scene.xml")
    imported, _ = scene(tmp_path, mesh(FLAT, more), f'<geom name="g" type="mesh" mesh="m" {SEEN}/><geom size="1"/>')
    assert imported.left_out == ("g",)


def test_a_mesh_that_only_mujoco_finds_thick_enough_is_refused_by_name(tmp_path, capfd):
    almost = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 1e-11]])
    with pytest.raises(InputError, match="flat") as refusal:
        scene(tmp_path, mesh(almost, 'face="0 1 2 0 1 3" inertia="shell"'), '<geom name="g" type="mesh" mesh="m"/>')
    assert refusal.value.where.endswith("scene.xml: geom 'g', mesh 'm'")


def test_an_sdf_geom_is_refused_by_name(tmp_path):
    with pytest.raises(InputError, match="geom 'g' is a sdf that may collide"):
        scene(tmp_path, mesh(cloud(30)), '<geom name="g" type="sdf" mesh="m"/><geom size="1"/>')


def test_the_mesh_file_of_a_colliding_geom_is_part_of_the_scene(tmp_path):
    """Found by the asset map, hashed by content; that of a geom that is only seen is not."""
    obj = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("hull", "look"):
        (parts / f"{name}.obj").write_text(obj)
    path = tmp_path / "robot.xml"
    path.write_text(
        f"""<mujoco><compiler meshdir="/home/nobody/robot"/>
        <asset><mesh file="hull.obj"/><mesh file="look.obj"/></asset><worldbody><body><freejoint/>
        <geom name="g" type="mesh" mesh="hull"/><geom type="mesh" mesh="look" {SEEN}/></body></worldbody></mujoco>"""
    )
    options = SceneOptions(asset_map=(f"/home/nobody/robot={parts}",))

    def hashed():
        return load_scene([str(path)], None, options=options).sha256

    before = load_scene([str(path)], None, options=options)
    assert before.model.shapes.types() == [ShapeType.CONVEX_MESH]
    assert before.imports[0].files == (str(path), str(parts / "hull.obj"))
    (parts / "look.obj").write_text(obj.replace("v 1", "v 2"))
    assert hashed() == before.sha256
    (parts / "hull.obj").write_text(obj.replace("v 1", "v 2"))
    assert hashed() != before.sha256
    (parts / "hull.obj").unlink()
    with pytest.raises(InputError, match=r"geom 'g' collides, and its file '.*hull\.obj' cannot be used"):
        hashed()
