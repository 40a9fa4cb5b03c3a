"""Groups of contacts beside /rigid_contacts through the verbs: check, diff, export, merge, report,
Python."""

import csv
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.contact_blocks import shapes_of
from collidecli.scene.contact_columns import GROUPS
from collidecli.scene.episodes import Episodes
from collidecli.scene.option_values import GROUP_NAMES
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.merge.merge import MergePlan, merge_episodes
from collidecli.verbs.report.page import report_page
from collidecli.verbs.report.report import ReportRequest, report
from collidecli.verbs.textconv.groups import counted
from tests.cli.conftest import GROUP_FRAMES, MODEL
from tests.support.contact_sets import (
    OF_CELLS,
    block_with_groups,
    changed,
    made_up_block,
    small_model,
    write_contact_set,
)


def test_inspect_shows_the_groups_of_a_good_set(made, collide, block):
    collide.ok("check a.h5")
    result = collide.result("inspect a.h5")
    assert list(result["groups"]) == [group.name for group in OF_CELLS]
    patches = block.groups["hydro_patches"]
    found = result["groups"]["hydro_patches"]
    assert (found["rows"], found["cells"]) == (
        patches.row_count,
        np.count_nonzero(patches.cell_counts),
    )
    area = patches.columns["area"]
    force = patches.columns["force"]
    assert found["columns"]["area"] == {"least": [area.min()], "most": [area.max()]}
    assert found["columns"]["force"]["most"] == force.max(axis=0).tolist()
    shown = collide("inspect a.h5").out
    for words in (
        f"hydro patches  {patches.row_count} rows in {found['cells']} cells",
        "column of soft contacts",
    ):
        assert words in shown
    assert " area [m^2] " in shown
    write_contact_set(made / "b.h5", MODEL, made_up_block(MODEL, GROUP_FRAMES))
    lines = collide("inspect a.h5 b.h5").out.splitlines()
    rows = {name.replace("_", " "): str(group.row_count) for name, group in block.groups.items()}
    assert [name for name in rows if name not in " ".join(lines[:2])] == []
    ours, theirs = (
        next(line.split() for line in lines if name in line) for name in ("a.h5", "b.h5")
    )
    assert (ours[-len(rows) :], len(theirs)) == (list(rows.values()), len(ours) - len(rows))


@pytest.mark.usefixtures("no_charts")
def test_a_report_counts_the_rows_of_groups(made, collide, block):
    rows = {name: held.row_count for name, held in block.groups.items()}
    report = collide("report a.h5").out
    assert f"soft contacts  {rows['soft_contacts']}\n" in report
    assert f"surfaces       {rows['hydro_patches']}, hydroelastic, of " in report


def test_an_export_counts_the_rows_of_groups(made, collide, block):
    rows = {name: held.row_count for name, held in block.groups.items()}
    exported = collide.result("export a.h5 --to usd -o a.usda")
    assert exported["group_rows"] == {name: rows[name] for name in ("hydro_patches", "hydro_faces")}
    single = int((block.groups["soft_contacts"].columns["kind"] == 0).sum())
    exported = collide("export a.h5 --to newton -o a.npz").out
    assert f"soft contacts  {single}\n" in exported
    assert collide.result("export a.h5 --to csv")["group_rows"] == {}


def test_lines_of_text_change_where_a_group_does(made, collide, block):
    one = collide("textconv a.h5").out.splitlines()
    rows = block.groups["soft_contacts"]
    row = int(np.flatnonzero(rows.cell_counts)[0])
    write_contact_set(made / "b.h5", MODEL, changed(block, "soft_contacts", "distance", 0, 0.5))
    two = collide("textconv b.h5").out.splitlines()
    unequal = [(a, b) for a, b in zip(one, two, strict=True) if a != b]
    assert len(unequal) == 2  # the content hash, and the row of a shape in a cell
    assert unequal[0][0].startswith("content ")
    number = rows.columns["distance"][0]
    assert any(
        f"distance {number:.6f}" in a and f"distance {number + 0.5:.6f}" in b for a, b in unequal
    )
    frame, world = divmod(row, MODEL.world_count)
    place = f"soft_contacts, frame {frame}, world {world}, t = {frame * 0.01:g} s"
    assert one.index(place) < one.index(unequal[1][0])
    assert f"soft_contacts {rows.row_count}" in one
    assert "soft_contacts" in collide("textconv a.h5 --summary").out.splitlines()


def test_rows_of_a_pair_are_counted_in_cells(made, collide, block):
    """Several rows of one cell count as one cell."""
    names = MODEL.shapes.path
    counts = block.groups["hydro_faces"].cell_counts
    cells: dict[tuple[str, ...], list[int]] = {}
    for cell, *pair in zip(
        np.repeat(np.arange(len(counts)), counts).tolist(),
        *(shapes.tolist() for shapes in shapes_of(block.groups, "hydro_faces")),
        strict=True,
    ):
        cells.setdefault(tuple(sorted(names[shape] for shape in pair)), []).append(cell)
    lines = collide("textconv a.h5 --summary").out.splitlines()
    for pair, held in cells.items():
        rows = counted(len(held), "row")
        assert f"  {' | '.join(pair)}  {rows} in {counted(len(set(held)), 'cell')}" in lines
    assert any(len(held) > len(set(held)) for held in cells.values())


def test_an_exchange_of_shapes_by_path_turns_forces(made, collide, block):
    """A pair is listed by path; force and torque are those on the second one."""
    names = MODEL.shapes.path
    patches = block.groups["hydro_patches"].columns
    row = next(
        r
        for r in range(len(patches["shape0"]))
        if names[patches["shape0"][r]] > names[patches["shape1"][r]]
    )
    lines = collide("textconv a.h5").out.splitlines()
    pair = f"  {names[patches['shape1'][row]]} | {names[patches['shape0'][row]]}  "
    force = " ".join(f"{-value:.6f}" for value in patches["force"][row])
    center = " ".join(f"{value:.6f}" for value in patches["center"][row])
    assert any(
        line.startswith(pair) and f"force {force}" in line and f"center {center}" in line
        for line in lines
    )


def test_a_group_of_one_set_is_a_difference(differences):
    code, result, _ = differences(made_up_block(MODEL, GROUP_FRAMES))
    assert code == 1
    assert result["reasons"] == [f"only A has {group.name.replace('_', ' ')}" for group in OF_CELLS]


def test_sets_of_different_groups_are_not_merged(made, collide):
    write_contact_set(made / "b.h5", MODEL, made_up_block(MODEL, GROUP_FRAMES))
    told = "groups: /candidates, /hydro_faces, /hydro_patches, /self_contacts, /soft_contacts"
    collide.refused("merge a.h5 b.h5 --worlds -o ab.h5", told=told)


def without_row(block, group, row):
    rows = block.groups[group]
    counts = rows.cell_counts.copy()
    counts[int(np.searchsorted(np.cumsum(counts), row, side="right"))] -= 1
    columns = {name: np.delete(values, row, axis=0) for name, values in rows.columns.items()}
    return replace(
        block, groups={**block.groups, group: replace(rows, cell_counts=counts, columns=columns)}
    )


def test_equal_sets_have_no_difference(differences, block):
    rows = block.groups["soft_contacts"].row_count
    for option in ("--pairs-only", "-q"):
        code, result, groups = differences(block, option)
        soft = groups["soft_contacts"]
        assert (code, soft["missing"]) == (0, 0)
    assert (result["by_hash"], soft["matched"], soft["a"]) == (True, rows, rows)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("group", "column", "unit"),
    [
        *(
            ("hydro_patches", "force", "N"),
            ("hydro_faces", "pressure", "Pa"),
            ("soft_contacts", "distance", "m"),
        ),
        *(("self_contacts", "point1", "m"), ("hydro_patches", "center", "m")),
    ],
)
def test_a_changed_number_is_found_within_its_tolerance(
    differences, collide, block, group, column, unit
):
    other = changed(block, group, column, 5, 0.25)
    code, result, groups = differences(other)
    assert (code, result["contacts"]["changed"]) == (1, 0)
    assert result["reasons"] == [f"1 row of {group.replace('_', ' ')} changed"]
    assert {name: one["changed"] for name, one in groups.items() if one["changed"]} == {group: 1}
    (field,) = groups[group]["fields"]
    width = 3**0.5 if column in ("point1", "center") else 1.0
    assert (field["name"], field["unit"]) == (column, unit)
    assert field["largest"] == pytest.approx(0.25 * width, rel=1e-6)
    cell = int(np.searchsorted(np.cumsum(block.groups[group].cell_counts), 5, side="right"))
    assert (groups[group]["first"]["frame_a"], groups[group]["first"]["world"]) == divmod(
        cell, MODEL.world_count
    )
    assert [differences(other, "--atol", f"{column}={size}")[0] for size in (0.45, 0.2)] == [0, 1]
    shown = collide("diff a.h5 b.h5").out
    assert f"{group.replace('_', ' ')}: 0 missing, 0 extra, 1 changed, first in frame" in shown
    assert f"{column}: 1 differ, 1 beyond tolerance" in shown


def test_vertices_of_faces_are_compared(differences, block):
    faces = block.groups["hydro_faces"]
    lengths, values = faces.lists["vertices"]
    moved = values.copy()
    fewer = lengths.copy()
    moved[int(lengths[:3].sum()), 0] += 0.5
    row = int(np.flatnonzero(lengths > 3)[0])
    fewer[row] -= 1
    one_less = np.delete(values, int(lengths[: row + 1].sum()) - 1, axis=0)
    for held, options in (((lengths, moved), ()), ((fewer, one_less), ("--atol", "9"))):
        other = replace(faces, lists={"vertices": held})
        code, _, groups = differences(
            replace(block, groups={**block.groups, "hydro_faces": other}), *options
        )
        assert (code, groups["hydro_faces"]["changed"]) == (1, 1)


def test_rows_of_one_set_alone_are_counted(differences, collide, made, block):
    other = without_row(block, "soft_contacts", 4)
    code, result, groups = differences(other)
    assert (code, result["reasons"]) == (1, ["1 row of soft contacts missing"])
    assert groups["soft_contacts"]["matched"] == block.groups["soft_contacts"].row_count - 1
    assert differences(other, "--max-missing", "1")[0] == 0
    back = collide.result("diff b.h5 a.h5", code=1)
    assert back["reasons"] == ["1 row of soft contacts extra"]
    collide.found("diff a.h5 b.h5 --junit-xml r.xml --markdown r.md")
    assert all(
        "soft contacts: 1 missing" in (made / name).read_text() for name in ("r.md", "r.xml")
    )


def test_a_row_at_the_limit_is_no_difference_within_the_tolerance(made, collide, block):
    """A tolerance of the distance covers rows whose distance is within it of the limit at which
    rows are reported."""
    near = changed(block, "soft_contacts", "distance", 4, 0.0)
    near.groups["soft_contacts"].columns["distance"][4] = 0.0095
    # An option at its default is not recorded: the limit is then 0.01 m.
    write_contact_set(made / "near.h5", MODEL, near)
    write_contact_set(made / "gone.h5", MODEL, without_row(near, "soft_contacts", 4))
    for atol, code in (("distance=0.001", 0), ("distance=0.0001", 1)):
        result = collide.result("diff near.h5 gone.h5 --atol", atol, code=code)
        groups = {one["name"]: one for one in result["groups"]}
        assert groups["soft_contacts"]["at_limit"]["missing"] == 1 - code
    collide.ok("diff near.h5 gone.h5 --ignore-shallow 0.001")


def test_differences_outside_a_selection_do_not_count(differences, block):
    patches = block.groups["hydro_patches"].columns
    row = int(np.flatnonzero(patches["shape1"] == 4)[0])
    other = changed(block, "hydro_patches", "area", row, 1.0)
    cases = {
        "": 1,
        "--exclude egg": 0,
        "--include egg": 1,
        "--fields depth": 0,
        "--fields area": 1,
        "--pairs-only": 0,
    }
    assert {words: differences(other, *words.split())[0] for words in cases} == cases


def test_shapes_in_another_order_are_matched_by_path(differences, block):
    """Forces and normals are turned with the pair; faces follow their patches."""
    order = np.array([0, 4, 3, 2, 1])  # new row of each shape
    rows = np.argsort(order)
    shapes = MODEL.shapes
    fields = {name: getattr(shapes, name) for name in shapes.__dataclass_fields__}
    turned = {
        name: tuple(value[r] for r in rows)
        if isinstance(value, tuple)
        else value[rows]
        if isinstance(value, np.ndarray) and len(value)
        else value
        for name, value in fields.items()
    }
    model = replace(MODEL, shapes=replace(shapes, **turned))
    groups = {name: dict(held.columns) for name, held in block.groups.items()}
    patches = groups["hydro_patches"]
    soft = groups["soft_contacts"]
    sign = np.where(order[patches["shape0"]] > order[patches["shape1"]], -1.0, 1.0)
    assert (sign < 0.0).any()
    for columns in (patches, groups["touches"], groups["candidates"]):
        pair = order[np.stack([columns[name] for name in ("shape0", "shape1")])]
        columns |= dict(
            zip(("shape0", "shape1"), np.sort(pair, axis=0).astype(np.int32), strict=True)
        )
    patches |= {name: patches[name] * sign[:, None] for name in ("force", "torque")}
    faces = groups["hydro_faces"]
    faces["normal"] = faces["normal"] * np.float32(sign)[faces["patch"], None]
    soft["shape"] = order[soft["shape"]].astype(np.int32)
    moved = {name: replace(held, columns=groups[name]) for name, held in block.groups.items()}
    other = replace(block, groups=moved)
    _, result, found = differences(other, model=model)
    for one in found.values():
        assert (one["missing"], one["extra"], one["changed"]) == (0, 0, 0), one
    assert any("another order" in note for note in result["notes"])


def test_a_report_has_the_groups_of_a_set(made, collide, block):
    groups = collide.result("report a.h5 -o r.html")["groups"]
    patches = block.groups["hydro_patches"]
    soft = block.groups["soft_contacts"]
    frame = np.repeat(np.arange(18), patches.cell_counts) // 3
    size = np.linalg.norm(patches.columns["force"], axis=1)
    area = patches.columns["area"]
    pairs: dict[tuple[str, ...], list[int]] = {}
    for row, pair in enumerate(
        zip(patches.columns["shape0"], patches.columns["shape1"], strict=True)
    ):
        pairs.setdefault(tuple(MODEL.shapes.path[shape] for shape in pair), []).append(row)
    order = sorted(pairs, key=lambda pair: (-size[pairs[pair]].sum(), pair))
    found = groups["surfaces"]
    assert (groups["frame"], found["pairs"]) == (list(range(GROUP_FRAMES)), len(pairs))
    assert [(one["shape0"], one["shape1"]) for one in found["listed"]] == order[:4]
    rows = pairs[order[0]]
    force, area = (np.bincount(frame[rows], values[rows], GROUP_FRAMES) for values in (size, area))
    expected = {"force": force, "area": area, "pressure": force / np.where(area > 0, area, 1)}
    for name, values in expected.items():
        np.testing.assert_allclose(found["listed"][0][name], values, err_msg=name)
    counts = soft.cell_counts.reshape(GROUP_FRAMES, 3).sum(axis=1)
    assert groups["counts"]["soft_contacts"] == {
        "rows": soft.row_count,
        "per_frame": counts.tolist(),
    }
    page = (made / "r.html").read_text()
    for words in (
        "Hydroelastic surfaces",
        "Contacts of particles",
        "Mean pressure, force by area [Pa]",
    ):
        assert words in page
    write_contact_set(made / "b.h5", MODEL, made_up_block(MODEL, GROUP_FRAMES))
    collide.ok("report b.h5 -o s.html")
    assert "Hydroelastic surfaces" not in (made / "s.html").read_text()
    collide.refused("plot b.h5 --kind forces -o f.svg", told="it has no hydroelastic surfaces")


def test_values_that_cannot_be_are_refused(made, collide, block):
    """Touches of surfaces are compared with plain Python in test_particles.py."""
    write_contact_set(made / "b.h5", MODEL, changed(block, "hydro_patches", "force", 3, np.nan))
    collide.refused("report b.h5 -o r.html", told="b.h5: /hydro_patches/force: is not finite")
    write_contact_set(made / "c.h5", MODEL, changed(block, "hydro_patches", "shape1", 2, 90))
    collide.refused("events c.h5", told="/hydro_patches/shape1")


def test_groups_as_tables(made, block):
    pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    path = MODEL.shapes.path
    columns = {name: rows.columns for name, rows in block.groups.items()}
    soft = columns["soft_contacts"]
    patches = columns["hydro_patches"]
    with collidecli.ContactSet.open("a.h5") as contacts:
        assert contacts.groups["soft_contacts"].row_count == block.groups["soft_contacts"].row_count
        assert contacts.groups["hydro_patches"].columns[3].unit == "N"
        assert re.search("soft contacts.*<td", contacts._repr_html_(), re.DOTALL)
        frame = contacts.to_pandas(group="soft_contacts")
        assert frame["shape"].tolist() == [path[shape] for shape in soft["shape"]]
        assert frame["kind"].tolist() == [("vertex", "edge", "face")[kind] for kind in soft["kind"]]
        np.testing.assert_array_equal(frame["point_world_x"], soft["point_world"][:, 0])
        for name, rows in block.groups.items():
            found = contacts.to_xarray(group=name)
            cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
            places = {"frame": cell // MODEL.world_count, "world": cell % MODEL.world_count}
            for column, values in (
                rows.columns | places | {"time": contacts.time[places["frame"]]}
            ).items():
                np.testing.assert_array_equal(found[column].values, values, f"{name}, {column}")
                assert found[column].dims[0] == "row"
        found = contacts.to_xarray(group="soft_contacts")
        assert (found["normal"].dims, found["barycentric"].dims) == (
            ("row", "axis"),
            ("row", "barycentric_part"),
        )
        assert found["distance"].attrs["units"] == "m"
        assert (
            found["object"].values.tolist()
            == np.where(soft["indices"][:, 0] >= 6, "gel", "/cloth").tolist()
        )
        faces = contacts.to_xarray(group="hydro_faces")
        lengths, values = block.groups["hydro_faces"].lists["vertices"]
        np.testing.assert_array_equal(faces["vertices"], values)
        np.testing.assert_array_equal(
            faces["vertices_row"], np.repeat(np.arange(len(lengths)), lengths)
        )
        np.testing.assert_array_equal(
            faces["shape1"], patches["shape1"][columns["hydro_faces"]["patch"]]
        )
        for call, egg in ((contacts.to_pandas, "egg"), (contacts.to_xarray, 4)):
            part = call("2:4", include="egg", group="hydro_patches")
            assert set(np.array(part["frame"])) <= {2, 3}
            assert ((part["shape0"] == egg) | (part["shape1"] == egg)).all()
            with pytest.raises(InputError, match="there is no group 'x'"):
                call(group="x")
        assert contacts.to_xarray("0:1", exclude="*", group="soft_contacts").sizes["row"] == 0


@pytest.mark.usefixtures("no_charts")
def test_differences_of_groups_in_a_report(made, collide, block):
    write_contact_set(made / "b.h5", MODEL, changed(block, "soft_contacts", "distance", 3, 1.0))
    collide.ok("report b.h5 --against a.h5 -o r.html")
    page = (made / "r.html").read_text()
    for words in (
        "soft contacts: 0 missing, 0 extra, 1 changed",
        "distance: 1 differ, 1 beyond tolerance, by up to 1 m",
    ):
        assert words in page


def test_episodes_of_other_lengths_are_merged_with_their_groups(made):
    """The worlds of the shorter set have no rows after its end; those of the longer one are
    unchanged."""
    short = block_with_groups(MODEL, 4, seed=8)
    write_contact_set(made / "short.h5", MODEL, short)
    with ContactSet.open("a.h5") as a, ContactSet.open("short.h5") as b:
        plan = MergePlan((np.arange(6), np.arange(4)), (0, 3), 6, a.step, a.time)
        worlds = np.arange(6, dtype=np.int32)
        names = tuple(f"e{world}" for world in worlds)
        frames = np.array([6, 6, 6, 4, 4, 4])
        merge_episodes([a, b], plan, Episodes(names, worlds, np.zeros(6, np.int64), frames), "m.h5")
        with ContactSet.open("m.h5") as merged:
            for name, table in merged.groups.items():
                assert table.row_count == a.groups[name].row_count + b.groups[name].row_count
            for frame, world in product(range(6), repeat=2):
                found = merged.cell(frame, world).groups
                source = a if world < 3 else b
                if frame >= source.frame_count:
                    assert all(rows.row_count == 0 for rows in found.values())
                    continue
                for name, rows in source.cell(frame, world % 3).groups.items():
                    for key, values in rows.columns.items():
                        np.testing.assert_array_equal(found[name].columns[key], values)
                    for key, pair in rows.lists.items():
                        for ours, theirs in zip(found[name].lists[key], pair, strict=True):
                            np.testing.assert_array_equal(ours, theirs)
    assert check_file("m.h5") == []


@pytest.fixture
def every_group(tmp_path, collide):
    """The contacts of a.h5, with all groups, in the current folder."""
    found = block_with_groups(MODEL, GROUP_FRAMES, groups=GROUPS)
    write_contact_set(tmp_path / "a.h5", MODEL, found)
    return found


def csv_rows(path):
    """Columns by name."""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    return {name: [row[name] for row in rows] for name in rows[0]}


def test_a_group_as_csv(collide, every_group):
    result = collide.result("export a.h5 --to csv --group soft_contacts -o soft.csv")
    soft = every_group.groups["soft_contacts"]
    path = MODEL.shapes.path
    found = csv_rows("soft.csv")
    columns = soft.columns
    assert (result["group"], result["contacts"], result["left_out"]) == (
        "soft_contacts",
        soft.row_count,
        [],
    )
    frame, world = np.divmod(
        np.repeat(np.arange(len(soft.cell_counts)), soft.cell_counts), MODEL.world_count
    )
    bodies = ("", *MODEL.bodies.path)
    expected = {f"indices_{n}": columns["indices"][:, n] for n in range(3)} | {
        "frame": frame,
        "world": world,
    }
    expected["shape"] = [path[row] for row in columns["shape"]]
    expected["body"] = [bodies[MODEL.shapes.body[row] + 1] for row in columns["shape"]]
    expected["kind"] = [("vertex", "edge", "face")[kind] for kind in columns["kind"]]
    assert {name: found[name] for name in expected} == {
        name: list(map(str, held)) for name, held in expected.items()
    }
    assert list(map(float, found["point_world_y"])) == columns["point_world"][:, 1].tolist()
    assert list(map(np.float32, found["barycentric_2"])) == columns["barycentric"][:, 2].tolist()
    left_out = collide.result("export a.h5 --to csv --group hydro_faces -o f.csv")["left_out"]
    assert any(one.startswith("vertices: ") for one in left_out)
    patches = every_group.groups["hydro_patches"].columns
    faces = every_group.groups["hydro_faces"].columns
    found = csv_rows("f.csv")
    assert list(map(int, found["patch"])) == faces["patch"].tolist()
    for side in ("shape0", "shape1"):
        assert found[side] == [path[row] for row in patches[side][faces["patch"]]]
    assert list(map(float, found["pressure"])) == faces["pressure"].tolist()


def test_a_group_as_npz_has_all_its_arrays(collide, every_group):
    for name, rows in every_group.groups.items():
        collide.ok("export a.h5 --to npz --group", name, "-o", f"{name}.npz")
        arrays = np.load(f"{name}.npz")
        for column, values in rows.columns.items():
            np.testing.assert_array_equal(arrays[column], values, strict=True)
        np.testing.assert_array_equal(np.diff(arrays["cell_start"]), rows.cell_counts)
    faces = every_group.groups["hydro_faces"]
    lengths, values = faces.lists["vertices"]
    arrays = np.load("hydro_faces.npz")
    np.testing.assert_array_equal(arrays["vertices"], values)
    np.testing.assert_array_equal(arrays["vertex_start"], np.concatenate([[0], np.cumsum(lengths)]))
    collide.ok(
        "export a.h5 --to npz --group hydro_faces -o s.npz --frames 2:5 --world 0,2 --exclude egg"
    )
    part = np.load("s.npz")
    frame, world = np.divmod(
        np.repeat(np.arange(len(faces.cell_counts)), faces.cell_counts), MODEL.world_count
    )
    patches = every_group.groups["hydro_patches"].columns
    egg = (patches["shape0"] == 4) | (patches["shape1"] == 4)
    inside = (world != 1) & (frame >= 2) & (frame < 5) & ~egg[faces.columns["patch"]]
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_array_equal(part["patch"], faces.columns["patch"][inside])
    np.testing.assert_array_equal(np.diff(part["vertex_start"]), lengths[inside])
    np.testing.assert_array_equal(part["vertices"], values[np.repeat(inside, lengths)])


def test_a_group_as_parquet(collide, every_group):
    parquet = pytest.importorskip("pyarrow.parquet")
    collide.ok("export a.h5 --to parquet --group hydro_patches -o p.parquet")
    table = parquet.read_table("p.parquet")
    assert (
        table["force_z"].to_pylist()
        == every_group.groups["hydro_patches"].columns["force"][:, 2].tolist()
    )
    assert table.schema.field("force_z").metadata[b"unit"] == b"N"
    assert "shape0" in table.column_names


def test_soft_contacts_in_the_layout_of_newton(collide, every_group):
    left_out = collide.result("export a.h5 --to newton -o n.npz")["left_out"]
    soft = every_group.groups["soft_contacts"]
    arrays = np.load("n.npz")
    columns = soft.columns
    single = soft.columns["kind"] == 0
    assert 0 < single.sum() < len(single)
    names = {
        "shape": columns["shape"],
        "body_pos": columns["point_body"],
        "normal": columns["normal"],
    }
    for name, values in (names | {"particle": columns["indices"][:, 0]}).items():
        np.testing.assert_array_equal(arrays[f"soft_contact_{name}"], values[single])
    cell = np.repeat(np.arange(len(soft.cell_counts)), soft.cell_counts)[single]
    np.testing.assert_array_equal(
        arrays["soft_contact_count"], np.bincount(cell, minlength=18).reshape(6, 3)
    )
    assert any(
        f"{int((~single).sum())} soft contacts of edges and faces" in one for one in left_out
    )
    assert any(one.startswith("hydro_patches: a table of its own") for one in left_out)
    assert not any(one.startswith("soft_contacts:") for one in left_out)


def test_a_group_that_a_set_or_a_format_lacks_is_refused(collide, every_group):
    assert tuple(group.name for group in GROUPS) == GROUP_NAMES, "names of the option"
    write_contact_set("b.h5", MODEL, made_up_block(MODEL, GROUP_FRAMES))
    collide.refused(
        "export b.h5 --to csv --group soft_contacts -o x.csv",
        told="there is no group 'soft_contacts'",
    )
    collide.refused(
        "export a.h5 --to dart --group soft_contacts -o x.npz",
        told="it is for csv, parquet and npz",
    )


def test_surfaces_in_a_usd_layer(collide, every_group):
    from pxr import Usd, UsdGeom

    collide.ok("export a.h5 --to usd -o a.usda --frames 1:4")
    stage = Usd.Stage.Open("a.usda")
    faces = every_group.groups["hydro_faces"]
    patches = every_group.groups["hydro_patches"]
    lengths, values = faces.lists["vertices"]
    counts = (faces.cell_counts, lengths, patches.cell_counts)
    start, first, patch_start = (np.concatenate([[0], np.cumsum(each)]) for each in counts)
    assert start[12] - start[3] > 3

    def primvar(schema, name: str, code: float) -> np.ndarray:
        return np.array(UsdGeom.PrimvarsAPI(schema.GetPrim()).GetPrimvar(name).Get(code))

    for cell in range(3, 12):
        frame, world = divmod(cell, 3)
        code = frame * 0.01 * stage.GetTimeCodesPerSecond()
        rows = slice(start[cell], start[cell + 1])
        of_patches = slice(patch_start[cell], patch_start[cell + 1])
        mesh = UsdGeom.Mesh.Get(stage, f"/collide_contacts/world_{world}/hydro_faces")
        centers = UsdGeom.Points.Get(stage, f"/collide_contacts/world_{world}/hydro_patches")
        corners = values[first[rows.start] : first[rows.stop]]
        for found, expected in (
            (mesh.GetFaceVertexCountsAttr().Get(code), lengths[rows]),
            (mesh.GetFaceVertexIndicesAttr().Get(code), np.arange(lengths[rows].sum())),
            (np.array(mesh.GetPointsAttr().Get(code)).reshape(-1, 3), corners.astype(np.float32)),
            (primvar(mesh, "pressure", code), faces.columns["pressure"][rows].astype(np.float32)),
            (
                primvar(mesh, "shape0", code),
                patches.columns["shape0"][faces.columns["patch"][rows]],
            ),
            (
                primvar(centers, "force", code).reshape(-1, 3),
                patches.columns["force"][of_patches].astype(np.float32),
            ),
        ):
            np.testing.assert_array_equal(np.array(found), expected)
    left_out = collide.result("export a.h5 --to usd -o b.usda")["left_out"]
    assert [one.split(":")[0] for one in left_out if "table of its own" in one] == list(
        GROUP_NAMES[2:]
    )


LONG = 160
WORLDS = 3
LONG_MODEL = small_model(WORLDS)
BIN = 2


@pytest.fixture(scope="module")
def long_block():
    return block_with_groups(LONG_MODEL, LONG)


def parts_of(folder, block):
    """The path of a set of this block, and its report with parts."""
    write_contact_set(folder / "a.h5", LONG_MODEL, block)
    found = report(ReportRequest(str(folder / "a.h5"), subsets=True)).as_dict()
    assert [one["kind"] for one in found["subsets"]["listed"]] == ["world"] * 3 + ["body"] * 4 + [
        "shape"
    ]
    return str(folder / "a.h5"), found


def test_parts_have_their_rows_of_groups(long_block, tmp_path):
    path, found = parts_of(tmp_path, long_block)
    for one in found["subsets"]["listed"]:
        for name in ("hydro_patches", "soft_contacts", "self_contacts"):
            held = long_block.groups[name]
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
                # body k has shape k + 1
                row = one["row"] + 1 if one["kind"] == "body" else one["row"]
                mine = np.any([shape == row for shape in shapes], axis=0)
            part = one["groups"][name]
            frame = cell[mine] // WORLDS // BIN
            assert part["rows"] == mine.sum() > 0
            np.testing.assert_allclose(
                part["per_frame"], np.bincount(frame, minlength=LONG // BIN) / BIN
            )
            if name == "hydro_patches":
                size = np.linalg.norm(columns["force"][mine], axis=1)
                np.testing.assert_allclose(
                    part["force"], np.bincount(frame, size, LONG // BIN) / BIN
                )
            else:
                assert "force" not in part
    text = report_page(found)
    for words, number in (
        ("Soft contacts", 8),
        ("Self contacts", 3),
        ("Hydro patches", 8),
        ("Sum of nominal forces", 8),
    ):
        # title and name of a chart
        assert text.count(f"{words} in a frame, mean of 2 frames") == 2 * number, words
    result = report(ReportRequest(path, worlds=(1,), subsets=True)).as_dict()
    count = long_block.groups["soft_contacts"].cell_counts[1::WORLDS].sum()
    bodies = [one["groups"]["soft_contacts"]["rows"] for one in result["subsets"]["listed"]]
    assert (result["groups"]["counts"]["soft_contacts"]["rows"], len(bodies), sum(bodies)) == (
        count,
        5,
        count,
    )


def test_a_world_with_contacts_of_particles_alone_can_be_selected(long_block, tmp_path):
    none = replace(long_block, cell_counts=np.zeros_like(long_block.cell_counts))
    none = replace(none, columns={name: values[:0] for name, values in long_block.columns.items()})
    none = replace(
        none, groups={name: long_block.groups[name] for name in ("soft_contacts", "self_contacts")}
    )
    _, result = parts_of(tmp_path, none)
    for one in result["subsets"]["listed"]:
        assert one["contacts"] == 0 < one["groups"]["soft_contacts"]["rows"]
    assert report_page(result).count("Soft contacts in a frame, mean of 2 frames") == 2 * 8
