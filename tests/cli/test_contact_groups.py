"""Groups of contacts beside /rigid_contacts through the verbs: hydroelastic surfaces, contacts of particles."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.support.contact_groups import block_with_groups
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

FRAMES = 6
MODEL = small_model()


@pytest.fixture
def block():
    return block_with_groups(MODEL, FRAMES)


@pytest.fixture
def made(tmp_path, monkeypatch, block):
    """a.h5 with all groups, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    return tmp_path


def test_check_and_inspect(made, collide, block):
    assert collide("check", "a.h5").code == 0
    result = json.loads(collide("inspect", "a.h5", "--json").out)
    assert list(result["groups"]) == ["hydro_patches", "hydro_faces", "soft_contacts", "self_contacts"]
    patches, held = block.groups["hydro_patches"], result["groups"]["hydro_patches"]
    assert held["rows"] == patches.row_count
    assert held["cells"] == np.count_nonzero(patches.cell_counts)
    area, force = patches.columns["area"], patches.columns["force"]
    assert held["columns"]["area"] == {"least": [area.min()], "most": [area.max()]}
    assert held["columns"]["force"]["most"] == force.max(axis=0).tolist()
    shown = collide("inspect", "a.h5").out
    assert f"hydro patches  {patches.row_count} rows in {held['cells']} cells" in shown
    assert "column of soft contacts" in shown


def test_lines_of_text_change_where_a_group_does(made, collide, block):
    one = collide("textconv", "a.h5").out.splitlines()
    rows = block.groups["soft_contacts"]
    row = int(np.flatnonzero(rows.cell_counts)[0])
    distance = rows.columns["distance"].copy()
    distance[0] += 0.5
    other = replace(rows, columns={**rows.columns, "distance": distance})
    write_contact_set(made / "b.h5", MODEL, replace(block, groups={**block.groups, "soft_contacts": other}))
    two = collide("textconv", "b.h5").out.splitlines()
    changed = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    assert len(changed) == 2  # the content hash, and the row of a shape in a cell
    assert changed[0][0].startswith("content ")
    number = rows.columns["distance"][0]
    assert any(f"distance {number:.6f}" in a and f"distance {number + 0.5:.6f}" in b for a, b in changed)
    frame, world = divmod(row, MODEL.world_count)
    place = f"soft_contacts, frame {frame}, world {world}, t = {frame * 0.01:g} s"
    assert one.index(place) < one.index(changed[1][0])
    assert f"soft_contacts {rows.row_count}" in one
    assert "soft_contacts" in collide("textconv", "a.h5", "--summary").out.splitlines()


def test_an_exchange_of_shapes_by_path_turns_forces(made, collide, block):
    """A pair is listed by path; force and torque are those on the second one."""
    names = MODEL.shapes.path
    patches = block.groups["hydro_patches"].columns
    row = next(r for r in range(len(patches["shape0"])) if names[patches["shape0"][r]] > names[patches["shape1"][r]])
    lines = collide("textconv", "a.h5").out.splitlines()
    pair = f"  {names[patches['shape1'][row]]} | {names[patches['shape0'][row]]}  "
    force = " ".join(f"{-value:.6f}" for value in patches["force"][row])
    center = " ".join(f"{value:.6f}" for value in patches["center"][row])
    assert any(line.startswith(pair) and f"force {force}" in line and f"center {center}" in line for line in lines)


def test_sets_of_other_groups_are_not_merged(made, collide):
    write_contact_set(made / "b.h5", MODEL, made_up_block(MODEL, FRAMES))
    answer = collide("merge", "a.h5", "b.h5", "--worlds", "-o", "ab.h5")
    assert answer.code == 2
    assert "groups: /hydro_faces, /hydro_patches, /self_contacts, /soft_contacts" in answer.err
    assert not (made / "ab.h5").exists()
