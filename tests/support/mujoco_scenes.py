"""A small MJCF scene written out in a test, and what the door makes of it."""

from __future__ import annotations

from pathlib import Path

from collidecli.files.mujoco.scene import MjcfImport, add_mjcf
from collidecli.model.builder import ModelBuilder
from collidecli.model.model import Model


def load(folder: Path, text: str) -> tuple[MjcfImport, Model]:
    path = folder / "scene.xml"
    path.write_text(text)
    builder = ModelBuilder()
    scene = add_mjcf(builder, path)
    return scene, builder.finalize()
