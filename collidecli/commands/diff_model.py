"""Comparison of the models of two contact sets: shapes, forced pairs, rules, and notes on other differences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.analysis.field_comparison import Tolerances, deviations
from collidecli.analysis.path_patterns import kept_pairs
from collidecli.analysis.shape_alignment import ShapeAlignment, ShapeDifference, ShapeRecords, align_shapes
from collidecli.errors import InputError
from collidecli.scene.material import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.run_options import recorded_option
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_body_rows

EITHER = "no shape of either file"
SOURCES = {"scene_sha256": "scenes", "trajectory_sha256": "recordings"}


@dataclass(frozen=True)
class ModelComparison:
    """Differences of two models. kept: bool[numbers, 2], see `kept_pairs`; None is all shapes."""

    shapes: ShapeAlignment
    differences: list[ShapeDifference]
    kept: np.ndarray | None
    notes: list[str] = field(default_factory=list)


def compare_models(
    a: ContactSet,
    b: ContactSet,
    tolerances: Tolerances,
    renames: Sequence[tuple[str, str]] = (),
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> ModelComparison:
    """Differences of two models. include, exclude: patterns of A's shape paths (of B's for added shapes).

    Raises InputError for a pattern that matches no shape of either file.
    """
    alignment = align_shapes(_shape_columns(a), _shape_columns(b), renames)
    kept = kept_pairs(alignment.names, include, exclude, EITHER)
    number = {name: n for n, name in enumerate(alignment.names)}
    found = [*alignment.differences, *_forced(a, b, alignment), *_rules(a, b)]
    differences = [
        one
        for one in found
        if _beyond(one, tolerances) and (kept is None or one.path not in number or kept[number[one.path]].all())
    ]
    return ModelComparison(alignment, differences, kept, _notes(a, b, alignment))


def _shape_columns(contacts: ContactSet) -> ShapeRecords:
    shapes = contacts.shapes
    check_body_rows(contacts)
    body = [contacts.body_path[row] if row >= 0 else "" for row in shapes.body.tolist()]
    values = {"margin": shapes.margin, "gap": shapes.gap}
    if contacts.materials is not None:
        for name in (*RULE_FIELDS[contacts.material_rule], *PENALTY_PARAMETERS):
            values[name] = np.asarray(getattr(contacts.materials, name))
    return ShapeRecords(
        shapes.path, shapes.type, body, shapes.template, contacts.world_template, values, where=contacts.path
    )


def _beyond(one: ShapeDifference, tolerances: Tolerances) -> bool:
    """Whether a difference exceeds the tolerance of its field; always, if the values are not numbers."""
    values = [np.atleast_1d(np.asarray(value)) for value in (one.a, one.b)]
    if one.kind != "changed" or any(value.dtype.kind != "f" for value in values):
        return True
    if values[0].shape != values[1].shape:
        return True
    atol, rtol = tolerances.of(one.what)
    apart, size = deviations(one.what, values[0][None], values[1][None])
    return not apart[0] <= atol + rtol * size[0]


def _forced(a: ContactSet, b: ContactSet, alignment: ShapeAlignment) -> list[ShapeDifference]:
    """Differences of forced pairs. Pairs of equal names in several worlds are compared together."""
    tables: list[dict[tuple[int, int], list[tuple[float, ...]]]] = []
    for contacts, numbers in ((a, alignment.number_a), (b, alignment.number_b)):
        forced, own = contacts.forced, contacts.forced_materials
        rows = np.concatenate([forced.shape0, forced.shape1])
        if ((rows < 0) | (rows >= len(contacts.shapes))).any():
            raise InputError("is no row of /model/shape", f"{contacts.path}: /model/forced_pair", "make it again")
        columns = [forced.margin, forced.gap]
        if a.material_rule == b.material_rule == "mujoco" and len(own):
            columns += [own.condim, *own.friction.T, *own.solref.T, *own.solimp.T]
        table: dict[tuple[int, int], list[tuple[float, ...]]] = {}
        for row in range(len(forced)):
            one, other = sorted(int(numbers[shapes[row]]) for shapes in (forced.shape0, forced.shape1))
            table.setdefault((one, other), []).append(tuple(float(c[row]) for c in columns))
        tables.append(table)
    found = []
    for pair in sorted(tables[0].keys() | tables[1].keys()):
        was, now = (sorted(table.get(pair, []), key=repr) for table in tables)
        if repr(was) != repr(now):
            path = " and ".join(alignment.names[number] for number in pair)
            found.append(ShapeDifference("changed", path, "forced pair", _plain_pair(was), _plain_pair(now)))
    return found


def _plain_pair(rows: list[tuple[float, ...]]) -> str:
    """Margin and gap of a forced pair, as text."""
    if not rows:
        return "not forced"
    words = [f"{name} {value:g}" for name, value in zip(("margin", "gap"), rows[0], strict=False) if value == value]
    return ("forced, " + ", ".join(words)) if words else "forced"


def _rules(a: ContactSet, b: ContactSet) -> list[ShapeDifference]:
    names = ["gap_rule", "up_axis"]
    if a.material_rule and b.material_rule:
        names.append("material_rule")
    return [
        ShapeDifference("changed", "/model", name, getattr(a, name), getattr(b, name))
        for name in names
        if getattr(a, name) != getattr(b, name)
    ]


def _notes(a: ContactSet, b: ContactSet, alignment: ShapeAlignment) -> list[str]:
    notes = []
    if a.version != b.version:
        versions = " and ".join(".".join(map(str, contacts.version)) for contacts in (a, b))
        notes.append(f"the files have format versions {versions}: common data is compared")
    for one, other, name in ((a, b, "A"), (b, a, "B")):
        alone = [c for c in one.optional_columns if c not in other.optional_columns]
        if alone:
            notes.append(f"only {name} has {_list(alone)}: not compared")
        if one.material_rule and not other.material_rule:
            notes.append(f"only {name} has materials of shapes: not compared")
    if a.float_type != b.float_type:
        notes.append(f"points are {a.float_type} in A and {b.float_type} in B")
    if alignment.reordered:
        notes.append("the shapes are in another order; they are matched by path")
    notes += [
        f"the {what} are different files" for name, what in SOURCES.items() if getattr(a, name) != getattr(b, name)
    ]
    for key in sorted(a.config.keys() | b.config.keys()):
        one, other = (recorded_option(contacts.config, key) for contacts in (a, b))
        if one != other:
            notes.append(f"the option {key} differs: {_short(one)} in A, {_short(other)} in B")
    return notes


def _list(names: Sequence[str]) -> str:
    return ("the column " if len(names) == 1 else "the columns ") + ", ".join(names)


def _short(value: Any, most: int = 80) -> str:
    text = "none" if value is None or value == "" else str(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def renames_of(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs (OLD, NEW) of texts "OLD=NEW". Raises InputError for a text without OLD or equals sign."""
    return [_halves(text, "--rename", "write OLD=NEW: prefixes of a path in A and in B") for text in texts]


def _halves(text: str, option: str, fix: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not equals or not old:
        raise InputError(f"'{text}' is not OLD=NEW", option, fix)
    return old, new
