"""World transforms of many prims of a stage at rest, computed together: NumPy's calls on one matrix take longer than
USD's reading of it."""

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
"""Prim axes of the shape's x, y, z, for each axis of symmetry; a cyclic order, which adds no reflection."""


@dataclass(frozen=True)
class ReorderedAxes:
    """The prims with permuted axes: scale, as rows of positive floats, and rotation float64[N, 3, 3].

    A reflection is applied across the middle axis, which does not change shapes that are symmetric about the last axis.
    """

    scale: list[list[float]]
    rotation: np.ndarray


class WorldTransforms:
    """Transforms of prims in the world, at the time of `transforms`.

    position: float64[N, 3], in stage units. columns: float64[N, 3, 3], images of the axes. The rotations of
    transforms that `check` refuses are undefined.
    """

    def __init__(self, transforms: PrimTransforms, prims: Mapping[str, Usd.Prim]) -> None:
        self._row = {path: row for row, path in enumerate(prims)}
        matrix = transforms.matrices(list(prims.values()))
        self.position, self.columns = matrix[:, 3, :3], columns_of(matrix)
        self._reordered: dict[str, ReorderedAxes] = {}
        try:
            check_columns(self.columns)
            self._all_valid = True
        except TransformError:
            self._all_valid = False

    def row(self, path: str) -> int:
        return self._row[path]

    def check(self, path: str) -> None:
        """Raises TransformError for a prim with a shear, a zero scale or a value that is not finite."""
        if not self._all_valid:
            check_columns(self.columns[self._row[path]])

    def reordered(self, axis: str) -> ReorderedAxes:
        """All prims with axes permuted so that `axis` (X, Y or Z) is last."""
        if axis not in self._reordered:
            columns = self.columns[:, :, AXIS_ORDER[axis]]
            with np.errstate(all="ignore"):
                signed = scales_of(columns)
                mirrored = np.where(signed[:, :1] < 0.0, -1.0, 1.0)
                proper = columns.copy()
                proper[:, :, 1] *= mirrored
                self._reordered[axis] = ReorderedAxes(np.abs(signed).tolist(), rotation_of(proper))
        return self._reordered[axis]
