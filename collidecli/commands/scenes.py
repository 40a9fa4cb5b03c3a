"""Models and motions from scene files and recordings: choice of the importer, worlds, and the scene's hash."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from collidecli.commands.motions import SlicedMotion, check_worlds, merged_motion, parse_frames
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.run_options import ContactOptions, RecordingOptions, SceneOptions
from collidecli.storage.file_hash import files_sha256
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:
    from collidecli.importers.recordings.kinds import Recording
    from collidecli.importers.recordings.robosuite import CarriedScene
    from collidecli.importers.scene_import import SceneImport
    from collidecli.importers.usd.scene import UsdImport

USD_ENDINGS = (".usd", ".usda", ".usdc", ".usdz")
MUJOCO_ENDINGS = (".xml", ".mjcf", ".urdf")


@dataclass(frozen=True, kw_only=True)
class SceneRequest:
    """Scene files and their motion. frames: a slice A:B:S; "" is all. worlds: None is as many as recorded, else 1."""

    scenes: Sequence[str]
    trajectory: str | None = None
    worlds: int | None = None
    frames: str = ""
    contact: ContactOptions = field(default_factory=ContactOptions)
    scene_options: SceneOptions = field(default_factory=SceneOptions)
    recording: RecordingOptions = field(default_factory=RecordingOptions)


@dataclass(frozen=True)
class LoadedScene:
    """One or several scene files as a model.

    name: file names, joined with a space. sha256: hash of all files of the scene, in order. imports: results of the
    importers, one per scene. world_import: index of the scene of each world. recording: its motion; None if the motion
    is the scene's own or the scene rests.
    """

    model: Model
    name: str
    sha256: str
    imports: tuple[SceneImport, ...]
    warnings: tuple[str, ...]
    world_import: tuple[int, ...] = ()
    recording: Recording | None = None

    @contextmanager
    def named(self) -> Iterator[None]:
        """Adds the name of the scene to errors about a shape or body, as the engine has no file names."""
        try:
            yield
        except InputError as error:
            if not error.where.startswith(("shape ", "body ")):
                raise
            raise InputError(error.what, f"{self.name}: {error.where}", error.fix) from error

    def motion(self, options: RecordingOptions | None = None) -> Motion:
        """Motion of the recording, or else the scene's own animation or keyframes, or else its resting pose.

        options: of the recording. Raises InputError for options without a recording.
        """
        options = options or RecordingOptions()
        if self.recording is not None:
            from collidecli.importers.recordings.target import Target

            target = Target(self.model, self.imports, self.world_import or (0,) * self.model.world_count)
            with reading("recording", self.recording.path):
                return self.recording.motion(target, options)
        if options != RecordingOptions():
            from collidecli.importers.recordings.kinds import refuse_options

            refuse_options(options, "without a recording", self.name)
        with reading("motion", self.name):
            own = [scene.motion(self.model) for scene in self.imports]
        moving = [motion for motion in own if motion is not None]
        if not moving:
            return RestingMotion(self.model.bodies.pose[None])
        if len(own) == 1:
            return moving[0]
        return merged_motion(own, self.model, self.name)


def scene_in_motion(request: SceneRequest) -> tuple[LoadedScene, Motion]:
    """The scene and its motion with the selected frames. Raises InputError if their world counts differ."""
    scene = load_scene(
        request.scenes,
        request.worlds,
        request.contact.static_pairs,
        request.trajectory,
        request.scene_options,
        request.recording,
    )
    motion = scene.motion(request.recording)
    where = request.trajectory or scene.name
    check_worlds(motion, scene.model, where, f"run with --worlds {motion.world_count}")
    if not request.frames:
        return scene, motion
    return scene, SlicedMotion(motion, parse_frames(request.frames, len(motion.time)))


def load_scene(
    paths: Sequence[str | os.PathLike[str]],
    worlds: int | None,
    static_pairs: bool = False,
    trajectory: str | os.PathLike[str] | None = None,
    options: SceneOptions | None = None,
    recording_options: RecordingOptions | None = None,
) -> LoadedScene:
    """Model of scene files: a world per file, or `worlds` copies of one file, or a world per environment of it.

    paths: () is the scene in `trajectory`. worlds: None is as many as `trajectory` has, or 1 without one.

    Raises InputError for a file that is missing, has an unknown extension, or has content that does not match it.
    """
    options, recording_options = options or SceneOptions(), recording_options or RecordingOptions()
    recording = _find_recording(trajectory)
    if not paths:
        with reading("recording", recording.path) if recording is not None else nullcontext():
            return _carried_scene(recording, worlds, static_pairs, options, recording_options)
    if recording is not None and recording.kind.NAME == "usd-layer":
        # The layer is part of the composition of the stage.
        options = replace(options, motion_layer=recording.path)
    builders, imports = [], []
    for path in paths:
        builder = ModelBuilder()
        with reading("scene", path):
            imports.append(add_scene(builder, path, options))
        builders.append(builder)
    if len(builders) == 1:
        model = _one_scene(builders[0], worlds, static_pairs, recording, recording_options)
    else:
        model = _several_scenes(builders, paths, worlds, static_pairs)
    return LoadedScene(
        model=model,
        name=" ".join(model.source),
        sha256=scene_hash(imports, options),
        imports=tuple(imports),
        warnings=tuple(w for scene in imports for w in scene.warnings),
        world_import=tuple(range(len(imports))) if len(imports) > 1 else (0,) * model.world_count,
        recording=recording,
    )


def _find_recording(trajectory: str | os.PathLike[str] | None) -> Recording | None:
    if trajectory is None:
        return None
    from collidecli.importers.recordings.kinds import find_recording

    with reading("recording", trajectory):
        return find_recording(trajectory)


def _one_scene(
    builder: ModelBuilder,
    worlds: int | None,
    static_pairs: bool,
    recording: Recording | None,
    recording_options: RecordingOptions,
) -> Model:
    if worlds is None and recording is not None:
        with reading("recording", recording.path):
            worlds = recording.world_count(recording_options)
        if worlds == 1:
            worlds = None  # one recorded world moves every world of the scene
        _check_environments(builder, worlds, "worlds of the recording", recording.path)
    else:
        _check_environments(builder, worlds, "worlds", "--worlds")
    return builder.finalize(world_count=worlds, static_pairs=static_pairs)


def _several_scenes(
    builders: Sequence[ModelBuilder],
    paths: Sequence[str | os.PathLike[str]],
    worlds: int | None,
    static_pairs: bool,
) -> Model:
    if worlds not in (None, len(builders)):
        raise InputError(
            f"--worlds {worlds} with {len(builders)} scenes", fix="each scene is one world: leave --worlds out"
        )
    first, together = builders[0], ModelBuilder()
    together.gap_rule, together.material_rule, together.up_axis = first.gap_rule, first.material_rule, first.up_axis
    for builder, path in zip(builders, paths, strict=True):
        _check_environments(builder, len(builders), "scenes", os.fspath(path))
        _check_equal_rules(builder, first, path, paths[0])
        together.add_world(builder)
    return together.finalize(static_pairs=static_pairs)


def _check_equal_rules(builder: ModelBuilder, first: ModelBuilder, path, first_path) -> None:
    """Raises InputError, naming both scenes, if a rule that all worlds of a run share differs."""
    for name in ("gap_rule", "material_rule", "up_axis"):
        ours, theirs = getattr(builder, name), getattr(first, name)
        if ours != theirs:
            what = f"{name} is '{ours}' here and '{theirs}' in {os.fspath(first_path)}"
            raise InputError(what, os.fspath(path), "run scenes of different formats or axes one by one")


def _check_environments(builder: ModelBuilder, worlds: int | None, what: str, where: str) -> None:
    """Raises InputError if the number of a scene's environments differs from the number of worlds."""
    if builder.world_count and worlds not in (None, builder.world_count):
        raise InputError(
            f"there are {worlds} {what}, and the scene has {builder.world_count} environments, each a world",
            where,
            "make them agree, or take the stage as one world with --environments none",
        )


def _carried_scene(
    recording: Recording | None,
    worlds: int | None,
    static_pairs: bool,
    options: SceneOptions,
    recording_options: RecordingOptions,
) -> LoadedScene:
    """Model of the scenes in a recording: a world per demonstration, a template per different scene.

    worlds: None is as many as are recorded; several demonstrations of different scenes allow no other number.
    Raises InputError for no recording, a recording without a scene, or a scene that MuJoCo cannot compile.
    """
    if recording is None:
        raise InputError("there is no scene", fix="give a scene file, or with -t a recording that contains a scene")
    path, kind = recording.path, recording.kind
    find = getattr(kind, "carried_scenes", None)
    if find is None:
        raise InputError(f"this is {kind.LABEL}, which contains no scene", path, "give the scene of the recording")
    carried = find(path, recording_options)
    builders, imports = [], []
    for scene in carried.scenes:
        builder = ModelBuilder()
        builder.source.append(os.path.basename(path))
        imports.append(_add_carried_scene(builder, scene, options))
        builders.append(builder)
    world_import = carried.world_scene
    if len(builders) == 1:
        model = builders[0].finalize(world_count=worlds or len(world_import), static_pairs=static_pairs)
        world_import = (0,) * model.world_count
    else:
        if worlds not in (None, len(world_import)):
            raise InputError(
                f"--worlds {worlds} with {len(world_import)} demonstrations of different scenes",
                path,
                "each demonstration is one world: leave --worlds out, or choose some with --demos",
            )
        together = ModelBuilder()
        together.gap_rule, together.up_axis = builders[0].gap_rule, builders[0].up_axis
        together.material_rule = builders[0].material_rule
        for index in world_import:
            together.add_world(builders[index])
        model = together.finalize(static_pairs=static_pairs)
    return LoadedScene(
        model=model,
        name=os.path.basename(path),
        sha256=scene_hash(imports, options),
        imports=tuple(imports),
        warnings=tuple(dict.fromkeys(w for scene in imports for w in scene.warnings)),
        world_import=world_import,
        recording=recording,
    )


def _add_carried_scene(builder: ModelBuilder, scene: CarriedScene, options: SceneOptions) -> SceneImport:
    """Adds an MJCF scene of a recording to a builder; --asset-map gives the folders of its assets."""
    if options.variants:
        raise InputError("--variants is for USD scenes", scene.place, "leave it out")
    from collidecli.importers.mujoco.compile import compile_mjcf
    from collidecli.importers.mujoco.scene import add_compiled

    return add_compiled(builder, compile_mjcf(scene.place, scene.text, options), options)


def add_scene(builder: ModelBuilder, path: str | os.PathLike[str], options: SceneOptions) -> SceneImport:
    """Adds a scene file to a builder with the importer of its extension; returns the result of the importer."""
    ending = Path(path).suffix.lower()
    if not os.path.isfile(path):
        raise InputError(_no_file(path), os.fspath(path), "give a USD, MJCF or URDF file")
    if os.path.getsize(path) == 0:
        raise InputError("the file is empty", os.fspath(path), "give a USD, MJCF or URDF file")
    if ending in USD_ENDINGS:
        _refuse_option("--asset-map", options.asset_map, "MJCF and URDF", path)
        from collidecli.importers.usd.scene import add_usd

        imported = add_usd(builder, path, options)
        return _without_disabled_pairs(builder, imported, options) if options.disabled_pairs else imported
    if ending in MUJOCO_ENDINGS:
        _refuse_option("--variants", options.variants, "USD", path)
        _refuse_option("--environments", options.environments, "USD", path)
        from collidecli.importers.mujoco.scene import add_mjcf

        return add_mjcf(builder, path, options)
    raise InputError(
        f"no scene format has the extension '{ending}'",
        os.fspath(path),
        f"known extensions: {', '.join(USD_ENDINGS + MUJOCO_ENDINGS)}",
    )


def _no_file(path: str | os.PathLike[str]) -> str:
    """Why a path is not a readable file."""
    if os.path.isdir(path):
        return "is a folder, not a scene"
    return "is not a regular file" if os.path.exists(path) else "there is no such file"


def _refuse_option(name: str, value: Sequence[str] | str, formats: str, path: str | os.PathLike[str]) -> None:
    if value:
        raise InputError(f"{name} is for {formats} scenes", os.fspath(path), "leave it out")


def _without_disabled_pairs(builder: ModelBuilder, imported: UsdImport, options: SceneOptions) -> UsdImport:
    from collidecli.importers.mujoco.srdf import disabled_pairs, read_srdf, shapes_of_prims

    disabled = disabled_pairs(read_srdf(options.disabled_pairs), shapes_of_prims(imported.body_of, imported.shape_of))
    for pair, rule in disabled.rule.items():
        builder.add_shape_collision_filter_pair(*pair, rule=rule)
    return replace(imported, warnings=(*imported.warnings, *disabled.warnings))


def scene_hash(imports: Sequence[SceneImport], options: SceneOptions) -> str:
    """SHA-256 of all inputs of the scenes, in order: scenes given as text, files of scenes, disabled pairs."""
    more = (options.disabled_pairs,) if options.disabled_pairs else ()
    files = (*(path for scene in imports for path in scene.files), *more)
    return files_sha256(files, [scene.text for scene in imports])
