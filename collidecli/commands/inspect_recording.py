"""Contents of a recording of another program, for the verb `inspect`."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from collidecli.commands.result import Result
from collidecli.commands.scenes import MUJOCO_ENDINGS
from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, NPY, NPZ, USD, storage_of
from collidecli.importers.recordings.kinds import open_recording


@dataclass(frozen=True)
class RecordingResult(Result):
    """Contents of a recording without its poses. Times [s]; None if unknown.

    kind, label: identifier and description of its kind. needs: information that `run` needs besides. details: more
    properties of its kind, by name.
    """

    SCHEMA: ClassVar[str] = "collide.inspect.recording/1"

    file: str
    kind: str
    label: str
    frames: int
    worlds: int
    start: float | None
    end: float | None
    bodies: tuple[str, ...]
    coordinates: int
    quaternion_order: str | None
    needs: tuple[str, ...]
    details: dict[str, Any]


def is_recording(path: str) -> bool:
    """Whether a file contains arrays or columns and so cannot be a scene. A USD file may be both."""
    return Path(path).suffix.lower() not in MUJOCO_ENDINGS and storage_of(path) in (NPZ, NPY, CSV)


def is_layer_alone(path: str) -> bool:
    """Whether a file that is refused as a scene is a USD layer that contains only time samples.

    False for a file that cannot be read: the error of reading it as a scene is reported.
    """
    if storage_of(path) != USD:
        return False
    from collidecli.importers.usd.motion_layer import is_motion_only
    from collidecli.importers.usd.stage import diagnostics

    try:
        with diagnostics(path):
            return is_motion_only(path)
    except (InputError, UnicodeDecodeError):
        return False


def inspect_recording(path: str) -> RecordingResult:
    """Contents of a recording without its poses. Raises InputError for an unknown kind or malformed content."""
    with closing(open_recording(path)) as recording:
        found = recording.describe()
    return RecordingResult(
        file=path,
        kind=recording.NAME,
        label=recording.LABEL,
        frames=found.frames,
        worlds=found.worlds,
        start=found.start,
        end=found.end,
        bodies=tuple(found.bodies),
        coordinates=found.coordinates,
        quaternion_order=found.quaternion_order or None,
        needs=tuple(found.needs),
        details=dict(found.details),
    )
