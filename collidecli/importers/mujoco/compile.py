"""Compiles MJCF and URDF scenes with MuJoCo's parser and compiler."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import mujoco

from collidecli.errors import InputError
from collidecli.importers.mujoco.additions import add_floating_base, add_ground
from collidecli.importers.mujoco.assets import included_files, names_other_files, relocate_assets, shape_asset_files
from collidecli.importers.mujoco.limits import refuse_excessive_scene
from collidecli.importers.mujoco.orientation import resolve_orientations
from collidecli.importers.mujoco.parsed_frames import restore_replicates, restore_urdf_origins
from collidecli.importers.mujoco.strip import (
    FAMILIES,
    KEYFRAMES,
    Family,
    drop_wrong_keys,
    partition_geoms,
    shrink_textures,
)
from collidecli.scene.run_options import SceneOptions

_COMPILER_ERRORS = (ValueError, mujoco.FatalError, RuntimeError, MemoryError)
"""RuntimeError: the binding's translation of an unknown C++ exception."""
_HEAD_BYTES = 1 << 16
"""The root element of a URDF must begin in this number of bytes of the file."""

_PROLOG = re.compile(rb"\s*(?:\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>|\s+)*", re.S)
"""Byte order mark, declarations and comments in front of the root element."""


@dataclass(frozen=True)
class CompiledScene:
    """A scene as compiled by MuJoCo.

    location: the file, or the name in errors. files: every file whose content may affect a contact; of a scene given as
    text only its assets. text: of a scene given as text. urdf: whether the scene is a URDF.
    warnings: those of MuJoCo, and the removed elements.
    """

    mj_model: mujoco.MjModel
    location: str
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
    """Compiles an MJCF or URDF scene. Links of a URDF stay separate bodies (MuJoCo would fuse static links).

    Of a scene that MuJoCo does not compile, elements that affect no contact (`strip.FAMILIES`) are removed, as few
    families as necessary; one warning names them, with MuJoCo's reasons.

    Args:
        path: the scene's file. With `xml`, the name in errors.
        xml: the scene as text, instead of a file. folder: base of the relative paths of its assets.
        options: provides the asset map, the floating base and the ground.
        strict: refuse a scene that does not compile completely, for simulation.
    Raises:
        InputError: no such file, or MuJoCo cannot compile the scene, with its message; a file of a mesh that collides
            is missing; a scene given as text includes another file.
    """
    location = os.fspath(path)
    if xml is None and not os.path.isfile(location):
        raise InputError("there is no such file", location, "give the path of an MJCF or URDF file")
    if xml is not None and names_other_files(xml.encode()):
        raise InputError(
            "the embedded scene includes or attaches other files", location, "give the scene and its files separately"
        )
    _refuse_excessive_size(location, xml)
    attempts = _Attempts(location, xml, folder, options or SceneOptions())
    try:
        mj_model = _compiled(attempts, strict)
        bytes(mj_model.names).decode()
    except UnicodeDecodeError as error:
        # MuJoCo stores names consecutively, each with a zero at its end.
        shown = error.object[: error.start].rpartition(b"\0")[2] + error.object[error.start :].partition(b"\0")[0]
        raise InputError(
            f"a name or path in the scene is not UTF-8: {shown!r}", location, "save it as UTF-8"
        ) from error
    files = (*attempts.included, *attempts.shape_files)
    warnings = (*attempts.notes, *attempts.messages)
    return CompiledScene(mj_model, location, files, xml or "", attempts.urdf, warnings)


@contextmanager
def collected_messages() -> Iterator[list[str]]:
    """A list of all warnings of MuJoCo inside the block, each once, in order of first appearance.

    Includes the Python warnings of its compiler. Nothing is written to the terminal or to MUJOCO_LOG.TXT.
    """
    messages: list[str] = []

    def collect(message: str) -> None:
        text = "; ".join(message.strip().splitlines())
        if text not in messages:
            messages.append(text)

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(collect)
    try:
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            yield messages
        for warning in given:
            if issubclass(warning.category, UserWarning):
                collect(str(warning.message))
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    finally:
        mujoco.set_mju_user_warning(before)


def is_urdf(text: bytes) -> bool:
    """Whether the root element of an XML text is `robot`."""
    start = _PROLOG.match(text)
    return start is not None and re.match(rb"<robot[\s>/]", text[start.end() :]) is not None


def _refuse_excessive_size(location: str, xml: str | None) -> None:
    if xml is not None:
        refuse_excessive_scene(xml.encode(), location)
        return
    for path in included_files(location):
        with open(path, "rb") as file:
            refuse_excessive_scene(file.read(), location if os.path.samefile(path, location) else path)


def _compiled(attempts: _Attempts, strict: bool) -> mujoco.MjModel:
    try:
        return attempts.compile(())
    except _COMPILER_ERRORS as error:
        if strict:
            raise _refusal(attempts, error) from error
        return _stripped(attempts, error)


class _Attempts:
    """Parses and compiles one scene repeatedly, without different families of elements.

    notes: warnings of this importer. messages: MuJoCo's of the last compilation. included: the scene's file and the
    files that it names, after a compilation. shape_files: assets of colliding geoms. urdf: whether the scene is a URDF.
    """

    def __init__(self, location: str, xml: str | None, folder: str, options: SceneOptions) -> None:
        self.location = location
        self.urdf = is_urdf(_head(location) if xml is None else xml.encode())
        self.notes: list[str] = []
        self.messages: list[str] = []
        self.included: list[str] = []
        self.shape_files: list[str] = []
        self._xml = xml
        self._options = options
        self._folder = None if xml is None else os.path.abspath(folder)

    def parse(self) -> mujoco.MjSpec:
        """The scene as a spec with relocated assets. Raises InputError with MuJoCo's message."""
        try:
            spec = _read(self.location) if self._xml is None else mujoco.MjSpec.from_string(self._xml)
        except _COMPILER_ERRORS as error:
            what = f"MuJoCo cannot compile the scene: {_message(error)}"
            raise InputError(what, self.location, "correct the file") from error
        self.notes[:] = relocate_assets(spec, self._options.asset_map, self._folder, self.location)
        self._restore(spec)
        shrink_textures(spec)
        if self.urdf:
            spec.compiler.fusestatic = False
        if self._options.floating_base:
            add_floating_base(spec, self.location, self.urdf)
        if self._options.ground:
            add_ground(spec, self.location)
        return spec

    def _restore(self, spec: mujoco.MjSpec) -> None:
        """Replaces the spec's rotations by ones that are bit-identical on every processor."""
        resolve_orientations(spec)
        if self.urdf:
            restore_urdf_origins(spec, _content(self.location) if self._xml is None else self._xml.encode())
        elif len(spec.frames):
            texts = map(_content, included_files(self.location)) if self._xml is None else [self._xml.encode()]
            restore_replicates(spec, texts)

    def compile(self, without: Collection[Family], drop_keys_of: mujoco.MjModel | None = None) -> mujoco.MjModel:
        """The model of the scene without some families, and without keyframes whose sizes do not fit `drop_keys_of`."""
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
            self.included = included_files(self.location)
        self.shape_files = shape_asset_files(spec, self.included)
        return mj_model

    def counts(self) -> dict[str, int]:
        """Number of elements of each family in the scene."""
        with collected_messages():
            spec = self.parse()
            return {family.name: family.strip(spec) for family in reversed(FAMILIES)}


def _stripped(attempts: _Attempts, error: Exception) -> mujoco.MjModel:
    """Compiles without all families, then restores each family with which the scene still compiles."""
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
            lost.append(f"{family.name} ({number}; MuJoCo: {_message(reason)})")
        else:
            without = others
    attempts.notes.append("removed, as it does not compile and affects no contact: " + "; ".join(lost))
    return mj_model


def _with_fitting_keys(
    attempts: _Attempts, without: Collection[Family], mj_model: mujoco.MjModel, number: int
) -> tuple[mujoco.MjModel, int]:
    """The model with the keyframes whose sizes fit it, if they compile, and the number of removed keyframes."""
    try:
        kept = attempts.compile(without, drop_keys_of=mj_model)
    except _COMPILER_ERRORS:
        return mj_model, number
    return kept, number - int(kept.nkey)


def _asset_root(file: str) -> str:
    """An --asset-map entry for a file, for messages: of a ROS path its package."""
    package = re.match(r"package://[^/]+", file)
    return f"{package[0]}=FOLDER" if package else "OLD=NEW"


def _refusal(attempts: _Attempts, error: Exception) -> InputError:
    """The error for a scene whose collision geometry does not compile, with the geom of an unusable mesh."""
    message = _message(error)
    with collected_messages():
        spec = attempts.parse()
    assets = {("mesh", mesh.name): mesh.file for mesh in spec.meshes}
    assets |= {("hfield", field.name): field.file for field in spec.hfields}
    for geom in partition_geoms(spec)[0]:
        file = assets.get(("mesh", geom.meshname)) or assets.get(("hfield", geom.hfieldname))
        shown = f"geom '{geom.name}'" if geom.name else f"a geom of body '{geom.parent.name}'"
        if file and os.path.basename(file) in message:
            fix = "give a mesh that MuJoCo reads (STL, OBJ, MSH), or replace the geom by a primitive"
            if "opening" in message:
                fix = f"put the file there, or give the assets' folder with --asset-map {_asset_root(file)}"
                fix += " or ROS_PACKAGE_PATH" if file.startswith("package:") else ""
            what = f"{shown} collides, and its file '{file}' cannot be used: {message}"
            return InputError(what, attempts.location, fix)
        if geom.meshname and f"Element name '{geom.meshname}'" in message:
            what = f"{shown} collides, and its mesh '{geom.meshname}' cannot be used: {message}"
            return InputError(what, attempts.location, "give the mesh volume, or replace the geom by a primitive")
    fix = "put the file there, or use --asset-map OLD=NEW" if "opening" in message else "correct the file"
    return InputError(f"MuJoCo cannot compile the scene: {message}", attempts.location, fix)


def _read(path: str) -> mujoco.MjSpec:
    """A file as a spec. MuJoCo's reader accepts two endings; a file with another one is read under a virtual name."""
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


def _message(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error: ")
