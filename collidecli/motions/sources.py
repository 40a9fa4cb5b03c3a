"""Scene and motion of a contact set, found by name and by hash."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from collidecli.errors import InputError
from collidecli.importers.recordings.files import recording_files
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.scenes import MUJOCO_ENDINGS, USD_ENDINGS, load_scene, recorded_options
from collidecli.scene.model_source import BUILT_MODEL, MODEL, SCENE_CONTENT
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions, SceneOptions
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.input_files import files_sha256, is_recording_folder
from collidecli.storage.storage_formats import ENDINGS

MOTION_ENDINGS = sum(ENDINGS.values(), ())
MAX_BYTES = 4 << 30
"""Total size of the files that are read to find a motion by its hash."""
FEW_BYTES = 256 << 20
"""Total size of those that `found_recording` reads beside a contact set."""
NO_FILE = "no file has its shapes and motion"
"""Of a model that was built in Python."""
ANYWAY = "or draw it nevertheless with --allow-mismatch"
POINTS = "or draw only the contacts with --points-only"


@dataclass(frozen=True)
class Sources:
    """Scene and motion of a view. notes: warnings about them.

    scene: None if only the contacts are drawn. frame_of: int[F], frame of the motion for each frame
    of the contact set.
    """

    scene: LoadedScene | None
    motion: Motion | None
    scene_files: tuple[str, ...]
    motion_file: str
    frame_of: Sequence[int]
    notes: tuple[str, ...]

    def close(self) -> None:
        if self.motion is not None:
            self.motion.close()


def find_sources(
    contacts: ContactSet, scene: str, trajectory: str, allow_mismatch: bool, alone: bool
) -> Sources:
    """Scene and motion of a contact set: the given files, else files in its folder or the current
    folder.

    The scene may also be in the folder above that of the contact set. scene, trajectory: files, or
    "" to search for them. alone: use neither.

    Raises InputError for a scene or motion with another hash, unless `allow_mismatch`, and for a
    scene or motion without the shapes, worlds or frames of the contact set.
    """
    if alone:
        return _without(contacts)
    if contacts.scene_kind == MODEL and not scene:
        return _without_model(contacts)
    folders = _folders(contacts.path)
    places = _scene_folders(contacts)
    files = (scene,) if scene else _named(contacts.scene, places)
    motion_file = trajectory or _recording(contacts, [*folders, *_folders(*files)[:-1]])
    carried = Path(contacts.scene).suffix.lower() not in (*USD_ENDINGS, *MUJOCO_ENDINGS)
    if carried and not scene:
        if not motion_file:
            return _without(contacts, f"{contacts.scene}, which carries the scene,", folders, "-t")
        files = ()
    elif not files:
        return _without(contacts, f"the scene {contacts.scene}", places, "--scene")
    if contacts.trajectory_sha256 and not motion_file:
        return _without(contacts, "the recording of the run", folders, "-t")
    loaded, notes = loaded_sources(contacts, files, motion_file, allow_mismatch)
    motion, more = motion_of_set(contacts, loaded, motion_file, allow_mismatch)
    try:
        frame_of = frames_of_set(contacts, motion, motion_file or loaded.name)
    except BaseException:
        motion.close()
        raise
    return Sources(
        loaded, motion, tuple(files), motion_file, frame_of, (*loaded.warnings, *notes, *more)
    )


@dataclass(frozen=True)
class FoundScene:
    """The scene of a contact set and its files. reason: why there is none; "" where no file of its
    name was found. free_folder: a searched folder, that of the set, in which no file has the name
    of the scene, so that a copy of the scene can be put there; None where there is one."""

    scene: LoadedScene | None
    files: tuple[str, ...] = ()
    reason: str = ""
    free_folder: Path | None = None


def found_scene(contacts: ContactSet, given: str = "") -> FoundScene:
    """The scene of a contact set, from files of its name where `find_sources` searches.

    given: a file or a folder in which the scene is searched instead, "" for none. Of the reasons
    that files of this name are not the scene, the first one is returned. A scene that the recording
    carries is not searched for.
    """
    shown = contacts.scene
    if contacts.scene_kind == MODEL:
        return FoundScene(None, reason=NO_FILE)
    folders = [Path(given)] if os.path.isdir(given) else _scene_folders(contacts)
    reason = f"{shown} is not in {given}" if given else ""
    is_file = bool(given) and not os.path.isdir(given)
    candidates = [(given,)] if is_file else [_named(shown, [folder]) for folder in folders]
    reasons = []
    for files in filter(None, candidates):
        where = " ".join(files)
        try:
            scene = load_scene(files, None, options=recorded_options(contacts, SceneOptions))
        except InputError as error:
            reasons.append(f"{where} cannot be read: {error.what}")
            continue
        if scene.sha256 == contacts.scene_sha256:
            return FoundScene(scene, files)
        reasons.append(f"{where}, or a file that it names, has another content")
    beside = Path(contacts.path).parent
    free = None if _named(shown, [beside]) else beside
    return FoundScene(None, reason=reasons[0] if reasons else reason, free_folder=free)


def found_recording(contacts: ContactSet, scene_files: Sequence[str], given: str = "") -> str:
    """The recording of a contact set by its hash; "" if it is not found or there is none.

    given: the recording, or a folder in which it is searched; "" searches the folder of the set,
    the current folder and that of the scene, in files of FEW_BYTES in all.
    """
    if given and not (os.path.isdir(given) and not is_recording_folder(given)):
        return given
    if given:
        return _recording(contacts, [Path(given)])
    folders = [*_folders(contacts.path), *_folders(*scene_files)[:-1]]
    return _recording(contacts, folders, FEW_BYTES)


def _without_model(contacts: ContactSet) -> Sources:
    """No scene: the shapes are those of a model, which is in no file."""
    note = f"{contacts.scene or BUILT_MODEL} is the scene: {NO_FILE}; contacts are drawn without"
    return Sources(None, None, (), "", range(contacts.frame_count), (f"{note} shapes",))


def _without(
    contacts: ContactSet, missing: str = "", folders: Sequence[Path] = (), option: str = ""
) -> Sources:
    """No scene. missing: what was not found in some folders, to be given by an option; "" if
    nothing was searched."""
    where = " nor in ".join(
        "this folder" if str(folder) == "." else str(folder) for folder in folders
    )
    note = f"{missing} is not in {where}: give it with {option}; contacts are drawn without shapes"
    return Sources(None, None, (), "", range(contacts.frame_count), (note,) if missing else ())


def _scene_folders(contacts: ContactSet) -> list[Path]:
    """The folder of a contact set, the current folder, and the folder above that of the set."""
    folders = _folders(contacts.path)
    above = Path(contacts.path).resolve().parent.parent
    return folders if above in map(Path.resolve, folders) else [*folders, above]


def _folders(*files: str) -> list[Path]:
    folders: dict[str, Path] = {}
    for folder in (*(Path(file).parent for file in files), Path()):
        folders.setdefault(os.path.realpath(folder), folder)
    return list(folders.values())


def _named(name: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """The scene files of a contact set, in the first folder with all of them; their names are
    joined by spaces."""
    for folder in folders:
        for names in ([name], name.split(" ")):
            files = [folder / file_name for file_name in names if file_name]
            if files and all(file.is_file() for file in files):
                return tuple(str(file) for file in files)
    return ()


def _recording(contacts: ContactSet, folders: Iterable[Path], max_bytes: int = MAX_BYTES) -> str:
    """The file with the hash of the run's recording; "" without a recording, or if it is not
    found in files of `max_bytes` in all."""
    if not contacts.trajectory_sha256:
        return ""
    left = max_bytes
    seen = {os.path.realpath(contacts.path)}
    for folder in folders:
        # Small recordings first, as it takes seconds to read a large one.
        sized = [
            (sum(map(os.path.getsize, files)), path, files) for path, files in _motions(folder)
        ]
        for size, path, files in sorted(sized):
            if os.path.realpath(path) in seen or size > left:
                continue
            if not all(os.access(file, os.R_OK) for file in files):
                continue
            seen.add(os.path.realpath(path))
            left -= size
            if files_sha256(files) == contacts.trajectory_sha256:
                return path
    return ""


def _motions(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Recordings in a folder with their files: single files, ROS bags and LeRobot data sets that
    are folders."""
    for file in folder.iterdir():
        if file.is_file() and file.suffix.lower() in MOTION_ENDINGS:
            yield str(file), [str(file)]
        elif is_recording_folder(file):
            files = recording_files(str(file))
            if all(map(os.path.isfile, files)):
                yield str(file), files


def loaded_sources(
    contacts: ContactSet, files: Sequence[str], motion_file: str, allow_mismatch: bool
) -> tuple[LoadedScene, list[str]]:
    """The scene of a contact set from its files, or from the recording, and warnings about it."""
    config = contacts.config
    worlds = config.get("worlds")
    scene = load_scene(
        files,
        worlds if isinstance(worlds, int) and len(files) < 2 else None,
        bool(config.get("static_pairs", False)),
        motion_file or None,
        recorded_options(contacts, SceneOptions),
        recorded_options(contacts, RecordingOptions),
    )
    model = scene.model
    where = " ".join(files) or motion_file
    notes = []
    if scene.sha256 != contacts.scene_sha256:
        what = f"this is not the scene of {contacts.path}: its files differ ({SCENE_CONTENT})"
        if not allow_mismatch:
            raise InputError(
                what, where, f"give the scene of the run with --scene, {ANYWAY}, {POINTS}"
            )
        notes.append(f"{where}: {what}; what is drawn may be wrong")
    if model.shapes.path != contacts.shapes.path or model.world_count != contacts.world_count:
        ours = f"{len(model.shapes)} shapes"
        theirs = f"{len(contacts.shapes)}"
        what = (
            f"it has {ours} in {model.world_count} worlds, and the contact set {theirs} in"
            f" {contacts.world_count}"
        )
        if len(model.shapes) == len(contacts.shapes) and model.world_count == contacts.world_count:
            what = "its shapes have other names than those of the contact set"
        raise InputError(what, where, f"give the scene of the run with --scene, {POINTS}")
    return scene, notes


def motion_of_set(
    contacts: ContactSet, scene: LoadedScene, motion_file: str, allow_mismatch: bool
) -> tuple[Motion, list[str]]:
    """The motion of a contact set from its recording, or that of the scene, and warnings about
    it."""
    options = recorded_options(contacts, RecordingOptions)
    may_ignore = scene.recording is not None and "ignore_particles" in scene.recording.OPTIONS
    ignored = may_ignore and (options.ignore_particles or not len(scene.model.particles))
    motion = scene.motion(replace(options, ignore_particles=ignored))
    sha256 = motion.sha256 if motion_file else ""
    if sha256 == contacts.trajectory_sha256:
        return motion, list(motion.warnings)
    what = f"this is not the recording of {contacts.path}: the hashes differ"
    if not contacts.trajectory_sha256:
        what = f"{contacts.path} is of the scene's own motion, not of a recording"
    if not allow_mismatch:
        motion.close()
        raise InputError(
            what, motion_file, f"give the recording of the run with -t, {ANYWAY}, {POINTS}"
        )
    return motion, [*motion.warnings, f"{motion_file}: {what}; what is drawn may be wrong"]


def frames_of_set(contacts: ContactSet, motion: Motion, where: str) -> Sequence[int]:
    """Frames of the motion with the steps and times of the contact set's frames, in its order."""
    if len(motion.time) == contacts.frame_count and (motion.time == contacts.time).all():
        return range(contacts.frame_count)
    frame_of_step = {step: n for n, step in reversed(list(enumerate(motion.step.tolist())))}
    frames = [frame_of_step.get(step, -1) for step in contacts.step.tolist()]
    wrong = [n for n, at in enumerate(frames) if at < 0 or motion.time[at] != contacts.time[n]]
    if wrong:
        what = f"it has no frame of step {contacts.step[wrong[0]]} at {contacts.time[wrong[0]]:g} s"
        raise InputError(what, where, f"give the recording of the run with -t, {POINTS}")
    return frames
