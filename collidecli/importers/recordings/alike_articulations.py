"""Articulations that are recorded alike in all worlds, as a tree of joints for a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from collidecli.numerics.pose_columns import XYZW_TO_WXYZ
from collidecli.scene.joint_poses import HasSteps, HasTree, InTree, RowPlace
from collidecli.scene.joint_tree import FIXED, FROM_FRAME, STORE, JointTree, PoseSteps

if TYPE_CHECKING:
    from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
    from collidecli.scene.model import Model

Recorded = tuple[np.ndarray, np.ndarray | None]
"""Joint positions [n, k] of an articulation, and its root's poses [n, 7] where these are used."""


class AlikeArticulations(Protocol):
    """The articulations of each world of a recording. tree: its bodies but the world are the
    model's, in order."""

    @property
    def tree(self) -> JointTree: ...

    def rows(self, recorded: Sequence[Recorded]) -> np.ndarray:
        """float64[n, k]: rows of the tree's coordinates of one world, of what is recorded of each
        articulation."""
        ...

    def poses(self, rows: np.ndarray) -> list[np.ndarray]:
        """float64[n, B, 7] of each articulation, by the host, as a read of the recording computes
        them."""
        ...


@dataclass(frozen=True)
class ScenesArticulations:
    """Articulations of a scene with one tree of joints. A row has the tree's coordinates, and then
    the root poses that move all bodies of an articulation (`InTree.is_placed`).

    bodies: of each articulation, in the tree without the world.
    """

    tree: JointTree
    scene: HasTree
    items: Sequence[tuple[InTree, RecordedArticulation]]
    places: Sequence[RowPlace]
    bodies: Sequence[Sequence[int]]

    def rows(self, recorded: Sequence[Recorded]) -> np.ndarray:
        qpos = None
        roots = []
        for (scene, item), place, (position, root) in zip(
            self.items, self.places, recorded, strict=True
        ):
            in_tree = root if place.root < 0 else None
            qpos = scene.coordinates(in_tree, item.columns, position, qpos)
            roots += [root] if place.root >= 0 and root is not None else []
        assert qpos is not None
        return np.concatenate([qpos, *roots], axis=1, dtype=np.float64)

    def poses(self, rows: np.ndarray) -> list[np.ndarray]:
        first = min((place.root for place in self.places if place.root >= 0), default=rows.shape[1])
        by_tree = self.scene.poses_of_tree(np.ascontiguousarray(rows[:, :first]))
        found = []
        for (scene, _), place, bodies in zip(self.items, self.places, self.bodies, strict=True):
            poses = by_tree[:, bodies]
            if place.root >= 0:
                poses = scene.placed(poses, rows[:, place.root : place.root + 7])
            found.append(poses)
        return found


@dataclass(frozen=True)
class SteppedArticulations:
    """Articulations whose poses are written by steps alone. A row has the root pose, where one is
    used, and the joint positions of each."""

    tree: JointTree
    items: Sequence[RecordedArticulation]
    places: Sequence[RowPlace]

    def rows(self, recorded: Sequence[Recorded]) -> np.ndarray:
        parts = []
        for position, root in recorded:
            parts += [position] if root is None else [root, position]
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def poses(self, rows: np.ndarray) -> list[np.ndarray]:
        found = []
        for item, place in zip(self.items, self.places, strict=True):
            root = rows[:, place.root : place.root + 7] if place.root >= 0 else None
            position = rows[:, place.joints : place.joints + joint_width(item)]
            found.append(item.articulation.poses(root, item.columns, position))
        return found


def joint_width(item: RecordedArticulation) -> int:
    """Number of the recorded joint positions of an articulation."""
    return 0 if item.joint_position is None else len(item.columns.names)


def alike_articulations(
    items: Sequence[RecordedArticulation], body_of: Mapping[str, int], model: Model
) -> AlikeArticulations | None:
    """The articulations as a tree of joints; None where there is none. body_of: the model's body of
    each recorded name."""
    bodies = [[body_of[path] for path in item.articulation.body_path] for item in items]
    in_tree = [item.articulation for item in items if isinstance(item.articulation, InTree)]
    all_bodies = [body for of_item in bodies for body in of_item]
    if not items or len(set(all_bodies)) < len(all_bodies):
        return None
    if len(in_tree) == len(items):
        scenes = {id(articulation.tree_of): articulation.tree_of for articulation in in_tree}
        scene = next(iter(scenes.values()))
        of_model = tuple(model.bodies.path) == tuple(getattr(scene, "body_path", ()))
        if len(scenes) > 1 or not of_model:
            return None
        return _of_scene(scene, list(zip(in_tree, items, strict=True)), bodies, model)
    if in_tree or not all(isinstance(item.articulation, HasSteps) for item in items):
        return None
    return _of_steps(items, bodies, model)


def _of_scene(
    scene: HasTree,
    items: Sequence[tuple[InTree, RecordedArticulation]],
    bodies: Sequence[Sequence[int]],
    model: Model,
) -> ScenesArticulations:
    tree = scene.joint_tree(has_mocap=False)
    width = scene.coordinate_count
    places = []
    for articulation, item in items:
        is_placed = item.root_pose is not None and articulation.is_placed(item.columns)
        places.append(RowPlace(width if is_placed else -1, -1))
        width += 7 if is_placed else 0
    steps = PoseSteps()
    for (articulation, item), of_item, place in zip(items, bodies, places, strict=True):
        articulation.add_steps(steps, of_item, item.columns, place)
    recorded = {body for of_item in bodies for body in of_item}
    for body in sorted(set(range(len(model.bodies))) - recorded):
        steps.add_frame(FROM_FRAME, model.bodies.pose[body])
        steps.add(STORE, body)
    return ScenesArticulations(replace(tree, steps=steps), scene, items, places, bodies)


def _of_steps(
    items: Sequence[RecordedArticulation], bodies: Sequence[Sequence[int]], model: Model
) -> SteppedArticulations:
    steps = PoseSteps()
    places = []
    width = 0
    for item, of_item in zip(items, bodies, strict=True):
        has_root = item.root_pose is not None and not item.articulation.root_is_jointed
        place = RowPlace(width if has_root else -1, width + 7 * has_root)
        width = place.joints + joint_width(item)
        places.append(place)
        assert isinstance(item.articulation, HasSteps)
        item.articulation.add_steps(steps, of_item, item.columns, place)
    return SteppedArticulations(resting_tree(model.bodies.pose, steps), items, places)


def resting_tree(poses: np.ndarray, steps: PoseSteps) -> JointTree:
    """A tree without joints: bodies at poses float64[B, 7] that steps move."""
    count = len(poses) + 1
    pose = np.zeros((count, 7))
    pose[0, 3] = 1.0
    pose[1:, :3] = poses[:, :3]
    pose[1:, 3:] = poses[:, 3:][:, XYZW_TO_WXYZ]
    none = [0] * count
    return JointTree([FIXED] * count, none, none, none, pose, [], [], np.zeros((0, 7)), steps)
