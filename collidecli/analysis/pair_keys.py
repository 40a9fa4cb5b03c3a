"""One number for a world and two things of it that touch: shapes, or the bodies that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError


@dataclass(frozen=True)
class PairKeys:
    """paths: of the things. kinds: "shape" or "body" of each. number: int64[S], the thing that a shape counts as."""

    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    number: np.ndarray

    @classmethod
    def of_shapes(cls, paths: Sequence[str], worlds: int) -> PairKeys:
        """Each shape by itself."""
        return cls(tuple(paths), ("shape",) * len(paths), np.arange(len(paths)))._fitting(worlds)

    @classmethod
    def of_bodies(cls, body_paths: Sequence[str], paths: Sequence[str], body: np.ndarray, worlds: int) -> PairKeys:
        """A body's shapes together; a shape of no body (-1, static) stays by itself. body: int[S], each shape's."""
        static = np.flatnonzero(body < 0)
        number = body.astype(np.int64)
        number[static] = len(body_paths) + np.arange(len(static))
        names = (*body_paths, *(path for path, row in zip(paths, body, strict=True) if row < 0))
        return cls(names, ("body",) * len(body_paths) + ("shape",) * len(static), number)._fitting(worlds)

    def _fitting(self, worlds: int) -> PairKeys:
        if worlds * len(self.paths) ** 2 >= 2**63:
            raise InputError(f"{worlds} worlds of {len(self.paths)} shapes and bodies are too many", "events")
        return self

    def key(self, world: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """int64, ordered by world, then the pair; the same whichever shape is named first."""
        one, other = self.number[shape0], self.number[shape1]
        return (world * len(self.paths) + np.minimum(one, other)) * len(self.paths) + np.maximum(one, other)

    def world(self, key: np.ndarray) -> np.ndarray:
        return key // max(1, len(self.paths)) ** 2

    def things(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `paths`, the smaller first."""
        count = max(1, len(self.paths))
        return key // count % count, key % count
