"""Contacts in the memory of the device that computed them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import warp as wp

from collidecli.engine.column_destination import KeptColumns
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.device_stream import uploading
from collidecli.errors import InputError
from collidecli.motions.collision import Collision, prepare_collision
from collidecli.motions.columns import run_columns
from collidecli.motions.timing import TimingReport
from collidecli.python.progress import reported_blocks
from collidecli.results.result import Progress
from collidecli.scene.arguments import python_methods
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import PAIR_TABLES, RIGID_COLUMNS, group_words
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.shape_switches import switches_of
from collidecli.wording import did_you_mean, numbered

if TYPE_CHECKING:
    from collidecli.scene.model import Model
    from collidecli.scene.options import ContactOptions, EngineOptions

OnHost = TypeVar("OnHost")
"""Type of contacts in the host's memory, whose module imports this one."""
OPTION = "keep_on_device"
TO_HOST = "leave keep_on_device out: the contacts then come to the host"


@python_methods
@dataclass(frozen=True, repr=False)
class DeviceContacts(Generic[OnHost]):
    """Contacts of a model in motion as arrays in a device's memory, bit-identical to those of
    `Contacts` and in their order.

    cell_start: int64[frame_count * world_count + 1]; the contacts of frame f and world w are the
        rows from cell_start[c] to cell_start[c + 1], where c = f * world_count + w.
    columns: name to array, [n] or [n] of vectors: those of `Contacts`, or the ones that were named,
        and "friction_scale" where moments are matched. Each is an attribute too. With `touch_only`
        the rows are pairs of shapes that touch, shape0 and shape1; with `candidates_only` those
        that the broad phase finds.
    device: its name, such as "cuda:0". shape_path: paths of the model's shapes. time:
        float64[frame_count] on the host, see `Contacts`.

    Arrays are `warp.array`: other libraries take them without a copy by
    `__cuda_array_interface__` or DLPack, of a CPU by `__array_interface__`. They are complete when
    `collide` returns, and are not used again by it. `len` is the number of rows.
    """

    frame_count: int
    world_count: int
    cell_start: wp.array
    columns: Mapping[str, wp.array]
    device: str
    shape_path: tuple[str, ...] = ()
    time: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _starts: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    _on_host: Callable[[Mapping[str, np.ndarray]], OnHost] | None = None

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __getattr__(self, name: str) -> wp.array:
        columns = vars(self).get("columns", {})
        if name in columns:
            return columns[name]
        what = f"'DeviceContacts' object has no attribute '{name}'"
        if name in {column.name for column in RIGID_COLUMNS}:
            what += f": {OPTION} named {', '.join(columns)}"
        raise AttributeError(what, name=name, obj=self)

    def __repr__(self) -> str:
        size = f"rows={len(self)} frames={self.frame_count} worlds={self.world_count}"
        return f"<DeviceContacts {size} device={self.device} columns={','.join(self.columns)}>"

    def cell(self, frame: int, world: int = 0) -> dict[str, wp.array]:
        """The columns of one frame of one world, as views. Raises InputError for an unknown frame
        or world."""
        if not (0 <= frame < self.frame_count and 0 <= world < self.world_count):
            fix = (
                f"there are {numbered(self.frame_count, 'frame')} and"
                f" {numbered(self.world_count, 'world')}"
            )
            raise InputError(f"frame {frame}, world {world} does not exist", "contacts", fix)
        cell = frame * self.world_count + world
        first, last = (int(row) for row in self._starts[cell : cell + 2])
        views: Any = {name: values[first:last] for name, values in self.columns.items()}
        return views

    def numpy(self, *names: str) -> dict[str, np.ndarray]:
        """Columns in the host's memory, NumPy arrays [n] or [n, width] of the types of `Contacts`;
        all without names.

        Raises InputError for a column that is not there."""
        for name in names:
            if name not in self.columns:
                raise InputError(
                    f"there is no column '{name}'", "contacts", did_you_mean(name, self.columns)
                )
        return {name: self.columns[name].numpy().copy() for name in names or self.columns}

    def to_host(self) -> OnHost:
        """All contacts in the host's memory: `Contacts`, as `collide` returns them without
        `keep_on_device`.

        Raises InputError where columns were named, as the others are not there."""
        missing = [column.name for column in RIGID_COLUMNS if column.name not in self.columns]
        if self._on_host is None or (missing and tuple(self.columns) != PAIR):
            raise InputError(
                f"there are no columns {', '.join(missing)}", "contacts", f"give {OPTION}=True"
            )
        return self._on_host(self.numpy())


def contacts_on_device(
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    engine: EngineOptions,
    columns: Sequence[str],
    wanted: bool | Sequence[str],
    on_host: Callable[[Model, Collision, np.ndarray, Mapping[str, np.ndarray]], OnHost],
    progress: Progress = None,
) -> DeviceContacts[OnHost]:
    """See `collide`. wanted: True, or names of columns. on_host: the contacts of a collision of a
    model from the rows of each cell, int64[cells], and the values of their columns.

    Raises InputError for options and motions whose contacts the host changes or completes."""
    device = find_device(engine.device)
    names = _kept_names(wanted, contact)
    _refuse_work_of_host(contact, motion, model, columns)
    materials = run_columns(contact, model, motion, columns, device).columns
    if materials:
        listed = ", ".join(column.name for column in materials)
        raise InputError(f"the host computes the columns {listed}", OPTION, TO_HOST)
    timing = TimingReport()
    kept = KeptColumns(device)
    collision = prepare_collision(
        model, motion, contact, engine, device, timing, reads=names, kept=kept
    )
    groups = [group.name for group in collision.pipeline.groups if group not in PAIRS_ALONE]
    if groups:
        listed = " and ".join(map(group_words, groups))
        raise InputError(f"the host completes the rows of {listed}", OPTION, TO_HOST)
    for note in collision.pipeline.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=4)
    with closing(collision.blocks(timing)) as blocks:
        shown = reported_blocks(blocks, len(motion.time), model.world_count, progress)
        counts = np.concatenate([_row_counts(block) for block in shown])
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    kind: Any = wp.int64
    with uploading(device):
        cell_start = wp.array(starts, dtype=kind, device=device)
    joined = kept.joined()
    return DeviceContacts(
        len(motion.time),
        model.world_count,
        cell_start,
        joined,
        device.alias,
        tuple(model.shapes.path),
        motion.time,
        starts,
        partial(on_host, model, collision, counts),
    )


def _row_counts(block: ContactBlock) -> np.ndarray:
    """int64[cells]: contacts of each cell, or pairs where these are found alone."""
    pairs = [block.groups[table.name] for table in PAIRS_ALONE if table.name in block.groups]
    return pairs[0].cell_counts if pairs else block.cell_counts


def _names_of(columns: Sequence[Any]) -> tuple[str, ...]:
    return tuple(column.name for column in columns)


PAIRS_ALONE = tuple(PAIR_TABLES.values())
PAIR = _names_of(PAIRS_ALONE[0].columns)
"""Columns of a table of pairs in place of contacts."""


def _kept_names(names: bool | Sequence[str], contact: ContactOptions) -> tuple[str, ...] | None:
    """The named columns, None for all. Raises InputError for a name that is none."""
    if isinstance(names, bool):
        return None
    if contact.finds_pairs_alone:
        what = f"{contact.finds_pairs_alone} has the columns shape0 and shape1"
        raise InputError(what, OPTION, "give True")
    known = _names_of((*RIGID_COLUMNS, *contact.columns))
    if not names:
        raise InputError("it names no column", OPTION, f"give True, or some of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise InputError(f"there is no column {name!r}", OPTION, did_you_mean(name, known))
    return tuple(names)


def _refuse_work_of_host(
    contact: ContactOptions, motion: Motion, model: Model, optional: Sequence[str]
) -> None:
    """Raises InputError for what the host does with the rows of contacts."""
    refused = {
        f"the columns {', '.join(optional)}": bool(optional),
        "contact_ids and sticky_contacts": contact.tracks_contacts,
        'reduce_by="bodies"': contact.reduces_bodies,
        "the episodes of the motion": episodes_in(motion, model.world_count) is not None,
        "colliders that are enabled over time": switches_of(motion) is not None,
    }
    for what, is_given in refused.items():
        if is_given:
            raise InputError(f"{what} need the contacts in the host's memory", OPTION, TO_HOST)
