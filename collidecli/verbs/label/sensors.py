"""The verb `label` for a scene in motion: what its sensors, or those of a file, measure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collidecli.analysis.nominal_forces import FORCE, check_nominal_stiffness, nominal_option
from collidecli.analysis.summary import TimeBins
from collidecli.engine.pipeline_build import find_device, load_ahead
from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.placed_sensors import PlacedSensors, scene_sensors, sensors_of_file
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import MotionResult, scene_in_motion
from collidecli.motions.sensor_rows import SensorRowStore
from collidecli.motions.sensor_values import SensorValues
from collidecli.numerics.products import norm
from collidecli.results.outputs import check_ending, check_output
from collidecli.results.result import Progress
from collidecli.scene.name_patterns import matcher
from collidecli.scene.sensors import CONTACT
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.verbs.label.contact_labels import STIFFNESS, LabelOptions
from collidecli.verbs.label.files import ENDINGS, check_wide, write_labels
from collidecli.verbs.label.sensor_labels import SensorBlock, SensorLabels
from collidecli.verbs.label.sensor_source import SCENE, SENSORS_SCHEMA, is_sensors_source
from collidecli.verbs.label.tally import MAX_BINS

PARTICLES_LEFT_OUT = "contacts of particles, cloths and soft bodies are no part of sensors"


@dataclass(frozen=True, kw_only=True)
class SensorRequest(EngineRequest):
    """A scene in motion, its sensors, and the output.

    sensors: "scene", "scene:PATTERN" or a TOML file. enter, leave [m], min_frames: see `LabelRule`;
    leave None is `enter`. nominal_stiffness: of nominal forces [N/m]; None computes none. times:
    add the times of contact and of air. output: "" writes no file. first: number of listed sensors.
    wide: the output is a table with a row for each frame and world; columns: its arrays, () is all.
    """

    sensors: str = SCENE
    enter: float = 0.0
    leave: float | None = None
    min_frames: int = 1
    nominal_stiffness: float | None = None
    times: bool = False
    output: str = ""
    first: int = 20
    force: bool = False
    wide: bool = False
    columns: Sequence[str] = ()

    @property
    def labelled(self) -> LabelOptions:
        """The options of labels, whose rule is checked."""
        return LabelOptions(enter=self.enter, leave=self.leave, min_frames=self.min_frames)


@dataclass(frozen=True, kw_only=True)
class SensorResult(MotionResult, schema=SENSORS_SCHEMA, optional=("chart",)):
    """Sensors of a motion. shape: frames, worlds, sensors. recorded: cells with a frame of the
    recording.

    sensors: names of all columns. labelled: labels that are true. listed: the first columns, each
    with the word that declares it, the cells with a label and their share of the recorded cells
    that have the sensor, the least distance [m], the most contacts of a cell, the pair and time of
    the least distance, and with a region the contacts that touch outside it, of all cells. series:
    of bins of frames, and of each listed column `labelled`, the fraction of the recorded cells of
    the bin that have the label, `count`, the most contacts, `distance`, the least [m], and `force`,
    the greatest nominal one [N]; None without one. chart: path of the picture.
    """

    options: dict[str, Any]
    shape: dict[str, int]
    sensors: list[str]
    recorded: int
    labelled: int
    listed: list[dict[str, Any]]
    series: dict[str, Any]
    warnings: list[str]
    output: str | None
    bytes: int | None
    chart: str | None = None


def check_sensor_request(request: SensorRequest) -> None:
    """Raises InputError for options that do not go together, OutputError for an output that cannot
    be written."""
    request.engine.checked()
    request.contact.checked()
    rule = request.labelled.rule
    assert rule.min_frames >= 1
    if request.nominal_stiffness is not None:
        check_nominal_stiffness(request.nominal_stiffness, STIFFNESS)
    if not is_sensors_source(request.sensors):
        raise InputError(
            f"'{request.sensors}' names no sensors",
            "--sensors",
            "give scene, scene:PATTERN or a file with the extension .toml; patterns of bodies are"
            " for contact sets",
        )
    check_wide(request.wide, request.output)
    if request.output:
        check_ending(request.output, ENDINGS, "a file of sensors")
        file = () if request.sensors.startswith(SCENE) else (request.sensors,)
        check_output(request.output, request.force, (*request.scenes, request.trajectory, *file))
        if request.output.lower().endswith(".parquet"):
            require_pyarrow("Parquet")


def evaluated(
    request: SensorRequest, use: Callable[[SensorLabels], Any], progress: Progress = None
) -> Any:
    """What `use` returns for the labels of the sensors of a request.

    Raises InputError for an unusable scene, recording or sensor.
    """
    check_sensor_request(request)
    device = find_device(request.engine.device)
    load_ahead(device)
    scene, motion = scene_in_motion(request)
    try:
        placed = _placed(request, scene)
        rule = request.labelled.rule
        limits = rule.enter, rule.leave
        values = SensorValues(
            scene, motion, placed, request, device, *limits, request.nominal_stiffness
        )
        with SensorRowStore(values.row_bytes, values.nominal_width) as rows:
            values.add_rows(rows, progress)
            notes = [*scene.warnings, *motion.warnings, *placed.notes, *values.notes]
            if len(scene.model.particles):
                notes.append(PARTICLES_LEFT_OUT)
            options = _options(request)
            labels = SensorLabels(
                scene,
                motion,
                placed,
                rows,
                rule,
                options,
                notes,
                request.times,
                _outside(placed, values.outside),
            )
            return use(labels)
    finally:
        motion.close()


def label_sensors(request: SensorRequest, progress: Progress = None) -> SensorResult:
    """Evaluates the sensors of a motion and writes the output.

    Raises InputError as `evaluated`, and OutputError; then there is no output.
    """

    def write(labels: SensorLabels) -> SensorResult:
        tally = SensorTally(labels, request.first)
        if not request.output:
            for _ in tally.blocks():
                pass
            return sensor_result(request, tally)
        with AtomicOutput(request.output, request.force) as output:
            write_labels(output, request.output, tally, request.columns if request.wide else None)
            output.commit()
        return sensor_result(request, tally)

    return evaluated(request, write, progress)


def _placed(request: SensorRequest, scene: LoadedScene) -> PlacedSensors:
    if request.sensors == SCENE:
        return scene_sensors(scene, lambda name: True)
    if request.sensors.startswith(f"{SCENE}:"):
        pattern = request.sensors.removeprefix(f"{SCENE}:")
        return scene_sensors(scene, matcher(pattern, "--sensors"))
    from collidecli.importers.sensors_file import read_sensors_file

    return sensors_of_file(scene, read_sensors_file(request.sensors))


def _outside(placed: PlacedSensors, counts: np.ndarray) -> dict[int, int]:
    """Contacts that touch outside the region of a sensor, by column, of sensors with a region."""
    return {
        column.first + slot: int(number)
        for column, number in zip(placed.contacts, counts, strict=True)
        if column.region is not None
        for slot in range(column.slots)
    }


def _options(request: SensorRequest) -> dict[str, Any]:
    rule = request.labelled.rule
    contact = request.contact
    lengths = {"gap": contact.gap, "margin": contact.margin}
    return {
        "sensors": request.sensors,
        "enter": rule.enter,
        "leave": rule.leave,
        "min_frames": rule.min_frames,
        **({"times": True} if request.times else {}),
        "frames": request.frames,
        "worlds": request.worlds,
        "gap_rule": contact.gap_rule,
        "static_pairs": contact.static_pairs,
        **lengths,
        **nominal_option(request.nominal_stiffness),
        "scene": {name: value for name, value in asdict(request.scene_options).items() if value},
        "recording": {name: value for name, value in asdict(request.recording).items() if value},
    }


class SensorTally:
    """Sums over the blocks that are written, of each column; of the first `listed` ones by bin of
    frames too."""

    def __init__(self, labels: SensorLabels, listed: int) -> None:
        self.labels = labels
        self.bins = TimeBins(len(labels.frames), MAX_BINS)
        self._binned = np.zeros((len(self.bins.start), min(listed, len(labels.sensors))), np.int64)
        self._greatest = {
            name: np.full(self._binned.shape, -np.inf) for name in ("count", "distance", "force")
        }
        columns = len(labels.sensors)
        self.cells = np.zeros(columns, np.int64)
        self.most = np.full(columns, -1, np.int64)
        self.least = np.full(columns, np.inf)
        self.force = np.zeros(columns)
        self.at: list[dict[str, Any]] = [{} for _ in range(columns)]

    def blocks(self) -> Any:
        """The blocks of the labels, each counted once it is taken."""
        for block in self.labels.blocks():
            self._add(block)
            yield block

    def _add(self, block: SensorBlock) -> None:
        touching = block.touch.sum(axis=1)
        self.cells += touching.sum(axis=0)
        bins = self.bins.of[block.first : block.first + len(touching)]
        np.add.at(self._binned, bins, touching[:, : self._binned.shape[1]])
        self._add_bins(block, bins)
        self.most = np.maximum(self.most, block.count.max(axis=(0, 1), initial=-1))
        columns = len(self.cells)
        if block.nominal_force is not None:
            size = np.nan_to_num(norm(block.nominal_force)).reshape(-1, columns)
            self.force = np.maximum(self.force, size.max(axis=0, initial=0.0))
        values = np.where(np.isnan(block.distance), np.inf, block.distance).reshape(-1, columns)
        if not len(values):
            return
        cell = values.argmin(axis=0)
        least = values[cell, np.arange(columns)]
        texts = self.labels.texts["shapes"]
        for column in np.flatnonzero(least < self.least).tolist():
            frame, world = divmod(int(cell[column]), block.touch.shape[1])
            shapes = {
                name: texts[row] if (row := int(rows[frame, world, column])) >= 0 else ""
                for name, rows in (("shape", block.shape), ("partner", block.partner))
            }
            frame += block.first
            time = float(self.labels.frames.time[frame])
            self.at[column] = {"frame": frame, "time": time, "world": world, **shapes}
        self.least = np.minimum(self.least, least)

    def _add_bins(self, block: SensorBlock, bins: np.ndarray) -> None:
        """Adds the values of the listed columns to the bins of the frames: number of contacts,
        negative distance, force."""
        listed = self._binned.shape[1]
        values = {
            "count": np.where(block.count >= 0, block.count, -np.inf),
            "distance": np.where(np.isnan(block.distance), -np.inf, -block.distance),
        }
        if block.nominal_force is not None:
            force = norm(block.nominal_force)
            values["force"] = np.where(np.isnan(force), -np.inf, force)
        for name, of_cells in values.items():
            of_frames = of_cells[..., :listed].max(axis=1, initial=-np.inf)
            np.maximum.at(self._greatest[name], bins, of_frames)

    def _of_bins(self, name: str) -> list[list[float | None]]:
        """The greatest value of each bin of each listed column, of a distance the least; None
        without one."""
        values = self._greatest[name].T
        values = -values if name == "distance" else values
        return [[x if np.isfinite(x) else None for x in row] for row in values.tolist()]

    def series(self, cells: np.ndarray) -> dict[str, Any]:
        """The bins; and of each listed column the labelled fraction of the cells, the most
        contacts, the least distance and the greatest nominal force. cells: int64[F, K], those that
        have the column."""
        frames = self.labels.frames
        of_bin = np.zeros_like(self._binned)
        np.add.at(of_bin, self.bins.of, cells[:, : of_bin.shape[1]])
        labelled = (self._binned / np.maximum(of_bin, 1)).T.tolist()
        values = {name: self._of_bins(name) for name in self._greatest}
        if FORCE not in self.labels.dense:
            values.pop("force")
        return {**self.bins.axis(frames.time, frames.number), "labelled": labelled, **values}


def sensor_result(request: SensorRequest, tally: SensorTally) -> SensorResult:
    """The result of `label_sensors`, after all blocks were taken."""
    labels = tally.labels
    cells = labels.recorded.astype(np.int64) @ labels.present.astype(np.int64)
    of_column = cells.sum(axis=0)
    listed = []
    for column, name in list(enumerate(labels.sensors))[: request.first]:
        sensor = labels.placed.sensors[column]
        count = int(tally.cells[column])
        listed.append(
            {
                "sensor": name,
                "declared": sensor.declared,
                "cells": count,
                "share": count / max(1, int(of_column[column])),
                "most": int(tally.most[column]) if sensor.kind == CONTACT else None,
                "least_distance": float(tally.least[column]),
                **({"outside_region": labels.outside[column]} if column in labels.outside else {}),
                **tally.at[column],
                **(
                    {"greatest_force": float(tally.force[column])}
                    if request.nominal_stiffness is not None and sensor.kind == CONTACT
                    else {}
                ),
            }
        )
    return SensorResult(
        **MotionResult.source(request, labels.scene, labels.motion),
        options=labels.options,
        shape=dict(zip(("frames", "worlds", "sensors"), labels.shape, strict=True)),
        sensors=list(labels.sensors),
        recorded=int(labels.recorded.sum()),
        labelled=int(tally.cells.sum()),
        listed=listed,
        series=tally.series(cells),
        warnings=list(dict.fromkeys(labels.notes)),
        output=request.output or None,
        bytes=os.path.getsize(request.output) if request.output else None,
    )
