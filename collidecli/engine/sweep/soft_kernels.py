"""Launches of the kernels that sweep particles and elements against shapes: one for each family of
shape types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.workspace import Workspace


@dataclass(frozen=True)
class Sweepers:
    """Kernels of the shape types of a model, with their surfaces. tolerance: of a touch [m]. step,
    touch: structs of their argument and their result."""

    kernels: tuple[tuple[wp.Kernel, Any], ...]
    tolerance: float
    step: Any
    touch: Any

    def touches(
        self, steps: np.ndarray, workspace: Workspace, tolerance: np.ndarray | None = None
    ) -> np.ndarray:
        """Results of steps, a row each; valid until the next call. tolerance: float64[n], of each
        row; None is that of all [m]."""
        count = len(steps)
        steps["tolerance"] = self.tolerance if tolerance is None else tolerance
        result = workspace.array(f"swept_{self.touch.__name__}", count, self.touch)
        given = workspace.uploaded(steps, self.step)
        for sweeper, surfaces in self.kernels:
            workspace.launch(sweeper, count, [surfaces, given, result])
        return workspace.host(result, count)


def kernels_of(
    kernels: dict[str, wp.Kernel], surfaces: Sequence[Any]
) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of the families of `surfaces_of` that a model has, with their surfaces."""
    return tuple(
        pair for pair in zip(kernels.values(), surfaces, strict=True) if pair[1] is not None
    )
