"""The scene that a contact set was made of, found again: for ids of geoms, and for a layer to lie over."""

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
    """The scene at `path`, read as the run read it. Raises InputError for another than the contact set was made of."""
    if " " in contacts.scene and os.path.basename(path) != contacts.scene:
        raise InputError(
            f"the contact set was made of several scenes: {contacts.scene}", contacts.path, "run this one by itself"
        )
    scene = load_scene((path,), None, options=_options(contacts.config, contacts.path))
    if scene.sha256 != contacts.scene_sha256:
        raise InputError(f"this is not the scene of {contacts.path}: its files differ", path, SAME_SCENE)
    return scene


def _options(config: dict[str, Any], where: str) -> SceneOptions:
    """How the run was told to read the scene; a motion that was laid over it is no part of it."""
    found: dict[str, Any] = {}
    for each in fields(SceneOptions):
        if isinstance(each.default, bool):  # it changes no contact, and is not kept
            continue
        value = config.get(each.name, each.default)
        value = tuple(value) if isinstance(value, list) else value
        texts = value if isinstance(each.default, tuple) else (value,)
        if not isinstance(texts, tuple) or not all(isinstance(text, str) for text in texts):
            raise InputError(f"the option {each.name} is {value!r}", f"{where}: config", "make the contact set again")
        found[each.name] = value
    return SceneOptions(**{**found, "motion_layer": ""})


def compiled_geoms(scene: LoadedScene) -> CompiledGeoms:
    """Ids and types of a compiled scene's geoms, and the shapes that stand for them, by path.

    Raises InputError for a scene that MuJoCo did not compile.
    """
    from collidecli.exporters.layouts.mujoco import CompiledGeoms
    from collidecli.importers.mujoco.scene import MjcfImport

    (imported,) = scene.imports
    if not isinstance(imported, MjcfImport):
        raise InputError("only MuJoCo's scenes have ids of geoms", scene.name, "give the MJCF or URDF scene of the run")
    model = imported.mj_model
    path = scene.model.shapes.path
    rows = enumerate(imported.shape_row.tolist())
    return CompiledGeoms(
        name=[model.geom(geom).name for geom in range(model.ngeom)],
        type=model.geom_type,
        of_path={path[row]: geom for geom, row in rows if row >= 0},
    )


def layers_under(contacts: ContactSet, path: str, output: str) -> SceneLayers:
    """What a USD layer of the contacts lies over: the scene at `path`, or nothing where it is no USD scene.

    Raises InputError for a USD scene that is not given, and one given that a layer cannot lie over.
    """
    from collidecli.exporters.usd_layer import SceneLayers, layers_of
    from collidecli.importers.usd.scene import UsdImport

    ending = Path(contacts.scene).suffix.lower()
    if not path:
        if ending in USD_ENDINGS:
            raise InputError(
                f"a layer over {contacts.scene} needs the scene's units and place",
                contacts.path,
                "give the scene of the run with --scene",
            )
        return SceneLayers(up_axis=contacts.up_axis)
    if Path(path).suffix.lower() in MUJOCO_ENDINGS:
        raise InputError("a USD layer lies over USD scenes only", path, "leave --scene out: the layer stands alone")
    (imported,) = loaded_scene(contacts, path).imports
    assert isinstance(imported, UsdImport)  # scenes have no other endings
    return layers_of(imported.stage, (path,), output, imported.metres_per_unit)
