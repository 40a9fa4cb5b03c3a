"""Heightfields: heights over a grid, and the solid below them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_number
from collidecli.scene.shape_types import LENGTH_LIMIT

FEATURE_LIMIT = 2**31 - 1
"""Features are numbered in 32 bits: 8 for each vertex, 8 more for each on the border, 12 for the
base."""


@dataclass(frozen=True, eq=False)
class Heightfield:
    """A solid from z = `bottom` up to a surface over a grid, in a frame at the centre of its
    bounding box.

    data: float32[rows, cols], read-only; the caller's array if it is float32. The surface's height
    over vertex (row, col) is `level + scale * data[row, col]` [m]; rows run along +y, columns along
    +x, from -half_y and -half_x. Each cell of the grid has two triangles, split by the diagonal
    from (row, col) to (row + 1, col + 1). half_x, half_y: half extents [m]. bottom: below every
    height [m]. center: z of the box's centre in the frame of the given heights [m].
    """

    data: np.ndarray
    scale: float
    level: float
    half_x: float
    half_y: float
    bottom: float
    center: float

    @property
    def half_extents(self) -> np.ndarray:
        """float64[3]: half extents of the bounding box [m]."""
        return np.array([self.half_x, self.half_y, -self.bottom])

    @property
    def heights(self) -> np.ndarray:
        """float64[rows, cols] [m], a new array."""
        return self.level + self.scale * self.data.astype(np.float64)

    @property
    def perimeter(self) -> int:
        """Number of vertices on the border of the grid."""
        rows, cols = self.data.shape
        return 2 * (rows - 1) + 2 * (cols - 1)

    @cached_property
    def key(self) -> bytes:
        """Equal for equal heightfields; a hash, because repeated comparison of many heights is
        slow."""
        numbers = (
            *self.data.shape,
            self.scale,
            self.level,
            self.half_x,
            self.half_y,
            self.bottom,
            self.center,
        )
        return hashlib.sha256(self.data.data).digest() + repr(numbers).encode()


def heightfield(
    heights: np.ndarray,
    hx: float,
    hy: float,
    base: float,
    where: str,
    scale: float = 1.0,
    bottom: float | None = None,
) -> Heightfield:
    """The heightfield of heights[rows, cols] over the rectangle from (-hx, -hy) to (hx, hy) [m].

    heights: in units of `scale` [m]. float32 is referenced without a copy and must not change
    afterwards; other types are converted to float32, relative to the middle of their range if
    float32 cannot represent them. base: depth of the solid below the lowest height [m]. bottom: its
    lower end instead, in the frame of the heights [m]. Raises InputError, with `where`, for less
    than 2 rows or columns, heights that are not finite or too large, sizes that are not greater
    than zero, and more features than 32-bit ids.
    """
    heights = np.asarray(heights)
    if heights.ndim != 2 or min(heights.shape) < 2 or heights.dtype.kind not in "iuf":
        shown = f"{heights.dtype}{list(heights.shape)}"
        raise InputError(
            f"the heightfield has heights {shown}",
            where,
            "give numbers [rows, cols], at least 2 by 2",
        )
    if 8 * (heights.size + 2 * sum(heights.shape)) + 12 > FEATURE_LIMIT:
        raise InputError(
            f"the heightfield has {heights.size} heights",
            where,
            "split it: features have 32-bit numbers",
        )
    lowest, highest = (float(value) * scale for value in (heights.min(), heights.max()))
    if not (abs(lowest) <= LENGTH_LIMIT and abs(highest) <= LENGTH_LIMIT):
        at = np.argwhere(~(np.abs(heights.astype(np.float64)) * scale <= LENGTH_LIMIT))[0].tolist()
        what = f"height {at[0]}, {at[1]} (row, column) is {heights[tuple(at)]:g}"
        raise InputError(what, where, f"heights must be finite and at most {LENGTH_LIMIT:g} m")
    for name, value in (
        ("hx", hx),
        ("hy", hy),
        ("base", base if bottom is None else lowest - bottom),
    ):
        if not is_number(value) or not 0.0 < value <= 2.0 * LENGTH_LIMIT:
            raise InputError(
                f"the heightfield has {name} = {value!r}", where, "give a length greater than zero"
            )
    low = lowest - base if bottom is None else bottom
    center = 0.5 * (low + highest)
    level = 0.0
    data = heights.astype(np.float32, order="C", copy=False)
    if heights.dtype != np.float32 and not np.array_equal(data, heights):
        level = 0.5 * float(heights.min()) + 0.5 * float(heights.max())
        data = (heights - level).astype(np.float32, order="C")
    data = data.view()
    data.setflags(write=False)
    return Heightfield(
        data, float(scale), level * scale - center, float(hx), float(hy), low - center, center
    )
