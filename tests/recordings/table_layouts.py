"""Layouts of tables of joints with titles, as csv."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from tests.recordings.layout import Layout, Recorded, Sample
from tests.recordings.robots import HUMANOID, SLIDE

DEGREES = 180.0 / np.pi


def table(
    folder: Path, columns: Mapping[str, np.ndarray], separator: str = ",", decimal: str = "."
) -> Path:
    """A text of columns by title."""
    lines = [separator.join(columns)]
    lines += [
        separator.join(f"{value:.17g}" for value in row).replace(".", decimal)
        for row in np.stack(list(columns.values()), axis=1)
    ]
    (folder / "motion.csv").write_text("\n".join(lines) + "\n")
    return folder / "motion.csv"


def joints(sample: Sample, title: Callable[[str], str] = str) -> dict[str, np.ndarray]:
    """The measured positions by title, or the commands where these alone are recorded."""
    if not sample.has_state:
        return {f"{title(name)}_cmd": sample.command[:, k] for k, name in enumerate(sample.names)}
    return {title(name): sample.state[:, k] for k, name in enumerate(sample.names)}


def euler(sample: Sample) -> np.ndarray:
    """float64[F, 3]: roll, pitch and yaw of the root about fixed axes [rad]."""
    assert sample.root is not None
    return Rotation.from_quat(sample.root[:, 3:]).as_euler("xyz")


def by_axis(titles: tuple[str, ...], values: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(titles, values.T, strict=True))


def arrays_of_joints(folder: Path, sample: Sample) -> Recorded:
    """An array a joint and its velocity, without times."""
    path = folder / "motion.npz"
    columns = joints(sample, lambda name: f"q_{name}")
    columns |= {f"dq_{name}": sample.command[:, k] for k, name in enumerate(sample.names)}
    np.savez(path, **columns)
    return Recorded(path, {"fps": sample.rate})


def pybullet(folder: Path, sample: Sample) -> Recorded:
    """A script's log of getJointState: position, velocity and torque of each joint."""
    columns = {"time": sample.time}
    for k, name in enumerate(sample.names):
        columns |= {f"{name}_vel": sample.command[:, k], f"{name}_torque": sample.command[:, k]}
    return Recorded(table(folder, columns | joints(sample, lambda name: f"{name}_pos")))


def states_and_commands(folder: Path, sample: Sample) -> Recorded:
    columns = {"time [ms]": sample.time * 1000.0}
    columns |= {f"cmd_{name}": sample.command[:, k] for k, name in enumerate(sample.names)}
    if sample.has_state:
        columns |= joints(sample, lambda name: f"meas_{name}")
    return Recorded(table(folder, columns), {"state": "meas_*"} if sample.has_state else {})


def german(folder: Path, sample: Sample) -> Recorded:
    """Semicolons, decimal commas, units in the titles."""
    slides = {link.joint for link in sample.robot.joints if link.kind == SLIDE}
    columns = {"t": sample.time}
    for k, name in enumerate(sample.names):
        is_slide = name in slides
        title = f"{name} [{'mm' if is_slide else 'deg'}]"
        columns[title] = sample.state[:, k] * (1000.0 if is_slide else DEGREES)
    return Recorded(table(folder, columns, ";", ","))


def root_by_euler_angles(folder: Path, sample: Sample) -> Recorded:
    assert sample.root is not None
    columns = by_axis(("base_x", "base_y", "base_z"), sample.root[:, :3] * 100.0)
    columns |= by_axis(("base_roll", "base_pitch", "base_yaw"), euler(sample))
    options = {"euler_order": "fixed-xyz", "length_units": "cm", "fps": sample.rate}
    return Recorded(table(folder, columns | joints(sample, lambda name: f"q_{name}")), options)


def bones_seed(folder: Path, sample: Sample) -> Recorded:
    assert sample.root is not None
    frames = np.arange(sample.frames, dtype=np.float64)
    columns = {"Frame": frames}
    columns |= by_axis(
        ("root_translateX", "root_translateY", "root_translateZ"), sample.root[:, :3] * 100.0
    )
    columns |= by_axis(("root_rotateX", "root_rotateY", "root_rotateZ"), euler(sample) * DEGREES)
    degrees = {title: q * DEGREES for title, q in joints(sample, lambda n: f"{n}_dof").items()}
    return Recorded(table(folder, columns | degrees), {"fps": sample.rate})


LAYOUTS = (
    Layout(
        "csv of joints, name_pos name_vel name_torque",
        "joint-table",
        "scripts of PyBullet users, getJointState",
        pybullet,
        has_commands=True,
    ),
    Layout(
        "LocoMuJoCo npz, an array a joint",
        "joint-table",
        "robfiras/loco-mujoco 0.4, mini_datasets",
        arrays_of_joints,
    ),
    Layout(
        "csv of joints, measured and commanded",
        "joint-table",
        "any",
        states_and_commands,
        has_commands=True,
    ),
    Layout(
        "csv of joints, semicolons, decimal commas, units in the titles",
        "joint-table",
        "any",
        german,
        says_unit=True,
    ),
    Layout(
        "csv of joints and a root by Euler angles",
        "joint-table",
        "any",
        root_by_euler_angles,
        HUMANOID,
    ),
    Layout(
        "BONES-SEED csv",
        "joint-table",
        "NVlabs/ProtoMotions 0c4d6654, data/scripts/convert_g1_csv_to_proto.py",
        bones_seed,
        HUMANOID,
        says_unit=True,
    ),
)
