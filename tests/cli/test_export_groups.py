"""Exports of the groups of contacts beside /rigid_contacts."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

from collidecli.scene.options import GROUP_NAMES
from collidecli.scene.tables import GROUPS
from tests.support.contact_groups import block_with_groups
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

FRAMES = 6
MODEL = small_model()


@pytest.fixture
def block():
    return block_with_groups(MODEL, FRAMES, groups=GROUPS)


@pytest.fixture
def made(tmp_path, monkeypatch, block):
    """a.h5 with all groups, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    return tmp_path


def csv_rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def test_a_group_as_csv(made, collide, block):
    answer = collide("export", "a.h5", "--to", "csv", "--group", "soft_contacts", "-o", "soft.csv", "--json")
    assert answer.code == 0, answer.err
    soft = block.groups["soft_contacts"]
    result, rows = json.loads(answer.out), csv_rows(made / "soft.csv")
    assert (result["group"], result["contacts"]) == ("soft_contacts", soft.row_count)
    assert result["left_out"] == []
    assert len(rows) == soft.row_count
    cell = np.repeat(np.arange(len(soft.cell_counts)), soft.cell_counts)
    bodies = ("", *MODEL.bodies.path)
    for k in (0, 7, len(rows) - 1):
        row, columns = rows[k], soft.columns
        assert (int(row["frame"]), int(row["world"])) == divmod(int(cell[k]), MODEL.world_count)
        assert row["shape"] == MODEL.shapes.path[columns["shape"][k]]
        assert row["body"] == bodies[MODEL.shapes.body[columns["shape"][k]] + 1]
        assert row["kind"] == ("vertex", "edge", "face")[columns["kind"][k]]
        assert [int(row[f"indices_{n}"]) for n in range(3)] == columns["indices"][k].tolist()
        assert float(row["point_world_y"]) == columns["point_world"][k, 1]
        assert np.float32(row["barycentric_2"]) == columns["barycentric"][k, 2]


def test_faces_have_the_shapes_of_their_patches(made, collide, block):
    answer = collide("export", "a.h5", "--to", "csv", "--group", "hydro_faces", "-o", "f.csv", "--json")
    assert answer.code == 0, answer.err
    assert any(one.startswith("vertices: ") for one in json.loads(answer.out)["left_out"])
    patches, faces = block.groups["hydro_patches"].columns, block.groups["hydro_faces"].columns
    rows = csv_rows(made / "f.csv")
    assert [int(row["patch"]) for row in rows] == faces["patch"].tolist()
    for side in ("shape0", "shape1"):
        assert [row[side] for row in rows] == [MODEL.shapes.path[s] for s in patches[side][faces["patch"]]]
    assert [float(row["pressure"]) for row in rows] == faces["pressure"].tolist()


def test_a_group_as_npz_has_its_lists(made, collide, block):
    faces = block.groups["hydro_faces"]
    lengths, values = faces.lists["vertices"]
    assert collide("export", "a.h5", "--to", "npz", "--group", "hydro_faces", "-o", "f.npz").code == 0
    arrays = np.load(made / "f.npz")
    assert np.array_equal(arrays["vertices"], values)
    assert np.array_equal(arrays["vertex_start"], np.concatenate([[0], np.cumsum(lengths)]))
    assert np.array_equal(arrays["patch"], faces.columns["patch"])
    assert np.array_equal(np.diff(arrays["cell_start"]), faces.cell_counts)
    frames = ("--frames", "2:5", "--world", "0,2", "--exclude", "egg")
    assert collide("export", "a.h5", "--to", "npz", "--group", "hydro_faces", "-o", "s.npz", *frames).code == 0
    part = np.load(made / "s.npz")
    cell = np.repeat(np.arange(len(faces.cell_counts)), faces.cell_counts)
    shapes = [block.groups["hydro_patches"].columns[name][faces.columns["patch"]] for name in ("shape0", "shape1")]
    inside = (cell % 3 != 1) & (cell // 3 >= 2) & (cell // 3 < 5) & (shapes[0] != 4) & (shapes[1] != 4)
    assert 0 < inside.sum() < len(inside)
    assert np.array_equal(part["patch"], faces.columns["patch"][inside])
    assert np.array_equal(np.diff(part["vertex_start"]), lengths[inside])
    assert np.array_equal(part["vertices"], values[np.repeat(inside, lengths)])


@pytest.mark.parametrize("name", GROUP_NAMES)
def test_npz_has_every_column(made, collide, block, name):
    assert collide("export", "a.h5", "--to", "npz", "--group", name, "-o", "g.npz").code == 0
    arrays, held = np.load(made / "g.npz"), block.groups[name]
    for column, values in held.columns.items():
        assert arrays[column].dtype == values.dtype
        assert np.array_equal(arrays[column], values), column


def test_a_group_as_parquet(made, collide, block):
    parquet = pytest.importorskip("pyarrow.parquet")
    args = ("--to", "parquet", "--group", "hydro_patches", "-o", "p.parquet")
    assert collide("export", "a.h5", *args).code == 0
    table = parquet.read_table(made / "p.parquet")
    patches = block.groups["hydro_patches"].columns
    assert table["force_z"].to_pylist() == patches["force"][:, 2].tolist()
    assert table.schema.field("force_z").metadata[b"unit"] == b"N"
    assert "shape0" in table.column_names


def test_soft_contacts_in_the_layout_of_newton(made, collide, block):
    answer = collide("export", "a.h5", "--to", "newton", "-o", "n.npz", "--json")
    assert answer.code == 0, answer.err
    soft, arrays = block.groups["soft_contacts"], np.load(made / "n.npz")
    single = soft.columns["kind"] == 0
    assert 0 < single.sum() < len(single)
    assert np.array_equal(arrays["soft_contact_particle"], soft.columns["indices"][single, 0])
    assert np.array_equal(arrays["soft_contact_shape"], soft.columns["shape"][single])
    assert np.array_equal(arrays["soft_contact_body_pos"], soft.columns["point_body"][single])
    assert np.array_equal(arrays["soft_contact_normal"], soft.columns["normal"][single])
    cell = np.repeat(np.arange(len(soft.cell_counts)), soft.cell_counts)[single]
    assert np.array_equal(arrays["soft_contact_count"], np.bincount(cell, minlength=18).reshape(6, 3))
    left_out = json.loads(answer.out)["left_out"]
    assert any(f"{int((~single).sum())} soft contacts of edges and faces" in one for one in left_out)
    assert any(one.startswith("hydro_patches: a table of its own") for one in left_out)
    assert not any(one.startswith("soft_contacts:") for one in left_out)


def test_a_group_that_a_set_or_a_format_lacks_is_refused(made, collide):
    write_contact_set(made / "b.h5", MODEL, made_up_block(MODEL, FRAMES))
    answer = collide("export", "b.h5", "--to", "csv", "--group", "soft_contacts", "-o", "x.csv")
    assert answer.code == 2
    assert "there is no group 'soft_contacts'" in answer.err
    answer = collide("export", "a.h5", "--to", "dart", "--group", "soft_contacts", "-o", "x.npz")
    assert answer.code == 2
    assert "use it with csv, parquet, npz" in answer.err
    assert not list(made.glob("x.*"))


def test_names_of_options_are_those_of_the_groups():
    assert tuple(group.name for group in GROUPS) == GROUP_NAMES


def test_surfaces_in_a_usd_layer(made, collide, block):
    from pxr import Usd, UsdGeom

    assert collide("export", "a.h5", "--to", "usd", "-o", "a.usda", "--frames", "1:4").code == 0
    stage = Usd.Stage.Open(str(made / "a.usda"))
    faces, patches = block.groups["hydro_faces"], block.groups["hydro_patches"]
    lengths, values = faces.lists["vertices"]
    start, first = (np.concatenate([[0], np.cumsum(counts)]) for counts in (faces.cell_counts, lengths))
    patch_start = np.concatenate([[0], np.cumsum(patches.cell_counts)])
    seen = 0
    for frame in range(1, 4):
        code = frame * 0.01 * stage.GetTimeCodesPerSecond()
        for world in range(3):
            cell = frame * 3 + world
            rows = slice(start[cell], start[cell + 1])
            mesh = UsdGeom.Mesh.Get(stage, f"/collide_contacts/world_{world}/hydro_faces")
            counts = np.array(mesh.GetFaceVertexCountsAttr().Get(code))
            assert counts.tolist() == lengths[rows].tolist()
            seen += len(counts)
            assert np.array(mesh.GetFaceVertexIndicesAttr().Get(code)).tolist() == list(range(counts.sum()))
            points = np.array(mesh.GetPointsAttr().Get(code)).reshape(-1, 3)
            assert np.array_equal(points, values[first[rows.start] : first[rows.stop]].astype(np.float32))
            primvars = UsdGeom.PrimvarsAPI(mesh.GetPrim())
            pressure = np.array(primvars.GetPrimvar("pressure").Get(code))
            assert np.array_equal(pressure, faces.columns["pressure"][rows].astype(np.float32))
            shape0 = patches.columns["shape0"][faces.columns["patch"][rows]]
            assert np.array_equal(np.array(primvars.GetPrimvar("shape0").Get(code)), shape0)
            centers = UsdGeom.Points.Get(stage, f"/collide_contacts/world_{world}/hydro_patches")
            force = np.array(UsdGeom.PrimvarsAPI(centers.GetPrim()).GetPrimvar("force").Get(code)).reshape(-1, 3)
            held = patches.columns["force"][patch_start[cell] : patch_start[cell + 1]]
            assert np.array_equal(force, held.astype(np.float32))
    assert seen > 3
    answer = collide("export", "a.h5", "--to", "usd", "-o", "b.usda", "--json")
    left_out = json.loads(answer.out)["left_out"]
    assert [one.split(":")[0] for one in left_out if "table of its own" in one] == list(GROUP_NAMES[2:])
