"""The table of errors in docs/explanation/hydroelastic.md: its figures, and their order of convergence."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.bench.hydroelastic import DEPTH, K1, RADIUS, error, error_of_clamped_cubes
from tests.support.hydroelastic import RIGID

PAGE = Path(__file__).parents[4] / "docs" / "explanation" / "hydroelastic.md"


@pytest.fixture(scope="module")
def documented() -> dict[int, list[float]]:
    """Errors by resolution: rigid plane, half-space, marching cubes with the clamp."""
    rows = re.findall(r"^\| (\d+) \| ([\d.e-]+) \| ([\d.e-]+) \| ([\d.e-]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {int(row[0]): [float(value) for value in row[1:]] for row in rows}


@pytest.mark.parametrize("resolution", [16, 32, 64, 128])
def test_figures_are_as_documented(documented, resolution):
    rigid, half_space, clamped = documented[resolution]
    rigid_truth = np.pi * K1 * DEPTH**2 * (RADIUS - 2 * DEPTH / 3)
    assert error(resolution, RIGID, rigid_truth) == pytest.approx(rigid, rel=0.03)
    assert error(resolution) == pytest.approx(half_space, rel=0.03)
    if resolution <= 64:  # seconds and memory
        assert error_of_clamped_cubes(resolution) == pytest.approx(clamped, rel=0.03)


def test_documented_orders(documented):
    errors = np.array([documented[resolution] for resolution in (16, 32, 64, 128)])
    orders = np.log2(errors[:-1] / errors[1:])
    assert orders[:, :2].min() > 1.8
    assert (errors[:, 2] > errors[:, 1]).all()
