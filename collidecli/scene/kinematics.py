"""Bodies, joints and articulations by the names of a recording, and the interface of a scene's kinematics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics import norm
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.shape_types import first_worlds, is_identity, shift_between
from collidecli.texts import some_names

# Interface of a scene's forward kinematics to the readers of recordings.

BadRow = tuple[int, str, str]
"""Row, name of the body, and description of the error."""

QUATERNION_AXES = ("x", "y", "z", "w")


class Kinematics(Protocol):
    """Body poses from generalized coordinates, each frame independently.

    body_path: name of each body. welded: bool[B], bodies that are part of the static world.
    coordinate_count: numbers per configuration. mocap_count: bodies whose pose is an input.
    """

    body_path: tuple[str, ...]
    welded: np.ndarray
    coordinate_count: int
    mocap_count: int

    def poses(self, qpos: np.ndarray, mocap: np.ndarray | None = None) -> np.ndarray:
        """float64[n, B, 7] xyzw of qpos[n, coordinate_count] and mocap[n, mocap_count, 7] xyzw."""
        ...

    def first_bad_coordinate(self, qpos: np.ndarray) -> BadRow | None:
        """The first row of qpos that is no valid configuration, or None."""
        ...

    def first_bad_mocap(self, mocap: np.ndarray) -> BadRow | None:
        """The first row of mocap[n, mocap_count, 7] with an invalid pose, or None."""
        ...


@dataclass(frozen=True)
class NamedJoint:
    """A joint's coordinates by name.

    path: of the joint. axes: one name a coordinate; ("",) for a single one, ("x", "y", "z", "w") for a quaternion.
    required: a recording with any joint must contain this one; other joints may keep the scene's coordinates.
    angles: numbers of the coordinates that are angles. mimic: the joint that it follows, and its own and that joint's
    resting coordinate, then the factors of the powers of the other's displacement, whose sum is its displacement.
    """

    path: str
    axes: tuple[str, ...]
    required: bool = False
    angles: tuple[int, ...] = ()
    mimic: tuple[str, tuple[float, ...]] | None = None

    @property
    def is_quaternion(self) -> bool:
        return self.axes == QUATERNION_AXES

    @property
    def coordinates(self) -> tuple[str, ...]:
        """Names of the coordinates: the joint's path, with `:` and the axis if there are several."""
        return tuple(f"{self.path}:{axis}" if axis else self.path for axis in self.axes)


class ArticulationKinematics(Protocol):
    """Forward kinematics of one joint tree, or of one free body.

    path: its name. aliases: its short names. body_path: its bodies, the root first.
    joints: those with coordinates. root_is_jointed: joints connect the root to the world and determine its pose.
    """

    path: str
    aliases: tuple[str, ...]
    body_path: tuple[str, ...]
    joints: tuple[NamedJoint, ...]
    root_is_jointed: bool

    def poses(self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray) -> np.ndarray:
        """float64[n, B, 7]: world poses of the bodies, xyzw, unit, in the order of body_path, by configuration.

        root_pose: float64[n, 7], xyzw, unit, of the root body; None is the scene's. Unused if `root_is_jointed`.
        columns: the column of joint_position of each coordinate; joints without columns keep the scene's coordinates.
        joint_position: float64[n, k], metres and radians; quaternions xyzw.
        """
        ...


@runtime_checkable
class MujocoCoordinates(Protocol):
    """An articulation of a scene compiled by MuJoCo."""

    def coordinates(
        self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray, qpos: np.ndarray | None
    ) -> np.ndarray | None:
        """float64[n, nq] of the scene: qpos, None for the initial one, with the articulation's coordinates of `poses`.

        None for a root pose of a root without a joint, which no coordinates have.
        """
        ...


class ArticulatedScene(Protocol):
    """Every articulation and free body of a scene. warnings: joints that the kinematics omits, by name."""

    @property
    def articulations(self) -> tuple[ArticulationKinematics, ...]: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


class JointColumns:
    """The recorded columns of an articulation's coordinates, and their names. where: the dataset, for messages.

    The name of a column is a coordinate's whole name, or its last path element if that is unique.
    of_joint: per joint an int array, the column of each coordinate, -1 for a missing one; None for a joint without
    recorded coordinates. warnings: coordinates that the recording lacks, by name.
    Raises InputError: an unknown name, a duplicate name, an incomplete quaternion, a missing required joint.
    """

    def __init__(self, articulation: ArticulationKinematics, names: Sequence[str], where: str) -> None:
        self.names, self._joints = tuple(names), articulation.joints
        self.warnings: list[str] = []
        known = {name: index for index, name in enumerate(coordinate_names(articulation))}
        short = Counter(last_element(name) for name in known)
        known |= {last_element(n): index for n, index in tuple(known.items()) if short[last_element(n)] == 1}
        column_of: dict[int, int] = {}
        unknown = [name for name in names if name not in known]
        if unknown:
            what = f"'{articulation.path}' has no joint {some_names(unknown)}"
            raise InputError(what, where, f"its coordinates are {some_names(coordinate_names(articulation)) or 'none'}")
        for column, name in enumerate(names):
            if known[name] in column_of:
                raise InputError(f"joint '{name}' is named twice", where, "name each column once")
            column_of[known[name]] = column
        self.of_joint: list[np.ndarray | None] = []
        start, missing, zero = 0, [], []
        for joint in articulation.joints:
            columns = np.array([column_of.get(start + k, -1) for k in range(len(joint.axes))], np.intp)
            start += len(joint.axes)
            absent = [name for name, column in zip(joint.coordinates, columns, strict=True) if column < 0]
            nothing = len(absent) == len(joint.axes)
            if absent and names and (joint.required or (joint.is_quaternion and not nothing)):
                raise InputError(f"the recording lacks {some_names(absent)}", where, "record every coordinate")
            missing += absent if nothing else []
            zero += [] if nothing else absent
            self.of_joint.append(None if nothing else columns)
        if missing:
            what = f"{len(missing)} coordinates of '{articulation.path}' are not in the recording; their joints"
            self.warnings.append(f"{where}: {what} stay as in the scene: {some_names(missing)}")
        if zero:
            self.warnings.append(f"{where}: not in the recording and taken as 0: {some_names(zero)}")

    def angles(self) -> np.ndarray:
        """int[k]: the columns that are angles."""
        pairs = zip(self._joints, self.of_joint, strict=True)
        parts = [columns[list(joint.angles)] for joint, columns in pairs if columns is not None and joint.angles]
        joined = np.concatenate(parts) if parts else np.zeros(0, np.intp)
        return joined[joined >= 0]

    def first_fault(self, joint_position: np.ndarray, tolerance: float) -> tuple[int, str] | None:
        """Row and error of the first row of joint_position[n, k] that is no valid configuration; None if all are."""
        finite = np.isfinite(joint_position)
        bad = ~finite.all(axis=1)
        norms = []
        with np.errstate(invalid="ignore", over="ignore"):
            for joint, columns in zip(self._joints, self.of_joint, strict=True):
                if columns is not None and joint.is_quaternion:
                    norms.append((joint.path, norm(joint_position[:, columns])))
                    bad |= ~(np.abs(norms[-1][1] - 1.0) <= tolerance)
        if not bad.any():
            return None
        row = int(np.argmax(bad))
        if not finite[row].all():
            column = int(np.argmin(finite[row]))
            return row, f"the coordinate of joint '{self.names[column]}' is {joint_position[row, column]:g}"
        path, off = next((path, values[row]) for path, values in norms if not abs(values[row] - 1.0) <= tolerance)
        return row, f"the quaternion of joint '{path}' has norm {off:.6g}"


def coordinate_names(articulation: ArticulationKinematics) -> tuple[str, ...]:
    """Names of an articulation's coordinates, in the order of its joints."""
    return tuple(name for joint in articulation.joints for name in joint.coordinates)


def find_articulation(articulations: Sequence[ArticulationKinematics], name: str, where: str) -> ArticulationKinematics:
    """The articulation or free body of a name: its path, else one of its aliases, else one regardless of case.

    Raises InputError if there is none, or more than one.
    """
    for matches in (
        [x for x in articulations if x.path == name],
        [x for x in articulations if name in x.aliases],
        [x for x in articulations if name.lower() in (alias.lower() for alias in x.aliases)],
    ):
        if len(matches) == 1:
            return matches[0]
        if matches:
            paths = some_names([x.path for x in matches])
            raise InputError(f"'{name}' may be any of {paths}", where, "give its whole path")
    fix = f"it has {some_names([x.path for x in articulations])}" if articulations else "it has none"
    raise InputError(f"the scene has no articulation or body '{name}'", where, fix)


def last_element(path: str) -> str:
    """The part of a path behind the last slash."""
    return path.rsplit("/", 1)[-1]


# A tree of joints as arrays, and the compiled forward kinematics of this process.
#
# A verb that collides nothing does not import Warp: `use` sets the compiled code in the process of one that does.

FIXED, FREE, JOINTED = range(3)
"""Bodies that no coordinate moves, whose pose is in the coordinates, and whose pose follows from their parent's."""
SLIDE, BALL, HINGE = range(3)
"""Joints of a JOINTED body."""
SHORTEST = 1e-15
"""Norm of a quaternion below which MuJoCo uses the identity."""
UNIT = 1e-15
"""Deviation of a norm from 1 above which MuJoCo divides by it."""


@dataclass(frozen=True)
class JointTree:
    """Bodies, parents first, the world as body 0; and their joints.

    body_kind: FIXED, FREE or JOINTED. body_first, body_count: joints of a JOINTED body; body_first of a FREE one is
    its first coordinate. body_pose: float64[B, 7], position and quaternion wxyz, in the world of a FIXED body, in the
    parent's frame of a JOINTED one. joint_kind: SLIDE, BALL or HINGE. joint_address: first coordinate.
    joint_numbers: float64[J, 7], axis, anchor, and the coordinate at which the joint does not move its body.
    """

    body_kind: list[int]
    body_parent: list[int]
    body_first: list[int]
    body_count: list[int]
    body_pose: np.ndarray
    joint_kind: list[int]
    joint_address: list[int]
    joint_numbers: np.ndarray


class CompiledTree(Protocol):
    """Forward kinematics of one tree."""

    def poses(self, coordinates: np.ndarray) -> np.ndarray | None:
        """float64[n, B - 1, 7], xyzw, of contiguous coordinates float64[n, k]; None if NumPy must compute them."""
        ...


class TreeCompiler(Protocol):
    """Compiled code for any tree."""

    def is_ready(self) -> bool:
        """Whether the code can be used without waiting."""
        ...

    def compiled(self, tree: JointTree) -> CompiledTree: ...


_compiler: TreeCompiler | None = None


def use(compiler: TreeCompiler | None) -> None:
    """Sets the compiled code of this process; None is NumPy."""
    global _compiler
    _compiler = compiler


def ready_compiler() -> TreeCompiler | None:
    """The compiled code of this process if it can be used without waiting, else None."""
    return _compiler if _compiler is not None and _compiler.is_ready() else None


# Matching of recorded body names to a model's bodies.


def find_bodies(names: list[str], model: Model, where: str) -> dict[int, int]:
    """Index into `names` by row of each named body of the model, rows ascending.

    In a model of several templates a name matches the body of that name in each of them. A body of an environment has
    two names: its path from the environment's root, and its whole path in any one environment. Raises InputError for a
    duplicate name, a name of no body, or whole paths of one body in several environments of one template.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"body '{twice[0]}' is named twice", where, "every recorded body needs its own name")
    roots = _roots(model)
    named: dict[str, list[int]] = {}
    for column, name in enumerate(names):
        named.setdefault(_local(name, roots), []).append(column)
    column_of_body: dict[int, int] = {}
    locals_known = set()
    for row, path in enumerate(model.bodies.path):
        local = _local(path, roots)
        locals_known.add(local)
        columns = named.get(local, [])
        exact = [column for column in columns if names[column] == path]
        if exact or len(columns) == 1:
            column_of_body[row] = (exact or columns)[0]
    used = set(column_of_body.values())
    left = [name for column, name in enumerate(names) if column not in used]
    several = [name for name in left if _local(name, roots) in locals_known]
    if several:
        fix = "name it once and record each environment as a world, or run with --environments none"
        raise InputError(f"'{several[0]}' and others are one body in several environments of one template", where, fix)
    if left:
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        bodies = some_names(model.bodies.path)
        fix = f"its bodies are {bodies}; one renamed there must be renamed in the recording"
        raise InputError(f"the scene has no body '{left[0]}'{more}", where, fix if bodies else "it has no bodies")
    return column_of_body


def shift_of_named(names: list[str], column_of_body: dict[int, int], model: Model) -> np.ndarray | None:
    """float64[found, 7]: transform of each body from its recorded world to the first world of its template.

    The recorded world of a whole path is the world of its environment, that of another name world 0. None if all
    transforms are the identity.
    """
    roots = _roots(model)
    if not column_of_body or not roots:
        return None
    world_of = {path: world for world, path in reversed(list(enumerate(model.world_path)))}
    start = np.array([world_of.get(_root(names[column], roots), 0) for column in column_of_body.values()])
    template = model.bodies.template[list(column_of_body)]
    first_of = dict(zip(model.world_template.tolist(), first_worlds(model.world_template).tolist(), strict=True))
    goal = [first_of.get(t, s) if t != GLOBAL_TEMPLATE else s for t, s in zip(template.tolist(), start, strict=True)]
    shift = shift_between(model.world_pose[goal], model.world_pose[start])
    return None if is_identity(shift).all() else shift


def local_names(model: Model) -> tuple[str, ...]:
    """Path of each body from its environment's root, which bodies of other environments of the template share."""
    roots = _roots(model)
    return tuple(_local(path, roots) for path in model.bodies.path)


def _roots(model: Model) -> frozenset[str]:
    return frozenset(model.world_path) - {""}


def _root(path: str, roots: frozenset[str]) -> str:
    """The environment's root at the start of a path; "" for none."""
    end = len(path) if roots else 0
    while end > 0:
        if path[:end] in roots:
            return path[:end]
        end = path.rfind("/", 0, end)
    return ""


def _local(path: str, roots: frozenset[str]) -> str:
    """The path relative to its environment's root; "." for the root itself."""
    root = _root(path, roots)
    return (path[len(root) + 1 :] or ".") if root else path
