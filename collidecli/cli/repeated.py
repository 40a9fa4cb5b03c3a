"""Options that may be repeated; in a variable or in collide.toml their values are separated by commas."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from collidecli.cli.option_types import NameList
from collidecli.cli.settings import VerbOption


class _Names(NameList):
    def split_envvar_value(self, rv: str) -> Sequence[str]:
        return [rv]


class _Repeated(VerbOption):
    def type_cast_value(self, ctx: click.Context, value: Any) -> tuple[str, ...]:
        found = super().type_cast_value(ctx, (value,) if isinstance(value, str) else value)
        return tuple(name for names in found or () for name in names)


def repeated(*names: str, metavar: str, section: str, help: str) -> Callable:
    """A decorator that adds a repeatable option of one verb; its value is a tuple of texts."""
    attributes: dict[str, Any] = {"type": _Names(), "multiple": True, "metavar": metavar, "help": help}
    return click.option(*names, cls=_Repeated, section=section, **attributes)
