"""Values of USD attributes from arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import Gf, Sdf, UsdGeom, Vt

_NOWHERE = float(np.finfo(np.float32).max)


def vectors(values: np.ndarray) -> Vt.Vec3fArray:
    """Vectors [n, 3] in single precision."""
    return Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(values, np.float32).reshape(-1, 3))


def extent_of(points: np.ndarray) -> Vt.Vec3fArray:
    """The AABB of points [n, 3]; USD's empty extent for no points."""
    if not len(points):
        return Vt.Vec3fArray([Gf.Vec3f(_NOWHERE), Gf.Vec3f(-_NOWHERE)])
    return vectors(np.stack([points.min(axis=0), points.max(axis=0)]))


def integer_array(values: np.ndarray) -> Vt.IntArray:
    """An integer array of USD."""
    return Vt.IntArray.FromNumpy(np.ascontiguousarray(values, np.int32))


_VALUES = {
    "FloatArray": lambda values: Vt.FloatArray.FromNumpy(np.ascontiguousarray(values, np.float32)),
    "IntArray": integer_array,
    "Vector3fArray": vectors,
}
ARRAY_SHAPES = {"shape0": "IntArray", "shape1": "IntArray"}


class Primvars:
    """Primvars of a prim. kinds: types of values, by names of columns. each: their
    interpolation."""

    def __init__(self, prim: Any, on: str, kinds: Mapping[str, str]) -> None:
        made = UsdGeom.PrimvarsAPI(prim.GetPrim())
        self._kinds = kinds
        self._made = [
            made.CreatePrimvar(name, getattr(Sdf.ValueTypeNames, kinds[name]), on) for name in kinds
        ]

    def set(self, columns: Mapping[str, np.ndarray], code: float) -> None:
        for primvar, (name, kind) in zip(self._made, self._kinds.items(), strict=True):
            primvar.Set(_VALUES[kind](columns[name]), code)
