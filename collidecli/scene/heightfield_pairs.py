"""Pairs with a heightfield that no room answers for."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

REFUSED = {
    ShapeType.PLANE: "a heightfield does not meet planes, which are infinite",
    ShapeType.HEIGHTFIELD: "two heightfields do not meet",
}


def refuse_heightfield_pairs(model: Model) -> None:
    """Raises InputError for the first heightfield and plane or other heightfield that may touch."""
    types, pair_filter = model.shapes.type, model.pair_filter
    if not model.heightfields:
        return
    excluded = {(int(a), int(b)) for a, b in pair_filter.excluded}
    forced = {(int(a), int(b)) for a, b in pair_filter.forced}
    for template in range(int(model.world_template.max()) + 1):
        rows = model.template_shapes(template)
        others = rows[np.isin(types[rows], [int(kind) for kind in REFUSED])]
        for field in rows[types[rows] == ShapeType.HEIGHTFIELD].tolist():
            for other in others[others != field].tolist():
                pair = (min(field, other), max(field, other))
                allowed = pair_filter.class_table[pair_filter.shape_class[field], pair_filter.shape_class[other]]
                if pair in forced or (allowed and pair not in excluded):
                    names = " and ".join(f"'{model.shapes.path[row]}'" for row in pair)
                    kind = ShapeType(int(types[other]))
                    what = f"a heightfield and a {kind.label.replace('_', ' ')} may touch: {REFUSED[kind]}"
                    raise InputError(what, names, "filter the pair, or make the other shape convex")
