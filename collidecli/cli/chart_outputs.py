"""Charts of a verb's result as files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from collidecli.errors import InputError
from collidecli.scene.option_values import CHART_FORMATS

if TYPE_CHECKING:
    from collidecli.pages.chart_kinds import ChartKind


def check_chart(path: str, force: bool, inputs: Iterable[str | None]) -> None:
    """Raises InputError for another extension than those of charts and without matplotlib,
    OutputError."""
    from collidecli.pages.canvas import require_matplotlib
    from collidecli.results.outputs import check_ending, check_output

    check_ending(path, tuple(f".{chart_format}" for chart_format in CHART_FORMATS), "a chart")
    check_output(path, force, inputs)
    require_matplotlib()


def write_chart(
    path: str, result: Mapping[str, Any], kind: ChartKind, force: bool, **style: Any
) -> None:
    """Writes a chart of a result. style: theme and width of the file.

    Raises InputError for a result without the chart's data.
    """
    from collidecli.pages.chart_kinds import chart_file
    from collidecli.results.outputs import write_output

    if reason := kind.missing(result):
        raise InputError(f"the chart has nothing to show: {reason}", path, "leave it out")
    form = os.path.splitext(path)[1].lower().removeprefix(".")
    write_output(path, chart_file(result, kind, form, **style), force)
