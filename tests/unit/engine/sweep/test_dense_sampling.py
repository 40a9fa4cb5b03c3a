"""No touch is missed: random pairs in random steps against their distance at many times of the step."""

import numpy as np
import pytest

import collidecli
from collidecli.engine.distances import PairDistances
from collidecli.engine.pipeline import find_device
from collidecli.engine.sweep.advancement import UNDECIDED, Advance, Sweeper
from collidecli.engine.sweep.steps import PairSteps
from tests.support.swept_motions import BODIES, random_scene, random_step, sampled_poses

TOLERANCE = 1e-6
PAIRS, SAMPLES = 264, 129
LARGE_PAIRS, LARGE_SAMPLES = 20_000, 4097


def check_pairs(seed: int, with_meshes: bool, pair_count: int, sample_count: int) -> tuple[int, int]:
    """Compares pairs with samples; returns the numbers of compared pairs and of those that touch in a sample."""
    random = np.random.default_rng(seed)
    model = random_scene(random, with_meshes)
    rows = np.stack(np.triu_indices(BODIES, 1), axis=1).astype(np.int32)
    measured = PairDistances(model, find_device("cpu"), rows)
    steps, touching = -(-pair_count // len(rows)), 0
    for _ in range(steps):
        step = random_step(random)
        found = collidecli.sweep(model, step)
        row_of = {pair: row for row, pair in enumerate(zip(found.shape0.tolist(), found.shape1.tolist(), strict=True))}
        time = np.linspace(0.0, 1.0, sample_count)
        poses = sampled_poses(model, step, time)
        ends = sampled_poses(model, step, np.concatenate([found.enter, found.leave]))
        for pair in rows.tolist():
            distance = distances(measured, pair, poses)
            touching += bool(distance.min() <= 0.0)
            row = row_of.get((pair[0], pair[1]))
            if row is None:
                assert distance.min() > 0.5 * TOLERANCE, (seed, pair)
                continue
            check_row(found, row, time, distance)
            if found.touches[row]:
                apart = distances(measured, pair, ends[[row, row + len(found)]])
                assert apart.max() <= TOLERANCE + 1e-12, (seed, pair)
    return steps * len(rows), touching


def distances(measured: PairDistances, pair: list[int], poses: np.ndarray) -> np.ndarray:
    """float64[n]: distance of two shapes at poses [n, shapes, 7]."""
    return measured.measure(np.tile(np.array([pair], np.int32), (len(poses), 1)), poses[:, pair]).distance


def check_row(found: collidecli.Sweep, row: int, time: np.ndarray, distance: np.ndarray) -> None:
    """A row agrees with the distances at times of its step."""
    outside = (time < found.enter[row]) | (time > found.leave[row])
    assert (distance[outside] > 0.5 * TOLERANCE - 1e-12).all()
    assert found.least_bound[row] <= min(distance.min(), found.least[row]) + 1e-12
    assert found.tunnel[row] == (found.touches[row] and found.enter[row] > 0.0 and found.leave[row] < 1.0)


@pytest.mark.parametrize("with_meshes", [False, True], ids=["convex", "meshes"])
def test_no_touch_is_missed(with_meshes):
    pairs, touching = check_pairs(1, with_meshes, *((66, 33) if with_meshes else (PAIRS, SAMPLES)))
    assert touching > pairs // 10


def test_a_certain_touch_is_searched_to_its_ends(monkeypatch):
    """Pairs that are undecided after a few distances, and found to touch between the ends that are known."""
    random = np.random.default_rng(1)
    model, step = random_scene(random, False), random_step(random)
    expected, undecided, advance = collidecli.sweep(model, step), [], Sweeper.advance

    def hasty(self: Sweeper, pairs: PairSteps, rounds: int = 3) -> Advance:
        found = advance(self, pairs, rounds)
        undecided.append((found.status == UNDECIDED).sum())
        return found

    monkeypatch.setattr(Sweeper, "advance", hasty)
    found = collidecli.sweep(model, step)
    assert undecided[0] > 3
    touches = {
        (a, b): row for row, (a, b) in enumerate(zip(found.shape0, found.shape1, strict=True)) if found.touches[row]
    }
    rows = [touches[pair] for pair in zip(expected.shape0, expected.shape1, strict=True) if pair in touches]
    kept = [pair in touches for pair in zip(expected.shape0, expected.shape1, strict=True)]
    assert np.sum(kept) > 0.8 * len(expected)
    for name in ("enter", "leave", "point0", "normal"):
        np.testing.assert_array_equal(getattr(found, name)[rows], getattr(expected, name)[kept])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("with_meshes", [False, True], ids=["convex", "meshes"])
def test_no_touch_is_missed_in_many_pairs(seed, with_meshes):
    pairs, touching = check_pairs(seed, with_meshes, LARGE_PAIRS // (20 if with_meshes else 1), LARGE_SAMPLES)
    assert touching > pairs // 10
