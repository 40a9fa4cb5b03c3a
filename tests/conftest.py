"""What holds for all tests."""

import gc
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any
from zlib import crc32

import hypothesis
import pytest
import warp

GOLDEN_RATIO = 0.5 * (1.0 + 5.0**0.5)
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


def part(text: str) -> tuple[int, int]:
    """The number of a part and the count of parts, from `K/N`."""
    number, _, count = text.partition("/")
    if not 0 <= int(number) < int(count):
        raise ValueError(f"{text}: K is from 0 to N - 1")
    return int(number), int(count)


class OnePart:
    """Deselects all tests but those of one part, after `-m` has deselected."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """By a hash of the name of each test, so that it stays in its part when others come."""
        number, count = config.option.part
        inside: list[pytest.Item] = []
        outside: list[pytest.Item] = []
        for item in items:
            is_inside = crc32(item.nodeid.encode()) % count == number
            (inside if is_inside else outside).append(item)
        config.hook.pytest_deselected(items=outside)
        items[:] = inside


def pytest_configure(config: pytest.Config) -> None:
    if config.option.part is not None:
        config.pluginmanager.register(OnePart())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the cases of a test marked `share(quick, all)`, one in `quick` is in `make test`, one in
    `all` in `make test-all`, the others in `make test-slow`, chosen alike in every process.

    The first is in `make test`. Multiples of the golden ratio spread the others evenly over each
    parameter, and what is in `make test` is part of what is in `make test-all`.
    """
    seen: Counter[str] = Counter()
    for item in items:
        marker = item.get_closest_marker("share")
        if marker is not None and item.get_closest_marker("slow") is None:
            name = item.nodeid.partition("[")[0]
            at = seen[name] * GOLDEN_RATIO % 1.0
            mark = mark_of_share(at, *marker.args)
            if mark is not None:
                item.add_marker(mark)
            seen[name] += 1


def mark_of_share(at: float, quick: int, all: int = 1) -> pytest.MarkDecorator | None:
    """The marker of a case at a number from 0 to 1; none of a case that is in `make test`."""
    if at >= 1.0 / all:
        return pytest.mark.slow
    return pytest.mark.rest if at >= 1.0 / quick else None
