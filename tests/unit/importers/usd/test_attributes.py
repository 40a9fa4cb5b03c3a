"""Attributes of colliders and of deformable prims: margin, gap, filters, what is kept, refused and
warned of."""

import json
from pathlib import Path

import numpy as np
import pytest

import collidecli
from collidecli.cli import main as cli
from collidecli.errors import InputError
from collidecli.importers.usd.colliders import IGNORED, KEPT, TABLE
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from tests.support.usd_scenes import (
    BODY,
    CENTIMETRES,
    COLLIDER,
    at,
    check_refused,
    load,
    sphere,
    write_usda,
)


def offsets(contact=None, rest=None, more="") -> str:
    lines = [f"float physxCollision:contactOffset = {contact}"] if contact is not None else []
    lines += [f"float physxCollision:restOffset = {rest}"] if rest is not None else []
    return "\n".join([*lines, more])


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
        (offsets(0.5, -0.25), 0, 0.5),
        (offsets(0.5, more="float newton:contactMargin = 0.125"), 0.125, 0.375),
        (
            offsets(0.5, 0.25, "float newton:contactMargin = 0.125\nfloat newton:contactGap = 1"),
            0.125,
            1,
        ),
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
        ("float newton:contactGap = 0.5", "sum", 0.1),
        ("float newton:contactGap = -inf", "max", 0.1),
        ("float newton:contactMargin = 0.5", "max", 0.1),
        (offsets(rest=0.25), "max", 0.1),
        (offsets(0.5), "sum", 0.05),
        ("float mjc:gap = 0.5", "sum", 0.05),
        (offsets(0.5, more="float newton:contactGap = 0.5"), "sum", 0.1),
        (offsets(0.5, more="bool physics:collisionEnabled = 0"), "max", 0.1),
        ("float newton:contactGap = 0.5\nbool physics:collisionEnabled = 0", "max", 0.1),
    ],
)
def test_gap_rule(tmp_path, inside, rule, plain):
    """Newton, PhysX and MuJoCo add the gaps of a pair; colliders without one then have Newton's
    default, or half of the default of a pair."""
    _, model = load(tmp_path, sphere("a", inside) + sphere("b"))
    assert (model.gap_rule, margin_and_gap(model, "/b")) == (rule, (0, plain))
    _, model = load(tmp_path, sphere("a", offsets(4, 1)), CENTIMETRES)
    np.testing.assert_allclose(margin_and_gap(model, "/a"), (0.01, 0.03))


def test_a_collider_has_only_newtons_lengths_of_its_body(tmp_path):
    inside = offsets(0.5, 0.25, "float newton:contactGap = 0.125")
    _, model = load(
        tmp_path, f'def Xform "x" {BODY} {{\n{inside}\n{sphere("p", apis=COLLIDER)}}}\n'
    )
    assert margin_and_gap(model, "/x/p") == (0, 0.125)


UNKNOWN = """float newton:contactSpeed = 1
float physxCollision:magnetism = 2
float newton:mpm:voxelSize = 1
float physxRigidBody:linearDamping = 1
float other:contactGap = 1
float physxCollision:torsionalPatchRadius = 1"""
UNKNOWN_OF_THREE = (
    sphere("a", UNKNOWN) + sphere("b", UNKNOWN) + sphere("c", "float newton:contactSpeed = 1")
)
BOTH_GIVEN = offsets(0.5, 0.25, "float newton:contactMargin = 0.125\nfloat newton:contactGap = 1")
NEGATIVE = offsets(0.5, -0.25)
WARNINGS = {
    sphere("a", offsets(rest=0.25, more="float newton:contactMargin = 0.25")): [],
    sphere("a", NEGATIVE) + sphere("b", NEGATIVE): [
        "</a> and 1 more: physxCollision:restOffset is negative"
    ],
    sphere("a", BOTH_GIVEN): [
        "</a>: physxCollision:restOffset is ignored where newton:contactMargin is authored",
        "</a>: physxCollision:contactOffset is ignored where newton:contactGap is authored",
    ],
    UNKNOWN_OF_THREE: [
        "</a> and 2 more: newton:contactSpeed is unknown and has no effect",
        "</a> and 1 more: physxCollision:magnetism is unknown and has no effect",
    ],
}


@pytest.mark.parametrize(
    "text", WARNINGS, ids=["given by both", "negative", "Newton's first", "unknown"]
)
def test_what_has_no_effect_on_a_shape_is_told(tmp_path, text):
    warnings = load(tmp_path, text)[0].warnings
    assert [
        warning.partition(": surfaces are not deflated here; ")[0] for warning in warnings
    ] == WARNINGS[text]


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


def test_hydroelastic_stiffness_is_in_si(tmp_path):
    # In SI: a stiffness per area and length of 100 kg / (cm s)^2 is 1e6 kg / (m s)^2; inf marks a
    # rigid shape.
    rigid = "bool newton:hydroelasticEnabled = 1\nfloat newton:hydroelasticStiffness = inf\n"
    _, model = load(tmp_path, sphere("a", SDF) + sphere("b") + sphere("c", rigid), CENTIMETRES)
    assert model.shapes.is_hydroelastic.tolist() == [True, False, True]
    np.testing.assert_allclose(model.shapes.hydro_stiffness, [1e6, np.nan, np.inf])


def test_what_is_kept_for_later_is_in_si(tmp_path):
    rigid = "bool newton:hydroelasticEnabled = 1\nfloat newton:hydroelasticStiffness = inf\n"
    scene, _ = load(tmp_path, sphere("a", SDF) + sphere("b") + sphere("c", rigid), CENTIMETRES)
    assert list(scene.kept) == ["/a"]
    assert scene.kept["/a"] == {
        "newton:sdfMaxResolution": 64,
        "newton:sdfTargetVoxelSize": pytest.approx(0.02),
        "newton:sdfNarrowBandInner": pytest.approx(-0.04),
        "newton:sdfNarrowBandOuter": pytest.approx(0.04),
        "newton:sdfTextureFormat": "uint8",
        "newton:maxHullVertices": -1,
        "physxConvexHullCollision:hullVertexLimit": 32,
    }


def test_inspect_counts_what_is_kept_for_later(tmp_path, capsys):
    path = str(
        write_usda(tmp_path, sphere("a", SDF) + sphere("b", "int newton:maxHullVertices = 8"))
    )
    assert (cli.main(["inspect", path, "--json"]), cli.main(["inspect", path])) == (0, 0)
    result, _, words = capsys.readouterr().out.partition("\n")
    kept = json.loads(result)["kept_attributes"]
    assert (len(kept), kept["newton:maxHullVertices"], kept["newton:sdfMaxResolution"]) == (7, 2, 1)
    assert "newton:maxHullVertices (2)" in " ".join(words.split())


def test_solver_parameters(tmp_path):
    """Of the collider, or of its body: [N/m], [N s/m] by the stage's kilogram, adhesion [m] by its
    metre."""
    held = "float newton:contact_ke = 5\nfloat newton:contact_kd = 4\nfloat newton:contact_kf = 3\n"
    text = f'def Xform "x" {BODY} {{\n{held}float newton:contact_ka = 2\n'
    text += (
        sphere("p", "float newton:contact_ke = 7", COLLIDER) + sphere("q", apis=COLLIDER) + "}\n"
    )
    _, model = load(
        tmp_path, text, header='metersPerUnit = 0.01\nkilogramsPerUnit = 10\nupAxis = "Z"'
    )
    columns = [
        getattr(model.shapes.material, f"contact_{name}") for name in ("ke", "kd", "kf", "ka")
    ]
    np.testing.assert_allclose(np.transpose(columns), [(70, 40, 30, 0.02), (50, 40, 30, 0.02)])


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        (offsets(0.25, 0.5), "contactOffset (0.25 m) is less than the margin (0.5 m)"),
        (offsets(-0.25), "physxCollision:contactOffset is -0.25"),
        (offsets("inf"), "physxCollision:contactOffset is inf"),
        ("float newton:contactGap = inf", "newton:contactGap is inf"),
        ("float newton:contactGap = nan", "newton:contactGap is nan"),
        (
            "float newton:contactGap.timeSamples = { 0: 1, 1: 2 }",
            "newton:contactGap changes over time",
        ),
        ("bool newton:contactGap = 1", "newton:contactGap is True"),
        ("float newton:collision_group = 1.5", "newton:collision_group is 1.5"),
        ("int newton:sdfMaxResolution = 0", "newton:sdfMaxResolution is 0"),
        ("float newton:sdfTargetVoxelSize = 0", "newton:sdfTargetVoxelSize is 0"),
        ('token newton:sdfTextureFormat = "uint4"', "newton:sdfTextureFormat is 'uint4'"),
        ("int newton:hydroelasticEnabled = 1", "newton:hydroelasticEnabled is 1"),
        ("float newton:contact_ke = -1", "newton:contact_ke is -1"),
        (
            'string physics:collisionEnabled.timeSamples = { 0: "a", 1: "b" }',
            "physics:collisionEnabled has the type string",
        ),
    ],
)
def test_refused_by_name(tmp_path, inside, said):
    check_refused(lambda: load(tmp_path, sphere("a", inside)), (said, "</a>"))


def test_newton_world_is_one_in_each_environment(tmp_path):
    def environments(*worlds):
        """Spheres a, b, ... of each environment, in these worlds of Newton, and one that is in
        all."""
        inside = (
            "".join(in_world(name, k) for name, k in zip("ab", of_one, strict=False))
            for of_one in worlds
        )
        envs = "".join(f'def Xform "env_{k}" {{\n{spheres}}}\n' for k, spheres in enumerate(inside))
        return f'def Xform "World" {{\ndef Xform "envs" {{\n{envs}}}\n}}\n' + in_world("g", -1)

    def in_world(name, number):
        return sphere(name, f"int newton:world = {number}")

    assert load(tmp_path, environments([0], [1]))[1].world_count == 2
    check_refused(
        lambda: load(tmp_path, environments([0, 1], [1])), ["newton:world is 1, and 0 elsewhere"]
    )


@pytest.mark.parametrize("inside", [offsets(0.5), "float newton:contactGap = 0.5"])
def test_gaps_that_add_need_a_builder_that_adds(tmp_path, inside):
    path = write_usda(tmp_path, sphere("a", inside))
    builders = [ModelBuilder(), ModelBuilder()]
    for builder in builders:
        builder.add_shape_sphere(-1, radius=1.0)
    with pytest.raises(InputError, match="gap_rule is 'max'"):
        add_usd(builders[0], path)
    builders[1].gap_rule = "sum"
    add_usd(builders[1], path)
    assert builders[1].finalize().gap_rule == "sum"


def test_the_table_in_the_documents():
    """docs/reference/usd-filters.md has a row for every attribute."""
    text = (Path(__file__).parents[4] / "docs/reference/usd-filters.md").read_text(encoding="utf-8")
    for row in TABLE:
        assert f"`{row.name}`" in text, row.name
    assert {row.use for row in TABLE if row.kind is str} == {KEPT, IGNORED}


# Deformable prims of a USD stage: which are particles, their positions over time, and what is
# refused.

BOX = f'def Cube "Box" {COLLIDER} {{\ndouble size = 1\n}}\n'
DROPS = """def Points "Drops" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    point3f[] points.timeSamples = { 0: [(0, 0, 60), (20, 0, 90)], 2: [(0, 0, 50), (20, 0, 70)] }
    float[] widths = [2, 4]
    float3 xformOp:scale = (1, 2, 3)
    double3 xformOp:translate.timeSamples = { 0: (10, 0, 0), 2: (30, 0, 0) }
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
}
"""
CLOTH = """def Mesh "Cloth" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    point3f[] points.timeSamples = {
        0: [(0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)], 1: [(0, 0, 0.5), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    }
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
}
"""
JELLY = """def TetMesh "Jelly" (prepend apiSchemas = ["PhysxDeformableBodyAPI"])
{
    point3f[] points = [(0, 0, 3), (1, 0, 3), (0, 1, 3), (0, 0, 4)]
    int4[] tetVertexIndices = [(0, 1, 2, 3)]
    float collide:particleRadius = 0.5
}
"""


def moved(found, model):
    motion = found.motion(model)
    return motion, motion.read_particles(range(len(motion.time)))


def test_points_move_with_their_samples(tmp_path):
    found, model = load(tmp_path, BOX + DROPS, CENTIMETRES)
    particles = model.particles
    assert (particles.path, particles.kind) == (("/Drops",), ("particles",))
    np.testing.assert_allclose(particles.radius, [0.01, 0.02])
    motion, positions = moved(found, model)
    np.testing.assert_allclose(motion.time, [0.0, 0.2])
    expected = np.array([[[0.1, 0.0, 1.8], [0.3, 0.0, 2.7]], [[0.3, 0.0, 1.5], [0.5, 0.0, 2.1]]])
    np.testing.assert_allclose(positions[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(particles.position, expected[0], atol=1e-12)


def test_what_deforms_is_a_cloth_or_a_soft_body(tmp_path):
    found, model = load(tmp_path, BOX + CLOTH + JELLY + DROPS, CENTIMETRES)
    particles = model.particles
    assert (particles.path, particles.kind) == (
        ("/Cloth", "/Jelly", "/Drops"),
        ("cloth", "soft", "particles"),
    )
    assert model.shapes.path == ("/Box",)
    assert particles.triangle.tolist() == [
        [0, 1, 2],
        [0, 2, 3],
        [4, 6, 5],
        [4, 5, 7],
        [4, 7, 6],
        [5, 6, 7],
    ]
    assert particles.tetrahedron.tolist() == [[4, 5, 6, 7]]
    np.testing.assert_allclose(particles.radius, [0.0] * 4 + [0.005] * 4 + [0.01, 0.02])
    assert moved(found, model)[1].shape == (3, 1, 10, 3)


@pytest.mark.parametrize(
    "prim",
    [
        CLOTH.replace('(prepend apiSchemas = ["PhysicsCollisionAPI"])', ""),
        JELLY.replace("{\n", "{\n    bool collide:deformable = 0\n", 1),
        DROPS.replace('(prepend apiSchemas = ["PhysicsCollisionAPI"])', ""),
        JELLY.replace('(prepend apiSchemas = ["PhysxDeformableBodyAPI"])', ""),
    ],
)
def test_what_only_shows_is_not_deformable(tmp_path, prim):
    _, model = load(tmp_path, BOX + prim, CENTIMETRES)
    assert len(model.particles) == 0


@pytest.mark.parametrize(
    ("prim", "what"),
    [
        (DROPS.replace("[2, 4]", "[2, 4, 5]"), "</Drops>: there are 3 widths for 2 points"),
        (DROPS.replace("[2, 4]", "[-2, 4]"), "</Drops>: a particle's radius is -1"),
        (
            JELLY.replace("(0, 1, 2, 3)", "(0, 1, 2, 4)"),
            "</Jelly>: an index is 4, and the points are 0 to 3",
        ),
        (
            JELLY.replace("(0, 1, 2, 3)", "(0, 1, 2, 2)"),
            "s.usda: soft '/Jelly': element 0 of the tetrahedra has one",
        ),
        (
            JELLY.replace("int4[] tetVertexIndices = [(0, 1, 2, 3)]", ""),
            "</Jelly>: the deformable prim has no tetVert",
        ),
        (
            CLOTH.replace("Counts = [4]", "Counts.timeSamples = { 0: [4], 1: [3] }"),
            "VertexCounts changes over time",
        ),
        (CLOTH.replace("[4]", "[3]"), "</Cloth>: faceVertexCounts and faceVertexIndices disagree"),
        (
            CLOTH.replace("0: [(0, 0, 1)", "0: [(0, inf, 1)"),
            "</Cloth>: point 0 is at (0, inf, 0.01)",
        ),
        (
            CLOTH.replace("{\n", "{\n    string collide:deformable = 'no'\n", 1),
            "</Cloth>: collide:deformable is 'no'",
        ),
        (
            sphere("Ball", "bool collide:deformable = 1", ""),
            "</Ball>: collide:deformable is set on a prim of type Sp",
        ),
    ],
)
def test_invalid_prims_are_refused_by_name(tmp_path, prim, what):
    check_refused(lambda: load(tmp_path, BOX + prim, CENTIMETRES), [what])


@pytest.mark.parametrize(
    ("points", "what"),
    [
        ("[(0, 0, 50)]", "there are 1 points, and 2 at rest"),
        ("[(0, 0, nan), (1, 1, 1)]", "point 0 is at"),
    ],
)
def test_points_that_do_not_fit_are_refused(tmp_path, points, what):
    imported = load(tmp_path, BOX + DROPS.replace("[(0, 0, 50), (20, 0, 70)]", points), CENTIMETRES)
    check_refused(lambda: moved(*imported), [f"</Drops>, time code 2: {what}"])


# Filters, margins and environments of deformable prims of a USD stage, and attributes that they
# cannot have.

BOX_AND_BALL = BOX + sphere("Ball", "double radius = 1", COLLIDER)


def drops(more: str = "", schemas: str = '"PhysicsCollisionAPI"') -> str:
    return f"""def Points "Drops" (prepend apiSchemas = [{schemas}])
{{
    bool collide:deformable = 1
    point3f[] points = [(0, 0, 60), (20, 0, 90)]
    float collide:particleRadius = 3
    {more}
}}
"""


GROUPS = """def PhysicsCollisionGroup "Soft"
{
    prepend rel physics:filteredGroups = </Hard>
    prepend rel collection:colliders:includes = [</Drops>]
}
def PhysicsCollisionGroup "Hard"
{
    prepend rel collection:colliders:includes = [</Box>]
}
"""


def beside_box_and_ball(tmp_path, text: str):
    return load(tmp_path, BOX_AND_BALL + text, CENTIMETRES)


def test_attributes_without_effect_are_named(tmp_path):
    assert beside_box_and_ball(tmp_path, drops())[0].warnings == ()
    shape = drops().replace("def Points", "def Sphere").replace("bool collide:deformable = 1", "")
    warnings = beside_box_and_ball(tmp_path, shape)[0].warnings
    assert warnings == ("</Drops>: collide:particleRadius is unknown and has no effect",)
    names = ("physxCollision:contactOffset", "newton:contact_ke", "newton:hydroelasticStiffness")
    found, model = beside_box_and_ball(
        tmp_path, drops("\n".join(f"float {name} = 4" for name in names))
    )
    for name in names:
        assert f"</Drops>: {name} has no effect on particles" in "".join(found.warnings)
    assert model.gap_rule == "max"


TWO_SCENES = 'def PhysicsScene "One" {}\ndef PhysicsScene "Two" {}\n'


def touched(model) -> list[str]:
    """Paths of the shapes that the first object may touch."""
    return [path for row, path in enumerate(model.shapes.path) if model.particles.may_touch(0, row)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (drops(), ["/Box", "/Ball"]),
        (drops() + GROUPS, ["/Ball"]),
        (
            drops("rel physics:collisionGroup = </Other>") + GROUPS.replace("</Drops>", "</Ball>"),
            ["/Box", "/Ball"],
        ),
        (
            drops("rel physics:collisionGroup = </Hard>") + GROUPS.replace("</Drops>", "</Ball>"),
            ["/Box"],
        ),
        (drops("int newton:collision_group = 0"), []),
        (drops("int newton:collision_group = 7"), []),
        (drops("int newton:collision_group = -1"), ["/Box", "/Ball"]),
        (drops("int mjc:contype = 2\n int mjc:conaffinity = 2"), []),
        (drops("int mjc:contype = 3\n int mjc:conaffinity = 2"), ["/Box", "/Ball"]),
        (drops("bool physics:collisionEnabled = 0"), []),
        (drops(schemas='"PhysicsCollisionAPI", "PhysxTriggerAPI"'), []),
        (drops(schemas='"PhysxDeformableBodyAPI"'), ["/Box", "/Ball"]),
        (TWO_SCENES + drops("rel physics:simulationOwner = </Two>"), []),
        (TWO_SCENES + drops("rel physics:simulationOwner = </One>"), ["/Box", "/Ball"]),
    ],
)
def test_filters_are_those_of_rigid_colliders(tmp_path, text, expected):
    _, model = beside_box_and_ball(tmp_path, text)
    assert touched(model) == expected


@pytest.mark.parametrize(
    ("more", "radius"),
    [
        ("", 0.03),
        ("float newton:contactMargin = 2", 0.05),
        ("float physxCollision:restOffset = 1", 0.04),
        ("float mjc:margin = 0.5", 0.035),
    ],
)
def test_a_margin_is_a_part_of_the_radius(tmp_path, more, radius):
    _, model = beside_box_and_ball(tmp_path, drops(more))
    np.testing.assert_allclose(model.particles.radius, radius)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            drops("float newton:contactGap = 1"),
            "</Drops>: newton:contactGap of a deformable prim is not handled",
        ),
        (
            drops("bool newton:hydroelasticEnabled = 1"),
            "newton:hydroelasticEnabled of a deformable prim is not",
        ),
        (drops("float newton:contactMargin = -1"), "</Drops>: newton:contactMargin is -1"),
        (
            drops("rel physics:filteredPairs = </Box>"),
            "</Drops>: physics:filteredPairs with the deformable prim",
        ),
        (
            drops() + sphere("Other", "rel physics:filteredPairs = </Drops>", COLLIDER),
            "</Other>: physics:filteredP",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path, text, said):
    check_refused(lambda: beside_box_and_ball(tmp_path, text), [said])


FIRST = (
    sphere("ball", "double radius = 0.5")
    + """def Points "drops" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    point3f[] points.timeSamples = { 0: [(0, 0, 0.505), (0, 0, 5)], 2: [(0, 0, 3), (0, 0, 1.005)] }
}
"""
)
REFERENCE = "(prepend references = </World/envs/env_0>)"
ENVIRONMENTS = f"""def Xform "World"
{{
    def Cube "step" {COLLIDER}
    {{
        {at(10, 0, 0)}
    }}
    def Xform "envs"
    {{
        def Xform "env_0" {{{FIRST}}}
        def Xform "env_1" {REFERENCE} {{{at(10, 0, 0)}}}
        def Xform "env_2" {REFERENCE}
        {{
            {at(0, 7, 0)}
            over "drops"
            {{
                float collide:particleRadius = 0.002
            }}
        }}
    }}
}}
"""


def test_deformable_prims_of_environments_are_in_their_worlds(tmp_path):
    found, model = load(
        tmp_path, ENVIRONMENTS, 'metersPerUnit = 1\nupAxis = "Z"\ntimeCodesPerSecond = 10'
    )
    assert model.world_template.tolist() == [0, 0, 1]
    assert model.particles.path == ("/World/envs/env_0/drops", "/World/envs/env_2/drops")
    assert model.particles.template.tolist() == [0, 1]
    rows = collidecli.collide(model, found.motion(model), device="cpu").groups["soft_contacts"]
    held = rows.columns
    columns = zip(
        np.repeat(np.arange(6), rows.cell_counts), held["indices"][:, 0], held["shape"], strict=True
    )
    assert [
        (*divmod(int(at), 3), int(particle), model.shapes.path[shape])
        for at, particle, shape in columns
    ] == [
        (0, 0, 0, "/World/envs/env_0/ball"),
        (0, 1, 0, "/World/step"),
        (0, 1, 0, "/World/envs/env_0/ball"),
        (0, 2, 2, "/World/envs/env_2/ball"),
        (1, 1, 1, "/World/step"),
    ]
    np.testing.assert_allclose(held["distance"], [0.005, -0.495, 0.005, 0.003, 0.005], atol=1e-6)
    np.testing.assert_allclose(held["point_world"][2:4, :2], [[10.0, 0.0], [0.0, 7.0]], atol=1e-3)


def test_a_deformable_prim_in_a_world_of_newton(tmp_path):
    text = BOX_AND_BALL.replace("double size = 1", "double size = 1\nint newton:world = 0")
    _, model = load(tmp_path, text + drops("int newton:world = 1"), CENTIMETRES)
    assert model.world_count == 2
    assert dict(zip(model.shapes.path, model.shapes.template.tolist(), strict=True)) == {
        "/Ball": -1,
        "/Box": 0,
    }
    assert set(model.particles.template.tolist()) == {1}
