"""Visual prims that become colliders: which, as what shape, of which body; and colliders without
geometry."""

import re
from dataclasses import replace

import numpy as np
import pytest
from pxr import Usd, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.flat_hull import flat_hull
from collidecli.importers.usd.stage import _parse
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_scenes import (
    BODY,
    COLLIDER,
    L_FACES,
    L_POINTS,
    at,
    load,
    mesh,
    moving,
    points_in_world,
    sphere,
    touching,
)

MESH_API = '(prepend apiSchemas = ["PhysicsMeshCollisionAPI"])'
TOKEN = 'uniform token {} = "{}"\n'


def drawn(name, inside="", kind="Sphere", apis=""):
    return f'def {kind} "{name}" {apis} {{\n{inside}\n}}\n'


def test_matching_visuals_are_colliders_of_the_bodies_above_them(tmp_path):
    text = drawn("floor", at(0, 0, -2), "Cube")
    text += (
        f'def Xform "a" {BODY} {{\n{at(0, 0, 3)}{drawn("skin")}{sphere("own", apis=COLLIDER)}}}\n'
    )
    text += f'def Xform "b" {BODY} {{\ndef Scope "looks" {{\n{drawn("skin", "double radius = 0.5")}}}\n}}\n'
    for patterns, expected in (
        (("*",), {"/floor", "/a/skin", "/a/own", "/b/looks/skin"}),
        (("*/looks/*",), {"/a/own", "/b/looks/skin"}),
        (("re:/[^/]*/skin",), {"/a/own", "/a/skin"}),
        (("/a",), {"/a/skin", "/a/own"}),  # by the body
        ((), {"/a/own"}),
    ):
        scene, model = load(tmp_path, text, visuals_as_colliders=patterns)
        assert set(model.shapes.path) == expected
        assert scene.warnings == ()
    _, model = load(tmp_path, text, visuals_as_colliders=("*",))
    body = {path: model.shapes.body[k] for k, path in enumerate(model.shapes.path)}
    assert body["/floor"] == -1
    assert body["/a/skin"] == body["/a/own"] != body["/b/looks/skin"]
    # a body's own shapes do not touch each other
    assert touching(model) == {"floor own", "floor skin", "own skin", "skin skin"}
    # pxr reads the same colliders, with the same bodies, from a layer with the API on each
    stage = Usd.Stage.Open(str(tmp_path / "s.usda"))
    for path in model.shapes.path:
        UsdPhysics.CollisionAPI.Apply(stage.GetPrimAtPath(path))
    stage.GetRootLayer().Export(str(tmp_path / "t.usda"))
    _, theirs = load(tmp_path, tmp_path / "t.usda")
    assert theirs.shapes.path == model.shapes.path
    np.testing.assert_array_equal(theirs.shapes.pose, model.shapes.pose)
    np.testing.assert_array_equal(theirs.shapes.body, model.shapes.body)
    assert touching(theirs) == touching(model)


@pytest.mark.parametrize("approximation", ["", "convexHull", "boundingCube"])
def test_a_visual_mesh_has_the_shape_that_it_would_have_as_a_collider(tmp_path, approximation):
    text = mesh("l", L_POINTS, L_FACES, approximation, apis=MESH_API) + sphere("s")
    _, ours = load(tmp_path, text, visuals_as_colliders=("/l",))
    _, theirs = load(tmp_path, mesh("l", L_POINTS, L_FACES, approximation) + sphere("s"))
    for name in ("type", "size", "pose"):
        np.testing.assert_array_equal(getattr(ours.shapes, name), getattr(theirs.shapes, name))
    kind = ShapeType.MESH if not approximation else theirs.shapes.types()[0]
    assert ours.shapes.types()[0] == kind


@pytest.mark.parametrize(
    "inside",
    [
        'token visibility = "invisible"',
        TOKEN.format("purpose", "guide"),
        TOKEN.format("purpose", "proxy"),
    ],
)
def test_what_is_not_drawn_does_not_match(tmp_path, inside):
    text = drawn("hidden", inside) + drawn("shown") + sphere("s")
    _, model = load(tmp_path, text, visuals_as_colliders=("*",))
    assert model.shapes.path == ("/shown", "/s")
    with pytest.raises(InputError, match="'/hidden' matches no visual mesh or shape"):
        load(tmp_path, text, visuals_as_colliders=("/hidden",))


def test_visuals_in_instances_and_prototypes(tmp_path):
    part = f'class "part" {{\n{drawn("skin")}}}\n'
    text = part + "".join(
        f'def Xform "i{k}" (instanceable = true\ninherits = </part>) {{\n{at(0, 0, 9 * k)}}}\n'
        for k in range(3)
    )
    text += (
        'def PointInstancer "many" {\nint[] protoIndices = [0, 0]\n'
        "point3f[] positions = [(0, 5, 0), (0, 9, 0)]\n"
        f"rel prototypes = </many/ball>\n{drawn('ball')}}}\n"
    )
    _, model = load(tmp_path, text, visuals_as_colliders=("*",))
    place = {
        path: pose[:3].tolist()
        for path, pose in zip(model.shapes.path, model.shapes.pose, strict=True)
    }
    assert place == {
        **{f"/i{k}/skin": [0, 0, 9 * k] for k in range(3)},
        "/many/instances/ball_0": [0, 5, 0],
        "/many/instances/ball_1": [0, 9, 0],
    }
    _, model = load(tmp_path, text, visuals_as_colliders=("/i1/*",))
    assert model.shapes.path == ("/i1/skin",)


def test_visuals_that_cannot_collide_are_named(tmp_path):
    text = drawn("curve", kind="BasisCurves") + drawn("good")
    text += drawn(
        "oval",
        'float3 xformOp:scale = (1, 2, 1)\nuniform token[] xformOpOrder = ["xformOp:scale"]',
        "Cylinder",
    )
    text += mesh("void", [(0, 0, 0)] * 3, [(0, 1, 2)], "", apis="")
    text += f'def Xform "b" {BODY} {{\n{moving("0: (0, 0, 0), 1: (1, 0, 0)")}{sphere("s", apis=COLLIDER)}'
    text += drawn("loose", moving("0: (0, 0, 0), 1: (1, 0, 0)")) + "}\n"
    scene, model = load(tmp_path, text, visuals_as_colliders=("*",))
    assert set(model.shapes.path) == {"/good", "/b/s"}
    types, left_out = scene.warnings
    assert types.endswith("prims of these types are no colliders: 1 BasisCurves")
    assert "3 visuals cannot collide" in left_out
    for words in ("</oval> (the Cylinder is scaled out of round", "</void> (", "</b/loose> ("):
        assert words in left_out
    with pytest.raises(InputError, match=r"the stage has no collider.*void"):
        load(
            tmp_path,
            mesh("void", [(0, 0, 0)] * 3, [(0, 1, 2)], "", apis=""),
            visuals_as_colliders=("*",),
        )
    # a collider is refused for what a visual is left out for
    with pytest.raises(InputError, match="</void>"):
        load(tmp_path, mesh("void", [(0, 0, 0)] * 3, [(0, 1, 2)], ""), visuals_as_colliders=())


def test_a_stage_without_colliders_names_the_option(tmp_path):
    with pytest.raises(InputError, match="draws 2 meshes and shapes") as error:
        load(tmp_path, drawn("a") + drawn("b", kind="Cube"))
    assert "--visuals-as-colliders '*'" in error.value.fix
    with pytest.raises(InputError, match="the stage has no collider") as error:
        load(tmp_path, 'def Xform "a" {\n}\n')
    assert "--visuals" not in error.value.fix
    with pytest.raises(InputError, match="the scene has no visual mesh or shape"):
        load(tmp_path, 'def Xform "a" {\n}\n', visuals_as_colliders=("*",))


def test_colliders_without_geometry_are_one_warning(tmp_path):
    """pxr's parser reads the others, and so do we."""
    text = "".join(
        f'def {kind} "hall{k}" {COLLIDER} {{\n{drawn("wall")}{sphere("s")}}}\n'
        for k, kind in enumerate(("Xform", "Scope", "Xform"))
    )
    text += f'def Xform "covered" {COLLIDER} {{\n{sphere("s")}}}\n'
    scene, model = load(tmp_path, text)
    stage = Usd.Stage.Open(str(tmp_path / "s.usda"))
    parsed = _parse(stage)
    theirs = [
        str(path)
        for kind, (paths, _) in parsed.items()
        if kind == UsdPhysics.ObjectType.SphereShape
        for path in paths
    ]
    assert sorted(model.shapes.path) == sorted(theirs)
    covered, without = scene.warnings
    assert covered.startswith("</covered>: the collider has no geometry of its own")
    assert re.match(r"</hall0> and 2 more: PhysicsCollisionAPI on a prim without geometry", without)


ANGLE = np.linspace(0, 2 * np.pi, 7)[:-1]
RING = np.stack([np.cos(ANGLE), 0.5 * np.sin(ANGLE), np.zeros(6)], axis=1)
RING_AREA = 0.5 * 6 * 0.5 * np.sin(np.pi / 3)


def in_ring() -> np.ndarray:
    """float64[318, 3]: corners of a flat hexagon, and points in its interior and on its sides."""
    inner = np.zeros((300, 3))
    inner[:, :2] = np.random.default_rng(4).uniform(-0.3, 0.3, (300, 2))
    return np.concatenate([RING, 0.5 * (RING + np.roll(RING, 1, axis=0)), 0.4 * RING, inner])


def check_polygon(polygon, corners):
    """A two-sided mesh of a hexagon with these corners."""
    gap = np.linalg.norm((polygon.vertex + polygon.center)[:, None] - corners, axis=-1)
    assert gap.min(axis=0).max() < 1e-12
    assert gap.min(axis=1).max() < 1e-12
    p, q, r = np.moveaxis(polygon.vertex[polygon.face], 1, 0)
    area = 0.5 * np.linalg.norm(np.cross(q - p, r - p), axis=1).sum()
    assert area == pytest.approx(RING_AREA, rel=1e-6)
    assert polygon.two_sided
    assert not polygon.has_front


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_a_flat_hull_is_a_polygon_with_two_sides(tmp_path, axes):
    points = in_ring()[:, axes]
    faces = [(k, k + 1, k + 2) for k in range(len(points) - 2)]
    scene, model = load(tmp_path, mesh("m", points, faces) + sphere("s"))
    polygon = model.meshes[model.shapes.mesh[0]]
    world = points_in_world(tmp_path / "s.usda", "/m")[:6]
    check_polygon(replace(polygon, center=model.shapes.pose[0][:3]), world)
    assert "a polygon of triangles with two sides" in scene.warnings[0]


def test_flat_points_in_any_plane():
    for seed in range(20):
        turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
        points = 10.0 ** (seed % 7 - 3) * in_ring() @ turn.T
        polygon = flat_hull(points, "here")
        size = np.ptp(points, axis=0).max()
        assert polygon is not None
        corners = polygon.vertex + polygon.center
        gap = np.linalg.norm(corners[:, None] - points[:6], axis=-1)
        assert gap.min(axis=0).max() < 1e-12 * size
    for bad in (points[:1], np.linspace([0, 0, 0], [1, 2, 3], 9), np.eye(4, 3)):
        assert flat_hull(bad, "here") is None


def test_a_hull_without_width_is_refused(tmp_path):
    points = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)]
    with pytest.raises(InputError, match="flat"):
        load(tmp_path, mesh("m", points, [(0, 1, 2), (1, 2, 3)]))
