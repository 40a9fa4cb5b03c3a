"""Checks of recorded positions of particles."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.shape_types import POSITION_LIMIT


def check_positions(positions: np.ndarray, frames: range, where: str) -> None:
    """Raises InputError for a position that is not finite or too far away. positions: [frames, worlds, P, 3] [m]."""
    good = np.abs(positions) <= POSITION_LIMIT
    if good.all():
        return
    frame, world, particle = (int(k) for k in np.argwhere(~good)[0][:3])
    shown = ", ".join(f"{x:g}" for x in positions[frame, world, particle])
    place = f"{where}, frame {frames[frame]}, world {world}, particle {particle}"
    raise InputError(f"the position is ({shown})", place, f"record finite positions of at most {POSITION_LIMIT:g} m")
