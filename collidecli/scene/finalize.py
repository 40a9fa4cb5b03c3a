"""Conversion of a builder's records to a model: row order, names, checks, frozen arrays."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.poses import inverse_poses, moved_points
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.filter_lowering import lower_filter
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.materials import MATERIAL_RULES, Materials, PairMaterials
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Bodies, Model, Shapes
from collidecli.scene.option_values import GAP_RULES
from collidecli.scene.particle_filter import particle_filter
from collidecli.scene.particles import DeformableRecord, Particles, particles_of
from collidecli.scene.poses import origins
from collidecli.scene.records import (
    BodyRecord,
    ForcedRecord,
    PairRecord,
    SceneRecords,
    ShapeRecord,
    WorldOrigin,
)
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.shape_config import check_length, resolved_material
from collidecli.scene.shape_types import SIZE_WIDTH
from collidecli.scene.triangle_materials import TriangleMaterialTable
from collidecli.scene.triangle_mesh import TriangleMesh

UP_AXES = ("X", "Y", "Z")


def rows_by_template(templates: Sequence[int]) -> np.ndarray:
    """int32[n]: row of each record: global records first, then each template's, in the order of
    their addition."""
    order = np.argsort(np.array(templates, np.int64), kind="stable")
    rows = np.empty(len(order), np.int32)
    rows[order] = np.arange(len(order), dtype=np.int32)
    return rows


def build_model(
    records: SceneRecords,
    world_template: Sequence[int],
    world_origin: Sequence[WorldOrigin],
    *,
    default_gap: float,
    gap_rule: str,
    material_rule: str,
    up_axis: str,
    source: tuple[str, ...],
    static_pairs: bool,
) -> Model:
    """The frozen model of `records`.

    world_template, world_origin: of each world. default_gap: of shapes without an own gap [m].
    static_pairs: pairs of static shapes may touch. Raises InputError for names that are not unique,
    conflicting forced pairs, and unknown options.
    """
    _check_options(default_gap, gap_rule, material_rule, up_axis)
    records = _in_row_order(records)
    _name_all(records.bodies, "body")
    _name_all(records.shapes, "shape")
    _name_all(records.deformables, "deformable")
    stored = {}
    index = {}
    for name, several in (
        ("hull", "hulls"),
        ("mesh", "meshes"),
        ("heightfield", "heightfields"),
        ("sdf", "sdfs"),
    ):
        stored[several], index[name] = _stored_once(
            [getattr(shape, name) for shape in records.shapes]
        )
    bodies = records.bodies
    model = Model(
        bodies=Bodies(
            _paths(bodies),
            np.array([b.template for b in bodies], np.int32),
            _stacked(bodies, "pose", 7),
        ),
        shapes=_shapes(records.shapes, default_gap, index),
        **stored,
        pair_filter=lower_filter(records, static_pairs),
        world_template=np.array(world_template, np.int32),
        world_pose=origins([origin.pose for origin in world_origin]),
        world_path=tuple(origin.path for origin in world_origin),
        gap_rule=gap_rule,
        up_axis=up_axis,
        source=source,
        forced_gap=np.array([p.gap for p in records.forced_pairs], np.float64),
        forced_margin=np.array([p.margin for p in records.forced_pairs], np.float64),
        forced_material=_pair_materials(records, material_rule),
        material_rule=material_rule,
        particles=_particles(records),
        triangle_materials=TriangleMaterialTable.of(
            [shape.cfg.triangle_materials for shape in records.shapes]
        ),
    )
    _freeze(model)
    return model


def _check_options(default_gap: float, gap_rule: str, material_rule: str, up_axis: str) -> None:
    """Raises InputError for an unknown option, and for a gap that is no length."""
    if gap_rule not in GAP_RULES:
        raise InputError(f"gap_rule is {gap_rule!r}", fix=f"choose one of {', '.join(GAP_RULES)}")
    if material_rule not in MATERIAL_RULES:
        raise InputError(
            f"material_rule is {material_rule!r}", fix=f"choose one of {', '.join(MATERIAL_RULES)}"
        )
    if up_axis not in UP_AXES:
        raise InputError(f"up_axis is {up_axis!r}", fix=f"choose one of {', '.join(UP_AXES)}")
    check_length("default_gap", default_gap, "")


def _freeze(model: Model) -> None:
    """Makes every array of the model read-only."""
    parts = (
        model,
        model.bodies,
        model.shapes,
        model.shapes.material,
        model.pair_filter,
        model.forced_material,
        model.triangle_materials.materials,
    )
    for part in (*parts, model.particles):
        assert is_dataclass(part)
        for array in (getattr(part, item.name) for item in fields(part)):
            if isinstance(array, np.ndarray):
                array.setflags(write=False)


def _in_row_order(records: SceneRecords) -> SceneRecords:
    """A copy with lists in row order and rows as indices; forced pairs sorted and merged."""
    body_row = [int(row) for row in rows_by_template([b.template for b in records.bodies])]
    shape_row = [int(row) for row in rows_by_template([s.template for s in records.shapes])]

    def body(index: int) -> int:
        return STATIC_BODY if index == STATIC_BODY else body_row[index]

    def pair(record: PairRecord | ForcedRecord) -> dict[str, int]:
        a = shape_row[record.a]
        b = shape_row[record.b]
        return {"a": min(a, b), "b": max(a, b)}

    by_template = lambda record: record.template  # noqa: E731
    shapes = [replace(s, body=body(s.body)) for s in sorted(records.shapes, key=by_template)]
    forced = sorted((replace(p, **pair(p)) for p in records.forced_pairs), key=lambda p: (p.a, p.b))
    return SceneRecords(
        bodies=[replace(b) for b in sorted(records.bodies, key=by_template)],
        shapes=shapes,
        joints=[replace(j, parent=body(j.parent), child=body(j.child)) for j in records.joints],
        articulations=[tuple(body(b) for b in bodies) for bodies in records.articulations],
        filter_pairs=[replace(p, **pair(p)) for p in records.filter_pairs],
        forced_pairs=_merged(forced, shapes),
        usd_filtered=records.usd_filtered,
        deformables=[
            replace(
                d, body=None if d.body is None else np.array([body(k) for k in d.body], np.int32)
            )
            for d in sorted(records.deformables, key=by_template)
        ],
    )


def _merged(forced: list[ForcedRecord], shapes: list[ShapeRecord]) -> list[ForcedRecord]:
    """Sorted forced pairs without duplicates; duplicates must have equal parameters."""
    merged: list[ForcedRecord] = []
    for record in forced:
        if merged and (merged[-1].a, merged[-1].b) == (record.a, record.b):
            lengths = [[p.gap, p.margin] for p in (merged[-1], record)]
            if merged[-1].material != record.material or not np.array_equal(
                *lengths, equal_nan=True
            ):
                where = f"shapes {_shown(shapes, record.a)} and {_shown(shapes, record.b)}"
                raise InputError(
                    "forced twice with different gap, margin or material",
                    where,
                    "keep one of the two",
                )
            continue
        merged.append(record)
    return merged


def _shown(shapes: list[ShapeRecord], row: int) -> str:
    return f"'{shapes[row].key}'" if shapes[row].key is not None else str(row)


def _name_all(records: Sequence[BodyRecord | ShapeRecord | DeformableRecord], noun: str) -> None:
    """Gives every record a name that is unique in its worlds; global names are reserved in every
    template.

    Records without a key get `<noun>_<n>`, counted within their template; used names are skipped.
    """
    given: dict[int, Counter] = defaultdict(Counter)
    for record in records:
        if record.key is not None:
            given[record.template][record.key] += 1
    everywhere = given.get(GLOBAL_TEMPLATE, Counter())
    for template, names in given.items():
        for name, uses in names.items():
            if uses > 1 or (template != GLOBAL_TEMPLATE and name in everywhere):
                what = f"two {noun} names of one world are '{name}'"
                raise InputError(what, fix="give each its own key")
    all_names = set().union(*given.values())
    taken: dict[int, set[str]] = {GLOBAL_TEMPLATE: all_names}
    next_number: dict[int, int] = defaultdict(int)
    global_names = set(everywhere)
    for record in records:
        if record.key is not None:
            continue
        template = record.template
        if template not in taken:
            taken[template] = set(given[template]) | global_names
        while (name := f"{noun}_{next_number[template]}") in taken[template]:
            next_number[template] += 1
        next_number[template] += 1
        record.key = name
        if template == GLOBAL_TEMPLATE:
            global_names.add(name)


def _particles(records: SceneRecords) -> Particles:
    if not records.deformables:
        return Particles()
    particles = particles_of(records.deformables)
    attached = np.flatnonzero(particles.body >= 0)
    if len(attached):
        poses = _stacked(records.bodies, "pose", 7)[particles.body[attached]]
        particles.local[attached] = moved_points(inverse_poses(poses), particles.position[attached])
    return replace(particles, **particle_filter(records))


def _shapes(
    records: list[ShapeRecord], default_gap: float, geometry: dict[str, np.ndarray]
) -> Shapes:
    fallbacks = [
        default_gap if shape.default_gap is None else shape.default_gap for shape in records
    ]
    gaps = [
        gap if shape.cfg.gap is None else shape.cfg.gap
        for gap, shape in zip(fallbacks, records, strict=True)
    ]
    return Shapes(
        path=_paths(records),
        type=np.array([int(s.type) for s in records], np.int32),
        body=np.array([s.body for s in records], np.int32),
        template=np.array([s.template for s in records], np.int32),
        pose=_stacked(records, "pose", 7),
        size=_stacked(records, "size", SIZE_WIDTH),
        margin=np.array([s.cfg.margin or 0.0 for s in records], np.float64),
        gap=np.array(gaps, np.float64),
        material=Materials.of([resolved_material(s.cfg) for s in records]),
        **geometry,
        hydroelastic=_hydroelastic(records),
        trigger=_triggers(records),
    )


def _triggers(records: list[ShapeRecord]) -> np.ndarray:
    trigger = np.array([s.cfg.is_trigger for s in records], bool)
    return trigger if trigger.any() else trigger[:0]


def _hydroelastic(records: list[ShapeRecord]) -> np.ndarray:
    if not any(s.cfg.is_hydroelastic or s.cfg.k_hydro is not None for s in records):
        return np.zeros((0, 2))
    stiffness = [np.nan if s.cfg.k_hydro is None else s.cfg.k_hydro for s in records]
    return np.array([[float(s.cfg.is_hydroelastic) for s in records], stiffness]).T.copy()


Geometry = TypeVar("Geometry", ConvexHull, TriangleMesh, Heightfield, SdfShape)


def _stored_once(given: Sequence[Geometry | None]) -> tuple[tuple[Geometry, ...], np.ndarray]:
    """Distinct geometries, and int32[S], the index of each shape's geometry; -1 for shapes
    without."""
    index_of: dict[bytes, int] = {}
    distinct: list[Geometry] = []
    rows = np.full(len(given), -1, np.int32)
    for row, geometry in enumerate(given):
        if geometry is not None:
            rows[row] = index_of.setdefault(geometry.key, len(distinct))
            if rows[row] == len(distinct):
                distinct.append(geometry)
    return tuple(distinct), rows


def _pair_materials(records: SceneRecords, material_rule: str) -> PairMaterials:
    given = [pair for pair in records.forced_pairs if pair.material is not None]
    if given and material_rule != "mujoco":
        where = (
            f"shapes {_shown(records.shapes, given[0].a)} and {_shown(records.shapes, given[0].b)}"
        )
        raise InputError(
            "a forced pair has a material of its own", where, 'that needs material_rule = "mujoco"'
        )
    return PairMaterials.of([pair.material for pair in records.forced_pairs] if given else [])


def _paths(records: Sequence[BodyRecord | ShapeRecord]) -> tuple[str, ...]:
    return tuple(str(record.key) for record in records)


def _stacked(records: Sequence[BodyRecord | ShapeRecord], name: str, width: int) -> np.ndarray:
    return np.array([getattr(record, name) for record in records], np.float64).reshape(-1, width)
