"""Typed errors: each holds what is wrong, where, the remedy, and the exit code of the command."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from collidecli.escaping import one_line
from collidecli.exit_codes import INTERRUPTED, UNUSABLE_INPUT, UNWRITABLE_OUTPUT


class CollideError(Exception):
    """An error with a message for the user.

    Args:
        what: what is wrong, one sentence without a final full stop.
        where: the file, prim path, XML element, dataset and frame; empty where none applies.
        fix: the remedy; empty where `what` implies it.
    """

    exit_code = UNUSABLE_INPUT

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the location and the remedy too: errors of worker processes are printed by their
        parent."""
        return type(self), (self.what, self.where, self.fix)

    def __str__(self) -> str:
        """One line of location and error, and one of the remedy; names from files may contain any
        character."""
        location = f"{one_line(self.where)}: " if self.where else ""
        return f"{location}{one_line(self.what)}" + (
            f"\n  {one_line(self.fix)}" if self.fix else ""
        )


class InputError(CollideError):
    """An input that cannot be used: a scene, a trajectory, a contact set or an option's value."""


class OutputError(CollideError):
    """An output that cannot be written."""

    exit_code = UNWRITABLE_OUTPUT


class Interrupted(CollideError):
    """A signal stopped the run; no partial output remains."""

    exit_code = INTERRUPTED


class ContactsWarning(UserWarning):
    """A warning about a scene or a run, in a test with the fixture `contacts_regression`."""


@contextmanager
def located_errors(location: str) -> Iterator[None]:
    """Adds a location, such as the scene's file, to errors of inputs that do not begin with it."""
    try:
        yield
    except InputError as error:
        where = error.where if error.where.startswith(location) else f"{location}: {error.where}"
        raise InputError(error.what, where, error.fix) from error


def extra_module(package: str, extra: str, wanted_for: str, module: str = "") -> Any:
    """A module of a package of an extra, by default its main one; InputError if the package is not
    installed.

    wanted_for: the option or call that needs it.
    """
    try:
        return import_module(module or package)
    except ImportError as error:
        what = f"needs {package}, which is not installed"
        fix = f"pip install 'collidecli[{extra}]'"
        raise InputError(what, wanted_for, fix) from error
