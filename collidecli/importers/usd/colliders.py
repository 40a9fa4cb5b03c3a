"""Simulators' attributes of a stage's colliders as margin, gap, groups and masks.

PhysX creates a contact where the distance of the surfaces is below the sum of the two
contactOffsets, and separates shapes by the sum of their restOffsets. restOffset is therefore a
margin, and contactOffset - margin a gap that a pair adds: margins and gaps of a pair then add up to
its two contactOffsets. MuJoCo adds gaps too. The gap rule of a stage with such an attribute is
therefore "sum"; its other colliders have half the default gap, so that contacts of two of them are
reported up to the default gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pxr import Usd, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.collider_notes import Notes
from collidecli.importers.mujoco_margins import (
    DEFLATED,
    is_deflated,
    legacy_note,
    margin_and_gap,
    may_be_legacy,
)
from collidecli.importers.usd.deformables import DEFORMABLE, RADIUS
from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.typed_attributes import (
    FLAG,
    NUMBER,
    ONE_VALUE,
    SIMULATOR_VALUE,
    TOKEN,
    WHOLE,
    or_fallback,
    read_constant,
    read_value,
)
from collidecli.numerics.products import integer_power
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.option_values import LEGACY_MARGIN
from collidecli.scene.shape_config import ShapeConfig
from collidecli.wording import first_and_count

KEPT = "kept"
"""Read, checked and kept by the import; it affects no contact."""
IGNORED = "ignored"
"""Known; it does not concern collision geometry."""


@dataclass(frozen=True)
class Attribute:
    """A row of the table.

    use: the field of a shape that it sets, KEPT or IGNORED. kind: float, int, bool or str. The
    float -inf means the simulator's default: the attribute is then treated as not authored. length,
    mass: powers of the stage's metersPerUnit and kilogramsPerUnit that convert a value to SI.
    least: minimum; exclusive with `above`. most: maximum. choices: values of a str. inherited: a
    prim above the collider, up to its body, may define it for its descendants. infinite: may be
    inf.
    """

    name: str
    use: str
    kind: type = float
    length: int = 0
    mass: int = 0
    least: float = -math.inf
    above: bool = False
    most: float = math.inf
    choices: tuple[str, ...] = ()
    inherited: bool = False
    infinite: bool = False


TABLE = (
    Attribute("newton:contactMargin", "margin", length=1, least=0.0, inherited=True),
    Attribute("newton:contact_thickness", "margin", length=1, least=0.0, inherited=True),
    Attribute("newton:contactGap", "gap", length=1, least=0.0, inherited=True),
    Attribute("newton:collision_group", "collision_group", int, inherited=True),
    Attribute("newton:world", "world", int, least=-1, inherited=True),
    Attribute("newton:contact_ke", "contact_ke", mass=1, least=0.0, inherited=True),
    Attribute("newton:contact_kd", "contact_kd", mass=1, least=0.0, inherited=True),
    Attribute("newton:contact_kf", "contact_kf", mass=1, least=0.0, inherited=True),
    Attribute("newton:contact_ka", "contact_ka", length=1, least=0.0, inherited=True),
    Attribute("physxCollision:contactOffset", "contact_offset", length=1, least=0.0),
    Attribute("physxCollision:restOffset", "rest_offset", length=1),
    Attribute("mjc:margin", "mjc_margin", length=1, least=0.0),
    Attribute("mjc:gap", "mjc_gap", length=1, least=0.0),
    Attribute("mjc:contype", "contype", int),
    Attribute("mjc:conaffinity", "conaffinity", int),
    Attribute("newton:hydroelasticEnabled", "is_hydroelastic", bool),
    Attribute(
        "newton:hydroelasticStiffness",
        "k_hydro",
        length=-2,
        mass=1,
        least=0.0,
        above=True,
        infinite=True,
    ),
    Attribute("newton:maxHullVertices", KEPT, int, least=-1),
    Attribute("newton:sdfMaxResolution", KEPT, int, least=0, above=True),
    Attribute("newton:sdfTargetVoxelSize", KEPT, length=1, least=0.0, above=True),
    Attribute("newton:sdfNarrowBandInner", KEPT, length=1),
    Attribute("newton:sdfNarrowBandOuter", KEPT, length=1),
    Attribute("newton:sdfPadding", KEPT, length=1, least=0.0),
    Attribute("newton:sdfTextureFormat", KEPT, str, choices=("float32", "uint16", "uint8")),
    Attribute("mjc:maxhullvert", KEPT, int, least=-1),
    Attribute("collide:twoSided", KEPT, bool),
    Attribute("collide:solid", KEPT, bool),
    Attribute("newton:massModel", IGNORED, str),
    Attribute("newton:shellThickness", IGNORED),
    Attribute("physxCollision:torsionalPatchRadius", IGNORED),
    Attribute("physxCollision:minTorsionalPatchRadius", IGNORED),
)
ROWS = {row.name: row for row in TABLE}
KINDS = {float: NUMBER, int: WHOLE, bool: FLAG, str: TOKEN}
"""Kinds of values by `Attribute.kind`; an integer may be authored as a float."""
SOLVER_ROWS = ("contact_ke", "contact_kd", "contact_kf", "contact_ka")
"""Uses of the table that are fields of a shape's material."""
HYDRO_ROWS = ("is_hydroelastic", "k_hydro")
"""Uses of the table that are fields of a shape's configuration."""
NAMESPACES = ("newton:", "physx", "mjc:", "collide:")
MESH_NAMESPACES = (
    "physxConvexHullCollision:",
    "physxConvexDecompositionCollision:",
    "physxTriangleMeshCollision:",
    "physxTriangleMeshSimplificationCollision:",
    "physxSDFMeshCollision:",
    "physxSphereFillCollision:",
)
"""Parameters of PhysX' mesh cooking; kept as authored."""


def is_unknown(name: str) -> bool:
    """Whether an authored attribute may concern collision and is not in the table.

    `newton:` attributes are in one flat namespace; a longer name (`newton:mpm:...`) belongs to
    another part of Newton.
    """
    if name in ROWS or name == DEFORMABLE or name.startswith(MESH_NAMESPACES):
        return False
    namespace, _, rest = name.partition(":")
    if namespace in ("newton", "collide"):
        return namespace == "collide" or ":" not in rest
    return namespace.startswith("physx") and "Collision" in namespace


def authored(prim: Usd.Prim) -> dict[str, Usd.Attribute]:
    """The prim's own attributes of simulators, by name: `newton:`, `physx...:`, `mjc:` and
    `collide:`."""
    names = [name for name in prim.GetAuthoredPropertyNames() if name.startswith(NAMESPACES)]
    properties = {name: prim.GetProperty(name) for name in names}
    return {
        n: p for n, p in properties.items() if isinstance(p, Usd.Attribute) and p.HasAuthoredValue()
    }


def read(row: Attribute, attribute: Usd.Attribute, where: str, units: tuple[float, float]) -> Any:
    """The value of an authored attribute in SI, or None where it means the simulator's default.

    units: the stage's metersPerUnit and kilogramsPerUnit. Raises InputError at `where` for a value
    of another kind, out of range, or that changes over time.
    """
    value = read_constant(attribute, KINDS[row.kind], where, "give it one value")
    if value is None or (isinstance(value, float) and value == -math.inf):
        return None
    if row.kind not in (bool, str):
        return in_si(row, value, where, units)
    if row.choices and value not in row.choices:
        raise InputError(f"{row.name} is '{value}'", where, f"give one of {', '.join(row.choices)}")
    return value


def in_si(row: Attribute, value: Any, where: str, units: tuple[float, float]) -> Any:
    """A number in SI, see `read`. Raises InputError at `where` for a value out of range."""
    if row.kind is int and value != int(value if math.isfinite(value) else 0):
        raise InputError(f"{row.name} is {value!r}", where, "give an integer")
    if row.infinite and value == math.inf:
        return value
    if (
        not math.isfinite(value)
        or not row.least <= value <= row.most
        or (row.above and value == row.least)
    ):
        bound = (
            f" {'above' if row.above else 'of at least'} {row.least:g}"
            if math.isfinite(row.least)
            else ""
        )
        fix = f"give a finite number{bound}{', or inf' if row.infinite else ''}"
        fix = (
            f"give a number from {row.least:g} to {row.most:g}" if math.isfinite(row.most) else fix
        )
        raise InputError(f"{row.name} is {value:g}", where, fix)
    if row.kind is int:
        return int(value)
    return value * integer_power(units[0], row.length) * integer_power(units[1], row.mass)


MASK_DEFAULT = 1
"""MuJoCo's contype and conaffinity where none is authored."""
TRIGGER = "PhysxTriggerAPI"
OF_NEWTON = 0
OF_MUJOCO = 2
"""Indices of Newton's and MuJoCo's values in those of Newton, PhysX and MuJoCo."""


class ColliderAttributes:
    """Reads and checks the attributes of every collider of a stage; `importers/usd/colliders.py`
    has the table.

    owner_of: collider's path to its body's, "" without a body. metres_per_unit: the stage's.
    Deformable prims are among the colliders. kept: collider's path to {attribute: value in SI}, of
    attributes that affect no contact. gap_sources: of the gaps of enabled colliders, which a
    pair adds; indices such as OF_NEWTON.
    switched: paths of colliders that are enabled and disabled over time.
    margin_meaning: of mjc:margin and mjc:gap, see `mujoco_margins`. Raises InputError with the prim
    for an invalid value; warns once per name of attributes without effect.
    """

    def __init__(
        self,
        physics: Physics,
        owner_of: Mapping[str, str],
        metres_per_unit: float,
        margin_meaning: str = "",
    ) -> None:
        self._physics = physics
        self._owner_of = owner_of
        self._units = metres_per_unit, float(UsdPhysics.GetStageKilogramsPerUnit(physics.stage))
        self._margin_meaning = margin_meaning
        self._cache: dict[str, tuple[dict[str, Any], list[str]]] = {}
        self._noted = Notes()
        self.kept: dict[str, dict[str, Any]] = {}
        every = (*physics.shapes, *physics.deformables)
        self.switched: list[str] = []
        self._enabled = {path: self._is_enabled(path) for path in every}
        self._values = {path: self._of_collider(path) for path in every}
        self._cache.clear()
        self.gap_sources: set[int] = set()
        self._legacy: list[tuple[str, float]] = []
        self._offsets = {path: self._offsets_of(path) for path in every}
        for path in physics.deformables:
            self._check_particles(path)
        self._masked = any(
            "contype" in values or "conaffinity" in values for values in self._values.values()
        )
        physics.warnings += [*self._noted.warnings(), *self._legacy_notes()]

    def config(self, path: str, base: ShapeConfig, default_gap: float) -> ShapeConfig:
        """`base` with the collider's margin, gap, signed group, masks, stiffness and the rule that
        disables it."""
        values = self._values[path]
        margin, gap = self._offsets[path]
        if gap is None and base.gap is None and self.gap_sources:
            # Newton's default is of each shape; PhysX and MuJoCo have none of that kind
            gap = default_gap if OF_NEWTON in self.gap_sources else 0.5 * default_gap
        changed: dict[str, Any] = {
            "margin": margin,
            "gap": gap,
            "collision_group": values.get("collision_group"),
        }
        changed |= {name: values.get(name) for name in HYDRO_ROWS}
        if self._masked:
            changed["mask_either"] = tuple(
                values.get(name, MASK_DEFAULT) for name in ("contype", "conaffinity")
            )
        changed["disabled_rule"] = self._disabled_rule(path)
        changed["is_trigger"] = self._is_trigger(path) or None
        return base.changed(**{name: value for name, value in changed.items() if value is not None})

    def solver_parameters(self, path: str) -> dict[str, float]:
        """contact_ke, contact_kd, contact_kf [N/m, N s/m], contact_ka [m], those that are
        authored."""
        values = self._values[path]
        return {name: values[name] for name in SOLVER_ROWS if name in values} if values else {}

    def world(self, path: str) -> int | None:
        """`newton:world` of a collider; None where it is not authored, or -1, every world."""
        world = self._values[path].get("world")
        return None if world == -1 else world

    def _of_collider(self, path: str) -> dict[str, Any]:
        """Value by use, of the nearest prim with a value; on one prim in the table's order."""
        values: dict[str, Any] = {}
        prim = self._physics.prim(path)
        owner = self._owner_of.get(path, "")
        authored_values, unknown = self._own(prim)
        for name in unknown:
            if name != RADIUS or path not in self._physics.deformables:
                self._noted.add(f"{name} is unknown and has no effect", path)
        kept = {
            name: value
            for name, value in authored_values.items()
            if name not in ROWS or ROWS[name].use == KEPT
        }
        if kept:
            self.kept[path] = kept
        for row in TABLE if authored_values else ():
            if row.name in authored_values and row.use not in (KEPT, IGNORED):
                values.setdefault(row.use, authored_values[row.name])
        while owner and str(prim.GetPath()) != owner and not prim.IsPseudoRoot():
            prim = prim.GetParent()
            above, _ = self._own(prim)
            for row in TABLE if above else ():
                if row.inherited and row.name in above:
                    values.setdefault(row.use, above[row.name])
        return values

    def _own(self, prim: Usd.Prim) -> tuple[dict[str, Any], list[str]]:
        """Attributes of a prim, and names of unknown ones; those of an instance proxy are its
        prototype's."""
        key = str((prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim).GetPath())
        if key in self._cache:
            return self._cache[key]
        where = self._physics.where(str(prim.GetPath()))
        values, unknown = self._cache[key] = {}, []
        for name, attribute in authored(prim).items():
            row = ROWS.get(name)
            if row is None:
                if is_unknown(name):
                    unknown.append(name)
                elif not name.startswith("mjc:") and "Collision:" in name:
                    values[name] = read_value(attribute, SIMULATOR_VALUE, where)
            elif row.use != IGNORED:
                value = read(row, attribute, where, self._units)
                if value is not None:
                    values[name] = value
        return values, unknown

    def _offsets_of(self, path: str) -> tuple[float | None, float | None]:
        """(margin, gap) [m], None where nothing is authored: Newton's, else PhysX's, else
        MuJoCo's."""
        values_of_prim = self._values[path]
        if not values_of_prim:
            return None, None
        rest = values_of_prim.get("rest_offset")
        contact = values_of_prim.get("contact_offset")
        if rest is not None and rest < 0.0:
            what = (
                "physxCollision:restOffset is negative: surfaces are not deflated here; the"
                " contacts are PhysX's, "
            )
            self._noted.add(f"{what}their distances those of the plain surfaces", path)
            rest = 0.0
        mjc_margin, mjc_gap = self._of_mujoco(path)
        margins = (values_of_prim.get("margin"), rest, mjc_margin)
        margin, _ = self._first(
            path, margins, ("newton:contactMargin", "physxCollision:restOffset", "mjc:margin")
        )
        ahead = None if contact is None else contact - (margin or 0.0)
        gaps = (values_of_prim.get("gap"), ahead, mjc_gap)
        gap, source = self._first(
            path, gaps, ("newton:contactGap", "physxCollision:contactOffset", "mjc:gap")
        )
        if gap is not None and gap < 0.0:
            what = (
                f"physxCollision:contactOffset ({contact:g} m) is less than the margin"
                f" ({margin:g} m)"
            )
            fix = "give a contactOffset of at least restOffset"
            raise InputError(what, self._physics.where(path), fix)
        if source == OF_MUJOCO:
            self._note_margin(path)
        if source >= 0 and self._enabled[path] and path not in self._physics.deformables:
            self.gap_sources.add(source)
        return margin, gap

    def _of_mujoco(self, path: str) -> tuple[float | None, float | None]:
        """mjc:margin and mjc:gap [m] in the meaning of a shape's margin and gap; None where none is
        authored."""
        margin, gap = (self._values[path].get(name) for name in ("mjc_margin", "mjc_gap"))
        # without a gap both meanings are equal
        if gap is None or self._margin_meaning != LEGACY_MARGIN:
            return margin, gap
        inflation, ahead = margin_and_gap(margin or 0.0, gap, self._margin_meaning)
        return None if margin is None else inflation, ahead

    def _note_margin(self, path: str) -> None:
        """Notes a collider with MuJoCo's margin or gap whose meaning is doubtful, or whose surface
        is deflated."""
        margin, gap = (self._values[path].get(name) or 0.0 for name in ("mjc_margin", "mjc_gap"))
        if may_be_legacy(margin, gap, self._margin_meaning) and self._enabled[path]:
            self._legacy.append((path, margin))
        if is_deflated(margin, gap, self._margin_meaning):
            self._noted.add(DEFLATED, path)

    def _legacy_notes(self) -> list[str]:
        """The note about colliders whose margin may be of the meaning before MuJoCo 3.9."""
        if not self._legacy:
            return []
        paths = [f"<{path}>" for path, _ in self._legacy]
        return [f"{first_and_count(paths)}: {legacy_note(self._legacy[0][1])}"]

    def _first(
        self, path: str, values: tuple[float | None, ...], names: tuple[str, ...]
    ) -> tuple[float | None, int]:
        """The first authored value and its index, -1 for none; adds a warning for other values."""
        present = [index for index, value in enumerate(values) if value is not None]
        for index in present[1:]:
            if values[index] != values[present[0]]:
                self._noted.add(
                    f"{names[index]} is ignored where {names[present[0]]} is authored", path
                )
        return (values[present[0]], present[0]) if present else (None, -1)

    def _is_enabled(self, path: str) -> bool:
        attribute = UsdPhysics.CollisionAPI(self._physics.prim(path)).GetCollisionEnabledAttr()
        if not attribute:  # a deformable prim need not be a collider
            return True
        if attribute.ValueMightBeTimeVarying() and path not in self._physics.deformables:
            self.switched.append(path)
            return True
        value = read_constant(attribute, FLAG, self._physics.where(path), ONE_VALUE)
        return bool(or_fallback(value, attribute))

    def _check_particles(self, path: str) -> None:
        """Refuses what a deformable prim cannot have, and notes what has no effect on particles."""
        values = self._values[path]
        for use, fix in (
            ("gap", "leave it out: --soft-gap is the distance of all contacts of particles"),
            ("is_hydroelastic", "leave it out: particles have no pressure field"),
        ):
            if values.get(use):
                name = next(row.name for row in TABLE if row.use == use)
                raise InputError(
                    f"{name} of a deformable prim is not handled", self._physics.where(path), fix
                )
        for use in ("contact_offset", "mjc_gap", *SOLVER_ROWS, "k_hydro"):
            if use in values:
                name = next(row.name for row in TABLE if row.use == use)
                self._noted.add(f"{name} has no effect on particles", path)

    def _disabled_rule(self, path: str) -> str | None:
        if not self._enabled[path]:
            return "physics:collisionEnabled = false"
        if path in self._physics.deformables and self._is_trigger(path):
            return f"{TRIGGER}: particles are no volume"
        return None

    def _is_trigger(self, path: str) -> bool:
        return TRIGGER in self._physics.prim(path).GetPrimTypeInfo().GetAppliedAPISchemas()


def set_gap_rule(builder: ModelBuilder, attributes: ColliderAttributes, file: str) -> None:
    """Sets the builder's gap rule to "sum" where the stage's colliders have gaps: those of Newton,
    PhysX and MuJoCo add up.

    Raises InputError for a builder that has shapes with another rule.
    """
    if not attributes.gap_sources or builder.gap_rule == "sum":
        return
    if builder.shape_count:
        what = (
            "the gaps of Newton, PhysX and MuJoCo add up, and the builder's gap_rule is"
            f" {builder.gap_rule!r}"
        )
        raise InputError(what, file, 'set gap_rule = "sum" before the first shape is added')
    builder.gap_rule = "sum"
