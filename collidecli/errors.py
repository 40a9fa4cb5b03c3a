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
        """One line of where and what, and one of what to do: names that come from files may be anything."""
        place = f"{one_line(self.where)}: " if self.where else ""
        return f"{place}{one_line(self.what)}" + (f"\n  {one_line(self.fix)}" if self.fix else "")


class InputError(CollideError):
    """An input that cannot be used: a scene, a trajectory, a contact set or an option's value."""


class OutputError(CollideError):
    """An output that cannot be written."""

    exit_code = 3


class Interrupted(CollideError):
    """The run was stopped by a signal; nothing was left behind."""

    exit_code = 130


def one_line(text: str, most: int = 1200) -> str:
    """`text` with its line ends spelled out, and its middle left out where it has more than `most` letters."""
    if len(text) > most:
        text = f"{text[: most * 3 // 4]} ... {text[-most // 4 :]}"
    return "".join(repr(c)[1:-1] if c in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029" else c for c in text)


def missing_extra(package: str, extra: str, wanted_for: str) -> InputError:
    """What to raise where a package of an extra is not installed. wanted_for: the option or call that needs it."""
    return InputError(f"needs {package}, which is not installed", wanted_for, f"pip install 'collidecli[{extra}]'")
