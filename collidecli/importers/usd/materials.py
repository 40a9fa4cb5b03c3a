"""Physics materials that are bound to USD colliders, as surface parameters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from pxr import Usd, UsdPhysics, UsdShade

from collidecli.errors import InputError
from collidecli.importers.usd.stage import REST_TIME, Physics
from collidecli.numerics.matrices import integer_power
from collidecli.scene.material import COMBINE_MODES, MATERIAL_LIMIT, Material

PURPOSE = "physics"
"""Purpose of the bindings with precedence over those of all purposes."""

_NUMBERS = (
    ("physics:dynamicFriction", "friction", 0, 0, MATERIAL_LIMIT),
    ("physics:staticFriction", "static_friction", 0, 0, MATERIAL_LIMIT),
    ("physics:restitution", "restitution", 0, 0, 1.0),
    ("newton:torsionalFriction", "torsional_friction", 1, 0, MATERIAL_LIMIT),
    ("newton:rollingFriction", "rolling_friction", 1, 0, MATERIAL_LIMIT),
    ("newton:contactStiffness", "contact_ke", 0, 1, MATERIAL_LIMIT),
    ("newton:contactDamping", "contact_kd", 0, 1, MATERIAL_LIMIT),
    ("newton:contactFrictionGain", "contact_kf", 0, 1, MATERIAL_LIMIT),
    ("newton:contactAdhesion", "contact_ka", 1, 0, MATERIAL_LIMIT),
)
"""Attribute, field, powers of metersPerUnit and kilogramsPerUnit in its unit, and its maximum."""

_MODES = (
    ("physxMaterial:frictionCombineMode", "friction_combine"),
    ("physxMaterial:restitutionCombineMode", "restitution_combine"),
)


class PhysicsMaterials:
    """Reads the materials of one stage's colliders, each material once.

    The material is the one that UsdShade resolves for the purpose `physics`, else for all purposes: by the collider's
    own binding, a collection's or an ancestor's, by strength. It is used where PhysicsMaterialAPI is applied to it.
    metres_per_unit: the stage's. Warnings are added to `physics`.
    """

    def __init__(self, physics: Physics, metres_per_unit: float) -> None:
        self._physics = physics
        self._units = (metres_per_unit, float(UsdPhysics.GetStageKilogramsPerUnit(physics.stage)))
        self._read: dict[str, dict[str, float | str]] = {}
        self._surfaces: dict[tuple[Material, str, tuple[tuple[str, float], ...]], Material] = {}
        self._noted: set[str] = set()

    def of_shape(self, path: str, default: Material, own: Mapping[str, float] | None = None) -> Material:
        """The surface of a collider: `default`, overridden by the collider's fields `own`, and those by its material.

        A material always defines friction and restitution. own: fields by name, for example contact_ke.
        Raises InputError with the material for a number out of range and an unknown combine mode.
        """
        prim = self.bound(path)
        key = "" if prim is None else str(prim.GetPath())
        if prim is not None:
            if key not in self._read:
                self._read[key] = self._values(prim)
            self._note_unparsed(path, key)
        inputs = default, key, tuple((own or {}).items())
        if inputs not in self._surfaces:
            self._surfaces[inputs] = replace(default, **{**(own or {}), **self._read.get(key, {})})
        return self._surfaces[inputs]

    def bound(self, path: str) -> Usd.Prim | None:
        """The prim of the physics material bound to a collider, or None."""
        binding = UsdShade.MaterialBindingAPI(self._physics.prim(path))
        material, _ = binding.ComputeBoundMaterial(PURPOSE)
        if not material:
            target = binding.GetDirectBinding(PURPOSE).GetMaterialPath()
            if target:
                self._physics.warnings.append(f"<{path}>: the material binding names <{target}>, which does not exist")
            return None
        prim = material.GetPrim()
        return prim if prim.HasAPI(UsdPhysics.MaterialAPI) else None

    def _note_unparsed(self, path: str, material: str) -> None:
        """Warns of an inherited binding, which pxr's physics parser and simulators that use it ignore."""
        descriptor = self._physics.shapes.get(path)
        if material in self._noted or descriptor is None or material in [str(each) for each in descriptor.materials]:
            return
        self._noted.add(material)
        self._physics.warnings.append(
            f"<{path}>: has the material <{material}> though MaterialBindingAPI is not applied to it; "
            "simulators that read materials by UsdPhysics' parser do not"
        )

    def _values(self, prim: Usd.Prim) -> dict[str, float | str]:
        found: dict[str, float | str] = {}
        for name, field, length, mass, highest in _NUMBERS:
            value = self._value(prim, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise InputError(f"{name} is {value!r}", self._where(prim), "give a number")
            if value == -math.inf and name.startswith("newton:"):
                continue  # the schema's value for an unset attribute
            if not 0.0 <= value <= highest:
                raise InputError(f"{name} is {value:g}", self._where(prim), f"give a number from 0 to {highest:g}")
            to_si = integer_power(self._units[0], length), integer_power(self._units[1], mass)
            found[field] = float(value) * to_si[0] * to_si[1]
        for name, field in _MODES:
            mode = self._value(prim, name)
            if mode is not None:
                if mode not in COMBINE_MODES:
                    raise InputError(
                        f"{name} is {mode!r}", self._where(prim), f"give one of: {', '.join(COMBINE_MODES)}"
                    )
                found[field] = str(mode)
        return found

    def _value(self, prim: Usd.Prim, name: str):
        attribute = prim.GetAttribute(name)
        if not attribute:
            return None
        if attribute.ValueMightBeTimeVarying():
            self._physics.warnings.append(f"<{prim.GetPath()}>: {name} changes over time; its first value is used")
        return attribute.Get(REST_TIME)

    def _where(self, prim: Usd.Prim) -> str:
        return self._physics.where(str(prim.GetPath()))
