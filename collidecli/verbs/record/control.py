"""Controls of the actuators of a simulated scene."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.regular_files import open_input, require_regular_file

Control = Callable[[int, int], np.ndarray]
"""Actuator values float64[nu] of (frame, world) up to the next frame; called once for each frame,
in order."""


def control_of(
    control: str, mj_model: mujoco.MjModel, frames: int, worlds: int, seed: int
) -> Control:
    """The control given by the argument `control` of `record`. Raises InputError for an unknown
    word or a bad file."""
    if control == "zero":
        # Not the control of the keyframe, which may be nonzero.
        return lambda frame, world: np.zeros(mj_model.nu)
    if control == "random":
        limited = mj_model.actuator_ctrllimited.astype(bool)
        low = np.where(limited, mj_model.actuator_ctrlrange[:, 0], -1.0)
        high = np.where(limited, mj_model.actuator_ctrlrange[:, 1], 1.0)
        streams = [np.random.default_rng(seed + world) for world in range(worlds)]
        return lambda frame, world: streams[world].uniform(low, high)
    rows = _control_rows(Path(control))
    return _recorded_control(rows, control, mj_model.nu, frames, worlds)


def _control_rows(path: Path) -> np.ndarray:
    """float64 array of a .npy or .csv file; a first line that is not numeric is a heading."""
    name = str(path)
    if path.suffix not in (".npy", ".csv"):
        raise InputError(
            f"control '{path}' is not known", "record", "take zero, random, or a .npy or .csv file"
        )
    require_regular_file(path, "control file", "give the path of a control file")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), np.float64)
        with open_input(path, "r", encoding="utf-8") as file:
            lines = [line for line in file.read().splitlines() if line.strip()]
        if lines and not _is_number(lines[0].split(",")[0]):
            lines = lines[1:]
        return np.array([[float(field) for field in line.split(",")] for line in lines], np.float64)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(
            f"the control cannot be read: {error}", name, "give rows of numbers"
        ) from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _recorded_control(
    rows: np.ndarray, path: str, actuators: int, frames: int, worlds: int
) -> Control:
    if rows.ndim == 2:
        rows = np.repeat(rows[:, None], worlds, axis=1)
    if rows.ndim != 3 or rows.shape[0] < frames - 1 or rows.shape[1:] != (worlds, actuators):
        fix = (
            f"give [{frames - 1}, {actuators}], or [{frames - 1}, {worlds}, {actuators}] with a"
            " control per world"
        )
        raise InputError(f"the control has shape {list(rows.shape)}", path, fix)
    finite = np.isfinite(rows)
    if not finite.all():
        row, world, actuator = (
            int(k) for k in np.unravel_index(int(np.argmin(finite)), rows.shape)
        )
        raise InputError(
            "a control is not finite", f"{path}: row {row}, world {world}, actuator {actuator}"
        )
    return lambda frame, world: rows[frame, world]
