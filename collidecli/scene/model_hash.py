"""The hash of a model, in place of that of scene files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import Any

import numpy as np

DERIVED = ("source", "context", "classes", "repairs")
"""Fields that say from what a model was made, and affect no contact beside the others."""


def model_sha256(model: Any) -> str:
    """SHA-256 of all values of a `Model` that may affect a contact."""
    digest = sha256()
    for part in _parts(model):
        digest.update(part)
    return digest.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    """The bytes of a value, each with its kind or shape, so that different values differ."""
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield np.ascontiguousarray(value).tobytes()
    elif is_dataclass(value):
        for field in fields(value):
            if field.name not in DERIVED:
                yield f"{field.name}:".encode()
                yield from _parts(getattr(value, field.name))
    elif isinstance(value, Mapping):
        yield from _parts(sorted(value.items()))
    elif isinstance(value, (tuple, list)):
        yield f"[{len(value)}]".encode()
        for item in value:
            yield from _parts(item)
    elif isinstance(value, (str, bytes, int, float, np.generic, Enum, type(None))):
        yield f"{value!r};".encode()
    else:
        raise TypeError(f"no bytes of a {type(value).__name__}")
