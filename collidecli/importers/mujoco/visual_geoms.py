"""Visual geoms of a compiled MuJoCo model, and those that an option makes colliders."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco.shape_names import body_name, geom_name
from collidecli.importers.visual_options import KIND, OPTION, matching_visuals
from collidecli.scene.name_patterns import matcher

HIDDEN_GROUPS = 3
"""First group of geoms that MuJoCo's viewer does not show at first."""
COLLIDING_MASK = 1
"""contype and conaffinity of a geom that becomes a collider: MuJoCo's defaults."""
_SDF = int(mujoco.mjtGeom.mjGEOM_SDF)


def geom_colour(mj_model: mujoco.MjModel, geom: int) -> np.ndarray:
    """float32[4]: the colour of a geom or of its material."""
    material = int(mj_model.geom_matid[geom])
    return mj_model.mat_rgba[material] if material >= 0 else mj_model.geom_rgba[geom]


def visual_geoms(mj_model: mujoco.MjModel) -> list[int]:
    """Geoms that MuJoCo's viewer shows at first, and that collide with nothing; sdf geoms are not
    among them."""
    return [geom for geom in _not_colliding(mj_model) if _is_shown(mj_model, geom)]


def _is_shown(mj_model: mujoco.MjModel, geom: int) -> bool:
    return mj_model.geom_group[geom] < HIDDEN_GROUPS and geom_colour(mj_model, geom)[3] > 0.0


def _not_colliding(mj_model: mujoco.MjModel) -> list[int]:
    """Geoms that collide with nothing, except sdf geoms."""
    paired = {*mj_model.pair_geom1.tolist(), *mj_model.pair_geom2.tolist()}
    masked = (mj_model.geom_contype == 0) & (mj_model.geom_conaffinity == 0)
    solid = mj_model.geom_type != _SDF
    return [geom for geom in np.flatnonzero(masked & solid).tolist() if geom not in paired]


def chosen_geoms(mj_model: mujoco.MjModel, patterns: Sequence[str], where: str) -> dict[int, str]:
    """The visual geoms whose name, or that of whose body, matches a pattern, with their names.

    A geom that is hidden by its group or transparent is one if a pattern is its whole name. Raises
    InputError for a pattern that matches no other than hidden geoms, or none, and at `where` for a
    scene without visual geoms.
    """
    name_of = {geom: geom_name(mj_model, geom) for geom in _not_colliding(mj_model)}
    body_of = {geom: body_name(mj_model, int(mj_model.geom_bodyid[geom])) for geom in name_of}
    geoms = [
        geom for geom, name in name_of.items() if _is_shown(mj_model, geom) or name in patterns
    ]
    hidden = [geom for geom in name_of if geom not in geoms]
    for pattern in patterns:
        of_shown = _met(pattern, geoms, name_of, body_of)
        of_hidden = _met(pattern, hidden, name_of, body_of)
        if of_hidden and not of_shown:
            first = name_of[of_hidden[0]]
            what = f"'{pattern}' matches no {KIND} that is shown, only geom '{first}'"
            if len(of_hidden) > 1:
                what += f" and {len(of_hidden) - 1} more"
            what += ", hidden by a group above 2 or transparent"
            raise InputError(what, OPTION, f"give the whole name, '{first}'")
    names = [name_of[geom] for geom in geoms]
    chosen = matching_visuals(names, [body_of[geom] for geom in geoms], patterns, where)
    return {geom: name_of[geom] for geom, is_chosen in zip(geoms, chosen, strict=True) if is_chosen}


def _met(
    pattern: str, geoms: Sequence[int], name_of: dict[int, str], body_of: dict[int, str]
) -> list[int]:
    is_met = matcher(pattern, OPTION)
    return [geom for geom in geoms if is_met(name_of[geom]) or is_met(body_of[geom])]
