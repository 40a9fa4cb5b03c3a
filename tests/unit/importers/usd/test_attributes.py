"""Attributes that simulators write on USD colliders: margin and gap, what is kept, what is refused and warned of."""

import json
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli import main as cli
from collidecli.commands.python_api import collide
from collidecli.errors import InputError
from collidecli.importers.usd.colliders import IGNORED, KEPT, TABLE
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import explain
from tests.support.newton_pairs import newton_assets, newton_facts
from tests.support.usd_scenes import BODY, COLLIDER, load, sphere, write_usda

FLOAT32_OF_METRES = 4e-7
"""USD holds the offsets in float32, contacts their distances: a few roundings of numbers up to 2."""


def offsets(contact=None, rest=None, more="") -> str:
    lines = [f"float physxCollision:contactOffset = {contact}"] if contact is not None else []
    lines += [f"float physxCollision:restOffset = {rest}"] if rest is not None else []
    return "\n".join([*lines, more])


def at(x: float) -> str:
    return f'double3 xformOp:translate = ({x}, 0, 0)\nuniform token[] xformOpOrder = ["xformOp:translate"]\n'


def margin_and_gap(model, name: str) -> tuple[float, float]:
    row = model.shapes.path.index(name)
    return float(model.shapes.margin[row]), float(model.shapes.gap[row])


@pytest.mark.parametrize(
    ("inside", "margin", "gap"),
    [
        ("", 0, 0.1),
        ("float newton:contactMargin = 0.25\nfloat newton:contactGap = 0.5", 0.25, 0.5),
        ("float newton:contact_thickness = 0.25", 0.25, 0.1),
        ("float newton:contact_thickness = 0.25\nfloat newton:contactMargin = 0.5", 0.5, 0.1),
        ("float newton:contactGap = -inf\nfloat newton:contactMargin = -inf", 0, 0.1),
        (offsets("-inf", "-inf"), 0, 0.1),
        (offsets(rest=0.25), 0.25, 0.1),
        (offsets(0.5), 0, 0.5),
        (offsets(0.5, "-inf"), 0, 0.5),
        (offsets(0.5, 0.125), 0.125, 0.375),
        (offsets(0.5, 0.5), 0.5, 0),
        (offsets(0.5, more="float newton:contactMargin = 0.125"), 0.125, 0.375),
        (offsets(0.5, 0.25, "float newton:contactMargin = 0.125\nfloat newton:contactGap = 1"), 0.125, 1),
        ("float mjc:margin = 0.25\nfloat mjc:gap = 0.5", 0.25, 0.5),
        (offsets(0.5, 0.25, "float mjc:margin = 1\nfloat mjc:gap = 1"), 0.25, 0.25),
    ],
)
def test_margin_and_gap(tmp_path, inside, margin, gap):
    _, model = load(tmp_path, sphere("a", inside))
    assert margin_and_gap(model, "/a") == (margin, gap)


@pytest.mark.parametrize(
    ("inside", "rule", "plain"),
    [
        ("", "max", 0.1),
        ("float newton:contactGap = 0.5", "max", 0.1),
        (offsets(rest=0.25), "max", 0.1),
        (offsets(0.5), "sum", 0.05),
        ("float mjc:gap = 0.5", "sum", 0.05),
        (offsets(0.5, more="float newton:contactGap = 0.5"), "max", 0.1),
        (offsets(0.5, more="bool physics:collisionEnabled = 0"), "max", 0.1),
    ],
)
def test_gap_rule(tmp_path, inside, rule, plain):
    """PhysX and MuJoCo add the gaps of a pair; colliders that say nothing then have half the default each."""
    _, model = load(tmp_path, sphere("a", inside) + sphere("b"))
    assert (model.gap_rule, margin_and_gap(model, "/b")) == (rule, (0, plain))


@pytest.mark.parametrize("rest", [(0.0, 0.0), (0.02, 0.0), (0.02, 0.01), (-0.02, 0.01)])
def test_contacts_are_those_of_physx(tmp_path, rest):
    """PhysX's rule: a contact where the surfaces are nearer than the sum of contactOffsets, 0.125 + 0.0625 here."""
    max_separation, apart = 0.125 + 0.0625, sum(max(r, 0.0) for r in rest)
    for distance, there in ((max_separation - 1e-4, True), (max_separation + 1e-4, False)):
        text = sphere("a", offsets(0.125, rest[0]) + "\ndouble radius = 1\n" + at(0))
        text += sphere("b", offsets(0.0625, rest[1]) + "\ndouble radius = 1\n" + at(2 + distance))
        _, model = load(tmp_path, text)
        expected = [distance - apart] if there else []
        np.testing.assert_allclose(collide(model).distance, expected, rtol=0.0, atol=FLOAT32_OF_METRES)


def test_offsets_in_other_units(tmp_path):
    _, model = load(tmp_path, sphere("a", offsets(4, 1)), header='metersPerUnit = 0.01\nupAxis = "Z"')
    np.testing.assert_allclose(margin_and_gap(model, "/a"), (0.01, 0.03))


def test_offsets_are_of_the_collider_alone_and_newtons_of_its_body_too(tmp_path):
    held = offsets(0.5, 0.25, "float newton:contactGap = 0.125")
    text = f'def Xform "x" {BODY} {{\n{held}\n{sphere("p", apis=COLLIDER)}}}\n'
    _, model = load(tmp_path, text)
    assert margin_and_gap(model, "/x/p") == (0, 0.125)


def test_a_negative_rest_offset_is_told(tmp_path):
    scene, model = load(tmp_path, sphere("a", offsets(0.5, -0.25)) + sphere("b", offsets(0.5, -0.25)))
    assert margin_and_gap(model, "/a") == (0, 0.5)
    (said,) = scene.warnings
    assert said.startswith("</a> and 1 more: physxCollision:restOffset is negative")


def test_what_is_passed_over_is_told(tmp_path):
    inside = offsets(0.5, 0.25, "float newton:contactMargin = 0.125\nfloat newton:contactGap = 1")
    scene, _ = load(tmp_path, sphere("a", inside))
    assert scene.warnings == (
        "</a>: physxCollision:restOffset is ignored where newton:contactMargin is authored",
        "</a>: physxCollision:contactOffset is ignored where newton:contactGap is authored",
    )
    scene, _ = load(tmp_path, sphere("a", offsets(rest=0.25, more="float newton:contactMargin = 0.25")))
    assert scene.warnings == ()


def test_an_unknown_attribute_is_named_once(tmp_path):
    inside = "float newton:contactSpeed = 1\nfloat physxCollision:magnetism = 2\n"
    inside += "float newton:mpm:voxelSize = 1\nfloat physxRigidBody:linearDamping = 1\nfloat other:contactGap = 1\n"
    inside += "float physxCollision:torsionalPatchRadius = 1"
    scene, _ = load(tmp_path, sphere("a", inside) + sphere("b", inside) + sphere("c", "float newton:contactSpeed = 1"))
    assert set(scene.warnings) == {
        "</a> and 2 more: newton:contactSpeed is unknown and has no effect",
        "</a> and 1 more: physxCollision:magnetism is unknown and has no effect",
    }


SDF = """int newton:sdfMaxResolution = 64
float newton:sdfTargetVoxelSize = 2
float newton:sdfNarrowBandInner = -4
float newton:sdfNarrowBandOuter = 4
float newton:sdfPadding = -inf
uniform token newton:sdfTextureFormat = "uint8"
bool newton:hydroelasticEnabled = 1
float newton:hydroelasticStiffness = 100
int newton:maxHullVertices = -1
int physxConvexHullCollision:hullVertexLimit = 32
"""


def test_what_is_kept_for_later(tmp_path):
    scene, _ = load(tmp_path, sphere("a", SDF) + sphere("b"), header='metersPerUnit = 0.01\nupAxis = "Z"')
    (held,) = scene.kept.values()
    assert list(scene.kept) == ["/a"]
    assert held == {
        "newton:sdfMaxResolution": 64, "newton:sdfTargetVoxelSize": pytest.approx(0.02),
        "newton:sdfNarrowBandInner": pytest.approx(-0.04), "newton:sdfNarrowBandOuter": pytest.approx(0.04),
        "newton:sdfTextureFormat": "uint8", "newton:maxHullVertices": -1,
        "physxConvexHullCollision:hullVertexLimit": 32,
    }  # fmt: skip


def test_hydroelastic_shapes(tmp_path):
    """In SI: a stiffness per area and length of 100 kg / (cm s)^2 is 1e6 kg / (m s)^2; inf marks a rigid shape."""
    rigid = "bool newton:hydroelasticEnabled = 1\nfloat newton:hydroelasticStiffness = inf\n"
    text = sphere("a", SDF) + sphere("b") + sphere("c", rigid)
    _, model = load(tmp_path, text, header='metersPerUnit = 0.01\nupAxis = "Z"')
    assert model.shapes.is_hydroelastic.tolist() == [True, False, True]
    np.testing.assert_allclose(model.shapes.hydro_stiffness, [1e6, np.nan, np.inf])


def test_inspect_names_what_is_kept(tmp_path, capsys):
    scene = str(write_usda(tmp_path, sphere("a", SDF) + sphere("b", "int newton:maxHullVertices = 8")))
    assert cli.main(["inspect", scene, "--json"]) == 0
    kept = json.loads(capsys.readouterr().out)["kept_attributes"]
    assert (len(kept), kept["newton:maxHullVertices"], kept["newton:sdfMaxResolution"]) == (7, 2, 1)
    assert cli.main(["inspect", scene]) == 0
    assert "newton:maxHullVertices (2)" in " ".join(capsys.readouterr().out.split())


def test_solver_parameters(tmp_path):
    """Of the collider, or of its body: [N/m], [N s/m] by the stage's kilogram, adhesion [m] by its metre."""
    held = "float newton:contact_ke = 5\nfloat newton:contact_kd = 4\nfloat newton:contact_kf = 3\n"
    text = f'def Xform "x" {BODY} {{\n{held}float newton:contact_ka = 2\n'
    text += sphere("p", "float newton:contact_ke = 7", COLLIDER) + sphere("q", apis=COLLIDER) + "}\n"
    _, model = load(tmp_path, text, header='metersPerUnit = 0.01\nkilogramsPerUnit = 10\nupAxis = "Z"')
    columns = [getattr(model.shapes.material, f"contact_{name}") for name in ("ke", "kd", "kf", "ka")]
    np.testing.assert_allclose(np.transpose(columns), [(70, 40, 30, 0.02), (50, 40, 30, 0.02)])


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (offsets(0.25, 0.5), "contactOffset (0.25 m) is less than the margin (0.5 m)"),
        (offsets(-0.25), "physxCollision:contactOffset is -0.25"),
        (offsets("inf"), "physxCollision:contactOffset is inf"),
        ("float newton:contactGap = inf", "newton:contactGap is inf"),
        ("float newton:contactGap = nan", "newton:contactGap is nan"),
        ("float newton:contactGap.timeSamples = { 0: 1, 1: 2 }", "newton:contactGap changes over time"),
        ("bool newton:contactGap = 1", "newton:contactGap is True"),
        ("float newton:collision_group = 1.5", "newton:collision_group is 1.5"),
        ("int newton:sdfMaxResolution = 0", "newton:sdfMaxResolution is 0"),
        ("float newton:sdfTargetVoxelSize = 0", "newton:sdfTargetVoxelSize is 0"),
        ('token newton:sdfTextureFormat = "uint4"', "newton:sdfTextureFormat is 'uint4'"),
        ("int newton:hydroelasticEnabled = 1", "newton:hydroelasticEnabled is 1"),
        ("float newton:contact_ke = -1", "newton:contact_ke is -1"),
        ("bool physics:collisionEnabled.timeSamples = { 0: 1, 1: 0 }", "physics:collisionEnabled changes over time"),
    ],
)
def test_refused_by_name(tmp_path, inside, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, sphere("a", inside))
    assert said in str(error.value)
    assert "</a>" in error.value.where
    assert error.value.fix


def test_newton_world_is_one_in_each_environment(tmp_path):
    def environments(*inside):
        held = "".join(f'def Xform "env_{k}" {{\n{spheres}}}\n' for k, spheres in enumerate(inside))
        return f'def Xform "World" {{\ndef Xform "envs" {{\n{held}}}\n}}\n'

    def in_world(name, number):
        return sphere(name, f"int newton:world = {number}")

    _, model = load(tmp_path, environments(in_world("a", 0), in_world("a", 1)) + in_world("g", -1))
    assert model.world_count == 2
    with pytest.raises(InputError, match="newton:world is 1, and 0 elsewhere"):
        load(tmp_path, environments(in_world("a", 0) + in_world("b", 1), in_world("a", 1)))


def test_a_trigger_says_why_it_touches_nothing(tmp_path):
    trigger = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "PhysxTriggerAPI"])'
    _, model = load(tmp_path, sphere("a", apis=trigger) + sphere("b"))
    assert explain(model, 0, 1).rule == "PhysxTriggerAPI: a trigger makes no contact"


def test_gaps_that_add_need_a_builder_that_adds(tmp_path):
    path = write_usda(tmp_path, sphere("a", offsets(0.5)))
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=1.0)
    with pytest.raises(InputError, match="gap_rule is 'max'"):
        add_usd(builder, path)
    builder = ModelBuilder()
    builder.gap_rule = "sum"
    builder.add_shape_sphere(-1, radius=1.0)
    add_usd(builder, path)
    assert builder.finalize().gap_rule == "sum"


@pytest.mark.slow
def test_margins_and_gaps_in_newton(tmp_path):
    """Newton's importer reads the same numbers, where it reads any: PhysX's gap only if both offsets are authored."""
    newton_assets()
    inside = {
        "a": "float newton:contactMargin = 0.25\nfloat newton:contactGap = 0.5", "b": offsets(0.5, 0.125),
        "c": offsets(rest=0.25), "d": "float newton:contactMargin = 0.125\n" + offsets("-inf", "-inf"),
        "e": offsets(0.5, 0.25, "float newton:contactGap = 1"),
    }  # fmt: skip
    path = write_usda(tmp_path, "".join(sphere(name, text) for name, text in inside.items()))
    builder = ModelBuilder()
    add_usd(builder, path)
    model = builder.finalize()
    facts = newton_facts([path])[path]
    margins = {name: margin_and_gap(model, f"/{name}")[0] for name in inside}
    assert margins == {name: pytest.approx(facts["margin"][f"/{name}"]) for name in inside}
    gaps = {name: margin_and_gap(model, f"/{name}")[1] for name in "abe"}
    assert gaps == {name: pytest.approx(facts["gap"][f"/{name}"]) for name in "abe"}


def test_the_table_in_the_documents():
    """docs/reference/usd-filters.md has a row for every attribute."""
    text = (Path(__file__).parents[4] / "docs/reference/usd-filters.md").read_text(encoding="utf-8")
    for row in TABLE:
        assert f"`{row.name}`" in text, row.name
    assert {row.use for row in TABLE if row.kind is str} == {KEPT, IGNORED}
