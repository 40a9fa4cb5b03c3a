"""Filter of the pairs of shapes within each robot of an MJCF or URDF scene."""

from __future__ import annotations

from itertools import product

import mujoco
import numpy as np

from collidecli.importers.mujoco.geoms import LEFT_OUT
from collidecli.scene.builder import ModelBuilder

RULE = "self-collision of the articulation is off"


def filter_self_collisions(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    static: np.ndarray,
    body_row: np.ndarray,
    shape_row: np.ndarray,
    urdf: bool,
) -> None:
    """Filters the pairs of each articulation, but for those that `<pair>` forces.

    An articulation is a child of the world with all bodies below it; the links of a URDF are one. static: bool[nbody],
    see `static_bodies`. body_row, shape_row: as in `MjcfImport`.
    """
    root = np.where(np.arange(mj_model.nbody) > 0, 1, 0) if urdf else np.array(mj_model.body_rootid)
    for tree in np.unique(root[1:]):
        moving = (root == tree) & ~static
        if moving.sum() > 1:
            builder.add_articulation(body_row[moving].tolist(), self_collision=False)
        # The shapes of its fixed base are static, and belong to no body.
        base, others = (
            shape_row[bodies[mj_model.geom_bodyid] & (shape_row != LEFT_OUT)].tolist()
            for bodies in ((root == tree) & static, moving)
        )
        for pair in product(base, others):
            builder.add_shape_collision_filter_pair(*pair, rule=RULE)
