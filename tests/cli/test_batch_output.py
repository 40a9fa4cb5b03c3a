"""What `collide batch` shows: progress while it plans, and its tables."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from collidecli.batch.plan import read_plan
from collidecli.batch.store import Store
from collidecli.batch.work import work_shard
from tests.cli.conftest import write_motion
from tests.support.batches import JOBS


@pytest.fixture
def jobs(here: Path) -> Path:
    """The current folder with jobs.toml: two jobs of three recordings each."""
    (here / "demos").mkdir()
    for number in range(3):
        write_motion(here / "demos" / f"d{number}.h5", 5 + number)
    (here / "jobs.toml").write_text(JOBS + JOBS.replace("balls", "again\\u001b").replace("0.02", "0.03"))
    return here


def test_plan_shows_what_it_does(jobs, collide, monkeypatch):
    seen = []

    class Bar:
        def __init__(self, doing: str) -> None:
            self._doing = doing

        def __call__(self, done: int, total: int) -> None:
            seen.append((self._doing, done, total))

        def compiling(self, done: int, total: int) -> None:
            """Kernels are compiled or not, by the cache of the machine."""

    @contextmanager
    def bar(console, doing: str, before: str, noun: str):
        seen.append((doing, before, noun))
        yield Bar(doing)

    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr("collidecli.report.progress.frame_progress", bar)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    assert seen == [
        ("hashing", "reading scenes", "recordings"),
        *(("hashing", number, 6) for number in range(1, 7)),
        ("estimating job balls", "", "frames"),
        ("estimating job again\\x1b", "", "frames"),
    ]


def test_tables_name_a_failed_recording_once(here, collide):
    (here / "demos").mkdir()
    write_motion(here / "demos" / "good.h5", 5)
    (here / "demos" / "bad.h5").write_bytes(b"junk")
    (here / "jobs.toml").write_text(JOBS)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    work_shard("B", 0)
    shown = collide("batch", "status", "B").out
    assert shown.count("bad.h5") == 1, shown
    assert "worker time" in shown
    state = json.loads(collide("batch", "status", "B", "--json").out)
    assert state["failures"][0]["message"].count("bad.h5") == 1
    gathered = collide("batch", "gather", "B", "-o", "all.parquet").out
    assert "failed    1, without a row" in gathered
    assert json.loads(collide("batch", "gather", "B", "-o", "x.parquet", "--json").out)["failed"] == 1


@pytest.mark.parametrize(("spent", "words"), [(5.7168, "5.72 s"), (3599.0, "3599 s"), (5400.0, "1.50 h")])
def test_the_time_of_a_host_is_readable_for_short_and_long_batches(here, collide, spent, words):
    (here / "demos").mkdir()
    write_motion(here / "demos" / "good.h5", 5)
    (here / "jobs.toml").write_text(JOBS)
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    (episode,) = read_plan(Store("B")).episodes
    keys = {"keys": [episode.key, "of another plan"]}
    Store("B").log({"event": "shard", "host": "h", "done": 3, "seconds": spent, "time": 1.0, **keys})
    assert words in collide("batch", "status", "B").out


@pytest.mark.usefixtures("in_process")
def test_a_command_says_what_it_computed(jobs, collide):
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    assert "computed now" not in collide("batch", "status", "B").out
    for computed in (6, 0):
        answer = collide("batch", "work", "B", "--slot", "0/1", "--json")
        assert (answer.code, json.loads(answer.out)["computed"]) == (0, computed)
    answer = collide("batch", "work", "B", "--slot", "7/8")
    assert re.search(r"computed now +0", answer.out)
    assert "slot 7/8 has no shard: the plan has 2" in answer.err


@pytest.mark.usefixtures("in_process")
def test_failures_are_told_with_quiet_too_and_tried_again_on_request(jobs, collide):
    (jobs / "demos" / "bad.h5").write_bytes(b"junk")
    assert collide("batch", "plan", "jobs.toml", "-o", "B").code == 0
    answer = collide("batch", "work", "B", "--slot", "0/1", "--quiet")
    assert (answer.code, answer.out) == (1, "")
    assert "2 of 8 episodes failed" in answer.err
    write_motion(jobs / "demos" / "bad.h5", 4)
    assert collide("batch", "work", "B", "--slot", "0/1").code == 1
    again = collide("batch", "work", "B", "--slot", "0/1", "--retry-failed", "--json")
    assert (again.code, json.loads(again.out)["computed"]) == (0, 2)


def test_a_watcher_waits_for_the_plan(jobs, collide):
    assert collide("batch", "plan", "jobs.toml", "-o", "A").code == 0
    for shard in range(2):
        work_shard("A", shard)
    planner = threading.Timer(0.5, lambda: Path("A").rename("B"))
    planner.start()
    state = collide("batch", "status", "B", "--watch", "--interval", "0.1", "--json")
    assert json.loads(state.out)["left"] == 0
    assert "waiting for it" in state.err
