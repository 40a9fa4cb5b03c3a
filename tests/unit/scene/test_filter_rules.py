"""Each filter scheme against pairs written out by hand."""

import itertools

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import allowed_pairs, explain
from collidecli.scene.shape_config import ShapeConfig


def moving_spheres(*configs: ShapeConfig) -> ModelBuilder:
    """One sphere on a body of its own for each config."""
    builder = ModelBuilder()
    for cfg in configs:
        builder.add_shape_sphere(builder.add_body(), cfg=cfg)
    return builder


def touching(builder: ModelBuilder, **options) -> set[tuple[int, int]]:
    """Pairs that may touch in world 0; `explain` is held to the same, both ways round."""
    model = builder.finalize(**options)
    pairs = {(int(a), int(b)) for a, b in allowed_pairs(model, 0)}
    for a, b in itertools.combinations(range(len(model.shapes)), 2):
        assert explain(model, a, b).may_touch == explain(model, b, a).may_touch == ((a, b) in pairs)
        assert explain(model, a, b).rule == explain(model, b, a).rule
    return pairs


def rule(builder: ModelBuilder, a: int, b: int) -> str:
    return explain(builder.finalize(), a, b).rule


@pytest.mark.parametrize(
    ("group_a", "group_b", "may"),
    [
        (0, 0, False), (0, 1, False), (0, -1, False),
        (1, 1, True), (1, 2, False), (1, -1, True), (2, -1, True),
        (-1, -1, False), (-1, -2, True),
    ],
)  # fmt: skip
def test_signed_groups(group_a, group_b, may):
    builder = moving_spheres(ShapeConfig(collision_group=group_a), ShapeConfig(collision_group=group_b))
    assert touching(builder) == ({(0, 1)} if may else set())


@pytest.mark.parametrize(
    ("masks_a", "masks_b", "may"),
    [
        ((1, 0), (0, 1), True), ((0, 1), (1, 0), True), ((1, 1), (1, 1), True),
        ((1, 0), (1, 0), False), ((0, 1), (0, 1), False), ((2, 2), (1, 1), False), ((0, 0), (-1, -1), False),
        ((1 << 63, 0), (0, -1), True),
    ],
)  # fmt: skip
def test_masks_where_either_direction_is_enough(masks_a, masks_b, may):
    builder = moving_spheres(ShapeConfig(mask_either=masks_a), ShapeConfig(mask_either=masks_b))
    assert touching(builder) == ({(0, 1)} if may else set())


@pytest.mark.parametrize(
    ("masks_a", "masks_b", "may"),
    [
        ((1, 1), (1, 1), True), ((1, 2), (2, 1), True), ((1, -1), (2, -1), True),
        ((1, 0), (1, 1), False), ((1, 2), (2, 2), False), ((2, 2), (1, 1), False),
        ((1, None), (4, 1), True), ((None, None), (4, 2), False), ((None, None), (4, 3), True),
    ],
)  # fmt: skip
def test_masks_where_both_directions_are_needed(masks_a, masks_b, may):
    builder = moving_spheres(ShapeConfig(mask_both=masks_a), ShapeConfig(mask_both=masks_b))
    assert touching(builder) == ({(0, 1)} if may else set())


def test_a_static_shape_is_in_group_63_by_default_under_masks_both():
    builder = moving_spheres(ShapeConfig(mask_both=(1, 1)), ShapeConfig(mask_both=(1, 1 << 63)))
    builder.add_shape_sphere(-1, cfg=ShapeConfig(mask_both=(None, None)))
    assert touching(builder) == {(1, 2)}


def test_masks_rule_only_where_both_shapes_have_them():
    builder = moving_spheres(ShapeConfig(mask_either=(0, 0)), ShapeConfig(mask_both=(0, 0)), ShapeConfig())
    assert touching(builder) == {(0, 1), (0, 2), (1, 2)}


def test_usd_groups_need_every_combination_enabled():
    groups = ({"a"}, {"b"}, {"a", "c"}, {"c"}, None, set())
    builder = moving_spheres(*(ShapeConfig(usd_groups=held) for held in groups))
    builder.add_collision_group_filter("a", "b")
    builder.add_collision_group_filter("c", "c")
    builder.add_collision_group_filter("c", "nobody")
    everything = set(itertools.combinations(range(6), 2))
    assert touching(builder) == everything - {(0, 1), (1, 2), (2, 3)}
    assert rule(builder, 0, 1) == "collision groups 'a' and 'b'"
    assert rule(builder, 1, 2) == "collision groups 'b' and 'a'"
    assert rule(builder, 2, 3) == "collision groups 'c' and 'c'"


def test_disabled_shapes_say_why():
    builder = moving_spheres(
        ShapeConfig(),
        ShapeConfig(has_shape_collision=False),
        ShapeConfig(collision_group=0),
        ShapeConfig(disabled_rule="collisionEnabled = false"),
        ShapeConfig(),
    )
    assert touching(builder) == {(0, 4)}
    assert rule(builder, 0, 1) == "has_shape_collision = False"
    assert rule(builder, 0, 2) == "group 0"
    assert rule(builder, 0, 3) == "collisionEnabled = false"
    assert rule(builder, 2, 3) == "group 0 and collisionEnabled = false"


def test_shapes_of_one_body_do_not_touch():
    builder = ModelBuilder()
    first, second = builder.add_body(), builder.add_body()
    for body in (first, second, first):
        builder.add_shape_box(body)
    assert touching(builder) == {(0, 1), (1, 2)}
    assert rule(builder, 0, 2) == "same body"


def test_joined_bodies_do_not_touch_unless_the_joint_or_a_shape_says_so():
    builder = ModelBuilder()
    bodies = [builder.add_body(key=name) for name in "abcd"]
    for body in bodies:
        builder.add_shape_sphere(body)
    own_say = builder.add_shape_sphere(bodies[1], cfg=ShapeConfig(collision_filter_parent=False))
    builder.add_joint(bodies[0], bodies[1])
    builder.add_joint(bodies[2], bodies[1], collision_filter_parent=False)
    builder.add_joint(bodies[3], bodies[2])
    everything = set(itertools.combinations(range(5), 2))
    assert touching(builder) == everything - {(1, own_say), (0, 1), (2, 3)}
    assert rule(builder, 0, 1) == "joint between bodies 'a' and 'b'"
    assert rule(builder, 2, 3) == "joint between bodies 'd' and 'c'"


def test_a_joint_to_the_world_filters_static_shapes():
    builder = ModelBuilder()
    base, arm = builder.add_body(key="base"), builder.add_body(key="arm")
    builder.add_shape_sphere(base)
    builder.add_shape_sphere(arm)
    builder.add_ground_plane()
    builder.add_shape_box(-1, cfg=ShapeConfig(collision_filter_parent=False))
    builder.add_joint(-1, base)
    assert touching(builder) == {(0, 1), (0, 3), (1, 2), (1, 3)}
    assert rule(builder, 0, 2) == "joint between body 'base' and the world"


def test_articulation_self_collision():
    builder = moving_spheres(*[ShapeConfig()] * 5)
    builder.add_articulation([0, 1], self_collision=False)
    builder.add_articulation([2, 3], self_collision=False)
    assert touching(builder) == set(itertools.combinations(range(5), 2)) - {(0, 1), (2, 3)}
    assert rule(builder, 2, 3) == "self-collision of the articulation is off"


def test_an_articulation_collides_with_itself_unless_told_not_to():
    builder = moving_spheres(ShapeConfig(), ShapeConfig())
    builder.add_articulation([0, 1])
    assert touching(builder) == {(0, 1)}


def test_filtered_pairs_name_their_rule():
    builder = moving_spheres(*[ShapeConfig()] * 3)
    builder.add_shape_collision_filter_pair(2, 0, rule="exclude 'hand'")
    builder.add_shape_collision_filter_pair(0, 2, rule="said again")
    assert touching(builder) == {(0, 1), (1, 2)}
    assert rule(builder, 0, 2) == "exclude 'hand'"


def test_static_shapes_touch_only_when_asked_for():
    builder = moving_spheres(ShapeConfig())
    builder.add_shape_box(-1)
    builder.add_shape_box(-1)
    assert touching(builder) == {(0, 1), (0, 2)}
    assert rule(builder, 1, 2) == "static pair"
    assert touching(builder, static_pairs=True) == {(0, 1), (0, 2), (1, 2)}


def test_planes_never_touch_each_other():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_plane(builder.add_body())
    builder.add_shape_sphere(builder.add_body())
    assert touching(builder, static_pairs=True) == {(0, 2), (1, 2)}
    assert rule(builder, 0, 1) == "plane pair"


def test_a_forced_pair_wins_over_every_rule():
    builder = ModelBuilder()
    body = builder.add_body()
    builder.add_shape_sphere(body, cfg=ShapeConfig(mask_either=(0, 0)))
    builder.add_shape_sphere(body, cfg=ShapeConfig(mask_either=(0, 0), collision_group=0))
    builder.add_shape_box(-1)
    builder.add_shape_box(-1)
    builder.add_shape_collision_filter_pair(0, 1)
    builder.add_shape_forced_pair(1, 0, gap=0.25)
    builder.add_shape_forced_pair(2, 3, margin=0.5)
    assert touching(builder) == {(0, 1), (0, 2), (0, 3), (2, 3)}
    assert rule(builder, 0, 1) == "forced pair"
    model = builder.finalize()
    np.testing.assert_array_equal(model.pair_filter.forced, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(model.forced_gap, [0.25, np.nan])
    np.testing.assert_array_equal(model.forced_margin, [np.nan, 0.5])


def test_what_the_classes_forbid_is_not_listed_again():
    builder = moving_spheres(ShapeConfig(collision_group=1), ShapeConfig(collision_group=2), ShapeConfig())
    builder.add_shape_collision_filter_pair(0, 1)
    builder.add_shape_collision_filter_pair(0, 2)
    np.testing.assert_array_equal(builder.finalize().pair_filter.excluded, [[0, 2]])
    assert rule(builder, 0, 1) == "signed groups 1 and 2"


def test_masks_are_named_in_the_order_of_the_shapes():
    builder = moving_spheres(
        ShapeConfig(mask_either=(1, 0)), ShapeConfig(mask_either=(2, 16)), ShapeConfig(mask_both=(1, 1))
    )
    builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(mask_both=(2, 2)))
    assert rule(builder, 1, 0) == "contype and conaffinity (0x1, 0x0) and (0x2, 0x10)"
    assert rule(builder, 2, 3) == "collision group and mask (0x1, 0x1) and (0x2, 0x2)"
    assert rule(builder, 0, 3) == "no rule forbids it"


def test_a_body_of_many_shapes_costs_no_list_of_pairs():
    builder = ModelBuilder()
    many, other, few = (builder.add_body(key=name) for name in ("many", "other", "few"))
    for body, count in ((many, 100), (other, 100), (few, 2)):
        for _ in range(count):
            builder.add_shape_sphere(body)
    builder.add_joint(many, other)
    builder.add_joint(few, many)
    model = builder.finalize()
    # Only the joint of `few`, 2 x 100, and its one pair of its own.
    assert len(model.pair_filter.excluded) == 201
    assert {tuple(pair) for pair in allowed_pairs(model, 0).tolist()} == set(
        itertools.product(range(100, 200), (200, 201))
    )
    assert explain(model, 0, 99).rule == "same body"
    assert explain(model, 0, 100).rule == "joint between bodies 'many' and 'other'"
    assert explain(model, 0, 200).rule == "joint between bodies 'few' and 'many'"
