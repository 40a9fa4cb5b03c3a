"""The shapes and bodies that differ between the scenes of two contact sets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.shape_differences import shape_differences
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.body_trees import BodyName, body_rows, parents

if TYPE_CHECKING:
    from collidecli.motions.loaded_scene import LoadedScene
    from collidecli.scene.model import Model
    from collidecli.verbs.diff.comparison import Comparison

SHAPE = "shape"
BODY = "body"
SAME_POSE = 1e-9
"""Resting poses relative to a parent are computed from world poses: they differ by 1e-15 of the
scene's extent through rounding. [m, and of unit quaternions]"""
DECIMALS = 12
"""Of resting poses, so that rounding is not shown."""
EQUAL_FILES = "the scenes of A and B are equal files"
EQUAL_MODELS = "the models of A and B, built in Python, are equal"
EQUAL_SCENES = (EQUAL_FILES, EQUAL_MODELS)
"""Reasons why nothing of the scenes is compared that leave no difference."""


@dataclass(frozen=True)
class SceneChanges:
    """Differences of two scenes.

    reason: why they were not compared, "" if they were. of_shape: the differences of each shape
    that has any, by its number of the alignment. bodies: differences of bodies, by path. A
    difference has `what`, `a` and `b`.
    """

    reason: str
    of_shape: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    bodies: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def listed(self, compared: Comparison) -> list[dict[str, Any]]:
        """All differences with `kind` and `path`: shapes of differing pairs, other shapes,
        bodies."""
        touched = {number for pair in compared.contacts.pairs for number in pair}
        names = compared.model.shapes.names
        numbers = sorted(self.of_shape, key=lambda number: (number not in touched, number))
        shapes = [(SHAPE, names[number], self.of_shape[number]) for number in numbers]
        bodies = [(BODY, path, found) for path, found in self.bodies.items()]
        rows = {
            repr((kind, path, difference)): {"kind": kind, "path": path, **difference}
            for kind, path, found in (*shapes, *bodies)
            for difference in found
        }
        return list(rows.values())


def scene_changes(
    compared: Comparison,
    a: ContactSet,
    b: ContactSet,
    scenes: tuple[LoadedScene, LoadedScene],
) -> SceneChanges:
    """Differences of the scenes of two sets. Shapes are matched as those of the sets are, bodies by
    path; a shape that one scene lacks is a difference of the model."""
    aligned = compared.model.shapes
    one, other = (scene.model for scene in scenes)
    rows = _model_rows(a, one), _model_rows(b, other)
    of_shape: dict[int, list[dict[str, Any]]] = {}
    for row_a, row_b in aligned.row_pairs:
        in_a = rows[0][row_a]
        in_b = rows[1][row_b]
        if in_a < 0 or in_b < 0:
            continue
        found = shape_differences((one, in_a), (other, in_b))
        listed = of_shape.setdefault(int(aligned.number_a[row_a]), [])
        listed += [difference for difference in found if difference not in listed]
    return SceneChanges(
        "", {number: found for number, found in of_shape.items() if found}, _bodies(*scenes)
    )


def _model_rows(contacts: ContactSet, model: Model) -> list[int]:
    """Row of the model's shape of each shape of a set, -1 for none."""
    paths = model.shapes.path
    if paths == contacts.shapes.path:
        return list(range(len(paths)))
    row_of = {path: row for row, path in reversed(list(enumerate(paths)))}
    return [row_of.get(path, -1) for path in contacts.shapes.path]


def _bodies(a: LoadedScene, b: LoadedScene) -> dict[str, list[dict[str, Any]]]:
    """Differences of bodies: the resting pose, relative to the parent where both scenes have it,
    and bodies of one scene alone."""
    sides = _Bodies(a), _Bodies(b)
    found: dict[str, list[dict[str, Any]]] = {}
    for name in dict.fromkeys((*sides[0].rows, *sides[1].rows)):
        if not all(name in side.rows for side in sides):
            words = ["present" if name in side.rows else "absent" for side in sides]
            differences = [{"what": "presence", "a": words[0], "b": words[1]}]
        else:
            differences = _differences(name, *sides)
        if differences:
            found.setdefault(name[1], differences)
    return found


class _Bodies:
    """The bodies of a scene: rows and parents by name, resting poses."""

    def __init__(self, scene: LoadedScene) -> None:
        self.rows = body_rows(scene)
        self.parents = parents(scene)
        self._pose = scene.model.bodies.pose

    def resting(self, name: BodyName) -> np.ndarray:
        """float64[7]: the pose in the parent, or in the world without one."""
        pose = self._pose[self.rows[name]]
        parent = self.parents.get(name)
        return (
            pose
            if parent is None
            else compose_poses(inverse_poses(self._pose[self.rows[parent]][None]), pose[None])[0]
        )


def _differences(name: BodyName, a: _Bodies, b: _Bodies) -> list[dict[str, Any]]:
    above = a.parents.get(name), b.parents.get(name)
    if above[0] != above[1]:
        names = ["the world" if parent is None else parent[1] for parent in above]
        return [{"what": "parent", "a": names[0], "b": names[1]}]
    poses = a.resting(name), b.resting(name)
    where = "the world" if above[0] is None else above[0][1]
    places = [pose[:3] for pose in poses]
    turns = [pose[3:] * (1.0 if pose[6] >= 0.0 else -1.0) for pose in poses]
    found = []
    if np.abs(places[0] - places[1]).max() > SAME_POSE:
        found.append((f"resting position in {where}", places))
    if min(np.abs(turns[0] - sign * turns[1]).max() for sign in (1.0, -1.0)) > SAME_POSE:
        found.append((f"resting rotation in {where}", turns))
    return [{"what": what, "a": _plain(one), "b": _plain(other)} for what, (one, other) in found]


def _plain(values: np.ndarray) -> list[float]:
    return (np.round(values, DECIMALS) + 0.0).tolist()
