"""How a builder of models shows itself, on a terminal and in a notebook."""

from __future__ import annotations

from collections import Counter

from collidecli.html_tables import html_table
from collidecli.scene.records import SceneRecords


class BuilderSummary:
    """The representations of a builder, of its counts, defaults and rules."""

    default_gap: float
    gap_rule: str
    up_axis: str
    source: list[str]
    _records: SceneRecords
    _world_template: list[int]

    def __repr__(self) -> str:
        records = self._records
        sizes = f"shapes={len(records.shapes)} bodies={len(records.bodies)}"
        return f"<{type(self).__name__} {sizes} worlds={len(self._world_template)}>"

    def _repr_html_(self) -> str:
        """The table that a notebook shows, every text escaped."""
        kinds = Counter(shape.type.label for shape in self._records.shapes)
        return html_table(
            {
                "source": ", ".join(self.source) or "built in Python",
                "shapes": ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none",
                "bodies": len(self._records.bodies),
                "worlds": len(self._world_template) or "one, without begin_world",
                "default gap": f"{self.default_gap:g} m",
                "gap rule": self.gap_rule,
                "up axis": self.up_axis,
            }
        )
