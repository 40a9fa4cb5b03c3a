"""Filter attributes, margin, gap and signed distance field of a shape."""

from __future__ import annotations

import math
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

from collidecli.errors import InputError
from collidecli.scene.argument_types import FLAG, is_integer
from collidecli.scene.arguments import check_kind
from collidecli.scene.materials import Material, check_material
from collidecli.scene.sdf_options import DEFAULT_BAND, DEFAULT_ITERATIONS, SdfOptions
from collidecli.scene.shape_types import LENGTH_LIMIT
from collidecli.scene.triangle_materials import TriangleMaterials
from collidecli.wording import did_you_mean

FLAGS = (
    "collision_filter_parent",
    "has_shape_collision",
    "has_particle_collision",
    "is_hydroelastic",
    "is_solid",
    "is_trigger",
)
ALL_BITS = (1 << 64) - 1
DEFAULT_GROUP = 1
"""Bit of a moving shape under masks, both."""
STATIC_GROUP = 1 << 63
"""Bit of a static shape under masks, both."""
OF_NEWTON = {
    "thickness": "margin",
    "contact_margin": "gap",
    "mu": "friction",
    "kh": "k_hydro",
    "ke": "contact_ke of the material",
    "kd": "contact_kd of the material",
    "kf": "contact_kf of the material",
    "ka": "contact_ka of the material",
    "restitution": "restitution of the material",
    "mu_torsional": "torsional_friction of the material",
    "mu_rolling": "rolling_friction of the material",
}
"""Attributes of Newton's configurations of shapes, and those here that have their meaning."""
STIFFNESS_LIMIT = 1.0e30
"""Largest finite hydroelastic stiffness [N/m^3]; infinity marks a rigid shape."""


@dataclass
class ShapeConfig:
    """A shape's filter attributes and contact parameters.

    A filter scheme applies to a pair if both shapes have its attribute; every scheme that applies
    must allow the pair.

    collision_group: signed group; 0 collides with nothing. collision_filter_parent: False exempts
    the shape from the filter of joints of its body. has_shape_collision: False excludes every
    shape. has_particle_collision: False excludes every particle. margin: inflation of the surface
    [m]; None is 0. gap: largest distance at which contacts are reported [m]; None is the builder's
    `default_gap`. material: of the surface. friction: dynamic friction coefficient that replaces
    the material's; None keeps that. mask_either: (contype, conaffinity); one of the two directions
    must match. mask_both: (group, mask); both directions must match. A group of None is bit 0, or
    bit 63 for a static shape; a
        mask of None is every bit.
    usd_groups: names of the UsdPhysics collision groups of the shape; None or empty collides with
    every group. disabled_rule: not None excludes every shape; the text is the reason.
    sdf_max_resolution: voxels along the longest side of the shape's box, a multiple of 8.
    sdf_target_voxel_size: side
        of a voxel [m], an alternative. Either gives the shape a signed distance field, see
        docs/explanation/sdf.md.
    sdf_narrow_band_range: distances between which the field is kept in voxels (inner < 0 < outer)
    [m]. edge_sdf_iter: steps of the search for the least distance along an edge. is_hydroelastic:
    contacts with other such shapes are surfaces of equal pressure. is_solid: False makes a triangle
    mesh hollow: only its surface collides, from both sides; other types are refused. k_hydro:
    pressure per depth [N/m^3]; infinite for a rigid shape; None is the option hydro_stiffness.
    is_trigger: a volume that is not solid: it touches shapes and particles, but no other trigger,
    and no depth counts its contacts. triangle_materials: of triangles of a mesh, that replace
    `material` for contacts with these triangles.
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
    is_trigger: bool = False
    triangle_materials: TriangleMaterials | None = None

    def changed(self, **values: Any) -> ShapeConfig:
        """A copy with other values, as `dataclasses.replace` makes it, in a third of its time.

        Raises InputError for an attribute that was assigned and does not exist.
        """
        check_names(self, "ShapeConfig")
        return ShapeConfig(**(vars(self) | values))


def check_names(cfg: ShapeConfig, where: str) -> None:
    """Raises InputError, with `where`, for an attribute that was assigned and does not exist."""
    known = cfg.__dataclass_fields__
    if len(vars(cfg)) == len(known):
        return
    name = min(vars(cfg).keys() - known)
    own = OF_NEWTON.get(name)
    fix = did_you_mean(name, known) if own is None else f"set {own}"
    raise InputError(f"ShapeConfig has no attribute '{name}'", where, fix)


def check_config(cfg: ShapeConfig, where: str, sound: dict[int, Material]) -> None:
    """Raises InputError, with `where`, for an attribute that does not exist, a group or mask that
    is no integer, or a length that is not >= 0.

    sound: by id the materials, which are frozen, that passed an earlier check: shapes that share
    one need one check.
    """
    check_names(cfg, where)
    if not is_integer(cfg.collision_group) or abs(cfg.collision_group) >= 1 << 63:
        raise InputError(
            f"collision_group is {cfg.collision_group!r}",
            where,
            "give an integer of at most 64 bits",
        )
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
    if groups is not None and not (
        isinstance(groups, AbstractSet) and all(isinstance(group, str) for group in groups)
    ):
        raise InputError(f"usd_groups is {groups!r}", where, "give a set of group names")
    if cfg.disabled_rule is not None:
        check_kind("disabled_rule", cfg.disabled_rule, str, where)
    check_kind("material", cfg.material, Material, where)
    if cfg.triangle_materials is not None:
        check_kind("triangle_materials", cfg.triangle_materials, TriangleMaterials, where)
    if cfg.k_hydro is not None:
        check_stiffness("k_hydro", cfg.k_hydro, where)
    material = resolved_material(cfg)
    if sound.get(id(material)) is not material:
        check_material(material, where)
        sound[id(material)] = material


def sdf_options(cfg: ShapeConfig) -> SdfOptions:
    """The options of a configuration's signed distance field."""
    return SdfOptions(
        cfg.sdf_max_resolution,
        cfg.sdf_target_voxel_size,
        cfg.sdf_narrow_band_range,
        cfg.edge_sdf_iter,
    )


def check_length(name: str, value: float, where: str) -> None:
    """Raises InputError for a number that is not between zero and LENGTH_LIMIT."""
    try:
        fits = bool(0.0 <= value <= LENGTH_LIMIT)
    except (TypeError, ValueError):  # no number, or several
        fits = False
    if not fits:
        raise InputError(
            f"{name} is {value!r}",
            where,
            f"{name} must be at least zero and at most {LENGTH_LIMIT:g}",
        )


def check_stiffness(name: str, value: float, where: str) -> None:
    """Raises InputError for a stiffness that is not greater than zero; infinity marks a rigid
    shape."""
    try:
        fits = bool(0.0 < value <= STIFFNESS_LIMIT or value == math.inf)
    except (TypeError, ValueError):
        fits = False
    if not fits:
        fix = (
            f"give a number greater than zero, up to {STIFFNESS_LIMIT:g} N/m^3, or inf for a rigid"
            " shape"
        )
        raise InputError(f"{name} is {value!r}", where, fix)


def resolved_material(cfg: ShapeConfig) -> Material:
    """The material, with the configuration's own friction."""
    return cfg.material if cfg.friction is None else replace(cfg.material, friction=cfg.friction)


def mask_bits(value: int) -> int:
    """The 64 bits of a mask, as a non-negative integer."""
    return int(value) & ALL_BITS


def resolved_mask_both(cfg: ShapeConfig, static: bool) -> tuple[int, int] | None:
    """(group, mask) of 64 bits each, with defaults inserted; None for a shape without such
    masks."""
    if cfg.mask_both is None:
        return None
    group, mask = cfg.mask_both
    default_group = STATIC_GROUP if static else DEFAULT_GROUP
    return mask_bits(default_group if group is None else group), mask_bits(
        ALL_BITS if mask is None else mask
    )


def _check_masks(name: str, masks: tuple, where: str) -> None:
    may_default = name == "mask_both"
    if not isinstance(masks, tuple) or len(masks) != 2:
        raise InputError(f"{name} is {masks!r}", where, "give a pair of integers")
    for mask in masks:
        if mask is None and may_default:
            continue
        if mask is None or not is_integer(mask) or not -(1 << 63) <= mask <= ALL_BITS:
            raise InputError(
                f"{name} is {masks!r}", where, "give a pair of integers of at most 64 bits"
            )
