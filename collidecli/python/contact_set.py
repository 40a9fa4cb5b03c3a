"""The Python API of contact set files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from collidecli.html_tables import html_table
from collidecli.python.contact_queries import ContactQueries
from collidecli.scene.contact_columns import (
    RIGID_COLUMNS,
    ContactBlock,
    group_words,
)
from collidecli.scene.motion import SECOND
from collidecli.scene.options import changed_options
from collidecli.storage.contact_sets import reader
from collidecli.wording import count

if TYPE_CHECKING:
    from collidecli.python.contacts import Contacts


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
        return f"<ContactSet {self.path} {size}>"

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
        from collidecli.python.contacts import contacts_of_cell  # which imports this module late

        block = super().cell(frame, world)
        return contacts_of_cell(
            block, self.shapes.path, self.particle_objects, self.time[frame : frame + 1]
        )

    def __iter__(self) -> Iterator[ContactBlock]:
        """All contacts in order, in blocks of whole cells."""
        return self.blocks()
