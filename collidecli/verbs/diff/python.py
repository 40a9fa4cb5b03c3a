"""The Python function `diff`."""

from __future__ import annotations

import os
from collections.abc import Sequence

from collidecli.errors import InputError
from collidecli.python.contact_set import Contacts, ContactSet
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.results.result import PathLike
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.patterns import listed
from collidecli.verbs.diff.diff import DiffResult
from collidecli.verbs.diff.diff import diff as compare
from collidecli.verbs.diff.request import DiffRequest


@python_call
def diff(
    a: ContactSet | Contacts | PathLike,
    b: ContactSet | Contacts | PathLike,
    *,
    atol: str | float | Sequence[str | float] = (),
    rtol: str | float | Sequence[str | float] = (),
    fields: str | Sequence[str] = (),
    renames: str | Sequence[str] = (),
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    ignore_shallow: float | str | None = None,
    max_missing: int = 0,
    max_extra: int = 0,
    allow_fraction: float = 0.0,
    pairs_only: bool = False,
    match_frames: str = "",
    first: int = 20,
    scene_a: PathLike = "",
    scene_b: PathLike = "",
    trajectory_a: PathLike = "",
    trajectory_b: PathLike = "",
    progress: ShowProgress = False,
) -> DiffResult:
    """Two contact sets compared: what is missing, extra or changed in `b`.

    Args:
        a, b: contact sets, their paths, or contacts in memory.
        atol, rtol: tolerances, numbers or texts "FIELD=X", as of `collide diff`. fields: columns to
            compare; () is all. renames: texts "OLD=NEW", prefixes of paths.
        include, exclude: patterns, a sequence or a text with commas.
        ignore_shallow: missing and extra contacts within this distance of the gap are ignored, in
            metres or as a text such as "1mm".
        max_missing, max_extra, allow_fraction: what is allowed. pairs_only: compare only which
            pairs touch. match_frames: "step", "time" or "index"; "" chooses.
        scene_a, scene_b: file of the scene of each set, or a folder with it, to find what changed;
            "" searches beside the set. trajectory_a, trajectory_b: of its recording.
        first: number of differences that are listed. progress: show a bar, or a function of the
            blocks done and of all.
    Returns:
        `equal`, counts, and `to_pandas()`, a row for each compared field.
    Raises:
        InputError: as `collide diff` does.
    """
    shallow = -1.0 if ignore_shallow is None else checked_metres(ignore_shallow, "ignore_shallow")
    if not 0.0 <= allow_fraction <= 1.0:
        what = f"allow_fraction is {allow_fraction!r}"
        raise InputError(what, "diff", "give a fraction of the contacts, from 0 to 1")
    request = DiffRequest(
        _path(a),
        _path(b),
        _texts(atol),
        _texts(rtol),
        listed(fields),
        listed(renames),
        listed(include),
        listed(exclude),
        shallow,
        max_missing,
        max_extra,
        allow_fraction,
        pairs_only,
        match_frames,
        first,
        scene_a=os.fspath(scene_a),
        scene_b=os.fspath(scene_b),
        trajectory_a=os.fspath(trajectory_a),
        trajectory_b=os.fspath(trajectory_b),
    )
    with shown_progress(progress, "comparing") as advance:
        return compare(request, advance)


def _path(contacts: ContactSet | Contacts | PathLike) -> str:
    """The path of a contact set."""
    contacts = contacts.contact_set if isinstance(contacts, Contacts) else contacts
    return contacts.path if isinstance(contacts, ContactSet) else os.fspath(contacts)


def _texts(tolerances: str | float | Sequence[str | float]) -> tuple[str, ...]:
    """Tolerances as texts of the command line."""
    several = [tolerances] if isinstance(tolerances, (str, int, float)) else tolerances
    return tuple(text if isinstance(text, str) else repr(float(text)) for text in several)
