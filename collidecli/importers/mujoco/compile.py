"""MJCF and URDF files to what MuJoCo compiles of them, by MuJoCo's own parser and compiler."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import os
import re
from collections.abc import Collection
from dataclasses import dataclass

import mujoco

from collidecli.errors import InputError
from collidecli.importers.mujoco.assets import included_files, names_other_files, relocate_assets, shape_asset_files
from collidecli.importers.mujoco.limits import refuse_vast_scene
from collidecli.importers.mujoco.messages import collected_messages
from collidecli.importers.mujoco.orientation import resolve_orientations
from collidecli.importers.mujoco.parsed_frames import restore_replicates, restore_urdf_origins
from collidecli.importers.mujoco.strip import FAMILIES, KEYFRAMES, Family, drop_wrong_keys, parted_geoms
from collidecli.importers.mujoco.urdf import is_urdf
from collidecli.scene.run_options import SceneOptions

_COMPILER_ERRORS = (ValueError, mujoco.FatalError, RuntimeError, MemoryError)
"""RuntimeError: what MuJoCo's binding makes of an exception of C++ that it does not know."""
_HEAD_BYTES = 1 << 16
"""In these the root element must begin for a URDF to be known as one."""


@dataclass(frozen=True)
class CompiledScene:
    """What MuJoCo made of a scene.

    place: the file, or what errors name. files: every file whose content may decide a contact; none for a scene that
    is text, apart from its assets. text: of a scene that is no file. urdf: the scene is one.
    warnings: MuJoCo's, and what was left out.
    """

    mj_model: mujoco.MjModel
    place: str
    files: tuple[str, ...]
    text: str
    urdf: bool
    warnings: tuple[str, ...]


def compile_mjcf(
    path: str | os.PathLike[str],
    xml: str | None = None,
    options: SceneOptions | None = None,
    *,
    folder: str = "",
    strict: bool = False,
) -> CompiledScene:
    """Compiles an MJCF or URDF scene. Links of a URDF stay bodies of their own (MuJoCo would fuse those at rest).

    A scene that MuJoCo does not compile loses what no contact depends on (`strip.FAMILIES`), as little as makes
    it compile; one warning names that, with MuJoCo's reasons.

    Args:
        path: the scene's file. With `xml`, what errors name.
        xml: the scene itself, in place of a file. folder: where relative paths of its assets begin.
        options: its asset map is used.
        strict: refuse what does not compile whole: for those that simulate.
    Raises:
        InputError: no such file, or MuJoCo cannot compile the scene, in its own words; a file of a mesh that collides
            is missing; a scene given as text includes another file.
    """
    place = os.fspath(path)
    if xml is None and not os.path.isfile(place):
        raise InputError("there is no such file", place, "give the path of an MJCF or URDF file")
    if xml is not None and names_other_files(xml.encode()):
        raise InputError(
            "the scene within includes or attaches other files", place, "give the scene with all its files by itself"
        )
    _refuse_vast(place, xml)
    attempts = _Attempts(place, xml, folder, options or SceneOptions())
    try:
        mj_model = _compiled(attempts, strict)
        bytes(mj_model.names).decode()
    except UnicodeDecodeError as error:
        # MuJoCo keeps names one after another, each with a zero at its end.
        shown = error.object[: error.start].rpartition(b"\0")[2] + error.object[error.start :].partition(b"\0")[0]
        raise InputError(f"a name or path in the scene is not UTF-8: {shown!r}", place, "write it in UTF-8") from error
    files = (*attempts.included, *attempts.shape_files)
    warnings = (*attempts.notes, *attempts.messages)
    return CompiledScene(mj_model, place, files, xml or "", attempts.urdf, warnings)


def _refuse_vast(place: str, xml: str | None) -> None:
    if xml is not None:
        refuse_vast_scene(xml.encode(), place)
        return
    for path in included_files(place):
        with open(path, "rb") as file:
            refuse_vast_scene(file.read(), place if os.path.samefile(path, place) else path)


def _compiled(attempts: _Attempts, strict: bool) -> mujoco.MjModel:
    try:
        return attempts.compile(())
    except _COMPILER_ERRORS as error:
        if strict:
            raise _refusal(attempts, error) from error
        return _stripped(attempts, error)


class _Attempts:
    """Parses one scene as often as it is asked to compile it with something left out.

    notes: warnings of ours. messages: MuJoCo's of the last compilation. included: the scene's file and those that it
    names, once it has compiled. shape_files: assets of colliding geoms. urdf: whether the scene is one.
    """

    def __init__(self, place: str, xml: str | None, folder: str, options: SceneOptions) -> None:
        self.place = place
        self.urdf = is_urdf(_head(place) if xml is None else xml.encode())
        self.notes: list[str] = []
        self.messages: list[str] = []
        self.included: list[str] = []
        self.shape_files: list[str] = []
        self._xml = xml
        self._asset_map = options.asset_map
        self._folder = None if xml is None else os.path.abspath(folder)

    def parse(self) -> mujoco.MjSpec:
        """The scene as a spec, its assets where the options put them. Raises InputError in MuJoCo's own words."""
        try:
            spec = _read(self.place) if self._xml is None else mujoco.MjSpec.from_string(self._xml)
        except _COMPILER_ERRORS as error:
            what = f"MuJoCo cannot compile the scene: {_words(error)}"
            raise InputError(what, self.place, "correct the file") from error
        self.notes[:] = relocate_assets(spec, self._asset_map, self._folder, self.place)
        self._restore(spec)
        if self.urdf:
            spec.compiler.fusestatic = False
        return spec

    def _restore(self, spec: mujoco.MjSpec) -> None:
        """Makes the spec's rotations those that every processor computes."""
        resolve_orientations(spec)
        if self.urdf:
            restore_urdf_origins(spec, _content(self.place) if self._xml is None else self._xml.encode())
        elif len(spec.frames):
            texts = map(_content, included_files(self.place)) if self._xml is None else [self._xml.encode()]
            restore_replicates(spec, texts)

    def compile(self, without: Collection[Family], drop_keys_of: mujoco.MjModel | None = None) -> mujoco.MjModel:
        """The model of the scene without some families, and without the keyframes that do not fit another model."""
        with collected_messages() as messages:
            spec = self.parse()
            for family in reversed(FAMILIES):
                if family in without:
                    family.strip(spec)
            if drop_keys_of is not None:
                drop_wrong_keys(spec, drop_keys_of)
            mj_model = spec.compile()
        self.messages = messages
        if self._xml is None and not self.included:
            self.included = included_files(self.place)
        self.shape_files = shape_asset_files(spec, self.included)
        return mj_model

    def counts(self) -> dict[str, int]:
        """How many elements of each family the scene has."""
        with collected_messages():
            spec = self.parse()
            return {family.name: family.strip(spec) for family in reversed(FAMILIES)}


def _stripped(attempts: _Attempts, error: Exception) -> mujoco.MjModel:
    """Compiles with all that can go left out, then puts back each family with which it still compiles."""
    count = attempts.counts()
    without = [family for family in FAMILIES if count[family.name]]
    try:
        mj_model = attempts.compile(without)
    except _COMPILER_ERRORS as essential:
        raise _refusal(attempts, essential) from error
    lost: list[str] = []
    for family in tuple(without):
        others = [other for other in without if other is not family]
        try:
            mj_model = attempts.compile(others)
        except _COMPILER_ERRORS as reason:
            number = count[family.name]
            if family.name == KEYFRAMES:
                mj_model, number = _with_fitting_keys(attempts, others, mj_model, number)
            lost.append(f"{family.name} ({number}; MuJoCo says: {_words(reason)})")
        else:
            without = others
    attempts.notes.append("left out, as contacts do not need it and it does not compile: " + "; ".join(lost))
    return mj_model


def _with_fitting_keys(
    attempts: _Attempts, without: Collection[Family], mj_model: mujoco.MjModel, number: int
) -> tuple[mujoco.MjModel, int]:
    """The model with those keyframes whose sizes are its own, if they compile, and how many are lost."""
    try:
        kept = attempts.compile(without, drop_keys_of=mj_model)
    except _COMPILER_ERRORS:
        return mj_model, number
    return kept, number - int(kept.nkey)


def _asset_root(file: str) -> str:
    """What --asset-map would say of a file: of ROS's, the package that it is in."""
    package = re.match(r"package://[^/]+", file)
    return f"{package[0]}=FOLDER" if package else "OLD=NEW"


def _refusal(attempts: _Attempts, error: Exception) -> InputError:
    """What is wrong with what contacts do need: a mesh that cannot be read or has no hull is named with its geom."""
    words = _words(error)
    with collected_messages():
        spec = attempts.parse()
    assets = {("mesh", mesh.name): mesh.file for mesh in spec.meshes}
    assets |= {("hfield", field.name): field.file for field in spec.hfields}
    for geom in parted_geoms(spec)[0]:
        file = assets.get(("mesh", geom.meshname)) or assets.get(("hfield", geom.hfieldname))
        shown = f"geom '{geom.name}'" if geom.name else f"a geom of body '{geom.parent.name}'"
        if file and os.path.basename(file) in words:
            fix = "give a mesh that MuJoCo reads (STL, OBJ, MSH), or replace the geom by a primitive"
            if "opening" in words:
                fix = f"put the file there, or say with --asset-map {_asset_root(file)} where the scene's assets are"
            what = f"{shown} collides, and its file '{file}' cannot be used: {words}"
            return InputError(what, attempts.place, fix)
        if geom.meshname and f"Element name '{geom.meshname}'" in words:
            what = f"{shown} collides, and its mesh '{geom.meshname}' cannot be used: {words}"
            return InputError(what, attempts.place, "give the mesh volume, or replace the geom by a primitive")
    fix = "put the file there, or use --asset-map OLD=NEW" if "opening" in words else "correct the file"
    return InputError(f"MuJoCo cannot compile the scene: {words}", attempts.place, fix)


def _read(path: str) -> mujoco.MjSpec:
    """A file as a spec. MuJoCo's reader knows XML by two endings; another file is given to it under one of them."""
    if path.endswith((".xml", ".urdf")):
        return mujoco.MjSpec.from_file(path)
    with mujoco.MjVfs() as files, open(path, "rb") as file:
        files[f"{path}.xml"] = file.read()
        return mujoco.MjSpec.from_file(f"{path}.xml", vfs=files)


def _head(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(_HEAD_BYTES)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _words(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error: ")
