"""The first run on a GPU, rehearsed on the CPU: every step that needs no GPU, without USD and
MuJoCo."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from tests.gpu import answers, first, sanitizer
from tests.gpu.answers import PAIRS, pair_scene, part_beyond, scene_names
from tests.gpu.first import NotRun, Run, StepFailed
from tests.gpu.timings import LINKS, cases, robot, robot_mjcf
from tests.support.device_scenes import SCENES, Difference, scene_blocks, scene_pipeline

ROOT = Path(__file__).parents[3]
BLOCKED = ("pxr", "mujoco", "click", "rich", "pandas", "matplotlib")
STEPS = "machine,kernels,pairs,hashes,sanitizer,copies,stages,mujoco_warp"
"""All but the project's own tests, and Newton, whose kernels take minutes to compile."""
WITHOUT_PACKAGES = f"""
import sys
sys.modules.update(dict.fromkeys({BLOCKED!r}))  # an import of None raises ImportError
from tests.gpu.first import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.rest
def test_rehearsal_needs_neither_usd_nor_mujoco(tmp_path):
    output = tmp_path / "first.json"
    made = subprocess.run(
        [
            sys.executable,
            "-c",
            WITHOUT_PACKAGES,
            "--device",
            "cpu",
            "--output",
            str(output),
            "--steps",
            STEPS,
        ],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "PATH": "",
        },
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
        assert step["status"] == (
            "not run" if name in ("sanitizer", "mujoco_warp") else "passed"
        ), step
        assert bool(step["reason"]) == (step["status"] == "not run")
    assert by_name["machine"]["result"]["cores"] >= 1
    kernels = {row["kernel"] for row in by_name["kernels"]["result"]["kernels"]}
    assert {"transform_shapes", "sweep", "count_cells"} <= kernels
    assert "execute_steps" not in kernels  # of the CPU alone: the path of a device was taken
    assert all(row["largest"] == 0.0 for row in by_name["pairs"]["result"]["pairs"])
    for row in by_name["hashes"]["result"]["scenes"]:
        assert list(row["hashes"]) == [row["cpu"]]
        # broad phases, blocks, runs and chunks
        assert len(next(iter(row["hashes"].values()))) == 3 * 2 * (5 + 2)
    assert by_name["copies"]["result"]["bytes_per_second"].keys() == {
        "upload",
        "download",
        "upload_of_pageable_memory",
    }
    for row in by_name["stages"]["result"]["cases"]:
        assert row["device"]["contacts"] == row["cpu"]["contacts"] > 0
        assert row["device"]["stage_seconds"]["narrow_phase"] > 0.0
        assert row["device"]["frames_per_second"] == pytest.approx(
            row["frames"] / row["device"]["seconds"]
        )


def test_an_unknown_step_is_refused(tmp_path, capsys):
    output = tmp_path / "first.json"
    assert first.main(["--output", str(output), "--steps", "machine,speed"]) == first.EXIT_USAGE
    assert "no step 'speed'" in capsys.readouterr().err
    assert not output.exists()


def test_an_absent_device_ends_the_run_at_the_first_step(tmp_path, capsys):
    output = tmp_path / "first.json"
    assert first.main(["--device", "cuda:99", "--output", str(output)]) == first.EXIT_FAILED
    record = json.loads(output.read_text())
    assert [(step["name"], step["status"]) for step in record["steps"]] == [("machine", "failed")]
    assert "there is no device 'cuda:99'" in record["steps"][0]["reason"]
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "reason", "result"),
    [
        (StepFailed("a reason", {"measured": 1}), "a reason", {"measured": 1}),
        (ZeroDivisionError("an error"), "ZeroDivisionError: an error", None),
    ],
)
def test_first_failure_ends_the_run(tmp_path, monkeypatch, error, reason, result):
    steps = {
        "a": Mock(side_effect=NotRun("no tool")),
        "b": Mock(side_effect=error),
        "c": Mock(side_effect=error),
    }
    monkeypatch.setattr(first, "steps", lambda: steps)
    record = first.run_steps(Run("cpu", tmp_path / "first.json", True), list(steps))
    assert record == json.loads((tmp_path / "first.json").read_text())
    assert [step["status"] for step in record["steps"]] == ["not run", "failed"]
    assert (record["steps"][1]["reason"], record["verdict"]) == (reason, "failed")
    assert result is None or record["steps"][1]["result"] == result


def test_record_remains_when_a_step_ends_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(first, "steps", lambda: {"a": Mock(side_effect=SystemExit(3))})
    with pytest.raises(SystemExit):
        first.run_steps(Run("cpu", tmp_path / "first.json", True), ["a"])
    record = json.loads((tmp_path / "first.json").read_text())
    assert (record["verdict"], record["steps"][0]["status"]) == ("running", "running")


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
        answers.compare_pairs(Run("cpu", tmp_path / "first.json", True))
    assert raised.value.result["pairs"][0]["largest"] == found.largest


def test_two_hashes_of_a_scene_fail(tmp_path, monkeypatch):
    values = iter(["a"] * 20 + ["b"] + ["a"] * 1000)
    monkeypatch.setattr(answers, "answer", lambda *arguments: (next(values), 5))
    with pytest.raises(StepFailed, match=r"several hashes of primitives \(all\)$"):
        answers.compare_hashes(Run("cpu", tmp_path / "first.json", True))


def test_every_scene_has_contacts():
    assert len(PAIRS) == 63
    assert sum(part_beyond(kinds) == 0.0 for kinds in PAIRS) == 35
    scenes = [(pair_scene(kinds, 8), "explicit", 0) for kinds in PAIRS[:4]]
    scenes += [
        (case.scene, "sap", len(case.scene.poses) * case.scene.model.world_count)
        for case in cases(True)
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
        sanitizer.check_memory(Run("cuda", tmp_path / "first.json", True))
    assert "Invalid __global__ read" in raised.value.result["memcheck"]["output"]


def test_robot_in_mjcf_has_the_poses_of_ours():
    import mujoco

    model = mujoco.MjModel.from_xml_string(robot_mjcf())
    assert model.ngeom == LINKS + 1
    pose = robot(1, 1).scene.poses[0, 0]
    placed = model.key_qpos[0].reshape(LINKS, 7)
    np.testing.assert_allclose(placed[:, :3], pose[:, :3], atol=1e-5)
    np.testing.assert_allclose(placed[:, [4, 5, 6, 3]], pose[:, 3:], atol=1e-5)


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
