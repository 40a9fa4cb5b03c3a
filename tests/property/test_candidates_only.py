"""candidates_only has exactly the pairs that bounds and filters leave, found by brute force in
float64 NumPy, whatever the broad phase and the division of the work."""

from dataclasses import dataclass

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.differential.test_broad_phase import (
    Placed,
    apart,
    as_of,
    keys_of,
    pair_max_separation,
    placed,
)
from tests.support.engine_runs import (
    PHASES,
    add_shapes,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)

TIE = 1e-4
"""Pairs whose bounds are apart by less than this are left open: float32 may round either way [m]."""
ROUND = (ShapeType.SPHERE, ShapeType.CAPSULE)


def candidates(contacts: collidecli.Contacts) -> np.ndarray:
    """int64[n, 3]: cell and rows of every candidate."""
    assert contacts.rigid_contact_count == 0
    rows = contacts.groups["candidates"]
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    columns = (cell, rows.columns["shape0"], rows.columns["shape1"])
    return np.column_stack(columns).astype(np.int64)


def inflation(model: Model) -> np.ndarray:
    """float64[S]: by how much the bounds of each shape grow, as docs/howto/list-candidates.md has
    it [m]."""
    gap = model.shapes.gap
    return model.shapes.margin + (gap if model.gap_rule == "sum" else gap - 0.5 * gap.min())


def excess(model: Model, cell: Placed, pairs: np.ndarray) -> np.ndarray:
    """float64[K]: by how much the bounds of pairs are apart: balls, boxes, and of a plane the box
    from its half-space [m]; negative where they overlap."""
    a, b = pairs.T
    grown = inflation(model)
    both = grown[a] + grown[b]
    box = np.maximum(cell.lower[a] - cell.upper[b], cell.lower[b] - cell.upper[a]).max(axis=1)
    ball = np.linalg.norm(cell.center[a] - cell.center[b], axis=1) - cell.radius[a] - cell.radius[b]
    found = np.maximum(box, ball) - both
    for plane, other in ((a, b), (b, a)):
        flat = model.shapes.type[plane] == ShapeType.PLANE
        normal = cell.normal[plane[flat]]
        more = grown[other[flat], None]
        lower, upper = cell.lower[other[flat]] - more, cell.upper[other[flat]] + more
        corner = np.where(normal > 0, lower, upper)
        height = ((corner - cell.center[plane[flat]]) * normal).sum(axis=1)
        found[flat] = height - grown[plane[flat]]
    return found


def groups_allow(one: int, other: int) -> bool:
    """The rule of signed groups, docs/reference/filters.md."""
    if 0 in (one, other):
        return False
    if one > 0 and other > 0:
        return one == other
    return one != other


def filtered_pairs(groups: np.ndarray, planes: int, excluded: tuple[int, int]) -> np.ndarray:
    """int64[n, 2]: the pairs that the filters leave of shapes with signed groups, of which the
    first are planes of the world and each other one is of a body."""
    count = len(groups)
    return np.array(
        [
            (a, b)
            for a in range(count)
            for b in range(max(a + 1, planes), count)
            if groups_allow(groups[a], groups[b]) and (a, b) != excluded
        ]
    )


@dataclass(frozen=True)
class Expected:
    """Keys of the pairs that must be candidates, and of those that may be."""

    must: np.ndarray
    may: np.ndarray


def brute_force(model: Model, poses: np.ndarray) -> Expected:
    """All pairs that the filters allow, in all cells. poses: float64[F, W, B, 7].

    Of two spheres or capsules the distance decides too: of two spheres exactly, of others one pass
    over the closest points may leave pairs that are apart.
    """
    must = []
    may = []
    shapes = model.shapes
    for frame in range(len(poses)):
        for world, template in enumerate(model.world_template.tolist()):
            pairs = allowed_pairs(model, template)
            cell = placed(model, poses[frame, world % poses.shape[1]])
            over = excess(model, cell, pairs)
            both_round = np.isin(shapes.type[pairs], ROUND).all(axis=1)
            both_spheres = (shapes.type[pairs] == ShapeType.SPHERE).all(axis=1)
            beyond = apart(model, cell, pairs) - pair_max_separation(model, pairs)
            exact = np.where(both_round, np.maximum(over, beyond), over)
            loose = np.where(both_spheres, exact, over)
            number = frame * model.world_count + world
            must.append(keys_of(model, number, *pairs[exact < -TIE].T))
            may.append(keys_of(model, number, *pairs[loose < TIE].T))
    return Expected(np.concatenate(must), np.concatenate(may))


def check(model: Model, poses: np.ndarray) -> tuple[np.ndarray, Expected]:
    """Asserts that the candidates are those of brute force, ordered; returns their keys too."""
    found = candidates(collidecli.collide(model, poses, device="cpu", candidates_only=True))
    keys = keys_of(model, *found.T)
    assert (np.diff(keys) > 0).all()
    expected = brute_force(model, poses)
    assert len(expected.must) > 100
    assert np.isin(expected.must, keys).all()
    assert np.isin(keys, expected.may).all()
    return keys, expected


@pytest.mark.parametrize("rule", ["max", "sum"])
@pytest.mark.parametrize(
    ("gaps", "margins"),
    [((0.0,), (0.0,)), ((0.1,), (0.02,)), ((0.0, 0.05, 0.4), (0.0, 0.03))],
)
def test_the_pairs_are_those_of_brute_force(rule, gaps, margins):
    """Bounds that touch by less than a rounding apart, no pair is open but few of capsules."""
    groups = np.array([1, 2, -1, 1, 0, -3])
    builder = mixed_builder(21, 42, as_of(gaps, margins, groups=groups.tolist()))
    builder.gap_rule = rule
    builder.add_shape_collision_filter_pair(4, 9)
    model = builder.finalize()
    of_shapes = groups[np.concatenate([[0, 1], np.arange(42)]) % len(groups)]
    assert np.array_equal(allowed_pairs(model, 0), filtered_pairs(of_shapes, 2, (4, 9)))
    keys, expected = check(model, random_poses(np.random.default_rng(22), (12, 1, 42), 1.0))
    assert len(keys) - np.isin(keys, expected.must).sum() < 0.05 * len(keys)


def worlds_of_two_kinds() -> Model:
    """Two worlds of one kind and one of another, on a common ground."""
    builder = ModelBuilder()
    ground = ShapeConfig(gap=0.05)
    builder.add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.6, 0, 0, 0, 1], ground, key="ground")
    for seed, count, copies in ((1, 10, 2), (2, 16, 1)):
        inner = ModelBuilder()
        add_shapes(inner, np.random.default_rng(seed), count, as_of((0.05, 0.0), groups=(1, 2, -2)))
        builder.add_world(inner, count=copies)
    return builder.finalize()


def test_worlds_have_their_own_pairs():
    model = worlds_of_two_kinds()
    poses = random_poses(np.random.default_rng(3), (9, model.world_count, len(model.bodies)), 0.6)
    keys, _ = check(model, poses)
    cell = keys // len(model.shapes) ** 2
    assert (np.bincount(cell % model.world_count) > 50).all()


def test_spheres_are_candidates_within_their_gap_alone():
    """Their balls are exact: no other cut is left, and no pair is open."""
    builder = ModelBuilder()
    types = (ShapeType.SPHERE,)
    add_shapes(builder, np.random.default_rng(5), 30, as_of((0.07,), (0.01, 0.0)), types)
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(6), (10, 1, 30), 0.8)
    keys, expected = check(model, poses)
    found = collidecli.collide(model, poses, device="cpu", touch_only=True).groups["touches"]
    assert len(keys) == found.row_count
    assert len(expected.may) - len(expected.must) < 3


def test_every_pair_with_a_contact_is_a_candidate():
    model = mixed_builder(8, 28, as_of((0.0, 0.02))).finalize()
    poses = random_poses(np.random.default_rng(9), (6, 1, 28), 0.7)
    keys, _ = check(model, poses)
    touching = collidecli.collide(model, poses, device="cpu", touch_only=True).groups["touches"]
    cell = np.repeat(np.arange(len(touching.cell_counts)), touching.cell_counts)
    rows = touching.columns
    pairs = keys_of(model, cell, rows["shape0"].astype(np.int64), rows["shape1"])
    assert 100 < len(pairs) < len(keys)
    assert np.isin(pairs, keys).all()


@pytest.mark.parametrize("phase", PHASES)
def test_the_pairs_do_not_depend_on_how_work_is_divided(phase):
    model = worlds_of_two_kinds()
    poses = random_poses(np.random.default_rng(4), (11, model.world_count, len(model.bodies)), 0.6)
    whole = collidecli.collide(model, poses, device="cpu", candidates_only=True)
    for divided in ({"chunk_cells": 1}, {"chunk_cells": 5, "threads": 2}):
        options = {**PHASES[phase], **divided}
        found = collidecli.collide(model, poses, device="cpu", candidates_only=True, **options)
        assert np.array_equal(candidates(found), candidates(whole))
        assert found.contact_set.content_sha256 == whole.contact_set.content_sha256


@pytest.mark.parametrize("phase", ["nxn", "explicit"])
def test_little_memory_gives_the_same_pairs(phase):
    """Chunks are halved, and the candidates of one cell are copied in parts."""
    builder = ModelBuilder()
    add_shapes(builder, np.random.default_rng(5), 160, as_of((0.3,)))
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(6), (3, 1, 160), 0.5)
    options = ContactOptions(candidates_only=True)
    pipeline = pipeline_of(model, poses, options, **PHASES[phase])
    whole = contacts_of(pipeline, poses)
    assert len(candidates(whole)) > 20000
    cut = contacts_of(pipeline, poses, memory=700_000)
    assert np.array_equal(candidates(cut), candidates(whole))


@pytest.mark.parametrize(
    "options",
    [
        {"narrow_phase": "mpr"},
        {"max_contacts_per_pair": 1},
        {"reduce_contacts": True},
        {"contact_ids": True},
        {"hydro": "all"},
        {"sweep": True},
        {"soft_gap": 0.1},
        {"self_contacts": 0.1},
        {"soft_elements": "nearest"},
    ],
)
def test_options_of_contacts_are_refused(options):
    (name,) = options
    model = mixed_builder(8, 7).finalize()
    what = f"{name} applies to contacts, and candidates_only finds pairs alone"
    with pytest.raises(InputError, match=what):
        collidecli.collide(model, device="cpu", candidates_only=True, **options)


def test_pairs_have_no_columns_and_are_found_in_one_manner():
    model = mixed_builder(8, 7).finalize()
    with pytest.raises(InputError, match="candidates_only finds pairs alone, which have no col"):
        collidecli.collide(model, device="cpu", candidates_only=True, columns="friction")
    with pytest.raises(InputError, match="touch_only tests the candidates"):
        collidecli.collide(model, device="cpu", candidates_only=True, touch_only=True)


def test_pairs_without_a_collider_are_candidates():
    """No collider is selected, compiled or launched."""
    model = mixed_builder(8, 14).finalize()
    poses = random_poses(np.random.default_rng(9), (2, 1, 14), 0.7)
    pipeline = pipeline_of(model, poses, ContactOptions(candidates_only=True))
    assert pipeline.narrow_phase.table.colliders == ()
    assert len(candidates(contacts_of(pipeline, poses))) > 50
