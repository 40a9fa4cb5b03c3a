"""Convex parts kept on disk between runs, beside the signed distance fields, by all that they depend on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from collidecli.scene.run_options import DEFAULT_CACHE_LIMIT
from collidecli.storage.field_cache import FieldCache

PREFIX = "parts-"
VERSION = 1
"""Of what is kept and how it is made; another number makes all of it anew."""

_place: ContextVar[tuple[str, int]] = ContextVar("place", default=("", DEFAULT_CACHE_LIMIT))


@dataclass(frozen=True)
class RawParts:
    """vertices: float64[n, 3] of each part. deviation: float64[2], see `Decomposed`. As shares of the mesh's size."""

    vertices: tuple[np.ndarray, ...]
    deviation: np.ndarray


@contextmanager
def parts_kept_in(folder: str, limit: int) -> Iterator[None]:
    """Scenes loaded in here keep their parts in a cache of `limit` bytes in all; "" is the platform's, 0 keeps none."""
    token = _place.set((folder, limit))
    try:
        yield
    finally:
        _place.reset(token)


def parts_of(
    vertex: np.ndarray, face: np.ndarray, settings: str, make: Callable[[], RawParts]
) -> tuple[RawParts, list[str]]:
    """What `make` makes of a mesh, from the cache where it is there, and what went wrong with the cache, in words.

    settings: all else that decides the parts, with the library's version.
    """
    cache = FieldCache(*_place.get())
    digest = hashlib.sha256(f"{VERSION} {settings} {vertex.shape} {face.shape}".encode())
    digest.update(np.ascontiguousarray(vertex, np.float64).tobytes())
    digest.update(np.ascontiguousarray(face, np.int64).tobytes())
    key = f"{PREFIX}{digest.hexdigest()}"
    kept = _unpacked(cache.load(key))
    if kept is not None:
        return kept, cache.notes
    made = make()
    first = np.cumsum([0, *(len(part) for part in made.vertices)])
    points = np.concatenate([np.zeros((0, 3)), *made.vertices])
    cache.save(key, {"vertex": points, "first": first.astype(np.int64), "deviation": made.deviation})
    return made, cache.notes


def _unpacked(arrays: dict[str, np.ndarray] | None) -> RawParts | None:
    """None for arrays that are no parts."""
    if arrays is None or set(arrays) != {"vertex", "first", "deviation"}:
        return None
    vertex, first, deviation = arrays["vertex"], arrays["first"], arrays["deviation"]
    sound = vertex.dtype == np.float64 and vertex.shape[1:] == (3,) and first.dtype == np.int64 and first.ndim == 1
    if not sound or deviation.dtype != np.float64 or deviation.shape != (2,) or len(first) < 2:
        return None
    if first[0] != 0 or first[-1] != len(vertex) or np.any(np.diff(first) < 1):
        return None
    return RawParts(tuple(np.split(vertex, first[1:-1])), deviation)
