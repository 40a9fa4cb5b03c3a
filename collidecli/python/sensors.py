"""The Python function `label_sensors`, and its result."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.results.result import PathLike, html_table
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.verbs.label.sensor_labels import SensorBlock, SensorLabels
from collidecli.verbs.label.sensors import SensorRequest, evaluated

if TYPE_CHECKING:
    import pandas

    from collidecli.exporters.dense_columns import NamedColumns

OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, names=["gap", "margin", "gap_rule", "static_pairs"]),
    **option_parameters(EngineOptions),
}
"""Options of `run` that have an effect on sensors."""


@dataclass(frozen=True, repr=False)
class Sensors:
    """What sensors measure, as arrays; F frames, W worlds, K sensors.

    touch: bool[F, W, K], the label. count: int32[F, W, K], contacts at most `enter` apart; -1 for a
    sensor that is not of contacts. distance: float64[F, W, K], the least [m], infinite without a
    reported contact, NaN where `present` is false, and for a point in a volume. shape, partner:
    int32[F, W, K], rows of `shapes` of the nearest contact, -1 without one. float64[F, W, K, 3],
    world, NaN without one: point, partner_point, its witness points on the two shapes [m];
    position, their middle [m]; normal, unit, from shape to partner; centre, the mean position of
    the counted contacts [m]; tangent, unit, None where no sensor declares it; nominal_force, on the
    sensor [N], 0 without penetration, and pressure_centre, of that force [m], both None without
    nominal_stiffness. sensors: names.
    declared: the word that declares each. shapes: paths. frame, step: int64[F]. time: float64[F]
    [s]. world: int64[W]. recorded: bool[F, W]. present: bool[W, K], whether the world's scene has
    the sensor. With `times`, else None: begins, ends, bool[F, W, K], a label begins or has ended in
    the frame; contact_time, air_time, float64[F, W, K], since then [s]; last_contact_time,
    last_air_time, of the last phase that has ended, NaN before [s].
    """

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
    tangent: np.ndarray | None
    nominal_force: np.ndarray | None
    pressure_centre: np.ndarray | None
    sensors: tuple[str, ...]
    declared: tuple[str, ...]
    shapes: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray
    world: np.ndarray
    recorded: np.ndarray
    present: np.ndarray
    begins: np.ndarray | None = None
    ends: np.ndarray | None = None
    contact_time: np.ndarray | None = None
    air_time: np.ndarray | None = None
    last_contact_time: np.ndarray | None = None
    last_air_time: np.ndarray | None = None

    def __repr__(self) -> str:
        frames, worlds, sensors = self.touch.shape
        return f"<Sensors frames={frames} worlds={worlds} sensors={sensors}>"

    def __len__(self) -> int:
        return int(self._rows.sum())

    def _repr_html_(self) -> str:
        sizes = dict(zip(("frames", "worlds", "sensors"), self.touch.shape, strict=True))
        return html_table(sizes | {"touching": int(self.touch[self._rows].sum())})

    @property
    def _rows(self) -> np.ndarray:
        """bool[F, W, K]: recorded cells of sensors that are present."""
        return self.recorded[:, :, None] & self.present

    def _axes(self, **of_frames: np.ndarray) -> list[dict[str, np.ndarray]]:
        return [
            {"frame": self.frame, **of_frames, "time": self.time},
            {"world": self.world},
            {"sensor": np.array(self.sensors, object)},
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """The rows and columns of `label --sensors -o x.parquet`, `len` of them. Raises InputError
        without pandas."""
        from collidecli.exporters.dense_columns import dense_rows

        paths = np.array([*self.shapes, ""], object)  # the last is of -1
        arrays = {
            member.name: getattr(self, member.name)
            for member in fields(SensorBlock)
            if member.name != "first" and getattr(self, member.name) is not None
        }
        arrays |= {name: paths[arrays[name]] for name in ("shape", "partner")}
        return dense_rows(self._axes(step=self.step), arrays, self._rows).to_pandas()

    def events(self) -> NamedColumns:
        """A row for each run of frames with a label: world, sensor, and columns as of
        `Clearances.events` but those of distances."""
        from collidecli.exporters.dense_columns import dense_intervals

        return dense_intervals(self._axes(), self.touch & self._rows, self.recorded)


@python_call
@with_options(OPTIONS)
def label_sensors(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    sensors: PathLike = "scene",
    enter: float | str = 0.0,
    leave: float | str | None = None,
    min_frames: int = 1,
    nominal_stiffness: float | None = None,
    times: bool = False,
    **options: Any,
) -> Sensors:
    """What the sensors of a scene in motion measure, as arrays.

    Args:
        scene, recording: as of `run`.
        sensors: "scene" for those that the scene declares, "scene:PATTERN" for some of them, or a
            TOML file.
        enter: a label begins at a distance of at most this, in metres or as a text such as "2mm".
            leave: it lasts while the distance is at most this; None is `enter`. min_frames: shorter
            pauses are filled, then shorter labels left out.
        nominal_stiffness: adds nominal forces, this times the depth of each pair of shapes [N/m].
            Poses determine no forces, see docs/reference/sensors.md.
        times: adds the times of contact and of air.
        options: of `run` for the scene, the recording and the engine, and `worlds`, `frames`,
            `gap`, `margin`, `gap_rule`, `static_pairs`.
    Returns:
        `Sensors`.
    Raises:
        InputError: as `collide label --sensors` does.
    """
    request = source_request(
        SensorRequest,
        scene,
        recording,
        options,
        sensors=os.fspath(sensors),
        enter=checked_metres(enter, "enter"),
        leave=None if leave is None else checked_metres(leave, "leave"),
        min_frames=min_frames,
        nominal_stiffness=nominal_stiffness,
        times=times,
    )
    found, labels = evaluated(request, lambda labels: (_in_memory(labels), labels))
    for note in dict.fromkeys(labels.notes):
        warnings.warn(note, stacklevel=3)
    return found


def _in_memory(labels: SensorLabels) -> Sensors:
    """The arrays of all blocks."""
    blocks = list(labels.blocks())

    def whole(name: str) -> Any:
        if name not in labels.dense:
            return None
        array = labels.dense[name]
        empty = np.zeros((0, *labels.shape[1:], *array.element), array.dtype)
        return np.concatenate([empty, *(getattr(block, name) for block in blocks)])

    arrays = {
        member.name: whole(member.name) for member in fields(SensorBlock) if member.name != "first"
    }
    return Sensors(
        **arrays,
        sensors=labels.sensors,
        declared=labels.texts["declared"],
        shapes=labels.texts["shapes"],
        frame=labels.frames.number,
        step=labels.step,
        time=labels.frames.time,
        world=labels.worlds,
        recorded=labels.recorded,
        present=labels.present,
    )
