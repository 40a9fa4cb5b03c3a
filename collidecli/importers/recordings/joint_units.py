"""Units of recorded joint positions: degrees, positions normalised to a joint's limits, and scales
of single joints."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.kinematics import last_element
from collidecli.wording import some_names

DEGREES = "degrees"
RADIANS = "radians"
ANGLE_UNITS = {RADIANS: 1.0, DEGREES: np.pi / 180.0}
LENGTH_UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Factors to radians and metres."""
NORMALISED = "normalised"
"""-100 at a joint's lower limit to 100 at its upper one; of grippers 0 to 100."""
GRIPPER = "gripper"
"""Part of the name of a column that is normalised to 0 to 100."""


def gripper_columns(names: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the columns whose names are those of grippers."""
    return tuple(k for k, name in enumerate(names) if GRIPPER in last_element(name).lower())


@dataclass(frozen=True)
class JointUnits:
    """Units of recorded columns: those of --joint-scale have it, those of `told` the unit that the
    file names, other angles `unit` and other lengths `length_unit`.

    unit, length_unit: "" is radians, and metres. percent: columns from 0 to 100. scales: texts of
    --joint-scale. names: of the columns. where: file and array, for messages. told: units by name.
    """

    unit: str
    percent: Sequence[int]
    scales: Sequence[str]
    names: Sequence[str]
    where: str
    length_unit: str = ""
    told: Mapping[str, str] = field(default_factory=dict)

    def convert(
        self,
        states: Iterable[np.ndarray],
        angles: Container[int],
        single: Sequence[int],
        limits: np.ndarray,
    ) -> None:
        """Converts states in place to radians and metres. angles: the columns that are angles.
        single: those that are no parts of quaternions, in ascending order. limits: float64[k, 2] of
        the columns."""
        scales = _scales(self.scales, self.names)
        ranges = self._ranges(single, list(scales))
        self._refuse_without_limits(list(ranges), limits)
        factors = self._factors(angles, single, [*scales, *ranges])
        for state in states:
            for column, factor in factors.items():
                state[:, column] *= factor
            for column, least in ranges.items():
                low, high = limits[column]
                share = (state[:, column] - least) / (100.0 - least)
                state[:, column] = low + share * (high - low)
            for column, (scale, offset) in scales.items():
                state[:, column] = state[:, column] * scale + offset

    def _factors(
        self, angles: Container[int], single: Sequence[int], others: Sequence[int]
    ) -> dict[int, float]:
        """Factors to radians and metres of columns but for `others`. Raises InputError for a unit
        that is none of the joint's quantity, or differs from the option."""
        factors = {}
        for column in single:
            name = self.names[column]
            is_angle = column in angles
            units = ANGLE_UNITS if is_angle else LENGTH_UNITS
            given = self.unit if is_angle else self.length_unit
            told = self.told.get(name, "")
            if told and column not in others:
                if told not in units:
                    what = f"joint '{name}' is recorded in '{told}', not in {', '.join(units)}"
                    fix = "correct the unit, or convert the column with --joint-scale"
                    raise InputError(what, self.where, fix)
                if given and told != given:
                    what = f"joint '{name}' is recorded in {told}, and the option is {given}"
                    raise InputError(what, self.where, "remove the option")
            if column not in others and units.get(told or given, 1.0) != 1.0:
                factors[column] = units[told or given]
        return factors

    def _ranges(self, single: Sequence[int], scaled: Sequence[int]) -> dict[int, float]:
        """The least value of each normalised column; the greatest is 100."""
        if self.unit not in (DEGREES, NORMALISED):
            return {}
        ranges = dict.fromkeys(self.percent, 0.0)
        if self.unit == NORMALISED:
            ranges = dict.fromkeys(single, -100.0) | ranges
            ranges |= dict.fromkeys(gripper_columns(self.names), 0.0)
        return {column: least for column, least in ranges.items() if column not in scaled}

    def _refuse_without_limits(self, normalised: Sequence[int], limits: np.ndarray) -> None:
        """Raises InputError for a normalised column of a joint without limits in the scene."""
        unlimited = [c for c in normalised if not np.isfinite(limits[c]).all()]
        if unlimited:
            named = some_names([self.names[column] for column in unlimited])
            what = f"positions are normalised, and the scene has no limits of joint {named}"
            fix = "give the range of the joint in the scene, or --joint-scale NAME=SCALE:OFFSET"
            raise InputError(what, self.where, fix)


def _scales(texts: Sequence[str], names: Sequence[str]) -> dict[int, tuple[float, float]]:
    """Scale and offset of columns from texts "NAME=SCALE" or "NAME=SCALE:OFFSET", by column."""
    scales = {}
    for text in texts:
        name, _, numbers = text.partition("=")
        try:
            scale, offset = (*map(float, numbers.split(":")), 0.0)[:2]
            if not np.isfinite([scale, offset]).all() or numbers.count(":") > 1:
                raise ValueError
        except ValueError:
            fix = "write NAME=SCALE or NAME=SCALE:OFFSET"
            raise InputError(f"'{text}' is no scale", "--joint-scale", fix) from None
        if name not in names:
            raise InputError(
                f"no joint '{name}' is recorded",
                "--joint-scale",
                f"recorded are {some_names(names)}",
            )
        scales[names.index(name)] = scale, offset
    return scales
