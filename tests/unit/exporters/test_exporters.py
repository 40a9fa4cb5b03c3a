"""Exports: layouts of other programs, Jacobians, tables, selections."""

import csv
import itertools
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module

import mujoco
import numpy as np
import pyarrow.parquet as parquet
import pytest
import scipy.sparse

from collidecli.errors import InputError
from collidecli.exporters import arrays as arrays_module
from collidecli.exporters.arrays import Array, Layout
from collidecli.exporters.contact_rows import ContactRows
from collidecli.exporters.layouts import dart, genesis, newton, npz, raisim
from collidecli.exporters.layouts.mujoco import CompiledGeoms, mujoco_layout
from collidecli.scene.options import ContactOptions
from collidecli.storage import flat_tables
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import selected
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import SelectedContacts
from collidecli.storage.flat_tables import TableColumn, csv_table, parquet_table
from collidecli.storage.trajectory_writer import TrajectoryWriter
from collidecli.verbs.export.export import export
from collidecli.verbs.export.request import ExportRequest
from collidecli.verbs.run.run import RunRequest, run
from tests.support.contact_sets import (
    made_up,
    made_up_block,
    pair_margin,
    small_model,
    write_contact_set,
)

FRAMES = 7
WORLDS = 3
BLOCK = made_up_block(small_model(WORLDS, forced=True), FRAMES)
SHAPE_BODY = np.array([-1, 0, 1, 2, 3])
ALL = [
    getattr(import_module(f"collidecli.exporters.layouts.{name}"), f"{name}_layout")
    for name in ("npz", "dart", "genesis", "newton", "raisim")
]


@pytest.fixture(scope="module")
def contacts(tmp_path_factory) -> Iterator[ContactSet]:
    path = tmp_path_factory.mktemp("exports") / "set.h5"
    write_contact_set(path, small_model(WORLDS, forced=True), BLOCK)
    with ContactSet.open(path) as found:
        yield found


@pytest.fixture(scope="module")
def select(contacts):
    """select(frames, worlds, include, exclude): some of the set."""

    def made(frames: range = range(FRAMES), worlds=(), include=(), exclude=()) -> SelectedContacts:
        kept = selected.kept_items(contacts, include, exclude)
        return SelectedContacts(contacts, frames, selected.chosen_worlds(worlds, contacts), kept)

    return made


def made(layout: Layout) -> dict[str, np.ndarray]:
    """Every array of a layout, its pieces put together."""
    found = {}
    for array in layout.arrays:
        found[array.name] = np.concatenate(
            [*array.pieces(), np.zeros((0, *array.shape[1:]), array.dtype)]
        )
        assert (found[array.name].shape, found[array.name].dtype) == (
            array.shape,
            array.dtype,
        ), array.name
    return found


@pytest.mark.parametrize("layout", ALL, ids=lambda layout: layout.__name__)
def test_npz_reads_back(layout, select, contacts, tmp_path):
    """numpy.load, which takes no pickles, gives the arrays; written again the file has the same
    bytes."""
    picked = select(range(1, 6, 2), (0, 2))
    for name in ("a.npz", "b.npz"):
        with AtomicOutput(tmp_path / name) as output:
            arrays_module.write_npz(output, layout(picked).arrays)
            output.commit()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    expected = made(layout(picked))
    with np.load(tmp_path / "a.npz") as file:
        assert file.files == list(expected)
        for name in file.files:
            assert np.array_equal(file[name], expected[name]), name
            assert file[name].dtype == expected[name].dtype
        assert file["frame_index"].tolist() == [1, 3, 5]
        assert file["world"].tolist() == [0, 2]
        counts = np.concatenate([block.cell_counts for block in picked.blocks(())])
        assert np.diff(file["cell_start"]).tolist() == counts.tolist()
    if layout is npz.npz_layout:
        found = made(layout(select()))
        for name, values in BLOCK.columns.items():
            assert np.array_equal(found[name], values), name
            assert found[name].dtype == values.dtype
        assert found["shape_path"].tolist() == list(contacts.shapes.path)


def test_newtons_separation_is_the_distance(select):
    """dot(normal, point1 - point0) - margins is the distance, with the world points; here the
    points are in bodies."""
    model = small_model(WORLDS, forced=True)
    layout = newton.newton_layout(select())
    found = made(layout)
    for theirs, ours in (("point0", "offset0"), ("point1", "offset1"), ("normal", "normal")):
        assert np.array_equal(found[f"rigid_contact_{theirs}"], BLOCK.columns[ours])
    margins = found["rigid_contact_margin0"].astype(float) + found["rigid_contact_margin1"]
    pairs = zip(BLOCK.columns["shape0"], BLOCK.columns["shape1"], strict=True)
    assert np.allclose(margins, [pair_margin(model, int(a), int(b)) for a, b in pairs], rtol=1e-6)
    way = BLOCK.columns["point1"] - BLOCK.columns["point0"]
    separation = np.einsum("ni,ni->n", way, BLOCK.columns["normal"].astype(float)) - margins
    assert np.allclose(separation, BLOCK.columns["distance"], atol=1e-6)
    assert (
        found["rigid_contact_count"].tolist() == BLOCK.cell_counts.reshape(FRAMES, WORLDS).tolist()
    )
    assert found["shape_body"].tolist() == SHAPE_BODY.tolist()
    assert any("rigid_contact_offset0" in text for text in layout.left_out)
    assert "rigid_contact_offset0" not in found


@pytest.fixture
def without_margins(tmp_path):
    """All contacts of a set of version 1.0, which has no materials."""
    edited = made_up()
    edited.margin[:] = 0.0
    with ContactSet.open(edited.write(tmp_path / "a.h5")) as contacts:
        yield SelectedContacts(
            contacts, range(contacts.frame_count), np.arange(contacts.world_count), None
        )


def test_newtons_offsets_are_zero_without_margins(without_margins):
    layout = newton.newton_layout(without_margins)
    found = made(layout)
    assert layout.left_out == ()
    for name in ("rigid_contact_offset0", "rigid_contact_offset1"):
        shape = (without_margins.contact_count, 3)
        assert (found[name].any(), found[name].shape) == (False, shape)


def test_there_is_no_friction_without_materials(without_margins):
    of_genesis = genesis.genesis_layout(without_margins)
    assert "friction" not in made(of_genesis)
    assert "friction: a contact set of version 1.0 has no materials" in of_genesis.left_out
    with pytest.raises(InputError, match=r"version 1\.0"):
        mujoco_layout(without_margins, CompiledGeoms((), np.zeros(0, np.int32), {}))


def test_genesis(select, contacts):
    layout = genesis.genesis_layout(select())
    found = made(layout)
    for name, expected in (
        ("penetration", -BLOCK.columns["distance"]),
        ("normal", -BLOCK.columns["normal"]),  # from B to A
        ("geom_a", BLOCK.columns["shape0"]),
        ("link_b", SHAPE_BODY[BLOCK.columns["shape1"]]),
    ):
        assert np.array_equal(found[name], expected), name
    # In the middle: as far from one witness point as from the other, and on the line between them.
    one, other = (found["pos"] - BLOCK.columns[name] for name in ("point0", "point1"))
    assert np.allclose(one, -other, atol=1e-15)
    assert np.all(found["friction"] == 1.0), (
        "every shape of the set has friction 1, and the mean of them is 1"
    )
    assert "sol_params" not in found
    assert any(
        text.startswith("sol_params: the material rule 'combine'") for text in layout.left_out
    )
    assert found["n_contacts"].sum() == contacts.contact_count


def test_dart(select):
    """Manifolds are runs of a cell and a pair; their types those of their contacts; positive depth,
    normal 2 to 1."""
    found = made(dart.dart_layout(select()))
    cell = np.repeat(np.arange(FRAMES * WORLDS), BLOCK.cell_counts)
    keys = list(zip(cell, BLOCK.columns["shape0"], BLOCK.columns["shape1"], strict=True))
    runs = list(dict.fromkeys(keys))
    start = found["contact_start"]
    assert len(found["type"]) == len(runs) == len(start) - 1
    normal = -BLOCK.columns["normal"].astype(float)
    for m, key in enumerate(runs):
        rows = np.arange(start[m], start[m + 1])
        assert rows.tolist() == [k for k, other in enumerate(keys) if other == key]
        assert (found["object1"][m], found["object2"][m]) == key[1:]
        assert found["manifold_start"][key[0]] <= m < found["manifold_start"][key[0] + 1]
        kinds = set(BLOCK.columns["kind"][rows].tolist())
        assert found["type"][m] == (kinds.pop() if len(kinds) == 1 else 4)
        shared = normal[rows[0]] if (normal[rows] == normal[rows[0]]).all() else np.zeros(3)
        assert np.array_equal(found["shared_normal"][m], shared)
    assert np.array_equal(found["normal"], normal)
    assert np.array_equal(found["depth"], -BLOCK.columns["distance"].astype(float))
    assert {4, 0} <= set(found["type"].tolist())
    assert found["type_name"].tolist() == ["Point", "Edge", "Face", "Patch", "Unknown"]


def test_raisim(select):
    """Rows are axes: z the normal from B to A, right-handed, orthonormal; world vectors go into the
    frame."""
    found = made(raisim.raisim_layout(select()))
    frames = found["contact_frame"]
    normal = -BLOCK.columns["normal"].astype(float)
    assert np.allclose(frames @ np.swapaxes(frames, 1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(frames), 1.0)
    length = np.linalg.norm(normal, axis=1)
    assert np.allclose(
        np.einsum("nij,nj->ni", frames, normal), np.outer(length, [0.0, 0.0, 1.0]), atol=1e-12
    )
    assert np.array_equal(found["body_a"], SHAPE_BODY[BLOCK.columns["shape0"]])
    upright = raisim.contact_frames({"normal": np.array([[0, 0, -1], [0, 0, 1]], np.float32)})
    assert upright.tolist() == [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
    ]


def test_two_arrays_of_one_name_are_a_fault():
    with pytest.raises(ValueError, match="one name"):
        Layout((arrays_module.held("a", np.zeros(1)), arrays_module.held("a", np.zeros(2))))


def test_fewer_rows_than_were_said_are_a_fault(tmp_path):
    short = Array("a", np.dtype(np.int32), (3,), lambda: iter((np.zeros(2, np.int32),)))
    with pytest.raises(ValueError, match="2 rows"), AtomicOutput(tmp_path / "a.npz") as output:
        arrays_module.write_npz(output, [short])
    assert not list(tmp_path.iterdir())


SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="base" pos="0 0 .3"><freejoint name="free"/><geom name="base" type="capsule" size=".1 .2"/>
      <body name="arm" pos=".3 0 0">
        <joint name="yaw" type="hinge" axis="0 0 1"/><joint name="pitch" type="hinge" axis="0 1 0" pos="-.1 0 0"/>
        <geom name="arm" type="box" size=".15 .05 .04"/>
        <body name="wrist" pos=".25 0 0"><joint name="ball" type="ball"/>
          <geom name="wrist" type="ellipsoid" size=".08 .05 .06"/></body>
      </body>
    </body>
    <body name="cart" pos="1 .2 .2"><joint name="rail" type="slide" axis="1 0 0"/>
      <geom name="cart" type="sphere" size=".15"/></body>
    <body name="hand" mocap="true" pos="-.5 0 .3"><geom name="hand" type="sphere" size=".1"/></body>
  </worldbody>
</mujoco>
"""
JACOBIAN_FRAMES = 12
STEP = 1e-4


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The scene, its model, random joint positions [F, 1, nq], and its contact set with a gap that
    has every pair."""
    folder = tmp_path_factory.mktemp("jacobian")
    scene = folder / "scene.xml"
    motion = folder / "motion.h5"
    output = folder / "out.h5"
    scene.write_text(SCENE)
    model = mujoco.MjModel.from_xml_string(SCENE)
    rng = np.random.default_rng(0)
    qpos = np.tile(model.qpos0, (JACOBIAN_FRAMES, 1))
    for frame in range(JACOBIAN_FRAMES):
        mujoco.mj_integratePos(model, qpos[frame], rng.uniform(-0.6, 0.6, model.nv), 1.0)
    with TrajectoryWriter(motion, coordinate_count=model.nq) as writer:
        writer.append(
            np.arange(JACOBIAN_FRAMES) * 0.1, np.arange(JACOBIAN_FRAMES), joint_q=qpos[:, None]
        )
    contact = ContactOptions(gap=2.0)
    run(
        RunRequest(
            scenes=(str(scene),), trajectory=str(motion), output=str(output), contact=contact
        )
    )
    return folder, model, qpos


def matrix_of(folder, **options):
    output = folder / "jacobian.npz"
    request = (str(folder / "out.h5"), "jacobian", str(output), str(folder / "scene.xml"))
    result = export(ExportRequest(*request, force=True, **options))
    assert result.left_out == ()
    return scipy.sparse.load_npz(output).toarray(), np.load(output)


def test_rows_are_those_of_mj_jac(recorded):
    folder, model, qpos = recorded
    matrix, arrays = matrix_of(folder, trajectory=str(folder / "motion.h5"))
    assert arrays["velocity_name"].tolist()[5:9] == ["free/rz", "yaw", "pitch", "ball/rx"]
    data = mujoco.MjData(model)
    jacobians = [np.zeros((3, model.nv)) for _ in range(2)]
    with ContactSet.open(str(folder / "out.h5")) as contacts:
        assert matrix.shape == (contacts.contact_count, model.nv)
        (block,) = contacts.blocks()
        body = [model.geom(path).bodyid[0] for path in contacts.shapes.path]
    for row, frame in enumerate(np.repeat(np.arange(JACOBIAN_FRAMES), block.cell_counts)):
        data.qpos[:] = qpos[frame]
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        for side, jacobian in enumerate(jacobians):
            shape = block.columns[f"shape{side}"][row]
            point = block.columns[f"point{side}"][row]
            mujoco.mj_jac(model, data, jacobian, None, point.astype(float), body[shape])
        expected = block.normal[row].astype(float) @ (jacobians[1] - jacobians[0])
        assert matrix[row] == pytest.approx(expected, abs=1e-12)
    assert len(np.unique(block.columns["shape0"])) > 3


def test_a_selection_has_the_rows_of_its_contacts(recorded):
    folder, _, _ = recorded
    whole, arrays = matrix_of(folder)
    part, selected = matrix_of(folder, frames="3:9:2", include=("arm",))
    frame = np.repeat(np.arange(JACOBIAN_FRAMES), np.diff(arrays["cell_start"]))
    with ContactSet.open(str(folder / "out.h5")) as contacts:
        (block,) = contacts.blocks()
        arm = contacts.shapes.path.index("arm")
    kept = np.isin(frame, (3, 5, 7)) & (
        (block.columns["shape0"] == arm) | (block.columns["shape1"] == arm)
    )
    assert 0 < len(part) < len(whole)
    assert (part == whole[kept]).all()
    assert (selected["distance"] == block.distance[kept]).all()


def test_rows_do_not_depend_on_the_cells_of_a_strip(recorded, tmp_path, monkeypatch):
    """Between cells with contacts of the arm are some without."""
    folder, _, _ = recorded
    scene, motion = (str(folder / name) for name in ("scene.xml", "motion.h5"))
    output = str(tmp_path / "few.h5")
    contact = ContactOptions(gap=0.05)
    run(RunRequest(scenes=(scene,), trajectory=motion, output=output, contact=contact))
    found = []
    for strip in (1 << 16, 1):
        monkeypatch.setattr("collidecli.exporters.layouts.jacobian.STRIP", strip)
        target = tmp_path / f"{strip}.npz"
        export(ExportRequest(output, "jacobian", str(target), scene, motion, include=("arm",)))
        found.append(scipy.sparse.load_npz(target).toarray())
    used = np.flatnonzero(np.diff(np.load(target)["cell_start"]))
    assert 1 < len(used) <= used[-1] - used[0]
    assert (found[0] == found[1]).all()


def test_a_scene_at_rest_has_its_initial_joint_positions(recorded, tmp_path):
    folder, model, _ = recorded
    output = str(tmp_path / "rest.h5")
    target = tmp_path / "rest.npz"
    run(
        RunRequest(
            scenes=(str(folder / "scene.xml"),), output=output, contact=ContactOptions(gap=2.0)
        )
    )
    export(ExportRequest(output, "jacobian", str(target), str(folder / "scene.xml")))
    matrix = scipy.sparse.load_npz(target).toarray()
    with ContactSet.open(output) as contacts:
        (block,) = contacts.blocks()
        path = contacts.shapes.path
    # The cart is a sphere on a rail along x: its distance from the floor does not change, from the
    # base by the normal.
    rail = list(np.load(target)["velocity_name"]).index("rail")
    for row in range(len(matrix)):
        names = [path[block.columns[f"shape{side}"][row]] for side in (0, 1)]
        sign = {"cart": (-1.0, 1.0)[names.index("cart")]} if "cart" in names else {"cart": 0.0}
        assert matrix[row, rail] == pytest.approx(sign["cart"] * block.normal[row, 0], abs=1e-7)
    assert matrix.shape == (len(block.distance), model.nv)


def test_joints_by_name_give_the_same_jacobian(recorded, tmp_path):
    """The matrix is that of the joint positions of MuJoCo, which have the same poses."""
    folder, model, qpos = recorded
    names = ["yaw", "pitch", *(f"ball:{axis}" for axis in "xyzw")]
    root, yaw, pitch, ball, rail = (
        model.joint(name).qposadr[0] for name in ("free", "yaw", "pitch", "ball", "rail")
    )
    joints = qpos[:, [yaw, pitch, ball + 1, ball + 2, ball + 3, ball]]
    moved = qpos.copy()
    moved[:, rail] = model.qpos0[rail]
    with TrajectoryWriter(tmp_path / "q.h5", coordinate_count=model.nq) as writer:
        writer.append(
            np.arange(JACOBIAN_FRAMES) * 0.1, np.arange(JACOBIAN_FRAMES), joint_q=moved[:, None]
        )
    arrays = {
        "root_pos": qpos[:, root : root + 3],
        "root_quat_wxyz": qpos[:, root + 3 : root + 7],
        "dof_pos": joints,
    }
    np.savez(tmp_path / "named.npz", **arrays, joint_names=np.array(names), fps=np.array(10.0))
    found = []
    scene = str(folder / "scene.xml")
    for name in ("q.h5", "named.npz"):
        output = str(tmp_path / f"{name}.out.h5")
        target = str(tmp_path / f"{name}.m.npz")
        motion = str(tmp_path / name)
        run(
            RunRequest(
                scenes=(scene,), trajectory=motion, output=output, contact=ContactOptions(gap=2.0)
            )
        )
        export(ExportRequest(output, "jacobian", target, scene, motion))
        found.append(scipy.sparse.load_npz(target).toarray())
    assert np.abs(found[0]).max() >= 1.0
    np.testing.assert_allclose(found[1], found[0], atol=1e-12)


def test_recordings_of_body_poses_are_refused(recorded):
    folder = recorded[0]
    scene = str(recorded[0] / "scene.xml")
    output = str(folder / "poses.contacts.h5")
    motion = str(folder / "poses.h5")
    poses = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (2, 1, 5, 1))
    with TrajectoryWriter(motion, body_names=("base", "arm", "wrist", "cart", "hand")) as writer:
        writer.append(np.arange(2.0), np.arange(2), body_q=poses)
    run(RunRequest(scenes=(scene,), trajectory=motion, output=output))
    target = folder / "none.npz"
    with pytest.raises(
        InputError, match=r"(?s)the recording has body poses.*collide record --joint"
    ):
        export(ExportRequest(output, "jacobian", str(target), scene, motion))
    with pytest.raises(InputError, match="hashes differ"):
        export(ExportRequest(output, "jacobian", str(target), scene, str(folder / "motion.h5")))
    assert not target.exists()


PICK = (range(1, 7, 2), (0, 2))


def write(path, columns, blocks, table, *about):
    with AtomicOutput(path) as output:
        with table(output, columns, *about) as append:
            for block in blocks:
                append(block)
        output.commit()


def write_rows(path, picked, table, *about):
    rows = ContactRows(picked)
    write(path, rows.columns, rows.blocks(), table, *about)


@pytest.fixture(scope="module")
def written(select, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    picked = select(*PICK)
    write_rows(folder / "a.csv", picked, csv_table)
    write_rows(folder / "a.parquet", picked, parquet_table, {"scene": "made_up.xml"})
    return folder


@pytest.fixture(scope="module")
def rows(written):
    with (written / "a.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_csv_reads_back_to_the_bit(rows, select, contacts):
    expected = list(
        select(*PICK).blocks(
            ("shape0", "shape1", "distance", "normal", "point0", "feature1", "kind")
        )
    )
    columns = {
        name: np.concatenate([b.columns[name] for b in expected]) for name in expected[0].columns
    }
    assert len(rows) == len(columns["shape0"])
    paths = contacts.shapes.path
    assert [row["shape0"] for row in rows] == [paths[k] for k in columns["shape0"]]
    assert [row["kind"] for row in rows] == [
        ("point", "edge", "face", "patch")[k] for k in columns["kind"]
    ]
    assert [int(row["feature1"]) for row in rows] == columns["feature1"].tolist()
    for name, values in (
        ("distance", columns["distance"]),
        ("normal_z", columns["normal"][:, 2]),
        ("point0_y", columns["point0"][:, 1]),
    ):
        assert np.array_equal(np.array([values.dtype.type(row[name]) for row in rows]), values), (
            name
        )
    picked = select(*PICK)
    counts = np.concatenate([b.cell_counts for b in picked.blocks(())]).reshape(3, 2)
    expected = [
        (f, w)
        for i, f in enumerate(PICK[0])
        for j, w in enumerate(PICK[1])
        for _ in range(counts[i, j])
    ]
    assert [(int(row["frame"]), int(row["world"])) for row in rows] == expected
    assert all(int(row["step"]) == 5 * int(row["frame"]) for row in rows)
    assert all(float(row["time"]) == contacts.time[int(row["frame"])] for row in rows)
    shapes = zip(contacts.shapes.path, contacts.shapes.body, strict=True)
    body = {path: "" if k < 0 else f"body{k}" for path, k in shapes}
    assert all(
        (row["body0"], row["body1"]) == (body[row["shape0"]], body[row["shape1"]]) for row in rows
    )


def test_parquet_is_the_same_table(rows, written):
    table = parquet.read_table(written / "a.parquet")
    assert table.column_names == list(rows[0])
    for name in table.column_names:
        values = table[name].to_pylist()
        kind = str if isinstance(values[0], str) else (int if isinstance(values[0], int) else float)
        texts = [row[name] for row in rows]
        single = table.schema.field(name).type == "float"
        assert (
            [np.float32(t) for t in texts] == values
            if single
            else [kind(t) for t in texts] == values
        ), name
    assert table.schema.field("distance").metadata == {b"unit": b"m"}
    assert table.schema.metadata[b"scene"] == b"made_up.xml"


def test_blocks_do_not_show(select, monkeypatch, written, tmp_path):
    monkeypatch.setattr(flat_tables, "CSV_LINES", 3)
    write_rows(tmp_path / "a.csv", select(*PICK), csv_table)
    assert (tmp_path / "a.csv").read_bytes() == (written / "a.csv").read_bytes()
    (tmp_path / "a.csv").unlink()


def test_names_that_need_quotes_have_them(monkeypatch, tmp_path):
    monkeypatch.setattr(flat_tables, "CSV_LINES", 3)
    edited = made_up()
    edited.path = ['a,"b"', "two\nlines", " spaced", "plain", "e"]
    with ContactSet.open(edited.write(tmp_path / "a.h5")) as contacts:
        write_rows(
            tmp_path / "a.csv", SelectedContacts(contacts, range(6), np.arange(3), None), csv_table
        )
    with (tmp_path / "a.csv").open(newline="", encoding="utf-8") as file:
        assert {row["shape0"] for row in csv.DictReader(file)} <= set(edited.path)


def test_every_number_is_spelt_as_numpy_spells_it(tmp_path):
    """Equal numbers are spelt once: among them are 0 and -0, which compare equal, and NaN, which
    does not."""
    random = np.random.default_rng(5)
    bits = random.integers(0, 1 << 63, 3000, dtype=np.uint64).view(np.float64)
    values = np.concatenate(
        [bits, 10.0 ** random.uniform(-20, 20, 3000), [0.0, -0.0, 1e16, 1e-4, np.inf, np.nan] * 2]
    )
    with np.errstate(over="ignore"):
        held = {"double": values, "single": values.astype(np.float32), "sign": values > 1.0}
    columns = [TableColumn(name, column.dtype) for name, column in held.items()]
    write(tmp_path / "a.csv", columns, [held], csv_table)
    lines = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()[1:]]
    expected = zip(
        values.astype(str),
        held["single"].astype(str),
        np.where(held["sign"], "true", "false"),
        strict=True,
    )
    assert lines == [list(line) for line in expected]


def test_no_value_is_an_empty_cell_or_a_null(tmp_path):
    held = {
        "end": np.array([0.5, np.nan]),
        "known": np.array([True, False]),
        "who": np.array([1, 0]),
    }
    columns = (
        TableColumn("end", np.dtype(np.float64), "s", nan_is_none=True),
        TableColumn("known", np.dtype(bool)),
        TableColumn("who", np.dtype(np.int64), words=("a", "b")),
    )
    for name, table in (("a.csv", csv_table), ("a.parquet", parquet_table)):
        write(tmp_path / name, columns, [held], table)
    assert (tmp_path / "a.csv").read_text() == "end,known,who\n0.5,true,b\n,false,a\n"
    read = parquet.read_table(tmp_path / "a.parquet")
    assert read.to_pydict() == {"end": [0.5, None], "known": [True, False], "who": ["b", "a"]}


NAMES = ("shape0", "shape1", "distance", "normal")
FRAME_PICKS = (range(FRAMES), range(2, 5), range(0, FRAMES, 3), range(6, 7))
WORLD_PICKS = ((), (1,), (2, 0), (0, 1, 1))
PAIR_PICKS = (((), ()), (("b*",), ()), ((), ("pin",)), (("ground", "egg"), ("bøx",)))


@pytest.mark.parametrize("max_rows", [1, 20, 10**6])
@pytest.mark.parametrize(("include", "exclude"), PAIR_PICKS)
def test_rows_of_every_pick(select, contacts, include, exclude, max_rows):
    shapes = contacts.shapes
    bodies = ["" if row < 0 else contacts.body_path[row] for row in shapes.body]
    names = list(zip(shapes.path, bodies, strict=True))
    all_cells = np.repeat(np.arange(FRAMES * WORLDS), BLOCK.cell_counts)
    for frames, worlds in itertools.product(FRAME_PICKS, WORLD_PICKS):
        picked = select(frames, worlds, include, exclude)
        wanted_worlds = sorted(set(worlds)) or list(range(WORLDS))
        cells = []
        rows = []
        for k, (frame, world) in enumerate(itertools.product(frames, wanted_worlds)):
            for row in np.flatnonzero(all_cells == frame * WORLDS + world):
                pair = [names[BLOCK.columns[name][row]] for name in ("shape0", "shape1")]
                met = [
                    any(fnmatchcase(path, glob) for path in both for glob in include)
                    for both in pair
                ]
                out = [
                    any(fnmatchcase(path, glob) for path in both for glob in exclude)
                    for both in pair
                ]
                if (any(met) or not include) and not any(out):
                    cells.append(k)
                    rows.append(row)
        found = list(picked.blocks(NAMES, max_rows))
        assert [b.first_cell for b in found] == np.cumsum(
            [0, *(len(b.cell_counts) for b in found)]
        )[:-1].tolist()
        counts = np.concatenate([b.cell_counts for b in found])
        assert counts.tolist() == np.bincount(cells, minlength=picked.cell_count).tolist()
        assert picked.contact_count == len(rows)
        for name in NAMES:
            values = np.concatenate([b.columns[name] for b in found])
            assert np.array_equal(values, BLOCK.columns[name][rows]), name
        assert picked.step.tolist() == [5 * frame for frame in frames]
