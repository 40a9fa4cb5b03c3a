"""Spheres, capsules and boxes around public robots' meshes: no contact has a wrong sign at any gap, none is missing.

The truth is independent: distances of triangles and winding numbers in float64, and FCL for boxes.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from collidecli.scene.shape_types import ShapeType
from tests.differential.test_mesh_inside import SAMPLE
from tests.support.answer_forms import Form
from tests.support.answer_rules import ROUNDING, described, report, rules
from tests.support.answers import PairCase, answers
from tests.support.mesh_inside import FOLDERS, robot_meshes
from tests.support.real_meshes import real_cases, real_mesh, true_distances

GAPS = (0.0, 1e-3, 0.02, 0.3)
"""[m]"""
BAND = 1e-6
"""Of the mesh's half size: nearer to touching either sign is right, as FCL rounds so."""
FCL = 1e-6
"""Tolerance of FCL's distances, `DistanceRequest.distance_tolerance` [m]."""
MOST_FACES = 60_000
ELBOW, ARM, PALM = (
    "upper_arm_v0/elbow_flex.stl",
    "gr1/meshes/l_lower_arm_pitch.STL",
    "alex_description/meshes/fb_palm_ref.obj",
)
"""Meshes whose surface crosses itself: contacts and clearances had different rules for what is inside."""
SHOULDER = "g1_description/meshes/right_shoulder_yaw_link.STL"
"""Two bodies with a common flush side and common vertices: a quarter of the surface was taken as hidden within them."""
BALLS = [
    # At a gap of 0.1 m these were as deep as they are far off.
    (ELBOW, 0.01, (0.001679160378790151, 0.0584291192555024, -0.03381310578582203)),
    (ELBOW, 0.03, (-0.00682046906646297, 0.06519482846207333, -0.13350103562860538)),
    (ELBOW, 0.0007, (0.0009462352380298078, 0.10028167269831237, -0.13245335230515343)),
    (ARM, 0.01, (-0.001378374847619615, 0.007465928185675652, -0.05164532743445942)),
    # These are inside, and were apart at a gap of 0.1 m.
    (ARM, 0.0007, (0.009149775762954629, 0.03096005638830783, 0.013663792767081004)),
    (PALM, 0.0007, (0.04664282375999898, -0.017403398087469518, -0.04002426406421507)),
    (PALM, 0.0007, (0.03226134140872006, -0.023426656951424416, -0.06254672520573908)),
    (PALM, 0.0007, (0.006708638394954808, -0.010879490255340268, -0.011281663662122576)),
]


def contradictions(path: Path, count: int, seed: int) -> tuple[list[str], int]:
    """What is wrong about `count` poses of each kind, and the number of poses that are judged."""
    cases, solid = real_cases(path, count, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answers(cases, GAPS)
        lines = report(cases, found, rules(cases, found, GAPS))
    truth = np.concatenate([true_distances(case, solid) for case in cases])
    size = cases[0].first.extent
    surface = np.abs(truth) < BAND * size
    for k, gap in enumerate(GAPS):
        least = found.least[k]
        broken = {
            "no overlap": (truth > 0.0) & (least < -ROUNDING * size),
            "an overlap": np.isinf(truth) & ~(least < ROUNDING * size),
            "a contact in the gap": (truth < gap - BAND * size) & np.isinf(least),
            "the distance": (truth > 0.0) & np.isfinite(least) & (np.abs(least - truth) > max(BAND * size, FCL)),
        }
        for what, where in broken.items():
            rows = np.flatnonzero(where & ~surface)
            lines += [f"{len(rows)}: there is {what}, gap {gap:g} m; {described(cases, found, r)}; truth {truth[r]:g}"
                      for r in rows[:3]]  # fmt: skip
    return [f"{path.name}: {line}" for line in lines], int((~surface).sum())


def check(paths: list[Path], count: int) -> None:
    if not paths:
        pytest.skip("no robots are installed")
    wrong, judged = [], 0
    for seed, path in enumerate(paths):
        lines, poses = contradictions(path, count, seed)
        wrong, judged = wrong + lines, judged + poses
    assert judged > 2.5 * count * len(paths)
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))])
def test_a_sample_of_real_meshes(part):
    check([path for path in robot_meshes(SAMPLE) if path.as_posix().endswith(SAMPLE)][part::8], 6)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_real_meshes(part):
    """Some of every folder: 256 meshes with 12 poses each."""
    small = [path for path in robot_meshes() if path.stat().st_size < 50 * MOST_FACES]
    check(small[:: max(1, len(small) // 256)][part::8], 4)


def installed(ends: str) -> Path:
    paths = [path for path in robot_meshes((ends,)) if path.as_posix().endswith(ends)]
    if not paths:
        pytest.skip(f"{ends} is not installed; {FOLDERS} may name its folder")
    return paths[0]


@pytest.mark.parametrize("ends", [ELBOW, ARM, PALM, SHOULDER], ids=lambda ends: Path(ends).stem)
def test_meshes_that_cross_themselves(ends):
    check([installed(ends)], 30)


@pytest.mark.parametrize(("ends", "radius", "center"), BALLS)
def test_balls_at_meshes_that_cross_themselves(ends, radius, center):
    """By the winding number and the nearest triangle, at every gap and for every answer."""
    path = installed(ends)
    first, solid = real_mesh(path)
    poses = np.array([[[0.0] * 6 + [1.0], [*center, 0.0, 0.0, 0.0, 1.0]]])
    case = PairCase(first, Form("sphere", ShapeType.SPHERE, (radius,)), 1.0, poses)
    truth = true_distances(case, solid)[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = answers([case], (0.0, 0.02, 0.1))
    for least in (*found.least[:, 0], found.clearance[0]):
        if truth > 0.0:
            assert least == pytest.approx(truth, abs=BAND * first.extent) or least == np.inf
        else:
            assert least < -radius
    assert found.least[2, 0] < 0.1
