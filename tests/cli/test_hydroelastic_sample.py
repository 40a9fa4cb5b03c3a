"""The hydroelastic sample: its command, and the closed forms of its forces."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.cli.main import main

SCENE = Path(__file__).parents[2] / "samples" / "05_hydroelastic" / "gripper.usda"


def test_the_forces_of_pads_ball_and_block(tmp_path):
    output = tmp_path / "gripper.h5"
    assert main(["run", str(SCENE), "--hydro-surface", "-o", str(output), "--device", "cpu", "-q"]) == 0
    assert main(["check", str(output), "-q"]) == 0
    with h5py.File(output) as found:
        names = [name.decode() for name in found["model/shape/path"][:]]
        start, patches = found["hydro_patches/cell_start"][:], found["hydro_patches"]
        assert start[1] == 0
        assert len(found["rigid_contacts/distance"]) == 0
        rows = range(start[-2], start[-1])
        last = {frozenset((names[patches["shape0"][k]], names[patches["shape1"][k]])): k for k in rows}
        table = last[frozenset(("/World/table", "/World/block"))]
        # The rigid table's plane in a block of 4 cm and 1e8 N/m^3, 2 mm deep.
        side, depth = 0.04, 0.002
        truth = 1e8 * depth * (side**2 - 2 * side * depth + 4 * depth**2 / 3)
        assert np.linalg.norm(patches["force"][table]) == pytest.approx(truth, rel=1e-5)
        # A ball of 3 cm and 2e7 N/m^3 in a pad of 6e7 N/m^3, 4 mm deep.
        radius, k0, k1, x = 0.03, 6e7, 2e7, 0.004
        c, q = radius - x, radius - x * k0 / (k0 + k1)
        truth = np.pi / 3 * (k1 * (radius**3 - q**3) - k0 * (q**3 - c**3))
        for pad in ("left", "right"):
            row = last[frozenset((f"/World/{pad}_pad", "/World/ball"))]
            assert np.linalg.norm(patches["force"][row]) == pytest.approx(truth, rel=5e-3)
            assert np.abs(patches["force"][row][1:]).max() < 1e-2 * truth
        force = np.linalg.norm(patches["force"][:], axis=1)
        block = (patches["shape1"][:] == names.index("/World/block")) | (
            patches["shape0"][:] == names.index("/World/block")
        )
        assert (np.diff(force[block]) > 0).all()
