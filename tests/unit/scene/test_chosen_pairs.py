"""Pairs that `--include`, `--exclude` and `--pairs-file` choose, held against a loop over all
pairs."""

import re
from fnmatch import fnmatchcase
from itertools import combinations, product

import numpy as np
import pytest

import collidecli
from collidecli.scene.allowed_pairs import allowed_pairs, excluded_counts, has_pairs
from collidecli.scene.chosen_pairs import (
    narrowed,
    of_disabled_pairs,
    of_listed_pairs,
    scene_items,
)
from collidecli.scene.model import Model
from collidecli.scene.pair_verdicts import explain
from collidecli.scene.patterns import NamedItems

PATTERNS = ("*", "body_0", "body_1", "*_2", "plane", "s1*", "s[03]*", "s?_body_1")


def random_model(seed: int) -> Model:
    """Four bodies with up to three shapes each, static shapes, groups, masks, filtered and forced
    pairs, joints."""
    random = np.random.default_rng(seed)
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane(key="plane")
    bodies = [-1, *(builder.add_body(key=f"body_{k}") for k in range(4))]
    shapes = []
    for body in bodies:
        for k in range(int(random.integers(1, 4))):
            cfg = collidecli.ShapeConfig(
                collision_group=int(random.choice([1, 1, -1, 2])),
                has_shape_collision=bool(random.random() < 0.9),
            )
            name = "world" if body < 0 else f"body_{body}"
            shapes.append(builder.add_shape_sphere(body, radius=1.0, cfg=cfg, key=f"s{k}_{name}"))
    for _ in range(2):
        builder.add_shape_collision_filter_pair(*random.choice(shapes, 2, replace=False).tolist())
        builder.add_shape_forced_pair(*random.choice(shapes, 2, replace=False).tolist())
    builder.add_joint(*random.choice(bodies[1:], 2, replace=False).tolist())
    return builder.finalize()


def body_names(model: Model) -> list[str]:
    return ["" if body < 0 else model.bodies.path[body] for body in model.shapes.body]


def match(model: Model, row: int, pattern: str) -> bool:
    return any(
        name and fnmatchcase(name, pattern)
        for name in (model.shapes.path[row], body_names(model)[row])
    )


def matches(model: Model, a: int, b: int, pairs: list[tuple[str, str]]) -> bool:
    return any(
        (match(model, a, one) and match(model, b, other))
        or (match(model, b, one) and match(model, a, other))
        for one, other in pairs
    )


def draw(random: np.random.Generator, model: Model, most: int) -> list[tuple[str, str]]:
    """Pairs of patterns that match a shape of the model each."""
    known = [p for p in PATTERNS if any(match(model, r, p) for r in range(len(model.shapes)))]
    return [tuple(random.choice(known, 2).tolist()) for _ in range(random.integers(0, most))]


def pairs_of(model: Model) -> set[tuple[int, int]]:
    return set(map(tuple, allowed_pairs(model, 0).tolist()))


def check_consistent(model: Model) -> None:
    """The table of pairs, the verdicts and the counts agree."""
    allowed = pairs_of(model)
    for pair in combinations(range(len(model.shapes)), 2):
        assert explain(model, *pair).may_touch == (pair in allowed), pair
    count = len(model.shapes) * (len(model.shapes) - 1) // 2
    assert sum(excluded_counts(model, 0).values()) + len(allowed) == count
    assert has_pairs(model) == bool(allowed)


@pytest.mark.parametrize("seed", range(30))
def test_included_and_excluded_pairs_are_those_of_a_loop_over_all_pairs(seed):
    random = np.random.default_rng(seed)
    model = random_model(seed)
    before = pairs_of(model)
    include = draw(random, model, 3)
    exclude = draw(random, model, 3)
    chosen = narrowed(model, scene_items(model, body_names(model)), include, exclude)
    expected = {
        pair
        for pair in before
        if (not include or matches(model, *pair, include)) and not matches(model, *pair, exclude)
    }
    assert pairs_of(chosen) == expected
    check_consistent(chosen)


@pytest.mark.parametrize("seed", range(12))
def test_listed_pairs_replace_the_filters(seed):
    random = np.random.default_rng(seed)
    model = random_model(seed)
    listed = draw(random, model, 4)
    items = scene_items(model, body_names(model))
    chosen = of_listed_pairs(model, items, {f"line {k}": p for k, p in enumerate(listed)}, "p.txt")
    body = model.shapes.body
    expected = {
        (a, b)
        for a, b in combinations(range(len(body)), 2)
        if body[a] != body[b] and matches(model, a, b, listed)
    }
    assert pairs_of(chosen) == expected
    check_consistent(chosen)
    both = narrowed(chosen, items, [], [("body_1", "*")])
    assert pairs_of(both) == {p for p in expected if not matches(model, *p, [("body_1", "*")])}
    check_consistent(both)


def test_disabled_pairs_alone_replace_the_filters():
    model = random_model(3)
    disabled = {(1, 3): "rule", (2, 5): "rule"}
    chosen = of_disabled_pairs(model, disabled)
    body = model.shapes.body
    expected = {
        (a, b)
        for a, b in combinations(range(len(body)), 2)
        if body[a] != body[b] and (a, b) not in disabled
    }
    assert pairs_of(chosen) == expected
    check_consistent(chosen)


def test_forced_pairs_keep_their_own_lengths():
    builder = collidecli.ModelBuilder()
    shapes = [builder.add_shape_sphere(builder.add_body(), radius=1.0) for _ in range(4)]
    builder.add_shape_forced_pair(shapes[0], shapes[1], gap=0.25)
    builder.add_shape_forced_pair(shapes[2], shapes[3], gap=0.5)
    model = builder.finalize()
    names = model.shapes.path
    items = scene_items(model, body_names(model))
    listed = of_listed_pairs(
        model, items, {"1": (names[0], names[2]), "2": (names[2], names[3])}, "p.txt"
    )
    assert listed.pair_filter.forced.tolist() == [[0, 2], [2, 3]]
    np.testing.assert_array_equal(listed.forced_gap, [np.nan, 0.5])
    left = narrowed(model, items, [], [(names[0], "*")])
    np.testing.assert_array_equal(left.forced_gap, [0.5])


def test_a_verdict_names_the_option():
    model = random_model(1)
    items = scene_items(model, body_names(model))
    rows = [model.shapes.path.index(name) for name in ("s0_body_0", "s0_body_1")]
    chosen = narrowed(random_free(model), items, [], [("body_0", "body_1")])
    assert explain(chosen, *rows).rule == "--exclude 'body_0,body_1'"
    chosen = narrowed(random_free(model), items, [("body_2", "*")], [])
    assert explain(chosen, *rows).rule == "not in --include"
    chosen = of_listed_pairs(model, items, {"1": ("body_2", "*")}, "p.txt")
    assert explain(chosen, *rows).rule == "not in --pairs-file p.txt"


def random_free(model: Model) -> Model:
    """The model without filters."""
    return of_disabled_pairs(model, {})


def test_a_pattern_without_a_match_is_refused():
    model = random_model(0)
    items = scene_items(model, body_names(model))
    for include, exclude, where in (
        ([("none", "*")], [], "--include"),
        ([], [("*", "none")], "--exclude"),
    ):
        with pytest.raises(collidecli.InputError, match=f"{where}: 'none' matches no shape"):
            narrowed(model, items, include, exclude)
    with pytest.raises(collidecli.InputError, match=r"p\.txt: line 7: 'none' matches no shape"):
        of_listed_pairs(model, items, {"p.txt: line 7": ("none", "*")}, "p.txt")


def test_pairs_of_particles_and_shapes_are_chosen_too():
    builder = collidecli.ModelBuilder()
    shapes = [builder.add_shape_sphere(builder.add_body(), radius=1.0) for _ in range(3)]
    for name in ("cloud", "dust"):
        builder.add_particles(np.zeros((2, 3)), radius=0.1, key=name)
    model = builder.finalize()
    items = scene_items(model, body_names(model))
    names = model.shapes.path

    def touching(model: Model) -> set[tuple[int, int]]:
        return {p for p in product(range(2), shapes) if model.particles.may_touch(*p)}

    every = set(product(range(2), shapes))
    assert touching(model) == every
    assert touching(narrowed(model, items, [], [("cloud", names[1])])) == every - {(0, 1)}
    assert touching(narrowed(model, items, [(names[2], "*")], [("dust", "*")])) == {(0, 2)}
    listed = of_listed_pairs(model, items, {"1": ("dust", names[0])}, "p.txt")
    assert touching(listed) == {(1, 0)}
    assert not pairs_of(listed)


@pytest.mark.parametrize(
    ("pattern", "what", "fix"),
    [
        ("*shelf_a*", "matches only 'shelf_a', which has no shape", "give their own names"),
        ("SHELF_A", "'SHELF_A' matches no shape or body", "lists the shapes"),
        ("boar", "'boar' matches no shape or body", r"try '\*boar\*'"),
    ],
)
def test_an_advised_pattern_is_not_the_given_one(pattern, what, fix):
    items = NamedItems(["board", "fore"], np.array([-1, 1]), ["shelf_a", "arm"], "shape or body")
    with pytest.raises(collidecli.InputError, match=what) as error:
        items.matching([pattern], "--include")
    assert re.search(fix, error.value.fix)
    assert f"'{pattern}'" not in error.value.fix
    assert items.matching(["arm"], "--include").tolist() == [False, True]
