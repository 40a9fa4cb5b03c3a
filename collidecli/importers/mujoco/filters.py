"""Pairs that a compiled MuJoCo model filters or forces: masks, excludes, welds, parents, `<pair>`,
self-collision."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from itertools import product
from types import MappingProxyType

import mujoco
import numpy as np

from collidecli.importers.mujoco.geoms import (
    LEFT_OUT,
    GeomShapes,
    collision_disabled,
    pair_lengths,
)
from collidecli.importers.mujoco.materials import pair_material
from collidecli.importers.mujoco.shape_names import body_name
from collidecli.importers.mujoco_margins import margin_and_gap
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.distinct_values import distinct

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


def add_pair_rules(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    shapes: GeomShapes,
    disabled: Mapping[tuple[int, int], str] = MappingProxyType({}),
    meaning: str = "",
) -> list[str]:
    """Filters and forces pairs of shapes as MuJoCo does; returns warnings.

    The builder applies its own rules for masks, shapes of one body and the static world: a pair
    that is filtered by masks is not listed. disabled: pairs of shapes, lower row first, that are
    filtered even where the scene forces them, with their rules. meaning: of margins, see
    `margin_and_gap`.
    """
    warnings = []
    flag = collision_disabled(mj_model)
    if flag is not None:
        warnings.append(f"the scene disables every contact with {flag}")
    for bit, name in (
        (mujoco.mjtEnableBit.mjENBL_SPECULATIVE, "speculative"),
        (mujoco.mjtEnableBit.mjENBL_IPC, "ipc"),
    ):
        if mj_model.opt.enableflags & bit:
            warnings.append(
                f'<flag {name}="enable"/> has no effect: contacts depend on margin and gap'
            )
    if collision_disabled(mj_model) is None:
        warnings += _force_pairs(builder, mj_model, shapes, disabled, meaning)
    for pair, rule in disabled.items():
        builder.add_shape_collision_filter_pair(*pair, rule=rule)
    seen: set[tuple[int, int]] = set()
    for first, second, rule in _ruled_groups(mj_model):
        for pair in _mask_compatible(mj_model, shapes, first, second):
            if pair not in seen:
                seen.add(pair)
                builder.add_shape_collision_filter_pair(*pair, rule=rule)
    return warnings


def filter_self_collisions(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    static: np.ndarray,
    body_row: np.ndarray,
    shapes: GeomShapes,
    urdf: bool,
) -> None:
    """Filters the pairs of each articulation, but for those that `<pair>` forces.

    An articulation is a child of the world with all bodies below it; the links of a URDF are one.
    static: bool[nbody], see `static_bodies`. body_row: as in `MjcfImport`.
    """
    root = np.where(np.arange(mj_model.nbody) > 0, 1, 0) if urdf else np.array(mj_model.body_rootid)
    for tree in distinct(root[1:]):
        moving = (root == tree) & ~static
        if moving.sum() > 1:
            builder.add_articulation(body_row[moving].tolist(), self_collision=False)
        # The shapes of its fixed base are static, and belong to no body.
        base, others = (
            shapes.of(np.flatnonzero(bodies[mj_model.geom_bodyid] & (shapes.row != LEFT_OUT)))
            for bodies in ((root == tree) & static, moving)
        )
        for pair in product(base, others):
            builder.add_shape_collision_filter_pair(
                *pair, rule="self-collision of the articulation is off"
            )


def _ruled_groups(mj_model: mujoco.MjModel) -> Iterator[tuple[np.ndarray, np.ndarray, str]]:
    """Two groups of geoms that do not collide, and the rule: excludes, welds, parents, bodies
    without freedom."""
    name = [body_name(mj_model, body) for body in range(mj_model.nbody)]
    of_body = _groups(mj_model.geom_bodyid, mj_model.nbody)
    for row, signature in enumerate(mj_model.exclude_signature):
        a = int(signature) >> 16
        b = int(signature) & 0xFFFF
        title = mj_model.exclude(row).name
        yield (
            of_body[a],
            of_body[b],
            f"<exclude{f' {title}' if title else ''}> of '{name[a]}' and '{name[b]}'",
        )

    weld_of_geom = mj_model.body_weldid[mj_model.geom_bodyid]
    of_weld = _groups(weld_of_geom, mj_model.nbody)
    filter_parent = not mj_model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT
    for weld in _values(weld_of_geom[weld_of_geom > 0]):
        members = of_weld[weld]
        bodies = _values(mj_model.geom_bodyid[members])
        for k, body in enumerate(bodies[:-1]):
            others = members[np.isin(mj_model.geom_bodyid[members], bodies[k + 1 :])]
            yield of_body[body], others, f"welded into one body, '{name[weld]}'"
        parent = int(mj_model.body_weldid[mj_model.body_parentid[weld]])
        if filter_parent and parent > 0:
            yield (
                members,
                of_weld[parent],
                f"'{name[weld]}' is the child of '{name[parent]}' (filterparent)",
            )

    # Mocap bodies and bodies welded to them have no degree of freedom, nor has the static world.
    still = _values(weld_of_geom[mj_model.body_treeid[mj_model.geom_bodyid] < 0])
    for k, weld in enumerate(still):
        others = [of_weld[other] for other in still[k + 1 :]]
        if others:
            yield of_weld[weld], np.concatenate(others), "neither body has a degree of freedom"


def _values(key: np.ndarray) -> list[int]:
    """The values in `key`, ascending, each once. NumPy's `unique` would import masked arrays."""
    return sorted(set(key.tolist()))


def _groups(key: np.ndarray, count: int) -> list[np.ndarray]:
    order = np.argsort(key, kind="stable")
    return np.split(order, np.searchsorted(key[order], np.arange(1, count)))


def _mask_compatible(
    mj_model: mujoco.MjModel, shapes: GeomShapes, first: np.ndarray, second: np.ndarray
) -> Iterator[tuple[int, int]]:
    """Pairs of shape rows, lower first, across two groups of geoms whose masks permit a contact."""
    second = second[shapes.row[second] >= 0]
    for geom in first[shapes.row[first] >= 0]:
        permitted = mj_model.geom_contype[geom] & mj_model.geom_conaffinity[second]
        permitted |= mj_model.geom_contype[second] & mj_model.geom_conaffinity[geom]
        others = shapes.of(second[permitted != 0])
        for a, b in product(shapes.of([geom]), others):
            if a != b:
                yield (a, b) if a < b else (b, a)


def _force_pairs(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    shapes: GeomShapes,
    disabled: Container[tuple[int, int]],
    meaning: str,
) -> list[str]:
    """Forces the shapes of every <pair>; of several for two geoms, the one with the largest margin
    + gap.

    meaning: of margins, see `margin_and_gap`.
    """
    if mj_model.npair and mj_model.nbody < 2:
        return ["every <pair> is ignored: without a body MuJoCo finds no contact"]
    extent: dict[tuple[int, int], tuple[float, float, int]] = {}
    warnings = []
    for row in range(mj_model.npair):
        geoms = int(mj_model.pair_geom1[row]), int(mj_model.pair_geom2[row])
        shown = " and ".join(f"'{mj_model.geom(g).name}'" for g in geoms)
        if all(mj_model.geom_type[g] == _PLANE for g in geoms):
            warnings.append(f"<pair> of {shown} is ignored: two planes make no contact")
            continue
        margin, gap = margin_and_gap(*pair_lengths(mj_model, row), meaning)
        a, b = sorted(geoms, key=lambda geom: int(shapes.row[geom]))
        if (int(shapes.row[a]), int(shapes.row[b])) in disabled:
            continue
        if (a, b) in extent:
            warnings.append(
                f"<pair> of {shown} is given more than once; the one with the largest margin + gap"
                " is used"
            )
            if sum(extent[a, b][:2]) >= margin + gap:
                continue
        extent[a, b] = margin, gap, row
    for (a, b), (margin, gap, row) in extent.items():
        for pair in product(shapes.of([a]), shapes.of([b])):
            builder.add_shape_forced_pair(
                *pair, gap=gap, margin=margin, material=pair_material(mj_model, row)
            )
    return warnings
