"""Which kind of recording a file is, by its content; each kind is a module of its own.

To add one: a module in this folder with the members of `RecordingKind`, and its name in `_MODULES`. The order is that
of asking; the first that recognises the content has it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from importlib import import_module
from typing import Any, Protocol, cast

from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, HDF5, NPY, NPZ, USD, Content, opened_content
from collidecli.importers.recordings.description import RecordingFacts
from collidecli.importers.recordings.target import Target
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions

_MODULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # module, the storages in which it is asked
    ("trajectory", (HDF5,)),
    ("isaac_lab", (HDF5,)),
    ("robosuite", (HDF5,)),
    ("mujoco_states", (HDF5, NPZ, NPY)),
    ("humanoid_motion", (NPZ, CSV)),
    ("usd_layer", (USD,)),
)


class RecordingKind(Protocol):
    """The members of a kind's module.

    NAME: one word, for `--json`. LABEL: what a person calls it. OPTIONS: fields of `RecordingOptions` that say
    something of this kind; any other that is given is refused.
    """

    NAME: str
    LABEL: str
    OPTIONS: tuple[str, ...]

    def recognise(self, content: Content) -> bool:
        """Whether the content is of this kind, well formed or not: it is then this kind that says what is wrong."""
        ...

    def describe(self, path: str) -> RecordingFacts:
        """What is in it. Raises InputError for a file that is malformed."""
        ...

    def world_count(self, path: str, options: RecordingOptions) -> int | None:
        """Worlds in the recording, known before there is a model; None: as many as the scene has."""
        ...

    def open_motion(self, path: str, target: Target, options: RecordingOptions) -> Motion:
        """The recording as a motion. Raises InputError where it is malformed, does not fit, or leaves things open."""
        ...


def kind_of(path: str | os.PathLike[str]) -> RecordingKind:
    """The kind of a recording. Raises InputError for a content that is none of the known ones; it says what it is."""
    with opened_content(path) as content:
        for module, storages in _MODULES:
            if content.storage in storages:
                kind = _load(module)
                if kind.recognise(content):
                    return kind
        raise InputError(
            f"this is no recording that collide knows: {content.seen()}",
            os.fspath(path),
            f"known kinds: {', '.join(_load(module).NAME for module, _ in _MODULES)}",
        )


@dataclass(frozen=True)
class Recording:
    """A file whose kind is known."""

    path: str
    kind: RecordingKind

    def world_count(self, options: RecordingOptions) -> int | None:
        """See `RecordingKind.world_count`."""
        return self.kind.world_count(self.path, options)

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """See `RecordingKind.open_motion`. Raises InputError for an option that would have no effect, too."""
        refuse_options(options, f"of {self.kind.LABEL}", self.path, self.kind.OPTIONS)
        return self.kind.open_motion(self.path, target, options)


def find_recording(path: str | os.PathLike[str]) -> Recording:
    """A recording of any kind. Raises InputError as `kind_of`."""
    return Recording(os.fspath(path), kind_of(path))


def refuse_options(options: RecordingOptions, of_what: str, where: str, known: Sequence[str] = ()) -> None:
    """Raises InputError for an option that is given and is not one of `known`: it would have no effect."""
    for option in fields(options):
        if option.name not in known and getattr(options, option.name) not in (None, "", ()):
            name = f"--{option.name.replace('_', '-')}"
            useful = ", ".join(f"--{known_name.replace('_', '-')}" for known_name in known)
            fix = f"leave it out; what helps here: {useful}" if useful else "leave it out"
            raise InputError(f"{name} says nothing {of_what}", where, fix)


def known_kinds() -> tuple[RecordingKind, ...]:
    """Every kind, in the order of asking."""
    return tuple(_load(module) for module, _ in _MODULES)


def _load(module: str) -> RecordingKind:
    found: Any = import_module(f"collidecli.importers.recordings.{module}")
    return cast("RecordingKind", found)
