"""USD scenes whose attributes can be authored again, with values of any type, by a stronger
layer."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from collidecli.importers.usd.colliders import TABLE
from collidecli.importers.usd.materials import COEFFICIENTS, MODES
from collidecli.importers.usd.meshes import FRACTION_OF_TRIANGLES, RESOLUTION, THICKNESS
from tests.support.usd_scenes import BOTH, COLLIDER, TRANSLATED, write_usda

CLOSED = "}\n"
ORDERED = "uniform token[] xformOpOrder"
OPERATIONS = (
    ("translate", "double3", "(0, 0, 1)"),
    ("orient", "quatf", "(1, 0, 0, 0)"),
    ("scale", "float3", "(1, 1, 1)"),
    ("rotateX", "float", "10"),
    ("rotateXYZ", "float3", "(1, 2, 3)"),
    ("transform", "matrix4d", "((1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1))"),
)
_MOVED = "".join(f"{kind} xformOp:{operation} = {value}\n" for operation, kind, value in OPERATIONS)
_ORDER = ", ".join(f'"xformOp:{operation}"' for operation, _, _ in OPERATIONS)
_ROUND = "".join(
    f'def {kind} "{kind}" {COLLIDER} {{}}\n'
    for kind in ("Capsule", "Cylinder", "Cone", "Capsule_1", "Cylinder_1", "Plane", "Cube")
)
_TETRAHEDRON = """point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (0,0,1)]
 int[] faceVertexCounts = [3, 3, 3, 3]
 int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
"""
_MESHES = "".join(
    f'def Mesh "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])'
    f' {{ {_TETRAHEDRON} uniform token physics:approximation = "{approximation}"\n }}\n'
    for name, approximation in (("hull", "convexHull"), ("triangles", "none"), ("field", "sdf"))
)
RIGID = f"""def Xform "W" {{
def PhysicsScene "scene" {{}}
def PhysicsScene "other" {{}}
def Material "m" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {{}}
def Sphere "s" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI",
  "MaterialBindingAPI"]) {{
 rel material:binding = </W/m>
 double3 xformOp:translate.timeSamples = {{ 0: (0, 0, 0), 1: (0, 0, 1) }}
 {TRANSLATED}
}}
def Sphere "t" {BOTH} {{
 {_MOVED}
 {ORDERED} = [{_ORDER}]
}}
def Xform "root" (prepend apiSchemas = ["PhysicsArticulationRootAPI"]) {{
 def Sphere "a" {BOTH} {{}}
 def Sphere "b" {BOTH} {{}}
 def PhysicsRevoluteJoint "j" {{
  rel physics:body0 = </W/root/a>
  rel physics:body1 = </W/root/b>
 }}
 def PhysicsJoint "d" (prepend apiSchemas = ["PhysicsLimitAPI:transX"]) {{
  rel physics:body0 = </W/root/b>
  rel physics:body1 = </W/s>
 }}
}}
def PhysicsCollisionGroup "g" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{
 rel collection:colliders:includes = [</W/s>]
}}
def Points "points" {COLLIDER} {{
 point3f[] points = [(0, 0, 0), (1, 0, 0)]
 float[] widths = [0.1, 0.2]
}}
{_ROUND}
}}
"""
MESHES = f'def Xform "W" {{\n {_MESHES} }}\n'
INSTANCES = f"""def Xform "W" {{
def PointInstancer "i" {{
 rel prototypes = [</W/p>]
 int[] protoIndices = [0, 0]
 point3f[] positions = [(0, 0, 0), (3, 0, 0)]
 quath[] orientations = [(1, 0, 0, 0), (1, 0, 0, 0)]
 float3[] scales = [(1, 1, 1), (1, 1, 1)]
}}
def Sphere "p" {BOTH} {{}}
}}
"""
PARTICLES = f"""def Xform "W" {{
def Sphere "s" {COLLIDER} {{}}
def Points "grains" {{
 point3f[] points.timeSamples = {{ 0: [(0, 0, 3), (1, 0, 3)], 1: [(0, 0, 2), (1, 0, 2)] }}
 float[] widths = [0.1, 0.2]
 custom bool collide:deformable = true
}}
def Mesh "cloth" {{
 {_TETRAHEDRON}
 custom bool collide:deformable = true
}}
def TetMesh "soft" {{
 point3f[] points = [(0,0,0), (1,0,0), (0,1,0), (0,0,1)]
 int4[] tetVertexIndices = [(0, 1, 2, 3)]
 custom bool collide:deformable = true
}}
}}
"""
_ENVIRONMENT = "".join(
    f"""def Xform "env_{k}" {{
 double3 xformOp:translate = ({k}, 0, 0)
 {TRANSLATED}
 def Sphere "s" {BOTH} {{}}
}}
"""
    for k in range(2)
)
ENVIRONMENTS = f"""def Xform "World" {{
def Xform "envs" {{
{_ENVIRONMENT}
}}
def PhysicsCollisionGroup "g" (prepend apiSchemas = ["CollectionAPI:colliders"]) {{
 rel collection:colliders:includes = [</World/envs/env_0>]
}}
}}
"""
SCENES = {
    "rigid": RIGID,
    "meshes": MESHES,
    "instances": INSTANCES,
    "particles": PARTICLES,
    "environments": ENVIRONMENTS,
}

_OF_COLLIDERS = tuple(row.name for row in TABLE)
_OF_MATERIALS = tuple(row.name for row in COEFFICIENTS) + tuple(name for name, _ in MODES)
_OF_FRAMES = tuple(f"physics:local{part}{side}" for part in ("Pos", "Rot") for side in (0, 1))
_OF_JOINTS = (
    *("physics:jointEnabled", "physics:collisionEnabled", "physics:excludeFromArticulation"),
    *("physics:axis", "physics:lowerLimit", "physics:upperLimit", *_OF_FRAMES),
)
_OF_GROUPS = (
    *("physics:mergeGroup", "physics:invertFilteredGroups", "collection:colliders:includeRoot"),
    *("collection:colliders:expansionRule", "collection:colliders:membershipExpression"),
)
_OF_BODIES = ("physics:rigidBodyEnabled", "physics:kinematicEnabled", "physics:startsAsleep")
_OF_MESHES = (
    *("points", "faceVertexCounts", "faceVertexIndices", "holeIndices", "orientation"),
    *("physics:approximation", FRACTION_OF_TRIANGLES, RESOLUTION, THICKNESS),
    *("physxConvexHullCollision:hullVertexLimit", "newton:maxHullVertices"),
    *("collide:twoSided", "collide:solid", "newton:sdfTargetVoxelSize", "newton:sdfMaxResolution"),
)
_OF_INSTANCERS = (
    *("protoIndices", "positions", "orientations", "orientationsf", "scales", "ids"),
    *("invisibleIds", "velocities", "angularVelocities", "accelerations"),
)
_OF_PARTICLES = ("points", "widths", "collide:deformable", "collide:particleRadius")
_PLACED = ("xformOpOrder", *(f"xformOp:{operation}" for operation, _, _ in OPERATIONS))


def _named(scene: str, prim: str, names: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    return ((scene, prim, name) for name in names)


ATTRIBUTES = (
    *_named("rigid", "/W/s", (*_OF_COLLIDERS, "physics:collisionEnabled", "radius", *_OF_BODIES)),
    *_named("rigid", "/W/s", ("xformOpOrder", "xformOp:translate", "visibility", "purpose")),
    *_named("rigid", "/W/t", _PLACED),
    *_named("rigid", "/W/m", _OF_MATERIALS),
    *_named("rigid", "/W/root", ("newton:selfCollisionEnabled", "xformOpOrder")),
    *_named("rigid", "/W/root", ("physxArticulation:enabledSelfCollisions",)),
    *_named("rigid", "/W/root/j", _OF_JOINTS),
    *_named("rigid", "/W/root/d", ("limit:transX:physics:low", "limit:transX:physics:high")),
    *_named("rigid", "/W/g", _OF_GROUPS),
    *_named("rigid", "/W/scene", ("physics:gravityDirection", "physics:gravityMagnitude")),
    *_named("rigid", "/W/points", ("points", "widths")),
    *_named("rigid", "/W/Cube", ("size",)),
    *_named("rigid", "/W/Plane", ("axis",)),
    *(
        (scene, f"/W/{kind}", name)
        for kind in ("Capsule", "Cylinder", "Cone")
        for scene, name in (("rigid", "axis"), ("rigid", "radius"), ("rigid", "height"))
    ),
    *(
        ("rigid", f"/W/{kind}", name)
        for kind in ("Capsule_1", "Cylinder_1")
        for name in ("axis", "radiusBottom", "radiusTop", "height")
    ),
    *(
        ("meshes", f"/W/{prim}", name)
        for prim in ("hull", "triangles", "field")
        for name in _OF_MESHES
    ),
    *_named("instances", "/W/i", _OF_INSTANCERS),
    *_named("instances", "/W/p", ("xformOpOrder",)),
    *_named("particles", "/W/grains", _OF_PARTICLES),
    *_named("particles", "/W/cloth", (*_OF_PARTICLES, *_OF_MESHES[1:5], "newton:particleOffset")),
    *_named("particles", "/W/soft", (*_OF_PARTICLES, "tetVertexIndices")),
    *_named("environments", "/World/g", _OF_GROUPS),
    *_named("environments", "/World/envs", ("xformOpOrder",)),
    *_named("environments", "/World/envs/env_0", ("xformOpOrder", "xformOp:translate")),
)
"""Scene, prim and name of every attribute that is read here or by pxr's physics parser."""


@dataclass(frozen=True)
class Value:
    """A value of a type of USD, as text."""

    type: str
    text: str


VALUES = (
    Value("string", '"x"'),
    Value("token", '"x"'),
    Value("token[]", '["a", "b"]'),
    Value("string[]", '["xformOp:translate"]'),
    Value("asset", "@a.png@"),
    Value("bool", "true"),
    Value("bool[]", "[true, false]"),
    Value("int", "3"),
    Value("int64", "9223372036854775807"),
    Value("uint64[]", "[18446744073709551615, 0]"),
    Value("int[]", "[]"),
    Value("int[]", "[0, 1, 7]"),
    Value("int[]", "[-2147483648, 2147483647]"),
    Value("int3[]", "[(0, 1, 2), (0, 1, 2)]"),
    Value("half", "0.5"),
    Value("float", "nan"),
    Value("double", "1e308"),
    Value("double", "-inf"),
    Value("timecode", "2"),
    Value("float[]", "[0.9, 1]"),
    Value("double[]", "[nan, 1e308]"),
    Value("float2", "(1, 2)"),
    Value("float3", "(1, 2, 3)"),
    Value("double3", "(1e308, nan, inf)"),
    Value("double4", "(1, 2, 3, 4)"),
    Value("int3", "(1, 2, 3)"),
    Value("float2[]", "[(1, 2), (3, 4)]"),
    Value("half3[]", "[(1, 2, 3), (4, 5, 6)]"),
    Value("float3[]", "[(1, 2, 3)]"),
    Value("point3f[]", "[(nan, 0, 0), (inf, 0, 0)]"),
    Value("double3[]", "[(1e308, 1e308, 1e308), (0, 0, 0), (1, 0, 0), (0, 1, 0)]"),
    Value("quatf", "(1, 0, 0, 0)"),
    Value("quatd", "(0, 0, 0, 0)"),
    Value("quatf[]", "[(1, 0, 0, 0), (nan, 0, 0, 0)]"),
    Value("quatd[]", "[(1, 0, 0, 0), (1, 0, 0, 0)]"),
    Value("matrix4d", "((1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1))"),
    Value("matrix3d", "((1,0,0), (0,1,0), (0,0,1))"),
    Value("matrix4d[]", "[((1,0,0,0), (0,1,0,0), (0,0,1,0), (0,0,0,1))]"),
    Value("timecode[]", "[0, 1]"),
    Value("float", "None"),
    Value("pathExpression", '"//"'),
)


TIMES = ((), (0,), (0, 1))
"""Time codes of the samples of a value; a default value where there are none."""


def write_with(
    folder: Path, scene: str, prim: str, name: str, value: Value, times: tuple[int, ...] = ()
) -> Path:
    """A scene whose attribute has this value, by default or at time codes."""
    base = folder / f"{scene}.usda"
    if not base.exists():
        write_usda(folder, SCENES[scene], name=base.name)
    names = prim.strip("/").split("/")
    opened = "".join(f'over "{part}" {{\n' for part in names)
    samples = ", ".join(f"{time}: {value.text}" for time in times)
    authored = (
        f"{value.type} {name}.timeSamples = {{ {samples} }}"
        if times
        else f"{value.type} {name} = {value.text}"
    )
    header = f'metersPerUnit = 1\n upAxis = "Z"\n subLayers = [@./{base.name}@]'
    return write_usda(folder, f"{opened}{authored}\n{CLOSED * len(names)}", header)
