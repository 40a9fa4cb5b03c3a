"""python -m tests.support.processor_cases FOLDER [NAME ...]: content hashes of all or of the named
cases, as JSON.

The cases cover the path from files to contacts: scenes of every kind, recordings of every kind,
tracking, reduction. Their inputs are written once, by `write_cases`: what makes them may depend on
the processor, what reads them must not.
"""

import contextlib
import io
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import h5py
import mujoco
import numpy as np

from collidecli.cli.main import main as collide
from tests.support.meshes import bumpy
from tests.support.twin_robots import ROBOT, write_isaac_lab, write_twins
from tests.support.twin_robots import stepped_demo as stepped
from tests.support.usd_scenes import mesh, placed

SAMPLES = Path(__file__).parents[2] / "samples"
FRAMES = 12
BODY = 'prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]'

ROBOT_MJCF = """<mujoco>
  <compiler angle="degree" eulerseq="XYz"/>
  <asset>
    <mesh name="rock" vertex="{vertices}"/>
    <hfield name="field" nrow="6" ncol="7" size="2 2 0.4 0.1" elevation="{heights}"/>
  </asset>
  <worldbody>
    <geom name="field" type="hfield" hfield="field" euler="2 3 10"/>
    <frame euler="3 4 5" pos="0 0 0.4">
      <body name="a" axisangle="1 2 3 40">
        <freejoint name="free"/>
        <geom type="capsule" fromto="0 0 0 0.1 0.2 0.3" size="0.1"/>
        <geom type="box" size="0.1 0.2 0.15" zaxis="1 2 3" pos="0.1 0 0"/>
        <body name="b" euler="10 20 30" pos="0.2 0.1 0">
          <joint name="hinge" axis="1 1 0" ref="7"/>
          <geom type="mesh" mesh="rock" euler="11 12 13"/>
          <body name="c" pos="0.1 0.2 0.3" euler="-40 5 6">
            <joint name="ball" type="ball"/>
            <geom type="cylinder" size="0.07 0.2" euler="20 0 70"/>
          </body>
          <body name="d" pos="0 0 0.3">
            <joint name="slide" type="slide" axis="1 2 1"/>
            <joint name="turn" axis="0 1 2" pos="0.1 0 0"/>
            <geom type="ellipsoid" size="0.1 0.2 0.3"/>
          </body>
        </body>
      </body>
    </frame>
    <replicate count="5" euler="5 7 30" offset="0.1 0.05 0.02">
      <geom type="box" size="0.2 0.1 0.1" pos="0.4 0 0.3" euler="1 2 3"/>
    </replicate>
  </worldbody>
</mujoco>
"""
LINK = """<link name="{name}"><collision>
  <origin xyz="0.02 0 0.1" rpy="{rpy}"/><geometry>{geometry}</geometry></collision>
</link>"""
ROBOT_URDF = """<robot name="arm">{links}
  <joint name="j0" type="revolute"><parent link="l0"/><child link="l1"/><origin xyz="0 0 0.2" rpy="0.3 -0.2 1.1"/>
    <axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="1" velocity="1"/></joint>
  <joint name="j1" type="continuous"><parent link="l1"/><child link="l2"/><origin xyz="0 0.05 0.2" rpy="-0.7 0.4 0.2"/>
    <axis xyz="1 0 0"/></joint>
</robot>
"""


def write_cases(folder: Path) -> None:
    """Writes the inputs, and cases.json: the arguments of `collide run` of each case by its
    name."""
    cases: dict[str, list[str]] = {}
    for name in ("01_usd_pile", "02_humanoid", "03_regression_tests/scenes", "04_meshes"):
        shutil.copytree(SAMPLES / name, folder / name, dirs_exist_ok=True)
    cases["pile"] = ["01_usd_pile/pile.usda", "--frames", "::6"]
    cases["pile, tracked"] = [
        *cases["pile"],
        "--sticky-contacts",
        "0.002",
        "--contact-ids",
        "--columns",
        "friction",
    ]
    cases["pile, mpr"] = [*cases["pile"], "--narrow-phase", "mpr"]
    cases["humanoid"] = [
        "02_humanoid/humanoid.xml",
        "-t",
        "02_humanoid/motion.h5",
        "--frames",
        "::4",
    ]
    cases["crates"] = [
        "03_regression_tests/scenes/crates.xml",
        "-t",
        "03_regression_tests/scenes/fall.h5",
    ]
    cases["meshes"] = ["04_meshes/meshes.usda", "--gap", "0.005", "--frames", "::9"]
    reduced = [
        "--reduce-contacts",
        "--reduce-pairs",
        "all",
        "--normal-matching",
        "--moment-matching",
    ]
    cases["meshes, reduced"] = [*cases["meshes"], *reduced]
    cases["meshes, reduced by powers of depth"] = [
        *cases["meshes"],
        "--reduce-contacts",
        "--betas",
        "-0.7,-2",
    ]
    _write_usd(folder, cases)
    _write_mjcf(folder, cases)
    _write_urdf(folder, cases)
    _write_named(folder, cases)
    (folder / "cases.json").write_text(json.dumps(cases))


def _write_usd(folder: Path, cases: dict[str, list[str]]) -> None:
    """Every operation of a transform, between samples too; units; meshes of every approximation; a
    field."""
    rng = np.random.default_rng(5)

    def samples(width: int, size: float, shift: tuple[float, ...] = ()) -> str:
        rows = rng.normal(size=(4, width)) * size + (shift or (0.0,) * width)
        return "{ " + ", ".join(f"{3 * k}: {_tuple(row)}" for k, row in enumerate(rows)) + " }"

    kinds = ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "X", "Y", "Z"]
    bodies = []
    for k, kind in enumerate(kinds):
        name = f"xformOp:rotate{kind}"
        value = "float3" if len(kind) == 3 else "float"
        place = _tuple((40.0 * (k % 3), 40.0 * (k // 3), 30.0))
        turns = samples(3, 200.0) if len(kind) == 3 else samples(1, 200.0)
        bodies.append(f"""def Cube "turned{k}" ({BODY}) {{
            double size = 45
            double3 xformOp:translate = {place}
            {value} {name}.timeSamples = {turns}
            float3 xformOp:scale = (1, 0.7, 0.5)
            uniform token[] xformOpOrder = ["xformOp:translate", "{name}", "xformOp:scale"]
        }}""")
    for precision in ("half", "float", "double"):
        rows = rng.normal(size=(4, 4))
        rows /= np.linalg.norm(rows, axis=1)[:, None]
        turns = "{ " + ", ".join(f"{3 * k}: {_tuple(row)}" for k, row in enumerate(rows)) + " }"
        bodies.append(f"""def Cone "oriented_{precision}" ({BODY}) {{
            double3 xformOp:translate.timeSamples = {samples(3, 30.0, (30.0, 40.0, 40.0))}
            double radius = 20
            double height = 50
            quat{precision[0]} xformOp:orient.timeSamples = {turns}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]
        }}""")
    texts = _usd_meshes(rng)
    separate = "\n    "
    order = '"xformOp:translate:pivot", "xformOp:rotateY:tilt", "!invert!xformOp:translate:pivot"'
    scene = f"""#usda 1.0
(
 metersPerUnit = 0.01
 upAxis = "Z"
 timeCodesPerSecond = 24
)
def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{
    uniform token axis = "Z"
}}
def Xform "tilted" {{
    float xformOp:rotateY:tilt = 7.3
    float3 xformOp:translate:pivot = (3, 4, 5)
    uniform token[] xformOpOrder = [{order}]
    {separate.join(bodies)}
    {separate.join(texts)}
}}
"""
    (folder / "turned.usda").write_text(scene)
    cases["usd"] = ["turned.usda", "--gap", "0.05"]
    _write_layer(folder, samples(3, 90.0), cases)


def _write_layer(folder: Path, turns: str, cases: dict[str, list[str]]) -> None:
    """The motion of one of the bodies of turned.usda."""
    layer = f"""#usda 1.0
(
 timeCodesPerSecond = 24
)
over "tilted" {{
    over "turned0" {{
        float3 xformOp:rotateXYZ.timeSamples = {turns}
    }}
}}
"""
    (folder / "layer.usda").write_text(layer)
    cases["usd, a layer's motion"] = ["turned.usda", "-t", "layer.usda"]


def _usd_meshes(rng: np.random.Generator) -> list[str]:
    """Turned meshes of every approximation, and a face with a dent."""
    texts = []
    for k, approximation in enumerate(
        ("none", "convexHull", "boundingCube", "boundingSphere", "sdf")
    ):
        ops = f"""double3 xformOp:translate = {_tuple((25.0 * k, 90.0, 20.0))}
            double3 xformOp:rotateZYX = {_tuple(rng.normal(size=3) * 90)}
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateZYX"]"""
        ops += (
            "\nuniform int physxSDFMeshCollision:sdfResolution = 24"
            if approximation == "sdf"
            else ""
        )
        vertices, faces = bumpy(rng, 5, 7, 12.0)
        texts.append(mesh(f"mesh{k}", vertices, faces.tolist(), approximation, ops))
    # A face with a dent, on a stretched prim: cut by ears.
    dent = [(0, 0, 0), (10, 2, 0), (20, 0, 0), (20, 20, 0), (10, 5, 0), (0, 20, 0)]
    texts.append(
        mesh("dent", dent, [list(range(6))], "none", placed((0, 70, 25), (10, 20, 30), (1, 2, 3)))
    )
    return texts


def _write_mjcf(folder: Path, cases: dict[str, list[str]]) -> None:
    """Every form of orientation, every joint; the three recordings of MuJoCo's coordinates."""
    rng = np.random.default_rng(6)
    vertices = " ".join(f"{x:.7g}" for x in (rng.normal(size=(30, 3)) * 0.15).ravel())
    heights = " ".join(f"{x:.5g}" for x in rng.uniform(size=42))
    text = ROBOT_MJCF.format(vertices=vertices, heights=heights)
    (folder / "robot.xml").write_text(text)
    model = mujoco.MjModel.from_xml_string(text)
    qpos = np.tile(model.qpos0, (FRAMES, 1)) + rng.normal(size=(FRAMES, model.nq)) * 0.3
    for joint in range(model.njnt):
        start = {0: 3, 1: 0}.get(int(model.jnt_type[joint]))
        if start is not None:
            part = slice(
                int(model.jnt_qposadr[joint]) + start, int(model.jnt_qposadr[joint]) + start + 4
            )
            qpos[:, part] /= np.linalg.norm(qpos[:, part], axis=1)[:, None]
    states = np.concatenate(
        [np.arange(FRAMES)[:, None] * 0.01, qpos, np.zeros((FRAMES, model.nv))], axis=1
    )
    np.save(folder / "states.npy", states)
    with h5py.File(folder / "demos.hdf5", "w") as file:
        for k in range(2):
            group = file.create_group(f"data/demo_{k}")
            group["states"] = states[k:]
            group.attrs["model_file"] = text
    cases["mjcf"] = ["robot.xml", "--gap", "0.05"]
    cases["mujoco-states"] = ["robot.xml", "-t", "states.npy", "--gap", "0.05"]
    cases["robosuite"] = ["robot.xml", "-t", "demos.hdf5", "--uneven-demos", "cut", "--gap", "0.05"]


def _write_urdf(folder: Path, cases: dict[str, list[str]]) -> None:
    geometries = (
        '<box size="0.2 0.1 0.3"/>',
        '<cylinder radius="0.1" length="0.4"/>',
        '<sphere radius="0.12"/>',
    )
    rpy = ("0.1 0.2 0.3", "1.3 -0.4 0.2", "0 0.5 0")
    links = "".join(
        LINK.format(name=f"l{k}", rpy=turn, geometry=shape)
        for k, (turn, shape) in enumerate(zip(rpy, geometries, strict=True))
    )
    (folder / "arm.urdf").write_text(ROBOT_URDF.format(links=links))
    rng = np.random.default_rng(8)
    rows = np.concatenate(
        [np.zeros((FRAMES, 3)), np.tile([0.0, 0, 0, 1], (FRAMES, 1)), rng.normal(size=(FRAMES, 2))],
        1,
    )
    header = "x,y,z,qx,qy,qz,qw,j0,j1"
    np.savetxt(folder / "arm.csv", rows, delimiter=",", header=header, comments="")
    cases["urdf"] = ["arm.urdf", "--gap", "0.3"]
    cases["urdf, a table of joints"] = ["arm.urdf", "-t", "arm.csv", "--fps", "50", "--gap", "0.3"]


def _write_named(folder: Path, cases: dict[str, list[str]]) -> None:
    """One robot as USD and as MJCF, and Isaac Lab's recording of its joints."""
    geom = '<geom type="capsule" size="0.2 0.4"/>'
    twins = write_twins(folder / "twins", ROBOT, seed=2, ground=True, geom=geom)
    demo = stepped(twins, FRAMES)
    write_isaac_lab(folder / "isaac.hdf5", [demo], 1)
    write_isaac_lab(folder / "isaac_mjcf.hdf5", [demo], 1, robot="base")
    axes = [f"{name}_{axis}" for name, axis in zip(demo.names, demo.axes, strict=True)]
    common = ["--fps", "60", "--gap", "0.5", "--joint-names"]
    cases["isaac-lab, usd"] = [
        "twins/robot.usda",
        "-t",
        "isaac.hdf5",
        *common,
        ",".join(demo.names),
    ]
    cases["isaac-lab, mjcf"] = ["twins/robot.xml", "-t", "isaac_mjcf.hdf5", *common, ",".join(axes)]


def _tuple(numbers) -> str:
    held = [f"{float(x):.9g}" for x in np.atleast_1d(numbers)]
    return f"({', '.join(held)})" if len(held) > 1 else held[0]


def run_cases(folder: Path, names: Sequence[str] = ()) -> dict[str, str]:
    """Content hash and number of contacts of each case, or what was wrong. names: of the cases, all
    where empty."""
    found = {}
    cases = json.loads((folder / "cases.json").read_text())
    for name in names or cases:
        arguments = cases[name]
        paths = [str(folder / word) if (folder / word).exists() else word for word in arguments]
        out = io.StringIO()
        err = io.StringIO()
        options = [
            "-o",
            str(folder / "out.h5"),
            "--force",
            "--json",
            "--device",
            "cpu",
            "--cache-limit",
            "0B",
        ]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = collide(["run", *paths, *options])
        if code:
            found[name] = f"exit code {code}: {err.getvalue()}"
        else:
            facts = json.loads(out.getvalue())
            found[name] = f"{facts['content_sha256'][:16]} {facts['contacts']}"
    return found


if __name__ == "__main__":
    print(json.dumps(run_cases(Path(sys.argv[1]), sys.argv[2:])))
