"""One-sided sheets are left by their front: depth times normal separates, and is near the least translation.

The oracle shares no code with the engine. Shapes cross the sheets far from their border.
"""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.shape_types import ShapeType
from tests.support.answer_forms import Form, forms
from tests.support.answers import PairCase, deepest, model_of, placed
from tests.support.front_oracle import FrontOracle, closed_below, folded, signed_distances
from tests.support.meshes import grid
from tests.support.translation_oracle import directions_on_sphere, is_closed

SHEETS = {
    "flat": grid(4, 5.0),
    "waves": grid(7, 5.0, lambda x, y: 0.25 * np.sin(2.0 * x) * np.cos(1.5 * y)),
    "roof": folded([(-2.5, -1.0), (0.0, 0.0), (2.5, -1.0)]),
    "valley": folded([(-2.5, 1.0), (0.0, 0.0), (2.5, 1.0)]),
    "step": folded([(-2.5, 0.0), (0.0, 0.0), (0.1, 0.5), (2.5, 0.5)]),
    "overhang": folded([(-2.5, 0.0), (0.2, 0.0), (-0.1, 0.6), (2.5, 0.6)]),
}
SHAPES = ("box", "capsule", "cylinder", "cone", "hull", "sphere")
SIZES = (1e-3, 1.0, 1e3)
POSES, DRAWS = 6, 10
"""Of each of 36 pairs; the first draw is in `make test`, all are 2 160 poses."""
UPWARDS = directions_on_sphere(700)[:500]
"""500 directions, up to 25 degrees below the horizon; below them the base is far."""
WITHIN = 1.02
"""Of the best direction's translation."""
ROUNDING = 1e-6
"""Of the unit size. A contact's normal is float32: it turns by 1e-7, and the translation by that share of the size."""


def crossing_poses(rng: np.random.Generator, form: Form, solid, sheet, count: int) -> np.ndarray:
    """float64[count, 2, 7]: the shape crosses the sheet, its centre on either side of it."""
    kept: list[np.ndarray] = []
    corners = solid[0][solid[1]]
    while len(kept) < count:
        pose = np.zeros((2, 7))
        pose[0, 6] = 1.0
        turn = rng.normal(size=4) if rng.uniform() < 0.8 else np.array([0.0, 0.0, 0.0, 1.0])
        pose[1, 3:] = turn / np.linalg.norm(turn)
        face = sheet[0][sheet[1][int(rng.integers(len(sheet[1])))]]
        point = rng.dirichlet(np.ones(3)) @ face
        point[:2] *= min(1.0, 0.6 / np.abs(point[:2]).max())  # near the middle, where the folds are
        pose[1, :3] = point + rng.normal(size=3) * 0.5 * form.extent
        away = abs(signed_distances(corners, pose[1:, :3])[0])
        if away < 0.8 * min(form.size or (0.2,)):
            kept.append(pose)
    return np.array(kept)


def failures(name: str, shape: str, poses: int, seed: int) -> tuple[list[str], list[float]]:
    """What is wrong, and the depths in parts of the least translation, of poses of a shape on a sheet."""
    sheet = SHEETS[name]
    solid = closed_below(sheet)
    second = next(form for form in forms()["convex"] if form.name == shape)
    first = Form(name, ShapeType.MESH, mesh=sheet, two_sided=False)
    rng = np.random.default_rng([seed, *name.encode(), *shape.encode()])
    scale = SIZES[seed % len(SIZES)]
    case = PairCase(first, second, scale, crossing_poses(rng, second, solid, sheet, poses))
    least, normal, _ = deepest(collidecli.collide(model_of([case], 0.0), placed([case])))
    wrong, shares = [], []
    for row, pose in enumerate(case.poses[:, 1]):
        depth, oracle = -least[row] / scale, FrontOracle.of(second, pose, solid)
        if oracle.crossed_parts() != 1:
            continue
        best = oracle.least(UPWARDS)
        unit = normal[row] / np.linalg.norm(normal[row]) if depth > 0.0 else np.array([0.0, 0.0, 1.0])
        needed = oracle.along(unit)
        where = (
            f"{name}, {shape} at {scale:g} m, pose {pose.tolist()}: depth {depth:.9g} along {unit.round(6).tolist()}"
        )
        if needed > depth + ROUNDING:
            wrong.append(f"{where} does not separate: {needed:.9g} does; the least is {best:.9g}")
        elif depth > WITHIN * (best + oracle.short) + ROUNDING:
            wrong.append(f"{where} is not the least: {best:.9g}")
        shares.append(depth / best)
    return wrong, shares


def test_the_sheets_close_below():
    for sheet in SHEETS.values():
        vertices, faces = closed_below(sheet)
        assert is_closed(faces)
        corners = vertices[faces]
        assert (corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])).sum() > 0.0
        assert (signed_distances(corners, np.array([[0.3, 0.2, -2.0], [0.3, 0.2, 2.0]])) > 0.0).tolist() == [
            False,
            True,
        ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sheet_is_left_by_its_front(shape, seed):
    wrong, shares = [], []
    for name in SHEETS:
        broken, share = failures(name, shape, POSES, seed)
        wrong, shares = wrong + broken, shares + share
    assert len(shares) > 0.7 * POSES * len(SHEETS)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(shares)}:", *wrong])
