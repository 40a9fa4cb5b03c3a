"""Pairs of particle objects in a report: against sums over the rows of the contact set, one by
one."""

from collections import defaultdict

import numpy as np
import pytest

from collidecli.verbs.report.charts.kinds import KINDS
from collidecli.verbs.report.pairs_over_time import MAX_PAIRS
from collidecli.verbs.report.report import ReportRequest, report
from tests.support.contact_sets import block_with_groups, small_model, write_contact_set

CLOTH_PARTICLES = 6
"""Of small_model: those of the first object; the others are of the second."""


def rows_of_pairs(block, model, worlds) -> dict[tuple[str, str], list[tuple[int, float]]]:
    """Cell and distance of each contact of a pair by its paths, of some worlds."""
    found = defaultdict(list)
    shapes = model.shapes.path
    groups = {"rigid_contacts": (block.cell_counts, block.columns)}
    for name in ("soft_contacts", "self_contacts"):
        groups[name] = (block.groups[name].cell_counts, block.groups[name].columns)
    for name, (counts, columns) in groups.items():
        cells = np.repeat(np.arange(len(counts)), counts).tolist()
        for row, cell in enumerate(cells):
            if cell % model.world_count not in worlds:
                continue
            particle = columns["indices"][row, 0] if "indices" in columns else 0
            owner = model.particles.path[int(particle >= CLOTH_PARTICLES)]
            if name == "rigid_contacts":
                pair = (shapes[columns["shape0"][row]], shapes[columns["shape1"][row]])
            elif name == "soft_contacts":
                pair = (shapes[columns["shape"][row]], owner)
            else:
                other = columns["indices"][row, -1]
                pair = (owner, model.particles.path[int(other >= CLOTH_PARTICLES)])
            found[pair].append((cell, float(columns["distance"][row])))
    return found


@pytest.mark.parametrize("worlds", [(), (0, 2)])
def test_the_listed_pairs_have_the_rows_of_the_set(tmp_path, worlds):
    model = small_model(3)
    block = block_with_groups(model, 7)
    path = tmp_path / "a.h5"
    write_contact_set(path, model, block)
    pairs = report(ReportRequest(str(path), worlds=worlds)).pairs
    wanted = rows_of_pairs(block, model, worlds or range(3))
    of_particles = [pair for pair in wanted if not set(pair) <= set(model.shapes.path)]
    assert len(of_particles) > 5
    assert pairs["of_particles"] == len(of_particles)
    assert pairs["count"] == len(wanted) - len(of_particles)
    listed = {(one["shape0"], one["shape1"]): one for one in pairs["listed"]}
    assert len(listed) == min(MAX_PAIRS, len(wanted))
    for pair, one in listed.items():
        rows = sorted(wanted[pair])
        frames = [cell // 3 for cell, _ in rows]
        assert one["contacts"] == len(rows)
        assert one["touches"] == len({cell for cell, _ in rows})
        assert (one["first_frame"], one["last_frame"]) == (min(frames), max(frames))
        assert one["distance"] == min(distance for _, distance in rows)
        assert one["contacts_per_frame"] == [frames.count(frame) for frame in range(7)]
        depth = [
            max(0.0, *(-d for c, d in rows if c // 3 == f)) if f in frames else -1.0
            for f in range(7)
        ]
        assert one["depth"] == depth


def test_particles_alone_have_a_map(tmp_path):
    model = small_model(1)
    block = block_with_groups(model, 4)
    for name, values in block.columns.items():
        block.columns[name] = values[:0]
    block.cell_counts[:] = 0
    for name in ("hydro_patches", "hydro_faces", "sweep", "soft_sweep", "self_sweep"):
        block.groups.pop(name, None)
    path = tmp_path / "a.h5"
    write_contact_set(path, model, block)
    result = report(ReportRequest(str(path))).as_dict()
    assert result["contacts"] == 0
    listed = len(result["pairs"]["listed"])
    for kind in ("pairs", "pair-depths"):
        assert KINDS[kind].missing(result) == ""
        words = f"When {listed} pairs touch, over 4 frames. {listed} of particles."
        assert KINDS[kind].words(result) == words
