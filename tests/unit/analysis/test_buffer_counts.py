"""Counts of contacts by the rules of engines, and the settings that follow."""

from dataclasses import replace

import numpy as np
import pytest

from collidecli.analysis.buffer_counts import CONTACTS, OTHER_PAIRS, PAIRS, BufferCounts
from collidecli.analysis.buffer_settings import (
    ConstraintRows,
    SceneFacts,
    advised_size,
    settings_of,
)
from collidecli.analysis.engine_contact_rules import RULES, TYPES
from collidecli.scene.contact_blocks import ContactBlock

WARP = {"naconmax", "nconmax", "njmax"}
PHYSX = "gpu_max_rigid_contact_count"
LABELS = ("plane", "sphere", "box", "mesh", "capsule")


def block_of(rows, cells, first=0):
    """rows: (cell, shape0, shape1) of each contact, sorted."""
    cell, shape0, shape1 = np.array(rows).reshape(-1, 3).T
    counts = np.bincount(cell, minlength=cells).astype(np.int64)
    columns = {"shape0": shape0.astype(np.int32), "shape1": shape1.astype(np.int32)}
    return ContactBlock(first, counts, columns)


def counts_of(blocks, worlds, labels=LABELS):
    counts = BufferCounts([f"s{k}" for k in range(len(labels))], labels, worlds)
    for block in blocks:
        counts.add(block)
    return counts


@pytest.mark.parametrize("seed", range(5))
def test_counts_follow_from_the_rows(seed):
    rng = np.random.default_rng(seed)
    worlds, frames = 3, 4
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    rows = sorted(
        (cell, *pairs[k])
        for cell in range(worlds * frames)
        for k in rng.choice(len(pairs), rng.integers(0, 5), replace=False)
        for _ in range(rng.integers(1, 4))
    )
    split = int(rng.integers(1, worlds * frames))
    parts = [[r for r in rows if r[0] < split], [r for r in rows if r[0] >= split]]
    counts = counts_of(
        [
            block_of(parts[0], split),
            block_of([(c - split, a, b) for c, a, b in parts[1]], worlds * frames - split, split),
        ],
        worlds,
    )
    cell_pairs = {(c, a, b) for c, a, b in rows}
    for name, value in ((CONTACTS, rows), (PAIRS, cell_pairs)):
        table = np.zeros((frames, worlds), int)
        for c, _, _ in value:
            table[divmod(c, worlds)] += 1
        assert counts.peaks[name].of_all_worlds.count == table.sum(axis=1).max()
        assert counts.peaks[name].of_a_world.count == table.max()
    for rule in RULES:
        table = np.zeros((frames, worlds), int)
        for c, a, b in cell_pairs:
            table[divmod(c, worlds)] += rule.most(*sorted((LABELS[a], LABELS[b]), key=TYPES.index))
        assert counts.peaks[rule.engine].of_all_worlds.count == table.sum(axis=1).max()
    most = max(rows.count(row) for row in rows)
    assert counts.most_of_a_pair.contacts == most


def test_rules_do_not_depend_on_the_order_of_a_pair():
    for rule in RULES:
        table = rule.table()
        assert np.array_equal(table, table.T)
        assert table.min() >= 1


def by_name(counts, facts, margin=1.1):
    return {setting.name: setting for setting in settings_of(counts, facts, margin)}


def test_rows_of_constraints_are_of_the_fullest_world():
    counts = counts_of([block_of([(0, 0, 1), (1, 0, 1), (1, 1, 2)], 2)], 2)
    njmax = by_name(counts, SceneFacts(rows=ConstraintRows(4, 5)))["njmax"]
    assert (njmax.ours, njmax.bound, njmax.advised) == (13, 13, 15)


def test_settings_without_poses_have_a_reason_and_no_advice():
    counts = counts_of([block_of([(0, 0, 1)], 1)], 1)
    for setting in settings_of(counts, SceneFacts(heightfields=True)):
        assert (setting.advised is None) == bool(setting.reason), setting
    named = by_name(counts, SceneFacts(heightfields=True))
    left_out = {name for name, setting in named.items() if setting.reason}
    assert {"naconmax", "nconmax", "njmax", "shape_pairs_max", "max_triangle_pairs"} < left_out
    assert named["rigid_contact_max"].advised == 2


@pytest.mark.parametrize(("bound", "advised"), [(0, 0), (1, 2), (10, 11), (100, 110), (7, 8)])
def test_margin_is_rounded_up(bound, advised):
    assert advised_size(bound, 1.1) == advised


def test_engines_of_hulls_have_no_advice_for_triangle_meshes():
    counts = counts_of([block_of([(0, 0, 1)], 1)], 1)
    named = by_name(counts, SceneFacts(meshes=2, rows=ConstraintRows(4, 0)))
    for name in ("njmax", "max_collision_pairs"):
        assert named[name].advised is None
        assert named[name].reason
    assert "--meshes '*=parts' parts" in named["njmax"].reason
    assert named["rigid_contact_max"].advised == 2


def test_two_meshes_have_no_bound_in_physx_once_they_touch():
    """Meshes of two templates, as 1 and 3 of worlds 0 and 1, are in no pair of two meshes."""
    labels = ("sphere", "mesh", "sphere", "mesh", "heightfield")
    name = "gpu_max_rigid_contact_count"
    facts = SceneFacts(meshes=2, heightfields=True)
    apart = counts_of([block_of([(0, 0, 1), (1, 2, 3)], 2)], 2, labels)
    found = by_name(apart, facts)[name]
    assert (found.ours, found.bound, found.advised, found.reason) == (2, 72, 80, "")
    rows = [[(0, 0, 1)], [(2, 0, 1), (3, 1, 3)], [(5, 3, 4)]]
    blocks = [
        block_of([(cell - 2 * k, *pair) for cell, *pair in part], 2, 2 * k)
        for k, part in enumerate(rows)
    ]
    found = by_name(counts_of(blocks, 2, labels), facts)[name]
    assert (found.bound, found.advised) == (None, None)
    assert "s1 and s3 have contacts, first in frame 1" in found.reason


def test_physx_collides_the_hull_of_a_mesh_that_moves():
    counts = counts_of([block_of([(0, 0, 3)], 1)], 1)
    facts = SceneFacts(meshes=2, moving_meshes=("bowl", "cup"))
    found = by_name(counts, facts)["gpu_max_rigid_contact_count"]
    assert found.advised is None
    assert "convex hull of a mesh that moves, as bowl and 1 more" in found.reason
    assert "--meshes '*=hull' counts hulls" in found.reason


@pytest.mark.parametrize(
    ("group", "names", "told"),
    [
        ("soft_contacts", WARP, "its contacts of flexes share the size"),
        ("self_contacts", WARP, "its contacts of flexes share the size"),
        ("hydro_patches", {*WARP, "max_collision_pairs", PHYSX}, "--hydro off counts contacts"),
        ("hydro_patches", {"rigid_contact_max"}, "hydroelastic surfaces share the size"),
        ("sweep", set(), ""),
    ],
)
def test_sizes_that_contacts_of_other_tables_share_are_withheld(group, names, told):
    counts = counts_of([block_of([(0, 1, 2)], 1)], 1)
    peaks = dict.fromkeys(OTHER_PAIRS, counts.peaks[CONTACTS])
    facts = SceneFacts(broad_phases=peaks, rows=ConstraintRows(4, 0))
    without = by_name(counts, facts)
    found = by_name(counts, replace(facts, groups=(group,)))
    withheld = {
        name for name in found if found[name].advised is None and without[name].advised is not None
    }
    assert names <= withheld
    assert bool(withheld) == bool(told)
    assert all(told in found[name].reason for name in names)
    assert found["shape_pairs_max"].advised == without["shape_pairs_max"].advised == 2
