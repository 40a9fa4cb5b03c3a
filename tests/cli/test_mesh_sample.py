"""The sample of meshes: its command, and what must be true of a ring that rolls over waves by formula."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from collidecli import open_contacts
from collidecli.cli.main import main

SCENE = Path(__file__).parents[2] / "samples" / "04_meshes" / "meshes.usda"
SUNK = 0.002
"""How far the ring's lowest point is below the waves' height under its centre [m]."""


def test_a_ring_rolls_over_waves(tmp_path):
    output = tmp_path / "ring.h5"
    assert main(["run", str(SCENE), "--gap", "0.005", "-o", str(output), "--device", "cpu", "-q"]) == 0
    assert main(["check", str(output), "-q"]) == 0
    with open_contacts(output) as contacts:
        row = {path: k for k, path in enumerate(contacts.shapes.path)}
        frames, depths = [], []
        for frame in range(contacts.frame_count):
            cell = contacts.cell(frame, 0).columns
            here = (cell["shape0"] == row["/World/waves"]) & (cell["shape1"] == row["/World/ring"])
            frames += [frame] * bool(here.any())
            depths += cell["distance"][here].tolist()
            # What the ring stands on pushes it up: no normal of the waves points below the horizon.
            assert np.all(cell["normal"][here][:, 2] > 0.5)
    assert len(frames) > 85
    # The waves' triangles cut hills and fill valleys, at most by the sagitta of one of their sides.
    assert -0.012 < min(depths) < -SUNK / 2
