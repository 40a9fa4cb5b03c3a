"""`collide export --to newton` against what Newton's own collide puts into its `Contacts`, for spheres and a plane.

Newton takes half a minute of a core to compile: what it gave is recorded, and `make test-slow` lets it give it again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.exporters import layouts
from collidecli.exporters.selection import SelectedContacts
from collidecli.storage.contact_sets.reader import ContactSet

RECORDED = Path(__file__).parents[1] / "golden" / "newton_contacts.json"
GAP = 0.05
RADII = (0.3, 0.2, 0.25, 0.15)

NEWTONS = """
import json, sys
import numpy as np, warp as wp
wp.config.quiet = True
wp.config.enable_backward = False
import newton
poses, radii, gap = json.load(sys.stdin)
builder = newton.ModelBuilder()
config = newton.ModelBuilder.ShapeConfig(margin=0.0, gap=gap)
builder.add_shape_plane(body=-1, width=0.0, length=0.0, cfg=config, label="floor")
for k, (pose, radius) in enumerate(zip(poses, radii)):
    body = builder.add_body(xform=wp.transform(pose[:3], pose[3:]), label=f"body{k}")
    builder.add_shape_sphere(body, radius=radius, cfg=config, label=f"ball{k}")
model = builder.finalize(device="cpu")
contacts = model.collide(model.state())
n = int(contacts.rigid_contact_count.numpy()[0])
names = ("shape0", "shape1", "point0", "point1", "normal", "offset0", "offset1", "margin0", "margin1")
print(json.dumps({name: getattr(contacts, "rigid_contact_" + name).numpy()[:n].tolist() for name in names}))
"""


def poses() -> np.ndarray:
    """Four balls, turned, that meet each other and the floor at z = 0."""
    rng = np.random.default_rng(2)
    found = np.zeros((4, 7))
    found[:, :3] = [[0, 0, 0.28], [0.45, 0.05, 0.21], [0.1, 0.4, 0.5], [0.3, 0.3, 0.14]]
    turns = rng.normal(size=(4, 4))
    found[:, 3:] = turns / np.linalg.norm(turns, axis=1, keepdims=True)
    return found


def newtons() -> dict[str, list]:
    """Newton's arrays, from a process of its own: its schemas would be registered for good."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", NEWTONS],
        input=json.dumps([poses().tolist(), RADII, GAP]),
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


def recorded() -> dict[str, np.ndarray]:
    """Newton's arrays as they are recorded, in any order of pairs."""
    return {name: np.array(values) for name, values in json.loads(RECORDED.read_text()).items()}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> dict[str, np.ndarray]:
    """The exported arrays of the same balls."""
    usd = tmp_path_factory.mktemp("newton")
    lines = ['#usda 1.0\n(metersPerUnit = 1\nupAxis = "Z")\n']
    physics = 'prepend apiSchemas = ["PhysicsCollisionAPI"'
    lines.append(f'def Plane "floor" ({physics}]) {{\nuniform token axis = "Z"\n}}\n')
    for k, (pose, radius) in enumerate(zip(poses().tolist(), RADII, strict=True)):
        x, y, z, qx, qy, qz, qw = pose
        lines.append(
            f'def Sphere "ball{k}" ({physics}, "PhysicsRigidBodyAPI"]) {{\ndouble radius = {radius}\n'
            f"double3 xformOp:translate = ({x!r}, {y!r}, {z!r})\n"
            f"quatd xformOp:orient = ({qw!r}, {qx!r}, {qy!r}, {qz!r})\n"
            'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]\n}\n'
        )
    (usd / "balls.usda").write_text("".join(lines))
    arguments = ["--gap", str(2 * GAP), "--gap-rule", "max", "--device", "cpu", "-q"]
    assert main(["run", str(usd / "balls.usda"), "-o", str(usd / "out.h5"), *arguments]) == 0
    with ContactSet.open(usd / "out.h5") as contacts:
        picked = SelectedContacts(contacts, range(1), np.arange(1), None)
        return {
            array.name.removeprefix("rigid_contact_"): np.concatenate(list(array.pieces()))
            for array in layouts.newton_layout(picked).arrays
        }


def in_world(arrays: dict[str, np.ndarray], body_of: np.ndarray) -> dict[str, np.ndarray]:
    """By pair: points on the surfaces and separation, as Newton's functions of its fields define them."""
    found = {}
    turned = poses()
    for side in (0, 1):
        body = body_of[arrays[f"shape{side}"]]
        local = arrays[f"point{side}"] + arrays[f"offset{side}"]
        support = arrays[f"point{side}"]
        found[f"surface{side}"] = np.array([place(p, b, turned) for p, b in zip(local, body, strict=True)])
        found[f"support{side}"] = np.array([place(p, b, turned) for p, b in zip(support, body, strict=True)])
    way = np.einsum("ni,ni->n", arrays["normal"], found["support1"] - found["support0"])
    found["separation"] = way - arrays["margin0"] - arrays["margin1"]
    found["normal"] = np.asarray(arrays["normal"])
    order = np.lexsort([arrays["shape1"], arrays["shape0"]])
    found["pair"] = np.stack([arrays["shape0"], arrays["shape1"]], axis=1)
    return {name: values[order] for name, values in found.items()}


def place(point: np.ndarray, body: int, turned: np.ndarray) -> np.ndarray:
    if body < 0:
        return point
    x, y, z, w = turned[body, 3:]
    axis = np.array([x, y, z])
    return turned[body, :3] + point + 2.0 * np.cross(axis, np.cross(axis, point) + w * point)


def test_the_same_contacts_by_the_meaning_of_the_fields(ours):
    """Newton lists floor and balls in the order of ours; its float32 gives 1e-6 at this size."""
    label = ours["shape_label"].tolist()
    assert label == ["/floor", "/ball0", "/ball1", "/ball2", "/ball3"]
    mine = in_world(ours, ours["shape_body"])
    theirs = in_world(recorded(), np.array([-1, 0, 1, 2, 3]))
    assert mine["pair"].tolist() == theirs["pair"].tolist()
    assert len(mine["pair"]) >= 6
    for name in ("separation", "normal", "surface0", "surface1"):
        assert np.allclose(mine[name], theirs[name], rtol=0.0, atol=2e-6), name
    assert (mine["separation"] < 0.0).any()


@pytest.mark.slow
def test_newton_gives_what_is_recorded():
    pytest.importorskip("newton")
    here = in_world({name: np.array(values) for name, values in newtons().items()}, np.array([-1, 0, 1, 2, 3]))
    there = in_world(recorded(), np.array([-1, 0, 1, 2, 3]))
    for name, values in there.items():
        np.testing.assert_allclose(here[name], values, rtol=0.0, atol=1e-6, err_msg=name)
