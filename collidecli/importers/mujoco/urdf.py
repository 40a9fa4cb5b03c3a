"""Files of `package://` paths, which ROS resolves by the environment."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.scene_import import AssetMap
from collidecli.scene.options import GROUND, SceneOptions

_PACKAGE = re.compile(r"package:/+([^/]+)/+(.+)")
"""MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF."""


def package_file(path: str, folder: str, folders: Sequence[str] = ()) -> str | None:
    """Absolute path of the existing file that a `package://NAME/...` path names; None for another path or no file.

    A package NAME is a folder of that name in one of `folders`, in a folder of ROS_PACKAGE_PATH or in `share` of a
    prefix of AMENT_PREFIX_PATH, or such a folder itself; then the same for `folder`, the scene's, and its parents.
    """
    named = _PACKAGE.fullmatch(path)
    if named is None:
        return None
    name, rest = named.groups()
    for root in (*folders, *_roots(folder)):
        root = root.rstrip(os.sep)
        for package in (os.path.join(root, name), root):
            candidate = os.path.join(package, rest)
            if os.path.basename(package) == name and os.path.isfile(candidate):
                return os.path.abspath(candidate)
    return None


def _roots(folder: str) -> Iterator[str]:
    yield from _entries("ROS_PACKAGE_PATH")
    for prefix in _entries("AMENT_PREFIX_PATH"):
        yield os.path.join(prefix, "share")
    scene = Path(os.path.abspath(folder))
    yield from map(str, (scene, *scene.parents))


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


# Removal of elements that affect no contact, for scenes that MuJoCo does not compile completely, and of textures.

_GEOM = mujoco.mjtGeom
_REPLACEMENT_RADIUS = 0.01
_FILE_TYPES = (_GEOM.mjGEOM_MESH, _GEOM.mjGEOM_HFIELD, _GEOM.mjGEOM_SDF)


def shrink_textures(spec: mujoco.MjSpec) -> None:
    """Sets the size of procedural textures to one pixel: MuJoCo takes a tenth of a second to make a usual sky.

    An invalid size stays, so that MuJoCo reports it.
    """
    for texture in spec.textures:
        if texture.builtin != mujoco.mjtBuiltin.mjBUILTIN_NONE:
            texture.width, texture.height = min(texture.width, 1), min(texture.height, 1)


def partition_geoms(spec: mujoco.MjSpec) -> tuple[list, list]:
    """Geoms that can collide by their masks or a <pair>, and the other (visual) geoms."""
    paired = {name for pair in spec.pairs for name in (pair.geomname1, pair.geomname2)}
    colliding, visual = [], []
    for geom in spec.geoms:
        collides = geom.contype or geom.conaffinity or (geom.name and geom.name in paired)
        (colliding if collides else visual).append(geom)
    return colliding, visual


def drop_wrong_keys(spec: mujoco.MjSpec, mj_model: mujoco.MjModel) -> int:
    """Deletes keyframes whose sizes are not the model's; returns their number."""
    count = 0
    for key in list(spec.keys):
        sizes = {
            "qpos": mj_model.nq,
            "qvel": mj_model.nv,
            "act": mj_model.na,
            "ctrl": mj_model.nu,
            "mpos": 3 * mj_model.nmocap,
            "mquat": 4 * mj_model.nmocap,
        }
        if any(np.size(getattr(key, name)) not in (0, size) for name, size in sizes.items()):
            spec.delete(key)
            count += 1
    return count


def _delete(*lists: str) -> Callable[[mujoco.MjSpec], int]:
    def strip(spec: mujoco.MjSpec) -> int:
        elements = [element for name in lists for element in getattr(spec, name)]
        for element in elements:
            spec.delete(element)
        return len(elements)

    return strip


def _strip_appearance(spec: mujoco.MjSpec) -> int:
    references = 0
    for element in (*spec.geoms, *spec.sites, *spec.skins, *spec.tendons, *spec.flexes, *spec.meshes):
        if element.material:
            element.material = ""
            references += 1
    return _delete("textures", "materials")(spec) or references


def _strip_actuators(spec: mujoco.MjSpec) -> int:
    for key in spec.keys:
        key.ctrl, key.act = [], []
    return _delete("actuators")(spec)


def _replace_visual_meshes(spec: mujoco.MjSpec) -> int:
    """Replaces visual geoms that use an asset by small spheres, and deletes assets that are then unused.

    The geoms stay in the scene, so that geom numbers, which are in the names of unnamed shapes, do not change. The
    importer leaves them out of the model later, as all visual geoms.
    """
    if _frames_follow_inertia(spec):
        return 0
    visual = [g for g in partition_geoms(spec)[1] if g.meshname or g.type in _FILE_TYPES]
    for geom in (*visual, *(site for site in spec.sites if site.meshname)):
        geom.type, geom.meshname, geom.size = _GEOM.mjGEOM_SPHERE, "", [_REPLACEMENT_RADIUS] * 3
    for geom in visual:
        geom.hfieldname, geom.fromto = "", [np.nan] * 6
    used = {geom.meshname for geom in spec.geoms}, {geom.hfieldname for geom in spec.geoms}
    unused = [
        asset
        for assets, names in zip((spec.meshes, spec.hfields), used, strict=True)
        for asset in assets
        if asset.name not in names
    ]
    for asset in unused:
        spec.delete(asset)
    return max(len(visual), len(unused))


def _replace_inertias(spec: mujoco.MjSpec) -> int:
    if _frames_follow_inertia(spec):
        return 0
    bodies = spec.bodies[1:]
    spec.compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    for body in bodies:
        body.explicitinertial, body.mass, body.inertia = True, 1.0, [1.0, 1.0, 1.0]
        body.fullinertia, body.ipos, body.iquat = [np.nan] * 6, [0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]
        body.ialt.type = mujoco.mjtOrientation.mjORIENTATION_QUAT
    return len(bodies)


def _free_joints(spec: mujoco.MjSpec) -> int:
    limited = [joint for joint in spec.joints if np.any(joint.range) or np.any(joint.actfrcrange)]
    for joint in limited:
        joint.limited = joint.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
        joint.range = joint.actfrcrange = [0.0, 0.0]
    return len(limited)


def _free_sizes(spec: mujoco.MjSpec) -> int:
    given = [name for name in ("memory", "nstack", "njmax", "nconmax") if getattr(spec, name) != -1]
    for name in given:
        setattr(spec, name, -1)
    return len(given)


def _frames_follow_inertia(spec: mujoco.MjSpec) -> bool:
    """Whether a free body's frame, and with it the meaning of qpos, depends on its inertia."""
    align = mujoco.mjtAlignFree
    free = [joint for joint in spec.joints if joint.type == mujoco.mjtJoint.mjJNT_FREE]
    aligned = {int(align.mjALIGNFREE_TRUE)}
    if spec.compiler.alignfree:
        aligned.add(int(align.mjALIGNFREE_AUTO))
    return any(int(joint.align) in aligned for joint in free)


KEYFRAMES = "keyframes"

FAMILIES: dict[str, Callable[[mujoco.MjSpec], int]] = {
    "textures and materials": _strip_appearance,
    "skins": _delete("skins"),
    "visual meshes": _replace_visual_meshes,
    "inertias": _replace_inertias,
    "joint limits": _free_joints,
    "lights and cameras": _delete("lights", "cameras"),
    "sizes of memory": _free_sizes,
    "custom numbers and texts": _delete("numerics", "texts"),
    "tendons": _delete("tendons"),
    "equalities": _delete("equalities"),
    "actuators": _strip_actuators,
    "sensors": _delete("sensors"),
    "tuples": _delete("tuples"),
    KEYFRAMES: _delete("keys"),
}
"""Families of elements that affect no contact, in the order in which they are restored: each depends on those before it
alone. A family's function removes its elements from a spec, and returns their number."""


# Files of an MJCF or URDF scene: relocation of assets, and the files that its hash covers.

_MENTION = re.compile(rb"""<(?:include|model)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_FILE = re.compile(rb"""\bfile\s*=\s*(?:"([^"]*)"|'([^']*)')""")


def relocate_assets(spec: mujoco.MjSpec, options: SceneOptions, folder: str | None, location: str) -> list[str]:
    """Replaces the paths of a spec's asset files by `asset_map`, and `package://` paths; returns warnings.

    A path is compared as written, then with the mesh or texture folder in front. The longest matching entry is used; an
    entry matches whole components of a path only. Without a match, a `package://` path of a mesh is that of
    `package_file`, if there is such a file. options: asset_map has entries `OLD=NEW`, package_path folders of packages.
    folder: base of the relative paths of a scene given as text; None for a file.
    """
    entries = AssetMap(options.asset_map, location)
    assets = (*spec.meshes, *spec.hfields, *spec.skins)
    scene_folder = os.path.dirname(location) if folder is None else folder
    resolved = {asset.file: package_file(asset.file, scene_folder, options.package_path) for asset in assets}
    packaged = {file: asset_file for file, asset_file in resolved.items() if asset_file}
    # MuJoCo would also strip the folder of a mapped path; the original paths are therefore stripped here.
    strip, spec.strippath = bool(spec.strippath), bool(spec.strippath) and not (entries or packaged)

    def relocated(file: str, asset_folder: str) -> str:
        if not file:
            return file
        kept = os.path.basename(file) if strip else file
        for written in dict.fromkeys((file, posixpath.join(asset_folder, kept))):
            new = entries.replaced(written)
            if new is not None:
                return new
        if file in packaged:
            return packaged[file]
        if entries or packaged:
            file = kept
        return file if folder is None or _PACKAGE.fullmatch(file) else os.path.join(folder, asset_folder, file)

    for asset in assets:
        asset.file = relocated(asset.file, asset.compiler.meshdir)
    for texture in spec.textures:
        texture.file = relocated(texture.file, texture.compiler.texturedir)
        for side, file in enumerate(texture.cubefiles):
            texture.cubefiles[side] = relocated(file, texture.compiler.texturedir)
    return entries.warnings()


def shape_asset_files(spec: mujoco.MjSpec, included: Sequence[str]) -> list[str]:
    """Paths of the existing asset files of colliding geoms.

    included: files of the scene. The assets of an attached scene are in its folder, which the spec does not contain;
    the folder of each file is therefore tried.
    """
    meshes = {mesh.name: mesh for mesh in spec.meshes}
    fields = {field.name: field for field in spec.hfields}
    folders = dict.fromkeys((spec.modelfiledir, *map(os.path.dirname, included)))
    files: list[str] = []
    for geom in partition_geoms(spec)[0]:
        for asset in (meshes.get(geom.meshname), fields.get(geom.hfieldname)):
            if asset is not None and asset.file:
                name = os.path.basename(asset.file) if spec.strippath else asset.file
                tried = [os.path.abspath(os.path.join(folder, asset.compiler.meshdir, name)) for folder in folders]
                existing = [path for path in tried if os.path.isfile(path)]
                # Without a mesh folder, assets of a scene attached by a relative path are relative to the work folder.
                files += existing or [path for path in [os.path.abspath(name)] if os.path.isfile(path)]
    return list(dict.fromkeys(files))


def included_files(path: str) -> list[str]:
    """A scene's own file and all files that it includes or attaches, directly or indirectly, each once.

    MuJoCo does not report these names. They are searched in the text, in every folder that MuJoCo may use: the list can
    contain files that are not read (an include in a comment), and contains all that are read.
    """
    files: dict[str, None] = {}
    # Depth first; with each file the folders of the files that include it, the main one's first.
    pending: list[tuple[str, tuple[str, ...]]] = [(os.path.abspath(path), ())]
    while pending:
        path, folders = pending.pop()
        if path in files:
            continue
        files[path] = None
        with open(path, "rb") as file:
            text = file.read()
        folders = tuple(dict.fromkeys((*folders, os.path.dirname(path))))
        named = [os.path.normpath(os.path.join(folder, name)) for name in _mentions(text) for folder in folders]
        for other in named:
            if os.path.exists(other) and not os.path.isfile(other) and not os.path.isdir(other):
                # MuJoCo would block on a pipe or a device.
                raise InputError(f"includes {other}, which is not a regular file", path, "include a file")
        pending += [(other, folders) for other in reversed(named) if os.path.isfile(other)]
    return list(files)


def names_other_files(text: bytes) -> bool:
    """Whether a scene's text includes or attaches another file."""
    return next(_mentions(text), None) is not None


def _mentions(text: bytes) -> Iterator[str]:
    for element in _MENTION.finditer(text):
        named = _FILE.search(element[1])
        if named is not None:
            import html

            name = html.unescape((named[1] or named[2] or b"").decode("utf-8", "replace"))
            if name and "\0" not in name:
                yield name


# What options add to a parsed scene: a free joint of a URDF's root link, and a ground plane.

LEAST_MASS = 1e-6
"""MuJoCo refuses moving bodies without mass; masses affect no contact [kg, kg m²]."""


def add_floating_base(spec: mujoco.MjSpec, location: str, urdf: bool) -> None:
    """Adds a free joint to the root link of a URDF.

    Raises InputError for a scene that is not a URDF, a world with several links, and a root link that can move.
    """
    if not urdf:
        raise InputError("--floating-base is for URDF scenes", location, "give the root body a <freejoint/>")
    roots = spec.worldbody.bodies
    if len(roots) != 1:
        named = ", ".join(f"'{body.name}'" for body in roots[:5]) or "none"
        what = f"--floating-base needs one root link, and the world has {len(roots)}: {named}"
        raise InputError(what, location, "remove the option, or the other links")
    root = roots[0]
    if root.joints:
        raise InputError(f"the root link '{root.name}' can move already", location, "remove --floating-base")
    root.add_freejoint()
    spec.compiler.boundmass = max(spec.compiler.boundmass, LEAST_MASS)
    spec.compiler.boundinertia = max(spec.compiler.boundinertia, LEAST_MASS)


def add_ground(spec: mujoco.MjSpec, location: str) -> None:
    """Adds an infinite plane at z = 0 to the world. Raises InputError for a scene with a geom of its name."""
    if spec.geom(GROUND) is not None:
        raise InputError(f"the scene has a geom '{GROUND}' already", location, "remove --ground")
    spec.worldbody.add_geom(
        name=GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0], contype=1, conaffinity=1
    )
