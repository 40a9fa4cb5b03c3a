"""Hydroelastic surfaces of a cell as a view draws them: polygons coloured by pressure, or a force
for each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

LEVELS = 16
"""Number of colours of faces: each is a mesh, as a mesh of viser's has one colour."""


@dataclass(frozen=True)
class SurfaceScale:
    """What surfaces are coloured by. greatest: of all frames; pressure of the faces [Pa], or force
    of a surface [N]."""

    greatest: float
    has_faces: bool

    @property
    def quantity(self) -> str:
        """Pressure or force."""
        return "pressure" if self.has_faces else "force"

    @property
    def unit(self) -> str:
        """Unit of the quantity."""
        return "Pa" if self.has_faces else "N"

    def fraction(self, values: np.ndarray) -> np.ndarray:
        """float64: values relative to the greatest one, from 0 to 1."""
        return (
            np.clip(values / self.greatest, 0.0, 1.0)
            if self.greatest > 0.0
            else np.zeros(len(values))
        )

    def level(self, values: np.ndarray) -> np.ndarray:
        """uint8: number of the colour of values, from 0 to LEVELS - 1."""
        return np.minimum(LEVELS * self.fraction(values), LEVELS - 1).astype(np.uint8)


@dataclass(frozen=True)
class Faces:
    """Polygons. patch: int64[n], row of their surface. pressure: float64[n] [Pa]. lengths:
    int64[n], their corners.

    corner: float64[sum of lengths, 3] [m].
    """

    patch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    pressure: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    corner: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class Surfaces:
    """The surfaces of a cell. pair: int32[n, 2], rows of shapes. center: float64[n, 3] [m].

    force: float64[n, 3], on the second shape [N].
    """

    pair: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    center: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    force: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    faces: Faces = field(default_factory=Faces)

    def __len__(self) -> int:
        return len(self.pair)

    def of_pair(self, pair: tuple[int, int]) -> np.ndarray:
        """bool[n]: the surfaces of a pair of shapes."""
        return (self.pair == pair).all(axis=1)


def triangle_fans(lengths: np.ndarray) -> np.ndarray:
    """uint32[T, 3]: triangles of polygons with `lengths` corners, the polygons' corners one after
    the other."""
    first = np.cumsum(lengths) - lengths
    count = np.maximum(lengths - 2, 0)
    begin = np.repeat(first, count)
    second = begin + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + 1
    return np.stack([begin, second, second + 1], axis=1).astype(np.uint32)
