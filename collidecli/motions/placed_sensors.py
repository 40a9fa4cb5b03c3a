"""Sensors of a loaded scene: the shapes, bodies and columns of each declaration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from collidecli.analysis.sensor_contacts import ContactColumn
from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.scene.chosen_pairs import scene_items
from collidecli.scene.patterns import NamedItems
from collidecli.scene.sensors import (
    CONTACT,
    DISTANCE,
    EACH_BODY,
    INSIDE,
    OWN_POINT,
    DeclaredSensors,
    Placement,
    Sensor,
    Side,
)
from collidecli.wording import did_you_mean, plural, some_names


@dataclass(frozen=True)
class DistanceColumn:
    """The column of a sensor of distances, in the worlds of some templates. column: its number.
    sensing, other: bool[S], shapes of its two sides."""

    column: int
    sensing: np.ndarray
    other: np.ndarray


@dataclass(frozen=True)
class InsideColumn:
    """The column of a sensor of a point in a volume, in the worlds of some templates.

    column: its number. templates: of its worlds. point_body, region_body: int64[T], rows of the
    bodies in each template, -1 for the world.
    """

    column: int
    sensor: Sensor
    templates: tuple[int, ...]
    point_body: np.ndarray
    region_body: np.ndarray


@dataclass(frozen=True)
class PlacedSensors:
    """Sensors of a scene and their columns. names, sensors: of each column. in_template:
    bool[T, K], whether the worlds of a template have the sensor of a column. notes: warnings."""

    names: tuple[str, ...]
    sensors: tuple[Sensor, ...]
    contacts: tuple[ContactColumn, ...]
    distances: tuple[DistanceColumn, ...]
    insides: tuple[InsideColumn, ...]
    in_template: np.ndarray
    notes: tuple[str, ...]


def scene_sensors(scene: LoadedScene, chosen: Callable[[str], bool]) -> PlacedSensors:
    """The sensors that a scene declares, of those whose name is chosen.

    Raises InputError for a scene without one, and for a chosen one that cannot be evaluated.
    """
    declared = [imported.sensors(chosen) for imported in scene.imports]
    every = [name for one in declared for name in (*_names(one), *one.refused)]
    notes = _notes(declared)
    if not every:
        notes = _notes([imported.sensors() for imported in scene.imports])
        raise InputError(
            "the scene declares no sensor of contacts, distances or positions"
            + ("" if not notes else f" ({'; '.join(notes)})"),
            scene.name,
            "give a TOML file of sensors as --sensors",
        )
    if not any(map(chosen, every)):
        raise InputError(
            f"the pattern matches none of {plural(len(set(every)), 'sensor')} of the scene",
            "--sensors",
            f"they are: {some_names(list(dict.fromkeys(every)))}",
        )
    for one in declared:
        for name in filter(chosen, one.refused):
            raise InputError(
                f"sensor '{name}' cannot be evaluated: {one.refused[name]}",
                scene.name,
                "or name the others with --sensors 'scene:PATTERN'",
            )
    placing = _Placing(scene)
    for source, one in enumerate(declared):
        for sensor in one.sensors:
            if chosen(sensor.name):
                placing.add(sensor, source)
    return placing.placed(notes)


def _notes(declared: Sequence[DeclaredSensors]) -> tuple[str, ...]:
    """The notes of several scenes, each once."""
    return tuple(dict.fromkeys(note for one in declared for note in one.notes))


def _names(declared: DeclaredSensors) -> list[str]:
    return [sensor.name for sensor in declared.sensors]


def sensors_of_file(scene: LoadedScene, declared: DeclaredSensors) -> PlacedSensors:
    """The sensors of a file in a scene, whose patterns match in all scenes together. Raises
    InputError for a pattern without a match."""
    placing = _Placing(scene)
    for sensor in declared.sensors:
        placing.add(sensor, None)
    return placing.placed(declared.notes)


class _Placing:
    """Columns of sensors, one after the other."""

    def __init__(self, scene: LoadedScene) -> None:
        model = scene.model
        shapes = model.shapes
        self._scene = scene
        self._model = model
        self._items = scene_items(
            replace(model, particles=type(model.particles)()), scene.shape_bodies
        )
        self._source = np.array(scene.template_import(shapes.template), np.int64)
        self._templates = int(model.world_template.max(initial=0)) + 1
        self._template_source = np.array(
            scene.template_import(np.arange(self._templates)), np.int64
        )
        self._names: list[str] = []
        self._sensors: list[Sensor] = []
        self._contacts: list[ContactColumn] = []
        self._distances: list[DistanceColumn] = []
        self._insides: list[InsideColumn] = []
        self._in_template: list[np.ndarray] = []

    def add(self, sensor: Sensor, source: int | None) -> None:
        """Adds the columns of a sensor. source: the scene that declares it; None is a file."""
        of_source = np.ones(len(self._source), bool) if source is None else self._source == source
        first = self._shapes(sensor.first, of_source)
        for name, sensing in self._each(sensor, first):
            others = [("", sensor.second), *sensor.filters]
            for suffix, side in others:
                full = f"{name} with {suffix}" if suffix else name
                column = self._column(replace(sensor, name=full))
                other = self._shapes(side, of_source)
                self._add_columns(sensor, column, sensing, other, source)

    def _each(self, sensor: Sensor, first: np.ndarray) -> list[tuple[str, np.ndarray]]:
        """Names and shapes bool[S] of the sensors that a declaration stands for."""
        if not sensor.each:
            return [(sensor.name, first)]
        rows = np.flatnonzero(first).tolist()
        paths = self._model.shapes.path
        bodies = self._scene.shape_bodies
        named = (
            sorted((bodies[row] or paths[row], row) for row in rows)
            if sensor.each == EACH_BODY
            else sorted((paths[row], row) for row in rows)
        )
        found = []
        for path, group in groupby(named, key=lambda entry: entry[0]):
            mask = np.zeros(len(first), bool)
            mask[[row for _, row in group]] = True
            found.append((f"{sensor.name}/{path.lstrip('/')}" if sensor.name else path, mask))
        return found

    def _column(self, sensor: Sensor) -> int:
        """The number of the first column of a sensor; that of an equal name if another scene
        declares it too."""
        names = (
            [sensor.name]
            if sensor.slots == 1
            else [f"{sensor.name}[{slot}]" for slot in range(sensor.slots)]
        )
        if names[0] in self._names:
            number = self._names.index(names[0])
            before = self._sensors[number]
            if (before.declared, before.slots, before.where) != (
                sensor.declared,
                sensor.slots,
                sensor.where,
            ) or self._names[number : number + len(names)] != names:
                raise InputError(
                    f"two sensors are named '{sensor.name}', and they differ",
                    sensor.where or self._scene.name,
                    "give them different names",
                )
            return number
        self._names += names
        self._sensors += [sensor] * len(names)
        self._in_template += [np.zeros(self._templates, bool) for _ in names]
        return len(self._names) - len(names)

    def _shapes(self, side: Side, of_source: np.ndarray) -> np.ndarray:
        """bool[S]: the shapes of a side."""
        if side.is_any:
            return of_source.copy()
        if side.patterns:
            # The one use of the project's patterns for sensors.
            matched = NamedItems.matching(self._items, side.patterns, side.option)
            return matched[: len(of_source)] & of_source
        paths = set(side.shapes or ())
        named = [path in paths for path in self._model.shapes.path]
        return np.array(named, bool) & of_source

    def _templates_of(self, source: int | None) -> np.ndarray:
        """int64: numbers of the templates in which a sensor is declared."""
        every = np.arange(self._templates)
        return every if source is None else every[self._template_source == source]

    def _add_columns(
        self,
        sensor: Sensor,
        column: int,
        sensing: np.ndarray,
        other: np.ndarray,
        source: int | None,
    ) -> None:
        model = self._model
        templates = self._templates_of(source)
        there = np.zeros(self._templates, bool)
        if sensor.kind == INSIDE:
            there[templates] = True
            assert sensor.region is not None
            rows = [
                self._body_rows(placement, sensor, templates)
                for placement in (sensor.point, sensor.region.placement)
            ]
            self._insides.append(InsideColumn(column, sensor, tuple(templates.tolist()), *rows))
        else:
            owner = model.shapes.template
            for template in templates.tolist():
                here = (owner == template) | (owner < 0)
                there[template] = bool((sensing & here).any())
        for slot in range(sensor.slots):
            self._in_template[column + slot] |= there
        if sensor.kind == DISTANCE:
            self._distances.append(DistanceColumn(column, sensing, other))
        if sensor.kind == CONTACT:
            region = sensor.region
            region_body = np.full(len(model.shapes), -1, np.int64)
            if region is not None and region.placement is not None:
                of_template = self._body_rows(region.placement, sensor, templates)
                local = model.shapes.template >= 0
                region_body[local] = of_template[model.shapes.template[local]]
                if self._templates == 1:
                    region_body[~local] = of_template[0]
            elif region is not None and region.test == OWN_POINT:
                self._check_moving(sensor, sensing)
            self._contacts.append(
                ContactColumn(column, sensor.slots, sensing, other, region, region_body)
            )

    def _check_moving(self, sensor: Sensor, sensing: np.ndarray) -> None:
        """Raises InputError for a region in the frame of a body that is fixed to the world: its
        contacts are in the frame of the world."""
        fixed = np.flatnonzero(sensing & (self._model.shapes.body < 0))
        if len(fixed):
            path = self._model.shapes.path[fixed[0]]
            raise InputError(
                f"the region is in the frame of the body of '{path}', which is fixed to the world",
                sensor.where,
                'give the region body = "" for the frame of the world',
            )

    def _body_rows(
        self, placement: Placement | None, sensor: Sensor, templates: np.ndarray
    ) -> np.ndarray:
        """int64[T]: row of the body of a placement in each template, -1 for the world."""
        rows = np.full(self._templates, -1, np.int64)
        if placement is None or not placement.body:
            return rows
        bodies = self._model.bodies
        for row, (path, template) in enumerate(
            zip(bodies.path, bodies.template.tolist(), strict=True)
        ):
            if path == placement.body:
                rows[template if template >= 0 else slice(None)] = row
        missing = [t for t in templates.tolist() if rows[t] < 0]
        if missing:
            fixed = placement.body in self._scene.shape_bodies
            what = "is fixed to the world" if fixed else "is no body of the scene"
            fix = (
                'give the region body = "" for the frame of the world'
                if fixed
                else did_you_mean(placement.body, bodies.path, "collide inspect lists the bodies")
            )
            raise InputError(f"'{placement.body}' {what}", sensor.where or self._scene.name, fix)
        return rows

    def placed(self, notes: Sequence[str]) -> PlacedSensors:
        """The sensors that were added."""
        in_template = np.array(self._in_template, bool).reshape(-1, self._templates).T
        return PlacedSensors(
            tuple(self._names),
            tuple(self._sensors),
            tuple(self._contacts),
            tuple(self._distances),
            tuple(self._insides),
            in_template,
            tuple(notes),
        )
