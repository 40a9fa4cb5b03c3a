"""Scenes to measure on, with the motion that MuJoCo gives them: a humanoid, and piles of mixed primitives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

FOLDER = Path("out/bench")
TYPES = ("sphere", "capsule", "box", "cylinder", "ellipsoid")
SPACING = 0.25


@dataclass(frozen=True)
class BenchScene:
    """An MJCF file and recorded coordinates. qpos: float64[F, nq]."""

    name: str
    path: Path
    mj_model: mujoco.MjModel
    qpos: np.ndarray


def humanoid(frame_count: int) -> BenchScene:
    """dm_control's humanoid, moved by random controls from its initial pose."""
    from dm_control.suite import humanoid as suite

    folder = FOLDER / "humanoid"
    xml, assets = suite.get_model_and_assets()
    for name, content in {"humanoid.xml": xml, **assets}.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    path = folder / "humanoid.xml"
    model = mujoco.MjModel.from_xml_path(str(path))
    return BenchScene("humanoid", path, model, _cached(folder / f"qpos_{frame_count}.npy", model, frame_count, 1, 0))


def pile(shape_count: int, frame_count: int = 20) -> BenchScene:
    """`shape_count` mixed primitives that fall between four walls and settle; the frames are of the second half."""
    folder = FOLDER / f"pile_{shape_count}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pile.xml"
    path.write_text(_pile_xml(shape_count))
    model = mujoco.MjModel.from_xml_path(str(path))
    every, start = 15, 250
    return BenchScene(
        f"pile of {shape_count}", path, model, _cached(folder / "qpos.npy", model, frame_count, every, start)
    )


def _pile_xml(shape_count: int) -> str:
    rng = np.random.default_rng(shape_count)
    side = int(np.ceil((shape_count / 2) ** (1 / 3)))
    half = 0.52 * side * SPACING
    bodies = []
    for index in range(shape_count):
        place = np.array([index % side, index // side % side, index // side**2], float)
        x, y, z = SPACING * (place - [side / 2 - 0.5, side / 2 - 0.5, -0.8]) + [*rng.uniform(-0.02, 0.02, 2), 0]
        a, b, c, d = rng.normal(size=4)
        r, s, t = rng.uniform(0.06, 0.11, 3)
        kind = TYPES[index % len(TYPES)]
        size = {
            "sphere": f"{r}",
            "capsule": f"{0.7 * r} {0.7 * s}",
            "box": f"{0.8 * r} {0.8 * s} {0.8 * t}",
            "cylinder": f"{0.8 * r} {s}",
            "ellipsoid": f"{r} {s} {t}",
        }[kind]
        bodies.append(
            f'<body pos="{x} {y} {z}" quat="{a} {b} {c} {d}"><freejoint/>'
            f'<geom name="g{index}" type="{kind}" size="{size}"/></body>'
        )
    walls = "".join(
        f'<geom type="box" size="{a} {b} 50" pos="{x} {y} 50"/>'
        for a, b, x, y in (
            (0.5, half + 1, half + 0.5, 0),
            (0.5, half + 1, -half - 0.5, 0),
            (half + 1, 0.5, 0, half + 0.5),
            (half + 1, 0.5, 0, -half - 0.5),
        )
    )
    option = (
        '<option timestep="0.004" solver="CG" iterations="40" integrator="implicitfast" density="50" viscosity="0.5"/>'
    )
    world = f'<geom type="plane" size="0 0 1"/>{walls}{"".join(bodies)}'
    return f'<mujoco>{option}<size memory="4G"/><worldbody>{world}</worldbody></mujoco>'


def _cached(path: Path, model: mujoco.MjModel, frame_count: int, every: int, start: int) -> np.ndarray:
    """Coordinates of a simulation, kept in a file, since that of a large pile takes minutes."""
    if path.exists():
        return np.load(path)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    frames = []
    for step in range(start + frame_count * every):
        data.ctrl[:] = rng.uniform(-1, 1, model.nu)
        mujoco.mj_step(model, data)
        if step >= start and (step - start) % every == 0:
            frames.append(data.qpos.copy())
    np.save(path, np.array(frames))
    return np.array(frames)
