"""Settings of physics engines that follow from the counts of a motion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from collidecli.analysis.buffer_counts import CANDIDATES, CONTACTS, PAIRS, BufferCounts
from collidecli.analysis.buffer_margin import DEFAULT_MARGIN
from collidecli.analysis.engine_contact_rules import MUJOCO_WARP, NEWTON, PHYSX

ALL_WORLDS = "all worlds"
A_WORLD = "a world"
GENESIS_BROAD_PHASE = 8
"""multiplier_collision_broad_phase of Genesis by default: candidates for each of
max_collision_pairs."""
NO_CANDIDATES = "the candidates are not in a contact set: collide profile --sizes counts them"


@dataclass(frozen=True)
class ConstraintRows:
    """Rows of constraints of a MuJoCo model. of_a_contact: the most of one contact, by its cone and
    condim. others: the most rows of equalities, friction losses and limits."""

    of_a_contact: int
    others: int


@dataclass(frozen=True)
class SceneFacts:
    """What settings need of a scene besides its contacts.

    plane_pairs: of all worlds, pairs of a plane and a shape that may move. meshes: whether it has a
    mesh or heightfield. rows: of a scene in MJCF. triangles: the greatest number, over the worlds
    of one frame, of triangles that the candidates with a mesh reach; None where it was not counted.
    """

    plane_pairs: int = 0
    meshes: bool = False
    rows: ConstraintRows | None = None
    triangles: int | None = None


@dataclass(frozen=True)
class Setting:
    """A size of a buffer. ours: what the contacts or candidates of this motion take. bound: the
    most that the engine can take of the pairs that touch in it. advised: the bound with the margin.

    advised and bound are None where they do not follow; reason tells why. scope: what a buffer is
    for. rule: how the engine counts.
    """

    engine: str
    name: str
    scope: str
    ours: int | None
    bound: int | None
    advised: int | None
    rule: str
    reason: str = ""


def settings_of(
    counts: BufferCounts, facts: SceneFacts, margin: float = DEFAULT_MARGIN
) -> list[Setting]:
    """The settings of every engine, in the order of the documentation. margin: at least 1."""
    worlds = max(1, len(counts.peaks[CONTACTS].counts))
    return [
        *_of_mujoco_warp(counts, facts, worlds, margin),
        *_of_newton(counts, facts, margin),
        *_of_isaac_lab(counts, margin),
        _of_genesis(counts, margin),
    ]


def advised_size(bound: int, margin: float) -> int:
    """The bound times the margin, rounded up; a margin of 1.1 of 10 is 11."""
    return math.ceil(round(bound * margin, 6))


def _sized(
    engine: str, name: str, scope: str, ours: int, bound: int, margin: float, rule: str
) -> Setting:
    return Setting(engine, name, scope, ours, bound, advised_size(bound, margin), rule)


def _all(counts: BufferCounts, name: str) -> int:
    return counts.peaks[name].of_all_worlds.count


def _of_mujoco_warp(
    counts: BufferCounts, facts: SceneFacts, worlds: int, margin: float
) -> Iterator[Setting]:
    engine = MUJOCO_WARP.engine
    rule = (
        "contacts of all worlds, and as many pairs after the broad phase, in which a plane reaches"
        " every bounding sphere"
    )
    ours = max(_all(counts, CONTACTS), _all(counts, CANDIDATES))
    average = "naconmax divided by the number of worlds"
    if counts.has_candidates:
        pairs = _all(counts, CANDIDATES) + facts.plane_pairs
        bound = max(_all(counts, engine), pairs)
        total = _sized(engine, "naconmax", ALL_WORLDS, ours, bound, margin, rule)
        yield total
        of_one = [-(-number // worlds) for number in (ours, bound, total.advised or 0)]
        yield Setting(engine, "nconmax", A_WORLD, *of_one, average)
    else:
        yield Setting(engine, "naconmax", ALL_WORLDS, ours, None, None, rule, NO_CANDIDATES)
        share = -(-ours // worlds)
        yield Setting(engine, "nconmax", A_WORLD, share, None, None, average, NO_CANDIDATES)
    rule = "rows of constraints of one world: by cone and condim of a contact, and of the joints"
    if facts.rows is None:
        reason = "cone, condim, limits and equalities are in a scene in MJCF alone, given to profile"
        yield Setting(engine, "njmax", A_WORLD, None, None, None, rule, reason)
        return
    of_contacts = (counts.peaks[name].of_a_world.count for name in (CONTACTS, engine))
    ours, bound = (n * facts.rows.of_a_contact + facts.rows.others for n in of_contacts)
    yield _sized(engine, "njmax", A_WORLD, ours, bound, margin, rule)


def _of_newton(counts: BufferCounts, facts: SceneFacts, margin: float) -> Iterator[Setting]:
    engine = NEWTON.engine
    yield _sized(
        engine,
        "rigid_contact_max",
        ALL_WORLDS,
        _all(counts, CONTACTS),
        _all(counts, engine),
        margin,
        "contacts of all worlds",
    )
    rule = "triangles of a mesh in the box of the other shape, of all pairs and worlds"
    name = "max_triangle_pairs"
    if not facts.meshes:
        yield Setting(engine, name, ALL_WORLDS, 0, 0, None, rule, "the scene has no mesh")
    elif facts.triangles is None:
        reason = "the boxes of the shapes are not in a contact set: collide profile --sizes"
        yield Setting(engine, name, ALL_WORLDS, None, None, None, rule, reason)
    else:
        yield _sized(engine, name, ALL_WORLDS, facts.triangles, facts.triangles, margin, rule)
    rule = "pairs after the broad phase of all worlds; a plane is infinite in it"
    name = "shape_pairs_max"
    if counts.has_candidates:
        ours = _all(counts, CANDIDATES)
        yield _sized(engine, name, ALL_WORLDS, ours, ours + facts.plane_pairs, margin, rule)
    else:
        yield Setting(engine, name, ALL_WORLDS, None, None, None, rule, NO_CANDIDATES)


def _of_isaac_lab(counts: BufferCounts, margin: float) -> Iterator[Setting]:
    engine = PHYSX.engine
    yield _sized(
        engine,
        "gpu_max_rigid_contact_count",
        ALL_WORLDS,
        _all(counts, CONTACTS),
        _all(counts, engine),
        margin,
        "contacts of all worlds, within the contact offsets",
    )
    ours = _all(counts, CANDIDATES) if counts.has_candidates else None
    yield Setting(
        engine,
        "gpu_found_lost_pairs_capacity",
        ALL_WORLDS,
        ours,
        None,
        None,
        "pairs of boxes that begin or end to overlap in a step, before the filter of pairs",
        "pairs that a filter excludes count too and are no candidates here; aggregates do not",
    )


def _of_genesis(counts: BufferCounts, margin: float) -> Setting:
    rule = f"pairs that touch; {GENESIS_BROAD_PHASE} candidates for each; of one world"
    name, engine = "max_collision_pairs", "Genesis"
    ours = counts.peaks[PAIRS].of_a_world.count
    if not counts.has_candidates:
        return Setting(engine, name, A_WORLD, ours, None, None, rule, NO_CANDIDATES)
    candidates = counts.peaks[CANDIDATES].of_a_world.count
    bound = max(ours, -(-candidates // GENESIS_BROAD_PHASE))
    return _sized(engine, name, A_WORLD, ours, bound, margin, rule)


def sizes_dict(
    counts: BufferCounts, facts: SceneFacts, margin: float = DEFAULT_MARGIN
) -> dict[str, Any]:
    """The entry `sizes` of a result."""
    settings = [dict(vars(setting)) for setting in settings_of(counts, facts, margin)]
    return {"margin": margin, **counts.as_dict(), "settings": settings}
