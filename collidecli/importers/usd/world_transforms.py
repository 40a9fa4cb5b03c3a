"""World transforms of many prims of a stage at rest, worked on together: NumPy's calls on one matrix cost more than
USD's own reading of it."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from pxr import Usd

from collidecli.importers.usd.prim_transforms import PrimTransforms
from collidecli.importers.usd.transform import TransformError, check_columns, columns_of, rotation_of, scales_of

AXIS_ORDER = {"X": (1, 2, 0), "Y": (2, 0, 1), "Z": (0, 1, 2)}
"""Which prim axes our x, y, z are, for each axis of symmetry; a cyclic order, so that no reflection enters."""


@dataclass(frozen=True)
class Turned:
    """The prims with their axes in one order: scale, as rows of positive floats, and rotation float64[N, 3, 3].

    A reflection is taken as a mirror across the middle axis, which leaves shapes that are round about the last as
    they are.
    """

    scale: list[list[float]]
    rotation: np.ndarray


class WorldTransforms:
    """Transforms of prims in the world, at the time of `transforms`.

    position: float64[N, 3], in stage units. columns: float64[N, 3, 3], images of the axes. Those that `check` would
    refuse have rotations that mean nothing.
    """

    def __init__(self, transforms: PrimTransforms, prims: Mapping[str, Usd.Prim]) -> None:
        self._row = {path: row for row, path in enumerate(prims)}
        matrix = transforms.matrices(list(prims.values()))
        self.position, self.columns = matrix[:, 3, :3], columns_of(matrix)
        self._turned: dict[str, Turned] = {}
        try:
            check_columns(self.columns)
            self._sound = True
        except TransformError:
            self._sound = False

    def row(self, path: str) -> int:
        return self._row[path]

    def check(self, path: str) -> None:
        """Raises TransformError for a prim that shears, is flat or is not finite."""
        if not self._sound:
            check_columns(self.columns[self._row[path]])

    def turned(self, axis: str) -> Turned:
        """All prims with the order of axes that has `axis`, X, Y or Z, last."""
        if axis not in self._turned:
            columns = self.columns[:, :, AXIS_ORDER[axis]]
            with np.errstate(all="ignore"):
                signed = scales_of(columns)
                mirrored = np.where(signed[:, :1] < 0.0, -1.0, 1.0)
                proper = columns.copy()
                proper[:, :, 1] *= mirrored
                self._turned[axis] = Turned(np.abs(signed).tolist(), rotation_of(proper))
        return self._turned[axis]
