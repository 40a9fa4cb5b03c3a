"""Recordings: storage format, names and arrays of a file, of which nothing is unpickled; kinds and their interface."""

from __future__ import annotations

import glob
import hashlib
import os
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from importlib import import_module
from typing import BinaryIO, ClassVar, Protocol

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.scene_import import SceneImport
from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, RestingMotion
from collidecli.scene.options import RecordingOptions, declared_options
from collidecli.storage import input_files
from collidecli.storage.h5_files import DAMAGE, damaged, format_of, open_h5
from collidecli.storage.process_activity import check_size, structure
from collidecli.storage.trajectory_files import check_format, header_of
from collidecli.storage.trajectory_motion import TrajectoryMotion
from collidecli.texts import in_order, some_names

# Motions that are no recordings of a robot yet: recognised by content, refused with the conversion to make.

AMASS_ARRAYS = ({"poses", "trans"}, {"poses", "betas"})
"""Each a set of names of which AMASS has all; a motion in the parameters of the body models SMPL, SMPL+H or SMPL-X."""

SAVE = "numpy.savez('motion.npz', root_pos=..., root_quat_xyzw=..., dof_pos=..., joint_names=..., fps=...)"


def refuse_amass(path: str) -> None:
    """Raises InputError for a .npz of AMASS, which has no robot; nothing for an archive that is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
    except input_files.NO_ZIP:
        return
    if any(wanted <= names for wanted in AMASS_ARRAYS):
        what = "this is a motion of AMASS (poses, trans, betas): rotations of a human body model, not of a robot"
        raise InputError(what, path, f"retarget it to the robot, for example with GMR or PHC, and save {SAVE}")


def refuse_pickle(path: str) -> None:
    """Raises InputError for a pickle, with the conversion if it is a motion of GMR. Nothing is unpickled."""
    with open(path, "rb") as file:
        start = file.read(input_files.START_BYTES)
    if start[:1] != b"\x80" or start[1:2] not in (bytes([number]) for number in range(2, 6)):
        return
    what = "this is a pickle, which is not read, as reading it executes code from the file"
    if all(key in start for key in (b"root_pos", b"root_rot", b"dof_pos")):
        what = f"this is a motion of GMR (root_pos, root_rot, dof_pos) as a pickle, {what.partition(', ')[2]}"
        convert = (
            "import numpy, pickle; d = pickle.load(open('motion.pkl', 'rb')); numpy.savez('motion.npz', "
            "root_pos=d['root_pos'], root_quat_xyzw=d['root_rot'], dof_pos=d['dof_pos'], fps=d['fps'])"
        )
        raise InputError(what, path, f'if you trust it: python -c "{convert}", and give --joint-names')
    raise InputError(what, path, f"if you trust it, load it and save {SAVE}")


_DAMAGE = (*input_files.NO_ZIP, zlib.error, EOFError, RuntimeError, KeyError, TypeError, OverflowError, MemoryError)
_DAMAGE += (SyntaxError, tokenize.TokenError)  # of headers, which NumPy parses as Python literals
_AGAIN = "copy it again, or save it again with NumPy"


@contextmanager
def _array_damage(where: str) -> Iterator[None]:
    """Converts the exceptions of zipfile and NumPy for a damaged or encrypted file to an InputError."""
    try:
        yield
    except _DAMAGE as error:
        lines = str(error).strip().splitlines()
        what = f"the arrays cannot be read: {lines[0] if lines else type(error).__name__}"
        raise InputError(what, where, _AGAIN) from error


@dataclass(frozen=True)
class ArrayHeader:
    """Shape and type of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f" and self.dtype.itemsize in (4, 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(extent) for extent in self.shape)}]"


def npy_header(path: str) -> ArrayHeader:
    """Header of a .npy file. Raises InputError: damaged, truncated, or pickled objects."""
    with _array_damage(path), open(path, "rb") as file:
        return _header(file, os.path.getsize(path), path)


def npz_headers(path: str) -> dict[str, ArrayHeader]:
    """Headers of the arrays in a .npz file, by name. Raises InputError: damaged, or an array of pickled objects."""
    headers = {}
    with _array_damage(path), zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            if info.filename.endswith(".npy"):
                name = info.filename[: -len(".npy")]
                with archive.open(info) as member:
                    headers[name] = _header(member, info.file_size, f"{path}: {name}")  # type: ignore[arg-type]
    return headers


def read_npy(path: str) -> np.ndarray:
    """The array of a .npy file, memory-mapped: only used rows are read. Raises InputError as `npy_header`."""
    npy_header(path)
    with _array_damage(path):
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_npz(path: str, name: str) -> np.ndarray:
    """One array of a .npz file, loaded completely. Raises InputError as `npz_headers`, and where it is too large."""
    headers = npz_headers(path)
    if name not in headers:
        raise InputError(f"there is no array '{name}'", path, f"its arrays: {', '.join(headers) or 'none'}")
    header = headers[name]
    size = int(np.prod(header.shape, dtype=object)) * header.dtype.itemsize
    # NumPy reads a compressed array in parts and joins them: twice its size at the peak.
    check_size(2 * size, "the array", f"{path}: {name}", "save it as .npy, which is read in parts")
    with _array_damage(f"{path}: {name}"), np.load(path, allow_pickle=False) as arrays:
        return np.asarray(arrays[name])


def _header(file: BinaryIO, size: int, where: str) -> ArrayHeader:
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"the array format is {version[0]}.{version[1]}", where, "save it again with NumPy")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        fix = (
            "save it as an array of numbers, or names as np.array(names, dtype=str): loading pickled objects would run"
        )
        raise InputError("the array contains pickled objects, which are not read", where, f"{fix} code from the file")
    if any(extent < 0 for extent in shape):
        raise InputError(f"the shape is {list(shape)}", where, "save it again with NumPy")
    declared, present = int(np.prod(shape, dtype=object)) * dtype.itemsize, size - file.tell()
    if declared != present:
        what = f"the header declares {declared} bytes of data, and the file has {max(0, present)}"
        raise InputError(what, where, _AGAIN)
    return ArrayHeader(tuple(int(extent) for extent in shape), dtype)


@dataclass(frozen=True)
class Content:
    """An open file by its storage format.

    storage: as of `storage_of`. h5: the open file, of HDF5 only.
    arrays: headers (shape and type) of the arrays in npz by name, in npy under the name "".
    columns: names in a csv file's first line.
    """

    path: str
    storage: str
    h5: h5py.File | None = None
    arrays: dict[str, ArrayHeader] = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    @property
    def h5_file(self) -> h5py.File:
        assert self.h5 is not None
        return self.h5

    def close(self) -> None:
        if self.h5 is not None:
            self.h5.close()

    def summary(self) -> str:
        """A short description of the content, for the error about a file that no kind recognises."""
        if self.h5 is not None:
            names = [f"attribute {name}" for name in self.h5.attrs][:4] + [f"/{name}" for name in self.h5][:6]
            return f"an HDF5 file with {', '.join(names) or 'nothing in it'}"
        if self.storage in (input_files.NPZ, input_files.NPY):
            shown = [f"{name or 'one array'} {header}" for name, header in list(self.arrays.items())[:6]]
            return f"a {self.storage} file with {', '.join(shown) or 'no arrays'}"
        if self.storage == input_files.CSV:
            return f"text whose first line is {', '.join(self.columns[:6])!r}"
        if self.storage == input_files.JSON:
            return "a JSON file; of a LeRobot data set, give meta/info.json"
        return f"a {self.storage} file" if self.storage else "neither HDF5, npz, npy, USD nor csv"


def open_content(path: str | os.PathLike[str]) -> Content:
    """The content of a file, which the caller closes.

    Raises InputError as `storage_of`, for HDF5 that is damaged or has data outside the file, and as `npz_headers`.
    """
    name = os.fspath(path)
    storage = input_files.storage_of(name)
    if storage == input_files.HDF5:
        return Content(name, input_files.HDF5, h5=open_h5(name))
    if storage == input_files.UNKNOWN:
        refuse_pickle(name)
    if storage == input_files.NPZ:
        refuse_amass(name)
        return Content(name, input_files.NPZ, arrays=npz_headers(name))
    if storage == input_files.NPY:
        return Content(name, input_files.NPY, arrays={"": npy_header(name)})
    if storage == input_files.CSV:
        with open(name, encoding="utf-8-sig", errors="replace") as file:
            columns = file.readline(input_files.START_BYTES).split(",")
        return Content(name, input_files.CSV, columns=tuple(column.strip() for column in columns))
    return Content(name, storage)


def h5_masks(file: h5py.File) -> tuple[tuple[str, str], ...]:
    """The names of the masks of demonstrations as a detail of a description; () for a file without masks."""
    masks = file.get("mask")
    return (("masks", some_names(list(masks))),) if isinstance(masks, h5py.Group) and len(masks) else ()


@contextmanager
def h5_damage(path: str) -> Iterator[None]:
    """Converts the exceptions of h5py for a damaged file structure to an InputError."""
    try:
        yield
    except DAMAGE as error:
        raise damaged(path, error) from error


def held_rows(parts: Sequence[h5py.Dataset], frames: range, path: str) -> np.ndarray:
    """float64[len(frames), ...]: rows of datasets that follow each other; frames after the end have the last row."""
    starts = np.cumsum([0, *(len(part) for part in parts)])
    rows = np.minimum(np.asarray(frames, np.intp), starts[-1] - 1)
    out = np.empty((len(rows), *parts[0].shape[1:]))
    for start, end, part in zip(starts[:-1], starts[1:], parts, strict=True):
        within = (rows >= start) & (rows < end)
        if within.any():
            offset = rows[within] - start
            with h5_damage(f"{path}: {part.name}"):
                out[within] = part[int(offset.min()) : int(offset.max()) + 1][offset - offset.min()]
    return out


# The interface of a recording: its description, its motion, and the scenes that are embedded in it.


@dataclass(frozen=True)
class RecordingDescription:
    """Content of a recording without a scene, for `inspect`.

    frames, worlds: counts. start, end: times [s]; None where the recording has none. bodies: their names.
    coordinates: generalized coordinates of one world in one frame; 0 for body poses. quaternion_order: "xyzw", "wxyz",
    or "" where the recording does not define it. needs: options that must be given, for example "--fps".
    details: further entries as name and text, in order.
    """

    frames: int
    worlds: int
    start: float | None = None
    end: float | None = None
    bodies: tuple[str, ...] = ()
    coordinates: int = 0
    quaternion_order: str = ""
    needs: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class EmbeddedScene:
    """A scene that is stored in a recording. text: its MJCF. location: file and attribute, for messages."""

    text: str
    location: str


@dataclass(frozen=True)
class EmbeddedScenes:
    """The distinct scenes of a recording, in order of first use. world_scene: index of each world's scene."""

    scenes: tuple[EmbeddedScene, ...]
    world_scene: tuple[int, ...]


@dataclass(frozen=True)
class Target:
    """The loaded scene that a recording moves.

    imports: result of each scene importer. world_import: index of each world's scene in `imports`.
    """

    model: Model
    imports: tuple[SceneImport, ...]
    world_import: tuple[int, ...]

    def find_kinematics(self) -> Kinematics | None:
        """The forward kinematics of the one scene of all worlds; None for several scenes, or without kinematics."""
        scene = self._only_scene()
        return None if scene is None else scene.kinematics

    def articulated(self, where: str) -> ArticulatedScene:
        """The articulations and free bodies of the one scene of all worlds. Raises InputError for none, or several."""
        scene = self._only_scene()
        articulated = None if scene is None else scene.articulated
        if articulated is None:
            reason = "there are several scenes" if scene is None else "this scene has none"
            what = f"the recording names articulations and joints, and {reason}"
            raise InputError(what, where, "use the one scene that was recorded")
        return articulated

    def _only_scene(self) -> SceneImport | None:
        used = set(self.world_import)
        return self.imports[used.pop()] if len(used) == 1 else None


class Recording(Protocol):
    """An open file of one kind of recording. Each kind is a class that implements this protocol.

    NAME: identifier in `--json` output. LABEL: name in messages. OPTIONS: fields of `RecordingOptions` that this kind
    uses; all others are refused. content: the open file. kept: `close` leaves it open, for the next motion of it.
    clock_start: time of second 0 of its last motion [ns since the epoch]; 0 where its times have no epoch.
    """

    NAME: ClassVar[str]
    LABEL: ClassVar[str]
    OPTIONS: ClassVar[tuple[str, ...]]
    content: Content
    kept: bool = False
    clock_start: int = 0

    def __init__(self, content: Content) -> None:
        """Scans the file's structure. Raises InputError for a malformed file."""

    @staticmethod
    def recognise(content: Content) -> bool:
        """Whether the content is of this kind, well formed or not: this kind then reports the error."""
        ...

    def describe(self) -> RecordingDescription:
        """The content without a scene. Raises InputError for a malformed file."""
        ...

    def world_count(self, options: RecordingOptions) -> int | None:
        """Number of recorded worlds; None where the recording moves whichever worlds the scene has."""

    def demos(self, options: RecordingOptions) -> tuple[str, ...]:
        """Names of the demonstrations that --demos selects, all without it; () for a kind without demonstrations."""
        return ()

    def embedded_scenes(self, options: RecordingOptions) -> EmbeddedScenes | None:
        """The scenes of the recorded worlds; None for a kind that contains no scenes."""
        return None

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The motion of the target's bodies; the motion then owns the open file and closes it.

        Raises InputError for a malformed file, a file that does not fit the scene, or a missing option.
        """
        ...

    def close(self) -> None:
        if not self.kept:
            self.content.close()


# The times of a recording's frames, recorded or from a frame rate; its demonstrations and their common length.

SAME_TIME = 1e-6
"""Tolerance of equal times, relative, absolute [s] below one second; float32 resolves times to 1e-7."""

GIVE_RATE = "give the rate with --fps"


def rate_time(frame_count: int, fps: float | None, where: str) -> np.ndarray:
    """float64[frame_count] [s]: frames at `fps` per second from 0. Raises InputError: no rate, or not above zero."""
    if fps is None:
        raise InputError("the recording contains no times", where, GIVE_RATE)
    if not (np.isfinite(fps) and fps > 0.0):
        raise InputError(f"the rate is {fps:g} frames per second", where, "give a number above zero")
    return np.arange(frame_count) / fps


def checked_time(time: np.ndarray, where: str) -> np.ndarray:
    """float64[F], the times of a recording [s]. Raises InputError with the frame: not finite, or decreasing."""
    time = np.asarray(time, np.float64)
    finite = np.isfinite(time)
    if not finite.all():
        frame = int(np.argmin(finite))
        raise InputError(f"the time is {time[frame]:g}", f"{where}, frame {frame}", GIVE_RATE)
    decreasing = np.diff(time) < 0.0
    if decreasing.any():
        frame = int(np.argmax(decreasing)) + 1
        what = f"time decreases from {time[frame - 1]:.9g} to {time[frame]:.9g}"
        raise InputError(what, f"{where}, frame {frame}", GIVE_RATE)
    return time


def shared_time(times: Sequence[np.ndarray], locations: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The common times of frames that were recorded in several worlds, and warnings.

    times: float64[F_w] of each world [s]; they may differ in length, and the longest is returned. locations: of each,
    for messages. Where clocks differ by a constant, time counts from each world's first frame, with a warning.
    Raises InputError with location and frame: a time not finite or decreasing, or time steps that differ.
    """
    checked = [checked_time(time, where) for time, where in zip(times, locations, strict=True)]
    longest = max(checked, key=len)
    if all(_first_difference(time, longest) is None for time in checked):
        return longest, ()
    since = longest - longest[0]
    for time, where in zip(checked, locations, strict=True):
        frame = _first_difference(time - time[0], since)
        if frame is not None:
            raise step_mismatch(time[frame] - time[0], since[frame], f"{where}, frame {frame}")
    return since, ("the worlds' clocks differ; time counts from each world's first frame",)


def step_mismatch(time: float, expected: float, where: str) -> InputError:
    """The error for a frame whose times [s] after the first frame differ between two worlds."""
    what = f"the worlds' times differ: {time:.9g} s after the first frame here, {expected:.9g} s in another world"
    return InputError(what, where, GIVE_RATE)


def _first_difference(time: np.ndarray, other: np.ndarray) -> int | None:
    """The first frame at which `time` and `other` differ, or None; `other` is at least as long."""
    differs = np.abs(time - other[: len(time)]) > SAME_TIME * np.maximum(1.0, np.abs(time))
    return int(np.argmax(differs)) if differs.any() else None


_NAMED = 5
_NAMED, RANGE = 5, ".."
"""Demonstrations in messages; separator of the first and last one of a range."""
UNEVEN = "--demos, or --uneven-demos: their lengths differ"
"""Of `RecordingDescription.needs`."""


class DemonstrationRecording(Recording):
    """A recording of demonstrations, of which each is a world. where: file and group, for messages."""

    where: str

    def stored(self) -> Sequence[str]:
        """Names of the demonstrations in the file."""
        raise NotImplementedError

    def world_count(self, options: RecordingOptions) -> int | None:
        return len(self.chosen(options))

    def demos(self, options: RecordingOptions) -> tuple[str, ...]:
        return tuple(self.chosen(options))

    def chosen(self, options: RecordingOptions) -> list[str]:
        """The demonstrations of --demos, in its order and each once; without it all stored ones in numeric order.

        An entry is a name, a pattern with `*`, `?` or `[...]`, a range `FIRST..LAST` in numeric order, or the name of a
        mask of the file.
        Raises InputError: an entry that selects nothing, a name that is given twice, or a file without demonstrations.
        """
        ordered = in_order(self.stored())
        if not ordered:
            raise InputError("the recording has no demonstrations", self.where, "record at least one")
        for entry, count in Counter(options.demos).items():
            if count > 1:
                raise InputError(f"demonstration '{entry}' is given twice", "--demos", "give each once")
        names = [name for entry in options.demos for name in self._selected(entry, ordered)]
        return list(dict.fromkeys(names)) if options.demos else ordered

    def _selected(self, entry: str, ordered: Sequence[str]) -> Sequence[str]:
        """The demonstrations that an entry of --demos selects. Raises InputError for none."""
        if entry in ordered:
            return [entry]
        first, dots, last = entry.partition(RANGE)
        if dots:
            for name in (first, last):
                if name not in ordered:
                    raise self._no_demonstration(name, ordered)
            names = ordered[ordered.index(first) : ordered.index(last) + 1]
            if not names:
                raise InputError(f"the range '{entry}' is descending", "--demos", f"write {last}{RANGE}{first}")
            return names
        names = [name for name in ordered if fnmatchcase(name, entry)]
        if names:
            return names
        masked = self._masked(entry)
        if masked is None:
            raise self._no_demonstration(entry, ordered)
        for name in masked:
            if name not in ordered:
                what = f"the mask '{entry}' names the demonstration '{name}', which the file does not have"
                raise InputError(what, self.where, "name demonstrations that exist")
        if not masked:
            raise InputError(f"the mask '{entry}' is empty", self.where, "choose another one, or name demonstrations")
        return in_order(masked)

    def _masked(self, name: str) -> list[str] | None:
        """The demonstrations in the dataset `mask/<name>` of robomimic; None if there is no such mask."""
        if self.content.h5 is None:
            return None
        with h5_damage(self.content.path), structure():
            masks = self.content.h5.get("mask")
            mask = masks.get(name) if isinstance(masks, h5py.Group) else None
            if mask is None:
                return None
            if not isinstance(mask, h5py.Dataset) or mask.ndim != 1 or mask.dtype.kind not in "OSU":
                where = f"{self.content.path}: /mask/{name}"
                raise InputError("the mask is not a list of names", where, "write it as an array of strings")
            return [text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text) for text in mask[()]]

    def _no_demonstration(self, entry: str, ordered: Sequence[str]) -> InputError:
        close = get_close_matches(entry, ordered, n=_NAMED) or list(ordered[:_NAMED])
        more = f", of {len(ordered)}" if len(ordered) > len(close) else ""
        patterns = "patterns such as demo_*, ranges such as demo_0..demo_9, and masks"
        fix = f"--demos takes {', '.join(close)}{more}; {patterns}"
        return InputError(f"there is no demonstration '{entry}'", self.where, fix)


def shared_length(lengths: Mapping[str, int], options: RecordingOptions, where: str) -> int:
    """Frames of a motion of demonstrations. Raises InputError: one without frames, or unequal ones without option."""
    empty = [name for name, length in lengths.items() if length == 0]
    if empty:
        raise InputError("the demonstration has no frames", f"{where}/{empty[0]}", "exclude it with --demos")
    least, most = min(lengths.values()), max(lengths.values())
    if least == most or options.uneven_demos == "hold":
        return most
    if options.uneven_demos == "cut":
        return least
    shown = ", ".join(f"{name} {length}" for name, length in list(lengths.items())[:_NAMED])
    more = f" and {len(lengths) - _NAMED} more" if len(lengths) > _NAMED else ""
    what = f"the demonstrations have {least} to {most} frames ({shown}{more}), and worlds need equal numbers"
    fix = "select some with --demos, or give --uneven-demos cut (all end with the shortest) or --uneven-demos hold"
    raise InputError(what, where, f"{fix} (each keeps all of its frames)")


# Kinds without a module of their own.


class TrajectoryRecording(Recording):
    """A `collide-trajectory` file, which needs no option."""

    NAME = "trajectory"
    LABEL = "a trajectory of collide's own (HDF5)"
    OPTIONS = ("ignore_particles",)

    def __init__(self, content: Content) -> None:
        self.content = content
        check_format(content.h5_file, content.path)

    @staticmethod
    def recognise(content: Content) -> bool:
        """A format name that begins with collide, or the datasets of a trajectory without a format name."""
        file = content.h5
        if file is None:
            return False
        name = format_of(file)
        return name.startswith("collide-") or (not name and ("body_q" in file or "joint_q" in file))

    def describe(self) -> RecordingDescription:
        header = header_of(self.content.h5_file, self.content.path)
        return RecordingDescription(
            frames=header.frame_count,
            worlds=header.world_count,
            start=float(header.time[0]),
            end=float(header.time[-1]),
            bodies=header.body_names,
            coordinates=header.coordinate_count,
            quaternion_order="xyzw" if header.kind == "body_q" else "wxyz",
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        return header_of(self.content.h5_file, self.content.path).world_count

    def motion(self, target: Target, options: RecordingOptions) -> TrajectoryMotion:
        return TrajectoryMotion(
            self.content.h5_file, self.content.path, target.model, target.find_kinematics(), options.ignore_particles
        )


class UsdLayerRecording(Recording):
    """A layer of time samples over a USD scene."""

    NAME = "usd-layer"
    LABEL = "a USD layer of time samples (.usd, .usda, .usdc)"
    OPTIONS = ()

    def __init__(self, content: Content) -> None:
        self.content = content

    @staticmethod
    def recognise(content: Content) -> bool:
        """Any USD file: a complete scene too is a layer when it is given as a recording."""
        return content.storage == input_files.USD

    def describe(self) -> RecordingDescription:
        from collidecli.importers.usd.stage import diagnostics, read_motion_layer

        path = self.content.path
        with diagnostics(path):
            layer = read_motion_layer(path)
        return RecordingDescription(
            frames=layer.sample_count,
            worlds=1,
            start=layer.first / layer.rate,
            end=layer.last / layer.rate,
            bodies=tuple(layer.animated),
            quaternion_order="wxyz",
            needs=("the USD scene that it animates",),
            details=(("time codes a second", f"{layer.rate:g}"),),
        )

    def world_count(self, options: RecordingOptions) -> int | None:
        """None: the layer moves prims by path, in whichever world of the scene they are."""
        return None

    def motion(self, target: Target, options: RecordingOptions) -> Motion:
        """The animation of the composed scene, in which the layer is the strongest; one frame for one time.

        The hash is that of the file, and of a layer with sublayers that of the hashes of all files.
        """
        from collidecli.importers.usd.scene import UsdImport
        from collidecli.importers.usd.stage import diagnostics, layer_files

        path, scene = self.content.path, target.imports[0]
        if len(target.imports) != 1 or not isinstance(scene, UsdImport):
            raise InputError("a USD layer moves one USD scene", path, "run it with the USD scene that it animates")
        motion = scene.motion(target.model) or RestingMotion(target.model.bodies.pose[None])
        with diagnostics(path):
            hashes = [input_files.file_sha256(file) for file in layer_files(path)]
        motion.sha256 = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
        return motion


# Registry of the kinds of recordings, which are recognised by content.
#
# To add a kind: a module in this folder with a class that implements `Recording`, and a row in `_KINDS`. The kinds are
# tried in order; the first kind that recognises the content is used. Only the modules that are needed are imported.

_KINDS = (
    # module, class, storage formats that the kind may have
    ("recording", "TrajectoryRecording", (input_files.HDF5,)),
    ("isaac_lab", "IsaacLabRecording", (input_files.HDF5,)),
    ("mujoco_states", "RobosuiteRecording", (input_files.HDF5,)),
    ("mujoco_states", "MujocoStatesRecording", (input_files.HDF5, input_files.NPZ, input_files.NPY)),
    ("humanoid", "HumanoidRecording", (input_files.NPZ, input_files.CSV)),
    ("lerobot", "LeRobotRecording", (input_files.JSON,)),
    ("recording", "UsdLayerRecording", (input_files.USD,)),
    ("ros_bag", "RosBagRecording", (input_files.BAG,)),
)


def known_kinds(storage: str = "") -> Iterator[type[Recording]]:
    """Every kind, in the order in which they are tried. storage: only those that may have this storage format."""
    for module, name, storages in _KINDS:
        if not storage or storage in storages:
            yield getattr(import_module(f"collidecli.importers.recordings.{module}"), name)


def kind_of(path: str | os.PathLike[str]) -> type[Recording]:
    """The kind of a recording. Raises InputError for a file of no known kind, with a description of its content."""
    with closing(open_content(path)) as content:
        return _kind_of(content)


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """The open recording; the caller closes it, or the motion that is made of it. Raises InputError as `kind_of`."""
    content = open_content(path)
    try:
        return _kind_of(content)(content)
    except BaseException:
        content.close()
        raise


def open_motion(recording: Recording, target: Target, options: RecordingOptions) -> Motion:
    """See `Recording.motion`. Closes the recording where this fails. Raises InputError for an option without effect."""
    try:
        refuse_options(options, f"on {recording.LABEL}", recording.content.path, recording.OPTIONS)
        return recording.motion(target, options)
    except BaseException:
        recording.close()
        raise


def refuse_options(options: RecordingOptions, of_what: str, where: str, known: Sequence[str] = ()) -> None:
    """Raises InputError for an option that is given and is not one of `known`: it would have no effect."""
    declared = declared_options(RecordingOptions).items()
    flags = {name: option.flags or f"--{name.replace('_', '-')}" for name, option in declared}
    for name, flag in flags.items():
        if name not in known and getattr(options, name) not in (None, "", (), False):
            useful = ", ".join(flags[known_name] for known_name in known)
            fix = f"remove it; options with an effect: {useful}" if useful else "remove it, or give a recording with -t"
            raise InputError(f"{flag} has no effect {of_what}", where, fix)


def _kind_of(content: Content) -> type[Recording]:
    with structure():
        for kind in known_kinds(content.storage) if content.storage else ():
            if kind.recognise(content):
                return kind
    what = f"the file is not a recording of a known kind: {content.summary()}"
    raise InputError(what, content.path, f"known kinds: {', '.join(kind.NAME for kind in known_kinds())}")


# The files of a recording: one, or those of a LeRobot data set or of a ROS bag.

INFO = "info.json"
DATA = ("data", "*", "*.parquet")
EPISODES = ("meta", "episodes", "*", "*.parquet")


def is_data_set(path: str) -> bool:
    """Whether a recording is named as a LeRobot data set."""
    return os.path.basename(path) == INFO


def recording_files(path: str) -> list[str]:
    """The files that identify a recording: itself, the states of a LeRobot data set, all in a ROS bag's folder."""
    if os.path.isdir(path):
        return [entry.path for entry in sorted(os.scandir(path), key=lambda entry: entry.name) if entry.is_file()]
    if not is_data_set(path):
        return [path]
    root = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    files = [glob.glob(os.path.join(glob.escape(root), *parts)) for parts in (DATA, EPISODES)]
    return [path, *sorted(files[0]), *sorted(files[1])]
