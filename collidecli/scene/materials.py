"""Materials of surfaces: friction, restitution and solver parameters, of shapes and of forced
pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_integer, is_number

COMBINE_MODES = ("average", "min", "multiply", "max")
"""Rules for a pair's coefficient from two; of two different modes the later one here applies, as in
PhysX."""
MATERIAL_RULES = ("combine", "mujoco")
"""combine: coefficients by their combine modes. mujoco: by priority, then the larger, as in
MuJoCo."""
CONTACT_DIMENSIONS = (1, 3, 4, 6)
"""Values of condim: frictionless; sliding; sliding and torsional; sliding, torsional and rolling
friction."""
MATERIAL_LIMIT = 1e18
"""Largest number of a material: the product of two fits a float32 column."""


@dataclass(frozen=True)
class Material:
    """Parameters of a surface. The rule "combine" ignores condim to solimp; "mujoco" ignores
    restitution and the modes.

    friction: dynamic (sliding) coefficient. static_friction: None is `friction`.
    torsional_friction, rolling_friction: [m], about the normal and about the tangents. restitution:
    0 to 1. friction_combine, restitution_combine: of COMBINE_MODES. condim: dimension of the
    contact's force, 1, 3, 4 or 6. priority: of two surfaces only the higher one applies. solmix:
    weight of the solver parameters for equal priorities. solref: time constant [s] and damping
    ratio, or negative stiffness and damping. solimp: impedance, five numbers. contact_ke [N/m],
    contact_kd [N s/m], contact_kf [N s/m], contact_ka [m]: stiffness, damping, friction gain and
        adhesion distance of penalty contacts; None if not specified.
    """

    friction: float = 0.5
    static_friction: float | None = None
    torsional_friction: float = 0.0
    rolling_friction: float = 0.0
    restitution: float = 0.0
    friction_combine: str = "average"
    restitution_combine: str = "average"
    condim: int = 3
    priority: int = 0
    solmix: float = 1.0
    solref: tuple[float, ...] = (0.02, 1.0)
    solimp: tuple[float, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    contact_ke: float | None = None
    contact_kd: float | None = None
    contact_kf: float | None = None
    contact_ka: float | None = None


@dataclass(frozen=True)
class PairMaterial:
    """Parameters of a forced pair that replace those of its surfaces under the rule "mujoco"; None
    keeps those.

    friction: five coefficients: two of sliding, torsional [m], two of rolling [m]. See `Material`
    for the rest.
    """

    condim: int | None = None
    friction: tuple[float, ...] | None = None
    solref: tuple[float, ...] | None = None
    solimp: tuple[float, ...] | None = None


COEFFICIENTS = ("friction", "static_friction", "torsional_friction", "rolling_friction")
PENALTY_PARAMETERS = ("contact_ke", "contact_kd", "contact_kf", "contact_ka")
COMBINE_FIELDS = ("friction_combine", "restitution_combine")
WIDTHS = {"solref": 2, "solimp": 5}
RULE_FIELDS = {
    "combine": (*COEFFICIENTS, "restitution", *COMBINE_FIELDS),
    "mujoco": (
        "friction",
        "torsional_friction",
        "rolling_friction",
        "condim",
        "priority",
        "solmix",
        "solref",
        "solimp",
    ),
}
"""The fields that determine a contact's parameters, by material rule."""
PAIR_WIDTHS = {"friction": 5, **WIDTHS}


def check_material(material: Material, where: str) -> None:
    """Raises InputError, with `where`, for a number that is not finite or out of range, and an
    unknown combine mode."""
    for name in (*COEFFICIENTS, *PENALTY_PARAMETERS):
        _check_number(name, getattr(material, name), where, lowest=0.0)
    _check_number("restitution", material.restitution, where, lowest=0.0, highest=1.0)
    _check_number("solmix", material.solmix, where)
    for name in COMBINE_FIELDS:
        if getattr(material, name) not in COMBINE_MODES:
            what = f"{name} is {getattr(material, name)!r}"
            raise InputError(what, where, f"give one of: {', '.join(COMBINE_MODES)}")
    _check_condim(material.condim, where)
    if not is_integer(material.priority) or abs(material.priority) >= 1 << 31:
        raise InputError(
            f"priority is {material.priority!r}", where, "give an integer of at most 32 bits"
        )
    for name, width in WIDTHS.items():
        _check_numbers(name, getattr(material, name), width, where)


def check_pair_material(material: PairMaterial, where: str) -> None:
    """Raises InputError, with `where`, for a number that is not finite or out of range."""
    if material.condim is not None:
        _check_condim(material.condim, where)
    for name, width in PAIR_WIDTHS.items():
        values = getattr(material, name)
        if values is not None:
            _check_numbers(
                name, values, width, where, lowest=0.0 if name == "friction" else -math.inf
            )


def _check_condim(condim: int, where: str) -> None:
    if not is_integer(condim) or condim not in CONTACT_DIMENSIONS:
        raise InputError(f"condim is {condim!r}", where, "give 1, 3, 4 or 6")


def _check_numbers(
    name: str, values: Sequence[float], width: int, where: str, lowest: float = -math.inf
) -> None:
    if np.shape(values) != (width,):
        raise InputError(f"{name} is {values!r}", where, f"give {width} numbers")
    for value in values:
        _check_number(name, value, where, lowest)


def _check_number(
    name: str,
    value: float | None,
    where: str,
    lowest: float = -math.inf,
    highest: float = MATERIAL_LIMIT,
) -> None:
    if value is None:
        return
    if not is_number(value) or not max(lowest, -MATERIAL_LIMIT) <= value <= highest:
        least = "" if math.isinf(lowest) else f" at least {lowest:g} and"
        raise InputError(
            f"{name} is {value!r}", where, f"{name} must be finite,{least} at most {highest:g}"
        )


@dataclass(frozen=True)
class Materials:
    """The materials of S shapes, with one column for each field of `Material`.

    float64[S]; condim, priority int32[S]; solref float64[S, 2], solimp float64[S, 5]; NaN for a
    penalty parameter that is not specified. friction_combine, restitution_combine: int8[S], indices
    into COMBINE_MODES.
    """

    friction: np.ndarray
    static_friction: np.ndarray
    torsional_friction: np.ndarray
    rolling_friction: np.ndarray
    restitution: np.ndarray
    friction_combine: np.ndarray
    restitution_combine: np.ndarray
    condim: np.ndarray
    priority: np.ndarray
    solmix: np.ndarray
    solref: np.ndarray
    solimp: np.ndarray
    contact_ke: np.ndarray
    contact_kd: np.ndarray
    contact_kf: np.ndarray
    contact_ka: np.ndarray

    def __len__(self) -> int:
        return len(self.friction)

    @classmethod
    def of(cls, materials: Sequence[Material]) -> Materials:
        """The columns of `materials`, in their order."""
        return cls(**{item.name: _column(item.name, materials) for item in fields(cls)})

    def followed_by(self, others: Materials) -> Materials:
        """The rows of these and then of other materials."""
        if not len(others):
            return self
        columns = {
            item.name: np.concatenate([getattr(self, item.name), getattr(others, item.name)])
            for item in fields(self)
        }
        return Materials(**columns)

    def row(self, shape: int) -> Material:
        """The material of one shape; an unspecified static friction is the dynamic one."""
        columns = {item.name: getattr(self, item.name)[shape] for item in fields(self)}
        values: dict[str, object] = {
            name: value.item() for name, value in columns.items() if name not in WIDTHS
        }
        values |= {name: tuple(columns[name].tolist()) for name in WIDTHS}
        values |= {name: COMBINE_MODES[int(columns[name])] for name in COMBINE_FIELDS}
        values |= {name: None for name in PENALTY_PARAMETERS if np.isnan(columns[name])}
        return Material(**values)  # pyright: ignore[reportArgumentType]


def _column(name: str, materials: Sequence[Material]) -> np.ndarray:
    values = [getattr(material, name) for material in materials]
    if name in COMBINE_FIELDS:
        return np.array([COMBINE_MODES.index(value) for value in values], np.int8)
    if name in ("condim", "priority"):
        return np.array(values, np.int32)
    if name in WIDTHS:
        return np.array(values, np.float64).reshape(-1, WIDTHS[name])
    if name == "static_friction":
        values = [m.friction if m.static_friction is None else m.static_friction for m in materials]
    return np.array([math.nan if value is None else value for value in values], np.float64)


@dataclass(frozen=True)
class PairMaterials:
    """Own parameters of K forced pairs, 0 or NaN for none.

    condim: int32[K]. friction: float64[K, 5]. solref: float64[K, 2]. solimp: float64[K, 5].
    """

    condim: np.ndarray
    friction: np.ndarray
    solref: np.ndarray
    solimp: np.ndarray

    def __len__(self) -> int:
        return len(self.condim)

    @classmethod
    def of(cls, materials: Sequence[PairMaterial | None]) -> PairMaterials:
        """The columns of `materials`; None is a pair without own parameters."""
        given = [PairMaterial() if material is None else material for material in materials]
        columns = {}
        for name, width in PAIR_WIDTHS.items():
            nothing = (math.nan,) * width
            rows = [nothing if getattr(m, name) is None else getattr(m, name) for m in given]
            columns[name] = np.array(rows, np.float64).reshape(-1, width)
        return cls(condim=np.array([m.condim or 0 for m in given], np.int32), **columns)

    def any(self) -> bool:
        """Whether any pair has own parameters."""
        return bool(self.condim.any()) or any(
            not np.isnan(getattr(self, name)).all() for name in PAIR_WIDTHS if len(self)
        )
