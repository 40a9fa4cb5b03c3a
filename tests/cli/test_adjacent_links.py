"""The warning of `run` about links that lie flush in their neighbour."""

import numpy as np
import pytest

LINK = (
    '<link name="{}"><collision><origin xyz="0 0 {}"/><geometry><{}/></geometry></collision></link>'
)
NOTE = "of which one is joined or fixed to the other, touch at a depth of rounding in"
FRAMES = 80


def robot(turret: float) -> str:
    """A base, whose top is at 0.1 m, a turret that turns on it, and an arm. turret: height of the
    turret's origin [m]."""
    links = (
        LINK.format("base", 0.05, 'box size="0.2 0.2 0.1"'),
        LINK.format("turret", 0.06, 'cylinder radius="0.06" length="0.12"'),
        LINK.format("arm", 0.2, 'box size="0.07 0.07 0.36"'),
    )
    joint = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/><axis xyz="{3}"/>'
        '<origin xyz="0 0 {4}"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>'
    )
    joints = joint.format("j1", "base", "turret", "0 0 1", turret)
    joints += joint.format("j2", "turret", "arm", "0 1 0", 0.12)
    return f'<robot name="r">{"".join(links)}{joints}</robot>'


@pytest.fixture
def motion(here) -> None:
    time = np.arange(FRAMES) * 0.02
    rows = np.stack([time, 1.5 * np.sin(time), 0.5 * np.cos(3 * time)], axis=1)
    np.savetxt("motion.csv", rows, delimiter=",", header="time,j1,j2", comments="")


@pytest.mark.usefixtures("motion")
def test_a_base_that_its_first_link_stands_on_is_named_once(here, collide):
    (here / "r.urdf").write_text(robot(0.1))
    words = "run r.urdf -t motion.csv --device cpu --force -o out.h5"
    told = collide.ok(words).err
    assert told.count(NOTE) == 1
    assert f"base and turret, {NOTE}" in told
    assert f" of {FRAMES} frames: --disabled-pairs with the SRDF file of collide matrix" in told
    collide.ok("matrix r.urdf --samples 20 --device cpu -o r.srdf")
    for option in ("--disabled-pairs r.srdf", "--self-collisions off"):
        assert NOTE not in collide.ok(words, *option.split()).err


@pytest.mark.usefixtures("motion")
@pytest.mark.parametrize("height", [0.09999, 0.1001])
def test_links_that_overlap_or_are_apart_are_not_named(here, collide, height):
    (here / "r.urdf").write_text(robot(height))
    assert NOTE not in collide.ok("run r.urdf -t motion.csv --device cpu -o out.h5").err
