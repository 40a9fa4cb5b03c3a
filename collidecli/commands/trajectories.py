"""The verbs that write trajectories: `record` simulates a scene, `traj convert` reads a recording."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np

from collidecli.commands.results import HDF5_ENDINGS, PathLike, Progress, Result, check_output
from collidecli.commands.scenes import USD_ENDINGS, LoadedScene, SceneRequest, scene_in_motion
from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.compile import collected_messages, compile_mjcf
from collidecli.importers.mujoco.kinematics import MujocoKinematics
from collidecli.importers.mujoco.scene import body_name, static_bodies
from collidecli.numerics import WXYZ_TO_XYZW
from collidecli.scene.kinematics import local_names
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import episodes_in, recorded_particles
from collidecli.scene.options import SceneOptions
from collidecli.storage.process_activity import limited_reading, reading
from collidecli.storage.trajectory_files import TrajectoryWriter

# The verb `record`: a trajectory file of a scene that MuJoCo simulates, and the controls of its actuators.

Control = Callable[[int, int], np.ndarray]
"""Actuator values float64[nu] of (frame, world) up to the next frame; called once for each frame, in order."""


def control_of(control: str, mj_model: mujoco.MjModel, frames: int, worlds: int, seed: int) -> Control:
    """The control given by the argument `control` of `record`. Raises InputError for an unknown word or a bad file."""
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
        raise InputError(f"control '{path}' is not known", "record", "take zero, random, or a .npy or .csv file")
    if not path.is_file():
        raise InputError("there is no such file", name, "give the path of a control file")
    try:
        if path.suffix == ".npy":
            return np.asarray(np.load(path, allow_pickle=False), np.float64)
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if lines and not _is_number(lines[0].split(",")[0]):
            lines = lines[1:]
        return np.array([[float(field) for field in line.split(",")] for line in lines], np.float64)
    except (ValueError, OSError, EOFError) as error:
        raise InputError(f"the control cannot be read: {error}", name, "give rows of numbers") from error


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _recorded_control(rows: np.ndarray, path: str, actuators: int, frames: int, worlds: int) -> Control:
    if rows.ndim == 2:
        rows = np.repeat(rows[:, None], worlds, axis=1)
    if rows.ndim != 3 or rows.shape[0] < frames - 1 or rows.shape[1:] != (worlds, actuators):
        fix = f"give [{frames - 1}, {actuators}], or [{frames - 1}, {worlds}, {actuators}] with a control per world"
        raise InputError(f"the control has shape {list(rows.shape)}", path, fix)
    finite = np.isfinite(rows)
    if not finite.all():
        row, world, actuator = (int(k) for k in np.unravel_index(int(np.argmin(finite)), rows.shape))
        raise InputError("a control is not finite", f"{path}: row {row}, world {world}, actuator {actuator}")
    return lambda frame, world: rows[frame, world]


_BLOCK_BYTES = 8 << 20
"""Size of the motion that is buffered before it is written."""

_UNSTABLE = (
    mujoco.mjtWarning.mjWARN_BADQPOS,
    mujoco.mjtWarning.mjWARN_BADQVEL,
    mujoco.mjtWarning.mjWARN_BADQACC,
    mujoco.mjtWarning.mjWARN_BADCTRL,
)
"""On these MuJoCo resets the simulation: the motion would jump back to its initial state."""


@dataclass(frozen=True)
class RecordResult(Result, schema="collide.record/1"):
    """Result of a recording. output: path of the trajectory. duration: simulated time of the last frame [s].

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

    Frame 0 is the initial state; each later frame is `every` simulation steps after the previous frame.

    Args:
        frames: number of recorded frames, including the initial one.
        control: "zero"; "random", uniform in each actuator's range (-1 .. 1 without a range) and drawn for each
            frame; or a .npy or .csv file with a row of nu numbers for each frame except the last,
            [frames - 1, nu] or, in .npy, [frames - 1, worlds, nu].
        seed: world w uses seed + w for its control and noise.
        keyframe: name or number of the initial state; None is the scene's own.
        noise: largest random offset of the initial configuration along each degree of freedom [m or rad].
        joint: write generalized coordinates instead of body poses.
        asset_map: each "OLD=NEW", the prefix of an asset's path and its replacement. package_path: folders of packages.
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
        asset_map=tuple(asset_map), package_path=tuple(package_path), floating_base=floating_base, ground=ground
    )
    with limited_reading(), reading("scene", path):
        compiled = compile_mjcf(path, options=options, strict=True)
    mj_model, messages = compiled.mj_model, compiled.warnings
    if Path(output).exists() and Path(output).samefile(path):
        raise OutputError("the output is the scene itself", os.fspath(output), "choose another path")
    with collected_messages() as step_messages:
        controls = control_of(control, mj_model, frames, worlds, seed)
        data = _initial_states(mj_model, path, worlds, seed, keyframe, noise)
        simulation = _Simulation(mj_model, path, controls, data)
        recorder = _Recorder(simulation, joint, frames)
        with recorder.writer(output, float_type, compression, force) as writer:
            for frame in range(frames):
                if frame:
                    simulation.advance(frame - 1, every)
                recorder.take(frame, frame * every, writer)
                if progress is not None:
                    progress(frame + 1)
    sizes = (frames, worlds, len(recorder.body_names))
    duration = float(simulation.data[0].time)
    return RecordResult(path, os.fspath(output), *sizes, duration, (*messages, *step_messages))


def _check_arguments(path: str, frames: int, every: int, worlds: int, seed: int, noise: float, float_type: str) -> None:
    for name, value, least in (("frames", frames, 1), ("every", every, 1), ("worlds", worlds, 1), ("seed", seed, 0)):
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
    mj_model: mujoco.MjModel, path: str, worlds: int, seed: int, keyframe: str | int | None, noise: float
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
    def __init__(self, mj_model: mujoco.MjModel, path: str, control: Control, data: list[mujoco.MjData]) -> None:
        self.mj_model, self.path, self._control, self.data = mj_model, path, control, data

    def advance(self, frame: int, every: int) -> None:
        """Steps every world from `frame` to the next frame."""
        for world, data in enumerate(self.data):
            data.ctrl[:] = self._control(frame, world)
            mujoco.mj_step(self.mj_model, data, every)
            for warning in _UNSTABLE:
                given = data.warning[warning]
                if given.number:
                    what = f"the simulation became unstable: {mujoco.mju_warningText(warning, given.lastinfo)}"
                    fix = "take a smaller timestep in the scene's <option>, or a gentler control"
                    raise InputError(what, f"{self.path}: before frame {frame + 1}, world {world}", fix)


class _Recorder:
    def __init__(self, simulation: _Simulation, joint: bool, frames: int) -> None:
        self._simulation, self._joint, self._frames = simulation, joint, frames
        mj_model = simulation.mj_model
        static = static_bodies(mj_model)[1:]
        names = tuple(body_name(mj_model, body) for body in range(1, mj_model.nbody))
        self._moving = np.flatnonzero(~static)
        self.body_names = tuple(names[row] for row in self._moving)
        self._kinematics = MujocoKinematics(mj_model, names, static)
        worlds = len(simulation.data)
        row_bytes = 8 * worlds * max(1, mj_model.nq + 7 * mj_model.nmocap, 7 * len(names))
        self._block = max(1, min(frames, _BLOCK_BYTES // row_bytes))
        self._time = np.empty(self._block)
        self._step = np.empty(self._block, np.int64)
        self._qpos = np.empty((self._block, worlds, mj_model.nq))
        self._mocap = np.empty((self._block, worlds, mj_model.nmocap, 7))
        self._buffered = 0

    def writer(self, output: PathLike, float_type: str, compression: str, force: bool) -> TrajectoryWriter:
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
        """Buffers the current state as `frame`; writes the block when it is full or the frame is the last."""
        row = self._buffered
        self._time[row], self._step[row] = self._simulation.data[0].time, step
        for world, data in enumerate(self._simulation.data):
            self._qpos[row, world] = data.qpos
            self._mocap[row, world, :, :3] = data.mocap_pos
            self._mocap[row, world, :, 3:] = data.mocap_quat[:, WXYZ_TO_XYZW]
        self._buffered += 1
        if self._buffered == self._block or frame == self._frames - 1:
            self._flush(writer)

    def _flush(self, writer: TrajectoryWriter) -> None:
        buffered, self._buffered = self._buffered, 0
        time, step = self._time[:buffered], self._step[:buffered]
        qpos, mocap = self._qpos[:buffered], self._mocap[:buffered]
        if self._joint:
            writer.append(time, step, joint_q=qpos, mocap_q=mocap if mocap.shape[2] else None)
            return
        cells = buffered * qpos.shape[1]
        flat = self._kinematics.poses(qpos.reshape(cells, qpos.shape[2]), mocap.reshape(cells, *mocap.shape[2:]))
        writer.append(time, step, body_q=flat.reshape(*qpos.shape[:2], *flat.shape[1:])[:, :, self._moving])


def _keyframe(mj_model: mujoco.MjModel, keyframe: str | int, path: str) -> int:
    """Number of a keyframe given by name or number; a name takes precedence."""
    names = [mj_model.key(key).name for key in range(mj_model.nkey)]
    if isinstance(keyframe, str) and keyframe in names:
        return names.index(keyframe)
    number = int(keyframe) if isinstance(keyframe, int) or keyframe.isdecimal() else -1
    if not 0 <= number < mj_model.nkey:
        keyframes = ", ".join(f"{k} '{name}'" for k, name in enumerate(names)) or "none"
        raise InputError(f"there is no keyframe '{keyframe}'", path, f"the scene's keyframes: {keyframes}")
    return number


# The verb `traj convert`: a trajectory of world poses of the scene's bodies from a recording of any known kind.


@dataclass(frozen=True)
class ConvertResult(Result, schema="collide.traj.convert/1"):
    """Result of a conversion. kind: of the recording. duration: of the motion [s]."""

    file: str
    kind: str
    output: str
    frames: int
    worlds: int
    bodies: int
    duration: float
    warnings: tuple[str, ...]


def convert(
    request: SceneRequest,
    output: PathLike,
    *,
    compression: str = "none",
    force: bool = False,
    progress: Progress = None,
) -> ConvertResult:
    """Writes the recording `request.trajectory` as `collide-trajectory`: /body_q, float64.

    The scene is that of the request, or else that in the recording. Bodies that are part of the static world are
    omitted. A recording of one world gives one world, unless the scene's worlds differ or have different positions.
    Raises InputError for an input that cannot be read, OutputError for an output that cannot be written; then no
    output is left.
    """
    source = request.trajectory
    assert source is not None
    check_output(output, force, (*request.scenes, source), HDF5_ENDINGS, "a trajectory")
    scene, motion = scene_in_motion(request)
    assert scene.recording is not None
    kind = scene.recording.NAME
    with closing(motion):
        bodies = _Bodies(scene, motion.world_count)
        frames = len(motion.time)
        moving = recorded_particles(motion, range(1)) if len(scene.model.particles) else None
        particles = 0 if moving is None else len(scene.model.particles)
        block = max(1, _BLOCK_BYTES // max(1, 8 * bodies.world_count * (7 * len(bodies.names) + 3 * particles)))
        with TrajectoryWriter(
            output,
            world_count=bodies.world_count,
            body_names=bodies.names,
            particle_count=particles,
            compression=compression,
            frames_expected=frames,
            creator=f"collide traj convert ({kind})",
            force=force,
            episodes=episodes_in(motion, bodies.world_count),
        ) as writer:
            for first in range(0, frames, block):
                taken = range(first, min(first + block, frames))
                rows = slice(taken.start, taken.stop)
                with reading("motion"):
                    poses = motion.read(taken)
                    positions = recorded_particles(motion, taken) if particles else None
                block_positions = None if positions is None else bodies.positions(positions)
                columns = bodies.columns(poses)
                writer.append(motion.time[rows], motion.step[rows], body_q=columns, particle_q=block_positions)
                if progress is not None:
                    progress(taken.stop, frames)
        warnings = (*scene.warnings, *motion.warnings)
        return ConvertResult(
            file=source,
            kind=kind,
            output=os.fspath(output),
            frames=frames,
            worlds=bodies.world_count,
            bodies=len(bodies.names),
            duration=float(motion.time[-1] - motion.time[0]),
            warnings=warnings,
        )


class _Bodies:
    """The bodies that are written, each once even if several templates have it; without welded bodies.

    names: paths. world_count: number of written worlds. If scenes or positions of the worlds differ, the poses differ
    too, and one recorded world is written once per world.
    """

    def __init__(self, scene: LoadedScene, recorded_worlds: int) -> None:
        model = self._model = scene.model
        still, local = _welded(scene), local_names(model)
        first_path = dict(zip(local[::-1], model.bodies.path[::-1], strict=True))
        moving = {name: first_path[name] for name in dict.fromkeys(local) if first_path[name] not in still}
        self.names = tuple(moving.values())
        if not self.names and not len(model.particles):
            raise InputError("the scene has no body that can move", scene.name, "run it without a trajectory")
        differ = model.world_shift is not None or len(set(model.world_template.tolist())) > 1
        self.world_count = model.world_count if differ else recorded_worlds
        rows = {t: _rows(model, local, tuple(moving), t) for t in set(model.world_template.tolist())}
        self._rows = [rows[template] for template in model.world_template[: self.world_count].tolist()]
        self._alike = len(rows) == 1 and bool((self._rows[0] >= 0).all())

    def positions(self, positions: np.ndarray) -> np.ndarray:
        """float64[n, W, P, 3] of a motion's positions of particles[n, W, P, 3]."""
        if positions.shape[1] != self.world_count:
            positions = self._model.particles_moved_with_worlds(positions)
            positions = np.broadcast_to(positions, (len(positions), self.world_count, *positions.shape[2:]))
        return positions

    def columns(self, poses: np.ndarray) -> np.ndarray:
        """float64[n, W, names, 7] of a motion's poses[n, W, B, 7]; a body that a world lacks has the identity."""
        if poses.shape[1] != self.world_count:
            poses = self._model.moved_with_worlds(poses)
            poses = np.broadcast_to(poses, (len(poses), self.world_count, *poses.shape[2:]))
        if self._alike:
            return poses[:, :, self._rows[0]]
        out = np.zeros((*poses.shape[:2], len(self.names), 7))
        out[..., 6] = 1.0
        for world, rows in enumerate(self._rows):
            is_there = rows >= 0
            out[:, world, is_there] = poses[:, world, rows[is_there]]
        return out


def _rows(model: Model, local: tuple[str, ...], names: tuple[str, ...], template: int) -> np.ndarray:
    """intp[names]: row of the body with each local name in a world of `template`; -1 without one."""
    owner = model.bodies.template
    row_of = {name: row for row, name in enumerate(local) if owner[row] in (template, GLOBAL_TEMPLATE)}
    return np.array([row_of.get(name, -1) for name in names], np.intp)


def _welded(scene: LoadedScene) -> set[str]:
    still: set[str] = set()
    moving: set[str] = set()
    for imported in scene.imports:
        kinematics = imported.kinematics
        if kinematics is not None:
            for name, welded in zip(kinematics.body_path, kinematics.welded, strict=True):
                (still if welded else moving).add(name)
    return still - moving
