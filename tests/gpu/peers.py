"""Steps of a first run on a GPU: Newton with captured graphs, and MuJoCo Warp, where they are installed."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.pipeline import find_device
from tests.gpu.first import NotRun, Run, StepFailed
from tests.gpu.timing_scenes import newton_robot, robot_mjcf, robot_poses

WORLDS = (1, 1024, 8192)
FRAMES, PASSES = 64, 5
STEPS = 1000
BROAD_PHASES = ("explicit", "sap", "nxn")
MOST_SECONDS = 600
MJWARP = "from mujoco_warp.testspeed import main; main()"


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
    pipeline.collide(state, contacts)  # compiles
    graph = None
    if device.is_cuda:
        with wp.ScopedCapture(device) as capture:
            pipeline.collide(state, contacts)
        graph = capture.graph
    seconds = []
    for _ in range(PASSES):
        wp.synchronize_device(device)
        start = time.perf_counter()
        for turn in turns:
            wp.copy(state.body_q, turn)
            if graph is None:
                pipeline.collide(state, contacts)
            else:
                wp.capture_launch(graph)
        wp.synchronize_device(device)
        seconds.append((time.perf_counter() - start) / len(turns))
    found = int(contacts.rigid_contact_count.numpy()[0])
    if found > contacts.rigid_contact_max:
        raise RuntimeError(f"{found} contacts, more than the buffer of {contacts.rigid_contact_max}")
    return {"seconds": float(np.median(seconds)), "contacts": found, "graph": graph is not None}


def mujoco_warp(run: Run) -> dict[str, Any]:
    """What MuJoCo Warp's testspeed reports of collision detection of the robot."""
    if importlib.util.find_spec("mujoco_warp") is None:
        raise NotRun("mujoco_warp is not installed")
    if run.is_rehearsal:
        raise NotRun("testspeed runs on a GPU alone")
    scene = run.output.with_name("robot.xml")
    scene.write_text(robot_mjcf())
    rows = {}
    for worlds in WORLDS:
        command = [sys.executable, "-c", MJWARP, str(scene), "--function=collision", f"--nworld={worlds}"]
        command += [f"--nstep={STEPS}", "--format=json", f"--device={find_device(run.device).alias}"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
        if made.returncode:
            raise StepFailed(f"testspeed ended with exit code {made.returncode}", {"errors": made.stderr[-4000:]})
        rows[str(worlds)] = _last_json(made.stdout)
    return {"summary": f"testspeed of {', '.join(rows)} worlds", "steps": STEPS, "worlds": rows}


def _last_json(text: str) -> Any:
    """The JSON object that the text ends with; the text where it does not."""
    try:
        return json.loads(text[text.index("{") :])
    except ValueError:
        return text[-4000:]
