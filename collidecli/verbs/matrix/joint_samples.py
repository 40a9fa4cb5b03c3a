"""Random configurations of a scene's joints within their limits, as a motion."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from collidecli.motions.loaded_scene import LoadedScene
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.followed_joints import followed_joints
from collidecli.scene.kinematics import (
    ArticulationKinematics,
    JointColumns,
    NamedJoint,
    coordinate_names,
)
from collidecli.scene.model import Model
from collidecli.scene.motion import FRAME, TimedMotion
from collidecli.wording import some_names

_MANTISSA = 2.0**-53


class SampledMotion(TimedMotion):
    """Random configurations of the joint trees of a scene, one a frame, as a
    `scene.motion.Motion`.

    Each coordinate is uniform within its limits, a hinge without limits within -π to π; a slide
    without limits, free joints and bodies that no joint moves rest. Equal limits lock a coordinate,
    with a warning. A ball joint turns about a
    uniform axis by an angle that is uniform up to its limit. A joint that mimics another follows
    it, also beyond its own limits.

    The numbers are those of PCG64 and `numerics.trigonometry`: a seed gives the same bits on every
    processor. Coordinate k of all trees is that of draw k of its frame, so that the first
    frames of a longer motion are those of a shorter one.
    """

    time_unit = FRAME
    sha256 = ""

    def __init__(self, scene: LoadedScene, count: int, seed: int) -> None:
        super().__init__(np.arange(count, dtype=np.float64))
        self._model = scene.model
        self._rest = scene.model.resting_poses()[:1]
        trees = [tree for tree in _trees(scene) if tree.joints]
        draws = sum(map(_draw_count, trees))
        uniform = _uniform(seed, count, draws)
        notes: list[str] = []
        self.trees = []
        first = 0
        for tree in trees:
            last = first + _draw_count(tree)
            positions = _positions(tree, uniform[:, first:last], notes)
            self.trees.append(_SampledTree(tree, positions, _body_rows(scene.model, tree)))
            first = last
        self.moves = any(tree.positions.shape[1] for tree in self.trees)
        self.warnings = tuple(notes)

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), 1, B, 7]: see `Motion.read`."""
        poses = np.repeat(self._rest, len(frames), axis=0)
        for tree in self.trees:
            rows = slice(frames.start, frames.stop, frames.step)
            poses[:, tree.body_rows] = tree.poses(rows)[:, tree.bodies]
        return poses[:, None]


class _SampledTree:
    """A tree, its positions float64[n, k] by name, and the rows of its bodies in the model.

    bodies: those of the tree's that the model has.
    """

    def __init__(
        self,
        tree: ArticulationKinematics,
        positions: tuple[list[str], np.ndarray],
        rows: Sequence[int],
    ) -> None:
        names, self.positions = positions
        self.tree = tree
        self.columns = JointColumns(tree, names, tree.path)
        known = [(k, row) for k, row in enumerate(rows) if row >= 0]
        self.bodies = [k for k, _ in known]
        self.body_rows = [row for _, row in known]

    def poses(self, rows: slice) -> np.ndarray:
        return self.tree.poses(None, self.columns, self.positions[rows])


def _trees(scene: LoadedScene) -> Sequence[ArticulationKinematics]:
    articulated = scene.imports[0].articulated
    return () if articulated is None else articulated.articulations


def _body_rows(model: Model, tree: ArticulationKinematics) -> list[int]:
    row_of = {path: row for row, path in enumerate(model.bodies.path)}
    return [row_of.get(path, -1) for path in tree.body_path]


def _uniform(seed: int, count: int, draws: int) -> np.ndarray:
    """float64[count, draws] in [0, 1), from the raw numbers of PCG64, whose stream NumPy never
    changes."""
    raw = np.random.PCG64(seed).random_raw(count * draws)
    return ((raw >> np.uint64(11)).astype(np.float64) * _MANTISSA).reshape(count, draws)


def _draw_count(tree: ArticulationKinematics) -> int:
    return sum(3 if joint.is_quaternion else len(joint.axes) for joint in tree.joints)


def _positions(
    tree: ArticulationKinematics, uniform: np.ndarray, notes: list[str]
) -> tuple[list[str], np.ndarray]:
    """Names of the sampled coordinates, and float64[n, k], their values. notes: for joints that are
    not sampled within limits of their own."""
    column_of: dict[str, np.ndarray] = {}
    resting = []
    locked = []
    unknown = []
    first = 0
    for joint in tree.joints:
        draws = uniform[:, first : first + (3 if joint.is_quaternion else len(joint.axes))]
        first += draws.shape[1]
        if joint.mimic is not None:
            continue
        if not joint.limits:
            unknown.append(joint.path)
        if joint.is_quaternion:
            most = joint.limits[0][1] if joint.limits else math.pi
            turned = _turned(draws, most)
            column_of |= dict(zip(joint.coordinates, turned, strict=True))
            continue
        for number, name in enumerate(joint.coordinates):
            low, high = _range(joint, number)
            if low == high:
                locked.append(name)
            if math.isfinite(high - low):
                column_of[name] = low + draws[:, number] * (high - low)
            else:
                resting.append(name)
    if resting:
        notes.append(f"a slide without two limits rests, and is not sampled: {some_names(resting)}")
    if locked:
        notes.append(
            f"a joint with equal limits is locked, and does not move: {some_names(locked)}"
        )
    if unknown:
        notes.append(
            "the limits of a spherical joint are no limit of an angle, and all rotations are"
            f" sampled: {some_names(unknown)}"
        )
    # an order of the tree, and none of the dictionary's additions
    names = [name for name in coordinate_names(tree) if name in column_of]
    columns = [column_of[name] for name in names]
    if not columns:
        return names, np.zeros((len(uniform), 0))
    followed = followed_joints(tree, names)
    return list(followed.names), followed.completed(np.stack(columns, axis=1))


def _range(joint: NamedJoint, number: int) -> tuple[float, float]:
    """The interval of a coordinate; infinite for a slide without limits."""
    low, high = joint.limits[number] if joint.limits else (-math.inf, math.inf)
    if number in joint.angles:
        low = -math.pi if math.isinf(low) else low
        high = math.pi if math.isinf(high) else high
    return low, high


def _turned(uniform: np.ndarray, most: float) -> np.ndarray:
    """float64[4, n]: unit quaternions xyzw about uniform axes, by angles uniform in [0, most].

    uniform: float64[n, 3].
    """
    z = 2.0 * uniform[:, 0] - 1.0
    radius = np.sqrt(np.maximum(0.0, 1.0 - z * z))
    sine, cosine = sincos(2.0 * math.pi * uniform[:, 1])
    half_sine, half_cosine = sincos(0.5 * most * uniform[:, 2])
    axis = np.stack([radius * cosine, radius * sine, z])
    return np.concatenate([half_sine * axis, half_cosine[None]])
