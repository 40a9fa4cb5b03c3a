"""The classes of contacts: arrays in memory, or a contact set file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.html_tables import html_table
from collidecli.python.contact_queries import ContactQueries
from collidecli.scene.arguments import python_methods
from collidecli.scene.contact_blocks import ContactBlock, GroupRows, groups_of_cells
from collidecli.scene.contact_columns import RIGID_COLUMNS, group_words
from collidecli.scene.motion import SECOND
from collidecli.scene.options import changed_options
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.storage.contact_sets import reader
from collidecli.storage.contact_sets.writer import ContactWriter
from collidecli.temporary_folders import TemporaryFolder
from collidecli.wording import count, numbered


@python_methods
@dataclass(frozen=True, repr=False)
class Contacts(ContactQueries):
    """Every contact of a model in motion as NumPy arrays, ordered by frame, world, shape0, shape1
    and features.

    cell_start: int64[frame_count * world_count + 1]; the contacts of frame f and world w are the
        rows from cell_start[c] to cell_start[c + 1], where c = f * world_count + w.
    shape0, shape1: int32[n], rows of the model's shapes, shape0 < shape1. distance: float32[n],
    surface distance less both margins; negative is penetration [m]. normal: float32[n, 3], unit,
    from shape0 to shape1, in world. point0, point1: [n, 3], witness points on the two surfaces
    without margins, in world and in the motion's float
        type [m].
    offset0, offset1: float32[n, 3], the witness points in the frames of the shapes' bodies [m].
    feature0, feature1: int32[n], vertex, edge or face of each shape; -1 without one. kind:
    uint8[n], 0 point, 1 edge, 2 face. columns: all of these by name, and the requested optional
    ones, [n] or [n, width]. shape_path: paths of the model's shapes; shape_path[shape0[n]] is the
    first shape of contact n. particle_objects: the objects of the model's particles,
    `ParticleObjects`. groups: tables beside these contacts, such as "hydro_patches", as `GroupRows`
    (docs/reference/file-formats.md). time: float64[frame_count] [s]; numbers of the frames for an
    array of poses without `time` and `fps`.

    `len` is the number of contacts. `cell` is one frame of one world, as `ContactSet.cell`.
    """

    frame_count: int
    world_count: int
    cell_start: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    offset0: np.ndarray
    offset1: np.ndarray
    feature0: np.ndarray
    feature1: np.ndarray
    kind: np.ndarray
    columns: Mapping[str, np.ndarray] = field(default_factory=dict)
    shape_path: tuple[str, ...] = ()
    particle_objects: ParticleObjects = field(default_factory=ParticleObjects)
    groups: Mapping[str, GroupRows] = field(default_factory=dict)
    time: np.ndarray = field(default_factory=lambda: np.zeros(0))
    _writer: Callable[[str], ContactWriter] | None = None

    @property
    def rigid_contact_count(self) -> int:
        """Number of contacts in all frames and worlds."""
        return len(self.shape0)

    def __len__(self) -> int:
        return len(self.shape0)

    @property
    def contact_count(self) -> int:
        """Number of contacts, as `rigid_contact_count`."""
        return len(self.shape0)

    @property
    def depth(self) -> np.ndarray:
        """float32[n]: penetration depth [m], max(0, -distance)."""
        return np.maximum(-self.distance, np.float32(0.0))

    @property
    def _set(self) -> ContactSet:
        return self.contact_set

    @cached_property
    def contact_set(self) -> ContactSet:
        """These contacts as `ContactSet`, a file in a folder of temporary files that is removed
        with them.

        Raises InputError for the contacts of one cell.
        """
        if self._writer is None:
            raise InputError(
                "these are contacts of one cell",
                "contacts",
                "use those of all cells, and select in them",
            )
        folder = TemporaryFolder("contacts")
        path = os.path.join(folder.name, "contacts.h5")
        with self._writer(path) as writer:
            writer.append(
                ContactBlock(0, np.diff(self.cell_start), dict(self.columns), dict(self.groups))
            )
            writer.end_contacts()
            writer.finish()
        contacts = ContactSet.open(path)
        vars(contacts)["folder"] = folder  # removed with the set
        return contacts

    def _repr_html_(self) -> str:
        counts = {group_words(name): rows.row_count for name, rows in self.groups.items()}
        sizes = {"contacts": len(self), "frames": self.frame_count, "worlds": self.world_count}
        return html_table(sizes | {"shapes": len(self.shape_path)} | counts)

    def __repr__(self) -> str:
        size = (
            f"contacts={self.rigid_contact_count} frames={self.frame_count}"
            f" worlds={self.world_count}"
        )
        required = {column.name for column in RIGID_COLUMNS}
        optional = [name for name in self.columns if name not in required]
        size += _group_counts(self.groups)
        return f"<Contacts {size}{' columns=' + ','.join(optional) if optional else ''}>"

    def cell(self, frame: int, world: int = 0) -> Contacts:
        """Contacts of one frame of one world, as views. Raises InputError for an unknown frame or
        world."""
        if not (0 <= frame < self.frame_count and 0 <= world < self.world_count):
            fix = (
                f"there are {numbered(self.frame_count, 'frame')} and"
                f" {numbered(self.world_count, 'world')}"
            )
            raise InputError(f"frame {frame}, world {world} does not exist", "contacts", fix)
        cell = frame * self.world_count + world
        first, last = (int(row) for row in self.cell_start[cell : cell + 2])
        block = ContactBlock(
            cell,
            np.array([last - first], np.int64),
            {name: values[first:last] for name, values in self.columns.items()},
            groups_of_cells(self.groups, np.array([cell])),
        )
        time = self.time[frame : frame + 1]
        return contacts_of_cell(block, self.shape_path, self.particle_objects, time)


def _group_counts(groups: Mapping[str, Any]) -> str:
    """The numbers of rows of further tables, as ` soft_contacts=314`; "" without tables."""
    return "".join(f" {name}={table.row_count}" for name, table in groups.items())


def contacts_of_cell(
    block: ContactBlock, paths: Sequence[str], objects: ParticleObjects, time: np.ndarray
) -> Contacts:
    """The contacts of a block of one cell. paths: of the shapes. time: float64[1], of its frame."""
    columns = dict(block.columns)
    return Contacts(
        1,
        1,
        np.array([0, block.contact_count], np.int64),
        *(columns[column.name] for column in RIGID_COLUMNS),
        columns=columns,
        shape_path=tuple(paths),
        particle_objects=objects,
        groups=block.groups,
        time=time,
    )


@python_methods
class ContactSet(reader.ContactSet, ContactQueries):
    """A contact set file, open for reading; a context manager.

    >>> import collidecli
    >>> with collidecli.ContactSet.open("out.h5") as contacts:  # doctest: +SKIP
    ...     contacts.cell(frame=3).distance

    Tables (shapes, time, ...) are in memory; contacts are read on demand: one `cell`, `blocks` of
    whole cells, or a `column`. Iteration yields the blocks.
    """

    def __repr__(self) -> str:
        size = f"contacts={self.contact_count} frames={self.frame_count} worlds={self.world_count}"
        return f"<ContactSet {self.path} {size}{_group_counts(self.groups)}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows: file, scene, counts and options, every text escaped."""
        has_span = self.frame_count > 0 and self.time_unit == SECOND
        span = f", {self.time[0]:.6g} to {self.time[-1]:.6g} s" if has_span else ""
        changed = ", ".join(
            f"{name} {value}" for name, value in changed_options(self.config).items()
        )
        rows: dict[str, object] = {
            "contact set": self.path,
            "scene": self.scene,
            "contacts": self.contact_count,
            "frames": f"{count(self.frame_count)}{span}",
            "worlds": self.world_count,
            "shapes": len(self.shapes),
            "bodies": len(self.body_path),
            "options": changed or "at their defaults",
        }
        rows |= {group_words(name): table.row_count for name, table in self.groups.items()}
        if self.episodes is not None:
            rows["demonstrations"] = len(self.episodes)
        if optional := [column.name for column in self.columns if column not in RIGID_COLUMNS]:
            rows["optional columns"] = ", ".join(optional)
        return html_table(rows)

    @property
    def _set(self) -> ContactSet:
        return self

    def cell(self, frame: int, world: int = 0) -> Contacts:
        """The contacts of one frame of one world in memory, with the names of `Contacts.cell`.

        Raises InputError for a frame or world out of range.
        """
        block = super().cell(frame, world)
        return contacts_of_cell(
            block, self.shapes.path, self.particle_objects, self.time[frame : frame + 1]
        )

    def __iter__(self) -> Iterator[ContactBlock]:
        """All contacts in order, in blocks of whole cells."""
        return self.blocks()
