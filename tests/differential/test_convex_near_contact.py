"""Every pair of convex types with a given feature of each nearest, from overlapping to well apart: proofs, no search.

See `tests.support.feature_poses` for how the distance is known, and `tests.support.certificates` for what proves it.
"""

from __future__ import annotations

import os
from functools import cache

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.certificates import (
    EVERY,
    Report,
    Scene,
    Shapes,
    better_direction,
    examine,
    feature_pairs,
    resting_scene,
)
from tests.support.feature_poses import FEATURES, HullSet, hull_set, relative_pose
from tests.support.oracle import rotation_of
from tests.support.piles import SettledPile, settled_pile

TYPES = tuple(FEATURES)
PAIRS = [(a, b) for i, a in enumerate(TYPES) for b in TYPES[i:] if b != ShapeType.PLANE]
ROUND = (ShapeType.CYLINDER, ShapeType.CONE, ShapeType.ELLIPSOID)
SAMPLE = 300
FULL = int(os.environ.get("COLLIDE_POSES", "20000"))
DISTANCE = 1e-7
"""Share of the size by which a distance may be off."""
SHORT = 2e-7
SHORT_OF_ROUND = 2e-5
"""Share of the size by which the gap along the normal may miss the distance: GJK of a round shape and one with corners,
1e-5 of the size apart, may end at a sliver, whose normal is rounding."""
SURFACE = 2e-6
EXACT_SURFACE = 1e-7
MERGED_SURFACE = 5e-7
"""Share of the size by which a witness may be off its surface: of round shapes, of polytopes, and of polytopes with
faces that are merged of triangles out of one plane by COPLANAR."""
COINCIDENT = 1e-9
"""Share of the size at which two contacts of a pair are in one place."""


@cache
def hulls() -> HullSet:
    return hull_set(np.random.default_rng(1))


def has_hull(type_a: ShapeType, type_b: ShapeType) -> bool:
    return ShapeType.CONVEX_MESH in (type_a, type_b)


def check(scene: Scene, type_a: ShapeType, type_b: ShapeType, what: str, surface: float = 0.0) -> Report:
    """Asserts what is proved of every pair; pairs that the engine itself counts as inexact may be off."""
    contacts = scene.run(EVERY)
    report = examine(scene, contacts)
    assert not report.missed.any(), f"{what}: {scene.pose[report.missed][:1]!r}"
    assert not report.phantom.any(), f"{what}: {scene.pose[report.phantom][:1]!r}"
    assert not report.unproved.any(), f"{what}: {scene.pose[report.unproved][:1]!r}"
    assert report.distance.max() <= DISTANCE, f"{what}: {scene.pose[report.distance.argmax()]!r}"
    assert report.too_deep.max() <= DISTANCE, f"{what}: {scene.pose[report.too_deep.argmax()]!r}"
    is_round = type_a in ROUND or type_b in ROUND
    short = SHORT_OF_ROUND if is_round else SHORT
    assert report.short.max() <= short, f"{what}: {scene.pose[report.short.argmax()]!r}"
    surface = surface or (EXACT_SURFACE if has_hull(type_a, type_b) and not is_round else SURFACE)
    off = report.off_surface > surface
    assert off.sum() <= report.inexact, f"{what}: {report.off_surface.max()}, {scene.pose[off][:1]!r}"
    assert report.coincident.min() > COINCIDENT, f"{what}: {scene.pose[report.coincident.argmin()]!r}"
    return report


def check_presence(scene: Scene) -> None:
    """A contact is there where the distance is below the reach, and none where it is not; by 1e-6 of the size."""
    here = scene[scene.apart > 1e-5 * scene.scale()]
    level = 1e-6 * here.scale()
    assert np.all(here.run(here.apart + level).count > 0)
    assert np.all(here.run(here.apart - level).count == 0)


@pytest.mark.share(3)
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].label}-{pair[1].label}")
def test_nearest_features_of_each_kind(pair):
    combinations = feature_pairs(*pair)
    for k, (feature_a, feature_b) in enumerate(combinations):
        rng = np.random.default_rng([*map(int, pair), k])
        scene = resting_scene(pair[0], feature_a, pair[1], feature_b, SAMPLE // len(combinations), rng, hulls())
        report = check(scene, *pair, f"{feature_a} and {feature_b}")
        check_presence(scene)
        if pair[0] != ShapeType.PLANE:
            better = better_direction(scene, scene.run(EVERY), rng, 60)
            assert np.sum(better > DISTANCE) <= report.inexact


@pytest.mark.slow
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair[0].label}-{pair[1].label}")
def test_nearest_features_of_each_kind_in_full(pair, capsys):
    """20 000 poses of a pair of types, evenly over the features."""
    combinations = feature_pairs(*pair)
    worst = np.zeros(4)
    count = inexact = 0
    for k, (feature_a, feature_b) in enumerate(combinations):
        rng = np.random.default_rng([99, *map(int, pair), k])
        scene = resting_scene(pair[0], feature_a, pair[1], feature_b, -(-FULL // len(combinations)), rng, hulls())
        report = check(scene, *pair, f"{feature_a} and {feature_b}")
        check_presence(scene)
        columns = (report.distance, report.too_deep, report.short, report.off_surface)
        worst = np.maximum(worst, [column.max() for column in columns])
        count, inexact = count + len(scene.pose), inexact + report.inexact
    with capsys.disabled():
        shown = " ".join(f"{value:.1e}" for value in worst)
        print(
            f"\n{pair[0].label}-{pair[1].label}: {count} poses, distance, too deep, short, surface {shown}, {inexact}"
        )


@pytest.mark.parametrize("other", [ShapeType.BOX, ShapeType.CONVEX_MESH], ids=["box", "hull"])
def test_thin_hulls_have_their_contacts_on_their_surfaces(other):
    """Plates and slabs down to a thousandth of their width, faces, edges and corners against each other."""
    rng = np.random.default_rng(23)
    clouds = [rng.normal(size=(n, 3)) * [1.0, 0.7, h] for n in (6, 12, 30, 60) for h in (1e-3, 1e-2, 0.05)]
    thin = HullSet([size * one / np.abs(one).max() for size in (1e-3, 1.0, 1e3) for one in clouds])
    are_merged = [k for k, hull in enumerate(thin.hulls) if max(map(len, hull.face)) > 3]
    assert 0 < len(are_merged) < len(thin.hulls)
    for feature_a in FEATURES[other]:
        for feature_b in FEATURES[ShapeType.CONVEX_MESH]:
            scene = resting_scene(other, feature_a, ShapeType.CONVEX_MESH, feature_b, 150, rng, thin)
            what = f"{feature_a} and {feature_b}"
            report = check(scene, other, ShapeType.CONVEX_MESH, what, MERGED_SURFACE)
            merged = np.isin(scene.b.which, are_merged)
            if other == ShapeType.CONVEX_MESH:
                merged |= np.isin(scene.a.which, are_merged)
            assert report.off_surface[~merged].max() <= EXACT_SURFACE, what


MIXES = [
    ("sphere", "capsule", "box", "cylinder", "ellipsoid"),
    ("box", "cylinder"),
    ("capsule", "cylinder", "ellipsoid"),
    ("box", "hull", "cone"),
    ("cylinder", "cone", "hull", "capsule", "sphere"),
]
LABELS = {"hull": ShapeType.CONVEX_MESH} | {kind.label: kind for kind in TYPES if kind != ShapeType.CONVEX_MESH}
GAP = 0.01


def check_pile(pile: SettledPile) -> tuple[int, int, np.ndarray]:
    """Examines every pair of a pile whose bounding balls are within GAP; returns pairs, touching ones, worst errors."""
    kinds = np.array([LABELS[kind] for kind in pile.types])
    order = sorted(pile.hulls)
    set_of_hulls = HullSet([pile.hulls[index] for index in order]) if order else None
    number = np.full(len(kinds), -1)
    number[order] = np.arange(len(order))
    poses, sizes = pile.poses.copy(), pile.sizes.copy()
    for index in order:
        # The engine's hulls have the centre of their box at the origin.
        hull = set_of_hulls.hulls[number[index]]
        turn = rotation_of(poses[:, index])
        poses[:, index, :3] += turn @ hull.center
        sizes[index] = hull.half_extents
    radius = np.linalg.norm(sizes, axis=1)
    radius[kinds == ShapeType.CAPSULE] = sizes[kinds == ShapeType.CAPSULE, :2].sum(1)
    contacts = run_pile(pile)
    expected, optional, worst, pairs, touching = set(), set(), np.zeros(3), 0, 0
    for frame, pose in enumerate(poses):
        apart = np.linalg.norm(pose[:, None, :3] - pose[None, :, :3], axis=-1) - radius[:, None] - radius[None]
        i, j = np.nonzero(np.triu(apart < GAP, 1))
        swap = kinds[i] > kinds[j]
        i, j = np.where(swap, j, i), np.where(swap, i, j)
        for type_a, type_b in sorted(set(zip(kinds[i].tolist(), kinds[j].tolist(), strict=True))):
            rows = (kinds[i] == type_a) & (kinds[j] == type_b)
            a, b = i[rows], j[rows]
            shapes = [
                Shapes(ShapeType(kind), sizes[index], set_of_hulls, number[index])
                for kind, index in ((type_a, a), (type_b, b))
            ]
            scene = Scene(*shapes, relative_pose(pose[a], pose[b]), np.full(len(a), -1e9))
            report = check(scene, ShapeType(type_a), ShapeType(type_b), f"frame {frame}")
            pairs, touching = pairs + len(a), touching + int((report.least < 0.0).sum())
            worst = np.maximum(worst, [report.short.max(), report.off_surface.max(), report.inexact])
            for one, other, distance in zip(a, b, report.least, strict=True):
                key = (frame, min(one, other), max(one, other))
                if abs(distance - GAP) <= 1e-6 * radius.max():
                    optional.add(key)
                elif distance < GAP:
                    expected.add(key)
    assert expected <= contacts
    assert contacts <= expected | optional
    return pairs, touching, worst


def run_pile(pile: SettledPile) -> set[tuple[int, int, int]]:
    """The pairs that a run with a gap of GAP reports: frame and the two bodies."""
    builder = ModelBuilder()
    for index, kind in enumerate(pile.types):
        body = builder.add_body()
        if kind == "hull":
            builder.add_shape_convex_hull(body, pile.hulls[index])
        else:
            count = {"sphere": 1, "capsule": 2, "cylinder": 2, "cone": 2}.get(kind, 3)
            builder.add_shape(body, LABELS[kind], pile.sizes[index, :count])
    contacts = collidecli.collide(builder.finalize(), pile.poses[:, None], gap=GAP)
    found = set()
    for frame in range(len(pile.poses)):
        cell = contacts.cell(frame)
        found |= {(frame, int(x), int(y)) for x, y in zip(cell.shape0, cell.shape1, strict=True)}
    return found


@pytest.mark.share(2)
@pytest.mark.parametrize("mix", MIXES, ids=["-".join(mix) for mix in MIXES])
def test_settled_piles(mix):
    pairs, touching, _ = check_pile(settled_pile(60, mix, 250, 3, 40))
    assert pairs > 100
    assert touching > 50


@pytest.mark.slow
@pytest.mark.parametrize("mix", MIXES, ids=["-".join(mix) for mix in MIXES])
def test_settled_piles_in_full(mix, capsys):
    """A thousand bodies, every fourth of sixty steps."""
    pairs, touching, worst = check_pile(settled_pile(1000, mix, 500, 15, 4))
    with capsys.disabled():
        print(f"\n{'-'.join(mix)}: {pairs} pairs, {touching} overlap; short {worst[0]:.1e}, surface {worst[1]:.1e}")
    assert touching > 10_000
