"""Scenes in motion: loading of scene files and recordings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidecli.analysis.frame_texts import parse_frames
from collidecli.errors import InputError
from collidecli.motions.chosen_pairs import unfiltered_notes, with_chosen_pairs
from collidecli.motions.derived import SlicedMotion
from collidecli.motions.given_scenes import given_scene
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import SceneRequest
from collidecli.motions.scene_cache import file_state
from collidecli.results.endings import MUJOCO_ENDINGS
from collidecli.results.result import PathLike, Result
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.mesh_choices import mesh_choices
from collidecli.scene.motion import Motion
from collidecli.scene.option_values import GROUND
from collidecli.scene.options import ContactOptions, RecordingOptions, SceneOptions
from collidecli.scene.particles import Particles
from collidecli.scene.shape_switches import refuse_switches, switches_of
from collidecli.storage.input_files import files_sha256
from collidecli.storage.process_activity import reading
from collidecli.storage.reading_limit import check_size, limited_reading
from collidecli.storage.regular_files import require_regular_file
from collidecli.storage.storage_formats import ENDINGS, USD

if TYPE_CHECKING:
    from collidecli.importers.recordings.recording import EmbeddedScenes, Recording
    from collidecli.importers.scene_import import SceneImport
    from collidecli.motions.requests import Options
    from collidecli.motions.scene_cache import SceneCache
    from collidecli.scene.model import Model
    from collidecli.storage.contact_sets.reader import ContactSet


def check_worlds(motion: Motion, model: Model, where: str, fix: str) -> None:
    """Raises InputError for a motion whose number of worlds is neither one nor that of the
    model."""
    if motion.world_count not in (1, model.world_count):
        raise InputError(
            f"the motion has {motion.world_count} worlds, the scene {model.world_count}", where, fix
        )


USD_ENDINGS = ENDINGS[USD]
_SELECT = " or one world, for example with --demos"
WORLD_BYTES = 256
POSE_BYTES = 56
"""Memory of a world without bodies, and of the pose of a body."""


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


def scene_in_motion(
    request: SceneRequest, cache: SceneCache | None = None, by_frames: bool = False
) -> tuple[LoadedScene, Motion]:
    """The scene and the selected frames of its motion, with a checked world count.

    cache: of scenes, for recordings of one scene in a row. by_frames: the caller leaves out the
    contacts of shapes that the motion disables; else InputError for such a motion.
    """
    with request.limits():
        scene = load_with(request, cache)
        motion = scene.motion(request.recording)
    if request.recording.ignore_particles and len(scene.model.particles):
        scene = replace(
            scene, model=replace(scene.model, particles=Particles()), ignores_particles=True
        )
    where = request.trajectory or scene.name
    switches = switches_of(motion)
    if switches is not None and not by_frames:
        refuse_switches(switches.path, where, "this command takes no colliders by frames")
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
    """The model of scene files: one world per file; of one file `worlds` copies, or one world per
    environment.

    paths: none for the scene that is embedded in `trajectory`. worlds: None for the number in
    `trajectory`, or 1.

    Raises InputError for a file that is missing, has an unknown ending, or has content that its
    ending does not match.
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
        return load_with(request)


def load_with(request: SceneRequest, cache: SceneCache | None = None) -> LoadedScene:
    """The scene of a request. cache: keeps the recording and the imported scene; None keeps
    nothing."""
    if request.given is not None:
        return given_scene(request.given)
    recording = None
    if request.trajectory is not None:
        from collidecli.importers.recordings.kinds import open_recording

        with reading("recording", request.trajectory):
            path = request.trajectory
            state = request.recording.state
            recording = (
                cache.recording(path, lambda: open_recording(path, state), state)
                if cache
                else open_recording(path, state)
            )
    try:
        if request.scenes:
            scene = _scene_of_files(request, recording, cache)
            return replace(scene, warnings=(*scene.warnings, *unfiltered_notes(scene, request)))
        if recording is None:
            what = "give a scene file, or with -t a recording that contains its scene"
            if request.scene_options.visuals_as_colliders:
                what = "write --visuals-as-colliders after the scene: a word behind it is a pattern"
            raise InputError("there is no scene", fix=what)
        with reading("recording", recording.content.path):
            return _embedded_scene(request, recording, cache)
    except BaseException:
        if recording is not None:
            recording.close()
        raise


def _scene_of_files(
    request: SceneRequest, recording: Recording | None, cache: SceneCache | None
) -> LoadedScene:
    options = request.scene_options
    recorded = None
    if recording is not None and recording.NAME == "usd-layer":
        # The layer is composed with the stage when the stage is opened.
        options = replace(options, motion_layer=recording.content.path)
    elif recording is not None and len(request.scenes) == 1 and request.worlds is None:
        with reading("recording", recording.content.path):
            recorded = recording.world_count(request.recording)
    if recording is None or cache is None or options.motion_layer:
        scene = _imported_scene(request, options, recorded, recording)
    else:
        key = (
            *request.scenes,
            options,
            _filter_states(options),
            request.worlds,
            recorded,
            request.contact.static_pairs,
        )
        scene = cache.scene(key, lambda: _imported_scene(request, options, recorded, recording))
    return replace(scene, recording=recording)


def _imported_scene(
    request: SceneRequest, options: SceneOptions, recorded: int | None, recording: Recording | None
) -> LoadedScene:
    """The scene of the request's files. recorded: number of recorded worlds, where it decides the
    model's."""
    builders = []
    imports = []
    for path in request.scenes:
        builder = ModelBuilder()
        with reading("scene", path):
            imports.append(add_scene(builder, path, options))
        builders.append(builder)
    _check_meshes(imports, options)
    worlds = request.worlds
    static_pairs = request.contact.static_pairs
    if len(builders) > 1:
        if worlds not in (None, len(builders)):
            what = f"--worlds {worlds} with {len(builders)} scenes"
            raise InputError(what, fix="each scene is one world: remove --worlds")
        for builder, path in zip(builders, request.scenes, strict=True):
            _check_environments(builder, len(builders), "scenes", path)
            _check_same_rules(builder, builders[0], path, request.scenes[0])
        model = _worlds_of(builders, static_pairs)
        world_import = tuple(range(len(imports)))
    else:
        if worlds is None and recording is not None:
            # one recorded world moves every world of the scene
            worlds = None if recorded == 1 else recorded
            _check_environments(
                builders[0], worlds, "worlds of the recording", recording.content.path, _SELECT
            )
        else:
            _check_environments(builders[0], worlds, "worlds", "--worlds")
        _check_world_memory(builders[0], worlds)
        model = builders[0].finalize(world_count=worlds, static_pairs=static_pairs)
        world_import = (0,) * model.world_count
    warnings = tuple(w for scene in imports for w in scene.warnings)
    name = " ".join(model.source)
    scene = LoadedScene(model, name, "", tuple(imports), warnings, world_import)
    # before the hash, so that a file of pairs that cannot be read is refused by its reader
    scene = with_chosen_pairs(scene, options)
    return replace(scene, files_sha256=scene_hash(imports, options))


def _filter_files(options: SceneOptions) -> tuple[str, ...]:
    """The files besides the scene that decide which pairs may touch."""
    return tuple(filter(None, (options.disabled_pairs, options.pairs_file)))


def _filter_states(options: SceneOptions) -> tuple[Any, ...]:
    return tuple(map(file_state, _filter_files(options)))


def _check_meshes(imports: Sequence[SceneImport], options: SceneOptions) -> None:
    """Raises InputError for a pattern of `meshes` that matches no mesh of any scene."""
    meshes = {name: body for scene in imports for name, body in scene.meshes.items()}
    mesh_choices(options.meshes).check(meshes)


def _check_world_memory(builder: ModelBuilder, worlds: int | None) -> None:
    size = (worlds or 1) * (WORLD_BYTES + POSE_BYTES * builder.body_count)
    check_size(
        size, f"a frame of {worlds} worlds", "--worlds", "run fewer worlds, or raise --memory-limit"
    )


def _worlds_of(builders: Sequence[ModelBuilder], static_pairs: bool) -> Model:
    """The model whose world k has the scene of builder k; all have the rules of the first."""
    first = builders[0]
    joined = ModelBuilder()
    joined.gap_rule = first.gap_rule
    joined.material_rule = first.material_rule
    joined.up_axis = first.up_axis
    for builder in builders:
        joined.add_world(builder)
    return joined.finalize(static_pairs=static_pairs)


def _check_same_rules(
    builder: ModelBuilder, first: ModelBuilder, path: str, first_path: str
) -> None:
    """Raises InputError with both scenes where a rule that applies to all worlds of a run
    differs."""
    for name in ("gap_rule", "material_rule", "up_axis"):
        ours = getattr(builder, name)
        theirs = getattr(first, name)
        if ours != theirs:
            what = f"{name} is '{ours}' here and '{theirs}' in {first_path}"
            raise InputError(what, path, "run scenes of different formats or axes one by one")


def _check_environments(
    builder: ModelBuilder, worlds: int | None, what: str, where: str, remedy: str = ""
) -> None:
    """Raises InputError where the number of a scene's environments differs from the number of
    worlds."""
    if builder.world_count and worlds not in (None, builder.world_count):
        what = (
            f"there are {worlds} {what}, and the scene has {builder.world_count} worlds of its own"
        )
        fix = f"give equal numbers{remedy}; environments become one world with --environments none"
        raise InputError(what, where, fix)


def _embedded_scene(
    request: SceneRequest, recording: Recording, cache: SceneCache | None
) -> LoadedScene:
    """The scenes in a recording as one model: a world for each demonstration, a template for each
    different scene.

    request.worlds: None is the number of recorded worlds; another number is possible for one
    distinct scene. Raises InputError: a recording without a scene, or with one that MuJoCo cannot
    compile.
    """
    path = recording.content.path
    embedded = recording.embedded_scenes(request.recording)
    if embedded is None:
        what = f"this is {recording.LABEL}: it contains no scene"
        raise InputError(
            what,
            path,
            "give the scene in which it was recorded (for collide traj convert with --scene)",
        )
    if cache is None:
        return replace(_compiled_scene(request, embedded, path), recording=recording)
    texts = tuple(scene.text for scene in embedded.scenes)
    key = (
        path,
        texts,
        embedded.world_scene,
        request.scene_options,
        _filter_states(request.scene_options),
        request.worlds,
        request.contact.static_pairs,
    )
    return replace(
        cache.scene(key, lambda: _compiled_scene(request, embedded, path)), recording=recording
    )


def _compiled_scene(request: SceneRequest, embedded: EmbeddedScenes, path: str) -> LoadedScene:
    worlds = request.worlds
    options = request.scene_options
    static_pairs = request.contact.static_pairs
    name = os.path.basename(path)
    builders = []
    imports = []
    for scene in embedded.scenes:
        builder = ModelBuilder()
        builder.source.append(name)
        if options.variants:
            raise InputError("--variants is for USD scenes", scene.location, "remove it")
        from collidecli.importers.mujoco.compile import compile_mjcf
        from collidecli.importers.mujoco.scene import add_compiled

        imports.append(
            add_compiled(builder, compile_mjcf(scene.location, scene.text, options), options)
        )
        builders.append(builder)
    _check_meshes(imports, options)
    world_import = embedded.world_scene
    if len(builders) == 1:
        _check_world_memory(builders[0], worlds)
        model = builders[0].finalize(
            world_count=worlds or len(world_import), static_pairs=static_pairs
        )
        world_import = (0,) * model.world_count
    elif worlds not in (None, len(world_import)):
        what = f"--worlds {worlds} with {len(world_import)} demonstrations of different scenes"
        raise InputError(
            what,
            path,
            "each demonstration is one world: remove --worlds, or select some with --demos",
        )
    else:
        model = _worlds_of([builders[index] for index in world_import], static_pairs)
    warnings = tuple(dict.fromkeys(w for scene in imports for w in scene.warnings))
    scene = LoadedScene(model, name, "", tuple(imports), warnings, world_import)
    # before the hash, so that a file of pairs that cannot be read is refused by its reader
    scene = with_chosen_pairs(scene, options)
    return replace(scene, files_sha256=scene_hash(imports, options))


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
    """Adds one scene file to a builder with the importer of its ending; returns the importer's
    result."""
    path = os.fspath(path)
    ending = Path(path).suffix.lower()
    fix = "give a USD, MJCF or URDF file"
    require_regular_file(path, "scene", fix)
    if os.path.getsize(path) == 0:
        raise InputError("the file is empty", path, fix)
    is_usd = ending in USD_ENDINGS
    if not is_usd and ending not in MUJOCO_ENDINGS:
        what = f"no scene format has the extension '{ending}'"
        from collidecli.importers.scene_import import EXPAND_XACRO

        known = f"known extensions: {', '.join(USD_ENDINGS + MUJOCO_ENDINGS)}"
        raise InputError(what, path, EXPAND_XACRO if ending == ".xacro" else known)
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
    from collidecli.importers.scene_import import shapes_of_prims
    from collidecli.importers.srdf import disabled_pairs, read_srdf

    shapes = shapes_of_prims(imported.body_of, imported.shape_of)
    disabled, unknown = disabled_pairs(read_srdf(options.disabled_pairs), shapes)
    for pair, rule in disabled.items():
        builder.add_shape_collision_filter_pair(*pair, rule=rule)
    return replace(imported, warnings=(*imported.warnings, *unknown))


def scene_hash(imports: Sequence[SceneImport], options: SceneOptions) -> str:
    """SHA-256 of all content that may affect a contact, in order: scenes as text, scene files,
    disabled pairs, file of pairs."""
    files = (*(path for scene in imports for path in scene.files), *_filter_files(options))
    return files_sha256(files, [scene.text for scene in imports])
