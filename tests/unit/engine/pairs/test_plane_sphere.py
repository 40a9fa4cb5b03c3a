"""Plane and sphere against the oracle."""

import pytest

from collidecli.engine.narrowphase.primitive.plane_sphere import MAX_CONTACTS, collide_plane_sphere
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, size_cases

PAIR = (ShapeType.PLANE, ShapeType.SPHERE)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(*PAIR))
def test_contract_and_oracle(size_a, size_b):
    arguments = (PAIR[0], size_a, PAIR[1], size_b)
    check_collider(collide_plane_sphere, MAX_CONTACTS, *arguments, poses_for(*arguments))
