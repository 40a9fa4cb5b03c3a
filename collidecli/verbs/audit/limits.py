"""Limits of an audit: options, or a file in TOML, and the limit of each pair of shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from collidecli.analysis.touch_intervals import Names
from collidecli.errors import InputError
from collidecli.scene.arguments import checked_metres
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.patterns import NamedItems
from collidecli.storage.text_files import read_toml
from collidecli.wording import did_you_mean

GROUND_TYPES = ("plane", "heightfield")
"""Static shapes of these types are the ground, unless shapes are named."""
Pattern = tuple[str, str]


@dataclass(frozen=True)
class AuditLimits:
    """Limits of depth [m], None for none, and the classes of pairs.

    max_depth: of every pair without another one. self: of two bodies of one robot. max_ground: of
    pairs with the ground. max_start: of every pair in the first frame of a world or demonstration.
    pairs: patterns of two paths and their own limit. allow: patterns of two paths without a limit.
    ground_shapes: patterns of the ground's shapes; () is every static plane and heightfield.
    self_bodies: patterns of the bodies of one robot; () is those that joints connect.
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
                option = "--" + name.replace("_", "-")
                raise InputError(f"{value} is not a depth", option, "give at least 0, such as 2mm")
        return self

    @property
    def has_any(self) -> bool:
        """Whether a limit is given."""
        return bool(self.pairs) or any(getattr(self, name) is not None for name in LENGTHS)

    def over(self, file: AuditLimits) -> AuditLimits:
        """The limits of a file, replaced by these where these are given; patterns `allow` and
        `pairs` of both."""
        given = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        given |= {
            name: value
            for name in ("ground_shapes", "self_bodies")
            if (value := getattr(self, name))
        }
        return replace(
            file, **given, allow=(*file.allow, *self.allow), pairs=(*file.pairs, *self.pairs)
        )


LENGTHS = ("max_depth", "self", "max_ground", "max_start")
_PATTERNS = ("ground_shapes", "self_bodies")


def read_limits(path: str) -> AuditLimits:
    """The limits of a TOML file. Raises InputError for a file that cannot be read, an unknown key
    or a wrong value."""
    table = read_toml(path, "see docs/howto/audit-a-motion.md for the file of --limits")
    known = [*LENGTHS, *_PATTERNS, "allow", "pair"]
    limits: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            fix = did_you_mean(
                name.replace("_", "-"), [known_name.replace("_", "-") for known_name in known]
            )
            raise InputError(f"'{key}' is no limit", path, fix)
        if name in LENGTHS:
            limits[name] = _length(value, path, key)
        elif name in _PATTERNS:
            limits[name] = tuple(_texts([value] if isinstance(value, str) else value, path, key))
        elif name == "allow":
            limits["allow"] = tuple(_pattern(item, path, key) for item in _list(value, path, key))
        else:
            limits["pairs"] = tuple(_pair(item, path) for item in _list(value, path, key))
    return AuditLimits(**limits).checked()


def _length(value: object, path: str, key: str) -> float:
    metres = checked_metres(value, f"{path}: {key}")
    if metres < 0.0:
        raise InputError(
            f"'{key}' is {value!r}, below 0", path, 'give a depth of at least 0, such as "2mm"'
        )
    return metres


def _list(value: object, path: str, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(
            f"'{key}' is {value!r}, not a list", path, f"see [[{key}]] and lists in TOML"
        )
    return value


def _texts(value: object, path: str, key: str) -> list[str]:
    texts = _list(value, path, key)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(
            f"'{key}' is {value!r}, not a list of patterns", path, f'write {key} = ["floor*"]'
        )
    return texts


def _pattern(value: object, path: str, key: str) -> Pattern:
    patterns = _texts(value, path, key)
    if len(patterns) != 2:
        raise InputError(
            f"'{key}' has {value!r}, not two patterns", path, 'write ["hand*", "cup*"]'
        )
    return patterns[0], patterns[1]


def _pair(value: object, path: str) -> tuple[Pattern, float]:
    if not isinstance(value, Mapping) or set(value) != {"between", "max-depth"}:
        fix = 'write [[pair]], then between = ["hand*", "cup*"] and max-depth = "2mm"'
        raise InputError(f"[[pair]] is {value!r}", path, fix)
    return _pattern(value["between"], path, "between"), _length(
        value["max-depth"], path, "max-depth"
    )


@dataclass(frozen=True)
class AuditedShapes:
    """The items of an audit: shapes, then particle objects, which are `object_count` many.

    path: of each item. names: of the items. body_path: path of its body, which may be fixed to the
    world, or "". is_static: bool[n]. type: labels. robot: int[n], number of the robot of its body,
    -1 for none; empty if no robot is known.
    """

    path: Sequence[str]
    names: Names
    body_path: Sequence[str]
    is_static: np.ndarray
    type: Sequence[str]
    robot: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    object_count: int = 0

    @property
    def is_object(self) -> np.ndarray:
        """bool[n]: particle objects."""
        return np.arange(len(self.path)) >= len(self.path) - self.object_count

    def with_objects(self, objects: ParticleObjects, template: np.ndarray) -> AuditedShapes:
        """The items with particle objects behind the shapes. template: int[n], of the shapes.

        An object has no body and belongs to no robot. Of an object with the path of a shape, the
        name has its kind too.
        """
        count = len(objects)
        if not count:
            return self
        robot = np.append(self.robot, np.full(count, -1)) if len(self.robot) else self.robot
        return AuditedShapes(
            (*self.path, *objects.path),
            Names.with_objects(self.path, template, objects),
            (*self.body_path, *[""] * count),
            np.append(self.is_static, np.zeros(count, bool)),
            (*self.type, *objects.kind),
            robot,
            count,
        )

    @property
    def is_ground(self) -> np.ndarray:
        """bool[n]: static planes and heightfields."""
        return self.is_static & np.isin(np.array(self.type), GROUND_TYPES)

    def items(self, where: str) -> NamedItems:
        """The items, for patterns of their paths and of the paths of their bodies. where: for
        errors."""
        what = "shape, particle object or body" if self.object_count else "shape or body"
        return NamedItems(
            self.path, np.arange(len(self.path)), self.body_path, f"{what} of {where}"
        )


class PairLimits:
    """The class and the limit of pairs of items. Raises InputError for patterns that match
    nothing."""

    def __init__(self, limits: AuditLimits, shapes: AuditedShapes, where: str) -> None:
        self._limits = limits
        items = shapes.items(where)
        self._ground = shapes.is_ground
        if limits.ground_shapes:
            self._ground = items.matching(limits.ground_shapes, "--ground-shapes")
        self._robot = np.where(self._ground, -1, shapes.robot)  # the ground is no part of a robot
        if limits.max_ground is not None and not self._ground.any():
            what = f"{where} has no static plane or heightfield"
            raise InputError(what, "--max-ground", "name the ground with --ground-shapes")
        if limits.self is not None and not self.has_robot:
            raise InputError(
                f"joints connect no bodies of {where}",
                "--self",
                "name the bodies with --self-bodies",
            )
        self._pairs = [
            (items.sides(pattern, "--limits: [[pair]]"), limit) for pattern, limit in limits.pairs
        ]
        self._allow = [items.sides(pattern, "--allow") for pattern in limits.allow]

    @property
    def has_robot(self) -> bool:
        """Whether an item belongs to a robot."""
        return bool((self._robot >= 0).any())

    def has_own(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs with a limit of their own, of [[pair]]."""
        masks = [sides.of_pairs(item0, item1) for sides, _ in self._pairs]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(item0), bool)

    def classes(self, item0: np.ndarray, item1: np.ndarray) -> dict[str, np.ndarray]:
        """bool[n]: pairs of two bodies of one robot ("self"), pairs with the ground ("ground")."""
        robot = self._robot
        return {
            "self": (robot[item0] >= 0) & (robot[item0] == robot[item1]),
            "ground": self._ground[item0] | self._ground[item1],
        }

    def allowed(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs without a limit by --allow."""
        masks = [sides.of_pairs(item0, item1) for sides in self._allow]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(item0), bool)

    def limit(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """float64[n]: limit of each pair [m]; infinite for none."""
        limits = self._limits
        classes = self.classes(item0, item1)
        limit_of_pair = np.full(
            len(item0), np.inf if limits.max_depth is None else limits.max_depth
        )
        if limits.max_ground is not None:
            limit_of_pair[classes["ground"]] = limits.max_ground
        if limits.self is not None:
            limit_of_pair[classes["self"]] = limits.self
        for sides, limit in self._pairs:
            limit_of_pair[sides.of_pairs(item0, item1)] = limit
        limit_of_pair[self.allowed(item0, item1)] = np.inf
        return limit_of_pair
