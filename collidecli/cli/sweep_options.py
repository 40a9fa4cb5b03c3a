"""Options of contacts between frames."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from collidecli.cli.option_types import METRES
from collidecli.cli.settings import setting


def sweep_options(command: Callable) -> Callable:
    """Adds the options of contacts between frames."""
    add = partial(setting, section="Contacts between frames")
    tolerance = "They touch at this distance or less. [default: 1e-6]"
    decorators = (
        add("--sweep", is_flag=True, help="Find the shapes, particles and elements that touch between two frames too."),
        add("--sweep-tolerance", type=METRES, help=tolerance),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command
