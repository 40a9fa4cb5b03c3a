"""What labels of every kind have: dense arrays over frames, worlds and items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from collidecli.analysis.touch_intervals import Frames
from collidecli.results.result import Progress


@dataclass(frozen=True)
class DenseArray:
    """An array over frames, worlds and items, of a type and with a unit; "" for none.

    width: 1, or 3 for vectors, whose columns of a table end in _x, _y and _z. nan_is_none: NaN is a
    missing value in a table. words: the name of texts that values number, -1 for none, or "".
    """

    dtype: np.dtype
    unit: str = ""
    width: int = 1
    nan_is_none: bool = False
    words: str = ""

    @property
    def element(self) -> tuple[int, ...]:
        """Shape of an entry."""
        return () if self.width == 1 else (self.width,)


class DenseBlock(Protocol):
    """Arrays of consecutive frames from index `first`; `touch` and the others by name."""

    @property
    def first(self) -> int: ...
    @property
    def touch(self) -> np.ndarray: ...


class DenseLabels(Protocol):
    """Labels that can be written.

    form: name of the HDF5 format. dense: arrays [F, W, ...], the label `touch` first. items: names
    along each axis after frames and worlds, by the plural of the axis. texts: names that arrays
    number, by `DenseArray.words`. shape: of the axes. frames: selected; step: int64[F], numbers of
    the recorder. worlds: int64[W]. recorded: bool[F, W]. present: bool[W, ...]. is_row: bool[W,
    ...], entries that a table has rows of, where they are recorded. about: attributes of a file;
    mappings become JSON.
    """

    @property
    def form(self) -> str: ...
    @property
    def dense(self) -> Mapping[str, DenseArray]: ...
    @property
    def items(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def texts(self) -> Mapping[str, Sequence[str]]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def frames(self) -> Frames: ...
    @property
    def step(self) -> np.ndarray: ...
    @property
    def worlds(self) -> np.ndarray: ...
    @property
    def recorded(self) -> np.ndarray: ...
    @property
    def present(self) -> np.ndarray: ...
    @property
    def is_row(self) -> np.ndarray: ...
    @property
    def about(self) -> Mapping[str, Any]: ...

    def blocks(self, progress: Progress = None) -> Iterator[DenseBlock]:
        """The arrays in blocks of whole frames."""
        ...


class DenseTally(Protocol):
    """Labels, and their blocks, which are counted as they are taken."""

    @property
    def labels(self) -> DenseLabels: ...

    def blocks(self) -> Iterator[DenseBlock]:
        """The blocks of the labels."""
        ...
