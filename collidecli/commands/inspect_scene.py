"""What a scene holds and who may touch whom in it, as plain values."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from dataclasses import asdict
from difflib import get_close_matches
from typing import Any

import numpy as np

from collidecli.commands.scenes import LoadedScene, load_scene
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.filter_explanation import explain
from collidecli.scene.filter_rules import FilterClass
from collidecli.scene.material import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.run_options import SceneOptions
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType

SCENE_SCHEMA = "collide.inspect.scene/1"
COUNTED_SHAPES = 5000
"""Pairs of a larger template are counted only where they are asked for."""


def scene_facts(
    path: str, pairs: bool, why: tuple[str, str] | None, static_pairs: bool, options: SceneOptions
) -> dict[str, Any]:
    """A scene's shapes, bodies, worlds and filters.

    pairs: adds `pairs`, a list of [path, path]. why: adds `why`, the verdict on two shapes named by path.
    """
    scene = load_scene([path], None, static_pairs, options=options)
    model = scene.model
    templates = range(int(model.world_template.max()) + 1)
    counted = pairs or all(len(model.template_shapes(t)) <= COUNTED_SHAPES for t in templates)
    listed = [allowed_pairs(model, t) for t in templates] if counted else None
    facts: dict[str, Any] = {
        "schema": SCENE_SCHEMA,
        "file": path,
        "sha256": scene.sha256,
        "up_axis": model.up_axis,
        "gap_rule": model.gap_rule,
        "material_rule": model.material_rule,
        "worlds": model.world_count,
        "templates": len(templates),
        "motion": _motion_facts(scene),
        "shape_types": dict(Counter(kind.label for kind in model.shapes.types())),
        "shapes": [_shape_facts(model, row) for row in range(len(model.shapes))],
        "bodies": _body_facts(model),
        "allowed_pair_count": None if listed is None else len(_together(listed)),
        "excluded_pairs": dict(Counter(_kind_of_rule(rule) for rule in model.pair_filter.excluded_rule)),
        "forced_pair_count": len(model.pair_filter.forced),
        "kept_attributes": _kept_attributes(scene),
        "warnings": list(scene.warnings),
    }
    if pairs and listed is not None:
        paths = model.shapes.path
        facts["pairs"] = [[paths[a], paths[b]] for a, b in _together(listed)]
    if why is not None:
        left_out = {name for imported in scene.imports for name in imported.left_out}
        facts["why"] = why_facts(model, *why, left_out)
    return facts


def why_facts(model: Model, path_a: str, path_b: str, left_out: Container[str] = ()) -> dict[str, Any]:
    """Whether two shapes may touch, and the rule that decides. In several templates, those of one template are meant.

    left_out: names of what the scene has and the model does not, since it is only seen.
    Raises InputError for a path that no shape has.
    """
    rows_a, rows_b = (_rows(model, path, left_out) for path in (path_a, path_b))
    template = model.shapes.template
    choices = [(a, b) for a in rows_a for b in rows_b if a != b]
    if not choices:
        raise InputError(f"shape '{path_a}' is asked against itself", "--why", "name two shapes")
    a, b = next(
        ((a, b) for a, b in choices if template[a] == template[b] or -1 in (template[a], template[b])), choices[0]
    )
    verdict = explain(model, a, b)
    return {"shape0": path_a, "shape1": path_b, "may_touch": verdict.may_touch, "rule": verdict.rule}


def _rows(model: Model, path: str, left_out: Container[str]) -> list[int]:
    rows = [row for row, held in enumerate(model.shapes.path) if held == path]
    if not rows and path in left_out:
        raise InputError(
            f"'{path}' is only seen: no mask and no pair lets it touch anything",
            "--why",
            "name two shapes that collide",
        )
    if not rows:
        close = get_close_matches(path, model.shapes.path, n=3, cutoff=0.5)
        hint = f"did you mean {', '.join(close)}?" if close else "collide inspect lists the scene's shapes"
        raise InputError(f"there is no shape '{path}'", "--why", hint)
    return rows


def _kept_attributes(scene: LoadedScene) -> dict[str, int]:
    """How many colliders have each attribute that is read, checked and changes no contact yet."""
    return dict(Counter(name for imported in scene.imports for kept in imported.kept.values() for name in kept))


def _together(listed: list[np.ndarray]) -> np.ndarray:
    """Pairs of all templates, each once, in order: pairs of two global shapes are in every template."""
    return listed[0] if len(listed) == 1 else np.unique(np.concatenate(listed), axis=0)


_NAMED = (
    (r"'[^']*' is the child of '[^']*'", "parent and child"),
    (r"bodies '[^']*' and '[^']*'", "two bodies"),
    (r"body '[^']*'", "a body"),
    (r" of '[^']*' and '[^']*'|, '[^']*'$", ""),
    (r"'[^']*'", "..."),
    (r"<(\w+)[^>]*>", r"<\1>"),
)
"""Names in a rule, and what stands for them where pairs are counted by rule; the first that fits comes first."""


def _kind_of_rule(rule: str) -> str:
    """The rule without the names in it, which differ from pair to pair."""
    for named, plain in _NAMED:
        rule = re.sub(named, plain, rule)
    return rule


def _motion_facts(scene: LoadedScene) -> dict[str, Any]:
    motion = scene.motion()
    try:
        return {"frames": len(motion.time), "start": float(motion.time[0]), "end": float(motion.time[-1])}
    finally:
        motion.close()


def _geometry_facts(model: Model, row: int) -> dict[str, Any]:
    """Of a convex mesh its vertices; of a mesh its triangles, whether they have an inside and what was repaired."""
    shapes = model.shapes
    if shapes.hull[row] >= 0:
        return {"vertices": len(model.hulls[shapes.hull[row]].vertex)}
    if shapes.mesh[row] >= 0:
        mesh = model.meshes[shapes.mesh[row]]
        return {"triangles": len(mesh.face), "closed": mesh.is_closed, "repairs": mesh.repairs.counts()}
    return {}


def _shape_facts(model: Model, row: int) -> dict[str, Any]:
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    body = int(shapes.body[row])
    return {
        "path": shapes.path[row],
        "type": kind.label,
        "size": shapes.size[row, : SIZE_COUNT[kind]].tolist(),
        **_geometry_facts(model, row),
        "body": None if body == STATIC_BODY else model.bodies.path[body],
        "template": int(shapes.template[row]),
        "margin": float(shapes.margin[row]),
        "gap": float(shapes.gap[row]),
        "material": _material_facts(model, row),
        "filter": _filter_words(model, row),
    }


def _material_facts(model: Model, row: int) -> dict[str, Any]:
    """What of the surface enters a contact under the model's rule, and penalty parameters that are stated."""
    material = asdict(model.shapes.material.row(row))
    names = (*RULE_FIELDS[model.material_rule], *(n for n in PENALTY_PARAMETERS if material[n] is not None))
    return {name: material[name] for name in names}


def _filter_words(model: Model, row: int) -> list[str]:
    """What the shape's filter class says beyond the usual."""
    if not model.pair_filter.classes:
        return []
    held: FilterClass = model.pair_filter.classes[model.pair_filter.shape_class[row]]
    words = [held.disabled] if held.disabled else []
    if held.group != 1:
        words.append(f"group {held.group}")
    if held.mask_either is not None:
        words.append(f"contype {held.mask_either[0]:#x} conaffinity {held.mask_either[1]:#x}")
    if held.mask_both is not None:
        words.append(f"group {held.mask_both[0]:#x} mask {held.mask_both[1]:#x}")
    return words + [name for _, name in sorted(held.usd_groups)]


def _body_facts(model: Model) -> list[dict[str, Any]]:
    counts = Counter(model.shapes.body.tolist())
    return [
        {"path": path, "template": int(model.bodies.template[row]), "shapes": counts[row]}
        for row, path in enumerate(model.bodies.path)
    ]
