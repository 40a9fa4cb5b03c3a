"""ROS bags: joint states or planned trajectories of a robot, the pose of its root, and its URDF."""

# rosbags is not installed everywhere.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import ArticulationMotion
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.moved_bodies import check_free, check_once, named_body
from collidecli.importers.recordings.moved_robots import (
    MovedRobot,
    columns_of,
    moved_robots,
    robot_of_root,
    with_followers,
)
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import (
    EmbeddedScene,
    EmbeddedScenes,
    Recording,
    RecordingDescription,
    Target,
)
from collidecli.importers.recordings.ros_joint_states import JointStates
from collidecli.importers.recordings.ros_messages import (
    DEFAULT_MAX_GAP,
    DESCRIPTION,
    MOST_TIME,
    MOVED,
    RECEIVE,
    TEN_9,
    TRANSFORMS,
    Bag,
    MessageTimes,
    seconds,
)
from collidecli.importers.recordings.ros_samples import Samples
from collidecli.importers.recordings.ros_transforms import Chain, Transforms
from collidecli.scene.distinct_values import distinct
from collidecli.scene.episodes import Episodes
from collidecli.scene.followed_joints import FollowedJoints, followed_joints
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    JointColumns,
    find_articulation,
    last_element,
)
from collidecli.scene.options import RecordingOptions
from collidecli.storage.reading_limit import check_size
from collidecli.storage.storage_formats import BAG
from collidecli.wording import plural, some_names

JOINT_STATE = "sensor_msgs/JointState"
TEXT = "std_msgs/String"
ODOMETRY = "nav_msgs/Odometry"
POSES = (ODOMETRY, "geometry_msgs/PoseStamped", "geometry_msgs/PoseWithCovarianceStamped")
PLAN = "trajectory_msgs/JointTrajectory"
DISPLAYED = "moveit_msgs/DisplayTrajectory"
ROOT_FIX = "publish the joints of each robot on a topic of its own namespace"
Series = tuple[str, list[str], Samples]
"""Namespace of a robot, "" for the only one; names of joints, and their positions over time."""


class RosBagRecording(Recording):
    """Joint states or planned trajectories of a robot, and the poses of its root, in one world."""

    NAME = "ros-bag"
    LABEL = "a ROS bag (.mcap, .db3, .bag, or a folder with metadata.yaml)"
    OPTIONS = ("joint_topics", "trajectory_topic", "base_from", "body_from")
    OPTIONS += ("rate", "on_message", "clock", "max_gap", "from_time", "to_time")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self._bag = Bag(content.path)
        self._is_open = True

    @staticmethod
    def recognise(content: Content) -> bool:
        return content.storage == BAG

    def close(self) -> None:
        if self._is_open:
            self._bag.close()
        self._is_open = False

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def embedded_scenes(self, options: RecordingOptions) -> EmbeddedScenes | None:
        """The URDF of the topic robot_description; None without one. Raises InputError for several
        robots."""
        scenes = [
            EmbeddedScene(text, f"{self._path}: {topic}")
            for text, topic in self._descriptions().items()
        ]
        if len(scenes) > 1:
            what = (
                "the bag describes several robots:"
                f" {some_names([scene.location for scene in scenes])}"
            )
            raise InputError(what, self._path, "give the scene in which it was recorded")
        return EmbeddedScenes(tuple(scenes), (0,)) if scenes else None

    def _descriptions(self) -> dict[str, str]:
        """Topics of the robots' descriptions by their text."""
        topics = [topic for topic in self._bag.of_kinds(TEXT) if last_element(topic) == DESCRIPTION]
        return {text: topic for topic in topics for text in self._bag.texts(topic)}

    def describe(self) -> RecordingDescription:
        """All messages of joint states and transforms are read."""
        bag = self._bag
        transforms = Transforms(self._path)
        robots = self._descriptions()
        states = {topic: JointStates(bag, topic, RECEIVE) for topic in bag.of_kinds(JOINT_STATE)}
        handlers = {topic: item.add for topic, item in states.items()}
        bag.read(
            handlers | {t: transforms.handler(bag, t, RECEIVE) for t in bag.of_kinds(*TRANSFORMS)}
        )
        details = []
        every = [np.zeros(0, np.int64)]
        joints = set[str]()
        for topic, connections in bag.topics.items():
            said = [bag.kind(topic), plural(sum(item.msgcount for item in connections), "message")]
            if topic in states:
                groups = states[topic].groups()
                time = np.sort(
                    np.concatenate([every[0], *(received for _, received, _ in groups.values())])
                )
                if len(time) > 1 and time[-1] > time[0]:
                    rate = TEN_9 / np.median(np.diff(time))
                    gap = np.diff(time).max() / TEN_9
                    said.append(f"{rate:.6g} a second, largest gap {gap:.6g} s")
                named = {name for names in groups for name in names}
                said.append(f"joints {', '.join(sorted(named))}")
                every = [*every, time]
                joints = joints | named
            details.append((topic, ", ".join(said)))
        details += [
            (f"joints of {topic}", _compared(text, joints)) for text, topic in robots.items()
        ]
        details += [("transforms", transforms.described())] if transforms.parent else []
        time = distinct(np.concatenate(every))
        needs = () if robots else ("the scene that was recorded",)
        ends = (0.0, float(time[-1] - time[0]) / TEN_9) if len(time) else (None, None)
        return RecordingDescription(
            len(time), 1, ends[0], ends[1], (), len(joints), "xyzw", needs, tuple(details)
        )

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """One frame a message, or --rate frames a second. A gap ends an episode."""
        scene = target.articulated(self._path)
        path = self._path
        base = (
            None
            if options.base_from in ("", "none")
            else PoseSource.of(options.base_from, "--base-from")
        )
        bodies = [PoseSource.of(text, "--body-from") for text in options.body_from]
        sources = [base, *bodies] if base else bodies
        messages = self._messages(options) if options.on_message else None
        series, transforms, start, warnings = (
            _only_planned(self._bag, options, sources, path)
            if options.trajectory_topic
            else _recorded(self._bag, options, sources, scene, messages)
        )
        self.clock_start = start
        robots = _MovedRobots(target, scene, transforms, path)
        robots.add_joints(series, base)
        robots.add_bodies(base, bodies)
        sampled = [samples for *_, samples in series]
        sampled += transforms.finish(robots.frames(), *_window(options, start))
        if not sampled:
            fix = "give --base-from, --body-from or --trajectory-topic"
            raise InputError("the bag has no joint states", path, fix)
        every = None if messages is None else _chosen_times(messages.checked(), options, start)
        times, episodes, gaps = _frames(sampled, every, max(len(series), 1), start, options, path)
        articulations = robots.recorded(times)
        time = (times - start) / TEN_9
        origins = np.zeros((1, 3))
        notes = (*scene.warnings, *warnings, *gaps)
        return ArticulationMotion(
            path, target, [articulations], origins, time, notes, self.close, episodes
        )

    def _messages(self, options: RecordingOptions) -> MessageTimes:
        """What takes the times of --on-message. Raises InputError for an unknown topic, and beside
        --rate or plans."""
        topic = options.on_message
        if options.rate is not None or options.trajectory_topic:
            raise InputError(
                "frames are those of --rate, or of plans", "--on-message", "give one of them"
            )
        if topic not in self._bag.topics:
            fix = f"its topics are {some_names([*self._bag.topics])}"
            raise InputError(f"the bag has no topic '{topic}'", "--on-message", fix)
        return MessageTimes(self._bag, topic, options.clock)


@dataclass(frozen=True)
class PoseSource:
    """A source of poses, by an option. name: of the body; "" for the root. topic: of odometry or
    poses, else "".

    frame: the world; "" for that of the topic's messages, or of the root. child: the moving frame;
    "" for the root's.
    """

    option: str
    name: str
    topic: str
    frame: str
    child: str

    @classmethod
    def of(cls, text: str, option: str) -> PoseSource:
        """Raises InputError for a text that is none."""
        name, _, source = text.rpartition("=")
        kind, *parts = source.split(":")
        is_base = option == "--base-from"
        most = 2 if kind == "tf" or not name else 1
        if bool(name) != is_base and all(parts) and 0 < len(parts) <= most:
            frame, child = (
                parts if len(parts) == 2 else (parts[0], "") if is_base else ("", parts[0])
            )
            if kind == "tf":
                return cls(option, name, "", frame.lstrip("/"), child.lstrip("/"))
            if kind == ("odom" if is_base else "pose"):
                return cls(
                    option,
                    name,
                    parts[0],
                    "",
                    child.lstrip("/") if is_base else f"the pose of {parts[0]}",
                )
        fix = (
            "give tf:FRAME, tf:FRAME:CHILD or odom:TOPIC"
            if is_base
            else "give BODY=tf:CHILD or BODY=pose:TOPIC"
        )
        raise InputError(f"'{text}' is no source of poses", option, fix)


class _MovedRobots:
    """The articulations that a bag moves: the columns of their joints, and the poses of their
    roots."""

    def __init__(
        self, target: Target, scene: ArticulatedScene, transforms: Transforms, path: str
    ) -> None:
        self._target = target
        self._scene = scene
        self._transforms = transforms
        self._path = path
        self._where = f"{path}: joint states"
        self._chains = list[Chain]()
        self._moved: dict[str, tuple[Any, ...]] = {}

    def add_joints(self, series: Sequence[Series], base: PoseSource | None) -> None:
        """Adds the robots of series of joint positions, whose roots move with `base`."""
        of_spaces: dict[str, list[Series]] = {} if series or not base else {"": []}
        for item in series:
            of_spaces.setdefault(item[0], []).append(item)
        for space, robot_series in of_spaces.items():
            names = tuple(name for _, joints, _ in robot_series for name in joints)
            if space:
                name = last_element(space)
                rooted = find_articulation(self._scene.articulations, name, self._where)
                followed = followed_joints(rooted, names)
                robots = [MovedRobot(rooted, tuple(range(len(followed.names))), followed.names)]
            else:
                robots = moved_robots(self._scene, names, self._path)
                rooted = None
                if base:
                    rooted = robot_of_root(robots, self._target, base.option, ROOT_FIX)
                robots, followed = with_followers(self._scene, robots)
            pairs = zip(robots, _joints(robots, followed, robot_series, self._where), strict=True)
            for robot, (columns, at) in pairs:
                moved = robot.articulation
                pose_at = self._base_poses(base, moved, space) if base and moved is rooted else None
                self._moved[moved.path] = moved, columns, pose_at, at

    def _base_poses(
        self, base: PoseSource, robot: ArticulationKinematics, space: str
    ) -> Callable[..., Any]:
        """The poses over time of the root of a robot, whose frame may be named with its
        namespace."""
        transforms = self._transforms
        check_free(self._target, robot, base.option)
        named = [f"{space}/{last_element(robot.path)}".lstrip("/"), last_element(robot.path)]
        child = base.child or next((name for name in named if name in transforms.parent), named[-1])
        self._chains.append(
            transforms.chain(transforms.moved or base.frame, child, f"{self._path}: --base-from")
        )
        return partial(transforms.moved_poses if base.topic else transforms.poses, self._chains[-1])

    def add_bodies(self, base: PoseSource | None, bodies: Sequence[PoseSource]) -> None:
        """Adds bodies without joints, each by the source of its poses."""
        transforms = self._transforms
        where = f"{self._path}: --body-from"
        world = _world(base, bodies, transforms) if bodies else ""
        for body in bodies:
            robot = named_body(self._scene, body.name, where)
            check_once(robot, self._moved, body.option)
            check_free(self._target, robot, body.option)
            self._chains.append(transforms.chain(world, body.child, where))
            pose_at = partial(transforms.poses, self._chains[-1])
            self._moved[robot.path] = robot, JointColumns(robot, [], self._where), pose_at, None

    def frames(self) -> dict[str, None]:
        """The frames of the bag's transforms that move the roots."""
        if not self._chains:
            return {}
        ends = [frame for chain in self._chains for end in chain for frame in end]
        return dict.fromkeys([MOVED, *ends])

    def recorded(self, times: np.ndarray) -> list[RecordedArticulation]:
        """The articulations with their values at the times of the frames [ns]."""
        articulations = []
        for robot, columns, *at in self._moved.values():
            root, joints = (None if item is None else _in_frames(item, times) for item in at)
            where = f"{self._path}: {robot.path}"
            articulations.append(
                RecordedArticulation(robot, columns, root, joints, where, self._where)
            )
        return articulations


def _world(base: PoseSource | None, bodies: Sequence[PoseSource], transforms: Transforms) -> str:
    """The frame of all poses: the root's, else the one that is named, else that of the messages.
    Raises InputError."""
    frames = (
        [] if base is None else [transforms.parent.get(MOVED, "") if base.topic else base.frame]
    )
    frames += [body.frame for body in bodies if body.frame]
    frames = sorted(
        {*frames} or {transforms.parent.get(body.child, "") for body in bodies if body.topic}
    )
    if len(frames) != 1:
        what = (
            f"the poses are in the frames {' and '.join(frames)}"
            if frames
            else "no frame of the poses is named"
        )
        raise InputError(
            what, "--body-from", f"name one, as in {bodies[0].name}=tf:FRAME:{bodies[0].child}"
        )
    return frames[0]


def _compared(robot: str, recorded: set[str]) -> str:
    """The joints of a URDF that are recorded, missing, or follow others."""
    try:
        elements = [] if "<!DOCTYPE" in robot else list(ElementTree.fromstring(robot).iter("joint"))
    except ElementTree.ParseError:
        return "no URDF"
    known = {
        e.get("name", "") for e in elements if e.get("type") not in ("fixed", "floating", None)
    }
    mimic = {e.get("name", "") for e in elements if e.find("mimic") is not None}
    named = {
        "missing": known - recorded - mimic,
        "mimic": mimic - recorded,
        "not in it": recorded - known,
    }
    shown = [f"{word}: {', '.join(sorted(names))}" for word, names in named.items() if names]
    return "; ".join([f"{len(known & recorded)} of {len(known)} recorded", *shown])


def _window(options: RecordingOptions, start: int) -> tuple[tuple[int, int, int], int]:
    """The window and the longest gap of `Samples.of`."""
    gap = round((DEFAULT_MAX_GAP if options.max_gap is None else options.max_gap) * TEN_9)
    first = start + round((options.from_time or 0.0) * TEN_9)
    last = MOST_TIME if options.to_time is None else start + round(options.to_time * TEN_9)
    return (start, first, last), gap


def _chosen_times(times: Sequence[int], options: RecordingOptions, start: int) -> np.ndarray:
    """int64[n]: distinct times [ns] of messages within --from and --to. Raises InputError where
    there is none."""
    _, first, last = _window(options, start)[0]
    chosen = distinct(np.array(times, np.int64))
    chosen = chosen[(chosen >= first) & (chosen <= last)]
    if not len(chosen):
        what = f"'{options.on_message}' has no message in the chosen time"
        raise InputError(what, "--on-message", "give other times")
    return chosen


def _check_kind(bag: Bag, topic: str, option: str, *kinds: str) -> None:
    """Raises InputError for a topic without messages of one of some types."""
    if bag.kind(topic) not in kinds:
        fix = f"its topics of that type are {some_names(bag.of_kinds(*kinds)) or 'none'}"
        raise InputError(f"the bag has no {' or '.join(kinds)} on '{topic}'", option, fix)


def _recorded(
    bag: Bag,
    options: RecordingOptions,
    sources: Sequence[PoseSource],
    scene: ArticulatedScene,
    messages: MessageTimes | None,
) -> tuple[list[Series], Transforms, int, list[str]]:
    """Joint positions; transforms; time of the first joint state, else transform [ns]; warnings; in
    one pass."""
    states = {}
    for topic in options.joint_topics or bag.of_kinds(JOINT_STATE):
        _check_kind(bag, topic, "--joint-topics", JOINT_STATE)
        states[topic] = JointStates(bag, topic, options.clock)
    transforms = Transforms(bag.path)
    handlers = {topic: item.add for topic, item in states.items()}
    for topic in bag.of_kinds(*TRANSFORMS) if sources else []:
        handlers[topic] = transforms.handler(bag, topic, options.clock)
    for source in sources:
        if source.topic:
            is_base = not source.name
            _check_kind(bag, source.topic, source.option, *(POSES[:1] if is_base else POSES))
            child = MOVED if is_base else source.child
            handlers[source.topic] = transforms.handler(bag, source.topic, options.clock, child)
    if messages is not None:
        other = handlers.get(messages.topic)

        def both(number: int, received: int, data: bytes) -> None:
            messages.add(number, received, data)
            if other is not None:
                other(number, received, data)

        handlers[messages.topic] = both
    bag.read(handlers)
    groups = {
        (topic, names): group
        for topic, item in states.items()
        for names, group in item.groups().items()
    }
    start = min((int(time.min()) for _, time, *_ in groups.values()), default=transforms.start)
    without = {topic: item.without for topic, item in states.items() if item.without}
    warnings = [
        f"{bag.path}: {topic}: messages without positions: {number}"
        for topic, number in without.items()
    ]
    spaces = {topic: topic.strip("/").rpartition("/")[0] for topic, _ in groups}
    known = {alias for item in scene.articulations for alias in (item.path, *item.aliases)}
    if (
        len(set(spaces.values())) == 1
        or not {last_element(space) for space in spaces.values()} <= known
    ):
        spaces = dict.fromkeys(spaces, "")
    return _series(groups, spaces, options, start, bag.path), transforms, start, warnings


def _series(
    groups: Mapping[tuple, tuple[np.ndarray, ...]],
    spaces: Mapping[str, str],
    options: RecordingOptions,
    start: int,
    path: str,
) -> list[Series]:
    """Joints of the same messages together. Raises InputError for a joint on several topics, and
    see `Samples.of`.

    groups: number, time [ns] and positions of messages by topic and names of joints. spaces: see
    `Series`, by topic.
    """
    holders: dict[tuple[str, str], list[tuple]] = defaultdict(list)
    for key in groups:
        for name in key[1]:
            holders[spaces[key[0]], name].append(key)
    together: dict[tuple, list[str]] = defaultdict(list)
    for (_, name), keys in holders.items():
        topics = sorted({topic for topic, _ in keys})
        if len(topics) > 1:
            what = f"joint '{name}' is on the topics {' and '.join(topics)}"
            raise InputError(what, path, "choose topics with --joint-topics")
        together[tuple(keys)].append(name)
    series: list[Series] = []
    for keys, names in together.items():
        number, time = (np.concatenate([groups[key][part] for key in keys]) for part in (0, 1))
        positions = np.concatenate(
            [groups[key][2][:, [key[1].index(name) for name in names]] for key in keys]
        )
        order = np.argsort(number, kind="stable")
        what = f"{path}: {keys[0][0]}, joint '{names[0]}'" + (
            f" and {len(names) - 1} more" if names[1:] else ""
        )
        samples = Samples.of(
            what, time[order], positions[order], number[order], *_window(options, start)
        )
        series.append((spaces[keys[0][0]], names, samples))
    return series


def _only_planned(
    bag: Bag, options: RecordingOptions, sources: Sequence[PoseSource], path: str
) -> tuple[list[Series], Transforms, int, list[str]]:
    """As `_recorded`, of planned trajectories. Raises InputError for options of what plans lack."""
    if sources or options.joint_topics or options.clock:
        fix = "remove --joint-topics, --clock, --base-from and --body-from"
        raise InputError(
            "plans have joint positions alone, and no clock", "--trajectory-topic", fix
        )
    series = [_planned(bag, options)]
    warnings = []
    if options.rate is None:
        what = (
            "frames are waypoints alone, between which links move on arcs: --rate 100 adds frames"
        )
        warnings = [f"{path}: {options.trajectory_topic}: {what}"]
    return series, Transforms(path), 0, warnings


def _planned(bag: Bag, options: RecordingOptions) -> Series:
    """Planned joint positions of a topic. Each plan begins a second after the end of the one before
    it."""
    topic = options.trajectory_topic
    where = f"{bag.path}: {options.trajectory_topic}"
    _check_kind(bag, topic, "--trajectory-topic", PLAN, DISPLAYED)
    names: list[str] = []
    rows: list[tuple[int, int, int]] = []
    values: list[list[float]] = []

    def add(number: int, received: int, data: bytes) -> None:
        message = bag.decoded(topic, number, data)
        at = f"{where}, message {number}"
        is_displayed = bag.kind(topic) == DISPLAYED
        start = message.trajectory_start.joint_state if is_displayed else None
        for part_message in message.trajectory if is_displayed else [message]:
            if is_displayed and len(part_message.multi_dof_joint_trajectory.points):
                raise InputError(
                    "plans joints of several degrees of freedom", at, "plan joints of one"
                )
            plan = part_message.joint_trajectory if is_displayed else part_message
            part = rows[-1][2] + 1 if rows else 0
            position_of = (
                {}
                if start is None
                else dict(zip(start.name, map(float, start.position), strict=False))
            )
            joints = sorted({*position_of, *plan.joint_names})
            offset = rows[-1][1] + TEN_9 if rows else 0
            if names and names != joints:
                what = (
                    f"has the joints {', '.join(joints)}, and the plans before it"
                    f" {', '.join(names)}"
                )
                raise InputError(what, at, "record one robot a topic")
            names[:] = joints
            for point in plan.points:
                if len(point.positions) != len(plan.joint_names):
                    what = (
                        f"a point has {len(point.positions)} positions of {len(plan.joint_names)}"
                        " joints"
                    )
                    raise InputError(what, at, "plan positions")
                position_of |= zip(plan.joint_names, map(float, point.positions), strict=True)
                after = point.time_from_start
                rows.append((number, offset + int(after.sec) * TEN_9 + int(after.nanosec), part))
                values.append([position_of[name] for name in names])

    bag.read({topic: add})
    if not rows:
        raise InputError("the topic has no points of plans", where, "record a plan")
    number, time, plan = np.array(rows, np.int64).T
    joints = Samples.of(
        where, time, np.column_stack([values, plan]), number, _window(options, 0)[0], MOST_TIME
    )
    return (
        "",
        names,
        replace(joints, values=joints.values[:, :-1], part=joints.values[:, -1].astype(np.int64)),
    )


def _covered(
    sampled: Sequence[Samples], times: np.ndarray, start: int
) -> tuple[np.ndarray, list[str]]:
    """The times [ns] at which all sources have data, and a warning for those that are left out at
    each end. Raises InputError where less than half are left."""
    begun = max(sampled, key=lambda part: part.time[0])
    ended = min(sampled, key=lambda part: part.time[-1])
    early = times < begun.time[0]
    late = times > ended.time[-1]
    kept = times[~(early | late)]
    if 2 * len(kept) < len(times):
        part, row, word = (
            (begun, 0, "before") if early.sum() >= late.sum() else (ended, -1, "after")
        )
        what = (
            f"has no data {word} message {part.number[row]} at {seconds(part.time[row] - start)} s,"
            f" and {len(times) - len(kept)} of {len(times)} frames are at other times"
        )
        bounds = seconds(begun.time[0] - start), seconds(ended.time[-1] - start)
        fix = f"give --from {bounds[0]} --to {bounds[1]}"
        if begun.time[0] > ended.time[-1]:
            fix = f"{begun.what} begins after the end of {ended.what}: leave one of them out"
        raise InputError(what, part.what, fix)
    warnings = [
        f"{part.what}: has no data {word} {seconds(part.time[row] - start)} s:"
        f" {plural(int(left_out.sum()), 'frame')} left out"
        for part, row, word, left_out in ((begun, 0, "before", early), (ended, -1, "after", late))
        if left_out.any()
    ]
    return kept, warnings


def _gap_warnings(
    sampled: Sequence[Samples],
    times: np.ndarray,
    kept_count: int,
    start: int,
    options: RecordingOptions,
    path: str,
) -> list[str]:
    """Warnings of an end before --to, and of gaps that divide the frames into episodes."""
    gaps = [(part, row) for part in sampled for row in np.flatnonzero(np.diff(part.part)) + 1]
    gaps = [
        (part, row)
        for part, row in gaps
        if part.time[row] > times[0] and part.time[row - 1] < times[-1]
    ]
    warnings = []
    last = max(part.time[-1] for part in sampled) - start
    if (
        options.to_time is not None
        and not options.trajectory_topic
        and last < round(options.to_time * TEN_9)
    ):
        warnings.append(
            f"{path}: the last message is at {seconds(last)} s, before --to {options.to_time:g}"
        )
    for part, row in gaps[:1] if not options.trajectory_topic else ():
        gap = seconds(part.time[row] - part.time[row - 1])
        at = seconds(part.time[row] - start)
        what = (
            f"no message for {gap} s before message {part.number[row]} at {at} s; episodes end at "
        )
        what += (
            f"{plural(len(gaps), 'such gap')}, and {len(times) - kept_count} frames within them are"
            " left out"
        )
        warnings.append(f"{part.what}: {what} (--max-gap)")
    return warnings


def _frames(
    sampled: Sequence[Samples],
    every: np.ndarray | None,
    timing: int,
    start: int,
    options: RecordingOptions,
    path: str,
) -> tuple[np.ndarray, Episodes | None, list[str]]:
    """Times of the frames [ns], `every` or those of the first `timing` sources; episodes between
    gaps; warnings."""
    if every is None:
        _, first, last = _window(options, start)[0]
        every = distinct(np.concatenate([part.time for part in sampled[:timing]]))
        every = every[(every >= first) & (every <= last)]
    times, ends = _covered(sampled, every, start)
    if options.rate is not None:
        number = int((times[-1] - times[0]) * options.rate / TEN_9) + 1
        check_size(64 * number, f"{number} frames", path, "give a lower --rate")
        times = times[0] + np.rint(np.arange(number) * (TEN_9 / options.rate)).astype(np.int64)
    parts = np.column_stack([part.parts_at(times) for part in sampled])
    inside = (parts >= 0).all(axis=1)
    kept = times[inside]
    parts = parts[inside]
    if not len(kept):
        raise InputError("all frames are in gaps", path, "give a longer --max-gap")
    begins = np.flatnonzero(np.append(True, (np.diff(parts, axis=0) != 0).any(axis=1)))
    word = "plan" if options.trajectory_topic else "part"
    lengths = np.diff(np.append(begins, len(kept)))
    names = tuple(f"{word}_{k}" for k in range(len(begins)))
    episodes = Episodes(names, np.zeros(len(begins), np.int32), begins.astype(np.int64), lengths)
    warnings = [*ends, *_gap_warnings(sampled, times, len(kept), start, options, path)]
    return kept, episodes if len(begins) > 1 else None, warnings


def _in_frames(
    at: Callable[[np.ndarray], np.ndarray], times: np.ndarray
) -> Callable[[range], np.ndarray]:
    """A function of times [ns] as one of frames."""
    return lambda frames: at(times[frames.start : max(frames.start, frames.stop) : frames.step])


def _joints(
    robots: Sequence[MovedRobot], followed: FollowedJoints, series: Sequence[Series], where: str
) -> list[tuple[JointColumns, Callable[[np.ndarray], np.ndarray] | None]]:
    """The columns of each articulation, and their positions at times [ns]; joints that follow
    recorded ones are added."""
    count = sum(len(joints) for _, joints, _ in series)
    columns = [JointColumns(robot.articulation, robot.names, where) for robot in robots]
    pairs = zip(robots, columns, strict=True)
    angles = [robot.columns[at] for robot, own in pairs for at in own.angles().tolist()]
    is_angle = np.isin(np.arange(count), angles)

    @np.errstate(over="ignore", invalid="ignore")
    def positions(own: Sequence[int], times: np.ndarray) -> np.ndarray:
        ends = np.cumsum([len(joints) for _, joints, _ in series])
        parts = zip(series, np.split(is_angle, ends[:-1]), strict=True)
        sampled = [samples.at(times, angles) for (*_, samples), angles in parts]
        return columns_of(followed.completed(np.concatenate(sampled, axis=1)), own)

    return [
        (own, partial(positions, robot.columns) if series else None)
        for robot, own in zip(robots, columns, strict=True)
    ]
