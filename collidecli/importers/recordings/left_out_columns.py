"""Recorded columns that the user leaves out, as the scene has no such joint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from collidecli.errors import InputError
from collidecli.scene.name_patterns import matcher
from collidecli.scene.options import RecordingOptions
from collidecli.wording import plural, some_names

LEFT_OUT = ("-", "")
"""Names in --joint-names of a column that is left out."""


def kept_columns(
    names: Sequence[str], options: RecordingOptions, where: str
) -> tuple[list[int], tuple[str, ...], tuple[str, ...]]:
    """Numbers and names of the columns that are used, and a warning of the others.

    names: of all recorded columns. where: file and array, for messages. Raises InputError as
    `ignored_columns`.
    """
    by_option = ignored_columns(names, options.ignore_joints, where)
    ignored = {*by_option, *LEFT_OUT}
    kept = [column for column, name in enumerate(names) if name not in ignored]
    left_out = len(names) - len(kept)
    if not left_out:
        return kept, tuple(names), ()
    named = some_names([name for name in names if name in by_option])
    count = plural(left_out, "recorded column")
    return (
        kept,
        tuple(names[column] for column in kept),
        (f"{where}: {count} left out{f': {named}' if named else ''}",),
    )


@contextmanager
def naming_options(where: str) -> Iterator[None]:
    """Adds the options that name columns to what to do about names that the scene lacks."""
    try:
        yield
    except InputError as error:
        fix = (
            f"{error.fix}; --joint-names names the recorded ones, in order, --ignore-joints leaves"
            " some out"
        )
        raise InputError(error.what, where, fix) from error


def ignored_columns(names: Sequence[str], ignored: Sequence[str], where: str) -> tuple[str, ...]:
    """The recorded names that entries of --ignore-joints select; an entry is a name, or a pattern
    as of `matcher`. Raises InputError for an entry that selects none."""
    selected = {
        entry: [entry] if entry in names else [*filter(matcher(entry, "--ignore-joints"), names)]
        for entry in ignored
    }
    unknown = [entry for entry, found in selected.items() if not found]
    if unknown:
        what = f"--ignore-joints: no joint {some_names(unknown)} is recorded"
        raise InputError(what, where, f"recorded are {some_names(names) or 'no names'}")
    return tuple(dict.fromkeys(name for found in selected.values() for name in found))
