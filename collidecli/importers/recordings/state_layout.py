"""Columns of the components in a MuJoCo state vector, by the name of its layout."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from dataclasses import dataclass

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.pose_products import WXYZ_TO_XYZW

PREFIX = "mjSTATE_"
NAMES = {
    name[len(PREFIX) :]: int(getattr(mujoco.mjtState, name)) for name in dir(mujoco.mjtState) if name.startswith(PREFIX)
}
USUAL = ("FULLPHYSICS", "PHYSICS", "INTEGRATION", "QPOS")
"""Layouts that are tried when none is given."""

_QPOS, _TIME = NAMES["QPOS"], NAMES["TIME"]


@dataclass(frozen=True)
class StateLayout:
    """A state vector of one model.

    name: of the layout. size: numbers in a state. columns: of each component, for example "QPOS".
    """

    name: str
    size: int
    columns: dict[str, slice]

    def qpos(self, states: np.ndarray) -> np.ndarray:
        """float64[..., nq] of states[..., size]."""
        return states[..., self.columns["QPOS"]].astype(np.float64)

    def mocap(self, states: np.ndarray) -> np.ndarray | None:
        """float64[..., nmocap, 7] xyzw of states[..., size]; None where the layout lacks positions or rotations."""
        if not {"MOCAP_POS", "MOCAP_QUAT"} <= self.columns.keys():
            return None
        position = states[..., self.columns["MOCAP_POS"]].astype(np.float64)
        rotation = states[..., self.columns["MOCAP_QUAT"]].astype(np.float64)
        bodies = (*states.shape[:-1], position.shape[-1] // 3)
        return np.concatenate([position.reshape(*bodies, 3), rotation.reshape(*bodies, 4)[..., WXYZ_TO_XYZW]], axis=-1)


def parse_spec(text: str) -> int:
    """MuJoCo's bit mask of a layout: FULLPHYSICS, mjSTATE_PHYSICS, or components such as qpos,qvel or qpos|qvel.

    Raises InputError for a name that MuJoCo does not have, and for a layout without QPOS, which has no poses.
    """
    spec = 0
    for part in re.split(r"[,|\s]+", text.strip()):
        name = part.upper()
        name = name[len(PREFIX) :] if name.startswith(PREFIX.upper()) else name
        if name not in NAMES:
            raise InputError(
                f"MuJoCo has no state component '{part}'", "--state-spec", f"known names: {', '.join(sorted(NAMES))}"
            )
        spec |= NAMES[name]
    if not spec & _QPOS:
        raise InputError(f"'{text}' has no QPOS, so no poses", "--state-spec", "give the layout that was recorded")
    return spec


def layout_of(mj_model: mujoco.MjModel, spec: int, name: str) -> StateLayout:
    """The layout of a model's state: its components in the order of their bits, as mj_getState writes them."""
    columns, start = {}, 0
    for component, bit in sorted(NAMES.items(), key=lambda item: item[1]):
        if bit.bit_count() == 1 and spec & bit:
            size = mujoco.mj_stateSize(mj_model, bit)
            columns[component] = slice(start, start + size)
            start += size
    return StateLayout(name, start, columns)


def find_layout(mj_model: mujoco.MjModel, text: str, size: int, where: str) -> StateLayout:
    """The layout of states of `size` numbers: the given one, or without `text` the only usual one of that size.

    Raises InputError with the sizes: no layout fits, or several do.
    """
    if text:
        layout = layout_of(mj_model, parse_spec(text), text)
        if layout.size != size:
            parts = ", ".join(f"{name} {part.stop - part.start}" for name, part in layout.columns.items())
            raise InputError(
                f"a state has {size} numbers, and {text} of this scene {layout.size} ({parts})",
                where,
                "give the layout that was recorded, or run it with the scene that it was recorded from",
            )
        return layout
    usual = [layout_of(mj_model, NAMES[name], name) for name in USUAL]
    fitting = [layout for layout in usual if layout.size == size]
    sizes = ", ".join(f"{layout.name} {layout.size}" for layout in usual)
    if len(fitting) > 1:
        names = " and ".join(layout.name for layout in fitting)
        raise InputError(f"a state has {size} numbers, which {names} have in this scene", where, "give --state-spec")
    if not fitting:
        raise InputError(
            f"a state has {size} numbers, and those of this scene {sizes}",
            where,
            "give --state-spec, or run it with the scene that it was recorded from",
        )
    return fitting[0]
