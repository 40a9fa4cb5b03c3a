"""Compiles MJCF and URDF scenes with MuJoCo's parser, with orientations of equal bits on every processor."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco import urdf
from collidecli.numerics import IDENTITY, XYZW_TO_WXYZ, atan2, cross, multiply, norm, sincos
from collidecli.scene.options import SceneOptions

if TYPE_CHECKING:
    from xml.etree import ElementTree


# Orientations of an MJCF or URDF scene as quaternions, before MuJoCo compiles it.
#
# MuJoCo computes quaternions from Euler angles, an axis and an angle, a z axis, and the two ends of a capsule with
# sine, cosine and arc tangent of the C library, whose last bit depends on the processor. Here its formulas are
# evaluated by `numerics`, and the spec then contains quaternions only: MuJoCo multiplies and normalizes
# those, with equal bits on every processor. The axes x and y (`xyaxes`) need no function except the square root and
# stay unchanged.

_KIND = mujoco.mjtOrientation
_GEOM = mujoco.mjtGeom
_WITH_ENDS = (_GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER, _GEOM.mjGEOM_ELLIPSOID, _GEOM.mjGEOM_BOX)
_BY_RADIUS = (_GEOM.mjGEOM_CAPSULE, _GEOM.mjGEOM_CYLINDER)
_SHORTEST = 1e-7
"""Sine below which MuJoCo treats a vector as parallel to the z axis (measured with MuJoCo 4.0)."""
_LEAST_LENGTH = 1e-14
"""Minimum distance of two ends; MuJoCo refuses smaller ones."""
_LEAST_AXIS = 1e-15
"""Length of a vector that MuJoCo does not normalize."""


def euler_quaternions(angles: np.ndarray, sequences: Sequence[str]) -> np.ndarray:
    """float64[n, 4], wxyz, unit: rotations by angles [n, 3] [rad] about the axes of each sequence.

    Lower-case letters are axes of the rotated frame, capitals axes of the fixed frame: MuJoCo's `eulerseq`.
    """
    sine, cosine = sincos(0.5 * angles)
    quaternions = np.zeros((len(angles), 4))
    for sequence in set(sequences):
        rows = np.array([other == sequence for other in sequences])
        q = np.repeat(IDENTITY[3:, None], rows.sum(), axis=1)
        for k, letter in enumerate(sequence):
            rotation = np.zeros_like(q)
            rotation["xyz".index(letter.lower())], rotation[3] = sine[rows, k], cosine[rows, k]
            q = multiply(q, rotation) if letter.islower() else multiply(rotation, q)
        quaternions[rows] = q[XYZW_TO_WXYZ].T
    return quaternions / norm(quaternions)[:, None]


def _resolve_euler(elements: list[Any]) -> None:
    sequences = ["".join(map(str, e.compiler.eulerseq)) for e in elements]
    valid = [len(s) == 3 and set(s.lower()) <= set("xyz") for s in sequences]
    elements = [e for e, is_valid in zip(elements, valid, strict=True) if is_valid]
    angles = _rows([_radians(e.alt.euler, e) for e in elements], 3)
    _set_quaternions(elements, euler_quaternions(angles, [s for s, ok in zip(sequences, valid, strict=True) if ok]))


def _resolve_axis_angle(elements: list[Any]) -> None:
    axis = _rows([e.alt.axisangle[:3] for e in elements], 3)
    length = norm(axis)
    elements = [e for e, size in zip(elements, length, strict=True) if size >= _LEAST_AXIS]
    axis = axis[length >= _LEAST_AXIS] * (1.0 / length[length >= _LEAST_AXIS])[:, None]
    angle = _rows([_radians(e.alt.axisangle[3:], e) for e in elements], 1)[:, 0]
    sine, cosine = sincos(0.5 * angle)
    _set_quaternions(elements, np.column_stack([cosine, axis * sine[:, None]]))


def _resolve_ends(geoms: list[Any]) -> None:
    """Capsules and others by their two ends: position, half length and orientation."""
    ends = _rows([geom.fromto for geom in geoms], 6)
    line = ends[:, :3] - ends[:, 3:]
    length = norm(line)
    valid = np.isfinite(ends).all(axis=1) & (length >= _LEAST_LENGTH)
    quaternion = _from_z_axis(line[valid])
    middle = 0.5 * (ends[valid, :3] + ends[valid, 3:])
    chosen = [geom for geom, is_valid in zip(geoms, valid, strict=True) if is_valid]
    for geom, q, position, size in zip(chosen, quaternion, middle, length[valid] / 2.0, strict=True):
        radius = float(geom.size[0])
        geom.size = [radius, size, geom.size[2]] if geom.type in _BY_RADIUS else [radius, radius, size]
        geom.pos, geom.fromto = position, [np.nan] * 6
        _set_quaternions([geom], q[None])


def _from_z_axis(vector: np.ndarray) -> np.ndarray:
    """float64[n, 4], wxyz: the smallest rotations from z to the directions of vectors."""
    with np.errstate(all="ignore"):
        unit = vector * (1.0 / norm(vector))[:, None]
        axis = cross(np.array([0.0, 0.0, 1.0]), unit)
        sine = norm(axis)
        along = sine < _SHORTEST
        axis = np.where(along[:, None], np.array([1.0, 0.0, 0.0]), axis * (1.0 / sine)[:, None])
    half_sine, half_cosine = sincos(0.5 * atan2(np.where(along, 0.0, sine), unit[:, 2]))
    return np.column_stack([half_cosine, axis * half_sine[:, None]])


def _set_quaternions(elements: Iterable[Any], quaternions: np.ndarray) -> None:
    for element, quaternion in zip(elements, quaternions, strict=True):
        if np.isfinite(quaternion).all():
            element.quat = quaternion
            element.alt.type = _KIND.mjORIENTATION_QUAT


def _radians(angles: np.ndarray, element: Any) -> np.ndarray:
    angles = np.asarray(angles, np.float64)
    return angles / 180.0 * np.pi if element.compiler.degree else angles


def _rows(vectors: list[Any], width: int) -> np.ndarray:
    return np.array(vectors, np.float64).reshape(-1, width)


# Compiles MJCF and URDF scenes with MuJoCo's parser and compiler.

# Refuses MJCF files whose small text expands to a scene of excessive size, before MuJoCo reads them.

MOST_COPIES = 100_000
"""Of one element: MuJoCo's time grows with the square, to ten minutes for this number."""
MOST_VALUES = 1_000_000
"""Of keyframes, and of user values of one element."""
MOST_ATTRIBUTES = 1000
"""Of one element: MuJoCo's reader compares each attribute with all others."""

MOST_PIXELS = 1 << 28
"""Of a heightfield or a procedural texture: one gigabyte."""

_SIZED = re.compile(rb"""<(size|hfield|texture)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_SIZE = re.compile(rb"""\b(nkey|nuser_\w+|nrow|ncol|width|height)\s*=\s*["']\s*(\d{1,19})\s*["']""")
_COUNTED = re.compile(rb"""<(/?)(replicate|flexcomp|composite)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_COUNT = re.compile(rb"""\bcount\s*=\s*["']([^"']*)["']""")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)


def refuse_excessive_scene(text: bytes, location: str) -> None:
    """Raises InputError for elements with too many copies, values, pixels or attributes."""
    text = _COMMENT.sub(b"", text)
    if max(part.count(b"=") for part in text.split(b"<")) > MOST_ATTRIBUTES:
        for part in text.split(b"<"):
            attributes = len(re.findall(rb"""[\w:.-]+\s*=\s*["']""", part))
            if attributes > MOST_ATTRIBUTES:
                name = part.split()[0][:60].decode("utf-8", "replace")
                raise InputError(f"<{name}> has {attributes} attributes", location, f"at most {MOST_ATTRIBUTES:,}")
    for element, attributes in _SIZED.findall(text):
        sizes = {name.decode(): int(number) for name, number in _SIZE.findall(attributes)}
        if element == b"size":
            for name, number in sizes.items():
                if number > MOST_VALUES:
                    raise InputError(f"<size> has {name}={number}", location, f"at most {MOST_VALUES:,}")
        elif math.prod(sizes.values()) > MOST_PIXELS:
            shown = " ".join(f"{name}={number}" for name, number in sizes.items())
            raise InputError(f"<{element.decode()}> has {shown}", location, f"at most {MOST_PIXELS:,} in all")
    open_counts: list[int] = []
    for close, name, attributes in _COUNTED.findall(text):
        if close:
            if name == b"replicate" and open_counts:
                open_counts.pop()
            continue
        # 1 without a number, which MuJoCo reports.
        match = _COUNT.search(attributes)
        words = match[1].split() if match else []
        count = math.prod(max(1, int(word)) for word in words if word.isdigit() and len(word) < 20)
        copies = math.prod(open_counts) * count
        if copies > MOST_COPIES:
            raise InputError(f"<{name.decode()}> stands for {copies:.3g} copies", location, f"at most {MOST_COPIES:,}")
        if name == b"replicate" and not attributes.endswith(b"/"):
            open_counts.append(count)


# Rotations that MuJoCo's parser computes while it reads the text: `rpy` of a URDF, `euler` of MJCF's `<replicate>`.
#
# A spec contains only their quaternions, computed with the C library's sine and cosine, whose last bit depends on the
# processor. They are computed again from the text with `numerics`; each result replaces the parser's
# quaternion that equals it up to rounding.

ROUNDING = 1e-13
"""Tolerance between two computations of one frame, relative to its position where that exceeds 1 m."""


def restore_urdf_origins(spec: mujoco.MjSpec, text: bytes) -> None:
    """Sets the orientations of a URDF's bodies and geoms, computed from the `rpy` of its origins."""
    angles = [_numbers(origin.get("rpy", ""), 3) for root in _roots([text]) for origin in root.iter("origin")]
    distinct = np.unique([a for a in angles if a is not None], axis=0).reshape(-1, 3)
    elements = [*spec.bodies, *spec.geoms]
    computed = euler_quaternions(distinct, ["XYZ"] * len(distinct))
    for element, quaternion in _matches(elements, [e.quat for e in elements], computed):
        element.quat = quaternion


def restore_replicates(spec: mujoco.MjSpec, texts: Iterable[bytes]) -> None:
    """Sets the frames of a scene's replicas, computed from `count`, `offset` and `euler` in its files."""
    replicates = [
        element
        for root in _roots(text for text in texts if b"<replicate" in text)
        for element in root.iter("replicate")
    ]
    frames = list(spec.frames) if replicates else []
    settings = {("".join(map(str, frame.compiler.eulerseq)), bool(frame.compiler.degree)) for frame in frames}
    computed = [pose for element in replicates for setting in sorted(settings) for pose in _replicas(element, *setting)]
    parsed = [np.concatenate([frame.pos, frame.quat]) for frame in frames]
    for frame, pose in _matches(frames, parsed, np.array(computed, np.float64).reshape(-1, 7)):
        frame.pos, frame.quat = pose[:3], pose[3:]


def _replicas(element: ElementTree.Element, sequence: str, degree: bool) -> list[np.ndarray]:
    """float64[7] of each replica's frame: the previous one, translated by the offset and rotated."""
    count = element.get("count", "")
    euler = _numbers(element.get("euler", ""), 3)
    offset = _numbers(element.get("offset", "0 0 0"), 3)
    if not count.isdigit() or euler is None or offset is None or set(sequence.lower()) - set("xyz"):
        return []
    turn = euler_quaternions((euler / 180.0 * np.pi if degree else euler)[None], [sequence])[0]
    position, rotation, poses = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), []
    for _ in range(int(count)):
        poses.append(np.concatenate([position, rotation]))
        position = position + _rotated(offset, rotation)
        rotation = _product(rotation, turn)
    return poses


def _matches(elements: list[Any], parsed: list[Any], computed: np.ndarray) -> Iterable[tuple[Any, np.ndarray]]:
    """Elements, each with the row of `computed` that equals its row of `parsed` up to ROUNDING."""
    from scipy.spatial import KDTree

    if not elements or not len(computed):
        return
    rows = np.array(parsed, np.float64)
    finite = np.flatnonzero(np.isfinite(rows).all(axis=1))
    distance, nearest = KDTree(computed).query(rows[finite])
    near = distance <= ROUNDING * np.maximum(1.0, np.abs(rows[finite]).max(axis=1, initial=0.0))
    for row, index in zip(finite[near].tolist(), np.asarray(nearest)[near].tolist(), strict=True):
        yield elements[row], computed[index]


def _roots(texts: Iterable[bytes]) -> Iterable[ElementTree.Element]:
    """Root elements of the texts that Python's parser can read; MuJoCo's parser accepts more."""
    for text in texts:
        from xml.etree import ElementTree  # most scenes have no such text

        try:
            yield ElementTree.fromstring(text)
        except ElementTree.ParseError:
            continue


def _numbers(text: str, count: int) -> np.ndarray | None:
    try:
        numbers = np.array([float(word) for word in text.split()])
    except ValueError:
        return None
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else None


def _rotated(vector: np.ndarray, q: np.ndarray) -> np.ndarray:
    half = q[0] * vector + cross(q[1:], vector)
    return vector + 2.0 * cross(q[1:], half)


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    imaginary = p[0] * q[1:] + q[0] * p[1:] + cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3], *imaginary])


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

    Of a scene that MuJoCo does not compile, elements that affect no contact (`urdf.FAMILIES`) are removed, as few
    families as necessary; one warning names them, with MuJoCo's reasons. path: the scene's file. With `xml`, the scene
    as text, the name in errors. folder: base of the relative paths of its assets. options: has the asset map, the
    floating base and the ground. strict: refuse a scene that does not compile completely, for simulation. Raises
    InputError: no such file, or MuJoCo cannot compile the scene, with its message; a file of a mesh that collides is
    missing; a scene given as text includes another file.
    """
    location = os.fspath(path)
    if xml is None and not os.path.isfile(location):
        raise InputError("there is no such file", location, "give the path of an MJCF or URDF file")
    if xml is not None and urdf.names_other_files(xml.encode()):
        what = "the embedded scene includes or attaches other files"
        raise InputError(what, location, "give the scene and its files separately")
    if xml is not None:
        refuse_excessive_scene(xml.encode(), location)
    for file in urdf.included_files(location) if xml is None else ():
        refuse_excessive_scene(_content(file), location if os.path.samefile(file, location) else file)
    attempts = _Attempts(location, xml, folder, options or SceneOptions())
    try:
        try:
            mj_model = attempts.compile(())
        except _COMPILER_ERRORS as error:
            if strict:
                raise _refusal(attempts, error) from error
            mj_model = _stripped(attempts, error)
        bytes(mj_model.names).decode()
    except UnicodeDecodeError as error:
        # MuJoCo stores names consecutively, each with a zero at its end.
        shown = error.object[: error.start].rpartition(b"\0")[2] + error.object[error.start :].partition(b"\0")[0]
        what = f"a name or path in the scene is not UTF-8: {shown!r}"
        raise InputError(what, location, "save it as UTF-8") from error
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


class _Attempts:
    """Parses and compiles one scene repeatedly, without different families of elements.

    notes: warnings of this importer. messages: MuJoCo's of the last compilation. included: the scene's file and the
    files that it names, after a compilation. shape_files: assets of colliding geoms. urdf: whether the scene is a URDF.
    """

    def __init__(self, location: str, xml: str | None, folder: str, options: SceneOptions) -> None:
        self.location = location
        self.urdf = is_urdf(_content(location, _HEAD_BYTES) if xml is None else xml.encode())
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
        self.notes[:] = urdf.relocate_assets(spec, self._options, self._folder, self.location)
        # The rotations are replaced by ones that are bit-identical on every processor.
        # Values that MuJoCo refuses stay unchanged, so that MuJoCo reports them.
        elements = [*spec.bodies, *spec.frames, *spec.geoms]
        _resolve_euler([e for e in elements if e.alt.type == _KIND.mjORIENTATION_EULER])
        _resolve_axis_angle([e for e in elements if e.alt.type == _KIND.mjORIENTATION_AXISANGLE])
        z_axes = [e for e in elements if e.alt.type == _KIND.mjORIENTATION_ZAXIS]
        _set_quaternions(z_axes, _from_z_axis(_rows([e.alt.zaxis for e in z_axes], 3)))
        _resolve_ends([geom for geom in spec.geoms if geom.type in _WITH_ENDS and not np.isnan(geom.fromto[0])])
        if self.urdf:
            restore_urdf_origins(spec, _content(self.location) if self._xml is None else self._xml.encode())
        elif len(spec.frames):
            texts = map(_content, urdf.included_files(self.location)) if self._xml is None else [self._xml.encode()]
            restore_replicates(spec, texts)
        urdf.shrink_textures(spec)
        if self.urdf:
            spec.compiler.fusestatic = False
        if self._options.floating_base:
            urdf.add_floating_base(spec, self.location, self.urdf)
        if self._options.ground:
            urdf.add_ground(spec, self.location)
        return spec

    def compile(self, without: Collection[str], drop_keys_of: mujoco.MjModel | None = None) -> mujoco.MjModel:
        """The model of the scene without some families, and without keyframes whose sizes do not fit `drop_keys_of`."""
        with collected_messages() as messages:
            spec = self.parse()
            for family, strip in reversed(urdf.FAMILIES.items()):
                if family in without:
                    strip(spec)
            if drop_keys_of is not None:
                urdf.drop_wrong_keys(spec, drop_keys_of)
            mj_model = spec.compile()
        self.messages = messages
        if self._xml is None and not self.included:
            self.included = urdf.included_files(self.location)
        self.shape_files = urdf.shape_asset_files(spec, self.included)
        return mj_model

    def counts(self) -> dict[str, int]:
        """Number of elements of each family in the scene."""
        with collected_messages():
            spec = self.parse()
            return {family: strip(spec) for family, strip in reversed(urdf.FAMILIES.items())}


def _stripped(attempts: _Attempts, error: Exception) -> mujoco.MjModel:
    """Compiles without all families, then restores each family with which the scene still compiles."""
    count = attempts.counts()
    without = [family for family in urdf.FAMILIES if count[family]]
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
            if family == urdf.KEYFRAMES:
                with suppress(*_COMPILER_ERRORS):  # with the keyframes whose sizes fit the model
                    mj_model = attempts.compile(others, drop_keys_of=mj_model)
                    number -= int(mj_model.nkey)
            lost.append(f"{family} ({number}; MuJoCo: {_message(reason)})")
        else:
            without = others
    attempts.notes.append("removed, as it does not compile and affects no contact: " + "; ".join(lost))
    return mj_model


def _refusal(attempts: _Attempts, error: Exception) -> InputError:
    """The error for a scene whose collision geometry does not compile, with the geom of an unusable mesh."""
    message = _message(error)
    with collected_messages():
        spec = attempts.parse()
    assets = {("mesh", mesh.name): mesh.file for mesh in spec.meshes}
    assets |= {("hfield", field.name): field.file for field in spec.hfields}
    for geom in urdf.partition_geoms(spec)[0]:
        file = assets.get(("mesh", geom.meshname)) or assets.get(("hfield", geom.hfieldname))
        shown = f"geom '{geom.name}'" if geom.name else f"a geom of body '{geom.parent.name}'"
        if file and os.path.basename(file) in message:
            fix = "give a mesh that MuJoCo reads (STL, OBJ, MSH), or replace the geom by a primitive"
            if "opening" in message:
                package = re.match(r"package://[^/]+", file)
                entry = f"{package[0]}=FOLDER" if package else "OLD=NEW"
                fix = f"put the file there, or give the assets' folder with --asset-map {entry}"
                fix += ", or that of its packages with --package-path" if file.startswith("package:") else ""
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


def _content(path: str, size: int = -1) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)


def _message(error: Exception) -> str:
    return " ".join(str(error).split()).removeprefix("Error: ")
