"""Terminal table of a packed problem."""

from __future__ import annotations

from rich.table import Table

from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import name_value_table
from collidecli.pages.written import written_line
from collidecli.wording import plural


def pack_table(result: ResultDict) -> Table:
    """Table of collide.engine_pack/1."""
    shapes = plural(result["shapes"], "shape")
    pairs = plural(result["pairs"], "pair")
    packed = f"{shapes}, {pairs} in {plural(result['cells'], 'cell')}"
    return name_value_table([("scene", result["scene"]), ("packed", packed), written_line(result)])
