"""Contacts, touch_only, clearance, signed distances and sweeps agree about every pair, at any gap.

Each answer has its own entry point; the rules between them are in tests/support/answer_rules.py.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from tests.support.answer_forms import forms
from tests.support.answer_rules import report, rules
from tests.support.answers import PairCase, answers, random_case

CLASSES = {
    "convex-convex": ("convex", "convex"),
    "closed-convex": ("closed", "convex"),
    "crossing-convex": ("crossing", "convex"),
    "open-convex": ("open", "convex"),
    "one_sided-convex": ("one-sided", "convex"),
    "heightfield-convex": ("heightfield", "convex"),
    "mesh-mesh": ("closed", "open"),
    "mesh-heightfield": ("heightfield", "closed"),
    "field-convex": ("field", "convex"),
}
SIZES = (1e-3, 1.0, 1e3)
PAIRS, CONFIGURATIONS = 14, 36
"""Pairs of shapes of a draw, and configurations of each."""
DRAWS = 10


def drawn(name: str, draw: int) -> list[PairCase]:
    """Cases of a class. Every second shape comes up in each draw; sizes and first shapes change from draw to draw."""
    rng = np.random.default_rng([draw, *name.encode()])
    first, second = (forms()[one] for one in CLASSES[name])
    return [
        random_case(
            rng,
            first[int(rng.integers(len(first)))],
            second[k % len(second)],
            SIZES[(k + draw) % len(SIZES)],
            CONFIGURATIONS,
        )
        for k in range(PAIRS)
    ]


@pytest.mark.parametrize("draw", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))])
@pytest.mark.parametrize("name", CLASSES)
def test_answers_agree(name, draw):
    cases = drawn(name, draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repairs of the meshes
        found = answers(cases)
        overlap, apart = found.clearance < -1e-3, found.clearance > 1e-9
        assert overlap.mean() > 0.1
        assert apart.mean() > 0.1
        broken = report(cases, found, rules(cases, found))
    assert not broken, "\n" + "\n".join(broken)
