"""Sizes of MuJoCo Warp's buffers for concave meshes, as hulls and as convex parts."""

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.motions.scenes import load_scene
from collidecli.numerics.poses import moved_points
from collidecli.scene.options import SceneOptions

BODIES = 8
STEPS = 300
CORNERS = [(0, 0), (0.3, 0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.3), (0, 0.3)]
"""Of a letter L, counterclockwise [m]."""
FANS = [(0, 1, 2), (0, 2, 3), (0, 3, 4), (0, 4, 5)]


def letter() -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the letter, 0.1 m thick."""
    count = len(CORNERS)
    vertices = np.array([(x, y, z) for z in (0.0, 0.1) for x, y in CORNERS]) - [0.1, 0.1, 0.05]
    faces = [face[::-1] for face in FANS] + [tuple(k + count for k in face) for face in FANS]
    for first in range(count):
        second = (first + 1) % count
        faces += [(first, second, second + count), (first, second + count, first + count)]
    return vertices, np.array(faces)


def pile_xml(meshes: Sequence[tuple[np.ndarray, np.ndarray | None]]) -> str:
    """Free bodies with these meshes that fall on a plane. Without faces a mesh is a hull."""
    assets = geoms = ""
    for number, (vertices, faces) in enumerate(meshes):
        listed = "" if faces is None else f'face="{" ".join(map(str, faces.ravel().tolist()))}"'
        points = " ".join(map(repr, vertices.ravel().tolist()))
        assets += f'<mesh name="m{number}" vertex="{points}" {listed} inertia="convex"/>'
        geoms += f'<geom type="mesh" mesh="m{number}"/>'
    bodies = "".join(
        f'<body name="b{k}" pos="{0.25 * (k % 2)} {0.25 * (k // 2 % 2)} {0.2 + 0.2 * (k // 4)}">'
        f"<freejoint/>{geoms}</body>"
        for k in range(BODIES)
    )
    floor = '<geom name="floor" type="plane" size="0 0 1"/>'
    return f"<mujoco><asset>{assets}</asset><worldbody>{floor}{bodies}</worldbody></mujoco>"


def states(model: mujoco.MjModel) -> np.ndarray:
    """qpos[frames, nq] of the falling pile; float32 numbers, as the engine has them."""
    data = mujoco.MjData(model)
    data.qvel[:] = 0.3 * np.random.default_rng(3).standard_normal(model.nv)
    kept = []
    for step in range(STEPS):
        mujoco.mj_step(model, data)
        if step % 15 == 0:
            kept.append(data.qpos.astype(np.float32).astype(float))
    return np.array(kept)


def warp_counts(model: mujoco.MjModel, qpos: np.ndarray, **limits: int) -> dict[str, int]:
    """The greatest numbers of contacts or pairs, and of rows of constraints, of MuJoCo Warp."""
    mujoco_warp: Any = pytest.importorskip("mujoco_warp")
    import warp as wp

    contacts = rows = 0
    with wp.ScopedDevice("cpu"):
        on_device = mujoco_warp.put_model(model)
        data = mujoco_warp.make_data(model, nworld=1, **limits)
        for frame in qpos:
            data.qpos.assign(frame[None].astype(np.float32))
            mujoco_warp.fwd_position(on_device, data)
            counted = [int(count.numpy().max()) for count in (data.ncollision, data.nacon)]
            contacts = max(contacts, *counted)
            rows = max(rows, int(data.nefc.numpy().max()))
    return {"naconmax": contacts, "njmax": rows}


def sizes_of(given: tuple[Any, ...], kind: str) -> dict[str, dict[str, Any]]:
    """The settings of a scene in motion by name, with meshes of a kind."""
    found = collidecli.profile(*given, sizes=True, repeats=1, meshes=f"*={kind}").sizes
    assert found is not None
    return {setting["name"]: setting for setting in found["settings"]}


@pytest.mark.filterwarnings("ignore:.*convex parts, which exceed its triangles")
@pytest.mark.parametrize("kind", ["hull", "parts"])
def test_sizes_of_hulls_and_parts_hold_in_mujoco_warp(tmp_path, kind):
    file = tmp_path / "pile.xml"
    file.write_text(pile_xml([letter()]))
    options = SceneOptions(meshes=(f"*={kind}",))
    loaded = load_scene([str(file)], None, options=options).model
    of_a_body = np.flatnonzero(loaded.shapes.body == 0)
    hulls = [loaded.hulls[row] for row in loaded.shapes.hull[of_a_body]]
    assert (len(hulls) > 1) == (kind == "parts")
    parts = [
        (moved_points(pose, hull.vertex), None)
        for pose, hull in zip(loaded.shapes.pose[of_a_body], hulls, strict=True)
    ]
    model = mujoco.MjModel.from_xml_string(pile_xml(parts))
    qpos = states(model)
    np.savez(tmp_path / "pile.npz", time=np.arange(len(qpos)) * 0.1, qpos=qpos)
    given = (file, tmp_path / "pile.npz")
    exact = sizes_of(given, "exact")
    withheld = exact["naconmax"]
    assert f"--meshes '*={kind}'" in withheld["reason"]
    named = sizes_of(given, kind)
    advised = {name: named[name]["advised"] for name in ("naconmax", "njmax")}
    counted = warp_counts(model, qpos, naconmax=10 * advised["naconmax"], njmax=10_000)
    for name, number in counted.items():
        assert BODIES < number <= advised[name], (name, number)
    assert warp_counts(model, qpos, **advised) == counted
