"""What `collide batch` shows: progress while it plans, and its tables."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path

import pytest

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
