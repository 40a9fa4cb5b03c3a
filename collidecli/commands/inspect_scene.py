"""Contents of a scene and its collision filter, for the verb `inspect`."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np

from collidecli.commands.result import Result
from collidecli.commands.scenes import LoadedScene, load_scene
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs, explain
from collidecli.scene.filter_rules import FilterClass
from collidecli.scene.material import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.particles import Particles
from collidecli.scene.run_options import GROUND, SceneOptions
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType

MAX_COUNTED_SHAPES = 5000
"""Pairs of a template with more shapes are counted only on request."""


@dataclass(frozen=True)
class SceneResult(Result):
    """Contents of a scene: shapes, bodies, worlds, filters.

    allowed_pair_count: pairs of shapes that may touch; None if not counted. pair_count: all pairs of shapes that are in
    a world together, each template once. excluded_pairs: count by rule.
    kept_attributes: count of shapes with each attribute that is read but affects no contact. pairs, why: if requested.
    deformables: path, kind, template, particles, triangles and tetrahedra of each object of particles; None without.
    """

    SCHEMA: ClassVar[str] = "collide.inspect.scene/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("pairs", "why", "deformables")

    file: str
    sha256: str
    up_axis: str
    gap_rule: str
    material_rule: str
    worlds: int
    templates: int
    motion: dict[str, Any]
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


def inspect_scene(
    path: str, pairs: bool, why: tuple[str, str] | None, static_pairs: bool, options: SceneOptions
) -> SceneResult:
    """Contents of a scene. pairs: list the paths of all pairs that may touch. why: explain the filter for two shapes.

    static_pairs: pairs of two static shapes may touch.
    """
    scene = load_scene([path], None, static_pairs, options=options)
    model = scene.model
    templates = range(int(model.world_template.max()) + 1)
    counted = pairs or all(len(model.template_shapes(t)) <= MAX_COUNTED_SHAPES for t in templates)
    listed = [allowed_pairs(model, t) for t in templates] if counted else None
    left_out = {name for imported in scene.imports for name in imported.left_out}
    paths = model.shapes.path
    return SceneResult(
        file=path,
        sha256=scene.sha256,
        up_axis=model.up_axis,
        gap_rule=model.gap_rule,
        material_rule=model.material_rule,
        worlds=model.world_count,
        templates=len(templates),
        motion=_motion(scene),
        shape_types=dict(Counter(kind.label for kind in model.shapes.types())),
        shapes=[_shape(model, row) for row in range(len(model.shapes))],
        bodies=_bodies(model),
        allowed_pair_count=None if listed is None else len(_union(listed)),
        pair_count=_pair_count(model.shapes.template),
        excluded_pairs=dict(Counter(_kind_of_rule(rule) for rule in model.pair_filter.excluded_rule)),
        forced_pair_count=len(model.pair_filter.forced),
        kept_attributes=_kept_attributes(scene),
        warnings=scene.warnings,
        pairs=[[paths[a], paths[b]] for a, b in _union(listed)] if pairs and listed is not None else None,
        why=explain_pair(model, *why, left_out) if why is not None else None,
        deformables=_deformables(model.particles) if len(model.particles) else None,
    )


def explain_pair(model: Model, path_a: str, path_b: str, left_out: Container[str] = ()) -> dict[str, Any]:
    """Whether two shapes, or shapes of two bodies, may touch, and the rule that decides; with each pair of shapes.

    With several templates, two shapes of one are taken.

    left_out: names of visual shapes of the scene, which are not in the model.
    Raises InputError for a path that no shape has.
    """
    rows_a, rows_b = (_rows(model, path, left_out) for path in (path_a, path_b))
    template = model.shapes.template
    choices = [(a, b) for a in rows_a for b in rows_b if a != b]
    if not choices:
        raise InputError(f"'{path_a}' is given twice", "--why", "name two shapes")
    a, b = next(((a, b) for a, b in choices if _share_world(template, a, b)), choices[0])
    of_shapes = all(
        model.shapes.path[row] == path for rows, path in ((rows_a, path_a), (rows_b, path_b)) for row in rows
    )
    explained = [(a, b)] if of_shapes else [(x, y) for x, y in choices if _share_world(template, x, y)] or [(a, b)]
    pairs = []
    for first, second in explained:
        verdict = explain(model, first, second)
        names = {"shape0": model.shapes.path[first], "shape1": model.shapes.path[second]}
        pairs.append({**names, "may_touch": verdict.may_touch, "rule": verdict.rule})
    deciding = next((pair for pair in pairs if pair["may_touch"]), pairs[0])
    decided = {name: deciding[name] for name in ("may_touch", "rule")}
    return {"shape0": path_a, "shape1": path_b, **decided, "pairs": pairs}


def _share_world(template: np.ndarray, a: int, b: int) -> bool:
    """Whether two shapes are in one template, or one is in every world."""
    return template[a] == template[b] or -1 in (template[a], template[b])


def _rows(model: Model, path: str, left_out: Container[str]) -> list[int]:
    """Rows of the shapes of that path, else of the shapes on the bodies of that path."""
    shapes, bodies = model.shapes, model.bodies.path
    rows = [row for row, held in enumerate(shapes.path) if held == path]
    if not rows and path in bodies:
        rows = [row for row, body in enumerate(shapes.body.tolist()) if body >= 0 and bodies[body] == path]
        if not rows:
            raise InputError(f"the body '{path}' has no shape that collides", "--why", "name another")
    if not rows and path in left_out:
        raise InputError(
            f"'{path}' is only visual: no mask and no pair allows contacts of it",
            "--why",
            "name two shapes that collide",
        )
    if not rows and path in model.particles.path:
        kind = model.particles.kind[model.particles.path.index(path)]
        what = f"'{path}' is no shape: it consists of particles ({kind})"
        raise InputError(what, "--why", "name two shapes; docs/explanation/particles.md has the filters of particles")
    if not rows:
        close = get_close_matches(path, {*shapes.path, *bodies}, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(close)}?" if close else "collide inspect lists the scene's shapes"
        if path == GROUND:
            hint = "the option --ground adds it to the scene"
        raise InputError(f"there is no shape or body '{path}'", "--why", hint)
    return rows


def _pair_count(template: np.ndarray) -> int:
    """Number of pairs of shapes of one template or of every world (-1)."""
    every = int((template < 0).sum())
    own = np.bincount(template[template >= 0])
    return every * (every - 1) // 2 + int((own * (own - 1) // 2 + own * every).sum())


def _kept_attributes(scene: LoadedScene) -> dict[str, int]:
    """Number of colliders with each attribute that is read and checked but affects no contact."""
    kept = (held for imported in scene.imports for held in imported.kept.values())
    return dict(Counter(name for held in kept for name in held))


def _union(listed: list[np.ndarray]) -> np.ndarray:
    """Sorted pairs of all templates, each once, as every template has the pairs of two global shapes."""
    return listed[0] if len(listed) == 1 else np.unique(np.concatenate(listed), axis=0)


_NAMED = (
    (r"'[^']*' is the child of '[^']*'", "parent and child"),
    (r"bodies '[^']*' and '[^']*'", "two bodies"),
    (r"body '[^']*'", "a body"),
    (r" of '[^']*' and '[^']*'|, '[^']*'$", ""),
    (r"'[^']*'", "..."),
    (r"<(\w+)[^>]*>", r"<\1>"),
)
"""Patterns of names in a rule and their replacements, applied in this order, to count pairs by rule."""


def _kind_of_rule(rule: str) -> str:
    """The rule without the names of shapes and bodies."""
    for named, plain in _NAMED:
        rule = re.sub(named, plain, rule)
    return rule


def _motion(scene: LoadedScene) -> dict[str, Any]:
    motion = scene.motion()
    try:
        return {"frames": len(motion.time), "start": float(motion.time[0]), "end": float(motion.time[-1])}
    finally:
        motion.close()


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
        "k_hydro": _stiffness(model, row),
        "material": _material(model, row),
        "filter": _filter_words(model, row),
    }


def _stiffness(model: Model, row: int) -> float | None:
    """Authored stiffness of a shape with a pressure field [N/m^3]; infinite for a rigid one, None without one."""
    value = float(model.shapes.hydro_stiffness[row])
    return None if np.isnan(value) else value


def _material(model: Model, row: int) -> dict[str, Any]:
    """Material fields that the model's material rule uses, and the penalty parameters that are authored."""
    material = asdict(model.shapes.material.row(row))
    names = (*RULE_FIELDS[model.material_rule], *(n for n in PENALTY_PARAMETERS if material[n] is not None))
    return {name: material[name] for name in names}


def _filter_words(model: Model, row: int) -> list[str]:
    """Properties of the shape's filter class that differ from the defaults."""
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


def _bodies(model: Model) -> list[dict[str, Any]]:
    counts = Counter(model.shapes.body.tolist())
    return [
        {"path": path, "template": int(model.bodies.template[row]), "shapes": counts[row]}
        for row, path in enumerate(model.bodies.path)
    ]
