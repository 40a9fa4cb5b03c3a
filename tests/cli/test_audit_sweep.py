"""collide audit --sweep: pairs that touch only between two frames."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest

SCENE = """<mujoco>
  <worldbody>
    <geom name="wall" type="box" size="0.0005 1 1"/>
    <body name="bullet" pos="-1 0 0"><freejoint/><geom name="bullet" type="sphere" size="0.005"/></body>
    <body name="ball" pos="0 0 5"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""
SPEED, RATE = 100.0, 60.0


@pytest.fixture
def bullet(here) -> list[str]:
    """A bullet that passes a wall of 1 mm at 100 m/s between the frames 0 and 1 of 60 Hz."""
    (here / "bullet.xml").write_text(SCENE)
    poses = np.zeros((3, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 0, 0] = -1.0 + SPEED / RATE * np.arange(3)
    poses[:, 0, 1, 2] = 5.0
    with h5py.File("bullet.h5", "w") as file:
        file.attrs["format"], file.attrs["format_version"] = "collide-trajectory", np.array((1, 0), np.int32)
        file["time"], file["body_q"] = np.arange(3) / RATE, poses
        file.create_dataset("body_name", data=["bullet", "ball"], dtype=h5py.string_dtype())
    return ["bullet.xml", "-t", "bullet.h5"]


def result_of(answer) -> dict:
    assert answer.code in (0, 1), answer.err
    return json.loads(answer.out)


def test_a_bullet_through_a_wall(bullet, here, collide):
    assert result_of(collide("audit", *bullet, "--max-depth", "0", "--json"))["passed"]
    answer = collide("audit", *bullet, "--sweep", "--json", "--mask", "m.npz")
    result = result_of(answer)
    assert (answer.code, result["passed"]) == (1, False)
    (one,) = result["tunnels"]
    assert (one["shape0"], one["shape1"], one["steps"], one["frame"]) == ("wall", "bullet", 1, 0)
    assert one["time"] == pytest.approx((1.0 - 0.0055) / SPEED, abs=1e-7)
    assert one["depth"] == pytest.approx(0.0055, abs=1e-5)  # in the middle of the wall
    assert result["checks"][-1]["name"] == "tunnel"
    with np.load("m.npz") as mask:
        assert mask["usable"][:, 0].tolist() == [False, False, True]
    assert result_of(collide("audit", *bullet, "--sweep", "--allow", "bullet", "wall", "--json"))["passed"]
    (here / "base.json").write_text(answer.out)
    assert result_of(collide("audit", *bullet, "--sweep", "--against", "base.json", "--json"))["passed"]


def test_a_contact_set_with_a_sweep(bullet, here, collide):
    assert collide("run", *bullet, "--sweep", "-o", "swept.h5", "-q").code == 0
    assert collide("run", *bullet, "-o", "plain.h5", "-q").code == 0
    one, other = (result_of(collide("audit", *words, "--sweep", "--json")) for words in (["swept.h5"], bullet))
    assert one["tunnels"] == other["tunnels"]
    answer = collide("audit", "swept.h5", "--junit-xml", "a.xml", "--markdown", "a.md")
    assert answer.code == 1
    assert "tunnelling: wall and bullet: 1 step, the first after frame 0, world 0" in answer.out
    assert "1 pair touches only between two frames" in (here / "a.xml").read_text()
    assert "| tunnelling | not allowed | 1 |" in (here / "a.md").read_text()
    assert result_of(collide("audit", "swept.h5", "--frames", "1:", "--json"))["passed"]
    refused = collide("audit", "plain.h5", "--sweep")
    assert (refused.code, "run with --sweep" in refused.err) == (2, True)


def test_steps_of_selected_frames(bullet, collide):
    """The step from frame 0 to 1 is not audited if one of both frames is not selected, as of a scene."""
    assert collide("run", *bullet, "--sweep", "-o", "swept.h5", "-q").code == 0
    assert result_of(collide("audit", "swept.h5", "--frames", ":1", "--json"))["tunnels"] == []
    answer = collide("audit", "swept.h5", "--frames", "::2")
    assert answer.code == 0
    assert "tunnelling is not checked: the frames are not consecutive" in answer.err
    answer = collide("audit", "swept.h5", "--frames", "::2", "--sweep")
    assert (answer.code, "the frames are not consecutive" in answer.err) == (2, True)
