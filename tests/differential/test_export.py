"""`collide export --to mujoco` and `--to newton` against the live contacts of both engines."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.exporters.layouts import newton
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import SelectedContacts

FRAMES = 60
ROUNDING = 2.0**-23
"""Of the set's float32 columns, distance and normal: one rounding, and one of the sum with the
margin."""

# The geoms stand against the order of MuJoCo's types, so that sides are exchanged; one is only
# seen, so that ids and rows differ. Both engines have closed forms for every pair that is not
# excluded.
SCENE = """<mujoco>
  <worldbody>
    <geom name="seen" type="box" size="1 1 1" contype="0" conaffinity="0"/>
    <body name="box"><freejoint/>
      <geom name="box" type="box" size="0.3 0.2 0.1" margin="0.02" friction="0.7 0.01 0.002"/>
    </body>
    <body name="pill"><freejoint/>
      <geom name="pill" type="capsule" size="0.1 0.2" gap="0.01" condim="4"
            solref="0.03 1.2" solimp="0.8 0.9 0.002 0.5 2"/>
    </body>
    <body name="ball"><freejoint/>
      <geom name="ball" type="sphere" size="0.2" margin="0.01" condim="6" priority="1"/>
    </body>
    <body name="pin"><freejoint/><geom name="pin" type="capsule" size="0.05 0.3" friction="0.3"/></body>
    <body name="egg"><freejoint/><geom type="sphere" size="0.15" solmix="3"/></body>
    <geom name="floor" type="plane" size="5 5 1" pos="0 0 -0.2" euler="4 7 0"/>
  </worldbody>
  <contact><exclude body1="box" body2="pill"/><exclude body1="box" body2="pin"/></contact>
  <keyframe>
{keys}  </keyframe>
</mujoco>
"""
BODIES = 5


def keyframes(seed: int = 11) -> str:
    """Random poses so near each other that most pairs meet in some frames."""
    rng = np.random.default_rng(seed)
    lines = []
    for frame in range(FRAMES):
        poses = np.concatenate(
            [rng.uniform(-0.35, 0.35, (BODIES, 3)), rng.normal(size=(BODIES, 4))], axis=1
        )
        poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
        lines.append(
            f'    <key time="{frame}" qpos="{" ".join(map(repr, poses.reshape(-1).tolist()))}"/>\n'
        )
    return "".join(lines)


@dataclass(frozen=True)
class Both:
    """Exported fields and MuJoCo's, of each frame: the deepest contact of each pair of geoms, in
    the order of pairs."""

    ours: list[dict[str, np.ndarray]]
    theirs: list[dict[str, np.ndarray]]


FIELDS = (
    "dist",
    "pos",
    "frame",
    "includemargin",
    "friction",
    "solref",
    "solimp",
    "dim",
    "geom1",
    "geom2",
    "geom",
)


def deepest(fields: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    order = np.lexsort([fields["dist"], fields["geom2"], fields["geom1"]])
    pairs = np.asarray(fields["geom"])[order]
    first = np.flatnonzero(np.r_[True, (pairs[1:] != pairs[:-1]).any(axis=1)][: len(pairs)])
    return {name: np.asarray(values)[order[first]] for name, values in fields.items()}


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> Both:
    folder: Path = tmp_path_factory.mktemp("mjcontact")
    scene, contacts, exported = (str(folder / name) for name in ("scene.xml", "out.h5", "out.npz"))
    Path(scene).write_text(SCENE.format(keys=keyframes()))
    assert main(["run", scene, "-o", contacts, "--device", "cpu", "-q"]) == 0
    assert main(["export", contacts, "--to", "mujoco", "-o", exported, "--scene", scene, "-q"]) == 0
    model = mujoco.MjModel.from_xml_path(scene)
    data = mujoco.MjData(model)
    theirs = []
    for frame in range(FRAMES):
        mujoco.mj_resetDataKeyframe(model, data, frame)
        mujoco.mj_fwdPosition(model, data)
        theirs.append(deepest({name: np.array(getattr(data.contact, name)) for name in FIELDS}))
    with np.load(exported) as arrays:
        start = arrays["cell_start"]
        assert arrays["ncon"].tolist() == np.diff(start)[:, None].tolist()
        assert arrays["geom_name"].tolist() == [
            model.geom(geom).name for geom in range(model.ngeom)
        ]
        columns = {name: arrays[name] for name in FIELDS}
    ours = [
        deepest({name: values[start[frame] : start[frame + 1]] for name, values in columns.items()})
        for frame in range(FRAMES)
    ]
    return Both(ours, theirs)


def test_the_same_contacts(both):
    """Of each frame the same pairs, with the same geom first, at the same distance and place."""
    pairs = set()
    for ours, theirs in zip(both.ours, both.theirs, strict=True):
        for name in ("geom", "geom1", "geom2", "dim"):
            assert ours[name].tolist() == theirs[name].tolist(), name
            assert ours[name].dtype == theirs[name].dtype
        assert np.allclose(ours["dist"], theirs["dist"], rtol=2 * ROUNDING, atol=1e-9)
        # Points are float64 columns, and every pair here is a closed form: what is left is rounding
        # of some steps.
        assert np.allclose(ours["pos"], theirs["pos"], rtol=0.0, atol=1e-12)
        pairs |= set(map(tuple, ours["geom"].tolist()))
    assert sum(len(ours["dist"]) for ours in both.ours) > 200
    assert len(pairs) == 13, "every pair but the excluded ones"
    assert any(one > other for one, other in pairs), (
        "MuJoCo's sides are not always the order of ids"
    )


def test_the_normal_is_the_first_axis_from_geom_1_to_geom_2(both):
    for ours, theirs in zip(both.ours, both.theirs, strict=True):
        assert np.allclose(
            ours["frame"][:, :3], theirs["frame"][:, :3], rtol=0.0, atol=2 * ROUNDING
        )
        axes = ours["frame"].reshape(-1, 3, 3)
        assert np.allclose(axes @ np.swapaxes(axes, 1, 2), np.eye(3), rtol=0.0, atol=1e-15 * 8)
        assert np.allclose(np.linalg.det(axes), 1.0)


def test_the_other_axes_are_those_of_make_frame(both):
    """Apart from the pairs of a plane and a capsule, where MuJoCo lays the second axis along the
    capsule."""
    for ours, theirs in zip(both.ours, both.theirs, strict=True):
        kept = ours["geom1"] != 1
        capsule = np.isin(ours["geom2"], (3, 5))
        rows = kept | ~capsule
        # Near the turn from y to z the frame multiplies the normal's rounding by 2 at most.
        assert np.allclose(ours["frame"][rows], theirs["frame"][rows], rtol=0.0, atol=8 * ROUNDING)


def test_the_parameters(both):
    for ours, theirs in zip(both.ours, both.theirs, strict=True):
        for name in ("friction", "solref", "solimp", "includemargin"):
            assert ours[name].shape == theirs[name].shape, name
            # Margins are float32 in a contact set, the surfaces float64.
            tolerance = 2 * ROUNDING if name == "includemargin" else 1e-14
            assert np.allclose(ours[name], theirs[name], rtol=tolerance, atol=0.0), name


# `collide export --to newton` against what Newton's own collide puts into its `Contacts`, for
# spheres and a plane.

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
            f'def Sphere "ball{k}" ({physics}, "PhysicsRigidBodyAPI"]) {{\ndouble radius ='
            f" {radius}\ndouble3 xformOp:translate = ({x!r}, {y!r}, {z!r})\nquatd xformOp:orient ="
            f" ({qw!r}, {qx!r}, {qy!r}, {qz!r})\nuniform token[] xformOpOrder ="
            ' ["xformOp:translate", "xformOp:orient"]\n}\n'
        )
    (usd / "balls.usda").write_text("".join(lines))
    arguments = ["--gap", str(2 * GAP), "--gap-rule", "max", "--device", "cpu", "-q"]
    assert main(["run", str(usd / "balls.usda"), "-o", str(usd / "out.h5"), *arguments]) == 0
    with ContactSet.open(usd / "out.h5") as contacts:
        picked = SelectedContacts(contacts, range(1), np.arange(1), None)
        return {
            array.name.removeprefix("rigid_contact_"): np.concatenate(list(array.pieces()))
            for array in newton.newton_layout(picked).arrays
        }


def in_world(arrays: dict[str, np.ndarray], body_of: np.ndarray) -> dict[str, np.ndarray]:
    """By pair: points on the surfaces and separation, as Newton's functions of its fields define
    them."""
    found = {}
    turned = poses()
    for side in (0, 1):
        body = body_of[arrays[f"shape{side}"]]
        local = arrays[f"point{side}"] + arrays[f"offset{side}"]
        support = arrays[f"point{side}"]
        found[f"surface{side}"] = np.array(
            [place(p, b, turned) for p, b in zip(local, body, strict=True)]
        )
        found[f"support{side}"] = np.array(
            [place(p, b, turned) for p, b in zip(support, body, strict=True)]
        )
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
    here = in_world(
        {name: np.array(values) for name, values in newtons().items()}, np.array([-1, 0, 1, 2, 3])
    )
    there = in_world(recorded(), np.array([-1, 0, 1, 2, 3]))
    for name, values in there.items():
        np.testing.assert_allclose(here[name], values, rtol=0.0, atol=1e-6, err_msg=name)
