"""A progress bar in frames, with the frame rate and the remaining time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text


class FrameRate(ProgressColumn):
    """A column with the mean frame rate."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} frames/s" if task.speed else "", style="dim")


@contextmanager
def frame_progress(console: Console, doing: str, before: str = "") -> Iterator[Callable[[int, int], None]]:
    """Shows a bar until the `with` block ends; yields a function of the frames done and of all frames.

    before: description of the work before the first frame, during which the bar pulses.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), FrameRate(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(before or doing, total=None)
        begun = False

        def advance(done: int, total: int) -> None:
            nonlocal begun
            if not begun:
                # The clock restarts with the first frames, so that the rate excludes loading.
                progress.reset(task, description=doing, total=total)
                begun = True
            progress.update(task, completed=done)

        yield advance
