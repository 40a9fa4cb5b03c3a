"""MJCF and URDF scenes, compiled with MuJoCo's parser and compiler."""

from __future__ import annotations

import os
import re
import warnings
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mesh_files import ENDINGS
from collidecli.importers.mujoco.additions import add_floating_base, add_ground
from collidecli.importers.mujoco.asset_checks import check_assets
from collidecli.importers.mujoco.excessive_scenes import refuse_excessive_scene
from collidecli.importers.mujoco.left_out import (
    FAMILIES,
    KEYFRAMES,
    drop_wrong_keys,
    partition_geoms,
    shrink_textures,
)
from collidecli.importers.mujoco.obsolete_settings import (
    refuses_attribute,
    remedy,
    removal_note,
    without_obsolete,
)
from collidecli.importers.mujoco.orientations import (
    KIND,
    WITH_ENDS,
    from_z_axis,
    resolve_axis_angle,
    resolve_ends,
    resolve_euler,
    rows_of_angles,
    set_quaternions,
)
from collidecli.importers.mujoco.other_meshes import OtherMeshes
from collidecli.importers.mujoco.parsed_rotations import restore_replicates
from collidecli.importers.mujoco.scene_files import (
    included_files,
    names_other_files,
    relocate_assets,
    shape_asset_files,
)
from collidecli.importers.mujoco.sdf_plugins import plugins_of_geoms
from collidecli.importers.mujoco.spec_elements import bodies_of, geoms_of
from collidecli.importers.mujoco.visual_geoms import COLLIDING_MASK, chosen_geoms, visual_geoms
from collidecli.importers.scene_import import EXPAND_XACRO
from collidecli.importers.visual_options import OPTION
from collidecli.scene.options import SceneOptions
from collidecli.stderr_lines import stderr_lines
from collidecli.storage.regular_files import (
    open_input,
    refuse_pointer,
    require_regular_file,
    require_text_path,
)
from collidecli.wording import some_names

_COMPILER_ERRORS = (ValueError, mujoco.FatalError, RuntimeError, MemoryError)
"""RuntimeError: the binding's translation of an unknown C++ exception."""
_WITHOUT_HULL = re.compile("cannot compute convex hull|at least 4 vertices|qhull error")
"""MuJoCo's errors about the mesh of a colliding geom without volume."""
_QHULL = re.compile(rb"QH\d+ ")
"""Begin of what Qhull writes of a mesh; more lines follow."""
_ABOUT_SAVING = "Attaching a spec with an empty prefix"
"""Begin of MuJoCo's warning about scenes that are saved, which none is here."""
_ELEMENT = re.compile(r"(.*); Element name '(.*)', id \d+")
"""A message of MuJoCo about an element, and the element's name."""
_VISUAL = re.compile(r"/visual#\d+$")
"""End of the names of visual elements of a URDF that collide."""
_HEAD_BYTES = 1 << 16
"""The root element of a URDF must begin in this number of bytes of the file."""
_PROLOG = re.compile(rb"\s*(?:\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>|\s+)*", re.S)
"""Byte order mark, declarations and comments in front of the root element."""


@dataclass(frozen=True)
class CompiledScene:
    """A scene as compiled by MuJoCo.

    location: the file, or the name in errors. files: every file whose content may affect a contact;
    of a scene given as text only its assets. text: of a scene given as text. urdf: whether the
    scene is a URDF. warnings: those of MuJoCo, and the removed elements. visual_count: number of
    visual meshes and shapes, also of those that MuJoCo does not read. plugins: name of the plugin
    of each sdf geom that has one, by the geom's id. visual_colliders: ids of visual geoms that an
    option makes colliders. visuals_left_out: reasons of those that cannot be, by name.
    """

    mj_model: mujoco.MjModel
    location: str
    files: tuple[str, ...]
    text: str
    urdf: bool
    warnings: tuple[str, ...]
    visual_count: int = 0
    plugins: Mapping[int, str] = field(default_factory=dict)
    visual_colliders: frozenset[int] = frozenset()
    visuals_left_out: Mapping[str, str] = field(default_factory=dict)


def compile_mjcf(
    path: str | os.PathLike[str],
    xml: str | None = None,
    options: SceneOptions | None = None,
    *,
    folder: str = "",
    strict: bool = False,
) -> CompiledScene:
    """Compiles an MJCF or URDF scene. Links of a URDF stay separate bodies (MuJoCo would fuse
    static links).

    Of a scene that MuJoCo does not compile, elements that affect no contact (`FAMILIES`) are
    removed, as few families as necessary; one warning names them, with MuJoCo's reasons. path: the
    scene's file. With `xml`, the scene as text, the name in errors. folder: base of the relative
    paths of its assets. options: has the asset map, the floating base, the ground, and patterns of
    visual geometry that collides. strict: refuse a scene that does not compile completely, for
    simulation. Raises InputError: no such file, or MuJoCo cannot compile the scene, with its
    message; a file of a mesh that collides is missing; a scene given as text includes another file.
    """
    location = os.fspath(path)
    if xml is None:
        require_regular_file(location, "scene", "give the path of an MJCF or URDF file")
        require_text_path(location, "MuJoCo")
    if xml is not None and names_other_files(xml.encode()):
        what = "the embedded scene includes or attaches other files"
        raise InputError(what, location, "give the scene and its files separately")
    attempts = _Attempts(location, xml, folder, options or SceneOptions(), strict)
    texts = (
        {location: xml.encode()}
        if xml is not None
        else {file: _content(file) for file in attempts.included}
    )
    refuse_excessive_scene(texts, location)
    try:
        mj_model = _compiled(attempts, strict)
        bytes(mj_model.names).decode()
        if attempts.choose_visuals(mj_model):
            mj_model = _compiled(attempts, strict)
    except UnicodeDecodeError as error:
        # MuJoCo stores names consecutively, each with a zero at its end.
        shown = (
            error.object[: error.start].rpartition(b"\0")[2]
            + error.object[error.start :].partition(b"\0")[0]
        )
        what = f"a name or path in the scene is not UTF-8: {shown!r}"
        raise InputError(what, location, "save it as UTF-8") from error
    files = (*attempts.included, *attempts.shape_files)
    warnings = (*attempts.notes, *once_a_kind(attempts.messages))
    return CompiledScene(
        mj_model,
        location,
        files,
        xml or "",
        attempts.urdf,
        warnings,
        attempts.visual_count(mj_model),
        attempts.plugins,
        attempts.visual_colliders(),
        attempts.visuals_left_out,
    )


def _compiled(attempts: _Attempts, strict: bool) -> mujoco.MjModel:
    """The model with everything that compiles."""
    try:
        return attempts.compile(())
    except _COMPILER_ERRORS as error:
        if strict:
            raise _refusal(attempts, error) from error
        return _stripped(attempts, error)


def once_a_kind(messages: Sequence[str]) -> list[str]:
    """Messages of MuJoCo about elements, of those that differ in the element alone the first with
    the names of the others."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for message in messages:
        found = _ELEMENT.fullmatch(message)
        name = found[2] if found else ""
        kind = found[1].replace(f"'{name}'", "''") if found else message
        kinds.setdefault(kind, []).append((message, name))
    texts = []
    for (message, _), *others in kinds.values():
        more = f"; also of {some_names([name for _, name in others])}" if others else ""
        texts.append(f"{message}{more}")
    return texts


@contextmanager
def collected_messages() -> Iterator[list[str]]:
    """A list of all warnings of MuJoCo inside the block, each once, in order of first appearance.

    Includes the Python warnings of its compiler, and the first line of what Qhull writes about a
    mesh. Nothing is written to the terminal or to MUJOCO_LOG.TXT.
    """
    messages: list[str] = []

    def collect(message: str) -> None:
        text = "; ".join(message.strip().splitlines())
        if text not in messages and not text.startswith(_ABOUT_SAVING):
            messages.append(text)

    def without_qhull(lines: list[bytes]) -> list[bytes]:
        found = [n for n, line in enumerate(lines) if _QHULL.match(line)]
        if not found:
            return lines
        collect(f"Qhull: {lines[found[0]].decode(errors='replace')}")
        return lines[: found[0]]

    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(collect)
    try:
        with warnings.catch_warnings(record=True) as given, stderr_lines(without_qhull):
            warnings.simplefilter("always")
            yield messages
        for warning in given:
            if issubclass(warning.category, UserWarning):
                collect(str(warning.message))
            else:
                warnings.warn_explicit(
                    warning.message, warning.category, warning.filename, warning.lineno
                )
    finally:
        mujoco.set_mju_user_warning(before)


def is_urdf(text: bytes) -> bool:
    """Whether the root element of an XML text is `robot`."""
    start = _PROLOG.match(text)
    return start is not None and re.match(rb"<robot[\s>/]", text[start.end() :]) is not None


class _Attempts:
    """Parses and compiles one scene repeatedly, without different families of elements.

    notes: warnings of this importer. messages: MuJoCo's of the last compilation. included: the
    scene's file and the files that it names. shape_files: assets of colliding geoms. plugins: see
    `CompiledScene`. urdf: whether the scene is a URDF.
    """

    def __init__(
        self, location: str, xml: str | None, folder: str, options: SceneOptions, strict: bool
    ) -> None:
        self.location = location
        self.strict = strict
        self.urdf = is_urdf(_content(location, _HEAD_BYTES) if xml is None else xml.encode())
        self.notes: list[str] = []
        self.messages: list[str] = []
        self.included = included_files(location) if xml is None else []
        self.shape_files: list[str] = []
        self._meshes = OtherMeshes()
        self.plugins: dict[int, str] = {}
        self._xml = xml
        self._options = options
        self._folder = None if xml is None else os.path.abspath(folder)
        self._patterns = options.visuals_as_colliders
        self._visual_elements = 0
        self._geoms: list[mujoco.MjsGeom] = []
        self._colliding: dict[int, str] = {}
        self._chosen: dict[str, mujoco.MjsGeom] = {}
        self.visuals_left_out: dict[str, str] = {}

    def _text(self) -> bytes:
        return _content(self.location) if self._xml is None else self._xml.encode()

    def choose_visuals(self, mj_model: mujoco.MjModel) -> bool:
        """Chooses the visual geoms that collide in the next compilation; False for no more than in
        the last."""
        if self.urdf or not self._patterns or self._colliding:
            return False
        names = chosen_geoms(mj_model, self._patterns, self.location)
        ids = [int(geom.id) for geom in self._geoms]
        self._colliding = {n: names[geom] for n, geom in enumerate(ids) if geom in names}
        return True

    def visual_colliders(self) -> frozenset[int]:
        """Ids of visual geoms that the option makes colliders, in the last compilation."""
        return frozenset(int(geom.id) for geom in self._chosen.values())

    def is_visual(self, geom: mujoco.MjsGeom) -> bool:
        """Whether the option makes a geom of the last spec a collider."""
        return any(geom is chosen for chosen in self._chosen.values())

    def visual_count(self, mj_model: mujoco.MjModel) -> int:
        """Number of visual elements of a URDF, or geoms of MJCF."""
        return self._visual_elements if self.urdf else len(visual_geoms(mj_model))

    def parse(self) -> mujoco.MjSpec:
        """The scene as a spec with relocated assets. Raises InputError with the reader's
        message."""
        spec, read_notes = self._read_urdf() if self.urdf else self._read_mjcf()
        if self._patterns and not self.urdf:
            spec.compiler.discardvisual = False
        bodies = list(bodies_of(spec))
        geoms = geoms_of(bodies)
        self._choose(geoms)
        self.notes[:] = [
            *read_notes,
            *relocate_assets(
                spec, self._options, self._folder, self.location, self.urdf, self.included
            ),
        ]
        check_assets(spec, self.included, self.location)
        self._meshes.insert(spec, self.included, self.location)
        self.notes += self._meshes.notes
        # The rotations are replaced by ones that are bit-identical on every processor.
        # Values that MuJoCo refuses stay unchanged, so that MuJoCo reports them.
        turned = _elements_by_orientation([*bodies, *spec.frames, *geoms])
        resolve_euler(turned[KIND.mjORIENTATION_EULER])
        resolve_axis_angle(turned[KIND.mjORIENTATION_AXISANGLE])
        z_axes = turned[KIND.mjORIENTATION_ZAXIS]
        set_quaternions(z_axes, from_z_axis(rows_of_angles([e.alt.zaxis for e in z_axes], 3)))
        resolve_ends(
            [geom for geom in geoms if geom.type in WITH_ENDS and not np.isnan(geom.fromto[0])]
        )
        if len(spec.frames):
            texts = map(_content, self.included) if self._xml is None else [self._xml.encode()]
            restore_replicates(spec, texts)
        shrink_textures(spec)
        if not self.strict:
            # the lengths of muscles, which MuJoCo simulates each muscle to find
            spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE
        if self.urdf:
            spec.compiler.fusestatic = False
        if self._options.floating_base:
            add_floating_base(spec, self.location, self.urdf)
        if self._options.ground:
            add_ground(spec, self.location)
        return spec

    def _choose(self, geoms: list[mujoco.MjsGeom]) -> None:
        """Makes the chosen visual geoms of a new spec colliders; those of URDF are already.

        geoms: of the spec, without those that options add.
        """
        self._geoms = geoms
        if self.urdf:
            found = {geom.name: geom for geom in geoms if self._patterns}
            self._chosen = {name: geom for name, geom in found.items() if _VISUAL.search(name)}
            return
        self._chosen = {
            name: geoms[number]
            for number, name in self._colliding.items()
            if name not in self.visuals_left_out
        }
        for geom in self._chosen.values():
            geom.contype = geom.conaffinity = COLLIDING_MASK

    def _leave_out(self, error: Exception) -> bool:
        """Leaves out the chosen visuals of the mesh whose hull has no volume by the compiler's
        error; False if there are none."""
        message = _message(error)
        mesh = re.search("Element name '(.*)', id", message)
        if mesh is None or not _WITHOUT_HULL.search(message):
            return False
        names = [
            name
            for name, geom in self._chosen.items()
            if geom.meshname == mesh[1] and name not in self.visuals_left_out
        ]
        self.visuals_left_out |= dict.fromkeys(names, f"its mesh '{mesh[1]}' has no volume")
        return bool(names)

    def _read_mjcf(self) -> tuple[mujoco.MjSpec, list[str]]:
        """The spec of an MJCF, and a note about settings that MuJoCo no longer reads."""
        try:
            try:
                return self._spec_of({}), []
            except _COMPILER_ERRORS as error:
                current = self._without_obsolete(_message(error))
                if current is None:
                    raise
            texts, note = current
            return self._spec_of(texts), [note]
        except _COMPILER_ERRORS as error:
            what = f"MuJoCo cannot compile the scene: {_message(error)}"
            raise InputError(what, self.location, self._fix(what)) from error

    def _without_obsolete(self, message: str) -> tuple[dict[str, bytes], str] | None:
        """The scene's texts without settings that MuJoCo no longer reads, and a note about them;
        None if there are none, or its message is about something else."""
        if self.strict or not refuses_attribute(message):
            return None
        removed = {path: without_obsolete(text) for path, text in self._texts().items()}
        names = [name for _, found in removed.values() for name in found]
        texts = {path: text for path, (text, _) in removed.items()}
        return (texts, removal_note(names, mujoco.__version__)) if names else None

    def _texts(self) -> dict[str, bytes]:
        """The texts of the scene's files by their paths; of a scene given as text only that one."""
        if self._xml is not None:
            return {self.location: self._xml.encode()}
        return {path: _content(path) for path in self.included}

    def _spec_of(self, texts: Mapping[str, bytes]) -> mujoco.MjSpec:
        """The spec that MuJoCo reads. texts: replace the contents of files, by their paths."""
        if self._xml is None:
            return _read(self.location, texts)
        text = texts.get(self.location)
        return mujoco.MjSpec.from_string(self._xml if text is None else text.decode())

    def _read_urdf(self) -> tuple[mujoco.MjSpec, list[str]]:
        from collidecli.importers.mujoco.urdf.spec import urdf_spec  # MJCF needs none of it

        text = self._text()
        self._visual_elements = text.count(b"<visual")
        try:
            spec, notes = urdf_spec(
                text,
                self.location,
                self._patterns,
                strict=self.strict,
                visuals_left_out=self.visuals_left_out,
            )
        except InputError as error:
            if b"<xacro:" in text:
                raise InputError(error.what, error.where, EXPAND_XACRO) from error
            raise
        if self._xml is None:
            spec.modelfiledir = os.path.join(os.path.dirname(self.location), "")
        return spec, notes

    def _fix(self, message: str) -> str:
        """The remedy for a text that MuJoCo's parser does not take."""
        if "'mujocoinclude'" in message:
            return "it is a fragment: give the scene that includes it"
        if "Unrecognized XML model type" in message:
            return "give an MJCF, whose root element is mujoco, or a URDF, whose root is robot"
        if b"<xacro:" in self._text():
            return EXPAND_XACRO
        if "Error opening file" in message and "Element 'include'" in message:
            return (
                "put the included file there: its path is relative to the file that names it, or"
                " to the folder of the scene"
            )
        if "top-level default class" in message:
            return "put each top-level <default> that has a class inside a <default> without one"
        return remedy(message) or "correct the file"

    def compile(
        self, without: Collection[str], drop_keys_of: mujoco.MjModel | None = None
    ) -> mujoco.MjModel:
        """The model of the scene without some families, and without keyframes whose sizes do not
        fit `drop_keys_of`. Chosen visuals without volume are left out."""
        while True:
            try:
                return self._compile_once(without, drop_keys_of)
            except _COMPILER_ERRORS as error:
                if not self._leave_out(error):
                    raise

    def _compile_once(
        self, without: Collection[str], drop_keys_of: mujoco.MjModel | None
    ) -> mujoco.MjModel:
        with collected_messages() as messages:
            spec = self.parse()
            for family, strip in reversed(FAMILIES.items()):
                if family in without:
                    strip(spec)
            if drop_keys_of is not None:
                drop_wrong_keys(spec, drop_keys_of)
            mj_model = spec.compile()
        self.messages = messages
        self.shape_files = [*shape_asset_files(spec, self.included), *self._meshes.files]
        self.plugins = plugins_of_geoms(spec) if mj_model.nplugin else {}
        return mj_model

    def counts(self) -> dict[str, int]:
        """Number of elements of each family in the scene."""
        with collected_messages():
            spec = self.parse()
            return {family: strip(spec) for family, strip in reversed(FAMILIES.items())}


def _elements_by_orientation(elements: Sequence[Any]) -> dict[mujoco.mjtOrientation, list[Any]]:
    """Elements of a spec by how their rotations are given."""
    found: dict[mujoco.mjtOrientation, list[Any]] = defaultdict(list)
    for element in elements:
        found[element.alt.type].append(element)
    return found


def _stripped(attempts: _Attempts, error: Exception) -> mujoco.MjModel:
    """Compiles without all families, then restores each family with which the scene still
    compiles."""
    count = attempts.counts()
    without = [family for family in FAMILIES if count[family]]
    try:
        mj_model = attempts.compile(without)
    except _COMPILER_ERRORS as essential:
        raise _refusal(attempts, essential) from error
    lost: list[str] = []
    for family in tuple(without):
        others = [other for other in without if other != family]
        try:
            mj_model = attempts.compile(others)
        except _COMPILER_ERRORS as reason:
            number = count[family]
            if family == KEYFRAMES:
                with suppress(*_COMPILER_ERRORS):  # with the keyframes whose sizes fit the model
                    mj_model = attempts.compile(others, drop_keys_of=mj_model)
                    number -= int(mj_model.nkey)
            lost.append(f"{family} ({number}; MuJoCo: {_message(reason)})")
        else:
            without = others
    attempts.notes.append(
        "removed, as it does not compile and affects no contact: " + "; ".join(lost)
    )
    return mj_model


def _refusal(attempts: _Attempts, error: Exception) -> InputError:
    """The error for a scene whose collision geometry does not compile, with the geom of an unusable
    mesh."""
    message = _message(error)
    with collected_messages():
        spec = attempts.parse()
    for path in shape_asset_files(spec, attempts.included):
        refuse_pointer(path, attempts.location)
    assets = {("mesh", mesh.name): mesh.file for mesh in spec.meshes}
    assets |= {("hfield", field.name): field.file for field in spec.hfields}
    # of a missing file alone: MuJoCo's message also has the warnings about other files
    opening = re.search(r"Error opening file '([^']*)'", message)
    subject, message = (message, message) if opening is None else (opening[1], opening[0])
    for geom in partition_geoms(spec)[0]:
        file = assets.get(("mesh", geom.meshname)) or assets.get(("hfield", geom.hfieldname))
        body = f"body '{geom.parent.name}'" if geom.parent.name else "an unnamed body"
        shown = f"geom '{geom.name}'" if geom.name else f"a geom of {body}"
        collides = f"collides by {OPTION}" if attempts.is_visual(geom) else "collides"
        if file and os.path.basename(file) in subject:
            fix = f"give a mesh ({', '.join(ENDINGS)}), or replace the geom by a primitive"
            if "opening" in message:
                package = re.match(r"package://[^/]+", file)
                entry = f"{package[0]}=FOLDER" if package else "OLD=NEW"
                fix = f"put the file there, or give the assets' folder with --asset-map {entry}"
                fix += (
                    ", or that of its packages with --package-path"
                    if file.startswith("package:")
                    else ""
                )
            if attempts.is_visual(geom):
                fix += f", or a pattern of {OPTION} that leaves it out"
            what = f"{shown} {collides}, and its file '{file}' cannot be used: {message}"
            return InputError(what, attempts.location, fix)
        if geom.meshname and f"Element name '{geom.meshname}'" in message:
            what = f"{shown} {collides}, and its mesh '{geom.meshname}' cannot be used: {message}"
            return InputError(
                what, attempts.location, "give the mesh volume, or replace the geom by a primitive"
            )
    fix = (
        "put the file there, or use --asset-map OLD=NEW"
        if "opening" in message
        else "correct the file"
    )
    return InputError(f"MuJoCo cannot compile the scene: {message}", attempts.location, fix)


def _read(path: str, texts: Mapping[str, bytes]) -> mujoco.MjSpec:
    """A file as a spec. MuJoCo's reader accepts two endings; a file with another one is read under
    a virtual name. texts: replace the contents of files, by their absolute paths."""
    known = path.endswith((".xml", ".urdf"))
    if known and not texts:
        return mujoco.MjSpec.from_file(path)
    own = os.path.abspath(path)
    with mujoco.MjVfs() as files:
        for file, text in texts.items():
            if file != own:
                files[file] = text
        name = path if known else f"{path}.xml"
        files[name] = texts[own] if own in texts else _content(path)
        return mujoco.MjSpec.from_file(name, vfs=files)


def _content(path: str, size: int = -1) -> bytes:
    with open_input(path) as file:
        return file.read(size)


def _message(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error: ")
