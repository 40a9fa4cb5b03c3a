"""Scenes built in Python: shapes, placement, and what is refused."""

import inspect
import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.engine.device_model import bounding_radius, size_blocks
from collidecli.engine.geometry.primitives import core_is_curved, core_is_flat
from collidecli.engine.narrowphase.collider_factory import lowest_point_collider
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.pages.view.meshes import shape_groups
from collidecli.python import distances
from collidecli.scene import filter_lowering, solids
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import Z_TO_UP, ModelBuilder
from collidecli.scene.pair_verdicts import explain
from collidecli.scene.poses import IDENTITY_POSE, shift_between
from collidecli.scene.sdf_options import facets
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import SHAPE_FORMS, SIZE_COUNT, ShapeType
from collidecli.scene.solids import SOLIDS, half_extents, has_support
from tests.support.pair_runner import launch_collider

IDENTITY = [0, 0, 0, 0, 0, 0, 1]


def add_balls(
    builder: ModelBuilder, *configs: ShapeConfig | None, is_world: bool = False
) -> ModelBuilder:
    """A sphere on a body of its own for each config; is_world: in a world of their own."""
    if is_world:
        builder.begin_world()
    for cfg in configs:
        builder.add_shape_sphere(builder.add_body(), cfg=cfg)
    if is_world:
        builder.end_world()
    return builder


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
    assert (model.bodies.path, model.shapes.body.tolist()) == (("base", "arm", "ball"), [0, 1, 2])
    assert robot().finalize(world_count=5).world_template.tolist() == [0] * 5


def test_an_empty_scene_is_a_model_of_nothing():
    model = ModelBuilder().finalize()
    assert (len(model.shapes), len(model.bodies), model.world_count) == (0, 0, 1)
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
    builder.add_shape_convex_hull(
        body, [[14, 0, 0], [-14, 0, 0], [0, 15, 1], [0, -15, 1], [0, 0, 31]]
    )
    builder.add_shape_mesh(
        body, np.array([[0, 0, 0], [32, 0, 0], [0, 34, 0]]), np.array([[0, 1, 2]])
    )
    builder.add_shape_heightfield(body, np.array([[1, 2, 3], [4, 5, 6]]), hx=18, hy=19, base=35)
    shapes = builder.finalize().shapes
    assert shapes.types() == list(ShapeType)
    sizes = [
        [0, 0, 0],
        [1, 0, 0],
        [2, 3, 0],
        [4, 5, 6],
        [7, 8, 0],
        [9, 10, 0],
        [11, 12, 13],
        [14, 15, 15.5],
    ]
    np.testing.assert_allclose(
        shapes.size, [*sizes, [16, 17, 0], [18, 19, 20]], rtol=0, atol=1e-300
    )


def test_global_rows_come_first():
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


def test_only_replicas_of_an_unchanged_builder_share_a_template():
    builder = ModelBuilder()
    scene = robot()
    assert builder.add_world(scene, count=4094, xform=IDENTITY) == 0
    assert builder.add_world(scene) == 4094
    scene.add_shape_box(0)
    builder.add_world(scene)
    builder.add_world(robot())
    builder.add_world(scene)
    builder.add_ground_plane()
    model = builder.finalize()
    assert model.world_template.tolist() == [0] * 4095 + [1, 2, 1]
    assert model.shapes.path[:4] == ("ground_plane", "shape_0", "shape_1", "shape_2")
    assert [len(model.template_shapes(t)) for t in range(3)] == [4, 5, 4]
    assert allowed_pairs(model, 0).tolist() == [[0, 1], [0, 2], [0, 3], [1, 3], [2, 3]]


def test_an_added_world_keeps_its_rules():
    scene = ModelBuilder()
    scene.default_gap = 0.02
    scene.source.append("robot.xml")
    add_balls(scene, *[ShapeConfig(usd_groups={"g"})] * 2, *[None] * 4)
    scene.add_collision_group_filter("g", "g")
    scene.add_joint(1, 2)
    scene.add_articulation([3, 4], self_collision=False)
    scene.add_shape_collision_filter_pair(4, 5)
    scene.add_shape_forced_pair(0, 1, gap=0.5)
    scene.add_shape_collision_filter_pair(0, 5, rule="mine")
    alone = scene.finalize()

    builder = add_balls(ModelBuilder(), ShapeConfig(gap=0.3), None)
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
    cfg = ShapeConfig(usd_groups={"g"})
    strict, loose = (add_balls(ModelBuilder(), cfg, cfg) for _ in range(2))
    strict.add_collision_group_filter("g", "g")
    builder = add_balls(ModelBuilder(), cfg)
    builder.add_world(strict)
    builder.add_world(loose)
    model = builder.finalize()
    assert allowed_pairs(model, 0).tolist() == [[0, 1], [0, 2]]
    assert allowed_pairs(model, 1).tolist() == [[0, 3], [0, 4], [3, 4]]


def test_templates_alike_share_their_filter_classes():
    builder = add_balls(ModelBuilder(), None, None)
    for _ in range(50):
        add_balls(builder, None, None, is_world=True)
    for first in range(0, builder.body_count, 2):
        builder.add_articulation([first, first + 1], self_collision=False)
    model = builder.finalize()
    assert len(model.pair_filter.classes) == 2
    assert model.pair_filter.class_table.tolist() == [[False, True], [True, False]]
    assert allowed_pairs(model, 0).tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_names_are_made_up_where_none_is_given():
    builder = ModelBuilder()
    builder.begin_world()
    body = builder.add_body(key="body_0")
    builder.add_body()
    for key in (None, "shape_2", None):
        builder.add_shape_sphere(body, key=key)
    builder.end_world()
    add_balls(builder, None, is_world=True).add_shape_sphere(-1)
    model = builder.finalize()
    assert model.shapes.path == ("shape_0", "shape_1", "shape_2", "shape_3", "shape_1")
    assert model.bodies.path == ("body_0", "body_1", "body_0")


def test_quaternions_are_normalized():
    builder = ModelBuilder()
    builder.add_body(xform=[1, 2, 3, 0, 0, 0, 1.0005])
    np.testing.assert_array_equal(builder.finalize().bodies.pose, [[1, 2, 3, 0, 0, 0, 1]])


def test_what_a_config_lacks_comes_from_the_builder():
    builder = ModelBuilder()
    builder.default_shape_cfg = ShapeConfig(margin=0.01, friction=0.9)
    body = builder.add_body()
    builder.add_shape_sphere(body)
    builder.add_shape_sphere(body, cfg=ShapeConfig(gap=0.0))
    builder.default_gap = 0.05
    builder.default_shape_cfg.margin = 7.0
    model = builder.finalize()
    columns = [
        values.tolist() for values in (model.shapes.margin, model.shapes.gap, model.shapes.friction)
    ]
    assert columns == [[0.01, 0.0], [0.05, 0.0], [0.9, 0.5]]


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


def test_a_model_is_frozen_but_its_builder_is_not():
    builder = robot()
    builder.add_shape_forced_pair(0, 2)
    model = builder.finalize()
    arrays = (
        model.world_template,
        model.forced_gap,
        model.bodies.pose,
        model.shapes.size,
        model.shapes.template,
    )
    pairs = model.pair_filter
    assert not any(
        array.flags.writeable
        for array in (*arrays, pairs.class_table, pairs.excluded, pairs.forced)
    )
    builder.add_shape_sphere(builder.add_body())
    assert (len(builder.finalize().shapes), len(model.shapes)) == (4, 3)


def test_filtered_pairs_that_no_world_holds_are_not_listed():
    builder = ModelBuilder()
    for _ in range(2):
        builder.add_world(robot())
    builder.add_shape_collision_filter_pair(0, 5)
    builder.add_shape_collision_filter_pair(0, 2)
    assert builder.finalize().pair_filter.excluded.tolist() == [[0, 1], [0, 2], [3, 4]]


def test_pairs_of_more_shapes_than_a_block_are_listed():
    count = 600
    builder = add_balls(
        ModelBuilder(), *(ShapeConfig(collision_group=1 + k % 3) for k in range(count))
    )
    builder.add_shape_forced_pair(0, 599)
    builder.add_shape_collision_filter_pair(597, 300)
    i, j = np.triu_indices(count, 1)
    may = ((i % 3 == j % 3) & ~((i == 300) & (j == 597))) | ((i == 0) & (j == 599))
    pairs = allowed_pairs(builder.finalize(), 0)
    assert pairs.dtype == np.int32
    np.testing.assert_array_equal(pairs, np.column_stack([i[may], j[may]]))


UNIT = (0, 0, 0, 1)


@pytest.fixture
def builder() -> ModelBuilder:
    """Two bodies with a sphere each, then a world with one more."""
    made = add_balls(ModelBuilder(), None, None)
    return add_balls(add_balls(made, None, is_world=True), None, is_world=True)


POSES = {
    (0, 0, 0): "shape",
    (0, 0, math.nan, *UNIT): "not finite",
    (0, math.inf, 0, *UNIT): "not finite",
    (0, 0, 0, 0, 0, 0, 0): "norm 0",
    (0, 0, 0, 0, 0, 0, 1.01): "norm 1.01",
}
SIZES = [
    *((ShapeType.SPHERE, size) for size in ((0.0,), (-1.0,), (math.nan,), (1.0, 2.0))),
    *((ShapeType.BOX, (1.0, 1.0)), (ShapeType.CAPSULE, (1.0, -1.0)), (ShapeType.PLANE, (1.0,))),
]
CONFIGS = [
    *({"margin": -0.1}, {"gap": -0.1}, {"friction": math.nan}, {"gap": math.inf}),
    *({"collision_group": group} for group in (1.5, True, 1 << 63)),
    *({"mask_either": mask} for mask in ((1, None), (1,), 3)),
    *({"mask_both": (1 << 64, 1)}, {"usd_groups": "group"}),
]


@pytest.mark.parametrize(
    ("call", "what"),
    [
        *(
            (lambda b, x=xform: b.add_body(xform=x, key="lamp"), what)
            for xform, what in POSES.items()
        ),
        *(
            (lambda b, x=xform: b.add_shape_sphere(0, xform=x, key="lamp"), what)
            for xform, what in POSES.items()
        ),
        *((lambda b, x=shape: b.add_shape(0, *x, key="lamp"), "size") for shape in SIZES),
        *(
            (
                lambda b, x=cfg: b.add_shape_sphere(0, cfg=ShapeConfig(**x), key="lamp"),
                next(iter(cfg)),
            )
            for cfg in CONFIGS
        ),
    ],
)
def test_refusals_name_the_body_or_shape(builder, call, what):
    with pytest.raises(InputError, match=rf"(body|shape) 'lamp'(.|\n)*{what}"):
        call(builder)


OTHER = ModelBuilder()
OTHER.add_body()
ADDED = ModelBuilder()
ADDED.gap_rule = "sum"


@pytest.mark.parametrize(
    ("call", "what"),
    [
        *((lambda b, body=body: b.add_shape_sphere(body), "no body") for body in (-2, 4)),
        *((lambda b, body=body: b.add_joint(0, body), "no body") for body in (-2, 4)),
        *((lambda b, body=body: b.add_articulation([0, body]), "no body") for body in (-2, 4)),
        (lambda b: b.add_joint(1, 1), "itself"),
        (lambda b: b.add_joint(2, 3), "different worlds"),
        (lambda b: b.add_articulation([2, 3]), "several worlds"),
        (lambda b: (b.add_articulation([0]), b.add_articulation([0, 1])), "another articulation"),
        (lambda b: b.add_shape_collision_filter_pair(1, 1), "one shape"),
        (lambda b: b.add_shape_collision_filter_pair(1, 4), "no shape 4"),
        (lambda b: b.add_shape_collision_filter_pair(-1, 1), "no shape -1"),
        (lambda b: b.add_shape_forced_pair(1, 1), "one shape"),
        (lambda b: b.add_shape_forced_pair(1, 4), "no shape 4"),
        (lambda b: b.add_shape_forced_pair(-1, 1), "no shape -1"),
        (lambda b: b.add_shape_forced_pair(2, 3), "different worlds"),
        (lambda b: b.add_shape_forced_pair(0, 1, margin=-1.0), "margin is -1"),
        (
            lambda b: b.add_shape_forced_pair(b.add_shape_plane(-1), b.add_shape_plane(0)),
            "two planes",
        ),
        (lambda b: b.end_world(), "no world is open"),
        (lambda b: (b.begin_world(), b.begin_world()), "still open"),
        (lambda b: (b.begin_world(), b.finalize()), "still open"),
        (lambda b: (b.begin_world(), b.add_world(OTHER)), "still open"),
        (lambda b: (b.begin_world(), b.add_shape_sphere(2)), "another world"),
        (lambda b: b.add_world(b), "worlds of its own"),
        (lambda b: ModelBuilder().add_world(b), "worlds of its own"),
        (lambda b: b.add_world(OTHER, xform=(1, 0, 0, *UNIT)), "xform moves"),
        (lambda b: b.add_world(OTHER, count=0), "count is 0"),
        (lambda b: b.add_world(ADDED), "gap_rule is 'sum'"),
        (lambda b: b.add_body(world=b.add_world(OTHER)), "copy of another builder"),
        (
            lambda b: (b.add_world(OTHER), b.add_shape_sphere(b.body_count - 1)),
            "copy of another builder",
        ),
        (lambda b: b.add_body(world=2), "no world 2"),
        (lambda b: b.finalize(world_count=3), "world_count is 3"),
        (lambda b: ModelBuilder().finalize(world_count=0), "world_count is 0"),
        (lambda b: explain(b.finalize(), 0, 4), "no shape 4"),
        (lambda b: explain(b.finalize(), 1, 1), "both shapes are shape 1"),
        (lambda b: b.add_body(key=""), "key is ''"),
    ],
)
def test_what_a_scene_cannot_have(builder, call, what):
    with pytest.raises(InputError, match=what):
        call(builder)


def test_a_pair_is_forced_once(builder):
    builder.add_shape_forced_pair(0, 1, gap=0.1)
    builder.add_shape_forced_pair(1, 0, gap=0.1)
    assert len(builder.finalize().forced_gap) == 1
    builder.add_shape_forced_pair(0, 1, gap=0.2)
    with pytest.raises(InputError, match="forced twice"):
        builder.finalize()


def test_names_of_one_world_are_unique():
    cart = ModelBuilder()
    twice = ModelBuilder()
    cart.begin_world()
    cart.end_world()
    cart.add_body(key="cart")
    cart.add_body(key="cart", world=0)
    for _ in range(2):
        twice.add_ground_plane()
    for wrong, what in (
        (cart, "two body names of one world are 'cart'"),
        (twice, "two shape names of one world are 'ground_plane'"),
    ):
        with pytest.raises(InputError, match=what):
            wrong.finalize()


@pytest.mark.parametrize(
    ("name", "value"),
    [("gap_rule", "min"), ("up_axis", "z"), ("default_gap", -0.1), ("default_gap", math.nan)],
)
def test_options_that_are_not_known(builder, name, value):
    assert builder.finalize(world_count=2).world_count == 2
    setattr(builder, name, value)
    for call in (builder.finalize, builder.add_ground_plane)[: 2 if name == "up_axis" else 1]:
        with pytest.raises(InputError, match=f"{name} is "):
            call()


def test_too_many_classes(monkeypatch):
    monkeypatch.setattr(filter_lowering, "MAX_CLASSES", 3)
    builder = ModelBuilder()
    for group in range(1, 5):
        builder.add_shape_sphere(-1, cfg=ShapeConfig(collision_group=group))
    with pytest.raises(InputError, match="4 different combinations"):
        builder.finalize()


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
        (
            lambda b, x: b.add_shape_heightfield(0, [[0, 0], [0, 0]], base=x if x != 1.5 else -x),
            "base",
        ),
        (lambda b, x: b.add_shape(0, x), "type"),
        (lambda b, x: b.add_shape(0, ShapeType.BOX, x), "size"),
        (lambda b, x: b.add_shape_sphere(0, radius=x if x != 1.5 else -x), "size"),
        (
            lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(friction=x if x != 1.5 else -x)),
            "friction",
        ),
        (lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(collision_group=x)), "collision_group"),
        (
            lambda b, x: b.add_shape_sphere(0, cfg=ShapeConfig(has_shape_collision=x)),
            "has_shape_collision",
        ),
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
)
def test_values_of_another_kind(builder, call, argument, wrong):
    """The message names the argument and its value; nothing of the builder has changed."""
    before = builder.body_count, builder.shape_count, builder.world_count
    with pytest.raises(InputError, match=argument):
        call(builder, wrong)
    assert (builder.body_count, builder.shape_count, builder.world_count) == before
    builder.finalize()


TURN = Rotation.from_euler("xyz", (0.3, -0.2, 1.1))
ORIGINS = [
    (0.25, -0.5, 0.0, 0.0, 0.0, 0.0, 1.0),
    (4.5, 2.0, 0.125, 0.0, 0.0, 0.0, 1.0),
    (-3.0, 7.0, 0.05, *TURN.as_quat()),
]
HALF = 0.5**0.5
BODY = (0.1, 0.2, 0.45, 0.0, 0.0, HALF, HALF)
SHELF = (0.1, 0.9, 0.4, 0.0, 0.0, 0.0, 1.0)


def in_frame(origin, local) -> list[float]:
    """`local`, given in the frame of `origin`, in world: by SciPy, not by the code under test."""
    turn = Rotation.from_quat(origin[3:])
    return [
        *(turn.apply(local[:3]) + origin[:3]),
        *(turn * Rotation.from_quat(local[3:])).as_quat(),
    ]


def add_contents(builder: ModelBuilder, origin) -> None:
    body = builder.add_body(in_frame(origin, BODY), key="robot")
    builder.add_shape_box(body, hx=0.4, hy=0.5, hz=0.5, key="box")
    builder.add_shape_capsule(
        body, xform=(0.0, 0.0, 0.8, 0, 0, 0, 1), radius=0.2, half_height=0.3, key="head"
    )
    builder.add_shape_box(-1, in_frame(origin, SHELF), hx=0.3, hy=0.3, hz=0.3, key="shelf")


def globals_of(builder: ModelBuilder) -> None:
    builder.add_ground_plane()
    builder.add_shape_box(-1, (5.2, 2.0, 0.5, 0, 0, 0, 1), hx=0.5, hy=0.5, hz=0.5, key="wall")


def shared_model():
    builder = ModelBuilder()
    globals_of(builder)
    world = builder.begin_world("env_0", ORIGINS[0])
    add_contents(builder, ORIGINS[0])
    builder.end_world()
    for k, origin in enumerate(ORIGINS[1:], 1):
        builder.repeat_world(world, f"env_{k}", origin)
    return builder.finalize()


def alone_model(origin):
    builder = ModelBuilder()
    globals_of(builder)
    add_contents(builder, origin)
    return builder.finalize()


def check_same(ours, theirs, names: str, error: float = 0.0) -> None:
    for name in names.split():
        np.testing.assert_allclose(
            getattr(ours, name), getattr(theirs, name), rtol=0.0, atol=error, err_msg=name
        )


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
def test_contacts_are_those_of_each_world_alone(broad_phase):
    model = shared_model()
    together = collidecli.collide(model, broad_phase=broad_phase, device="cpu")
    found = []
    for world, origin in enumerate(ORIGINS):
        ours = together.cell(0, world)
        alone = collidecli.collide(alone_model(origin), device="cpu")
        found.append(ours.rigid_contact_count)
        check_same(ours, alone, "shape0 shape1 feature0 feature1 kind")
        # 1e-12: a pose in metres is composed in float64; the other columns are float32.
        check_same(ours, alone, "point0 point1", 1e-12)
        check_same(ours, alone, "distance normal offset0 offset1", 1e-6)
    assert len(model.shapes) == 5
    assert min(found) > 0
    assert found[1] > found[0], "the wall stands beside the second world alone"


def test_the_static_shapes_of_a_world_do_not_meet_those_outside():
    """The shelf of the second world is near the wall: both are static there too."""
    pairs = collidecli.collide(shared_model(), gap=10.0, device="cpu")
    model = shared_model()
    static = model.shapes.body == -1
    assert not (static[pairs.shape0] & static[pairs.shape1]).any()


def test_resting_poses_stand_in_each_world():
    model = shared_model()
    expected = [in_frame(origin, BODY) for origin in ORIGINS]
    np.testing.assert_allclose(model.resting_poses()[:, 0], expected, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(model.world_pose, ORIGINS, rtol=0.0, atol=1e-15)
    assert model.world_path == ("env_0", "env_1", "env_2")


def test_a_global_body_stays_where_it_is():
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body((1, 2, 3, 0, 0, 0, 1), key="lamp"))
    world = builder.begin_world("a", ORIGINS[0])
    builder.add_shape_sphere(builder.add_body(ORIGINS[0], key="ball"))
    builder.end_world()
    builder.repeat_world(world, "b", ORIGINS[2])
    poses = builder.finalize().resting_poses()
    np.testing.assert_array_equal(poses[0, 0], poses[1, 0])
    np.testing.assert_allclose(poses[1, 1], ORIGINS[2], rtol=0.0, atol=1e-15)


def test_things_can_be_added_to_a_world_that_was_ended():
    builder = ModelBuilder()
    first = builder.begin_world("a")
    builder.end_world()
    builder.begin_world("b")
    builder.end_world()
    with builder.in_world(first):
        builder.add_shape_sphere(builder.add_body())
    with builder.in_world(-1):
        builder.add_ground_plane()
    np.testing.assert_array_equal(builder.finalize().shapes.template, [-1, 0])
    with pytest.raises(InputError, match="there is no world 2"), builder.in_world(2):
        pass


def test_nothing_changes_where_all_worlds_stand_alike():
    builder = ModelBuilder()
    world = builder.begin_world("a", ORIGINS[2])
    add_contents(builder, ORIGINS[2])
    builder.end_world()
    builder.repeat_world(world, "b", ORIGINS[2])
    model = builder.finalize()
    assert model.world_shift is None
    assert model.resting_poses().shape == (1, 1, 7)
    plain = alone_model(ORIGINS[0])
    assert plain.world_shift is None
    np.testing.assert_array_equal(plain.world_pose, [IDENTITY_POSE])


def test_a_shift_without_a_turn_is_exact():
    world_pose = np.array([(0.1, 0.2, 0.3, *TURN.as_quat()), (2.1, 0.2, 0.3, *TURN.as_quat())])
    shift = shift_between(world_pose, world_pose[[0, 0]])
    np.testing.assert_array_equal(shift, [IDENTITY_POSE, (2.1 - 0.1, 0, 0, 0, 0, 0, 1)])
    pose = np.array((1.5, 2.5, 3.5, *TURN.as_quat()))
    np.testing.assert_array_equal(compose_poses(shift[1], pose)[3:], pose[3:])


def test_an_inverse_takes_a_pose_back():
    pose = np.array((1.5, -2.5, 3.5, *TURN.as_quat()))
    np.testing.assert_allclose(
        compose_poses(inverse_poses(pose), pose), IDENTITY_POSE, rtol=0.0, atol=1e-15
    )


@pytest.mark.parametrize("broad_phase", ["nxn", "sap"])
def test_a_motion_of_one_world_moves_with_each_origin(broad_phase):
    """What the same poses give when they are spelt out for each world."""
    model = shared_model()
    rng = np.random.default_rng(7)
    poses = np.repeat(model.bodies.pose[None, None], 5, axis=0)
    poses[..., :3] += rng.uniform(-0.1, 0.1, (5, 1, 1, 3))
    spelt_out = model.moved_with_worlds(poses)
    assert spelt_out.shape == (5, 3, 1, 7)
    one = collidecli.collide(model, poses, broad_phase=broad_phase, device="cpu")
    each = collidecli.collide(model, spelt_out, broad_phase=broad_phase, device="cpu")
    assert one.rigid_contact_count > 0
    check_same(one, each, "cell_start shape0")
    # The products of poses are the kernel's here and NumPy's there: float64 rounding apart.
    check_same(one, each, "point0", 1e-13)
    check_same(one, each, "offset0 distance", 1e-6)


def test_forms_are_those_of_the_builder():
    """Names of sizes are parameters of the type's method, and kernels state the same cores."""
    assert list(SHAPE_FORMS) == list(ShapeType)
    for kind, form in SHAPE_FORMS.items():
        assert core_is_flat(int(kind)) == (form.core == "flat"), kind
        assert core_is_curved(int(kind)) == (form.core == "curved"), kind
        assert bool(form.core) == (has_support(np.array(kind)) and kind != ShapeType.PLANE), kind
        if kind in SOLIDS:
            method = getattr(ModelBuilder, f"add_shape_{kind.label}")
            given = list(inspect.signature(method).parameters)
            assert given[3 : 3 + len(form.sizes)] == list(form.sizes), kind
            assert given[3 + len(form.sizes)] == "cfg"


def test_sizes_after_the_third_follow_those_of_all_shapes_on_the_device():
    size = np.arange(8.0).reshape(2, 4)
    assert size_blocks(size).tolist() == [[0, 1, 2], [4, 5, 6], [3, 0, 0], [7, 0, 0]]
    np.testing.assert_array_equal(size_blocks(size[:, :3]), size[:, :3])


@pytest.mark.parametrize("kind", SOLIDS)
def test_what_is_stated_by_shape_type_is_of_one_solid(kind):
    """The checklist of CONTRIBUTING.md, "Add a shape type": names, sizes, bounds, support,
    triangles and drawing."""
    assert hasattr(ModelBuilder, f"add_shape_{distances.KINDS[kind]}")
    builder = ModelBuilder()
    builder.add_shape(builder.add_body(), kind, (0.4, 0.7, 0.5, 0.1)[: SIZE_COUNT[kind]])
    model = builder.finalize()
    turn = Rotation.random(300, np.random.default_rng(1))
    direction = -turn.as_matrix()[:, 2]  # down, in the frame of the turned shape
    size = np.tile(model.shapes.size, (len(direction), 1))
    height = solids.support_heights(np.full(len(direction), kind), size, direction)
    radius = bounding_radius(model.shapes.type, model.shapes.size)
    (group,) = shape_groups(model, 1)
    assert group.planes == (kind == ShapeType.PLANE) == np.isinf([*height, *radius]).all()
    if group.planes:
        return
    assert np.all(
        height <= np.minimum(radius[0], np.abs(direction) @ half_extents(kind, size[0])) + 1e-12
    )
    pose = np.concatenate([np.zeros((len(size), 3)), turn.as_quat()], axis=1)
    contacts = launch_collider(
        lowest_point_collider(False).kernel, 1, 0, np.zeros(3), int(kind), size[0], pose, 1.0
    )
    np.testing.assert_allclose(contacts.least(), -height, atol=1e-12)
    triangles = facets(kind, size[0])
    assert (triangles is None) == (kind in (ShapeType.SPHERE, ShapeType.CAPSULE))
    for vertex in (
        group.mesh.vertex * group.scale[0],
        *([] if triangles is None else [triangles.vertex]),
    ):
        np.testing.assert_allclose((direction @ vertex.T).max(axis=1), height, rtol=0.02)


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("mu", "set friction"),
        ("thickness", "set margin"),
        ("ke", "set contact_ke of the material"),
        ("collision_grup", "collision_group"),
    ],
)
def test_an_attribute_that_a_configuration_lacks_is_refused(name, fix):
    builder = ModelBuilder()
    setattr(builder.default_shape_cfg, name, 0.5)
    other = ShapeConfig()
    setattr(other, name, 0.5)
    for add in (
        lambda: builder.add_shape_sphere(builder.add_body()),
        lambda: builder.add_shape_sphere(builder.add_body(), cfg=other),
        lambda: builder.add_particles([[0.0, 0.0, 1.0]]),
        lambda: builder.default_shape_cfg.changed(margin=0.1),
    ):
        with pytest.raises(InputError, match=f"ShapeConfig has no attribute '{name}'") as refusal:
            add()
        assert fix in refusal.value.fix


@pytest.mark.parametrize("name", ["rigid_gap", "rigid_contact_margin"])
def test_newtons_name_of_the_default_gap_is_refused(name):
    builder = add_balls(ModelBuilder(), None)
    setattr(builder, name, 0.02)
    with pytest.raises(InputError, match=f"ModelBuilder has no attribute '{name}'") as refusal:
        builder.finalize()
    assert refusal.value.fix == "set default_gap"
    with pytest.raises(InputError, match=f"ModelBuilder has no attribute '{name}'"):
        ModelBuilder().add_world(builder)
