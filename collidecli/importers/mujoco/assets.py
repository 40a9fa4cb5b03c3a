"""Files that an MJCF or URDF scene is made of: where its assets lie, and which files its hash covers."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import html
import os
import posixpath
import re
from collections.abc import Iterator, Sequence

import mujoco

from collidecli.errors import InputError
from collidecli.importers.mujoco.strip import parted_geoms

_MENTION = re.compile(rb"""<(?:include|model)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_FILE = re.compile(rb"""\bfile\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def relocate_assets(spec: mujoco.MjSpec, asset_map: tuple[str, ...], folder: str | None, place: str) -> list[str]:
    """Points a spec's asset files to where `asset_map` says that they are; returns warnings.

    A path is compared as it is written, then with the mesh or texture folder before it. The longest entry that fits
    counts, and fits whole parts of a path only.

    asset_map: each `OLD=NEW`. folder: where relative paths of a scene that is no file begin; None for a file.
    """
    entries = sorted((_entry(text, place) for text in asset_map), key=lambda entry: -len(entry[0]))
    used: set[str] = set()
    # MuJoCo would strip the folder of a mapped path too, so the stripping is done here.
    strip, spec.strippath = bool(spec.strippath), bool(spec.strippath) and not entries

    def relocated(file: str, asset_folder: str) -> str:
        if not file:
            return file
        kept = os.path.basename(file) if strip else file
        for written in dict.fromkeys((file, posixpath.join(asset_folder, kept))):
            for old, new in entries:
                rest = _under(written, old)
                if rest is not None:
                    used.add(old)
                    return os.path.join(new, rest) if rest else new
        if entries:
            file = kept
        return file if folder is None else os.path.join(folder, asset_folder, file)

    for asset in (*spec.meshes, *spec.hfields, *spec.skins):
        asset.file = relocated(asset.file, asset.compiler.meshdir)
    for texture in spec.textures:
        texture.file = relocated(texture.file, texture.compiler.texturedir)
        for side, file in enumerate(texture.cubefiles):
            texture.cubefiles[side] = relocated(file, texture.compiler.texturedir)
    return [f"asset map: no asset's path begins with '{old}'" for old, _ in entries if old not in used]


def _entry(text: str, place: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"the asset map has '{text}'", place, "write OLD=NEW, the start of a path and its replacement")
    return old, os.path.abspath(new)


def _under(path: str, old: str) -> str | None:
    """What follows `old` in a path that begins with it at a part's end; else None."""
    # MuJoCo's parser writes package:// with one slash in MJCF, and leaves it be in URDF.
    path, old = (re.sub("/+", "/", text) for text in (path, old))
    if not path.startswith(old):
        return None
    rest = path[len(old) :]
    return rest.lstrip("/\\") if not rest or old[-1] in "/\\" or rest[0] in "/\\" else None


def shape_asset_files(spec: mujoco.MjSpec, included: Sequence[str]) -> list[str]:
    """Paths of asset files that the shapes of colliding geoms are made from, as far as they are there.

    included: files of the scene. An attached scene's assets lie beside it, but its folder is not said: so the folder
    of each is tried.
    """
    meshes = {mesh.name: mesh for mesh in spec.meshes}
    fields = {field.name: field for field in spec.hfields}
    folders = dict.fromkeys((spec.modelfiledir, *map(os.path.dirname, included)))
    found: list[str] = []
    for geom in parted_geoms(spec)[0]:
        for asset in (meshes.get(geom.meshname), fields.get(geom.hfieldname)):
            if asset is not None and asset.file:
                name = os.path.basename(asset.file) if spec.strippath else asset.file
                tried = [os.path.abspath(os.path.join(folder, asset.compiler.meshdir, name)) for folder in folders]
                there = [path for path in tried if os.path.isfile(path)]
                # Without a mesh folder, what is attached to a scene at a relative path is named from where we stand.
                found += there or [path for path in [os.path.abspath(name)] if os.path.isfile(path)]
    return list(dict.fromkeys(found))


def included_files(path: str) -> list[str]:
    """A scene's own file and those that it includes or attaches, directly or not, each once.

    MuJoCo reports none of these names, so they are looked for in the text, in every folder that MuJoCo may take them
    from: what is listed can be more than is read (an include within a comment), never less.
    """
    found: dict[str, None] = {}
    _collect(os.path.abspath(path), (), found)
    return list(found)


def names_other_files(text: bytes) -> bool:
    """Whether a scene's text includes or attaches another file."""
    return next(_mentions(text), None) is not None


def _collect(path: str, folders: tuple[str, ...], found: dict[str, None]) -> None:
    """Adds a file and, depth first, what it mentions. folders: of the files that led here, the main one's first."""
    waiting = [(path, folders)]
    while waiting:
        path, folders = waiting.pop()
        if path in found:
            continue
        found[path] = None
        with open(path, "rb") as file:
            text = file.read()
        folders = tuple(dict.fromkeys((*folders, os.path.dirname(path))))
        named = [os.path.normpath(os.path.join(folder, name)) for name in _mentions(text) for folder in folders]
        for other in named:
            if os.path.exists(other) and not os.path.isfile(other) and not os.path.isdir(other):
                # MuJoCo would wait for what a pipe or a device has to say.
                raise InputError(f"includes {other}, which is no file", path, "include a file")
        waiting += [(other, folders) for other in reversed(named) if os.path.isfile(other)]


def _mentions(text: bytes) -> Iterator[str]:
    for element in _MENTION.finditer(text):
        named = _FILE.search(element[1])
        if named is not None:
            name = html.unescape((named[1] or named[2] or b"").decode("utf-8", "replace"))
            if name and "\0" not in name:
                yield name
