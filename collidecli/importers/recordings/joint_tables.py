"""Tables of joint positions with titles, as csv or npz: a column a joint, by name, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.array_columns import ArrayColumns, is_table_of_arrays
from collidecli.importers.recordings.column_titles import (
    COMMAND,
    OTHER,
    JointTitle,
    are_parts_of_a_time,
    is_index,
    is_named,
    is_of_root,
    is_position,
    joint_title,
    time_factor,
)
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.joint_states import (
    JOINT_OPTIONS,
    JointStates,
    coordinates_of_scene,
    joint_state_motion,
)
from collidecli.importers.recordings.left_out_columns import LEFT_OUT, ignored_columns
from collidecli.importers.recordings.moved_robots import (
    joint_names,
    moved_robots,
)
from collidecli.importers.recordings.recording import Recording, RecordingDescription, Target
from collidecli.importers.recordings.root_columns import (
    RootColumns,
    lacking_parts,
    root_groups,
    root_poses,
)
from collidecli.importers.recordings.times import checked_time, long_step_warnings, rate_time
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    last_element,
)
from collidecli.scene.motion import Motion
from collidecli.scene.name_patterns import matcher
from collidecli.scene.options import RecordingOptions
from collidecli.storage.storage_formats import CSV, NPZ
from collidecli.wording import did_you_mean, plural, some_names


@dataclass(frozen=True)
class TableLayout:
    """A table whose units no title names. titles, ending: those by which it is known, and the end
    of all others. angle_units, length_units, euler_order: values of the options. rate: frames a
    second."""

    name: str
    titles: tuple[str, ...]
    ending: str
    angle_units: str
    length_units: str
    euler_order: str
    rate: float

    def is_of(self, titles: Sequence[str]) -> bool:
        """Whether a table has the titles of the layout and no others."""
        rest = [title for title in titles if title not in self.titles]
        return set(self.titles) <= set(titles) and all(
            title.endswith(self.ending) for title in rest
        )

    def note(self, where: str, options: RecordingOptions) -> str:
        """The warning that names what is not in the file. options: those that apply."""
        return (
            f"{where}: read as {self.name}: {options.joint_units}, {options.length_units}, root"
            f" {options.euler_order}, {options.fps:g} frames a second"
        )


LAYOUTS = (
    TableLayout(
        "BONES-SEED",
        (
            "Frame",
            *(f"root_{kind}{axis}" for kind in ("translate", "rotate") for axis in "XYZ"),
        ),
        ending="_dof",
        angle_units="degrees",
        length_units="cm",
        euler_order="fixed-xyz",
        rate=120.0,
    ),
)

_ONLY = "motion"
"""Key of a table's motion in `JointStates`."""


@dataclass
class _Columns:
    """What the columns of a table are, by number. joints: of the positions. root: None for none.
    root_fix: what to do about a root that may be that of several robots. bodies: by the path of a
    further body or robot. unused: titles of columns that are known and not read. time: -1 for none.
    time_part: of what a clock has beyond the whole seconds of `time`, -1 for none."""

    joints: dict[int, JointTitle] = field(default_factory=dict)
    root: RootColumns | None = None
    root_fix: str = ""
    bodies: dict[str, RootColumns] = field(default_factory=dict)
    unused: list[str] = field(default_factory=list)
    time: int = -1
    time_part: int = -1


class JointTableRecording(Recording):
    """Joint positions of one world in columns that titles or --joint-names name."""

    NAME = "joint-table"
    LABEL = "a table of joint positions, a column a joint (.csv with titles, .npz of arrays)"
    OPTIONS = (
        *(option for option in JOINT_OPTIONS if option not in ("demos", "uneven_demos")),
        "time",
        "euler_order",
    )

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self._table = ArrayColumns(content) if content.storage == NPZ else content.text_columns
        titles = self._table.titles
        known = (layout for layout in LAYOUTS if layout.is_of(titles))
        self._layout = next(known, None)

    @staticmethod
    def recognise(content: Content) -> bool:
        """Text in columns of numbers, or arrays of one length, which are the columns."""
        if content.storage == NPZ:
            return is_table_of_arrays(content)
        return content.storage == CSV and content.table is not None and content.table.has_numbers()

    def describe(self) -> RecordingDescription:
        """The content; without the scene's names, every column that is no time, number of a row,
        root, command or another quantity is taken for a joint."""
        titles = self._table.titles if self._table.has_titles else ()
        times = [title for title in titles if time_factor(title) is not None]
        roots = root_groups(dict(enumerate(titles)))
        of_root = {column for root in roots for column in root.columns}
        partial = lacking_parts({k: t for k, t in enumerate(titles) if k not in of_root})
        joints = [
            title
            for column, title in enumerate(titles)
            if column not in of_root
            and title not in times
            and not is_index(title)
            and is_position(title)
        ]
        needs = [] if times or self._layout else ["--fps"]
        needs += [] if titles else ["--joint-names"]
        turned = any(root.is_euler for root in roots) and not self._layout
        needs += ["--euler-order"] if turned else []
        details = [("layout", self._layout.name)] if self._layout else []
        lacks = [f"{prefix}: {lacking}" for prefix, (_, lacking) in partial.items()]
        details += [("lacking, if poses", "; ".join(lacks))] if lacks else []
        return RecordingDescription(
            frames=self._table.row_count(),
            worlds=1,
            bodies=tuple(root.prefix for root in roots if not is_of_root(root.prefix)),
            coordinates=len(joints) if titles else len(self._table.titles),
            needs=tuple(needs),
            details=(*details, ("columns", some_names(titles) if titles else "without names")),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The motion of the scene's articulations that have the joints. Without columns of a root,
        the root keeps its pose in the scene."""
        columns = self._columns(target, options)
        poses = [*([columns.root] if columns.root else []), *columns.bodies.values()]
        used = [*columns.joints, *(column for pose in poses for column in pose.columns)]
        used += [column for column in (columns.time, columns.time_part) if column >= 0]
        rows = dict(zip(used, self._table.rows(used).T, strict=True))
        options = self._with_layout(options)
        time, warnings = self._time(columns, rows, options)
        if self._layout is not None:
            warnings += (self._layout.note(self._path, options),)
        if columns.unused:
            count = plural(len(columns.unused), "column")
            warnings += (f"{self._path}: {count} not used: {some_names(columns.unused)}",)
        joints = {column: title.name for column, title in columns.joints.items()}
        states = np.array([rows[column] for column in joints]).T.reshape(len(time), len(joints))
        roots = {}
        if columns.root is not None:
            roots = {_ONLY: root_poses(columns.root, rows, options, self._path)}
        bodies = {
            path: {_ONLY: root_poses(pose, rows, options, self._path)}
            for path, pose in columns.bodies.items()
        }
        units = {title.name: title.unit for title in columns.joints.values() if title.unit}
        recorded = JointStates(
            self._path,
            self._path,
            tuple(joints.values()),
            {_ONLY: states},
            time,
            roots,
            units=units,
            bodies=bodies,
            body_option=self._path,
            root_advice="",
            root_fix=columns.root_fix,
            has_demonstrations=False,
        )
        left = replace(options, ignore_joints=(), joint_names=(), state="")
        return joint_state_motion(recorded, target, left, self.close, warnings)

    def _with_layout(self, options: RecordingOptions) -> RecordingOptions:
        """The options, and for those that are not given the values of the known layout."""
        layout = self._layout
        if layout is None:
            return options
        return replace(
            options,
            joint_units=options.joint_units or layout.angle_units,
            length_units=options.length_units or layout.length_units,
            euler_order=options.euler_order or layout.euler_order,
            fps=layout.rate if options.fps is None else options.fps,
        )

    def _columns(self, target: Target, options: RecordingOptions) -> _Columns:
        """What each column is. Raises InputError: columns of nothing, two of one joint, none of a
        joint's position, a pose that is not said to be the root's or a body's."""
        scene = target.articulated(self._path)
        names = joint_names(scene)
        titles = self._titles(options)
        ignored = ignored_columns(tuple(titles.values()), options.ignore_joints, self._path)
        columns = _Columns(unused=list(ignored))
        titles = {column: title for column, title in titles.items() if title not in ignored}
        columns.time, columns.time_part = self._time_columns(titles, options, names)
        found: dict[int, JointTitle] = {}
        rest: dict[int, str] = {}
        for column, title in titles.items():
            if column in (columns.time, columns.time_part):
                continue
            joint = joint_title(title, names)
            if joint is not None:
                found[column] = joint
            elif time_factor(title) is None and not is_index(title):
                rest[column] = title
        groups = root_groups(rest)
        self._assign_poses(columns, groups, [joint.name for joint in found.values()], target)
        of_poses = {column for group in groups for column in group.columns}
        unknown = [title for column, title in rest.items() if column not in of_poses]
        if unknown:
            self._refuse_incomplete({k: title for k, title in rest.items() if title in unknown})
            raise self._unknown(unknown, scene)
        columns.joints = self._positions(found, titles, columns.unused, options)
        if not columns.joints and columns.root is None and not columns.bodies:
            what = "no column is the position of a joint of the scene"
            raise InputError(what, self._path, f"its columns: {some_names([*titles.values()])}")
        return columns

    def _assign_poses(
        self,
        columns: _Columns,
        groups: Sequence[RootColumns],
        joints: Sequence[str],
        target: Target,
    ) -> None:
        """Assigns poses to the root of a robot that has the joints, and to bodies by their names.
        Raises InputError for a pose of neither, and for two of one."""
        if not groups:
            return
        scene = target.articulated(self._path)
        robots = moved_robots(scene, joints, self._path)
        only = robots[0].articulation if len(robots) == 1 else None
        roots = []
        for group in groups:
            # A name of the scene comes before a word for any root, such as "free".
            named = [each for each in scene.articulations if is_named(group.prefix, _names(each))]
            is_own = any(each is only for each in named)
            if is_own or (not named and is_of_root(group.prefix)):
                roots.append(group)
            elif len(named) == 1 and named[0].path not in columns.bodies:
                columns.bodies[named[0].path] = group
            elif len(named) > 1:
                raise self._several_bodies(group.prefix, named)
            else:
                prefix = group.prefix
                what = f"the columns '{prefix}' are a pose that no title says to be the root's"
                what += " or a body's"
                fix = f"leave them out with --ignore-joints '{prefix}*', or name them base_x,"
                fix += " base_y, …, or as a body of the scene"
                raise InputError(what, self._path, fix)
        if len(roots) > 1:
            what = f"the columns {some_names([root.title for root in roots])} may be the root's"
            fix = "leave those of others out, such as --ignore-joints 'hand_*'"
            raise InputError(what, self._path, fix)
        if roots:
            fix = f"name the columns after the robot: ROBOT_x in place of {roots[0].prefix}_x"
            columns.root = roots[0]
            columns.root_fix = fix

    def _several_bodies(self, prefix: str, named: Sequence[ArticulationKinematics]) -> InputError:
        paths = [body.path.strip("/") for body in named]
        what = f"the columns '{prefix}' may be the pose of any of {some_names(paths)}"
        return InputError(
            what, self._path, f"give the whole name, as {paths[0]}_x, {paths[0]}_y, …"
        )

    def _titles(self, options: RecordingOptions) -> dict[int, str]:
        """The titles of the columns by number; of a table without titles, or with --joint-names,
        those of the option. Raises InputError for another number of names."""
        titles = dict(enumerate(self._table.titles))
        if not options.joint_names and self._table.has_titles:
            return titles
        named = titles
        if self._table.has_titles:
            is_met = matcher(options.state or "*", "--state")
            named = {
                column: title
                for column, title in titles.items()
                if time_factor(title) is None and not is_index(title) and is_met(title)
            }
            roots = root_groups(named)
            of_root = {column for root in roots for column in root.columns}
            named = {column: title for column, title in named.items() if column not in of_root}
        if len(named) != len(options.joint_names):
            what = (
                f"{plural(len(named), 'column')} without a known title, and"
                f" {len(options.joint_names) or 'no'} names are given"
            )
            fix = "give --joint-names in the order of the columns; - leaves a column out"
            if not self._table.has_titles:
                fix += "; time is the name of the times, or write the names in a first line"
            raise InputError(what, self._path, fix)
        given = dict(zip(named, options.joint_names, strict=True))
        return {
            column: given.get(column, title)
            for column, title in titles.items()
            if given.get(column, title) not in LEFT_OUT or column not in given
        }

    def _time_columns(
        self, titles: Mapping[int, str], options: RecordingOptions, names: set[str]
    ) -> tuple[int, int]:
        """The number of the column of the times, -1 without one or with --fps, and that of the
        part beyond whole seconds, -1 without one. Raises InputError for several, and for a name
        of --time that is no title."""
        if options.time:
            if options.fps is not None:
                raise InputError("--time and --fps are both given", self._path, "give one of them")
            column = next((k for k, title in titles.items() if title == options.time), -1)
            if column < 0:
                what = f"there is no column '{options.time}'"
                raise InputError(what, self._path, f"its columns: {some_names([*titles.values()])}")
            return column, -1
        found = [
            column
            for column, title in titles.items()
            if time_factor(title) is not None and title not in names
        ]
        for whole, part in permutations(found, 2):
            if len(found) == 2 and are_parts_of_a_time(titles[whole], titles[part]):
                return whole, part
        if len(found) > 1 and options.fps is None:
            what = f"the columns {some_names([titles[k] for k in found])} may be the times"
            raise InputError(what, self._path, "name one with --time, or give --fps")
        return found[0] if found else -1, -1

    def _refuse_incomplete(self, titles: Mapping[int, str]) -> None:
        """Raises InputError for columns that are part of a pose."""
        for prefix, (present, lacking) in lacking_parts(titles).items():
            what = f"the columns {some_names(present)} are no whole pose: {lacking} lack"
            fix = (
                "add them (three angles such as"
                f" {prefix}_roll, {prefix}_pitch, {prefix}_yaw may stand for a quaternion; 0, 0, 0,"
                f" 1 is no rotation), or leave these out with --ignore-joints '{prefix}_*'"
            )
            raise InputError(what, self._path, fix)

    def _unknown(self, unknown: Sequence[str], scene: ArticulatedScene) -> InputError:
        what = f"{plural(len(unknown), 'column')} of no joint of the scene: {some_names(unknown)}"
        names = _names_of_one_joint(coordinates_of_scene(scene))
        every = f"its joints are {some_names(names) or 'none'};"
        fix = (
            f"{did_you_mean(unknown[0], names, otherwise=every)} --ignore-joints leaves columns"
            " out (* is any text), --joint-names names them in order"
        )
        return InputError(what, self._path, fix)

    def _positions(
        self,
        found: Mapping[int, JointTitle],
        titles: Mapping[int, str],
        unused: list[str],
        options: RecordingOptions,
    ) -> dict[int, JointTitle]:
        """The columns of joint positions; those of other quantities go to `unused`. Raises
        InputError for two columns of a joint, and for commands alone."""
        is_met = matcher(options.state or "*", "--state")
        wanted = {column: joint for column, joint in found.items() if is_met(titles[column])}
        if not options.state:
            wanted = {k: joint for k, joint in wanted.items() if joint.quantity != OTHER}
        unused += [titles[column] for column in found if column not in wanted]
        of_name: dict[str, list[int]] = {}
        for column, joint in wanted.items():
            of_name.setdefault(joint.name, []).append(column)
        several = [column for group in of_name.values() if len(group) > 1 for column in group]
        fix = "name the measured positions with --state and a pattern, such as '*_meas'"
        if several:
            what = f"a joint has several columns: {some_names([titles[k] for k in several])}"
            raise InputError(what, self._path, fix)
        commands = [titles[k] for k, joint in wanted.items() if joint.quantity == COMMAND]
        if commands and not options.state:
            what = f"columns are commands, no measured positions: {some_names(commands)}"
            fix = "name columns with --state and a pattern to use them, such as '*_cmd'"
            raise InputError(what, self._path, fix)
        return wanted

    def _time_parts(self, whole: np.ndarray, part: np.ndarray, columns: _Columns) -> np.ndarray:
        """float64[F] [s]: what a clock has beyond its whole seconds. Raises InputError where the
        columns are two clocks."""
        titles = [self._table.titles[k] for k in (columns.time, columns.time_part)]
        seconds = part * (time_factor(titles[1]) or 1.0)
        if (whole != np.floor(whole)).any() or ((seconds < 0.0) | (seconds >= 1.0)).any():
            what = f"the columns {some_names(titles)} are no whole seconds and their parts"
            raise InputError(what, self._path, "name the times with --time, or give --fps")
        return seconds

    def _time(
        self, columns: _Columns, rows: Mapping[int, np.ndarray], options: RecordingOptions
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """float64[F] [s], and warnings."""
        frames = len(next(iter(rows.values())))
        warnings: tuple[str, ...] = ()
        if options.fps is not None or columns.time < 0:
            time = rate_time(frames, options.fps, self._path)
            return time, warnings
        title = self._table.titles[columns.time] if self._table.has_titles else "time"
        factor = time_factor(title)
        where = f"{self._path}: {title}"
        time = rows[columns.time] * (1.0 if factor is None else factor)
        if columns.time_part >= 0:
            time = time + self._time_parts(time, rows[columns.time_part], columns)
        time = checked_time(time, where)
        if factor in (None, 1.0):
            warnings = long_step_warnings(time, where, "a title such as time [ms] names the unit")
        return time, warnings


def _names(body: ArticulationKinematics) -> tuple[str, ...]:
    """The names by which columns may be the pose of an articulation or free body."""
    free = (body.free_joint, last_element(body.free_joint)) if body.free_joint else ()
    whole = (body.path.strip("/"), body.body_path[0].strip("/"))
    return (*body.aliases, *whole, *map(last_element, whole), *free)


def _names_of_one_joint(coordinates: Collection[str]) -> list[str]:
    """The last element of each coordinate's name where no other has it, else the whole name."""
    shared = Counter(map(last_element, coordinates))
    return sorted(
        name if shared[last_element(name)] > 1 else last_element(name) for name in coordinates
    )
