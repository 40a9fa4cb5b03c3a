"""Values of the optional columns of a run: those of two surfaces, and those of the motion of two bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.analysis.contact_motion import FramePoses, motion_columns
from collidecli.errors import InputError
from collidecli.scene.columns import Column
from collidecli.scene.contacts import MOTION_COLUMNS, ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.scene.mixing import OptionalColumns
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.run_options import ContactOptions
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:  # imported where the column is wanted: it defines kernels
    from collidecli.commands.exact_gradients import ExactGradients

EXACT, GRADIENT = "grad_exact", "distance_grad1"
VELOCITIES = ("normal_velocity", "slip")


def check_no_columns(names: Sequence[str], contact: ContactOptions) -> None:
    """Raises InputError for columns of a run that finds no contacts."""
    if names and contact.touch_only:
        raise InputError("touch_only finds pairs alone, which have no columns", "--columns", "leave one of the two out")


@dataclass(frozen=True)
class RunColumns:
    """The optional columns `columns`, in the order of the file, of the contacts of a model in motion.

    episodes: of the motion in the model's worlds; a velocity never spans two of them. exact: of the column grad_exact,
    if it is wanted.
    """

    model: Model
    motion: Motion
    surfaces: OptionalColumns
    episodes: Episodes | None
    exact: ExactGradients | None

    @classmethod
    def of(cls, model: Model, motion: Motion, names: Sequence[str], device: wp.Device) -> RunColumns:
        """The columns `names`.

        Raises InputError for an unknown or undefined column, and for a velocity in a motion of one frame.
        """
        surfaces = OptionalColumns.of(model, names)
        exact = None
        if EXACT in names:
            from collidecli.commands.exact_gradients import ExactGradients

            exact = ExactGradients(model, device)
        columns = cls(model, motion, surfaces, episodes_in(motion, model.world_count), exact)
        if columns._velocities and len(motion.time) < 2:
            raise InputError(
                f"{' and '.join(sorted(columns._velocities))} of a motion of one frame: there is no velocity",
                "--columns",
                "give a recording of two frames or more, or leave the column out",
            )
        return columns

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.surfaces.columns

    @property
    def _of_motion(self) -> frozenset[str]:
        return frozenset(column.name for column in self.columns if column in MOTION_COLUMNS)

    @property
    def _velocities(self) -> frozenset[str]:
        return self._of_motion & set(VELOCITIES)

    def added(self, block: ContactBlock) -> ContactBlock:
        """The block with these columns added; the block itself if there are none.

        Reads the motion's frames of the block again. Raises InputError where two frames have no time between them.
        """
        block = self.surfaces.added(block)
        if not self._of_motion:
            return block
        poses = self._poses(block)
        needed = self._of_motion | ({GRADIENT} if self.exact else set())
        found = motion_columns(self.model, block, poses, needed)
        if self.exact is not None:
            found[EXACT] = self.exact.column(block, poses, found[GRADIENT])
        ordered = {column.name: found[column.name] for column in self.columns if column.name in found}
        return replace(block, columns={**block.columns, **ordered})

    def _poses(self, block: ContactBlock) -> FramePoses:
        """Poses of the block's frames, with those before and after them if velocities are wanted."""
        cell = block.first_cell + np.arange(len(block.cell_counts))
        frame, world = np.divmod(cell, self.model.world_count)
        before = after = frame
        seconds = np.full(len(cell), np.nan)
        if self._velocities:
            first, last = self._ends(frame, world)
            before, after = np.maximum(frame - 1, first), np.minimum(frame + 1, last)
            seconds = self.motion.time[after] - self.motion.time[before]
            self._check_times(block, frame, before, after, seconds)
        frames = range(int(before.min(initial=frame[0])), int(after.max(initial=frame[-1])) + 1)
        with reading("motion"):
            poses = self.motion.read(frames)
        return FramePoses(frames.start, poses, before, after, seconds)

    def _ends(self, frame: np.ndarray, world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last frame of each cell's episode; of a cell outside every episode, the cell's own."""
        if self.episodes is None:
            return np.zeros_like(frame), np.full_like(frame, len(self.motion.time) - 1)
        if not len(self.episodes):
            return frame, frame
        row = self.episodes.row(world, frame)
        inside = row >= 0
        first = np.where(inside, self.episodes.first_frame[row], frame)
        return first, np.where(inside, self.episodes.end_frame[row] - 1, frame)

    def _check_times(
        self, block: ContactBlock, frame: np.ndarray, before: np.ndarray, after: np.ndarray, seconds: np.ndarray
    ) -> None:
        still = (block.cell_counts > 0) & ~(seconds > 0.0)
        if still.any():
            cell = int(np.argmax(still))
            what = f"frames {before[cell]} to {after[cell]} take no time: there is no velocity in frame {frame[cell]}"
            if before[cell] == after[cell]:
                what = f"frame {frame[cell]} is an episode of one frame: there is no velocity"
            fix = (
                f"leave {' and '.join(sorted(self._velocities))} out of --columns, or select other frames with --frames"
            )
            raise InputError(what, "time", fix)
