"""What a computing verb is asked: scenes, a recording, and options of the engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from collidecli.importers.convex_parts_cache import parts_kept_in
from collidecli.scene.options import (
    ContactOptions,
    EngineOptions,
    RecordingOptions,
    SceneOptions,
)
from collidecli.storage.reading_limit import limited_reading

if TYPE_CHECKING:
    from collidecli.motions.given_scenes import GivenScene

Options = TypeVar("Options", SceneOptions, RecordingOptions)


@dataclass(frozen=True, kw_only=True)
class SceneRequest:
    """A scene and its motion. scenes: files. trajectory: a recording. frames: a slice A:B:S; empty
    is all. given: a model and its motion in place of files, or None."""

    scenes: Sequence[str]
    trajectory: str | None = None
    worlds: int | None = None
    frames: str = ""
    contact: ContactOptions = field(default_factory=ContactOptions)
    scene_options: SceneOptions = field(default_factory=SceneOptions)
    recording: RecordingOptions = field(default_factory=RecordingOptions)
    given: GivenScene | None = field(default=None, repr=False, compare=False)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Limits the memory of the process while it reads the scene and its motion, to half of the
        free memory."""
        with limited_reading():
            yield


@dataclass(frozen=True, kw_only=True)
class EngineRequest(SceneRequest):
    """A scene in motion for the engine. engine: device, threads, memory, cache, and algorithms."""

    engine: EngineOptions = field(default_factory=EngineOptions)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Limits the memory of the process to that of the engine, and keeps convex parts in its
        cache."""
        with (
            parts_kept_in(self.engine.cache_dir, self.engine.cache_limit),
            limited_reading(self.engine.memory_limit),
        ):
            yield


@dataclass(frozen=True, kw_only=True)
class EnginesRequest(EngineRequest):
    """A scene in motion and engines.

    engines: names of adapters, NAME=adapter or NAME=adapter.py. engine_python: NAME=interpreter, or
    one of all others. engine_option: NAME.KEY=VALUE, of an adapter.
    """

    engines: Sequence[str] = ()
    engine_python: Sequence[str] = ()
    engine_option: Sequence[str] = ()
