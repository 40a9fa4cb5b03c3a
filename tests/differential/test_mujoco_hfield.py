"""dm_control's quadruped on its terrain: the pairs that touch and their depths are mj_collision's."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections import defaultdict

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder

BAND = 2e-4
"""Pairs nearer to touching than this [m] may be on either side."""


def test_quadruped(tmp_path):
    pytest.importorskip("dm_control")
    from tests.support.quadruped import walk, write_quadruped

    builder = ModelBuilder()
    imported = add_mjcf(builder, write_quadruped(tmp_path, 201))
    mj_model, row = imported.mj_model, imported.shape_row
    qpos = walk(mj_model, 150, every=10, settle=300)
    contacts = collidecli.collide(builder.finalize(), imported.kinematics.poses(qpos)[:, None], gap=2 * BAND)
    terrain = int(row[mj_model.geom("terrain").id])
    data = mujoco.MjData(mj_model)
    mj_model.geom_margin[:] = BAND
    compared = 0
    for frame, coordinates in enumerate(qpos):
        data.qpos[:] = coordinates
        mujoco.mj_kinematics(mj_model, data)
        mujoco.mj_comPos(mj_model, data)
        mujoco.mj_collision(mj_model, data)
        theirs, ours = defaultdict(lambda: np.inf), defaultdict(lambda: np.inf)
        for contact in data.contact:
            pair = tuple(sorted(int(row[geom]) for geom in contact.geom))
            theirs[pair] = min(theirs[pair], contact.dist)
        cell = contacts.cell(frame)
        for shape0, shape1, distance in zip(cell.shape0, cell.shape1, cell.distance, strict=True):
            ours[int(shape0), int(shape1)] = min(ours[int(shape0), int(shape1)], float(distance))
        for pair in {pair for pair in (*theirs, *ours) if terrain in pair}:
            if min(ours[pair], theirs[pair]) < -BAND:
                compared += 1
                # MuJoCo's search for a depth ends at 1e-6 m.
                assert ours[pair] == pytest.approx(theirs[pair], abs=5e-6), (frame, pair)
    assert compared > 50
