"""Each layout against its definition, written down again here; and the NPZ that holds it."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.exporters import layouts
from collidecli.exporters.arrays import Array, Layout, held, write_npz
from collidecli.exporters.selection import SelectedContacts
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_edits import made_up
from tests.support.contact_sets import pair_margin, small_model
from tests.unit.exporters.conftest import FRAMES, WORLDS

SHAPE_BODY = np.array([-1, 0, 1, 2, 3])
ALL = (layouts, layouts, layouts, layouts, layouts)


@pytest.mark.parametrize("layout", ALL, ids=lambda m: m.__name__.rpartition(".")[2])
def test_npz_reads_back(layout, select, made, tmp_path):
    """numpy.load, which takes no pickles, gives the arrays; written again the file has the same bytes."""
    picked = select(range(1, 6, 2), (0, 2))
    for name in ("a.npz", "b.npz"):
        with AtomicOutput(tmp_path / name) as output:
            write_npz(output, layout.layout(picked).arrays)
            output.commit()
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    expected = made(layout.layout(picked))
    with np.load(tmp_path / "a.npz") as file:
        assert file.files == list(expected)
        for name in file.files:
            assert np.array_equal(file[name], expected[name]), name
            assert file[name].dtype == expected[name].dtype
        assert file["frame_index"].tolist() == [1, 3, 5]
        assert file["world"].tolist() == [0, 2]
        assert (
            np.diff(file["cell_start"]).tolist()
            == np.concatenate([block.cell_counts for block in picked.blocks(())]).tolist()
        )


def test_columns_are_the_sets_own(select, made, block, contacts):
    found = made(layouts.columns_layout(select()))
    for name, values in block.columns.items():
        assert np.array_equal(found[name], values), name
        assert found[name].dtype == values.dtype
    assert found["shape_path"].tolist() == list(contacts.shapes.path)
    assert found["cell_start"].tolist() == contacts.cell_start().tolist()


def test_newtons_separation_and_surfaces(select, made, block):
    """dot(normal, point1 - point0) - margins is the distance, with the world points; here the points are in bodies."""
    model = small_model(WORLDS, forced=True)
    layout = layouts.newton_layout(select())
    found = made(layout)
    assert np.array_equal(found["rigid_contact_point0"], block.columns["offset0"])
    assert np.array_equal(found["rigid_contact_point1"], block.columns["offset1"])
    assert np.array_equal(found["rigid_contact_normal"], block.columns["normal"])
    margins = found["rigid_contact_margin0"].astype(float) + found["rigid_contact_margin1"]
    pairs = zip(block.columns["shape0"], block.columns["shape1"], strict=True)
    assert np.allclose(margins, [pair_margin(model, int(a), int(b)) for a, b in pairs], rtol=1e-6)
    way = block.columns["point1"] - block.columns["point0"]
    separation = np.einsum("ni,ni->n", way, block.columns["normal"].astype(float)) - margins
    assert np.allclose(separation, block.columns["distance"], atol=1e-6)
    assert found["rigid_contact_count"].tolist() == block.cell_counts.reshape(FRAMES, WORLDS).tolist()
    assert found["shape_body"].tolist() == SHAPE_BODY.tolist()
    assert any("rigid_contact_offset0" in text for text in layout.left_out)
    assert "rigid_contact_offset0" not in found


def test_newtons_offsets_without_margins(tmp_path, made):
    edited = made_up()
    edited.margin[:] = 0.0
    with ContactSet.open(edited.write(tmp_path / "a.h5")) as contacts:
        picked = SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)
        layout = layouts.newton_layout(picked)
        found = made(layout)
    assert layout.left_out == ()
    for name in ("rigid_contact_offset0", "rigid_contact_offset1"):
        assert not found[name].any()
        assert found[name].shape == (picked.contact_count, 3)


def test_genesis(select, made, block, contacts):
    layout = layouts.genesis_layout(select())
    found = made(layout)
    assert np.array_equal(found["penetration"], -block.columns["distance"])
    assert np.array_equal(found["normal"], -block.columns["normal"]), "from B to A"
    assert np.array_equal(found["geom_a"], block.columns["shape0"])
    assert np.array_equal(found["link_b"], SHAPE_BODY[block.columns["shape1"]])
    # In the middle: as far from one witness point as from the other, and on the line between them.
    one, other = (found["pos"] - block.columns[name] for name in ("point0", "point1"))
    assert np.allclose(one, -other, atol=1e-15)
    assert np.all(found["friction"] == 1.0), "every shape of the set has friction 1, and the mean of them is 1"
    assert "sol_params" not in found
    assert any(text.startswith("sol_params: the material rule 'combine'") for text in layout.left_out)
    assert found["n_contacts"].sum() == contacts.contact_count


def test_without_surfaces_friction_is_left_out_by_name(tmp_path, made):
    with ContactSet.open(made_up().write(tmp_path / "old.h5")) as contacts:
        picked = SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)
        layout = layouts.genesis_layout(picked)
        assert "friction" not in made(layout)
        assert "friction: a contact set of version 1.0 has no materials" in layout.left_out
        with pytest.raises(InputError, match=r"version 1\.0"):
            layouts.mujoco_layout(picked, layouts.CompiledGeoms((), np.zeros(0, np.int32), {}))


def test_dart(select, made, block):
    """Manifolds are runs of a cell and a pair; their types those of their contacts; positive depth, normal 2 to 1."""
    found = made(layouts.dart_layout(select()))
    cell = np.repeat(np.arange(FRAMES * WORLDS), block.cell_counts)
    keys = list(zip(cell, block.columns["shape0"], block.columns["shape1"], strict=True))
    runs = list(dict.fromkeys(keys))
    start = found["contact_start"]
    assert len(found["type"]) == len(runs) == len(start) - 1
    normal = -block.columns["normal"].astype(float)
    for m, key in enumerate(runs):
        rows = np.arange(start[m], start[m + 1])
        assert rows.tolist() == [k for k, other in enumerate(keys) if other == key]
        assert (found["object1"][m], found["object2"][m]) == key[1:]
        assert found["manifold_start"][key[0]] <= m < found["manifold_start"][key[0] + 1]
        kinds = set(block.columns["kind"][rows].tolist())
        assert found["type"][m] == (kinds.pop() if len(kinds) == 1 else 4)
        shared = normal[rows[0]] if (normal[rows] == normal[rows[0]]).all() else np.zeros(3)
        assert np.array_equal(found["shared_normal"][m], shared)
    assert np.array_equal(found["normal"], normal)
    assert np.array_equal(found["depth"], -block.columns["distance"].astype(float))
    assert {4, 0} <= set(found["type"].tolist())
    assert found["type_name"].tolist() == ["Point", "Edge", "Face", "Patch", "Unknown"]


def test_raisim(select, made, block):
    """Rows are axes: z the normal from B to A, right-handed, orthonormal; world vectors go into the frame."""
    found = made(layouts.raisim_layout(select()))
    frames, normal = found["contact_frame"], -block.columns["normal"].astype(float)
    assert np.allclose(frames @ np.swapaxes(frames, 1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(frames), 1.0)
    length = np.linalg.norm(normal, axis=1)
    assert np.allclose(np.einsum("nij,nj->ni", frames, normal), np.outer(length, [0.0, 0.0, 1.0]), atol=1e-12)
    assert np.array_equal(found["body_a"], SHAPE_BODY[block.columns["shape0"]])
    upright = layouts.contact_frames({"normal": np.array([[0, 0, -1], [0, 0, 1]], np.float32)})
    assert upright.tolist() == [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 0, 0], [0, -1, 0], [0, 0, -1]],
    ]


def test_two_arrays_of_one_name_are_a_fault():
    with pytest.raises(ValueError, match="one name"):
        Layout((held("a", np.zeros(1)), held("a", np.zeros(2))))


def test_fewer_rows_than_were_said_are_a_fault(tmp_path):
    short = Array("a", np.dtype(np.int32), (3,), lambda: iter((np.zeros(2, np.int32),)))
    with pytest.raises(ValueError, match="2 rows"), AtomicOutput(tmp_path / "a.npz") as output:
        write_npz(output, [short])
    assert not list(tmp_path.iterdir())
