"""The verbs `inspect` and `check`: contents of a scene, a recording or a contact set; faults of files."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Container, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from collidecli.analysis.summary import ColumnRanges, ContactCounts, Tally
from collidecli.analysis.touches import Names
from collidecli.commands.results import PathLike, Result
from collidecli.commands.scenes import MUJOCO_ENDINGS, LoadedScene, load_scene
from collidecli.errors import InputError
from collidecli.importers.recordings.recording import kind_of, open_recording
from collidecli.scene.filter_rules import FilterClass
from collidecli.scene.filters import allowed_pairs, excluded_counts, explain, pair_lengths
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model, may_share_world
from collidecli.scene.options import GROUND, SceneOptions
from collidecli.scene.particles import Particles
from collidecli.scene.shape_config import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.storage.contact_sets.check import check_file, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet, ContactTable
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_files import format_of, open_h5, text_of
from collidecli.storage.input_files import HDF5, UNKNOWN, USD, bag_format, storage_of
from collidecli.storage.process_activity import reading, structure
from collidecli.storage.result_files import PROFILE_FORMAT
from collidecli.storage.trajectory_files import TRAJECTORY_FORMAT, check_trajectory, read_header
from collidecli.texts import did_you_mean, some_names

CHECKED = (FORMAT, TRAJECTORY_FORMAT)
"""Formats of the files that are checked."""


@dataclass(frozen=True)
class Finding:
    """A fault of a file. where: path of the dataset or attribute in the file."""

    where: str
    what: str


@dataclass(frozen=True)
class CheckResult(Result, schema="collide.check/1", optional=("notes",)):
    """Findings about a file. good: there are none. notes: what rows of another engine do not keep; None without it."""

    file: str
    format: str
    good: bool
    findings: list[Finding]
    notes: list[Finding] | None = None


def check(path: PathLike) -> CheckResult:
    """Checks a contact set or a trajectory.

    Raises InputError for a file that cannot be opened, or is neither a contact set nor a trajectory.
    """
    with reading("file", path):
        storage = storage_of(os.fspath(path))
        kind = file_format(path) if storage == HDF5 else ""
        checks = dict(zip(CHECKED, (check_file, check_trajectory), strict=True))
        refuse_profile(kind, path)
        if kind not in checks:
            what, fix = "is neither a contact set nor a trajectory of collide", "collide inspect shows scenes"
            if kind.startswith("collide-"):
                what, fix = (
                    f"the format is {kind}, and files of {' and '.join(CHECKED)} are checked",
                    "read it with h5py",
                )
            elif storage:
                what += f" but {kind_of(path).LABEL}"
                fix = "make a trajectory of it with collide traj convert"
            raise InputError(what, os.fspath(path), fix)
        rules = checks[kind](path)
        faults, notes = (
            [Finding(rule.where, rule.what) for rule in rules if rule.is_note == wanted] for wanted in (False, True)
        )
        return CheckResult(os.fspath(path), kind, not faults, faults, notes or None)


def refuse_profile(kind: str, path: PathLike) -> None:
    """Raises InputError if `kind`, the format of a file, is that of the figures of `collide profile`."""
    if kind == PROFILE_FORMAT:
        fix = "collide report OUT.h5 --profile FILE draws them; the .json beside the file has the same figures as text"
        raise InputError("this file has the times of collide profile, not contacts or a motion", os.fspath(path), fix)


def file_format(path: PathLike) -> str:
    """Attribute `format` of an HDF5 file; empty without one. Raises InputError for a file that cannot be read."""
    with open_h5(path) as file:
        return format_of(file)


# Contents of a scene, a recording or a contact set.

# Contents of a scene and its collision filter, for the verb `inspect`.

Why = tuple[str, str] | None
"""Names of two shapes or bodies."""
MAX_COUNTED_SHAPES = 5000
"""Pairs of a template with more shapes are counted only on request."""


@dataclass(frozen=True)
class SceneResult(Result, schema="collide.inspect.scene/1", optional=("pairs", "why", "deformables")):
    """Contents of a scene: shapes, bodies, worlds, filters.

    pair_gap, pair_margin: least and greatest gap and margin of pairs that may touch [m]; None if not counted, and
    without any.
    allowed_pair_count: pairs of shapes that may touch; None if not counted. pair_count: all pairs of shapes that are in
    a world together, each template once. excluded_pairs: of the others by rule, each pair once, under the first that
    forbids it; empty if not counted.
    kept_attributes: count of shapes with each attribute that is read but affects no contact. pairs, why: if requested.
    deformables: path, kind, template, particles, triangles and tetrahedra of each object of particles; None without.
    """

    file: str
    sha256: str
    up_axis: str
    gap_rule: str
    material_rule: str
    worlds: int
    templates: int
    motion: dict[str, Any]
    pair_gap: list[float] | None
    pair_margin: list[float] | None
    shape_types: dict[str, int]
    shapes: list[dict[str, Any]]
    bodies: list[dict[str, Any]]
    allowed_pair_count: int | None
    pair_count: int
    excluded_pairs: dict[str, int]
    forced_pair_count: int
    kept_attributes: dict[str, int]
    warnings: tuple[str, ...]
    pairs: list[list[str]] | None = None
    why: dict[str, Any] | None = None
    deformables: list[dict[str, Any]] | None = None


def _deformables(particles: Particles) -> list[dict[str, Any]]:
    triangles = np.bincount(particles.owner[particles.triangle[:, 0]], minlength=len(particles.path))
    tetrahedra = np.bincount(particles.owner[particles.tetrahedron[:, 0]], minlength=len(particles.path))
    return [
        {
            "path": path,
            "kind": particles.kind[row],
            "template": int(particles.template[row]),
            "particles": int(particles.first[row + 1] - particles.first[row]),
            "triangles": int(triangles[row]),
            "tetrahedra": int(tetrahedra[row]),
        }
        for row, path in enumerate(particles.path)
    ]


def _ends(model: Model, pairs: np.ndarray | None, name: str) -> list[float] | None:
    """Least and greatest gap or margin of pairs [m]; None without pairs."""
    if pairs is None or not len(pairs):
        return None
    lengths = pair_lengths(model, pairs, name)
    return [float(min(lengths)), float(max(lengths))]


def inspect_scene(
    path: str, pairs: bool, why: Why, static_pairs: bool, options: SceneOptions, is_recording: bool = False
) -> SceneResult:
    """Contents of a scene. pairs: list the paths of all pairs that may touch. why: explain the filter for two shapes.

    static_pairs: pairs of two static shapes may touch. is_recording: the scene is in a recording.
    """
    scene = load_scene([] if is_recording else [path], None, static_pairs, path if is_recording else None, options)
    if scene.recording is not None:
        scene.recording.close()
        scene = replace(scene, recording=None)
    model = scene.model
    templates = range(int(model.world_template.max()) + 1)
    counted = pairs or all(len(model.template_shapes(t)) <= MAX_COUNTED_SHAPES for t in templates)
    allowed = _union([allowed_pairs(model, t) for t in templates]) if counted else None
    left_out = {name for imported in scene.imports for name in imported.left_out}
    paths = model.shapes.path
    every = int((model.shapes.template < 0).sum())
    own_shapes = np.bincount(model.shapes.template[model.shapes.template >= 0])
    kept = (attributes for imported in scene.imports for attributes in imported.kept.values())
    counts = Counter(model.shapes.body.tolist())
    return SceneResult(
        file=path,
        sha256=scene.sha256,
        up_axis=model.up_axis,
        gap_rule=model.gap_rule,
        material_rule=model.material_rule,
        worlds=model.world_count,
        templates=len(templates),
        motion=_motion(scene),
        pair_gap=_ends(model, allowed, "gap"),
        pair_margin=_ends(model, allowed, "margin"),
        shape_types=dict(Counter(kind.label for kind in model.shapes.types())),
        shapes=[_shape(model, row) for row in range(len(model.shapes))],
        bodies=[
            {"path": path, "template": int(model.bodies.template[row]), "shapes": counts[row]}
            for row, path in enumerate(model.bodies.path)
        ],
        allowed_pair_count=None if allowed is None else len(allowed),
        pair_count=every * (every - 1) // 2 + int((own_shapes * (own_shapes - 1) // 2 + own_shapes * every).sum()),
        excluded_pairs=_excluded_pairs(model, len(templates)) if counted else {},
        forced_pair_count=len(model.pair_filter.forced),
        kept_attributes=dict(Counter(name for attributes in kept for name in attributes)),
        warnings=scene.warnings,
        pairs=[[paths[a], paths[b]] for a, b in allowed] if pairs and allowed is not None else None,
        why=explain_pair(scene, *why, left_out) if why is not None else None,
        deformables=_deformables(model.particles) if len(model.particles) else None,
    )


def explain_pair(scene: LoadedScene, path_a: str, path_b: str, left_out: Container[str] = ()) -> dict[str, Any]:
    """Whether two shapes, or shapes of two bodies, may touch, and the rule that decides; with each pair of shapes, its
    gap and its margin [m].

    With several templates, two shapes of one are taken; pairs of names with one verdict are listed once.

    left_out: names of visual shapes of the scene, which are not in the model.
    Raises InputError for a path that no shape has.
    """
    model = scene.model
    rows_a, rows_b = (_rows(scene, path, left_out) for path in (path_a, path_b))
    template = model.shapes.template
    choices = [(a, b) for a in rows_a for b in rows_b if a != b]
    if not choices:
        raise InputError(f"'{path_a}' is given twice", "--why", "name two shapes")
    together = [(a, b) for a, b in choices if may_share_world(template[a], template[b])]
    first_pair = (together or choices)[:1]
    named = ((row, path) for rows, path in ((rows_a, path_a), (rows_b, path_b)) for row in rows)
    of_shapes = all(model.shapes.path[row] == path for row, path in named)
    explained = first_pair if of_shapes else together or first_pair
    pairs = []
    for first, second in explained:
        verdict = explain(model, first, second)
        names = {"shape0": model.shapes.path[first], "shape1": model.shapes.path[second]}
        row = np.sort([[first, second]])
        lengths = {name: float(pair_lengths(model, row, name)[0]) for name in ("gap", "margin")}
        verdict_row = {**names, "may_touch": verdict.may_touch, "rule": verdict.rule, **lengths}
        pairs += [] if verdict_row in pairs else [verdict_row]
    deciding = next((pair for pair in pairs if pair["may_touch"]), pairs[0])
    decided = {name: deciding[name] for name in ("may_touch", "rule")}
    return {"shape0": path_a, "shape1": path_b, **decided, "pairs": pairs}


def _rows(scene: LoadedScene, path: str, left_out: Container[str]) -> list[int]:
    """Rows of the shapes of that path, else of the shapes on the bodies of that path.

    A path may be given by its last parts: `ground` is /World/ground.
    """
    model = scene.model
    shapes, bodies = model.shapes, model.bodies.path
    known = dict.fromkeys((*shapes.path, *bodies))
    ends = [known_path for known_path in known if known_path.endswith(f"/{path}")]
    if path not in known and len(ends) > 1:
        raise InputError(f"'{path}' is the end of {len(ends)} paths", "--why", f"give one of {some_names(ends)}")
    path = ends[0] if ends and path not in known else path
    rows = [row for row, shape_path in enumerate(shapes.path) if shape_path == path]
    if not rows and path in bodies:
        rows = [row for row, body in enumerate(scene.shape_bodies) if body == path]
        if not rows:
            raise InputError(f"the body '{path}' has no shape that collides", "--why", "name another")
    if not rows and path in left_out:
        what = f"'{path}' is only visual: no mask and no pair allows contacts of it"
        raise InputError(what, "--why", "name two shapes that collide")
    if not rows and path in model.particles.path:
        kind = model.particles.kind[model.particles.path.index(path)]
        what = f"'{path}' is no shape: it consists of particles ({kind})"
        raise InputError(what, "--why", "name two shapes; docs/explanation/particles.md has the filters of particles")
    if not rows:
        hint = did_you_mean(path, known, "collide inspect lists the scene's shapes", shown=3)
        if path == GROUND:
            hint = "the option --ground adds it to the scene"
        raise InputError(f"there is no shape or body '{path}'", "--why", hint)
    return rows


def _union(listed: list[np.ndarray]) -> np.ndarray:
    """Sorted pairs of all templates, each once, as every template has the pairs of two global shapes."""
    return listed[0] if len(listed) == 1 else np.unique(np.concatenate(listed), axis=0)


_NAMED = (
    (r"^joint .*", "joint"),
    (r"^parts of <.*", "parts of one mesh"),
    (r"'[^']*' is the child of '[^']*'", "parent and child"),
    (r" of '[^']*'( and '[^']*')?|, '[^']*'$", ""),
    (r"'[^']*'", "..."),
    (r"<(\w+)[^>]*>", r"<\1>"),
)
"""Patterns of names in a rule and their replacements, applied in this order, to count pairs by rule."""


def _excluded_pairs(model: Model, templates: int) -> dict[str, int]:
    """Count of pairs by rule, without the names of shapes and bodies; a pair of two global shapes counts once."""
    counts: Counter[str] = Counter()
    for template in range(templates):
        counts.update(excluded_counts(model, template))
    for _ in range(templates - 1):
        counts.subtract(excluded_counts(model, GLOBAL_TEMPLATE))
    excluded: Counter[str] = Counter()
    for rule, number in counts.items():
        for named, plain in _NAMED:
            rule = re.sub(named, plain, rule)
        excluded[rule] += number
    return dict(+excluded)


def _motion(scene: LoadedScene) -> dict[str, Any]:
    with closing(scene.motion()) as motion:
        return {"frames": len(motion.time), "start": float(motion.time[0]), "end": float(motion.time[-1])}


def _geometry(model: Model, row: int) -> dict[str, Any]:
    """Of a convex mesh the vertex count; of a mesh the triangle count, whether it is closed or crosses itself, and its
    repairs."""
    shapes = model.shapes
    if shapes.hull[row] >= 0:
        return {"vertices": len(model.hulls[shapes.hull[row]].vertex)}
    if shapes.mesh[row] >= 0:
        mesh = model.meshes[shapes.mesh[row]]
        counts = {"triangles": len(mesh.face), "closed": mesh.is_closed, "crosses_itself": mesh.crosses_itself}
        return {**counts, "repairs": mesh.repairs.counts()}
    return {}


def _shape(model: Model, row: int) -> dict[str, Any]:
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    body = int(shapes.body[row])
    value = float(model.shapes.hydro_stiffness[row])
    material = asdict(model.shapes.material.row(row))
    names = (*RULE_FIELDS[model.material_rule], *(n for n in PENALTY_PARAMETERS if material[n] is not None))
    return {
        "path": shapes.path[row],
        "type": kind.label,
        "size": shapes.size[row, : SIZE_COUNT[kind]].tolist(),
        **_geometry(model, row),
        "body": None if body == STATIC_BODY else model.bodies.path[body],
        "template": int(shapes.template[row]),
        "margin": float(shapes.margin[row]),
        "gap": float(shapes.gap[row]),
        "hydroelastic": bool(shapes.is_hydroelastic[row]),
        "k_hydro": None if np.isnan(value) else value,
        "material": {name: material[name] for name in names},
        "filter": _filter_words(model, row),
    }


def _filter_words(model: Model, row: int) -> list[str]:
    if not model.pair_filter.classes:
        return []
    filter_class: FilterClass = model.pair_filter.classes[model.pair_filter.shape_class[row]]
    words = [filter_class.disabled] if filter_class.disabled else []
    if filter_class.group != 1:
        words.append(f"group {filter_class.group}")
    if filter_class.mask_either is not None:
        words.append(f"contype {filter_class.mask_either[0]:#x} conaffinity {filter_class.mask_either[1]:#x}")
    if filter_class.mask_both is not None:
        words.append(f"group {filter_class.mask_both[0]:#x} mask {filter_class.mask_both[1]:#x}")
    return words + [name for _, name in sorted(filter_class.usd_groups)]


@dataclass(frozen=True)
class RecordingResult(Result, schema="collide.inspect.recording/1"):
    """Contents of a recording without its poses. Times [s]; None if unknown.

    kind, label: identifier and description of its kind. needs: information that `run` needs besides. details: more
    properties of its kind, by name.
    """

    file: str
    kind: str
    label: str
    frames: int
    worlds: int
    start: float | None
    end: float | None
    bodies: tuple[str, ...]
    coordinates: int
    quaternion_order: str | None
    needs: tuple[str, ...]
    details: dict[str, Any]


def is_recording(path: str) -> bool:
    """Whether a file contains arrays or columns and so cannot be a scene. A USD file may be both."""
    return Path(path).suffix.lower() not in MUJOCO_ENDINGS and storage_of(path) not in (HDF5, USD, UNKNOWN)


def is_layer_alone(path: str) -> bool:
    """Whether a file that is refused as a scene is a USD layer that contains only time samples.

    False for a file that cannot be read: the error of reading it as a scene is reported.
    """
    if storage_of(path) != USD:
        return False
    from collidecli.importers.usd.stage import diagnostics, is_motion_only

    try:
        with diagnostics(path):
            return is_motion_only(path)
    except (InputError, UnicodeDecodeError):
        return False


def inspect_recording(path: str) -> RecordingResult:
    """Contents of a recording without its poses. Raises InputError for an unknown kind or malformed content."""
    with closing(open_recording(path)) as recording:
        about = recording.describe()
    return RecordingResult(
        path,
        recording.NAME,
        recording.LABEL,
        **{**vars(about), "quaternion_order": about.quaternion_order or None, "details": dict(about.details)},
    )


@dataclass(frozen=True)
class TrajectoryResult(Result, schema="collide.inspect.trajectory/1"):
    """Contents of a trajectory without its poses. coordinates: generalized coordinates per world. Times [s]."""

    file: str
    creator: str
    kind: str
    float_type: str
    frames: int
    worlds: int
    bodies: tuple[str, ...]
    coordinates: int
    mocap_bodies: int
    particles: int
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class ContactSetSource(Result, optional=("engine",)):
    """Origin and size of a contact set, without its contacts. shape_types: count by type. Times [s].

    episodes: name, world, first_frame, frame_count and seconds of each; empty without demonstrations.
    duration: recorded time; of demonstrations their sum. engine: attributes of another engine; None of this one.
    """

    file: str
    version: str
    creator: str
    scene: str
    scene_sha256: str
    trajectory_sha256: str
    content_sha256: str
    config: dict[str, Any]
    shapes: int
    shape_types: dict[str, int]
    bodies: int
    worlds: int
    frames: int
    start: float | None
    end: float | None
    episodes: list[dict[str, Any]]
    duration: float
    engine: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ContactSetResult(ContactCounts, ContactSetSource, schema="collide.inspect.contacts/1"):
    """Contents of a contact set. optional_columns: range of each. timing: attributes and stages of /timing.

    groups: of the tables beside /rigid_contacts, rows, cells with rows, and the range of each column of numbers.
    shape_table: path, type, body (None is static), margin and gap [m] of each shape.
    particle_objects: path, kind, template, first_particle, particle_count of each cloth, soft body, set of points.
    """

    float_type: str
    columns: list[str]
    material_rule: str
    optional_columns: dict[str, dict[str, list[float]]]
    groups: dict[str, dict[str, Any]]
    shape_table: list[dict[str, Any]]
    particle_objects: list[dict[str, Any]]
    timing: dict[str, Any]


def inspect_file(
    path: str, *, pairs: bool = False, why: Why = None, static_pairs: bool = False, options: SceneOptions | None = None
) -> Result:
    """Contents of a file. pairs, why, static_pairs, options: of a scene only, see `inspect_scene`.

    Raises InputError for a file that is neither a scene, a recording nor a contact set, or is damaged.
    """
    if not os.path.exists(path):
        raise InputError("there is no such file", path, "give a scene, a recording or a contact set")
    has_content = (os.path.isfile(path) and os.path.getsize(path) > 0) or bool(bag_format(path))
    is_h5 = has_content and h5py.is_hdf5(path)
    if not is_h5 and not (has_content and is_recording(path)):
        try:
            return inspect_scene(path, pairs, why, static_pairs, options or SceneOptions())
        except InputError:
            if not (has_content and is_layer_alone(path)):
                raise
    if (pairs or why) and not (is_h5 and file_format(path) == FORMAT):
        return inspect_scene(path, pairs, why, static_pairs, options or SceneOptions(), is_recording=True)
    if pairs or why:
        raise InputError("--pairs and --why are for scenes", path, "give the scene file")
    by_format = {FORMAT: inspect_contact_set, TRAJECTORY_FORMAT: inspect_trajectory}
    kind = file_format(path) if is_h5 else ""
    refuse_profile(kind, path)
    return by_format.get(kind, inspect_recording)(path)


def inspect_trajectory(path: str) -> TrajectoryResult:
    """Contents of a trajectory without its poses."""
    header = read_header(path)
    return TrajectoryResult(
        file=path,
        creator=header.creator,
        kind=header.kind,
        float_type=str(header.float_type),
        frames=header.frame_count,
        worlds=header.world_count,
        bodies=tuple(header.body_names),
        coordinates=header.coordinate_count,
        mocap_bodies=max(0, header.mocap_count),
        particles=max(0, header.particle_count),
        start=float(header.time[0]),
        end=float(header.time[-1]),
    )


def inspect_contact_set(path: str) -> ContactSetResult:
    """Contents of a contact set: origin, size, pairs with most contacts, deepest contact, timing."""
    with ContactSet.open(path) as contacts:
        tally = Tally(Names.of(contacts.shapes.path, contacts.shapes.template))
        ranges = ColumnRanges(contacts.optional_columns)
        for block in contacts.blocks(names=("shape0", "shape1", "distance", *contacts.optional_columns)):
            check_shape_rows(contacts, block)
            tally.add(block)
            ranges.add(block)
        shapes, paths = contacts.shapes, contacts.body_path
        body = [paths[row] if 0 <= row < len(paths) else None for row in shapes.body.tolist()]
        return ContactSetResult(
            **contact_set_source(contacts),
            **vars(tally.counts(contacts.world_count, contacts.episodes)),
            float_type=str(contacts.float_type),
            columns=list(contacts.column_names),
            material_rule=contacts.material_rule,
            optional_columns=ranges.as_dict(),
            groups={name: _group_summary(table) for name, table in contacts.groups.items()},
            shape_table=_rows_of({name: body if name == "body" else getattr(shapes, name) for name in SHAPE_COLUMNS}),
            particle_objects=_rows_of(vars(contacts.particle_objects)),
            timing=read_timing(path),
        )


def _group_summary(table: ContactTable) -> dict[str, Any]:
    names = [column.name for column in table.columns if column.dtype.kind == "f"]
    ranges, cells = ColumnRanges(names), 0
    for block in table.blocks(names=names):
        ranges.add(block)
        cells += int(np.count_nonzero(block.cell_counts))
    return {"rows": table.row_count, "cells": cells, "columns": ranges.as_dict()}


def contact_set_source(contacts: ContactSet) -> dict[str, Any]:
    """The fields of `ContactSetSource` by name."""
    episodes, time = contacts.episodes, contacts.time
    ends = (float(time[0]), float(time[-1])) if contacts.frame_count else (None, None)
    types, counts = np.unique(np.array(contacts.shapes.type, str), return_counts=True)
    return {
        "file": contacts.path,
        "version": f"{contacts.version[0]}.{contacts.version[1]}",
        **{name: getattr(contacts, name) for name in SET_ATTRIBUTES},
        "shapes": len(contacts.shapes),
        "shape_types": {str(kind): int(count) for kind, count in zip(types, counts, strict=True)},
        "bodies": len(contacts.body_path),
        "worlds": contacts.world_count,
        "frames": contacts.frame_count,
        "start": ends[0],
        "end": ends[1],
        "episodes": [] if episodes is None else episodes.listed(time),
        "engine": None if contacts.engine is None else contacts.engine.attributes,
        "duration": (ends[1] or 0.0) - (ends[0] or 0.0) if episodes is None else float(episodes.seconds(time).sum()),
    }


SET_ATTRIBUTES = ("creator", "scene", "scene_sha256", "trajectory_sha256", "content_sha256", "config")


SHAPE_COLUMNS = ("path", "type", "body", "template", "margin", "gap")


def _rows_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = [column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


@structure()
def read_timing(path: str) -> dict[str, Any]:
    """Attributes and stages of /timing, without its rows per chunk; empty if the file has none."""
    with open_h5(path) as file:
        group = file.get("timing")
        if not isinstance(group, h5py.Group):
            return {}
        timing: dict[str, Any] = {name: _plain(value) for name, value in sorted(group.attrs.items())}
        columns = [item for item in map(group.get, ("stage", "seconds", "calls")) if isinstance(item, h5py.Dataset)]
        if len(columns) == 3:
            rows = zip(*(column[()] for column in columns), strict=False)
            timing["stages"] = [{"stage": text_of(s), "seconds": float(t), "calls": int(n)} for s, t, n in rows]
        return timing


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        return text_of(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
