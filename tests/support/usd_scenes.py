"""USD stages written as text, with meshes and environments, and world poses by USD's own
resolver."""

import math
import re
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, Vt
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.importers.usd.scene import UsdImport, add_usd
from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import collide
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import SceneOptions
from tests.support.hull_oracle import low_and_high

COLLIDER = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
BODY = '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
BOTH = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])'


METRES = 'metersPerUnit = 1\n upAxis = "Z"'
CENTIMETRES = 'metersPerUnit = 0.01\nupAxis = "Z"\ntimeCodesPerSecond = 10'
TRANSLATED = 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'


def write_usda(folder: Path, text: str, header: str = METRES, name: str = "s.usda") -> Path:
    path = folder / name
    path.write_text(f"#usda 1.0\n(\n {header}\n)\n{text}")
    return path


def load(
    folder: Path, scene: str | Path, header: str = METRES, name: str = "s.usda", **options
) -> tuple[UsdImport, Model]:
    """A stage of a file, or of a text that is written to one. options: of the importer."""
    builder = ModelBuilder()
    path = scene if isinstance(scene, Path) else write_usda(folder, scene, header, name)
    return add_usd(builder, path, SceneOptions(**options)), builder.finalize()


def check_refused(
    call: Callable[[], object], said: Iterable[str], capfd: pytest.CaptureFixture[str] | None = None
) -> None:
    """The call ends with an InputError that says all of these and what to do; USD prints nothing of
    its own."""
    with pytest.raises(InputError) as error:
        call()
    for words in said:
        assert words in str(error.value)
    assert error.value.fix
    assert capfd is None or capfd.readouterr() == ("", "")


def touching(model: Model) -> set[str]:
    """The pairs that may touch, as "a b": last names of the prims, sorted."""
    names = [path.rsplit("/", 1)[-1] for path in model.shapes.path]
    return {" ".join(sorted((names[a], names[b]))) for a, b in allowed_pairs(model, 0)}


def pairs(text: str) -> set[str]:
    """Pairs as a test writes them: "a b, b c"."""
    return {" ".join(sorted(pair.split())) for pair in text.split(",") if pair.strip()}


def at(*place: float) -> str:
    """A prim's own translation."""
    return f"double3 xformOp:translate = {place}\n{TRANSLATED}"


def moving(samples: str) -> str:
    """A prim's own translations by time code, as 0: (0, 0, 2), 10: (0, 0, 1)."""
    return f"double3 xformOp:translate.timeSamples = {{ {samples} }}\n{TRANSLATED}"


def sphere(name: str, inside: str = "", apis: str = BOTH) -> str:
    return f'def Sphere "{name}" {apis} {{\n{inside}\n}}\n'


CUBE_POINTS = np.array(list(product([-1.0, 1.0], repeat=3)))
CUBE_FACES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
L_POINTS = np.array(
    [(*xy, z) for z in (0, 0.5) for xy in ((1, 3), (0, 3), (0, 0), (2, 0), (2, 1), (1, 1))], float
)
L_FACES = (
    tuple(range(5, -1, -1)),
    tuple(range(6, 12)),
    *((k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6) for k in range(6)),
)
"""A plate that is an L of area 4, begun at a corner whose fan does not cover it."""
APIS = '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"])'
BODY_APIS = (
    '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI",'
    ' "PhysicsMeshCollisionAPI"])'
)


def placed(translate=(0, 0, 0), rotate=(0, 0, 0), scale=(1, 1, 1)) -> str:
    """A prim's own transform; the rotation in degrees."""
    return (
        f"double3 xformOp:translate = {translate}\ndouble3 xformOp:rotateXYZ = {rotate}\ndouble3"
        f' xformOp:scale = {scale}\nuniform token[] xformOpOrder = ["xformOp:translate",'
        ' "xformOp:rotateXYZ", "xformOp:scale"]\n'
    )


TURNED = placed((1, -2, 3), (10, 20, 30), (0.5, 2, 3))
MIRRORED = placed((1, -2, 3), (10, 20, 30), (1, -2, 3))
SHEARED = placed((3, 2, 1), (40, -70, 20), (0.2, 1, 3))


def mesh(
    name, points=CUBE_POINTS, faces=CUBE_FACES, approximation="convexHull", inside="", apis=APIS
) -> str:
    """A mesh collider; without `faces` each three points are one."""
    points = np.asarray(points)
    if faces is None:
        faces = [(k, (k + 1) % len(points), (k + 2) % len(points)) for k in range(len(points))]
    written = ", ".join("(" + ", ".join(repr(float(x)) for x in p) + ")" for p in points)
    indices = ", ".join(str(k) for face in faces for k in face)
    text = f'def Mesh "{name}" {apis} {{\npoint3f[] points = [{written}]\n'
    text += f"int[] faceVertexCounts = [{', '.join(str(len(face)) for face in faces)}]\n"
    text += f"int[] faceVertexIndices = [{indices}]\n"
    text += f'uniform token physics:approximation = "{approximation}"\n' if approximation else ""
    return f"{text}{inside}\n}}\n"


def points_in_world(file: str | Path, path: str) -> np.ndarray:
    """float64[n, 3] [stage units]: the points of a mesh by its own world matrix, of the first time
    sample."""
    stage = Usd.Stage.Open(str(file))
    prim = stage.GetPrimAtPath(path)
    point = np.array(UsdGeom.Mesh(prim).GetPointsAttr().Get(), np.float64)
    matrix = np.array(
        UsdGeom.Xformable(prim).ComputeLocalToWorldTransform(Usd.TimeCode.EarliestTime())
    )
    return point @ matrix[:3, :3] + matrix[3, :3]


def check_supports(model: Model, path: str, points: np.ndarray, share: float = 1e-9) -> None:
    """The shape reaches as far as points [n, 3] in the world [m], in 1000 directions, to a share of
    their size."""
    direction = np.random.default_rng(0).normal(size=(1000, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    low, high = low_and_high(model, model.bodies.pose, model.shapes.path.index(path), direction)
    heights = direction @ points.T
    size = np.ptp(points, axis=0).max()
    np.testing.assert_allclose(low, heights.min(axis=1), atol=share * size, rtol=0)
    np.testing.assert_allclose(high, heights.max(axis=1), atol=share * size, rtol=0)


CORNERS = np.array([[x, y, z, 1.0] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])


def world_corners(model: Model, path: str, body_pose: np.ndarray | None = None) -> np.ndarray:
    """float64[8, 3]: the corners of a box shape in the world; of the bodies at rest, or at
    `body_pose` [B, 7]."""
    row = model.shapes.path.index(path)
    points = CORNERS[:, :3] * model.shapes.size[row]
    for pose in (model.shapes.pose[row], *_body_pose(model, row, body_pose)):
        points = np.asarray(pose)[:3] + Rotation.from_quat(np.asarray(pose)[3:]).apply(points)
    return points


def check_corners(ours: np.ndarray, matrix, half: float = 1.0, atol: float = 1e-6) -> None:
    """A box of half extent `half` under a USD matrix has these corners, in any order.

    atol: float32 holds the rotations and scales of files to 1e-7 of themselves.
    """
    theirs = ((CORNERS * [half, half, half, 1.0]) @ np.array(matrix))[:, :3]
    distance = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert sorted(np.argmin(distance, axis=1)) == list(range(8))
    assert np.all(distance.min(axis=1) <= atol), distance.min(axis=1)


def instance_matrices(path: Path, instancer: str, time: float) -> list[np.ndarray]:
    """float64[4, 4] of each instance in the world, its prototype's own transform included, by pxr
    alone."""
    stage = Usd.Stage.Open(str(path))
    schema = UsdGeom.PointInstancer(stage.GetPrimAtPath(instancer))
    _normalize(schema)
    local = schema.ComputeInstanceTransformsAtTime(
        time, time, UsdGeom.PointInstancer.IncludeProtoXform, UsdGeom.PointInstancer.IgnoreMask
    )
    to_world = np.array(schema.ComputeLocalToWorldTransform(time))
    return [np.array(matrix) @ to_world for matrix in local]


def _normalize(schema: UsdGeom.PointInstancer) -> None:
    """Makes quaternions unit: pxr takes those in half precision as they are, a thousandth off a
    rotation."""
    halves = schema.GetOrientationsAttr()
    if schema.GetOrientationsfAttr().Get(Usd.TimeCode.EarliestTime()):
        return
    for time in halves.GetTimeSamples() or (
        [Usd.TimeCode.Default()] if halves.HasAuthoredValue() else []
    ):
        unit = [Gf.Quatf(Gf.Quatd(q).GetNormalized()) for q in halves.Get(time)]
        schema.CreateOrientationsfAttr().Set(Vt.QuatfArray(unit), time)


def contacts_of(imported, model: Model) -> Contacts:
    return collide(model, imported.motion(model), device="cpu", threads=1)


def check_same_contacts(ours: tuple, theirs: tuple) -> None:
    """Two (import, model), shapes in the same order, have the same contacts, and have some."""
    a = contacts_of(*ours)
    b = contacts_of(*theirs)
    assert a.rigid_contact_count
    for name in ("cell_start", "shape0", "shape1", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    for name in ("distance", "normal", "point0", "point1"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-6)


def _body_pose(model: Model, row: int, body_pose: np.ndarray | None) -> list[np.ndarray]:
    body = model.shapes.body[row]
    return [] if body < 0 else [(model.bodies.pose if body_pose is None else body_pose)[body]]


ROBOT = "Robot"
ENVIRONMENTS = "/World/envs"


def write_robot(folder: Path, links: int = 12, name: str = "robot.usda") -> Path:
    """A chain of `links` bodies with two colliders each, jointed into an articulation; returns its
    file."""
    path = folder / name
    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Z")
    root = UsdGeom.Xform.Define(stage, f"/{ROBOT}")
    stage.SetDefaultPrim(root.GetPrim())
    UsdPhysics.ArticulationRootAPI.Apply(root.GetPrim())
    for k in range(links):
        link = UsdGeom.Xform.Define(stage, f"/{ROBOT}/link_{k}")
        UsdPhysics.RigidBodyAPI.Apply(link.GetPrim())
        link.AddTranslateOp().Set(Gf.Vec3d(0.2 * k, 0.05 * math.sin(k), 0.3 - 0.01 * k))
        link.AddOrientOp().Set(Gf.Quatf(math.cos(0.1 * k), 0.0, 0.0, math.sin(0.1 * k)))
        capsule = UsdGeom.Capsule.Define(stage, f"{link.GetPath()}/capsule")
        capsule.GetRadiusAttr().Set(0.08)
        capsule.GetHeightAttr().Set(0.15)
        box = UsdGeom.Cube.Define(stage, f"{link.GetPath()}/box")
        box.GetSizeAttr().Set(0.2)
        box.AddTranslateOp().Set(Gf.Vec3d(0.0, 0.0, -0.12))
        for shape in (capsule, box):
            UsdPhysics.CollisionAPI.Apply(shape.GetPrim())
        if k:
            joint = UsdPhysics.RevoluteJoint.Define(stage, f"/{ROBOT}/joint_{k}")
            joint.GetBody0Rel().SetTargets([Sdf.Path(f"/{ROBOT}/link_{k - 1}")])
            joint.GetBody1Rel().SetTargets([link.GetPath()])
    stage.GetRootLayer().Save()
    return path


def write_environments(
    folder: Path, robot: Path, count: int, how: str = "reference", name: str = "envs.usda"
) -> Path:
    """`count` environments on a grid around a global ground; returns the stage's file.

    how: "reference", each references the robot; "inherit", all but the first inherit the first;
    "copy", each holds specs of its own, as a cloner that copies from the source leaves them. Each
    has a static shelf beside its robot.
    """
    path = folder / name
    layer = Sdf.Layer.CreateNew(str(path))
    layer.pseudoRoot.SetInfo("metersPerUnit", 1.0)
    layer.pseudoRoot.SetInfo("upAxis", "Z")
    with Sdf.ChangeBlock():
        for parent in ("/World", ENVIRONMENTS):
            define(layer, parent, "Xform")
        ground = define(layer, "/World/ground", "Plane")
        apply(ground, "PhysicsCollisionAPI")
        _attribute(ground, "axis", Sdf.ValueTypeNames.Token, "Z")
        side = math.ceil(math.sqrt(count))
        for k in range(count):
            root = f"{ENVIRONMENTS}/env_{k}"
            spec = define(layer, root, "Xform")
            if how == "inherit" and k:
                spec.inheritPathList.Prepend(Sdf.Path(f"{ENVIRONMENTS}/env_0"))
            elif how == "copy" and k:
                Sdf.CopySpec(layer, f"{ENVIRONMENTS}/env_0", layer, root)
            else:
                add_contents(layer, root, robot, copied=how == "copy")
            place(layer, root, (2.5 * (k // side), 2.5 * (k % side), 0.0))
    layer.Save()
    return path


def add_contents(layer: Sdf.Layer, root: str, robot: Path, copied: bool) -> None:
    """A robot and a shelf below an environment's root."""
    if copied:
        Sdf.CopySpec(Sdf.Layer.FindOrOpen(str(robot)), f"/{ROBOT}", layer, f"{root}/{ROBOT}")
    else:
        define(layer, f"{root}/{ROBOT}", "").referenceList.Prepend(Sdf.Reference(robot.name))
    shelf = define(layer, f"{root}/shelf", "Cube")
    apply(shelf, "PhysicsCollisionAPI")
    _attribute(shelf, "size", Sdf.ValueTypeNames.Double, 0.5)
    place(layer, f"{root}/shelf", (0.3, 0.4, 0.2))


def place(layer: Sdf.Layer, path: str, position: tuple[float, float, float]) -> None:
    spec = layer.GetPrimAtPath(path)
    for name in ("xformOp:translate", "xformOpOrder"):
        if name in spec.properties:
            spec.RemoveProperty(spec.properties[name])
    _attribute(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3, Gf.Vec3d(*position))
    order = Sdf.AttributeSpec(
        spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform
    )
    order.default = ["xformOp:translate"]


def add_isaac_groups(layer: Sdf.Layer, count: int, inverted: bool = True) -> None:
    """A collision group for each environment, which meets itself and the ground alone, as Isaac Lab
    writes them."""
    everywhere = add_group(layer, "/World/collisions/global_group", ["/World/ground"], inverted)
    filtered = [everywhere]
    for k in range(count):
        own = add_group(layer, f"/World/collisions/group{k}", [f"{ENVIRONMENTS}/env_{k}"], inverted)
        add_targets(layer, own, "physics:filteredGroups", [own, everywhere])
        filtered.append(own)
    add_targets(layer, everywhere, "physics:filteredGroups", filtered)


def add_group(layer: Sdf.Layer, path: str, members: list[str], inverted: bool) -> str:
    spec = define(layer, path, "PhysicsCollisionGroup")
    apply(spec, "CollectionAPI:colliders")
    _attribute(spec, "physics:invertFilteredGroups", Sdf.ValueTypeNames.Bool, inverted)
    add_targets(layer, path, "collection:colliders:includes", members)
    return path


def add_targets(layer: Sdf.Layer, path: str, name: str, targets: list[str]) -> None:
    relationship = Sdf.RelationshipSpec(layer.GetPrimAtPath(path), name, custom=False)
    for target in targets:
        relationship.targetPathList.Append(Sdf.Path(target))


def define(layer: Sdf.Layer, path: str, type_name: str) -> Sdf.PrimSpec:
    spec = Sdf.CreatePrimInLayer(layer, path)
    for each in Sdf.Path(path).GetPrefixes():
        layer.GetPrimAtPath(each).specifier = Sdf.SpecifierDef
    if type_name:
        spec.typeName = type_name
    return spec


def apply(spec: Sdf.PrimSpec, schema: str) -> None:
    spec.SetInfo("apiSchemas", Sdf.TokenListOp.Create(prependedItems=[schema]))


def _attribute(spec: Sdf.PrimSpec, name: str, kind: Sdf.ValueTypeName, value: object) -> None:
    Sdf.AttributeSpec(spec, name, kind).default = value


COUNT = 5
DOUBLE3 = Sdf.ValueTypeNames.Double3
HOW = ("reference", "inherit", "copy")


def env(k: int, below: str = "") -> str:
    return f"{ENVIRONMENTS}/env_{k}{below}"


def stage_writer(folder):
    """Writes a stage of COUNT environments; `change` is given its layer before it is saved."""
    robot = write_robot(folder, links=3)

    def write(change=None, how="copy"):
        path = write_environments(folder, robot, COUNT, how, name=f"{how}.usda")
        if change is not None:
            layer = Sdf.Layer.FindOrOpen(str(path))
            change(layer)
            layer.Save()
        return path

    return write


def flattened_alone(path, root, folder):
    """A file with one environment only, at its place, and all that is outside."""
    flat = Usd.Stage.Open(str(path)).Flatten()
    environments = flat.GetPrimAtPath(ENVIRONMENTS).nameChildren
    for name in list(environments.keys()):
        if name != root.rpartition("/")[2]:
            del environments[name]
    target = folder / f"alone_{root.rpartition('/')[2]}.usda"
    flat.Export(str(target))
    return target


def rows(contacts, model):
    """Contacts in an order that does not depend on that of the shapes: two names, then distance and
    a point.

    Names are without the environment; the point is that on the shape whose name comes first.
    """
    local = [re.sub(rf"^{ENVIRONMENTS}/[^/]*/", "", path) for path in model.shapes.path]
    names = [(local[a], local[b]) for a, b in zip(contacts.shape0, contacts.shape1, strict=True)]
    swapped = np.array([first > second for first, second in names], bool)
    point = np.where(swapped[:, None], contacts.point1, contacts.point0)
    order = sorted(range(len(names)), key=lambda k: (*sorted(names[k]), *point[k].round(5)))
    return [sorted(names[k]) for k in order], np.concatenate(
        [contacts.distance[:, None], point], axis=1
    )[order]


def check_against_alone(path, folder):
    _, model = load(folder, path)
    together = collidecli.collide(model, device="cpu")
    assert model.world_path == tuple(env(k) for k in range(COUNT))
    found = []
    for world, root in enumerate(model.world_path):
        single = load(folder, flattened_alone(path, root, folder), environments="none")[1]
        expected = collidecli.collide(single, device="cpu")
        ours = rows(together.cell(0, world), model)
        theirs = rows(expected, single)
        assert ours[0] == theirs[0], root
        # Poses are composed in float64 from the first environment's; distance is a float32 column.
        np.testing.assert_allclose(ours[1], theirs[1], rtol=0.0, atol=2e-7)
        found.append(len(ours[0]))
    assert min(found) > 0
    return model, found


def attribute(path, name, value, kind=Sdf.ValueTypeNames.Double):
    def change(layer):
        spec = Sdf.CreatePrimInLayer(layer, path)
        held = spec.attributes.get(name) or Sdf.AttributeSpec(spec, name, kind)
        held.default = value

    return change
