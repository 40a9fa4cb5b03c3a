"""Small files that other programs hand over, to be damaged: bags, meshes, images, rows of engines,
limits, labels, and settings that are named."""

import io
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import trimesh
from PIL import Image

from tests.hostile.cases import SETTINGS
from tests.hostile.seeds import GOLDEN, SCENE, Group
from tests.support.engine_rows import row_texts
from tests.support.ros_bags import ROBOT, moving

MESHES_XML = """<mujoco>
  <asset>
    <mesh name="part" file="part.{}"/>
    <hfield name="ground" file="ground.png" size="1 1 0.2 0.1"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="ground"/>
    <body pos="0 0 0.2"><freejoint/><geom type="mesh" mesh="part"/></body>
  </worldbody>
</mujoco>
"""
TWO_XML = """<mujoco><worldbody>
  <geom type="sphere" size="0.1"/>
  <body name="high" pos="0 0 0.19"><freejoint/><geom type="sphere" size="0.1"/></body>
</worldbody></mujoco>
"""
LIMITS = """max-depth = "2mm"
max-ground = "1cm"
allow = [["gripper*", "cup*"]]

[[pair]]
between = ["ball", "trunk"]
max-depth = "6mm"
"""


@cache
def exchanged_groups() -> list[Group]:
    """A group for each kind of file."""
    contacts = {"contacts.h5": GOLDEN.with_name("contacts_1_1.h5").read_bytes()}
    robot = {"robot.xml": TWO_XML.encode()}
    rows = (
        ("fidelity", "two.xml", "--engines", "eng={}"),
        ("import", "{}", "--scene", "two.xml", "-o", "out.h5"),
    )
    drawn = (("report", "contacts.h5", "--labels", "{}", "-o", "out.html"),)
    judged = (("audit", "contacts.h5", "--limits", "{}"),)
    asked = (("run", "robot.xml", "--config", "{}"), ("inspect", "robot.xml", "--config", "{}"))
    two = {"two.xml": TWO_XML.encode()}
    found = [
        *_bags(),
        *_meshes(),
        _group("rows", "rows.npz", _rows(), two, rows),
        _group("labels", "labels.json", _labels(), contacts, drawn),
        _group("limits", "limits.toml", LIMITS.encode(), contacts, judged),
        _group("named settings", "named.toml", SETTINGS.encode(), robot, asked),
    ]
    return found


def _group(
    name: str,
    main: str,
    data: bytes,
    beside: dict[str, bytes],
    commands: tuple[tuple[str, ...], ...],
) -> Group:
    words = tuple(tuple(word.replace("{}", main) for word in words) for words in commands)
    return Group(name, main, {main: data, **beside}, (main,), words)


def _bags() -> list[Group]:
    """Every container, of 40 messages."""
    found = []
    beside = {"arm.urdf": ROBOT.encode()}
    with TemporaryDirectory() as folder:
        here = os.getcwd()
        os.chdir(folder)
        try:
            for name in ("drive.mcap", "zstd.mcap", "plain.bag", "lz4.bag", "drive"):
                moving(name.endswith(".bag")).write(name)
        finally:
            os.chdir(here)
        for name in ("drive.mcap", "zstd.mcap", "plain.bag", "lz4.bag"):
            commands = (("inspect", name), ("run", "arm.urdf", "-t", name))
            data = (Path(folder) / name).read_bytes()
            found.append(_group(name, name, data, beside, commands))
        whole = {
            f"drive/{path.name}": path.read_bytes() for path in (Path(folder) / "drive").iterdir()
        }
    commands = (("inspect", "drive"), ("run", "arm.urdf", "-t", "drive"))
    for name in sorted(whole):
        found.append(Group(name, name, {**whole, **beside}, (name,), commands))
    return found


def _meshes() -> list[Group]:
    """Meshes and the image of a heightfield of an MJCF scene."""
    box = trimesh.creation.box((0.2, 0.3, 0.1))
    image = io.BytesIO()
    grey = np.random.default_rng(1).integers(0, 255, (8, 9)).astype(np.uint8)
    Image.fromarray(grey).save(image, "PNG")
    found = []
    for ending in ("stl", "obj"):
        data = box.export(file_type=ending)
        scene = MESHES_XML.format(ending)
        mesh = data if isinstance(data, bytes) else data.encode()
        files = {"meshes.xml": scene.encode(), f"part.{ending}": mesh}
        files["ground.png"] = image.getvalue()
        for damaged in (f"part.{ending}", "ground.png"):
            found.append(Group(f"{ending}, {damaged}", "meshes.xml", files, (damaged,), SCENE))
    return found


def _rows() -> bytes:
    """What an adapter writes of TWO_XML: one pair that overlaps by 10 mm."""
    file = io.BytesIO()
    np.savez(
        file,
        **row_texts(),
        stateful=np.array(False),
        cell=np.zeros(1, int),
        pair=np.zeros(1, int),
        distance=np.full(1, -0.01),
        normal=np.array([[0.0, 0.0, 1.0]]),
        point=np.array([[0.0, 0.0, 0.095]]),
        shape_treated=np.full(2, "exact"),
        shape_reason=np.full(2, ""),
        pair_asked=np.ones(1, bool),
        seconds=np.full(2, np.nan),
    )
    return file.getvalue()


def _labels() -> bytes:
    """What `collide label --json` prints."""
    golden = str(GOLDEN.with_name("contacts_1_1.h5"))
    command = [sys.executable, "-m", "collidecli", "label", golden, "--json", "-o", "labels.npz"]
    with TemporaryDirectory() as folder:
        root = str(Path(__file__).parents[2])
        return subprocess.run(
            command,
            check=True,
            capture_output=True,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": root},
        ).stdout
