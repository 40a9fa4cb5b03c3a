"""Timings of a first run on a GPU: copies and stages of scenes, Newton and MuJoCo Warp on one
robot."""

import importlib.metadata
import importlib.util
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.pipeline import STAGES, CollisionPipeline
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.scheduler import Workers, batch_size, engine_memory, worker_count
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType
from tests.gpu.first import NotRun, Run
from tests.support.device_scenes import Scene
from tests.support.engine_runs import ROUND_AND_FLAT, add_shapes, pipeline_of
from tests.support.fields import BLOB
from tests.support.poses import random_quaternions

LINKS = 16
ROBOT_TYPES = (ShapeType.CAPSULE, ShapeType.BOX, ShapeType.SPHERE)
ROBOT_SIZES = {
    ShapeType.CAPSULE: (0.06, 0.12),
    ShapeType.BOX: (0.08, 0.06, 0.1),
    ShapeType.SPHERE: (0.1,),
}
NAMES = {ShapeType.CAPSULE: "capsule", ShapeType.BOX: "box", ShapeType.SPHERE: "sphere"}
SHAPE_SPACING = 0.35
"""Distance of shapes of 0.1 to 0.6 m in a pile [m]: each touches a few others."""


@dataclass(frozen=True)
class Case:
    """A scene to time. frames: of its motion. passes over them are timed."""

    name: str
    scene: Scene


def robot_poses(frames: int, worlds: int) -> np.ndarray:
    """float64[frames, worlds, LINKS, 7]: links around a circle above the ground, that move by
    centimetres."""
    rng = np.random.default_rng(5)
    angle = 2.0 * np.pi * np.arange(LINKS) / LINKS
    center = np.stack(
        [0.4 * np.cos(angle), 0.4 * np.sin(angle), np.where(np.arange(LINKS) % 4 == 0, 0.09, 0.25)],
        1,
    )
    poses = np.empty((frames, worlds, LINKS, 7))
    poses[..., :3] = center + rng.normal(size=(frames, worlds, LINKS, 3)) * 0.02
    poses[..., 3:] = random_quaternions(rng, frames * worlds * LINKS).reshape(
        frames, worlds, LINKS, 4
    )
    return poses


def robot(frames: int, worlds: int) -> Case:
    """LINKS capsules, boxes and spheres on a plane in each world."""
    builder = ModelBuilder()
    builder.add_ground_plane(0.0)
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        builder.add_shape(builder.add_body(), shape_type, ROBOT_SIZES[shape_type])
    scene = Scene(
        builder.finalize(world_count=worlds), robot_poses(frames, worlds), ContactOptions()
    )
    return Case(f"robot of {LINKS} shapes, {worlds} worlds", scene)


def pile(shapes: int, frames: int) -> Case:
    """Convex shapes of all types, as dense as in a pile."""
    builder = ModelBuilder()
    add_shapes(builder, np.random.default_rng(0), shapes, types=ROUND_AND_FLAT)
    return Case(
        f"pile of {shapes}",
        Scene(builder.finalize(), _dense_poses(shapes, frames), ContactOptions()),
    )


def meshes(shapes: int, frames: int) -> Case:
    """Closed meshes of one form, as dense as in a pile."""
    builder = ModelBuilder()
    for _ in range(shapes):
        builder.add_shape_mesh(builder.add_body(), *BLOB)
    return Case(
        f"{shapes} meshes",
        Scene(builder.finalize(), _dense_poses(shapes, frames), ContactOptions()),
    )


def _dense_poses(shapes: int, frames: int) -> np.ndarray:
    rng = np.random.default_rng(6)
    side = SHAPE_SPACING * shapes ** (1.0 / 3.0)
    position = rng.uniform(-side / 2, side / 2, (shapes, 3))
    poses = np.empty((frames, 1, shapes, 7))
    poses[..., :3] = position + rng.normal(size=(frames, 1, shapes, 3)) * 0.01
    poses[..., 3:] = random_quaternions(rng, frames * shapes).reshape(frames, 1, shapes, 4)
    return poses


def cases(small: bool) -> list[Case]:
    """Scenes of the timings; in a rehearsal few frames."""
    if small:
        return [robot(8, 1), robot(2, 16), pile(50, 4), meshes(4, 2)]
    return [robot(50_000, 1), robot(64, 1024), robot(8, 8192), pile(1000, 200), meshes(20, 50)]


def newton_robot(worlds: int, device: Any) -> Any:
    """Newton's model of `robot`, without gaps."""
    import newton

    one = newton.ModelBuilder()
    many = newton.ModelBuilder()
    for each in (one, many):
        each.default_shape_cfg.gap = 0.0
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        body = one.add_body()
        size = ROBOT_SIZES[shape_type]
        if shape_type == ShapeType.BOX:
            one.add_shape_box(body, hx=size[0], hy=size[1], hz=size[2])
        elif shape_type == ShapeType.CAPSULE:
            one.add_shape_capsule(body, radius=size[0], half_height=size[1])
        else:
            one.add_shape_sphere(body, radius=size[0])
    many.replicate(one, worlds)
    many.add_ground_plane()
    model = many.finalize(device=device)
    model.shape_gap.zero_()
    return model


def robot_mjcf() -> str:
    """MJCF of `robot` with its first frame as a keyframe."""
    poses = robot_poses(1, 1)[0, 0]
    bodies = []
    for index in range(LINKS):
        shape_type = ROBOT_TYPES[index % len(ROBOT_TYPES)]
        size = " ".join(map(str, ROBOT_SIZES[shape_type]))
        bodies.append(f'<body><freejoint/><geom type="{NAMES[shape_type]}" size="{size}"/></body>')
    order = [0, 1, 2, 6, 3, 4, 5]  # MuJoCo's quaternions begin with w
    qpos = " ".join(f"{value:.6g}" for value in poses[:, order].ravel())
    return (
        '<mujoco><worldbody><geom type="plane" size="5 5 1"/>'
        + "".join(bodies)
        + f'</worldbody><keyframe><key qpos="{qpos}"/></keyframe></mujoco>'
    )


PASSES = 5
COPY_BYTES = 1 << 28
COPY_BYTES_OF_REHEARSAL = 1 << 22


def copies(run: Run) -> dict[str, Any]:
    """Bandwidth of copies between page-locked memory of the host and the device, and from pageable
    memory."""
    device = find_device(run.device)
    size = COPY_BYTES_OF_REHEARSAL if run.small else COPY_BYTES
    on_device = wp.zeros(size, dtype=wp.uint8, device=device)
    locked = wp.zeros(size, dtype=wp.uint8, device="cpu", pinned=device.is_cuda)
    pageable = wp.zeros(size, dtype=wp.uint8, device="cpu")
    rates = {}
    for name, target, source in (
        ("upload", on_device, locked),
        ("download", locked, on_device),
        ("upload_of_pageable_memory", on_device, pageable),
    ):
        rates[name] = size / _median_seconds(
            lambda target=target, source=source: wp.copy(target, source), device
        )
    words = ", ".join(
        f"{name.replace('_', ' ')} {rate / 1e9:.1f} GB/s" for name, rate in rates.items()
    )
    return {"summary": words, "bytes": size, "bytes_per_second": rates}


def _median_seconds(issue: Callable[[], None], device: wp.Device) -> float:
    """Time of what `issue` issues, until it is complete; the first of the calls is not counted
    [s]."""
    seconds = []
    for _ in range(PASSES + 1):
        wp.synchronize_device(device)
        start = time.perf_counter()
        issue()
        wp.synchronize_device(device)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds[1:]))


def stages(run: Run) -> dict[str, Any]:
    """Wall-clock time, time of each stage, frames and contacts per second of each case, on the
    device and the CPU."""
    rows = []
    words = []
    for case in cases(run.small):
        row: dict[str, Any] = {"case": case.name, "frames": len(case.scene.poses)}
        for name in dict.fromkeys(("device", "cpu")):
            row[name] = _measured(
                case.scene, run.device if name == "device" else "cpu", name == "device"
            )
        row["cpu_over_device"] = row["cpu"]["seconds"] / row["device"]["seconds"]
        rows.append(row)
        words.append(
            f"{case.name}: {row['device']['frames_per_second']:.3g} frames/s,"
            f" {row['cpu_over_device']:.2f} x CPU"
        )
    return {"summary": "; ".join(words), "cases": rows}


def _measured(scene: Scene, device: str, as_device: bool) -> dict[str, Any]:
    """Median of the passes over a scene. as_device: False for the CPU itself, also in a
    rehearsal."""
    treated = set(device_stream.TREATED_AS_DEVICES)
    if not as_device:
        device_stream.TREATED_AS_DEVICES.clear()
    try:
        pipeline = pipeline_of(scene.model, scene.poses[:16], scene.options, device=device)
        passes = _passes(pipeline, scene)[1:]
    finally:
        device_stream.TREATED_AS_DEVICES |= treated
    middle = sorted(passes, key=lambda each: each["seconds"])[len(passes) // 2]
    seconds = middle["seconds"]
    cells = len(scene.poses) * scene.model.world_count
    return {
        **middle,
        "all_seconds": [each["seconds"] for each in passes],
        "broad_phase": pipeline.broad_phase.name,
        "frames_per_second": len(scene.poses) / seconds,
        "cells_per_second": cells / seconds,
        "contacts_per_second": middle["contacts"] / seconds,
    }


def _passes(pipeline: CollisionPipeline, scene: Scene) -> list[dict[str, Any]]:
    """PASSES over a scene after a first one, by workers that keep their scratch memory."""
    device = pipeline.device_model.device
    workers = worker_count(0, has_own_memory(device))
    with Workers(pipeline, workers, engine_memory(default_memory_limit(), device)) as pool:
        return [
            {**_one_pass(pool, pipeline, scene, workers), "workers": workers}
            for _ in range(PASSES + 1)
        ]


def _one_pass(
    pool: Workers, pipeline: CollisionPipeline, scene: Scene, workers: int
) -> dict[str, Any]:
    """The contacts of all frames, as blocks in the host's memory: without reading, hashing,
    compressing and writing."""
    cells = len(scene.poses) * scene.model.world_count
    step = batch_size(pipeline, cells, workers, 0)
    batches = (
        PoseBatch(first, min(step, cells - first), 0, scene.poses)
        for first in range(0, cells, step)
    )
    stage_seconds = dict.fromkeys(STAGES, 0.0)
    contacts = 0
    candidates = 0
    chunks = 0
    start = time.perf_counter()
    for block, report in pool.collide(batches, cells):
        contacts = contacts + block.contact_count
        candidates = candidates + report.candidate_count
        chunks += len(report.parts) or 1
        for stage, seconds in report.seconds.items():
            stage_seconds[stage] += seconds
    return {
        "seconds": time.perf_counter() - start,
        "stage_seconds": stage_seconds,
        "contacts": contacts,
        "candidates": candidates,
        "chunks": chunks,
    }


WORLDS = (1, 1024, 8192)
FRAMES = 64
PEER_PASSES = 5
BROAD_PHASES = ("explicit", "sap", "nxn")
MOST_CONTACTS = 128
"""Contacts of a world of the robot for which MuJoCo Warp has memory."""


def newton(run: Run) -> dict[str, Any]:
    """Time of a frame of Newton's collision pipeline for the robot, replayed as a graph, with each
    broad phase."""
    if importlib.util.find_spec("newton") is None:
        raise NotRun("newton is not installed")
    import newton as package

    device = find_device(run.device)
    rows = []
    for worlds in (1, 16) if run.small else WORLDS:
        poses = robot_poses(4 if run.small else FRAMES, worlds).astype(np.float32)
        turns = [wp.array(turn.reshape(-1, 7), dtype=wp.transform, device=device) for turn in poses]
        for broad_phase in BROAD_PHASES:
            row: dict[str, Any] = {"worlds": worlds, "broad_phase": broad_phase}
            try:
                row |= _newton_seconds(
                    package, newton_robot(worlds, device), turns, broad_phase, device
                )
            except Exception as error:  # a fault of Newton's is recorded, and is none of this run
                row["error"] = f"{type(error).__name__}: {error}"
            rows.append(row)
    best: dict[int, float] = {}
    for row in rows:
        if "error" not in row:
            best[row["worlds"]] = min(row["seconds"], best.get(row["worlds"], np.inf))
    if not best:
        raise NotRun(f"Newton's pipeline ends with an error: {rows[0]['error']}")
    words = ", ".join(
        f"{worlds} worlds {seconds * 1e6:.1f} us a frame" for worlds, seconds in best.items()
    )
    return {"summary": words, "version": package.__version__, "rows": rows}


def _newton_seconds(
    package: Any, model: Any, turns: list[wp.array], broad_phase: str, device: wp.Device
) -> dict[str, Any]:
    """Median time of a frame, with the copy of its poses; contacts of the last frame. On the CPU
    without a graph."""
    pipeline = package.CollisionPipeline(model, broad_phase=broad_phase)
    contacts = pipeline.contacts()
    state = model.state()
    result = _frame_seconds(lambda: pipeline.collide(state, contacts), state.body_q, turns, device)
    found = int(contacts.rigid_contact_count.numpy()[0])
    if found > contacts.rigid_contact_max:
        raise RuntimeError(
            f"{found} contacts, more than the buffer of {contacts.rigid_contact_max}"
        )
    return {**result, "contacts": found}


def _frame_seconds(
    collide: Callable[[], None], target: wp.array, turns: list[wp.array], device: wp.Device
) -> dict[str, Any]:
    """Median time of a frame: the copy of its poses to `target`, and `collide`, on a GPU replayed
    as a graph."""
    collide()  # compiles
    graph = None
    if device.is_cuda:
        with wp.ScopedCapture(device) as capture:
            collide()
        graph = capture.graph
    seconds = []
    for _ in range(PEER_PASSES):
        wp.synchronize_device(device)
        start = time.perf_counter()
        for turn in turns:
            wp.copy(target, turn)
            if graph is None:
                collide()
            else:
                wp.capture_launch(graph)
        wp.synchronize_device(device)
        seconds.append((time.perf_counter() - start) / len(turns))
    return {"seconds": float(np.median(seconds)), "graph": graph is not None}


def mujoco_warp(run: Run) -> dict[str, Any]:
    """Time of a frame of MuJoCo Warp's kinematics and collision detection of the robot, replayed as
    a graph."""
    if importlib.util.find_spec("mujoco_warp") is None:
        raise NotRun("mujoco_warp is not installed")
    import mujoco
    import mujoco_warp as package

    device = find_device(run.device)
    model = mujoco.MjModel.from_xml_string(robot_mjcf())
    rows = []
    with wp.ScopedDevice(device):
        for worlds in (1, 16) if run.small else WORLDS:
            poses = robot_poses(4 if run.small else FRAMES, worlds).astype(np.float32)
            # quaternions begin with w
            positions = poses[..., [0, 1, 2, 6, 3, 4, 5]].reshape(len(poses), worlds, -1)
            turns = [wp.array(turn, dtype=wp.float32, device=device) for turn in positions]
            there = package.put_model(model)
            data = package.make_data(
                model, nworld=worlds, nconmax=MOST_CONTACTS, njmax=8 * MOST_CONTACTS
            )

            def collide(there: Any = there, data: Any = data) -> None:
                package.kinematics(there, data)
                package.collision(there, data)

            row = {"worlds": worlds, **_frame_seconds(collide, data.qpos, turns, device)}
            found = int(data.nacon.numpy()[0])
            if found > data.naconmax:
                raise RuntimeError(f"{found} contacts, more than the buffer of {data.naconmax}")
            rows.append({**row, "contacts": found})
    words = ", ".join(
        f"{row['worlds']} worlds {row['seconds'] * 1e6:.1f} us a frame" for row in rows
    )
    return {"summary": words, "version": importlib.metadata.version("mujoco-warp"), "rows": rows}
