"""Differing touches of worlds against sets of touches, whatever the division into blocks."""

from collections import Counter

import numpy as np
import pytest

from collidecli.analysis.differing_touches import DifferingTouches, shared_touches
from collidecli.analysis.world_totals import DIFFERING, WorldTotals
from collidecli.pages.world_tables import differing_rows, frames_text
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.episodes import Episodes

SHAPES = 6


def block_of(rows, first, end):
    """rows: (cell, shape0, shape1, distance), in the order of cells."""
    own = [row for row in rows if first <= row[0] < end]
    cell, shape0, shape1, distance = (
        (np.array(c) for c in zip(*own, strict=True))
        if own
        else (np.zeros(0, int) for _ in range(4))
    )
    counts = np.bincount(cell.astype(int) - first, minlength=end - first).astype(np.int64)
    columns = {
        "shape0": shape0.astype(np.int32),
        "shape1": shape1.astype(np.int32),
        "distance": distance.astype(np.float32),
    }
    return ContactBlock(first, counts, columns)


def expected_of(rows, template, frames, is_recorded):
    """Of each world and pair the numbers fewer and more, and the first frame, by sets."""
    worlds = len(template)
    touching = {
        (*divmod(cell, worlds), *sorted(shapes))
        for cell, *shapes, distance in rows
        if distance <= 0.0
    }
    touching = {row for row in touching if is_recorded[row[:2]]}
    found = {}
    for frame in range(frames):
        for a in range(SHAPES):
            for b in range(SHAPES):
                for of in set(template):
                    own = [w for w in range(worlds) if template[w] == of and is_recorded[frame, w]]
                    have = {w for w in own if (frame, w, a, b) in touching}
                    is_common = 2 * len(have) > len(own)
                    for world in set(own) - have if is_common else have:
                        fewer, more, first = found.get((world, a, b), (0, 0, frame))
                        found[world, a, b] = (fewer + is_common, more + (not is_common), first)
    return found


def made_up(rng, template, frames):
    """Rows in any order of a cell, of pairs in either order of their shapes."""
    rows = []
    for cell in range(frames * len(template)):
        of_cell = []
        for pair in rng.choice(9, rng.integers(0, 7), replace=False).tolist():
            for _ in range(rng.integers(1, 3)):
                ends = rng.permutation([pair // 3, 3 + pair % 3]).tolist()
                of_cell.append((cell, *ends, rng.integers(-3, 2) * 0.01))
        rows += [of_cell[row] for row in rng.permutation(len(of_cell))]
    return rows


@pytest.mark.parametrize("size", [1, 4, 5, 7, 1000])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_episodes", [False, True])
def test_they_are_those_of_sets(size, seed, has_episodes, monkeypatch):
    monkeypatch.setattr("collidecli.analysis.differing_touches.CELLS_AT_ONCE", 9)
    rng = np.random.default_rng(seed)
    template = [0, 2, 2, 0, 2, 0, 3][: 5 + seed % 3]
    worlds = len(template)
    frames = 9
    is_recorded = np.ones((frames, worlds), bool)
    episodes = None
    if has_episodes:
        lengths = rng.integers(2, frames + 1, worlds)
        is_recorded = np.arange(frames)[:, None] < lengths
        episodes = Episodes(
            tuple(map(str, range(worlds))),
            np.arange(worlds, dtype=np.int32) + 10,
            np.zeros(worlds, np.int64),
            lengths,
        )
    rows = made_up(rng, template, frames)
    differing = DifferingTouches(np.array(template), SHAPES, episodes, np.arange(worlds) + 10)
    totals = WorldTotals(differing)
    cells = frames * worlds
    for first in range(0, cells, size):
        totals.add(block_of(rows, first, min(first + size, cells)))
    expected = expected_of(rows, template, frames, is_recorded)
    sums = differing.pairs()
    found = {
        (world, pair // SHAPES, pair % SHAPES): (fewer, more, first)
        for world, pair, fewer, more, first in zip(
            *(getattr(sums, name).tolist() for name in vars(sums)), strict=True
        )
    }
    assert len(expected) > 10
    assert found == expected
    of_worlds = Counter()
    for (world, _, _), (fewer, more, _) in expected.items():
        of_worlds[world] += fewer + more
    assert differing.counts().tolist() == [of_worlds[world] for world in range(worlds)]
    for world in range(worlds):
        most = sorted((-f - m, a, b) for (w, a, b), (f, m, _) in expected.items() if w == world)
        listed = [
            (-p["fewer"] - p["more"], p["shape0"], p["shape1"]) for p in differing.listed(world)
        ]
        assert listed == most[:3]


def worlds_of(touches_in, template=None, frames=40):
    """Totals of worlds with one pair, which touches in these frames of each world."""
    worlds = len(touches_in)
    template = np.zeros(worlds, int) if template is None else template
    totals = WorldTotals(DifferingTouches(template, 2))
    rows = [
        (frame * worlds + world, 0, 1, -0.001)
        for frame in range(frames)
        for world in range(worlds)
        if frame in touches_in[world]
    ]
    totals.add(block_of(rows, 0, frames * worlds))
    return totals.rows(template, ["ball", "box"])


def test_a_motion_reversed_in_time_is_an_outlier_of_equal_totals():
    first, *rest = worlds_of([range(25, 40)] * 6 + [range(15)] + [range(25, 40)] * 5)
    assert (first["world"], first["outlier"], first["score_of"]) == (6, True, DIFFERING)
    assert first["touches"] == rest[0]["touches"] == 15
    assert (first["differing_touches"], first["median"]) == (30, 0.0)
    (pair,) = differing_rows([first, *rest])
    assert (pair["world"], pair["shape0"], pair["shape1"]) == (6, "ball", "box")
    assert (pair["fewer"], pair["more"], pair["first_frame"]) == (15, 15, 0)
    assert frames_text(pair) == "touches in other frames: 15 fewer, 15 more"
    assert not any(row["outlier"] or row["differing_touches"] for row in rest)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ((), "touches in 15 frames fewer"),
        (range(24, 40), "touches in 1 frame more"),
        (range(26, 40), "touches in 1 frame fewer"),
        (range(20, 40), "touches in 5 frames more"),
    ],
)
def test_the_pair_of_an_outlier_is_named(frames, words):
    rows = worlds_of([range(25, 40)] * 11 + [frames])
    (row,) = (row for row in rows if row["world"] == 11)
    assert [frames_text(pair) for pair in row["differing_pairs"]] == [words]
    assert len(differing_rows(rows)) == (row["differing_touches"] > 3)


def without_four(k):
    """All of 40 frames but four, which are others for each k."""
    return [frame for frame in range(40) if frame // 4 != k]


def test_a_world_nearer_to_the_others_than_most_is_no_outlier():
    rows = worlds_of([without_four(k) for k in range(10)] + [range(40)])
    assert {row["world"]: row["differing_touches"] for row in rows} == {
        **dict.fromkeys(range(10), 4),
        10: 0,
    }
    assert {row["differing_score"] for row in rows} == {0.0}


def test_fewer_than_eight_worlds_have_no_outlier():
    rows = worlds_of([range(25, 40)] * 6 + [()])
    assert [row["differing_touches"] for row in rows] == [0] * 6 + [15]
    assert not any(row["outlier"] for row in rows)
    assert not differing_rows(rows)


def test_the_median_is_that_of_a_template():
    template = np.repeat([0, 1], 10)
    frames = [range(6, 40)] + [range(40)] * 9 + [without_four(k) for k in range(10)]
    rows = worlds_of(frames, template)
    scores = {row["world"]: row["differing_score"] for row in rows}
    assert scores == {0: 6.0} | dict.fromkeys(range(1, 20), 0.0)


def test_an_outlier_is_one_of_its_template():
    """Half the worlds have another template, whose worlds all touch in other frames."""
    template = np.arange(20) % 2
    totals = WorldTotals(DifferingTouches(template, 3))
    rows = []
    for frame in range(30):
        for world in range(20):
            touches = frame >= 15 if template[world] else frame < 15
            if touches != (world == 7):
                rows.append((frame * 20 + world, 0, 1 + template[world], -0.001))
    totals.add(block_of(rows, 0, 600))
    first, *rest = totals.rows(template, ["table", "ball", "cube"])
    assert (first["world"], first["differing_touches"], first["outlier"]) == (7, 30, True)
    assert [pair["shape1"] for pair in first["differing_pairs"]] == ["cube"]
    assert not any(row["outlier"] or row["differing_touches"] for row in rest)


SHAPE_TEMPLATE = np.array([-1, 0, 0, 1, 1, 2])
SHARED_NAMES = ["floor", "cup", "hand", "hand", "lid", "cup"]
"""Names of the shapes: both others of template 0 are in one of the other templates each."""


def shared_counts(rows, template, frames, is_recorded):
    """Numbers of differing touches of each world by sets of pairs of names."""
    worlds = len(template)
    has = [
        {n for n, t in zip(SHARED_NAMES, SHAPE_TEMPLATE, strict=True) if t in (-1, number)}
        for number in template
    ]
    touching = [[set() for _ in range(worlds)] for _ in range(frames)]
    for cell, one, other, distance in rows:
        frame, world = divmod(cell, worlds)
        if distance <= 0.0 and is_recorded[frame, world]:
            touching[frame][world].add(frozenset((SHARED_NAMES[one], SHARED_NAMES[other])))
    counts = [0] * worlds
    for frame in range(frames):
        for pair in set().union(*touching[frame]):
            able = [w for w in range(worlds) if pair <= has[w] and is_recorded[frame, w]]
            number = sum(pair in touching[frame][w] for w in able)
            for world in able:
                counts[world] += (pair in touching[frame][world]) != (2 * number > len(able))
    return counts


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("has_episodes", [False, True])
def test_worlds_of_all_templates_by_shared_names(size, seed, has_episodes):
    rng = np.random.default_rng(seed)
    template = [0, 1, 2, 0, 0, 2, 1][: 5 + seed % 3]
    worlds = len(template)
    frames = 6
    is_recorded = np.ones((frames, worlds), bool)
    episodes = None
    if has_episodes:
        lengths = rng.integers(2, frames + 1, worlds)
        is_recorded = np.arange(frames)[:, None] < lengths
        names = tuple(map(str, range(worlds)))
        first = np.zeros(worlds, np.int64)
        episodes = Episodes(names, np.arange(worlds, dtype=np.int32), first, lengths)
    rows = []
    for cell in range(frames * worlds):
        own = np.flatnonzero((SHAPE_TEMPLATE < 0) | (template[cell % worlds] == SHAPE_TEMPLATE))
        pairs = [(a, b) for a in own.tolist() for b in own.tolist() if a < b]
        for pair in rng.permutation(len(pairs))[: rng.integers(0, len(pairs) + 1)].tolist():
            rows.append((cell, *pairs[pair], float(rng.choice([-0.01, 0.01], p=[0.7, 0.3]))))
    found = shared_touches(np.array(template), SHARED_NAMES, SHAPE_TEMPLATE, episodes)
    assert found is not None
    totals = WorldTotals(found)
    for start in range(0, frames * worlds, size):
        totals.add(block_of(rows, start, min(start + size, frames * worlds)))
    expected = shared_counts(rows, template, frames, is_recorded)
    assert sum(expected) > 5
    assert found.counts().tolist() == expected
    listed = {pair["shape0"] for world in range(worlds) for pair in found.listed(world)}
    assert listed <= {0, 1, 2, 4}


def test_a_world_alone_in_its_template_is_compared_with_all():
    """It touches the floor in the first half alone, and was said to have no differing touch."""
    template = np.array([0] * 9 + [1])
    own = DifferingTouches(template, 3)
    shared = shared_touches(template, ["floor", "cup", "cup"], np.array([-1, 0, 1]))
    totals = WorldTotals(own, shared=shared)
    frames = 40
    rows = [
        (frame * 10 + world, 0, 1 + (world == 9), -0.001)
        for frame in range(frames)
        for world in range(10)
        if world < 9 or frame < 20
    ]
    totals.add(block_of(rows, 0, frames * 10))
    first, *rest = totals.rows(template, ["floor", "/env_0/cup", "/env_9/cup"])
    assert (first["world"], first["differing_touches"], first["outlier"]) == (9, 20, True)
    assert first["differing_from"] == "all worlds"
    (pair,) = first["differing_pairs"]
    expected = {"shape0": "floor", "shape1": "cup", "fewer": 20, "more": 0, "first_frame": 20}
    assert pair == expected
    assert {row["differing_touches"] for row in rest} == {0}
    assert {row["differing_from"] for row in rest} == {"template"}
