"""Which pairs of geoms may touch: by this engine's filters, by MuJoCo's documented rules, and by what MuJoCo reports.

The rules are written down from the page "Computation", section "Selection", of MuJoCo's documentation, over the
compiled model's tree, masks, excludes and pairs; the importer is not used, nor MuJoCo's weld and tree numbers.
"""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import copy
import itertools

import mujoco
import numpy as np

from collidecli.importers.mujoco.scene import MjcfImport
from collidecli.scene.filters import allowed_pairs
from collidecli.scene.model import Model

GeomPairs = set[tuple[int, int]]

_PLANE = mujoco.mjtGeom.mjGEOM_PLANE
_FAR = 1e6


def our_pairs(scene: MjcfImport, model: Model) -> GeomPairs:
    """Pairs of geom ids that our filters leave."""
    geom_of = {int(row): geom for geom, row in enumerate(scene.shape_row) if row >= 0}
    return {(min(p), max(p)) for p in ((geom_of[a], geom_of[b]) for a, b in allowed_pairs(model, 0).tolist())}


def ruled_pairs(mj_model: mujoco.MjModel) -> GeomPairs:
    """Pairs of geom ids that the documented rules leave."""
    off = mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    if mj_model.opt.disableflags & off or mj_model.nbody < 2:
        return set()  # the second is not documented
    listed = zip(mj_model.pair_geom1.tolist(), mj_model.pair_geom2.tolist(), strict=True)
    explicit = {(min(pair), max(pair)) for pair in listed}
    weld = [_weld_root(mj_model, body) for body in range(mj_model.nbody)]
    moves = [_moves(mj_model, body) for body in range(mj_model.nbody)]
    above = [None if root == 0 else weld[int(mj_model.body_parentid[root])] for root in weld]
    excluded = {(int(s) >> 16, int(s) & 0xFFFF) for s in mj_model.exclude_signature}
    filter_parent = not mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT

    def dynamic(a: int, b: int) -> bool:
        body_a, body_b = int(mj_model.geom_bodyid[a]), int(mj_model.geom_bodyid[b])
        root_a, root_b = weld[body_a], weld[body_b]
        if root_a == root_b or not (moves[body_a] or moves[body_b]):
            return False
        if filter_parent and root_a and root_b and (above[body_a] == root_b or above[body_b] == root_a):
            return False
        if {(body_a, body_b), (body_b, body_a)} & excluded:
            return False
        meets = mj_model.geom_contype[a] & mj_model.geom_conaffinity[b]
        return bool(meets | (mj_model.geom_contype[b] & mj_model.geom_conaffinity[a]))

    return {
        (a, b)
        for a, b in itertools.combinations(range(mj_model.ngeom), 2)
        if not (mj_model.geom_type[a] == mj_model.geom_type[b] == _PLANE) and ((a, b) in explicit or dynamic(a, b))
    }


def _weld_root(mj_model: mujoco.MjModel, body: int) -> int:
    """The uppermost of the bodies that no joint parts from `body`; a mocap body is parted from the world."""
    while body and not mj_model.body_jntnum[body] and mj_model.body_mocapid[body] < 0:
        body = int(mj_model.body_parentid[body])
    return body


def _moves(mj_model: mujoco.MjModel, body: int) -> bool:
    """Whether a joint is between `body` and the world."""
    while body:
        if mj_model.body_jntnum[body]:
            return True
        body = int(mj_model.body_parentid[body])
    return False


def reported_pairs(mj_model: mujoco.MjModel) -> GeomPairs:
    """Pairs of geom ids that `mj_collision` reports when all there is are spheres (planes stay) of endless margin.

    Spheres, since MuJoCo's box-box test gives up on boxes that are far apart, whatever the margin.
    """
    model = copy.deepcopy(mj_model)
    listed = np.isin(np.arange(model.ngeom), [*model.pair_geom1, *model.pair_geom2])
    round_ = (model.geom_type != _PLANE) & ((model.geom_contype | model.geom_conaffinity != 0) | listed)
    model.geom_type[round_] = mujoco.mjtGeom.mjGEOM_SPHERE
    model.geom_size[round_] = model.geom_rbound[round_, None] = 0.05
    model.geom_margin[:] = _FAR / 2
    model.pair_margin[:] = model.body_margin[:] = _FAR
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    mujoco.mj_collision(model, data)
    return {(min(p), max(p)) for p in ((int(c.geom1), int(c.geom2)) for c in data.contact)}
