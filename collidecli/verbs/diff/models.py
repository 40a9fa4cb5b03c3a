"""Comparison of two models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.deviations import Tolerances, deviations
from collidecli.analysis.model_alignment import (
    ShapeAlignment,
    ShapeDifference,
    ShapeRecords,
    align_shapes,
)
from collidecli.analysis.particle_alignment import ParticleAlignment, align_particles
from collidecli.errors import InputError
from collidecli.scene.materials import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.model_source import BUILT_MODEL, MODEL
from collidecli.scene.options import recorded_option
from collidecli.scene.patterns import NamedItems
from collidecli.storage.contact_sets.readable_rows import check_body_rows
from collidecli.storage.contact_sets.reader import ContactSet

if TYPE_CHECKING:
    from collidecli.verbs.diff.request import DiffRequest

MOST_TEXT = 80
"""Characters of an option's value in a note."""


@dataclass(frozen=True)
class ModelComparison:
    """Differences of two models.

    kept: bool[numbers, 2], see `NamedItems.kept`, of shapes, then particle objects; None is all.
    """

    shapes: ShapeAlignment
    particles: ParticleAlignment
    differences: list[ShapeDifference]
    kept: np.ndarray | None
    notes: list[str] = field(default_factory=list)


def compare_models(
    a: ContactSet, b: ContactSet, tolerances: Tolerances, request: DiffRequest
) -> ModelComparison:
    """Differences of two models. Patterns are of A's paths of shapes and particle objects (of B's
    for added ones).

    Raises InputError for a pattern that matches none of either file.
    """
    renames = [
        _halves(text, "--rename", "write OLD=NEW: prefixes of a path in A and in B")
        for text in request.renames
    ]
    aligned = align_shapes(_shape_columns(a), _shape_columns(b), renames)
    particles = align_particles(a.particle_objects, b.particle_objects, renames)
    names = [*aligned.names, *particles.names]
    kind_of_item = (
        f"{'shape, particle object' if len(particles.names) else 'shape'} or body of either file"
    )
    body = np.full(len(names), -1)
    for contacts, numbers, first_body in (
        (b, aligned.number_b, len(a.body_path)),
        (a, aligned.number_a, 0),
    ):
        moving = contacts.shapes.body >= 0
        body[numbers[moving]] = first_body + contacts.shapes.body[moving]
    kept = NamedItems(names, body, (*a.body_path, *b.body_path), kind_of_item).kept(
        request.include, request.exclude
    )
    candidates = [
        *aligned.differences,
        *particles.differences,
        *_forced(a, b, aligned),
        *_rules(a, b),
    ]
    is_kept = {name: kept is None or bool(kept[n].all()) for n, name in enumerate(names)}
    differences = [d for d in candidates if _beyond(d, tolerances) and is_kept.get(d.path, True)]
    return ModelComparison(aligned, particles, differences, kept, _notes(a, b, aligned))


def _shape_columns(contacts: ContactSet) -> ShapeRecords:
    shapes = contacts.shapes
    check_body_rows(contacts)
    body = [contacts.body_path[row] if row >= 0 else "" for row in shapes.body.tolist()]
    values = {"margin": shapes.margin, "gap": shapes.gap}
    if contacts.materials is not None:
        for name in (*RULE_FIELDS[contacts.material_rule], *PENALTY_PARAMETERS):
            values[name] = np.asarray(getattr(contacts.materials, name))
    return ShapeRecords(
        shapes.path,
        shapes.type,
        body,
        shapes.template,
        contacts.world_template,
        values,
        where=contacts.path,
    )


def _beyond(difference: ShapeDifference, tolerances: Tolerances) -> bool:
    """Whether a difference exceeds the tolerance of its field; always, if the values are not
    numbers."""
    was, now = (np.atleast_1d(np.asarray(value)) for value in (difference.a, difference.b))
    if (
        difference.kind != "changed"
        or not was.dtype.kind == now.dtype.kind == "f"
        or was.shape != now.shape
    ):
        return True
    atol, rtol = tolerances.of(difference.what)
    apart, size = deviations(difference.what, was[None], now[None])
    return not apart[0] <= atol + rtol * size[0]


def _forced(a: ContactSet, b: ContactSet, aligned: ShapeAlignment) -> list[ShapeDifference]:
    """Differences of forced pairs. Pairs of equal names in several worlds are compared together."""
    tables: list[dict[tuple[int, int], list[tuple[float, ...]]]] = []
    for contacts, numbers in ((a, aligned.number_a), (b, aligned.number_b)):
        forced = contacts.forced
        materials = contacts.forced_materials
        rows = np.concatenate([forced.shape0, forced.shape1])
        if ((rows < 0) | (rows >= len(contacts.shapes))).any():
            raise InputError(
                "is no row of /model/shape", f"{contacts.path}: /model/forced_pair", "make it again"
            )
        columns = [forced.margin, forced.gap]
        if a.material_rule == b.material_rule == "mujoco" and len(materials):
            columns += [
                materials.condim,
                *materials.friction.T,
                *materials.solref.T,
                *materials.solimp.T,
            ]
        table: dict[tuple[int, int], list[tuple[float, ...]]] = {}
        for row in range(len(forced)):
            one, other = sorted(
                int(numbers[shapes[row]]) for shapes in (forced.shape0, forced.shape1)
            )
            table.setdefault((one, other), []).append(tuple(float(c[row]) for c in columns))
        tables.append(table)
    changes = []
    for pair in sorted(tables[0].keys() | tables[1].keys()):
        was, now = (sorted(table.get(pair, []), key=repr) for table in tables)
        if repr(was) != repr(now):
            path = " and ".join(aligned.names[number] for number in pair)
            changes.append(
                ShapeDifference("changed", path, "forced pair", _plain_pair(was), _plain_pair(now))
            )
    return changes


def _plain_pair(rows: list[tuple[float, ...]]) -> str:
    if not rows:
        return "not forced"
    words = [
        f"{name} {value:g}"
        for name, value in zip(("margin", "gap"), rows[0], strict=False)
        if value == value
    ]
    return ("forced, " + ", ".join(words)) if words else "forced"


def _rules(a: ContactSet, b: ContactSet) -> list[ShapeDifference]:
    names = [
        "gap_rule",
        "up_axis",
        *(["material_rule"] if a.material_rule and b.material_rule else []),
    ]
    differ = [name for name in names if getattr(a, name) != getattr(b, name)]
    return [
        ShapeDifference("changed", "/model", name, getattr(a, name), getattr(b, name))
        for name in differ
    ]


def _notes(a: ContactSet, b: ContactSet, aligned: ShapeAlignment) -> list[str]:
    notes = []
    if a.version != b.version:
        versions = " and ".join(".".join(map(str, contacts.version)) for contacts in (a, b))
        notes.append(f"the files have format versions {versions}: common data is compared")
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        alone = [c for c in one.optional_columns if c not in other.optional_columns]
        for group in [name for name in one.groups if name in other.groups]:
            given = one.groups[group].definition.columns
            alone += [c.name for c in given if c.name not in other.groups[group].names]
        if alone:
            notes.append(
                f"only {name} has the column{'s' if len(alone) > 1 else ''} {', '.join(alone)}: not"
                " compared"
            )
        if one.material_rule and not other.material_rule:
            notes.append(f"only {name} has materials of shapes: not compared")
    if a.float_type != b.float_type:
        notes.append(f"points are {a.float_type} in A and {b.float_type} in B")
    if aligned.reordered:
        notes.append("the shapes are in another order; they are matched by path")
    notes += _source_notes(a, b)
    for key in sorted(a.config.keys() | b.config.keys()):
        one, other = (recorded_option(contacts.config, key) for contacts in (a, b))
        if one != other:
            notes.append(f"the option {key} differs: {_short(one)} in A, {_short(other)} in B")
    return notes


def _source_notes(a: ContactSet, b: ContactSet) -> list[str]:
    """Notes of other scenes and other recordings than those of A."""
    notes = []
    if a.scene_sha256 != b.scene_sha256:
        models = [contacts.scene_kind == MODEL for contacts in (a, b)]
        one, other = (contacts.scene or BUILT_MODEL for contacts in (a, b))
        if all(models) and bool(a.scene) != bool(b.scene):
            notes.append("the hashes of the models are of two versions: they are not compared")
        elif all(models):
            notes.append("the models, built in Python, are different")
        elif any(models):
            notes.append(f"the scene is {one} in A, {other} in B")
        else:
            notes.append("the scenes are different files")
    if a.trajectory_sha256 != b.trajectory_sha256:
        if a.trajectory_sha256 and b.trajectory_sha256:
            notes.append("the recordings are different files")
        else:
            recorded, other = ("A", "B") if a.trajectory_sha256 else ("B", "A")
            notes.append(f"{recorded} is of a recording, {other} of none: of the scene's motion")
    return notes


def _short(value: Any) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= MOST_TEXT else text[: MOST_TEXT - 3] + "..."


def _halves(text: str, option: str, fix: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old:
        raise InputError(f"'{text}' is not OLD=NEW", option, fix)
    return old, new
