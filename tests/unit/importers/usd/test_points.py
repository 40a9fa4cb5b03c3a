"""Points with a collision API: a point cloud, each point a sphere of half its width."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_scenes import BOTH, COLLIDER, check_refused, load, sphere, write_usda

PLACED = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]\n'


def cloud(name, points, widths, more="", apis=BOTH, place=((0, 0, 0), (0, 0, 0), (1, 1, 1))):
    listed = ", ".join(f"({x!r}, {y!r}, {z!r})" for x, y, z in np.asarray(points, np.float32).tolist())
    of_prim = "point3f[] points = [" + listed + "]\n"
    of_prim += "" if widths is None else f"float[] widths = {[float(width) for width in widths]}\n"
    translate, rotate, scale = place
    of_prim += f"double3 xformOp:translate = {translate}\nfloat3 xformOp:rotateXYZ = {rotate}\n"
    return f'def Points "{name}" {apis} {{\n{of_prim}float3 xformOp:scale = {scale}\n{PLACED}{more}\n}}\n'


@pytest.mark.parametrize("apis", [BOTH, COLLIDER], ids=["body", "static"])
@pytest.mark.parametrize("mirror", [1.0, -1.0])
def test_each_point_is_a_sphere_at_its_place_in_the_world(tmp_path, apis, mirror):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (7, 3)).astype(np.float32).astype(float)
    widths = rng.uniform(0.1, 0.2, 7).astype(np.float32).astype(float)
    place = ((1.0, 2.0, 3.0), (20.0, 30.0, 40.0), (2.0 * mirror, 2.0, 2.0))
    path = write_usda(
        tmp_path, cloud("c", points, widths, apis=apis, place=place), 'metersPerUnit = 0.01\n upAxis = "Z"'
    )
    builder = collidecli.ModelBuilder()
    imported = builder.add_usd(path)
    model = builder.finalize()
    assert model.shapes.path == tuple(f"/c#{k}" for k in range(7))
    assert imported.shape_of == {f"/c#{k}": k for k in range(7)}
    assert set(model.shapes.type.tolist()) == {ShapeType.SPHERE}
    np.testing.assert_allclose(model.shapes.size[:, 0], 0.01 * widths, rtol=1e-12)
    turn = Rotation.from_euler("xyz", place[1], degrees=True)
    meant = 0.01 * (turn.apply(points * place[2]) + place[0])
    found = model.shapes.pose[:, :3]
    if apis == BOTH:
        body = model.bodies.pose[0]
        found = Rotation.from_quat(body[3:].copy()).apply(np.array(found)) + body[:3]
    np.testing.assert_allclose(found, meant, atol=1e-8)
    assert imported.warnings == ()


def test_points_of_one_cloud_do_not_touch_and_those_of_two_do(tmp_path):
    """Also of static clouds where static shapes may touch, and of clouds of more points than a listed body has."""
    rng = np.random.default_rng(1)
    points = [rng.uniform(-0.5, 0.5, (count, 3)) for count in (90, 20, 70)]
    text = cloud("a", points[0], [0.2], apis=COLLIDER) + cloud("b", points[1], [0.2], apis=COLLIDER)
    text += cloud("c", points[2], [0.2])
    builder = collidecli.ModelBuilder()
    builder.add_usd(write_usda(tmp_path, text))
    builder.default_gap = 0.0
    for static_pairs in (False, True):
        model = builder.finalize(static_pairs=static_pairs)
        contacts = collidecli.collide(model, device="cpu")
        found = {}
        for a, b, distance in zip(contacts.shape0, contacts.shape1, contacts.distance, strict=True):
            found[model.shapes.path[a], model.shapes.path[b]] = distance
        meant = {}
        for (first, one), (second, two) in [(("a", 0), ("b", 1)), (("a", 0), ("c", 2)), (("b", 1), ("c", 2))]:
            if static_pairs or second == "c":
                apart = np.linalg.norm(points[one][:, None] - points[two], axis=2) - 0.2
                for i, j in np.argwhere(apart < 0.0):
                    meant[tuple(sorted((f"/{first}#{i}", f"/{second}#{j}")))] = apart[i, j]
        found = {tuple(sorted(pair)): distance for pair, distance in found.items()}
        assert {pair for pair, distance in meant.items() if distance < -1e-6} <= set(found) <= set(meant)
        assert all(found[pair] == pytest.approx(meant[pair], abs=1e-6) for pair in found)
    # In copied worlds clouds stay apart from each other.
    whole = collidecli.ModelBuilder()
    whole.add_world(builder, count=2)
    copied = collidecli.collide(whole.finalize(static_pairs=True), device="cpu")
    assert len(copied.cell(0, 1).distance) == len(copied.cell(0, 0).distance) == len(contacts.distance)


def test_the_rule_of_a_static_cloud_has_a_name(tmp_path):
    from collidecli.scene.filters import explain

    _, model = load(tmp_path, cloud("a", np.eye(3), [2.0], apis=COLLIDER))
    assert explain(model, 0, 1).rule == "static pair"
    builder = collidecli.ModelBuilder()
    builder.add_shape_points(-1, np.eye(3), 2.0, key="cloud")
    assert explain(builder.finalize(static_pairs=True), 0, 2).rule == "same point cloud"
    assert builder.finalize().shapes.path == ("cloud#0", "cloud#1", "cloud#2")


def test_disabled_points_are_left_out(tmp_path):
    text = cloud("p", np.eye(3), None, "bool physics:collisionEnabled = 0") + sphere("s")
    scene, model = load(tmp_path, text)
    assert model.shapes.path == ("/s",)
    assert scene.warnings == ("</p>: left out: a disabled collider of type Points",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (cloud("p", np.eye(3), None), ["</p>", "widths has no value"]),
        (cloud("p", np.eye(3), [1.0, 1.0]), ["</p>", "2 widths for 3 points"]),
        (cloud("p", np.eye(3), [1.0, 0.0, 1.0]), ["</p>", "width 1 is 0"]),
        (cloud("p", np.zeros((0, 3)), [1.0]), ["</p>", "no points"]),
        (cloud("p", np.eye(3), [1.0], place=((0, 0, 0), (0, 0, 0), (1, 1, 2))), ["</p>", "scaled by 1, 1, 2"]),
        (
            cloud("p", np.eye(3), None, "float[] widths.timeSamples = { 0: [1], 1: [2] }"),
            ["</p>", "widths changes over time"],
        ),
        (cloud("p", np.eye(3), [1.0]).replace("(1.0, 0.0, 0.0)", "(inf, 0, 0)"), ["</p>", "point 0 is not finite"]),
    ],
)
def test_refused_by_name(tmp_path, capfd, text, said):
    check_refused(lambda: load(tmp_path, text + sphere("s")), said, capfd)


@pytest.mark.parametrize(
    ("points", "radius", "words"),
    [
        (np.zeros((2, 2)), 1.0, "the points have the shape"),
        (np.zeros((0, 3)), 1.0, "the points have the shape"),
        (np.zeros((2, 3)), [1.0, 1.0, 1.0], "radius has the shape"),
        (np.zeros((2, 3)), 0.0, "sphere has size"),
        (np.full((2, 3), np.nan), 1.0, "point 0 is not finite"),
        ("text", 1.0, "points is 'text'"),
    ],
)
def test_refused_in_python(points, radius, words):
    with pytest.raises(InputError, match=words):
        collidecli.ModelBuilder().add_shape_points(-1, points, radius)
