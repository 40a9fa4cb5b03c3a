"""The scene of a contact set, for exports with ids of geoms and for USD layers over the scene."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from collidecli.commands.scenes import MUJOCO_ENDINGS, USD_ENDINGS, LoadedScene, load_scene
from collidecli.errors import InputError
from collidecli.scene.run_options import SceneOptions
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.exporters.layouts.mujoco import CompiledGeoms
    from collidecli.exporters.usd_layer import SceneLayers

SAME_SCENE = "give the scene as it was at the run, with every file that it refers to"


def loaded_scene(contacts: ContactSet, path: str) -> LoadedScene:
    """The scene at `path`, read with the options of the run. Raises InputError for another scene than the run's."""
    if " " in contacts.scene and os.path.basename(path) != contacts.scene:
        raise InputError(
            f"the contact set was made of several scenes: {contacts.scene}", contacts.path, "run this one by itself"
        )
    scene = load_scene((path,), None, options=_options(contacts.config, contacts.path))
    if scene.sha256 != contacts.scene_sha256:
        raise InputError(f"this is not the scene of {contacts.path}: its files differ", path, SAME_SCENE)
    return scene


def _options(config: dict[str, Any], where: str) -> SceneOptions:
    """Scene options of the run, without its motion layer."""
    found: dict[str, Any] = {}
    for each in fields(SceneOptions):
        if isinstance(each.default, bool):  # affects no contact and is not recorded
            continue
        value = config.get(each.name, each.default)
        value = tuple(value) if isinstance(value, list) else value
        texts = value if isinstance(each.default, tuple) else (value,)
        if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
            raise InputError(f"the option {each.name} is {value!r}", f"{where}: config", "make the contact set again")
        found[each.name] = value
    return SceneOptions(**{**found, "motion_layer": ""})


def compiled_geoms(scene: LoadedScene) -> CompiledGeoms:
    """Ids and types of the geoms of a compiled scene, and the geom of each shape by path.

    Raises InputError for a scene that is not MJCF or URDF.
    """
    from collidecli.exporters.layouts.mujoco import CompiledGeoms
    from collidecli.importers.mujoco.scene import MjcfImport

    (imported,) = scene.imports
    if not isinstance(imported, MjcfImport):
        raise InputError(
            "only MJCF and URDF scenes have ids of geoms", scene.name, "give the MJCF or URDF scene of the run"
        )
    model = imported.mj_model
    path = scene.model.shapes.path
    rows = enumerate(imported.shape_row.tolist())
    return CompiledGeoms(
        name=[model.geom(geom).name for geom in range(model.ngeom)],
        type=model.geom_type,
        of_path={path[row]: geom for geom, row in rows if row >= 0},
    )


def layers_under(contacts: ContactSet, path: str, output: str) -> SceneLayers:
    """Layers below a USD layer of the contacts: those of the scene at `path`, or none if the scene is not USD.

    Raises InputError for a missing USD scene, and for a scene that is not USD.
    """
    from collidecli.exporters.usd_layer import SceneLayers, layers_of
    from collidecli.importers.usd.scene import UsdImport

    ending = Path(contacts.scene).suffix.lower()
    if not path:
        if ending in USD_ENDINGS:
            raise InputError(
                f"a layer over {contacts.scene} needs the scene's units and path",
                contacts.path,
                "give the scene of the run with --scene",
            )
        return SceneLayers(up_axis=contacts.up_axis)
    if Path(path).suffix.lower() in MUJOCO_ENDINGS:
        raise InputError("a USD layer needs a USD scene", path, "leave --scene out to write a layer without a scene")
    (imported,) = loaded_scene(contacts, path).imports
    assert isinstance(imported, UsdImport)  # scenes have no other extensions
    return layers_of(imported.stage, (path,), output, imported.metres_per_unit)
