"""The scene that a recording brings along, where none is given."""

from __future__ import annotations

import os

from collidecli.commands.scenes import LoadedScene, scene_hash
from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import Recording
from collidecli.importers.recordings.robosuite import CarriedScene
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.run_options import RecordingOptions, SceneOptions


def load_carried_scene(
    recording: Recording,
    worlds: int | None,
    static_pairs: bool,
    options: SceneOptions,
    recording_options: RecordingOptions,
) -> LoadedScene:
    """The scenes in a recording as one model: a world for each demonstration, a template for each different scene.

    worlds: None is as many as are recorded; another number must fit.
    Raises InputError: a recording that carries no scene, or one that MuJoCo cannot compile.
    """
    path, kind = recording.path, recording.kind
    find = getattr(kind, "carried_scenes", None)
    if find is None:
        raise InputError(
            f"this is {kind.LABEL}, which carries no scene", path, "give the scene that it was recorded in"
        )
    carried = find(path, recording_options)
    builders, imports = [], []
    for scene in carried.scenes:
        builder = ModelBuilder()
        builder.source.append(os.path.basename(path))
        imports.append(add_carried_scene(builder, scene, options))
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


def add_carried_scene(builder: ModelBuilder, scene: CarriedScene, options: SceneOptions):
    """Adds a carried MJCF scene to a builder; returns what the door says. Its assets are looked for by --asset-map."""
    if options.variants:
        raise InputError("--variants is for USD scenes", scene.place, "leave it out")
    from collidecli.importers.mujoco.compile import compile_mjcf
    from collidecli.importers.mujoco.scene import add_compiled

    return add_compiled(builder, compile_mjcf(scene.place, scene.text, options), options)
