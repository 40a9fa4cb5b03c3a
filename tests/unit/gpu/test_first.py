"""The first run on a GPU, rehearsed on the CPU: every step that needs no GPU, without USD and
MuJoCo."""

import json
import os
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_sizes import IN_FLIGHT
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.workspace import Workspace
from tests.gpu import answers, first, sanitizer
from tests.gpu.answers import PAIRS, pair_scene, part_beyond, scene_names
from tests.gpu.benchmark_scenes import (
    GAP,
    LINKS,
    MOTIONS,
    TURN,
    convex_cases,
    mesh_cases,
    robot,
    robot_mjcf,
    robot_poses,
)
from tests.gpu.first import NotRun, Run, Step, StepFailed
from tests.gpu.timings import DESTINATIONS, ONE_AT_A_TIME, contacts_stay
from tests.support.device_scenes import RECORDED, SCENES, Difference, scene_blocks, scene_pipeline

ROOT = Path(__file__).parents[3]
BLOCKED = ("pxr", "mujoco", "mujoco_warp", "newton", "click", "rich", "pandas", "matplotlib")
STEPS = "machine,kernels,bits,copies,stages,newton,mujoco_warp,lanes,meshes,pairs,sanitizer"
"""All but the project's own tests, the hashes of all ways, and the variants of kernels."""
NOT_RUN = ("sanitizer", "mujoco_warp", "newton", "lanes")
BLOCK = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED!r}))  # an import of None raises ImportError
"""


@pytest.mark.rest
def test_rehearsal_needs_neither_usd_nor_mujoco(tmp_path):
    output = tmp_path / "first.json"
    (tmp_path / "sitecustomize.py").write_text(BLOCK)  # also of the steps' processes
    paths = [str(tmp_path), str(ROOT), *filter(None, sys.path)]
    command = [sys.executable, "-m", "tests.gpu.first", "--device", "cpu", "--steps", STEPS]
    made = subprocess.run(
        [*command, "--output", str(output)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    record = json.loads(output.read_text())
    assert (record["schema"], record["verdict"], record["rehearsal"]) == (
        first.SCHEMA,
        "passed",
        True,
    )
    assert [step["name"] for step in record["steps"]] == STEPS.split(",")
    by_name = {step["name"]: step for step in record["steps"]}
    for name, step in by_name.items():
        assert f"{name}: {step['status']}" in made.stdout
        assert step["status"] == ("not run" if name in NOT_RUN else "passed"), step
        assert bool(step["reason"]) == (step["status"] == "not run")
    assert by_name["machine"]["result"]["cores"] >= 1
    kernels = {row["kernel"] for row in by_name["kernels"]["result"]["kernels"]}
    assert {"transform_shapes", "sweep", "count_cells"} <= kernels
    assert "execute_steps" not in kernels  # of the CPU alone: the path of a device was taken
    assert all(row["largest"] == 0.0 for row in by_name["pairs"]["result"]["pairs"])
    for row in by_name["bits"]["result"]["scenes"]:
        assert list(row["hashes"]) == [row["cpu"]]
        assert len(next(iter(row["hashes"].values()))) == 2  # ways
    assert by_name["copies"]["result"]["bytes_per_second"].keys() == {
        "upload",
        "download",
        "upload_of_pageable_memory",
    }
    cases = [*by_name["stages"]["result"]["cases"], *by_name["meshes"]["result"]["cases"]]
    assert {row["motion"] for row in cases} == set(MOTIONS)
    for row in cases:
        assert row["gap"] == GAP == 0.0
        for destination in DESTINATIONS[1:]:
            assert row["device"][destination]["contacts"] == row["cpu"][destination]["contacts"] > 0
        there = row["device"]["stay"]
        assert there["contacts"] == row["device"]["host"]["contacts"]
        assert there["stage_seconds"]["narrow_phase"] > 0.0
        workers = {name: row["device"][name]["workers"] for name in (*DESTINATIONS, ONE_AT_A_TIME)}
        assert workers == {**dict.fromkeys(DESTINATIONS, IN_FLIGHT), ONE_AT_A_TIME: 1}
        assert there["frames_per_second"] == pytest.approx(row["frames"] / there["seconds"])


def test_an_unknown_step_is_refused(tmp_path, capsys):
    output = tmp_path / "first.json"
    assert first.main(["--output", str(output), "--steps", "machine,speed"]) == first.EXIT_USAGE
    assert "no step 'speed'" in capsys.readouterr().err
    assert not output.exists()


@pytest.mark.rest
def test_an_absent_device_fails_its_step_without_a_traceback(tmp_path, capfd):
    output = tmp_path / "first.json"
    arguments = ["--device", "cuda:99", "--output", str(output), "--steps", "machine"]
    assert first.main(arguments) == first.EXIT_FAILED
    record = json.loads(output.read_text())
    assert [(step["name"], step["status"]) for step in record["steps"]] == [("machine", "failed")]
    assert "there is no device 'cuda:99'" in record["steps"][0]["reason"]
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize(
    ("error", "status", "reason", "result"),
    [
        (StepFailed("a reason", {"measured": 1}), "failed", "a reason", {"measured": 1}),
        (ZeroDivisionError("an error"), "failed", "ZeroDivisionError: an error", None),
        (NotRun("no tool"), "not run", "no tool", {"kept": 1}),
    ],
)
def test_an_error_of_a_step_is_recorded(tmp_path, error, status, reason, result):
    def execute(run):
        run.keep({"kept": 1})
        raise error

    path = tmp_path / "step.json"
    entry = first.run_step(Run("cpu", True), "a", Step(execute, 1.0), path)
    assert entry == json.loads(path.read_text())
    assert (entry["status"], entry["reason"]) == (status, reason)
    if result is None:
        assert entry["result"]["kept"] == 1
        assert "ZeroDivisionError" in entry["result"]["traceback"]
    else:
        assert entry["result"] == result


def process_that(tmp_path, monkeypatch, source: str) -> None:
    """Steps a, b and c, whose processes run a program in place of the step's; its first argument is
    the step's file, the second its name."""
    program = tmp_path / "step"
    given = 'name = sys.argv[sys.argv.index("--only") + 1]\n'
    given += 'path = sys.argv[sys.argv.index("--output") + 1]\n'
    program.write_text(f"#!{sys.executable}\nimport json, os, sys, time\n{given}{source}")
    program.chmod(0o755)
    monkeypatch.setattr(first, "steps", lambda: {name: Step(Mock(), 30.0) for name in "abc"})
    monkeypatch.setattr(first.sys, "executable", str(program))


ENTRY = '{"name": name, "status": %r, "reason": "", "seconds": 0.1, "result": {"kept": name}}'


def test_a_step_that_fails_or_ends_its_process_ends_no_other(tmp_path, monkeypatch):
    source = f"json.dump({ENTRY % 'running'}, open(path, 'w'))\nif name == 'a': os._exit(3)\n"
    source += f"json.dump({ENTRY % 'passed'}, open(path, 'w'))\n"
    process_that(tmp_path, monkeypatch, source)
    output = tmp_path / "first.json"
    record = first.run_steps("cpu", True, output, ["a", "b", "c"])
    assert record == json.loads(output.read_text())
    assert [step["status"] for step in record["steps"]] == ["failed", "passed", "passed"]
    assert [step["result"]["kept"] for step in record["steps"]] == ["a", "b", "c"]
    assert record["steps"][0]["reason"] == "its process ended with exit code 3"
    assert record["verdict"] == "failed"
    assert sorted(os.listdir(tmp_path)) == ["first.json", "step"]


def test_a_step_is_ended_at_its_limit_and_keeps_what_it_has(tmp_path, monkeypatch):
    source = f"json.dump({ENTRY % 'running'}, open(path, 'w'))\ntime.sleep(1000)\n"
    process_that(tmp_path, monkeypatch, source)
    monkeypatch.setattr(first, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(first, "steps", lambda: {"a": Step(Mock(), 0.5)})
    record = first.run_steps("cpu", True, tmp_path / "first.json", ["a"])
    (step,) = record["steps"]
    assert (step["status"], step["result"]) == ("failed", {"kept": "a"})
    assert step["reason"].startswith("not complete after")


def test_steps_beyond_the_time_of_the_run_are_not_run(tmp_path, monkeypatch):
    process_that(tmp_path, monkeypatch, "raise SystemExit(5)")
    record = first.run_steps("cpu", True, tmp_path / "first.json", ["a", "b"], 1.0)
    assert [step["status"] for step in record["steps"]] == ["not run", "not run"]
    assert record["steps"][0]["reason"] == "the 1 s of the run are over"


def test_the_limits_of_all_steps_fit_the_run():
    assert sum(step.seconds for step in first.steps().values()) <= first.MOST_SECONDS
    assert list(first.steps())[-1] == "sanitizer"


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Difference(pairs=100, largest=1e-3, beyond=1), "plane-sphere differ beyond rounding"),
        (Difference(), "plane-sphere"),
    ],
)
def test_pairs_that_differ_or_have_no_contacts_fail(tmp_path, monkeypatch, found, words):
    of_kinds = {PAIRS[0]: found}
    monkeypatch.setattr(
        answers, "pair_difference", lambda *given: of_kinds.get(given[2], Difference(pairs=100))
    )
    with pytest.raises(StepFailed, match=words) as raised:
        answers.compare_pairs(Run("cpu", True))
    assert raised.value.result["pairs"][0]["largest"] == found.largest


def test_two_hashes_of_a_scene_fail(tmp_path, monkeypatch):
    values = iter(["a"] * 20 + ["b"] + ["a"] * 1000)
    monkeypatch.setattr(answers, "answer", lambda *arguments: (next(values), 5))
    with pytest.raises(StepFailed, match=r"several hashes of primitives \(all\)$"):
        answers.compare_hashes(Run("cpu", True))


def test_every_scene_has_contacts():
    assert len(PAIRS) == 63
    assert sum(part_beyond(kinds) == 0.0 for kinds in PAIRS) == 35
    scenes = [(pair_scene(kinds, 8), "explicit", 0) for kinds in PAIRS[:4]]
    scenes += [
        (case.scene, "sap", len(case.scene.poses) * case.scene.model.world_count)
        for case in (*convex_cases(True), *mesh_cases(True))
    ]
    for scene, broad_phase, least in scenes:
        blocks = scene_blocks(scene_pipeline(scene, broad_phase), scene)
        assert sum(block.contact_count for block in blocks) > least
    assert scene_names(False) == list(SCENES)


def test_findings_of_the_sanitizer_fail(tmp_path, monkeypatch):
    program = tmp_path / "compute-sanitizer"
    program.write_text("#!/bin/sh\necho Invalid __global__ read\nexit 9\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(StepFailed, match="memcheck found errors") as raised:
        sanitizer.check_memory(Run("cuda", True))
    (check,) = raised.value.result["checks"]
    assert (check["tool"], check["scene"]) == ("memcheck", next(iter(RECORDED)))
    assert "Invalid __global__ read" in check["output"]


def test_the_sanitizer_checks_each_scene_with_each_tool(tmp_path, monkeypatch):
    program = tmp_path / "compute-sanitizer"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    kept = []
    run = Run("cuda", True, kept.append)
    result = sanitizer.check_memory(run)
    checks = [(check["scene"], check["tool"]) for check in result["checks"]]
    assert checks == [(scene, tool) for scene in RECORDED for tool in sanitizer.TOOLS]
    assert all(
        check["output"].split()[-2:] == ["cuda", check["scene"]] for check in result["checks"]
    )
    assert len(kept) == len(checks)


def test_robot_in_mjcf_has_the_poses_of_ours():
    import mujoco

    model = mujoco.MjModel.from_xml_string(robot_mjcf())
    assert model.ngeom == LINKS + 1
    pose = robot(1, 1, "coherent").scene.poses[0, 0]
    placed = model.key_qpos[0].reshape(LINKS, 7)
    np.testing.assert_allclose(placed[:, :3], pose[:, :3], atol=1e-5)
    np.testing.assert_allclose(placed[:, [4, 5, 6, 3]], pose[:, 3:], atol=1e-5)


def test_robot_at_gap_0_touches_where_mujoco_has_contacts():
    """MuJoCo keeps other contacts of a pair, and finds none of the pairs alone."""
    import mujoco

    frames = 40
    case = robot(frames, 1, "coherent")
    blocks = scene_blocks(scene_pipeline(case.scene, "explicit"), case.scene)
    ours = {
        (int(cell), int(first), int(second))
        for block in blocks
        for cell, first, second in zip(
            block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts),
            block.columns["shape0"],
            block.columns["shape1"],
            strict=True,
        )
    }
    model = mujoco.MjModel.from_xml_string(robot_mjcf())
    data = mujoco.MjData(model)
    theirs = set()
    for frame, pose in enumerate(robot_poses(frames, 1, "coherent")[:, 0]):
        data.qpos[:] = pose[:, [0, 1, 2, 6, 3, 4, 5]].ravel()
        mujoco.mj_forward(model, data)
        theirs |= {(frame, *sorted(pair)) for pair in data.contact.geom.tolist()}
    assert len(theirs) > 5 * frames
    assert theirs <= ours
    assert len(ours) <= 1.05 * len(theirs)


@pytest.mark.parametrize("worlds", [1, 3])
def test_shapes_of_the_coherent_motion_turn_and_move_little(worlds):
    poses = robot_poses(50, worlds, "coherent")
    assert poses.shape == (50, worlds, LINKS, 7)
    cosine = np.abs(np.sum(poses[1:, ..., 3:] * poses[:-1, ..., 3:], axis=-1))
    np.testing.assert_allclose(2.0 * np.arccos(np.minimum(cosine, 1.0)), TURN, rtol=1e-4)
    assert np.abs(np.diff(poses[..., :3], axis=0)).max() < 0.0021
    worlds_differ = np.abs(np.diff(poses, axis=1)).reshape(-1, 7).max(0, initial=0.0)
    assert worlds == 1 or worlds_differ.min() > 0.01


def test_orientations_of_the_random_motion_have_no_memory():
    """The mean angle between two random orientations is pi / 2 + 2 / pi."""
    quaternion = robot_poses(200, 4, "random")[..., 3:]
    cosine = np.abs(np.sum(quaternion[1:] * quaternion[:-1], axis=-1))
    assert np.mean(2.0 * np.arccos(cosine)) == pytest.approx(np.pi / 2 + 2 / np.pi, abs=0.03)


def test_contacts_that_stay_are_counted_and_not_copied(monkeypatch):
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    case = robot(8, 1, "random")
    pipeline = scene_pipeline(case.scene, "explicit")
    found = []
    for stays in (False, True):
        workspace = Workspace(pipeline.device_model.device, 1 << 40)
        with contacts_stay() if stays else nullcontext(), workspace.turn():
            block, report = pipeline.collide(PoseBatch(0, 8, 0, case.scene.poses), workspace)
        assert len(block.columns["distance"]) == report.contact_count
        traffic = replace(workspace.traffic)
        found.append((report.contact_count, traffic))
        # The numbers of a second chunk are expected, and a kernel copies its contacts.
        with contacts_stay() if stays else nullcontext(), workspace.turn():
            block, later = pipeline.collide(PoseBatch(0, 8, 0, case.scene.poses), workspace)
        assert workspace.counts.expects
        assert len(block.columns["distance"]) == later.contact_count == report.contact_count
    (contacts, copied), (staying, left) = found
    assert contacts == staying > 0
    assert left.waits == copied.waits
    assert left.downloads == copied.downloads - 1
    assert copied.downloaded_bytes - left.downloaded_bytes >= 105 * contacts


def test_page_names_every_step():
    page = (ROOT / "docs/howto/first-run-on-a-gpu.md").read_text()
    for name in first.steps():
        assert f"| `{name}` |" in page
    assert first.SCHEMA in page


def test_page_names_every_wheel():
    page = (ROOT / "docs/howto/first-run-on-a-gpu.md").read_text()
    script = (ROOT / "tests/gpu/first.sh").read_text()
    for name in re.findall(r"^#   ([A-Z]+) ", script, re.M):
        assert f"`{name}" in page
