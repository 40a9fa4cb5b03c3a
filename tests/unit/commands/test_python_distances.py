"""collidecli.clearance, distance and signed_distance: closed forms, coal, brute force, and invalid arguments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli import ModelBuilder, Shape, ShapeConfig
from tests.support.meshes import blob, grid, point_distances, torus, winding
from tests.support.oracle import rotation_of
from tests.support.random_scenes import random_cloud, random_poses

FAR = (0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 1.0)
TURNED = (0.3, -0.2, 0.1, *(np.array([0.1, 0.7, -0.2, 0.6]) / np.linalg.norm([0.1, 0.7, -0.2, 0.6])).tolist())


def points(seed: int, spread: float = 2.0, count: int = 200) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-spread, spread, (count, 3))


def of_box(p: np.ndarray, half: np.ndarray) -> np.ndarray:
    off = np.abs(p) - half
    return np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)


def of_cylinder(p: np.ndarray, radius: float, half: float) -> np.ndarray:
    off = np.stack([np.hypot(p[:, 0], p[:, 1]) - radius, np.abs(p[:, 2]) - half], axis=1)
    return np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)


def of_capsule(p: np.ndarray, radius: float, half: float) -> np.ndarray:
    return np.linalg.norm(p - np.clip(p[:, 2], -half, half)[:, None] * [0, 0, 1], axis=1) - radius


FORMS = [
    ("plane", {}, lambda p: p[:, 2]),
    ("sphere", {"radius": 0.7}, lambda p: np.linalg.norm(p, axis=1) - 0.7),
    ("box", {"hx": 0.5, "hy": 0.9, "hz": 0.3}, lambda p: of_box(p, np.array([0.5, 0.9, 0.3]))),
    ("capsule", {"radius": 0.3, "half_height": 0.8}, lambda p: of_capsule(p, 0.3, 0.8)),
    ("cylinder", {"radius": 0.4, "half_height": 0.7}, lambda p: of_cylinder(p, 0.4, 0.7)),
]


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("kind", "sizes", "truth"), FORMS, ids=[form[0] for form in FORMS])
def test_signed_distances_of_primitives_have_their_closed_form(kind, sizes, truth, size):
    given = points(1)
    pose = np.array(TURNED)
    placed = size * (given @ rotation_of(pose).T + pose[:3])
    shape = Shape(kind, xform=[*size * pose[:3], *pose[3:]], **{name: size * value for name, value in sizes.items()})
    found = collidecli.signed_distance(placed, shape)
    np.testing.assert_allclose(found, size * truth(given), atol=1e-12 * size)
    assert (found < 0.0).any()
    assert (found > 0.0).any()


@pytest.mark.parametrize("kind", ["cone", "ellipsoid", "convex_hull"])
def test_signed_distances_of_other_convex_shapes_are_those_of_a_small_sphere(kind):
    sizes = {"cone": {"radius": 0.6, "half_height": 0.5}, "ellipsoid": {"rx": 0.3, "ry": 0.6, "rz": 1.0}}
    shape = Shape(kind, **sizes.get(kind, {"vertices": 4.0 * random_cloud(np.random.default_rng(2))}))
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
    truth = [
        point_distances(corners, point).min() * (-1.0 if winding(corners, point) > 0.5 else 1.0) for point in given
    ]
    np.testing.assert_allclose(collidecli.signed_distance(given, shape), truth, atol=1e-12)
    sheet = Shape("mesh", vertices=grid(4)[0], faces=grid(4)[1])
    assert collidecli.signed_distance([0.1, 0.1, -0.5], sheet) == pytest.approx(0.5, abs=1e-14)
    assert collidecli.signed_distance(np.zeros((0, 3)), shape).shape == (0,)


def test_signed_distances_of_a_heightfield_are_those_of_its_solid():
    field = Shape("heightfield", heights=np.zeros((3, 4)), hx=1.0, hy=0.8, base=0.4)
    given = points(5, 1.5)
    truth = of_box(given + np.array([0.0, 0.0, 0.2]), np.array([1.0, 0.8, 0.2]))
    np.testing.assert_allclose(collidecli.signed_distance(given, field), truth, atol=1e-12)


def test_distance_of_two_shapes_at_one_and_at_many_poses():
    box, ball = Shape("box", hx=1.0, hy=1.0, hz=1.0), Shape("sphere", xform=FAR, radius=0.5)
    found = collidecli.distance(box, ball)
    assert found.distance == pytest.approx(1.5, abs=1e-14)
    np.testing.assert_allclose(found.normal, [0, 0, 1], atol=1e-14)
    np.testing.assert_allclose([found.point_a, found.point_b], [[0, 0, 1], [0, 0, 2.5]], atol=1e-12)
    moved = np.array([[0, 0, z, 0, 0, 0, 1.0] for z in (-1.4, -2.0, 7.0)])
    many = collidecli.distance(ball, box, pose_a=moved)
    np.testing.assert_allclose(many.distance, [0.1, -0.5, 8.5], atol=1e-12)
    np.testing.assert_allclose(many.normal, np.tile([0, 0, -1], (3, 1)), atol=1e-12)
    assert (many.error[[0, 2]] < 1e-12).all()
    assert np.isinf(many.error[1])


def test_distances_of_convex_shapes_are_those_of_coal():
    coal = pytest.importorskip("coal")
    rng = np.random.default_rng(6)
    cloud = 4.0 * random_cloud(rng)
    vectors = coal.StdVec_Vec3s()
    vectors.extend(list(cloud))
    pairs = [
        (Shape("box", hx=0.5, hy=0.9, hz=0.3), coal.Box(1.0, 1.8, 0.6)),
        (Shape("sphere", radius=0.7), coal.Sphere(0.7)),
        (Shape("capsule", radius=0.3, half_height=0.8), coal.Capsule(0.3, 1.6)),
        (Shape("cylinder", radius=0.4, half_height=0.7), coal.Cylinder(0.4, 1.4)),
        (Shape("cone", radius=0.6, half_height=0.5), coal.Cone(0.6, 1.0)),
        (Shape("ellipsoid", rx=0.3, ry=0.6, rz=1.0), coal.Ellipsoid(0.3, 0.6, 1.0)),
        (Shape("convex_hull", vertices=cloud), coal.Convex.convexHull(vectors, True, "Qt")),
    ]
    poses = random_poses(rng, (20, 2), 2.0)
    for first, theirs_first in pairs:
        for second, theirs_second in pairs:
            found = collidecli.distance(first, second, pose_a=poses[:, 0], pose_b=poses[:, 1])
            for k in np.flatnonzero(found.distance > 1e-3):
                placed = [coal.Transform3s(rotation_of(pose), pose[:3]) for pose in poses[k]]
                request, result = coal.DistanceRequest(), coal.DistanceResult()
                request.gjk_tolerance = 1e-10
                theirs = coal.distance(theirs_first, placed[0], theirs_second, placed[1], request, result)
                assert found.distance[k] == pytest.approx(theirs, abs=1e-6)


def test_clearance_of_a_model_in_motion():
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig(margin=0.01))
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5, key="ball")
    builder.add_shape_mesh(builder.add_body(key="blob"), *blob(np.random.default_rng(2), 6, 8), key="blob")
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
    np.testing.assert_allclose(one.distance[2, :, 0], [-0.1, found.distance[2, 1, [0, 2]].min()], atol=0.011)
    assert (one.shape0[0, 0, 0], one.shape1[0, 0, 0]) == (0, 1)
    assert repr(found) == "<Clearances frames=3 worlds=2 items=3>"


def test_environments_of_one_template_move_with_their_static_shapes():
    builder, world = ModelBuilder(), ModelBuilder()
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
        (lambda box: Shape("box", radius=1.0), "radius"),
        (lambda box: Shape("box", hx=-1.0), "size"),
        (lambda box: Shape("box", xform=(0, 0)), "pose"),
        (lambda box: collidecli.signed_distance([1, 2], box), "shape"),
        (lambda box: collidecli.signed_distance([1, 2, np.nan], box), "finite"),
        (lambda box: collidecli.distance(box, 3), "type int is no shape"),
        (lambda box: collidecli.distance(box, box, pose_a=np.zeros((2, 7))), "quaternion"),
        (lambda box: collidecli.distance(box, box, pose_a=np.zeros((2, 6))), "pose_a has shape"),
        (lambda box: collidecli.distance(box, box, pose_a=[FAR] * 2, pose_b=[FAR] * 3), "2 and 3 poses"),
        (lambda box: collidecli.distance(Shape("plane"), Shape("plane")), "two planes"),
        (lambda box: collidecli.clearance(3), "model is a int"),
        (lambda box: collidecli.clearance(ModelBuilder().finalize()), "no pair"),
        (lambda box: collidecli.clearance(box.model, by="pairs"), "by is 'pairs'"),
        (lambda box: collidecli.clearance(box.model, margin=float("nan")), "margin"),
    ],
)
def test_invalid_arguments(call, words):
    with pytest.raises(collidecli.InputError, match=words):
        call(Shape("box", hx=1.0, hy=1.0, hz=1.0))
