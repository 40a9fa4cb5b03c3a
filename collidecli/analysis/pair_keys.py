"""Integer keys of a world and two touching items of it: shapes, or the bodies of the shapes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError


@dataclass(frozen=True)
class PairKeys:
    """Keys of pairs of items. paths: of the items. kinds: "shape" or "body". number: int64[S], item of each shape."""

    paths: tuple[str, ...]
    kinds: tuple[str, ...]
    number: np.ndarray

    @classmethod
    def of_shapes(cls, paths: Sequence[str], worlds: int) -> PairKeys:
        """Keys with every shape as an item."""
        return cls(tuple(paths), ("shape",) * len(paths), np.arange(len(paths)))._fitting(worlds)

    @classmethod
    def of_bodies(cls, body_paths: Sequence[str], paths: Sequence[str], body: np.ndarray, worlds: int) -> PairKeys:
        """Keys with bodies, and static shapes (body -1), as items. body: int[S], body of each shape."""
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
        """int64: keys, ordered by world, then pair; symmetric in the two shapes."""
        one, other = self.number[shape0], self.number[shape1]
        return (world * len(self.paths) + np.minimum(one, other)) * len(self.paths) + np.maximum(one, other)

    def world(self, key: np.ndarray) -> np.ndarray:
        return key // max(1, len(self.paths)) ** 2

    def items(self, key: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of `paths` of the two items, the smaller first."""
        count = max(1, len(self.paths))
        return key // count % count, key % count
