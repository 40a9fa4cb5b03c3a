"""Layouts with MuJoCo's coordinates or states, whose columns are the scene's, and trajectories."""

from __future__ import annotations

from pathlib import Path

import h5py
import mujoco
import numpy as np

from tests.recordings.layout import Layout, Recorded, Sample
from tests.recordings.robots import ARM, HUMANOID, mjcf_text

MUJOCO = "MuJoCo 3 to 4, mj_getState and mujoco.rollout"


def mujoco_states(sample: Sample, spec: mujoco.mjtState) -> np.ndarray:
    """float64[F, n]: states in the layout of mj_getState, with the sample's positions and times."""
    model = mujoco.MjModel.from_xml_string(mjcf_text(sample.robot))
    data = mujoco.MjData(model)
    out = np.empty((sample.frames, mujoco.mj_stateSize(model, spec)))
    for frame in range(sample.frames):
        mujoco.mj_resetData(model, data)
        data.time = sample.time[frame]
        if sample.root is not None:
            data.joint("root").qpos[:] = sample.root_wxyz()[frame]
        for name in sample.names:
            data.joint(name).qpos[0] = sample.of_joint(name)[frame]
        for link in sample.robot.links:
            if link.follows is not None:
                name, scale, offset = link.follows
                data.joint(link.joint).qpos[0] = sample.of_joint(name)[frame] * scale + offset
        mujoco.mj_getState(model, data, out[frame], spec)
    return out


SPECS = mujoco.mjtState


def full_physics_npy(folder: Path, sample: Sample) -> Recorded:
    np.save(folder / "states.npy", mujoco_states(sample, SPECS.mjSTATE_FULLPHYSICS)[None])
    return Recorded(folder / "states.npy")


def full_physics_frames_first(folder: Path, sample: Sample) -> Recorded:
    states = mujoco_states(sample, SPECS.mjSTATE_FULLPHYSICS)
    np.save(folder / "states.npy", states[:, None])
    return Recorded(folder / "states.npy")


def integration_npz(folder: Path, sample: Sample) -> Recorded:
    np.savez(folder / "s.npz", states=mujoco_states(sample, SPECS.mjSTATE_INTEGRATION))
    return Recorded(folder / "s.npz", {"state_spec": "INTEGRATION"})


def qpos_npz(folder: Path, sample: Sample) -> Recorded:
    qpos = mujoco_states(sample, SPECS.mjSTATE_QPOS)
    np.savez(folder / "q.npz", qpos=qpos, qvel=np.zeros_like(qpos), time=sample.time)
    return Recorded(folder / "q.npz")


def controls_npz(folder: Path, sample: Sample) -> Recorded:
    states = mujoco_states(sample, SPECS.mjSTATE_QPOS)
    np.savez(folder / "replay.npz", ctrl=sample.command[:-1], qpos=states, times=sample.time)
    return Recorded(folder / "replay.npz")


def qpos_hdf5(folder: Path, sample: Sample) -> Recorded:
    with h5py.File(folder / "q.h5", "w") as file:
        file["qpos"] = mujoco_states(sample, SPECS.mjSTATE_QPOS)
    return Recorded(folder / "q.h5", {"fps": sample.rate})


def robosuite(folder: Path, sample: Sample) -> Recorded:
    states = mujoco_states(sample, mujoco.mjtState.mjSTATE_PHYSICS)
    states = np.concatenate([sample.time[:, None], states], axis=1)
    with h5py.File(folder / "demo.hdf5", "w") as file:
        demo = file.create_group("data/demo_1")
        demo.attrs["model_file"] = mjcf_text(sample.robot)
        demo["states"] = states
        demo["actions"] = sample.command
    return Recorded(folder / "demo.hdf5")


def trajectory_of_bodies(folder: Path, sample: Sample) -> Recorded:
    names = [link.name for link in sample.robot.links if link.parent or sample.robot.floating]
    positions, turns = sample.body_arrays(names)
    with h5py.File(folder / "motion.h5", "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = [1, 0]
        file["time"] = sample.time
        file["step"] = np.arange(sample.frames)
        file["body_name"] = names
        file["body_q"] = np.concatenate([positions, turns], axis=-1)[:, None]
    return Recorded(folder / "motion.h5")


def trajectory_of_coordinates(folder: Path, sample: Sample) -> Recorded:
    with h5py.File(folder / "motion.h5", "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = [1, 0]
        file["time"] = sample.time
        file["step"] = np.arange(sample.frames)
        file["joint_q"] = mujoco_states(sample, SPECS.mjSTATE_QPOS)[:, None]
        file["joint_q"].attrs["layout"] = "mujoco-qpos"
    return Recorded(folder / "motion.h5")


def _of_mujoco(name, kind, source, write, robot=HUMANOID, **more) -> Layout:
    return Layout(name, kind, source, write, robot, ("mjcf",), "scene", **more)


LAYOUTS = (
    _of_mujoco("mj_getState, FULLPHYSICS, npy", "mujoco-states", MUJOCO, full_physics_npy),
    _of_mujoco(
        "mj_getState, frames first, npy",
        "mujoco-states",
        "MJX of MuJoCo 3, stacked steps",
        full_physics_frames_first,
    ),
    _of_mujoco("mj_getState, INTEGRATION, npz", "mujoco-states", MUJOCO, integration_npz),
    _of_mujoco("qpos with time, npz", "mujoco-states", MUJOCO, qpos_npz),
    _of_mujoco(
        "MuJoCo Warp npz",
        "mujoco-states",
        "google-deepmind/mujoco_warp, benchmarks/unitree_g1/shuffle_dance.npz",
        controls_npz,
    ),
    _of_mujoco("qpos, HDF5", "mujoco-states", MUJOCO, qpos_hdf5, ARM),
    _of_mujoco(
        "robosuite, robomimic, LIBERO states",
        "robosuite",
        "robosuite 1.4 and 1.5, scripts/collect_human_demonstrations.py",
        robosuite,
        ARM,
    ),
    Layout(
        "trajectory, poses of bodies",
        "trajectory",
        "docs/reference/file-formats.md",
        trajectory_of_bodies,
        HUMANOID,
        ("mjcf", "urdf"),
        body_poses=True,
    ),
    _of_mujoco(
        "trajectory, coordinates",
        "trajectory",
        "docs/reference/file-formats.md",
        trajectory_of_coordinates,
    ),
)
