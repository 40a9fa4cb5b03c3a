"""Scenes from code: a builder of models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from collidecli.motions.scenes import MUJOCO_ENDINGS, USD_ENDINGS
from collidecli.python.contacts import check_extension, entry_texts
from collidecli.scene import builder as model_builder
from collidecli.scene.arguments import python_methods
from collidecli.scene.mesh_choices import mesh_choices
from collidecli.scene.options import SceneOptions
from collidecli.scene.patterns import listed
from collidecli.scene.shape_switches import refuse_switches

if TYPE_CHECKING:
    from collidecli.importers.mujoco.scene import MjcfImport
    from collidecli.importers.usd.scene import UsdImport


@python_methods
class ModelBuilder(model_builder.ModelBuilder):
    """A builder that also adds scene files."""

    def add_usd(
        self,
        path: str | os.PathLike[str],
        variants: Sequence[str] = (),
        environments: str = "",
        strict_meshes: bool = False,
        asset_map: Mapping[str, str] | str | Sequence[str] = (),
        self_collisions: str = "",
        mjcf_margin: str = "",
        visuals_as_colliders: str | Sequence[str] = (),
        meshes: Mapping[str, str] | str | Sequence[str] = (),
    ) -> UsdImport:
        """Adds an OpenUSD stage; returns the import of its prims, and its animation as
        `motion(model)`.

        variants: selected variants, each "prim:set=value". environments: pattern of the prims that
        are one world each; "" is the usual names, "none" loads the stage as one world.
        strict_meshes: refuse triangle meshes that need repairs. asset_map: the prefix of an asset's
        path and its replacement, as {"OLD": "NEW"} or ["OLD=NEW"]. self_collisions: whether bodies
        of one articulation may touch, "on" or "off"; "" is as authored. mjcf_margin: meaning of
        mjc:margin and mjc:gap, "included" or "legacy", as of `add_mjcf`. visuals_as_colliders:
        patterns of visual meshes and shapes, or of their bodies, that collide too; "*" is all.
        meshes: how meshes collide in place of their approximations, as of `add_mjcf`. Raises
        InputError for a file that is not a readable stage, and for content that a model cannot
        represent.
        """
        from collidecli.importers.usd.scene import add_usd

        check_extension(path, MUJOCO_ENDINGS, "MJCF or URDF", "add_mjcf")
        options = SceneOptions(
            tuple(variants),
            environments,
            strict_meshes=strict_meshes,
            asset_map=entry_texts(asset_map),
            self_collisions=self_collisions,
            mjcf_margin=mjcf_margin,
            visuals_as_colliders=listed(visuals_as_colliders),
            meshes=entry_texts(meshes),
        )
        imported = add_usd(self, os.fspath(path), options)
        refuse_switches(list(imported.switched), imported.file, "a model has no frames")
        mesh_choices(options.meshes).check(imported.meshes)
        return imported

    def add_mjcf(
        self,
        path: str | os.PathLike[str],
        asset_map: Mapping[str, str] | str | Sequence[str] = (),
        disabled_pairs: str | os.PathLike[str] = "",
        floating_base: bool = False,
        ground: bool = False,
        self_collisions: str = "",
        mjcf_margin: str = "",
        visuals_as_colliders: str | Sequence[str] = (),
        meshes: Mapping[str, str] | str | Sequence[str] = (),
        strict_meshes: bool = False,
    ) -> MjcfImport:
        """Adds an MJCF or URDF scene; returns the import of its bodies and geoms, and its keyframes
        as `motion(model)`.

        asset_map: the prefix of an asset's path and its replacement, as {"OLD": "NEW"} or
        ["OLD=NEW"]. disabled_pairs: an SRDF file. floating_base: add a free joint to the root link
        of a URDF. ground: add a static plane at z = 0. self_collisions: whether bodies of one
        articulation may touch, "on" or "off"; "" is as authored. mjcf_margin: meaning of margin and
        gap, "included", as since MuJoCo 3.9, or "legacy", as before; "" is the first with a note
        where the file may mean the second. visuals_as_colliders: patterns of visual meshes and
        shapes, or of their bodies, that collide too; "*" is all. meshes: how meshes collide,
        {"PATTERN": KIND} or ["PATTERN=KIND"] with the kinds "exact", "hull", "parts", "sdf" and
        "sdf:RESOLUTION"; the last pattern that matches a shape or its body counts. strict_meshes:
        refuse triangle meshes that need repairs. Raises InputError for a file that MuJoCo cannot
        compile, for content that a model cannot represent, and for a pattern of `meshes` that
        matches no mesh.
        """
        from collidecli.importers.mujoco.scene import add_mjcf

        check_extension(path, USD_ENDINGS, "OpenUSD", "add_usd")
        options = SceneOptions(
            asset_map=entry_texts(asset_map),
            disabled_pairs=os.fspath(disabled_pairs),
            floating_base=floating_base,
            ground=ground,
            self_collisions=self_collisions,
            mjcf_margin=mjcf_margin,
            visuals_as_colliders=listed(visuals_as_colliders),
            meshes=entry_texts(meshes),
            strict_meshes=strict_meshes,
        )
        imported = add_mjcf(self, path, options)
        mesh_choices(options.meshes).check(imported.meshes)
        return imported
