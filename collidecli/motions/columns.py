"""Columns of the contacts of a motion: those that a reader needs, and the values of the optional
ones, of two surfaces, of triangles with materials, and of the motion of two bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import warp as wp

from collidecli.analysis.contact_materials import material_columns
from collidecli.analysis.contact_motion import FramePoses, motion_columns
from collidecli.analysis.soft_motion import soft_motion_columns
from collidecli.analysis.summary import TOUCH_COLUMNS
from collidecli.errors import InputError
from collidecli.motions.exact_gradients import ExactGradients
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import (
    MOTION_COLUMNS,
    SOFT_CONTACTS,
    SOFT_MOTION_COLUMNS,
    Column,
    ContactGroup,
)
from collidecli.scene.mixing import OptionalColumns
from collidecli.scene.model import Model
from collidecli.scene.motion import (
    Motion,
    check_seconds,
    episodes_in,
    recorded_particles,
    time_unit,
)
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_switches import switches_of
from collidecli.scene.triangle_materials import TriangleMaterialTable
from collidecli.storage.process_activity import reading

VELOCITIES = frozenset(("normal_velocity", "slip"))
"""Columns of rigid contacts that require the frames before and after."""
EXACT = "grad_exact"
GRADIENT = "distance_grad1"


def check_no_columns(names: Sequence[str], contact: ContactOptions) -> None:
    """Raises InputError for columns of a run that finds no contacts."""
    if names and contact.finds_pairs_alone:
        raise InputError(
            f"{contact.finds_pairs_alone} finds pairs alone, which have no columns",
            "--columns",
            "leave one of the two out",
        )


class RunColumns:
    """The optional columns `columns`, in the order of the file, of the contacts of a model in
    motion: those of `names`, and materials where triangles of the model have some.

    soft: names of the columns of /soft_contacts among them, which `groups` adds to that table.
    Raises InputError for an unknown or undefined column, for one of particles where the model has
    none, and for a velocity in a motion of one frame or without times.
    """

    def __init__(
        self, model: Model, motion: Motion, names: Sequence[str], device: wp.Device
    ) -> None:
        self._model = model
        self._motion = motion
        self._surfaces = OptionalColumns.of(model, names)
        self.columns: tuple[Column, ...] = self._surfaces.columns
        self._exact = ExactGradients(model, device) if EXACT in names else None
        # Of the motion in the model's worlds; a velocity never spans two of them.
        self._episodes = episodes_in(motion, model.world_count)
        self._of_motion = frozenset(
            column.name for column in self.columns if column in MOTION_COLUMNS
        )
        self.soft = frozenset(names) & {column.name for column in SOFT_MOTION_COLUMNS}
        if self.soft and not len(model.particles):
            raise InputError(
                f"there are no particles, and so no {' and '.join(sorted(self.soft))} of their"
                " contacts",
                "--columns",
                "leave it out; slip and normal_velocity are of contacts of shapes",
            )
        self._velocities = (self._of_motion & VELOCITIES) | self.soft
        if self._velocities:
            check_seconds(time_unit(motion), f"--columns {','.join(sorted(self._velocities))}")
        if self._velocities and len(motion.time) < 2:
            what = (
                f"{' and '.join(sorted(self._velocities))} of a motion of one frame: there is no"
                " velocity"
            )
            raise InputError(
                what, "--columns", "give a recording of two frames or more, or leave the column out"
            )

    def groups(self, groups: Sequence[ContactGroup]) -> tuple[ContactGroup, ...]:
        """Tables of a run, with these columns of particles."""
        return tuple(group.having(self.soft) for group in groups)

    def added(self, block: ContactBlock) -> ContactBlock:
        """The block with these columns added; the block itself if there are none.

        Reads the motion's frames of the block again. Raises InputError where two frames have no
        time between them.
        """
        has_triangles = len(self._model.triangle_materials) > 0
        needs_poses = self._of_motion or self.soft or has_triangles
        poses = self._poses(block) if needs_poses else None
        if has_triangles:
            assert poses is not None
            materials = material_columns(self._model, block, poses)
            block = replace(block, columns={**block.columns, **materials})
        block = self._surfaces.added(block)
        if self.soft:
            assert poses is not None
            block = self._with_soft_columns(block, poses)
        if not self._of_motion:
            return block
        assert poses is not None
        needed = self._of_motion | ({GRADIENT} if self._exact else set())
        values = motion_columns(self._model, block, poses, needed)
        if self._exact is not None:
            values[EXACT] = self._exact.column(block, poses, values[GRADIENT])
        ordered = {
            column.name: values[column.name] for column in self.columns if column.name in values
        }
        return replace(block, columns={**block.columns, **ordered})

    def _with_soft_columns(self, block: ContactBlock, poses: FramePoses) -> ContactBlock:
        name = SOFT_CONTACTS.name
        rows = block.groups[name]
        frames = range(poses.first_frame, poses.first_frame + len(poses.body_pose))
        with reading("motion"):
            recorded = recorded_particles(self._motion, frames)
        resting = self._model.particles.position[None, None]
        positions = self._model.with_attached_particles(
            poses.body_pose, resting if recorded is None else recorded
        )
        positions = np.broadcast_to(positions, (len(frames), *positions.shape[1:]))
        values = soft_motion_columns(
            self._model, block.first_cell, rows, poses, positions, self.soft
        )
        rows = replace(rows, columns={**rows.columns, **values})
        return replace(block, groups={**block.groups, name: rows})

    def _row_counts(self, block: ContactBlock) -> np.ndarray:
        """int64[cells]: rows of the tables with velocities."""
        counts = np.zeros(len(block.cell_counts), np.int64)
        if self._velocities & VELOCITIES:
            counts += block.cell_counts
        if self.soft:
            counts += block.groups[SOFT_CONTACTS.name].cell_counts
        return counts

    def _poses(self, block: ContactBlock) -> FramePoses:
        cell = block.first_cell + np.arange(len(block.cell_counts))
        frame, world = np.divmod(cell, self._model.world_count)
        before = after = frame
        seconds = np.full(len(cell), np.nan)
        if self._velocities:
            first, last = self._ends(frame, world)
            before = np.maximum(frame - 1, first)
            after = np.minimum(frame + 1, last)
            seconds = self._motion.time[after] - self._motion.time[before]
            still = (self._row_counts(block) > 0) & ~(seconds > 0.0)
            if still.any():
                cell = int(np.argmax(still))
                what = (
                    f"frames {before[cell]} to {after[cell]} take no time: there is no velocity in"
                    f" frame {frame[cell]}"
                )
                if before[cell] == after[cell]:
                    what = f"frame {frame[cell]} is an episode of one frame: there is no velocity"
                fix = f"leave {' and '.join(sorted(self._velocities))} out of --columns"
                raise InputError(what, "time", f"{fix}, or select other frames with --frames")
        frames = range(int(before.min(initial=frame[0])), int(after.max(initial=frame[-1])) + 1)
        with reading("motion"):
            poses = self._motion.read(frames)
        return FramePoses(frames.start, poses, before, after, seconds)

    def _ends(self, frame: np.ndarray, world: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and last frame of each cell's episode; of a cell outside every episode, the cell's
        own."""
        if self._episodes is None:
            return np.zeros_like(frame), np.full_like(frame, len(self._motion.time) - 1)
        if not len(self._episodes):
            return frame, frame
        row = self._episodes.row(world, frame)
        inside = row >= 0
        first = np.where(inside, self._episodes.first_frame[row], frame)
        return first, np.where(inside, self._episodes.end_frame[row] - 1, frame)


def copied_columns(
    reads: Sequence[str] | None, contact: ContactOptions, motion: Motion, world_count: int
) -> frozenset[str] | None:
    """Names of the columns of rigid contacts that a device copies to the host for a reader of the
    columns `reads`; None for all.

    Besides those that are read, the ones from which the host itself selects or moves rows: with
    options that follow or reduce contacts all, and the pairs and distances where episodes,
    colliders that are enabled over time or reduced surfaces change the rows.
    """
    if reads is None or contact.tracks_contacts or contact.reduces_bodies:
        return None
    has_selection = episodes_in(motion, world_count) is not None or switches_of(motion) is not None
    selected = TOUCH_COLUMNS if has_selection or contact.hydro_reduce else ()
    return frozenset((*reads, *selected))


def run_columns(
    contact: ContactOptions, model: Model, motion: Motion, names: Sequence[str], device: wp.Device
) -> RunColumns:
    """The columns `names` of a run of these options; of one that finds no contacts, none."""
    model = contact.apply(model)
    if contact.finds_pairs_alone:
        model = replace(model, triangle_materials=TriangleMaterialTable())
    return RunColumns(model, motion, names, device)
