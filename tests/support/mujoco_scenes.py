"""A small MJCF scene written out in a test, and what the importer makes of it."""

from __future__ import annotations

from pathlib import Path

from collidecli.importers.mujoco.scene import MjcfImport, add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model


def load(folder: Path, text: str) -> tuple[MjcfImport, Model]:
    path = folder / "scene.xml"
    path.write_text(text)
    builder = ModelBuilder()
    scene = add_mjcf(builder, path)
    return scene, builder.finalize()
