"""Output of the command line: results on stdout; progress, warnings and errors on stderr."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from collidecli.cli.pipes import unbroken_pipe
from collidecli.cli.progress_lines import LineBar, LineClock, LineProgress
from collidecli.errors import CollideError
from collidecli.escaping import one_line, printable, printable_values

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from collidecli.pages.progress import BatchProgress, FrameProgress
    from collidecli.results.result import Progress, Result

WIDE = 100_000
"""Width of a table that is written to a file or a pipe, unless COLUMNS is exported: nothing is
folded [columns]."""


class Streams:
    """Output options of a verb. quiet: no tables, warnings or progress. json: one object in place
    of tables.

    verbose: a traceback with an error. is_stopping: whether a signal has ended this call of
    `collide`.
    """

    def __init__(self) -> None:
        self.verbose = self.quiet = self.json = False
        self.is_stopping: Callable[[], bool] = lambda: False
        self._is_json_printed = False
        self._printed_warnings: set[str] = set()
        self._lines = LineClock()

    def prepare(self) -> None:
        """Replaces closed streams by the null device, escapes characters that the encoding of a
        stream lacks, and lets a write wait for its reader.

        To a pipe that another program has made non-blocking Python writes a part, and says nothing.
        """
        # Open until the program ends.
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
                with suppress(OSError, ValueError):
                    os.set_blocking(stream.fileno(), True)

    def result(self, result: Result, table: Callable[[Mapping[str, Any]], RenderableType]) -> None:
        """Prints the warnings of a verb's result, and the result as JSON or as the table that
        `table` returns."""
        of_kernels = _kernel_warnings()
        for warning in getattr(result, "warnings", None) or ():
            if warning not in of_kernels:
                self.warn(warning)
        self.warn_of_kernels()
        values = result.as_dict()
        with unbroken_pipe():
            if self.json:
                self._is_json_printed = True
                print(json.dumps(values, allow_nan=False), flush=True)
            elif not self.quiet:
                _print(table(printable_values(values)))

    def error(self, error: CollideError, code: int) -> int:
        """Prints an error on stderr and, with --json and without a result, as an object on stdout;
        returns `code`."""
        self.failure(error)
        if self.json and not self._is_json_printed:
            with suppress(OSError):
                print(error_json(error, code), flush=True)
        return code

    def failure(self, error: CollideError) -> None:
        """Prints an error on stderr, that of the verb or of one of its inputs."""
        with suppress(OSError):
            print(f"error: {printable(str(error))}", file=sys.stderr, flush=True)

    def warn_of_kernels(self) -> None:
        """Prints warnings about compiled kernels, each once: they are of the process, not of one of
        its results."""
        for text in _kernel_warnings():
            if text not in self._printed_warnings:
                self._printed_warnings.add(text)
                self.warn(text)

    def warn(self, text: str) -> None:
        """Prints a warning on one line of stderr."""
        if not self.quiet:
            print(f"warning: {printable(one_line(text))}", file=sys.stderr)

    @contextmanager
    def progress(
        self, doing: str, before: str = "", noun: str = "frames", kernels: bool = False
    ) -> Iterator[Progress]:
        """A progress bar, as a function of the frames done and of all frames; lines if stderr is no
        terminal, None with --quiet.

        before: description of the work before the first frame. noun: what is counted. kernels:
        whether it shows the kernels that are compiled.
        """
        if self.quiet:
            yield None
            return
        with self._shown_progress(doing, before, noun) as advance:
            if not kernels:
                yield advance
                return
            from collidecli.engine.runtime.kernel_loader import reported_compilation

            with reported_compilation(advance.compiling):
                yield advance

    def _shown_progress(
        self, doing: str, before: str, noun: str
    ) -> AbstractContextManager[FrameProgress | LineProgress]:
        if not sys.stderr.isatty():
            return nullcontext(LineProgress(doing, noun, self._lines))
        from collidecli.pages.progress import frame_progress

        return frame_progress(console(sys.stderr), doing, before, noun)

    def batch_progress(
        self, episodes: Mapping[int, int]
    ) -> AbstractContextManager[BatchProgress | None]:
        """A bar of a batch; lines if stderr is no terminal, None with --quiet. episodes: that are
        left, of each shard."""
        if self.quiet:
            return nullcontext()
        from collidecli.pages.progress import BatchProgress, batch_progress

        if not sys.stderr.isatty():
            return nullcontext(BatchProgress(LineBar(self._lines), episodes))
        return batch_progress(console(sys.stderr), episodes)

    @contextmanager
    def live(
        self,
    ) -> Iterator[Callable[[Result, Callable[[Mapping[str, Any]], RenderableType]], None] | None]:
        """A function that shows a result in place of the one before; None if stdout is no terminal,
        and with --json."""
        if self.quiet or self.json or not sys.stdout.isatty():
            yield None
            return
        from rich.live import Live

        with Live(console=console(sys.stdout), auto_refresh=False, transient=True) as area:
            yield lambda result, table: area.update(
                table(printable_values(result.as_dict())), refresh=True
            )

    def flush(self) -> None:
        """Flushes stdout. Raises ClosedPipeError, OutputError."""
        with unbroken_pipe():
            sys.stdout.flush()


def _kernel_warnings() -> Sequence[str]:
    """Warnings about compiled kernels; without an import of the engine, which many verbs do not
    use."""
    module = sys.modules.get("collidecli.engine.runtime.kernel_cache")
    return () if module is None else module.kernel_cache_notes()


def console(stream: TextIO) -> Console:
    """A rich console on a stream, without markup, so that names from files are printed
    unchanged."""
    from rich.console import Console

    width = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() else int(width) if width.isdecimal() and int(width) else WIDE
    return Console(
        file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False
    )


def _print(table: RenderableType) -> None:
    out = console(sys.stdout)
    if out.is_terminal:
        out.print(table)
    else:
        with out.capture() as captured:
            out.print(table)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))
    sys.stdout.flush()


def streams_of(ctx: click.Context) -> Streams:
    """The streams of this call of `collide`."""
    return ctx.ensure_object(Streams)


def error_json(error: CollideError, code: int) -> str:
    """The object collide.error/1 of an error, as JSON. code: the exit code."""
    return json.dumps({"schema": "collide.error/1", "error": error_parts(error, code)})


def error_parts(error: CollideError, code: int) -> dict[str, Any]:
    """The parts of an error in results as JSON. code: the exit code."""
    return {
        "what": error.what,
        "where": error.where,
        "fix": error.fix,
        "message": str(error),
        "exit_code": code,
    }
