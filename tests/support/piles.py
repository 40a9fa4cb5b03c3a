"""MJCF of piles of free bodies, and of a quadruped on a terrain."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from tests.support.poses import quaternion_of

TYPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
SPACING = 0.25
OPTION = (
    '<option timestep="0.004" solver="CG" iterations="40" integrator="implicitfast" density="50"'
    ' viscosity="0.5"/>'
)


def pile_xml(
    shape_count: int, gap: float = 0.0, types: Sequence[str] = TYPES, layers: int = 0
) -> str:
    """MJCF of `shape_count` free bodies of one geom each, `g0`, `g1`, ..., on a grid that falls to
    a pile.

    gap: of every geom; MuJoCo adds those of a pair [m]. types: of MJCF's, and "cone" and "hull",
    which are meshes here. layers: of the grid; 0 for twice as many as along a side.
    """
    rng = np.random.default_rng(shape_count)
    side = int(
        np.ceil((shape_count / layers) ** (1 / 2) if layers else (shape_count / 2) ** (1 / 3))
    )
    bodies = []
    meshes = []
    for index in range(shape_count):
        place = np.array([index % side, index // side % side, index // side**2], float)
        x, y, z = SPACING * (place - [side / 2 - 0.5, side / 2 - 0.5, -0.8]) + [
            *rng.uniform(-0.02, 0.02, 2),
            0,
        ]
        a, b, c, d = rng.normal(size=4)
        kind = types[index % len(types)]
        sizes = rng.uniform(0.06, 0.11, 3)
        if kind in ("cone", "hull"):
            corners = cone_corners(sizes) if kind == "cone" else hull_corners(index, sizes)
            listed = " ".join(map(repr, corners.ravel().tolist()))
            meshes.append(f'<mesh name="m{index}" vertex="{listed}"/>')
            shape = f'type="mesh" mesh="m{index}"'
        else:
            shape = f'type="{kind}" size="{_size(kind, *sizes)}"'
        bodies.append(
            f'<body pos="{x} {y} {z}" quat="{a} {b} {c} {d}"><freejoint/><geom name="g{index}"'
            f" {shape}/></body>"
        )
    default = f'<default><geom gap="{gap}"/></default>' if gap else ""
    world = f'<geom type="plane" size="0 0 1"/>{_walls(0.52 * side * SPACING)}{"".join(bodies)}'
    asset = f"<asset>{''.join(meshes)}</asset>" if meshes else ""
    return (
        f"<mujoco>{OPTION}{default}<size"
        f' memory="4G"/>{asset}<worldbody>{world}</worldbody></mujoco>'
    )


def cone_corners(sizes: np.ndarray) -> np.ndarray:
    """A cone of radius sizes[0], half height sizes[1], as its tip and 24 points of its rim [m]."""
    turn = np.linspace(0.0, 2.0 * np.pi, 25)[:-1]
    rim = np.stack([sizes[0] * np.cos(turn), sizes[0] * np.sin(turn), np.full(24, -sizes[1])], 1)
    return np.concatenate([rim, [[0.0, 0.0, sizes[1]]]])


def hull_corners(index: int, sizes: np.ndarray) -> np.ndarray:
    """Twelve points on an ellipsoid of these half axes [m]."""
    points = np.random.default_rng(index).normal(size=(12, 3))
    return sizes * points / np.linalg.norm(points, axis=1, keepdims=True)


@dataclass(frozen=True)
class SettledPile:
    """A pile of free bodies at rest. types: of each body. sizes: float64[N, 3], as `ShapeType` has
    them. hulls: corners of the bodies that are "hull", by number. poses: float64[frames, N, 7] of
    the bodies' own frames.
    """

    types: tuple[str, ...]
    sizes: np.ndarray
    hulls: dict[int, np.ndarray]
    poses: np.ndarray


def settled_pile(
    count: int, types: Sequence[str], steps: int, frames: int, every: int
) -> SettledPile:
    """A pile of `pile_xml` after `steps` of MuJoCo, and `frames` of what follows, each `every`
    steps."""
    model = mujoco.MjModel.from_xml_string(pile_xml(count, types=types))
    data = mujoco.MjData(model)
    for _ in range(steps):
        mujoco.mj_step(model, data)
    geoms = [model.geom(f"g{index}").id for index in range(count)]
    kinds = tuple(types[index % len(types)] for index in range(count))
    sizes = np.zeros((count, 3))
    hulls = {}
    turn = np.tile(np.eye(3), (count, 1, 1))
    offset = np.zeros((count, 3))
    for index, (geom, kind) in enumerate(zip(geoms, kinds, strict=True)):
        mesh = int(model.geom_dataid[geom])
        if mesh < 0:
            sizes[index] = model.geom_size[geom]
            continue
        # MuJoCo moves a mesh into the frame of its inertia.
        mujoco.mju_quat2Mat(matrix := np.zeros(9), model.mesh_quat[mesh])
        turn[index] = matrix.reshape(3, 3)
        offset[index] = model.mesh_pos[mesh]
        start = model.mesh_vertadr[mesh]
        own = (
            model.mesh_vert[start : start + model.mesh_vertnum[mesh]].astype(np.float64)
            @ turn[index].T
            + offset[index]
        )
        if kind == "hull":
            hulls[index] = own
        else:
            sizes[index, :2] = np.hypot(own[:, 0], own[:, 1]).max(), own[:, 2].max()
    poses = np.zeros((frames, count, 7))
    for frame in range(frames):
        for _ in range(every):
            mujoco.mj_step(model, data)
        mujoco.mj_kinematics(model, data)
        world = data.geom_xmat[geoms].reshape(-1, 3, 3) @ np.swapaxes(turn, 1, 2)
        poses[frame, :, :3] = data.geom_xpos[geoms] - np.einsum("nij,nj->ni", world, offset)
        poses[frame, :, 3:] = quaternion_of(world)
    return SettledPile(kinds, sizes, hulls, poses)


def _size(kind: str, r: float, s: float, t: float) -> str:
    return {
        "sphere": f"{r}",
        "capsule": f"{0.7 * r} {0.7 * s}",
        "box": f"{0.8 * r} {0.8 * s} {0.8 * t}",
        "cylinder": f"{0.8 * r} {s}",
        "ellipsoid": f"{r} {s} {t}",
    }[kind]


def _walls(half: float) -> str:
    places = (
        (0.5, half + 1, half + 0.5, 0),
        (0.5, half + 1, -half - 0.5, 0),
        (half + 1, 0.5, 0, half + 0.5),
        (half + 1, 0.5, 0, -half - 0.5),
    )
    return "".join(
        f'<geom type="box" size="{a} {b} 50" pos="{x} {y} 50"/>' for a, b, x, y in places
    )


# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false


def terrain(count: int, rng: np.random.Generator) -> np.ndarray:
    """float32[count, count], 0 to 1: the escape task's formula, bumps of 2 m by bilinear
    interpolation."""
    row, col = np.ogrid[-1 : 1 : count * 1j, -1 : 1 : count * 1j]
    bowl = 0.5 - np.cos(2.0 * np.pi * np.clip(np.hypot(row, col), 0.04, 1.0)) / 2.0
    coarse = rng.uniform(0.15, 1.0, (31, 31))
    at = np.linspace(0.0, 30.0, count)
    low = np.minimum(at.astype(int), 29)
    share = at - low
    along = coarse[low] + share[:, None] * (coarse[low + 1] - coarse[low])
    bumps = along[:, low] + share * (along[:, low + 1] - along[:, low])
    return (bowl * bumps).astype(np.float32)


def write_quadruped(folder: Path, count: int) -> Path:
    """The scene with a terrain of count x count heights, as an MJCF file beside MuJoCo's binary
    form of them."""
    from dm_control.suite import common

    for name, content in common.ASSETS.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    heights = terrain(count, np.random.default_rng(0))
    (folder / "terrain.bin").write_bytes(
        np.array(heights.shape, np.int32).tobytes() + heights.tobytes()
    )
    xml = common.read_model("quadruped.xml").decode()
    path = folder / "quadruped.xml"
    path.write_text(
        re.sub(r'(<hfield name="terrain") ncol="\d+" nrow="\d+"', r'\1 file="terrain.bin"', xml)
    )
    return path


def walk(mj_model: mujoco.MjModel, frame_count: int, every: int, settle: int) -> np.ndarray:
    """float64[F, nq]: the quadruped under random controls, from a little above the terrain near the
    middle."""
    data = mujoco.MjData(mj_model)
    rng = np.random.default_rng(1)
    data.qpos[2] += 1.0
    frames = []
    control = np.zeros(mj_model.nu)
    for step in range(settle + frame_count * every):
        if step % 50 == 0:
            control = rng.uniform(-1.0, 1.0, mj_model.nu)
        data.ctrl[:] = control
        mujoco.mj_step(mj_model, data)
        if step >= settle and (step - settle) % every == 0:
            frames.append(data.qpos.copy())
    return np.array(frames)
