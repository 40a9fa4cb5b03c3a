"""What is printed where: results on stdout; progress, warnings and errors on stderr."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO

import click

from collidecli.errors import CollideError, OutputError, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

INTERNAL_ERROR = 70
"""sysexits.h calls it EX_SOFTWARE: neither 1, which is a check's honest answer, nor a fault of the input."""
WIDE = 100_000
"""Columns of a table that goes into a file or a pipe: nothing is folded."""


class ClosedPipeError(CollideError):
    """Whoever read the output has gone; there is nobody to tell."""

    exit_code = 3


class Streams:
    """How a verb speaks. quiet: no tables, warnings or progress. json: one object in place of tables.

    verbose: tracebacks with errors.
    """

    def __init__(self) -> None:
        self.verbose = self.quiet = self.json = False

    def prepare(self) -> None:
        """Lets a terminal of another encoding show what it can rather than fail, and a closed stream swallow all."""
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - for as long as the program runs
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    def result(self, facts: Mapping[str, Any], table: Callable[[Mapping[str, Any]], RenderableType]) -> None:
        """Prints a verb's result, as the object itself or as the table that `table` makes of it."""
        with unbroken_pipe():
            if self.json:
                print(json.dumps(facts, allow_nan=False), flush=True)
            elif not self.quiet:
                _print(table(spoken(facts)))

    def warn(self, text: str) -> None:
        if not self.quiet:
            print(f"warning: {printable(one_line(text))}", file=sys.stderr)

    @contextmanager
    def progress(self, doing: str, before: str = "") -> Iterator[Callable[[int, int], None] | None]:
        """A progress bar on a terminal, as a function of frames done and in all; None where there is no terminal.

        before: what is done until the first frame is.
        """
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from collidecli.report.progress import frame_progress

        with frame_progress(console(sys.stderr), doing, before) as advance:
            yield advance

    def flush(self) -> None:
        with unbroken_pipe():
            sys.stdout.flush()


def console(stream: TextIO) -> Console:
    """A rich console on a stream: names from files are printed as they are, never read as markup."""
    from rich.console import Console

    width = None if stream.isatty() else WIDE
    return Console(file=stream, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def _print(table: RenderableType) -> None:
    out = console(sys.stdout)
    if out.is_terminal:
        out.print(table)
    else:
        with out.capture() as captured:
            out.print(table)
        print("\n".join(line.rstrip() for line in captured.get().splitlines()))
    sys.stdout.flush()


def printable(text: str) -> str:
    """`text` with control characters spelled out: a name in a file must not steer the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def spoken(facts: Any) -> Any:
    """Facts whose texts, names in files among them, are `printable` and of one line."""
    if isinstance(facts, str):
        return facts if facts.isprintable() else printable(one_line(facts, most=len(facts)))
    if isinstance(facts, Mapping):
        return {spoken(key): spoken(value) for key, value in facts.items()}
    return [spoken(value) for value in facts] if isinstance(facts, (list, tuple)) else facts


@contextmanager
def unbroken_pipe() -> Iterator[None]:
    """Turns a closed pipe into ClosedPipeError, a full disk into OutputError."""
    try:
        yield
    except OSError as error:
        give_up_stdout()
        if isinstance(error, BrokenPipeError):
            raise ClosedPipeError("the output was closed") from None
        raise OutputError(f"cannot be written: {(error.strerror or str(error)).lower()}", "standard output") from error


def give_up_stdout() -> None:
    """Keeps Python from complaining once more, at its end, of what it could not write."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code_of(error: BaseException, streams: Streams) -> int:
    """Says on stderr what went wrong, in a line or two; returns the exit code."""
    if streams.verbose and not isinstance(error, (click.ClickException, SystemExit)):
        traceback.print_exception(error)
    if isinstance(error, ClosedPipeError):
        return error.exit_code
    if isinstance(error, CollideError):
        return _said(str(error), error.exit_code)
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return _said("interrupted", 130)
    if isinstance(error, click.ClickException):
        return _said(usage_message(error), 2)
    if isinstance(error, SystemExit):
        # Click leaves so when the pipe that it prints help to is closed.
        return ClosedPipeError.exit_code
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        give_up_stdout()
        return _said(f"an output cannot be written: {(error.strerror or str(error)).lower()}", OutputError.exit_code)
    if isinstance(error, MemoryError):
        return _said("there is not enough memory\n  lower --memory-limit or --threads, or split the input", 2)
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    advice = "" if streams.verbose else "\n  please report it with what the same command prints with -v"
    return _said(f"internal error: {what}{advice}", INTERNAL_ERROR)


def usage_message(error: click.ClickException) -> str:
    """Click's words, where the value came from when that was not the command line, and where to read more."""
    text = error.format_message()
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return text
    param = getattr(error, "param", None)
    if param is not None and param.name:
        source = ctx.get_parameter_source(param.name)
        if source == click.core.ParameterSource.DEFAULT_MAP:
            text += f"\n  the value is from {ctx.meta.get('collide.config', 'the configuration file')}"
        elif source == click.core.ParameterSource.ENVIRONMENT:
            text += f"\n  the value is from {_variable_of(param, ctx)}"
    return f"{text}\n  {ctx.command_path} --help says more"


def _variable_of(param: click.Parameter, ctx: click.Context) -> str:
    """The variable that has set a parameter, by its name."""
    own = f"{ctx.auto_envvar_prefix}_{str(param.name).upper()}"
    named = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    return next((name for name in (*named, own) if name in os.environ), "an environment variable")


def _said(text: str, code: int) -> int:
    with suppress(OSError):
        print(f"error: {printable(text)}", file=sys.stderr, flush=True)
    return code
