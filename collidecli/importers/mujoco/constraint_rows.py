"""Rows of constraints of a scene in MJCF."""

from __future__ import annotations

import mujoco
import numpy as np

from collidecli.importers.mujoco.compile import collected_messages

ROWS_OF_EQUALITY = {
    mujoco.mjtEq.mjEQ_CONNECT: 3,
    mujoco.mjtEq.mjEQ_WELD: 6,
    mujoco.mjtEq.mjEQ_JOINT: 1,
    mujoco.mjtEq.mjEQ_TENDON: 1,
}


def constraint_rows(path: str) -> tuple[int, int] | None:
    """The most rows of one contact, and of everything else, in one world.

    A contact of condim d has d rows with an elliptic cone, and 2 (d - 1) with a pyramidal one, but
    one of condim 1. Each limited joint or tendon and each friction loss has a row, an equality as
    many as ROWS_OF_EQUALITY. None for a file that MuJoCo does not compile as it is, or with an
    equality of another kind.
    """
    try:
        with collected_messages():  # loading the scene has shown them
            model = mujoco.MjModel.from_xml_path(path)
    except (ValueError, mujoco.FatalError):
        return None
    kinds = [mujoco.mjtEq(kind) for kind in model.eq_type]
    if any(kind not in ROWS_OF_EQUALITY for kind in kinds):
        return None
    condim = int(max(model.geom_condim.max(initial=1), model.pair_dim.max(initial=1)))
    is_elliptic = model.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    of_a_contact = condim if is_elliptic or condim == 1 else 2 * (condim - 1)
    limits = int(np.count_nonzero(model.jnt_limited) + np.count_nonzero(model.tendon_limited))
    losses = int(np.count_nonzero(model.dof_frictionloss))
    losses += int(np.count_nonzero(model.tendon_frictionloss))
    return of_a_contact, sum(ROWS_OF_EQUALITY[kind] for kind in kinds) + limits + losses
