"""Warnings of the runs of a batch: each is in the state, with the number of episodes that gave it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np

from tests.cli.conftest import write_motion
from tests.cli.test_batch import compute, result
from tests.support.batches import JOBS


def test_warnings_of_runs_are_counted(here, collide):
    (here / "jobs.toml").write_text(JOBS)
    (here / "demos").mkdir()
    for number in range(3):
        write_motion(here / "demos" / f"d{number}.h5", 5 + number)
    with h5py.File(here / "demos" / "d1.h5", "a") as file:
        file["mocap_q"] = np.zeros((len(file["time"]), 1, 0, 7))
    compute(collide, "B")
    state = result(collide("batch", "status", "B", "--json"))
    missing, mocap = state["run_warnings"]
    assert (missing["episodes"], mocap) == (
        3,
        {
            "message": "/mocap_q is ignored: it applies to /joint_q only",
            "episodes": 1,
            "motion": str(here / "demos" / "d1.h5"),
        },
    )
    assert "far" in missing["message"]
    assert missing["motion"].startswith(str(here / "demos"))
    shown = collide("batch", "status", "B")
    assert re.search(r"3 +.*far", shown.out)
    assert shown.err == ""
    (event,) = [name for name in Path("B/events").iterdir() if b"mocap" in name.read_bytes()]
    for damaged in ({"x": [1]}, {"x": []}, [], {"x": [["a"]]}):
        event.write_text(json.dumps({**json.loads(event.read_text()), "run_warnings": damaged}))
        refused = collide("batch", "status", "B")
        assert (refused.code, "is no event of a batch: its run_warnings" in refused.err) == (2, True)
