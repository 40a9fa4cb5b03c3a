"""A batch whose disk gets full ends with exit code 3, keeps what is whole, and goes on where there is space again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from collidecli.batch.store import open_store
from tests.cli.conftest import write_motion
from tests.cli.test_batch import compute, dataset
from tests.support.batches import JOBS

COUNT = 12


def mount(*words: str) -> bool:
    """Whether the command mount has done it: a user without that right cannot."""
    return subprocess.run(["mount", "-t", "tmpfs", *words], stderr=subprocess.DEVNULL, check=False).returncode == 0


@pytest.fixture
def small(here: Path):
    """A file system of its own in the folder small, with too little space for the batch of jobs.toml."""
    (here / "demos").mkdir()
    for number in range(COUNT):
        write_motion(here / "demos" / f"d{number}.h5", 5 + number)
    (here / "jobs.toml").write_text(JOBS)
    (here / "small").mkdir()
    try:
        mounted = mount("-o", "size=500k", "tmpfs", "small")
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no file system can be mounted")
    yield here / "small"
    subprocess.run(["umount", "-l", "small"], cwd=here, check=True)


def test_a_full_disk_ends_a_batch_which_goes_on_where_there_is_space(small, collide):
    compute(collide, "whole")
    assert collide("batch", "plan", "jobs.toml", "-o", "small/B", "--shard-seconds", "1e-9").code == 0
    full = collide("batch", "run", "small/B", "--workers", "2")
    assert full.code == 3
    assert "no space left" in full.err
    assert "Traceback" not in full.err
    kept = list(open_store("small/B").results())
    assert 0 < len(kept) < COUNT
    assert mount("-o", "remount,size=20m", "tmpfs", "small")
    assert collide("batch", "run", "small/B", "--workers", "1").code == 0
    assert dataset(collide, "small/B") == dataset(collide, "whole")
    assert not list(Path("small/B").rglob("*.partial")), "of the other worker, which was ended"
