"""Sensors of a USD stage: contact reports of PhysX and contact sensors of Isaac Sim."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from pxr import Usd

from collidecli.errors import InputError
from collidecli.importers.usd.stage import diagnostics
from collidecli.importers.usd.typed_attributes import (
    FLAG,
    NUMBER,
    REST_TIME,
    VECTOR,
    read_authored,
)
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.numerics.poses import inverse_poses, moved_points
from collidecli.numerics.products import matvec
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.sensor_volumes import SPHERE, Volume
from collidecli.scene.sensors import (
    CONTACT,
    POSITION,
    Chosen,
    DeclaredSensors,
    Placement,
    Region,
    Sensor,
    Side,
    any_sensor,
)
from collidecli.wording import first_and_count

REPORT = "PhysxContactReportAPI"
REPORT_THRESHOLD = "physxContactReport:threshold"
REPORT_PAIRS = "physxContactReport:reportPairs"
ISAAC = "IsaacContactSensor"
TRANSLATE = "xformOp:translate"


@dataclass(frozen=True)
class StageItems:
    """A stage and what was read of it. file: path. metres_per_unit: of the stage. rest: resting
    pose float64[7] of each body, by its prim [m]. shapes: paths of all shapes."""

    stage: Usd.Stage
    file: str
    metres_per_unit: float
    rest: Mapping[str, np.ndarray]
    shapes: Collection[str]


def usd_sensors(scene: StageItems, chosen: Chosen = any_sensor) -> DeclaredSensors:
    """The contact sensors of a stage, in its order, named by their prims.

    A sensor of a prim without colliders is refused, with the reason. chosen: those that the notes
    are about.
    """
    reader = _Reader(scene)
    sensors = []
    refused: dict[str, str] = {}
    with diagnostics(scene.file):
        for prim in scene.stage.Traverse(Usd.TraverseInstanceProxies()):
            try:
                sensors += reader.sensors(prim)
            except InputError as error:
                refused[str(prim.GetPath())] = error.what
    return DeclaredSensors(tuple(sensors), reader.notes(chosen), refused)


class _Reader:
    """Reads the sensors of prims, and collects what is said about them together."""

    def __init__(self, scene: StageItems) -> None:
        self._scene = scene
        self._transforms = PrimTransforms(REST_TIME, scene.file)
        self._thresholds: list[str] = []
        self._disabled: list[str] = []

    def sensors(self, prim: Usd.Prim) -> Iterator[Sensor]:
        """The sensors that a prim declares."""
        path = str(prim.GetPath())
        where = f"{self._scene.file} <{path}>"
        # The schemas of programs whose plugins are not installed are in the prim's type alone.
        if REPORT in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            if read_authored(prim, REPORT_THRESHOLD, NUMBER, where):
                self._thresholds.append(path)
            yield Sensor(
                path,
                CONTACT,
                REPORT,
                Side(self._shapes(path)),
                self._partners(prim),
                where=where,
            )
        if str(prim.GetTypeName()) == ISAAC:
            if read_authored(prim, "enabled", FLAG, where) is False:
                self._disabled.append(path)
                return
            if prim.GetAttribute("threshold").HasAuthoredValue():
                self._thresholds.append(path)
            owner = path.rpartition("/")[0]
            shapes = Side(self._shapes(owner))
            yield Sensor(
                path, CONTACT, ISAAC, shapes, region=self._sphere(prim, where), where=where
            )

    def notes(self, chosen: Chosen) -> tuple[str, ...]:
        """Notes about the chosen ones of the sensors that were read."""
        notes = []
        if thresholds := [path for path in self._thresholds if chosen(path)]:
            notes.append(
                f"<{first_and_count(thresholds)}>: thresholds of force have no effect: poses"
                " do not determine forces"
            )
        if disabled := [path for path in self._disabled if chosen(path)]:
            notes.append(f"<{first_and_count(disabled)}>: disabled sensors are left out")
        return tuple(notes)

    def _owner(self, path: str) -> str:
        """The nearest body of a prim, itself included; "" without one."""
        while path and path not in self._scene.rest:
            path = path.rpartition("/")[0]
        return path

    def _shapes(self, path: str) -> tuple[str, ...]:
        """Paths of the shapes of a body or a collider. Raises InputError for a prim without."""
        of_shape = {shape: shape.partition("#")[0] for shape in self._scene.shapes}
        if path in self._scene.rest:
            found = tuple(s for s, prim in of_shape.items() if self._owner(prim) == path)
        else:
            found = tuple(s for s, prim in of_shape.items() if prim == path)
        if not found:
            kind = "body" if path in self._scene.rest else "prim"
            raise InputError(f"the {kind} <{path}> has no collider")
        return found

    def _partners(self, prim: Usd.Prim) -> Side:
        """The shapes of the prims to which reports are restricted; all without one."""
        targets = prim.GetRelationship(REPORT_PAIRS).GetForwardedTargets()
        if not targets:
            return Side()
        return Side(tuple(shape for path in targets for shape in self._shapes(str(path))))

    def _origin(self, prim: Usd.Prim, where: str) -> np.ndarray:
        """float64[3]: the origin of a prim in its parent, in units of the stage.

        USD transforms no prim of a type without a plugin. Raises InputError for operations of which
        the first is no translation.
        """
        attribute = prim.GetAttribute("xformOpOrder")
        order = [str(name) for name in (attribute.Get() if attribute else None) or ()]
        if not order:
            return np.zeros(3)
        if not order[0].startswith(TRANSLATE) or any(TRANSLATE in name for name in order[1:]):
            raise InputError(f"its first operation is '{order[0]}' and not one translation")
        value = read_authored(prim, order[0], VECTOR, where)
        return np.zeros(3) if value is None else np.array(value, np.float64)

    def _sphere(self, prim: Usd.Prim, where: str) -> Region | None:
        """The sphere in which a sensor detects contacts; None for the whole body."""
        radius = read_authored(prim, "radius", NUMBER, where)
        if radius is None or radius <= 0.0:
            return None
        unit = self._scene.metres_per_unit
        if not np.isfinite(radius):
            raise InputError(f"its radius is {radius}")
        matrix = self._transforms.matrix(prim.GetParent())
        point = matvec(matrix.T, np.append(self._origin(prim, where), 1.0))[:3] * unit
        body = self._owner(str(prim.GetPath()))
        if body:
            point = moved_points(inverse_poses(self._scene.rest[body]), point)
        placement = Placement(body, (*point.tolist(), *IDENTITY_POSE[3:]))
        return Region(Volume(SPHERE, (float(radius) * unit,)), POSITION, placement)
