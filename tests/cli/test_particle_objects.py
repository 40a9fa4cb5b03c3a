"""Names of cloths, soft bodies and sets of points in contact sets, tables and comparisons."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.scene.tables import SELF_CONTACTS
from collidecli.storage.contact_sets.check import check_file
from tests.support.contact_groups import block_with_groups, changed, differences_from
from tests.support.contact_sets import small_model, write_contact_set

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


@pytest.fixture
def differences(made, collide):
    return differences_from(made / "a.h5", MODEL, collide)


OBJECTS = [
    {"path": "/cloth", "kind": "cloth", "template": -1, "first_particle": 0, "particle_count": 6},
    {"path": "gel", "kind": "soft", "template": 0, "first_particle": 6, "particle_count": 3},
]


def owners(block, group, entry):
    """Path of the object of a particle of each row."""
    return ["gel" if p >= 6 else "/cloth" for p in block.groups[group].columns["indices"][:, entry]]


def test_particle_objects_are_named(made, collide, block):
    assert json.loads(collide("inspect", "a.h5", "--json").out)["particle_objects"] == OBJECTS
    shown = collide("inspect", "a.h5").out
    assert re.search(r"particle object +kind +particles\n.*\n +/cloth +cloth +6\n +gel +soft +3\n", shown), shown
    lines = collide("textconv", "a.h5", "--summary").out.splitlines()
    at = lines.index("particle objects")
    assert lines[at + 1 : at + 3] == ["  /cloth  cloth  6 particles", "  gel  soft  3 particles"]
    soft = block.groups["soft_contacts"].columns
    of_ball = [
        owner for owner, shape in zip(owners(block, "soft_contacts", 0), soft["shape"], strict=True) if shape == 1
    ]
    assert 0 < of_ball.count("gel") < len(of_ball)
    for owner in ("/cloth", "gel"):
        pair = " | ".join(sorted((owner, "ball")))
        assert any(line.startswith(f"  {pair}  {of_ball.count(owner)} rows in ") for line in lines)
    rows = block.groups["self_contacts"].row_count
    assert any(line.startswith(f"  /cloth | gel  {rows} rows in ") for line in lines)


def test_particle_objects_in_tables(made, collide, block):
    pytest.importorskip("pandas")
    with collidecli.ContactSet.open("a.h5") as contacts:
        frame = contacts.to_pandas(group="soft_contacts")
        assert frame["object"].tolist() == owners(block, "soft_contacts", 0)
        assert str(frame["object"].dtype) == "category"
        frame = contacts.to_pandas(group="self_contacts")
        assert frame["object0"].tolist() == owners(block, "self_contacts", 0)
        assert set(frame["object1"]) == {"gel"}
        assert "object" not in contacts.to_pandas(group="hydro_patches")
    for name in ("soft_contacts", "hydro_faces"):
        assert collide("export", "a.h5", "--to", "npz", "--group", name, "-o", f"{name}.npz").code == 0
    arrays = np.load(made / "soft_contacts.npz")
    for name in ("path", "kind", "template", "first_particle", "particle_count"):
        assert arrays[f"particle_object_{name}"].tolist() == [one[name] for one in OBJECTS]
    assert "particle_object_path" not in np.load(made / "hydro_faces.npz")
    assert collide("export", "a.h5", "--to", "parquet", "--group", "soft_contacts", "-o", "s.parquet").code == 0
    table = pytest.importorskip("pyarrow.parquet").read_table(made / "s.parquet")
    assert table["object"].to_pylist() == owners(block, "soft_contacts", 0)
    assert collide("export", "a.h5", "--to", "csv", "--group", "self_contacts", "-o", "s.csv").code == 0
    with open(made / "s.csv", newline="") as file:
        assert [row["object0"] for row in csv.DictReader(file)] == owners(block, "self_contacts", 0)


def with_other_objects(block, order, names=("/cloth", "gel")):
    """The block and the model with objects in another order, and names; rows are sorted anew."""
    held = MODEL.particles
    counts = np.diff(held.first)[list(order)]
    first = np.concatenate([[0], np.cumsum(counts)])
    moved = np.concatenate([first[list(order).index(k)] + np.arange(np.diff(held.first)[k]) for k in range(2)])
    particles = replace(
        held, path=tuple(names[k] for k in order), kind=tuple(held.kind[k] for k in order),
        template=held.template[list(order)], first=first,
    )  # fmt: skip
    groups = dict(block.groups)
    for name in ("soft_contacts", "self_contacts"):
        rows = groups[name]
        indices = np.append(moved, -1)[rows.columns["indices"]].astype(np.int32)
        cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
        columns = {**rows.columns, "indices": indices}
        keys = [columns[key].reshape(len(cell), -1)[:, ::-1].T for key in ("feature", "shape") if key in columns]
        order_of = np.lexsort((*(k for key in keys for k in key), *indices[:, ::-1].T, columns["kind"], cell))
        groups[name] = replace(rows, columns={key: values[order_of] for key, values in columns.items()})
    return replace(block, groups=groups), replace(MODEL, particles=particles)


def test_objects_in_another_order_are_matched_by_path(differences, made, block):
    other, model = with_other_objects(block, (1, 0))
    assert differences(other, model=model)[0] == 0
    assert check_file(made / "b.h5") == []
    assert not np.array_equal(
        other.groups["soft_contacts"].columns["indices"], block.groups["soft_contacts"].columns["indices"]
    )


def test_the_object_of_a_difference_is_named(differences, collide, block):
    other = changed(block, "soft_contacts", "distance", 5, 0.25)
    _, _, groups = differences(other)
    path = owners(block, "soft_contacts", 0)[5]
    assert groups["soft_contacts"]["objects"] == [{"paths": [path], "missing": 0, "extra": 0, "changed": 1}]
    assert groups["self_contacts"]["objects"] == groups["hydro_patches"]["objects"] == []
    assert f"\n  {path}: 1 changed\n" in collide("diff", "a.h5", "b.h5").out


def test_another_object_is_a_difference_of_the_models(differences, collide, block):
    other, model = with_other_objects(block, (0, 1), ("/cloth", "jelly"))
    code, result, groups = differences(other, model=model)
    assert code == 1
    found = {(one["kind"], one["path"], one["a"] or one["b"]) for one in result["model"]["listed"]}
    assert found == {
        ("removed", "gel", "soft of 3, in its own worlds"),
        ("added", "jelly", "soft of 3, in its own worlds"),
    }
    soft = [one for one in groups["soft_contacts"]["objects"] if one["paths"] == ["jelly"]]
    extra = groups["soft_contacts"]["extra"]  # without those at the limit
    assert 0 < extra <= owners(block, "soft_contacts", 0).count("gel")
    assert soft == [{"paths": ["jelly"], "missing": 0, "extra": extra, "changed": 0}]
    assert differences(other, "--rename", "gel=jelly", model=model)[0] == 0
    more = replace(MODEL, particles=replace(MODEL.particles, first=np.array([0, 6, 10])))
    code, result, groups = differences(block, model=more)
    (one,) = result["model"]["listed"]
    assert (one["kind"], one["path"], one["what"]) == ("changed", "gel", "particles")
    assert (one["a"], one["b"]) == ("soft of 3, in its own worlds", "soft of 4, in its own worlds")
    assert groups["soft_contacts"]["matched"] == groups["soft_contacts"]["a"]


def test_pairs_of_objects_are_compared_alone(differences, block):
    _, _, groups = differences(block, "--pairs-only", "--full")
    rows = block.groups["soft_contacts"]
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    pairs = set(zip(cell, rows.columns["shape"], owners(block, "soft_contacts", 0), strict=True))
    assert groups["soft_contacts"]["a"] == len(pairs)


def test_objects_are_selected_by_path(made, collide, block):
    soft = owners(block, "soft_contacts", 0)
    sides = [owners(block, "self_contacts", entry) for entry in SELF_CONTACTS.objects.values()]
    both = list(zip(*sides, strict=True))
    assert {*soft} == {"gel", "/cloth"}
    for group, rows in (("soft_contacts", [(one,) for one in soft]), ("self_contacts", both)):
        wanted = {"include": sum("gel" in row for row in rows), "exclude": sum("gel" not in row for row in rows)}
        for option, count in wanted.items():
            words = "export", "a.h5", "--to", "csv", "--group", group, f"--{option}", "gel", "-o", f"{option}.csv"
            assert collide(*words, "--force").code == 0
            assert len(Path(f"{option}.csv").read_text().splitlines()) - 1 == count
            with collidecli.ContactSet.open(made / "a.h5") as contacts:
                assert len(contacts.to_pandas(group=group, **{option: "gel"})) == count
            answer = collide("report", "a.h5", f"--{option}", "gel", "--json", "--force")
            assert json.loads(answer.out)["groups"]["counts"][group]["rows"] == count
            answer = collide("diff", "a.h5", "a.h5", "--full", f"--{option}", "gel", "--json")
            (found,) = [one for one in json.loads(answer.out)["groups"] if one["name"] == group]
            assert found["matched"] == found["a"] == count
    refused = collide("export", "a.h5", "--to", "csv", "--include", "silk")
    assert (refused.code, "'silk' matches no shape or particle object of a.h5" in refused.err) == (2, True)
    refused = collide("diff", "a.h5", "a.h5", "--include", "silk")
    assert "'silk' matches no shape or particle object of either file" in refused.err


def test_another_object_that_is_not_selected_is_no_difference(differences, block):
    other, model = with_other_objects(block, (0, 1), ("/cloth", "jelly"))
    assert differences(other, "--exclude", "gel,jelly", model=model)[0] == 0


@pytest.mark.parametrize("particle", [9, -1, 2**31 - 1])
def test_a_particle_of_no_object_is_refused(made, collide, block, particle):
    rows = block.groups["soft_contacts"]
    rows.columns["indices"][2, 0] = particle
    write_contact_set(made / "b.h5", MODEL, block)
    for verb in (("textconv", "b.h5"), ("diff", "a.h5", "b.h5"),
                 ("export", "b.h5", "--to", "csv", "--group", "soft_contacts", "-o", "x.csv")):  # fmt: skip
        answer = collide(*verb)
        assert answer.code == 2
        assert "b.h5: /soft_contacts/indices, cells 0 to " in answer.err
        assert f"({particle}, " in answer.err
        assert "are not particles of the scene, which has 9" in answer.err
    assert not (made / "x.csv").exists()
