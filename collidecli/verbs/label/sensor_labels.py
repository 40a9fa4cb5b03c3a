"""Labels of sensors: what each measures in every frame of every world, as dense arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.analysis.labelled_runs import LabelRule, labelled_runs
from collidecli.analysis.nominal_forces import CENTRE, FORCE
from collidecli.analysis.sensor_contacts import SensorRows
from collidecli.analysis.touch_intervals import Frames, Names
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.placed_sensors import PlacedSensors
from collidecli.motions.sensor_rows import SensorRowStore
from collidecli.results.result import Progress
from collidecli.scene.episodes import recorded_cells
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.sensors import CONTACT, INSIDE
from collidecli.storage.array_files import SENSORS_FORMAT
from collidecli.verbs.label.dense import DenseArray
from collidecli.verbs.label.phase_times import TIMES, PhaseTimes

BLOCK_VALUES = 1 << 17
"""Entries of one block: frames, worlds and sensors multiplied."""
SHAPES = "shapes"
TANGENT = "tangent"
_LENGTH = np.dtype(np.float64)
_ROW = np.dtype(np.int32)


def _vector(unit: str = "m") -> DenseArray:
    return DenseArray(_LENGTH, unit, 3, nan_is_none=True)


DENSE = {
    "touch": DenseArray(np.dtype(bool)),
    "count": DenseArray(_ROW),
    "distance": DenseArray(_LENGTH, "m", nan_is_none=True),
    "shape": DenseArray(_ROW, words=SHAPES),
    "partner": DenseArray(_ROW, words=SHAPES),
    "point": _vector(),
    "partner_point": _vector(),
    "position": _vector(),
    "normal": _vector(""),
    "centre": _vector(),
    TANGENT: _vector(""),
    FORCE: _vector("N"),
    CENTRE: _vector(),
    **TIMES,
}
"""The dense arrays [F, W, K]; the tangent where a sensor declares it, FORCE and CENTRE with a
nominal stiffness, TIMES if they are wanted."""


@dataclass(frozen=True)
class SensorBlock:
    """Values of sensors in consecutive frames from index `first`; f frames, W worlds, K columns.

    touch: bool[f, W, K], the label. count: int32, contacts at most --enter apart; -1 for a sensor
    that is not of contacts. distance: float64, the least [m], infinite without a contact that is
    reported, NaN where the world does not have the sensor. shape, partner: int32, rows of `shapes`
    of that contact, -1 for none. Of it float64[f, W, K, 3], NaN without one: point, partner_point,
    witness points on the two shapes [m]; position, their middle; normal, unit, from shape to
    partner; tangent, unit, or None. centre: mean of the positions of the counted contacts.
    nominal_force: float64[f, W, K, 3], on the sensor [N], NaN where it is not of contacts;
    pressure_centre: of that force, NaN without one [m]; both None without a stiffness. The others
    are TIMES, or None.
    """

    first: int
    touch: np.ndarray
    count: np.ndarray
    distance: np.ndarray
    shape: np.ndarray
    partner: np.ndarray
    point: np.ndarray
    partner_point: np.ndarray
    position: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    tangent: np.ndarray | None = None
    nominal_force: np.ndarray | None = None
    pressure_centre: np.ndarray | None = None
    begins: np.ndarray | None = None
    ends: np.ndarray | None = None
    contact_time: np.ndarray | None = None
    air_time: np.ndarray | None = None
    last_contact_time: np.ndarray | None = None
    last_air_time: np.ndarray | None = None


def contact_tangent(normal: np.ndarray) -> np.ndarray:
    """float64[n, 3]: the first tangent of contact frames with unit normals [n, 3].

    It is y less its part along the normal, or z where the normal is within 60 degrees of the y
    axis. Source: MuJoCo's mju_makeFrame.
    """
    along_y = np.abs(normal[:, 1]) >= 0.5
    tangent = np.where(along_y[:, None], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0])
    tangent = tangent - (tangent * normal).sum(axis=1, keepdims=True) * normal
    return tangent / np.linalg.norm(tangent, axis=1, keepdims=True)


@dataclass(frozen=True)
class SensorLabels:
    """Labels of the sensors of a scene in motion; see `DenseLabels`.

    rows: of all sensors. options: for `about`. notes: warnings. times: with TIMES. outside: of
    columns with a region, the contacts that touch outside it.
    """

    scene: LoadedScene
    motion: Motion
    placed: PlacedSensors
    rows: SensorRowStore
    rule: LabelRule
    options: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    times: bool = False
    outside: Mapping[int, int] = field(default_factory=dict)

    @property
    def sensors(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.placed.names

    @property
    def form(self) -> str:
        """Name of the HDF5 format."""
        return SENSORS_FORMAT

    @property
    def dense(self) -> dict[str, DenseArray]:
        """The arrays by name."""
        return self._dense

    @cached_property
    def _dense(self) -> dict[str, DenseArray]:
        has_tangent = any(sensor.tangent for sensor in self.placed.sensors)
        left_out = {*([] if has_tangent else [TANGENT]), *([] if self.times else TIMES)}
        left_out |= set() if self.rows.nominal_width else {FORCE, CENTRE}
        return {name: array for name, array in DENSE.items() if name not in left_out}

    @property
    def items(self) -> dict[str, tuple[str, ...]]:
        """Names along the axis of sensors."""
        return {"sensors": self.sensors}

    @cached_property
    def _shape_names(self) -> Names:
        shapes = self.scene.model.shapes
        return Names.of(shapes.path, shapes.template)

    @property
    def texts(self) -> dict[str, tuple[str, ...]]:
        """Paths of the shapes, and the word that declares each sensor."""
        declared = tuple(sensor.declared for sensor in self.placed.sensors)
        return {SHAPES: self._shape_names.text, "declared": declared}

    @property
    def shape(self) -> tuple[int, int, int]:
        """Frames, worlds, columns."""
        return len(self.frames), self.scene.model.world_count, len(self.sensors)

    @property
    def frames(self) -> Frames:
        """The frames of the motion."""
        return self._frames

    @cached_property
    def _frames(self) -> Frames:
        episodes = episodes_in(self.motion, self.scene.model.world_count)
        return Frames(np.arange(len(self.motion.time)), self.motion.time, episodes)

    @property
    def step(self) -> np.ndarray:
        """int64[F]: the recorder's numbers of the frames."""
        return np.asarray(self.motion.step, np.int64)

    @property
    def worlds(self) -> np.ndarray:
        """int64[W]: every world."""
        return np.arange(self.scene.model.world_count)

    @property
    def recorded(self) -> np.ndarray:
        """bool[F, W]: whether each cell is recorded."""
        return self._recorded

    @cached_property
    def _recorded(self) -> np.ndarray:
        return recorded_cells(self.frames.episodes, len(self.frames), len(self.worlds))

    @property
    def present(self) -> np.ndarray:
        """bool[W, K]: whether the world's scene has the sensor."""
        return self.placed.in_template[self.scene.model.world_template]

    @property
    def is_row(self) -> np.ndarray:
        """bool[W, K]: present sensors."""
        return self.present

    @property
    def about(self) -> dict[str, Any]:
        """Attributes of a file."""
        return {
            "scene": self.scene.name,
            "scene_sha256": self.scene.sha256,
            "trajectory_sha256": self.motion.sha256,
            "options": self.options,
        }

    @cached_property
    def _touching(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int64[n] each: frame, world and column of every label."""
        worlds = len(self.worlds)
        cell, column, distance = self.rows.keys()
        frame, world = np.divmod(cell, worlds)
        kinds = np.array([sensor.kind == INSIDE for sensor in self.placed.sensors], bool)
        # A point that is inside touches at any distance.
        distance = np.where(kinds[column], -np.inf, distance).astype(np.float32)
        _, end = self.frames.borders(world, frame)
        key = column * worlds + world
        order = np.lexsort((frame, key))
        runs = labelled_runs(key[order], frame[order], distance[order], self.rule, end[order])
        key, frame = runs.cells()
        return frame, key % worlds, key // worlds

    def blocks(self, progress: Progress = None) -> Iterator[SensorBlock]:
        """The arrays in blocks of whole frames."""
        frames, worlds, columns = self.shape
        at_once = max(1, BLOCK_VALUES // max(1, worlds * columns))
        label = self._touching
        label_order = np.argsort(label[0], kind="stable")
        label_frame = label[0][label_order]
        phases = PhaseTimes(self.frames, self.recorded, self.present) if self.times else None
        for first in range(0, frames, at_once):
            count = min(at_once, frames - first)
            rows = self.rows.of_cells(first * worlds, (first + count) * worlds)
            low, high = np.searchsorted(label_frame, (first, first + count))
            at = tuple(axis[label_order[low:high]] for axis in label)
            block = self._block(first, count, rows, at)
            yield replace(block, **phases.of(first, block.touch)) if phases else block
            if progress is not None:
                progress(first + count, frames)

    def _block(
        self, first: int, count: int, rows: SensorRows, label: tuple[np.ndarray, ...]
    ) -> SensorBlock:
        worlds, columns = self.shape[1:]
        shape = (count, worlds, columns)
        frame, world = np.divmod(rows.cell, worlds)
        at = frame - first, world, rows.column

        def filled(values: np.ndarray, default: Any, dtype: Any) -> np.ndarray:
            dense = np.empty((*shape, *values.shape[1:]), dtype)
            dense[:] = default
            dense[at] = values
            return dense

        touch = np.zeros(shape, bool)
        touch[label[0] - first, label[1], label[2]] = True
        of_contacts = np.array([sensor.kind == CONTACT for sensor in self.placed.sensors], bool)
        no_count = np.where(of_contacts, 0, -1)
        unknown = np.where(self.present & (no_count == 0), np.inf, np.nan)
        shape_row = self._shape_names.row
        named = [np.where(r >= 0, shape_row[r], -1) for r in (rows.shape, rows.partner)]
        vectors = {name: getattr(rows, name) for name in SensorRows.VECTORS}
        middle = 0.5 * (rows.point + rows.partner_point)
        vectors["position"] = np.where(np.isnan(middle), rows.point, middle)
        if TANGENT in self.dense:
            vectors[TANGENT] = contact_tangent(rows.normal)
        forces = {}
        if FORCE in self.dense:
            none = np.where(self.present & (no_count == 0), 0.0, np.nan)[..., None]
            forces[FORCE] = filled(rows.nominal[:, :3], none, np.float64)
            vectors[CENTRE] = rows.nominal[:, 3:]
        return SensorBlock(
            first,
            touch,
            filled(rows.count, no_count, np.int32),
            filled(rows.distance, unknown, np.float64),
            filled(named[0], -1, np.int32),
            filled(named[1], -1, np.int32),
            **{name: filled(values, np.nan, np.float64) for name, values in vectors.items()},
            **forces,
        )
