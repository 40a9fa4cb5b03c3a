"""Body poses of USD articulations from their joint coordinates: forward kinematics of UsdPhysics
joints.

A joint's coordinates define the pose of its frame in body1 relative to its frame in body0,
whichever of the bodies is nearer to the root: `body1 = body0 * frame0 * motion * inverse(frame1)`.
`joints.AXES` defines the order of the axes. Several revolute and prismatic joints between two
bodies, as converters from MJCF write them, act in sequence in the stage's order, each in body1's
frame after the motions of the joints before it, as MuJoCo's joints of one body do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collidecli.importers.usd.environments import upwards
from collidecli.importers.usd.joints import WORLD, JointReader
from collidecli.importers.usd.stage import Physics, diagnostics
from collidecli.numerics.pose_columns import IDENTITY, column, compose, inverse, multiply, rotate
from collidecli.numerics.products import dot, norm
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.joint_tree import (
    AT_REST,
    BY_FRAME,
    BY_INVERSE,
    BY_MOTION,
    FROM_BODY,
    FROM_COORDINATES,
    FROM_FRAME,
    ROTATION,
    SHIFT,
    STORE,
    TURN,
    PoseSteps,
)
from collidecli.scene.kinematics import QUATERNION_AXES, JointColumns, NamedJoint, last_element

if TYPE_CHECKING:
    from collidecli.importers.usd.joints import UsdJoint
    from collidecli.scene.joint_poses import RowPlace

PARALLEL = 1e-6
"""1 - |cosine| below which two axes are parallel: rounding of the float32 quaternions."""
_BLOCK = 2048
"""Configurations per block, so that its arrays fit in the processor's cache."""


@dataclass(frozen=True)
class _Step:
    """One joint between a parent and its child. left, right: float64[7, 1], frames before and after
    its motion.

    joint: index among the articulation's joints; -1 for a fixed one. backward: the child is the
    joint's body0.
    """

    left: np.ndarray
    right: np.ndarray
    axes: tuple[str, ...]
    joint: int
    backward: bool


@dataclass(frozen=True)
class _Edge:
    """Connection of a parent and its child, rows of bodies; -1 is the world. rest: float64[7, 1],
    child to parent."""

    parent: int
    child: int
    steps: tuple[_Step, ...]
    rest: np.ndarray


@dataclass
class _Link:
    """The joints between two bodies, which act in sequence."""

    joints: list[UsdJoint] = field(default_factory=list)

    @property
    def ends(self) -> tuple[str, str]:
        return self.joints[0].body0, self.joints[0].body1

    def accepts(self, joint: UsdJoint) -> bool:
        """Whether a further joint acts in sequence after these; otherwise it closes a loop."""
        members = [*self.joints, joint]
        if (joint.body0, joint.body1) != self.ends or any(len(j.axes) != 1 for j in members):
            return False
        axes = [
            rotate(j.frame1[3:, None], np.eye(3)["XYZ".index(j.axes[0][-1])][:, None])[:, 0]
            for j in members
        ]
        same_kind = [k for k, j in enumerate(self.joints) if j.axes[0][:3] == joint.axes[0][:3]]
        return all(1.0 - abs(float(dot(axes[k], axes[-1]))) > PARALLEL for k in same_kind)


class UsdArticulation:
    """Forward kinematics of one tree of joints; see `ArticulationKinematics`."""

    def __init__(
        self, path: str, root: str, edges: list[tuple[_Link, str, str]], pose: dict[str, np.ndarray]
    ) -> None:
        self.path = path
        self.aliases: tuple[str, ...] = ()
        self.free_joint = ""
        self.body_path = (root, *(child for _, _, child in edges if child != root))
        row = {WORLD: -1} | {body: k for k, body in enumerate(self.body_path)}
        parent_of = {child: row[parent] for _, parent, child in edges}
        self.body_parent = tuple(parent_of.get(body, -1) for body in self.body_path)
        self._rest_root = column(pose[root])
        joints: list[UsdJoint] = []
        needed: set[str] = set()
        self._edges: list[_Edge] = []
        for link, parent, child in edges:
            indices = []
            for joint in link.joints:
                indices.append(len(joints) if joint.axes else -1)
                joints += [joint] if joint.axes else []
            rest = column(pose[child])
            rest = rest if parent == WORLD else compose(inverse(column(pose[parent])), rest)
            edge = _Edge(
                row[parent], row[child], _steps(link, indices, parent != link.ends[0]), rest
            )
            self._edges.append(edge)
            if len(edge.steps) > 1 and not _rests_at_zero(edge):
                needed |= {joint.path for joint in link.joints}
        self.joints = tuple(
            NamedJoint(
                j.path,
                ("",) if len(j.axes) == 1 else j.axes,
                bool(j.mimic) or j.path in needed,
                tuple(k for k, axis in enumerate(j.axes) if axis.startswith("rot")),
                None if j.follows is None else (j.follows[0], (0.0, 0.0, *j.follows[1:])),
                limits=j.limits,
            )
            for j in joints
        )
        self.root_is_jointed = any(
            e.parent < 0 and any(s.joint >= 0 for s in e.steps) for e in self._edges
        )

    def poses(
        self, root_pose: np.ndarray | None, columns: JointColumns, joint_position: np.ndarray
    ) -> np.ndarray:
        """float64[n, B, 7], see `ArticulationKinematics.poses`."""
        out = np.empty((len(joint_position), len(self.body_path), 7))
        for start in range(0, len(out), _BLOCK):
            rows = slice(start, start + _BLOCK)
            coordinate = np.ascontiguousarray(np.asarray(joint_position[rows], np.float64).T)
            root = (
                None
                if root_pose is None
                else np.ascontiguousarray(np.asarray(root_pose[rows], np.float64).T)
            )
            for k, pose in enumerate(self._block(root, columns, coordinate)):
                out[rows, k] = pose.T
        return out

    def add_steps(
        self, steps: PoseSteps, bodies: Sequence[int], columns: JointColumns, place: RowPlace
    ) -> None:
        """See `HasSteps`: the products of `poses`, in its order."""
        if not self.root_is_jointed and place.root >= 0:
            steps.add(FROM_COORDINATES, place.root)
            steps.add(STORE, bodies[0])
        elif not self.root_is_jointed:
            steps.add_frame(FROM_FRAME, self._rest_root)
            steps.add(STORE, bodies[0])
        for edge in self._edges:
            if edge.parent >= 0 or self.root_is_jointed:
                steps.add(FROM_BODY, bodies[edge.parent] if edge.parent >= 0 else -1)
                _add_moved(steps, edge, columns, place.joints)
                steps.add(STORE, bodies[edge.child])

    def _block(
        self, root: np.ndarray | None, columns: JointColumns, coordinate: np.ndarray
    ) -> list[np.ndarray]:
        """Pose of each body, float64[7, n], or [7, 1] for a body without motion."""
        poses: list[np.ndarray] = [self._rest_root] * len(self.body_path)
        if root is not None and not self.root_is_jointed:
            poses[0] = root
        for edge in self._edges:
            if edge.parent < 0:
                if self.root_is_jointed:
                    poses[edge.child] = _moved(column(IDENTITY), edge, columns, coordinate)
                continue
            poses[edge.child] = _moved(poses[edge.parent], edge, columns, coordinate)
        return poses


class UsdKinematics:
    """Every articulation and free body of a stage; see `ArticulatedScene`. Computed on first use.

    body_pose: float64[7] by path, of the bodies at rest [m], xyzw.
    """

    def __init__(
        self, physics: Physics, body_pose: dict[str, np.ndarray], metres_per_unit: float
    ) -> None:
        self._physics = physics
        self._pose = body_pose
        self._metres_per_unit = metres_per_unit

    @property
    def articulations(self) -> tuple[UsdArticulation, ...]:
        return self._found[0]

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[tuple[UsdArticulation, ...], tuple[str, ...]]:
        reader = JointReader(self._physics, self._pose, self._metres_per_unit)
        with diagnostics(self._physics.file):
            links, closing = _links(reader.read())
        warnings = reader.warnings
        articulations = []
        authored = self._authored_roots()
        for bodies, links_of_part in _components(self._pose, links):
            root, edges, left = _tree(bodies, links_of_part, authored)
            closing += [joint for link in left for joint in link.joints]
            articulations.append(UsdArticulation(authored.get(root, root), root, edges, self._pose))
        warnings += [
            f"<{j.path}>: not in the kinematics: it closes a loop of joints" for j in closing
        ]
        # Aliases: the last element of an articulation's paths, and of its ancestors that contain no
        # other one.
        above = [set(upwards(a.path)) | set(upwards(a.body_path[0])) for a in articulations]
        holders: dict[str, set[int]] = {}
        for k, articulation in enumerate(articulations):
            for body in (articulation.path, *articulation.body_path):
                for path in upwards(body):
                    holders.setdefault(path, set()).add(k)
        for k, (articulation, paths) in enumerate(zip(articulations, above, strict=True)):
            names = {articulation.path, articulation.body_path[0]} | {
                path for path in paths if holders[path] == {k}
            }
            articulation.aliases = tuple(sorted({last_element(path) for path in names}))
        return tuple(articulations), tuple(dict.fromkeys(warnings))

    def _authored_roots(self) -> dict[str, str]:
        roots = {}
        for path, descriptor in self._physics.articulations.items():
            for root in (str(prim) for prim in descriptor.rootPrims):
                joint = self._physics.joints.get(root)
                bodies = [root] if joint is None else [str(joint.body0), str(joint.body1)]
                roots |= {body: path for body in bodies if body in self._pose}
        return roots


def _links(joints: Iterable[UsdJoint]) -> tuple[list[_Link], list[UsdJoint]]:
    """Joints grouped by their two bodies, and joints that close a loop between two bodies."""
    links: dict[frozenset[str], _Link] = {}
    closing = []
    for joint in joints:
        link = links.setdefault(frozenset((joint.body0, joint.body1)), _Link())
        if not link.joints or link.accepts(joint):
            link.joints.append(joint)
        else:
            closing.append(joint)
    return list(links.values()), closing


def _components(bodies: Iterable[str], links: list[_Link]) -> list[tuple[list[str], list[_Link]]]:
    order = list(bodies)
    group = {body: body for body in order}

    def head(body: str) -> str:
        while group[body] != body:
            group[body] = group[group[body]]
            body = group[body]
        return body

    for link in links:
        a, b = link.ends
        if WORLD not in (a, b):
            group[head(b)] = head(a)
    components: dict[str, tuple[list[str], list[_Link]]] = {}
    for body in order:
        components.setdefault(head(body), ([], []))[0].append(body)
    for link in links:
        a, b = link.ends
        components[head(b if a == WORLD else a)][1].append(link)
    return list(components.values())


def _tree(
    bodies: list[str], links: list[_Link], authored: dict[str, str]
) -> tuple[str, list[tuple[_Link, str, str]], list[_Link]]:
    """The root body, links with parent and child in an order from the root, and links that close a
    loop.

    The root is the body with a joint to the world, else the articulation's root, else a body that
    is no joint's body1.
    """
    anchor = next((link for link in links if WORLD in link.ends), None)
    if anchor is not None:
        root = next(body for body in anchor.ends if body != WORLD)
    else:
        below = {link.ends[1] for link in links}
        free = [body for body in bodies if body not in below]
        root = next((body for body in bodies if body in authored), (free or bodies)[0])
    at: dict[str, list[_Link]] = {}
    for link in links:
        for body in link.ends:
            at.setdefault(body, []).append(link)
    edges = [] if anchor is None else [(anchor, WORLD, root)]
    reached = {WORLD, root}
    used = {id(anchor)}
    queue = [root]
    for body in queue:
        for link in at.get(body, ()):
            other = link.ends[1] if link.ends[0] == body else link.ends[0]
            if other in reached:
                continue
            reached.add(other)
            used.add(id(link))
            queue.append(other)
            edges.append((link, body, other))
    return root, edges, [link for link in links if id(link) not in used]


def _steps(link: _Link, indices: list[int], backward: bool) -> tuple[_Step, ...]:
    """The motions from parent to child: the first joint in its two frames, further ones in body1's
    frame."""
    steps = []
    for k, (joint, index) in enumerate(zip(link.joints, indices, strict=True)):
        left = column(joint.frame1 if k else joint.frame0)
        right = inverse(column(joint.frame1))
        before = inverse(right) if backward else left
        after = inverse(left) if backward else right
        steps.append(_Step(before, after, joint.axes, index, backward))
    return tuple(reversed(steps) if backward else steps)


def _rests_at_zero(edge: _Edge) -> bool:
    """Whether the scene's pose equals that of coordinates 0; the joints may then be recorded in
    part."""
    pose = column(IDENTITY)
    for step in edge.steps:
        pose = compose(compose(pose, step.left), step.right)
    sign = np.sign(dot(pose[3:, 0], edge.rest[3:, 0]))
    same = np.allclose(pose[:3], edge.rest[:3], atol=1e-5) and np.allclose(
        sign * pose[3:], edge.rest[3:], atol=1e-5
    )
    return bool(same)


def _is_recorded(edge: _Edge, columns: JointColumns) -> bool:
    """Whether the joints of an edge move its child, or are fixed; it rests otherwise."""
    return any(step.joint < 0 or columns.of_joint[step.joint] is not None for step in edge.steps)


def _moved(
    parent: np.ndarray, edge: _Edge, columns: JointColumns, coordinate: np.ndarray
) -> np.ndarray:
    """float64[7, n]: the child's pose; the pose in the scene where none of its joints is
    recorded."""
    if not _is_recorded(edge, columns):
        return compose(parent, edge.rest)
    pose = parent
    for step in edge.steps:
        pose = compose(pose, step.left)
        joint_columns = columns.of_joint[step.joint] if step.joint >= 0 else None
        if joint_columns is not None:
            motion = _motion(step.axes, joint_columns, coordinate)
            pose = compose(pose, inverse(motion) if step.backward else motion)
        pose = compose(pose, step.right)
    return pose


def _add_moved(steps: PoseSteps, edge: _Edge, columns: JointColumns, first: int) -> None:
    """Appends the steps of `_moved`, from the parent's pose; its coordinates begin in column
    `first`."""
    if not _is_recorded(edge, columns):
        steps.add_frame(BY_FRAME, edge.rest)
        return
    for step in edge.steps:
        steps.add_frame(BY_FRAME, step.left)
        joint_columns = columns.of_joint[step.joint] if step.joint >= 0 else None
        if joint_columns is not None:
            _add_motion(steps, step.axes, joint_columns, first)
            steps.add(BY_INVERSE if step.backward else BY_MOTION)
        steps.add_frame(BY_FRAME, step.right)


def _add_motion(steps: PoseSteps, axes: tuple[str, ...], rows: np.ndarray, first: int) -> None:
    """Appends the steps of `_motion`."""
    steps.add(AT_REST)
    if axes == QUATERNION_AXES:
        steps.add(ROTATION, *(first + int(row) for row in rows))
        return
    for axis, row in zip(axes, rows, strict=True):
        if row >= 0:
            kind = SHIFT if axis.startswith("trans") else TURN
            steps.add(kind, "XYZ".index(axis[-1]), first + int(row))


def _motion(axes: tuple[str, ...], rows: np.ndarray, coordinate: np.ndarray) -> np.ndarray:
    """float64[7, n]: pose of a joint's frame in body1 relative to its frame in body0."""
    out = np.zeros((7, coordinate.shape[1]))
    if axes == QUATERNION_AXES:
        quaternion = coordinate[rows]
        out[3:] = quaternion / norm(quaternion.T)
        return out
    out[6] = 1.0
    for axis, row in zip(axes, rows, strict=True):
        if row < 0:
            continue
        letter = "XYZ".index(axis[-1])
        if axis.startswith("trans"):
            out[letter] = coordinate[row]
            continue
        rotation = np.zeros((4, coordinate.shape[1]))
        rotation[letter], rotation[3] = sincos(0.5 * coordinate[row])
        out[3:] = multiply(out[3:], rotation)
    return out
