"""The lowered filter against every rule asked in plain Python, pair by pair, over random scenes."""

import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collidecli.scene import filters
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import allowed_pairs, explain
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType

GLOBAL = -1
BITS = st.integers(0, 7)


@dataclass
class Part:
    """A shape as drawn: its world (-1 all), its body's place in that world's list (-1 static), its config."""

    world: int
    body: int
    plane: bool
    cfg: ShapeConfig


@dataclass
class Scene:
    """bodies: their world. Joints and articulations name bodies, pairs name parts, all as drawn."""

    bodies: list[int]
    parts: list[Part]
    joints: list[tuple[int, int]] = field(default_factory=list)
    articulation: list[int] = field(default_factory=list)
    filtered: list[tuple[int, int]] = field(default_factory=list)
    forced: list[tuple[int, int]] = field(default_factory=list)
    usd_filtered: list[tuple[str, str]] = field(default_factory=list)
    static_pairs: bool = False


def meet(world_a: int, world_b: int) -> bool:
    return world_a == world_b or GLOBAL in (world_a, world_b)


@st.composite
def configs(draw):
    return ShapeConfig(
        collision_group=draw(st.sampled_from([1, 1, 1, 1, 2, -1, -2, 0])),
        collision_filter_parent=draw(st.booleans()),
        has_shape_collision=draw(st.sampled_from([True] * 9 + [False])),
        mask_either=draw(st.none() | st.none() | st.tuples(BITS, BITS)),
        mask_both=draw(st.none() | st.none() | st.tuples(BITS, BITS)),
        usd_groups=draw(st.none() | st.sets(st.sampled_from("gh"), max_size=2)),
    )


@st.composite
def scenes(draw):
    worlds = draw(st.sampled_from([[GLOBAL], [GLOBAL, 0, 1], [0, 1]]))
    bodies = draw(st.lists(st.sampled_from(worlds), max_size=5))
    parts = []
    for _ in range(draw(st.integers(2, 9))):
        body = draw(st.integers(-1, len(bodies) - 1))
        world = draw(st.sampled_from(worlds)) if body < 0 or bodies[body] == GLOBAL else bodies[body]
        parts.append(Part(world, body, draw(st.integers(0, 5)) == 0, draw(configs())))
    ends = [(a, b) for a, b in itertools.combinations(range(len(bodies)), 2) if meet(bodies[a], bodies[b])]
    ends += [(-1, b) for b in range(len(bodies))]
    couples = list(itertools.combinations(range(len(parts)), 2))
    forcible = [
        (a, b) for a, b in couples if meet(parts[a].world, parts[b].world) and not (parts[a].plane and parts[b].plane)
    ]
    home = draw(st.sampled_from(worlds))
    return Scene(
        bodies,
        parts,
        joints=draw(st.lists(st.sampled_from(ends), max_size=4)) if ends else [],
        articulation=[b for b in range(len(bodies)) if bodies[b] == home and draw(st.booleans())],
        filtered=draw(st.lists(st.sampled_from(couples), max_size=3)),
        forced=draw(st.lists(st.sampled_from(forcible), max_size=2)) if forcible else [],
        usd_filtered=draw(st.lists(st.tuples(st.sampled_from("gh"), st.sampled_from("gh")), max_size=2)),
        static_pairs=draw(st.booleans()),
    )


def build(scene: Scene) -> tuple[ModelBuilder, list[int]]:
    """The builder, and each part's index in it; global shapes come last, so that rows differ from indices."""
    builder = ModelBuilder()
    body_index, part_index = {-1: -1}, {}

    def add(world: int) -> None:
        for i, part in reversed(list(enumerate(scene.parts))):
            if part.world == world:
                shape_type, size = (ShapeType.PLANE, ()) if part.plane else (ShapeType.SPHERE, (1.0,))
                part_index[i] = builder.add_shape(body_index[part.body], shape_type, size, cfg=part.cfg)

    def add_bodies(world: int) -> None:
        body_index.update({i: builder.add_body() for i, held in enumerate(scene.bodies) if held == world})

    add_bodies(GLOBAL)
    for world in sorted({part.world for part in scene.parts} | set(scene.bodies)):
        if world != GLOBAL:
            builder.begin_world()
            add_bodies(world)
            add(world)
            builder.end_world()
    add(GLOBAL)
    for parent, child in scene.joints:
        builder.add_joint(body_index[parent], body_index[child])
    builder.add_articulation([body_index[b] for b in scene.articulation], self_collision=False)
    for a, b in scene.filtered:
        builder.add_shape_collision_filter_pair(part_index[a], part_index[b])
    for a, b in scene.forced:
        builder.add_shape_forced_pair(part_index[b], part_index[a])
    for names in scene.usd_filtered:
        builder.add_collision_group_filter(*names)
    return builder, [part_index[i] for i in range(len(scene.parts))]


def oracle(scene: Scene, a: int, b: int) -> bool:
    """Whether parts a and b may touch, by the rules' own words."""
    p, q = scene.parts[a], scene.parts[b]
    if not meet(p.world, q.world):
        return False
    if (a, b) in scene.forced or (b, a) in scene.forced:
        return True
    if (a, b) in scene.filtered or (b, a) in scene.filtered:
        return False
    if p.plane and q.plane:
        return False
    if p.body == q.body and (p.body != -1 or not scene.static_pairs):
        return False
    if p.body in scene.articulation and q.body in scene.articulation:
        return False
    joined = (p.body, q.body) in scene.joints or (q.body, p.body) in scene.joints
    if joined and p.cfg.collision_filter_parent and q.cfg.collision_filter_parent:
        return False
    return attributes_allow(p.cfg, q.cfg, scene.usd_filtered)


def attributes_allow(c: ShapeConfig, d: ShapeConfig, usd_filtered: list[tuple[str, str]]) -> bool:
    if not (c.has_shape_collision and d.has_shape_collision):
        return False
    g, h = c.collision_group, d.collision_group
    if g == 0 or h == 0 or (g == h and g < 0) or (g != h and g > 0 and h > 0):
        return False
    if c.mask_either and d.mask_either:
        (contype_c, affinity_c), (contype_d, affinity_d) = c.mask_either, d.mask_either
        if not (contype_c & affinity_d or contype_d & affinity_c):
            return False
    if c.mask_both and d.mask_both:
        (group_c, mask_c), (group_d, mask_d) = c.mask_both, d.mask_both
        if not (group_c & mask_d and group_d & mask_c):
            return False
    combinations = set(itertools.product(c.usd_groups or (), d.usd_groups or ()))
    return not any(pair in combinations or pair[::-1] in combinations for pair in usd_filtered)


@pytest.mark.parametrize("large_body", [1, 64], ids=["bodies as classes", "bodies as pairs"])
@settings(max_examples=150, deadline=None)
@given(scene=scenes())
def test_the_lowered_filter_says_what_the_rules_say(large_body, scene):
    was, filters.LARGE_BODY = filters.LARGE_BODY, large_body
    try:
        builder, part_index = build(scene)
        model = builder.finalize(static_pairs=scene.static_pairs)
    finally:
        filters.LARGE_BODY = was
    row = builder.shape_rows()[part_index]
    expected = {
        tuple(sorted((int(row[a]), int(row[b]))))
        for a, b in itertools.combinations(range(len(row)), 2)
        if oracle(scene, a, b)
    }
    found = set()
    for template in set(model.world_template.tolist()):
        pairs = allowed_pairs(model, template)
        assert pairs.tolist() == [list(pair) for pair in sorted(set(map(tuple, pairs.tolist())))]
        found |= set(map(tuple, pairs.tolist()))
    assert found == expected
    for a, b in itertools.combinations(range(len(row)), 2):
        verdict = explain(model, int(row[a]), int(row[b]))
        assert verdict.may_touch == oracle(scene, a, b)
        assert (verdict.rule in ("no rule forbids it", "forced pair")) == verdict.may_touch
    table = model.pair_filter.class_table
    np.testing.assert_array_equal(table, table.T)


@settings(max_examples=200, deadline=None)
@given(scene=scenes())
def test_the_named_rule_does_not_depend_on_how_bodies_are_lowered(scene):
    builder, _ = build(scene)
    models = []
    was = filters.LARGE_BODY
    try:
        for large_body in (1, 64):
            filters.LARGE_BODY = large_body
            models.append(builder.finalize())
    finally:
        filters.LARGE_BODY = was
    for a, b in itertools.combinations(range(len(scene.parts)), 2):
        rules = [set(explain(model, a, b).rule.replace("'", "").split()) for model in models]
        assert rules[0] == rules[1]
