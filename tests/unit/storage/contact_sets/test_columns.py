"""Optional columns of contacts and tables of surfaces: written, read back, in the hash, and checked value by value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.material import Material, Materials, PairMaterial, PairMaterials
from collidecli.scene.mixing import RULE_COLUMNS, OptionalColumns
from collidecli.scene.model import Model
from collidecli.scene.tables import OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import pair_values
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

FRAMES = 6
RULES = tuple(RULE_COLUMNS)
GOLDEN = Path(__file__).parents[3] / "golden" / "contacts_1_1.h5"


def model_of(rule: str, forced: bool = True) -> Model:
    """The made-up model with five surfaces, no two alike; under MuJoCo's rule a forced pair has some of its own."""
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
    model = small_model(forced=forced)
    shapes = replace(model.shapes, material=Materials.of(surfaces))
    own = [PairMaterial(condim=1, friction=(1.0, 0.5, 0.25, 0.125, 0.0625)), None] if forced else []
    pairs = PairMaterials.of(own if rule == "mujoco" else [])
    return replace(model, shapes=shapes, material_rule=rule, forced_material=pairs)


def write(path: Path, model: Model, names: tuple[str, ...] | None = None, **options) -> dict[str, np.ndarray]:
    """The optional columns that were written: all of the rule's where no names are given."""
    optional = OptionalColumns.of(model, RULE_COLUMNS[model.material_rule] if names is None else names)
    block = optional.added(made_up_block(model, FRAMES))
    write_contact_set(path, model, block, columns=(*RIGID_COLUMNS, *optional.columns), **options)
    return {column.name: block.columns[column.name] for column in optional.columns}


@pytest.fixture(params=RULES)
def made(request, tmp_path):
    """A file with every column of a rule, its model and the columns."""
    model = model_of(request.param)
    return tmp_path / "a.h5", model, write(tmp_path / "a.h5", model, chunk_rows=50)


def words(path: Path) -> str:
    return "\n".join(str(finding) for finding in check_file(path))


def test_columns_are_read_back_and_good(made):
    path, model, columns = made
    assert check_file(path) == []
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 3)
        assert contacts.optional_columns == tuple(columns)
        assert contacts.column_names[: len(RIGID_COLUMNS)] == tuple(c.name for c in RIGID_COLUMNS)
        cell = contacts.cell(2, 1)
        start = contacts.cell_start()
        for name, values in columns.items():
            held = contacts.column(name)
            assert (held.dtype, held.shape) == (values.dtype, values.shape)
            assert held.tobytes() == values.tobytes()
            first, last = start[2 * model.world_count + 1 : 2 * model.world_count + 3]
            assert cell.columns[name].tobytes() == values[first:last].tobytes()
    with h5py.File(path) as file:
        for column in OPTIONAL_COLUMNS:
            if column.name in columns:
                assert file[f"rigid_contacts/{column.name}"].attrs.get("unit", "") == column.unit


def test_surfaces_are_read_back(made):
    path, model, _ = made
    material = model.shapes.material
    known = {
        "combine": ("restitution", "static_friction", "friction_combine"),
        "mujoco": ("condim", "solref", "solimp"),
    }
    with ContactSet.open(path) as contacts:
        assert contacts.material_rule == model.material_rule
        assert contacts.materials is not None
        for name in ("friction", "torsional_friction", "contact_ke", *known[model.material_rule]):
            np.testing.assert_array_equal(getattr(contacts.materials, name), getattr(material, name))
        if model.material_rule == "mujoco":
            np.testing.assert_array_equal(contacts.forced_materials.friction, model.forced_material.friction)
            assert contacts.forced_materials.condim.tolist() == [1, 0]
    with h5py.File(path) as file:
        held = set(file["model/shape"])
        assert ("solref" in held) == (model.material_rule == "mujoco")
        assert ("restitution" in held) == (model.material_rule == "combine")
        assert file["model/shape/contact_ke"].attrs["unit"] == "N/m"
        assert file["model/shape/rolling_friction"].attrs["unit"] == "m"


def test_nothing_is_written_that_nobody_asked_for(tmp_path):
    model = small_model()
    write(tmp_path / "a.h5", model, ())
    with h5py.File(tmp_path / "a.h5") as file:
        assert set(file["rigid_contacts"]) == {"cell_start", *(column.name for column in RIGID_COLUMNS)}
        assert "contact_ke" not in file["model/shape"]
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        assert contacts.optional_columns == ()
    assert check_file(tmp_path / "a.h5") == []


def test_the_content_hash_counts_columns_and_surfaces(tmp_path):
    hashes = set()
    model = model_of("mujoco")
    rougher = replace(model.shapes.material, friction=model.shapes.material.friction * 2)
    for k, (held, names) in enumerate(
        [
            (model, ()),
            (model, ("friction",)),
            (model, ("friction", "condim")),
            (replace(model, shapes=replace(model.shapes, material=rougher)), ()),
        ]
    ):
        write(tmp_path / f"{k}.h5", held, names)
        with ContactSet.open(tmp_path / f"{k}.h5") as contacts:
            hashes.add(contacts.content_sha256)
    assert len(hashes) == 4


@pytest.mark.parametrize(("rule", "name"), [(rule, name) for rule in RULES for name in RULE_COLUMNS[rule]])
def test_one_wrong_value_of_any_column_is_found(tmp_path, rule, name):
    path = tmp_path / "a.h5"
    write(path, model_of(rule))
    with h5py.File(path, "r+") as file:
        column = file[f"rigid_contacts/{name}"]
        values = column[-1]
        column[-1] = values + 1 if name == "condim" else np.nextafter(values, np.float32(9))
    assert f"{name} does not follow from the pair's two surfaces" in words(path)


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        *(("combine", name) for name in ("friction", "static_friction", "rolling_friction", "restitution", "margin")),
        *(("mujoco", name) for name in ("friction", "torsional_friction", "priority", "solmix", "solref", "solimp")),
    ],
)
def test_one_wrong_surface_is_found_by_its_contacts(tmp_path, rule, name):
    path = tmp_path / "a.h5"
    write(path, model_of(rule, forced=False))
    with h5py.File(path, "r+") as file:
        table = file[f"model/shape/{name}"]
        table[1] = table[1] + 1
    assert "does not follow from the pair's two surfaces" in words(path)


def test_forced_pairs_in_another_order_have_the_same_values(made):
    """Columns and separations follow from the pairs' own values, which are looked up by shapes."""
    path, _, _ = made

    with h5py.File(path, "r+") as file:
        for table in file["model/forced_pair"].values():
            table[...] = table[()][::-1]
        assert file["model/forced_pair/shape0"][()].tolist() == [2, 1]
    assert [line for line in words(path).splitlines() if "the content hash does not match" not in line] == []
    with ContactSet.open(path) as contacts:
        margin, gap = pair_values(contacts)
        one, two, four = (np.array([row]) for row in (1, 2, 4))
        assert (margin(one, two)[0], gap(two, four)[0]) == (0.5, np.float32(0.3))


def test_a_forced_pair_that_is_listed_twice_is_found(made):
    path, _, _ = made
    for name, value in (("shape0", 1), ("shape1", 2)):
        replaced(path, f"/model/forced_pair/{name}", np.full(2, value, np.int32))
    assert "/model/forced_pair/shape0, row 1: is the pair of an earlier row" in words(path)


def replaced(path: Path, name: str, values) -> None:
    with h5py.File(path, "r+") as file:
        del file[name]
        file[name] = values


BROKEN = [
    ("combine", "/model/shape/friction_combine", ["mean"] * 5, "is no combine mode (5 rows)"),
    ("combine", "/model/shape/restitution", np.full(5, np.nan), "is not finite (5 rows)"),
    ("combine", "/model/shape/friction", np.zeros(5, "f4"), "the type is float32, not float64"),
    ("combine", "/model/shape/friction", np.zeros(4), "it has 4 rows for 5 shapes"),
    ("mujoco", "/model/shape/condim", np.full(5, 2, "i4"), "is not 1, 3, 4 or 6 (5 rows)"),
    ("mujoco", "/model/shape/solref", np.zeros((5, 3)), "the shape is (5, 3), not ('n', 2)"),
    ("mujoco", "/model/shape/solimp", np.full((5, 5), np.inf), "is not finite (5 rows)"),
    ("mujoco", "/model/forced_pair/condim", np.full(2, 9, "i4"), "is not 0, 1, 3, 4 or 6 (2 rows)"),
    ("mujoco", "/rigid_contacts/friction5", np.zeros((3, 5), "f4"), "it has 3 rows for"),
    ("mujoco", "/rigid_contacts/condim", np.zeros(3, "i8"), "the type is int64, not int32"),
]


@pytest.mark.parametrize(("rule", "name", "values", "expected"), BROKEN)
def test_broken_tables_are_named(tmp_path, rule, name, values, expected):
    path = tmp_path / "a.h5"
    write(path, model_of(rule))
    replaced(path, name, values)
    (found,) = (line for line in words(path).splitlines() if expected in line)
    assert name in found


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("/model/shape/friction", np.zeros(4)),
        ("/model/shape/friction", np.zeros((5, 2))),
        ("/model/shape/friction_combine", np.zeros(5)),
        ("/rigid_contacts/friction", np.zeros(3, "f4")),
    ],
)
def test_the_reader_refuses_what_does_not_fit(tmp_path, name, values):
    path = tmp_path / "a.h5"
    write(path, model_of("combine"))
    replaced(path, name, values)
    with pytest.raises(InputError) as error:
        ContactSet.open(path)
    assert name in error.value.where


def test_missing_tables_and_unknown_rules_are_named(tmp_path):
    path = tmp_path / "a.h5"
    write(path, model_of("mujoco"))
    with h5py.File(path, "r+") as file:
        del file["model/shape/solimp"]
    assert "/model/shape/solimp: the dataset is missing" in words(path)
    with h5py.File(path, "r+") as file:
        file["model"].attrs["material_rule"] = "clay"
    with pytest.raises(InputError, match="material_rule is 'clay'"):
        ContactSet.open(path)
    assert "material_rule is 'clay'" in words(path)


def test_a_file_of_version_1_0_has_no_surfaces():
    with ContactSet.open(GOLDEN.with_name("contacts_1_0.h5")) as contacts:
        assert contacts.materials is None
        assert (contacts.material_rule, contacts.optional_columns) == ("", ())
        assert len(contacts.forced_materials) == 2


def test_version_1_1_is_reread():
    with ContactSet.open(GOLDEN) as contacts:
        assert contacts.version == (1, 1)
        assert contacts.material_rule == "mujoco"
        assert contacts.optional_columns == ("friction", "condim", "solref", "margin0")
        assert contacts.content_sha256 == "a6763611e77e4327f85b0f63ba0122401e5ff15d59dfe17d246c7079013d0b9d"
        assert contacts.materials is not None
        assert contacts.materials.condim.tolist() == [4, 6, 4, 4, 6]
        last = {name: values[-1] for name, values in contacts.cell(1, 1).columns.items()}
    assert last["condim"] == 6
    assert check_file(GOLDEN) == []
