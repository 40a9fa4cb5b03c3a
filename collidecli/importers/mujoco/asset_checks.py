"""Refusal of asset files that MuJoCo would wait for, or expand to excessive size."""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

import mujoco

from collidecli.errors import InputError
from collidecli.importers.mujoco.excessive_scenes import MOST_PIXELS
from collidecli.importers.mujoco.scene_files import asset_paths
from collidecli.storage.reading_limit import check_size
from collidecli.storage.regular_files import open_input, refuse_special_file

_PNG_START = b"\x89PNG\r\n\x1a\n"
_PNG_HEADER = struct.Struct(">8s4x4sII")
"""Signature, length of the first chunk, its name, width and height."""
_BYTES_PER_POINT = 10
"""Peak of MuJoCo's memory: the decoded image twice, and two copies of the heights as float32."""


def check_assets(spec: mujoco.MjSpec, included: Sequence[str], location: str) -> None:
    """Raises InputError for an asset file that is a pipe, a device or a socket, and for a PNG image
    of too many points, by its header.

    included: files of the scene. location: the scene, for messages.
    """
    for path in _assets(spec, included):
        refuse_special_file(path, location)
        if os.path.isfile(path):
            _check_image(path)


def _assets(spec: mujoco.MjSpec, included: Sequence[str]) -> list[str]:
    """Every path at which MuJoCo may search an asset of the scene."""
    of_meshes = [
        (asset.file, asset.compiler.meshdir) for asset in (*spec.meshes, *spec.hfields, *spec.skins)
    ]
    of_textures = [
        (file, texture.compiler.texturedir)
        for texture in spec.textures
        for file in (texture.file, *texture.cubefiles)
    ]
    paths = [
        path
        for file, folder in dict.fromkeys((*of_meshes, *of_textures))
        if file
        for path in asset_paths(spec, file, folder, included)
    ]
    return list(dict.fromkeys(paths))


def _check_image(path: str) -> None:
    with open_input(path) as file:
        start = file.read(_PNG_HEADER.size)
    if len(start) < _PNG_HEADER.size:
        return
    signature, chunk, width, height = _PNG_HEADER.unpack(start)
    if signature != _PNG_START or chunk != b"IHDR":
        return
    points = width * height
    if points > MOST_PIXELS:
        what = f"is an image of {width} x {height} points"
        raise InputError(what, path, f"at most {MOST_PIXELS:,} in all")
    check_size(_BYTES_PER_POINT * points, "the image", path, "give one with fewer points")
