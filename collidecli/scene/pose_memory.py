"""Memory of the poses that a motion reads: NumPy's, or memory from which a device copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

Allocate = Callable[[tuple[int, ...]], np.ndarray]
"""A new array, float64, of a shape; not set."""

_allocate: ContextVar[Allocate] = ContextVar("_allocate", default=np.empty)


def empty_poses(shape: tuple[int, ...]) -> np.ndarray:
    """A new array, float64, for poses that `Motion.read` returns; not set."""
    return _allocate.get()(shape)


@contextmanager
def poses_in(allocate: Allocate) -> Iterator[None]:
    """Has this thread's `empty_poses` allocate by a function."""
    token = _allocate.set(allocate)
    try:
        yield
    finally:
        _allocate.reset(token)
