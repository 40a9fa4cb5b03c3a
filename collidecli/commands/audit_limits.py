"""Limits of an audit: options, or a file in TOML, and the limit of each pair of shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from collidecli.analysis.path_patterns import matching_paths
from collidecli.errors import InputError
from collidecli.scene.text_format import metres
from collidecli.storage.toml_input import read_toml

GROUND_TYPES = ("plane", "heightfield")
"""Static shapes of these types are the ground, unless shapes are named."""
Pattern = tuple[str, str]


@dataclass(frozen=True)
class AuditLimits:
    """Limits of depth [m], None for none, and the classes of pairs.

    max_depth: of every pair without another one. self: of two bodies of one robot. max_ground: of pairs with the
    ground. max_start: of every pair in the first frame of a world or demonstration. pairs: patterns of two paths and
    their own limit. allow: patterns of two paths without a limit. ground_shapes: patterns of the ground's shapes; () is
    every static plane and heightfield. self_bodies: patterns of the bodies of one robot; () is those that joints
    connect.
    """

    max_depth: float | None = None
    self: float | None = None
    max_ground: float | None = None
    max_start: float | None = None
    pairs: Sequence[tuple[Pattern, float]] = ()
    allow: Sequence[Pattern] = ()
    ground_shapes: Sequence[str] = ()
    self_bodies: Sequence[str] = ()

    def checked(self) -> AuditLimits:
        """These limits. Raises InputError for a limit that is negative or not finite."""
        for name in LENGTHS:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                raise InputError(f"{value} is not a depth", _option(name), "give at least 0, such as 2mm")
        return self

    @property
    def has_any(self) -> bool:
        """Whether a limit is given."""
        return bool(self.pairs) or any(getattr(self, name) is not None for name in LENGTHS)

    def over(self, file: AuditLimits) -> AuditLimits:
        """The limits of a file, replaced by these where these are given; patterns `allow` and `pairs` of both."""
        given = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        given |= {name: value for name in ("ground_shapes", "self_bodies") if (value := getattr(self, name))}
        return replace(file, **given, allow=(*file.allow, *self.allow), pairs=(*file.pairs, *self.pairs))


LENGTHS = ("max_depth", "self", "max_ground", "max_start")
_PATTERNS = ("ground_shapes", "self_bodies")


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def read_limits(path: str) -> AuditLimits:
    """The limits of a TOML file. Raises InputError for a file that cannot be read, an unknown key or a wrong value."""
    table = read_toml(path, "see --limits")
    known = [*LENGTHS, *_PATTERNS, "allow", "pair"]
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            close = get_close_matches(name, known, n=1)
            names = ", ".join(one.replace("_", "-") for one in known)
            fix = f"did you mean {close[0].replace('_', '-')}?" if close else f"known here: {names}"
            raise InputError(f"'{key}' is no limit", path, fix)
        if name in LENGTHS:
            found[name] = _length(value, path, key)
        elif name in _PATTERNS:
            found[name] = tuple(_texts([value] if isinstance(value, str) else value, path, key))
        elif name == "allow":
            found["allow"] = tuple(_pattern(one, path, key) for one in _list(value, path, key))
        else:
            found["pairs"] = tuple(_pair(one, path) for one in _list(value, path, key))
    return AuditLimits(**found).checked()


def _length(value: object, path: str, key: str) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        found = metres(value)
    except ValueError:
        raise InputError(f"'{key}' is {value!r}, not a length", path, 'give metres, as 0.002, or "2mm"') from None
    if found < 0.0:
        raise InputError(f"'{key}' is {value!r}, below 0", path, 'give a depth of at least 0, such as "2mm"')
    return found


def _list(value: object, path: str, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"'{key}' is {value!r}, not a list", path, f"see [[{key}]] and lists in TOML")
    return value


def _texts(value: object, path: str, key: str) -> list[str]:
    found = _list(value, path, key)
    if not all(isinstance(one, str) for one in found):
        raise InputError(f"'{key}' is {value!r}, not a list of patterns", path, f'write {key} = ["floor*"]')
    return found


def _pattern(value: object, path: str, key: str) -> Pattern:
    found = _texts(value, path, key)
    if len(found) != 2:
        raise InputError(f"'{key}' has {value!r}, not two patterns", path, 'write ["hand*", "cup*"]')
    return found[0], found[1]


def _pair(value: object, path: str) -> tuple[Pattern, float]:
    if not isinstance(value, Mapping) or set(value) != {"between", "max-depth"}:
        fix = 'write [[pair]], then between = ["hand*", "cup*"] and max-depth = "2mm"'
        raise InputError(f"[[pair]] is {value!r}", path, fix)
    return _pattern(value["between"], path, "between"), _length(value["max-depth"], path, "max-depth")


@dataclass(frozen=True)
class AuditedShapes:
    """Shapes, and other items that touch, of an audit; in the order of the items.

    path: of each item. body_path: path of its body, or "". is_static: bool[n]. type: labels. robot: int[n], number of
    the robot of its body, -1 for none.
    """

    path: Sequence[str]
    body_path: Sequence[str]
    is_static: np.ndarray
    type: Sequence[str]
    robot: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    def matching(self, patterns: Sequence[str], option: str, where: str) -> np.ndarray:
        """bool[n]: items whose path, or whose body's path, matches. Raises InputError for a pattern without a match."""
        found = np.zeros(len(self.path), bool)
        for pattern in patterns:
            every = [*self.path, *self.body_path]
            met = matching_paths(every, [pattern], option, f"no shape or body of {where}")
            found |= met[: len(self.path)] | met[len(self.path) :]
        return found


class PairLimits:
    """The class and the limit of pairs of items. Raises InputError for patterns that match nothing."""

    def __init__(self, limits: AuditLimits, shapes: AuditedShapes, where: str) -> None:
        self._limits, self._robot = limits, shapes.robot
        if limits.ground_shapes:
            self._ground = shapes.matching(limits.ground_shapes, "--ground-shapes", where)
        else:
            self._ground = shapes.is_static & np.isin(np.array(shapes.type), GROUND_TYPES)
        if limits.max_ground is not None and not self._ground.any():
            what = f"{where} has no static plane or heightfield"
            raise InputError(what, "--max-ground", "name the ground with --ground-shapes")
        if limits.self is not None and not (shapes.robot >= 0).any():
            raise InputError(f"joints connect no bodies of {where}", "--self", "name the bodies with --self-bodies")

        def sides(pattern: Pattern, option: str) -> tuple[np.ndarray, np.ndarray]:
            first, second = (shapes.matching([one], option, where) for one in pattern)
            return first, second

        self._pairs = [(sides(pattern, "--limits: [[pair]]"), limit) for pattern, limit in limits.pairs]
        self._allow = [sides(pattern, "--allow") for pattern in limits.allow]

    def classes(self, item0: np.ndarray, item1: np.ndarray) -> dict[str, np.ndarray]:
        """bool[n]: pairs of two bodies of one robot ("self"), pairs with the ground ("ground")."""
        robot = self._robot
        return {
            "self": (robot[item0] >= 0) & (robot[item0] == robot[item1]),
            "ground": self._ground[item0] | self._ground[item1],
        }

    def allowed(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs without a limit by --allow."""
        return _any([_is_between(sides, item0, item1) for sides in self._allow], len(item0))

    def limit(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """float64[n]: limit of each pair [m]; infinite for none."""
        limits, classes = self._limits, self.classes(item0, item1)
        found = np.full(len(item0), np.inf if limits.max_depth is None else limits.max_depth)
        if limits.max_ground is not None:
            found[classes["ground"]] = limits.max_ground
        if limits.self is not None:
            found[classes["self"]] = limits.self
        for sides, limit in self._pairs:
            found[_is_between(sides, item0, item1)] = limit
        found[self.allowed(item0, item1)] = np.inf
        return found


def _is_between(sides: tuple[np.ndarray, np.ndarray], item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
    first, second = sides
    return (first[item0] & second[item1]) | (second[item0] & first[item1])


def _any(masks: Sequence[np.ndarray], count: int) -> np.ndarray:
    return np.logical_or.reduce(masks) if masks else np.zeros(count, bool)
