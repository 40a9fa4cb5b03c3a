"""Columns of the numbers of differences by kind."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from collidecli.analysis.differences import KINDS
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column
from collidecli.wording import count


def kind_columns(counts: Callable[[ResultDict], ResultDict] = lambda row: row) -> list[Column]:
    """Columns of the numbers of differences by kind; 0 is empty. counts: of a row."""

    def number(row: ResultDict, kind: str) -> str:
        return count(counts(row)[kind]) if counts(row)[kind] else ""

    return [(kind, "right", partial(number, kind=kind)) for kind in KINDS]
