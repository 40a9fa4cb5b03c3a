"""Python's functions print nothing: Warp names each kernel that is loaded outside of the loader."""

import subprocess
import sys

import pytest

SCENE = """
import numpy as np
import collidecli

builder = collidecli.ModelBuilder()
builder.add_ground_plane()
builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
builder.add_particles(np.array([[0.0, 0.0, 0.02], [0.0, 0.0, 1.0]]), radius=0.05)
model = builder.finalize()
poses = np.zeros((3, 1, 1, 7))
poses[..., 2] = np.array([2.0, 1.4, 0.9]).reshape(3, 1, 1)
poses[..., 6] = 1.0
"""
CALLS = {
    "run": "collidecli.run(model, poses)",
    "clearance": "collidecli.clearance(model, poses)",
    "sweep": "collidecli.sweep(model, poses)",
    "collide": "collidecli.collide(model, poses)",
}


@pytest.mark.rest
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_nothing_is_printed_where_particles_are_in_the_scene(call):
    """In a process of its own, where no kernel is loaded yet."""
    ended = subprocess.run(
        [sys.executable, "-c", SCENE + call], capture_output=True, text=True, check=True
    )
    assert ended.stdout == ""
