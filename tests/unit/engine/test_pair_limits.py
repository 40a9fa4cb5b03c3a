"""Where contacts of a pair begin: at the sum of its margins plus its gap, for both gap rules and orders of shapes."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig

STEP = 1e-6


def contacts_at(surface: float, gaps: tuple[float, float], rule: str, margins=(0.02, 0.05)):
    """Contacts of two spheres whose surfaces are this far apart [m]."""
    builder = ModelBuilder()
    builder.gap_rule = rule
    for gap, margin in zip(gaps, margins, strict=True):
        builder.add_shape_sphere(builder.add_body(), radius=0.5, cfg=ShapeConfig(gap=gap, margin=margin))
    pose = np.zeros((1, 1, 2, 7))
    pose[..., 6] = 1.0
    pose[0, 0, 1, 0] = 1.0 + surface
    return collidecli.collide(builder.finalize(), pose).cell(0)


@pytest.mark.parametrize(
    ("rule", "gaps", "gap"),
    [
        ("max", (0.1, 0.3), 0.3), ("max", (0.3, 0.1), 0.3), ("max", (0.0, 0.0), 0.0),
        ("sum", (0.1, 0.3), 0.4), ("sum", (0.3, 0.1), 0.4), ("sum", (0.0, 0.2), 0.2),
    ],
)  # fmt: skip
def test_contacts_begin_at_margins_plus_gap(rule, gaps, gap):
    assert contacts_at(0.07 + gap + STEP, gaps, rule).rigid_contact_count == 0
    cell = contacts_at(0.07 + gap - STEP, gaps, rule)
    assert cell.rigid_contact_count == 1
    np.testing.assert_allclose(cell.distance, gap - STEP, atol=1e-7)
    np.testing.assert_allclose(contacts_at(0.01, gaps, rule).distance, -0.06, atol=1e-7)
