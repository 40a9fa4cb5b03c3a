"""What the builder refuses, and that it says where."""

import math

import pytest

from collidecli.errors import InputError
from collidecli.scene import filters
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import explain
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType

UNIT = (0, 0, 0, 1)


@pytest.fixture
def builder() -> ModelBuilder:
    """Two bodies with a sphere each, then a world with one more."""
    made = ModelBuilder()
    for _ in range(2):
        made.add_shape_sphere(made.add_body())
    made.begin_world()
    made.add_shape_sphere(made.add_body())
    made.end_world()
    made.begin_world()
    made.add_shape_sphere(made.add_body())
    made.end_world()
    return made


@pytest.mark.parametrize(
    ("xform", "what"),
    [
        ((0, 0, 0), "shape"),
        ((0, 0, math.nan, *UNIT), "not finite"),
        ((0, math.inf, 0, *UNIT), "not finite"),
        ((0, 0, 0, 0, 0, 0, 0), "norm 0"),
        ((0, 0, 0, 0, 0, 0, 1.01), "norm 1.01"),
    ],
)
def test_poses(builder, xform, what):
    with pytest.raises(InputError, match=what) as error:
        builder.add_body(xform=xform, key="cart")
    assert "body 'cart'" in str(error.value)
    with pytest.raises(InputError, match=what):
        builder.add_shape_sphere(0, xform=xform)


@pytest.mark.parametrize(
    ("shape_type", "size"),
    [
        (ShapeType.SPHERE, (0.0,)), (ShapeType.SPHERE, (-1.0,)), (ShapeType.SPHERE, (math.nan,)),
        (ShapeType.BOX, (1.0, 1.0)), (ShapeType.SPHERE, (1.0, 2.0)), (ShapeType.CAPSULE, (1.0, -1.0)),
        (ShapeType.PLANE, (1.0,)),
    ],
)  # fmt: skip
def test_sizes(builder, shape_type, size):
    with pytest.raises(InputError, match="size") as error:
        builder.add_shape(0, shape_type, size, key="lamp")
    assert "shape 'lamp'" in str(error.value)


@pytest.mark.parametrize(
    "cfg",
    [
        ShapeConfig(margin=-0.1), ShapeConfig(gap=-0.1), ShapeConfig(friction=math.nan), ShapeConfig(gap=math.inf),
        ShapeConfig(collision_group=1.5), ShapeConfig(collision_group=True), ShapeConfig(collision_group=1 << 63),
        ShapeConfig(mask_either=(1, None)), ShapeConfig(mask_either=(1,)), ShapeConfig(mask_either=3),
        ShapeConfig(mask_both=(1 << 64, 1)), ShapeConfig(usd_groups="group"),
    ],
)  # fmt: skip
def test_configs(builder, cfg):
    with pytest.raises(InputError) as error:
        builder.add_shape_sphere(0, cfg=cfg, key="lamp")
    assert "shape 'lamp'" in str(error.value)


@pytest.mark.parametrize("body", [-2, 4])
def test_bodies_that_are_not_there(builder, body):
    with pytest.raises(InputError, match="no body"):
        builder.add_shape_sphere(body)
    with pytest.raises(InputError, match="no body"):
        builder.add_joint(0, body)
    with pytest.raises(InputError, match="no body"):
        builder.add_articulation([0, body])


def test_joints_and_articulations_that_cannot_be(builder):
    with pytest.raises(InputError, match="itself"):
        builder.add_joint(1, 1)
    with pytest.raises(InputError, match="different worlds"):
        builder.add_joint(2, 3)
    with pytest.raises(InputError, match="several worlds"):
        builder.add_articulation([2, 3])
    builder.add_articulation([0])
    with pytest.raises(InputError, match="another articulation"):
        builder.add_articulation([0, 1])


@pytest.mark.parametrize("add", ["add_shape_collision_filter_pair", "add_shape_forced_pair"])
def test_pairs_that_cannot_be(builder, add):
    with pytest.raises(InputError, match="one shape"):
        getattr(builder, add)(1, 1)
    with pytest.raises(InputError, match="no shape 4"):
        getattr(builder, add)(1, 4)
    with pytest.raises(InputError, match="no shape -1"):
        getattr(builder, add)(-1, 1)


def test_forced_pairs_that_cannot_be(builder):
    with pytest.raises(InputError, match="different worlds"):
        builder.add_shape_forced_pair(2, 3)
    with pytest.raises(InputError, match="margin is -1"):
        builder.add_shape_forced_pair(0, 1, margin=-1.0)
    planes = builder.add_shape_plane(-1), builder.add_shape_plane(0)
    with pytest.raises(InputError, match="two planes"):
        builder.add_shape_forced_pair(*planes)
    builder.add_shape_forced_pair(0, 1, gap=0.1)
    builder.add_shape_forced_pair(1, 0, gap=0.1)
    assert len(builder.finalize().forced_gap) == 1
    builder.add_shape_forced_pair(0, 1, gap=0.2)
    with pytest.raises(InputError, match="forced twice"):
        builder.finalize()


def test_worlds_left_open_or_nested(builder):
    with pytest.raises(InputError, match="no world is open"):
        builder.end_world()
    builder.begin_world()
    for call in (builder.begin_world, builder.finalize, lambda: builder.add_world(ModelBuilder())):
        with pytest.raises(InputError, match="still open"):
            call()
    with pytest.raises(InputError, match="another world"):
        builder.add_shape_sphere(2)


def test_added_worlds_that_cannot_be(builder):
    other = ModelBuilder()
    other.add_body()
    with pytest.raises(InputError, match="worlds of its own"):
        builder.add_world(builder)
    with pytest.raises(InputError, match="worlds of its own"):
        ModelBuilder().add_world(builder)
    with pytest.raises(InputError, match="xform moves"):
        builder.add_world(other, xform=(1, 0, 0, *UNIT))
    with pytest.raises(InputError, match="count is 0"):
        builder.add_world(other, count=0)
    other.gap_rule = "sum"
    with pytest.raises(InputError, match="gap_rule is 'sum'"):
        builder.add_world(other)


def test_a_replica_is_not_added_to(builder):
    other = ModelBuilder()
    other.add_body()
    world = builder.add_world(other)
    with pytest.raises(InputError, match="copy of another builder"):
        builder.add_body(world=world)
    with pytest.raises(InputError, match="copy of another builder"):
        builder.add_shape_sphere(builder.body_count - 1)
    with pytest.raises(InputError, match="no world 3"):
        builder.add_body(world=3)


def test_names_that_are_not_unique(builder):
    builder.add_body(key="cart")
    builder.add_body(key="cart", world=0)
    with pytest.raises(InputError, match="two body names of one world are 'cart'"):
        builder.finalize()
    with pytest.raises(InputError, match="key is ''"):
        builder.add_body(key="")
    twice = ModelBuilder()
    for _ in range(2):
        twice.add_ground_plane()
    with pytest.raises(InputError, match="two shape names of one world are 'ground_plane'"):
        twice.finalize()


@pytest.mark.parametrize(
    ("name", "value"), [("gap_rule", "min"), ("up_axis", "z"), ("default_gap", -0.1), ("default_gap", math.nan)]
)
def test_options_that_are_not_known(builder, name, value):
    setattr(builder, name, value)
    with pytest.raises(InputError, match=name):
        builder.finalize()


def test_world_counts(builder):
    assert builder.finalize(world_count=2).world_count == 2
    with pytest.raises(InputError, match="world_count is 3"):
        builder.finalize(world_count=3)
    with pytest.raises(InputError, match="world_count is 0"):
        ModelBuilder().finalize(world_count=0)


def test_too_many_classes(monkeypatch):
    monkeypatch.setattr(filters, "MAX_CLASSES", 3)
    builder = ModelBuilder()
    for group in range(1, 5):
        builder.add_shape_sphere(-1, cfg=ShapeConfig(collision_group=group))
    with pytest.raises(InputError, match="4 different combinations"):
        builder.finalize()


def test_explain_refuses_unknown_and_equal_shapes(builder):
    model = builder.finalize()
    with pytest.raises(InputError, match="no shape 4"):
        explain(model, 0, 4)
    with pytest.raises(InputError, match="both shapes are shape 1"):
        explain(model, 1, 1)


TRIANGLE = ([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)])


@pytest.mark.parametrize("wrong", ["x", {}, 1.5, [1], [[1], [1, 2]], object(), math])
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda b, x: b.add_body(xform=x), "pose"),
        (lambda b, x: b.add_body(key=x if x != "x" else ""), "key"),
        (lambda b, x: b.add_body(world=x), "world"),
        (lambda b, x: b.add_shape_sphere(x), "body"),
        (lambda b, x: b.add_shape_sphere(0, xform=x), "pose"),
        (lambda b, x: b.add_shape_sphere(0, cfg=x), "cfg"),
        (lambda b, x: b.add_shape_mesh(0, *TRIANGLE, cfg=x), "cfg"),
        (lambda b, x: b.add_shape_mesh(0, *TRIANGLE, two_sided=x), "two_sided"),
        (lambda b, x: b.add_shape_mesh(0, x, TRIANGLE[1]), "vertices"),
        (lambda b, x: b.add_shape_convex_hull(0, x), "points"),
        (lambda b, x: b.add_shape_heightfield(0, [[0, 0], [0, 0]], base=x if x != 1.5 else -x), "base"),
        (lambda b, x: b.add_shape(0, x), "type"),
        (lambda b, x: b.add_shape(0, ShapeType.BOX, x), "size"),
        (lambda b, x: b.add_shape_sphere(0, radius=x if x != 1.5 else -x), "size"),
        (lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(friction=x if x != 1.5 else -x)), "friction"),
        (lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(collision_group=x)), "collision_group"),
        (lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(has_shape_collision=x)), "has_shape_collision"),
        (lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(usd_groups=x)), "usd_groups"),
        (lambda b, x: b.add_joint(0, x), "body"),
        (lambda b, x: b.add_joint(0, 1, collision_filter_parent=x), "collision_filter_parent"),
        (lambda b, x: b.add_articulation([x]), "body"),
        (lambda b, x: b.add_shape_forced_pair(0, 1, material=x), "material"),
        (lambda b, x: b.add_shape_collision_filter_pair(0, x), "shape"),
        (lambda b, x: b.add_collision_group_filter("a", x if x != "x" else 3), "group_b"),
        (lambda b, x: b.add_world(x), "other"),
        (lambda b, x: b.add_world(ModelBuilder(), count=x), "count"),
        (lambda b, x: b.finalize(world_count=x), "world_count"),
        (lambda b, x: b.finalize(static_pairs=x), "static_pairs"),
    ],
)  # fmt: skip
def test_values_of_another_kind(builder, call, argument, wrong):
    """The message names the argument and its value; nothing of the builder has changed."""
    before = builder.body_count, builder.shape_count, builder.world_count
    with pytest.raises(InputError, match=argument):
        call(builder, wrong)
    assert (builder.body_count, builder.shape_count, builder.world_count) == before
    builder.finalize()


def test_an_up_axis_that_is_none(builder):
    builder.up_axis = "z"
    with pytest.raises(InputError, match="up_axis is 'z'"):
        builder.add_ground_plane()
