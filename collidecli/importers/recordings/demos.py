"""Selection of the demonstrations in one file, and their common number of frames."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from collidecli.errors import InputError
from collidecli.scene.run_options import RecordingOptions

_NAMED = 5


def in_order(names: Iterable[str]) -> list[str]:
    """Names with their numbers in numeric order: demo_2 before demo_10."""
    return sorted(names, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)])


def chosen_demos(stored: Sequence[str], options: RecordingOptions, where: str) -> list[str]:
    """The demonstrations of --demos, in its order; without it all stored ones in numeric order.

    Raises InputError: one that is not stored, or that is given twice, or a file that has none.
    """
    if not stored:
        raise InputError("the recording has no demonstrations", where, "record at least one")
    if not options.demos:
        return in_order(stored)
    for name, count in Counter(options.demos).items():
        if name not in stored:
            close = get_close_matches(name, stored, n=_NAMED) or in_order(stored)[:_NAMED]
            more = f", of {len(stored)}" if len(stored) > len(close) else ""
            raise InputError(f"there is no demonstration '{name}'", where, f"--demos takes {', '.join(close)}{more}")
        if count > 1:
            raise InputError(f"demonstration '{name}' is given twice", "--demos", "give each once")
    return list(options.demos)


def shared_length(lengths: Mapping[str, int], options: RecordingOptions, where: str) -> int:
    """Number of frames of a motion in which each demonstration is a world.

    Raises InputError: one without frames, or lengths that differ where --uneven-demos is not given.
    """
    empty = [name for name, length in lengths.items() if length == 0]
    if empty:
        raise InputError("the demonstration has no frames", f"{where}/{empty[0]}", "exclude it with --demos")
    least, most = min(lengths.values()), max(lengths.values())
    if least == most or options.uneven_demos == "hold":
        return most
    if options.uneven_demos == "cut":
        return least
    shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:_NAMED])
    more = f" and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
    raise InputError(
        f"the demonstrations have {least} to {most} frames ({shown}{more}), and worlds need equal numbers",
        where,
        "select some with --demos, or give --uneven-demos cut (all end with the shortest) or --uneven-demos hold (each "
        "keeps its last pose until the longest ends)",
    )
