"""Surfaces: what is refused and by which name, and how they become columns and a pair's values."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.material import COMBINE_MODES, Material, Materials, PairMaterial, PairMaterials
from collidecli.scene.mixing import BROUGHT_BY, RULE_COLUMNS, ContactMixing, chosen_columns
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.tables import MOTION_COLUMNS, OPTIONAL_COLUMNS

FULL = Material(
    0.25, 0.5, 0.01, 0.02, 0.75, "multiply", "max", 6, -3, 2.0, (-10.0, -1.0), (0.1, 0.2, 0.3, 0.4, 5.0), 1.0, 2.0, 3.0,
    0.0,
)  # fmt: skip


def two_spheres(rule: str = "mujoco", a: Material = FULL, b: Material = Material()) -> ModelBuilder:  # noqa: B008
    builder = ModelBuilder()
    builder.material_rule = rule
    for key, surface in (("a", a), ("b", b)):
        body = builder.add_body()
        builder.add_shape_sphere(body, cfg=ShapeConfig(material=surface), key=key)
    return builder


def test_columns_hold_what_was_given():
    held = Materials.of([Material(), FULL])
    assert len(held) == 2
    assert held.row(1) == FULL
    # Static friction that is not stated is the dynamic one.
    assert held.row(0) == Material(static_friction=0.5)
    assert np.isnan(held.contact_ke[0])
    assert held.friction_combine.tolist() == [0, COMBINE_MODES.index("multiply")]
    assert Materials.of([]).solimp.shape == (0, 5)


def test_a_config_s_friction_stands_in_place_of_its_material_s():
    builder = ModelBuilder()
    for cfg in (None, ShapeConfig(friction=0.9), ShapeConfig(material=FULL), ShapeConfig(friction=0.9, material=FULL)):
        builder.add_shape_sphere(-1, cfg=cfg)
    shapes = builder.finalize().shapes
    assert shapes.friction.tolist() == [0.5, 0.9, 0.25, 0.9]
    assert shapes.material.static_friction.tolist() == [0.5, 0.9, 0.5, 0.5]
    assert shapes.material.condim.tolist() == [3, 3, 6, 6]
    assert not shapes.friction.flags.writeable


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"friction": -0.1}, "friction is -0.1"),
        ({"friction": math.inf}, "friction is inf"),
        ({"static_friction": math.nan}, "static_friction is nan"),
        ({"torsional_friction": 1e19}, "torsional_friction is 1e+19"),
        ({"rolling_friction": -1.0}, "rolling_friction is -1.0"),
        ({"restitution": 1.1}, "restitution is 1.1"),
        ({"friction_combine": "mean"}, "friction_combine is 'mean'"),
        ({"restitution_combine": None}, "restitution_combine is None"),
        ({"condim": 2}, "condim is 2"),
        ({"priority": 0.5}, "priority is 0.5"),
        ({"priority": 1 << 31}, "priority is 2147483648"),
        ({"solmix": math.nan}, "solmix is nan"),
        ({"solref": (0.02,)}, "solref is (0.02,)"),
        ({"solref": (0.02, math.nan)}, "solref is nan"),
        ({"solimp": (0.9, 0.95, 0.001, 0.5, math.inf)}, "solimp is inf"),
        ({"contact_ke": -1.0}, "contact_ke is -1.0"),
        ({"contact_ka": math.inf}, "contact_ka is inf"),
    ],
)
def test_refusals_name_the_shape(values, message):
    with pytest.raises(InputError) as error:
        ModelBuilder().add_shape_sphere(-1, cfg=ShapeConfig(material=Material(**values)), key="ball")
    assert error.value.what == message
    assert error.value.where == "shape 'ball'"
    assert error.value.fix


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (PairMaterial(condim=5), "condim is 5"),
        (PairMaterial(friction=(1.0, 1.0, 1.0)), "friction is (1.0, 1.0, 1.0)"),
        (PairMaterial(friction=(1.0, 1.0, -1.0, 0.0, 0.0)), "friction is -1.0"),
        (PairMaterial(solref=(math.nan, 1.0)), "solref is nan"),
    ],
)
def test_refusals_of_pairs(pair, message):
    with pytest.raises(InputError) as error:
        two_spheres().add_shape_forced_pair(0, 1, material=pair)
    assert error.value.what == message
    assert error.value.where == "forced pair of shapes 0 and 1"


def test_rules_and_pairs_that_do_not_fit():
    builder = two_spheres("combine")
    builder.add_shape_forced_pair(0, 1, material=PairMaterial(condim=1))
    with pytest.raises(InputError, match="a forced pair has a material of its own"):
        builder.finalize()
    with pytest.raises(InputError, match="material_rule is 'newton'"):
        two_spheres("newton").finalize()
    builder = two_spheres()
    builder.add_shape_forced_pair(0, 1, material=PairMaterial(condim=1))
    builder.add_shape_forced_pair(1, 0, material=PairMaterial(condim=3))
    with pytest.raises(InputError, match="forced twice with different gap, margin or material"):
        builder.finalize()
    outer = ModelBuilder()
    with pytest.raises(InputError, match="material_rule is 'mujoco' there, 'combine' here"):
        outer.add_world(two_spheres())
    outer.material_rule = "mujoco"
    outer.add_world(two_spheres(), count=3)
    assert outer.finalize().material_rule == "mujoco"


def test_names_of_columns():
    names = {column.name for column in OPTIONAL_COLUMNS} - set(BROUGHT_BY)
    assert set().union(*RULE_COLUMNS.values()) == names - {column.name for column in MOTION_COLUMNS}
    for name, option in BROUGHT_BY.items():
        with pytest.raises(InputError, match=f"another option writes the column '{name}'\n.*{option}"):
            chosen_columns((name,), "combine")
    chosen = chosen_columns(("margin1", "friction", "margin1"), "combine")
    assert [column.name for column in chosen] == ["friction", "margin1"]
    with pytest.raises(InputError, match="no optional column 'fricton'") as error:
        chosen_columns(("fricton",), "combine")
    assert all(name in error.value.fix for name in names)
    for rule, other in (("combine", "solref"), ("mujoco", "restitution")):
        with pytest.raises(InputError, match=f"does not define a contact's {other}") as error:
            chosen_columns(("friction", other), rule)
        assert other not in error.value.fix


def mixed(builder: ModelBuilder) -> dict[str, list]:
    found = ContactMixing.of_model(builder.finalize()).of_pairs(np.array([0]), np.array([1]))
    return {name: values[0].tolist() for name, values in found.items()}


def test_a_pair_keeps_what_it_has_and_takes_the_rest_from_its_surfaces():
    surfaces = two_spheres(a=Material(0.25, priority=1), b=Material(0.75, condim=6))
    usual = mixed(surfaces)
    assert (usual["friction"], usual["condim"]) == (0.25, 3)
    surfaces.add_shape_forced_pair(1, 0, margin=0.5, material=PairMaterial(condim=1, solref=(-7.0, -8.0)))
    own = mixed(surfaces)
    assert own == {**usual, "condim": 1, "solref": [-7.0, -8.0], "margin0": 0.25, "margin1": 0.25}


def test_pairs_that_are_not_forced_have_their_surfaces_own():
    builder = two_spheres(a=Material(0.25), b=Material(0.75))
    builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(material=Material(0.5), margin=0.125))
    builder.add_shape_forced_pair(0, 1, margin=0.5, material=PairMaterial(condim=1, friction=(9.0,) * 5))
    mixing = ContactMixing.of_model(builder.finalize())
    found = mixing.of_pairs(np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert found["friction"].tolist() == [9.0, 0.5, 0.75]
    assert found["condim"].tolist() == [1, 3, 3]
    assert found["margin1"].tolist() == [0.25, 0.125, 0.125]


def test_a_surface_never_slides_harder_than_it_sticks():
    found = mixed(two_spheres("combine", Material(0.5, static_friction=0.0), Material(0.75, static_friction=1.0)))
    assert (found["friction"], found["static_friction"]) == (0.625, 0.625)


def test_margins_are_each_shape_s_own():
    builder = ModelBuilder()
    for margin in (0.125, 0.5):
        builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(margin=margin))
    found = mixed(builder)
    assert (found["margin0"], found["margin1"]) == (0.125, 0.5)
    builder.add_shape_forced_pair(0, 1)
    assert mixed(builder) == found


def test_contacts_that_stand_together_are_mixed_as_each_alone():
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    builder.material_rule = "mujoco"
    for k in range(12):
        solref = tuple(rng.uniform(-1, 1, 2))
        surface = Material(rng.uniform(), condim=int(rng.choice([1, 3, 4, 6])), solref=solref, priority=k % 2)
        builder.add_shape_sphere(builder.add_body(), cfg=ShapeConfig(material=surface, margin=rng.uniform()))
    for a in range(0, 12, 3):
        builder.add_shape_forced_pair(a, a + 1, margin=0.1 * a, material=PairMaterial(friction=(a, 1.0, 2.0, 3.0, 4.0)))
    mixing = ContactMixing.of_model(builder.finalize())
    shape0 = np.sort(rng.integers(0, 11, 400)).astype(np.int32)
    shape1 = shape0 + 1
    wanted = chosen_columns(RULE_COLUMNS["mujoco"], "mujoco")
    together = mixing.columns(wanted, shape0, shape1)
    for k in range(400):
        alone = mixing.columns(wanted, shape0[k : k + 1], shape1[k : k + 1])
        for column in wanted:
            assert together[column.name].dtype == column.dtype
            assert together[column.name][k].tobytes() == alone[column.name][0].tobytes()
    for name, values in mixing.columns(wanted, shape0[:0], shape1[:0]).items():
        assert len(values) == 0, name


def test_no_pair_has_anything_of_its_own():
    assert not PairMaterials.of([None, None]).any()
    assert not PairMaterials.of([]).any()
    assert PairMaterials.of([None, PairMaterial(solimp=(0.9, 0.95, 0.001, 0.5, 2.0))]).any()
