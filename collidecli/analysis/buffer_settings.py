"""Settings of physics engines that follow from the counts of a motion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from collidecli.analysis.buffer_counts import (
    CANDIDATES,
    CONTACTS,
    GENESIS_PAIRS,
    MUJOCO_PAIRS,
    NEWTON_PAIRS,
    PAIRS,
    BufferCounts,
)
from collidecli.analysis.buffer_margin import DEFAULT_MARGIN
from collidecli.analysis.cell_peaks import CellPeaks
from collidecli.analysis.engine_contact_rules import MUJOCO_WARP, NEWTON, PHYSX
from collidecli.scene.contact_columns import HYDRO_PATCHES, OF_PARTICLES
from collidecli.wording import first_and_count

WARP_SIZES = ("naconmax", "nconmax", "njmax")
NEWTON_CONTACTS = "rigid_contact_max"
PHYSX_CONTACTS = "gpu_max_rigid_contact_count"
GENESIS_SIZE = "max_collision_pairs"
ALL_WORLDS = "all worlds"
A_WORLD = "a world"
GENESIS_BROAD_PHASE = 8
"""multiplier_collision_broad_phase of Genesis by default: candidates for each of
max_collision_pairs."""
GENESIS = "Genesis"
OF_HULLS = (
    "it collides the convex hulls, or convex parts, of triangle meshes, which touch elsewhere;"
    " --meshes '*=hull' counts hulls, --meshes '*=parts' parts"
)
OF_HYDROELASTIC = (
    "pairs of hydroelastic shapes have surfaces in place of the contacts that are counted;"
    " --hydro off counts contacts"
)
OF_SURFACES = (
    "its contacts of hydroelastic surfaces share the size, and are not counted; --hydro off counts"
    " contacts of points"
)
OF_FLEXES = "its contacts of flexes share the size, and those of particles are not counted"
NO_CANDIDATES = "it needs poses, which a contact set has not: collide profile --sizes counts"


@dataclass(frozen=True)
class ConstraintRows:
    """Rows of constraints of a MuJoCo model. of_a_contact: the most of one contact, by its cone and
    condim. others: the most rows of equalities, friction losses and limits."""

    of_a_contact: int
    others: int


@dataclass(frozen=True)
class SceneFacts:
    """What settings need besides contacts.

    broad_phases: peaks of OTHER_PAIRS; None where they were not counted, and no_broad_phases is
    why. meshes: number of triangle meshes; moving_meshes: paths of those on bodies that are not
    known to have a distance field. heightfields: whether there is one. rows: of a scene in MJCF.
    triangles: peaks of the triangles that the pairs of Newton reach; None where they were not
    counted. groups: names of the tables beside the rigid contacts, whose rows are in no count.
    """

    broad_phases: Mapping[str, CellPeaks] | None = None
    no_broad_phases: str = NO_CANDIDATES
    meshes: int = 0
    moving_meshes: tuple[str, ...] = ()
    heightfields: bool = False
    rows: ConstraintRows | None = None
    triangles: CellPeaks | None = None
    groups: tuple[str, ...] = ()


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
    found = [
        *_of_mujoco_warp(counts, facts, worlds, margin),
        *_of_newton(counts, facts, margin),
        *_of_isaac_lab(counts, margin),
        _of_genesis(counts, facts, margin),
    ]
    reasons = _reasons(counts, facts)
    return [
        replace(setting, bound=None, advised=None, reason=reasons[setting.name])
        if setting.name in reasons and setting.advised is not None
        else setting
        for setting in found
    ]


def _reasons(counts: BufferCounts, facts: SceneFacts) -> dict[str, str]:
    """Why the counted contacts are not those of an engine, by the name of a setting."""
    reasons: dict[str, str] = {}
    if not set(OF_PARTICLES).isdisjoint(facts.groups):
        reasons |= dict.fromkeys(WARP_SIZES, OF_FLEXES)
    if HYDRO_PATCHES.name in facts.groups:
        reasons |= dict.fromkeys((*WARP_SIZES, PHYSX_CONTACTS, GENESIS_SIZE), OF_HYDROELASTIC)
        reasons[NEWTON_CONTACTS] = OF_SURFACES
    if facts.meshes:
        reasons |= dict.fromkeys((*WARP_SIZES, GENESIS_SIZE), OF_HULLS)
    if moving := facts.moving_meshes:
        reasons[PHYSX_CONTACTS] = (
            f"it collides the convex hull of a mesh that moves, as {first_and_count(moving)},"
            " unless the body is kinematic or the mesh has a distance field; --meshes '*=hull'"
            " counts hulls"
        )
    elif found := counts.mesh_contact:
        reasons[PHYSX_CONTACTS] = (
            "its contacts of two meshes, by distance fields, have no known bound, and"
            f" {found.shape0} and {found.shape1} have contacts, first in frame {found.frame}"
        )
    return reasons


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
        "contacts of all worlds; and pairs after the broad phase of all worlds, in which planes"
        " reach bounding spheres"
    )
    ours = _all(counts, CONTACTS)
    average = "naconmax divided by the number of worlds"
    if facts.broad_phases is None:
        reason = facts.no_broad_phases
        share = -(-ours // worlds)
        yield Setting(engine, "naconmax", ALL_WORLDS, ours, None, None, rule, reason)
        yield Setting(engine, "nconmax", A_WORLD, share, None, None, average, reason)
    else:
        pairs = facts.broad_phases[MUJOCO_PAIRS].of_all_worlds.count
        ours = max(ours, pairs)
        total = _sized(
            engine, "naconmax", ALL_WORLDS, ours, max(_all(counts, engine), pairs), margin, rule
        )
        yield total
        ours, bound, advised = (
            -(-(size or 0) // worlds) for size in (total.ours, total.bound, total.advised)
        )
        yield Setting(engine, "nconmax", A_WORLD, ours, bound, advised, average)
    rule = "rows of constraints of one world: by cone and condim of a contact, and of the joints"
    if facts.rows is None:
        reason = (
            "cone, condim, limits and equalities are in a scene in MJCF alone, given to profile"
        )
        yield Setting(engine, "njmax", A_WORLD, None, None, None, rule, reason)
        return
    of_contacts = (counts.peaks[name].of_a_world.count for name in (CONTACTS, engine))
    ours, bound = (n * facts.rows.of_a_contact + facts.rows.others for n in of_contacts)
    yield _sized(engine, "njmax", A_WORLD, ours, bound, margin, rule)


def _of_newton(counts: BufferCounts, facts: SceneFacts, margin: float) -> Iterator[Setting]:
    engine = NEWTON.engine
    yield _sized(
        engine,
        NEWTON_CONTACTS,
        ALL_WORLDS,
        _all(counts, CONTACTS),
        _all(counts, engine),
        margin,
        "contacts of all worlds",
    )
    rule = "triangles of a mesh in the box of the other shape, of all pairs and worlds"
    name = "max_triangle_pairs"
    if not facts.meshes and not facts.heightfields:
        yield Setting(engine, name, ALL_WORLDS, 0, 0, None, rule, "the scene has no mesh")
    elif facts.triangles is None:
        reason = facts.no_broad_phases
        yield Setting(engine, name, ALL_WORLDS, None, None, None, rule, reason)
    else:
        number = facts.triangles.of_all_worlds.count
        yield _sized(engine, name, ALL_WORLDS, number, number, margin, rule)
    rule = "pairs after the broad phase of all worlds; a tilted plane is in all of its pairs"
    name = "shape_pairs_max"
    if facts.broad_phases is None:
        reason = facts.no_broad_phases
        yield Setting(engine, name, ALL_WORLDS, None, None, None, rule, reason)
    else:
        pairs = facts.broad_phases[NEWTON_PAIRS].of_all_worlds.count
        yield _sized(engine, name, ALL_WORLDS, pairs, pairs, margin, rule)


def _of_isaac_lab(counts: BufferCounts, margin: float) -> Iterator[Setting]:
    engine = PHYSX.engine
    yield _sized(
        engine,
        PHYSX_CONTACTS,
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


def _of_genesis(counts: BufferCounts, facts: SceneFacts, margin: float) -> Setting:
    rule = f"pairs that touch; {GENESIS_BROAD_PHASE} candidates for each; of one world"
    name = GENESIS_SIZE
    engine = GENESIS
    ours = counts.peaks[PAIRS].of_a_world.count
    if facts.broad_phases is None:
        reason = facts.no_broad_phases
        return Setting(engine, name, A_WORLD, ours, None, None, rule, reason)
    candidates = facts.broad_phases[GENESIS_PAIRS].of_a_world.count
    bound = max(ours, -(-candidates // GENESIS_BROAD_PHASE))
    return _sized(engine, name, A_WORLD, ours, bound, margin, rule)


def sizes_dict(
    counts: BufferCounts,
    facts: SceneFacts,
    margin: float = DEFAULT_MARGIN,
    gap: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Any]:
    """The entry `sizes` of a result. gap: least and greatest of two shapes [m], for which the
    counts hold."""
    settings = [dict(vars(setting)) for setting in settings_of(counts, facts, margin)]
    return {
        "margin": margin,
        "gap": list(gap),
        **counts.as_dict(),
        "settings": settings,
        "not_counted": list(facts.groups),
    }
