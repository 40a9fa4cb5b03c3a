"""Recordings in collide's own format `collide-trajectory`: body poses or generalized coordinates."""

from __future__ import annotations

from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.scene.options import RecordingOptions
from collidecli.storage.h5_files import format_of
from collidecli.storage.trajectory_files import check_format, header_of
from collidecli.storage.trajectory_motion import TrajectoryMotion


class TrajectoryRecording(Recording):
    """A `collide-trajectory` file, which needs no option."""

    NAME = "trajectory"
    LABEL = "a trajectory of collide's own (HDF5)"
    OPTIONS = ("ignore_particles",)

    def __init__(self, content: Content) -> None:
        self.content = content
        check_format(content.h5_file, content.path)

    @staticmethod
    def recognise(content: Content) -> bool:
        """A format name that begins with collide, or the datasets of a trajectory without a format name."""
        file = content.h5
        if file is None:
            return False
        name = format_of(file)
        return name.startswith("collide-") or (not name and ("body_q" in file or "joint_q" in file))

    def describe(self) -> RecordingDescription:
        header = header_of(self.content.h5_file, self.content.path)
        return RecordingDescription(
            frames=header.frame_count,
            worlds=header.world_count,
            start=float(header.time[0]),
            end=float(header.time[-1]),
            bodies=header.body_names,
            coordinates=header.coordinate_count,
            quaternion_order="xyzw" if header.kind == "body_q" else "wxyz",
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return header_of(self.content.h5_file, self.content.path).world_count

    def motion(self, target: Target, options: RecordingOptions) -> TrajectoryMotion:
        return TrajectoryMotion(
            self.content.h5_file, self.content.path, target.model, target.find_kinematics(), options.ignore_particles
        )
