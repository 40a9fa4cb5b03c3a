"""What holds for all tests."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import warp

warp.config.log_level = warp.LOG_ERROR  # what the examples print is compared with what is shown
# Newton's modules declare adjoints, which no test calls: half of the time to compile them.
warp.config.enable_backward = False
# The heap of a worker has millions of objects for good (declarations of kernels, schemas of USD): searches for cycles
# after every 700 new ones were a tenth of the tests' time.
gc.set_threshold(200_000, 20, 20)
# A shell that starts the tests in the background has SIGINT ignored, and every program they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same for nohup; what these tests themselves then do with it, nothing, is not inherited.
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Before workers start, all kernels are compiled that they would else compile one by one, and twice."""
    is_controller = not hasattr(session.config, "workerinput") and session.config.getoption("numprocesses", None)
    if is_controller and not session.config.option.collectonly:
        # What does not compile is shown by the tests of it.
        subprocess.run([sys.executable, "-m", "tests.support.warm"], cwd=Path(__file__).parents[1], check=False)
