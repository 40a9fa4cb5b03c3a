"""Messages and exit codes of the errors of verbs."""

from __future__ import annotations

import errno
import os
import re
import traceback
from typing import TYPE_CHECKING

import click

from collidecli.cli.pipes import ClosedPipeError, discard_stdout
from collidecli.errors import CollideError, OutputError
from collidecli.exit_codes import INTERNAL_ERROR, INTERRUPTED, SUCCESS, UNUSABLE_INPUT
from collidecli.process_limits import limit_error
from collidecli.wording import did_you_mean

if TYPE_CHECKING:
    from collidecli.cli.streams import Streams

NO_TEMPORARY = "No usable temporary directory"
"""Begin of the message of Python's `tempfile`."""

MOST_VERBS = 3
"""Verbs that are named for an option that the given one does not have."""


def exit_code_of(error: BaseException, streams: Streams) -> int:
    """Prints an error to stderr in a line or two; returns the exit code."""
    if streams.verbose and not isinstance(error, (click.ClickException, SystemExit)):
        traceback.print_exception(error)
    if isinstance(error, ClosedPipeError):
        return error.exit_code
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return streams.error(CollideError("interrupted"), INTERRUPTED)
    if isinstance(error, click.ClickException):
        what, *fixes = usage_message(error).splitlines()
        return streams.error(
            CollideError(what, fix="; ".join(fix.strip() for fix in fixes)), UNUSABLE_INPUT
        )
    if isinstance(error, SystemExit):
        # Click exits this way after a completion, and when the pipe is closed while it prints help.
        return SUCCESS if error.code in (0, None) else ClosedPipeError.exit_code
    return streams.error(*described_error(error, streams.verbose))


def described_error(error: BaseException, verbose: bool) -> tuple[CollideError, int]:
    """An exception of a verb as an error for the user, and its exit code. verbose: whether its
    traceback is printed."""
    limit = limit_error(error)
    if limit is not None:
        return limit, limit.exit_code
    if isinstance(error, CollideError):
        return error, error.exit_code
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        discard_stdout()
        full = OutputError(f"an output cannot be written: {(error.strerror or str(error)).lower()}")
        return full, full.exit_code
    if isinstance(error, FileNotFoundError) and NO_TEMPORARY in str(error):
        what = "no folder of temporary files can be written to"
        unwritable = OutputError(what, fix="set TMPDIR to one that can")
        return unwritable, unwritable.exit_code
    if isinstance(error, MemoryError):
        fix = "lower --memory-limit or --threads, or split the input"
        return CollideError("there is not enough memory", fix=fix), UNUSABLE_INPUT
    lines = str(error).strip().splitlines()
    what = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    advice = "" if verbose else "please report it with the output of this command with -v"
    return CollideError(f"internal error: {what}", fix=advice), INTERNAL_ERROR


def usage_message(error: click.ClickException) -> str:
    """Click's message, the source of a value that is not from the command line, and a hint to
    --help."""
    text = error.format_message()
    ctx = getattr(error, "ctx", None)
    if ctx is None:
        return text
    if isinstance(error, click.NoSuchOption) and not error.possibilities:
        text += _verbs_with(error.option_name, ctx)
    param = getattr(error, "param", None)
    given = re.search(r"'([^']*)' is not one of", text)
    if (
        given is not None
        and isinstance(param, click.Option)
        and isinstance(param.type, click.Choice)
    ):
        hint = did_you_mean(given[1], [str(choice) for choice in param.type.choices], "")
        text += f"\n  {hint}" if hint else ""
    if param is not None and (source := source_of(param, ctx)):
        text += f"\n  the value is from {source}"
    return f"{text}\n  {ctx.command_path} --help shows the options"


def _verbs_with(option: str, ctx: click.Context) -> str:
    """A line that names the verbs that have an option; "" if none has it, or more than a few."""
    from collidecli.cli.settings import verbs_of

    words = [
        words
        for words, verb in verbs_of(ctx).items()
        if any(isinstance(one, click.Option) and option in one.opts for one in verb.params)
    ]
    if not 0 < len(words) <= MOST_VERBS:
        return ""
    return f"\n  {option} is an option of {' and of '.join(f'collide {name}' for name in words)}"


def source_of(param: click.Parameter, ctx: click.Context) -> str:
    """The configuration file or environment variable that has set a parameter; "" for a flag or a
    default."""
    source = ctx.get_parameter_source(param.name or "")
    if source == click.core.ParameterSource.DEFAULT_MAP:
        return str(ctx.meta["collide.config"])
    if source != click.core.ParameterSource.ENVIRONMENT:
        return ""
    own_variable = f"{ctx.auto_envvar_prefix}_{str(param.name).upper()}"
    named = [param.envvar] if isinstance(param.envvar, str) else list(param.envvar or ())
    return next(
        (name for name in (*named, own_variable) if name in os.environ), "an environment variable"
    )
