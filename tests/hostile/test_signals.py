"""Commands that write are stopped by signals at random moments, or lose the reader of their output:
nothing is left, and no message but one."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from tests.hostile.test_kills import VICTIMS, Ground, Victim, left_behind, output_faults
from tests.support.waits import PATIENCE, until

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE)
"""SIGPIPE stands for a closed standard output, which the next write finds."""
NAMES = ("merge", "label", "import", "profile", "batch gather")
"""What is stopped outside the campaign."""


def stop_faults(ground: Ground, number: int, victims: tuple[Victim, ...]) -> list[str]:
    """Stops the command of case `number` at its moment, and returns everything that is wrong."""
    rng = random.Random(f"stop {number}")
    victim = victims[number % len(victims)]
    stop = SIGNALS[number // len(victims) % len(SIGNALS)]
    before, moment, args = ground.drawn(victim, rng)
    found = list(_stopped(ground, args, stop, moment, to_all=rng.random() < 0.5))
    found += output_faults(ground, victim, before)
    found += [f"left behind: {name}" for name in left_behind(ground, victim)]
    return [
        f"stop {number}, {victim.name}, {stop.name} after {moment:.2f} s: {fault}"
        for fault in found
    ]


def _stopped(
    ground: Ground, args: list[str], stop: signal.Signals, moment: float, to_all: bool
) -> Iterator[str]:
    """to_all: to the whole process group, as from a terminal."""
    pipe = subprocess.PIPE
    process = ground.start(args, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    if stop == signal.SIGPIPE:
        process.stdout.close()
        process.stdout = None
    # Python ends in ways of its own until our handlers are there
    until(lambda: process.poll() is not None or psutil.Process(process.pid).children())
    time.sleep(moment)
    family = []
    with suppress(psutil.Error):  # it has ended
        root = psutil.Process(process.pid)
        family = [root, *root.children(recursive=True)]
    if stop != signal.SIGPIPE and process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, stop) if to_all else process.send_signal(stop)
    try:
        _, told = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        yield "hangs"
        return
    _, alive = psutil.wait_procs(family, PATIENCE)
    yield from (f"{' '.join(other.cmdline())} outlives its parent" for other in alive)
    said = told.decode(errors="replace")
    allowed = {0, 3} if stop == signal.SIGPIPE else {0, 130, -stop}
    if process.returncode not in allowed:
        yield f"exit code {process.returncode}: {said}"
    if "Traceback" in said or "internal error" in said:
        yield f"a traceback: {said}"
    if process.returncode == 130 and said.count("error: interrupted") != 1:
        yield f"the message is {said!r}"


STOPS = 2 * len(VICTIMS) * len(SIGNALS)
GROUPS = 4
pytestmark = pytest.mark.rest


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("stops"))


def test_a_stopped_command_leaves_nothing(ground: Ground):
    chosen = tuple(victim for victim in VICTIMS if victim.name in NAMES)
    assert len(chosen) == len(NAMES)
    found = [
        fault
        for number in range(0, len(NAMES) * len(SIGNALS), 2)
        for fault in stop_faults(ground, number, chosen)
    ]
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("group", range(GROUPS))
def test_all_commands_are_stopped_by_all_signals(ground: Ground, group: int):
    found = [
        fault
        for number in range(group, STOPS, GROUPS)
        for fault in stop_faults(ground, number, VICTIMS)
    ]
    assert found == []
