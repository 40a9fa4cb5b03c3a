"""Poses at which the answers about a pair once disagreed; random ones are in test_agreement.py."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.answer_forms import Form, forms
from tests.support.answer_rules import report, rules
from tests.support.answers import PairCase, answers

FOUND = {
    "the nearest point is beside a vertex of the rim by less than a touch": (
        ("heightfield", "smooth"),
        ("closed", "elbow"),
        1e3,
        (-1.6846449314248246, -0.8659984735054781, -0.09860787907865042),
        (0.38711051085677306, 0.6329861614167783, 0.6667112249280955, 0.0704990382483252),
    ),
    "the overlap of an ellipsoid is less than the rounding of a float32 height": (
        ("heightfield", "rough"),
        ("convex", "ellipsoid"),
        1e-3,
        (0.18855052598074779, 0.03834489128216172, 0.3357186256534705),
        (0.3336135597745693, -0.5981819478271564, 0.7266662374107103, -0.053259078433727576),
    ),
    "a cap is behind a triangle parallel to it by 6e-9 of the size": (
        ("heightfield", "smooth"),
        ("convex", "cylinder"),
        1.0,
        (0.6960173780228346, 0.02462093145571506, -0.40968783718704077),
        (0.6089334297137697, 0.7623553894455778, -0.13675401558609715, -0.17120945529200302),
    ),
    "a vertex is below a cone's base, 4e-9 of the size inside its rim": (
        ("open", "channel"),
        ("convex", "cone"),
        1.0,
        (-0.5042078878671323, 0.8051082095855479, 1.0600427733640951),
        (-0.09635317710079579, 0.07220677256377295, 0.8204509578370047, -0.5588939729884798),
    ),
}
"""Each pair, its size [m], and the second shape's position, of the unit size, and rotation."""


def form_named(kind: str, name: str) -> Form:
    return next(form for form in forms()[kind] if form.name == name)


@pytest.mark.parametrize("name", FOUND)
def test_answers_agree_at(name):
    first, second, scale, position, rotation = FOUND[name]
    pose = np.array([[[0, 0, 0, 0, 0, 0, 1], [*position, *rotation]]], float)
    cases = [PairCase(form_named(*first), form_named(*second), scale, pose)]
    found = answers(cases)
    broken = report(cases, found, rules(cases, found))
    assert not broken, "\n" + "\n".join(broken)
