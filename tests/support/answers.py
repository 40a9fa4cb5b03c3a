"""All answers of the program about pairs of shapes at random configurations, each computed by its own entry point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import collidecli
from collidecli.scene.model import Model
from tests.support.answer_forms import Form
from tests.support.feature_poses import facing_poses

GAPS = (0.0, 1e-3, 1e-2, 0.1, 1.0)
"""Of the unit size."""
SWEEP_TOLERANCE = 1e-6
"""At this distance or less a sweep has a touch, of the unit size."""
LEAST, MOST = 1e-9, 0.3
"""Distances of facing features, of the unit size."""


@dataclass(frozen=True)
class PairCase:
    """Two shapes, `scale` times as large, at poses [P, 2, 7] of the unit size."""

    first: Form
    second: Form
    scale: float
    poses: np.ndarray

    def __str__(self) -> str:
        return f"{self.first.name} and {self.second.name} at {self.scale:g} m"


@dataclass(frozen=True)
class Answers:
    """Of N configurations, lengths in parts of their scale; G gaps.

    case, row: of each configuration. least: float64[G, N], of the contacts; inf without any. normal: float64[G, N, 3],
    point: float64[G, N, 2, 3], of the deepest contact. touch_only: bool[G, N]. clearance, error: float64[N].
    nearest, toward: float64[N, 2, 3], float64[N, 3], the witness points and the normal of `clearance`, in world.
    swept: int[N], of a sweep at rest: 1 touches, 0 apart, -1 undecided.
    """

    case: np.ndarray
    row: np.ndarray
    least: np.ndarray
    normal: np.ndarray
    point: np.ndarray
    touch_only: np.ndarray
    clearance: np.ndarray
    error: np.ndarray
    nearest: np.ndarray
    toward: np.ndarray
    swept: np.ndarray


def random_case(rng: np.random.Generator, first: Form, second: Form, scale: float, count: int) -> PairCase:
    """A case of `count` poses: features that face each other, apart, touching and overlapping; some anywhere."""
    apart = 10.0 ** rng.uniform(np.log10(LEAST), np.log10(MOST), count)
    kind = rng.uniform(size=count)
    apart = np.where(kind < 0.1, 0.0, np.where(kind < 0.5, -apart, apart))
    a, b = first.sample(count, rng), second.sample(count, rng)
    side = np.where(rng.uniform(size=count) < (0.3 if first.mesh is not None else 0.0), -1.0, 1.0)[:, None]
    spin = np.where(rng.uniform(size=count) < 0.2, 0.0, rng.uniform(0.0, 2.0 * np.pi, count))
    pose_b = facing_poses(a.point, side * a.normal, b.point, b.normal, spin, apart, a.tangent, b.tangent)
    anywhere = rng.uniform(size=count) < 0.15
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    place = rng.uniform(-1.2, 1.2, (count, 3)) * (first.extent + second.extent)
    pose_b[anywhere] = np.concatenate([place, turn], 1)[anywhere]
    poses = np.zeros((count, 2, 7))
    poses[:, 0, 6], poses[:, 1] = 1.0, pose_b
    return PairCase(first, second, scale, poses)


def model_of(cases: Sequence[PairCase], gap: float) -> Model:
    """A world per configuration, of two bodies."""
    builder = collidecli.ModelBuilder()
    for case in cases:
        one = collidecli.ModelBuilder()
        for form in (case.first, case.second):
            form.add(one, one.add_body(), case.scale, gap)
        builder.add_world(one, count=len(case.poses))
    return builder.finalize()


def placed(cases: Sequence[PairCase]) -> np.ndarray:
    """float64[1, worlds, bodies, 7]; the bodies of other templates are not in a world."""
    worlds = sum(len(case.poses) for case in cases)
    body_q = np.zeros((1, worlds, 2 * len(cases), 7))
    body_q[..., 6] = 1.0
    begin = 0
    for k, case in enumerate(cases):
        here = case.poses * [*[case.scale] * 3, 1.0, 1.0, 1.0, 1.0]
        body_q[0, begin : begin + len(here), 2 * k : 2 * k + 2] = here
        begin += len(here)
    return body_q


def deepest(contacts: collidecli.Contacts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least distance of each cell, inf without a contact, and that contact's normal and points."""
    count = len(contacts.cell_start) - 1
    least, normal, point = np.full(count, np.inf), np.zeros((count, 3)), np.zeros((count, 2, 3))
    cell = np.repeat(np.arange(count), np.diff(contacts.cell_start))
    order = np.lexsort((contacts.distance, cell))
    found, first = np.unique(cell[order], return_index=True)
    rows = order[first]
    least[found], normal[found] = contacts.distance[rows], contacts.normal[rows]
    point[found] = np.stack([contacts.point0[rows], contacts.point1[rows]], 1)
    return least, normal, point


def answers(cases: Sequence[PairCase], gaps: Sequence[float] = GAPS) -> Answers:
    """What contacts, touch_only, clearance and sweep return."""
    body_q = placed(cases)
    counts = [len(case.poses) for case in cases]
    scale = np.repeat([case.scale for case in cases], counts)
    found, touching = [], []
    model = model_of(cases, 0.0)
    for gap in gaps:
        model = model_of(cases, gap)
        found.append(deepest(collidecli.collide(model, body_q, cache_limit=0)))
        pairs = collidecli.collide(model, body_q, touch_only=True, cache_limit=0).groups["touches"]
        touching.append(np.asarray(pairs.cell_counts) > 0)
    near, world, item = clearances(cases)
    return Answers(
        case=np.repeat(np.arange(len(cases)), counts),
        row=np.concatenate([np.arange(count) for count in counts]),
        least=np.stack([one[0] for one in found]) / scale,
        normal=np.stack([one[1] for one in found]),
        point=np.stack([one[2] for one in found]) / scale[:, None, None],
        touch_only=np.stack(touching),
        clearance=near.distance[0, world, item] / scale,
        error=near.error[0, world, item] / scale,
        nearest=np.stack([near.point0[0, world, item], near.point1[0, world, item]], 1) / scale[:, None, None],
        toward=near.normal[0, world, item],
        swept=swept_at_rest(cases, scale),
    )


def clearances(cases: Sequence[PairCase]) -> tuple[collidecli.Clearances, np.ndarray, np.ndarray]:
    """The distances of all pairs in all worlds; the worlds, and the item of the pair of each."""
    near = collidecli.clearance(model_of(cases, 0.0), placed(cases), by="pair", cache_limit=0)
    item = np.nanargmin(near.distance[0], axis=1)
    return near, np.arange(len(item)), item


def swept_at_rest(cases: Sequence[PairCase], scale: np.ndarray) -> np.ndarray:
    """See `Answers`. scale: of each configuration; those of one scale are swept together, with one tolerance."""
    swept = np.zeros(len(scale), int)
    for one in np.unique(scale):
        chosen = [case for case in cases if case.scale == one]
        rest = np.repeat(placed(chosen), 2, axis=0)
        rows = collidecli.sweep(model_of(chosen, 0.0), rest, tolerance=SWEEP_TOLERANCE * one, cache_limit=0)
        swept[np.flatnonzero(scale == one)[rows.world]] = np.where(rows.touches, 1, -1)
    return swept
