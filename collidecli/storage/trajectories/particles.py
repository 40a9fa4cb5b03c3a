"""Checks of recorded positions of particles."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.shape_types import POSITION_LIMIT


def bad_positions(positions: np.ndarray) -> np.ndarray:
    """bool[...] of positions[..., 3]: not finite or too far away."""
    return np.asarray(~(np.abs(positions) <= POSITION_LIMIT).all(axis=-1))


def check_positions(positions: np.ndarray, frames: range, where: str) -> None:
    """Raises InputError for a position that is not finite or too far away. positions: [frames, worlds, P, 3] [m]."""
    bad = bad_positions(positions)
    if not bad.any():
        return
    frame, world, particle = (int(k) for k in np.argwhere(bad)[0])
    shown = ", ".join(f"{x:g}" for x in positions[frame, world, particle])
    place = f"{where}, frame {frames[frame]}, world {world}, particle {particle}"
    raise InputError(f"the position is ({shown})", place, f"record finite positions of at most {POSITION_LIMIT:g} m")
