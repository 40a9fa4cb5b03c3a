"""Materials of geoms and of `<pair>` of a compiled MuJoCo model: friction, contact parameters."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco

from collidecli.scene.materials import Material, PairMaterial


def geom_material(mj_model: mujoco.MjModel, geom: int) -> Material:
    """The surface of a geom; with the flag "override", that of the option's o_friction, o_solref
    and o_solimp.

    Static and sliding friction are equal: MuJoCo has a single coefficient.
    """
    friction = mj_model.geom_friction[geom]
    solref = mj_model.geom_solref[geom]
    solimp = mj_model.geom_solimp[geom]
    solmix = mj_model.geom_solmix[geom]
    if is_overridden(mj_model):
        friction = mj_model.opt.o_friction[[0, 2, 3]]
        # Equal in every geom, so that any mixture equals the option; different weights would round.
        solref = mj_model.opt.o_solref
        solimp = mj_model.opt.o_solimp
        solmix = 1.0
    return Material(
        friction=float(friction[0]),
        torsional_friction=float(friction[1]),
        rolling_friction=float(friction[2]),
        condim=int(mj_model.geom_condim[geom]),
        priority=int(mj_model.geom_priority[geom]),
        solmix=float(solmix),
        solref=_floats(solref),
        solimp=_floats(solimp),
    )


def pair_material(mj_model: mujoco.MjModel, pair: int) -> PairMaterial:
    """The parameters of a `<pair>`, which replace those of its two geoms; the compiler has set all
    of them."""
    of_pairs = mj_model.pair_friction, mj_model.pair_solref, mj_model.pair_solimp
    friction, solref, solimp = (values[pair] for values in of_pairs)
    if is_overridden(mj_model):
        friction = mj_model.opt.o_friction
        solref = mj_model.opt.o_solref
        solimp = mj_model.opt.o_solimp
    return PairMaterial(
        condim=int(mj_model.pair_dim[pair]),
        friction=_floats(friction),
        solref=_floats(solref),
        solimp=_floats(solimp),
    )


def material_warnings(mj_model: mujoco.MjModel) -> list[str]:
    """Warnings about contact parameters of the scene that a contact set cannot store."""
    o_friction = mj_model.opt.o_friction
    warnings = []
    if is_overridden(mj_model) and (
        o_friction[0] != o_friction[1] or o_friction[3] != o_friction[4]
    ):
        shown = " ".join(f"{value:g}" for value in o_friction)
        warnings.append(
            f"o_friction is {shown}: outside <pair> the first of two directions is used for both"
        )
    for pair in range(mj_model.npair):
        if mj_model.pair_solreffriction[pair].any():
            geoms = (
                mj_model.geom(int(g)).name
                for g in (mj_model.pair_geom1[pair], mj_model.pair_geom2[pair])
            )
            shown = " and ".join(f"'{name}'" for name in geoms)
            warnings.append(
                f"solreffriction of the <pair> of {shown} is not stored in a contact set"
            )
    return warnings


def is_overridden(mj_model: mujoco.MjModel) -> bool:
    """Whether the scene's options replace the parameters of all contacts (the flag "override")."""
    return bool(mj_model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE)


def _floats(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
