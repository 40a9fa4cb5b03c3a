"""Matching of contacts against a least cost found by SciPy, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from collidecli.analysis import alignment
from collidecli.analysis.alignment import Contacts, contacts_of, match_contacts
from collidecli.analysis.differences import deviations
from collidecli.commands.diff import share_of


def contacts(points: np.ndarray, features: np.ndarray, cell: int = 0) -> Contacts:
    """Contacts of the one pair (0, 1), all in one cell."""
    n = len(points)
    columns = {
        "feature0": features,
        "feature1": np.full(n, -1),
        "point0": points,
        "point1": points,
        "normal": np.tile([0.0, 0.0, 1.0], (n, 1)),
    }
    return Contacts(np.full(n, cell), np.zeros(n, np.int64), np.ones(n, np.int64), columns)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 4), (3, 2), (4, 4), (5, 5), (7, 3), (2, 9)])
def test_the_least_cost_is_found(n, m):
    rng = np.random.default_rng(n * 10 + m)
    for _ in range(20):
        a, b = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
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
    found = match_contacts(contacts(points, np.array([1, 2, 3])), contacts(points[::-1], np.array([1, 2, 9])), 2)
    assert list(zip(found.a.tolist(), found.b.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2)]


def test_a_pair_in_one_cell_only():
    points = np.zeros((2, 3))
    here, there = contacts(points, np.arange(2), cell=0), contacts(points, np.arange(2), cell=1)
    found = match_contacts(here, there, 2)
    assert (len(found.a), list(found.missing), list(found.extra)) == (0, [0, 1], [0, 1])
    assert (list(found.missing_pairs), list(found.extra_pairs)) == ([0], [0])


def test_a_crowded_pair_is_matched_in_order_and_told(monkeypatch):
    monkeypatch.setattr(alignment, "MOST_COSTS", 10)
    points = np.zeros((6, 3))
    points[:, 1] = [3.0, 1.0, 2.0, 5.0, 4.0, 0.0]
    found = match_contacts(contacts(points, np.arange(6)), contacts(points[::-1], 100 + np.arange(6)), 2)
    assert found.crowded == 1
    assert list(found.b) == [5, 4, 3, 2, 1, 0]


def test_pairs_that_stand_the_other_way_round_are_turned():
    columns = {
        "shape0": np.array([0, 0]),
        "shape1": np.array([1, 2]),
        "feature0": np.array([5, 6]),
        "feature1": np.array([7, 8]),
        "point0": np.eye(3)[:2],
        "point1": np.eye(3)[1:],
        "normal": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]),
    }
    turned = contacts_of(np.array([2]), columns, np.array([1, 0, 2]))
    assert (list(turned.first), list(turned.second)) == ([0, 1], [1, 2])
    assert (list(turned.columns["feature0"]), list(turned.columns["feature1"])) == ([7, 6], [5, 8])
    assert np.array_equal(turned.columns["point0"], [np.eye(3)[1], np.eye(3)[1]])
    assert np.array_equal(turned.columns["point1"], [np.eye(3)[0], np.eye(3)[2]])
    assert np.array_equal(turned.columns["normal"], [[0.0, 0.0, -1.0], [1.0, 0.0, 0.0]])


@pytest.mark.parametrize("angle", [1e-9, 1e-3, 1.0, 3.0])
def test_angles_between_normals(angle):
    a, b = np.array([[1.0, 0.0, 0.0]]), np.array([[np.cos(angle), np.sin(angle), 0.0]])
    # Near a half turn the arc sine is steep: at 3 rad rounding counts 14 times.
    assert deviations("normal", a, b)[0][0] == pytest.approx(angle, rel=1e-13, abs=1e-16)


def test_shares_are_rounded_as_people_do():
    assert [share_of(0.29, 100), share_of(0.0, 100), share_of(1.0, 7), share_of(0.299, 10)] == [29, 0, 7, 2]
