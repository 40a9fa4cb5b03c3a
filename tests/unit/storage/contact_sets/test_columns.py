"""Columns and groups of contact sets that are read, and their chunks."""

import math
import re
import shutil
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import shapes_of
from collidecli.scene.contact_columns import GROUPS, OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.scene.materials import Material, Materials, PairMaterial, PairMaterials
from collidecli.scene.mixing import RULE_COLUMNS, OptionalColumns
from collidecli.scene.model import Model
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.particles import Particles
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import pair_values
from collidecli.storage.content_hash import BlockDigest, StreamDigest
from collidecli.storage.h5_chunks import (
    HELD_ROWS,
    ChunkedColumn,
    ChunkedColumns,
    ChunkThreads,
    GzipPacker,
    PlainPacker,
)
from collidecli.storage.new_objects import NewObjects
from tests.support import contact_sets as sets
from tests.unit.storage.contact_sets.test_check import attribute, drop, edit, put, replaced, words

FRAMES = 6
RULES = tuple(RULE_COLUMNS)


def model_of(rule: str, forced: bool = True) -> Model:
    """The made-up model with five surfaces, no two alike; under MuJoCo's rule a forced pair has
    some of its own."""
    rng = np.random.default_rng(3)
    surfaces = [
        Material(
            *rng.uniform(0.0, 1.0, 5),
            *rng.choice(["average", "min", "multiply", "max"], 2),
            condim=int(rng.choice([1, 3, 4, 6])),
            solmix=rng.uniform(0.1, 2.0),
            solref=tuple(rng.uniform(0.01, 1.0, 2)),
            contact_ke=rng.uniform() if k == 2 else None,
        )
        for k in range(5)
    ]
    model = sets.small_model(forced=forced)
    shapes = replace(model.shapes, material=Materials.of(surfaces))
    own = [PairMaterial(condim=1, friction=(1.0, 0.5, 0.25, 0.125, 0.0625)), None] if forced else []
    pairs = PairMaterials.of(own if rule == "mujoco" else [])
    return replace(model, shapes=shapes, material_rule=rule, forced_material=pairs)


def write(
    path: Path, model: Model, names: tuple[str, ...] | None = None, **options
) -> dict[str, np.ndarray]:
    """The optional columns that were written: all of the rule's where no names are given."""
    optional = OptionalColumns.of(
        model, RULE_COLUMNS[model.material_rule] if names is None else names
    )
    block = optional.added(sets.made_up_block(model, FRAMES))
    sets.write_contact_set(
        path, model, block, columns=(*RIGID_COLUMNS, *optional.columns), **options
    )
    return {column.name: block.columns[column.name] for column in optional.columns}


@pytest.fixture(params=RULES)
def made(request, tmp_path):
    """A file with every column of a rule, its model and the columns."""
    model = model_of(request.param)
    return tmp_path / "a.h5", model, write(tmp_path / "a.h5", model, chunk_rows=50)


def test_columns_are_read_back(made):
    path, model, columns = made
    is_mujoco = model.material_rule == "mujoco"
    known = (
        ("condim", "solref", "solimp")
        if is_mujoco
        else ("restitution", "static_friction", "friction_combine")
    )
    assert check_file(path) == []
    with ContactSet.open(path) as contacts:
        assert (contacts.version, contacts.optional_columns) == ((1, 3), tuple(columns))
        assert contacts.column_names[: len(RIGID_COLUMNS)] == tuple(c.name for c in RIGID_COLUMNS)
        cell = contacts.cell(2, 1)
        start = contacts.cell_start()
        first, last = start[2 * model.world_count + 1 : 2 * model.world_count + 3]
        for name, values in columns.items():
            held = contacts.column(name)
            assert (held.dtype, held.shape, held.tobytes()) == (
                values.dtype,
                values.shape,
                values.tobytes(),
            )
            assert cell.columns[name].tobytes() == values[first:last].tobytes()
        units = {
            f"rigid_contacts/{each.name}": each.unit
            for each in OPTIONAL_COLUMNS
            if each.name in columns
        }
        units |= {"model/shape/contact_ke": "N/m", "model/shape/rolling_friction": "m"}
        assert {name: contacts.file[name].attrs.get("unit", "") for name in units} == units
        shape = contacts.file["model/shape"]
        assert ("solref" in shape, "restitution" in shape) == (is_mujoco, not is_mujoco)
        assert contacts.material_rule == model.material_rule
        for name in ("friction", "torsional_friction", "contact_ke", *known):
            np.testing.assert_array_equal(
                getattr(contacts.materials, name), getattr(model.shapes.material, name)
            )
        if is_mujoco:
            np.testing.assert_array_equal(
                contacts.forced_materials.friction, model.forced_material.friction
            )
            assert contacts.forced_materials.condim.tolist() == [1, 0]


def test_only_columns_that_are_asked_for_are_written(tmp_path):
    write(tmp_path / "a.h5", MODEL, ())
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(file["rigid_contacts"]) == {
            "cell_start",
            *(column.name for column in RIGID_COLUMNS),
        }
        assert "contact_ke" not in file["model/shape"]
    assert check_file(tmp_path / "a.h5") == []


def test_every_column_changes_the_content_hash(tmp_path):
    hashes = set()
    model = model_of("mujoco")
    rougher = replace(model.shapes.material, friction=model.shapes.material.friction * 2)
    rough = replace(model, shapes=replace(model.shapes, material=rougher))
    for held, names in (
        (model, ()),
        (model, ("friction",)),
        (model, ("friction", "condim")),
        (rough, ()),
    ):
        write(tmp_path / "a.h5", held, names, force=True)
        with ContactSet.open(tmp_path / "a.h5") as contacts:
            assert contacts.optional_columns == names
            hashes.add(contacts.content_sha256)
    assert len(hashes) == 4


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("rule", "name"), [(rule, name) for rule in RULES for name in RULE_COLUMNS[rule]]
)
def test_one_wrong_value_of_any_column_is_found(tmp_path, rule, name):
    write(tmp_path / "a.h5", model_of(rule))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        column = file[f"rigid_contacts/{name}"]
        values = column[-1]
        column[-1] = values + 1 if name == "condim" else np.nextafter(values, np.float32(9))
    assert f"{name} does not follow from the pair's two surfaces" in words(tmp_path / "a.h5")


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        *(
            ("combine", name)
            for name in ("friction", "static_friction", "rolling_friction", "restitution", "margin")
        ),
        *(
            ("mujoco", name)
            for name in ("friction", "torsional_friction", "priority", "solmix", "solref", "solimp")
        ),
    ],
)
def test_one_wrong_surface_is_found_by_its_contacts(tmp_path, rule, name):
    write(tmp_path / "a.h5", model_of(rule, forced=False))
    edit(
        tmp_path / "a.h5",
        lambda file: file[f"model/shape/{name}"].__setitem__(1, file[f"model/shape/{name}"][1] + 1),
    )
    assert "does not follow from the pair's two surfaces" in words(tmp_path / "a.h5")


def test_forced_pairs_in_another_order_have_the_same_values(made):
    """Columns and separations follow from the pairs' own values, which are looked up by shapes."""
    path = made[0]
    with h5py.File(path, "r+") as file:
        for table in file["model/forced_pair"].values():
            table[...] = table[()][::-1]
        assert file["model/forced_pair/shape0"][()].tolist() == [2, 1]
    assert [
        line for line in words(path).splitlines() if "the content hash does not match" not in line
    ] == []
    with ContactSet.open(path) as contacts:
        margin, gap = pair_values(contacts)
        one, two, four = (np.array([row]) for row in (1, 2, 4))
        assert (margin(one, two)[0], gap(two, four)[0]) == (0.5, np.float32(0.3))


def test_a_forced_pair_that_is_listed_twice_is_found(made):
    edit(
        made[0],
        *(replaced(f"/model/forced_pair/shape{k}", np.full(2, k + 1, np.int32)) for k in (0, 1)),
    )
    assert "/model/forced_pair/shape0, row 1: is the pair of an earlier row" in words(made[0])


BROKEN = [
    ("combine", "/model/shape/friction_combine", ["mean"] * 5, "is no combine mode (5 rows)"),
    ("combine", "/model/shape/restitution", np.full(5, np.nan), "is not finite (5 rows)"),
    ("combine", "/model/shape/friction", np.zeros(5, "f4"), "the type is float32, not float64"),
    ("combine", "/model/shape/friction", np.zeros((5, 2)), "the shape is (5, 2), not"),
    ("combine", "/model/shape/friction_combine", np.zeros(5), "the type is float64, not string"),
    ("combine", "/rigid_contacts/friction", np.zeros(3, "f4"), "it has 3 rows for"),
    ("combine", "/model/shape/friction", np.zeros(4), "it has 4 rows for 5 shapes"),
    ("mujoco", "/model/shape/condim", np.full(5, 2, "i4"), "is not 1, 3, 4 or 6 (5 rows)"),
    ("mujoco", "/model/shape/solref", np.zeros((5, 3)), "the shape is (5, 3), not ('n', 2)"),
    ("mujoco", "/model/shape/solimp", np.full((5, 5), np.inf), "is not finite (5 rows)"),
    ("mujoco", "/model/forced_pair/condim", np.full(2, 9, "i4"), "is not 0, 1, 3, 4 or 6 (2 rows)"),
    ("mujoco", "/rigid_contacts/friction5", np.zeros((3, 5), "f4"), "it has 3 rows for"),
    ("mujoco", "/rigid_contacts/condim", np.zeros(3, "i8"), "the type is int64, not int32"),
]


@pytest.mark.share(2)
@pytest.mark.parametrize(("rule", "name", "values", "expected"), BROKEN)
def test_broken_tables_are_named(tmp_path, rule, name, values, expected):
    path = tmp_path / "a.h5"
    write(path, model_of(rule))
    edit(path, replaced(name, values))
    (found,) = (line for line in words(path).splitlines() if expected in line)
    assert name in found
    if expected.startswith(("it has", "the shape is", "the type is float64")):
        with pytest.raises(InputError) as error:
            ContactSet.open(path)
        assert name in error.value.where


def test_missing_tables_are_named(tmp_path):
    path = tmp_path / "a.h5"
    write(path, model_of("mujoco"))
    edit(path, drop("model/shape/solimp"))
    assert "/model/shape/solimp: the dataset is missing" in words(path)


def test_unknown_rules_are_named(tmp_path):
    path = tmp_path / "a.h5"
    write(path, model_of("mujoco"))
    edit(path, attribute("material_rule", "clay", "model"))
    with pytest.raises(InputError, match="material_rule is 'clay'"):
        ContactSet.open(path)
    assert "material_rule is 'clay'" in words(path)


GROUPS_FRAMES = 20
MODEL = sets.small_model()


GROUPED = sets.block_with_groups(MODEL, GROUPS_FRAMES, groups=GROUPS)


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("groups") / "a.h5"
    sets.write_contact_set(made, MODEL, GROUPED, cells_per_block=7, chunk_rows=16)
    return made


def edited(path, made, *changes) -> Path:
    """A changed copy with the content hash of its data."""
    shutil.copyfile(path, made)
    edit(
        made,
        *changes,
        lambda file: file.attrs.modify("content_sha256", sets.documented_hash(file)[0]),
    )
    return made


def test_an_older_version_has_no_groups(path, tmp_path):
    made = edited(path, tmp_path / "older.h5", attribute("format_version", np.int32([1, 2])))
    with ContactSet.open(made) as contacts:
        assert contacts.groups == {}


def test_blocks_with_groups_are_the_written_cells(path):
    wanted = sets.split(GROUPED, 1)
    with ContactSet.open(path) as contacts:
        assert list(contacts.groups) == [group.name for group in GROUPS]
        blocks = list(contacts.blocks(40, with_groups=True))
        assert len(blocks) > 3
        for block in blocks:
            rows = block.contact_count + sum(held.row_count for held in block.groups.values())
            assert rows <= 40 or len(block.cell_counts) == 1
            for part in sets.split(block, 1):
                for name, held in wanted[part.first_cell].groups.items():
                    found = part.groups[name]
                    np.testing.assert_equal(
                        (found.columns, found.lists), (held.columns, held.lists), name
                    )
    assert check_file(path) == []


def test_shapes_of_faces_are_those_of_their_patches(path):
    with ContactSet.open(path) as contacts:
        groups = contacts.cells(0, contacts.cell_count, (), with_groups=True).groups
        shape0, shape1 = shapes_of(groups, "hydro_faces")
        faces = groups["hydro_faces"]
        assert len(shape0) == faces.row_count > 0
        assert (shape0 < shape1).all()
        assert np.array_equal(
            shape0, contacts.groups["hydro_patches"].column("shape0")[faces.columns["patch"]]
        )
        assert shapes_of(groups, "self_contacts") == ()


def test_each_particle_is_of_its_object(path):
    with ContactSet.open(path) as contacts:
        objects = contacts.particle_objects
        assert (objects.path, objects.kind) == (("/cloth", "gel"), ("cloth", "soft"))
        assert (objects.template.tolist(), len(objects), objects.total) == ([-1, 0], 2, 9)
        assert objects.of(np.arange(9)).tolist() == [0] * 6 + [1] * 3
    objects = ParticleObjects(
        ("a", "b", "c"), (), np.zeros(3), np.array([0, 2, 2]), np.array([2, 0, 1])
    )
    assert objects.of(np.arange(3)).tolist() == [0, 0, 2]


@pytest.mark.share(9, 3)
@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (put("hydro_patches/shape1", 0, 99), "/hydro_patches, .*a shape is no row of /model/shape"),
        (put("hydro_patches/shape0", 3, -1), "a shape is no row of /model/shape"),
        (put("hydro_patches/area", 2, -1.0), "area is less than 0"),
        (put("hydro_patches/force", 2, [math.nan, 0, 0]), "force is not finite"),
        (put("hydro_patches/face_count", 2, 77), "face_count is not the number of faces"),
        (
            put("hydro_faces/patch", 0, 10**15),
            "/hydro_faces/patch, cell .*is no row of /hydro_patches of its cell",
        ),
        (put("hydro_faces/patch", 5, -1), "is no row of /hydro_patches of its cell"),
        (put("hydro_faces/vertices", 5, [0, math.inf, 0]), "vertices is not finite"),
        (put("hydro_faces/vertex_start", 0, 1), "vertex_start: begins with 1, not 0"),
        (put("hydro_faces/vertex_start", 4, -(2**62)), "vertex_start, entry 4: is less than"),
        (
            put("hydro_faces/vertex_start", -1, 2**62),
            "vertex_start: ends with .* not the number of values",
        ),
        (put("hydro_faces/normal", 5, [0, 0, 2]), "the normal has not unit length"),
        (put("hydro_faces/normal", 5, [3e38, 3e38, 0]), "the normal has not unit length"),
        (put("soft_contacts/kind", 1, 9), "kind is not 0 to 2"),
        (put("soft_contacts/kind", 0, 2), "indices are not as many as the kind has"),
        (
            put("soft_contacts/barycentric", 0, [0.5, 0.4, 0.0]),
            "weights are not at least 0 with the sum 1",
        ),
        (
            put("soft_contacts/barycentric", 0, [1.5, -0.5, 0.0]),
            "weights are not at least 0 with the sum 1",
        ),
        (put("soft_contacts/indices", 0, [-2, -1, -1]), "indices is less than -1"),
        (put("soft_contacts/shape", 1, 2**31 - 1), "a shape is no row of /model/shape"),
        (put("soft_contacts/cell_start", 5, 2**62), "cell_start, entry 6: is less than"),
        (put("soft_contacts/cell_start", -1, 3), "cell_start.* is less than|ends with"),
        (put("self_contacts/indices", 0, [9, 9, 9, -9]), "indices is less than 0"),
        (put("self_contacts/distance", 0, math.inf), "distance is not finite"),
        (put("soft_contacts/indices", 0, [9, -1, -1]), "a particle is of no object"),
        (put("soft_contacts/indices", 0, [-1, 2, 3]), "a row has no particle"),
        (
            put("soft_contacts/indices", 0, [5, 6, -1]),
            "the particles of an element are of several objects",
        ),
        (
            put("self_contacts/indices", 0, [0, 5, 6, 7]),
            "the particles of an element are of several objects",
        ),
        (
            put("model/particle_object/template", 0, 5),
            "/model/particle_object/template, row 0: is the template of no",
        ),
        (
            put("model/particle_object/template", 0, -7),
            "/model/particle_object/template, row 0: is below -1",
        ),
        (
            put("model/particle_object/kind", 1, "cloths"),
            "kind, row 1: is not particles, cloth or soft",
        ),
        (
            put("model/particle_object/first_particle", 1, 4),
            "first_particle, row 1: is not the end of the object",
        ),
        (
            put("model/particle_object/first_particle", 0, 1),
            "first_particle, row 0: is not the end of the object",
        ),
        (
            put("model/particle_object/particle_count", 1, -2),
            "particle_count, row 1: is less than 0",
        ),
        (
            put("model/particle_object/particle_count", 0, 2**62),
            "first_particle, row 1: is not the end of the object",
        ),
        (drop("model/particle_object/kind"), "/model/particle_object/kind: the dataset is missing"),
        (drop("model/particle_object"), "/model/particle_object/path: the dataset is missing"),
        (
            replaced("model/particle_object/particle_count", np.zeros(3, int)),
            "it has 3 rows for 2 particle objects",
        ),
        (
            replaced("model/particle_object/path", np.zeros(2)),
            "object/path: the type is float64, not string",
        ),
        (drop("hydro_faces/vertex_start"), "hydro_faces/vertex_start: the dataset is missing"),
        (drop("soft_contacts/cell_start"), "soft_contacts/cell_start: the dataset is missing"),
        (
            replaced("soft_contacts/kind", np.zeros(3, np.float32)),
            "soft_contacts/kind: the type is float32",
        ),
        (
            replaced("soft_contacts/shape", np.zeros((4, 2), np.int32)),
            "soft_contacts/shape: the shape is",
        ),
        (
            replaced("soft_contacts/feature", np.zeros(4, np.int32)),
            "soft_contacts/feature: it has 4 rows",
        ),
        (replaced("self_contacts/cell_start", np.zeros(4, np.int64)), "cell_start: it has 4 rows"),
        (drop("hydro_patches"), "/hydro_faces: refers to /hydro_patches, which is missing"),
    ],
)
def test_a_broken_rule_is_found(path, tmp_path, change, expected):
    found = words(edited(path, tmp_path / "b.h5", change))
    assert re.search(expected, found), found


def test_an_object_of_another_world_is_found(tmp_path):
    """gel is in the worlds of template 0 alone."""
    model = replace(sets.small_model(), world_template=np.array([0, 1, 0], np.int32))
    sets.write_contact_set(tmp_path / "a.h5", model, sets.block_with_groups(model, GROUPS_FRAMES))
    found = words(tmp_path / "a.h5")
    assert re.search(
        "/self_contacts, frame .*, world 1, .*a particle is not in this world", found
    ), found
    assert not re.search("world [02], .*a particle is not in this world", found)


def test_a_scene_without_particles_has_no_table(tmp_path):
    model = replace(sets.small_model(), particles=Particles())
    sets.write_contact_set(tmp_path / "a.h5", model, sets.made_up_block(model, 4))
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        assert "particle_object" not in contacts.file["model"]
        assert len(contacts.particle_objects) == contacts.particle_objects.total == 0


def test_repeated_rows_are_found(path, tmp_path):
    with h5py.File(path) as file:
        start = file["soft_contacts/cell_start"][()]
        row = int(start[np.flatnonzero(np.diff(start) > 1)[0]])
        names = [f"soft_contacts/{name}" for name in ("kind", "indices", "shape", "feature")]
        repeat = [put(name, row + 1, file[name][row]) for name in names]
    found = words(edited(path, tmp_path / "b.h5", *repeat))
    assert "rows are out of order: cell, kind, indices, shape, feature" in found


@pytest.mark.parametrize(
    "change",
    [
        *map(drop, ["hydro_faces/vertices", "hydro_patches"]),
        *(
            replaced(name, np.zeros(3, np.float32))
            for name in ("soft_contacts/kind", "self_contacts")
        ),
    ],
)
def test_a_group_that_is_not_as_specified_is_refused(path, tmp_path, change):
    made = edited(path, tmp_path / "b.h5", change)
    with pytest.raises(InputError, match=r"group|dataset is missing|not uint8|refers to"):
        ContactSet.open(made)


@pytest.mark.parametrize(
    ("name", "row"),
    [("soft_contacts/cell_start", 5), ("hydro_faces/vertex_start", 4), ("hydro_faces/patch", 0)],
)
@pytest.mark.parametrize("value", [2**62, -(2**62)])
def test_hostile_references_are_refused_on_reading(path, tmp_path, name, row, value):
    made = edited(path, tmp_path / "b.h5", put(name, row, value))
    with ContactSet.open(made) as contacts, pytest.raises(InputError):
        list(contacts.blocks(with_groups=True))


def packed(packer: GzipPacker, chunk: np.ndarray) -> bytes:
    """The zlib stream of a chunk, without the checksum behind it."""
    return bytes(packer.pack([chunk], len(chunk), packer.probe([chunk])))[:-4]


def test_only_smooth_bytes_of_a_stream_are_deflated():
    values = np.cumsum(np.random.default_rng(0).normal(size=40_000) * 1e-4) + 3.0
    stream = packed(GzipPacker(), values)
    planes = np.ascontiguousarray(values.view(np.uint8).reshape(-1, 8).T)
    assert zlib.decompress(stream) == planes.tobytes()
    assert planes[0].tobytes()[:1000] in stream  # the lowest byte lies there as it was
    assert len(stream) < 0.9 * values.nbytes


def test_a_probe_of_an_earlier_chunk_decides_nothing_but_the_size():
    """Noise after zeros, and zeros after noise: what was found of the first still holds."""
    rng = np.random.default_rng(0)
    zeros = np.zeros(30_000)
    noise = rng.integers(0, 1 << 62, 30_000).view(np.float64)
    for chunks in ((zeros, noise, zeros), (noise, zeros, noise)):
        packer = GzipPacker()
        for chunk in chunks:
            planes = zlib.decompress(packed(packer, chunk))
            assert np.array_equal(
                np.frombuffer(planes, np.uint8).reshape(8, -1).T,
                chunk.view(np.uint8).reshape(-1, 8),
            )


def store(path: Path, parts, chunk_rows: int = 100, name: str = "/x", threads=None, **how) -> None:
    """A file of one column, appended in parts; how: arguments of ChunkedColumn."""
    with h5py.File(path, "w") as file:
        column = ChunkedColumn(NewObjects(file), name, parts[0].dtype, parts[0].shape[1:], **how)
        columns = ChunkedColumns([column], chunk_rows)
        for part in parts:
            columns.append([part], threads)
        columns.finish(threads)


@pytest.mark.parametrize("compression", ["gzip", "none", "lzf", "zstd"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint8"])
@pytest.mark.parametrize("row_shape", [(), (3,)])
def test_any_reader_reads_back_what_was_appended(tmp_path, compression, dtype, row_shape):
    if compression == "zstd":
        pytest.importorskip("hdf5plugin")
    rng = np.random.default_rng(1)
    for total, chunk_rows in ((0, 100), (7, 100), (100, 100), (1234, 100), (70_000, 32_768)):
        rows = (rng.normal(size=(total, *row_shape)) * 100).astype(dtype)
        parts = np.array_split(rows, 5)
        store(tmp_path / "a.h5", parts, chunk_rows, "/g/x", unit="m", compression=compression)
        with h5py.File(tmp_path / "a.h5") as file:
            dataset = file["/g/x"]
            assert (dataset.dtype, dataset.fletcher32, dataset.attrs["unit"]) == (
                np.dtype(dtype),
                True,
                "m",
            )
            assert np.array_equal(dataset[:], rows)


@pytest.mark.parametrize("compression", ["gzip", "none", "lzf"])
@pytest.mark.parametrize("digest", [StreamDigest, BlockDigest])
def test_any_number_of_threads_writes_the_same_bytes(tmp_path, compression, digest):
    """For blocks that are smaller than a chunk and larger, and chunks that are no part of a block
    of the hash."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(100_000, 3))
    single = rng.integers(0, 9, 100_000).astype(np.int32)
    cuts = np.sort(rng.integers(0, len(rows), 40))
    results = set()
    for count in (0, 1, 5):
        path = tmp_path / f"{count}.h5"
        threads = ChunkThreads(count) if count else None
        with h5py.File(path, "w") as file:
            objects = NewObjects(file)
            columns = [
                ChunkedColumn(
                    objects,
                    f"/{values.ndim}",
                    values.dtype,
                    values.shape[1:],
                    "",
                    compression,
                    digest,
                )
                for values in (rows, single)
            ]
            together = ChunkedColumns(columns, 5000)
            for first, last in pairwise([0, *cuts, len(rows)]):
                together.append([rows[first:last], single[first:last]], threads)
            together.finish(threads)
        if threads is not None:
            threads.close()
        results.add((path.read_bytes(), *(column.digest.line() for column in columns)))
    assert len(results) == 1


@pytest.mark.parametrize("compression", ["gzip", "none", "lzf"])
@pytest.mark.parametrize("digest", [StreamDigest, BlockDigest])
def test_pieces_of_any_length_make_the_bytes_of_whole_chunks(tmp_path, compression, digest):
    """Pieces that are kept, those that are copied together, and each after the other."""
    rng = np.random.default_rng(5)
    rows = np.cumsum(rng.normal(size=(60_000, 3)), axis=0)
    lengths = (HELD_ROWS, 1, 30, HELD_ROWS - 1, 3 * HELD_ROWS, 2, 17_000, HELD_ROWS + 1, 400)
    cuts = np.minimum(np.cumsum(np.resize(lengths, 40)), len(rows))
    how = {"compression": compression, "digest": digest}
    store(tmp_path / "whole.h5", [rows], 16_384, **how)
    store(tmp_path / "pieces.h5", np.split(rows, np.unique(cuts)), 16_384, **how)
    assert (tmp_path / "pieces.h5").read_bytes() == (tmp_path / "whole.h5").read_bytes()
    with h5py.File(tmp_path / "pieces.h5") as file:
        assert np.array_equal(file["/x"][:], rows)


def test_long_pieces_of_a_chunk_are_kept_and_small_parts_of_large_arrays_are_copied(
    tmp_path, monkeypatch
):
    """The latter would keep the whole array in memory until the chunk is full."""
    packed_pieces = []

    def pack(packer, pieces, row_count, worthwhile):
        packed_pieces.extend(pieces)
        return np.concatenate(pieces)

    monkeypatch.setattr(PlainPacker, "pack", pack)
    parts = [np.arange(count, dtype=np.float64) for count in (3000, 5, 7, 4000, 22_989, 9)]
    store(tmp_path / "a.h5", parts, 10_000, compression="none")
    lengths = [3000, 12, 4000, 2988, 10_000, 10_000, 10]
    assert [len(piece) for piece in packed_pieces] == lengths
    kept = [any(np.shares_memory(piece, part) for part in parts) for piece in packed_pieces]
    assert kept == [True, False, True, False, True, True, False]


def test_a_chunk_that_is_packed_late_has_the_planes_of_its_own_probe(tmp_path):
    """Chunks change from noise to zeros where planes are probed again, while the chunk before is
    not packed yet."""

    class Late(ChunkThreads):
        def start(self, tasks, sequence, is_last):
            return lambda: [task() for task in (*tasks, *sequence)]

    rows = np.random.default_rng(4).normal(size=(64, 100))
    rows[8:16] = rows[24:32] = 0.0
    for name, threads in (("a", None), ("b", Late(1))):
        store(tmp_path / name, [rows.reshape(-1)], 100, threads=threads, digest=StreamDigest)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_an_error_of_a_thread_is_raised(tmp_path, monkeypatch):
    monkeypatch.setattr(GzipPacker, "pack", Mock(side_effect=MemoryError("no memory to pack")))
    threads = ChunkThreads(2)
    with pytest.raises(MemoryError, match="no memory to pack"):
        store(tmp_path / "a.h5", [np.zeros(1000)], threads=threads)
    threads.close()


def test_a_short_dataset_takes_no_full_chunk(tmp_path):
    store(tmp_path / "a.h5", [np.ones((2, 3))], 1 << 15, compression="none")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["/x"].chunks == (2, 3)
        assert file["/x"].id.get_storage_size() == 2 * 3 * 8 + 4


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_the_last_chunk_is_filled_with_zeros(tmp_path, compression):
    """Not with rows of the chunk before it: the same columns make the same bytes, whatever the
    blocks."""
    store(
        tmp_path / "a.h5",
        list(np.arange(1, 14, dtype=np.int32)[:, None]),
        10,
        compression=compression,
    )
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["/x"].resize(20, axis=0)
        assert file["/x"][:].tolist() == [*range(1, 14), *([0] * 7)]


def test_rows_of_another_type_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        objects = NewObjects(file)
        columns = ChunkedColumns(
            [ChunkedColumn(objects, path, np.dtype(np.float32)) for path in ("/x", "/y")]
        )
        with pytest.raises(ValueError, match="float64"):
            columns.append([np.zeros(3), np.zeros(3)])
        with pytest.raises(ValueError, match=r"\[3, 4\] rows"):
            columns.append([np.zeros(3, np.float32), np.zeros(4, np.float32)])


def test_a_compression_that_is_not_installed_is_refused(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(InputError, match="unknown compression 'brotli'"):
            ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float32), compression="brotli")
        monkeypatch.setitem(__import__("sys").modules, "hdf5plugin", None)
        with pytest.raises(InputError, match="hdf5plugin, which is not installed"):
            ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float32), compression="zstd")
