"""The scene of a contact set, and the geoms that MuJoCo compiled of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.scenes import load_scene, recorded_options
from collidecli.scene.model_source import BUILT_MODEL, MODEL, SCENE_CONTENT
from collidecli.scene.options import SceneOptions
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.exporters.layouts.mujoco import CompiledGeoms

SAME_SCENE = "give the scene as it was at the run, with every file that it refers to"


def loaded_scene(contacts: ContactSet, path: str) -> LoadedScene:
    """The scene at `path`, read with the options of the run. Raises InputError for another scene
    than the run's."""
    if contacts.scene_kind == MODEL:
        what = f"the contact set is of {contacts.scene or BUILT_MODEL}, not of a scene file"
        raise InputError(what, contacts.path, "run the scene file, and export that contact set")
    if " " in contacts.scene and os.path.basename(path) != contacts.scene:
        what = f"the contact set was made of several scenes: {contacts.scene}"
        raise InputError(what, contacts.path, "run this one by itself")
    scene = load_scene((path,), None, options=recorded_options(contacts, SceneOptions))
    if scene.sha256 != contacts.scene_sha256:
        raise InputError(
            f"this is not the scene of {contacts.path}: its files differ ({SCENE_CONTENT})",
            path,
            SAME_SCENE,
        )
    return scene


def compiled_geoms(scene: LoadedScene) -> CompiledGeoms:
    """Ids and types of the geoms of a compiled scene, and the geom of each shape by path.

    Raises InputError for a scene that is not MJCF or URDF.
    """
    from collidecli.exporters.layouts.mujoco import CompiledGeoms
    from collidecli.importers.mujoco.scene import MjcfImport

    imported, *others = scene.imports
    if others:
        what = f"the worlds have {len(scene.imports)} scenes, and the export has the ids of one"
        raise InputError(
            what, scene.name, "compute each scene with collide run --demos, and export it"
        )
    if not isinstance(imported, MjcfImport):
        what = "only MJCF and URDF scenes have ids of geoms"
        raise InputError(what, scene.name, "give the MJCF or URDF scene of the run")
    model = imported.mj_model
    path = scene.model.shapes.path
    rows = zip(imported.shape_row.tolist(), imported.shape_count.tolist(), strict=True)
    return CompiledGeoms(
        name=[model.geom(geom).name for geom in range(model.ngeom)],
        type=model.geom_type,
        of_path={
            shape: geom
            for geom, (row, count) in enumerate(rows)
            for shape in path[row : row + count]
            if row >= 0
        },
    )
