"""Output of the command line: results on stdout; progress, warnings and errors on stderr."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import click

from collidecli.errors import CollideError, OutputError
from collidecli.scene.options import CHART_FORMATS
from collidecli.texts import did_you_mean, one_line, printable, printable_values

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from collidecli.commands.results import Result
    from collidecli.report.progress import BatchProgress, FrameProgress
    from collidecli.report.tables import Verdict


INTERNAL_ERROR = 70
"""EX_SOFTWARE in sysexits.h; different from 1, a failed check, and from 2, an unusable input."""
WIDE = 100_000
"""Width of a table that is written to a file or a pipe, unless COLUMNS is exported: nothing is folded [columns]."""


class ClosedPipeError(CollideError):
    """The reader of the output has closed the pipe; no message is printed."""

    exit_code = 3


class Streams:
    """Output options of a verb. quiet: no tables, warnings or progress. json: one object in place of tables.

    verbose: a traceback with an error. is_stopping: whether a signal has ended this call of `collide`.
    """

    def __init__(self) -> None:
        self.verbose = self.quiet = self.json = False
        self.is_stopping: Callable[[], bool] = lambda: False
        self._is_json_printed = False
        self._printed_warnings: set[str] = set()

    def prepare(self) -> None:
        """Replaces closed streams by the null device and escapes characters that the encoding of a stream lacks."""
        sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the program ends
        sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")

    def result(self, result: Result, table: Callable[[Mapping[str, Any]], RenderableType]) -> None:
        """Prints the warnings of a verb's result, and the result as JSON or as the table that `table` returns."""
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
        """Prints an error on stderr and, with --json and without a result, as an object on stdout; returns `code`."""
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
        """Prints warnings about compiled kernels, each once: they are of the process, not of one of its results."""
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
    ) -> Iterator[FrameProgress | None]:
        """A progress bar, as a function of the frames done and of all frames; None if stderr is no terminal.

        before: description of the work before the first frame. noun: what is counted. kernels: whether it shows the
        kernels that are compiled.
        """
        if self.quiet or not sys.stderr.isatty():
            yield None
            return
        from collidecli.report.progress import frame_progress

        with frame_progress(console(sys.stderr), doing, before, noun) as advance:
            if not kernels:
                yield advance
                return
            from collidecli.engine.runtime.kernel import reported_compilation

            with reported_compilation(advance.compiling):
                yield advance

    def batch_progress(self, episodes: Mapping[int, int]) -> AbstractContextManager[BatchProgress | None]:
        """A bar of a batch; None if stderr is no terminal. episodes: that are left, of each shard."""
        if self.quiet or not sys.stderr.isatty():
            return nullcontext()
        from collidecli.report.progress import batch_progress

        return batch_progress(console(sys.stderr), episodes)

    @contextmanager
    def live(self) -> Iterator[Callable[[Result, Callable[[Mapping[str, Any]], RenderableType]], None] | None]:
        """A function that shows a result in place of the one before; None if stdout is no terminal, and with --json."""
        if self.quiet or self.json or not sys.stdout.isatty():
            yield None
            return
        from rich.live import Live

        with Live(console=console(sys.stdout), auto_refresh=False, transient=True) as area:
            yield lambda result, table: area.update(table(printable_values(result.as_dict())), refresh=True)

    def flush(self) -> None:
        """Flushes stdout. Raises ClosedPipeError, OutputError."""
        with unbroken_pipe():
            sys.stdout.flush()


def _kernel_warnings() -> Sequence[str]:
    """Warnings about compiled kernels; without an import of the engine, which many verbs do not use."""
    module = sys.modules.get("collidecli.engine.runtime.kernel")
    return () if module is None else module.kernel_cache_notes()


def error_json(error: CollideError, code: int) -> str:
    """The object collide.error/1 of an error, as JSON. code: the exit code."""
    return json.dumps({"schema": "collide.error/1", "error": error_parts(error, code)})


def error_parts(error: CollideError, code: int) -> dict[str, Any]:
    """The parts of an error in results as JSON. code: the exit code."""
    return {"what": error.what, "where": error.where, "fix": error.fix, "message": str(error), "exit_code": code}


def console(stream: TextIO) -> Console:
    """A rich console on a stream, without markup, so that names from files are printed unchanged."""
    from rich.console import Console

    width = os.environ.get("COLUMNS", "")
    width = None if stream.isatty() else int(width) if width.isdecimal() and int(width) else WIDE
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


@contextmanager
def unbroken_pipe() -> Iterator[None]:
    """Raises ClosedPipeError for a closed pipe and OutputError for another OSError, as of a full disk."""
    try:
        yield
    except OSError as error:
        discard_stdout()
        if isinstance(error, BrokenPipeError):
            raise ClosedPipeError("the output was closed") from None
        raise OutputError(f"cannot be written: {(error.strerror or str(error)).lower()}", "standard output") from error


def discard_stdout() -> None:
    """Redirects stdout to the null device, so that Python prints no second error when it flushes at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def exit_code_of(error: BaseException, streams: Streams) -> int:
    """Prints an error to stderr in a line or two; returns the exit code."""
    if streams.verbose and not isinstance(error, (click.ClickException, SystemExit)):
        traceback.print_exception(error)
    if isinstance(error, ClosedPipeError):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return streams.error(CollideError("interrupted"), 130)
    if isinstance(error, click.ClickException):
        what, *fixes = usage_message(error).splitlines()
        return streams.error(CollideError(what, fix="; ".join(fix.strip() for fix in fixes)), 2)
    if isinstance(error, SystemExit):
        # Click exits this way after a completion, and when the pipe is closed while it prints help.
        return 0 if error.code in (0, None) else ClosedPipeError.exit_code
    return streams.error(*described_error(error, streams.verbose))


def described_error(error: BaseException, verbose: bool) -> tuple[CollideError, int]:
    """An exception of a verb as an error for the user, and its exit code. verbose: whether its traceback is printed."""
    if isinstance(error, CollideError):
        return error, error.exit_code
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        discard_stdout()
        full = OutputError(f"an output cannot be written: {(error.strerror or str(error)).lower()}")
        return full, full.exit_code
    if isinstance(error, MemoryError):
        fix = "lower --memory-limit or --threads, or split the input"
        return CollideError("there is not enough memory", fix=fix), 2
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    advice = "" if verbose else "please report it with the output of this command with -v"
    return CollideError(f"internal error: {what}", fix=advice), INTERNAL_ERROR


def usage_message(error: click.ClickException) -> str:
    """Click's message, the source of a value that is not from the command line, and a hint to --help."""
    text = error.format_message()
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return text
    param = getattr(error, "param", None)
    given = re.search(r"'([^']*)' is not one of", text)
    if given is not None and isinstance(param, click.Option) and isinstance(param.type, click.Choice):
        hint = did_you_mean(given[1], [str(choice) for choice in param.type.choices], "")
        text += f"\n  {hint}" if hint else ""
    if param is not None and (source := source_of(param, ctx)):
        text += f"\n  the value is from {source}"
    return f"{text}\n  {ctx.command_path} --help shows the options"


def source_of(param: click.Parameter, ctx: click.Context) -> str:
    """The configuration file or environment variable that has set a parameter; "" for a flag or a default."""
    source = ctx.get_parameter_source(param.name or "")
    if source == click.core.ParameterSource.DEFAULT_MAP:
        return str(ctx.meta["collide.config"])
    if source != click.core.ParameterSource.ENVIRONMENT:
        return ""
    own_variable = f"{ctx.auto_envvar_prefix}_{str(param.name).upper()}"
    named = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    return next((name for name in (*named, own_variable) if name in os.environ), "an environment variable")


# Outputs of a verdict for CI, and checks of output paths.


@dataclass(frozen=True)
class Pages:
    """Outputs of a verdict. junit_xml, markdown: files, None is none. github: print annotations to stderr."""

    junit_xml: str | None
    markdown: str | None
    github: bool
    force: bool

    def write(self, verdict: Verdict) -> None:
        """Writes the requested pages and prints the requested annotations."""
        from collidecli.commands.results import write_output

        if self.junit_xml is not None:
            write_output(self.junit_xml, verdict.junit_xml(), self.force)
        if self.markdown is not None:
            write_output(self.markdown, verdict.markdown.encode(), self.force)
        for line in verdict.annotations() if self.github else ():
            print(line, file=sys.stderr)


def check_outputs(
    outputs: Mapping[str, str | None], names: str, force: bool, inputs: Iterable[str | None]
) -> dict[str, str]:
    """The requested outputs by name. names: of the options of all, for errors.

    Raises the errors of `check_output`, and UsageError for two outputs of one path.
    """
    from collidecli.commands.results import check_output

    inputs, given = tuple(inputs), {name: path for name, path in outputs.items() if path is not None}
    for path in given.values():
        check_output(path, force, inputs)
    if len(set(given.values())) < len(given):
        raise click.UsageError(f"{names} have one path")
    return given


# Charts of a verb's result.


def check_chart(path: str, force: bool, inputs: Iterable[str | None]) -> None:
    """Raises InputError for another extension than those of charts and without matplotlib, OutputError."""
    from collidecli.commands.results import check_ending, check_output
    from collidecli.report.charts import require_matplotlib

    check_ending(path, tuple(f".{chart_format}" for chart_format in CHART_FORMATS), "a chart")
    check_output(path, force, inputs)
    require_matplotlib()


def write_chart(path: str, result: Mapping[str, Any], kind: str, force: bool, **style: Any) -> None:
    """Writes a chart of `report.charts.PAGE_KINDS`. style: theme and width of the file."""
    from collidecli.commands.results import write_output
    from collidecli.report.charts import chart_file

    form = os.path.splitext(path)[1].lower().removeprefix(".")
    write_output(path, chart_file(result, kind, form, **style), force)
