"""The scenes and motions of two compared contact sets, and in words why one is not found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from collidecli.errors import InputError
from collidecli.scene.model_source import BUILT_MODEL, MODEL
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.request import DiffRequest

if TYPE_CHECKING:
    from collidecli.motions.loaded_scene import LoadedScene
    from collidecli.motions.sources import FoundScene
    from collidecli.scene.motion import Motion


@dataclass(frozen=True)
class SideOfSet:
    """A contact set of a comparison. name: "A" or "B". scene, trajectory: as given, "" for none."""

    name: str
    contacts: ContactSet
    scene: str
    trajectory: str

    @property
    def file(self) -> str:
        return Path(self.contacts.path).name


def sides_of(request: DiffRequest, a: ContactSet, b: ContactSet) -> tuple[SideOfSet, SideOfSet]:
    """Both sets with what the request gives of each."""
    return (
        SideOfSet("A", a, request.scene_a, request.trajectory_a),
        SideOfSet("B", b, request.scene_b, request.trajectory_b),
    )


def found_scenes(sides: Sequence[SideOfSet]) -> tuple[list[FoundScene], str]:
    """The scene of each set, or none and the reason. Sets of one scene need one file of it."""
    # Not at the start: equal sets are compared without the importers.
    from collidecli.motions.sources import found_scene

    found: list[FoundScene] = []
    reasons = []
    for side in sides:
        scene = found_scene(side.contacts, side.scene)
        found.append(scene)
        if scene.scene is None:
            reasons.append(_scene_reason(side, scene))
    known = [one for one in found if one.scene is not None]
    if known and len({side.contacts.scene_sha256 for side in sides}) == 1:
        return [one if one.scene is not None else known[0] for one in found], ""
    return ([], reasons[0]) if reasons else (found, "")


def _scene_reason(side: SideOfSet, found: FoundScene) -> str:
    """Why the scene of a set is not known, and where it is looked for: of a baseline of the pytest
    plugin, which has no option for it, the folder of the set."""
    scene = side.contacts.scene
    reason = found.reason
    if side.contacts.scene_kind == MODEL:
        return f"the scene of {side.name} is {scene or BUILT_MODEL}: {reason}"
    shown = f"the scene of {side.name}"
    option = f"--scene-{side.name.lower()}"
    if side.scene:
        return f"{shown} is not what {option} names: {reason}"
    words = f"is not found: {reason}" if reason else f"is not beside {side.file}"
    copy = "" if found.free_folder is None else f", and a copy {_is_in(found.free_folder)}"
    return f"{shown}, {scene}, {words}; {option} names it{copy}"


def _is_in(folder: Path) -> str:
    where = "this folder" if str(folder) == "." else str(folder)
    return f"of it with its assets in {where} is found"


@dataclass(frozen=True)
class FoundMotion:
    """The motion of a contact set, its scene, and its frame for each frame of the set."""

    motion: Motion
    scene: LoadedScene
    frame_of: Sequence[int]


def found_motions(
    sides: Sequence[SideOfSet], scenes: Sequence[FoundScene]
) -> tuple[list[FoundMotion], str]:
    """The motion of each set, or none and the reason. Sets of one recording need one file of it.

    The motions are open.
    """
    from collidecli.motions.sources import found_recording

    files = [
        found_recording(side.contacts, scene.files, side.trajectory)
        for side, scene in zip(sides, scenes, strict=True)
    ]
    if len({side.contacts.trajectory_sha256 for side in sides}) == 1:
        files = [file or next(filter(None, files), "") for file in files]
    found: list[FoundMotion] = []
    for side, scene, file in zip(sides, scenes, files, strict=True):
        reason = ""
        if (side.contacts.trajectory_sha256 or side.trajectory) and not file:
            reason = _missing_recording(side)
        else:
            try:
                found.append(_found_motion(side.contacts, scene, file))
            except InputError as error:
                reason = _unusable_recording(side, error)
        if reason:
            for one in found:
                one.motion.close()
            return [], reason
    return found, ""


def _missing_recording(side: SideOfSet) -> str:
    option = f"--trajectory-{side.name.lower()}"
    if side.trajectory:
        reason = "it is not in that folder"
        if not side.contacts.trajectory_sha256:
            reason = f"{side.file} is of the scene's own motion, not of a recording"
        return f"the recording of {side.name} is not what {option} names: {reason}"
    return f"the recording of {side.name} is not found beside {side.file}; {option} names it"


def _unusable_recording(side: SideOfSet, error: InputError) -> str:
    if side.trajectory:
        option = f"--trajectory-{side.name.lower()}"
        return f"the recording of {side.name} is not what {option} names: {error.what}"
    return f"the motion of {side.name} cannot be read: {error.what}"


def _found_motion(contacts: ContactSet, scene: FoundScene, file: str) -> FoundMotion:
    from collidecli.motions.sources import frames_of_set, loaded_sources, motion_of_set

    loaded, _ = loaded_sources(contacts, scene.files, file, allow_mismatch=False)
    motion, _ = motion_of_set(contacts, loaded, file, allow_mismatch=False)
    try:
        return FoundMotion(motion, loaded, frames_of_set(contacts, motion, file or loaded.name))
    except BaseException:
        motion.close()
        raise
