"""Compiled kernels in the store of a batch: which workers compile, and what a damaged archive changes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import warp as wp

from collidecli.batch import kernels as kernels_module
from collidecli.batch.kernels import has_kernels, use_kernels
from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store
from collidecli.batch.work import work_shard
from collidecli.batch.worker_process import WorkerProcess
from tests.cli.conftest import write_motion
from tests.support.batches import JOBS, environment

WORKER = """
import json
from collidecli.batch.work import work_shard
from collidecli.engine.runtime.compilation import reported_compilation
counts = [0]
with reported_compilation(lambda done, count: counts.append(done)):
    report = work_shard("B", 0)
print(json.dumps({"compiled": max(counts), "done": report.done, "warnings": report.warnings}))
"""


@pytest.fixture
def planned(here: Path, collide) -> Store:
    """A planned batch of one recording."""
    (here / "demos").mkdir()
    write_motion(here / "demos" / "d.h5", 5)
    (here / "jobs.toml").write_text(JOBS)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    return Store("B")


def archive() -> Path:
    (found,) = Path("B/kernels").iterdir()
    return found


def without(cache: Path, *kernels: str) -> Path:
    """A folder of kernels with all of this machine's but those whose name begins with one of the words."""
    here, held = Path(wp.config.kernel_cache_dir), [f"wp_{name}*" for name in kernels]
    shutil.copytree(here, cache / here.name, copy_function=os.symlink, ignore=shutil.ignore_patterns(*held))
    return cache


def worked(cache: Path) -> dict:
    """What a new process with this cache of kernels tells of shard 0."""
    done = subprocess.run(
        [sys.executable, "-c", WORKER], env=environment(WARP_CACHE_PATH=str(cache)), capture_output=True, check=True
    )
    return json.loads(done.stdout)


def test_a_worker_with_an_empty_cache_compiles_nothing(planned, tmp_path):
    assert worked(tmp_path / "cache") == {"compiled": 0, "done": 1, "warnings": []}


def test_a_damaged_archive_is_passed_over_with_a_warning(planned, tmp_path):
    (key,) = {episode.key for episode in read_plan(planned).episodes}
    work_shard("B", 0)
    content = planned.content(key)
    Path(planned.result_location(key)).unlink()
    damaged = bytearray(archive().read_bytes())
    damaged[len(damaged) // 2] ^= 1
    archive().write_bytes(damaged)
    report = worked(without(tmp_path / "cache", "closed_form_kernel", "transform_shapes"))
    assert report["done"] == 1
    assert report["compiled"] > 1
    (warning,) = report["warnings"]
    assert warning.startswith(f"B/kernels/{archive().name}: is damaged")
    assert planned.content(key) == content


def test_one_warning_for_all_workers(planned, collide, monkeypatch):
    archive().write_bytes(b"")
    monkeypatch.setattr(kernels_module, "_read", set())
    monkeypatch.setattr(WorkerProcess, "call", lambda self, function, *args: function(*args))
    write_motion(Path("demos/e.h5"), 7)
    write_motion(Path("demos/f.h5"), 8)
    words = ("batch", "plan", "jobs.toml", "-o", "B", "--force", "--shard-seconds", "1e-9")
    for verb in (("batch", "run", "B", "--workers", "1"), ("batch", "work", "B", "--slot", "0/1")):
        assert collide(*words).code == 0
        archive().write_bytes(b"")
        kernels_module._read.clear()
        for path in Path("B").glob("results/*/*"):
            path.unlink()
        answer = collide(*verb)
        assert answer.code == 0
        assert answer.err.count("warning: ") == answer.err.count("is damaged") == 1, answer.err


def test_a_repeated_plan_adds_a_missing_archive(planned, collide):
    before = archive()
    archive().unlink()
    assert not has_kernels(planned)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    assert archive() == before
    unchanged = archive().stat().st_mtime_ns
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    assert archive().stat().st_mtime_ns == unchanged


def test_a_store_without_an_archive_gives_no_warning(planned, monkeypatch):
    monkeypatch.setattr(kernels_module, "_read", set())
    archive().unlink()
    assert use_kernels(planned) == ()
