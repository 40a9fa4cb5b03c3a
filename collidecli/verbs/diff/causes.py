"""What of the scenes and motions of two contact sets differs, and which differing pairs have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collidecli.scene.model_source import MODEL
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.found_sources import found_motions, found_scenes, sides_of
from collidecli.verbs.diff.motion_changes import MotionChanges, motion_changes
from collidecli.verbs.diff.scene_changes import (
    BODY,
    EQUAL_FILES,
    EQUAL_MODELS,
    EQUAL_SCENES,
    SHAPE,
    SceneChanges,
    scene_changes,
)

if TYPE_CHECKING:
    from collidecli.verbs.diff.comparison import Comparison

EQUAL_RECORDINGS = "the recordings of A and B are equal files"
BOTH_EQUAL = f"{EQUAL_RECORDINGS}, and so are the scenes"


@dataclass(frozen=True)
class Causes:
    """Differences of the scenes and the motions. owners: path of the body of each shape by its
    number of the alignment, "" of a static one."""

    scenes: SceneChanges
    motions: MotionChanges
    owners: list[str]

    def of_pair(self, pair: tuple[int, int], names: list[str]) -> dict[str, list[str] | None]:
        """The paths of the shapes of a pair of which anything differs: of the shape or its body in
        the scenes, and of the poses of its body in the motions. None where these were not
        compared."""
        shapes = list(dict.fromkeys(pair))
        in_scenes = [
            number
            for number in shapes
            if number in self.scenes.of_shape or self.owners[number] in self.scenes.bodies
        ]
        in_motions = [number for number in shapes if self.owners[number] in self.motions.paths]
        are_known = not self.scenes.reason or self.scenes.reason in EQUAL_SCENES
        return {
            "scenes": [names[number] for number in in_scenes] if are_known else None,
            "motions": (None if self.motions.reason else [names[number] for number in in_motions]),
        }


def causes_of(compared: Comparison, a: ContactSet, b: ContactSet) -> Causes:
    """Differences of the scenes and motions of two sets, from the files that the request names, or
    next to the sets, whose files have the recorded hashes."""
    owners = _owners(compared, a, b)
    equal_scenes = a.scene_sha256 == b.scene_sha256
    are_models = a.scene_kind == b.scene_kind == MODEL
    have_files = not are_models or bool(a.trajectory_sha256)
    if equal_scenes and have_files and a.trajectory_sha256 == b.trajectory_sha256:
        return Causes(SceneChanges(EQUAL_FILES), MotionChanges(BOTH_EQUAL), owners)
    sides = sides_of(compared.request, a, b)
    found, reason = found_scenes(sides)
    if not found:
        equal = EQUAL_MODELS if are_models else EQUAL_FILES
        scenes = SceneChanges(equal if equal_scenes else reason)
        are_equal = bool(a.trajectory_sha256) and a.trajectory_sha256 == b.trajectory_sha256
        return Causes(scenes, MotionChanges(EQUAL_RECORDINGS if are_equal else reason), owners)
    scenes = SceneChanges(EQUAL_FILES)
    if not equal_scenes:
        loaded = [one.scene for one in found if one.scene is not None]
        scenes = scene_changes(compared, a, b, (loaded[0], loaded[1]))
    motions, reason = found_motions(sides, found)
    if not motions:
        return Causes(scenes, MotionChanges(reason), owners)
    try:
        return Causes(scenes, motion_changes(a, motions, compared.frames), owners)
    finally:
        for one in motions:
            one.motion.close()


def causes_entry(causes: Causes | None, compared: Comparison) -> dict[str, Any] | None:
    """`causes` of collide.diff/1: `scenes` and `motions`, each with `reason`, numbers and the first
    differences, and the numbers of differing pairs that have any. None for equal sources."""
    if causes is None or causes.motions.reason == BOTH_EQUAL:
        return None
    first = compared.request.first
    listed = causes.scenes.listed(compared)
    motions = causes.motions
    names = compared.model.shapes.names
    of_pairs = [causes.of_pair(pair, names) for pair in compared.contacts.pairs]
    return {
        "scenes": {
            "reason": causes.scenes.reason,
            **{
                f"{kind}_count": len({row["path"] for row in listed if row["kind"] == kind})
                for kind in (SHAPE, BODY)
            },
            "differences": len(listed),
            "listed": listed[:first],
        },
        "motions": {
            "reason": motions.reason,
            "bodies": motions.bodies,
            "frames": motions.frames,
            "has_particles": motions.has_particles,
            "differing": len(motions.listed),
            "with_parent": _moved_with_parents(motions),
            "listed": motions.listed[:first],
            "joints": _first_joints(motions.joints, first),
        },
        "pairs": {
            "differing": len(of_pairs),
            "scenes": sum(bool(one["scenes"]) for one in of_pairs),
            "motions": sum(bool(one["motions"]) for one in of_pairs),
            "neither": sum(not one["scenes"] and not one["motions"] for one in of_pairs),
        },
    }


def _first_joints(joints: dict[str, Any] | None, first: int) -> dict[str, Any] | None:
    """`joints` with the first so many that differ."""
    return None if joints is None else {**joints, "listed": joints["listed"][:first]}


def _moved_with_parents(motions: MotionChanges) -> dict[str, Any]:
    """Of the bodies that only move with a parent their number, the greatest distance [m] and angle
    [rad], and the path of the farthest one, "" for none."""
    moved = [entry for entry in motions.listed if entry["with_parent"]]
    farthest = max(moved, key=lambda entry: entry["distance"], default={"path": ""})
    most = {
        name: max((entry[name] for entry in moved), default=0.0) for name in ("distance", "angle")
    }
    return {"bodies": len(moved), **most, "path": farthest["path"]}


def _owners(compared: Comparison, a: ContactSet, b: ContactSet) -> list[str]:
    """The path of the body of each shape by number, "" of a static one."""
    aligned = compared.model.shapes
    owners = [""] * len(aligned.names)
    for contacts, numbers in ((b, aligned.number_b), (a, aligned.number_a)):
        for number, body in zip(numbers.tolist(), contacts.shapes.body.tolist(), strict=True):
            owners[number] = contacts.body_path[body] if body >= 0 else ""
    return owners
