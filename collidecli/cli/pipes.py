"""Pipes that the reader of an output closes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from collidecli.errors import CollideError, OutputError
from collidecli.exit_codes import UNWRITABLE_OUTPUT


class ClosedPipeError(CollideError):
    """The reader of the output has closed the pipe; no message is printed."""

    exit_code = UNWRITABLE_OUTPUT


def discard_stdout() -> None:
    """Redirects stdout to the null device, so that Python prints no second error when it flushes at
    exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def unbroken_pipe() -> Iterator[None]:
    """Raises ClosedPipeError for a closed pipe and OutputError for another OSError, as of a full
    disk."""
    try:
        yield
    except OSError as error:
        discard_stdout()
        if isinstance(error, BrokenPipeError):
            raise ClosedPipeError("the output was closed") from None
        raise OutputError(
            f"cannot be written: {(error.strerror or str(error)).lower()}", "standard output"
        ) from error
