"""Options of the sizes of engines' buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from collidecli.analysis.buffer_margin import DEFAULT_MARGIN
from collidecli.cli.settings import option
from collidecli.cli.shared_options import together
from collidecli.cli.value_types import Number

SIZES = (
    "Count the greatest numbers of candidates, pairs and contacts, and show the sizes of buffers of"
    " MuJoCo Warp, Newton, Isaac Lab and Genesis that follow."
)
MARGIN = Number("factor", "factor", "factor of at least 1", lambda value: value >= 1.0)


def size_options(section: str) -> Callable:
    """A decorator that adds --sizes and --size-margin."""
    return together(
        option("--sizes", is_flag=True, section=section, help=SIZES),
        option(
            "--size-margin",
            type=MARGIN,
            section=section,
            help=f"Of the advised sizes over the bounds. [default: {DEFAULT_MARGIN:g}]",
        ),
    )


def size_margin_of(values: Mapping[str, Any]) -> float:
    """The value of --size-margin. Raises UsageError where it is given without --sizes."""
    if values["size_margin"] is None:
        return DEFAULT_MARGIN
    if not values["sizes"]:
        raise click.UsageError("--size-margin is of --sizes, which is not given.")
    return values["size_margin"]
