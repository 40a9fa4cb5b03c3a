"""Every rule of the format, broken one at a time, is found; a good file has no finding."""

from __future__ import annotations

from collections.abc import Callable

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.tables import ContactBlock
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

MODEL = small_model(forced=True)
FRAMES = 12


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.h5"
    write_contact_set(made, MODEL, made_up_block(MODEL, FRAMES), chunk_rows=50)
    return made


def words(path) -> str:
    return "\n".join(str(finding) for finding in check_file(path))


def edit(path, change: Callable[[h5py.File], object]) -> None:
    with h5py.File(path, "r+") as file:
        change(file)


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_a_good_file_has_no_finding(tmp_path, float_type, scale):
    """At any distance from the origin, with witness points rounded to the file's float type."""
    block = made_up_block(MODEL, FRAMES)
    moved = dict(block.columns)
    for name in ("point0", "point1"):
        moved[name] = (moved[name] + scale * np.array([1.0, -2.0, 0.5])).astype(float_type)
    write_contact_set(tmp_path / "a.h5", MODEL, ContactBlock(0, block.cell_counts, moved))
    assert check_file(tmp_path / "a.h5") == []


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        check_file(tmp_path / "none.h5")
    with pytest.raises(InputError, match="is a folder"):
        ContactSet.open(tmp_path)


def replace(file: h5py.File, name: str, values) -> None:
    del file[name]
    file[name] = values


def broken() -> bytes:
    """Text that is not UTF-8."""
    return b"a\xff.xml"


HEADER_CASES = {
    "the format is collide-trajectory": lambda f: f.attrs.__setitem__("format", "collide-trajectory"),
    "no root attribute format": lambda f: f.attrs.__delitem__("format"),
    "version 3.0": lambda f: f.attrs.__setitem__("format_version", np.int32([3, 0])),
    "format_version is not two integers": lambda f: f.attrs.__setitem__("format_version", "1.0"),
    "incomplete": lambda f: f.attrs.__delitem__("complete"),
    "root attribute scene is missing": lambda f: f.attrs.__delitem__("scene"),
    "config is not JSON": lambda f: f.attrs.__setitem__("config", "{"),
    "/model/shape/gap: the dataset is missing": lambda f: f.__delitem__("/model/shape/gap"),
    "/model/shape/body: the type is int64, not int32": lambda f: replace(f, "/model/shape/body", np.zeros(5, np.int64)),
    "/model/shape/type: the type is int32, not string": lambda f: replace(f, "/model/shape/type", np.zeros(5, "i4")),
    "/rigid_contacts/distance: the dataset is missing": lambda f: f.__delitem__("/rigid_contacts/distance"),
    "/rigid_contacts/normal: the shape is": lambda f: replace(f, "/rigid_contacts/normal", np.zeros((9, 2), "f4")),
    "/rigid_contacts/kind: it has 3 rows": lambda f: replace(f, "/rigid_contacts/kind", np.zeros(3, "u1")),
    "/time/time: it has 2 rows for 12 frames": lambda f: replace(f, "/time/time", np.zeros(2)),
    "12 frames of 4 worlds": lambda f: replace(f, "/model/world/template", np.zeros(4, np.int32)),
}


ATTRIBUTE_CASES = {
    "config is not JSON: ": lambda f: f.attrs.__setitem__("config", "[" * 60_000),
    "config has no entries": lambda f: f.attrs.__setitem__("config", "{}"),
    "the root attribute scene_sha256 is no SHA-256": lambda f: f.attrs.__setitem__("scene_sha256", "0" * 64),
    "the root attribute content_sha256 is no SHA-256": lambda f: f.attrs.__setitem__("content_sha256", "zz"),
    "the root attribute scene is not UTF-8": lambda f: f.attrs.create("scene", broken(), dtype=h5py.string_dtype()),
    "attribute gap_rule is 'zzz'; known": lambda f: f["model"].attrs.__setitem__("gap_rule", "zzz"),
    "attribute up_axis is 'Q'; known": lambda f: f["model"].attrs.__setitem__("up_axis", "Q"),
    "attribute material_rule is 'none'": lambda f: f["model"].attrs.__setitem__("material_rule", "none"),
    "attribute up_axis is missing": lambda f: f["model"].attrs.__delitem__("up_axis"),
    "attribute device is not UTF-8": lambda f: f["timing"].attrs.create("device", broken(), dtype=h5py.string_dtype()),
    "attribute unit is 'mm'; known values: 'm'": lambda f: f["rigid_contacts/distance"].attrs.__setitem__("unit", "mm"),
}


@pytest.mark.parametrize("expected", ATTRIBUTE_CASES)
def test_attributes(path, expected):
    edit(path, ATTRIBUTE_CASES[expected])
    assert expected in words(path)


@pytest.mark.parametrize("expected", HEADER_CASES)
def test_header_and_types(path, expected):
    edit(path, HEADER_CASES[expected])
    assert expected in words(path)
    if "/" not in expected or "missing" in expected:
        with pytest.raises(InputError):
            ContactSet.open(path)


def test_the_reader_says_which_format_it_knows(path):
    edit(path, HEADER_CASES["version 3.0"])
    with pytest.raises(InputError) as caught:
        ContactSet.open(path)
    assert "this program reads collide-contacts 1.x and 2.x" in str(caught.value)


def test_a_newer_minor_version_and_unknown_datasets_are_read(path):
    def widen(file: h5py.File) -> None:
        file.attrs["format_version"] = np.int32([1, 7])
        file["/later/thing"] = np.zeros(3)

    edit(path, widen)
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 7)


def put(name: str, row: int, value) -> Callable[[h5py.File], object]:
    return lambda file: file[name].__setitem__(row, value)


TABLE_CASES = {
    "/time/time, row 3: is not finite": put("/time/time", 3, np.nan),
    "/time/time, row 3: is earlier": put("/time/time", 3, -1.0),
    "/model/shape/type, row 2: is not a shape type": put("/model/shape/type", 2, "torus"),
    "/model/shape/body, row 1: is no row of /model/body": put("/model/shape/body", 1, 4),
    "/model/shape/template, row 1: is below -1": put("/model/shape/template", 1, -2),
    "/model/shape/template, row 4: is the template of no world": put("/model/shape/template", 4, 1),
    "/model/shape/margin, row 0: is not finite": put("/model/shape/margin", 0, np.inf),
    "/model/forced_pair/shape1, row 1: is no row": put("/model/forced_pair/shape1", 1, 5),
    "/model/forced_pair/shape0, row 0: is not less": put("/model/forced_pair/shape0", 0, 2),
    "cell_start: begins with 1": put("/rigid_contacts/cell_start", 0, 1),
    "cell_start, entry 5: is less": put("/rigid_contacts/cell_start", 5, 0),
    "cell_start: ends with 1000": put("/rigid_contacts/cell_start", -1, 1000),
}


@pytest.mark.parametrize("expected", TABLE_CASES)
def test_tables(path, expected):
    edit(path, TABLE_CASES[expected])
    found = words(path)
    assert expected in found
    assert "content hash does not match" in found


def changed_block(change: Callable[[dict[str, np.ndarray], int], object]) -> ContactBlock:
    block = made_up_block(MODEL, FRAMES)
    columns = {name: values.copy() for name, values in block.columns.items()}
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    row = int(start[np.flatnonzero(block.cell_counts >= 3)[3]]) + 1  # the second of at least three in its cell
    change(columns, row)
    return ContactBlock(0, block.cell_counts, columns)


def swap(columns: dict[str, np.ndarray], row: int) -> None:
    for values in columns.values():
        values[[row, row + 1]] = values[[row + 1, row]]


def repeat(columns: dict[str, np.ndarray], row: int) -> None:
    for values in columns.values():
        values[row] = values[row - 1]


def shift(columns: dict[str, np.ndarray], row: int, name: str, amount: float) -> None:
    columns[name][row] += amount


ROW_CASES = {
    "a shape is no row of /model/shape": lambda c, r: c["shape1"].__setitem__(r, 5),
    "shape0 is not less than shape1": lambda c, r: c["shape0"].__setitem__(r, c["shape1"][r]),
    "rows are out of order": swap,
    "each row once": repeat,
    "kind is not 0 to 3": lambda c, r: c["kind"].__setitem__(r, 4),
    "distance is not finite": lambda c, r: c["distance"].__setitem__(r, np.nan),
    "offset1 is not finite": lambda c, r: c["offset1"].__setitem__((r, 2), np.inf),
    "the normal has not unit length": lambda c, r: c["normal"].__setitem__(r, c["normal"][r] * np.float32(1.00001)),
    "is not distance + margin0 + margin1": lambda c, r: shift(c, r, "distance", 2e-6),
    "dot(point1 - point0, normal)": lambda c, r: c["normal"].__setitem__(r, -c["normal"][r]),
    "the distance is not less than the pair's gap": lambda c, r: shift(c, r, "distance", 0.6),
}


@pytest.mark.parametrize("expected", ROW_CASES)
def test_rows(tmp_path, expected):
    write_contact_set(tmp_path / "a.h5", MODEL, changed_block(ROW_CASES[expected]))
    found = words(tmp_path / "a.h5")
    assert expected in found
    assert "frame " in found
    assert "content hash" not in found


def test_a_shape_of_another_world(tmp_path):
    model = small_model()
    block = made_up_block(model, FRAMES)
    model.world_template[1] = 1
    write_contact_set(tmp_path / "a.h5", model, block)
    assert "world 1, shapes" in words(tmp_path / "a.h5")
    assert "a shape is not in this world" in words(tmp_path / "a.h5")


def test_a_forced_pairs_own_margin_counts(path):
    edit(path, put("/model/forced_pair/margin", 0, np.nan))
    assert "shapes 1 and 2: dot(point1 - point0, normal) is not" in words(path)


def test_a_damaged_chunk_names_its_column(path):
    with h5py.File(path) as file:
        chunk = file["/rigid_contacts/point1"].id.get_chunk_info(1)
    data = bytearray(path.read_bytes())
    data[chunk.byte_offset + 9] ^= 64
    path.write_bytes(data)
    assert "/rigid_contacts/point1, rows 0 to" in words(path)
    assert "checksum does not match" in words(path)
    with ContactSet.open(path) as contacts, pytest.raises(InputError, match="checksum"):
        contacts.column("point1")


def test_a_changed_value_breaks_the_content_hash(path):
    edit(path, lambda file: file["/rigid_contacts/offset0"].__setitem__((3, 1), 0.125))
    assert words(path) == f"{path}: the content hash does not match: the data was changed after it was written"


def test_timing_may_change(path):
    edit(path, lambda file: file.create_dataset("/timing/more", data=[1.0]))
    assert check_file(path) == []


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_truncated_file(path, kept):
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    expected = "not an HDF5 file" if kept == 0.0 else "truncated"
    assert expected in words(path)
    with pytest.raises(InputError, match=expected):
        ContactSet.open(path)


def test_data_outside_the_file_is_refused(path, tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["x"] = np.zeros(3)

    def outside(file: h5py.File) -> None:
        file["/later/x"] = h5py.ExternalLink("other.h5", "/x")

    edit(path, outside)
    with pytest.raises(InputError, match="links to another file"):
        ContactSet.open(path)

    def stored(file: h5py.File) -> None:
        del file["/later"]
        file.create_dataset("/y", (3,), "f8", external=[(str(tmp_path / "raw"), 0, 24)])

    edit(path, stored)
    with pytest.raises(InputError, match="lies in another file"):
        ContactSet.open(path)

    def virtual(file: h5py.File) -> None:
        del file["/y"]
        layout = h5py.VirtualLayout((3,), "f8")
        layout[:] = h5py.VirtualSource("other.h5", "x", (3,))
        file.create_virtual_dataset("/z", layout)

    edit(path, virtual)
    with pytest.raises(InputError, match="lies in another file"):
        ContactSet.open(path)


def test_a_group_that_holds_itself(path):
    edit(path, lambda file: file["/time"].__setitem__("again", file["/"]))
    with ContactSet.open(path) as contacts:
        assert contacts.frame_count == FRAMES


def test_damage_anywhere_is_told_in_words_and_in_data_always_found(path):
    """One byte changed at a time. Outside the data nothing may depend on it; no error but a finding may come of it."""
    original = path.read_bytes()
    in_data: set[int] = set()
    with h5py.File(path) as file:
        for name in file["/rigid_contacts"]:
            dataset = file["/rigid_contacts"][name].id
            chunks = [dataset.get_chunk_info(index) for index in range(dataset.get_num_chunks())]
            in_data.update(i for chunk in chunks for i in range(chunk.byte_offset, chunk.byte_offset + chunk.size))
    rng = np.random.default_rng(0)
    places = [*rng.integers(0, len(original), 40), *rng.choice(sorted(in_data), 20)]
    for place in places:
        data = bytearray(original)
        data[place] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        found = check_file(path)
        assert found or place not in in_data
