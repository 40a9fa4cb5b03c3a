"""Stages of environments, as cloners lay them out: a robot of many links, referenced, inherited or copied."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

import collidecli
from tests.support.usd_scenes import load

ROBOT = "Robot"
ENVIRONMENTS = "/World/envs"


def write_robot(folder: Path, links: int = 12, name: str = "robot.usda") -> Path:
    """A chain of `links` bodies with two colliders each, jointed into an articulation; returns its file."""
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


def write_environments(folder: Path, robot: Path, count: int, how: str = "reference", name: str = "envs.usda") -> Path:
    """`count` environments on a grid around a global ground; returns the stage's file.

    how: "reference", each references the robot; "inherit", all but the first inherit the first; "copy", each holds
    specs of its own, as a cloner that copies from the source leaves them. Each has a static shelf beside its robot.
    """
    path = folder / name
    layer = Sdf.Layer.CreateNew(str(path))
    layer.pseudoRoot.SetInfo("metersPerUnit", 1.0)
    layer.pseudoRoot.SetInfo("upAxis", "Z")
    with Sdf.ChangeBlock():
        for parent in ("/World", ENVIRONMENTS):
            _define(layer, parent, "Xform")
        ground = _define(layer, "/World/ground", "Plane")
        _apply(ground, "PhysicsCollisionAPI")
        _attribute(ground, "axis", Sdf.ValueTypeNames.Token, "Z")
        side = math.ceil(math.sqrt(count))
        for k in range(count):
            root = f"{ENVIRONMENTS}/env_{k}"
            spec = _define(layer, root, "Xform")
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
        _define(layer, f"{root}/{ROBOT}", "").referenceList.Prepend(Sdf.Reference(robot.name))
    shelf = _define(layer, f"{root}/shelf", "Cube")
    _apply(shelf, "PhysicsCollisionAPI")
    _attribute(shelf, "size", Sdf.ValueTypeNames.Double, 0.5)
    place(layer, f"{root}/shelf", (0.3, 0.4, 0.2))


def place(layer: Sdf.Layer, path: str, position: tuple[float, float, float]) -> None:
    spec = layer.GetPrimAtPath(path)
    for name in ("xformOp:translate", "xformOpOrder"):
        if name in spec.properties:
            spec.RemoveProperty(spec.properties[name])
    _attribute(spec, "xformOp:translate", Sdf.ValueTypeNames.Double3, Gf.Vec3d(*position))
    order = Sdf.AttributeSpec(spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform)
    order.default = ["xformOp:translate"]


def add_isaac_groups(layer: Sdf.Layer, count: int, inverted: bool = True) -> None:
    """A collision group for each environment, which meets itself and the ground alone, as Isaac Lab writes them."""
    everywhere = _group(layer, "/World/collisions/global_group", ["/World/ground"], inverted)
    filtered = [everywhere]
    for k in range(count):
        own = _group(layer, f"/World/collisions/group{k}", [f"{ENVIRONMENTS}/env_{k}"], inverted)
        _targets(layer, own, "physics:filteredGroups", [own, everywhere])
        filtered.append(own)
    _targets(layer, everywhere, "physics:filteredGroups", filtered)


def _group(layer: Sdf.Layer, path: str, members: list[str], inverted: bool) -> str:
    spec = _define(layer, path, "PhysicsCollisionGroup")
    _apply(spec, "CollectionAPI:colliders")
    _attribute(spec, "physics:invertFilteredGroups", Sdf.ValueTypeNames.Bool, inverted)
    _targets(layer, path, "collection:colliders:includes", members)
    return path


def _targets(layer: Sdf.Layer, path: str, name: str, targets: list[str]) -> None:
    relationship = Sdf.RelationshipSpec(layer.GetPrimAtPath(path), name, custom=False)
    for target in targets:
        relationship.targetPathList.Append(Sdf.Path(target))


def _define(layer: Sdf.Layer, path: str, type_name: str) -> Sdf.PrimSpec:
    spec = Sdf.CreatePrimInLayer(layer, path)
    for each in Sdf.Path(path).GetPrefixes():
        layer.GetPrimAtPath(each).specifier = Sdf.SpecifierDef
    if type_name:
        spec.typeName = type_name
    return spec


def _apply(spec: Sdf.PrimSpec, schema: str) -> None:
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
    """Contacts in an order that does not depend on that of the shapes: two names, then distance and a point.

    Names are without the environment; the point is that on the shape whose name comes first.
    """
    local = [re.sub(rf"^{ENVIRONMENTS}/[^/]*/", "", path) for path in model.shapes.path]
    names = [(local[a], local[b]) for a, b in zip(contacts.shape0, contacts.shape1, strict=True)]
    swapped = np.array([first > second for first, second in names], bool)
    point = np.where(swapped[:, None], contacts.point1, contacts.point0)
    order = sorted(range(len(names)), key=lambda k: (*sorted(names[k]), *point[k].round(5)))
    return [sorted(names[k]) for k in order], np.concatenate([contacts.distance[:, None], point], axis=1)[order]


def check_against_alone(path, folder, roots=None):
    _, model = load(folder, path)
    together = collidecli.collide(model, device="cpu")
    assert model.world_path == tuple(roots or (env(k) for k in range(COUNT)))
    found = []
    for world, root in enumerate(model.world_path):
        single = load(folder, flattened_alone(path, root, folder), environments="none")[1]
        expected = collidecli.collide(single, device="cpu")
        ours, theirs = rows(together.cell(0, world), model), rows(expected, single)
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
