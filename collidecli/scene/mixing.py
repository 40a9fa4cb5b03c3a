"""A contact's parameters from its two surfaces: by combine modes, or by MuJoCo's rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import (
    MATERIAL_COLUMNS,
    MOTION_COLUMNS,
    OPTIONAL_COLUMNS,
    SOFT_MOTION_COLUMNS,
    Column,
)
from collidecli.scene.materials import Materials, PairMaterials
from collidecli.scene.model import Model
from collidecli.wording import did_you_mean

SMALLEST_FRICTION = 1e-5
"""Lower limit of every coefficient of a contact in MuJoCo (mjMINMU)."""
SMALLEST_WEIGHT = 1e-15
"""A solmix below this is zero (mjMINVAL)."""

RULE_COLUMNS = {
    "combine": (
        "friction",
        "static_friction",
        "torsional_friction",
        "rolling_friction",
        "restitution",
        "margin0",
        "margin1",
    ),
    "mujoco": (
        "friction",
        "torsional_friction",
        "rolling_friction",
        "condim",
        "friction5",
        "solref",
        "solimp",
        "margin0",
        "margin1",
    ),
}
"""The optional columns that each material rule defines."""

BROUGHT_BY = {
    "friction_scale": "--moment-matching",
    "contact_id": "--contact-ids",
    "stiffness": "--hydro-reduce",
    "area": "--hydro-reduce",
}
"""Optional columns that do not follow from two surfaces, and the option that writes them."""


SURFACE_COLUMNS = ("shape0", "shape1", *(column.name for column in MATERIAL_COLUMNS))
"""Columns that determine the surfaces of a contact; those of materials are not in every scene."""


def check_column_names(names: Sequence[str]) -> None:
    """Raises InputError for a name that is no optional column; the message lists the known ones."""
    known = [
        column.name
        for column in (*OPTIONAL_COLUMNS, *SOFT_MOTION_COLUMNS)
        if column.name not in (*BROUGHT_BY, *SURFACE_COLUMNS)
    ]
    for name in names:
        if name in SURFACE_COLUMNS[2:]:
            what = f"the column '{name}' is written where triangles have materials, and only there"
            raise InputError(what, "--columns", "leave it out")
        if name in BROUGHT_BY:
            raise InputError(
                f"another option writes the column '{name}'", "--columns", f"use {BROUGHT_BY[name]}"
            )
        if name not in known:
            hint = did_you_mean(name, known, "")
            fix = f"{hint} known: {', '.join(known)}".strip()
            raise InputError(f"there is no optional column '{name}'", "--columns", fix)


def chosen_columns(names: Sequence[str], rule: str) -> tuple[Column, ...]:
    """The optional columns of rigid contacts among `names`, each once, in the order of the file.

    Raises InputError for an unknown name, and for a column that the scene's material rule does not
    define.
    """
    check_column_names(names)
    of_motion = [column.name for column in (*MOTION_COLUMNS, *SOFT_MOTION_COLUMNS)]
    for name in names:
        if name not in (*RULE_COLUMNS[rule], *of_motion):
            what = f"the scene's material rule '{rule}' does not define a contact's {name}"
            raise InputError(
                what, "--columns", f"choose among: {', '.join((*RULE_COLUMNS[rule], *of_motion))}"
            )
    return tuple(column for column in OPTIONAL_COLUMNS if column.name in names)


@dataclass(frozen=True)
class OptionalColumns:
    """The selected optional columns, and the values of those that follow from two surfaces."""

    columns: tuple[Column, ...]
    mixing: ContactMixing

    @classmethod
    def of(cls, model: Model, names: Sequence[str]) -> OptionalColumns:
        """The columns `names` of a model's contacts. Raises InputError for an unknown or undefined
        column."""
        chosen = chosen_columns(names, model.material_rule)
        of_triangles = MATERIAL_COLUMNS if len(model.triangle_materials) else ()
        return cls((*chosen, *of_triangles), ContactMixing.of_model(model))

    def added(self, block: ContactBlock) -> ContactBlock:
        """The block with the columns of surfaces added; the block itself if there are none. A model
        with materials of triangles requires the block's columns of materials."""
        others = (*MOTION_COLUMNS, *MATERIAL_COLUMNS)
        wanted = [column for column in self.columns if column not in others]
        if not wanted:
            return block
        mixed = self.mixing.columns(wanted, block.columns)
        return replace(block, columns={**block.columns, **mixed})


@dataclass(frozen=True)
class ContactMixing:
    """The parameters of a model's contacts from their two surfaces.

    rule: of MATERIAL_RULES. materials: of S shapes. margin: float[S] [m]. forced: int32[K, 2],
    first < second. forced_margin: float[K] [m], NaN the shapes'. forced_material: of K pairs.
    of_triangles: M materials of triangles of meshes.
    """

    rule: str
    materials: Materials
    margin: np.ndarray
    forced: np.ndarray
    forced_margin: np.ndarray
    forced_material: PairMaterials
    of_triangles: Materials = field(default_factory=lambda: Materials.of([]))

    @classmethod
    def of_model(cls, model: Model) -> ContactMixing:
        forced = model.pair_filter.forced
        nothing = np.full(len(model.pair_filter.forced), np.nan)
        return cls(
            model.material_rule,
            model.shapes.material,
            model.shapes.margin,
            forced,
            model.forced_margin if len(model.forced_margin) else nothing,
            (
                model.forced_material
                if len(model.forced_material)
                else PairMaterials.of([None] * len(forced))
            ),
            model.triangle_materials.materials,
        )

    @cached_property
    def _surfaces(self) -> Materials:
        """The materials of the shapes, then those of triangles."""
        return self.materials.followed_by(self.of_triangles)

    def columns(
        self, wanted: Sequence[Column], rows: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Columns of contacts [n], each [n] or [n, width] of the column's type.

        rows: SURFACE_COLUMNS [n]; without those of materials every contact has those of its shapes.
        Every distinct pair is computed once: a block repeats its pairs cell after cell.
        """
        if not wanted:
            return {}
        keys = [rows[name] for name in SURFACE_COLUMNS if name in rows]
        new = np.ones(len(keys[0]), bool)
        new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        first = np.flatnonzero(new)
        key = np.zeros(len(first), np.int64)
        for side in (0, 1):
            key = key * len(self.margin) + rows[f"shape{side}"][first]
        for name in SURFACE_COLUMNS[2:]:
            if name in rows:
                # numbered anew, as products of the four counts may exceed 64 bits
                key = np.unique(key, return_inverse=True)[1] * (len(self.of_triangles) + 1)
                key += rows[name][first] + 1
        _, one, inverse = np.unique(key, return_index=True, return_inverse=True)
        values = self.of_pairs(*(key[first][one] for key in keys))
        row = np.repeat(inverse, np.diff(np.append(first, len(new))))
        return {c.name: values[c.name].astype(c.dtype)[row] for c in wanted}

    def of_pairs(
        self,
        shape0: np.ndarray,
        shape1: np.ndarray,
        material0: np.ndarray | None = None,
        material1: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """All parameters that the rule defines for pairs of shapes [n], in float64.

        material0, material1: [n], rows of `of_triangles` that replace the shapes' own materials;
        -1, as None, keeps those.
        """
        a = np.asarray(shape0, np.int64)
        b = np.asarray(shape1, np.int64)
        at = pair_rows(self.forced, len(self.margin), a, b)
        mix = combined if self.rule == "combine" else mixed_as_mujoco
        mixed = mix(self._surfaces, self._rows(a, material0), self._rows(b, material1))
        if self.rule == "mujoco":
            pair = self.forced_material
            forced_condim = _picked(pair.condim, at, 0)
            mixed["condim"] = np.where(forced_condim > 0, forced_condim, mixed["condim"])
            for name, source in (
                ("friction5", pair.friction),
                ("solref", pair.solref),
                ("solimp", pair.solimp),
            ):
                of_pair = _picked(source, at, np.nan)
                mixed[name] = np.where(np.isnan(of_pair), mixed[name], of_pair)
            mixed["friction5"] = np.maximum(mixed["friction5"], SMALLEST_FRICTION)
            for name, axis in (("friction", 0), ("torsional_friction", 2), ("rolling_friction", 3)):
                mixed[name] = mixed["friction5"][:, axis]
        # A forced pair's margin is the sum for both shapes: half of it for each.
        half = 0.5 * _picked(self.forced_margin.astype(np.float64), at, np.nan)
        for name, shape in (("margin0", a), ("margin1", b)):
            mixed[name] = np.where(np.isnan(half), self.margin[shape], half)
        return mixed

    def _rows(self, shape: np.ndarray, material: np.ndarray | None) -> np.ndarray:
        """int64[n]: rows of `_surfaces`."""
        if material is None:
            return shape
        return np.where(material < 0, shape, len(self.margin) + material.astype(np.int64))


def pair_rows(pairs: np.ndarray, count: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """int64[n]: row of each pair (a, b) in `pairs` [K, 2], -1 for others.

    pairs: rows below `count`, in any order, such as that of another program's file.
    """
    if not len(pairs):
        return np.full(len(a), -1)
    keys = pairs[:, 0].astype(np.int64) * count + pairs[:, 1]
    order = np.argsort(keys)
    wanted = a.astype(np.int64) * count + b
    at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
    return np.where(keys[at] == wanted, at, -1)


def combined(materials: Materials, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """Coefficients of pairs of rows a, b [n] by their combine modes; static friction is at least
    the dynamic one.

    Of two modes the later one in COMBINE_MODES applies. Torsional and rolling friction have the
    mode of friction.
    """
    values = {}
    for names, mode in (
        (
            ("friction", "static_friction", "torsional_friction", "rolling_friction"),
            materials.friction_combine,
        ),
        (("restitution",), materials.restitution_combine),
    ):
        later = np.maximum(mode[a], mode[b])
        for name in names:
            x, y = getattr(materials, name)[a], getattr(materials, name)[b]
            values[name] = np.choose(
                later, (0.5 * (x + y), np.minimum(x, y), x * y, np.maximum(x, y))
            )
    values["static_friction"] = np.maximum(values["static_friction"], values["friction"])
    return values


def mixed_as_mujoco(materials: Materials, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """condim, friction5 [n, 5], solref [n, 2], solimp [n, 5] of pairs of rows a, b [n].

    Of different priorities only the surface of the higher one applies. For equal priorities the
    contact has the larger condim and coefficients, solver parameters weighted by solmix, and the
    element-wise minimum of solref if the first number of either is negative or zero. Source:
    MuJoCo, mj_contactParam; friction is not yet raised to SMALLEST_FRICTION.
    """
    difference = np.sign(materials.priority[a].astype(np.int64) - materials.priority[b])
    weight_a = materials.solmix[a]
    weight_b = materials.solmix[b]
    has_a = weight_a >= SMALLEST_WEIGHT
    has_b = weight_b >= SMALLEST_WEIGHT
    total = np.where(has_a & has_b, weight_a + weight_b, 1.0)
    fraction = np.select([has_a & has_b, has_a, has_b], [weight_a / total, 1.0, 0.0], 0.5)[:, None]

    def decided(x: np.ndarray, y: np.ndarray, together: np.ndarray) -> np.ndarray:
        sign = difference.reshape(-1, *(1,) * (x.ndim - 1))
        return np.where(sign > 0, x, np.where(sign < 0, y, together))

    ref_a = materials.solref[a]
    ref_b = materials.solref[b]
    standard = ((ref_a[:, 0] > 0.0) & (ref_b[:, 0] > 0.0))[:, None]
    solref = np.where(
        standard, fraction * ref_a + (1.0 - fraction) * ref_b, np.minimum(ref_a, ref_b)
    )
    imp_a = materials.solimp[a]
    imp_b = materials.solimp[b]
    three = np.stack(
        [materials.friction, materials.torsional_friction, materials.rolling_friction], axis=1
    )
    condim_a = materials.condim[a]
    condim_b = materials.condim[b]
    return {
        "condim": decided(condim_a, condim_b, np.maximum(condim_a, condim_b)),
        "friction5": decided(three[a], three[b], np.maximum(three[a], three[b]))[
            :, [0, 0, 1, 2, 2]
        ],
        "solref": decided(ref_a, ref_b, solref),
        "solimp": decided(imp_a, imp_b, fraction * imp_a + (1.0 - fraction) * imp_b),
    }


def _picked(values: np.ndarray, at: np.ndarray, nothing: float) -> np.ndarray:
    """Rows `at` of values [K] or [K, width]; `nothing` for an `at` of -1."""
    if not len(values):
        return np.full((len(at), *values.shape[1:]), nothing)
    exists = (at >= 0).reshape(-1, *(1,) * (values.ndim - 1))
    return np.where(exists, values[at], nothing)
