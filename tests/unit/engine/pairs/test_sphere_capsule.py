"""Sphere and capsule against the oracle."""

import pytest

from collidecli.engine.narrowphase.primitive.sphere_capsule import MAX_CONTACTS, collide_sphere_capsule
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, size_cases

PAIR = (ShapeType.SPHERE, ShapeType.CAPSULE)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(*PAIR))
def test_contract_and_oracle(size_a, size_b):
    arguments = (PAIR[0], size_a, PAIR[1], size_b)
    check_collider(collide_sphere_capsule, MAX_CONTACTS, *arguments, poses_for(*arguments))
