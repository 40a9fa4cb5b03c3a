"""The walk over a spec holds the elements of MuJoCo's own lists, in their order."""

import random

import mujoco
import pytest

from collidecli.importers.mujoco.spec_elements import bodies_of, geoms_of, joints_of

DEPTH = 4


class RandomTree:
    """MJCF of bodies and frames in each other, with geoms before and after them."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0

    def scene(self) -> str:
        bodies = "".join(self._body(0) for _ in range(4))
        return f"<mujoco><worldbody>{self._geom()}{bodies}{self._geom()}</worldbody></mujoco>"

    def _geom(self) -> str:
        self._count += 1
        return f'<geom name="geom{self._count}" type="sphere" size="0.1"/>'

    def _body(self, depth: int) -> str:
        self._count += 1
        number = self._count
        parts = [f'<joint name="joint{number}" axis="0 0 1"/>', self._geom()]
        if self._random.random() < 0.4:
            inner = self._body(depth + 1) if depth < DEPTH else ""
            parts.append(f'<frame pos="0 0 1">{self._geom()}{inner}</frame>')
        if depth < DEPTH:
            parts += [self._body(depth + 1) for _ in range(self._random.randint(0, 3))]
        if self._random.random() < 0.4:
            parts.append(self._geom())
        return f'<body name="body{number}">{"".join(parts)}</body>'


def names(elements) -> list[str]:
    return [element.name for element in elements]


@pytest.mark.parametrize("seed", range(10))
def test_order_of_a_spec_and_its_model(seed):
    spec = mujoco.MjSpec.from_string(RandomTree(seed).scene())
    bodies = list(bodies_of(spec))
    assert names(bodies) == names(spec.bodies)
    assert names(geoms_of(bodies)) == names(spec.geoms)
    assert names(joints_of(bodies)) == names(spec.joints)
    model = spec.compile()
    assert names(geoms_of(bodies)) == [model.geom(number).name for number in range(model.ngeom)]
    assert names(bodies) == [model.body(number).name for number in range(model.nbody)]


def test_a_long_chain_is_walked():
    """5,000 bodies in each other need no recursion."""
    spec = mujoco.MjSpec()
    body = spec.worldbody
    for _ in range(5000):
        body = body.add_body()
    assert len(list(bodies_of(spec))) == 5001
