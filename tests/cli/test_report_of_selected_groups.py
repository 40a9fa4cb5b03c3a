"""Hydroelastic surfaces and contacts of particles of what a reader selects in a report: worlds, bodies, shapes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from collidecli.commands.report import ReportRequest, report
from collidecli.errors import InputError
from collidecli.report.report_page import report_page
from tests.support.contact_groups import block_with_groups, changed
from tests.support.contact_sets import small_model, write_contact_set

FRAMES, WORLDS = 160, 3
MODEL = small_model(WORLDS)
BIN = 2
NAMES = ("hydro_patches", "soft_contacts", "self_contacts")


@pytest.fixture(scope="module")
def block():
    return block_with_groups(MODEL, FRAMES)


def parts(path):
    return report(ReportRequest(str(path), subsets=True)).as_dict()["subsets"]["listed"]


def test_parts_have_their_rows_of_groups(block, tmp_path):
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    listed = parts(tmp_path / "a.h5")
    assert [one["kind"] for one in listed] == ["world"] * 3 + ["body"] * 4 + ["shape"]
    for one in listed:
        for name in NAMES:
            held = block.groups[name]
            columns = held.columns
            cell = np.repeat(np.arange(len(held.cell_counts)), held.cell_counts)
            shapes = [columns[key] for key in ("shape0", "shape1", "shape") if key in columns]
            mine = np.ones(len(cell), bool)
            if one["kind"] == "world":
                mine = cell % WORLDS == one["row"]
            elif not shapes:
                assert name not in one["groups"]
                continue
            else:
                row = one["row"] + 1 if one["kind"] == "body" else one["row"]  # body k has shape k + 1
                mine = np.any([shape == row for shape in shapes], axis=0)
            found = one["groups"][name]
            frame = cell[mine] // WORLDS // BIN
            assert found["rows"] == mine.sum() > 0
            np.testing.assert_allclose(found["per_frame"], np.bincount(frame, minlength=FRAMES // BIN) / BIN)
            if name == "hydro_patches":
                size = np.linalg.norm(columns["force"][mine], axis=1)
                np.testing.assert_allclose(found["force"], np.bincount(frame, size, FRAMES // BIN) / BIN)
            else:
                assert "force" not in found


def test_the_page_shows_them(block, tmp_path, collide):
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    text = report_page(report(ReportRequest(str(tmp_path / "a.h5"), subsets=True)).as_dict())
    for words, number in (
        ("Soft contacts in a frame, mean of 2 frames", 8),
        ("Self contacts in a frame, mean of 2 frames", 3),
        ("Hydro patches in a frame, mean of 2 frames", 8),
        ("Sum of nominal forces in a frame, mean of 2 frames", 8),
    ):
        assert text.count(words) == 2 * number, words  # title and name of a chart


def test_a_selection_of_worlds_selects_rows_of_groups(block, tmp_path):
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    result = report(ReportRequest(str(tmp_path / "a.h5"), worlds=(1,), subsets=True)).as_dict()
    held = block.groups["soft_contacts"].cell_counts
    assert result["groups"]["counts"]["soft_contacts"]["rows"] == held[1::WORLDS].sum()
    bodies = [one["groups"]["soft_contacts"]["rows"] for one in result["subsets"]["listed"]]
    assert len(bodies) == 5
    assert sum(bodies) == held[1::WORLDS].sum()


def test_a_world_with_contacts_of_particles_alone_can_be_selected(block, tmp_path):
    none = replace(block, cell_counts=np.zeros_like(block.cell_counts))
    none = replace(none, columns={name: values[:0] for name, values in block.columns.items()})
    none = replace(none, groups={name: block.groups[name] for name in ("soft_contacts", "self_contacts")})
    write_contact_set(tmp_path / "a.h5", MODEL, none)
    listed = parts(tmp_path / "a.h5")
    assert [one["kind"] for one in listed] == ["world"] * 3 + ["body"] * 4 + ["shape"]
    assert all(one["contacts"] == 0 and one["groups"]["soft_contacts"]["rows"] > 0 for one in listed)
    text = report_page(report(ReportRequest(str(tmp_path / "a.h5"), subsets=True)).as_dict())
    assert text.count("Soft contacts in a frame, mean of 2 frames") == 2 * 8


def test_a_force_that_is_not_finite_is_refused(block, tmp_path):
    write_contact_set(tmp_path / "a.h5", MODEL, changed(block, "hydro_patches", "force", 3, np.nan))
    with pytest.raises(InputError, match="/hydro_patches/force: is not finite"):
        parts(tmp_path / "a.h5")
