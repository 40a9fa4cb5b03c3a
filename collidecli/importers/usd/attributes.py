"""Table of the attributes that simulators write on USD colliders: use, unit and permitted values.

A row defines the use of an attribute. Names that are not in the table are classified by namespace: those of mesh
cooking are kept, those of other parts of a simulator do not concern collision, all others are unknown.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pxr import Usd

from collidecli.errors import InputError
from collidecli.importers.usd.stage import REST_TIME
from collidecli.numerics.matrices import integer_power

KEPT = "kept"
"""Read, checked and kept by the import; it affects no contact."""
IGNORED = "ignored"
"""Known; it does not concern collision geometry."""


@dataclass(frozen=True)
class Attribute:
    """A row of the table.

    use: the field of a shape that it sets, KEPT or IGNORED. kind: float, int, bool or str. The float -inf means the
    simulator's default: the attribute is then treated as not authored.
    length, mass: powers of the stage's metersPerUnit and kilogramsPerUnit that convert a value to SI.
    least: minimum; exclusive with `above`. choices: values of a str.
    inherited: a prim above the collider, up to its body, may define it for its descendants.
    """

    name: str
    use: str
    kind: type = float
    length: int = 0
    mass: int = 0
    least: float = -math.inf
    above: bool = False
    choices: tuple[str, ...] = ()
    inherited: bool = False


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
    Attribute("newton:maxHullVertices", KEPT, int, least=-1),
    Attribute("newton:sdfMaxResolution", KEPT, int, least=0, above=True),
    Attribute("newton:sdfTargetVoxelSize", KEPT, length=1, least=0.0, above=True),
    Attribute("newton:sdfNarrowBandInner", KEPT, length=1),
    Attribute("newton:sdfNarrowBandOuter", KEPT, length=1),
    Attribute("newton:sdfPadding", KEPT, length=1, least=0.0),
    Attribute("newton:sdfTextureFormat", KEPT, str, choices=("float32", "uint16", "uint8")),
    Attribute("newton:hydroelasticEnabled", KEPT, bool),
    Attribute("newton:hydroelasticStiffness", KEPT, length=-2, mass=1, least=0.0, above=True),
    Attribute("mjc:maxhullvert", KEPT, int, least=-1),
    Attribute("collide:twoSided", KEPT, bool),
    Attribute("newton:massModel", IGNORED, str),
    Attribute("newton:shellThickness", IGNORED),
    Attribute("physxCollision:torsionalPatchRadius", IGNORED),
    Attribute("physxCollision:minTorsionalPatchRadius", IGNORED),
)

ROWS = {row.name: row for row in TABLE}
SOLVER_ROWS = ("contact_ke", "contact_kd", "contact_kf", "contact_ka")
"""Uses of the table that are fields of a shape's material."""

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

    `newton:` attributes are in one flat namespace; a longer name (`newton:mpm:...`) belongs to another part of Newton.
    """
    if name in ROWS or name.startswith(MESH_NAMESPACES):
        return False
    namespace, _, rest = name.partition(":")
    if namespace == "newton":
        return ":" not in rest
    if namespace == "collide":
        return True
    return namespace.startswith("physx") and "Collision" in namespace


def authored(prim: Usd.Prim) -> dict[str, Usd.Attribute]:
    """The prim's own attributes of simulators, by name: `newton:`, `physx...:`, `mjc:` and `collide:`."""
    names = [name for name in prim.GetAuthoredPropertyNames() if name.startswith(NAMESPACES)]
    found = {name: prim.GetProperty(name) for name in names}
    return {n: p for n, p in found.items() if isinstance(p, Usd.Attribute) and p.HasAuthoredValue()}


def read(row: Attribute, attribute: Usd.Attribute, where: str, units: tuple[float, float]) -> Any:
    """The value of an authored attribute in SI, or None where it means the simulator's default.

    units: the stage's metersPerUnit and kilogramsPerUnit.
    Raises InputError at `where` for a value of another kind, out of range, or that changes over time.
    """
    if attribute.ValueMightBeTimeVarying():
        raise InputError(f"{row.name} changes over time", where, "give it one value")
    value = attribute.Get(REST_TIME)
    if value is None or (isinstance(value, float) and value == -math.inf):
        return None
    if row.kind is bool or row.kind is str:
        return _word(row, value, where)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{row.name} is {value!r}", where, "give a number")
    if row.kind is int and value != int(value if math.isfinite(value) else 0):
        raise InputError(f"{row.name} is {value!r}", where, "give an integer")
    if not math.isfinite(value) or value < row.least or (row.above and value == row.least):
        bound = f" {'above' if row.above else 'of at least'} {row.least:g}" if math.isfinite(row.least) else ""
        raise InputError(f"{row.name} is {value:g}", where, f"give a finite number{bound}")
    if row.kind is int:
        return int(value)
    return value * integer_power(units[0], row.length) * integer_power(units[1], row.mass)


def _word(row: Attribute, value: Any, where: str) -> Any:
    if not isinstance(value, row.kind):
        raise InputError(f"{row.name} is {value!r}", where, f"give a {'bool' if row.kind is bool else 'token'}")
    if row.choices and value not in row.choices:
        raise InputError(f"{row.name} is '{value}'", where, f"give one of {', '.join(row.choices)}")
    return value
