"""Steps of a first run on a GPU: Newton with captured graphs, and MuJoCo Warp, where they are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.pipeline import find_device
from tests.gpu.first import NotRun, Run
from tests.gpu.timing_scenes import newton_robot, robot_mjcf, robot_poses

WORLDS = (1, 1024, 8192)
FRAMES, PASSES = 64, 5
BROAD_PHASES = ("explicit", "sap", "nxn")
MOST_CONTACTS = 128
"""Contacts of a world of the robot for which MuJoCo Warp has memory."""


def newton(run: Run) -> dict[str, Any]:
    """Time of a frame of Newton's collision pipeline for the robot, replayed as a graph, with each broad phase."""
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
                row |= _newton_seconds(package, newton_robot(worlds, device), turns, broad_phase, device)
            except Exception as error:  # a fault of Newton's is recorded, and is none of this run
                row["error"] = f"{type(error).__name__}: {error}"
            rows.append(row)
    best: dict[int, float] = {}
    for row in rows:
        if "error" not in row:
            best[row["worlds"]] = min(row["seconds"], best.get(row["worlds"], np.inf))
    if not best:
        raise NotRun(f"Newton's pipeline ends with an error: {rows[0]['error']}")
    words = ", ".join(f"{worlds} worlds {seconds * 1e6:.1f} us a frame" for worlds, seconds in best.items())
    return {"summary": words, "version": package.__version__, "rows": rows}


def _newton_seconds(
    package: Any, model: Any, turns: list[wp.array], broad_phase: str, device: wp.Device
) -> dict[str, Any]:
    """Median time of a frame, with the copy of its poses; contacts of the last frame. On the CPU without a graph."""
    pipeline = package.CollisionPipeline(model, broad_phase=broad_phase)
    contacts, state = pipeline.contacts(), model.state()
    result = _frame_seconds(lambda: pipeline.collide(state, contacts), state.body_q, turns, device)
    found = int(contacts.rigid_contact_count.numpy()[0])
    if found > contacts.rigid_contact_max:
        raise RuntimeError(f"{found} contacts, more than the buffer of {contacts.rigid_contact_max}")
    return {**result, "contacts": found}


def _frame_seconds(
    collide: Callable[[], None], target: wp.array, turns: list[wp.array], device: wp.Device
) -> dict[str, Any]:
    """Median time of a frame: the copy of its poses to `target`, and `collide`, on a GPU replayed as a graph."""
    collide()  # compiles
    graph = None
    if device.is_cuda:
        with wp.ScopedCapture(device) as capture:
            collide()
        graph = capture.graph
    seconds = []
    for _ in range(PASSES):
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
    """Time of a frame of MuJoCo Warp's kinematics and collision detection of the robot, replayed as a graph."""
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
            positions = poses[..., [0, 1, 2, 6, 3, 4, 5]].reshape(len(poses), worlds, -1)  # quaternions begin with w
            turns = [wp.array(turn, dtype=wp.float32, device=device) for turn in positions]
            there = package.put_model(model)
            data = package.make_data(model, nworld=worlds, nconmax=MOST_CONTACTS, njmax=8 * MOST_CONTACTS)

            def collide(there: Any = there, data: Any = data) -> None:
                package.kinematics(there, data)
                package.collision(there, data)

            row = {"worlds": worlds, **_frame_seconds(collide, data.qpos, turns, device)}
            found = int(data.nacon.numpy()[0])
            if found > data.naconmax:
                raise RuntimeError(f"{found} contacts, more than the buffer of {data.naconmax}")
            rows.append({**row, "contacts": found})
    words = ", ".join(f"{row['worlds']} worlds {row['seconds'] * 1e6:.1f} us a frame" for row in rows)
    return {"summary": words, "version": importlib.metadata.version("mujoco-warp"), "rows": rows}
