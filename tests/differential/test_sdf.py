"""Pairs with a signed distance field against exact pairs of the same shapes, and depths against dense points."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from collidecli.commands.python_api import collide
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.signed_distance import facets
from collidecli.storage.field_cache import FieldCache
from tests.support.engine_runs import PHASES, assert_identical, contacts_of, pipeline_of
from tests.support.fields import add, found, least, pair_model, random_poses
from tests.support.meshes import torus, triangle_distances, windings
from tests.support.oracle import rotation_of
from tests.support.poses import random_quaternions

ALONG = 12
"""Points along every side of a triangle."""
CHUNK = 200


def points_over(corners: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """float64[n, 3]: `count` random points of triangles [F, 3, 3], even by area, and points along all their sides."""
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    face = rng.choice(len(corners), count, p=area / area.sum())
    inside = np.einsum("nk,nki->ni", rng.dirichlet((1.0, 1.0, 1.0), count), corners[face])
    share = np.linspace(0.0, 1.0, ALONG)[:, None, None, None]
    sides = (corners + share * (np.roll(corners, -1, axis=1) - corners)).reshape(-1, 3)
    return np.unique(np.concatenate([inside, sides]), axis=0)


def deepest_place(corners_a: np.ndarray, corners_b: np.ndarray, rng: np.random.Generator, count: int = 400) -> float:
    """How deep the deepest of many points of a's surface is inside closed b; 0 where none is."""
    points = points_over(corners_a, count, rng)
    points = points[np.all((points > corners_b.min((0, 1))) & (points < corners_b.max((0, 1))), axis=1)]
    deepest = 0.0
    for start in range(0, len(points), CHUNK):
        part = points[start : start + CHUNK]
        part = part[windings(corners_b, part) > 0.5]
        if len(part):
            deepest = max(deepest, float(triangle_distances(part, corners_b).max()))
    return deepest


def deepest_of_pair(corners: list[np.ndarray], rng: np.random.Generator, count: int = 400) -> float:
    """The deepest place of either of two closed surfaces in the other."""
    first, second = corners
    return max(deepest_place(first, second, rng, count), deepest_place(second, first, rng, count))


RESOLUTION = 32
FRAMES = 40
FIELDS = ((True, False), (False, True), (True, True))
PAIRS = (
    ("sphere", "box"),
    ("capsule", "ellipsoid"),
    ("box", "box"),
    ("box", "hull"),
    ("cylinder", "hull"),
    ("cone", "box"),
    ("blob", "sphere"),
    ("blob", "capsule"),
    ("blob", "box"),
    ("blob", "cylinder"),
    ("blob", "ellipsoid"),
    ("hull", "blob"),
)
VOXEL = 2.0 * 1.2 / RESOLUTION
"""Of the longest shape here, a hull of 2.4 m."""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Fields are built once for all tests here, and kept nowhere else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "fields"))


@pytest.mark.share(3)
@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_the_nearest_contact_is_within_a_voxel_of_the_exact_one(pair):
    poses = random_poses(FRAMES, 1.7, 3)
    exact = least(found(pair_model(*pair, (False, False)), poses), FRAMES)
    for fields in FIELDS:
        contacts = found(pair_model(*pair, fields, RESOLUTION), poses)
        ours = least(contacts, FRAMES)
        at_border = np.abs(exact - 0.3) < VOXEL
        np.testing.assert_array_equal(np.isfinite(ours)[~at_border], np.isfinite(exact)[~at_border])
        apart = np.isfinite(exact) & np.isfinite(ours) & (exact > 0.0)
        assert apart.sum() > 2
        assert np.abs(ours[apart] - exact[apart]).max() <= VOXEL
        # What overlaps a little overlaps by as much. Deeper, crossing edges are left in another direction; and the
        # triangles of a mesh one by one know less of how deep a shape is than the field does.
        shallow = np.isfinite(exact) & (exact <= 0.0) & (exact > -VOXEL)
        deeper = exact[shallow] - ours[shallow]
        assert deeper.min(initial=0.0) >= -VOXEL
        assert "blob" in pair or deeper.max(initial=0.0) <= VOXEL
        off = contacts.point1.astype(float) - contacts.point0
        np.testing.assert_allclose(np.einsum("ij,ij->i", off, contacts.normal), contacts.distance, atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-6)


def ball_in(name: str, place: tuple[float, float, float], field: bool = True) -> np.ndarray:
    builder = ModelBuilder()
    add(builder, builder.add_body(), name, ShapeConfig(sdf_max_resolution=64) if field else None)
    builder.add_shape_sphere(builder.add_body(), radius=0.05)
    poses = np.zeros((1, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[0, 0, 1, :3] = place
    return collide(builder.finalize(), poses, device="cpu")


def test_what_is_deep_inside_finds_the_way_out():
    # The ring's tube is 0.35 thick around a circle of radius 1; this ball is 0.1 inside the middle line, a little out.
    contacts = ball_in("ring", (1.1, 0.0, 0.0))
    assert contacts.rigid_contact_count == 1
    voxel = 2.7 / 64
    # Its facets are inside the tube: cos(pi/10) of it at least.
    assert -0.30 - voxel <= contacts.distance[0] <= -0.35 * np.cos(np.pi / 10.0) + 0.1 - 0.05 + voxel
    assert contacts.normal[0, 0] > np.cos(np.pi / 10.0) - 0.02  # the normal of a facet beside +x
    # In a box, out of the side that is nearest.
    contacts = ball_in("box", (0.1, 0.2, -0.25))
    assert abs(contacts.distance[0] - (-0.15 - 0.05)) <= 1.6 / 64
    np.testing.assert_allclose(contacts.normal[0], (0.0, 0.0, -1.0), atol=0.02)


def test_a_box_within_a_mesh_is_led_out_one_way():
    builder = ModelBuilder()
    vertices = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    squares = np.array([(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)])
    faces = np.concatenate([squares[:, :3], squares[:, [0, 2, 3]]])
    cfg = ShapeConfig(sdf_max_resolution=64)
    builder.add_shape_mesh(builder.add_body(), vertices, faces, cfg=cfg)
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    poses = np.zeros((1, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[0, 0, 1, :3] = (0.0, 0.1, 0.7)
    contacts = collide(builder.finalize(), poses, device="cpu")
    assert contacts.rigid_contact_count >= 4
    # The four lower corners: out through the top, 0.4 m.
    deep = contacts.distance < -0.3
    assert deep.sum() == 4
    np.testing.assert_allclose(contacts.distance[deep], -0.4, atol=2.0 / 64)
    np.testing.assert_allclose(contacts.normal[deep], np.tile((0.0, 0.0, 1.0), (4, 1)), atol=0.02)


def test_corners_of_a_box_at_rest_are_all_there():
    builder = ModelBuilder()
    cfg = ShapeConfig(sdf_max_resolution=32, gap=0.01)
    builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=0.2, cfg=cfg)
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1, cfg=ShapeConfig(gap=0.01))
    poses = np.zeros((1, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[0, 0, 1, :3] = (0.1, 0.05, 0.299)
    contacts = collide(builder.finalize(), poses, device="cpu")
    assert contacts.rigid_contact_count == 4
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-4)
    assert contacts.feature1.tolist() == [0, 3, 6, 9]
    assert contacts.feature0.tolist() == [-1] * 4


@pytest.mark.parametrize("capsule_first", [True, False])
def test_ends_of_a_capsule_at_rest_are_named(capsule_first):
    """Feature 0 is the end at -z of the capsule, 1 the one at +z; the points are on both surfaces."""
    builder = ModelBuilder()
    box, capsule = (1, 0) if capsule_first else (0, 1)
    for body in range(2):
        if body == box:
            cfg = ShapeConfig(sdf_max_resolution=32, gap=0.01)
            builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=0.2, cfg=cfg)
        else:
            cfg = ShapeConfig(gap=0.01)
            builder.add_shape_capsule(builder.add_body(), radius=0.1, half_height=0.3, cfg=cfg)
    poses = np.zeros((1, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[0, 0, capsule] = (0.1, 0.05, 0.299, 0.0, 0.5**0.5, 0.0, 0.5**0.5)  # its z axis along +x
    contacts = collide(builder.finalize(), poses, device="cpu")
    own, other = (contacts.feature0, contacts.feature1) if capsule_first else (contacts.feature1, contacts.feature0)
    assert own.tolist() == [0, 1]
    assert other.tolist() == [-1, -1]
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-4)
    on = {capsule: [[-0.2, 0.05, 0.199], [0.4, 0.05, 0.199]], box: [[-0.2, 0.05, 0.2], [0.4, 0.05, 0.2]]}
    np.testing.assert_allclose(contacts.point0, on[0], atol=1e-4)
    np.testing.assert_allclose(contacts.point1, on[1], atol=1e-4)


def scene(count: int = 6):
    builder = ModelBuilder()
    builder.default_gap = 0.2
    names = ("blob", "box", "ring", "box", "hull", "sphere")
    for place, name in enumerate(names):
        cfg = ShapeConfig(sdf_max_resolution=24) if place % 2 == 0 else None
        add(builder, builder.add_body(), name, cfg)
    rng = np.random.default_rng(2)
    poses = np.zeros((count, 1, len(names), 7))
    poses[..., :3] = rng.uniform(-1.5, 1.5, size=(count, 1, len(names), 3))
    poses[..., 3:] = random_quaternions(rng, count, 1, len(names))
    return builder.finalize(), poses


def test_one_answer(tmp_path):
    model, poses = scene()
    store = FieldCache(str(tmp_path))
    # Built for the first, found in the store by the others.
    pipeline = pipeline_of(model, poses, store=store)
    first = contacts_of(pipeline, poses)
    assert first.rigid_contact_count > 100
    for options in PHASES.values():
        pipeline = pipeline_of(model, poses, store=store, **options)
        assert_identical(first, contacts_of(pipeline, poses))
    assert_identical(first, contacts_of(pipeline, poses, chunk=1, threads=2))
    rows = np.stack([first.shape0, first.shape1, first.feature0, first.feature1], axis=1)
    for cell in range(len(poses)):
        here = [tuple(row) for row in rows[first.cell_start[cell] : first.cell_start[cell + 1]].tolist()]
        assert here == sorted(set(here))


def test_more_steps_are_no_farther():
    values = []
    for steps in (0, 4, 20):
        builder = ModelBuilder()
        cfg = ShapeConfig(sdf_max_resolution=32, edge_sdf_iter=steps)
        builder.add_shape_mesh(builder.add_body(), *torus(40, 20), cfg=cfg)
        builder.add_shape_capsule(builder.add_body(), radius=0.1, half_height=1.5)
        poses = random_poses(20, 1.2, 4)
        values.append(least(collide(builder.finalize(), poses, device="cpu"), 20))
    assert (values[2] <= values[0] + 1e-6).all()
    assert (values[2] < values[0] - 1e-5).any()


def test_a_plane_meets_the_surface_itself():
    plain, fielded = ModelBuilder(), ModelBuilder()
    for builder, cfg in ((plain, None), (fielded, ShapeConfig(sdf_max_resolution=8))):
        builder.add_ground_plane()
        add(builder, builder.add_body((0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0)), "blob", cfg)
    assert_identical(*(collide(builder.finalize(), device="cpu") for builder in (plain, fielded)))


def test_a_field_that_is_too_large_names_its_shape():
    builder = ModelBuilder()
    builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=1.0, cfg=ShapeConfig(sdf_max_resolution=4096), key="cliff")
    builder.add_shape_sphere(builder.add_body())
    with pytest.raises(InputError, match="cliff"):
        collide(builder.finalize(), device="cpu")


@pytest.mark.parametrize("kind", ["sphere", "box"])
def test_a_mesh_turned_inside_out_has_the_contacts_of_the_mesh(kind):
    """Its faces are turned over at load, so that its field is negative inside again."""
    vertices, faces = torus()
    results = []
    for turned in (faces, faces[:, ::-1]):
        builder = ModelBuilder()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            builder.add_shape_mesh(builder.add_body(), vertices, turned, cfg=ShapeConfig(sdf_max_resolution=RESOLUTION))
        add(builder, builder.add_body(), kind)
        results.append(collide(builder.finalize(), random_poses(FRAMES, 1.2, 4)))
    ours, theirs = results
    assert (theirs.distance < -0.01).any()
    assert (theirs.distance > 0.01).any()
    np.testing.assert_array_equal(ours.cell_start, theirs.cell_start)
    for name in ("distance", "normal", "point0", "point1"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-6)


# How deep pairs with a signed distance field are, against points all over both surfaces, in float64.

DEPTH_FRAMES = 9
DEPTH_PAIRS = (("box", "box"), ("blob", "box"), ("blob", "blob"))
MISSED = 0.06
"""The points on a surface of about 8 m^2 are some 0.1 m apart: what lies between them is deeper by half of that [m]."""


def surface(model: Model, row: int) -> np.ndarray:
    """float64[F, 3, 3]: a shape's triangles, its frame."""
    shapes = model.shapes
    hull = model.hulls[shapes.hull[row]] if shapes.hull[row] >= 0 else None
    mesh = model.meshes[shapes.mesh[row]] if shapes.mesh[row] >= 0 else None
    solid = facets(shapes.types()[row], shapes.size[row], hull, mesh)
    assert solid is not None
    return solid.vertex[solid.face]


@pytest.mark.share(3)
@pytest.mark.parametrize("pair", DEPTH_PAIRS, ids="-".join)
def test_no_place_is_half_a_voxel_deeper(pair):
    poses = random_poses(DEPTH_FRAMES, 1.1, 6)
    rng = np.random.default_rng(0)
    model = pair_model(*pair, (True, True), RESOLUTION)
    deepest = []
    for frame in range(DEPTH_FRAMES):
        corners = []
        for row in range(2):
            pose = poses[frame, 0, row]
            placed = surface(model, row) + model.shapes.pose[row, :3]
            corners.append(placed @ rotation_of(pose[None])[0].T + pose[:3])
        deepest.append(deepest_of_pair(corners, rng))
    deepest = np.array(deepest)
    assert (deepest > 0.1).sum() > DEPTH_FRAMES // 2
    for fields in ((True, False), (False, True), (True, True)):
        model = pair_model(*pair, fields, RESOLUTION)
        depth = -least(found(model, poses), DEPTH_FRAMES)
        voxel = max(2.0 * model.shapes.size[row].max() for row in range(2) if fields[row]) / RESOLUTION
        over = deepest > 0.0
        assert (deepest - depth)[over].max() <= 0.5 * voxel, fields
        assert (depth - deepest)[over].max() <= 0.5 * voxel + MISSED, fields
