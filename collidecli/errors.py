"""Typed errors: each says what is wrong, where, and what to do, and carries its exit code."""

from __future__ import annotations


class CollideError(Exception):
    """An error meant for a person.

    Args:
        what: what is wrong, one sentence without a full stop at its end.
        where: the file, prim path, XML element, dataset and frame; empty when there is no place.
        fix: what to do about it; empty when `what` says it all.
    """

    exit_code = 2

    def __init__(self, what: str, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.where, self.fix = what, where, fix

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{self.what}" + (f"\n  {self.fix}" if self.fix else "")


class InputError(CollideError):
    """An input that cannot be used: a scene, a trajectory, a contact set or an option's value."""


class OutputError(CollideError):
    """An output that cannot be written."""

    exit_code = 3


class Interrupted(CollideError):
    """The run was stopped by a signal; nothing was left behind."""

    exit_code = 130
