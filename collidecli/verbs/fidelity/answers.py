"""What an engine's answers are: right, wrong, missing, or those of other cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.adapters.repros import is_convex
from collidecli.adapters.rows import EngineRows, unusable_rows
from collidecli.engine.sweep.supports import Supports
from collidecli.scene.distinct_values import distinct
from collidecli.verbs.fidelity.exact_distances import distance_outside, pair_types

if TYPE_CHECKING:
    from collidecli.verbs.fidelity.exact_distances import Exact

AGREE = 1e-3
"""Fraction within which a wrong distance is that of the opposite sign, or that of the cell
before."""


@dataclass(frozen=True)
class Answers:
    """An engine's answers about the pairs of `Exact`, arrays [N].

    touches: asked, and the shapes overlap. missed, phantom, wrong_sign, stale, shifted, flipped:
    bool; missed is a pair without a row of an overlap; stale is an answer of the cell before,
    shifted if all are of the cell before or after. distance: the least of the pair's rows;
    depth_error, excess, point_error [m] and angle [rad], NaN where there is none. relative_error:
    depth_error as a part of the depth, of overlaps deeper than the band. distance_error: of
    contacts in the gap of shapes that are apart [m]. factor: of `common_factors`. rows, unusable,
    zero: number of the pair's rows, and of those that cannot be used.
    """

    asked: np.ndarray
    touches: np.ndarray
    missed: np.ndarray
    phantom: np.ndarray
    wrong_sign: np.ndarray
    stale: np.ndarray
    shifted: np.ndarray
    flipped: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    depth_error: np.ndarray
    relative_error: np.ndarray
    distance_error: np.ndarray
    factor: np.ndarray
    excess: np.ndarray
    angle: np.ndarray
    point_error: np.ndarray
    rows: np.ndarray
    unusable: np.ndarray
    zero: np.ndarray


def compared(exact: Exact, rows: EngineRows) -> Answers:
    """The answers of an engine."""
    at = exact.index(rows.cell * len(exact.problem.arrays["pair"]) + rows.pair)
    count = len(exact.key)
    true = exact.rows.distance
    band = exact.band
    bad_normal, unusable, zero = unusable_rows(rows)
    totals = [
        np.bincount(at, which, count).astype(np.int64)
        for which in (np.ones(len(at)), unusable, zero)
    ]
    first = np.full(count, -1)
    # rows are ordered by distance: the least of each pair remains
    first[at[::-1]] = np.arange(len(at))[::-1]
    first = np.where((first >= 0) & np.isfinite(np.append(rows.distance, 0.0)[first]), first, -1)
    has = first >= 0
    asked = rows.asked[exact.pair]
    distance = np.where(has, np.append(rows.distance, np.nan)[first], np.nan)
    normal = np.where(has[:, None], np.append(rows.normal, [[np.nan] * 3], axis=0)[first], np.nan)
    normal[~has | np.append(bad_normal, True)[first]] = np.nan
    touches = asked & (true < 0.0)
    wrong = has & (np.abs(distance - true) > band)
    opposite = (distance > 0.0) == (true < 0.0)
    wrong_sign = (
        wrong & opposite & (np.abs(true) > band) & (np.abs(distance + true) <= AGREE * np.abs(true))
    )
    wrong_sign &= _is_systematic(wrong_sign, wrong)
    missed = touches & (true < -band) & (totals[0] == 0)
    stale, shifted = _of_other_cells(exact, distance, wrong & ~wrong_sign, missed)
    of_others = stale | shifted
    good = ~wrong_sign & ~of_others
    # whatever the gap of the pair is
    missed = good & (missed | (touches & (true < -band) & (distance > 0.0)))
    seen = touches & has & ~of_others & ~missed
    depth_error = np.where(seen & good, np.abs(distance - true), np.nan)
    is_deep = true < -band
    relative_error = np.where(is_deep, depth_error / np.where(is_deep, -true, 1.0), np.nan)
    is_apart = asked & has & good & (true > 0.0) & (distance > 0.0)
    excess, angle, flipped = _normals(exact, normal, seen)
    outside = distance_outside(exact, np.append(rows.point, [[np.nan] * 3], axis=0)[first], seen)
    return Answers(
        asked,
        touches,
        missed,
        asked & has & good & (true > band) & (distance <= 0.0),
        asked & wrong_sign,
        asked & stale,
        asked & shifted,
        flipped,
        distance,
        normal,
        depth_error,
        relative_error,
        np.where(is_apart, np.abs(distance - true), np.nan),
        common_factors(-true, -distance, np.isfinite(relative_error), pair_types(exact)),
        np.where(flipped, np.nan, excess),
        np.where(flipped, np.nan, angle),
        (outside - exact.outside).clip(0.0),
        *totals,
    )


SHIFTED = 0.9
"""Fraction of the answers that differ from those of the cell before or after, of which so many are
shifted."""


def _of_other_cells(
    exact: Exact, distance: np.ndarray, wrong: np.ndarray, missed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Wrong and missing answers that are of the cell before; and those where all are of the cell
    before or after.

    distance: float64[N], NaN is none. wrong, missed: bool[N].
    """
    same_cells = []
    true = exact.rows.distance
    for near, other in ((exact.before, exact.after), (exact.after, exact.before)):
        beside = np.where(near >= 0, true[near], np.nan)
        same = wrong & (np.abs(distance - beside) <= AGREE * np.abs(true - beside))
        same &= _is_systematic(same, wrong)
        same |= missed & (other >= 0) & same[other]
        differ = np.isfinite(distance) & (np.abs(true - beside) > exact.band)
        if np.count_nonzero(same & differ) > SHIFTED * np.count_nonzero(differ):
            return np.zeros_like(same), same
        same_cells.append(same)
    return same_cells[0], np.zeros_like(wrong)


SAME_FACTOR = 0.01
"""Factors between depths that differ by this fraction are one; true depths that do are of one
pose."""
LEAST_OFF = 0.1
LEAST_DEPTHS = 5
"""Least difference of a common factor from 1, and least number of different depths that have it."""


def common_factors(
    true: np.ndarray, reported: np.ndarray, chosen: np.ndarray, types: np.ndarray
) -> np.ndarray:
    """float64[N]: the factor by which depths are wrong, where one factor explains half of the wrong
    depths of a pair of types; NaN of other depths.

    true, reported: depths [m]. chosen: bool[N], known depths. types: [N, 2]. Equal depths, as of a
    body at rest, count once for LEAST_DEPTHS.
    """
    factor = np.full(len(true), np.nan)
    positive = chosen & (true > 0.0) & (reported > 0.0)
    ratio = np.where(positive, reported, 1.0) / np.where(positive, true, 1.0)
    wrong = positive & (np.abs(ratio - 1.0) > LEAST_OFF)
    for pair in distinct(types[wrong], axis=0):
        mine = np.flatnonzero(wrong & (types == pair).all(axis=1))
        logs = np.log(ratio[mine])
        order = np.sort(logs)
        ends = np.searchsorted(order, order + SAME_FACTOR, side="right")
        begin = int(np.argmax(ends - np.arange(len(order))))
        middle = float(np.median(order[begin : ends[begin]]))
        same = mine[np.abs(logs - middle) <= SAME_FACTOR]
        different = len(distinct(np.round(np.log(true[same]) / SAME_FACTOR)))
        if 2 * len(same) >= len(mine) and different >= LEAST_DEPTHS:
            factor[same] = np.exp(middle)
    return factor


def _is_systematic(fault: np.ndarray, wrong: np.ndarray) -> bool:
    """Whether a fault explains half of the wrong distances: an inexact engine has such a one by
    chance."""
    return bool(2 * np.count_nonzero(fault) >= np.count_nonzero(wrong))


def separations(exact: Exact, normal: np.ndarray) -> np.ndarray:
    """float64[N]: how far shape1 must move along a normal [N, 3] to be apart [m]; NaN for pairs
    that are not convex."""
    model = exact.problem.model
    poses = exact.problem.arrays["pose"]
    shapes = exact.shapes
    supports = Supports(model)
    heights = []
    for k, sign in ((0, 1), (1, -1)):
        pose = poses[exact.cell, shapes[:, k]]
        height = supports.height(shapes[:, k], pose, sign * normal)
        heights.append(height + (pose[:, :3] * (sign * normal)).sum(axis=1))
    return np.where(is_convex(model)[shapes].all(axis=1), heights[0] + heights[1], np.nan)


def _normals(
    exact: Exact, normal: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal excess [m], angle to the true normal [rad], and whether the normal has the opposite
    direction."""
    true = exact.rows
    unit = normal / np.linalg.norm(normal, axis=1)[:, None]
    cosine = (unit * true.normal).sum(axis=1)
    sine = np.linalg.norm(np.cross(unit, true.normal), axis=1)
    angle = np.where(chosen, np.arctan2(sine, cosine), np.nan)
    excess, other = (separations(exact, direction) + true.distance for direction in (unit, -unit))
    flipped = (angle > 0.5 * np.pi) & ~(other >= excess - exact.band)
    return np.where(chosen, excess, np.nan), angle, flipped


FAULTS = ("wrong_sign", "stale", "shifted", "flipped")
ROW_FIELDS = ("distance", "normal", "point0", "point1")
