"""Progress of Python's functions, on a terminal or in a notebook."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import cast

from collidecli.results.result import Progress
from collidecli.scene.contact_blocks import ContactBlock

ShowProgress = bool | Callable[[int, int], None]
"""True shows a bar; a function is called with the number of frames done and of all frames."""


@contextmanager
def shown_progress(progress: ShowProgress, doing: str) -> Iterator[Progress]:
    """The function that a computation calls for each part of its frames; None where nothing is
    shown.

    A bar is that of the command line, in a notebook below the cell; it ends with the `with` block.
    """
    if not progress:
        yield None
        return
    if callable(progress):
        yield cast("Callable[[int, int], None]", progress)
        return
    import sys

    from rich.console import Console

    from collidecli.engine.runtime.kernel_loader import reported_compilation
    from collidecli.pages.progress import frame_progress

    with (
        frame_progress(Console(file=sys.stderr), doing, "loading") as bar,
        reported_compilation(bar.compiling),
    ):
        yield bar


def reported_blocks(
    blocks: Iterable[ContactBlock], frames: int, worlds: int, progress: Progress
) -> Iterator[ContactBlock]:
    """The blocks, with the frames of each reported as soon as it is known."""
    for block in blocks:
        yield block
        if progress is not None:
            progress((block.first_cell + len(block.cell_counts)) // worlds, frames)
