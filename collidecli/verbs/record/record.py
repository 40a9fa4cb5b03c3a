"""The verb `record`: a trajectory of a scene that MuJoCo simulates."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.compile import collected_messages, compile_mjcf
from collidecli.importers.mujoco.kinematics import MujocoKinematics
from collidecli.importers.mujoco.scene import static_bodies
from collidecli.importers.mujoco.shape_names import body_name
from collidecli.motions.scenes import USD_ENDINGS
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.results.result import PathLike, Result
from collidecli.scene.options import SceneOptions
from collidecli.storage.process_activity import reading
from collidecli.storage.reading_limit import limited_reading
from collidecli.storage.trajectory_writer import BLOCK_BYTES, TrajectoryWriter
from collidecli.verbs.record.control import control_of

if TYPE_CHECKING:
    from collidecli.verbs.record.control import Control

_UNSTABLE = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
    mujoco.mjtWarning.mjWARN_BADCTRL,
)
"""On these MuJoCo resets the simulation: the motion would jump back to its initial state."""


@dataclass(frozen=True)
class RecordResult(Result, schema="collide.record/1"):
    """Result of a recording. output: path of the trajectory. duration: simulated time of the last
    frame [s].

    warnings: MuJoCo's, without repetitions.
    """

    scene: str
    output: str
    frames: int
    worlds: int
    bodies: int
    duration: float
    warnings: tuple[str, ...]


def record(
    scene: PathLike,
    output: PathLike,
    frames: int,
    *,
    control: str = "zero",
    seed: int = 0,
    every: int = 1,
    worlds: int = 1,
    keyframe: str | int | None = None,
    noise: float = 0.0,
    joint: bool = False,
    asset_map: Sequence[str] = (),
    package_path: Sequence[str] = (),
    floating_base: bool = False,
    ground: bool = False,
    float_type: str = "float64",
    compression: str = "none",
    force: bool = False,
    progress: Callable[[int], None] | None = None,
) -> RecordResult:
    """Simulates a scene and writes its motion; equal arguments give equal motions.

    Frame 0 is the initial state; each later frame is `every` simulation steps after the previous
    frame.

    Args:
        frames: number of recorded frames, including the initial one.
        control: "zero"; "random", uniform in each actuator's range (-1 .. 1 without a range) and
            drawn for each frame; or a .npy or .csv file with a row of nu numbers for each frame
            except the last, [frames - 1, nu] or, in .npy, [frames - 1, worlds, nu].
        seed: world w uses seed + w for its control and noise.
        keyframe: name or number of the initial state; None is the scene's own.
        noise: largest random offset of the initial configuration along each degree of freedom [m or
            rad].
        joint: write generalized coordinates instead of body poses.
        asset_map: each "OLD=NEW", the prefix of an asset's path and its replacement. package_path:
            folders of packages.
        floating_base: add a free joint to the root link of a URDF. ground: add a plane at z = 0.
        float_type: of body poses, "float64" or "float32".
        progress: called with the number of frames done.
    Raises:
        InputError: the scene or an argument is invalid, or the simulation became unstable.
        OutputError: the output exists and not `force`, or cannot be written.
    """
    path = os.fspath(scene)
    _check_arguments(path, frames, every, worlds, seed, noise, float_type)
    options = SceneOptions(
        asset_map=tuple(asset_map),
        package_path=tuple(package_path),
        floating_base=floating_base,
        ground=ground,
    )
    with limited_reading(), reading("scene", path):
        compiled = compile_mjcf(path, options=options, strict=True)
    mj_model = compiled.mj_model
    messages = compiled.warnings
    _check_output(path, output)
    with collected_messages() as step_messages:
        controls = control_of(control, mj_model, frames, worlds, seed)
        data = _initial_states(mj_model, path, worlds, seed, keyframe, noise)
        simulation = _Simulation(mj_model, path, controls, data)
        recorder = _Recorder(simulation, joint, frames)
        with recorder.writer(output, float_type, compression, force) as writer:
            _simulate(simulation, recorder, writer, frames, every, progress)
    sizes = (frames, worlds, len(recorder.body_names))
    duration = float(simulation.data[0].time)
    return RecordResult(path, os.fspath(output), *sizes, duration, (*messages, *step_messages))


def _check_output(scene: str, output: PathLike) -> None:
    """Raises OutputError for an output that would replace the scene."""
    if os.path.exists(output) and os.path.samefile(output, scene):
        raise OutputError(
            "the output is the scene itself", os.fspath(output), "choose another path"
        )


def _simulate(
    simulation: _Simulation,
    recorder: _Recorder,
    writer: TrajectoryWriter,
    frames: int,
    every: int,
    progress: Callable[[int], None] | None,
) -> None:
    """Writes the initial state and each later frame, `every` steps after the one before."""
    for frame in range(frames):
        if frame:
            simulation.advance(frame - 1, every)
        recorder.take(frame, frame * every, writer)
        if progress is not None:
            progress(frame + 1)


def _check_arguments(
    path: str, frames: int, every: int, worlds: int, seed: int, noise: float, float_type: str
) -> None:
    for name, value, least in (
        ("frames", frames, 1),
        ("every", every, 1),
        ("worlds", worlds, 1),
        ("seed", seed, 0),
    ):
        if value < least:
            raise InputError(f"{name} is {value}", "record", f"{name} must be at least {least}")
    if not (np.isfinite(noise) and noise >= 0.0):
        raise InputError(f"noise is {noise:g}", "record", "it must be finite and at least zero")
    if float_type not in ("float32", "float64"):
        raise InputError(f"the float type is '{float_type}'", "record", "take float32 or float64")
    if Path(path).suffix.lower() in USD_ENDINGS:
        what = "MuJoCo simulates MJCF and URDF scenes, and this is OpenUSD"
        raise InputError(what, path, "give an MJCF or URDF scene")


def _initial_states(
    mj_model: mujoco.MjModel,
    path: str,
    worlds: int,
    seed: int,
    keyframe: str | int | None,
    noise: float,
) -> list[mujoco.MjData]:
    data = [mujoco.MjData(mj_model) for _ in range(worlds)]
    key = None if keyframe is None else _keyframe(mj_model, keyframe, path)
    for world, state in enumerate(data):
        if key is not None:
            mujoco.mj_resetDataKeyframe(mj_model, state, key)
        # A separate random stream: noise does not change the random control of a seed.
        amount = np.random.default_rng([seed + world, 1]).uniform(-noise, noise, mj_model.nv)
        if noise > 0.0:
            mujoco.mj_integratePos(mj_model, state.qpos, amount, 1.0)
    return data


class _Simulation:
    def __init__(
        self, mj_model: mujoco.MjModel, path: str, control: Control, data: list[mujoco.MjData]
    ) -> None:
        self.mj_model = mj_model
        self.path = path
        self._control = control
        self.data = data

    def advance(self, frame: int, every: int) -> None:
        """Steps every world from `frame` to the next frame."""
        for world, data in enumerate(self.data):
            data.ctrl[:] = self._control(frame, world)
            mujoco.mj_step(self.mj_model, data, every)
            for warning in _UNSTABLE:
                given = data.warning[warning]
                if given.number:
                    what = (
                        "the simulation became unstable:"
                        f" {mujoco.mju_warningText(warning, given.lastinfo)}"
                    )
                    fix = "take a smaller timestep in the scene's <option>, or a gentler control"
                    raise InputError(
                        what, f"{self.path}: before frame {frame + 1}, world {world}", fix
                    )


class _Recorder:
    def __init__(self, simulation: _Simulation, joint: bool, frames: int) -> None:
        self._simulation = simulation
        self._joint = joint
        self._frames = frames
        mj_model = simulation.mj_model
        static = static_bodies(mj_model)[1:]
        names = tuple(body_name(mj_model, body) for body in range(1, mj_model.nbody))
        self._moving = np.flatnonzero(~static)
        self.body_names = tuple(names[row] for row in self._moving)
        self._kinematics = MujocoKinematics(mj_model, names, static)
        worlds = len(simulation.data)
        row_bytes = 8 * worlds * max(1, mj_model.nq + 7 * mj_model.nmocap, 7 * len(names))
        self._block = max(1, min(frames, BLOCK_BYTES // row_bytes))
        self._time = np.empty(self._block)
        self._step = np.empty(self._block, np.int64)
        self._qpos = np.empty((self._block, worlds, mj_model.nq))
        self._mocap = np.empty((self._block, worlds, mj_model.nmocap, 7))
        self._buffered = 0

    def writer(
        self, output: PathLike, float_type: str, compression: str, force: bool
    ) -> TrajectoryWriter:
        mj_model = self._simulation.mj_model
        return TrajectoryWriter(
            output,
            world_count=len(self._simulation.data),
            body_names=None if self._joint else self.body_names,
            coordinate_count=mj_model.nq,
            mocap_count=mj_model.nmocap,
            float_type=float_type,
            compression=compression,
            frames_expected=self._frames,
            creator=f"collide record (MuJoCo {mujoco.__version__})",
            force=force,
        )

    def take(self, frame: int, step: int, writer: TrajectoryWriter) -> None:
        """Buffers the current state as `frame`; writes the block when it is full or the frame is
        the last."""
        row = self._buffered
        self._time[row] = self._simulation.data[0].time
        self._step[row] = step
        for world, data in enumerate(self._simulation.data):
            self._qpos[row, world] = data.qpos
            self._mocap[row, world, :, :3] = data.mocap_pos
            self._mocap[row, world, :, 3:] = data.mocap_quat[:, WXYZ_TO_XYZW]
        self._buffered += 1
        if self._buffered == self._block or frame == self._frames - 1:
            self._flush(writer)

    def _flush(self, writer: TrajectoryWriter) -> None:
        buffered = self._buffered
        self._buffered = 0
        time = self._time[:buffered]
        step = self._step[:buffered]
        qpos = self._qpos[:buffered]
        mocap = self._mocap[:buffered]
        if self._joint:
            writer.append(time, step, joint_q=qpos, mocap_q=mocap if mocap.shape[2] else None)
            return
        cells = buffered * qpos.shape[1]
        flat = self._kinematics.poses(
            qpos.reshape(cells, qpos.shape[2]), mocap.reshape(cells, *mocap.shape[2:])
        )
        writer.append(
            time, step, body_q=flat.reshape(*qpos.shape[:2], *flat.shape[1:])[:, :, self._moving]
        )


def _keyframe(mj_model: mujoco.MjModel, keyframe: str | int, path: str) -> int:
    """Number of a keyframe given by name or number; a name takes precedence."""
    names = [mj_model.key(key).name for key in range(mj_model.nkey)]
    if isinstance(keyframe, str) and keyframe in names:
        return names.index(keyframe)
    number = int(keyframe) if isinstance(keyframe, int) or keyframe.isdecimal() else -1
    if not 0 <= number < mj_model.nkey:
        keyframes = ", ".join(f"{k} '{name}'" for k, name in enumerate(names)) or "none"
        raise InputError(
            f"there is no keyframe '{keyframe}'", path, f"the scene's keyframes: {keyframes}"
        )
    return number
