"""robosuite's demonstrations, which robomimic and LIBERO write too: MuJoCo states, with the scene they were made in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import Content, h5_damage
from collidecli.importers.recordings.coordinates import (
    RECORDED_FROM,
    CoordinateMotion,
    check_world_count,
    scene_kinematics,
)
from collidecli.importers.recordings.demos import chosen_demos, in_order, shared_length
from collidecli.importers.recordings.description import RecordingFacts
from collidecli.importers.recordings.target import Target
from collidecli.importers.recordings.times import rate_time, shared_time
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.h5_input import open_h5
from collidecli.storage.process_activity import structure, structure_step

NAME = "robosuite"
LABEL = "robosuite, robomimic or LIBERO demonstrations (HDF5: data/demo_k/states)"
OPTIONS = ("demos", "uneven_demos", "fps")

MODEL_FILE = "model_file"


@dataclass(frozen=True)
class CarriedScene:
    """A scene that a recording brings along. text: its MJCF. place: where it is, for messages. sha256: of the text."""

    text: str
    place: str


@dataclass(frozen=True)
class CarriedScenes:
    """Different scenes in the order in which demonstrations first have them, and which each world has."""

    scenes: tuple[CarriedScene, ...]
    world_scene: tuple[int, ...]


def recognise(content: Content) -> bool:
    """A group `data` of groups that have a dataset `states` or an attribute `model_file`."""
    data = content.h5.get("data") if content.h5 is not None else None
    if not isinstance(data, h5py.Group):
        return False
    groups = [item for item in map(data.get, data) if isinstance(item, h5py.Group)]
    if any(isinstance(group.get("states"), h5py.Group) for group in groups):
        return False
    return any("states" in group or MODEL_FILE in group.attrs for group in groups) or MODEL_FILE in data.attrs


def describe(path: str) -> RecordingFacts:
    """See `RecordingKind.describe`."""
    with open_h5(path) as file, h5_damage(path), structure():
        held = _demos(file, path)
        lengths = {name: states.shape[0] for name, states in held.items()}
        models = {_model_file(file, name) for name in held}
        first = next(iter(held.values()), None)
        if first is None:
            raise InputError("the recording has no demonstrations", f"{path}: /data", "record one at least")
        time = np.asarray(first[:, 0], np.float64) if first.shape[0] and first.shape[1] else np.zeros(0)
        uneven = len(set(lengths.values())) > 1
        shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:8])
        needs = ("--demos, or --uneven-demos: their lengths differ",) if uneven else ()
        return RecordingFacts(
            frames=max(lengths.values()),
            worlds=len(held),
            start=float(time[0]) if len(time) else None,
            end=float(time[-1]) if len(time) else None,
            quaternion_order="wxyz",
            needs=needs if None not in models else (*needs, "an MJCF scene"),
            details=(
                ("demonstrations", shown + (f" and {len(lengths) - 8} more" if len(lengths) > 8 else "")),
                ("numbers a state", str(first.shape[1])),
                ("scenes within", str(len(models - {None}))),
            ),
        )


def world_count(path: str, options: RecordingOptions) -> int | None:
    """See `RecordingKind.world_count`."""
    with open_h5(path) as file, h5_damage(path), structure():
        return len(chosen_demos(list(_demos(file, path)), options, f"{path}: /data"))


def carried_scenes(path: str, options: RecordingOptions) -> CarriedScenes:
    """The scenes of the chosen demonstrations, equal ones once. Raises InputError for one without `model_file`."""
    with open_h5(path) as file, h5_damage(path), structure():
        names = chosen_demos(list(_demos(file, path)), options, f"{path}: /data")
        texts: dict[str, str] = {}
        worlds = []
        for name in names:
            text = _model_file(file, name)
            if text is None:
                raise InputError(
                    f"the demonstration carries no scene (attribute {MODEL_FILE})",
                    f"{path}: /data/{name}",
                    "give the scene that it was recorded in",
                )
            texts.setdefault(text, f"{path}: /data/{name}, {MODEL_FILE}")
            worlds.append(list(texts).index(text))
    return CarriedScenes(tuple(CarriedScene(text, place) for text, place in texts.items()), tuple(worlds))


def open_motion(path: str, target: Target, options: RecordingOptions) -> Motion:
    """See `RecordingKind.open_motion`. The chosen demonstrations are worlds, in order."""
    file = open_h5(path)
    try:
        with h5_damage(path), structure():
            held = _demos(file, path)
            names = chosen_demos(list(held), options, f"{path}: /data")
            check_world_count(len(names), target, f"{path}: /data")
            frames = shared_length({name: held[name].shape[0] for name in names}, options, f"{path}: /data")
            demos = _Demos([held[name] for name in names], target, path)
            if options.fps is not None:
                time, warnings = rate_time(frames, options.fps, path), ()
            else:
                time, warnings = shared_time(demos.times(frames), [demos.place(world) for world in range(len(names))])
        return CoordinateMotion(path, target, demos, time, warnings, file.close)
    except BaseException:
        file.close()
        raise


class _Demos:
    """The chosen demonstrations; see `RecordedCoordinates`. Past its end one rests at its last pose."""

    def __init__(self, states: list[h5py.Dataset], target: Target, path: str) -> None:
        self._states, self._path = states, path
        self.world_count = len(states)
        self._coordinate_count = [
            _coordinate_count(target, world, held.shape[1], self.place(world)) for world, held in enumerate(states)
        ]

    def place(self, world: int) -> str:
        return f"{self._path}: {self._states[world].name}"

    def has_mocap(self, world: int) -> bool:
        return False

    def read(self, worlds: Sequence[int], frames: range) -> tuple[np.ndarray, None]:
        return np.stack([self._coordinates(world, frames) for world in worlds], axis=1), None

    def times(self, frame_count: int) -> list[np.ndarray]:
        """Of each demonstration as recorded, at most so many frames."""
        every = range(self.world_count)
        return [self._rows(world, slice(0, frame_count), slice(0, 1))[:, 0].astype(np.float64) for world in every]

    def _coordinates(self, world: int, frames: range) -> np.ndarray:
        """float64[n, nq]."""
        rows = np.minimum(np.asarray(frames, np.intp), self._states[world].shape[0] - 1)
        first, last = (int(rows[0]), int(rows[-1])) if len(rows) else (0, -1)
        block = self._rows(world, slice(first, last + 1), slice(1, 1 + self._coordinate_count[world]))
        return block[rows - first].astype(np.float64)

    def _rows(self, world: int, frames: slice, columns: slice) -> np.ndarray:
        try:
            return self._states[world][frames, columns]
        except OSError as error:
            what = f"the states cannot be read: {error}"
            raise InputError(what, self.place(world), "copy or record it again") from error


def _demos(file: h5py.File, path: str) -> dict[str, h5py.Dataset]:
    """States of every demonstration by its name, in numeric order. Raises InputError for one that has none."""
    data = file["data"]
    assert isinstance(data, h5py.Group)
    found = {}
    for name in in_order(str(name) for name in data if isinstance(data.get(name), h5py.Group)):
        structure_step()
        states = data[name].get("states")  # type: ignore[union-attr]
        where = f"{path}: /data/{name}/states"
        if not isinstance(states, h5py.Dataset):
            raise InputError("the demonstration has no states", where, "record MuJoCo's states with it")
        if states.dtype.kind != "f" or states.shape is None or len(states.shape) != 2:
            what = f"the states are {states.dtype}{list(states.shape or ())}, not floats [frames, numbers]"
            raise InputError(what, where, "record time, qpos and qvel of each frame")
        found[name] = states
    return found


def _model_file(file: h5py.File, demo: str) -> str | None:
    """The scene of a demonstration, its own or that of all. Raises InputError for one that is not UTF-8."""
    for place in (f"data/{demo}", "data"):
        found = file[place].attrs.get(MODEL_FILE)
        if isinstance(found, (bytes, str)):
            raw = found if isinstance(found, bytes) else found.encode("utf-8", "surrogateescape")
            try:
                return raw.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f"{file.filename}: /{place}, {MODEL_FILE}"
                raise InputError("the scene within is not UTF-8", where, "give the scene itself") from error
    return None


def _coordinate_count(target: Target, world: int, width: int, where: str) -> int:
    """nq of a world's scene. Raises InputError where a state of `width` numbers is not time, qpos, qvel of it."""
    scene = target.imports[target.world_import[world]]
    scene_kinematics(scene, where)
    model = scene.mj_model
    plain = 1 + model.nq + model.nv
    # Both begin alike; older recorders append the activations of actuators.
    if width not in (plain, plain + model.na):
        with_act = f", with act {plain + model.na}" if model.na else ""
        raise InputError(
            f"a state has {width} numbers, and time, qpos and qvel of the scene are {plain} "
            f"(1 + {model.nq} + {model.nv}{with_act})",
            where,
            RECORDED_FROM,
        )
    return int(model.nq)
