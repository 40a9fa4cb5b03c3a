"""Advice of error messages on the command line: the remedy fits the input."""

from __future__ import annotations

import numpy as np
import pytest

from tests.cli.conftest import SCENE
from tests.cli.test_episodes import states
from tests.cli.test_recordings import write_demos

ARM = """<robot name="arm"><link name="base"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<link name="hand"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
<joint name="turn" type="revolute"><parent link="base"/><child link="hand"/><origin xyz="0 0 0.5"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1"/></joint></robot>"""
BALL = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {\n}\n'
ENVIRONMENTS = (
    '#usda 1.0\n(metersPerUnit = 1\nupAxis = "Z")\ndef "World" { def "envs" {\n'
    + "".join(f'def "env_{k}" {{ {BALL} }}\n' for k in range(3))
    + "}\n}\n"
)


def refused(collide, *args: str) -> str:
    answer = collide(*args)
    assert answer.code == 2, answer.out
    return answer.err


@pytest.fixture
def walk(here):
    """Root poses and a joint of an arm that moves along x."""
    (here / "arm.urdf").write_text(ARM)
    rows = np.zeros((4, 8))
    rows[:, 0], rows[:, 6] = 0.1 * np.arange(4), 1.0
    np.savetxt("walk.csv", rows, delimiter=",")
    return ("arm.urdf", "-t", "walk.csv", "--fps", "30", "--quaternion-order", "xyzw", "--joint-names", "turn")


def test_the_moved_root_of_a_urdf_needs_a_floating_base(walk, collide):
    assert "--floating-base" in refused(collide, "run", *walk)
    assert collide("run", *walk, "--floating-base", "--device", "cpu").code == 0


def test_the_ground_is_an_option(walk, collide):
    assert "--ground" in refused(collide, "inspect", "arm.urdf", "--why", "hand", "ground")
    assert collide("inspect", "arm.urdf", "--ground", "--why", "hand", "ground").code == 0


def test_options_of_recordings_need_a_recording(walk, collide):
    assert "give a recording with -t" in refused(collide, "run", "arm.urdf", "--joint-names", "turn")


def test_names_that_are_objects(here, collide):
    (here / "scene.xml").write_text(SCENE)
    names = np.array(["turn"], dtype=object)
    np.savez(
        "m.npz", root_pos=np.zeros((4, 3)), root_quat_xyzw=np.zeros((4, 4)), dof_pos=np.zeros((4, 1)), dof_names=names
    )
    assert "np.array(names, dtype=str)" in refused(collide, "run", "scene.xml", "-t", "m.npz")


def test_worlds_of_a_recording_and_environments(here, collide):
    (here / "envs.usda").write_text(ENVIRONMENTS)
    write_demos(here / "demos.hdf5", {"demo_0": states(4, 0), "demo_1": states(4, 0)})
    message = refused(collide, "run", "envs.usda", "-t", "demos.hdf5")
    assert "there are 2 worlds of the recording, and the scene has 3 worlds of its own" in message
    assert "--demos" in message
    assert "--demos" not in refused(collide, "run", "envs.usda", "--worlds", "2")


def test_missing_references_are_replaced_as_written(here, collide):
    (here / "a.usda").write_text('#usda 1.0\ndef "World" (references = @./no.usda@) {}')
    assert "replace the path, as written, with --asset-map" in refused(collide, "run", "a.usda")


def test_the_span_of_demonstrations_is_that_of_the_longest(here, collide):
    write_demos(here / "demos.hdf5", {"demo_0": states(4, 0), "demo_1": states(7, 0)})
    assert "7, from 0 s to 0.6 s" in collide("inspect", "demos.hdf5").out
