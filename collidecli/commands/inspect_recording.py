"""What is in a recording of another program, as plain values."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from collidecli.commands.scenes import MUJOCO_ENDINGS
from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, NPY, NPZ, USD, storage_of
from collidecli.importers.recordings.kinds import open_recording

RECORDING_SCHEMA = "collide.inspect.recording/1"


def is_recording(path: str) -> bool:
    """Whether a file is a recording whatever it may be as a scene: arrays or columns. USD may be both."""
    return Path(path).suffix.lower() not in MUJOCO_ENDINGS and storage_of(path) in (NPZ, NPY, CSV)


def is_layer_alone(path: str) -> bool:
    """Whether a file that is refused as a scene is a USD layer of time samples, and no scene.

    One that cannot be read is not: what was said of it as a scene stands.
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


def recording_facts(path: str) -> dict[str, Any]:
    """What a recording holds, without its poses, and what it still needs to be told. Times [s]; null where unknown.

    Raises InputError for a content that is of no known kind, or malformed.
    """
    with closing(open_recording(path)) as recording:
        found = recording.describe()
    return {
        "schema": RECORDING_SCHEMA,
        "file": path,
        "kind": recording.NAME,
        "label": recording.LABEL,
        "frames": found.frames,
        "worlds": found.worlds,
        "start": found.start,
        "end": found.end,
        "bodies": list(found.bodies),
        "coordinates": found.coordinates,
        "quaternion_order": found.quaternion_order or None,
        "needs": list(found.needs),
        "details": dict(found.details),
    }
