"""The Python API of questions about a motion: `label`, as the command `collide label`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from collidecli.analysis.path_patterns import listed
from collidecli.commands.contact_labels import LabelOptions
from collidecli.commands.contact_set import ContactSet
from collidecli.commands.label import Labels, labels_in_memory
from collidecli.commands.motions import frames_text
from collidecli.storage.process_activity import reading


def label(
    contacts: ContactSet | str | os.PathLike[str],
    *,
    sensors: str | Sequence[str] = (),
    partners: str | Sequence[str] = (),
    by: str = "bodies",
    enter: float = 0.0,
    leave: float | None = None,
    min_frames: int = 1,
    slip: bool = False,
    worlds: Sequence[int] = (),
    frames: str | int | slice = "",
) -> Labels:
    """Which bodies touch which in each frame of each world of a contact set, as arrays.

    Args:
        contacts: a contact set, or its path.
        sensors, partners: patterns, a sequence or a text with commas; () is every moving item, and every item.
        by: "bodies", with static shapes and particle objects, or "shapes".
        enter: a label begins at a distance of at most this [m]. leave: it lasts while the distance is at most this [m];
            None is `enter`. min_frames: shorter pauses are filled, then shorter labels left out.
        slip: read the contacts' column of that name, see `collide run --columns slip`.
        worlds: numbers; () is all. frames: "A:B:S", a slice or a number.
    Returns:
        `Labels`.
    Raises:
        InputError: as `collide label` does.
    """
    options = LabelOptions(
        listed(sensors), listed(partners), by, enter, leave, min_frames, slip, worlds, frames_text(frames)
    )
    if isinstance(contacts, ContactSet):
        return labels_in_memory(contacts, options)
    with reading("contact set", os.fspath(contacts)), ContactSet.open(contacts) as opened:
        return labels_in_memory(opened, options)
