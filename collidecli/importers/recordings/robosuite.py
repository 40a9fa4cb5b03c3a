"""Demonstrations of robosuite, robomimic and LIBERO: MuJoCo states, with the scene in which they
were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import times
from collidecli.importers.recordings.content import Content, h5_damage, h5_masks
from collidecli.importers.recordings.coordinates import (
    RECORDED_FROM,
    CoordinateMotion,
    check_world_count,
    mujoco_scene,
)
from collidecli.importers.recordings.recording import (
    EmbeddedScene,
    EmbeddedScenes,
    RecordingDescription,
    Target,
)
from collidecli.importers.recordings.times import (
    UNEVEN,
    DemonstrationRecording,
    rate_time,
    shared_length,
)
from collidecli.scene.episodes import Episodes
from collidecli.scene.options import RecordingOptions
from collidecli.storage.process_activity import structure, structure_step
from collidecli.wording import in_order

MODEL_FILE = "model_file"


class RobosuiteRecording(DemonstrationRecording):
    """Demonstrations of which each is a world; their states are found once, when the file is
    opened."""

    NAME = "robosuite"
    LABEL = "robosuite, robomimic or LIBERO demonstrations (HDF5: data/demo_k/states)"
    OPTIONS = ("demos", "uneven_demos", "fps")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._file = content.h5_file
        self._path = content.path
        self.where = f"{self._path}: /data"
        with h5_damage(self._path), structure():
            data: Any = self._file["data"]
            by_demo = {}
            for name in in_order(
                str(name) for name in data if isinstance(data.get(name), h5py.Group)
            ):
                structure_step()
                states = data[name].get("states")
                where = f"{self._path}: /data/{name}/states"
                if not isinstance(states, h5py.Dataset):
                    raise InputError(
                        "the demonstration has no states", where, "record MuJoCo's states with it"
                    )
                if states.dtype.kind != "f" or states.shape is None or len(states.shape) != 2:
                    what = (
                        f"the states are {states.dtype}{list(states.shape or ())}, not floats"
                        " [frames, numbers]"
                    )
                    raise InputError(what, where, "record time, qpos and qvel of each frame")
                by_demo[name] = states
            self._states = by_demo

    @staticmethod
    def recognise(content: Content) -> bool:
        """A group `data` of groups that have a dataset `states` or an attribute `model_file`."""
        data = content.h5.get("data") if content.h5 is not None else None
        if not isinstance(data, h5py.Group):
            return False
        groups = [item for item in map(data.get, data) if isinstance(item, h5py.Group)]
        if any(isinstance(group.get("states"), h5py.Group) for group in groups):
            return False
        return (
            any("states" in group or MODEL_FILE in group.attrs for group in groups)
            or MODEL_FILE in data.attrs
        )

    def describe(self) -> RecordingDescription:
        first = next(iter(self._states.values()), None)
        if first is None:
            raise InputError(
                "the recording has no demonstrations", self.where, "record at least one"
            )
        with h5_damage(self._path), structure():
            models = {_model_file(self._file, name) for name in self._states}
            masks = h5_masks(self._file)
        with h5_damage(self._path):
            longest = max(self._states.values(), key=len)
            time = (
                np.asarray(longest[:, 0], np.float64)
                if longest.shape[0] and longest.shape[1]
                else np.zeros(0)
            )
        lengths = {name: states.shape[0] for name, states in self._states.items()}
        shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:8])
        needs = (UNEVEN,) if len(set(lengths.values())) > 1 else ()
        return RecordingDescription(
            frames=max(lengths.values()),
            worlds=len(lengths),
            start=float(time[0]) if len(time) else None,
            end=float(time[-1]) if len(time) else None,
            quaternion_order="wxyz",
            needs=needs if None not in models else (*needs, "an MJCF scene"),
            details=(
                (
                    "demonstrations",
                    shown + (f" and {len(lengths) - 8} more" if len(lengths) > 8 else ""),
                ),
                *masks,
                ("numbers a state", str(first.shape[1])),
                ("scenes within", str(len(models - {None}))),
            ),
        )

    def stored(self) -> list[str]:
        return list(self._states)

    def embedded_scenes(self, options: RecordingOptions) -> EmbeddedScenes:
        """The distinct scenes of the chosen demonstrations. Raises InputError for one without
        `model_file`."""
        texts: dict[str, str] = {}
        worlds = []
        for name in self.chosen(options):
            with h5_damage(self._path), structure():
                text = _model_file(self._file, name)
            if text is None:
                what = f"the demonstration contains no scene (attribute {MODEL_FILE})"
                raise InputError(
                    what, f"{self.where}/{name}", "give the scene in which it was recorded"
                )
            texts.setdefault(text, f"{self.where}/{name}, {MODEL_FILE}")
            worlds.append(list(texts).index(text))
        return EmbeddedScenes(tuple(EmbeddedScene(*item) for item in texts.items()), tuple(worlds))

    def motion(self, target: Target, options: RecordingOptions) -> CoordinateMotion:
        """The chosen demonstrations as worlds, in order."""
        names = self.chosen(options)
        check_world_count(len(names), target, self.where)
        lengths = {name: self._states[name].shape[0] for name in names}
        frames = shared_length(lengths, options, self.where)
        with h5_damage(self._path):
            demos = _Demos([self._states[name] for name in names], target, self._path)
            if options.fps is not None:
                time = rate_time(frames, options.fps, self._path)
                warnings = ()
            else:
                locations = [demos.location(world) for world in range(len(names))]
                time, warnings = times.shared_time(demos.times(frames), locations)
        episodes = Episodes.of_demonstrations(lengths, frames)
        return CoordinateMotion(self._path, target, demos, time, warnings, self.close, episodes)


class _Demos:
    """The chosen demonstrations; see `RecordedCoordinates`. A demonstration keeps its last pose
    after its end."""

    def __init__(self, states: list[h5py.Dataset], target: Target, path: str) -> None:
        self._states = states
        self._path = path
        self.world_count = len(states)
        counts = [
            _coordinate_count(target, k, rows.shape[1], self.location(k))
            for k, rows in enumerate(states)
        ]
        self._coordinate_count = counts

    def location(self, world: int) -> str:
        return f"{self._path}: {self._states[world].name}"

    def has_mocap(self, world: int) -> bool:
        return False

    def read(self, worlds: Sequence[int], frames: range) -> tuple[np.ndarray, None]:
        return np.stack([self._coordinates(world, frames) for world in worlds], axis=1), None

    def times(self, frame_count: int) -> list[np.ndarray]:
        """The recorded times of each demonstration, of at most `frame_count` frames [s]."""
        worlds = range(self.world_count)
        return [
            self._rows(world, slice(0, frame_count), slice(0, 1))[:, 0].astype(np.float64)
            for world in worlds
        ]

    def _coordinates(self, world: int, frames: range) -> np.ndarray:
        """float64[n, nq]."""
        rows = np.minimum(np.asarray(frames, np.intp), self._states[world].shape[0] - 1)
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        block = self._rows(
            world, slice(first, last + 1), slice(1, 1 + self._coordinate_count[world])
        )
        return block[rows - first].astype(np.float64)

    def _rows(self, world: int, frames: slice, columns: slice) -> np.ndarray:
        try:
            return self._states[world][frames, columns]
        except OSError as error:
            what = f"the states cannot be read: {error}"
            raise InputError(what, self.location(world), "copy or record it again") from error


def _model_file(file: h5py.File, demo: str) -> str | None:
    """The scene of a demonstration: its own, or that of the whole file. Raises InputError for one
    that is not UTF-8."""
    structure_step()
    for group in (f"data/{demo}", "data"):
        model_file = file[group].attrs.get(MODEL_FILE)
        if isinstance(model_file, (bytes, str)):
            raw = (
                model_file
                if isinstance(model_file, bytes)
                else model_file.encode("utf-8", "surrogateescape")
            )
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"{file.filename}: /{group}, {MODEL_FILE}"
                raise InputError(
                    "the embedded scene is not UTF-8", where, "give the scene as a file"
                ) from error
    return None


def _coordinate_count(target: Target, world: int, width: int, where: str) -> int:
    """nq of a world's scene. Raises InputError where a state of `width` numbers is not its time,
    qpos and qvel."""
    model = mujoco_scene(target.imports[target.world_import[world]], where).mj_model
    plain = 1 + model.nq + model.nv
    # Older recorders append the activations of actuators, after the columns of both layouts.
    if width not in (plain, plain + model.na):
        with_act = f", with act {plain + model.na}" if model.na else ""
        what = f"a state has {width} numbers, and time, qpos and qvel of the scene are {plain} "
        raise InputError(f"{what}(1 + {model.nq} + {model.nv}{with_act})", where, RECORDED_FROM)
    return int(model.nq)
