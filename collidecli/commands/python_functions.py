"""The Python API: verbs of the command line and recordings; distances, clearances and sweeps of shapes and models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from collidecli.analysis.contact_motion import body_poses, distance_gradient, is_differentiable
from collidecli.analysis.patterns import listed
from collidecli.analysis.summary import TOUCHES
from collidecli.commands.audit import Audit, AuditRequest
from collidecli.commands.audit import audit as run_audit
from collidecli.commands.audit_sources import AuditLimits, read_limits
from collidecli.commands.clearance import ClearanceBlock, ClearanceRequest, MeasuredMotion, check_clearance, shape_poses
from collidecli.commands.collision import check_frames, pose_batches
from collidecli.commands.contact_set import ContactSet, NamedColumns, dense_intervals, dense_rows
from collidecli.commands.engine_sets import Problem, load_problem
from collidecli.commands.label import LabelOptions, Labels, labels_in_memory
from collidecli.commands.python_api import Contacts, asset_texts, contact_options, contacts_in_memory, motion_of
from collidecli.commands.results import PathLike, html_table
from collidecli.commands.run import RunRequest, run_request
from collidecli.commands.run import run as run_to_file
from collidecli.commands.scenes import EngineRequest, frames_text, scene_in_motion
from collidecli.commands.timing import TimingReport
from collidecli.engine.device_model import bounding_radius, upload_model
from collidecli.engine.distances import PairDistances, point_distances
from collidecli.engine.pipeline import find_device, load_stages, rows_within, sweep_stages
from collidecli.errors import InputError
from collidecli.importers.recordings import recording as kinds
from collidecli.numerics import compose_as_kernels, compose_poses, inverse_poses
from collidecli.scene import options
from collidecli.scene.arguments import checked_metres, float_array, python_call, unknown_argument
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import CONTACT_FORMATS, OPTION_GROUPS, ContactOptions, declared_options
from collidecli.scene.shape_types import IDENTITY_POSE, ShapeType, checked_pose
from collidecli.scene.tables import SELF_SWEEP, SOFT_SWEEP, SWEEP, GroupRows, consecutive_groups
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.field_cache import FieldCache
from collidecli.storage.h5_files import format_of_path
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:
    import pandas


@python_call
def run(
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None = None,
    output: PathLike | None = None,
    *,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    **options: Any,
) -> Contacts | str:
    """Every contact of scene files in a recorded motion, as `collide run` finds them.

    Args:
        scene: a scene file, several (one world each), or None if the recording contains its scene.
        recording: a file of any known kind; None is the scene's own motion, else its resting pose.
        output: contact set file to write; None returns the contacts in memory.
        compression, force, format: of the output; format is the major version of the contact set format.
        options: further options of `collide run`, with underscores: worlds=4, frames="0:100", gap=0.01, columns=[...],
            broad_phase="sap", device="cpu", asset_map={"OLD": "NEW"}.
    Returns:
        `Contacts` without an output, else the path of the contact set.
    Raises:
        InputError, OutputError: as the command does. Its warnings are `UserWarning`.
    """
    request = scene_request(scene, recording, options)
    if output is not None:
        file = {"output": os.fspath(output), "compression": compression, "format": format, "force": force}
        result = run_to_file(replace(request, **file))
        for text in result.warnings:
            warnings.warn(text, stacklevel=3)
        return result.output
    model, motion = _loaded(request)
    with closing(motion):
        return contacts_in_memory(model, motion, request.contact, request.engine, request.columns)


def problem(scene: PathLike | Sequence[PathLike] | None, recording: PathLike | None = None, **options: Any) -> Problem:
    """Scene files in a recorded motion for another engine: shapes, poses, the pairs that may touch, exact distances.

    Args:
        scene, recording, options: as of `run`; an option of this engine alone has no effect.
    Raises:
        InputError: as `run` does, and for worlds with different shapes.
    """
    return load_problem(scene_request(scene, recording, options))


def scene_request(
    scene: PathLike | Sequence[PathLike] | None, recording: PathLike | None, options: Mapping[str, Any]
) -> RunRequest:
    """The request of `run` for its arguments. Raises InputError for an unknown option."""
    given = dict(options)
    if "asset_map" in given:
        given["asset_map"] = asset_texts(given["asset_map"])
    if isinstance(given.get("columns"), str):
        given["columns"] = (given["columns"],)
    if scene is None and recording is None:
        raise InputError("neither a scene nor a recording is given", "run", "give a scene, or a recording that has one")
    return run_request([] if scene is None else scene, recording, Path(), Path(), given)


def _loaded(request: RunRequest) -> tuple[Model, Motion]:
    scene, motion = scene_in_motion(request)
    for text in (*scene.warnings, *motion.warnings):
        warnings.warn(text, stacklevel=4)
    return scene.model, motion


class RecordingFile:
    """A recording of any known kind, see `open_recording`.

    path: its path. kind: name of the kind, such as "trajectory"; label: its description. frames, worlds: counts.
    bodies: names of the recorded bodies; empty if the kind has none. start, end: times of the first and last frame [s],
    or None. needs: what `run` needs in addition, as texts.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        with closing(kinds.open_recording(self.path)) as recording:
            description = recording.describe()
            self.kind, self.label = recording.NAME, recording.LABEL
        self.frames, self.worlds = description.frames, description.worlds
        self.bodies = tuple(description.bodies)
        self.start, self.end = description.start, description.end
        self.needs = tuple(description.needs)

    def __repr__(self) -> str:
        return f"<RecordingFile {self.path} kind={self.kind} frames={self.frames} worlds={self.worlds}>"

    @python_call
    def with_scene(self, scene: PathLike | Sequence[PathLike] | None = None, **options: Any) -> tuple[Model, Motion]:
        """The model of a scene, and the recording as its motion, for `collide(model, motion)`.

        scene: as in `run`. options: those of `run` for scenes and recordings. `motion.time` [s] has an entry per frame,
        `motion.read(range(a, b))` are poses float64[frames, worlds, bodies, 7], x y z qx qy qz qw; close the motion.
        """
        return _loaded(scene_request(scene, self.path, options))


@python_call
def open_recording(path: PathLike) -> RecordingFile:
    """The description of a recording of any known kind, recognised by content; with a scene, its poses.

    Raises InputError for a file of no known kind, or a malformed one.
    """
    return RecordingFile(path)


# The Python API of questions about a motion: `label` and `audit`, as the commands of these names.

OF_SCENES = {
    name for kind in OPTION_GROUPS.values() if kind is not ContactOptions for name in declared_options(kind)
} | {*("worlds", "frames", "margin", "static_pairs", "sweep", "sweep_tolerance")}
"""Options of `run` that have an effect on an audit."""


@python_call
def label(
    contacts: ContactSet | Contacts | PathLike,
    *,
    sensors: str | Sequence[str] = (),
    partners: str | Sequence[str] = (),
    between: str | Sequence[str] = (),
    by: str = "bodies",
    enter: float | str = 0.0,
    leave: float | str | None = None,
    min_frames: int = 1,
    slip: bool = False,
    worlds: Sequence[int] = (),
    frames: str | int | slice = "",
) -> Labels:
    """Which bodies touch which in each frame of each world of a contact set, as arrays.

    Args:
        contacts: a contact set, its path, or contacts in memory.
        sensors, partners: patterns, a sequence or a text with commas; () is every moving item, and every item.
        between: both in one, "hand*,cup*" or two patterns.
        by: "bodies", with static shapes and particle objects, or "shapes".
        enter: a label begins at a distance of at most this, in metres or as a text such as "2mm". leave: it lasts while
            the distance is at most this; None is `enter`. min_frames: shorter pauses are filled, then shorter labels
            left out.
        slip: read the contacts' column of that name, see `collide run --columns slip`.
        worlds: numbers; () is all. frames: "A:B:S", a slice or a number.
    Returns:
        `Labels`.
    Raises:
        InputError: as `collide label` does.
    """
    limits = checked_metres(enter, "enter"), None if leave is None else checked_metres(leave, "leave")
    sensors, partners = listed(sensors), listed(partners)
    if between := listed(between):
        if sensors or partners or len(between) != 2:
            raise InputError(f"{between!r} is not two patterns instead of sensors and partners", "between")
        sensors, partners = between[:1], between[1:]
    if isinstance(worlds, (str, int)) or not all(isinstance(world, (int, np.integer)) for world in worlds):
        raise InputError(f"{worlds!r} is no sequence of numbers of worlds", "worlds", "give one, such as [0]")
    options = LabelOptions(sensors, partners, by, *limits, min_frames, slip, worlds, frames_text(frames))
    contacts = contacts.contact_set if isinstance(contacts, Contacts) else contacts
    if isinstance(contacts, ContactSet):
        return labels_in_memory(contacts, options)
    if not isinstance(contacts, (str, os.PathLike)):
        raise InputError(f"contacts is a {type(contacts).__name__}", "label", "give a contact set, or its path")
    with reading("contact set", os.fspath(contacts)), ContactSet.open(contacts) as opened:
        return labels_in_memory(opened, options)


@python_call
def audit(
    scene: PathLike | Sequence[PathLike] | ContactSet | Contacts | None,
    recording: PathLike | None = None,
    *,
    max_depth: float | str | None = None,
    self: float | str | None = None,
    max_ground: float | str | None = None,
    max_start: float | str | None = None,
    allow: Sequence[tuple[str, str]] = (),
    ground_shapes: str | Sequence[str] = (),
    self_bodies: str | Sequence[str] = (),
    limits: PathLike = "",
    against: PathLike = "",
    tolerance: float | str = 1e-6,
    overlap_volume: bool = False,
    deepest_point: bool = False,
    first: int = 20,
    **options: Any,
) -> Audit:
    """The penetrations of a motion against limits, and the frames that can be used.

    Args:
        scene, recording: as of `run`; or a contact set, its path, or contacts in memory, alone.
        max_depth, self, max_ground, max_start: limits of depth, in metres or as a text such as "2mm"; None for none.
        allow: pairs of patterns without a limit. ground_shapes, self_bodies: patterns, a sequence or a text with
            commas.
        limits: a file of limits. against: the JSON of an earlier audit; tolerance: greater depths than its are worse.
        overlap_volume, deepest_point: measure these of the deepest overlaps of the `first` deepest pairs [m^3, m].
        options: of `collide audit` for scenes, with underscores: frames="0:100", margin=0.0, threads=2.
    Returns:
        `Audit`: `passed`, `usable` bool[frames, worlds], `depth`, `self_depth`, `ground_depth` [m], `pairs`, `result`.
    Raises:
        InputError: as `collide audit` does.
    """
    lengths = {"max_depth": max_depth, "self": self, "max_ground": max_ground, "max_start": max_start}
    depths: dict[str, Any] = {k: None if value is None else checked_metres(value, k) for k, value in lengths.items()}
    for pair in allow:
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(pattern, str) for pattern in pair):
            raise InputError(f"{pair!r} is no pair of patterns", "allow", 'give pairs, such as [("hand*", "cup*")]')
    given = AuditLimits(
        **depths,
        allow=tuple((first, second) for first, second in allow),
        ground_shapes=listed(ground_shapes),
        self_bodies=listed(self_bodies),
    ).checked()
    if limits:
        given = given.over(read_limits(os.fspath(limits)))
    scene = scene.contact_set if isinstance(scene, Contacts) else scene
    if isinstance(scene, ContactSet):
        scene = scene.path
    measured = overlap_volume, deepest_point, first
    baseline, apart = os.fspath(against), checked_metres(tolerance, "tolerance")
    is_path = isinstance(scene, (str, os.PathLike))
    if recording is None and is_path and format_of_path(scene) == FORMAT:
        if options.keys() - {"frames", "sweep"}:
            what = "are options for scenes, and a contact set has its motion and its contacts"
            raise InputError(what, ", ".join(options), "leave them out")
        frames = frames_text(options.get("frames", ""))
        request = AuditRequest(
            os.fspath(scene), None, frames, given, baseline, apart, *measured, bool(options.get("sweep"))
        )
    else:
        for name in options.keys() - OF_SCENES:
            raise unknown_argument(name, "audit", OF_SCENES | signature(audit).parameters.keys())
        run = scene_request(scene, recording, options)
        audited = EngineRequest(**{pair.name: getattr(run, pair.name) for pair in fields(EngineRequest)})
        request = AuditRequest("", audited, "", given, baseline, apart, *measured)
    outcome = run_audit(request)
    for note in outcome.result.warnings:
        warnings.warn(note, stacklevel=3)
    return outcome


# Pairs in memory: `distance`, `clearance`, and `sweep` between the frames of a motion.

# The Python API of distances: `clearance`, as the command `collide clearance`, `distance` and `signed_distance`.

KINDS = tuple("convex_hull" if kind == ShapeType.CONVEX_MESH else kind.label for kind in ShapeType)
"""Of `ModelBuilder.add_shape_<kind>`."""


@dataclass(frozen=True, repr=False)
class Clearances:
    """Least distances of a model in motion as NumPy arrays: F frames, W worlds, I items.

    distance: float64[F, W, I], signed as that of a contact, less margins [m]; NaN where a world does not have the item.
    normal, point0, point1: float64[F, W, I, 3], unit from shape0 to shape1 and the witness points on both surfaces
    without margins, in world [m]. error: float64[F, W, I], bound of the distance's error [m], infinite for depths that
    are not certified. shape0, shape1: int32[F, W, I], rows of the nearest pair's shapes; -1 for none. items: pairs of
    names of shapes, or names of bodies, or the two patterns. time: float64[F] [s], or numbers of frames for an array of
    poses without times. shape_path: of the model's shapes. `len` is the number of distances.

    With gradient=True, else None: gradient0, gradient1: float64[F, W, I, 6], derivatives of the distance of the nearest
    pair over the positions of both bodies [1], then over their rotation vectors in world about their origins [m]; of a
    static shape as of a body at the origin. gradient_exact: bool[F, W, I], whether that distance is differentiable.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    items: tuple[tuple[str, str], ...] | tuple[str, ...]
    time: np.ndarray
    shape_path: tuple[str, ...]
    gradient0: np.ndarray | None = None
    gradient1: np.ndarray | None = None
    gradient_exact: np.ndarray | None = None

    def __repr__(self) -> str:
        frames, worlds, items = self.distance.shape
        return f"<Clearances frames={frames} worlds={worlds} items={items}>"

    def __len__(self) -> int:
        return int((self.shape0 >= 0).sum())

    def _repr_html_(self) -> str:
        sizes: dict[str, object] = dict(zip(("frames", "worlds", "items"), self.distance.shape, strict=True))
        least = f"{np.nanmin(self.distance):.6g} m" if len(self) else "none"
        return html_table(sizes | {"distances": len(self), "least distance": least})

    def _axes(self, names: Sequence[str]) -> list[dict[str, np.ndarray]]:
        """names: of the columns of an item's paths."""
        frames, worlds, count = self.distance.shape
        paths = np.array(self.items, object).reshape(count, -1).T
        cells = [{"frame": np.arange(frames), "time": self.time}, {"world": np.arange(worlds)}]
        return [*cells, dict(zip(names, paths, strict=False))]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each distance, `len` in all, with the columns of `clearance -o x.parquet` without the step.

        Raises InputError without pandas.
        """
        paths, by_body = np.array(self.shape_path, object), self.items and isinstance(self.items[0], str)
        arrays = {"shape0": paths[self.shape0], "shape1": paths[self.shape1]}
        arrays |= {name: getattr(self, name) for name in ("distance", "error", "normal", "point0", "point1")}
        return dense_rows(self._axes(["body"] if by_body else []), arrays, self.shape0 >= 0).to_pandas()

    def events(self, threshold: float | str = 0.0) -> NamedColumns:
        """A row for each run of frames in which an item is at most this far, in metres or as a text such as "2mm".

        Columns: world, shape0 and shape1 or body, begin_frame, last_frame, begin_time, last_time.
        """
        near = self.distance <= checked_metres(threshold, "threshold")
        by_body = self.items and isinstance(self.items[0], str)
        return dense_intervals(self._axes(["body"] if by_body else ["shape0", "shape1"]), near)


@python_call
def clearance(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    time: Sequence[float] | np.ndarray | None = None,
    fps: float | None = None,
    by: str = "",
    between: Sequence[str] = (),
    top: int = 0,
    margin: float | str | None = None,
    gradient: bool = False,
    device: str = "",
    threads: int = 0,
    cache_dir: str = "",
    cache_limit: int = options.DEFAULT_CACHE_LIMIT,
) -> Clearances:
    """The least distances of a model's shapes in every frame of a motion, without a cutoff.

    Args:
        model, body_q, time, fps: as in `collide`.
        by: "pair", each pair of shapes that may touch; "body", each body and static shape; "all", all pairs together;
            "" is "all" with `between`, else "pair".
        between: two patterns of paths of shapes or bodies; only pairs with one of each are measured.
        top: only the pairs that come nearest in the whole motion; 0 is all.
        margin: in place of every shape's own, in metres or as a text such as "2mm".
        gradient: add the derivatives of the distances over poses; takes twelve more distances for each.
        device, threads, cache_dir, cache_limit: as in `collide`.
    Returns:
        `Clearances`.
    Raises:
        InputError: as `collide clearance` does.
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}", "clearance", "give a result of ModelBuilder.finalize()")
    engine = options.EngineOptions(device=device, threads=threads, cache_dir=cache_dir, cache_limit=cache_limit)
    request = ClearanceRequest(
        scenes=(), contact=contact_options(margin=margin), engine=engine, by=by, between=tuple(between), top=top
    )
    check_clearance(request)
    motion = motion_of(model, body_q, None, time, fps)
    measured = MeasuredMotion(request, request.contact.apply(model), motion, find_device(device))
    for note in measured.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=3)
    names = ("distance", "normal", "point0", "point1", "error", "pair")
    blocks = [
        {name: getattr(block, name) for name in names} | (_gradients(measured, block) if gradient else {})
        for block in measured.blocks()
    ]
    arrays = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    pair, rows = arrays.pop("pair"), measured.items.pair
    shape0, shape1 = (np.where(pair < 0, -1, rows[np.maximum(pair, 0), k]).astype(np.int32) for k in (0, 1))
    first, second = measured.items.first, measured.items.second
    items = first if request.kind == "body" else tuple(zip(first, second, strict=True))
    paths = tuple(model.shapes.path)
    return Clearances(**arrays, shape0=shape0, shape1=shape1, items=items, time=motion.time, shape_path=paths)


def _gradients(measured: MeasuredMotion, block: ClearanceBlock) -> dict[str, np.ndarray]:
    """The gradients of `Clearances` in a block of frames."""
    model, at = measured.model, np.nonzero(block.pair >= 0)
    frame, world, _ = at
    poses = measured.motion.read(range(block.first, block.first + len(block.pair)))
    pair, placed = measured.items.pair[block.pair[at]], shape_poses(model, poses)
    moved = [placed[frame, world, rows] for rows in pair.T]
    gradients: dict[str, np.ndarray] = {"gradient_exact": np.zeros(block.pair.shape, bool)}
    gradient = origin = np.zeros((0, 6))
    for side, point in enumerate((block.point0, block.point1)):
        origin = body_poses(model, poses, frame, world, model.shapes.body[pair[:, side]].astype(np.int64))[:, :3]
        gradient = distance_gradient(side, block.normal[at], point[at], origin)
        gradients[f"gradient{side}"] = np.full((*block.pair.shape, 6), np.nan)
        gradients[f"gradient{side}"][at] = gradient
    size = bounding_radius(model.shapes.type, model.shapes.size)[pair].min(axis=1).astype(np.float64)

    def of_moved(shape1: np.ndarray) -> np.ndarray:
        return measured.distances.measure(pair, np.stack([moved[0], shape1], axis=1)).distance

    gradients["gradient_exact"][at] = is_differentiable(of_moved, gradient, origin, moved[1], block.point1[at], size)
    return gradients


class Shape:
    """A shape for `distance` and `signed_distance`.

    Args:
        kind: "plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "convex_hull", "mesh" or
            "heightfield".
        xform: its pose, x y z qx qy qz qw; None is the identity.
        arguments: sizes and geometry, as of `ModelBuilder.add_shape_<kind>`: radius=0.5, or vertices=v, faces=f [m].
    Raises InputError for an unknown kind or invalid arguments.
    """

    def __init__(self, kind: str, xform: Sequence[float] | None = None, **arguments: Any) -> None:
        if kind not in KINDS:
            raise InputError(f"kind is {kind!r}", "Shape", f"give one of: {', '.join(KINDS)}")
        self.kind, self.pose = kind, checked_pose(xform, "Shape")
        self._arguments = arguments
        builder = ModelBuilder()
        self.add_to(builder)
        self.model = builder.finalize()

    def add_to(self, builder: ModelBuilder) -> None:
        """Adds the shape to a builder, on a body of its own."""
        add = getattr(builder, f"add_shape_{self.kind}")
        try:
            signature(add).bind(0, **self._arguments)
        except TypeError as error:
            valid = ", ".join([*signature(add).parameters][1:])
            raise InputError(str(error), f"Shape {self.kind}", f"its arguments are: {valid}") from None
        add(builder.add_body(), **self._arguments)

    def __repr__(self) -> str:
        return f"<Shape {self.kind}>"


@dataclass(frozen=True, repr=False)
class Distances:
    """Least distances of two shapes.

    distance: signed, negative is the penetration depth [m]. normal: unit, from a to b.
    point0, point1: witness points on a and on b [m]. error: bound of the distance's error [m], infinite for depths that
    are not certified. float64, [n] and [n, 3] for n poses, else a number and [3].

    With gradient=True, else None: gradient_a, gradient_b: [n, 6], derivatives of the distance over the position of a
    body [1], then over its rotation vector in world about its origin [m]. gradient_exact: [n], whether the distance is
    differentiable there; false at ties, such as parallel faces, where no gradient is right.
    """

    distance: Any
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: Any
    gradient_a: np.ndarray | None = None
    gradient_b: np.ndarray | None = None
    gradient_exact: Any = None

    def __repr__(self) -> str:
        return f"<Distances distance={self.distance}>"


@python_call
def distance(
    a: Shape,
    b: Shape,
    *,
    pose_a: np.ndarray | None = None,
    pose_b: np.ndarray | None = None,
    gradient: bool = False,
    device: str = "",
) -> Distances:
    """The least distance of two shapes, exact, without a cutoff.

    Args:
        pose_a, pose_b: poses [7] or [n, 7], x y z qx qy qz qw, that move the shapes with their own poses; None is the
            identity. n pairs are measured together. They are the poses of two bodies.
        gradient: add the derivatives of the distance over both poses; takes twelve more distances of each pair.
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        `Distances`.
    Raises:
        InputError: two planes, or invalid poses.
    """
    _check_shapes("distance", a, b)
    single = all(pose is None or np.ndim(pose) == 1 for pose in (pose_a, pose_b))
    poses = [_poses(pose, name) for pose, name in ((pose_a, "pose_a"), (pose_b, "pose_b"))]
    count = max(map(len, poses))
    if any(len(value) not in (1, count) for value in poses):
        raise InputError(f"there are {len(poses[0])} and {len(poses[1])} poses", "distance", "give as many of both")
    builder = ModelBuilder()
    for shape in (a, b):
        shape.add_to(builder)
    model = builder.finalize()
    placed = np.empty((count, 2, 7))
    for k, shape in enumerate((a, b)):
        placed[:, k] = compose_as_kernels(compose_poses(poses[k], shape.pose), model.shapes.pose[k])
    rows = np.tile(np.array([0, 1], np.int32), (count, 1))
    distances = PairDistances(model, find_device(device), rows[:1])
    measured = distances.measure(rows, placed)
    values: list[Any] = [measured.distance, measured.normal, measured.point0, measured.point1, measured.error]
    if gradient:
        sides = [(k, measured.normal, values[2 + k], poses[k][:, :3]) for k in (0, 1)]
        values += [distance_gradient(*side) for side in sides]

        def of_moved(moved: np.ndarray) -> np.ndarray:
            return distances.measure(rows, np.stack([placed[:, 0], moved], axis=1)).distance

        size = np.full(count, bounding_radius(model.shapes.type, model.shapes.size).min(), np.float64)
        values.append(is_differentiable(of_moved, values[-1], poses[1][:, :3], placed[:, 1], values[3], size))
    return Distances(*(value[0] if value.ndim > 1 else value[0].item() for value in values) if single else values)


@python_call
def signed_distance(points: np.ndarray, shape: Shape, *, device: str = "") -> Any:
    """The signed distance of points from a shape's surface, exact [m]: negative inside a closed shape.

    Args:
        points: [3] or [n, 3], in the frame in which the shape's pose is given [m].
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        float, or float64[n]. Never negative for an open mesh, which has no inside.
    Raises:
        InputError: points of another shape, or that are not finite.
    """
    _check_shapes("signed_distance", shape)
    given = float_array("points", points, "signed_distance")
    if given.shape[-1:] != (3,) or given.ndim > 2 or not np.isfinite(given).all():
        what = f"points have shape {given.shape}" if np.isfinite(given).all() else "a point is not finite"
        raise InputError(what, "signed_distance", "give finite numbers [3] or [n, 3]")
    model = shape.model
    if model.shapes.type[0] == ShapeType.HEIGHTFIELD:
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), solid_mesh(model.heightfields[0]))
        offset = model.shapes.pose[0]
        model = builder.finalize()
    else:
        offset = model.shapes.pose[0]
    in_world = np.zeros((given.reshape(-1, 3).shape[0], 7))
    in_world[:, :3], in_world[:, 6] = given.reshape(-1, 3), 1.0
    local = compose_poses(inverse_poses(compose_poses(shape.pose, offset)), in_world)[:, :3]
    distances = point_distances(model, 0, local, find_device(device))
    return float(distances[0]) if given.ndim == 1 else distances


def _check_shapes(where: str, *shapes: object) -> None:
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise InputError(f"a value of type {type(shape).__name__} is no shape", where, "give a collidecli.Shape")


def _poses(pose: np.ndarray | None, name: str) -> np.ndarray:
    """float64[n, 7]: poses with normalized quaternions."""
    if pose is None:
        return np.array([IDENTITY_POSE])
    given = float_array(name, pose, "distance")
    if given.ndim not in (1, 2) or given.shape[-1] != 7 or not len(given):
        raise InputError(f"{name} has shape {given.shape}", "distance", "give poses [7] or [n, 7]")
    return np.array([checked_pose(row, f"distance: {name}") for row in given.reshape(-1, 7).tolist()])


# Python's `sweep`: contacts between the frames of a motion, in memory.

CELLS_AT_ONCE = 4096
MEMORY_LIMIT = 1 << 32
"""Scratch memory and rows of a batch [bytes]."""


@dataclass(frozen=True, repr=False)
class SweepRows:
    """What touches between a frame and the next, or is undecided; arrays of one length.

    frame, world: int64[n], of the begin of the step. touches: bool[n]; False is undecided. tunnel: bool[n], whether
        both are apart in both frames and touch between.
    enter, leave: float64[n], begin of the first touch and end of the last one, in 0 to 1 of the step. enter_time,
        leave_time: float64[n], of the motion [s]; of an array of poses without times, numbers of frames.
    least: float64[n], least distance that was found, less both margins; negative is penetration [m]. least_bound:
        float64[n], lower bound of every distance in the step [m].
    normal: float32[n, 3], unit, at `enter`, in world.
    """

    frame: np.ndarray
    world: np.ndarray
    touches: np.ndarray
    tunnel: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    enter_time: np.ndarray
    leave_time: np.ndarray
    least: np.ndarray
    least_bound: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        counts = f"pairs={len(self)} tunnels={int(self.tunnel.sum())} undecided={int((~self.touches).sum())}"
        return f"<{type(self).__name__} {counts}>"


@dataclass(frozen=True, repr=False)
class ParticleSweep(SweepRows):
    """Particles that touch a shape, and triangles of particles that do where none of their particles does.

    kind: uint8[n], 0 of a particle, 2 of a triangle. indices: int32[n, 3], rows of the model's particles; -1 none.
        particle: int32[n], the first of them. barycentric: float32[n, 3], weights of the particles of a triangle at the
        point that touches at `enter`. shape: int32[n], rows of the model's shapes. Rows are ordered by frame, world,
        kind, indices and shape. point: [n, 3], point of the shape's surface at `enter`, in world [m]. The normal is
        from the shape to the particle; distances are less the shape's margin and the particle's radius.
    """

    particle: np.ndarray
    shape: np.ndarray
    point: np.ndarray
    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray


@dataclass(frozen=True, repr=False)
class SelfSweep(SweepRows):
    """Vertices and faces, and pairs of edges, of cloths and soft bodies that touch.

    kind: uint8[n], 0 a vertex and a face, 1 two edges. indices: int32[n, 4], rows of the model's particles, of a vertex
        and a triangle or of both edges. Rows are ordered by frame, world, kind and indices. barycentric: float32[n, 4],
        weights of the particles at `enter`. point0, point1: [n, 3], closest points of both elements at `enter`, in
        world [m]. The normal is from the first element to the second; distances are without radii.
    """

    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray
    point0: np.ndarray
    point1: np.ndarray


@dataclass(frozen=True, repr=False)
class Sweep(SweepRows):
    """Pairs of shapes that touch.

    shape0, shape1: int32[n], rows of the model's shapes, shape0 < shape1. Rows are ordered by frame, world, shape0 and
        shape1; a pair that stays apart has none. point0, point1: [n, 3], witness points at `enter`, in world [m]. The
        normal is from shape0 to shape1.
    shape_path: paths of the model's shapes. particles: the particles that touch a shape; None of a model without any.
    elements: the elements of cloths and soft bodies that touch each other; None without `self_contacts`.
    """

    shape0: np.ndarray
    shape1: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    shape_path: tuple[str, ...] = field(default=())
    particles: ParticleSweep | None = None
    elements: SelfSweep | None = None


Found = TypeVar("Found", bound=SweepRows)


@python_call
def sweep(
    model: Model,
    body_q: np.ndarray | Motion | None,
    *,
    particle_q: np.ndarray | None = None,
    time: Sequence[float] | np.ndarray | None = None,
    fps: float | None = None,
    tolerance: float | str = options.DEFAULT_SWEEP_TOLERANCE,
    margin: float | str | None = None,
    self_contacts: float | str = 0.0,
    self_contact_rings: int = options.DEFAULT_RINGS,
    self_contact_rest: float | str | None = None,
    device: str = "",
    cache_dir: str = "",
    cache_limit: int = options.DEFAULT_CACHE_LIMIT,
) -> Sweep:
    """Pairs of shapes, and particles and shapes, that touch between the frames of a motion: the rows that `collide run
    --sweep` writes.

    Args:
        model: a result of `ModelBuilder.finalize`.
        body_q: poses float32 or float64[frames, worlds, bodies, 7], or a `Motion`, of two frames at least; see
            `collide`. None: the bodies rest.
        particle_q: positions of the model's particles [frames, worlds or 1, particles, 3]; see `collide`.
        time, fps: of the frames of an array; see `collide`.
        tolerance: shapes touch at this distance or less, of their surfaces inflated by their margins. This and the
            other lengths are in metres, or texts such as "2mm".
        margin: in place of every shape's own [m].
        self_contacts, self_contact_rings, self_contact_rest: of `collide`: elements of cloths and soft bodies touch at
            `self_contacts` [m]; 0 finds none.
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
        cache_dir, cache_limit [bytes]: cache of signed distance fields; 0 bytes disables it.
    Returns:
        The pairs; between the frames each body moves in a straight line and turns by the shortest rotation, and each
        particle moves in a straight line.
    Raises:
        InputError: a body rotates by half a turn in one step, body_q does not fit the model, or an option is invalid.
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}", "sweep", "give a result of ModelBuilder.finalize()")
    tolerance = checked_metres(tolerance, "tolerance")
    options.check_sweep_tolerance(tolerance)
    motion = motion_of(model, body_q, particle_q, time, fps)
    check_frames(motion)
    contact = contact_options(
        margin=margin,
        self_contacts=self_contacts,
        self_contact_rings=self_contact_rings,
        self_contact_rest=self_contact_rest,
    )
    applied = contact.apply(model)
    device_model = upload_model(applied, find_device(device))
    store = FieldCache(cache_dir, cache_limit)
    stages = sweep_stages(device_model, contact, tolerance, motion.float_type, store)
    load_stages(stages, device_model.device)
    tables = consecutive_groups(
        [
            {stage.group.name: rows_within(stage, device_model, batch, MEMORY_LIMIT) for stage in stages}
            for batch in pose_batches(motion, applied, CELLS_AT_ONCE, TimingReport(), with_next=True)
        ]
    )
    particles = _result(ParticleSweep, tables[SOFT_SWEEP.name], model, motion) if SOFT_SWEEP.name in tables else None
    elements = _result(SelfSweep, tables[SELF_SWEEP.name], model, motion) if SELF_SWEEP.name in tables else None
    rows = _result(Sweep, tables[SWEEP.name], model, motion)
    return replace(rows, shape_path=tuple(model.shapes.path), particles=particles, elements=elements)


def _result(kind: type[Found], rows: GroupRows, model: Model, motion: Motion) -> Found:
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    frame, world = np.divmod(cell, model.world_count)
    columns = dict(rows.columns)
    status, tunnel = columns.pop("status"), columns.pop("tunnel")
    if kind is ParticleSweep:
        columns["particle"], columns["point"] = columns["indices"][:, 0], columns.pop("point_world")
    begin, end = motion.time[frame], motion.time[frame + 1]
    times = (begin + columns[name] * (end - begin) for name in ("enter", "leave"))
    return kind(
        frame=frame, world=world, **columns, touches=status == TOUCHES, tunnel=tunnel == 1,
        **dict(zip(("enter_time", "leave_time"), times, strict=True)),
    )  # fmt: skip
