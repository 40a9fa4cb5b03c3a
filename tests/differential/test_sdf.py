"""Pairs with a signed distance field against exact pairs of the same shapes; depths are in
tests/matrix."""

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.python.contacts import collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import assert_identical
from tests.support.fields import add, found, least, pair_model, random_poses
from tests.support.meshes import box, torus

pytestmark = pytest.mark.usefixtures("own_cache")
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


@pytest.mark.share(3, 3)
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
        # What overlaps a little overlaps by as much. Deeper, crossing edges are left in another
        # direction; and the triangles of a mesh one by one know less of how deep a shape is than
        # the field does.
        shallow = np.isfinite(exact) & (exact <= 0.0) & (exact > -VOXEL)
        deeper = exact[shallow] - ours[shallow]
        assert deeper.min(initial=0.0) >= -VOXEL
        assert "blob" in pair or deeper.max(initial=0.0) <= VOXEL
        off = contacts.point1.astype(float) - contacts.point0
        np.testing.assert_allclose(
            np.einsum("ij,ij->i", off, contacts.normal), contacts.distance, atol=1e-5
        )
        np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0, atol=1e-6)


def test_a_box_within_a_mesh_is_led_out_one_way():
    builder = ModelBuilder()
    builder.add_shape_mesh(
        builder.add_body(), *box(1.0, 1.0, 1.0), cfg=ShapeConfig(sdf_max_resolution=64)
    )
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


@pytest.mark.parametrize(("height", "distance"), [(0.02, 0.02), (-0.02, -(0.0002**0.5))])
def test_crossing_edges_have_one(height, distance):
    """Of two boxes on edge across each other the corners are far: edges are searched, and leave by
    the nearest side."""
    builder = ModelBuilder()
    builder.add_shape_box(
        builder.add_body(), hx=0.3, hy=0.2, hz=0.2, cfg=ShapeConfig(sdf_max_resolution=64)
    )
    builder.add_shape_box(builder.add_body(), hx=0.2, hy=0.3, hz=0.2)
    poses = np.zeros((1, 1, 2, 7))
    poses[0, 0, 0, 3:] = np.sin(np.pi / 8), 0.0, 0.0, np.cos(np.pi / 8)
    poses[0, 0, 1] = (
        0.05,
        0.04,
        0.4 * 2**0.5 + height,
        0.0,
        np.sin(np.pi / 8),
        0.0,
        np.cos(np.pi / 8),
    )
    contacts = collide(builder.finalize(), poses, device="cpu", gap=0.05)
    nearest = np.argmin(contacts.distance)
    assert contacts.distance[nearest] == pytest.approx(distance, abs=0.5 * 0.6 / 64)
    np.testing.assert_allclose(contacts.point1[nearest, :2], [0.05, 0.0], atol=0.02)
    assert max(contacts.feature0[nearest], contacts.feature1[nearest]) % 3 == 1, "an edge"


@pytest.mark.parametrize("capsule_first", [True, False])
def test_ends_of_a_capsule_at_rest_are_named(capsule_first):
    """Feature 0 is the end at -z of the capsule, 1 the one at +z; the points are on both
    surfaces."""
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
    own, other = (
        (contacts.feature0, contacts.feature1)
        if capsule_first
        else (contacts.feature1, contacts.feature0)
    )
    assert own.tolist() == [0, 1]
    assert other.tolist() == [-1, -1]
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-4)
    on = {
        capsule: [[-0.2, 0.05, 0.199], [0.4, 0.05, 0.199]],
        box: [[-0.2, 0.05, 0.2], [0.4, 0.05, 0.2]],
    }
    np.testing.assert_allclose(contacts.point0, on[0], atol=1e-4)
    np.testing.assert_allclose(contacts.point1, on[1], atol=1e-4)


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
    plain = ModelBuilder()
    fielded = ModelBuilder()
    for builder, cfg in ((plain, None), (fielded, ShapeConfig(sdf_max_resolution=8))):
        builder.add_ground_plane()
        add(builder, builder.add_body((0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0)), "blob", cfg)
    assert_identical(*(collide(builder.finalize(), device="cpu") for builder in (plain, fielded)))


def test_a_field_that_is_too_large_names_its_shape():
    builder = ModelBuilder()
    builder.add_shape_box(
        -1, hx=1.0, hy=1.0, hz=1.0, cfg=ShapeConfig(sdf_max_resolution=4096), key="cliff"
    )
    builder.add_shape_sphere(builder.add_body())
    with pytest.raises(InputError, match="cliff"):
        collide(builder.finalize(), device="cpu")
