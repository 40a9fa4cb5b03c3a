"""What `export` is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class ExportRequest:
    """Contact set, format, output and selection. output: "" is the set's name with the format's
    extension.

    scene: the scene of the run, if the format needs it. trajectory: the recording of the run, for a
    USD layer; "" is a file of its hash in the folder of the contact set, of the scene or in the
    current one. frames: a slice A:B:S. worlds: numbers; () is all. include, exclude: patterns of
    paths of shapes and particle objects. group: a table beside /rigid_contacts, whose rows are
    exported; "" is the contacts. normal_length: length of the normals in a USD layer or an MCAP
    file [m]. frame_id: frame of the messages of an MCAP file.
    """

    contacts: str
    to: str
    output: str = ""
    scene: str = ""
    trajectory: str = ""
    frames: str = ""
    worlds: Sequence[int] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    group: str = ""
    normal_length: float = 0.05
    frame_id: str = ""
    force: bool = False
