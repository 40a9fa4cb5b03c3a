"""metersPerUnit over every type of shape: a scene in centimetres has the sizes, poses and contacts of one in metres."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.commands.python_api import collide
from tests.support.usd_scenes import load

APIS = '"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"'
CORNERS = [(x, y, z) for x in (-0.5, 0.25) for y in (-0.25, 0.5) for z in (-0.125, 0.25)]
QUADS = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
SHAPES = {
    "sphere": ("Sphere", "double radius = {0.25}"),
    "ellipsoid": ("Sphere", "double radius = {0.25}\nfloat3 xformOp:scale = (1, 2, 0.5)"),
    "box": ("Cube", "double size = {0.5}\nfloat3 xformOp:scale = (1, 2, 0.5)"),
    "capsule": ("Capsule", 'double radius = {0.125}\ndouble height = {0.75}\nuniform token axis = "X"'),
    "capsule of two radii": (
        "Capsule_1",
        "double radiusBottom = {0.125}\ndouble radiusTop = {0.125}\ndouble height = {0.75}",
    ),
    "cylinder": ("Cylinder", 'double radius = {0.25}\ndouble height = {0.75}\nuniform token axis = "Y"'),
    "cylinder of two radii": (
        "Cylinder_1",
        "double radiusBottom = {0.125}\ndouble radiusTop = {0.125}\ndouble height = {0.75}",
    ),
    "cone": ("Cone", "double radius = {0.25}\ndouble height = {0.75}"),
    "convex mesh": ("Mesh", 'MESHuniform token physics:approximation = "convexHull"'),
    "mesh": ("Mesh", 'MESHuniform token physics:approximation = "none"'),
    "bounding sphere": ("Mesh", 'MESHuniform token physics:approximation = "boundingSphere"'),
    "bounding cube": ("Mesh", 'MESHuniform token physics:approximation = "boundingCube"'),
}
"""Type and attributes by name; lengths in braces, in metres."""


def scene(kind: str, units: float, floor: bool) -> str:
    """A shape above the ground and beside a sphere. units: of the stage in a metre."""

    def lengths(text: str) -> str:
        parts = text.split("{")
        return parts[0] + "".join(f"{float(p.split('}')[0]) * units!r}{p.split('}')[1]}" for p in parts[1:])

    points = ", ".join(str(tuple(c * units for c in corner)) for corner in CORNERS)
    mesh = (
        f"point3f[] points = [{points}]\nint[] faceVertexCounts = {[4] * 6}\n"
        f"int[] faceVertexIndices = {[k for quad in QUADS for k in quad]}\n"
    )
    prim, inside = SHAPES[kind]
    operations = '"xformOp:translate", "xformOp:rotateXYZ"' + (', "xformOp:scale"' if "scale" in inside else "")
    apis = APIS + (', "PhysicsMeshCollisionAPI"' if prim == "Mesh" else "")
    shape = f"""def {prim} "shape" (prepend apiSchemas = [{apis}]) {{
        {lengths(inside).replace("MESH", mesh)}
        double3 xformOp:translate = ({0.5 * units}, {-0.25 * units}, {0.4375 * units})
        float3 xformOp:rotateXYZ = (25, -40, 65)
        uniform token[] xformOpOrder = [{operations}]
        float newton:contactMargin = {0.03125 * units}
        float newton:contactGap = {0.5 * units}
    }}
    """
    ball = f"""def Sphere "ball" (prepend apiSchemas = [{APIS}]) {{
        double radius = {0.25 * units}
        double3 xformOp:translate = ({0.625 * units}, {0.125 * units}, {0.875 * units})
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }}
    """
    ground = """def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        double3 xformOp:translate = (0, 0, HEIGHT)
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    """.replace("HEIGHT", repr(0.25 * units))
    return shape + (ground if floor else ball)


def in_units(tmp_path, kind: str, units: float, floor: bool):
    header = f'metersPerUnit = {1 / units!r}\nupAxis = "Z"'
    return load(tmp_path, scene(kind, units, floor), header=header, name=f"in_{units:g}.usda")[1]


@pytest.mark.parametrize("floor", [True, False], ids=["on the ground", "beside a ball"])
@pytest.mark.parametrize("kind", SHAPES)
def test_centimetres_are_metres(tmp_path, kind, floor):
    metres, centimetres = (in_units(tmp_path, kind, units, floor) for units in (1.0, 100.0))
    for name in ("type", "size", "pose", "margin", "gap"):
        ours, theirs = getattr(centimetres.shapes, name), getattr(metres.shapes, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(centimetres.bodies.pose, metres.bodies.pose, atol=1e-12)
    for name in ("hulls", "meshes"):
        for ours, theirs in zip(getattr(centimetres, name), getattr(metres, name), strict=True):
            np.testing.assert_allclose(ours.vertex, theirs.vertex, atol=1e-7)
    found, expected = collide(centimetres), collide(metres)
    assert expected.rigid_contact_count
    assert found.rigid_contact_count == expected.rigid_contact_count
    for name in ("shape0", "shape1", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("distance", "normal", "point0", "point1", "offset0", "offset1"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6, err_msg=name)


def test_the_sizes_in_metres_are_those_written(tmp_path):
    """What `test_centimetres_are_metres` compares with is right by itself."""
    sizes = {
        "sphere": (0.25,),
        "ellipsoid": (0.25, 0.5, 0.125),
        "box": (0.25, 0.5, 0.125),
        "capsule": (0.125, 0.375),
        "cylinder": (0.25, 0.375),
        "cone": (0.25, 0.375),
        "convex mesh": (0.375, 0.375, 0.1875),
        "mesh": (0.375, 0.375, 0.1875),
        "bounding cube": (0.375, 0.375, 0.1875),
    }
    for kind, size in sizes.items():
        model = in_units(tmp_path, kind, 100.0, True)
        row = [path.rsplit("/", 1)[-1] for path in model.shapes.path].index("shape")
        np.testing.assert_allclose(model.shapes.size[row][: len(size)], size, rtol=1e-7, err_msg=kind)
        np.testing.assert_allclose(model.shapes.margin[row], 0.03125, rtol=1e-7)
        np.testing.assert_allclose(model.shapes.gap[row], 0.5, rtol=1e-7)
