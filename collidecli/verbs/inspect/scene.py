"""Contents of a scene and its collision filter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from collidecli.analysis.shape_differences import shape_differences
from collidecli.analysis.template_differences import column_differences, template_rows
from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.scenes import load_scene
from collidecli.numerics.poses import compose_poses
from collidecli.results.result import Result
from collidecli.scene.allowed_pairs import allowed_pairs, excluded_counts, pair_lengths
from collidecli.scene.distinct_values import distinct
from collidecli.scene.environment_names import local_path
from collidecli.scene.filter_rules import FilterClass
from collidecli.scene.materials import PENALTY_PARAMETERS, RULE_FIELDS
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.option_values import GROUND
from collidecli.scene.options import SceneOptions
from collidecli.scene.pair_verdicts import explain
from collidecli.scene.particles import Particles
from collidecli.scene.poses import shift_between
from collidecli.scene.records import may_share_world
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.wording import did_you_mean, some_names

Why = tuple[str, str] | None
"""Names of two shapes or bodies."""
ROUNDED = 1e-12
"""Difference of poses in two environments that is rounding, of their largest coordinate: a product
of two poses rounds some ten times by 1.1e-16, and a pose of USD is one of at most a few dozen, and
a quaternion of its matrix."""
MAX_COUNTED_SHAPES = 5000
"""Pairs of a template with more shapes are counted only on request."""


@dataclass(frozen=True)
class SceneResult(
    Result,
    schema="collide.inspect.scene/1",
    optional=("pairs", "why", "deformables", "triggers", "template_differences"),
):
    """Contents of a scene: shapes, bodies, worlds, filters.

    pair_gap, pair_margin: least and greatest gap and margin of pairs that may touch [m]; None if
    not counted, and without any. allowed_pair_count: pairs of shapes that may touch; None if not
    counted. pair_count: all pairs of shapes that are in a world together, each template once.
    excluded_pairs: of the others by rule, each pair once, under the first that forbids it; empty if
    not counted. kept_attributes: count of shapes with each attribute that is read but affects no
    contact. pairs, why: if requested. deformables: path, kind, template, particles, lines,
    triangles and tetrahedra of each object of particles; None without. triggers: number of shapes
    that are not solid, and of pairs that may touch and have one, None if not counted; None without
    triggers, and then no shape has the key trigger. template_differences: of a scene of several
    templates, see `template_rows`.
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
    triggers: dict[str, int | None] | None = None
    template_differences: list[dict[str, Any]] | None = None


def _deformables(particles: Particles) -> list[dict[str, Any]]:
    lines, triangles, tetrahedra = (
        np.bincount(particles.owner[element[:, 0]], minlength=len(particles.path))
        for element in (particles.line, particles.triangle, particles.tetrahedron)
    )
    return [
        {
            "path": path,
            "kind": particles.kind[row],
            "template": int(particles.template[row]),
            "particles": int(particles.first[row + 1] - particles.first[row]),
            "lines": int(lines[row]),
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
    return [float(lengths.min()), float(lengths.max())]


def inspect_scene(
    path: str,
    pairs: bool,
    why: Why,
    static_pairs: bool,
    options: SceneOptions,
    is_recording: bool = False,
) -> SceneResult:
    """Contents of a scene. pairs: list the paths of all pairs that may touch. why: explain the
    filter for two shapes.

    static_pairs: pairs of two static shapes may touch. is_recording: the scene is in a recording.
    """
    scene = load_scene(
        [] if is_recording else [path], None, static_pairs, path if is_recording else None, options
    )
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
        shape_types=dict(Counter(model.shapes.type_labels())),
        shapes=[_shape(model, row) for row in range(len(model.shapes))],
        bodies=[
            {"path": path, "template": int(model.bodies.template[row]), "shapes": counts[row]}
            for row, path in enumerate(model.bodies.path)
        ],
        allowed_pair_count=None if allowed is None else len(allowed),
        pair_count=every * (every - 1) // 2
        + int((own_shapes * (own_shapes - 1) // 2 + own_shapes * every).sum()),
        excluded_pairs=_excluded_pairs(model, len(templates)) if counted else {},
        forced_pair_count=len(model.pair_filter.forced),
        kept_attributes=dict(Counter(name for attributes in kept for name in attributes)),
        warnings=scene.warnings,
        pairs=[[paths[a], paths[b]] for a, b in allowed] if pairs and allowed is not None else None,
        why=explain_pair(scene, *why, left_out) if why is not None else None,
        deformables=_deformables(model.particles) if len(model.particles) else None,
        triggers=_triggers(model, allowed),
        template_differences=_template_differences(model) if len(templates) > 1 else None,
    )


def _template_differences(model: Model) -> list[dict[str, Any]]:
    """The templates compared by all that the model has of a shape."""
    shapes = model.shapes
    roots = frozenset(model.world_path) - {""}

    def differences(first: int, second: int) -> list[dict[str, Any]]:
        templates = shapes.template[[first, second]].tolist()
        worlds = [int(np.argmax(model.world_template == one)) for one in templates]
        found = shape_differences(
            (model, first), (model, second), _pose_in_environment(model, first, second, worlds)
        )
        if (model.world_pose[worlds[0], 3:] != model.world_pose[worlds[1], 3:]).any():
            found = [one for one in found if not _is_rounding(one)]
        names = ("body", "margin", "gap", "hydroelastic", "trigger", "material")
        rows = [_shape(model, row) for row in (first, second)]
        for row in rows:
            row["body"] = row["body"] and local_path(row["body"], roots)
        columns = {
            name: [row[name] for row in rows] for name in names if all(name in r for r in rows)
        }
        materials = columns.pop("material", None)
        found += column_differences(columns, 0, 1)
        if materials is not None:
            names = tuple(dict.fromkeys(name for one in materials for name in one))
            of_materials = {name: [one.get(name) for one in materials] for name in names}
            found += column_differences(of_materials, 0, 1)
        return found

    names = [local_path(path, roots) for path in shapes.path]
    return template_rows(shapes.path, shapes.template, model.world_template, differences, names)


def _is_rounding(difference: dict[str, Any]) -> bool:
    """Whether two sizes or poses differ as those of equal shapes do whose environments are turned:
    all of them come from matrices in the world."""
    a, b = difference["a"], difference["b"]
    if not isinstance(a, tuple) or len(a) != len(b):
        return False
    return bool(np.allclose(a, b, rtol=ROUNDED, atol=ROUNDED))


def _pose_in_environment(
    model: Model, first: int, second: int, worlds: list[int]
) -> np.ndarray | None:
    """float64[7]: the pose of the second of two static shapes, moved from its world to that of the
    first one; the first one's pose where both differ by rounding. None for shapes of bodies, whose
    poses are in the frames of these."""
    shapes = model.shapes
    if (shapes.body[[first, second]] != STATIC_BODY).any():
        return None
    goal, start = model.world_pose[worlds]
    moved = compose_poses(shift_between(goal[None], start[None])[0], shapes.pose[second])
    own = shapes.pose[first]
    turned = moved * (1.0 if moved[3:] @ own[3:] >= 0.0 else -1.0)
    size = np.abs(model.world_pose[worlds, :3]).max() + np.abs(own[:3]).max()
    is_near = np.abs(moved[:3] - own[:3]).max() <= ROUNDED * size
    is_near = is_near and np.abs(turned[3:] - own[3:]).max() <= ROUNDED
    return own if is_near else moved


def _triggers(model: Model, allowed: np.ndarray | None) -> dict[str, int | None] | None:
    """The field `triggers` of a result. allowed: int[K, 2], pairs that may touch, if counted."""
    trigger = model.shapes.is_trigger
    if not trigger.any():
        return None
    pairs = None if allowed is None else int(trigger[allowed].any(axis=1).sum())
    return {"shapes": int(trigger.sum()), "pairs": pairs}


def explain_pair(
    scene: LoadedScene, path_a: str, path_b: str, left_out: Container[str] = ()
) -> dict[str, Any]:
    """Whether two shapes, or shapes of two bodies, may touch, and the rule that decides; with each
    pair of shapes, its gap and its margin [m].

    With several templates, two shapes of one are taken; pairs of names with one verdict are listed
    once.

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
    shapes = model.shapes
    bodies = model.bodies.path
    known = dict.fromkeys((*shapes.path, *bodies))
    ends = [known_path for known_path in known if known_path.endswith(f"/{path}")]
    if path not in known and len(ends) > 1:
        raise InputError(
            f"'{path}' is the end of {len(ends)} paths", "--why", f"give one of {some_names(ends)}"
        )
    path = ends[0] if ends and path not in known else path
    rows = [row for row, shape_path in enumerate(shapes.path) if shape_path == path]
    if not rows and path in bodies:
        rows = [row for row, body in enumerate(scene.shape_bodies) if body == path]
        if not rows:
            raise InputError(
                f"the body '{path}' has no shape that collides", "--why", "name another"
            )
    if not rows and path in left_out:
        what = f"'{path}' is only visual: no mask and no pair allows contacts of it"
        raise InputError(what, "--why", "name two shapes that collide")
    if not rows and path in model.particles.path:
        kind = model.particles.kind[model.particles.path.index(path)]
        what = f"'{path}' is no shape: it consists of particles ({kind})"
        raise InputError(
            what,
            "--why",
            "name two shapes; docs/explanation/particles.md has the filters of particles",
        )
    if not rows:
        hint = did_you_mean(path, known, "collide inspect lists the scene's shapes", shown=3)
        if path == GROUND:
            hint = "the option --ground adds it to the scene"
        raise InputError(f"there is no shape or body '{path}'", "--why", hint)
    return rows


def _union(listed: list[np.ndarray]) -> np.ndarray:
    """Sorted pairs of all templates, each once, as every template has the pairs of two global
    shapes."""
    return listed[0] if len(listed) == 1 else distinct(np.concatenate(listed), axis=0)


_NAMED = (
    (r"^joint .*", "joint"),
    (r"^parts of <.*", "parts of one mesh"),
    (r"'[^']*' is the child of '[^']*'", "parent and child"),
    (r" of '[^']*'( and '[^']*')?|, '[^']*'$", ""),
    (r"'[^']*'", "..."),
    (r"<(\w+)[^>]*>", r"<\1>"),
)
"""Patterns of names in a rule and their replacements, applied in this order, to count pairs by
rule."""


def _excluded_pairs(model: Model, templates: int) -> dict[str, int]:
    """Count of pairs by rule, without the names of shapes and bodies; a pair of two global shapes
    counts once."""
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
        return {
            "frames": len(motion.time),
            "start": float(motion.time[0]),
            "end": float(motion.time[-1]),
        }


def _geometry(model: Model, row: int) -> dict[str, Any]:
    """Of a convex mesh the vertex count; of a mesh the triangle count, whether it is closed or
    crosses itself, and its repairs."""
    shapes = model.shapes
    if shapes.hull[row] >= 0:
        return {"vertices": len(model.hulls[shapes.hull[row]].vertex)}
    if shapes.mesh[row] >= 0:
        mesh = model.meshes[shapes.mesh[row]]
        counts = {
            "triangles": len(mesh.face),
            "closed": mesh.is_closed,
            "crosses_itself": mesh.crosses_itself,
        }
        return {**counts, "repairs": mesh.repairs.counts()}
    return {}


def _without_subnormal(size: np.ndarray) -> list[float]:
    """Half sizes with 0 across a flat mesh, which has the smallest positive number there."""
    return np.where(size < np.finfo(np.float64).tiny, 0.0, size).tolist()


def _shape(model: Model, row: int) -> dict[str, Any]:
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    body = int(shapes.body[row])
    value = float(model.shapes.hydro_stiffness[row])
    material = asdict(model.shapes.material.row(row))
    names = (
        *RULE_FIELDS[model.material_rule],
        *(n for n in PENALTY_PARAMETERS if material[n] is not None),
    )
    return {
        "path": shapes.path[row],
        "type": kind.label,
        "size": _without_subnormal(shapes.size[row, : SIZE_COUNT[kind]]),
        **_geometry(model, row),
        "body": None if body == STATIC_BODY else model.bodies.path[body],
        "template": int(shapes.template[row]),
        "margin": float(shapes.margin[row]),
        "gap": float(shapes.gap[row]),
        "hydroelastic": bool(shapes.is_hydroelastic[row]),
        "k_hydro": None if np.isnan(value) else value,
        "material": {name: material[name] for name in names},
        "filter": _filter_words(model, row),
        **({"trigger": bool(shapes.trigger[row])} if shapes.is_trigger.any() else {}),
    }


def _filter_words(model: Model, row: int) -> list[str]:
    if not model.pair_filter.classes:
        return []
    filter_class: FilterClass = model.pair_filter.classes[model.pair_filter.shape_class[row]]
    words = [filter_class.disabled] if filter_class.disabled else []
    if filter_class.group != 1:
        words.append(f"group {filter_class.group}")
    if filter_class.mask_either is not None:
        words.append(
            f"contype {filter_class.mask_either[0]:#x} conaffinity {filter_class.mask_either[1]:#x}"
        )
    if filter_class.mask_both is not None:
        words.append(f"group {filter_class.mask_both[0]:#x} mask {filter_class.mask_both[1]:#x}")
    return words + [name for _, name in sorted(filter_class.usd_groups)]
