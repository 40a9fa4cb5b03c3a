"""A progress bar in frames, with their rate and the time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class FrameRate(ProgressColumn):
    """Frames a second so far."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} frames/s" if task.speed else "", style="dim")


@contextmanager
def frame_progress(console: Console, doing: str, before: str = "") -> Iterator[Callable[[int, int], None]]:
    """Shows a bar until the block ends; what it gives is called with frames done and frames in all.

    before: what is done until the first frame is; the bar only pulses then.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), FrameRate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(before or doing, total=None)
        begun = False

        def advance(done: int, total: int) -> None:
            nonlocal begun
            if not begun:
                # The clock starts with the first frames: loading is no part of the rate.
                progress.reset(task, description=doing, total=total)
                begun = True
            progress.update(task, completed=done)

        yield advance
