"""The builder: indices and rows, worlds and templates, names, poses."""

import numpy as np
import pytest

from collidecli.scene.builder import Z_TO_UP, ModelBuilder
from collidecli.scene.filters import allowed_pairs, explain
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType

IDENTITY = [0, 0, 0, 0, 0, 0, 1]


def robot() -> ModelBuilder:
    """Two spheres on two jointed bodies, and a third on a free one."""
    builder = ModelBuilder()
    base, arm, ball = (builder.add_body(key=name) for name in ("base", "arm", "ball"))
    for body in (base, arm, ball):
        builder.add_shape_sphere(body, radius=0.1)
    builder.add_joint(base, arm)
    return builder


def test_a_scene_without_worlds_is_one_world():
    model = robot().finalize()
    assert model.world_template.tolist() == [0]
    assert model.shapes.template.tolist() == model.bodies.template.tolist() == [0, 0, 0]
    assert model.bodies.path == ("base", "arm", "ball")
    assert model.shapes.body.tolist() == [0, 1, 2]
    assert robot().finalize(world_count=5).world_template.tolist() == [0] * 5


def test_an_empty_scene_is_a_model_of_nothing():
    model = ModelBuilder().finalize()
    assert len(model.shapes) == len(model.bodies) == 0
    assert model.world_count == 1
    assert allowed_pairs(model, 0).shape == (0, 2)


def test_sizes_are_those_of_the_types():
    builder = ModelBuilder()
    body = builder.add_body()
    builder.add_shape_plane(-1)
    builder.add_shape_sphere(body, radius=1)
    builder.add_shape_capsule(body, radius=2, half_height=3)
    builder.add_shape_box(body, hx=4, hy=5, hz=6)
    builder.add_shape_cylinder(body, radius=7, half_height=8)
    builder.add_shape_cone(body, radius=9, half_height=10)
    builder.add_shape_ellipsoid(body, rx=11, ry=12, rz=13)
    builder.add_shape_convex_hull(body, [[14, 0, 0], [-14, 0, 0], [0, 15, 1], [0, -15, 1], [0, 0, 31]])
    builder.add_shape_mesh(body, np.array([[0, 0, 0], [32, 0, 0], [0, 34, 0]]), np.array([[0, 1, 2]]))
    builder.add_shape_heightfield(body, np.array([[1, 2, 3], [4, 5, 6]]), hx=18, hy=19, base=35)
    shapes = builder.finalize().shapes
    assert shapes.types() == list(ShapeType)
    np.testing.assert_array_equal(
        shapes.size[:-2],
        [[0, 0, 0], [1, 0, 0], [2, 3, 0], [4, 5, 6], [7, 8, 0], [9, 10, 0], [11, 12, 13], [14, 15, 15.5]],
    )
    np.testing.assert_allclose(shapes.size[-2], [16, 17, 0], atol=1e-300)
    np.testing.assert_array_equal(shapes.size[-1], [18, 19, 20])


def test_global_rows_come_first_and_indices_are_mapped_to_rows():
    builder = ModelBuilder()
    builder.begin_world()
    builder.add_shape_sphere(builder.add_body(key="first"), key="a")
    builder.end_world()
    builder.begin_world()
    late = builder.add_body(key="second")
    builder.add_shape_sphere(late, key="b")
    builder.end_world()
    builder.add_shape_box(-1, key="table")
    builder.add_shape_sphere(builder.add_body(key="cart"), key="c")
    extra = builder.add_shape_sphere(builder.add_body(key="third", world=0), key="d")
    builder.add_shape_collision_filter_pair(extra, 0)
    model = builder.finalize()
    assert model.shapes.path == ("table", "c", "a", "d", "b")
    assert model.shapes.template.tolist() == [-1, -1, 0, 0, 1]
    assert model.bodies.path == ("cart", "first", "third", "second")
    assert model.shapes.body.tolist() == [-1, 0, 1, 2, 3]
    assert builder.shape_rows().tolist() == [2, 4, 0, 1, 3]
    assert builder.body_rows().tolist() == [1, 3, 0, 2]
    assert allowed_pairs(model, 0).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3]]
    assert allowed_pairs(model, 1).tolist() == [[0, 1], [0, 4], [1, 4]]
    assert explain(model, 2, 4).rule == "different worlds"
    assert explain(model, 2, 3).rule == "filtered pair"


def test_replicas_share_one_template_however_many():
    builder = ModelBuilder()
    scene = robot()
    assert builder.add_world(scene, count=4095) == 0
    assert builder.add_world(scene) == 4095
    builder.add_ground_plane()
    model = builder.finalize()
    assert model.world_count == 4096
    assert not model.world_template.any()
    assert model.shapes.path == ("ground_plane", "shape_0", "shape_1", "shape_2")
    assert allowed_pairs(model, 0).tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 3]]


def test_a_changed_builder_and_another_one_make_new_templates():
    builder, scene = ModelBuilder(), robot()
    builder.add_world(scene, xform=IDENTITY)
    scene.add_shape_box(0)
    builder.add_world(scene)
    builder.add_world(robot())
    builder.add_world(scene)
    model = builder.finalize()
    assert model.world_template.tolist() == [0, 1, 2, 1]
    assert [len(model.template_shapes(t)) for t in range(3)] == [3, 4, 3]


def test_an_added_world_keeps_its_rules_and_defaults():
    scene = ModelBuilder()
    scene.default_gap = 0.02
    scene.source.append("robot.xml")
    bodies = [scene.add_body() for _ in range(6)]
    for body in bodies:
        scene.add_shape_sphere(body, cfg=ShapeConfig(usd_groups={"g"} if body < 2 else None))
    scene.add_collision_group_filter("g", "g")
    scene.add_joint(1, 2)
    scene.add_articulation([3, 4], self_collision=False)
    scene.add_shape_collision_filter_pair(4, 5)
    scene.add_shape_forced_pair(0, 1, gap=0.5)
    scene.add_shape_collision_filter_pair(0, 5, rule="mine")
    alone = scene.finalize()

    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(gap=0.3))
    builder.add_shape_sphere(builder.add_body())
    builder.add_world(robot())
    builder.add_world(scene)
    model = builder.finalize()
    rows = np.flatnonzero(model.shapes.template == 1)
    np.testing.assert_array_equal(model.shapes.gap[rows], 0.02)
    np.testing.assert_array_equal(model.shapes.gap[:5], [0.3, 0.1, 0.1, 0.1, 0.1])
    pairs = allowed_pairs(model, 1)
    own = pairs[np.isin(pairs, rows).all(axis=1)]
    np.testing.assert_array_equal(own - rows[0], allowed_pairs(alone, 0))
    assert explain(model, rows[0], rows[5]).rule == "mine"
    np.testing.assert_array_equal(model.forced_gap, [0.5])
    assert model.source == ("robot.xml",)


def test_group_names_of_two_added_scenes_are_not_mixed():
    strict, loose = ModelBuilder(), ModelBuilder()
    for scene in (strict, loose):
        for _ in range(2):
            scene.add_shape_sphere(scene.add_body(), cfg=ShapeConfig(usd_groups={"g"}))
    strict.add_collision_group_filter("g", "g")
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(usd_groups={"g"}))
    builder.add_world(strict)
    builder.add_world(loose)
    model = builder.finalize()
    assert allowed_pairs(model, 0).tolist() == [[0, 1], [0, 2]]
    assert allowed_pairs(model, 1).tolist() == [[0, 3], [0, 4], [3, 4]]


def test_templates_alike_share_their_filter_classes():
    builder = ModelBuilder()
    for _ in range(50):
        builder.begin_world()
        bodies = [builder.add_body() for _ in range(2)]
        for body in bodies:
            builder.add_shape_sphere(body)
        builder.add_articulation(bodies, self_collision=False)
        builder.end_world()
    pair_filter = builder.finalize().pair_filter
    assert len(pair_filter.classes) == 1
    assert not pair_filter.class_table.any()


def test_global_and_local_articulations_are_told_apart():
    builder = ModelBuilder()
    carts = [builder.add_body() for _ in range(2)]
    builder.add_articulation(carts, self_collision=False)
    builder.begin_world()
    arms = [builder.add_body() for _ in range(2)]
    builder.add_articulation(arms, self_collision=False)
    builder.end_world()
    for body in carts:
        builder.add_shape_sphere(body)
    for body in arms:
        builder.add_shape_sphere(body)
    assert allowed_pairs(builder.finalize(), 0).tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_names_are_made_up_where_none_is_given():
    builder = ModelBuilder()
    builder.begin_world()
    body = builder.add_body(key="body_0")
    builder.add_body()
    for key in (None, "shape_2", None):
        builder.add_shape_sphere(body, key=key)
    builder.end_world()
    builder.begin_world()
    builder.add_shape_sphere(builder.add_body())
    builder.end_world()
    builder.add_shape_sphere(-1)
    model = builder.finalize()
    assert model.shapes.path == ("shape_0", "shape_1", "shape_2", "shape_3", "shape_1")
    assert model.bodies.path == ("body_0", "body_1", "body_0")


def test_margin_gap_and_friction_come_from_the_config_and_the_builder():
    builder = ModelBuilder()
    builder.default_shape_cfg = ShapeConfig(margin=0.01, friction=0.9)
    body = builder.add_body()
    builder.add_shape_sphere(body)
    builder.add_shape_sphere(body, cfg=ShapeConfig(gap=0.0))
    builder.default_gap = 0.05
    builder.default_shape_cfg.margin = 7.0
    shapes = builder.finalize().shapes
    assert shapes.margin.tolist() == [0.01, 0.0]
    assert shapes.gap.tolist() == [0.05, 0.0]
    assert shapes.friction.tolist() == [0.9, 0.5]


def test_quaternions_near_unit_are_normalized():
    builder = ModelBuilder()
    builder.add_body(xform=[1, 2, 3, 0, 0, 0, 1.0005])
    np.testing.assert_array_equal(builder.finalize().bodies.pose, [[1, 2, 3, 0, 0, 0, 1]])


@pytest.mark.parametrize(("up_axis", "up"), [("X", [1, 0, 0]), ("Y", [0, 1, 0]), ("Z", [0, 0, 1])])
def test_the_ground_plane_looks_up(up_axis, up):
    builder = ModelBuilder()
    builder.up_axis = up_axis
    builder.add_ground_plane(height=2.0)
    model = builder.finalize()
    assert model.up_axis == up_axis
    np.testing.assert_array_equal(model.shapes.pose[0, :3], 2.0 * np.array(up))
    x, y, z, w = Z_TO_UP[up_axis]
    # Third column of the rotation's matrix: where +z goes.
    column = [2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)]
    np.testing.assert_allclose(column, up, atol=1e-15)


def test_arrays_are_frozen_and_the_builder_is_not():
    builder = robot()
    builder.add_shape_forced_pair(0, 2)
    model = builder.finalize()
    for array in (
        model.world_template, model.forced_gap, model.bodies.pose, model.shapes.size, model.shapes.template,
        model.pair_filter.class_table, model.pair_filter.excluded, model.pair_filter.forced,
    ):  # fmt: skip
        assert not array.flags.writeable
    builder.add_shape_sphere(builder.add_body())
    assert len(builder.finalize().shapes) == 4
    assert len(model.shapes) == 3


def test_filtered_pairs_that_no_world_holds_are_not_listed():
    builder = ModelBuilder()
    builder.add_world(robot())
    builder.add_world(robot())
    builder.add_shape_collision_filter_pair(0, 5)
    builder.add_shape_collision_filter_pair(0, 2)
    assert builder.finalize().pair_filter.excluded.tolist() == [[0, 1], [0, 2], [3, 4]]


def test_allowed_pairs_of_more_shapes_than_a_block():
    builder = ModelBuilder()
    count = 600
    for k in range(count):
        builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(collision_group=1 + k % 3))
    builder.add_shape_forced_pair(0, 599)
    builder.add_shape_collision_filter_pair(597, 300)
    i, j = np.triu_indices(count, 1)
    may = ((i % 3 == j % 3) & ~((i == 300) & (j == 597))) | ((i == 0) & (j == 599))
    pairs = allowed_pairs(builder.finalize(), 0)
    assert pairs.dtype == np.int32
    np.testing.assert_array_equal(pairs, np.column_stack([i[may], j[may]]))
