"""Makes pile.usda and motion.usdc: mixed shapes dropped into an open box, moved by MuJoCo for two
seconds.

    python samples/01_usd_pile/make_scene.py

MuJoCo is given the same filters as the stage, so that the motion is one in which the filtered pairs
really pass through each other. A cone, which MuJoCo has not, is dropped as a mesh of 48 sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics, UsdShade

FOLDER = Path(__file__).parent
FRAMES = 120
FRAMES_PER_SECOND = 60
STEPS_PER_FRAME = 8
GAP = 0.005
MASKS = {"Solid": (1, 7), "Red": (2, 3), "Blue": (4, 5)}
"""MuJoCo's contype and conaffinity: Red and Blue pass through each other and touch all else."""
COLORS = {"Solid": (0.75, 0.7, 0.6), "Red": (0.8, 0.2, 0.2), "Blue": (0.2, 0.35, 0.8)}


@dataclass
class Part:
    """A shape of an object; size as MuJoCo has it, offset from the object's frame [m]."""

    kind: str
    size: tuple[float, ...]
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)


@dataclass
class Item:
    """A rigid body: a single part is the body prim itself, several are children of it."""

    name: str
    group: str
    parts: list[Part]
    position: np.ndarray
    quaternion: np.ndarray


def falling_items(rng: np.random.Generator) -> list[Item]:
    """42 single shapes in layers, every kind in every group."""
    sizes = {
        "sphere": (0.1,),
        "box": (0.12, 0.08, 0.06),
        "capsule": (0.06, 0.1),
        "cylinder": (0.08, 0.09),
        "cone": (0.1, 0.11),
        "ellipsoid": (0.13, 0.09, 0.06),
    }
    items = []
    for i in range(42):
        kind = list(sizes)[i % 6]
        group = list(MASKS)[(i // 6) % 3]
        layer, place = divmod(i, 9)
        grid = np.array([place % 3 - 1, place // 3 - 1, 0.0]) * 0.34 + (0, 0, 0.3 + 0.3 * layer)
        quaternion = rng.normal(size=4)
        items.append(
            Item(
                f"{kind}_{i:02d}",
                group,
                [Part(kind, tuple(s * rng.uniform(0.8, 1.2) for s in sizes[kind]))],
                grid + rng.uniform(-0.05, 0.05, 3),
                quaternion / np.linalg.norm(quaternion),
            )
        )
    return items


def special_items() -> list[Item]:
    """A dumbbell of three shapes; two crates that pass through each other; a handle and a hammer
    head, joined."""
    upright = np.array([1.0, 0.0, 0.0, 0.0])
    dumbbell = [
        Part("capsule", (0.03, 0.12)),
        Part("sphere", (0.07,), (0, 0, 0.15)),
        Part("sphere", (0.07,), (0, 0, -0.15)),
    ]
    crate = [Part("box", (0.1, 0.1, 0.1))]
    return [
        Item(
            "dumbbell", "Solid", dumbbell, np.array([0.0, 0.0, 1.9]), np.array([0.8, 0.6, 0.0, 0.0])
        ),
        Item("crate_a", "Solid", crate, np.array([-0.35, 0.0, 2.0]), upright),
        Item("crate_b", "Solid", crate, np.array([-0.3, 0.05, 2.15]), upright),
        Item(
            "handle", "Solid", [Part("capsule", (0.03, 0.15))], np.array([0.35, 0.0, 2.0]), upright
        ),
        Item(
            "head", "Solid", [Part("cylinder", (0.07, 0.08))], np.array([0.35, 0.0, 2.2]), upright
        ),
    ]


def static_boxes() -> dict[str, tuple[tuple, tuple]]:
    """Name to half extents and centre."""
    return {
        "wall_left": ((0.04, 0.7, 0.25), (-0.7, 0, 0.25)),
        "wall_right": ((0.04, 0.7, 0.25), (0.7, 0, 0.25)),
        "wall_back": ((0.7, 0.04, 0.25), (0, 0.7, 0.25)),
    }


PADDLE_SIZE = (0.5, 0.04, 0.12)


def paddle_position(time: float) -> tuple[float, float, float]:
    """The kinematic paddle pushes in from the open side and draws back."""
    return 0.0, -0.85 + 0.3 * np.sin(np.pi * time / 2.0) ** 2, 0.14


# The same scene for MuJoCo.


def mujoco_xml(items: list[Item]) -> str:
    cone_meshes = "".join(_cone_mesh(item) for item in items if item.parts[0].kind == "cone")
    bodies = "".join(_mujoco_body(item, items) for item in items if item.name != "head")
    statics = "".join(
        f'<geom name="{name}" type="box" size="{_words(half)}" pos="{_words(centre)}"'
        ' conaffinity="7"/>'
        for name, (half, centre) in static_boxes().items()
    )
    return f"""<mujoco>
  <option timestep="{1 / FRAMES_PER_SECOND / STEPS_PER_FRAME}" integrator="implicitfast"/>
  <default><geom friction="0.5" density="500"/></default>
  <asset>{cone_meshes}</asset>
  <worldbody>
    <geom name="ground" type="plane" size="0 0 1" conaffinity="7"/>{statics}
    <body name="paddle" mocap="true" pos="{_words(paddle_position(0.0))}">
      <geom type="box" size="{_words(PADDLE_SIZE)}" conaffinity="7"/>
    </body>{bodies}
  </worldbody>
  <contact><exclude body1="crate_a" body2="crate_b"/></contact>
</mujoco>"""


def _mujoco_body(item: Item, items: list[Item], joint: str = "<freejoint/>") -> str:
    contype, conaffinity = MASKS[item.group]
    geoms = "".join(
        (
            f'<geom type="mesh" mesh="{item.name}" contype="{contype}"'
            f' conaffinity="{conaffinity}"/>'
            if part.kind == "cone"
            else (
                f'<geom type="{part.kind}" size="{_words(part.size)}" pos="{_words(part.offset)}"'
                f' contype="{contype}" conaffinity="{conaffinity}"/>'
            )
        )
        for part in item.parts
    )
    child = ""
    position = item.position
    if item.name == "handle":
        child = _mujoco_body(
            next(i for i in items if i.name == "head"), items, '<joint type="ball"/>'
        )
    if item.name == "head":
        position = position - next(i for i in items if i.name == "handle").position
    return (
        f'<body name="{item.name}" pos="{_words(position)}" quat="{_words(item.quaternion)}">'
        f"{joint}{geoms}{child}</body>"
    )


def _cone_mesh(item: Item) -> str:
    radius, half_height = item.parts[0].size
    turn = np.linspace(0.0, 2.0 * np.pi, 48, endpoint=False)
    rim = np.stack(
        [radius * np.cos(turn), radius * np.sin(turn), np.full(48, -half_height)], axis=1
    )
    return (
        f'<mesh name="{item.name}"'
        f' vertex="{_words(np.vstack([rim, [0, 0, half_height]]).ravel())}"/>'
    )


def _words(numbers) -> str:
    return " ".join(f"{x:.9g}" for x in numbers)


def simulate(items: list[Item]) -> dict[str, np.ndarray]:
    """Name to float64[FRAMES, 7], x y z qw qx qy qz, of every body that moves."""
    model = mujoco.MjModel.from_xml_string(mujoco_xml(items))
    data = mujoco.MjData(model)
    tracks = {name: np.empty((FRAMES, 7)) for name in ["paddle", *(item.name for item in items)]}
    for frame in range(FRAMES):
        data.mocap_pos[0] = paddle_position(data.time)
        mujoco.mj_forward(model, data)
        for name, track in tracks.items():
            track[frame] = *data.body(name).xpos, *data.body(name).xquat
        for _ in range(STEPS_PER_FRAME):
            data.mocap_pos[0] = paddle_position(data.time)
            mujoco.mj_step(model, data)
    return tracks


# The stage.


def define_shape(stage: Usd.Stage, path: str, part: Part) -> Usd.Prim:
    """A collider prim of the part's type and size; an ellipsoid is a scaled sphere."""
    if part.kind in ("sphere", "ellipsoid"):
        prim = UsdGeom.Sphere.Define(stage, path)
        prim.CreateRadiusAttr(part.size[0] if part.kind == "sphere" else 1.0)
    elif part.kind == "box":
        prim = UsdGeom.Cube.Define(stage, path)
        prim.CreateSizeAttr(2.0)
    else:
        prim = {"capsule": UsdGeom.Capsule, "cylinder": UsdGeom.Cylinder, "cone": UsdGeom.Cone}[
            part.kind
        ].Define(stage, path)
        prim.CreateRadiusAttr(part.size[0])
        prim.CreateHeightAttr(2.0 * part.size[1])
        prim.CreateAxisAttr("Z")
    make_collider(prim.GetPrim())
    return prim.GetPrim()


def make_collider(prim: Usd.Prim) -> None:
    UsdPhysics.CollisionAPI.Apply(prim)
    prim.CreateAttribute("newton:contactGap", Sdf.ValueTypeNames.Float, custom=True).Set(GAP)


def place(prim: Usd.Prim, part: Part, moving: bool) -> None:
    """Transform ops: a moving prim's translate and orient are left to the motion layer."""
    prim = UsdGeom.Xformable(prim)
    translate = prim.AddTranslateOp(UsdGeom.XformOp.PrecisionFloat)
    if moving:
        prim.AddOrientOp()
    else:
        translate.Set(Gf.Vec3f(*part.offset))
    if part.kind in ("box", "ellipsoid"):
        prim.AddScaleOp().Set(Gf.Vec3f(*part.size))


def define_item(stage: Usd.Stage, item: Item) -> None:
    path = f"/World/Objects/{item.name}"
    if len(item.parts) == 1:
        prim = define_shape(stage, path, item.parts[0])
    else:
        prim = UsdGeom.Xform.Define(stage, path).GetPrim()
        for i, part in enumerate(item.parts):
            place(define_shape(stage, f"{path}/part_{i}", part), part, moving=False)
    place(prim, item.parts[0] if len(item.parts) == 1 else Part("group", ()), moving=True)
    UsdPhysics.RigidBodyAPI.Apply(prim)
    for leaf in Usd.PrimRange(prim):
        if leaf.IsA(UsdGeom.Gprim):
            UsdGeom.Gprim(leaf).CreateDisplayColorAttr([COLORS[item.group]])


def define_surroundings(stage: Usd.Stage) -> None:
    """The ground with its material, the walls, the paddle, and a trigger volume that touches
    nothing."""
    ground = UsdGeom.Plane.Define(stage, "/World/ground")
    ground.CreateAxisAttr("Z")
    make_collider(ground.GetPrim())
    material = UsdShade.Material.Define(stage, "/World/floor_material")
    UsdPhysics.MaterialAPI.Apply(material.GetPrim()).CreateDynamicFrictionAttr(0.5)
    UsdShade.MaterialBindingAPI.Apply(ground.GetPrim()).Bind(material, materialPurpose="physics")
    for name, (half, centre) in static_boxes().items():
        part = Part("box", half, centre)
        place(define_shape(stage, f"/World/{name}", part), part, moving=False)
    paddle = define_shape(stage, "/World/Objects/paddle", Part("box", PADDLE_SIZE))
    place(paddle, Part("box", PADDLE_SIZE), moving=True)
    UsdPhysics.RigidBodyAPI.Apply(paddle).CreateKinematicEnabledAttr(True)
    trigger = Part("box", (0.6, 0.6, 0.1), (0, 0, 0.6))
    prim = define_shape(stage, "/World/trigger", trigger)
    place(prim, trigger, moving=False)
    UsdPhysics.CollisionAPI(prim).CreateCollisionEnabledAttr(False)


def define_filters(stage: Usd.Stage, items: list[Item]) -> None:
    """Red does not touch Blue; crate_a does not touch crate_b; the joint keeps handle and head
    apart."""
    for name in ("Red", "Blue"):
        group = UsdPhysics.CollisionGroup.Define(stage, f"/World/Groups/{name}")
        members = [Sdf.Path(f"/World/Objects/{item.name}") for item in items if item.group == name]
        group.GetCollidersCollectionAPI().CreateIncludesRel().SetTargets(members)
    UsdPhysics.CollisionGroup.Get(stage, "/World/Groups/Red").CreateFilteredGroupsRel().AddTarget(
        "/World/Groups/Blue"
    )
    crate = stage.GetPrimAtPath("/World/Objects/crate_a")
    UsdPhysics.FilteredPairsAPI.Apply(crate).CreateFilteredPairsRel().AddTarget(
        "/World/Objects/crate_b"
    )
    joint = UsdPhysics.SphericalJoint.Define(stage, "/World/hammer_joint")
    joint.CreateBody0Rel().AddTarget("/World/Objects/handle")
    joint.CreateBody1Rel().AddTarget("/World/Objects/head")
    joint.CreateLocalPos0Attr(Gf.Vec3f(0, 0, 0.2))


def write_motion(path: Path, tracks: dict[str, np.ndarray]) -> None:
    """The moving bodies' time samples, as a binary layer of overs."""
    stage = Usd.Stage.CreateInMemory()
    stage.SetTimeCodesPerSecond(FRAMES_PER_SECOND)
    for name, track in tracks.items():
        prim = stage.OverridePrim(f"/World/Objects/{name}")
        translate = prim.CreateAttribute(
            "xformOp:translate", Sdf.ValueTypeNames.Float3, custom=False
        )
        orient = prim.CreateAttribute("xformOp:orient", Sdf.ValueTypeNames.Quatf, custom=False)
        for frame, pose in enumerate(track):
            translate.Set(Gf.Vec3f(*map(float, pose[:3])), frame)
            orient.Set(Gf.Quatf(*map(float, pose[3:])), frame)
    stage.GetRootLayer().Export(str(path))


def main() -> None:
    items = falling_items(np.random.default_rng(1)) + special_items()
    write_motion(FOLDER / "motion.usdc", simulate(items))
    (FOLDER / "pile.usda").unlink(missing_ok=True)
    stage = Usd.Stage.CreateNew(str(FOLDER / "pile.usda"))
    stage.GetRootLayer().subLayerPaths.append("./motion.usdc")
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.z)
    stage.SetTimeCodesPerSecond(FRAMES_PER_SECOND)
    stage.SetStartTimeCode(0)
    stage.SetEndTimeCode(FRAMES - 1)
    stage.SetDefaultPrim(UsdGeom.Xform.Define(stage, "/World").GetPrim())
    UsdPhysics.Scene.Define(stage, "/World/physics")
    UsdGeom.Scope.Define(stage, "/World/Objects")
    define_surroundings(stage)
    for item in items:
        define_item(stage, item)
    define_filters(stage, items)
    stage.GetRootLayer().Save()


if __name__ == "__main__":
    main()
