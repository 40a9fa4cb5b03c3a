"""MuJoCo states: arrays in the layout of mj_getState, and demonstrations of robosuite with their
scenes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import h5py
import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import times
from collidecli.importers.recordings.array_files import ArrayHeader
from collidecli.importers.recordings.column_titles import is_position
from collidecli.importers.recordings.content import Content, h5_damage
from collidecli.importers.recordings.coordinates import (
    RECORDED_FROM,
    CoordinateMotion,
    check_world_count,
    mujoco_scene,
)
from collidecli.importers.recordings.motion_tables import (
    COORDINATES,
    JOINT_NAMES,
    holds_motion,
    stored_rate,
)
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.stored_names import refuse_other_order, texts_beside
from collidecli.importers.recordings.times import (
    GIVE_RATE,
    SAME_TIME,
    checked_time,
    rate_time,
    step_mismatch,
)
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.options import RecordingOptions
from collidecli.storage.process_activity import structure
from collidecli.storage.reading_limit import check_size
from collidecli.storage.storage_formats import NPY

PREFIX = "mjSTATE_"
NAMES = {
    name[len(PREFIX) :]: int(getattr(mujoco.mjtState, name))
    for name in dir(mujoco.mjtState)
    if name.startswith(PREFIX)
}
USUAL = ("FULLPHYSICS", "PHYSICS", "INTEGRATION", "QPOS")
"""Layouts that are tried when none is given."""
_QPOS = NAMES["QPOS"]
_TIME = NAMES["TIME"]


@dataclass(frozen=True)
class StateLayout:
    """A state vector of one model.

    name: of the layout. size: numbers in a state. columns: of each component, for example "QPOS".
    order: int64[nq], the recorded number of each coordinate, where quaternions are recorded as
    xyzw.
    """

    name: str
    size: int
    columns: dict[str, slice]
    order: np.ndarray | None = None

    def qpos(self, states: np.ndarray) -> np.ndarray:
        """float64[..., nq] of states[..., size]."""
        qpos = states[..., self.columns["QPOS"]].astype(np.float64)
        return qpos if self.order is None else qpos[..., self.order]

    def mocap(self, states: np.ndarray) -> np.ndarray | None:
        """float64[..., nmocap, 7] xyzw of states[..., size]; None where the layout lacks positions
        or rotations."""
        if not {"MOCAP_POS", "MOCAP_QUAT"} <= self.columns.keys():
            return None
        position = states[..., self.columns["MOCAP_POS"]].astype(np.float64)
        rotation = states[..., self.columns["MOCAP_QUAT"]].astype(np.float64)
        bodies = (*states.shape[:-1], position.shape[-1] // 3)
        return np.concatenate(
            [position.reshape(*bodies, 3), rotation.reshape(*bodies, 4)[..., WXYZ_TO_XYZW]], axis=-1
        )


def parse_spec(text: str) -> int:
    """MuJoCo's bit mask of a layout: FULLPHYSICS, mjSTATE_PHYSICS, or components such as qpos,qvel
    or qpos|qvel."""
    spec = 0
    for part in re.split(r"[,|\s]+", text.strip()):
        name = part.upper()
        name = name[len(PREFIX) :] if name.startswith(PREFIX.upper()) else name
        if name not in NAMES:
            fix = f"known names: {', '.join(sorted(NAMES))}"
            raise InputError(f"MuJoCo has no state component '{part}'", "--state-spec", fix)
        spec |= NAMES[name]
    if not spec & _QPOS:
        raise InputError(
            f"'{text}' has no QPOS, so no poses",
            "--state-spec",
            "give the layout that was recorded",
        )
    return spec


def layout_of(mj_model: mujoco.MjModel, spec: int, name: str) -> StateLayout:
    """The layout of a model's state: its components in the order of their bits, as mj_getState
    writes them."""
    columns = {}
    start = 0
    for component, bit in sorted(NAMES.items(), key=lambda item: item[1]):
        if bit.bit_count() == 1 and spec & bit:
            size = mujoco.mj_stateSize(mj_model, bit)
            columns[component] = slice(start, start + size)
            start += size
    return StateLayout(name, start, columns)


def find_layout(mj_model: mujoco.MjModel, text: str, size: int, where: str) -> StateLayout:
    """The layout of states of `size` numbers: the given one, or without `text` the only usual one
    of that size.

    Raises InputError with the sizes: no layout fits, or several do.
    """
    if text:
        layout = layout_of(mj_model, parse_spec(text), text)
        if layout.size != size:
            parts = ", ".join(
                f"{name} {part.stop - part.start}" for name, part in layout.columns.items()
            )
            what = f"a state has {size} numbers, and {text} of this scene {layout.size} ({parts})"
            raise InputError(what, where, f"give the layout that was recorded, or {RECORDED_FROM}")
        return layout
    usual = [layout_of(mj_model, NAMES[name], name) for name in USUAL]
    fitting = [layout for layout in usual if layout.size == size]
    sizes = ", ".join(f"{layout.name} {layout.size}" for layout in usual)
    if len(fitting) > 1:
        names = " and ".join(layout.name for layout in fitting)
        raise InputError(
            f"a state has {size} numbers, which {names} have in this scene",
            where,
            "give --state-spec",
        )
    if not fitting:
        what = f"a state has {size} numbers, and those of this scene {sizes}"
        raise InputError(what, where, f"give --state-spec, or {RECORDED_FROM}")
    return fitting[0]


ARRAY_NAMES = ("states", "state")
COORDINATE_NAMES = (
    COORDINATES,
    *(f"{before}{dot}{COORDINATES}" for before in ("data", "state.data") for dot in "./"),
    *(f"{before}{dot}q" for before in ("pipeline_state", "state.pipeline_state") for dot in "./"),
)
"""Names of MuJoCo's coordinates alone: of MJX, of the states of MuJoCo Playground, and of Brax,
whose `q` has MuJoCo's order."""
TIME = "time"
TIME_NAMES = (TIME, "data.time", "data/time", "state.data.time", "state.data/time")
"""Names of the times beside them."""
TIMES = "times"
"""Name of the times of MuJoCo Warp's recordings. Beside one initial state they are those of
controls, so they count with one a frame alone."""
_SHAPES = "[worlds, frames, numbers] or [frames, numbers]"
WORLDS_FIRST = "worlds"
FRAMES_FIRST = "frames"
CLOCK_ROWS = 64
"""Worlds and frames of which the times are compared to tell the axes."""


class MujocoStatesRecording(Recording):
    """An array of states [worlds, frames, numbers], [frames, worlds, numbers] or [frames,
    numbers]."""

    NAME = "mujoco-states"
    LABEL = (
        "MuJoCo states as mj_getState lays them out (.npy, .npz or HDF5: `states` or `qpos`,"
        " [worlds, frames, numbers])"
    )
    OPTIONS = ("state_spec", "first_axis", "quaternion_order", "fps")

    def __init__(self, content: Content) -> None:
        self.content = content
        with h5_damage(content.path), structure():
            self._array = _array(content)
            self._beside = _arrays_beside(content)
        self._time_name = next((name for name in TIME_NAMES if name in self._beside), "")
        times_beside = self._beside.get(TIMES)
        if not self._time_name and times_beside and self._array.shape:
            is_one_a_frame = times_beside.shape == self._array.shape[:1]
            self._time_name = TIMES if is_one_a_frame and len(self._array.shape) == 2 else ""

    @staticmethod
    def recognise(content: Content) -> bool:
        """An array of floats of two or three dimensions: named `states`, `state` or `qpos`, or the
        only one in it, unless its name is that of commands or velocities."""
        if content.h5 is not None:
            return _dataset_name(content.h5) is not None
        return _array_name(content.arrays) is not None

    def describe(self) -> RecordingDescription:
        """The shape of the array; the meaning of a state's numbers depends on the scene."""
        known = self._axes(RecordingOptions())
        array = self._array.with_axes(known or WORLDS_FIRST)
        worlds, frames, size = array.extents()
        own = self._own_time(array) if known else None
        time = None if own is None else own[0]
        needs = ["an MJCF or URDF scene"]
        needs += [] if known else [f"--first-axis, {WORLDS_FIRST} (shown here) or {FRAMES_FIRST}"]
        needs += [] if array.is_coordinates else ["--state-spec, where the size does not tell"]
        if time is None and stored_rate(self.content) is None:
            needs.append("--fps" if array.is_coordinates else "--fps, where a state has no time")
        return RecordingDescription(
            frames=frames,
            worlds=worlds,
            coordinates=0,
            quaternion_order="wxyz",
            start=None if time is None else float(time[0]),
            end=None if time is None else float(time[-1]),
            needs=tuple(needs),
            details=(
                ("array", array.name),
                ("numbers a state", str(size)),
                ("type", str(array.dtype)),
            ),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return self._placed(options).extents()[0]

    def _placed(self, options: RecordingOptions) -> _Array:
        """The array with known axes. Raises InputError where neither the file nor the option says
        which axis is the frames."""
        axes = self._axes(options)
        if not axes:
            shape = list(self._array.shape or ())
            what = f"the states are {shape}, and nothing tells whether worlds or frames are first"
            raise InputError(
                what,
                self._array.where,
                f"give --first-axis {WORLDS_FIRST} or --first-axis {FRAMES_FIRST}",
            )
        return self._array.with_axes(axes)

    def _axes(self, options: RecordingOptions) -> str:
        """Which axes are first: of the option, else by the times; "" where nothing tells."""
        array = self._array
        array.extents()
        assert array.shape is not None
        if len(array.shape) == 2:
            if options.first_axis:
                what = (
                    f"the states are {list(array.shape)}, of one world: --first-axis has no effect"
                )
                raise InputError(what, array.where, "remove --first-axis")
            return WORLDS_FIRST
        if options.first_axis:
            return options.first_axis
        if array.shape[0] == 1:
            return WORLDS_FIRST
        time = self._beside.get(self._time_name)
        if time is not None and len(time.shape) == 1 and array.shape[0] != array.shape[1]:
            fitting = {array.shape[1]: WORLDS_FIRST, array.shape[0]: FRAMES_FIRST}
            return fitting.get(time.shape[0], "")
        if time is not None and time.shape == array.shape[:2] and time.dtype.kind in "iuf":
            clocks = np.asarray(self._read_beside(self._time_name), np.float64)
            clocks = clocks[:CLOCK_ROWS, :CLOCK_ROWS]
            # both axes of clocks that start one after the other ascend
            is_either = _axes_of_clocks(clocks) == _axes_of_clocks(clocks.T)
            return "" if is_either else _axes_of_clocks(clocks)
        if array.is_coordinates:
            return ""
        return _axes_of_clocks(np.asarray(array.data()[:CLOCK_ROWS, :CLOCK_ROWS, 0], np.float64))

    def motion(self, target: Target, options: RecordingOptions) -> CoordinateMotion:
        """The states as a motion. The time of a frame is in its state, or follows from --fps."""
        path = self.content.path
        with h5_damage(path):
            array = self._placed(options)
            worlds, frames, size = array.extents()
            check_world_count(worlds, target, array.where)
            models = {
                i: mujoco_scene(target.imports[i], array.where).mj_model
                for i in set(target.world_import)
            }
            if not options.state_spec:
                self._check_order(models.values())
            spec = options.state_spec or ("QPOS" if array.is_coordinates else "")
            layouts = {
                i: find_layout(model, spec, size, array.where) for i, model in models.items()
            }
            if options.quaternion_order == "xyzw":
                layouts = {
                    i: replace(layout, order=_xyzw_order(models[i]))
                    for i, layout in layouts.items()
                }
            states = _States(array, [layouts[i] for i in target.world_import[:worlds]])
            time, warnings = self._time(states, frames, options)
        return CoordinateMotion(path, target, states, time, warnings, self.close)

    def _check_order(self, models: Iterable[mujoco.MjModel]) -> None:
        """Raises InputError where the file names the joints in another order than a scene."""
        array = self._array
        texts = texts_beside(self.content, array.name)
        for model in models if texts else ():
            joints = [model.joint(k).name for k in range(model.njnt)]
            refuse_other_order(texts, joints, array.name.strip("/"), array.where)

    def _time(
        self, states: _States, frames: int, options: RecordingOptions
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """float64[F] [s] and warnings: by --fps, of the states, of the array `time`, or by the
        stored rate."""
        if options.fps is None and states.has_time:
            return states.shared_time()
        own = self._own_time(self._placed(options)) if options.fps is None else None
        if own is not None:
            return own
        stored = stored_rate(self.content)
        rate = stored if options.fps is None else options.fps
        return rate_time(frames, rate, self._array.where), ()

    def _own_time(self, array: _Array) -> tuple[np.ndarray, tuple[str, ...]] | None:
        """float64[F], the times beside the states [s], and warnings; None without them.

        Those of several worlds have the axes of the states. Raises InputError for another shape.
        """
        if not self._time_name:
            return None
        where = f"{self.content.path}: {self._time_name}"
        header = self._beside[self._time_name]
        worlds, frames, _ = array.extents()
        assert array.shape is not None
        shapes = ((frames,), *([array.shape[:2]] if len(array.shape) == 3 else [(frames, 1)]))
        if header.shape not in shapes or header.dtype.kind not in "iuf":
            what = f"it is {header} for {frames} frames of {worlds} worlds"
            raise InputError(what, where, f"save it again, or {GIVE_RATE}")
        time = np.asarray(self._read_beside(self._time_name), np.float64)
        if header.shape != array.shape[:2] or len(array.shape) == 2:
            own = checked_time(time.reshape(-1), where)
            return own, times.long_step_warnings(own, where)
        by_world = time.T if array.frames_first else time
        return times.shared_time(list(by_world), [f"{where}[{w}]" for w in range(worlds)])

    def _read_beside(self, name: str) -> np.ndarray:
        """An array of the file by name."""
        if self.content.h5 is None:
            return self.content.array(name)
        dataset: Any = self.content.h5[name]
        check_size(8 * dataset.size, "the times", f"{self.content.path}: {name}", GIVE_RATE)
        return np.asarray(dataset[()])


def _xyzw_order(model: mujoco.MjModel) -> np.ndarray:
    """int64[nq]: of each coordinate of MuJoCo, its number where quaternions of free and ball joints
    are xyzw."""
    order = np.arange(model.nq)
    offset = {int(mujoco.mjtJoint.mjJNT_FREE): 3, int(mujoco.mjtJoint.mjJNT_BALL): 0}
    for kind, first in zip(model.jnt_type.tolist(), model.jnt_qposadr.tolist(), strict=True):
        if kind in offset:
            at = first + offset[kind]
            order[at : at + 4] = at + np.array([3, 0, 1, 2])
    return order


@dataclass(frozen=True)
class _Array:
    """The array of states in a file. where, name: for messages; the name is "" in .npy. data: opens
    the array. frames_first: of an array of several worlds."""

    where: str
    name: str
    shape: tuple[int, ...] | None
    dtype: np.dtype
    data: Callable[[], Any]
    frames_first: bool = False

    def with_axes(self, axes: str) -> _Array:
        return replace(self, frames_first=axes == FRAMES_FIRST)

    @property
    def is_coordinates(self) -> bool:
        return self.name.strip("/") in COORDINATE_NAMES

    def extents(self) -> tuple[int, int, int]:
        """Counts of worlds, frames and values of a state. Raises InputError: another shape, not
        floats, no states."""
        if self.shape is None or len(self.shape) not in (2, 3) or self.dtype.kind != "f":
            shown = f"{self.dtype}{list(self.shape or ())}"
            raise InputError(
                f"the states are {shown}, not floats {_SHAPES}",
                self.where,
                "save them in that shape",
            )
        worlds, frames, size = self.shape if len(self.shape) == 3 else (1, *self.shape)
        if not worlds or not frames:
            raise InputError(
                f"the shape is {list(self.shape)}: there is no state in it",
                self.where,
                "record a frame",
            )
        return (frames, worlds, size) if self.frames_first else (worlds, frames, size)


def _axes_of_clocks(times: np.ndarray) -> str:
    """Which axes are first, by the first number of each state, which is its time where it has one.

    Along the frames most of the times ascend, by steps that are those of the first world; clocks of
    worlds may differ by a constant. Where both axes are so, worlds are first, as
    MuJoCo's rollout writes them. "" where none is so.
    """
    tolerance = SAME_TIME * np.maximum(1.0, np.nanmax(np.abs(times), initial=0.0))
    for axis, name in ((1, WORLDS_FIRST), (0, FRAMES_FIRST)):
        steps = np.diff(times, axis=axis)
        first = np.take(steps, [0], axis=1 - axis)
        ascends = (steps > 0.0) & (np.abs(steps - first) <= tolerance)
        if steps.size and ascends.mean() > 0.5:
            return name
    return ""


class _States:
    """States of every world; see `RecordedCoordinates`. layouts: of each world."""

    def __init__(self, array: _Array, layouts: list[StateLayout]) -> None:
        self._array = array
        self._where = array.where
        self._layouts = layouts
        self._batched = array.shape is not None and len(array.shape) == 3
        self._time: np.ndarray | None = None
        self._start = np.zeros(0)
        self.world_count = len(layouts)
        self.has_time = "TIME" in layouts[0].columns

    @cached_property
    def _data(self) -> Any:
        """The array of the file, opened at the first use: a compressed one is read completely."""
        return self._array.data()

    def location(self, world: int) -> str:
        return f"{self._where}[{world}]" if self._batched else self._where

    def has_mocap(self, world: int) -> bool:
        return {"MOCAP_POS", "MOCAP_QUAT"} <= self._layouts[world].columns.keys()

    def shared_time(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """float64[F], the first world's times [s], and warnings; `read` compares the times of the
        other worlds.

        Where clocks differ by a constant, time counts from each world's first frame.
        Raises InputError naming the frame: a time that is not finite or decreases.
        """
        column = self._layouts[0].columns["TIME"].start
        time = checked_time(self._rows(slice(0, 1), slice(None), column)[0], self.location(0))
        start = self._rows(slice(None), slice(0, 1), column)[:, 0].astype(np.float64)
        shared, warnings = times.shared_time(
            [time, *start[1:, None]], [self.location(world) for world in range(len(start))]
        )
        self._time = time - time[0]
        self._start = start
        return shared, warnings

    def read(self, worlds: Sequence[int], frames: range) -> tuple[np.ndarray, np.ndarray | None]:
        first = worlds[0]  # worlds ascend
        block = self._rows(
            slice(first, worlds[-1] + 1), slice(frames.start, frames.stop, frames.step), slice(None)
        )
        states = block[np.asarray(worlds) - first].swapaxes(0, 1)
        layout = self._layouts[worlds[0]]
        if self._time is not None:
            self._check_time(states[..., layout.columns["TIME"].start], worlds, frames)
        return layout.qpos(states), layout.mocap(states)

    def _check_time(self, time: np.ndarray, worlds: Sequence[int], frames: range) -> None:
        assert self._time is not None
        since = time - self._start[list(worlds)]
        expected = self._time[np.asarray(frames, np.intp)][:, None]
        # The negated comparison is true for NaN.
        bad = ~(np.abs(since - expected) <= SAME_TIME * np.maximum(1.0, np.abs(time)))
        if bad.any():
            frame, world = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            where = f"{self.location(worlds[world])}, frame {frames[frame]}"
            raise step_mismatch(since[frame, world], expected[frame, 0], where)

    def _rows(self, worlds: slice, frames: slice, columns: slice | int) -> np.ndarray:
        """[worlds, frames] or [worlds, frames, columns]."""
        try:
            if self._array.frames_first:
                return np.asarray(self._data[frames, worlds, columns]).swapaxes(0, 1)
            if self._batched:
                return np.asarray(self._data[worlds, frames, columns])
            return np.asarray(self._data[frames, columns])[None]
        except (OSError, ValueError) as error:
            raise InputError(
                f"the states cannot be read: {error}", self._where, "copy or record it again"
            ) from error


def _array(content: Content) -> _Array:
    path = content.path
    if content.h5 is not None:
        with structure():
            name = _dataset_name(content.h5)
            dataset = content.h5[name] if name is not None else None
            if not isinstance(dataset, h5py.Dataset):
                raise InputError("there is no dataset of states", path, f"name it {ARRAY_NAMES[0]}")
            return _Array(
                f"{path}: /{name}", f"/{name}", dataset.shape, dataset.dtype, lambda: dataset
            )
    if content.storage == NPY:
        header = content.arrays[""]
        return _Array(path, "", header.shape, header.dtype, lambda: content.array(""))
    name = _array_name(content.arrays)
    if name is None:
        raise InputError("there is no array of states", path, f"name it {ARRAY_NAMES[0]}")
    header = content.arrays[name]
    return _Array(f"{path}: {name}", name, header.shape, header.dtype, lambda: content.array(name))


def _arrays_beside(content: Content) -> dict[str, ArrayHeader]:
    """Shape and type of the arrays of a file by name, of HDF5 of those outside groups."""
    if content.h5 is None:
        return content.arrays
    items = {str(name): content.h5.get(name) for name in content.h5}
    return {
        name: ArrayHeader(item.shape, item.dtype)
        for name, item in items.items()
        if isinstance(item, h5py.Dataset) and item.shape is not None
    }


def _dataset_name(file: h5py.File) -> str | None:
    headers = {str(name): item for name in file if isinstance(item := file.get(name), h5py.Dataset)}
    if len(headers) < len(file) and not set(headers) & {*ARRAY_NAMES, *COORDINATE_NAMES}:
        return None  # arrays in groups too: the only one outside them may be the commands
    return _array_name(headers)


def _array_name(headers: dict[str, Any]) -> str | None:
    named = next((name for name in ARRAY_NAMES if name in headers), None)
    coordinates = next((name for name in COORDINATE_NAMES if name in headers), None)
    if coordinates != COORDINATES and set(headers) & set(JOINT_NAMES):
        coordinates = None  # columns by name
    if coordinates and not holds_motion(headers):  # whose joints and bodies have names
        named = named or coordinates
    if named is not None:
        return named
    for name, header in headers.items() if len(headers) == 1 else ():
        if not is_position(name):
            return None  # commands or velocities, which may be as many
        if header.dtype.kind == "f" and header.shape is not None and len(header.shape) in (2, 3):
            return name
    return None
