"""Disk cache of convex parts, in the folder of the signed distance fields, by a hash of all
inputs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np

from collidecli.scene.option_values import DEFAULT_CACHE_LIMIT
from collidecli.storage.field_cache import FieldCache

PREFIX = "parts-"
VERSION = 1
"""Version of the content and its computation; a change invalidates all entries."""
cache_location: ContextVar[tuple[str, int]] = ContextVar(
    "location", default=("", DEFAULT_CACHE_LIMIT)
)


@dataclass(frozen=True)
class RawParts:
    """vertices: float64[n, 3] of each part. deviation: float64[2], see `Decomposed`. Relative to
    the mesh's size."""

    vertices: tuple[np.ndarray, ...]
    deviation: np.ndarray


@contextmanager
def parts_kept_in(folder: str, limit: int) -> Iterator[None]:
    """Caches parts and hulls of the scenes loaded in the block. folder: "" is the platform's.
    limit: bytes; 0: none."""
    token = cache_location.set((folder, limit))
    try:
        yield
    finally:
        cache_location.reset(token)


def parts_of(
    vertex: np.ndarray, face: np.ndarray, settings: str, make: Callable[[], RawParts]
) -> tuple[RawParts, list[str]]:
    """The result of `make` for a mesh, from the cache where present, and errors of the cache as
    texts.

    settings: all other inputs of the parts, with the library's version.
    """
    cache = FieldCache(*cache_location.get())
    digest = hashlib.sha256(f"{VERSION} {settings} {vertex.shape} {face.shape}".encode())
    digest.update(np.ascontiguousarray(vertex, np.float64).tobytes())
    digest.update(np.ascontiguousarray(face, np.int64).tobytes())
    key = f"{PREFIX}{digest.hexdigest()}"
    kept = _unpacked_parts(cache.load(key))
    if kept is not None:
        return kept, cache.notes
    parts = make()
    first = np.cumsum([0, *(len(part) for part in parts.vertices)])
    points = np.concatenate([np.zeros((0, 3)), *parts.vertices])
    cache.save(
        key, {"vertex": points, "first": first.astype(np.int64), "deviation": parts.deviation}
    )
    return parts, cache.notes


def _unpacked_parts(arrays: dict[str, np.ndarray] | None) -> RawParts | None:
    if arrays is None or set(arrays) != {"vertex", "first", "deviation"}:
        return None
    vertex = arrays["vertex"]
    first = arrays["first"]
    deviation = arrays["deviation"]
    valid = (
        vertex.dtype == np.float64
        and vertex.shape[1:] == (3,)
        and first.dtype == np.int64
        and first.ndim == 1
    )
    if not valid or deviation.dtype != np.float64 or deviation.shape != (2,) or len(first) < 2:
        return None
    if not np.isfinite(vertex).all():
        return None
    if first[0] != 0 or first[-1] != len(vertex) or np.any(np.diff(first) < 1):
        return None
    return RawParts(tuple(np.split(vertex, first[1:-1])), deviation)
