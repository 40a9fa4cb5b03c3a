"""Reader of a file of sensors in TOML: bodies and regions, and the keys of Isaac Lab and Newton."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mesh_files import read_mesh
from collidecli.scene.arguments import checked_metres
from collidecli.scene.convex_hull import convex_hull
from collidecli.scene.name_patterns import EXPRESSION
from collidecli.scene.poses import checked_pose
from collidecli.scene.sensor_volumes import HULL, SIZE_COUNTS, Volume, hull_volume
from collidecli.scene.sensors import (
    CONTACT,
    DISTANCE,
    EACH_BODY,
    EACH_SHAPE,
    INSIDE,
    ONE_OF_EACH,
    OWN_POINT,
    POSITION,
    DeclaredSensors,
    Placement,
    Region,
    Sensor,
    Side,
)
from collidecli.storage.text_files import read_toml
from collidecli.wording import did_you_mean

_KINDS = (CONTACT, DISTANCE, INSIDE)
_KEYS = ("name", "type", "shapes", "partners", "each", "slots", "tangent", "region", "point")
_ISAAC_LAB = ("prim_path", "filter_prim_paths_expr")
_NEWTON = {
    "sensing_bodies": EACH_BODY,
    "sensing_obj_bodies": EACH_BODY,
    "sensing_shapes": EACH_SHAPE,
    "sensing_obj_shapes": EACH_SHAPE,
}
_COUNTERPARTS = ("counterpart_bodies", "counterpart_shapes")
_ENVIRONMENTS = "{ENV_REGEX_NS}"
"""Isaac Lab's word for the paths of all environments."""
_TESTS = {"point": OWN_POINT, "middle": POSITION}
_PLACE = ("body", "position", "quaternion")
_REGION = (*SIZE_COUNTS, HULL, "mesh", "vertices", "outwards", "test", *_PLACE)
_MOST_SLOTS = 1000


def read_sensors_file(path: str | os.PathLike[str]) -> DeclaredSensors:
    """The sensors of a TOML file, each a table `[[sensor]]`, in their order.

    Raises InputError, with the number and the name of the sensor, for a file that cannot be read,
    an unknown key and a wrong value.
    """
    location = os.fspath(path)
    table = read_toml(location, "see docs/reference/sensors.md for the file of --sensors")
    for key in table:
        if key != "sensor":
            raise InputError(f"'{key}' is not known", location, "write tables [[sensor]]")
    entries = table.get("sensor", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError("'sensor' is no list of tables", location, "write tables [[sensor]]")
    if not entries:
        raise InputError("has no sensor", location, "write a table [[sensor]] for each")
    sensors = []
    names: dict[str, int] = {}
    for number, entry in enumerate(entries, 1):
        name = entry.get("name")
        where = f"{location}: sensor {number}" + (f" '{name}'" if isinstance(name, str) else "")
        sensor = _Entry(entry, where, os.path.dirname(location)).sensor()
        if sensor.name in names and not sensor.each:
            raise InputError(
                f"has the name of sensor {names[sensor.name]}", where, "give each a name of its own"
            )
        names[sensor.name] = number
        sensors.append(sensor)
    return DeclaredSensors(tuple(sensors))


class _Entry:
    """One table of the file. where: for messages. folder: of the file, base of names of meshes."""

    def __init__(self, entry: Mapping[str, Any], where: str, folder: str) -> None:
        self._entry = entry
        self._where = where
        self._folder = folder

    def _error(self, what: str, fix: str) -> InputError:
        return InputError(what, self._where, fix)

    def sensor(self) -> Sensor:
        """The sensor of the table."""
        entry = self._entry
        known = [*_KEYS, *_ISAAC_LAB, *_NEWTON, *_COUNTERPARTS]
        for key in entry:
            if key not in known:
                raise self._error(f"'{key}' is no key of a sensor", did_you_mean(key, known))
        if any(key in entry for key in _ISAAC_LAB):
            return self._isaac_lab()
        if any(key in entry for key in (*_NEWTON, *_COUNTERPARTS)):
            return self._newton()
        kind = self._choice("type", _KINDS, CONTACT)
        shapes = self._side("shapes")
        region = self._region()
        sensor = Sensor(
            self._name(),
            kind,
            kind,
            shapes,
            self._side("partners"),
            region,
            slots=self._slots(),
            tangent=self._flag("tangent"),
            each=self._choice("each", ("", *ONE_OF_EACH), ""),
            where=self._where,
        )
        return self._checked(sensor)

    def _checked(self, sensor: Sensor) -> Sensor:
        """The sensor, with the point of one of a point in a volume. Raises InputError for keys that
        do not go together."""
        kind = sensor.kind
        needed = {CONTACT: (), DISTANCE: ("shapes", "partners"), INSIDE: ("point", "region")}[kind]
        unused = {
            CONTACT: ("point",),
            DISTANCE: ("point", "region", "slots", "tangent"),
            INSIDE: ("shapes", "partners", "each", "slots", "tangent"),
        }[kind]
        for key in needed:
            if key not in self._entry:
                raise self._error(f"has no '{key}'", f"a sensor of the type {kind} needs it")
        for key in unused:
            if key in self._entry:
                raise self._error(
                    f"'{key}' has no meaning for the type {kind}",
                    "leave it out, or change the type",
                )
        if kind == INSIDE:
            assert sensor.region is not None
            if sensor.region.placement is None:
                raise self._error(
                    "its region has no body", 'give the region body = "NAME", or "" for the world'
                )
            return replace(sensor, point=self._point())
        if sensor.first.is_any and sensor.region is None:
            raise self._error("selects nothing", 'give shapes = "PATTERN", or a region')
        if sensor.first.is_any and sensor.each:
            raise self._error("'each' is of the shapes", 'give shapes = "PATTERN"')
        return sensor

    def _name(self) -> str:
        name = self._entry.get("name")
        if not isinstance(name, str) or not name:
            raise self._error("has no name", 'write name = "left_foot"')
        return name

    def _optional_name(self) -> str:
        return self._name() if "name" in self._entry else ""

    def _choice(self, key: str, choices: Sequence[str], default: str) -> str:
        value = self._entry.get(key, default)
        if value not in choices:
            known = ", ".join(filter(None, choices))
            raise self._error(f"'{key}' is {value!r}", f"give one of: {known}")
        return value

    def _flag(self, key: str) -> bool:
        value = self._entry.get(key, False)
        if not isinstance(value, bool):
            raise self._error(f"'{key}' is {value!r}", f"write {key} = true or false")
        return value

    def _slots(self) -> int:
        value = self._entry.get("slots", 1)
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _MOST_SLOTS:
            raise self._error(
                f"'slots' is {value!r}", f"give a number of contacts from 1 to {_MOST_SLOTS}"
            )
        return value

    def _patterns(self, key: str) -> tuple[str, ...]:
        value = self._entry.get(key, ())
        texts = (value,) if isinstance(value, str) else value
        if not isinstance(texts, (list, tuple)) or not all(
            isinstance(text, str) and text for text in texts
        ):
            raise self._error(f"'{key}' is {value!r}", f'write {key} = "hand*", or a list of such')
        if key in self._entry and not texts:
            raise self._error(f"'{key}' is empty", "give a pattern, or leave it out")
        return tuple(texts)

    def _side(self, key: str) -> Side:
        return Side(patterns=self._patterns(key), option=f"{self._where}: {key}")

    def _isaac_lab(self) -> Sensor:
        """A sensor with the keys of ContactSensorCfg: a column for each body of `prim_path`, and
        for each of its partners."""
        self._only(("name", *_ISAAC_LAB))
        if "prim_path" not in self._entry:
            raise self._error("has no 'prim_path'", "give the bodies of the sensor")
        paths = self._patterns("prim_path")
        filters = self._patterns("filter_prim_paths_expr")
        side = Side(patterns=tuple(map(_expression, paths)), option=f"{self._where}: prim_path")
        option = f"{self._where}: filter_prim_paths_expr"
        others = [(text, Side(patterns=(_expression(text),), option=option)) for text in filters]
        return Sensor(
            self._optional_name(),
            CONTACT,
            CONTACT,
            side,
            each=EACH_BODY,
            filters=tuple(others),
            where=self._where,
        )

    def _newton(self) -> Sensor:
        """A sensor with the keys of SensorContact: a column for each sensing body or shape, and for
        each of its counterparts."""
        self._only(("name", *_NEWTON, *_COUNTERPARTS))
        given = [key for key in _NEWTON if key in self._entry]
        if len(given) != 1:
            what = "has several" if given else "has no"
            raise self._error(
                f"{what} sensing bodies or shapes", "give sensing_bodies, or sensing_shapes"
            )
        others = [
            (text, Side(patterns=(text,), option=f"{self._where}: {key}"))
            for key in _COUNTERPARTS
            for text in self._patterns(key)
        ]
        return Sensor(
            self._optional_name(),
            CONTACT,
            CONTACT,
            self._side(given[0]),
            each=_NEWTON[given[0]],
            filters=tuple(others),
            where=self._where,
        )

    def _only(self, known: Sequence[str]) -> None:
        for key in self._entry:
            if key not in known:
                raise self._error(
                    f"'{key}' does not go with the keys of a simulator's sensor",
                    f"give only: {', '.join(known)}",
                )

    def _point(self) -> Placement:
        table = self._table("point", self._entry["point"], _PLACE)
        placement = self._placement(table, "point")
        return placement or Placement("", self._pose(table, "point"))

    def _region(self) -> Region | None:
        if "region" not in self._entry:
            return None
        table = self._table("region", self._entry["region"], _REGION)
        test = table.get("test", "point")
        if test not in _TESTS:
            raise self._error(f"'test' is {test!r}", f"give one of: {', '.join(_TESTS)}")
        volume = self._volume(table)
        return Region(
            volume, _TESTS[test], self._placement(table, "region"), self._pose(table, "region")
        )

    def _table(self, key: str, value: object, known: Sequence[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._error(f"'{key}' is {value!r}", f"write {key} = {{ body = ... }}")
        for name in value:
            if name not in known:
                raise self._error(f"'{name}' is no key of '{key}'", did_you_mean(name, known))
        return value

    def _placement(self, table: Mapping[str, Any], key: str) -> Placement | None:
        """The frame of the table; None without a body."""
        if "body" not in table:
            return None
        body = table["body"]
        if not isinstance(body, str):
            raise self._error(
                f"'body' of '{key}' is {body!r}", 'give the path of a body, or "" for the world'
            )
        return Placement(body, self._pose(table, key))

    def _pose(self, table: Mapping[str, Any], key: str) -> tuple[float, ...]:
        position = self._lengths(table.get("position", [0.0, 0.0, 0.0]), "position", 3)
        rotation = table.get("quaternion", [0.0, 0.0, 0.0, 1.0])
        is_given = isinstance(rotation, list) and len(rotation) == 4
        if not is_given or not all(type(number) in (int, float) for number in rotation):
            raise self._error(f"'quaternion' is {rotation!r}", "give four numbers: x, y, z, w")
        pose = checked_pose([*position, *map(float, rotation)], f"{self._where}: {key}")
        return tuple(pose.tolist())

    def _lengths(self, value: object, key: str, count: int) -> tuple[float, ...]:
        values = value if isinstance(value, list) else [value]
        if len(values) != count:
            lengths = "a length" if count == 1 else f"a list of {count} lengths"
            raise self._error(f"'{key}' is {value!r}", f"give {lengths}")
        return tuple(checked_metres(number, f"{self._where}: {key}") for number in values)

    def _volume(self, table: Mapping[str, Any]) -> Volume:
        kinds = [key for key in (*SIZE_COUNTS, HULL, "mesh") if key in table]
        if len(kinds) != 1:
            what = "has several volumes" if kinds else "has no volume"
            known = ", ".join((*SIZE_COUNTS, HULL, "mesh"))
            raise self._error(f"the region {what}", f"give one of: {known}")
        kind = kinds[0]
        if kind in SIZE_COUNTS:
            for key in ("vertices", "outwards"):
                if key in table:
                    raise self._error(f"'{key}' is of hulls and meshes", "leave it out")
            size = self._lengths(table[kind], kind, SIZE_COUNTS[kind])
            if not all(0.0 < length < np.inf for length in size):
                raise self._error(f"'{kind}' is {table[kind]!r}", "give lengths above 0")
            return Volume(kind, size)
        if kind == HULL and "vertices" in table:
            raise self._error("'vertices' are of a mesh", "leave them out, or name the mesh")
        points = self._points(table[HULL]) if kind == HULL else self._mesh(table)
        outwards = self._lengths(table.get("outwards", 0.0), "outwards", 1)[0]
        if not 0.0 <= outwards < np.inf:
            raise self._error(f"'outwards' is {table['outwards']!r}", "give at least 0")
        return hull_volume(convex_hull(points, f"{self._where}: {kind}"), outwards)

    def _points(self, value: object) -> np.ndarray:
        if not isinstance(value, list) or len(value) < 4:
            raise self._error("'hull' is no list of points", "give four points [x, y, z] at least")
        return np.array([self._lengths(point, HULL, 3) for point in value])

    def _mesh(self, table: Mapping[str, Any]) -> np.ndarray:
        """Points of a mesh file, all or those of `vertices`."""
        file = table["mesh"]
        if not isinstance(file, str):
            raise self._error(f"'mesh' is {file!r}", "give the name of a mesh file")
        points, _ = read_mesh(os.path.join(self._folder, file))
        if "vertices" not in table:
            return points
        rows = table["vertices"]
        if not isinstance(rows, list) or not all(type(row) is int for row in rows) or not rows:
            raise self._error("'vertices' is no list of numbers", "number the vertices from 0")
        wrong = [row for row in rows if not 0 <= row < len(points)]
        if wrong:
            raise self._error(
                f"there is no vertex {wrong[0]}", f"the mesh has {len(points)}, numbered from 0"
            )
        return points[rows]


def _expression(text: str) -> str:
    """A regular expression of Isaac Lab as a pattern: as there, a wildcard matches no slash."""
    text = text.replace(_ENVIRONMENTS, "/World/envs/env_.*")
    return EXPRESSION + re.sub(r"(?<!\\)\.(?=[*+])", "[^/]", text)
