"""Filters, margins and environments of deformable prims of a USD stage, and attributes that they cannot have."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder

HEAD = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
    timeCodesPerSecond = 10
)
def Cube "Box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double size = 1
}
def Sphere "Ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double radius = 1
}
"""


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


def imported(tmp_path, text: str):
    path = tmp_path / "stage.usda"
    path.write_text(text)
    builder = ModelBuilder()
    found = add_usd(builder, path)
    return found, builder.finalize()


def test_own_attributes_of_particles_are_known(tmp_path):
    found, _ = imported(tmp_path, HEAD + drops())
    assert found.warnings == ()


def test_a_radius_of_particles_has_no_effect_on_a_shape(tmp_path):
    shape = drops().replace("def Points", "def Sphere").replace("bool collide:deformable = 1", "")
    found, _ = imported(tmp_path, HEAD + shape)
    assert found.warnings == ("</Drops>: collide:particleRadius is unknown and has no effect",)


def touched(model) -> list[str]:
    """Paths of the shapes that the first object may touch."""
    return [path for row, path in enumerate(model.shapes.path) if model.particles.may_touch(0, row)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (drops(), ["/Box", "/Ball"]),
        (drops() + GROUPS, ["/Ball"]),
        (drops('rel physics:collisionGroup = </Other>') + GROUPS.replace("</Drops>", "</Ball>"), ["/Box", "/Ball"]),
        (drops("rel physics:collisionGroup = </Hard>") + GROUPS.replace("</Drops>", "</Ball>"), ["/Box"]),
        (drops("int newton:collision_group = 0"), []),
        (drops("int newton:collision_group = 7"), []),
        (drops("int newton:collision_group = -1"), ["/Box", "/Ball"]),
        (drops("int mjc:contype = 2\n int mjc:conaffinity = 2"), []),
        (drops("int mjc:contype = 3\n int mjc:conaffinity = 2"), ["/Box", "/Ball"]),
        (drops("bool physics:collisionEnabled = 0"), []),
        (drops(schemas='"PhysicsCollisionAPI", "PhysxTriggerAPI"'), []),
        (drops(schemas='"PhysxDeformableBodyAPI"'), ["/Box", "/Ball"]),
    ],
)  # fmt: skip
def test_filters_are_those_of_rigid_colliders(tmp_path, text, expected):
    _, model = imported(tmp_path, HEAD + text)
    assert touched(model) == expected


def test_colliders_of_another_physics_scene_are_not_touched(tmp_path):
    scenes = 'def PhysicsScene "One" {}\ndef PhysicsScene "Two" {}\n'
    _, model = imported(tmp_path, HEAD + scenes + drops("rel physics:simulationOwner = </Two>"))
    assert touched(model) == []
    _, model = imported(tmp_path, HEAD + scenes + drops("rel physics:simulationOwner = </One>"))
    assert touched(model) == ["/Box", "/Ball"]


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
    _, model = imported(tmp_path, HEAD + drops(more))
    np.testing.assert_allclose(model.particles.radius, radius)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (drops("float newton:contactGap = 1"), r"</Drops>: newton:contactGap of a deformable prim is not handled"),
        (drops("bool newton:hydroelasticEnabled = 1"), r"newton:hydroelasticEnabled of a deformable prim is not"),
        (drops("float newton:contactMargin = -1"), r"</Drops>: newton:contactMargin is -1"),
        (
            drops("rel physics:filteredPairs = </Box>"),
            r"</Drops>: physics:filteredPairs with the deformable prim </Drops>",
        ),
        (
            drops() + 'over "Box" { rel physics:filteredPairs = </Drops> }',
            r"</Box>: physics:filteredPairs with the def",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(tmp_path, text, said):
    if "over" in text:  # one prim has one specification in a layer
        box, _, over = text.partition('over "Box" { ')
        text = HEAD.replace("double size = 1", "double size = 1\n    " + over.removesuffix(" }")) + box
    else:
        text = HEAD + text
    with pytest.raises(InputError, match=said):
        imported(tmp_path, text)


def test_what_has_no_effect_is_named(tmp_path):
    more = (
        "float physxCollision:contactOffset = 4\n float newton:contact_ke = 3\n float newton:hydroelasticStiffness = 5"
    )
    found, model = imported(tmp_path, HEAD + drops(more))
    for name in ("physxCollision:contactOffset", "newton:contact_ke", "newton:hydroelasticStiffness"):
        assert any(f"</Drops>: {name} has no effect on particles" in warning for warning in found.warnings), name
    assert model.gap_rule == "max"


ENVIRONMENTS = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
    timeCodesPerSecond = 10
)
def Xform "World"
{
    def Cube "step" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        double size = 2
        double3 xformOp:translate = (10, 0, 0)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "envs"
    {
        def Xform "env_0"
        {
            def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"])
            {
                double radius = 0.5
            }
            def Points "drops" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {
                point3f[] points.timeSamples = {
                    0: [(0, 0, 0.505), (0, 0, 5)], 2: [(0, 0, 3), (0, 0, 1.005)]
                }
            }
        }
        def Xform "env_1" (prepend references = </World/envs/env_0>)
        {
            double3 xformOp:translate = (10, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Xform "env_2" (prepend references = </World/envs/env_0>)
        {
            double3 xformOp:translate = (0, 7, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
            over "drops"
            {
                float collide:particleRadius = 0.002
            }
        }
    }
}
"""


def test_deformable_prims_of_environments_are_in_their_worlds(tmp_path):
    found, model = imported(tmp_path, ENVIRONMENTS)
    assert model.world_template.tolist() == [0, 0, 1]
    assert model.particles.path == ("/World/envs/env_0/drops", "/World/envs/env_2/drops")
    assert model.particles.template.tolist() == [0, 1]
    motion = found.motion(model)
    assert motion is not None
    rows = collidecli.collide(model, motion, device="cpu").groups["soft_contacts"]
    cell = np.repeat(np.arange(6), rows.cell_counts)
    held = rows.columns
    contacts = [
        (*divmod(int(at), 3), int(particle), model.shapes.path[shape], round(float(distance), 6))
        for at, particle, shape, distance in zip(
            cell, held["indices"][:, 0], held["shape"], held["distance"], strict=True
        )
    ]
    assert contacts == [
        (0, 0, 0, "/World/envs/env_0/ball", 0.005),
        (0, 1, 0, "/World/step", -0.495),
        (0, 1, 0, "/World/envs/env_0/ball", 0.005),
        (0, 2, 2, "/World/envs/env_2/ball", 0.003),
        (1, 1, 1, "/World/step", 0.005),
    ]
    points = held["point_world"][:, :2].round(3).tolist()
    assert points[2] == [10.0, 0.0]
    assert points[3] == [0.0, 7.0]


def test_a_deformable_prim_in_a_world_of_newton(tmp_path):
    box, world = 'def Cube "Box"', "    int newton:world = {}\n"
    text = HEAD.replace("double size = 1", "double size = 1\n" + world.format(0)) + drops("int newton:world = 1")
    assert box in text
    _, model = imported(tmp_path, text)
    assert model.world_count == 2
    assert dict(zip(model.shapes.path, model.shapes.template.tolist(), strict=True)) == {"/Ball": -1, "/Box": 0}
    assert set(model.particles.template.tolist()) == {1}
