"""Configuration of a shape besides its geometry: filters, margin, gap, signed distance field; and its material."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import FLAG, check_kind, is_integer, is_number
from collidecli.scene.shape_types import LENGTH_LIMIT
from collidecli.scene.signed_distance import DEFAULT_BAND, DEFAULT_ITERATIONS, SdfOptions

# Materials of surfaces: friction, restitution and solver parameters, of shapes and of forced pairs.

COMBINE_MODES = ("average", "min", "multiply", "max")
"""Rules for a pair's coefficient from two; of two different modes the later one here applies, as in PhysX."""
MATERIAL_RULES = ("combine", "mujoco")
"""combine: coefficients by their combine modes. mujoco: by priority, then the larger, as in MuJoCo."""
CONTACT_DIMENSIONS = (1, 3, 4, 6)
"""Values of condim: frictionless; sliding; sliding and torsional; sliding, torsional and rolling friction."""
MATERIAL_LIMIT = 1e18
"""Largest number of a material: the product of two fits a float32 column."""


@dataclass(frozen=True)
class Material:
    """Parameters of a surface. The rule "combine" ignores condim to solimp; "mujoco" ignores restitution and the modes.

    friction: dynamic (sliding) coefficient. static_friction: None is `friction`.
    torsional_friction, rolling_friction: [m], about the normal and about the tangents.
    restitution: 0 to 1. friction_combine, restitution_combine: of COMBINE_MODES.
    condim: dimension of the contact's force, 1, 3, 4 or 6. priority: of two surfaces only the higher one applies.
    solmix: weight of the solver parameters for equal priorities.
    solref: time constant [s] and damping ratio, or negative stiffness and damping. solimp: impedance, five numbers.
    contact_ke [N/m], contact_kd [N s/m], contact_kf [N s/m], contact_ka [m]: stiffness, damping, friction gain and
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
    """Parameters of a forced pair that replace those of its surfaces under the rule "mujoco"; None keeps those.

    friction: five coefficients: two of sliding, torsional [m], two of rolling [m]. See `Material` for the rest.
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
        "friction", "torsional_friction", "rolling_friction", "condim", "priority", "solmix", "solref", "solimp",
    ),
}  # fmt: skip
"""The fields that determine a contact's parameters, by material rule."""
PAIR_WIDTHS = {"friction": 5, **WIDTHS}


def check_material(material: Material, where: str) -> None:
    """Raises InputError, with `where`, for a number that is not finite or out of range, and an unknown combine mode."""
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
        raise InputError(f"priority is {material.priority!r}", where, "give an integer of at most 32 bits")
    for name, width in WIDTHS.items():
        _check_numbers(name, getattr(material, name), width, where)


def check_pair_material(material: PairMaterial, where: str) -> None:
    """Raises InputError, with `where`, for a number that is not finite or out of range."""
    if material.condim is not None:
        _check_condim(material.condim, where)
    for name, width in PAIR_WIDTHS.items():
        values = getattr(material, name)
        if values is not None:
            _check_numbers(name, values, width, where, lowest=0.0 if name == "friction" else -math.inf)


def _check_condim(condim: int, where: str) -> None:
    if not is_integer(condim) or condim not in CONTACT_DIMENSIONS:
        raise InputError(f"condim is {condim!r}", where, "give 1, 3, 4 or 6")


def _check_numbers(name: str, values: Sequence[float], width: int, where: str, lowest: float = -math.inf) -> None:
    if np.shape(values) != (width,):
        raise InputError(f"{name} is {values!r}", where, f"give {width} numbers")
    for value in values:
        _check_number(name, value, where, lowest)


def _check_number(
    name: str, value: float | None, where: str, lowest: float = -math.inf, highest: float = MATERIAL_LIMIT
) -> None:
    if value is None:
        return
    if not is_number(value) or not max(lowest, -MATERIAL_LIMIT) <= value <= highest:
        least = "" if math.isinf(lowest) else f" at least {lowest:g} and"
        raise InputError(f"{name} is {value!r}", where, f"{name} must be finite,{least} at most {highest:g}")


@dataclass(frozen=True)
class Materials:
    """The materials of S shapes, with one column for each field of `Material`.

    float64[S]; condim, priority int32[S]; solref float64[S, 2], solimp float64[S, 5]; NaN for a penalty parameter that
    is not specified. friction_combine, restitution_combine: int8[S], indices into COMBINE_MODES.
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

    def row(self, shape: int) -> Material:
        """The material of one shape; an unspecified static friction is the dynamic one."""
        columns = {item.name: getattr(self, item.name)[shape] for item in fields(self)}
        values: dict[str, object] = {name: value.item() for name, value in columns.items() if name not in WIDTHS}
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


# Filter attributes, margin, gap and signed distance field of a shape.

FLAGS = ("collision_filter_parent", "has_shape_collision", "has_particle_collision", "is_hydroelastic", "is_solid")
ALL_BITS = (1 << 64) - 1
DEFAULT_GROUP = 1
"""Bit of a moving shape under masks, both."""
STATIC_GROUP = 1 << 63
"""Bit of a static shape under masks, both."""
STIFFNESS_LIMIT = 1.0e30
"""Largest finite hydroelastic stiffness [N/m^3]; infinity marks a rigid shape."""


@dataclass
class ShapeConfig:
    """A shape's filter attributes and contact parameters.

    A filter scheme applies to a pair if both shapes have its attribute; every scheme that applies must allow the pair.

    collision_group: signed group; 0 collides with nothing.
    collision_filter_parent: False exempts the shape from the filter of joints of its body.
    has_shape_collision: False excludes every shape. has_particle_collision: False excludes every particle.
    margin: inflation of the surface [m]; None is 0.
    gap: largest distance at which contacts are reported [m]; None is the builder's `default_gap`.
    material: of the surface. friction: dynamic friction coefficient that replaces the material's; None keeps that.
    mask_either: (contype, conaffinity); one of the two directions must match.
    mask_both: (group, mask); both directions must match. A group of None is bit 0, or bit 63 for a static shape; a
        mask of None is every bit.
    usd_groups: names of the UsdPhysics collision groups of the shape; None or empty collides with every group.
    disabled_rule: not None excludes every shape; the text is the reason.
    sdf_max_resolution: voxels along the longest side of the shape's box, a multiple of 8. sdf_target_voxel_size: side
        of a voxel [m], an alternative. Either gives the shape a signed distance field, see docs/explanation/sdf.md.
    sdf_narrow_band_range: distances between which the field is kept in voxels (inner < 0 < outer) [m].
    edge_sdf_iter: steps of the search for the least distance along an edge.
    is_hydroelastic: contacts with other such shapes are surfaces of equal pressure.
    is_solid: False makes a triangle mesh hollow: only its surface collides, from both sides; other types are refused.
    k_hydro: pressure per depth [N/m^3]; infinite for a rigid shape; None is the option hydro_stiffness.
    Masks have 64 bits; a negative number is its two's complement.
    """

    collision_group: int = 1
    collision_filter_parent: bool = True
    has_shape_collision: bool = True
    has_particle_collision: bool = True
    margin: float | None = None
    gap: float | None = None
    friction: float | None = None
    material: Material = Material()
    mask_either: tuple[int, int] | None = None
    mask_both: tuple[int | None, int | None] | None = None
    usd_groups: AbstractSet[str] | None = None
    disabled_rule: str | None = None
    sdf_max_resolution: int | None = None
    sdf_target_voxel_size: float | None = None
    sdf_narrow_band_range: tuple[float, float] = DEFAULT_BAND
    edge_sdf_iter: int = DEFAULT_ITERATIONS
    is_hydroelastic: bool = False
    k_hydro: float | None = None
    is_solid: bool = True

    def changed(self, **values: Any) -> ShapeConfig:
        """A copy with other values, as `dataclasses.replace` makes it, in a third of its time."""
        return ShapeConfig(**(vars(self) | values))


def check_config(cfg: ShapeConfig, where: str, sound: dict[int, Material]) -> None:
    """Raises InputError, with `where`, for a group or mask that is no integer, or a length that is not >= 0.

    sound: by id the materials, which are frozen, that passed an earlier check: shapes that share one need one check.
    """
    if not is_integer(cfg.collision_group) or abs(cfg.collision_group) >= 1 << 63:
        raise InputError(f"collision_group is {cfg.collision_group!r}", where, "give an integer of at most 64 bits")
    for name in FLAGS:
        check_kind(name, getattr(cfg, name), FLAG, where)
    for name in ("mask_either", "mask_both"):
        masks = getattr(cfg, name)
        if masks is not None:
            _check_masks(name, masks, where)
    for name in ("margin", "gap"):
        value = getattr(cfg, name)
        if value is not None:
            check_length(name, value, where)
    groups = cfg.usd_groups
    if groups is not None and not (isinstance(groups, AbstractSet) and all(isinstance(group, str) for group in groups)):
        raise InputError(f"usd_groups is {groups!r}", where, "give a set of group names")
    if cfg.disabled_rule is not None:
        check_kind("disabled_rule", cfg.disabled_rule, str, where)
    check_kind("material", cfg.material, Material, where)
    if cfg.k_hydro is not None:
        check_stiffness("k_hydro", cfg.k_hydro, where)
    material = resolved_material(cfg)
    if sound.get(id(material)) is not material:
        check_material(material, where)
        sound[id(material)] = material


def sdf_options(cfg: ShapeConfig) -> SdfOptions:
    """The options of a configuration's signed distance field."""
    return SdfOptions(cfg.sdf_max_resolution, cfg.sdf_target_voxel_size, cfg.sdf_narrow_band_range, cfg.edge_sdf_iter)


def check_length(name: str, value: float, where: str) -> None:
    """Raises InputError for a number that is not between zero and LENGTH_LIMIT."""
    try:
        fits = bool(0.0 <= value <= LENGTH_LIMIT)
    except (TypeError, ValueError):  # no number, or several
        fits = False
    if not fits:
        raise InputError(f"{name} is {value!r}", where, f"{name} must be at least zero and at most {LENGTH_LIMIT:g}")


def check_stiffness(name: str, value: float, where: str) -> None:
    """Raises InputError for a stiffness that is not greater than zero; infinity marks a rigid shape."""
    try:
        fits = bool(0.0 < value <= STIFFNESS_LIMIT or value == math.inf)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        fix = f"give a number greater than zero, up to {STIFFNESS_LIMIT:g} N/m^3, or inf for a rigid shape"
        raise InputError(f"{name} is {value!r}", where, fix)


def resolved_material(cfg: ShapeConfig) -> Material:
    """The material, with the configuration's own friction."""
    return cfg.material if cfg.friction is None else replace(cfg.material, friction=cfg.friction)


def mask_bits(value: int) -> int:
    """The 64 bits of a mask, as a non-negative integer."""
    return int(value) & ALL_BITS


def resolved_mask_both(cfg: ShapeConfig, static: bool) -> tuple[int, int] | None:
    """(group, mask) of 64 bits each, with defaults inserted; None for a shape without such masks."""
    if cfg.mask_both is None:
        return None
    group, mask = cfg.mask_both
    default_group = STATIC_GROUP if static else DEFAULT_GROUP
    return mask_bits(default_group if group is None else group), mask_bits(ALL_BITS if mask is None else mask)


def _check_masks(name: str, masks: tuple, where: str) -> None:
    may_default = name == "mask_both"
    if not isinstance(masks, tuple) or len(masks) != 2:
        raise InputError(f"{name} is {masks!r}", where, "give a pair of integers")
    for mask in masks:
        if mask is None and may_default:
            continue
        if mask is None or not is_integer(mask) or not -(1 << 63) <= mask <= ALL_BITS:
            raise InputError(f"{name} is {masks!r}", where, "give a pair of integers of at most 64 bits")
