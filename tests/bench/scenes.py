"""Scenes to measure on, with the motion that MuJoCo gives them: a humanoid, and piles of mixed primitives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from collidecli.importers.mujoco.compile import compile_mjcf
from tests.support.piles import pile_xml

FOLDER = Path("out/bench")
SAMPLE = Path("samples/02_humanoid/humanoid.xml")
START = {100: 250, 1000: 300, 5000: 330}
"""Steps until a pile of so many shapes has mostly settled."""


@dataclass(frozen=True)
class BenchScene:
    """An MJCF file and recorded coordinates. qpos: float64[F, nq]."""

    name: str
    path: Path
    mj_model: mujoco.MjModel
    qpos: np.ndarray


def humanoid(frame_count: int) -> BenchScene:
    """dm_control's humanoid, or this project's sample where that is not installed, under random controls."""
    path = _suite_humanoid() or SAMPLE
    model = compile_mjcf(path).mj_model
    name = "dm_control's humanoid" if path != SAMPLE else "the sample humanoid"
    cache = FOLDER / f"humanoid_{'sample' if path == SAMPLE else 'suite'}_{frame_count}.npy"
    return BenchScene(name, path, model, _cached(cache, model, frame_count, every=1, start=0))


def _suite_humanoid() -> Path | None:
    """dm_control's humanoid as a file; None where it is not installed."""
    try:
        from dm_control.suite import humanoid as suite
    except ImportError:
        return None
    folder = FOLDER / "humanoid"
    xml, assets = suite.get_model_and_assets()
    for name, content in {"humanoid.xml": xml, **assets}.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / "humanoid.xml"


def pile(shape_count: int, frame_count: int = 20) -> BenchScene:
    """`shape_count` mixed primitives that fall between four walls; the frames are of when they have mostly settled."""
    folder = FOLDER / f"pile_{shape_count}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "pile.xml"
    path.write_text(pile_xml(shape_count))
    model = compile_mjcf(path).mj_model
    qpos = _cached(folder / f"qpos_{frame_count}.npy", model, frame_count, every=3, start=START[shape_count])
    return BenchScene(f"pile of {shape_count}", path, model, qpos)


def _cached(path: Path, model: mujoco.MjModel, frame_count: int, every: int, start: int) -> np.ndarray:
    """Coordinates of a simulation under random controls, kept in a file, since that of a large pile takes a minute."""
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
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, np.array(frames))
    return np.array(frames)
