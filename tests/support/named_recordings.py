"""Recordings that name joints, made by stepping MuJoCo, in the layouts that other tools write."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import h5py
import mujoco
import numpy as np

from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.importers.recordings.recording import Target
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from tests.support.twin_robots import Link, Twins

PUCK = "puck"
ROBOT = (
    Link("base"),
    Link("shoulder", "base", ("rotZ",)),
    Link("elbow", "shoulder", ("rotX",)),
    Link("slide", "elbow", ("transY",)),
    Link("leg", "base", ("rotY",)),
    Link(PUCK),
)
"""A robot of simple joints, and a body by itself."""

TIME_STEP = 0.01


@dataclass(frozen=True)
class Demo:
    """A motion of ROBOT. root, puck: float64[F, 7] xyzw. joints: float64[F, k] of names, which move along axes.

    poses: of each body by name.
    """

    root: np.ndarray
    puck: np.ndarray
    names: tuple[str, ...]
    axes: tuple[str, ...]
    joints: np.ndarray
    poses: dict[str, np.ndarray]
    qpos: np.ndarray


def target_of(path: Path, worlds: int | None = None) -> Target:
    """A scene file as recordings see it."""
    builder = ModelBuilder()
    imported = (add_usd if path.suffix == ".usda" else add_mjcf)(builder, path)
    model = builder.finalize(worlds)
    return Target(model, (imported,), (0,) * model.world_count)


def stepped(twins: Twins, frames: int, seed: int = 0) -> Demo:
    """Drops the robot with random velocities; the columns of joints are in another order than the file's."""
    model = twins.mj_model
    model.opt.timestep = TIME_STEP
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(seed).normal(size=model.nv)
    qpos = []
    for _ in range(frames):
        qpos.append(np.array(data.qpos))
        mujoco.mj_step(model, data)
    held = np.array(qpos)
    jointed = [link for link in reversed(twins.links) if link.axes]
    places = [model.jnt_qposadr[model.joint(f"{link.joint}_{link.axes[0]}").id] for link in jointed]
    free = {name: int(model.jnt_qposadr[model.joint(f"{name}_free").id]) for name in ("base", PUCK)}
    root, puck = (held[:, start : start + 7][:, [0, 1, 2, 4, 5, 6, 3]] for start in (free["base"], free[PUCK]))
    return Demo(
        root=root,
        puck=puck,
        names=tuple(link.joint for link in jointed),
        axes=tuple(link.axes[0] for link in jointed),
        joints=held[:, places],
        poses=twins.mujoco_poses(held),
        qpos=held,
    )


def write_isaac_lab(path: Path, demos: list[Demo], version: int | None, robot: str = "robot", puck: str = PUCK) -> Path:
    """A file as Isaac Lab's HDF5DatasetFileHandler writes it: float32, gzip, the first frame as the initial state."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(len(demo.root) - 1 for demo in demos)
        data.attrs["env_args"] = '{"env_name": "", "type": 2}'
        if version is not None:
            data.attrs["format_version"] = version
        for k, demo in enumerate(demos):
            group = data.create_group(f"demo_{k}")
            group.attrs["num_samples"] = len(demo.root) - 1
            group.create_dataset("actions", data=np.zeros((len(demo.root) - 1, 2), np.float32))
            for part, rows in (("initial_state", slice(0, 1)), ("states", slice(1, None))):
                assets = {
                    f"articulation/{robot}": {"root_pose": demo.root, "joint_position": demo.joints},
                    f"rigid_object/{puck}": {"root_pose": demo.puck},
                }
                for asset, arrays in assets.items():
                    for name, values in arrays.items():
                        kept = values[rows]
                        if name == "root_pose" and version != 1:
                            kept = kept[:, [0, 1, 2, 6, 3, 4, 5]]
                        width = (None, kept.shape[1])
                        place = f"{part}/{asset}/{name}"
                        group.create_dataset(place, data=kept.astype(np.float32), maxshape=width, compression="gzip")
    return path
