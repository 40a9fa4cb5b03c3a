"""The verb `matrix`: which bodies of a robot never, always, at rest or sometimes touch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from collidecli.engine.pipeline_build import find_device, load_ahead
from collidecli.errors import InputError
from collidecli.motions.adjacent_links import adjacent_bodies
from collidecli.motions.collision import prepare_collision
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import load_with, scene_in_motion
from collidecli.motions.timing import TimingReport
from collidecli.results.result import Progress, Result
from collidecli.scene.chosen_pairs import of_disabled_pairs, trigger_notes
from collidecli.scene.contact_columns import TOUCHES
from collidecli.scene.distinct_values import distinct
from collidecli.scene.kinematics import ArticulationKinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, RestingMotion, episodes_in
from collidecli.scene.particles import Particles
from collidecli.scene.shape_switches import refuse_switches
from collidecli.verbs.matrix.joint_samples import SampledMotion

DEFAULT_SAMPLES = 10_000
MOST_SAMPLES = 10_000_000
ADJACENT = "Adjacent"
ALWAYS = "Always"
DEFAULT = "Default"
NEVER = "Never"
REASONS = (ADJACENT, ALWAYS, DEFAULT, NEVER)
"""Reasons of disabled pairs, of which the first that applies is given; the words of MoveIt's setup
assistant."""
RULE_OF_THREE = 3.0
"""What did not occur in N independent trials has at 95 % confidence a probability below this
over N."""
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class MatrixRequest(EngineRequest):
    """Bodies of the robots of one scene over configurations.

    samples: number of random ones; 0 takes those of a motion. seed: of the random numbers.
    """

    samples: int = DEFAULT_SAMPLES
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class MatrixResult(Result, schema="collide.matrix/1", rows="pairs"):
    """Which bodies of each robot touch over configurations.

    trajectory: "" for random configurations. samples: number of configurations, worlds counted; of
    demonstrations of unequal lengths those that were recorded.
    seed: None for a motion. confidence: of random configurations a pair that never touched touches
    in less than this share of them, at the level; None for a motion. reasons: number of pairs by
    reason, and of those that are kept. pairs: of two bodies that both have shapes and belong to one
    robot, with the number of configurations in which they touch, whether they do at rest, and the
    reason to disable the pair, None for a pair that is to be kept. written: files.
    """

    scene: str
    scene_sha256: str
    trajectory: str
    trajectory_sha256: str
    samples: int
    seed: int | None
    confidence: dict[str, float] | None
    robots: int
    bodies: int
    reasons: dict[str, int]
    pairs: list[dict[str, Any]]
    warnings: list[str]
    written: list[str]


@dataclass(frozen=True)
class Matrix:
    """A result and the scene of it."""

    result: MatrixResult
    scene: LoadedScene


def matrix(request: MatrixRequest, progress: Progress = None) -> Matrix:
    """Finds which bodies of a robot touch in which configurations; the filters of the scene do not
    matter.

    Raises InputError for a scene without a robot, for one whose joints cannot be sampled, and as
    `run` does.
    """
    request.engine.checked()
    if len(request.scenes) > 1:
        raise InputError(
            f"{len(request.scenes)} scenes are given", fix="make a matrix of each by itself"
        )
    is_random = request.trajectory is None
    load_ahead(find_device(request.engine.device))
    # Two links that are fixed to the world are a pair too.
    request = replace(request, contact=replace(request.contact, static_pairs=True))
    if is_random:
        with request.limits():
            scene = load_with(request)
        check_robot(scene)
        switched = [path for imported in scene.imports for path in imported.switched]
        refuse_switches(switched, scene.name, "random configurations have no frames")
        motion: Motion = SampledMotion(scene, request.samples, request.seed)
        if not motion.moves:  # pyright: ignore[reportAttributeAccessIssue]
            raise InputError(
                "no joint of the scene can be sampled", scene.name, "give a motion with -t"
            )
    else:
        scene, motion = scene_in_motion(request)
    with closing(motion):
        check_robot(scene)
        model = robot_model(scene)
        bodies = _bodies(scene)
        rest = RestingMotion(model.resting_poses())
        at_rest, _ = _touched(request, scene, model, rest, bodies, None)
        touched, cells = _touched(request, scene, model, motion, bodies, progress)
    if not cells:
        raise InputError("no selected frame is in an episode", scene.name, "select other --frames")
    pairs = _pairs(scene, bodies, touched, at_rest, cells)
    reasons = Counter(pair["reason"] or "kept" for pair in pairs)
    result = MatrixResult(
        scene=scene.name,
        scene_sha256=scene.sha256,
        trajectory=request.trajectory or "",
        trajectory_sha256=motion.sha256,
        samples=cells,
        seed=request.seed if is_random else None,
        confidence=({"below": RULE_OF_THREE / cells, "level": CONFIDENCE} if is_random else None),
        robots=len({tree for tree in scene.shape_trees.tolist() if tree >= 0}),
        bodies=len({body for pair in pairs for body in (pair["body0"], pair["body1"])}),
        reasons={name: reasons[name] for name in (*REASONS, "kept")},
        pairs=pairs,
        warnings=[
            *scene.warnings,
            *motion.warnings,
            *trigger_notes(scene.model.shapes.is_trigger),
        ],
        written=[],
    )
    return Matrix(result, scene)


def check_robot(scene: LoadedScene) -> None:
    """Raises InputError for a scene without two bodies of one robot, and for one with worlds of
    different shapes."""
    if not (scene.shape_trees >= 0).any():
        what = "no joint connects two bodies, so that there is no robot"
        raise InputError(what, scene.name, "give the scene of a robot")
    if len(distinct(scene.model.world_template)) > 1:
        what = "its worlds have different shapes, and a matrix is of one robot"
        raise InputError(what, scene.name, "give one scene or one environment")


def robot_model(scene: LoadedScene) -> Model:
    """The model in which shapes of two bodies of one robot may touch, and no other pair."""
    trees = _solid_trees(scene)
    model = replace(scene.model, particles=Particles())
    return of_disabled_pairs(model, {}, (trees + 1).tolist())


def _solid_trees(scene: LoadedScene) -> np.ndarray:
    """int64[S]: the joint tree of each shape that is no trigger, -1 for the others."""
    return np.where(scene.model.shapes.is_trigger, -1, scene.shape_trees)


def _bodies(scene: LoadedScene) -> dict[str, int]:
    """Numbers of the bodies of robots that have shapes, by name."""
    names = zip(scene.shape_bodies, _solid_trees(scene).tolist(), strict=True)
    return {name: k for k, name in enumerate(dict.fromkeys(n for n, tree in names if tree >= 0))}


def _touched(
    request: MatrixRequest,
    scene: LoadedScene,
    model: Model,
    motion: Motion,
    bodies: dict[str, int],
    progress: Progress,
) -> tuple[np.ndarray, int]:
    """int64[bodies, bodies], symmetric: number of configurations in which two bodies touch; and the
    number of configurations."""
    contact = replace(request.contact, gap=0.0, touch_only=True).checked()
    timing = TimingReport()
    device = find_device(request.engine.device)
    with scene.named():
        collision = prepare_collision(
            model, motion, contact, request.engine, device, timing, reads=()
        )
    number = np.array([bodies.get(name, -1) for name in scene.shape_bodies], np.int64)
    count = len(bodies)
    touched = np.zeros(count * count, np.int64)
    cells = 0
    with closing(collision.blocks(timing)) as blocks:
        for block in blocks:
            rows = block.groups[TOUCHES.name]
            is_counted = _counted_cells(block.first_cell, len(rows.cell_counts), motion, model)
            cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
            a, b = (number[rows.columns[name]] for name in ("shape0", "shape1"))
            key = np.minimum(a, b) * count + np.maximum(a, b)
            once = distinct((cell * (count * count) + key)[is_counted[cell]])
            touched += np.bincount(once % (count * count), minlength=count * count)
            cells += int(is_counted.sum())
            if progress is not None:
                done = block.first_cell + len(rows.cell_counts)
                progress(done // model.world_count, len(motion.time))
    table = touched.reshape(count, count)
    return table + table.T, cells


def _counted_cells(first_cell: int, cell_count: int, motion: Motion, model: Model) -> np.ndarray:
    """bool[cell_count]: the consecutive cells that are configurations of their own: in an episode,
    and of several worlds that one recorded world moves alike, those of the first."""
    world = (first_cell + np.arange(cell_count)) % model.world_count
    is_counted = (world == 0) | (motion.world_count > 1)
    episodes = episodes_in(motion, model.world_count)
    if episodes is not None:
        is_counted &= episodes.inside(first_cell, cell_count, model.world_count)
    return is_counted


def _pairs(
    scene: LoadedScene,
    bodies: dict[str, int],
    touched: np.ndarray,
    at_rest: np.ndarray,
    cells: int,
) -> list[dict[str, Any]]:
    pairs = []
    for tree in _trees(scene):
        own = [name for name in tree.body_path if name in bodies]
        adjacent = adjacent_bodies(tree, bodies)
        for one, other in combinations(own, 2):
            a = bodies[one]
            b = bodies[other]
            count = int(touched[a, b])
            rests = bool(at_rest[a, b])
            pairs.append(
                {
                    "body0": one,
                    "body1": other,
                    "reason": _reason((one, other) in adjacent, rests, count, cells),
                    "touched": count,
                    "at_rest": rests,
                }
            )
    return pairs


def _reason(is_adjacent: bool, at_rest: bool, touched: int, cells: int) -> str | None:
    if is_adjacent:
        return ADJACENT
    if touched == cells:
        return ALWAYS
    if at_rest:
        return DEFAULT
    return None if touched else NEVER


def _trees(scene: LoadedScene) -> Iterator[ArticulationKinematics]:
    articulated = scene.imports[0].articulated
    for tree in articulated.articulations if articulated is not None else ():
        if len(tree.body_path) > 1:
            yield tree
