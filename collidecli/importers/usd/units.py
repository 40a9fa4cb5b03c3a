"""The stage's length unit and up axis, and layers that were made with others."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import math
import os

from pxr import Usd, UsdGeom

from collidecli.errors import InputError

ROUNDING = 1e-9
"""Relative: units written as decimal fractions agree to this."""


def metres_per_unit(stage: Usd.Stage, file: str, warnings: list[str]) -> float:
    """Length of a stage unit [m]; USD's own default where none is authored, with a warning.

    Raises InputError for a unit that is no length.
    """
    value = float(UsdGeom.GetStageMetersPerUnit(stage))
    if not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
        warnings.append(f"the stage has no metersPerUnit; USD's default is taken: one unit is {value:g} m")
    if not (math.isfinite(value) and value > 0.0):
        raise InputError(f"metersPerUnit is {value:g}", file, "give the length of a unit in metres")
    return value


def foreign_layers(stage: Usd.Stage) -> list[str]:
    """A warning for each layer that was made in another unit or with another axis up: USD converts neither."""
    unit, up = float(UsdGeom.GetStageMetersPerUnit(stage)), str(UsdGeom.GetStageUpAxis(stage))
    own = {stage.GetRootLayer(), stage.GetSessionLayer()}
    found = []
    for layer in sorted(set(stage.GetUsedLayers()) - own, key=lambda layer: layer.identifier):
        said = layer.pseudoRoot
        differs = []
        if said.HasInfo("metersPerUnit") and not math.isclose(
            theirs := float(said.GetInfo("metersPerUnit")), unit, rel_tol=ROUNDING
        ):
            differs.append(f"metersPerUnit = {theirs:g}, the scene {unit:g}")
        if said.HasInfo("upAxis") and (axis := str(said.GetInfo("upAxis"))) != up:
            differs.append(f'upAxis = "{axis}", the scene "{up}"')
        if differs:
            name = os.path.basename(layer.identifier)
            found.append(
                f"the layer {name} has {' and '.join(differs)}; USD does not convert: it is taken as it stands"
            )
    return found
