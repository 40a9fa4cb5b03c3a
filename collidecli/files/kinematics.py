"""What a scene's forward kinematics is to the readers of recordings."""

from __future__ import annotations

from typing import Protocol

import numpy as np

BadPlace = tuple[int, str, str]
"""Row, name of the body, and what is wrong there."""


class Kinematics(Protocol):
    """Makes body poses of generalized coordinates, each frame on its own.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: numbers per configuration. mocap_count: bodies that are placed directly.
    """

    body_path: tuple[str, ...]
    welded: np.ndarray
    coordinate_count: int
    mocap_count: int

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """float64[n, B, 7] xyzw of qpos[n, coordinate_count] and mocap[n, mocap_count, 7] xyzw."""
        ...

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadPlace | None:
        """The first row of qpos that is no configuration, or None."""
        ...

    def first_bad_mocap(self, mocap: np.ndarray) -> BadPlace | None:
        """The first row of mocap[n, mocap_count, 7] that is no pose, or None."""
        ...
