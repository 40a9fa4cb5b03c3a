"""Our own recordings, format `collide-trajectory`: body poses or generalized coordinates."""

from __future__ import annotations

from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.description import RecordingFacts
from collidecli.importers.recordings.target import Target
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.h5_input import format_of
from collidecli.storage.trajectories.header import read_header
from collidecli.storage.trajectories.motion import open_trajectory

NAME = "trajectory"
LABEL = "a trajectory of collide's own (HDF5)"
OPTIONS = ()


def recognise(content: Content) -> bool:
    """A format that begins with collide, or its datasets without one: this kind's reader then says what is wrong."""
    file = content.h5
    if file is None:
        return False
    name = format_of(file)
    return name.startswith("collide-") or (not name and ("body_q" in file or "joint_q" in file))


def describe(path: str) -> RecordingFacts:
    """See `RecordingKind.describe`."""
    header = read_header(path)
    return RecordingFacts(
        frames=header.frame_count,
        worlds=header.world_count,
        start=float(header.time[0]),
        end=float(header.time[-1]),
        bodies=header.body_names,
        coordinates=header.coordinate_count,
        quaternion_order="xyzw" if header.kind == "body_q" else "wxyz",
    )


def world_count(path: str, options: RecordingOptions) -> int | None:
    """See `RecordingKind.world_count`."""
    return read_header(path).world_count


def open_motion(path: str, target: Target, options: RecordingOptions) -> Motion:
    """See `RecordingKind.open_motion`; no option says anything of a trajectory."""
    return open_trajectory(path, target.model, target.find_kinematics())
