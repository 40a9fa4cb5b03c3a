"""Scenes in motion: loading of scene files and recordings, and kept ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from collidecli.commands.results import PathLike, Result
from collidecli.errors import InputError
from collidecli.importers.mesh_files import parts_kept_in
from collidecli.importers.recordings.recording import recording_files
from collidecli.scene.arguments import float_array, is_number
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.motion import (
    FRAME,
    SECOND,
    Episodes,
    Motion,
    RestingMotion,
    TimedMotion,
    has_joint_tree,
    recorded_particles,
)
from collidecli.scene.options import GROUND, ContactOptions, EngineOptions, RecordingOptions, SceneOptions
from collidecli.scene.particles import Particles
from collidecli.storage.input_files import ENDINGS, USD, files_sha256
from collidecli.storage.process_activity import check_size, limited_reading, reading
from collidecli.storage.trajectory_files import check_positions, normalize, pose_fault

if TYPE_CHECKING:
    from collidecli.importers.recordings.recording import EmbeddedScenes, Recording
    from collidecli.importers.scene_import import SceneImport
    from collidecli.scene.model import Model
    from collidecli.storage.contact_sets.reader import ContactSet


# Derived motions: a slice of frames, the motions of several scenes as worlds, and an array of poses.

FLOAT_TYPES = ("float32", "float64")


class PoseArray(TimedMotion):
    """A motion (see `scene.motion.Motion`) from an array of poses.

    Args:
        poses: float32 or float64[frames, worlds, bodies, 7], x y z then qx qy qz qw.
        body_path: paths of the model's bodies. particles: a result of `checked_particles`; None if they rest.
        time: float64[frames], a result of `frame_times` [s]; None if it is unknown: frame k then has the time k, and
            the motion's `time_unit` is FRAME.
    Raises InputError for another shape or type. An invalid pose raises InputError when its frame is read.
    """

    def __init__(
        self,
        poses: np.ndarray,
        body_path: Sequence[str],
        particles: np.ndarray | None = None,
        time: np.ndarray | None = None,
    ) -> None:
        wanted = ("frames", "worlds", len(body_path), 7)
        if poses.ndim != 4 or poses.shape[2:] != wanted[2:]:
            what = f"has shape {poses.shape}"
            raise InputError(what, "body_q", f"give ({', '.join(map(str, wanted))}): a pose for each body")
        if poses.dtype.name not in FLOAT_TYPES:
            raise InputError(f"is of type {poses.dtype}", "body_q", f"give {' or '.join(FLOAT_TYPES)}")
        if particles is not None and len(particles) != len(poses):
            what = f"has {len(particles)} frames, and body_q {len(poses)}"
            raise InputError(what, "particle_q", "give as many of both")
        super().__init__(np.arange(len(poses), dtype=np.float64) if time is None else time)
        self.time_unit = FRAME if time is None else SECOND
        self._poses, self._body_path, self._particles = poses, body_path, particles
        self.world_count, self.float_type, self.sha256 = poses.shape[1], poses.dtype, ""

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), worlds, bodies, 7], every quaternion normalized; see `Motion.read`."""
        poses = self._poses[frames.start : frames.stop].astype(np.float64, order="C")
        bad = normalize(poses)
        if bad is not None:
            frame, world, body = (int(k) for k in np.argwhere(bad)[0])
            what = pose_fault(poses[frame, world, body])
            where = f"body_q, frame {frames[frame]}, world {world}, body '{self._body_path[body]}'"
            raise InputError(what, where, "give seven finite numbers, x y z and a unit quaternion xyzw")
        return poses

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), worlds or 1, particles, 3], see `recorded_particles`; None if they rest."""
        return None if self._particles is None else self._particles[frames.start : frames.stop]


def frame_times(frame_count: int, time: Any, fps: Any) -> np.ndarray | None:
    """float64[frame_count]: times of the frames of an array of poses [s]; None if neither argument is given.

    time: of each frame. fps: frames a second, the first at 0. Raises InputError for both, and for invalid values.
    """
    if time is None and fps is None:
        return None
    if time is not None and fps is not None:
        raise InputError("both are given", "time, fps", "give one of them")
    if fps is not None:
        if not is_number(fps) or not 0 < fps < np.inf:
            raise InputError(f"{fps!r} is no number of frames a second", "fps", "give a number above 0")
        return np.arange(frame_count, dtype=np.float64) / float(fps)
    times = float_array("time", time, "time")
    if times.shape != (frame_count,):
        raise InputError(f"has shape {times.shape}", "time", f"give ({frame_count},): the time of each frame [s]")
    unknown = np.flatnonzero(~np.isfinite(times))
    if len(unknown):
        what = f"the time of frame {unknown[0]} is {times[unknown[0]]}"
        raise InputError(what, "time", "give seconds")
    earlier = np.flatnonzero(np.diff(times) < 0.0)
    if len(earlier):
        what = f"frame {earlier[0] + 1} is before frame {earlier[0]}"
        raise InputError(what, "time", "give times that do not decrease")
    return times


def checked_particles(particle_q: np.ndarray, model: Model) -> np.ndarray:
    """float64[frames, worlds or 1, particles, 3]. Raises InputError for another shape and a position not finite."""
    positions = float_array("particle_q", particle_q, "particle_q")
    count = len(model.particles)
    if positions.ndim != 4 or positions.shape[2:] != (count, 3) or positions.shape[1] not in (1, model.world_count):
        wanted = f"(frames, {' or '.join(map(str, sorted({1, model.world_count})))}, {count}, 3)"
        raise InputError(f"has shape {positions.shape}", "particle_q", f"give {wanted}: a position for each particle")
    check_positions(positions, range(len(positions)), "particle_q")
    return positions


def parse_frames(text: str, frame_count: int) -> range:
    """Frames of the slice `A:B:S` of `frame_count` frames, as in Python; "" is all. Raises InputError for no frames."""
    if not text:
        return range(frame_count)
    parts = text.split(":")
    try:
        numbers = [int(part) if part else None for part in parts]
        if not 1 <= len(numbers) <= 3 or numbers == [None]:
            raise ValueError
        picked = range(frame_count)[slice(*numbers)] if len(numbers) > 1 else _one_frame(numbers[0] or 0, frame_count)
    except ValueError as error:
        what = f"'{text}' is not a slice of frames"
        raise InputError(what, "--frames", "write A:B:S, such as 0:100 or ::10") from error
    if not len(picked):
        range_text = f"there are frames 0 to {frame_count - 1}" if frame_count else "there are none"
        what = f"'{text}' selects none of {frame_count} frames"
        raise InputError(what, "--frames", f"{range_text}; write A:B:S with A < B")
    if picked.step < 0:
        raise InputError(f"'{text}' is descending", "--frames", "write A:B:S with a step S above zero")
    return picked


def frames_text(frames: str | int | slice) -> str:
    """Frames given in Python, a number, a slice or a text A:B:S, as the text of `parse_frames`.

    Raises InputError for another type.
    """
    if isinstance(frames, slice):
        return ":".join("" if number is None else str(number) for number in (frames.start, frames.stop, frames.step))
    if isinstance(frames, str | int | np.integer) and not isinstance(frames, bool):
        return str(frames)
    what = f"frames is a {type(frames).__name__}"
    raise InputError(what, "frames", 'give a text such as "0:100", a slice or a number')


def _one_frame(index: int, frame_count: int) -> range:
    """The frame with an index, which is relative to the end if negative; empty without such a frame."""
    index += frame_count if index < 0 else 0
    return range(index, index + 1) if 0 <= index < frame_count else range(0)


class SlicedMotion:
    """Evenly spaced frames of another motion."""

    def __init__(self, motion: Motion, frames: range) -> None:
        self._motion, self._frames = motion, frames
        picked = slice(frames.start, frames.stop, frames.step)
        self.time, self.step = motion.time[picked], motion.step[picked]
        self.world_count, self.float_type, self.sha256 = motion.world_count, motion.float_type, motion.sha256
        self.episodes = None if motion.episodes is None else motion.episodes.sliced(frames)

    def read(self, frames: range) -> np.ndarray:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return self._motion.read(picked)
        # Frame by frame, so that the frames between two selected ones are never in memory.
        return np.concatenate([self._motion.read(range(frame, frame + 1)) for frame in picked])

    def read_particles(self, frames: range) -> np.ndarray | None:
        picked = self._frames[frames.start : frames.stop]
        if self._frames.step == 1:
            return recorded_particles(self._motion, picked)
        positions = [recorded_particles(self._motion, range(frame, frame + 1)) for frame in picked]
        recorded = [known for known in positions if known is not None]
        return np.concatenate(recorded) if recorded else None

    @property
    def kinematics_seconds(self) -> float:
        return self._motion.kinematics_seconds

    @property
    def has_joint_tree(self) -> bool:
        return has_joint_tree(self._motion)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self._motion.warnings

    def close(self) -> None:
        self._motion.close()


class MergedMotion:
    """World k moves by motion k; a world without a motion rests."""

    def __init__(self, motions: Sequence[Motion | None], model: Model) -> None:
        self._motions, self._model = motions, model
        first = next(motion for motion in motions if motion is not None)
        self.time, self.step = first.time, first.step
        self.warnings = tuple(dict.fromkeys(w for motion in motions if motion is not None for w in motion.warnings))
        self.world_count, self.float_type, self.sha256 = len(motions), first.float_type, ""
        self.episodes: Episodes | None = None

    def read(self, frames: range) -> np.ndarray:
        rest = np.broadcast_to(self._model.bodies.pose, (len(frames), 1, *self._model.bodies.pose.shape))
        parts = [rest if motion is None else motion.read(frames) for motion in self._motions]
        return np.concatenate(parts, axis=1)

    def read_particles(self, frames: range) -> np.ndarray | None:
        if not len(self._model.particles):
            return None
        positions = [None if motion is None else recorded_particles(motion, frames) for motion in self._motions]
        if all(known is None for known in positions):
            return None
        rest = self._model.particles.position
        rest = np.broadcast_to(rest, (len(frames), 1, *rest.shape))
        return np.concatenate([rest if known is None else known for known in positions], axis=1)

    @property
    def has_joint_tree(self) -> bool:
        return any(motion is not None and has_joint_tree(motion) for motion in self._motions)

    @property
    def kinematics_seconds(self) -> float:
        return sum(motion.kinematics_seconds for motion in self._motions if motion is not None)

    def close(self) -> None:
        for motion in self._motions:
            if motion is not None:
                motion.close()


def check_worlds(motion: Motion, model: Model, where: str, fix: str) -> None:
    """Raises InputError for a motion whose number of worlds is neither one nor that of the model."""
    if motion.world_count not in (1, model.world_count):
        raise InputError(f"the motion has {motion.world_count} worlds, the scene {model.world_count}", where, fix)


# The scene, the pipeline and the recording of one run, kept for the next run in the same process.
#
# Recordings of one scene then pay for its import, its model and its kernels once. A kept scene is used where its
# files, options, world count and filters are equal and no file of it has changed; a kept pipeline where the model, the
# options and the type of numbers are equal. A recording of demonstrations stays open, so that its structure is read
# once for all of them. The contacts are those of a run on its own.


FileStates = tuple[tuple[str, int, int], ...]


@dataclass
class SceneCache:
    """The last scene, its last pipeline and the last recording. Not for use by several threads at once."""

    _scene: tuple[Hashable, FileStates, Any] | None = field(default=None, repr=False)
    _pipeline: tuple[Model, Hashable, Any] | None = field(default=None, repr=False)
    _recording: tuple[FileStates, Recording] | None = field(default=None, repr=False)
    _loaded: dict[str, Hashable] = field(default_factory=dict, repr=False)

    def scene(self, key: Hashable, load: Callable[[], LoadedScene]) -> LoadedScene:
        """The kept scene of this key if its files have not changed since it was loaded, else `load()`."""
        if self._scene is not None and self._scene[0] == key and self._scene[1] == _states(self._scene[2]):
            return self._scene[2]
        self._scene = self._pipeline = None  # its memory is free before another one is loaded
        start = time.time_ns()
        scene = load()
        states = _states(scene)
        if self._is_of("scene", (key, states), states, start):
            self._scene = (key, states, scene)
        return scene

    def _is_of(self, kind: str, loaded: Hashable, states: FileStates, start: int) -> bool:
        """Whether what was loaded since `start` [ns since 1970] is of these states of its files.

        A file that has changed since then may have changed after it was read. One whose time of change is in the
        future, by another clock or by a program, is unchanged if the load before found it as it is now.
        """
        before, self._loaded[kind] = self._loaded.get(kind), loaded
        return before == loaded or all(changed < start for _, changed, _ in states)

    def recording(self, path: str, load: Callable[[], Recording]) -> Recording:
        """The kept recording of this file if it has not changed, else `load()`."""
        states, start = tuple(map(file_state, recording_files(path))), time.time_ns()
        if self._recording is not None and self._recording[0] == states:
            return self._recording[1]
        self.close()
        recording = load()
        if "demos" in recording.OPTIONS and self._is_of("recording", states, states, start):
            recording.kept = True
            self._recording = (states, recording)
        return recording

    def close(self) -> None:
        """Closes the kept recording."""
        if self._recording is not None:
            self._recording[1].content.close()
            self._recording = None

    def pipeline(self, model: Model, key: Hashable, build: Callable[[], Any]) -> Any:
        """The kept result of `build()` for this model object and key, else `build()`."""
        if self._pipeline is not None and self._pipeline[0] is model and self._pipeline[1] == key:
            return self._pipeline[2]
        self._pipeline = None
        built = build()
        self._pipeline = (model, key, built)
        return built


def _states(scene: LoadedScene) -> FileStates:
    return tuple(file_state(path) for path in sorted({path for imported in scene.imports for path in imported.files}))


def file_state(path: str) -> tuple[str, int, int]:
    """Path, time of change and size of a file; -1 for a file that is gone."""
    try:
        state = os.stat(path)
    except OSError:
        return path, -1, -1
    return path, state.st_mtime_ns, state.st_size


USD_ENDINGS = ENDINGS[USD]
MUJOCO_ENDINGS = (".xml", ".mjcf", ".urdf")
_SELECT = " or one world, for example with --demos"

WORLD_BYTES, POSE_BYTES = 256, 56
"""Memory of a world without bodies, and of the pose of a body."""

Options = TypeVar("Options", SceneOptions, RecordingOptions)


@dataclass(frozen=True, kw_only=True)
class SceneRequest:
    """A scene and its motion. scenes: files. trajectory: a recording. frames: a slice A:B:S; empty is all."""

    scenes: Sequence[str]
    trajectory: str | None = None
    worlds: int | None = None
    frames: str = ""
    contact: ContactOptions = field(default_factory=ContactOptions)
    scene_options: SceneOptions = field(default_factory=SceneOptions)
    recording: RecordingOptions = field(default_factory=RecordingOptions)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Limits the memory of the process while it reads the scene and its motion, to half of the free memory."""
        with limited_reading():
            yield


@dataclass(frozen=True, kw_only=True)
class EngineRequest(SceneRequest):
    """A scene in motion for the engine. engine: device, threads, memory, cache, and algorithms."""

    engine: EngineOptions = field(default_factory=EngineOptions)

    @contextmanager
    def limits(self) -> Iterator[None]:
        """Limits the memory of the process to that of the engine, and keeps convex parts in its cache."""
        with parts_kept_in(self.engine.cache_dir, self.engine.cache_limit), limited_reading(self.engine.memory_limit):
            yield


@dataclass(frozen=True, kw_only=True)
class EnginesRequest(EngineRequest):
    """A scene in motion and engines.

    engines: names of adapters, NAME=adapter or NAME=adapter.py. engine_python: NAME=interpreter, or one of all others.
    engine_option: NAME.KEY=VALUE, of an adapter.
    """

    engines: Sequence[str] = ()
    engine_python: Sequence[str] = ()
    engine_option: Sequence[str] = ()


@dataclass(frozen=True)
class LoadedScene:
    """One or several scene files as a model.

    name: file names, joined with a space. sha256: of every file of the scene, in order.
    imports: importer's result of each scene. world_import: index of each world's scene in `imports`.
    recording: open recording, which the motion closes; None for the scene's own animation or resting pose.
    ignores_particles: the scene has particles, which were taken from the model on request.
    """

    model: Model
    name: str
    sha256: str
    imports: tuple[SceneImport, ...]
    warnings: tuple[str, ...]
    world_import: tuple[int, ...] = ()
    recording: Recording | None = None
    ignores_particles: bool = False

    @cached_property
    def shape_bodies(self) -> tuple[str, ...]:
        """Path of the body of each shape, also of one that is fixed to the world; "" without a body."""
        shapes, bodies = self.model.shapes, self.model.bodies.path
        fixed = [self.imports[source].fixed_links for source in self.template_import(shapes.template)]
        rows = zip(shapes.path, shapes.body.tolist(), fixed, strict=True)
        return tuple(links.get(path, "") if body < 0 else bodies[body] for path, body, links in rows)

    def template_import(self, template: np.ndarray) -> list[int]:
        """Index in `imports` of the scene of each template."""
        of_world = self.world_import or (0,) * self.model.world_count
        known = dict(zip(reversed(self.model.world_template.tolist()), reversed(of_world), strict=True))
        return [known.get(number, 0) for number in template.tolist()]

    @contextmanager
    def named(self) -> Iterator[None]:
        """Adds the scene's name to errors about a shape or body of the model: the engine has no file names."""
        try:
            yield
        except InputError as error:
            if not error.where.startswith(("shape ", "body ")):
                raise
            raise InputError(error.what, f"{self.name}: {error.where}", error.fix) from error

    def motion(self, options: RecordingOptions | None = None) -> Motion:
        """The recording, or else the scene's own animation or keyframes, or else its resting pose.

        options: of the recording. A recording is opened as a motion once.
        """
        options = options or RecordingOptions()
        if self.recording is not None:
            from collidecli.importers.recordings.recording import Target, open_motion

            target = Target(self.model, self.imports, self.world_import or (0,) * self.model.world_count)
            with reading("recording", self.recording.content.path):
                return open_motion(self.recording, target, options)
        if options != RecordingOptions():
            from collidecli.importers.recordings.recording import refuse_options

            refuse_options(options, "without a recording", self.name)
        with reading("motion", self.name):
            motions = [scene.motion(self.model) for scene in self.imports]
        moving = [motion for motion in motions if motion is not None]
        if not moving:
            return RestingMotion(self.model.bodies.pose[None])
        if len(motions) == 1:
            return moving[0]
        times = [motion.time for motion in motions if motion is not None]
        if any(not np.array_equal(times[0], time) for time in times[1:]):
            raise InputError(
                "the scenes move at different times", self.name, "record one trajectory and give it with -t"
            )
        return MergedMotion(motions, self.model)


@dataclass(frozen=True, kw_only=True)
class MotionResult(Result):
    """What results say of a scene in motion. trajectory: None without a recording."""

    scene: str
    scene_sha256: str
    trajectory: str | None
    trajectory_sha256: str

    @staticmethod
    def source(request: SceneRequest, scene: LoadedScene, motion: Motion) -> dict[str, Any]:
        """The fields of a `MotionResult`."""
        hashes = {"scene_sha256": scene.sha256, "trajectory_sha256": motion.sha256}
        return {"scene": scene.name, "trajectory": request.trajectory, **hashes}


def scene_in_motion(request: SceneRequest, cache: SceneCache | None = None) -> tuple[LoadedScene, Motion]:
    """The scene and the selected frames of its motion, with a checked world count.

    cache: of scenes, for recordings of one scene in a row.
    """
    with request.limits():
        scene = _loaded(request, cache)
        motion = scene.motion(request.recording)
    if request.recording.ignore_particles and len(scene.model.particles):
        scene = replace(scene, model=replace(scene.model, particles=Particles()), ignores_particles=True)
    where = request.trajectory or scene.name
    check_worlds(motion, scene.model, where, f"run with --worlds {motion.world_count}")
    if not request.frames:
        return scene, motion
    return scene, SlicedMotion(motion, parse_frames(request.frames, len(motion.time)))


def load_scene(
    paths: Sequence[PathLike],
    worlds: int | None,
    static_pairs: bool = False,
    trajectory: PathLike | None = None,
    options: SceneOptions | None = None,
    recording_options: RecordingOptions | None = None,
) -> LoadedScene:
    """The model of scene files: one world per file; of one file `worlds` copies, or one world per environment.

    paths: none for the scene that is embedded in `trajectory`. worlds: None for the number in `trajectory`, or 1.

    Raises InputError for a file that is missing, has an unknown ending, or has content that its ending does not match.
    """
    request = SceneRequest(
        scenes=[os.fspath(path) for path in paths],
        trajectory=None if trajectory is None else os.fspath(trajectory),
        worlds=worlds,
        contact=ContactOptions(static_pairs=static_pairs),
        scene_options=options or SceneOptions(),
        recording=recording_options or RecordingOptions(),
    )
    with limited_reading():
        return _loaded(request)


def _loaded(request: SceneRequest, cache: SceneCache | None = None) -> LoadedScene:
    recording = None
    if request.trajectory is not None:
        from collidecli.importers.recordings.recording import open_recording

        with reading("recording", request.trajectory):
            path = request.trajectory
            recording = cache.recording(path, lambda: open_recording(path)) if cache else open_recording(path)
    try:
        if request.scenes:
            return _scene_of_files(request, recording, cache)
        if recording is None:
            what = "give a scene file, or with -t a recording that contains its scene"
            raise InputError("there is no scene", fix=what)
        with reading("recording", recording.content.path):
            return _embedded_scene(request, recording, cache)
    except BaseException:
        if recording is not None:
            recording.close()
        raise


def _scene_of_files(request: SceneRequest, recording: Recording | None, cache: SceneCache | None) -> LoadedScene:
    options, recorded = request.scene_options, None
    if recording is not None and recording.NAME == "usd-layer":
        # The layer is composed with the stage when the stage is opened.
        options = replace(options, motion_layer=recording.content.path)
    elif recording is not None and len(request.scenes) == 1 and request.worlds is None:
        with reading("recording", recording.content.path):
            recorded = recording.world_count(request.recording)
    if recording is None or cache is None or options.motion_layer:
        scene = _imported_scene(request, options, recorded, recording)
    else:
        excluded = file_state(options.disabled_pairs)
        key = (*request.scenes, options, excluded, request.worlds, recorded, request.contact.static_pairs)
        scene = cache.scene(key, lambda: _imported_scene(request, options, recorded, recording))
    return replace(scene, recording=recording)


def _imported_scene(
    request: SceneRequest, options: SceneOptions, recorded: int | None, recording: Recording | None
) -> LoadedScene:
    """The scene of the request's files. recorded: number of recorded worlds, where it decides the model's."""
    builders, imports = [], []
    for path in request.scenes:
        builder = ModelBuilder()
        with reading("scene", path):
            imports.append(add_scene(builder, path, options))
        builders.append(builder)
    worlds, static_pairs = request.worlds, request.contact.static_pairs
    if len(builders) > 1:
        if worlds not in (None, len(builders)):
            what = f"--worlds {worlds} with {len(builders)} scenes"
            raise InputError(what, fix="each scene is one world: remove --worlds")
        for builder, path in zip(builders, request.scenes, strict=True):
            _check_environments(builder, len(builders), "scenes", path)
            _check_same_rules(builder, builders[0], path, request.scenes[0])
        model, world_import = _worlds_of(builders, static_pairs), tuple(range(len(imports)))
    else:
        if worlds is None and recording is not None:
            worlds = None if recorded == 1 else recorded  # one recorded world moves every world of the scene
            _check_environments(builders[0], worlds, "worlds of the recording", recording.content.path, _SELECT)
        else:
            _check_environments(builders[0], worlds, "worlds", "--worlds")
        _check_world_memory(builders[0], worlds)
        model = builders[0].finalize(world_count=worlds, static_pairs=static_pairs)
        world_import = (0,) * model.world_count
    warnings = tuple(w for scene in imports for w in scene.warnings)
    name, sha256 = " ".join(model.source), scene_hash(imports, options)
    return LoadedScene(model, name, sha256, tuple(imports), warnings, world_import)


def _check_world_memory(builder: ModelBuilder, worlds: int | None) -> None:
    size = (worlds or 1) * (WORLD_BYTES + POSE_BYTES * builder.body_count)
    check_size(size, f"a frame of {worlds} worlds", "--worlds", "run fewer worlds, or raise --memory-limit")


def _worlds_of(builders: Sequence[ModelBuilder], static_pairs: bool) -> Model:
    """The model whose world k has the scene of builder k; all have the rules of the first."""
    first, joined = builders[0], ModelBuilder()
    joined.gap_rule, joined.material_rule, joined.up_axis = first.gap_rule, first.material_rule, first.up_axis
    for builder in builders:
        joined.add_world(builder)
    return joined.finalize(static_pairs=static_pairs)


def _check_same_rules(builder: ModelBuilder, first: ModelBuilder, path: str, first_path: str) -> None:
    """Raises InputError with both scenes where a rule that applies to all worlds of a run differs."""
    for name in ("gap_rule", "material_rule", "up_axis"):
        ours, theirs = getattr(builder, name), getattr(first, name)
        if ours != theirs:
            what = f"{name} is '{ours}' here and '{theirs}' in {first_path}"
            raise InputError(what, path, "run scenes of different formats or axes one by one")


def _check_environments(builder: ModelBuilder, worlds: int | None, what: str, where: str, remedy: str = "") -> None:
    """Raises InputError where the number of a scene's environments differs from the number of worlds."""
    if builder.world_count and worlds not in (None, builder.world_count):
        what = f"there are {worlds} {what}, and the scene has {builder.world_count} worlds of its own"
        fix = f"give equal numbers{remedy}; environments become one world with --environments none"
        raise InputError(what, where, fix)


def _embedded_scene(request: SceneRequest, recording: Recording, cache: SceneCache | None) -> LoadedScene:
    """The scenes in a recording as one model: a world for each demonstration, a template for each different scene.

    request.worlds: None is the number of recorded worlds; another number is possible for one distinct scene.
    Raises InputError: a recording without a scene, or with one that MuJoCo cannot compile.
    """
    path = recording.content.path
    embedded = recording.embedded_scenes(request.recording)
    if embedded is None:
        what = f"this is {recording.LABEL}: it contains no scene"
        raise InputError(what, path, "give the scene in which it was recorded (for collide traj convert with --scene)")
    if cache is None:
        return replace(_compiled_scene(request, embedded, path), recording=recording)
    texts = tuple(scene.text for scene in embedded.scenes)
    key = (path, texts, embedded.world_scene, request.scene_options, request.worlds, request.contact.static_pairs)
    return replace(cache.scene(key, lambda: _compiled_scene(request, embedded, path)), recording=recording)


def _compiled_scene(request: SceneRequest, embedded: EmbeddedScenes, path: str) -> LoadedScene:
    worlds, options, static_pairs = request.worlds, request.scene_options, request.contact.static_pairs
    name = os.path.basename(path)
    builders, imports = [], []
    for scene in embedded.scenes:
        builder = ModelBuilder()
        builder.source.append(name)
        if options.variants:
            raise InputError("--variants is for USD scenes", scene.location, "remove it")
        from collidecli.importers.mujoco.compile import compile_mjcf
        from collidecli.importers.mujoco.scene import add_compiled

        imports.append(add_compiled(builder, compile_mjcf(scene.location, scene.text, options), options))
        builders.append(builder)
    world_import = embedded.world_scene
    if len(builders) == 1:
        _check_world_memory(builders[0], worlds)
        model = builders[0].finalize(world_count=worlds or len(world_import), static_pairs=static_pairs)
        world_import = (0,) * model.world_count
    elif worlds not in (None, len(world_import)):
        what = f"--worlds {worlds} with {len(world_import)} demonstrations of different scenes"
        raise InputError(what, path, "each demonstration is one world: remove --worlds, or select some with --demos")
    else:
        model = _worlds_of([builders[index] for index in world_import], static_pairs)
    warnings = tuple(dict.fromkeys(w for scene in imports for w in scene.warnings))
    return LoadedScene(model, name, scene_hash(imports, options), tuple(imports), warnings, world_import)


def recorded_options(contacts: ContactSet, kind: type[Options]) -> Options:
    """The scene's or recording's options of a set's run, without a motion layer.

    Raises InputError for a value of another type.
    """
    values: dict[str, Any] = {}
    for option in fields(kind):
        value = contacts.config.get(option.name, option.default)
        value = tuple(value) if isinstance(value, list) else value
        texts = value if isinstance(option.default, tuple) else (value,)
        fits = isinstance(texts, tuple) and all(isinstance(text, str) for text in texts)
        if isinstance(option.default, bool):
            fits = isinstance(value, bool)
        if not (fits or (option.default is None and (value is None or isinstance(value, float)))):
            what = f"the option {option.name} is {value!r}"
            raise InputError(what, f"{contacts.path}: config", "make the contact set again")
        values[option.name] = "" if option.name == "motion_layer" else value
    return kind(**values)


def add_scene(builder: ModelBuilder, path: PathLike, options: SceneOptions) -> SceneImport:
    """Adds one scene file to a builder with the importer of its ending; returns the importer's result."""
    path = os.fspath(path)
    ending = Path(path).suffix.lower()
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        is_file = "the file is empty" if os.path.isfile(path) else "is not a regular file"
        what = "is a folder, not a scene" if os.path.isdir(path) else is_file
        what = what if os.path.exists(path) else "there is no such file"
        raise InputError(what, path, "give a USD, MJCF or URDF file")
    is_usd = ending in USD_ENDINGS
    if not is_usd and ending not in MUJOCO_ENDINGS:
        what = f"no scene format has the extension '{ending}'"
        raise InputError(what, path, f"known extensions: {', '.join(USD_ENDINGS + MUJOCO_ENDINGS)}")
    for name in ("floating_base",) if is_usd else ("ignore_missing", "variants", "environments"):
        if getattr(options, name):
            what = f"--{name.replace('_', '-')} is for {'URDF' if is_usd else 'USD'} scenes"
            raise InputError(what, path, "remove it")
    if not is_usd:
        from collidecli.importers.mujoco.scene import add_mjcf

        return add_mjcf(builder, path, options)
    from collidecli.importers.usd.scene import add_usd

    imported = add_usd(builder, path, options)
    if options.ground:
        builder.add_ground_plane(key=GROUND)
    if not options.disabled_pairs:
        return imported
    from collidecli.importers.scene_import import disabled_pairs, read_srdf, shapes_of_prims

    shapes = shapes_of_prims(imported.body_of, imported.shape_of)
    disabled, unknown = disabled_pairs(read_srdf(options.disabled_pairs), shapes)
    for pair, rule in disabled.items():
        builder.add_shape_collision_filter_pair(*pair, rule=rule)
    return replace(imported, warnings=(*imported.warnings, *unknown))


def scene_hash(imports: Sequence[SceneImport], options: SceneOptions) -> str:
    """SHA-256 of all content that may affect a contact, in order: scenes as text, scene files, disabled pairs."""
    more = (options.disabled_pairs,) if options.disabled_pairs else ()
    files = (*(path for scene in imports for path in scene.files), *more)
    return files_sha256(files, [scene.text for scene in imports])
