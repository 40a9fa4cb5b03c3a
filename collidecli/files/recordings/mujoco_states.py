"""MuJoCo states in the layout of mj_getState, as mujoco.rollout gives them: .npy, .npz or HDF5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.files.h5_input import open_h5
from collidecli.files.recordings.arrays import npy_header, npz_headers, read_npy, read_npz
from collidecli.files.recordings.content import HDF5, NPY, Content, storage_of
from collidecli.files.recordings.coordinates import CoordinateMotion, check_world_count, scene_kinematics
from collidecli.files.recordings.facts import RecordingFacts
from collidecli.files.recordings.state_layout import StateLayout, find_layout
from collidecli.files.recordings.target import Target
from collidecli.files.recordings.times import rate_time, shared_time
from collidecli.model.motion import Motion
from collidecli.model.options import RecordingOptions

NAME = "mujoco-states"
LABEL = "MuJoCo states as mj_getState lays them out (.npy, .npz or HDF5: `states`, [worlds, frames, numbers])"

ARRAY_NAMES = ("states", "state")
_SHAPES = "[worlds, frames, numbers] or [frames, numbers]"


def recognise(content: Content) -> bool:
    """An array of floats of two or three dimensions: named `states` or `state`, or the only one in the file."""
    if content.h5 is not None:
        return _dataset_name(content.h5) is not None
    return _array_name(content.arrays) is not None


def describe(path: str) -> RecordingFacts:
    """See `RecordingKind.describe`. Which numbers are what, only a scene can tell."""
    where, shape, dtype, _, close = _opened(path)
    close()
    worlds, frames, size = _batch_shape(shape, where)
    return RecordingFacts(
        frames=frames,
        worlds=worlds,
        coordinates=0,
        quaternion_order="wxyz",
        needs=("an MJCF or URDF scene", "--state-spec, where the size does not tell", "--fps, without a time in it"),
        details=(("array", where.removeprefix(f"{path}: ")), ("numbers a state", str(size)), ("type", str(dtype))),
    )


def world_count(path: str, options: RecordingOptions) -> int | None:
    """See `RecordingKind.world_count`."""
    where, shape, _, _, close = _opened(path)
    close()
    return _batch_shape(shape, where)[0]


def open_motion(path: str, target: Target, options: RecordingOptions) -> Motion:
    """See `RecordingKind.open_motion`. A frame's time is in the states, or --fps says it."""
    where, shape, _, data_of, close = _opened(path)
    try:
        worlds, frames, size = _batch_shape(shape, where)
        check_world_count(worlds, target, where)
        layouts = [_layout(target, world, options, size, where) for world in range(worlds)]
        data = data_of()
        batch = data if len(shape) == 3 else _OneWorld(data)
        places = [f"{where}[{world}]" if len(shape) == 3 else where for world in range(worlds)]
        held = [_States(batch, k, layout, place) for k, (layout, place) in enumerate(zip(layouts, places, strict=True))]
        if options.fps is not None or "TIME" not in layouts[0].columns:
            time, warnings = rate_time(frames, options.fps, where), ()
        else:
            time, warnings = shared_time([world.times(frames) for world in held], places)
        return CoordinateMotion(path, target, held, time, warnings, close)
    except BaseException:
        close()
        raise


@dataclass(frozen=True)
class _States:
    """One world's states; see `WorldCoordinates`."""

    batch: Any
    world: int
    layout: StateLayout
    place: str

    def read(self, frames: range) -> tuple[np.ndarray, np.ndarray | None]:
        states = self._rows(slice(frames.start, frames.stop, frames.step), slice(None))
        return self.layout.qpos(states), self.layout.mocap(states)

    @property
    def has_mocap(self) -> bool:
        return "MOCAP_POS" in self.layout.columns and "MOCAP_QUAT" in self.layout.columns

    def times(self, frame_count: int) -> np.ndarray:
        return self._rows(slice(0, frame_count), self.layout.columns["TIME"])[:, 0].astype(np.float64)

    def _rows(self, frames: slice, columns: slice) -> np.ndarray:
        try:
            return np.asarray(self.batch[self.world, frames, columns])
        except (OSError, ValueError) as error:
            raise InputError(f"the states cannot be read: {error}", self.place, "copy or record it again") from error


@dataclass(frozen=True)
class _OneWorld:
    """States [frames, numbers] as a batch of one."""

    data: Any

    def __getitem__(self, place: tuple[int, slice, slice]) -> np.ndarray:
        return self.data[place[1], place[2]]


def _opened(path: str) -> tuple[str, tuple[int, ...], np.dtype, Callable[[], Any], Callable[[], None]]:
    """Where the states are, their shape and type, how to get at them, and how to close the file."""
    storage = storage_of(path)
    if storage == HDF5:
        file = open_h5(path)
        name = _dataset_name(file)
        found = file[name] if name is not None else None
        if not isinstance(found, h5py.Dataset):
            file.close()
            raise InputError("there is no dataset of states", path, f"name it {ARRAY_NAMES[0]}")
        return f"{path}: /{name}", found.shape, found.dtype, lambda: found, file.close
    if storage == NPY:
        header = npy_header(path)
        return path, header.shape, header.dtype, lambda: read_npy(path), _nothing
    headers = npz_headers(path)
    held = _array_name(headers)
    if held is None:
        raise InputError("there is no array of states", path, f"name it {ARRAY_NAMES[0]}")
    return f"{path}: {held}", headers[held].shape, headers[held].dtype, lambda: read_npz(path, held), _nothing


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
    return header.dtype.kind == "f" and len(header.shape) in (2, 3)


def _batch_shape(shape: tuple[int, ...], where: str) -> tuple[int, int, int]:
    """Worlds, frames and numbers of a state. Raises InputError: another shape, or nothing in it."""
    if len(shape) not in (2, 3):
        raise InputError(f"the shape is {list(shape)}, not {_SHAPES}", where, "save the states in that shape")
    worlds, frames, size = (1, *shape) if len(shape) == 2 else shape
    if not worlds or not frames:
        raise InputError(f"the shape is {list(shape)}: there is no state in it", where, "record one frame at least")
    return worlds, frames, size


def _layout(target: Target, world: int, options: RecordingOptions, size: int, where: str) -> StateLayout:
    scene = target.imports[target.world_import[world]]
    scene_kinematics(scene, where)
    return find_layout(scene.mj_model, options.state_spec, size, where)
