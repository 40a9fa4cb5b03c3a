"""Rules that hold between the answers about one configuration, each with the bound of its rounding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

import collidecli
from collidecli.scene.shape_types import ShapeType
from tests.support.answer_forms import Form
from tests.support.answers import GAPS, SWEEP_TOLERANCE, Answers, PairCase, clearances
from tests.support.meshes import point_distances
from tests.support.oracle import rotation_of

ROUNDING = 1e-9
"""Of the size: docs/howto/measure-clearance.md bounds the certified error of a distance by it."""
CONTACT = 1e-7
"""Of the size: the bound of a contact's distance in docs/explanation/accuracy.md."""
TOUCH_FROM_BEHIND = 1e-8
"""Of the size: an overlap of a one-sided triangle up to twice the error of the depth of touching shapes, which is 2e-9
of the sum of their sizes, is a touch."""
FLOAT32 = 2.0**-23
"""Of a number: one unit in the last place of a contact's distance; a rounded float64 may fall to either side."""
LISTED = 6
"""Configurations of a message."""
Broken = tuple[str, np.ndarray]
"""A rule and where it does not hold, bool[N]."""


def rules(cases: Sequence[PairCase], found: Answers, gaps: Sequence[float] = GAPS) -> Iterator[Broken]:
    """Every rule of shapes against each other, and where it does not hold.

    A shape that touches a one-sided mesh from behind is free of it or deep in it: at a touch to rounding only the rule
    of touch_only holds.
    """
    judged = ~touches_a_back(cases, found)
    for rule, where in all_rules(cases, found, gaps):
        yield rule, where & (judged | rule.startswith("touch_only"))


def touches_a_back(cases: Sequence[PairCase], found: Answers) -> np.ndarray:
    """bool[N]: of pairs with a one-sided mesh, whether they touch to rounding if it has two sides."""
    sided = [k for k, case in enumerate(cases) if not case.first.two_sided]
    result = np.zeros(len(found.case), bool)
    if sided:
        twins = [replace(cases[k], first=replace(cases[k].first, two_sided=True)) for k in sided]
        near, world, item = clearances(twins)
        scale = np.repeat([case.scale for case in twins], [len(case.poses) for case in twins])
        result[np.isin(found.case, sided)] = np.abs(near.distance[0, world, item]) <= TOUCH_FROM_BEHIND * scale
    return result


def all_rules(cases: Sequence[PairCase], found: Answers, gaps: Sequence[float]) -> Iterator[Broken]:
    """See `rules`."""
    voxel = np.array([half_voxel(case) for case in cases])[found.case]
    rounding = np.array([ROUNDING * max(1.0, case.first.extent, case.second.extent) for case in cases])[found.case]
    slack = rounding + FLOAT32 * np.abs(found.clearance) + voxel
    present = np.isfinite(found.least)
    hidden = np.array([not case.first.two_sided for case in cases])[found.case]
    must, may = ~hidden, np.ones_like(hidden)
    if hidden.any():
        front, back = sides(cases, found)
        must[hidden], may[hidden] = front[hidden], ~back[hidden]
    for k, gap in enumerate(gaps):
        yield f"a contact within the gap {gap:g}", must & ~present[k] & (found.clearance < gap - slack)
        yield f"no contact beyond the gap {gap:g}", present[k] & (found.clearance > gap + slack)
        yield f"no contact behind a front, gap {gap:g}", present[k] & ~may & (found.clearance > slack)
        yield f"no distance of the gap {gap:g} or more", present[k] & (found.least[k] >= gap + slack)
        yield f"touch_only has the pairs of contacts, gap {gap:g}", found.touch_only[k] != present[k]
    reach = np.array([*gaps])[:, None]
    off = np.where(present, np.abs(np.where(present, found.least, 0.0) - found.clearance), 0.0)
    yield "contacts have the clearance", (off > slack + CONTACT / ROUNDING * rounding).any(0)
    yield "the error of a distance is certified", (found.clearance > 0.0) & (found.error > rounding)
    overlap = (found.least < -slack).any(0) | (found.clearance < -slack)
    depth = np.where(present, found.least, np.where(reach > 0.0, np.inf, 0.0))
    for k in range(1, len(gaps)):
        differs = np.abs(depth[k] - depth[0]) > rounding + FLOAT32 * np.abs(depth[0])
        yield f"the depth at gap {gaps[k]:g} is that without a gap", overlap & differs
    yield (
        "the sign of contacts is that of the clearance",
        (
            ((found.least < -slack) & (found.clearance > slack)) | ((found.least > slack) & (found.clearance < -slack))
        ).any(0),
    )
    yield (
        "a distance of 0 is a touch",
        ((found.clearance == 0.0) & present[-1] & (np.abs(np.where(present[-1], found.least[-1], 0.0)) > slack)),
    )
    yield "a sweep at rest touches", (found.swept != 1) & (found.clearance < SWEEP_TOLERANCE - rounding)
    yield "a sweep at rest is apart", (found.swept != 0) & (found.clearance > SWEEP_TOLERANCE + rounding)
    inner, radius, within = inner_distances(cases, found)
    yield "no farther than a point of the shape", found.clearance > inner - radius + slack
    least = np.where(present, found.least, np.inf).min(0)
    deep = present.any(0) & (inner - radius < -slack)
    yield "no less deep than a point of the shape", deep & (least > inner - radius + slack)
    yield (
        "a sphere is its centre and radius",
        (within & (inner > radius)) & (np.abs(found.clearance - (inner - radius)) > slack),
    )


def half_voxel(case: PairCase) -> float:
    """Half a voxel of the pair's signed distance fields, of the unit size; 0 without any."""
    return max(
        (0.5 * 2.0 * form.extent / form.voxels for form in (case.first, case.second) if form.voxels), default=0.0
    )


def sides(cases: Sequence[PairCase], found: Answers) -> tuple[np.ndarray, np.ndarray]:
    """Whether the second shape is in front of all triangles at the nearest point of the first mesh; behind all."""
    front, back = np.zeros(len(found.case), bool), np.zeros(len(found.case), bool)
    for row, case in enumerate(found.case):
        form = cases[case].first
        if form.type != ShapeType.MESH:
            continue
        height = np.array(triangle_heights(form, found.nearest[row, 0], found.toward[row]))
        crosses = found.clearance[row] < 0.0
        front[row], back[row] = crosses or bool((height > 1e-6).all()), not crosses and bool((height < -1e-6).all())
    return front, back


def triangle_heights(form: Form, point: np.ndarray, toward: np.ndarray) -> list[float]:
    """How much a direction rises off each triangle that a point is on."""
    corners = form.corners[point_distances(form.corners, point) < 1e-7]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return list(normal @ toward / np.linalg.norm(normal, axis=1))


def inner_distances(cases: Sequence[PairCase], found: Answers) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The least signed distance from the first shape of points of the second, the radius of a ball about each, and
    whether that ball is the whole shape.

    The points are the centre of a convex shape and the vertices of a mesh.
    """
    least, radius, whole = np.full(len(found.case), np.inf), np.zeros(len(found.case)), np.zeros(len(found.case), bool)
    for k, case in enumerate(cases):
        rows = np.flatnonzero(found.case == k)
        second = case.second
        points = np.zeros((1, 3)) if second.mesh is None else second.vertices[np.unique(second.mesh[1])]
        if second.type == ShapeType.CONVEX_MESH:
            points = second.vertices
        pose = case.poses[found.row[rows], 1]
        world = np.einsum("pij,vj->pvi", rotation_of(pose), points) + pose[:, None, :3]
        distance = collidecli.signed_distance(case.scale * world.reshape(-1, 3), case.first.shape(case.scale))
        least[rows] = np.asarray(distance).reshape(len(rows), -1).min(1) / case.scale
        radius[rows], whole[rows] = (second.size[0], True) if second.type == ShapeType.SPHERE else (0.0, False)
    return least, radius, whole


def report(cases: Sequence[PairCase], found: Answers, broken: Iterator[Broken]) -> list[str]:
    """A line for each rule that is broken, and for the first configurations at which it is."""
    lines = []
    for rule, where in broken:
        rows = np.flatnonzero(where)
        if len(rows):
            lines.append(f"{len(rows)} of {len(where)}: {rule}")
            lines += [described(cases, found, row) for row in rows[:LISTED].tolist()]
    return lines


def described(cases: Sequence[PairCase], found: Answers, row: int) -> str:
    case = cases[found.case[row]]
    pose = case.poses[found.row[row], 1].tolist()
    return (
        f"  {case}: contacts {found.least[:, row].tolist()}, clearance {found.clearance[row]:.17g} "
        f"(error {found.error[row]:.2g}), sweep {found.swept[row]}, pose {pose}"
    )
