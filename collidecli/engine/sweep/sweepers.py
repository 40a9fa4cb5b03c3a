"""Launches of the kernels that sweep particles and triangles against shapes: one for each family of shape types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles.soft_queries import NoSurfaces
from collidecli.engine.particles.surfaces import GridSurfaces, families, upload_polygons
from collidecli.engine.runtime.workspace import Workspace


@dataclass(frozen=True)
class Sweepers:
    """Kernels of the shape types of a model, with their surfaces. tolerance: of a touch [m]. step, touch: structs of
    their argument and their result."""

    device_model: DeviceModel
    kernels: tuple[tuple[wp.Kernel, Any], ...]
    tolerance: float
    step: Any
    touch: Any

    def touches(self, steps: np.ndarray, workspace: Workspace) -> np.ndarray:
        """Results of steps, a row each; valid until the next call."""
        count = len(steps)
        result = workspace.array(f"swept_{self.touch.__name__}", count, self.touch)
        given = workspace.uploaded(steps, self.step)
        for sweeper, surfaces in self.kernels:
            workspace.launch(sweeper, count, [self.device_model.rows, surfaces, self.tolerance, given, result])
        return workspace.host(result, count)


def surfaces_of(device_model: DeviceModel, types: Sequence[int]) -> list[Any]:
    """The surfaces of the families of `families`, None for those without a shape of the types."""
    primitives, polygons, grids = families(types)
    found: list[Any] = [NoSurfaces() if primitives else None, upload_polygons(device_model) if polygons else None, None]
    if grids:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        found[2] = GridSurfaces()
        found[2].fields = upload_heightfields(device_model.model.heightfields, device_model.device)
        found[2].field = device_model.rows.heightfield
    return found


def kernels_of(module: ModuleType, surfaces: list[Any], types: Sequence[int]) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of a module for the types, with their surfaces."""
    kernels = module.SWEEP_PRIMITIVES, module.SWEEP_POLYGONS, module.SWEEP_GRIDS
    used = families(types)
    return tuple((kernel, held) for kernel, held, uses in zip(kernels, surfaces, used, strict=True) if uses)
