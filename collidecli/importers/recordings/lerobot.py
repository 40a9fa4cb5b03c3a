"""LeRobot data sets: joint positions of episodes in Parquet files, by the layouts v2.0, v2.1 and
v3.0 of `lerobot.datasets`."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import glob
import json
import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.errors import InputError, extra_module
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.files import DATA, EPISODE_LINES, EPISODES, INFO
from collidecli.importers.recordings.joint_states import (
    JOINT_OPTIONS,
    JointStates,
    joint_state_motion,
)
from collidecli.importers.recordings.joint_units import DEGREES, NORMALISED
from collidecli.importers.recordings.left_out_columns import LEFT_OUT
from collidecli.importers.recordings.lerobot_units import StoredUnit, stored_unit
from collidecli.importers.recordings.moved_robots import joint_names
from collidecli.importers.recordings.parquet_rows import AGAIN, INTEGER, parquet_rows
from collidecli.importers.recordings.recording import RecordingDescription, Target
from collidecli.importers.recordings.stored_names import names_of_columns
from collidecli.importers.recordings.times import (
    UNEVEN,
    DemonstrationRecording,
    rate_time,
    shared_length,
)
from collidecli.scene.options import RecordingOptions
from collidecli.storage.reading_limit import check_size, reading_limit
from collidecli.storage.regular_files import open_input
from collidecli.storage.storage_formats import JSON
from collidecli.wording import some_names

STATE = "observation.state"
VERSIONS = ("v2.", "v3.")
"""The first has a Parquet file and a line of JSON for each episode, the second tables of them."""
EPISODE = "episode_"
"""Before the number of an episode in its name."""
MOTOR = ".pos"
MAIN = "main_"
"""What LeRobot's drivers write after the name of a motor, and wrote before it until June 2025."""
UNITS_FIX = "--joint-units degrees or normalised"
NO_POSITION = (".vel", ".torque", ".effort", ".current")
"""Ends of the names of columns beside the positions, such as those of OpenArm and LeKiwi."""
EPISODE_BYTES = 500
"""Memory of an episode in the list of them [bytes]."""


def episode_number(demo: str) -> int:
    """LeRobot's episode_index of a demonstration."""
    return int(demo.removeprefix(EPISODE))


class LeRobotRecording(DemonstrationRecording):
    """Episodes of which each is a world; `observation.state` has the positions of joints by
    name."""

    NAME = "lerobot"
    LABEL = (
        "LeRobot data sets (v2 and v3: meta/info.json and data/*.parquet with observation.state)"
    )
    OPTIONS = JOINT_OPTIONS

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self.where = content.path
        extra_module("pyarrow", "tables", "LeRobot data sets", "pyarrow.parquet")
        try:
            with open_input(content.path, "r", encoding="utf-8") as file:
                info = json.load(file)
            self._version = str(info["codebase_version"])
            self._features = dict(info["features"])
            self._fps = float(info["fps"])
            self._info = info
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            what = f"is no description of a LeRobot data set: {type(error).__name__} {error}"
            raise InputError(what, content.path, AGAIN) from error
        if not self._version.startswith(VERSIONS):
            what = f"the data set has version {self._version}, not v2.0, v2.1 or v3.0"
            raise InputError(what, content.path, "convert it with the tools of lerobot")
        self._has_file_per_episode = self._version.startswith(VERSIONS[0])

    @staticmethod
    def recognise(content: Content) -> bool:
        """A JSON file of the name that LeRobot gives it, in a folder meta."""
        folder, name = os.path.split(os.path.abspath(content.path))
        return content.storage == JSON and name == INFO and os.path.basename(folder) == "meta"

    @cached_property
    def _lengths(self) -> dict[str, int]:
        """Frames of each episode by name. Raises InputError where no episode is listed or a file is
        damaged."""
        most = reading_limit() // EPISODE_BYTES
        if self._has_file_per_episode:
            rows = sorted(listed_episodes(os.path.join(self._root, *EPISODE_LINES), most))
        else:
            table = self._read(EPISODES, {"episode_index": INTEGER, "length": INTEGER}, most)
            columns = table["episode_index"].tolist(), table["length"].tolist()
            rows = sorted(zip(*columns, strict=True))
        if not rows:
            raise InputError("the data set has no episodes", self._path, "record at least one")
        for (index, length), following in zip(rows, [*rows[1:], (None, 0)], strict=True):
            if index < 0 or length < 0:
                what = f"the table of episodes has episode {index} of {length} frames"
                raise InputError(what, self._path, AGAIN)
            if index == following[0]:
                what = f"the table of episodes has episode {index} twice"
                raise InputError(what, self._path, AGAIN)
        return {f"{EPISODE}{index}": length for index, length in rows}

    @property
    def _root(self) -> str:
        return os.path.dirname(os.path.dirname(os.path.abspath(self._path)))

    def _read(
        self,
        parts: Sequence[str],
        columns: Mapping[str, int],
        most_rows: int,
        among: tuple[str, Sequence[int]] | None = None,
    ) -> dict[str, np.ndarray]:
        """Columns of all files of a kind; see `parquet_rows`, whose errors it raises."""
        files = sorted(glob.glob(os.path.join(glob.escape(self._root), *parts)))
        if among is not None and self._has_file_per_episode:
            wanted = {f"{EPISODE}{number:06d}.parquet" for number in among[1]}
            files = [file for file in files if os.path.basename(file) in wanted]
        if not files:
            raise InputError("there is no such file", os.path.join(self._root, *parts), AGAIN)
        tables: list[dict[str, np.ndarray]] = []
        for file in files:
            tables.append(parquet_rows(file, columns, most_rows, among))
            most_rows -= len(tables[-1]["episode_index"])
        return {name: np.concatenate([table[name] for table in tables]) for name in columns}

    def _state_feature(self, state: str) -> tuple[str, int]:
        """The feature of the joint positions and its numbers a frame. state: of --state, "" for
        the usual one. Raises InputError where there are no numbers."""
        name = state or STATE
        feature = self._features.get(name)
        if not isinstance(feature, dict):
            floats = [
                other
                for other, each in self._features.items()
                if isinstance(each, dict) and str(each.get("dtype")).startswith("float")
            ]
            what = f"has no feature {name}, the positions of joints"
            fix = f"name it with --state, of {some_names(floats) or 'none'}"
            raise InputError(what, self._path, fix)
        if not str(feature.get("dtype")).startswith("float") or not _is_width(feature.get("shape")):
            what = (
                f"{name} is {feature.get('dtype')} of shape {feature.get('shape')}, not floats"
                " [joints]"
            )
            raise InputError(what, self._path, "use a data set with joint positions")
        return name, int(feature["shape"][0])

    def _state_names(self, feature: Mapping[str, Any]) -> tuple[str, ...]:
        """Names of the columns of a feature; () without names."""
        names = feature.get("names")
        if isinstance(names, dict):  # {"motors": [...]}
            names = next(iter(names.values()), None)
        if isinstance(names, list) and len(names) == 1 and isinstance(names[0], list):
            names = names[0]  # of data sets that were converted to version 2
        return tuple(map(str, names)) if isinstance(names, list) else ()

    def _unit(self, state: str, names: Sequence[str]) -> StoredUnit:
        return stored_unit(self._root, self._info, state, names)

    def describe(self) -> RecordingDescription:
        state, width = self._state_feature("")
        names = self._state_names(self._features[state])
        unit = self._unit(state, names)
        told = f"{unit.unit}: {unit.source}" if unit.unit else "not told"
        frames = max(self._lengths.values())
        has_rate = math.isfinite(self._fps) and self._fps > 0.0
        needs = ("--fps",) * (not has_rate)
        needs += (UNITS_FIX,) * (unit.is_motors and not unit.unit)
        return RecordingDescription(
            frames=frames,
            worlds=len(self._lengths),
            start=0.0 if has_rate else None,
            end=(frames - 1) / self._fps if has_rate else None,
            coordinates=width,
            needs=(*needs, UNEVEN) if len(set(self._lengths.values())) > 1 else needs,
            details=(
                ("demonstrations", some_names(list(self._lengths))),
                ("joints", some_names(names) if names else "without names"),
                ("unit", told),
            ),
        )

    def stored(self) -> list[str]:
        return list(self._lengths)

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """The chosen episodes as worlds, in order. The robot's root keeps its pose in the scene."""
        state, width = self._state_feature(options.state)
        state_names = self._state_names(self._features[state])
        chosen = self.chosen(options)
        where = f"{self._path}: {state}"
        check_world_count(len(chosen), target, self._path)
        lengths = {name: self._lengths[name] for name in chosen}
        frames = shared_length(lengths, options, self._path)
        states = dict(zip(chosen, self._states(lengths, state, width, where), strict=True))
        scene = target.articulated(self._path)
        of_scene = joint_names(scene)
        stored = [_joint_of_column(name, of_scene) for name in state_names]
        time = rate_time(frames, self._fps if options.fps is None else options.fps, self._path)
        names = names_of_columns(stored, options.joint_names, "--joint-names", where)
        unit = self._unit(state, state_names)
        _refuse_unknown_unit(unit, names, options, where)
        recorded = JointStates(
            self._path, where, names, states, time, unit=unit.unit, percent=unit.percent
        )
        notes = _unit_notes(unit, options, where)
        return joint_state_motion(recorded, target, options, self.close, notes)

    def _states(
        self, lengths: dict[str, int], state: str, width: int, where: str
    ) -> list[np.ndarray]:
        """float64[frames, joints] of each episode. Raises InputError for missing frames or ragged
        states."""
        check_size(
            24 * sum(lengths.values()) * max(width, 1),
            "the states",
            where,
            "choose fewer with --demos",
        )
        numbers = [episode_number(name) for name in lengths]
        columns = {"episode_index": INTEGER, "frame_index": INTEGER, state: width}
        among = "episode_index", numbers
        table = self._read(DATA, columns, sum(lengths.values()), among)
        episode = table["episode_index"]
        frame = table["frame_index"]
        values = table[state]
        states = []
        for number, (name, length) in zip(numbers, lengths.items(), strict=True):
            rows = np.flatnonzero(episode == number)
            rows = rows[np.argsort(frame[rows], kind="stable")]
            if not np.array_equal(frame[rows], np.arange(length)):
                what = f"{name} has {len(rows)} rows, not one for each of its {length} frames"
                raise InputError(what, where, AGAIN)
            states.append(values[rows])
        return states


def listed_episodes(path: str, most: int) -> Iterator[tuple[int, int]]:
    """Number and frames of each episode of a file with a line of JSON each. Raises InputError for
    another line, and more than `most`."""
    if not os.path.isfile(path):
        raise InputError("there is no such file", path, AGAIN)
    with open_input(path, "r", encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            if number > most:
                raise InputError(f"has more than {most} episodes", path, AGAIN)
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                index = row["episode_index"]
                length = row["length"]
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise InputError(f"is no episode: {error}", where, AGAIN) from error
            if type(index) is not int or type(length) is not int:
                raise InputError("episode_index and length are no integers", where, AGAIN)
            yield index, length


def _joint_of_column(name: str, known: Collection[str]) -> str:
    """The joint of a column of the state; LEFT_OUT of one that is no position. known: names of the
    scene's joints."""
    if name in known:
        return name
    if name.endswith(NO_POSITION):
        return LEFT_OUT[0]
    return name.removesuffix(MOTOR).removeprefix(MAIN)


def _refuse_unknown_unit(
    unit: StoredUnit, names: Sequence[str], options: RecordingOptions, where: str
) -> None:
    """Raises InputError where positions are in degrees or normalised, and nothing tells which of
    the two; not where --joint-scale has all columns."""
    scaled = {text.partition("=")[0] for text in options.joint_scale} | set(options.ignore_joints)
    if not unit.is_motors or unit.unit or options.joint_units or set(names) <= {*scaled, *LEFT_OUT}:
        return
    what = (
        f"the positions of {unit.source} are in degrees or normalised to -100 to 100, and the data"
        " set does not tell which"
    )
    raise InputError(what, where, f"give {UNITS_FIX}")


def _unit_notes(unit: StoredUnit, options: RecordingOptions, where: str) -> list[str]:
    """Warnings of a unit that the user did not give, and of ranges that are not recorded."""
    used = options.joint_units or unit.unit
    notes = []
    if unit.unit and not options.joint_units:
        notes.append(f"{where}: positions are read as {unit.unit}, by {unit.source}")
    if used == NORMALISED or (used == DEGREES and unit.percent):
        which = "positions" if used == NORMALISED else "grippers"
        notes.append(
            f"{where}: normalised {which} are of the joint's limits in the scene; the robot's"
            " calibrated range is not in the data set"
        )
    return notes


def _is_width(shape: Any) -> bool:
    """Whether the shape of a feature is [joints]."""
    return isinstance(shape, list) and len(shape) == 1 and type(shape[0]) is int and shape[0] > 0
