"""Demonstrations in one file: which are taken, and how many frames they share."""

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


def chosen_demos(held: Sequence[str], options: RecordingOptions, where: str) -> list[str]:
    """The demonstrations that are asked for, in the order asked; all of `held` in numeric order where none are.

    Raises InputError: one that is not held, or that is asked for twice, or a file that holds none.
    """
    if not held:
        raise InputError("the recording has no demonstrations", where, "record one at least")
    if not options.demos:
        return in_order(held)
    for name, count in Counter(options.demos).items():
        if name not in held:
            close = get_close_matches(name, held, n=_NAMED) or in_order(held)[:_NAMED]
            more = f", of {len(held)}" if len(held) > len(close) else ""
            raise InputError(f"there is no demonstration '{name}'", where, f"--demos takes {', '.join(close)}{more}")
        if count > 1:
            raise InputError(f"demonstration '{name}' is asked for twice", "--demos", "name each once")
    return list(options.demos)


def shared_length(lengths: Mapping[str, int], options: RecordingOptions, where: str) -> int:
    """Frames of the motion that demonstrations of these lengths make together, a world each.

    Raises InputError: one without a frame, or lengths that differ where no option says what to do about it.
    """
    empty = [name for name, length in lengths.items() if length == 0]
    if empty:
        raise InputError("the demonstration has no frames", f"{where}/{empty[0]}", "leave it out with --demos")
    least, most = min(lengths.values()), max(lengths.values())
    if least == most or options.uneven_demos == "hold":
        return most
    if options.uneven_demos == "cut":
        return least
    shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:_NAMED])
    more = f" and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
    raise InputError(
        f"the demonstrations have {least} to {most} frames ({shown}{more}), and worlds need equally many",
        where,
        "choose some with --demos; or --uneven-demos cut ends all with the shortest, --uneven-demos hold keeps each "
        "at its last pose until the longest ends",
    )
