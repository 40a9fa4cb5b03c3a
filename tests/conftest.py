"""What holds for all tests."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import warp

from tests.support.selection import OnePart, mark_shares, part

WARMING = pytest.StashKey[subprocess.Popen[bytes]]()
"""The process that compiles kernels."""

# One answer of every run of `make test`; `pytest --hypothesis-profile default` draws other cases
# each time.
hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None)
# Ten times the examples, other ones each time.
hypothesis.settings.register_profile("many", max_examples=1000, deadline=None)
hypothesis.settings.load_profile("repeatable")
os.environ.pop("COLUMNS", None)  # tables in pipes are as wide as their content
warp.config.log_level = warp.LOG_ERROR  # what the examples print is compared with what is shown
# Newton's modules declare adjoints, which no test calls: half of the time to compile them.
warp.config.enable_backward = False
# The heap of a worker has millions of objects for good (declarations of kernels, schemas of USD):
# searches for cycles after every 700 new ones were a tenth of the tests' time.
gc.set_threshold(200_000, 20, 20)
# A shell that starts the tests in the background has SIGINT ignored, and every program they start
# would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    # The same for nohup; what these tests themselves then do with it, nothing, is not inherited.
    signal.signal(signal.SIGHUP, lambda number, frame: None)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compiles all kernels that workers would else compile one by one, and twice, while they
    collect the tests."""
    is_controller = not hasattr(session.config, "workerinput") and session.config.getoption(
        "numprocesses", None
    )
    if is_controller and not session.config.option.collectonly:
        # What does not compile is shown by the tests of it.
        command = [sys.executable, "-m", "tests.support.warm"]
        session.config.stash[WARMING] = subprocess.Popen(command, cwd=Path(__file__).parents[1])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any) -> None:
    """No test begins before the kernels are compiled."""
    node.config.stash[WARMING].wait()


def pytest_collection_finish() -> None:
    """What the collection made stays until the end: no later search for cycles visits it."""
    gc.freeze()


@pytest.fixture
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed distance fields are built once for all tests with this fixture, and kept nowhere
    else."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "fields"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--part`, of which `.ci/run` runs another one of `make test-slow` with each commit."""
    parser.addoption(
        "--part",
        type=part,
        metavar="K/N",
        help="run the tests of part K of N alone, K from 0 to N - 1; all parts together have all",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.option.part is not None:
        config.pluginmanager.register(OnePart(*config.option.part))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Before `-m` deselects."""
    mark_shares(items)
