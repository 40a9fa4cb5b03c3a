"""dm_control's quadruped on its terrain, the bowl with bumps that its escape task makes, as files."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from pathlib import Path

import mujoco
import numpy as np

HALF_SIZE = 30.0


def terrain(count: int, rng: np.random.Generator) -> np.ndarray:
    """float32[count, count], 0 to 1: the escape task's formula, bumps of 2 m by bilinear interpolation."""
    row, col = np.ogrid[-1 : 1 : count * 1j, -1 : 1 : count * 1j]
    bowl = 0.5 - np.cos(2.0 * np.pi * np.clip(np.hypot(row, col), 0.04, 1.0)) / 2.0
    coarse = rng.uniform(0.15, 1.0, (31, 31))
    at = np.linspace(0.0, 30.0, count)
    low = np.minimum(at.astype(int), 29)
    share = at - low
    along = coarse[low] + share[:, None] * (coarse[low + 1] - coarse[low])
    bumps = along[:, low] + share * (along[:, low + 1] - along[:, low])
    return (bowl * bumps).astype(np.float32)


def write_quadruped(folder: Path, count: int, seed: int = 0, xml: str | None = None) -> Path:
    """The scene with a terrain of count x count heights, as an MJCF file beside MuJoCo's binary form of them."""
    if xml is None:
        from dm_control.suite import common

        xml = common.read_model("quadruped.xml").decode()
        for name, content in common.ASSETS.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
    folder.mkdir(parents=True, exist_ok=True)
    heights = terrain(count, np.random.default_rng(seed))
    with open(folder / "terrain.bin", "wb") as file:
        file.write(np.array(heights.shape, np.int32).tobytes() + heights.tobytes())
    xml = re.sub(r'(<hfield name="terrain") ncol="\d+" nrow="\d+"', r'\1 file="terrain.bin"', xml)
    path = folder / "quadruped.xml"
    path.write_text(xml)
    return path


def walk(mj_model: mujoco.MjModel, frame_count: int, every: int = 4, settle: int = 0, seed: int = 1) -> np.ndarray:
    """float64[F, nq]: the quadruped under random controls, from a little above the terrain near the middle."""
    data, rng = mujoco.MjData(mj_model), np.random.default_rng(seed)
    data.qpos[2] += 1.0
    frames, control = [], np.zeros(mj_model.nu)
    for step in range(settle + frame_count * every):
        if step % 50 == 0:
            control = rng.uniform(-1.0, 1.0, mj_model.nu)
        data.ctrl[:] = control
        mujoco.mj_step(mj_model, data)
        if step >= settle and (step - settle) % every == 0:
            frames.append(data.qpos.copy())
    return np.array(frames)
