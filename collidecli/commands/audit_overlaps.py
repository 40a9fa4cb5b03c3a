"""Measures of overlaps beside the depth: the volume of the intersection, and the depth of the deepest point."""

from __future__ import annotations

from typing import Any

from collidecli.commands.audit_sources import AuditSource
from collidecli.storage.process_activity import reading


def measure_overlaps(source: AuditSource, pairs: list[dict[str, Any]], volume: bool, point: bool) -> None:
    """Adds measures of the overlap in each pair's deepest frame, without margins: overlap_volume [m^3] and
    deepest_point [m], each with the bound of its error, and overlap_note, the reason if there is no volume.
    """
    if not (volume or point) or source.loaded is None or source.motion is None:
        return
    from collidecli.analysis.overlap_volume import overlap_volume
    from collidecli.commands.deepest_point import deepest_point

    model = source.loaded.model
    named = zip(model.shapes.template.tolist(), model.shapes.path, strict=True)
    row = {key: number for number, key in enumerate(named)}
    for one in pairs:
        template = int(model.world_template[one["world"]])
        names = one["shape0"], one["shape1"]
        shape0, shape1 = (row[(template, name) if (template, name) in row else (-1, name)] for name in names)
        with reading("motion"):
            bodies = source.motion.read(range(one["frame"], one["frame"] + 1))[0]
        poses = model.placed_shapes(bodies, one["world"])
        if volume:
            found = overlap_volume(model, poses, shape0, shape1)
            one["overlap_volume"] = None if found.reason else found.volume
            one["overlap_volume_error"] = None if found.reason else found.error
            one["overlap_note"] = found.reason
        if point:
            deepest = deepest_point(model, poses, shape0, shape1)
            one["deepest_point"], one["deepest_point_error"] = deepest.depth, deepest.error
