"""MuJoCo states in the layout of mj_getState, as mujoco.rollout gives them: .npy, .npz or HDF5."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.arrays import npy_header, npz_headers, read_npy, read_npz
from collidecli.importers.recordings.content import HDF5, NPY, Content, h5_damage, storage_of
from collidecli.importers.recordings.coordinates import CoordinateMotion, check_world_count, scene_kinematics
from collidecli.importers.recordings.description import RecordingFacts
from collidecli.importers.recordings.state_layout import StateLayout, find_layout
from collidecli.importers.recordings.target import Target
from collidecli.importers.recordings.times import SAME_TIME, checked_time, out_of_step, rate_time, shared_time
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.h5_input import open_h5
from collidecli.storage.process_activity import structure

NAME = "mujoco-states"
LABEL = "MuJoCo states as mj_getState lays them out (.npy, .npz or HDF5: `states`, [worlds, frames, numbers])"
OPTIONS = ("state_spec", "fps")

ARRAY_NAMES = ("states", "state")
_SHAPES = "[worlds, frames, numbers] or [frames, numbers]"


def recognise(content: Content) -> bool:
    """An array of floats of two or three dimensions: named `states` or `state`, or the only one in the file."""
    if content.h5 is not None:
        return _dataset_name(content.h5) is not None
    return _array_name(content.arrays) is not None


def describe(path: str) -> RecordingFacts:
    """See `RecordingKind.describe`. Which numbers are what, only a scene can tell."""
    with _opened(path) as array:
        worlds, frames, size = array.extents()
    return RecordingFacts(
        frames=frames,
        worlds=worlds,
        coordinates=0,
        quaternion_order="wxyz",
        needs=("an MJCF or URDF scene", "--state-spec, where the size does not tell", "--fps, without a time in it"),
        details=(("array", array.name), ("numbers a state", str(size)), ("type", str(array.dtype))),
    )


def world_count(path: str, options: RecordingOptions) -> int | None:
    """See `RecordingKind.world_count`."""
    with _opened(path) as array:
        return array.extents()[0]


def open_motion(path: str, target: Target, options: RecordingOptions) -> Motion:
    """See `RecordingKind.open_motion`. A frame's time is in the states, or --fps says it."""
    array = _open(path)
    try:
        with h5_damage(path):
            worlds, frames, size = array.extents()
            check_world_count(worlds, target, array.where)
            layouts = {i: _layout(target.imports[i], options, size, array.where) for i in set(target.world_import)}
            held = _States(array, [layouts[i] for i in target.world_import[:worlds]])
            if options.fps is not None or not held.has_time:
                time, warnings = rate_time(frames, options.fps, array.where), ()
            else:
                time, warnings = held.keep_time()
        return CoordinateMotion(path, target, held, time, warnings, array.close)
    except BaseException:
        array.close()
        raise


@dataclass(frozen=True)
class _Array:
    """The array of states in a file. where, name: for messages; the name is "" in .npy. data: gets at the numbers."""

    where: str
    name: str
    shape: tuple[int, ...] | None
    dtype: np.dtype
    data: Callable[[], Any]
    close: Callable[[], None]

    @property
    def batched(self) -> bool:
        return self.shape is not None and len(self.shape) == 3

    def extents(self) -> tuple[int, int, int]:
        """Worlds, frames and numbers of a state. Raises InputError: another shape, no floats, or nothing in it."""
        if self.shape is None or len(self.shape) not in (2, 3) or self.dtype.kind != "f":
            shown = f"{self.dtype}{list(self.shape or ())}"
            raise InputError(f"the states are {shown}, not floats {_SHAPES}", self.where, "save them in that shape")
        worlds, frames, size = self.shape if len(self.shape) == 3 else (1, *self.shape)
        if not worlds or not frames:
            raise InputError(f"the shape is {list(self.shape)}: there is no state in it", self.where, "record a frame")
        return worlds, frames, size


class _States:
    """States of every world; see `RecordedCoordinates`. layouts: of each world."""

    def __init__(self, array: _Array, layouts: list[StateLayout]) -> None:
        self._data, self._batched, self._where, self._layouts = array.data(), array.batched, array.where, layouts
        self._time: np.ndarray | None = None
        self._start = np.zeros(0)
        self.world_count = len(layouts)
        self.has_time = "TIME" in layouts[0].columns

    def place(self, world: int) -> str:
        return f"{self._where}[{world}]" if self._batched else self._where

    def has_mocap(self, world: int) -> bool:
        return {"MOCAP_POS", "MOCAP_QUAT"} <= self._layouts[world].columns.keys()

    def keep_time(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """float64[F], the first world's times, and what there is to warn of; the others are compared as they are read.

        Clocks that differ by a constant count from each world's first frame.
        Raises InputError naming the frame: a time that is not finite or runs back.
        """
        column = self._layouts[0].columns["TIME"].start
        time = checked_time(self._rows(slice(0, 1), slice(None), column)[0], self.place(0))
        start = self._rows(slice(None), slice(0, 1), column)[:, 0].astype(np.float64)
        shared, warnings = shared_time([time, *start[1:, None]], [self.place(world) for world in range(len(start))])
        self._time, self._start = time - time[0], start
        return shared, warnings

    def read(self, worlds: Sequence[int], frames: range) -> tuple[np.ndarray, np.ndarray | None]:
        first = worlds[0]  # they ascend
        held = self._rows(slice(first, worlds[-1] + 1), slice(frames.start, frames.stop, frames.step), slice(None))
        states = held[np.asarray(worlds) - first].swapaxes(0, 1)
        layout = self._layouts[worlds[0]]
        if self._time is not None:
            self._check_time(states[..., layout.columns["TIME"].start], worlds, frames)
        return layout.qpos(states), layout.mocap(states)

    def _check_time(self, time: np.ndarray, worlds: Sequence[int], frames: range) -> None:
        assert self._time is not None
        since = time - self._start[list(worlds)]
        expected = self._time[np.asarray(frames, np.intp)][:, None]
        # Written so that a NaN fails it.
        bad = ~(np.abs(since - expected) <= SAME_TIME * np.maximum(1.0, np.abs(time)))
        if bad.any():
            frame, world = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            raise out_of_step(
                since[frame, world], expected[frame, 0], f"{self.place(worlds[world])}, frame {frames[frame]}"
            )

    def _rows(self, worlds: slice, frames: slice, columns: slice | int) -> np.ndarray:
        """[worlds, frames] or [worlds, frames, columns]."""
        try:
            if self._batched:
                return np.asarray(self._data[worlds, frames, columns])
            return np.asarray(self._data[frames, columns])[None]
        except (OSError, ValueError) as error:
            raise InputError(f"the states cannot be read: {error}", self._where, "copy or record it again") from error


@contextmanager
def _opened(path: str) -> Iterator[_Array]:
    array = _open(path)
    try:
        with h5_damage(path):
            yield array
    finally:
        array.close()


def _open(path: str) -> _Array:
    storage = storage_of(path)
    if storage == HDF5:
        return _h5_array(path)
    if storage == NPY:
        header = npy_header(path)
        return _Array(path, "", header.shape, header.dtype, lambda: read_npy(path), _nothing)
    headers = npz_headers(path)
    name = _array_name(headers)
    if name is None:
        raise InputError("there is no array of states", path, f"name it {ARRAY_NAMES[0]}")
    header = headers[name]
    return _Array(f"{path}: {name}", name, header.shape, header.dtype, lambda: read_npz(path, name), _nothing)


def _h5_array(path: str) -> _Array:
    file = open_h5(path)
    try:
        with h5_damage(path), structure():
            name = _dataset_name(file)
            found = file[name] if name is not None else None
            if not isinstance(found, h5py.Dataset):
                raise InputError("there is no dataset of states", path, f"name it {ARRAY_NAMES[0]}")
            return _Array(f"{path}: /{name}", f"/{name}", found.shape, found.dtype, lambda: found, file.close)
    except BaseException:
        file.close()
        raise


def _nothing() -> None:
    pass


def _dataset_name(file: h5py.File) -> str | None:
    headers = {str(name): item for name in file if isinstance(item := file.get(name), h5py.Dataset)}
    return _array_name(headers)


def _array_name(headers: dict[str, Any]) -> str | None:
    named = next((name for name in ARRAY_NAMES if name in headers), None)
    if named is not None:
        return named
    only = next(iter(headers)) if len(headers) == 1 else None
    return only if only is not None and _holds_states(headers[only]) else None


def _holds_states(header: Any) -> bool:
    return header.dtype.kind == "f" and header.shape is not None and len(header.shape) in (2, 3)


def _layout(scene: Any, options: RecordingOptions, size: int, where: str) -> StateLayout:
    scene_kinematics(scene, where)
    return find_layout(scene.mj_model, options.state_spec, size, where)
