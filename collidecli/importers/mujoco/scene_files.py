"""Files of an MJCF or URDF scene: relocation of assets, and the files that its hash covers."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence

import mujoco

from collidecli.importers.asset_map import AssetMap
from collidecli.importers.mujoco.left_out import partition_geoms
from collidecli.importers.mujoco.ros_packages import (
    FILE_URI,
    PACKAGE_URI,
    file_of_urdf,
    found_above,
    package_file,
)
from collidecli.importers.mujoco.xml_elements import elements_of, values_of
from collidecli.scene.options import SceneOptions
from collidecli.storage.regular_files import open_input, refuse_special_file

FILE_ELEMENTS = (b"include", b"model")
"""Elements that name another file of the scene."""


def relocate_assets(
    spec: mujoco.MjSpec,
    options: SceneOptions,
    folder: str | None,
    location: str,
    urdf: bool,
    included: Sequence[str] = (),
) -> list[str]:
    """Replaces the paths of a spec's asset files by `asset_map`, and those that MuJoCo does not
    find; returns warnings.

    A path is compared as written, then with the mesh or texture folder in front. The longest
    matching entry is used; an entry matches whole components of a path only. Without a match, a
    `package://` path of a mesh is that of `package_file`, and a path of a URDF that of
    `file_of_urdf`, if there is such a file. options: asset_map has entries `OLD=NEW`, package_path
    folders of packages. folder: base of the relative paths of a scene given as text; None for a
    file. included: files of the scene; a package is searched for beside each of them too, after the
    scene's folder, as an attached URDF names it from its own.
    """
    entries = AssetMap(options.asset_map, location)
    assets = (*spec.meshes, *spec.hfields, *spec.skins)
    scene_folder = os.path.dirname(location) if folder is None else folder
    folders = tuple(dict.fromkeys((scene_folder, *map(os.path.dirname, included))))

    def existing(file: str, mesh_folder: str) -> str | None:
        if urdf:
            of_urdf = file_of_urdf(file, scene_folder, mesh_folder)
        else:  # of an attached one, if it is absolute
            of_urdf = file_of_urdf(file, "", "") if file.startswith(FILE_URI) else None
        packages = (package_file(file, each, options.package_path) for each in folders)
        return next(filter(None, packages), of_urdf)

    found = {asset.file: existing(asset.file, asset.compiler.meshdir) for asset in assets}
    located = {file: existing for file, existing in found.items() if existing}
    # MuJoCo would also strip the folder of a mapped path; the original paths are therefore stripped
    # here.
    strip = bool(spec.strippath)
    spec.strippath = bool(spec.strippath) and not (entries or located)

    def relocated(file: str, asset_folder: str) -> str:
        if not file:
            return file
        kept = os.path.basename(file) if strip else file
        for written in dict.fromkeys((file, posixpath.join(asset_folder, kept))):
            new = entries.replaced(written)
            if new is not None:
                return new
        if file in located:
            return located[file]
        if entries or located:
            file = kept
        return (
            file
            if folder is None or PACKAGE_URI.fullmatch(file)
            else os.path.join(folder, asset_folder, file)
        )

    _rename_files(spec, relocated)
    above = [] if not urdf else found_above(located, scene_folder)
    return [*entries.warnings(), *above]


def _rename_files(spec: mujoco.MjSpec, renamed: Callable[[str, str], str]) -> None:
    """Replaces the path of each asset file. renamed: of a path and the folder of its kind."""
    for asset in (*spec.meshes, *spec.hfields, *spec.skins):
        asset.file = renamed(asset.file, asset.compiler.meshdir)
    for texture in spec.textures:
        texture.file = renamed(texture.file, texture.compiler.texturedir)
        for side, file in enumerate(texture.cubefiles):
            texture.cubefiles[side] = renamed(file, texture.compiler.texturedir)


def shape_asset_files(spec: mujoco.MjSpec, included: Sequence[str]) -> list[str]:
    """Paths of the existing asset files of colliding geoms.

    included: files of the scene.
    """
    meshes = {mesh.name: mesh for mesh in spec.meshes}
    fields = {field.name: field for field in spec.hfields}
    files: list[str] = []
    if not meshes and not fields:
        return files
    for geom in partition_geoms(spec)[0]:
        for asset in (meshes.get(geom.meshname), fields.get(geom.hfieldname)):
            if asset is not None and asset.file:
                *tried, last = asset_paths(spec, asset.file, asset.compiler.meshdir, included)
                existing = [path for path in tried if os.path.isfile(path)]
                files += existing or [path for path in [last] if os.path.isfile(path)]
    return list(dict.fromkeys(files))


def asset_paths(
    spec: mujoco.MjSpec, file: str, asset_folder: str, included: Sequence[str]
) -> list[str]:
    """The paths at which MuJoCo may search an asset's file, the last one in the work folder.

    asset_folder: that of meshes, or of textures. included: files of the scene. The assets of an
    attached scene are in its folder, which the spec does not contain; the folder of each file is
    therefore tried. Without a mesh folder, assets of a scene attached by a relative path are
    relative to the work folder.
    """
    name = os.path.basename(file) if spec.strippath else file
    folders = dict.fromkeys((spec.modelfiledir, *map(os.path.dirname, included)))
    tried = [os.path.abspath(os.path.join(folder, asset_folder, name)) for folder in folders]
    return [*tried, os.path.abspath(name)]


def included_files(path: str) -> list[str]:
    """A scene's own file and all files that it includes or attaches, directly or indirectly, each
    once.

    MuJoCo does not report these names. They are searched in the text, in both folders that MuJoCo
    may use: the list can contain files that are not read, and contains all that are read.
    """
    own = os.path.abspath(path)
    named: dict[str, list[tuple[str, bool]]] = {}
    # Depth first. A file that several scenes include is searched for each: names in it lead to the
    # folders of each.
    seen: set[tuple[str, str]] = set()
    pending = [(own, own)]
    while pending:
        use = pending.pop()
        if use in seen:
            continue
        seen.add(use)
        path, scene = use
        if path not in named:
            with open_input(path) as file:
                named[path] = list(dict.fromkeys(_names(file.read())))
        found = [
            (other, scene if is_include else other)
            for name, is_include in named[path]
            for other in files_named(name, is_include, path, scene)
        ]
        for other, _ in found:
            refuse_special_file(other, path)
        pending += [use for use in reversed(found) if os.path.isfile(use[0])]
    return list(named)


def files_named(name: str, is_include: bool, path: str, scene: str) -> list[str]:
    """Paths at which MuJoCo searches a file that another one names, in its order.

    is_include: by `<include>`, otherwise by `<model>`. path: of the file with the name. scene: of
    the file that includes it, directly or not, and is no fragment itself. A name in a file that is
    included leads from the folder of the scene, then from its own; one of an attached scene from
    its own first.
    """
    folders = [os.path.dirname(scene), os.path.dirname(path)]
    return [
        os.path.normpath(os.path.join(folder, name))
        for folder in dict.fromkeys(folders if is_include else reversed(folders))
    ]


def names_other_files(text: bytes) -> bool:
    """Whether a scene's text includes or attaches another file."""
    return next(_names(text), None) is not None


def file_of(values: Mapping[str, str]) -> str:
    """The file that the attributes of an element name; "" without one."""
    name = values.get("file", "")
    return "" if "\0" in name else name


def _names(text: bytes) -> Iterator[tuple[str, bool]]:
    """Names of other files in a text, with whether each is included."""
    for element in elements_of(text):
        if element.name in FILE_ELEMENTS and not element.is_end:
            name = file_of(values_of(element.attributes))
            if name:
                yield name, element.name == b"include"
