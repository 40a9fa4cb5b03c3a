"""Scenes to measure on, with the motion that MuJoCo gives them: a humanoid, and piles of mixed
primitives."""

import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from collidecli.importers.mujoco.compile import compile_mjcf
from tests.support.piles import pile_xml, walk, write_quadruped

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
    """dm_control's humanoid, or this project's sample where that is not installed, under random
    controls."""
    path = _suite_model("humanoid")
    model = compile_mjcf(path or SAMPLE).mj_model
    name = "dm_control's humanoid" if path else "the sample humanoid"
    cache = FOLDER / f"humanoid_{'suite' if path else 'sample'}_{frame_count}.npy"
    return BenchScene(
        name, path or SAMPLE, model, _cached(cache, model, frame_count, every=1, start=0)
    )


def dog(frame_count: int) -> BenchScene | None:
    """dm_control's dog under random controls; None where it is not installed."""
    path = _suite_model("dog")
    if path is None:
        return None
    model = compile_mjcf(path).mj_model
    return BenchScene(
        "dm_control's dog",
        path,
        model,
        _cached(FOLDER / f"dog_{frame_count}.npy", model, frame_count, 1),
    )


def hand(frame_count: int) -> BenchScene | None:
    """gymnasium-robotics' hand with a block, under random controls; None where it is not
    installed."""
    found = importlib.util.find_spec("gymnasium_robotics")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "envs/assets/hand/manipulate_block.xml"
    model = compile_mjcf(path).mj_model
    qpos = _cached(FOLDER / f"hand_{frame_count}.npy", model, frame_count, 1)
    return BenchScene("gymnasium-robotics' hand", path, model, qpos)


def _suite_model(name: str) -> Path | None:
    """A model of dm_control's suite as a file; None where it is not installed."""
    try:
        suite = importlib.import_module(f"dm_control.suite.{name}")
    except ImportError:
        return None
    folder = FOLDER / name
    xml, assets = suite.get_model_and_assets()
    for file, content in {f"{name}.xml": xml, **assets}.items():
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder / f"{name}.xml"


def quadruped(frame_count: int) -> BenchScene | None:
    """dm_control's quadruped on a terrain of 512 x 512 heights; None where that is not
    installed."""
    if importlib.util.find_spec("dm_control") is None:
        return None
    path = write_quadruped(FOLDER / "quadruped", 512)
    model = compile_mjcf(path).mj_model
    cache = path.with_name(f"qpos_{frame_count}.npy")
    if not cache.exists():
        np.save(cache, walk(model, frame_count, every=2, settle=400))
    return BenchScene("dm_control's quadruped on 512 x 512 heights", path, model, np.load(cache))


def sparse_pile(shape_count: int, frame_count: int = 20) -> BenchScene:
    """`shape_count` mixed primitives that fall to one layer on the plane, with about two contacts
    each."""
    return _pile(
        "sparse", f"sparse pile of {shape_count}", shape_count, frame_count, start=150, layers=1
    )


def pile(shape_count: int, frame_count: int = 20) -> BenchScene:
    """`shape_count` mixed primitives that fall between four walls; the frames are of when they have
    mostly settled."""
    return _pile(
        "pile", f"pile of {shape_count}", shape_count, frame_count, start=START[shape_count]
    )


def _pile(
    folder: str, name: str, shape_count: int, frame_count: int, start: int, layers: int = 0
) -> BenchScene:
    path = FOLDER / f"{folder}_{shape_count}" / "pile.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(pile_xml(shape_count, layers=layers))
    model = compile_mjcf(path).mj_model
    return BenchScene(
        name,
        path,
        model,
        _cached(path.with_name(f"qpos_{frame_count}.npy"), model, frame_count, 3, start),
    )


def _cached(
    path: Path, model: mujoco.MjModel, frame_count: int, every: int, start: int = 0
) -> np.ndarray:
    """Coordinates of a simulation under random controls, kept in a file, since that of a large pile
    takes a minute."""
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
