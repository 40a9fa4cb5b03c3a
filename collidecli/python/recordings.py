"""Recordings that Python reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from collidecli.importers.recordings import kinds
from collidecli.python.option_parameters import SOURCE_PARAMETERS, with_options
from collidecli.python.scenes import loaded_with_warnings, scene_request
from collidecli.results.result import PathLike
from collidecli.scene.arguments import python_call
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion


class RecordingFile:
    """A recording of any known kind, see `open_recording`.

    path: its path. kind: name of the kind, such as "trajectory"; label: its description. frames,
    worlds: counts. bodies: names of the recorded bodies; empty if the kind has none. start, end:
    times of the first and last frame [s], or None. needs: what `run` needs in addition, as texts.
    """

    path: str
    kind: str
    label: str
    frames: int | None
    worlds: int | None
    bodies: tuple[str, ...]
    start: float | None
    end: float | None
    needs: tuple[str, ...]

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        with closing(kinds.open_recording(self.path)) as recording:
            description = recording.describe()
            self.kind = recording.NAME
            self.label = recording.LABEL
        self.frames = description.frames
        self.worlds = description.worlds
        self.bodies = tuple(description.bodies)
        self.start = description.start
        self.end = description.end
        self.needs = tuple(description.needs)

    def __repr__(self) -> str:
        return (
            f"<RecordingFile {self.path} kind={self.kind} frames={self.frames}"
            f" worlds={self.worlds}>"
        )

    @python_call
    @with_options(SOURCE_PARAMETERS)
    def with_scene(
        self, scene: PathLike | Sequence[PathLike] | None = None, **options: Any
    ) -> tuple[Model, Motion]:
        """The model of a scene, and the recording as its motion, for `collide(model, motion)`.

        scene: as in `run`. options: those of `run` for scenes and recordings. `motion.time` [s] has
        an entry per frame, `motion.read(range(a, b))` are poses float64[frames, worlds, bodies, 7],
        x y z qx qy qz qw; close the motion.
        """
        loaded, motion = loaded_with_warnings(scene_request(scene, self.path, options))
        return loaded.model, motion


@python_call
def open_recording(path: PathLike) -> RecordingFile:
    """The description of a recording of any known kind, recognised by content; with a scene, its
    poses.

    Raises InputError for a file of no known kind, or a malformed one.
    """
    return RecordingFile(path)
