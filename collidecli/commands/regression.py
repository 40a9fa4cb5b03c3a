"""Comparison of a new run with a baseline contact set, for the pytest plugin."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidecli.commands.diff import DiffRequest, DiffResult, diff, limits
from collidecli.commands.motions import frames_text
from collidecli.errors import InputError
from collidecli.scene.options import FRAME_MATCHES, OPTION_GROUPS

if TYPE_CHECKING:
    from collidecli.commands.run import RunRequest

MARKER = "contacts_tolerance"
OF_A_RUN = ("worlds", "frames", "columns")
TOLERANCES = {
    "atol": "--atol",
    "rtol": "--rtol",
    "ignore_shallow": "--ignore-shallow",
    "max_missing": "--max-missing",
    "max_extra": "--max-extra",
    "allow_fraction": "--allow-fraction",
    "fields": "--fields",
    "include": "--include",
    "exclude": "--exclude",
    "renames": "--rename",
    "pairs_only": "--pairs-only",
    "match_frames": "--match-frames",
}
"""Fields of DiffRequest that a test may set, and the corresponding option of `collide diff`."""
_LISTS = ("atol", "rtol", "fields", "include", "exclude", "renames")


@dataclass(frozen=True)
class BaselineComparison:
    """Differences from a baseline. allowed: the fields of DiffRequest that were set."""

    result: DiffResult
    allowed: dict[str, Any]


def run_request(
    scene: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    trajectory: str | os.PathLike[str] | None,
    folder: Path,
    output: Path,
    options: Mapping[str, Any],
) -> RunRequest:
    """The request of the corresponding `collide run`. folder: base of relative paths.

    options: by name of a field of RunRequest or of one of its option groups. Raises InputError for another name.
    """
    from collidecli.commands.run import RunRequest

    held: dict[str, dict[str, Any]] = {name: {} for name in OPTION_GROUPS}
    own: dict[str, Any] = {}
    of_group = {field.name: group for group, kind in OPTION_GROUPS.items() for field in fields(kind)}
    del of_group["motion_layer"]
    for name, value in options.items():
        if name in OF_A_RUN:
            own[name] = frames_text(value) if name == "frames" else value
        elif name in of_group:
            held[of_group[name]][name] = tuple(value) if isinstance(value, list) else value
        else:
            raise InputError(f"'{name}' is no option of a run", "options", _advice(name, [*OF_A_RUN, *of_group]))
    if held["scene_options"].get("disabled_pairs"):
        held["scene_options"]["disabled_pairs"] = str(folder / held["scene_options"]["disabled_pairs"])
    scenes = [scene] if isinstance(scene, (str, os.PathLike)) else scene
    groups: dict[str, Any] = {name: OPTION_GROUPS[name](**values) for name, values in held.items()}
    for name in ("contact", "engine"):
        groups[name] = groups[name].checked()
    return RunRequest(
        scenes=[str(folder / path) for path in scenes],
        trajectory=None if trajectory is None else str(folder / trajectory),
        output=str(output),
        force=True,
        **groups,
        **own,
    )


def tolerance_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of DiffRequest from the tolerances of a test.

    given: by the names of TOLERANCES; `rename` is a synonym of `renames`. atol and rtol: a number, a text such as
    "normal=0.1deg", a list of those, or a mapping of fields to values, with "" for every other field. Raises
    InputError for another name.
    """
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = "renames" if key == "rename" else key
        if name not in TOLERANCES:
            known = ["rename" if known == "renames" else known for known in TOLERANCES]
            raise InputError(f"'{key}' is no tolerance", MARKER, _advice(key, known))
        found[name] = _texts(value) if name in _LISTS else _checked(key, value)
    for name in ("atol", "rtol"):
        limits(found.get(name, ()), TOLERANCES[name])
    return found


def _checked(name: str, value: Any) -> Any:
    """A value that is not a list. Raises InputError for a value that the option does not accept."""
    if name == "pairs_only":
        good, wanted = isinstance(value, bool), "True or False"
    elif name == "match_frames":
        good, wanted = value in FRAME_MATCHES, f"one of {', '.join(FRAME_MATCHES)}"
    else:
        number = isinstance(value, int) if name.startswith("max_") else isinstance(value, (int, float))
        most = 1.0 if name == "allow_fraction" else math.inf
        good = number and not isinstance(value, bool) and 0 <= value <= most and value < math.inf
        wanted = (
            "a whole number" if name.startswith("max_") else "a fraction from 0 to 1" if most == 1.0 else "a length"
        )
    if not good:
        raise InputError(f"{name} is {value!r}", MARKER, f"give {wanted}")
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"{name}={one}" if name else str(one) for name, one in value.items()]
    if isinstance(value, (str, int, float)):
        return [str(value)]
    return [str(one) for one in value]


def _advice(name: str, known: Sequence[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"


def compare_with_baseline(baseline: Path, obtained: Path, allowed: Mapping[str, Any]) -> BaselineComparison:
    """Compares the obtained set with the baseline, which is A. Raises InputError as `diff` does."""
    return BaselineComparison(diff(DiffRequest(str(baseline), str(obtained), **allowed)), dict(allowed))


def diff_command(baseline: Path, obtained: Path, allowed: Mapping[str, Any]) -> str:
    """The command line of `collide diff` with this comparison."""
    words = ["collide", "diff", str(baseline), str(obtained)]
    for name, value in allowed.items():
        option = TOLERANCES[name]
        if value is True:
            words.append(option)
        elif value is not False:
            words += [word for one in (value if name in _LISTS else [value]) for word in (option, str(one))]
    return shlex.join(words)
