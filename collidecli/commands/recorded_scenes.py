"""Models of the scenes that are embedded in a recording."""

from __future__ import annotations

import os

from collidecli.commands.scenes import LoadedScene, scene_hash
from collidecli.errors import InputError
from collidecli.importers.recordings.recording import EmbeddedScene, Recording
from collidecli.importers.scene_import import SceneImport
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.run_options import RecordingOptions, SceneOptions


def load_embedded_scene(
    recording: Recording,
    worlds: int | None,
    static_pairs: bool,
    options: SceneOptions,
    recording_options: RecordingOptions,
) -> LoadedScene:
    """The scenes in a recording as one model: a world for each demonstration, a template for each different scene.

    worlds: None is the number of recorded worlds; another number is possible for one distinct scene.
    Raises InputError: a recording without a scene, or with one that MuJoCo cannot compile.
    """
    path = recording.content.path
    embedded = recording.embedded_scenes(recording_options)
    if embedded is None:
        raise InputError(
            f"this is {recording.LABEL}: it contains no scene",
            path,
            "give the scene in which it was recorded (for collide traj convert with --scene)",
        )
    builders, imports = [], []
    for scene in embedded.scenes:
        builder = ModelBuilder()
        builder.source.append(os.path.basename(path))
        imports.append(add_embedded_scene(builder, scene, options))
        builders.append(builder)
    world_import = embedded.world_scene
    if len(builders) == 1:
        model = builders[0].finalize(world_count=worlds or len(world_import), static_pairs=static_pairs)
        world_import = (0,) * model.world_count
    else:
        if worlds not in (None, len(world_import)):
            raise InputError(
                f"--worlds {worlds} with {len(world_import)} demonstrations of different scenes",
                path,
                "each demonstration is one world: remove --worlds, or select some with --demos",
            )
        joined = ModelBuilder()
        joined.gap_rule, joined.up_axis = builders[0].gap_rule, builders[0].up_axis
        joined.material_rule = builders[0].material_rule
        for index in world_import:
            joined.add_world(builders[index])
        model = joined.finalize(static_pairs=static_pairs)
    return LoadedScene(
        model=model,
        name=os.path.basename(path),
        sha256=scene_hash(imports, options),
        imports=tuple(imports),
        warnings=tuple(dict.fromkeys(w for scene in imports for w in scene.warnings)),
        world_import=world_import,
        recording=recording,
    )


def add_embedded_scene(builder: ModelBuilder, scene: EmbeddedScene, options: SceneOptions) -> SceneImport:
    """Adds an embedded MJCF scene to a builder; returns the importer's result. --asset-map locates its assets."""
    if options.variants:
        raise InputError("--variants is for USD scenes", scene.location, "remove it")
    from collidecli.importers.mujoco.compile import compile_mjcf
    from collidecli.importers.mujoco.scene import add_compiled

    return add_compiled(builder, compile_mjcf(scene.location, scene.text, options), options)
