"""Hysteresis and least lengths of labels against a state machine over every frame."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.analysis.labels import LabelRule, labelled_runs


def state_machine(distance: np.ndarray, rule: LabelRule) -> np.ndarray:
    """bool[F] of distances float32[F] of one episode, infinite without a contact; frame by frame."""
    touching, found = False, []
    for d in distance:
        touching = bool(d <= np.float32(rule.leave)) if touching else bool(d <= np.float32(rule.enter))
        found.append(touching)
    found = "".join("x" if on else "." for on in found)
    inside = found.strip(".")
    before = len(found) - len(found.lstrip("."))
    pauses = "".join(
        part.replace(".", "x") if part[0] == "." and len(part) < rule.min_frames else part for part in parts(inside)
    )
    labels = "." * before + pauses + "." * (len(found) - before - len(inside))
    return np.array(
        [c == "x" for part in parts(labels) for c in (part if len(part) >= rule.min_frames else "." * len(part))], bool
    )


def parts(text: str) -> list[str]:
    """Runs of equal characters."""
    found: list[str] = []
    for character in text:
        if found and found[-1][0] == character:
            found[-1] += character
        else:
            found.append(character)
    return found


def labels_of(distance: np.ndarray, rule: LabelRule, end: int | None = None) -> np.ndarray:
    """bool[P, F] of distances float32[P, F], by `labelled_runs`. end: frame between two episodes."""
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
    walk = np.cumsum(rng.normal(scale=0.004, size=(12, 60)), axis=1) + rng.normal(scale=0.01, size=(12, 1))
    walk[rng.random(walk.shape) < 0.1] = np.inf
    distance = np.round(walk, 3).astype(np.float32)  # values at the limits themselves
    for enter, leave in ((0.0, 0.0), (0.0, 0.004), (-0.003, 0.002), (0.001, 0.001)):
        rule = LabelRule(enter, leave, least)
        expected = np.array([state_machine(row, rule) for row in distance])
        assert expected.any()
        np.testing.assert_array_equal(labels_of(distance, rule), expected)
        halves = [state_machine(row[part], rule) for row in distance for part in (slice(0, 25), slice(25, None))]
        np.testing.assert_array_equal(labels_of(distance, rule, 25), np.concatenate(halves).reshape(distance.shape))


def test_every_run_and_pause_is_long_enough():
    rng = np.random.default_rng(3)
    distance = np.where(rng.random((40, 200)) < 0.6, np.float32(-0.01), np.float32(np.inf))
    for row in labels_of(distance, LabelRule(min_frames=4)):
        runs = parts("".join("x" if on else "." for on in row).strip("."))
        assert all(len(run) >= 4 for run in runs)


def test_a_limit_that_is_written_in_float32_counts():
    distance = np.array([[0.001, 0.003, 0.0030001]], np.float32)
    assert labels_of(distance, LabelRule(0.001, 0.003)).tolist() == [[True, True, False]]


def test_no_rows():
    none = np.zeros(0, np.int64)
    assert len(labelled_runs(none, none, np.zeros(0, np.float32), LabelRule(min_frames=2))) == 0
