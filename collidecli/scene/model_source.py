"""The name and the hash of a model that was given in Python, in place of those of scene files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collidecli.scene.model import Model

BUILT_MODEL = "a model built in Python"
"""Begin of the name of the scene of a contact set of a model without files."""
FILES = "files"
MODEL = "model"
SCENE_KINDS = (FILES, MODEL)
"""Kinds of the scene of a contact set: scene files, or a model that was given in Python."""
DERIVED = ("source", "context", "classes", "repairs")
"""Fields that say from what a model was made, and affect no contact beside the others."""


def model_name(model: Model) -> str:
    """The name of a model as the scene of a contact set; with the files from which it was
    loaded. It does not end as the name of a file does."""
    return f"{BUILT_MODEL} (of {' '.join(model.source)})" if model.source else BUILT_MODEL


class SourceOfSet(NamedTuple):
    """What a contact set says of its scene: name, SHA-256, and kind, of SCENE_KINDS."""

    name: str
    sha256: str
    kind: str

    @classmethod
    def of(cls, name: str, sha256: str, model: Model) -> SourceOfSet:
        """Of scene files; with the name "" of a model that was given."""
        return cls(name, sha256, FILES) if name else cls(model_name(model), sha256, MODEL)


def scene_kind_of(kind: str, name: str) -> str:
    """The kind of the scene of a contact set, of SCENE_KINDS. kind: as it is written; "" in sets
    of versions that did not write it, of which the name decides. The earliest wrote no name."""
    return kind or (MODEL if not name or name.startswith(BUILT_MODEL) else FILES)


def model_sha256(model: Model) -> str:
    """SHA-256 of all values of a model that may affect a contact, in place of that of its files."""
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
