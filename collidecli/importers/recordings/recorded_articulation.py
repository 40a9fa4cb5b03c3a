"""One articulation or free body of a recording."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from collidecli.scene.kinematics import ArticulationKinematics, JointColumns


@dataclass(frozen=True)
class RecordedArticulation:
    """One articulation or free body in one world of a recording.

    root_pose: returns float64[n, 7] xyzw of n frames, as recorded; None where there is none.
    joint_position: returns float64[n, k] of n frames, or is None. root_location, joint_location:
    file and dataset, for messages.
    """

    articulation: ArticulationKinematics
    columns: JointColumns
    root_pose: Callable[[range], np.ndarray] | None
    joint_position: Callable[[range], np.ndarray] | None
    root_location: str = ""
    joint_location: str = ""
