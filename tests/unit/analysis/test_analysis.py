"""Volumes of overlap, summaries, labels and matching of contacts."""

import math
from itertools import groupby, product

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import collidecli
from collidecli.analysis import contact_matching
from collidecli.analysis.contact_matching import Contacts, contacts_of, match_contacts
from collidecli.analysis.deviations import deviations
from collidecli.analysis.labelled_runs import LabelRule, Runs, RunTracker, labelled_runs
from collidecli.analysis.motion_depths import PairDepths
from collidecli.analysis.overlap_volume import overlap_volume
from collidecli.analysis.summary import (
    DepthHistogram,
    FrameSums,
    PairMap,
    PairTotals,
    TimeBins,
    touches_of,
)
from collidecli.analysis.touch_intervals import (
    NO_TEMPLATE,
    Frames,
    Intervals,
    IntervalTracker,
    MergeGap,
    Names,
    PairKeys,
    touches,
)
from collidecli.numerics.poses import compose_poses
from collidecli.scene.contact_blocks import ContactBlock
from tests.support import meshes
from tests.support.contact_sets import made_up_block, small_model, split

TURNED = np.array([0.3, -0.2, 0.5, *(np.array([0.1, 0.7, -0.3, 0.6]) / math.sqrt(0.95))])
EYE = (0.0, 0.0, 0.0, 1.0)


def two_shapes(one, other, pose_one, pose_other):
    """A model of two shapes, `shape(...)`, and their poses at poses of their bodies."""
    builder = collidecli.ModelBuilder()
    for (kind, sizes), body in ((one, -1), (other, builder.add_body())):
        add = getattr(builder, f"add_shape_{kind}")
        add(body, **sizes)
    model = builder.finalize()
    return model, compose_poses(np.array([pose_one, pose_other], float), model.shapes.pose)


def volume_of(one, other, pose_one, pose_other):
    model, poses = two_shapes(one, other, pose_one, pose_other)
    for hull in model.hulls:
        hull.vertex.setflags(write=False)  # as those of the cache are
    return overlap_volume(model, poses, 0, 1)


def shape(kind: str, **sizes):
    return kind, sizes


def sphere(radius: float):
    return shape("sphere", radius=radius)


def box(x: float, y: float, z: float):
    return shape("box", hx=x, hy=y, hz=z)


PLANE = shape("plane")


def cap(radius: float, depth: float) -> float:
    return math.pi * depth**2 * (3 * radius - depth) / 3


@pytest.mark.parametrize(
    ("one", "other", "at", "expected"),
    [
        (PLANE, sphere(0.5), (0, 0, 0.4, *EYE), cap(0.5, 0.1)),
        (PLANE, box(0.5, 0.4, 0.3), (7, 0, 0.2, *EYE), 1.0 * 0.8 * 0.1),
        (sphere(0.5), sphere(0.3), (0.4, 0, 0, *EYE), cap(0.5, 0.1) + cap(0.3, 0.3)),
        (box(0.5, 0.5, 0.5), box(0.5, 0.5, 0.5), (0.7, 0.6, 0.5, *EYE), 0.3 * 0.4 * 0.5),
        (box(1, 1, 1), sphere(0.25), (0, 0, 1.1, *EYE), cap(0.25, 0.15)),
        (box(1, 1, 1), sphere(0.25), (0, 0, 3, *EYE), 0.0),
        (box(1, 1, 1), sphere(0.25), (0, 0, 0, *EYE), 4 / 3 * math.pi * 0.25**3),
        (
            box(2, 2, 1),
            shape("cylinder", radius=0.5, half_height=0.4),
            (0, 0, 1.3, *EYE),
            math.pi * 0.25 * 0.1,
        ),
        (
            box(2, 2, 1),
            shape("cone", radius=0.5, half_height=0.4),
            (0, 0, 0, *EYE),
            math.pi * 0.25 * 0.8 / 3,
        ),
        (
            box(2, 2, 1),
            shape("capsule", radius=0.2, half_height=0.4),
            (0, 0, 0, *EYE),
            math.pi * 0.04 * (0.8 + 0.8 / 3),
        ),
        (
            box(2, 2, 1),
            shape("ellipsoid", rx=0.2, ry=0.3, rz=0.4),
            (0, 0, 1, *EYE),
            2 / 3 * math.pi * 0.024,
        ),
    ],
)
def test_closed_forms(one, other, at, expected):
    poses = [compose_poses(TURNED, np.array(pose, float)) for pose in ((0, 0, 0, *EYE), at)]
    found = volume_of(one, other, *poses)
    assert abs(found.volume - expected) <= found.error + 1e-9
    assert found.error <= 2e-3 * expected + 1e-12
    assert not found.reason


def test_the_volume_in_a_mesh():
    vertex, face = meshes.box(0.5, 0.5, 0.5)
    cube = box(0.5, 0.5, 0.5)
    rest = (0, 0, 0, *EYE)
    aside = (0.25, 0, 0, *EYE)
    for solid in (
        shape("mesh", vertices=vertex, faces=face),
        shape("convex_hull", vertices=vertex),
    ):
        found = volume_of(cube, solid, rest, aside)
        assert (found.volume, found.error) == (pytest.approx(0.75, rel=1e-12), 0.0)


def test_the_volume_in_a_heightfield():
    flat = shape("heightfield", heights=np.zeros((3, 4)), hx=2.0, hy=2.0, base=1.0)
    found = volume_of(flat, sphere(0.5), (0, 0, 0, *EYE), (0.2, 0.1, 0.4, *EYE))
    assert abs(found.volume - cap(0.5, 0.1)) <= found.error


def test_what_has_no_inside_has_no_volume():
    vertex, face = meshes.box(0.5, 0.5, 0.5)
    cube = box(0.5, 0.5, 0.5)
    rest = (0, 0, 0, *EYE)
    opened = shape("mesh", vertices=vertex, faces=face[2:])
    for one, other, reason in ((cube, opened, "open mesh"), (PLANE, PLANE, "planes")):
        found = volume_of(one, other, rest, rest)
        assert math.isnan(found.volume)
        assert reason in found.reason


FRAMES = 11
WORLDS = 3
SHAPES = 5


BLOCK = made_up_block(small_model(WORLDS), FRAMES, contacts_per_cell=9)
CELL = np.repeat(np.arange(len(BLOCK.cell_counts)), BLOCK.cell_counts)
COLUMNS = (CELL, *(BLOCK.columns[name] for name in ("shape0", "shape1", "distance")))
ROWS = list(zip(*(column.tolist() for column in COLUMNS), strict=True))
"""(cell, shape0, shape1, distance) of each contact."""


@pytest.mark.parametrize("cells", [1, 4, 1000])
def test_sums_do_not_depend_on_blocks(cells):
    found = []
    sums = FrameSums(FRAMES, WORLDS)
    none = np.zeros(0, np.int64)
    pairs = PairTotals(none, none, none, none, none, none.astype(float), none)
    keys = np.unique([row[1] * SHAPES + row[2] for row in ROWS])[1::2]
    bin_of = TimeBins(FRAMES, 4).of
    held = PairMap(keys, bin_of, WORLDS, SHAPES)
    for part in split(BLOCK, cells):
        sums.add(part)
        touches = touches_of(part)
        held.add(touches)
        pairs = pairs.joined(PairTotals.of(touches, SHAPES))
        points = touches.mean(part.columns["point0"])
        for n in range(len(touches)):
            of = slice(int(touches.start[n]), int(touches.start[n] + touches.contact_count[n]))
            np.testing.assert_allclose(points[n], part.columns["point0"][of].mean(axis=0))
            key = (int(touches.cell[n]), int(touches.shape0[n]), int(touches.shape1[n]))
            found.append((*key, int(touches.contact_count[n]), float(touches.distance[n])))
    expected = {}
    for cell, shape0, shape1, distance in ROWS:
        expected.setdefault((cell, shape0, shape1), []).append(distance)
    assert found == [(*key, len(some), min(some)) for key, some in expected.items()]
    for frame in range(FRAMES):
        here = [row[3] for row in ROWS if row[0] // WORLDS == frame]
        wanted = (len(here), sum(distance < 0.0 for distance in here), min(here, default=np.inf))
        assert (sums.contacts[frame], sums.penetrating[frame], sums.least[frame]) == wanted
    assert (np.diff(pairs.key) > 0).all()
    assert set(pairs.key.tolist()) == {row[1] * SHAPES + row[2] for row in ROWS}
    for n, key in enumerate(pairs.key.tolist()):
        here = [row for row in ROWS if row[1] * SHAPES + row[2] == key]
        cells_of = [row[0] for row in here]
        least = min(row[3] for row in here)
        assert (pairs.contacts[n], pairs.touches[n]) == (len(here), len(set(cells_of)))
        assert (pairs.first[n], pairs.last[n]) == (min(cells_of), max(cells_of))
        assert (pairs.least[n], pairs.at[n]) == (
            least,
            min(row[0] for row in here if row[3] == least),
        )
    for (n, key), b in product(enumerate(keys.tolist()), range(bin_of[-1] + 1)):
        here = [
            row[3]
            for row in ROWS
            if row[1] * SHAPES + row[2] == key and bin_of[row[0] // WORLDS] == b
        ]
        assert (held.contacts[n, b], held.least[n, b]) == (len(here), min(here, default=np.inf))


def test_bins_of_frames():
    assert TimeBins(5, 600).of.tolist() == [0, 1, 2, 3, 4]
    assert TimeBins(7, 3).of.tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert TimeBins(0, 3).of.tolist() == []
    for frames in (599, 600, 601, 1200, 1201):
        assert TimeBins(frames, 600).of[-1] < 600


def test_depths():
    depth = DepthHistogram()
    depth.add(np.array([0.5, 0.0, -1e-12, -1.5e-3, -1.4e-3, -1.1, -1e6], np.float32))
    assert depth.counts.sum() == 5, "what is apart or just touches has no depth"
    assert (depth.counts[0], depth.counts[-1]) == (1, 1)
    for value, expected in ((1.45e-3, 2), (1.1, 1)):
        n = int(np.searchsorted(depth.edges, value))
        assert depth.edges[n - 1] <= value < depth.edges[n]
        assert depth.counts[n] == expected


def test_a_contact_of_distance_0_does_not_penetrate():
    sums = FrameSums(2, 1)
    distance = np.array([-1e-9, 0.0, 1e-9, 0.0], np.float32)
    sums.add(ContactBlock(0, np.array([3, 1]), {"distance": distance}))
    assert (sums.contacts.tolist(), sums.penetrating.tolist()) == ([3, 1], [1, 0])


def state_machine(distance: np.ndarray, rule: LabelRule) -> np.ndarray:
    """bool[F] of distances float32[F] of one episode, infinite without a contact; frame by
    frame."""
    touching = False
    found = ""
    for d in distance:
        touching = bool(d <= np.float32(rule.leave if touching else rule.enter))
        found += "x" if touching else "."
    inside = found.strip(".")
    before = len(found) - len(found.lstrip("."))
    pauses = "".join(
        part.replace(".", "x") if len(part) < rule.min_frames else part for part in parts(inside)
    )
    labels = "." * before + pauses + "." * (len(found) - before - len(inside))
    kept = "".join(
        part if len(part) >= rule.min_frames else "." * len(part) for part in parts(labels)
    )
    return np.array([c == "x" for c in kept], bool)


def parts(text: str) -> list[str]:
    return ["".join(run) for _, run in groupby(text)]


def labels_of(distance: np.ndarray, rule: LabelRule, end: int | None = None) -> np.ndarray:
    """bool[P, F] of distances float32[P, F], by `labelled_runs`. end: frame between two
    episodes."""
    key, frame = np.nonzero(np.isfinite(distance))
    ends = None if end is None else np.where(frame < end, end, distance.shape[1])
    runs = labelled_runs(key, frame, distance[key, frame], rule, ends)
    found = np.zeros(distance.shape, bool)
    found[runs.cells()] = True
    assert int(runs.frame_count.sum()) == found.sum()  # runs do not overlap
    return found


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_against_a_state_machine(seed, least):
    rng = np.random.default_rng(seed)
    walk = np.cumsum(rng.normal(scale=0.004, size=(12, 60)), axis=1) + rng.normal(
        scale=0.01, size=(12, 1)
    )
    walk[rng.random(walk.shape) < 0.1] = np.inf
    distance = np.round(walk, 3).astype(np.float32)  # values at the limits themselves
    for enter, leave in ((0.0, 0.0), (0.0, 0.004), (-0.003, 0.002), (0.001, 0.001)):
        rule = LabelRule(enter, leave, least)
        expected = np.array([state_machine(row, rule) for row in distance])
        assert expected.any()
        np.testing.assert_array_equal(labels_of(distance, rule), expected)
        halves = [
            state_machine(row[part], rule)
            for row in distance
            for part in (slice(0, 25), slice(25, None))
        ]
        np.testing.assert_array_equal(
            labels_of(distance, rule, 25), np.concatenate(halves).reshape(distance.shape)
        )


@pytest.mark.parametrize("least", [1, 2, 5])
def test_runs_are_equal_in_blocks_of_any_size(least):
    rng = np.random.default_rng(least)
    distance = rng.normal(scale=0.004, size=(9, 80)).astype(np.float32)
    distance[rng.random(distance.shape) < 0.2] = np.inf
    rule = LabelRule(0.0, 0.003, least)
    frame, key = np.nonzero(np.isfinite(distance.T))
    ends = np.where(frame < 33, 33, 80)
    rows = np.lexsort((frame, key))
    whole = labelled_runs(
        key[rows], frame[rows], distance[key[rows], frame[rows]], rule, ends[rows]
    )
    assert len(whole) > 9
    for length in (1, 3, 7, 40):
        tracker = RunTracker(rule)
        parts = []
        for first in range(0, 80, length):
            following = min(first + length, 80)
            rows = np.flatnonzero((frame >= first) & (frame < following))
            rows = rows[np.argsort(key[rows], kind="stable")]
            one = key[rows], frame[rows], distance[key[rows], frame[rows]], ends[rows]
            parts.append(tracker.add(*one, following))
        assert len(tracker.open) == 0
        found = Runs.chained(*parts)
        found = found.take(np.lexsort((found.first, found.key)))
        for name in ("key", "first", "last", "end"):
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))


def test_no_rows_have_no_labels():
    none = np.zeros(0, np.int64)
    assert len(labelled_runs(none, none, np.zeros(0, np.float32), LabelRule(min_frames=2))) == 0


def test_names_are_merged_where_no_world_has_two():
    template = np.array([-1, 0, 0, 0, 1, 1, -1, 1, NO_TEMPLATE])
    names = Names.of(
        ["floor", "cup", "pin", "pin", "cup", "floor", "wall", "wall2", "cup"], template
    )
    assert names.row.tolist() == [0, 1, 2, 3, 1, 5, 6, 7, 1]
    merged = (
        "floor",
        "cup",
        "pin (template 0)",
        "pin (template 0)",
        "cup",
        "floor (template 1)",
        "wall",
        "wall2",
        "cup",
    )
    assert names.text == merged
    assert [side.tolist() for side in names.pair(np.array([4]), np.array([0]))] == [[0], [1]]
    # Paths of one template stay as they are; particles and shapes, and a body and its namesake in
    # one world, differ.
    assert Names.of(["pin", "pin"], np.zeros(2, int)).text == ("pin", "pin")
    keys = PairKeys.of_bodies(["a", "b", "a"], ["x", "b", "y", "b"], np.array([0, -1, 2, 1]), 2)
    keys = keys.with_more(["b"], ["cloth"], 2).by_name(np.array([0, 1, 1, 0, 1]))
    assert list(zip(keys.paths, keys.kinds, strict=True)) == [
        ("a", "body"),
        ("b", "body"),
        ("b", "cloth"),
    ]
    assert keys.number.tolist() == [0, 1, 0, 1, 2]


def contacts(points: np.ndarray, features: np.ndarray, cell: int = 0) -> Contacts:
    """Contacts of the one pair (0, 1), all in one cell."""
    n = len(points)
    columns = {"feature0": features, "feature1": np.full(n, -1)}
    columns |= {"point0": points, "point1": points, "normal": np.tile([0.0, 0.0, 1.0], (n, 1))}
    return Contacts(np.full(n, cell), np.zeros(n, np.int64), np.ones(n, np.int64), columns)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (3, 2), (4, 4), (5, 5), (7, 3), (2, 9)])
def test_the_least_cost_is_found(n, m):
    rng = np.random.default_rng(n * 10 + m)
    for _ in range(20):
        a = rng.normal(size=(n, 3))
        b = rng.normal(size=(m, 3))
        found = match_contacts(contacts(a, np.arange(n)), contacts(b, 100 + np.arange(m)), 2)
        cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
        best = cost[linear_sum_assignment(cost)].sum()
        assert len(found.a) == min(n, m)
        assert cost[found.a, found.b].sum() == pytest.approx(best, rel=1e-12)
        assert sorted([*found.a, *found.missing]) == list(range(n))
        assert sorted([*found.b, *found.extra]) == list(range(m))
        assert (len(found.missing_pairs), len(found.extra_pairs)) == (0, 0)


def test_features_come_before_places():
    points = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    found = match_contacts(
        contacts(points, np.array([1, 2, 3])), contacts(points[::-1], np.array([1, 2, 9])), 2
    )
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2)]


def test_a_pair_in_one_cell_only():
    points = np.zeros((2, 3))
    here = contacts(points, np.arange(2), cell=0)
    there = contacts(points, np.arange(2), cell=1)
    found = match_contacts(here, there, 2)
    assert (len(found.a), list(found.missing), list(found.extra)) == (0, [0, 1], [0, 1])
    assert (list(found.missing_pairs), list(found.extra_pairs)) == ([0], [0])


def test_a_crowded_pair_is_matched_in_order(monkeypatch):
    monkeypatch.setattr(contact_matching, "MOST_COSTS", 10)
    points = np.zeros((6, 3))
    points[:, 1] = [3.0, 1.0, 2.0, 5.0, 4.0, 0.0]
    found = match_contacts(
        contacts(points, np.arange(6)), contacts(points[::-1], 100 + np.arange(6)), 2
    )
    assert found.crowded == 1
    assert list(found.b) == [5, 4, 3, 2, 1, 0]


def test_pairs_that_stand_the_other_way_round_are_turned():
    columns = {"shape0": [0, 0], "shape1": [1, 2], "feature0": [5, 6], "feature1": [7, 8]}
    columns = {name: np.array(values) for name, values in columns.items()}
    columns |= {"point0": np.eye(3)[:2], "point1": np.eye(3)[1:], "normal": np.eye(3)[[2, 0]]}
    turned = contacts_of(np.array([2]), columns, np.array([1, 0, 2]))
    assert (list(turned.first), list(turned.second)) == ([0, 1], [1, 2])
    assert (list(turned.columns["feature0"]), list(turned.columns["feature1"])) == ([7, 6], [5, 8])
    expected = {
        "point0": np.eye(3)[[1, 1]],
        "point1": np.eye(3)[[0, 2]],
        "normal": [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0]],
    }
    for name, values in expected.items():
        assert np.array_equal(turned.columns[name], values)


@pytest.mark.parametrize("angle", [1e-9, 1e-3, 1.0, 3.0])
def test_angles_between_normals(angle):
    a = np.array([[1.0, 0.0, 0.0]])
    b = np.array([[np.cos(angle), np.sin(angle), 0.0]])
    # Near a half turn the arc sine is steep: at 3 rad rounding counts 14 times.
    assert deviations("normal", a, b)[0][0] == pytest.approx(angle, rel=1e-13, abs=1e-16)


@pytest.mark.parametrize("gap", [0, 1, 3])
@pytest.mark.parametrize("block", [1, 7, 60])
def test_pauses_no_longer_than_the_merge_gap_are_bridged(block, gap):
    rows = np.flatnonzero(np.random.default_rng(gap).uniform(size=60) < 0.6)
    tracker = IntervalTracker(Frames(np.arange(60), np.arange(60.0)), MergeGap(frames=gap))
    parts = []
    for first in range(0, 60, block):
        part = rows[(rows >= first) & (rows < first + block)]
        found = touches(np.zeros(len(part), np.int64), part, np.full(len(part), -0.1, np.float32))
        parts.append(tracker.add(found, first + block))
    joined = Intervals.chained(*parts, tracker.finish())
    begins = np.flatnonzero(np.diff(rows, prepend=-gap - 9) > gap + 1)
    assert joined.first.tolist() == rows[begins].tolist()
    assert joined.last.tolist() == rows[[*(begins[1:] - 1), -1]].tolist()


def test_shapes_of_one_name_start_as_deep_as_any_of_them():
    depths = PairDepths(
        np.array([0, 1]),
        np.array([0.2, 0.1], np.float32),
        np.array([3, 0]),
        np.array([2, 1]),
        np.array([1, 0]),
        np.array([0.0, 0.1], np.float32),
    )
    (start,) = depths.merged(np.array([5, 5])).start
    assert start == np.float32(0.1)
