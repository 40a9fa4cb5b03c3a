"""Faults of contact sets that check and readers find, golden files, and the hash of blocks."""

import shutil
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.content_hash import HASHED_ROWS, BlockDigest, content_hash
from tests.support import contact_sets as sets

MODEL = sets.small_model(forced=True)
FRAMES = 12


@pytest.fixture(scope="module")
def good(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("good") / "a.h5"
    sets.write_contact_set(made, MODEL, sets.made_up_block(MODEL, FRAMES), chunk_rows=50)
    return made


@pytest.fixture
def path(good, tmp_path) -> Path:
    return Path(shutil.copyfile(good, tmp_path / "a.h5"))


Change = Callable[[h5py.File], object]


def words(path) -> str:
    return "\n".join(str(finding) for finding in check_file(path))


def edit(path, *changes: Change) -> None:
    with h5py.File(path, "r+") as file:
        for change in changes:
            change(file)


def put(name: str, row: int, value) -> Change:
    return lambda file: file[name].__setitem__(row, value)


def drop(name: str) -> Change:
    return lambda file: file.__delitem__(name)


def attribute(name: str, value, at: str = "/") -> Change:
    """A change of an attribute; None deletes it."""
    if value is None:
        return lambda file: file[at].attrs.__delitem__(name)
    return lambda file: file[at].attrs.create(
        name, value, dtype=h5py.string_dtype() if value is NOT_UTF8 else None
    )


def replaced(name: str, values) -> Change:
    def change(file: h5py.File) -> None:
        unit = file[name].attrs.get("unit") if name in file else None
        del file[name]
        file[name] = values
        if unit is not None:
            file[name].attrs["unit"] = unit

    return change


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e5])
def test_a_good_file_has_no_finding(tmp_path, float_type, scale):
    """At any distance from the origin, with witness points rounded to the file's float type."""
    block = sets.made_up_block(MODEL, FRAMES)
    moved = dict(block.columns)
    for name in ("point0", "point1"):
        moved[name] = (moved[name] + scale * np.array([1.0, -2.0, 0.5])).astype(float_type)
    sets.write_contact_set(tmp_path / "a.h5", MODEL, ContactBlock(0, block.cell_counts, moved))
    assert check_file(tmp_path / "a.h5") == []


NOT_UTF8 = b"a\xff.xml"
HEADER_CASES = {
    "the format is collide-trajectory": attribute("format", "collide-trajectory"),
    "no root attribute format": attribute("format", None),
    "version 3.0": attribute("format_version", np.int32([3, 0])),
    "format_version is not two integers": attribute("format_version", "1.0"),
    "incomplete": attribute("complete", None),
    "root attribute scene is missing": attribute("scene", None),
    "config is not JSON": attribute("config", "{"),
    "config is not JSON: ": attribute("config", "[" * 60_000),
    "config is no JSON object": attribute("config", "7.5"),
    "config is no JSON object ": attribute("config", "null"),
    "config has no entries": attribute("config", "{}"),
    "the root attribute scene_sha256 is no SHA-256": attribute("scene_sha256", "0" * 64),
    "the root attribute trajectory_sha256 is no SHA-256": attribute(
        "trajectory_sha256", "\x1b[2J\x07\n\r"
    ),
    "the root attribute content_sha256 is no SHA-256": attribute("content_sha256", "zz"),
    "the root attribute content_sha256 is no SHA-256 ": attribute("content_sha256", "AB" * 32),
    "attribute gap_rule is 'zzz'; known": attribute("gap_rule", "zzz", "model"),
    "attribute up_axis is 'Q'; known": attribute("up_axis", "Q", "model"),
    "attribute up_axis is missing": attribute("up_axis", None, "model"),
    "attribute unit is 'mm'; known values: 'm'": attribute("unit", "mm", "rigid_contacts/distance"),
    "/model/shape/gap: the dataset is missing": drop("/model/shape/gap"),
    "/rigid_contacts/distance: the dataset is missing": drop("/rigid_contacts/distance"),
    "12 frames of 4 worlds": replaced("/model/world/template", np.zeros(4, np.int32)),
}
"""Faults that check finds and that readers refuse as well."""
FOUND = {
    "/model/shape/body: the type is int64, not int32": replaced(
        "/model/shape/body", np.zeros(5, np.int64)
    ),
    "/model/shape/type: the type is int32, not string": replaced(
        "/model/shape/type", np.zeros(5, "i4")
    ),
    "/rigid_contacts/normal: the shape is": replaced(
        "/rigid_contacts/normal", np.zeros((9, 2), "f4")
    ),
    "/rigid_contacts/kind: it has 3 rows": replaced("/rigid_contacts/kind", np.zeros(3, "u1")),
    "/time/time: it has 2 rows for 12 frames": replaced("/time/time", np.zeros(2)),
    "the root attribute scene is not UTF-8": attribute("scene", NOT_UTF8),
    "attribute material_rule is 'none'": attribute("material_rule", "none", "model"),
    "attribute device is not UTF-8": attribute("device", NOT_UTF8, "timing"),
}
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
    "shapes 1 and 2: dot(point1 - point0, normal) is not": put(
        "/model/forced_pair/margin", 0, np.nan
    ),
    "cell_start: begins with 1": put("/rigid_contacts/cell_start", 0, 1),
    "cell_start, entry 5: is less": put("/rigid_contacts/cell_start", 5, 0),
    "cell_start: ends with 1000": put("/rigid_contacts/cell_start", -1, 1000),
}
"""Values that break a rule of their table, and the content hash."""


@pytest.mark.share(2)
@pytest.mark.parametrize("expected", [*HEADER_CASES, *FOUND, *TABLE_CASES])
def test_faults_outside_the_rows_are_found(path, expected):
    edit(path, (HEADER_CASES | FOUND | TABLE_CASES)[expected])
    found = words(path)
    assert expected.strip() in found
    assert ("content hash does not match" in found) >= (expected in TABLE_CASES)
    if expected in HEADER_CASES:
        known = (
            "this program reads collide-contacts 1.x and 2.x"
            if expected == "version 3.0"
            else "a.h5"
        )
        with pytest.raises(InputError, match=known):
            ContactSet.open(path)


def test_a_newer_minor_version_is_read(path):
    edit(
        path,
        attribute("format_version", np.int32([1, 7])),
        lambda file: file.create_dataset("/x/y", data=[0.0]),
    )
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 7)


def changed_block(change: Callable[[dict[str, np.ndarray], int], object]) -> ContactBlock:
    block = sets.made_up_block(MODEL, FRAMES)
    columns = {name: values.copy() for name, values in block.columns.items()}
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    # the second of at least three in its cell
    row = int(start[np.flatnonzero(block.cell_counts >= 3)[3]]) + 1
    change(columns, row)
    return ContactBlock(0, block.cell_counts, columns)


def swap(columns: dict[str, np.ndarray], row: int) -> None:
    for values in columns.values():
        values[[row, row + 1]] = values[[row + 1, row]]


def repeat(columns: dict[str, np.ndarray], row: int) -> None:
    for values in columns.values():
        values[row] = values[row - 1]


def at(name: str, value):
    return lambda columns, row: columns[name].__setitem__(row, value)


def times(name: str, factor: float, amount: float = 0.0):
    return lambda columns, row: columns[name].__setitem__(
        row, columns[name][row] * np.float32(factor) + amount
    )


ROW_CASES = {
    "a shape is no row of /model/shape": at("shape1", 5),
    "shape0 is not less than shape1": lambda columns, row: columns["shape0"].__setitem__(
        row, columns["shape1"][row]
    ),
    "rows are out of order": swap,
    "each row once": repeat,
    "kind is not 0 to 3": at("kind", 4),
    "distance is not finite": at("distance", np.nan),
    "offset1 is not finite": at("offset1", [0.0, 0.0, np.inf]),
    "the normal has not unit length": times("normal", 1.00001),
    "is not distance + margin0 + margin1": times("distance", 1.0, 2e-6),
    "dot(point1 - point0, normal)": times("normal", -1.0),
    "the distance is above the pair's gap": times("distance", 1.0, 0.6),
}


@pytest.mark.parametrize("expected", ROW_CASES)
def test_rows(tmp_path, expected):
    sets.write_contact_set(tmp_path / "a.h5", MODEL, changed_block(ROW_CASES[expected]))
    found = words(tmp_path / "a.h5")
    assert expected in found
    assert "frame " in found
    assert "content hash" not in found


def test_a_shape_of_another_world(tmp_path):
    model = sets.small_model()
    block = sets.made_up_block(model, FRAMES)
    model.world_template[1] = 1
    sets.write_contact_set(tmp_path / "a.h5", model, block)
    assert "world 1, shapes" in words(tmp_path / "a.h5")
    assert "a shape is not in this world" in words(tmp_path / "a.h5")


def damage(path: Path, name: str, chunk: int = 0) -> Path:
    """Changes a byte of a chunk of a dataset."""
    with h5py.File(path) as file:
        info = file[name].id.get_chunk_info(chunk)
    data = bytearray(path.read_bytes())
    data[info.byte_offset + info.size // 2] ^= 1
    path.write_bytes(data)
    return path


def test_a_damaged_chunk_names_its_column(path):
    found = words(damage(path, "/rigid_contacts/point1", 1))
    assert "/rigid_contacts/point1, rows 0 to" in found
    assert "checksum does not match" in found
    with ContactSet.open(path) as contacts, pytest.raises(InputError, match="checksum"):
        contacts.column("point1")


def test_a_changed_value_breaks_the_content_hash(path):
    edit(path, lambda file: file["/rigid_contacts/offset0"].__setitem__((3, 1), 0.125))
    assert (
        words(path)
        == f"{path}: the content hash does not match: the data was changed after it was written"
    )


@pytest.mark.parametrize("kept", [0.0, 0.3, 0.999])
def test_a_truncated_file(path, kept):
    data = path.read_bytes()
    path.write_bytes(data[: int(kept * len(data))])
    expected = "not an HDF5 file" if kept == 0.0 else "truncated"
    assert expected in words(path)
    with pytest.raises(InputError, match=expected):
        ContactSet.open(path)


def test_timing_may_change(path):
    edit(path, lambda file: file.create_dataset("/timing/more", data=[1.0]))
    assert check_file(path) == []


def test_a_group_may_hold_itself(path):
    edit(path, lambda file: file["/time"].__setitem__("again", file["/"]))
    with ContactSet.open(path) as contacts:
        assert contacts.frame_count == FRAMES


def test_damage_anywhere_is_told_in_words(path):
    """One byte changed at a time. Outside the data nothing may depend on it; no error but a finding
    may come of it."""
    original = path.read_bytes()
    with h5py.File(path) as file:
        columns = [dataset.id for dataset in file["/rigid_contacts"].values()]
        chunks = [
            each.get_chunk_info(index) for each in columns for index in range(each.get_num_chunks())
        ]
    in_data = {
        i for chunk in chunks for i in range(chunk.byte_offset, chunk.byte_offset + chunk.size)
    }
    rng = np.random.default_rng(0)
    places = [*rng.integers(0, len(original), 16), *rng.choice(sorted(in_data), 8)]
    for place in places:
        data = bytearray(original)
        data[place] ^= int(rng.integers(1, 256))
        path.write_bytes(data)
        assert check_file(path) or place not in in_data


GOLDEN = Path(__file__).parents[3] / "golden" / "contacts_1_0.h5"


START = "/rigid_contacts/cell_start"
BODY = "/model/shape/body"
CHUNK = {
    "shape": (5,),
    "maxshape": (None,),
    "chunks": (1 << 24,),
    "dtype": "i8",
    "compression": "gzip",
}
OTHER_TYPES = [
    np.dtype("V16"),
    np.dtype([("x", "f8")]),
    h5py.ref_dtype,
    h5py.vlen_dtype(np.float64),
]
OTHER_TYPES += [np.complex128, np.float64, np.int64, bool]


@pytest.mark.parametrize(
    ("name", "how", "expected"),
    [
        (
            "/model/shape/gap",
            {"data": np.zeros(4, np.float32)},
            "has 4 rows, and /model/shape/path has 5",
        ),
        ("/time/time", {"data": np.zeros(0)}, "has 0 rows, and /time/step has"),
        *(
            (name, {"data": h5py.Empty("i4")}, "")
            for name in (BODY, "/rigid_contacts/shape0", START)
        ),
        (START, CHUNK, "has chunks of 128 MiB, and at most 64 MiB are read"),
        *(
            (BODY, {"shape": (5,), "dtype": kind}, "is .*not int32 of one extent")
            for kind in OTHER_TYPES
        ),
        *(
            ("/rigid_contacts/shape0", {"shape": (9,), "dtype": kind}, "is ")
            for kind in OTHER_TYPES
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path: Path, name, how, expected):
    shutil.copy(GOLDEN, tmp_path / "x.h5")
    edit(tmp_path / "x.h5", drop(name), lambda file: file.create_dataset(name, **how))
    with pytest.raises(InputError, match=rf"x\.h5: {name}: {expected}"):
        ContactSet.open(tmp_path / "x.h5")


def test_cell_starts_of_a_smaller_type_are_read(tmp_path: Path):
    shutil.copy(GOLDEN, tmp_path / "x.h5")
    edit(tmp_path / "x.h5", lambda file: replaced(START, file[START][()].astype(np.int8))(file))
    with ContactSet.open(tmp_path / "x.h5") as contacts:
        assert (
            sum(block.contact_count for block in contacts.blocks()) == contacts.contact_count == 9
        )


@pytest.mark.parametrize(
    "change", [lambda v: v[::-1], lambda v: v - 1, lambda v: v + 1, lambda v: v * 10**12]
)
def test_cell_starts_that_make_no_sense(tmp_path: Path, change):
    shutil.copy(GOLDEN, tmp_path / "x.h5")
    edit(
        tmp_path / "x.h5",
        lambda file: file[START].write_direct(np.ascontiguousarray(change(file[START][()]))),
    )
    with (
        ContactSet.open(tmp_path / "x.h5") as contacts,
        pytest.raises(InputError, match="is not ascending from 0"),
    ):
        list(contacts.blocks())


SHAPES = ("ground", "ball", "bøx", "pin", "egg")
GROUP_NAMES = ["hydro_patches", "hydro_faces", "soft_contacts", "self_contacts"]


@pytest.mark.parametrize(
    ("version", "sha256", "extents", "groups"),
    [
        ((1, 0), "fe01f1ce38463cddea0cdaaa69daf52fd69b36d51483d8514f0e262dcbf5a7ce", (2, 2, 9), []),
        ((1, 1), "a6763611e77e4327f85b0f63ba0122401e5ff15d59dfe17d246c7079013d0b9d", (2, 2, 8), []),
        (
            (1, 3),
            "f03d1ac1b96e7f1610c941987ce2d82498d4bfe6d32a6df0d4110f59a5d78594",
            (2, 2, 29),
            GROUP_NAMES,
        ),
        (
            (2, 0),
            "f55f4215e2abfd4947c2a45c58822cdd6a73b7a83ef17d19037f7c841e874120",
            (1200, 7, 56),
            GROUP_NAMES,
        ),
    ],
)
def test_golden_files_are_read_as_h5py_reads_them(version, sha256, extents, groups):
    path = GOLDEN.with_name("contacts_{}_{}.h5".format(*version))
    assert check_file(path) == []
    with ContactSet.open(path) as contacts, h5py.File(path) as file:
        assert (contacts.version, contacts.content_sha256, list(contacts.groups)) == (
            version,
            sha256,
            groups,
        )
        assert (contacts.frame_count, contacts.world_count, contacts.contact_count) == extents
        assert contacts.shapes.path == tuple(file["model/shape/path"].asstr()) == SHAPES
        assert contacts.shapes.type == tuple(file["model/shape/type"].asstr())
        whole = contacts.cells(0, contacts.cell_count, (*contacts.column_names,), with_groups=True)
        held = {
            "model/forced_pair/shape1": contacts.forced.shape1,
            "time/time": contacts.time,
            "time/step": contacts.step,
            "rigid_contacts/cell_start": contacts.cell_start(),
        }
        held |= {f"rigid_contacts/{name}": values for name, values in whole.columns.items()}
        for name, table in contacts.groups.items():
            held[f"{name}/cell_start"] = table.cell_start()
            held |= {f"{name}/{column.name}": table.column(column.name) for column in table.columns}
            held |= {
                f"{name}/{key}": values for key, (_, values) in whole.groups[name].lists.items()
            }
        if groups:
            objects = contacts.particle_objects
            assert (objects.path, objects.kind) == (("/cloth", "gel"), ("cloth", "soft"))
            names = ("template", "first_particle", "particle_count")
            held |= {f"model/particle_object/{name}": getattr(objects, name) for name in names}
        assert contacts.config == {"gap_rule": "max", "narrow_phase": "gjk"}
        assert sum(name.startswith("rigid_contacts") for name in held) == len(
            file["rigid_contacts"]
        )
        for name, values in held.items():
            np.testing.assert_array_equal(values, file[name][()], name)
        if version == (1, 0):
            assert (contacts.materials, contacts.material_rule, contacts.optional_columns) == (
                None,
                "",
                (),
            )
            assert len(contacts.forced_materials) == 2
        elif version == (1, 1):
            assert contacts.optional_columns == ("friction", "condim", "solref", "margin0")
            assert (contacts.material_rule, contacts.materials.condim.tolist()) == (
                "mujoco",
                [4, 6, 4, 4, 6],
            )


BLOCK = sets.made_up_block(MODEL, 1600)
"""More rows than two blocks of the hash."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "made.h5"
    sets.write_contact_set(path, MODEL, BLOCK, major=2)
    assert BLOCK.contact_count > 2 * HASHED_ROWS
    return path


@pytest.mark.parametrize(
    "count", [0, 1, HASHED_ROWS - 1, HASHED_ROWS, HASHED_ROWS + 1, 3 * HASHED_ROWS + 5]
)
@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_pieces_have_one_digest(count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (count, 3)).astype(np.uint8)
    whole = BlockDigest("/x", rows.dtype, (3,))
    pieces = BlockDigest("/x", rows.dtype, (3,))
    whole.update(rows)
    anywhere: list = []
    cuts = np.sort(rng.integers(0, count + 1, 6))
    for first, last in zip([0, *cuts], [*cuts, count], strict=True):
        whenever, following = pieces.tasks(rows[first:last])
        anywhere += [] if whenever is None else [whenever]
        if following is not None:
            following()
    for task in reversed(anywhere):
        task()
    assert (pieces.line(), pieces.blocks) == (whole.line(), whole.blocks)
    assert len(whole.blocks) == 32 * -(-count // HASHED_ROWS)


def test_strings_in_any_pieces_have_one_digest():
    texts = [f"shape{k}" for k in range(HASHED_ROWS + 100)]
    whole = BlockDigest("/x", None)
    pieces = BlockDigest("/x", None)
    whole.update_strings(texts)
    for first in range(0, len(texts), 1000):
        pieces.update_strings(texts[first : first + 1000])
    assert pieces.line() == whole.line()
    assert len(whole.blocks) == 64
    changed = BlockDigest("/x", None)
    changed.update_strings([*texts[:-1], "other"])
    assert changed.blocks[:32] == whole.blocks[:32]
    assert content_hash([changed]) != content_hash([whole])


def change_value(row: int) -> Change:
    return lambda file: file["rigid_contacts/kind"].__setitem__(
        row, (file["rigid_contacts/kind"][row] + 1) % 3
    )


def with_blocks(change) -> Change:
    return lambda file: replaced("content_hash/block", change(file["content_hash/block"][()]))(file)


def stale_blocks(file: h5py.File) -> None:
    """A changed row, and a content hash that fits, as from a program that does not know the hashes
    of blocks."""
    change_value(3)(file)
    file.attrs["content_sha256"] = sets.documented_hash(file, HASHED_ROWS)[0]


CASES = {
    "/rigid_contacts/kind, rows 8192 to 16384: the hash of this block does not match": change_value(
        9000
    ),
    "/rigid_contacts/kind, rows 0 to 8192: the hash of this block does not match": change_value(
        8191
    ),
    "/rigid_contacts/kind, rows 0 to 8192: the hash": stale_blocks,
    "/model/body/path, rows 0 to 4: the hash": with_blocks(
        lambda v: v ^ np.eye(*v.shape, dtype="u1")[:1]
    ),
    "a.h5: the content hash does not match": attribute("content_sha256", "12" * 32),
    "/content_hash/block: it has": with_blocks(lambda held: held[:-1]),
    "/content_hash/block: it has ": with_blocks(lambda held: np.concatenate([held, held[:1]])),
    "/content_hash/block: the dataset is missing": drop("content_hash"),
    "/content_hash/block: the dataset is missing ": lambda f: (
        f.__delitem__("content_hash/block") or f.create_group("content_hash/block")
    ),
    "/content_hash/block: the type is int64": with_blocks(lambda held: held.astype(np.int64)),
    "/content_hash/block: the shape is": with_blocks(lambda held: held[:, :16]),
    "/content_hash/block: the shape is (": with_blocks(lambda held: held.reshape(-1)),
    "content_block_rows is not 8192": attribute("content_block_rows", 4096),
    "content_block_rows is not 8192 ": attribute("content_block_rows", "8192"),
    "content_block_rows is not 8192  ": attribute("content_block_rows", np.int64([8192, 1])),
    "content_block_rows is missing": attribute("content_block_rows", None),
}


@pytest.mark.share(2)
@pytest.mark.parametrize("expected", CASES)
def test_damage_is_located(made, tmp_path, expected):
    path = shutil.copyfile(made, tmp_path / "a.h5")
    edit(path, CASES[expected])
    assert expected.strip() in words(path)
    if "content_block_rows" in expected:
        with pytest.raises(InputError, match="content_block_rows"):
            ContactSet.open(path)


def test_version_1_hashes_a_group_of_that_name(tmp_path):
    sets.write_contact_set(tmp_path / "a.h5", MODEL, sets.made_up_block(MODEL, 4))
    edit(
        tmp_path / "a.h5",
        lambda file: file.create_dataset("content_hash/block", data=np.zeros((3, 32), np.uint8)),
    )
    assert "the content hash does not match" in words(tmp_path / "a.h5")
