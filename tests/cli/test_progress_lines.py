"""Lines of progress where stderr is no terminal: one a minute of work, none of shorter work."""

import re

import pytest

from collidecli.cli import progress_lines
from collidecli.cli.progress_lines import LINE_SECONDS, LineBar, LineClock, LineProgress
from collidecli.pages.progress import BatchProgress
from tests.cli.conftest import FRAMES, SCENE, write_motion


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    """The time of the lines' clock [s]."""
    now = [100.0]
    monkeypatch.setattr(progress_lines.time, "monotonic", lambda: now[0])
    return now


def test_lines_are_a_minute_apart(clock, capsys):
    shown = LineProgress("reading", "frames", LineClock())
    for seconds in range(0, 200, 7):
        clock[0] = 100.0 + seconds
        shown(seconds * 10, 2000)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [f"reading: {text} of 2 000 frames" for text in ("630", "1 260", "1 890")]


def test_inputs_share_a_clock(clock, capsys):
    """Of many short ones each would begin anew."""
    shared = LineClock()
    for number in range(5):
        clock[0] += 0.5 * LINE_SECONDS
        LineProgress(f"{number} of 5: reading", "frames", shared)(1, 9)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["1 of 5", "3 of 5"]


def test_kernels_have_lines_until_all_are_compiled(clock, capsys):
    shown = LineProgress("colliding", "frames", LineClock())
    for done in (3, 9):
        clock[0] += LINE_SECONDS
        shown.compiling(done, 9)
    assert capsys.readouterr().err == "compiling kernels (first run only): 3 of 9\n"


def test_a_batch_has_lines_of_its_episodes(clock, capsys):
    shown = BatchProgress(LineBar(LineClock()), {0: 2, 1: 3})
    for shard, failed in ((1, 1), (0, 0)):
        shown.begun(shard)
        clock[0] += LINE_SECONDS
        shown(shard, failed)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["3 of 5 episodes, 1 failed", "5 of 5 episodes, 1 failed"]


@pytest.fixture
def made(here, collide) -> str:
    """A contact set in the current folder."""
    (here / "scene.xml").write_text(SCENE)
    write_motion(here / "motion.h5")
    collide.ok("run scene.xml -t motion.h5 -o out.h5 -q --device cpu")
    return "out.h5"


COMMANDS = {
    "report out.h5 -o page.html --force": "reading",
    "run scene.xml -t motion.h5 -o again.h5 --force --device cpu": "colliding",
    "clearance scene.xml -t motion.h5 --device cpu": "measuring",
    "events out.h5": "reading",
    "label out.h5 -o labels.npz --force": "reading",
}
"""Commands, and what their lines begin with."""


@pytest.mark.parametrize(("command", "doing"), COMMANDS.items(), ids=lambda text: text.split()[0])
def test_verbs_print_lines_and_nothing_of_short_work(made, collide, monkeypatch, command, doing):
    assert collide.ok(command).err.count(f"{doing}: ") == 0
    monkeypatch.setattr(progress_lines, "LINE_SECONDS", 0.0)
    lines = [line for line in collide.ok(command).err.splitlines() if line.startswith(doing)]
    assert lines[-1] == f"{doing}: {FRAMES} of {FRAMES} frames"
    assert all(re.fullmatch(rf"{doing}: \d+ of {FRAMES} frames", line) for line in lines)
    assert doing not in collide.ok(command, "--quiet").err
