"""Particles and hydroelastic surfaces on the command line: tables, comparisons and touches, against
plain Python."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.analysis.pair_selection import EventOptions
from collidecli.scene.contact_columns import SELF_CONTACTS
from collidecli.storage.contact_sets.check import check_file
from collidecli.verbs.events.events import EventsRequest, events
from tests.cli.conftest import GROUP_FRAMES, MODEL, arrays, attributes, refusals, sha
from tests.support.contact_sets import (
    Touch,
    changed,
    intervals,
    made_up_block,
    ordered,
    write_contact_set,
)
from tests.support.usd_scenes import BOTH, COLLIDER, write_usda

OBJECTS = [
    {"path": "/cloth", "kind": "cloth", "template": -1, "first_particle": 0, "particle_count": 6},
    {"path": "gel", "kind": "soft", "template": 0, "first_particle": 6, "particle_count": 3},
]


def owners(block, group, entry):
    """Path of the object of a particle of each row."""
    return ["gel" if p >= 6 else "/cloth" for p in block.groups[group].columns["indices"][:, entry]]


def test_particle_objects_are_named(made, collide, block):
    assert collide.result("inspect a.h5")["particle_objects"] == OBJECTS
    shown = collide("inspect a.h5").out
    assert re.search(
        r"particle object +kind +particles\n.*\n +/cloth +cloth +6\n +gel +soft +3\n", shown
    ), shown
    lines = collide("textconv a.h5 --summary").out.splitlines()
    at = lines.index("particle objects")
    assert lines[at + 1 : at + 3] == ["  /cloth  cloth  6 particles", "  gel  soft  3 particles"]
    soft = block.groups["soft_contacts"].columns
    of_ball = [
        owner
        for owner, shape in zip(owners(block, "soft_contacts", 0), soft["shape"], strict=True)
        if shape == 1
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
        collide.ok("export a.h5 --to npz --group", name, "-o", f"{name}.npz")
    arrays = np.load(made / "soft_contacts.npz")
    for name in ("path", "kind", "template", "first_particle", "particle_count"):
        assert arrays[f"particle_object_{name}"].tolist() == [one[name] for one in OBJECTS]
    assert "particle_object_path" not in np.load(made / "hydro_faces.npz")
    collide.ok("export a.h5 --to parquet --group soft_contacts -o s.parquet")
    table = pytest.importorskip("pyarrow.parquet").read_table(made / "s.parquet")
    assert table["object"].to_pylist() == owners(block, "soft_contacts", 0)
    collide.ok("export a.h5 --to csv --group self_contacts -o s.csv")
    assert pandas.read_csv("s.csv")["object0"].tolist() == owners(block, "self_contacts", 0)


def with_other_objects(block, order, names=("/cloth", "gel")):
    """The block and the model with objects in another order, and names; rows are sorted anew."""
    held = MODEL.particles
    counts = np.diff(held.first)[list(order)]
    first = np.concatenate([[0], np.cumsum(counts)])
    moved = np.concatenate(
        [first[list(order).index(k)] + np.arange(np.diff(held.first)[k]) for k in range(2)]
    )
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
        keys = [
            columns[key].reshape(len(cell), -1)[:, ::-1].T
            for key in ("feature", "shape")
            if key in columns
        ]
        order_of = np.lexsort(
            (*(k for key in keys for k in key), *indices[:, ::-1].T, columns["kind"], cell)
        )
        groups[name] = replace(
            rows, columns={key: values[order_of] for key, values in columns.items()}
        )
    return replace(block, groups=groups), replace(MODEL, particles=particles)


def test_objects_in_another_order_are_matched_by_path(differences, made, block):
    other, model = with_other_objects(block, (1, 0))
    assert differences(other, model=model)[0] == 0
    assert check_file(made / "b.h5") == []
    assert not np.array_equal(
        other.groups["soft_contacts"].columns["indices"],
        block.groups["soft_contacts"].columns["indices"],
    )
    _, _, groups = differences(block, "--pairs-only")
    rows = block.groups["soft_contacts"]
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    pairs = set(zip(cell, rows.columns["shape"], owners(block, "soft_contacts", 0), strict=True))
    assert groups["soft_contacts"]["a"] == len(pairs)


def test_the_object_of_a_difference_is_named(differences, collide, block):
    other = changed(block, "soft_contacts", "distance", 5, 0.25)
    _, _, groups = differences(other)
    path = owners(block, "soft_contacts", 0)[5]
    assert groups["soft_contacts"]["objects"] == [
        {"paths": [path], "missing": 0, "extra": 0, "changed": 1}
    ]
    assert groups["self_contacts"]["objects"] == groups["hydro_patches"]["objects"] == []
    assert f"\n  {path}: 1 changed\n" in collide("diff a.h5 b.h5").out


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
    other, model = with_other_objects(block, (0, 1), ("/cloth", "jelly"))
    assert differences(other, "--exclude", "gel,jelly", model=model)[0] == 0


@pytest.mark.usefixtures("no_charts")
@pytest.mark.parametrize("option", ["include", "exclude"])
def test_objects_are_selected_by_path(made, collide, block, option):
    soft = owners(block, "soft_contacts", 0)
    sides = [owners(block, "self_contacts", entry) for entry in SELF_CONTACTS.objects.values()]
    assert {*soft} == {"gel", "/cloth"}
    gel = f"--{option}", "gel"
    reported = collide.result("report a.h5", *gel)["groups"]["counts"]
    compared = {one["name"]: one for one in collide.result("diff a.h5 a.h5", *gel)["groups"]}
    for group, rows in (
        ("soft_contacts", [(one,) for one in soft]),
        ("self_contacts", list(zip(*sides, strict=True))),
    ):
        count = sum(("gel" in row) == (option == "include") for row in rows)
        collide.ok("export a.h5 --to csv --force -o x.csv --group", group, *gel)
        assert len(Path("x.csv").read_text().splitlines()) - 1 == count
        with collidecli.ContactSet.open("a.h5") as contacts:
            assert len(contacts.to_pandas(group=group, **{option: "gel"})) == count
        assert (
            reported[group]["rows"] == compared[group]["matched"] == compared[group]["a"] == count
        )
    collide.refused(
        "export a.h5 --to csv --include silk",
        told="'silk' matches no shape, particle object or body of a.h5",
    )
    told = "'silk' matches no shape, particle object or body of either file"
    collide.refused("diff a.h5 a.h5 --include silk", told=told)


@pytest.mark.parametrize("particle", [9, -1, 2**31 - 1])
def test_a_particle_of_no_object_is_refused(made, collide, block, particle):
    block.groups["soft_contacts"].columns["indices"][2, 0] = particle
    write_contact_set(made / "b.h5", MODEL, block)
    told = (
        "b.h5: /soft_contacts/indices, cells 0 to ",
        f"({particle}, ",
        "are not particles of the scene, which has 9",
    )
    for words in ("diff a.h5 b.h5", "export b.h5 --to csv --group soft_contacts -o x.csv"):
        collide.refused(words, told=told)
    answer = collide("textconv b.h5")  # which has printed lines before it reads those rows
    assert (answer.code, [text for text in told if text not in answer.err]) == (2, [])


TIME = [0.01 * frame for frame in range(GROUP_FRAMES)]
ITEMS = (
    *MODEL.shapes.path,
    "/cloth",
    "gel",
    *(f"/cloth[{k}]" for k in range(6)),
    *(f"gel[{k}]" for k in range(3)),
)
SHAPES = len(MODEL.shapes.path)
OBJECT_COUNT = 2


def rows_of(block, group):
    """(frame, world, row) of each row of a group, with its columns."""
    held = block.groups[group]
    for row, cell in enumerate(
        np.repeat(np.arange(len(held.cell_counts)), held.cell_counts).tolist()
    ):
        yield (
            *divmod(cell, MODEL.world_count),
            {name: values[row].tolist() for name, values in held.columns.items()},
        )


def owner(particle):
    return SHAPES + (particle >= 6)


def touches_of_objects(block):
    """Every touch by the definition: of shapes, surfaces, objects with shapes, and objects with
    each other."""
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    for row, at in enumerate(cell.tolist()):
        if block.columns["distance"][row] <= 0.0:
            pair = (block.columns[name][row] for name in ("shape0", "shape1", "distance"))
            yield Touch(*divmod(at, MODEL.world_count), *pair)
    for frame, world, row in rows_of(block, "hydro_patches"):
        if np.float32(row["depth"]) <= 0.0:
            yield Touch(frame, world, row["shape0"], row["shape1"], row["depth"])
    for frame, world, row in rows_of(block, "soft_contacts"):
        if np.float32(row["distance"]) <= 0.0:
            yield Touch(frame, world, row["shape"], owner(row["indices"][0]), row["distance"])
    for frame, world, row in rows_of(block, "self_contacts"):
        yield Touch(
            frame, world, owner(row["indices"][0]), owner(row["indices"][3]), row["distance"]
        )


def touches_of_particles(block):
    first = SHAPES + OBJECT_COUNT
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
        touches,
        range(GROUP_FRAMES),
        TIME,
        lambda last, following: following == last + 1,
        name,
        threshold=math.inf,
    )


def listed(collide, *options):
    return collide.result("events a.h5 --first 100000", *options)


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
    assert rounded(ordered(result["listed"])) == rounded(
        expected(touches_of_objects(block), names.__getitem__)
    )
    kinds = {node["path"]: node["kind"] for node in result["graph"]["nodes"]}
    assert (kinds["/cloth"], kinds["gel"], kinds["ground"], kinds["body0"]) == (
        "cloth",
        "soft",
        "shape",
        "body",
    )


def test_single_particles(made, collide, block):
    result = listed(collide, "--by", "particles", "--graph")
    found = [dict(row) for row in result["listed"]]
    for row in found:
        row["pair"] = tuple(sorted((row.pop("shape"), row.pop("particle"))))
    assert rounded(ordered(found)) == rounded(expected(touches_of_particles(block)))
    assert any(one["pair"][0] == "/cloth[0]" for one in found)
    kinds = {node["path"]: node["kind"] for node in result["graph"]["nodes"]}
    assert (kinds["gel[2]"], kinds["/cloth"], kinds["ball"]) == ("particle", "cloth", "shape")
    shown = collide("events a.h5 --by particles").out
    assert [
        word for word in (" shape ", " particle ", "pairs of particles") if word not in shown
    ] == []


@pytest.mark.parametrize("by", ["shapes", "particles"])
@pytest.mark.parametrize("block_rows", [1, 5, 40])
def test_blocks_change_nothing(made, by, block_rows):
    results = [
        events(
            EventsRequest("a.h5", EventOptions(by=by, block_rows=rows), first=10**9, graph=True)
        ).as_dict()
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
    assert pairs("--exclude-body", "body*") == {
        pair for pair in every if not {*MODEL.shapes.path[1:]} & {*pair}
    }
    particles = pairs("--by", "particles")
    assert pairs("--by", "particles", "--include", "gel", "--exclude", "/cloth") == {
        pair for pair in particles if pair[1].startswith("gel[") and pair[0] != "/cloth"
    }
    assert pairs("--by", "particles", "--between", "gel,ball") == {
        pair for pair in particles if pair[1].startswith("gel[") and pair[0] == "ball"
    }
    collide.refused(
        "events a.h5 --include jelly",
        told="'jelly' matches no shape, particle object or body of a.h5",
    )


def test_tables_name_the_objects_of_particles(made, collide, block):
    collide.ok("events a.h5 --csv a.csv --by particles")
    rows = pandas.read_csv("a.csv")
    assert (set(rows["file"]), len(rows)) == ({"a.h5"}, len(expected(touches_of_particles(block))))
    assert ("gel", "/cloth[0]") in zip(rows["shape"], rows["particle"], strict=True)
    parquet = pytest.importorskip("pyarrow.parquet")
    collide.ok("events a.h5 --parquet a.parquet")
    write_contact_set(made / "b.h5", MODEL, block)
    collide.ok("events a.h5 b.h5 --parquet ab.parquet")
    one, both = (parquet.read_table(made / name) for name in ("a.parquet", "ab.parquet"))
    assert one.column_names == both.column_names
    assert one.to_pylist() == [row for row in both.to_pylist() if row["file"] == "a.h5"]
    assert "gel" in one["shape1"].to_pylist()


def test_the_limit_of_a_threshold_is_that_of_particles_too(made, collide, block):
    assert (
        "contacts of particle objects with each other touch at any"
        in collide("events a.h5 --threshold 0.001").err
    )
    collide.refused("events a.h5 --by particles --threshold 0.02", told="no contacts beyond 0.01 m")
    of_shapes, of_objects = (
        sum(sum(p >= 0 for p in row["indices"]) for _, _, row in rows_of(block, group))
        for group in ("soft_contacts", "self_contacts")
    )
    assert listed(collide, "--by", "particles", "--threshold", "any")["contacts"] == {
        "asked_for": of_shapes + of_objects,
        "touching": of_shapes + of_objects,
        "of_objects": of_objects,
    }


def test_tables_tell_which_contacts_touch_at_any_distance(made, collide, block):
    count = len(list(rows_of(block, "self_contacts")))
    table = " ".join(collide.ok("events a.h5").out.split())
    assert f"of particle objects with each other, {count}, any distance" in table
    assert "are without the radii of their particles, which collide clearance subtracts" in table
    table = collide.ok("events a.h5 --include ground").out
    assert "particle objects" not in table


def test_particles_in_python(made, block):
    with collidecli.ContactSet.open("a.h5") as contacts:
        table = contacts.events(by="particles", between="gel,ball")
        assert list(table)[1:3] == ["shape", "particle"]
        assert {*table["shape"]} == {"ball"}


def test_a_set_without_particles_has_no_pairs_of_them(made, collide):
    write_contact_set(made / "a.h5", MODEL, made_up_block(MODEL, GROUP_FRAMES), force=True)
    result = listed(collide, "--by", "particles", "--graph")
    assert (result["listed"], result["graph"]["edges"]) == ([], [])


SCENE = f"""def Plane "ground" {COLLIDER} {{
    uniform token axis = "Z"
    GROUND
}}
def Cube "box" {BOTH} {{
    double size = 0.4
    double3 xformOp:translate = (0, 0, 0.15)
    uniform token[] xformOpOrder = ["xformOp:translate"]
    BOX
}}
"""
MARK = "bool newton:hydroelasticEnabled = true\n"


def scene(folder: Path, ground: str = "", box: str = "") -> None:
    write_usda(folder, SCENE.replace("GROUND", ground).replace("BOX", box), name="scene.usda")


def stiffness(value: str) -> str:
    return f"{MARK}float newton:hydroelasticStiffness = {value}\n"


@pytest.fixture
def run(tmp_path, collide):
    """run(ground, box, *options): the datasets of the contact set, and what is printed, of shapes
    with attributes."""

    def call(ground: str, box: str, *options: str) -> tuple[dict[str, Any], str]:
        scene(tmp_path, ground, box)
        answer = collide.ok("run scene.usda -o out.h5 --force", *options)
        return arrays("out.h5"), answer.out + answer.err

    return call


def test_box_on_ground_from_file_to_file(run, collide, no_charts):
    found, shown = run(stiffness("3e6"), stiffness("7e6"))
    patches = {name: found[f"hydro_patches/{name}"] for name in ("force", "depth", "cell_start")}
    assert patches["force"].shape == (1, 3)
    side = 0.4
    depth = 0.05
    z = 0.015
    pressure = 105000.0
    force = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
    np.testing.assert_allclose(abs(patches["force"][0, 2]), force, rtol=1e-7)
    np.testing.assert_allclose(patches["depth"][0], -depth, rtol=1e-6)
    assert (patches["cell_start"].tolist(), len(found["rigid_contacts/distance"])) == ([0, 1], 0)
    assert "hydro_faces/patch" not in found
    assert "hydro patches 1 in 1 cell; 50 mm deep, frame 0, world 0: /ground and /box" in " ".join(
        shown.split()
    )
    shown = collide.ok("report out.h5 -o r.html").out
    assert "surfaces  1, hydroelastic, of 1 pair\n" in shown
    assert "contacts" not in shown, "there are none"
    page = Path("r.html").read_text()
    assert "<dt>surfaces</dt><dd>1<small>hydroelastic, of 1 pair</small></dd>" in page
    assert "<dt>contacts</dt>" not in page
    found, _ = run(stiffness("3e6"), stiffness("7e6"), "--hydro-surface")
    assert found["hydro_faces/patch"].tolist() == [0] * 5
    assert found["hydro_faces/vertex_start"].tolist() == [0, 4, 8, 12, 16, 20]
    assert found["hydro_faces/vertices"].shape == (20, 3)


def test_options_select_the_shapes(run):
    for ground, options in (("", ()), (MARK, ("--hydro", "off"))):
        found, _ = run(ground, MARK, *options)
        assert "hydro_patches/force" not in found
        assert len(found["rigid_contacts/distance"]) > 0
    one, two = (
        run("", MARK, "--hydro", "all", "--hydro-stiffness", value)[0]["hydro_patches/force"][0, 2]
        for value in ("1e6", "2e6")
    )
    np.testing.assert_allclose(two, 2 * one)


def test_sets_without_hydroelastic_shapes_are_as_before(run):
    hashes = set()
    for options in ((), ("--hydro", "off")):
        run("", "", *options)
        hashes.add(sha("out.h5"))
        assert ("hydro" in attributes("out.h5")["config"]) == bool(options)
    assert len(hashes) == 1


@pytest.fixture
def marked(tmp_path, collide):
    """Scenes in the current folder: one with hydroelastic shapes, and three with a stiffness that
    is none."""
    scene(tmp_path, MARK, MARK)
    for value in ("0", "-1", "nan"):
        (tmp_path / value).mkdir()
        scene(tmp_path / value, stiffness(value), MARK)


test_numbers_that_are_none = refusals(
    "run -o out.h5",
    *(
        (f"scene.usda --hydro-stiffness {value}", "--hydro-stiffness")
        for value in ("0", "-1", "nan")
    ),
    *(
        (
            f"./{value}/scene.usda",
            ("newton:hydroelasticStiffness", "give a finite number above 0, or inf"),
        )
        for value in ("0", "-1", "nan")
    ),
    *(
        (f"scene.usda --hydro-resolution {value}", f"{value} is not a whole number from 4 to 512")
        for value in ("0", "1.5", "3", "100000")
    ),
    needs="marked",
)


@pytest.mark.parametrize(
    ("mark", "options", "warned"),
    [
        ("", "--hydro-surface --hydro-stiffness 1e6", ["hydro_stiffness", "hydro_surface"]),
        (MARK, "--hydro-reduce", ["hydro_reduce"]),
        (MARK, "--hydro off --hydro-resolution 8", ["hydro_resolution"]),
        ("", "--self-contacts 0.01", ["self_contacts"]),
        ("", "--hydro all --hydro-resolution 8 --hydro-surface", []),
    ],
)
def test_options_without_effect_on_the_scene_are_named(run, mark, options, warned):
    _, said = run("", mark, *options.split())
    assert [line.split()[1] for line in said.splitlines() if "has no effect" in line] == warned


def test_inspect_shows_the_authored_stiffness(tmp_path, collide):
    scene(tmp_path, stiffness("inf"), stiffness("7e6"))
    shapes = collide.result("inspect scene.usda")["shapes"]
    assert [(one["hydroelastic"], one["k_hydro"]) for one in shapes] == [(True, "inf"), (True, 7e6)]
    for ground, box, words in (
        (stiffness("inf"), stiffness("7e6"), ["rigid", "7e+06"]),
        (MARK, "", ["by option"]),
    ):
        scene(tmp_path, ground, box)
        shown = collide.ok("inspect scene.usda").out
        assert "k hydro [N/m^3]" in shown
        assert all(f" {word}\n" in shown for word in words)
    scene(tmp_path)
    assert "hydro" not in collide.ok("inspect scene.usda").out


def test_options_of_newton_without_effect_are_named_once(run):
    Path("collide.toml").write_text(
        "buffer-fraction = 0.5\nmargin-contact-area = 0.01\noutput-contact-surface = true\n"
    )
    found, shown = run(MARK, MARK)
    assert "hydro_faces/patch" in found
    assert [
        shown.count(f"{name} has no effect") for name in ("buffer_fraction", "margin_contact_area")
    ] == [1, 1]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "options", ["", "--margin 0.002", "--contact-ids", "--columns friction,margin0"]
)
def test_reduced_contacts_have_the_force_of_their_surface(run, collide, options):
    found, _ = run(stiffness("3e6"), stiffness("7e6"), "--hydro-reduce", *options.split())
    rows = {
        name: found[f"rigid_contacts/{name}"]
        for name in ("kind", "stiffness", "distance", "normal")
    }
    assert (rows["kind"] == 3).all()
    force = (rows["stiffness"] * -rows["distance"])[:, None] * rows["normal"]
    total = found["hydro_patches/force"][0]
    np.testing.assert_allclose(force.sum(axis=0), total, atol=1e-6 * np.linalg.norm(total))
    with h5py.File("out.h5") as file:
        assert file["rigid_contacts/area"].attrs["unit"] == "m^2"
    assert found["hydro_patches/torque_error"][0] < 1e-3 * np.linalg.norm(total) * 0.4
    collide.ok("check out.h5")
