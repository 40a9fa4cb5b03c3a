"""Arrays of joint positions in HDF5, npz and pickles of no other kind: the user says which array is
the state, or the file has the arrays of a layout that is known.

A file has the measured state beside the commands, and both have one number a joint. So no array is
taken because of its shape.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import ArrayHeader
from collidecli.importers.recordings.articulations import (
    ORDERS,
    ArticulationMotion,
    quaternion_order,
)
from collidecli.importers.recordings.content import Content, h5_damage
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.joint_states import (
    BODY_FROM,
    JOINT_OPTIONS,
    ROOT,
    JointStates,
    joint_state_motion,
)
from collidecli.importers.recordings.motion_tables import (
    JOINT_NAMES,
    RATES,
    ROOT_COLUMNS,
    pose_arrays,
    stored_rate,
)
from collidecli.importers.recordings.recording import RecordingDescription, Target
from collidecli.importers.recordings.stored_names import names_of_columns
from collidecli.importers.recordings.times import (
    GIVE_RATE,
    UNEVEN,
    DemonstrationRecording,
    checked_time,
    long_step_warnings,
    rate_time,
    shared_length,
    shared_time,
)
from collidecli.scene.name_patterns import (
    EXPRESSION,
    has_wildcards,
    is_expression,
    matcher,
    path_patterns,
)
from collidecli.scene.options import RecordingOptions
from collidecli.storage.h5_files import text_of
from collidecli.storage.process_activity import structure, structure_step
from collidecli.storage.reading_limit import check_size
from collidecli.storage.storage_formats import HDF5, NPZ, PICKLE
from collidecli.wording import in_order, some_names

NAMES_FIX = "name an array as the file does, or one a demonstration with *, such as demo_*/obs/qpos"
TIME = ("time",)
"""Name of an array of times [s] that is used without being named."""
MOST_ARRAYS = 100_000
"""Arrays of a file that are looked at."""
SHOWN = 12
"""Arrays in a message."""


@dataclass(frozen=True)
class Layout:
    """A layout that is known by its arrays. arrays: all of these exist. state: the measured joint
    positions, one of them. note: a warning about them."""

    name: str
    arrays: tuple[str, ...]
    state: str
    note: str = ""


LAYOUTS = (
    Layout("ACT or ALOHA", ("observations/qpos", "action"), "observations/qpos"),
    Layout(
        "DROID",
        ("observation/robot_state/joint_positions", "action/joint_position"),
        "observation/robot_state/joint_positions",
    ),
    Layout("ManiSkill", ("traj_*/obs/agent/qpos",), "traj_*/obs/agent/qpos"),
    Layout(
        "RoboTwin",
        ("joint_action/vector", "joint_action/left_arm", "joint_action/right_arm"),
        "joint_action/vector",
        "RoboTwin records the targets of the joints' drives, no measured positions; grippers are 0"
        " to 1",
    ),
    Layout("RoboMIND", ("puppet/joint_position", "master/joint_position"), "puppet/joint_position"),
    Layout(
        "robomimic observations", ("data/*/obs/robot0_joint_pos",), "data/*/obs/robot0_joint_pos"
    ),
)


class ArraysRecording(DemonstrationRecording):
    """Joint positions in an array that --state names; a pattern names one array a
    demonstration."""

    NAME = "arrays"
    LABEL = "arrays of joint positions in HDF5, npz or a pickle, which --state names"
    OPTIONS = (*JOINT_OPTIONS, "root", "body_from", "time", "quaternion_order")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self.where = content.path
        with h5_damage(content.path), structure():
            self._headers = array_headers(content)
        found = (layout for layout in LAYOUTS if self._has(layout))
        self._layout = next(found, None)
        self._state = "" if self._layout is None else self._layout.state

    @staticmethod
    def recognise(content: Content) -> bool:
        """An HDF5 file, npz or pickle with floats in rows."""
        if content.storage not in (HDF5, NPZ, PICKLE):
            return False
        with h5_damage(content.path), structure():
            return _has_table(content)

    def _has(self, layout: Layout) -> bool:
        return all(matching(name, self._headers, self._path) for name in layout.arrays)

    def stored(self) -> Sequence[str]:
        return list(self._arrays(self._state)) if self._state else []

    def world_count(self, options: RecordingOptions) -> int | None:
        return len(self._chosen_states(options))

    def demos(self, options: RecordingOptions) -> tuple[str, ...]:
        return tuple(self._chosen_states(options))

    def _chosen_states(self, options: RecordingOptions) -> dict[str, str]:
        """The state's array of each chosen demonstration. Raises InputError where no array is
        known to be the state."""
        self._state = options.state or self._state
        if not self._state:
            what = "the file does not say which array is the measured joint positions"
            fix = f"name it with --state, of {self._shown()}"
            raise InputError(what, self._path, fix)
        arrays = self._arrays(self._state)
        return {name: arrays[name] for name in self.chosen(options)}

    def _arrays(self, pattern: str) -> dict[str, str]:
        """Arrays that a name or a pattern names, by demonstration, in numeric order. Raises
        InputError for none."""
        found = matching(pattern, self._headers, self._path)
        if not found:
            what = f"there is no array '{pattern}'"
            raise InputError(what, self._path, f"its arrays: {self._shown()}")
        return {name: found[name] for name in in_order(found)}

    def _shown(self) -> str:
        """The arrays that may be named, with their shapes; demonstrations of equal names once."""
        of_name: dict[str, list[ArrayHeader]] = {}
        for name, header in self._headers.items():
            of_name.setdefault(re.sub(r"\d+(?=/)", "*", name), []).append(header)
        shown = [f"{name} {_shape_of(headers)}" for name, headers in of_name.items()]
        rest = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
        return ", ".join(shown[:SHOWN]) + rest

    def describe_state(self, state: str) -> RecordingDescription:
        self._state = state
        return self.describe()

    def describe(self) -> RecordingDescription:
        """The frames of the state; without one no frames, and what every array that may be the
        state needs."""
        arrays = self._arrays(self._state) if self._state else {}
        lengths = [self._table(name).shape[0] for name in arrays.values()]
        needs = [] if arrays else ["--state"]
        first = next(iter(arrays.values()), "")
        tables = [name for name, header in self._headers.items() if _is_table(header)]
        may_be = [first] if first else tables
        needs += [] if all(map(self._has_times, may_be)) else ["--time or --fps"]
        needs += [] if all(map(self._stored_names, may_be)) else ["--joint-names"]
        needs += [UNEVEN] if len(set(lengths)) > 1 else []
        details = [("layout", self._layout.name)] if self._layout else []
        details += [("state", self._state)] if self._state else []
        if poses := self._pose_arrays(list(arrays.values())):
            use = f"{BODY_FROM} BODY=ARRAY moves a body, {ROOT} ARRAY the root by one of them"
            details.append(("poses", f"{some_names(poses)}: {use}"))
        return RecordingDescription(
            frames=max(lengths, default=0),
            worlds=len(lengths),
            coordinates=self._table(first).shape[1] if first else 0,
            needs=tuple(needs),
            details=(*details, ("arrays", self._shown())),
        )

    def _pose_arrays(self, states: Sequence[str]) -> list[str]:
        """The arrays, beside the states, of as many rows and of the seven numbers of a pose;
        demonstrations of equal names once."""
        lengths = {self._headers[name].shape[0] for name in states}
        found = (
            re.sub(r"\d+(?=/)", "*", name)
            for name, header in self._headers.items()
            if name not in states
            and _is_table(header)
            and header.shape[0] in lengths
            and header.shape[1] == ROOT_COLUMNS
        )
        return list(dict.fromkeys(found))

    def _has_times(self, array: str) -> bool:
        with h5_damage(self._path):
            return bool(self._beside(array, TIME)) or self._stored_rate() is not None

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """The chosen demonstrations as worlds, in order."""
        with h5_damage(self._path):
            chosen = self._chosen_states(options)
            check_world_count(len(chosen), target, self._path)
            where = f"{self._path}: {self._state}"
            lengths = {name: self._table(array).shape[0] for name, array in chosen.items()}
            frames = shared_length(lengths, options, self._path)
            self._check_memory(chosen, where)
            states = {name: self._read(array) for name, array in chosen.items()}
            stored = self._stored_names(next(iter(chosen.values())))
            names = names_of_columns(stored, options.joint_names, "--joint-names", where)
            states, roots = self._roots(states, names, options)
            bodies = self._bodies(states, options)
            has_poses = bool(roots or bodies)
            order = ORDERS[quaternion_order("", options, self._path)] if has_poses else []
            time, warnings = self._time(chosen, frames, options)
            if self._layout is not None and self._layout.note and not options.state:
                warnings = (*warnings, f"{where}: {self._layout.note}")
            unused = pose_arrays(self._headers)
            if unused:
                words = f"not used, as {self._state} is the state: {some_names(unused)}"
                warnings = (*warnings, f"{self._path}: {words}")
        recorded = JointStates(
            self._path,
            where,
            names,
            states,
            time,
            {name: root[:, order] for name, root in roots.items()},
            bodies={
                body: {name: poses[:, order] for name, poses in of_demonstrations.items()}
                for body, of_demonstrations in bodies.items()
            },
            has_demonstrations=self._state.strip("/") not in self._headers,
        )
        return joint_state_motion(recorded, target, options, self.close, warnings)

    def _table(self, array: str) -> ArrayHeader:
        """The header of an array of rows. Raises InputError for another shape or type."""
        header = self._headers[array]
        if not _is_table(header):
            what = f"is {header}, not floats [frames, numbers]"
            raise InputError(what, f"{self._path}: {array}", f"name one of {self._shown()}")
        return header

    def _check_memory(self, chosen: Mapping[str, str], where: str) -> None:
        shapes = [self._headers[name].shape for name in chosen.values()]
        size = sum(int(np.prod(shape, dtype=object)) for shape in shapes)
        check_size(24 * size, "the states", where, "choose fewer with --demos")

    def _read(self, array: str) -> np.ndarray:
        """float64 of an array's shape."""
        if self.content.h5 is not None:
            dataset: Any = self.content.h5[array]
            return np.asarray(dataset[()], np.float64)
        return self.content.array(array).astype(np.float64)

    def _stored_names(self, array: str) -> tuple[str, ...]:
        """Names of the columns in an array of texts beside the state, or beside its groups; ()
        without them."""
        name = self._beside(array, JOINT_NAMES)
        if not name:
            return ()
        header = self._headers[name]
        if len(header.shape) != 1 or header.dtype.kind not in "OSU":
            return ()
        return tuple(map(text_of, self._texts(name)))

    def _beside(self, array: str, keys: Sequence[str]) -> str:
        """The array of one of some names in the group of an array, or in the nearest group above
        it; "" for none."""
        folders = array.split("/")[:-1]
        names = (
            "/".join((*folders[:depth], key))
            for depth in range(len(folders), -1, -1)
            for key in keys
        )
        return next((name for name in names if name in self._headers), "")

    def _stored_rate(self) -> float | None:
        """Frames per second that the file has as an array of one number or an attribute; None
        without them. Raises InputError as `stored_rate`."""
        if self.content.h5 is None:
            return stored_rate(self.content)
        for key in RATES:
            value: Any = self.content.h5.attrs.get(key)
            if value is None and key in self._headers:
                value = self._read(key)
            if value is not None:
                number = np.asarray(value)
                if number.size != 1 or number.dtype.kind not in "iuf":
                    what = f"is {number.dtype}{list(number.shape)}, not one number"
                    raise InputError(what, f"{self._path}: {key}", "give the rate with --fps")
                return float(number.reshape(-1)[0])
        return None

    def _texts(self, array: str) -> Sequence[Any]:
        if self.content.h5 is None:
            return list(self.content.array(array))
        dataset: Any = self.content.h5[array]
        return list(dataset[()])

    def _roots(
        self, states: dict[str, np.ndarray], names: Sequence[str], options: RecordingOptions
    ) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """Joint positions, and root poses as they are recorded: of --root, or the seven columns
        before the joints where there are as many more columns than names."""
        width = next(iter(states.values())).shape[1]
        if options.root:
            return states, self._poses(options.root, states, ROOT)
        if names and width == ROOT_COLUMNS + len(names):
            roots = {name: state[:, :ROOT_COLUMNS] for name, state in states.items()}
            return {name: state[:, ROOT_COLUMNS:] for name, state in states.items()}, roots
        return states, {}

    def _bodies(
        self, states: Mapping[str, np.ndarray], options: RecordingOptions
    ) -> dict[str, dict[str, np.ndarray]]:
        """Poses as they are recorded by the name of a body, of --body-from. Raises InputError for
        an entry that is no BODY=ARRAY, and for two of a body."""
        bodies: dict[str, dict[str, np.ndarray]] = {}
        for entry in options.body_from:
            name, _, array = entry.rpartition("=")
            if not (name and array):
                raise InputError(f"'{entry}' is no BODY=ARRAY", BODY_FROM, NAMES_FIX)
            if name in bodies:
                raise InputError(f"'{name}' is named twice", BODY_FROM, "name each body once")
            bodies[name] = self._poses(array, states, BODY_FROM)
        return bodies

    def _poses(
        self, pattern: str, states: Mapping[str, np.ndarray], option: str
    ) -> dict[str, np.ndarray]:
        """float64[F, 7] of each demonstration, in an array that an option names. Raises InputError
        for another shape."""
        arrays = self._of_demonstrations(pattern, list(states), option)
        poses = {name: self._read(array) for name, array in arrays.items()}
        for name, pose in poses.items():
            if pose.shape != (len(states[name]), ROOT_COLUMNS):
                what = f"is {list(pose.shape)}, not [{len(states[name])}, {ROOT_COLUMNS}]"
                fix = "name x, y, z and the quaternion of each frame"
                raise InputError(what, f"{self._path}: {arrays[name]}", fix)
        return poses

    def _of_demonstrations(
        self, pattern: str, demonstrations: Sequence[str], option: str
    ) -> dict[str, str]:
        """The array of each demonstration; one array for all where there is no pattern. Raises
        InputError for a demonstration without one."""
        found = self._arrays(pattern)
        if len(found) == 1 and not set(found) & set(demonstrations):
            return dict.fromkeys(demonstrations, next(iter(found.values())))
        missing = [name for name in demonstrations if name not in found]
        if missing:
            what = f"{option} has no array of the demonstration {some_names(missing)}"
            raise InputError(what, self._path, NAMES_FIX)
        return {name: found[name] for name in demonstrations}

    def _time(
        self, chosen: Mapping[str, str], frames: int, options: RecordingOptions
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """float64[frames] [s] and warnings: of --time, by --fps, of arrays `time` beside the
        states, or by the rate that the file has."""
        if options.time and options.fps is not None:
            raise InputError("--time and --fps are both given", self._path, "give one of them")
        arrays = (
            self._of_demonstrations(options.time, list(chosen), "--time")
            if options.time
            else {name: self._beside(array, TIME) for name, array in chosen.items()}
        )
        timeless = [name for name, array in arrays.items() if not array]
        if timeless and len(timeless) < len(arrays) and options.fps is None:
            what = f"demonstration {some_names(timeless)} has no times, and others have an array"
            fix = f"{GIVE_RATE}, for all of them, or choose those with times with --demos"
            raise InputError(f"{what} {TIME[0]}", self._path, fix)
        if options.fps is not None or timeless:
            rate = self._stored_rate() if options.fps is None else options.fps
            return rate_time(frames, rate, self._path), ()
        times = []
        for name, array in arrays.items():
            header = self._headers[array]
            count = self._headers[chosen[name]].shape[0]
            if header.shape not in ((count,), (count, 1)) or header.dtype.kind not in "iuf":
                what = f"is {header}, not one number for each of {count} frames"
                raise InputError(what, f"{self._path}: {array}", "name the times in seconds")
            times.append(checked_time(self._read(array).reshape(-1), f"{self._path}: {array}"))
        locations = [f"{self._path}: {array}" for array in arrays.values()]
        time, warnings = shared_time(times, locations)
        return time[:frames], (*warnings, *long_step_warnings(time, locations[0]))


def array_headers(content: Content) -> dict[str, ArrayHeader]:
    """Shape and type of each array of a file by name, groups included. Raises InputError for more
    than `MOST_ARRAYS`."""
    if content.h5 is None:
        return content.arrays
    headers: dict[str, ArrayHeader] = {}

    def look(name: str, item: object) -> None:
        structure_step()
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            if len(headers) == MOST_ARRAYS:
                what = f"the file has more than {MOST_ARRAYS} arrays"
                raise InputError(what, content.path, "split the recording")
            headers[name] = ArrayHeader(item.shape, item.dtype)

    content.h5.visititems(look)
    return {name: headers[name] for name in in_order(headers)}


def matching(pattern: str, names: Sequence[str] | Mapping[str, Any], where: str) -> dict[str, str]:
    """The names of arrays that a pattern matches, by what its wildcards stand for.

    A wildcard stands for a part of one name between slashes, see `path_patterns`. A name without
    wildcards is by itself. Raises the error of `matcher`.
    """
    name = pattern.strip("/")
    if name in names:
        return {name: name}
    begin = EXPRESSION if is_expression(pattern) else ""
    parts = path_patterns(begin + pattern.removeprefix(begin).strip("/"))
    is_wild = list(map(has_wildcards, parts))
    if not any(is_wild):
        return {}
    tests = [matcher(part, where) for part in parts]
    found = {}
    for name in names:
        own = name.split("/")
        if len(own) == len(tests) and all(
            is_met(part) for is_met, part in zip(tests, own, strict=True)
        ):
            found["/".join(o for o, wild in zip(own, is_wild, strict=True) if wild)] = name
    return found


def _shape_of(headers: Sequence[ArrayHeader]) -> str:
    """The shape of arrays of one name; of different lengths, the least and the greatest."""
    first = headers[0]
    lengths = [header.shape[0] for header in headers if header.shape]
    if not lengths or min(lengths) == max(lengths):
        return str(first)
    rest = "".join(f", {extent}" for extent in first.shape[1:])
    return f"{first.dtype}[{min(lengths)} to {max(lengths)}{rest}]"


def _has_table(content: Content) -> bool:
    """Whether one of the arrays has floats in rows; the search ends with the first."""
    if content.h5 is None:
        return any(map(_is_table, content.arrays.values()))

    def look(name: str, item: object) -> bool | None:
        structure_step()
        if isinstance(item, h5py.Dataset) and item.shape is not None:
            return _is_table(ArrayHeader(item.shape, item.dtype)) or None
        return None

    return bool(content.h5.visititems(look))


def _is_table(header: ArrayHeader) -> bool:
    return header.is_float and len(header.shape) == 2 and header.shape[0] > 0
