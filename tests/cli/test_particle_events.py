"""Touches of cloths, soft bodies and sets of points, and of single particles, against plain Python."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

import collidecli
from collidecli.commands.event_stream import EventOptions
from collidecli.commands.events import EventsRequest, events
from tests.support.contact_groups import block_with_groups
from tests.support.contact_sets import made_up_block, small_model, write_contact_set
from tests.support.touch_oracle import Touch, intervals, ordered

FRAMES = 6
MODEL = small_model()
TIME = [0.01 * frame for frame in range(FRAMES)]
ITEMS = (*MODEL.shapes.path, "/cloth", "gel", *(f"/cloth[{k}]" for k in range(6)), *(f"gel[{k}]" for k in range(3)))
SHAPES, OBJECTS = len(MODEL.shapes.path), 2


@pytest.fixture
def block():
    return block_with_groups(MODEL, FRAMES)


@pytest.fixture
def made(tmp_path, monkeypatch, block):
    """a.h5 with all groups, in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    return tmp_path


def rows_of(block, group):
    """(frame, world, row) of each row of a group, with its columns."""
    held = block.groups[group]
    for row, cell in enumerate(np.repeat(np.arange(len(held.cell_counts)), held.cell_counts).tolist()):
        yield (*divmod(cell, MODEL.world_count), {name: values[row].tolist() for name, values in held.columns.items()})


def owner(particle):
    return SHAPES + (particle >= 6)


def touches_of_objects(block, threshold=0.0):
    """Every touch by the definition: of shapes, surfaces, objects with shapes, and objects with each other."""
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    for row, at in enumerate(cell.tolist()):
        if block.columns["distance"][row] <= threshold:
            pair = (block.columns[name][row] for name in ("shape0", "shape1", "distance"))
            yield Touch(*divmod(at, MODEL.world_count), *pair)
    for frame, world, row in rows_of(block, "hydro_patches"):
        if np.float32(row["depth"]) <= threshold:
            yield Touch(frame, world, row["shape0"], row["shape1"], row["depth"])
    for frame, world, row in rows_of(block, "soft_contacts"):
        if np.float32(row["distance"]) <= threshold:
            yield Touch(frame, world, row["shape"], owner(row["indices"][0]), row["distance"])
    for frame, world, row in rows_of(block, "self_contacts"):
        yield Touch(frame, world, owner(row["indices"][0]), owner(row["indices"][3]), row["distance"])


def touches_of_particles(block):
    first = SHAPES + OBJECTS
    for frame, world, row in rows_of(block, "soft_contacts"):
        for particle in row["indices"]:
            if row["distance"] <= 0.0 and particle >= 0:
                yield Touch(frame, world, row["shape"], first + particle, row["distance"])
    for frame, world, row in rows_of(block, "self_contacts"):
        split = 1 if row["kind"] == 0 else 2
        elements = row["indices"][:split], row["indices"][split:]
        for mine, other in (elements, elements[::-1]):
            for particle in mine:
                yield Touch(frame, world, owner(other[0]), first + particle, row["distance"])


def expected(touches, name=ITEMS.__getitem__):
    return intervals(
        touches, range(FRAMES), TIME, lambda last, following: following == last + 1, name, threshold=math.inf
    )


def listed(collide, *options):
    answer = collide("events", "a.h5", "--json", "--first", "100000", *options)
    assert answer.code == 0, answer.err
    return json.loads(answer.out)


def rounded(found):
    for row in found:
        for name in ("begin_time", "end_time", "seconds", "deepest_time"):
            row[name] = None if row[name] is None else round(row[name], 9)
    return found


def test_objects_are_in_pairs_as_shapes_are(made, collide, block):
    result = listed(collide)
    wanted = expected(touches_of_objects(block))
    assert rounded(ordered(result["listed"])) == rounded(wanted)
    pairs = {tuple(one["pair"]) for one in wanted}
    assert ("/cloth", "gel") in pairs
    assert {("/cloth", "ball"), ("ball", "gel"), ("ball", "ground")} <= pairs
    for one in result["listed"]:  # an object is after a shape
        assert (one["shape0"] in MODEL.shapes.path) or one["shape1"] not in MODEL.shapes.path
    assert result["contacts"]["touching"] == len(list(touches_of_objects(block)))


def test_objects_are_kept_apart_by_bodies(made, collide, block):
    result = listed(collide, "--by", "bodies", "--graph")
    names = ("ground", "body0", "body1", "body2", "body3", "/cloth", "gel")
    assert rounded(ordered(result["listed"])) == rounded(expected(touches_of_objects(block), names.__getitem__))
    kinds = {node["path"]: node["kind"] for node in result["graph"]["nodes"]}
    assert (kinds["/cloth"], kinds["gel"], kinds["ground"], kinds["body0"]) == ("cloth", "soft", "shape", "body")


def test_single_particles(made, collide, block):
    result = listed(collide, "--by", "particles", "--graph")
    found = [dict(row) for row in result["listed"]]
    for row in found:
        row["pair"] = tuple(sorted((row.pop("shape"), row.pop("particle"))))
    assert rounded(ordered(found)) == rounded(expected(touches_of_particles(block)))
    assert any(one["pair"][0] == "/cloth[0]" for one in found)
    kinds = {node["path"]: node["kind"] for node in result["graph"]["nodes"]}
    assert (kinds["gel[2]"], kinds["/cloth"], kinds["ball"]) == ("particle", "cloth", "shape")
    shown = collide("events", "a.h5", "--by", "particles").out
    assert " shape " in shown
    assert " particle " in shown
    assert "pairs of particles" in shown


@pytest.mark.parametrize("by", ["shapes", "particles"])
@pytest.mark.parametrize("block_rows", [1, 5, 40])
def test_blocks_change_nothing(made, by, block_rows):
    results = [
        events(EventsRequest("a.h5", EventOptions(by=by, block_rows=rows), first=10**9, graph=True)).as_dict()
        for rows in (block_rows, 10**6)
    ]
    assert results[0] == results[1]


def test_selections_name_objects(made, collide, block):
    def pairs(*options):
        names = ("shape", "particle") if "particles" in options else ("shape0", "shape1")
        return {tuple(one[name] for name in names) for one in listed(collide, *options)["listed"]}

    every = pairs()
    assert pairs("--include", "gel") == {pair for pair in every if "gel" in pair}
    assert pairs("--exclude", "/cl*") == {pair for pair in every if "/cloth" not in pair}
    assert pairs("--between", "gel,ball") == {("ball", "gel")}
    assert pairs("--between", "gel,/cloth") == {("/cloth", "gel")}
    assert pairs("--body", "body3") == {pair for pair in every if "egg" in pair}
    assert pairs("--exclude-body", "body*") == {pair for pair in every if not {*MODEL.shapes.path[1:]} & {*pair}}
    particles = pairs("--by", "particles")
    assert pairs("--by", "particles", "--include", "gel", "--exclude", "/cloth") == {
        pair for pair in particles if pair[1].startswith("gel[") and pair[0] != "/cloth"
    }
    assert pairs("--by", "particles", "--between", "gel,ball") == {
        pair for pair in particles if pair[1].startswith("gel[") and pair[0] == "ball"
    }
    answer = collide("events", "a.h5", "--include", "jelly")
    assert answer.code == 2
    assert "'jelly' matches no shape or particle object of a.h5" in answer.err


def test_tables_have_the_objects_and_the_file(made, collide, block):
    assert collide("events", "a.h5", "--csv", "a.csv", "--by", "particles").code == 0
    with open(made / "a.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["file"] for row in rows} == {"a.h5"}
    assert len(rows) == len(expected(touches_of_particles(block)))
    assert any((row["shape"], row["particle"]) == ("gel", "/cloth[0]") for row in rows)
    parquet = pytest.importorskip("pyarrow.parquet")
    assert collide("events", "a.h5", "--parquet", "a.parquet").code == 0
    write_contact_set(made / "b.h5", MODEL, block)
    assert collide("events", "a.h5", "b.h5", "--parquet", "ab.parquet").code == 0
    one, both = (parquet.read_table(made / name) for name in ("a.parquet", "ab.parquet"))
    assert one.column_names == both.column_names
    assert one.to_pylist() == [row for row in both.to_pylist() if row["file"] == "a.h5"]
    assert "gel" in one["shape1"].to_pylist()


def test_the_limit_of_a_threshold_is_that_of_particles_too(made, collide, block):
    assert (
        "contacts of particle objects with each other touch at any"
        in collide("events", "a.h5", "--threshold", "0.001").err
    )
    answer = collide("events", "a.h5", "--by", "particles", "--threshold", "0.02")
    assert answer.code == 2
    assert "no contacts beyond 0.01 m" in answer.err
    assert listed(collide, "--by", "particles", "--threshold", "any")["contacts"] == {"asked_for": 0, "touching": 0} | {
        name: sum(sum(p >= 0 for p in row["indices"]) for group in ("soft_contacts", "self_contacts")
                  for _, _, row in rows_of(block, group))
        for name in ("asked_for", "touching")
    }  # fmt: skip


def test_particles_in_python(made, block):
    with collidecli.ContactSet.open("a.h5") as contacts:
        table = contacts.events(by="particles", between="gel,ball")
        assert list(table)[1:3] == ["shape", "particle"]
        assert {*table["shape"]} == {"ball"}


def test_a_set_without_particles_has_no_pairs_of_them(made, collide):
    write_contact_set(made / "a.h5", MODEL, made_up_block(MODEL, FRAMES), force=True)
    result = listed(collide, "--by", "particles", "--graph")
    assert (result["listed"], result["graph"]["edges"]) == ([], [])
