"""Progress bars: of frames, with the frame rate and the remaining time, and of the episodes of a
batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from collidecli.pages.quantities import rate
from collidecli.wording import count

SHOWN_SECONDS = 2.0
ESTIMATED_SECONDS = 1.0


class DoneOfAll(ProgressColumn):
    """A column with the numbers of frames done and of all frames; empty before the first."""

    def render(self, task: Task) -> Text:
        return Text(
            "" if task.total is None else f"{count(int(task.completed))}/{count(int(task.total))}"
        )


class Rate(ProgressColumn):
    """A column with the mean rate. noun: what is counted, in the plural."""

    def __init__(self, noun: str) -> None:
        super().__init__()
        self._noun = noun

    def render(self, task: Task) -> Text:
        return Text(f"{rate(task.speed)} {self._noun}/s" if task.speed else "", style="dim")


class LoadingTime(ProgressColumn):
    """A column with the time since the start of the work before the first frame, from SHOWN_SECONDS
    on."""

    def render(self, task: Task) -> Text:
        shown = task.total is None and task.elapsed is not None and task.elapsed >= SHOWN_SECONDS
        return Text(f"{task.elapsed:.0f} s" if shown else "", style="dim")


class TimeLeft(TimeRemainingColumn):
    """A column with the estimated time, from ESTIMATED_SECONDS of work on: the first steps say
    little."""

    def render(self, task: Task) -> Text:
        return (
            super().render(task)
            if (task.elapsed or 0.0) >= ESTIMATED_SECONDS
            else Text("-:--:--", style="dim")
        )


class FrameProgress:
    """A bar, as a function of the frames done and of all frames, which may become more.

    Before the first frame it shows the kernels that are compiled.
    """

    def __init__(self, bar: Progress, doing: str, before: str) -> None:
        self._bar = bar
        self._doing = doing
        self._before = before or doing
        self._task = bar.add_task(self._before, total=None)
        self._begun = False

    def __call__(self, done: int, total: int) -> None:
        if not self._begun:
            # The clock restarts with the first frames, so that the rate excludes loading.
            self._bar.reset(self._task, description=self._doing, total=total)
            self._begun = True
        self._bar.update(self._task, completed=done, total=total)

    def compiling(self, done: int, total: int) -> None:
        """Shows the numbers of compiled kernels and of all that must be compiled."""
        if not self._begun:
            compiling = f"compiling kernels (first run only), {done} of {total}"
            self._bar.update(self._task, description=compiling if done < total else self._before)


@contextmanager
def frame_progress(
    console: Console, doing: str, before: str = "", noun: str = "frames"
) -> Iterator[FrameProgress]:
    """Shows a bar until the `with` block ends.

    before: description of the work before the first frame, during which the bar pulses. noun: what
    is counted.
    """
    description = TextColumn("{task.description}", markup=False)
    columns = (description, BarColumn(), LoadingTime(), DoneOfAll(), Rate(noun), TimeLeft())
    with Progress(*columns, console=console, transient=True) as progress:
        yield FrameProgress(progress, doing, before)


class Bar(Protocol):
    """What a batch uses of a bar."""

    def add_task(self, description: str, *, total: float) -> Any: ...
    def update(self, task: Any, /, *, completed: float, description: str) -> None: ...


class BatchProgress:
    """A bar of the episodes of a batch. episodes: of each shard that has any left."""

    def __init__(self, bar: Bar, episodes: Mapping[int, int]) -> None:
        self._bar = bar
        self._left = dict(episodes)
        self._total = sum(episodes.values())
        self._begun: Counter[int] = Counter()
        self._failed = 0
        self._task = bar.add_task("", total=self._total)
        self._show()

    def begun(self, shard: int) -> None:
        """An episode of a shard begins: those that began before it are done. Called by any
        thread."""
        self._begun[shard] += 1
        self._show()

    def __call__(self, shard: int, failed: int) -> None:
        """A shard is done."""
        self._failed += min(failed, self._left.pop(shard, 0))
        self._show()

    def _show(self) -> None:
        under_way = sum(
            min(max(self._begun[shard] - 1, 0), left) for shard, left in tuple(self._left.items())
        )
        done = self._total - sum(self._left.values()) + under_way
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.update(
            self._task, completed=done, description=f"{done} of {self._total} episodes{failed}"
        )


@contextmanager
def batch_progress(console: Console, episodes: Mapping[int, int]) -> Iterator[BatchProgress]:
    """Shows the bar of a batch until the `with` block ends. episodes: that are left, of each
    shard."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeLeft(),
    )
    # Shards take minutes: the speed is the mean of the last hour.
    with Progress(
        *columns, console=console, transient=True, speed_estimate_period=3600.0
    ) as progress:
        yield BatchProgress(progress, episodes)
