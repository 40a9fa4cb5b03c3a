"""Every closed-form collider but that of two boxes, at all scales, against its contract and the oracle."""

import importlib

import pytest

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, size_cases

PAIRS = [tuple(ShapeType[label.upper()] for label in pair) for pair in CLOSED_FORM if pair != ("box", "box")]
CASES = [
    pytest.param(*pair, *case.values, id=f"{pair[0].label}_{pair[1].label}-{case.id}")
    for pair in PAIRS
    for case in size_cases(*pair)
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("type_a", "type_b", "size_a", "size_b"), CASES)
def test_contract_and_oracle(type_a, type_b, size_a, size_b):
    name = f"{type_a.label}_{type_b.label}"
    module, most = CLOSED_FORM[type_a.label, type_b.label]
    functions = importlib.import_module(f"collidecli.engine.narrowphase.primitive.{module}")
    arguments = (type_a, size_a, type_b, size_b)
    check_collider(getattr(functions, f"collide_{name}"), most, *arguments, poses_for(*arguments))
