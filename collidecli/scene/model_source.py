"""What a contact set says of its scene: name and kind, of scene files or of a model of Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collidecli.scene.model import Model

BUILT_MODEL = "a model built in Python"
"""Begin of the name of the scene of a contact set of a model without files."""
SCENE_CONTENT = "a scene is its files with those of --disabled-pairs and --pairs-file"
"""What the hash of a scene covers, for messages of two that differ."""
FILES = "files"
MODEL = "model"
SCENE_KINDS = (FILES, MODEL)
"""Kinds of the scene of a contact set: scene files, or a model that was given in Python."""


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
