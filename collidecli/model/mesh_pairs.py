"""Pairs of triangle meshes, which nothing answers for yet."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.model.model import Model
from collidecli.model.shape_types import ShapeType


def refuse_mesh_pairs(model: Model) -> None:
    """Raises InputError for the first two triangle meshes that may touch."""
    pair_filter = model.pair_filter
    excluded = {(int(a), int(b)) for a, b in pair_filter.excluded}
    forced = {(int(a), int(b)) for a, b in pair_filter.forced}
    is_mesh = model.shapes.type == ShapeType.MESH
    for template in range(int(model.world_template.max()) + 1):
        rows = model.template_shapes(template)
        rows = rows[is_mesh[rows]]
        for place, first in enumerate(rows.tolist()):
            others = rows[place + 1 :]
            may = pair_filter.class_table[pair_filter.shape_class[first], pair_filter.shape_class[others]]
            for second in others[may | np.isin(others, [b for a, b in forced if a == first])].tolist():
                if (first, second) not in excluded or (first, second) in forced:
                    names = " and ".join(f"'{model.shapes.path[row]}'" for row in (first, second))
                    fix = "filter the pair, or make one of them convex: meshes do not collide with meshes yet"
                    raise InputError("two triangle meshes may touch", names, fix)
