"""Measures of overlaps beside the depth: the volume of the intersection, and the depth of the
deepest point."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np

from collidecli.analysis.overlap_volume import surface_of
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.collision import prepare_collision
from collidecli.motions.timing import TimingReport
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import SOFT_CONTACTS
from collidecli.scene.model import Model
from collidecli.scene.motion import RestingMotion
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.storage.process_activity import reading
from collidecli.verbs.audit.sources import AuditSource

NO_VOLUME = {
    "overlap_volume": None,
    "overlap_volume_error": None,
    "overlap_note": "particles have no volume",
}
NO_POINT = {"deepest_point": None, "deepest_point_error": None}
"""Measures of a pair with a particle object."""


def measure_overlaps(
    source: AuditSource, pairs: list[dict[str, Any]], volume: bool, point: bool
) -> None:
    """Adds measures of the overlap in each pair's deepest frame, without margins: overlap_volume
    [m^3] and deepest_point [m], each with the bound of its error, and overlap_note, the reason if
    there is no volume. A pair with a particle object has neither: both are None.
    """
    if not (volume or point) or source.loaded is None or source.motion is None:
        return
    from collidecli.analysis.overlap_volume import overlap_volume
    from collidecli.verbs.audit.overlap import deepest_point

    model = source.loaded.model
    named = zip(model.shapes.template.tolist(), model.shapes.path, strict=True)
    row = {key: number for number, key in enumerate(named)}
    items = source.shapes
    objects = {items.names.text[item] for item in np.flatnonzero(items.is_object).tolist()}
    for pair in pairs:
        if objects & {pair["shape0"], pair["shape1"]}:
            pair.update(NO_VOLUME if volume else {})
            pair.update(NO_POINT if point else {})
            continue
        template = int(model.world_template[pair["world"]])
        names = pair["shape0"], pair["shape1"]
        shape0, shape1 = (
            row[(template, name) if (template, name) in row else (-1, name)] for name in names
        )
        with reading("motion"):
            bodies = source.motion.read(range(pair["frame"], pair["frame"] + 1))[0]
        poses = model.placed_shapes(bodies, pair["world"])
        if volume:
            overlap = overlap_volume(model, poses, shape0, shape1)
            pair["overlap_volume"] = None if overlap.reason else overlap.volume
            pair["overlap_volume_error"] = None if overlap.reason else overlap.error
            pair["overlap_note"] = overlap.reason
        if point:
            pair["deepest_point"], pair["deepest_point_error"] = deepest_point(
                model, poses, shape0, shape1
            )


def deepest_point(model: Model, poses: np.ndarray, shape0: int, shape1: int) -> tuple[float, float]:
    """The greatest depth of a point of either surface below the other one, without margins, and the
    bound of its error where a surface is round [m].

    poses: float64[S, 7], xyzw, of the shapes in world. A surface is a cloth of its triangles, which
    the engine's search for the least distance of triangles measures (docs/adr/0098); the other
    shape is itself. A round surface is replaced by triangles with corners on it, which it is
    nowhere farther from than the error. Planes have no points.
    """
    deepest = 0.0, 0.0
    for surface, solid in ((shape0, shape1), (shape1, shape0)):
        if model.shapes.type[surface] == ShapeType.PLANE:
            continue
        vertex, face, error = surface_of(model, surface)
        to_solid = compose_poses(inverse_poses(poses[solid]), poses[surface])
        placed = np.zeros((len(vertex), 7))
        placed[:, :3] = vertex
        placed[:, 6] = 1.0
        depth = _depth(model, solid, compose_poses(to_solid, placed)[:, :3], face)
        if depth > deepest[0]:
            deepest = depth, error
    return deepest


def _depth(model: Model, row: int, vertex: np.ndarray, face: np.ndarray) -> float:
    """Greatest depth of triangles in the frame of a shape below its surface [m]."""
    builder = ModelBuilder()
    shapes = model.shapes
    kind = ShapeType(shapes.type[row])
    if kind == ShapeType.CONVEX_MESH:
        hull = model.hulls[shapes.hull[row]]
        builder.add_shape_convex_hull(-1, hull, _back(hull.center))
    elif kind == ShapeType.MESH:
        mesh = model.meshes[shapes.mesh[row]]
        builder.add_shape_mesh(-1, mesh, xform=_back(mesh.center))
    elif kind == ShapeType.HEIGHTFIELD:
        field = model.heightfields[shapes.heightfield[row]]
        builder.add_shape_heightfield(-1, field, xform=_back((0.0, 0.0, field.center)))
    else:
        builder.add_shape(-1, kind, shapes.size[row][: SIZE_COUNT[kind]].tolist())
    builder.add_cloth_mesh(vertices=vertex, indices=face, particle_radius=0.0)
    placed = builder.finalize()
    motion = RestingMotion(placed.bodies.pose[None])
    options = ContactOptions(soft_gap=0.0).checked()
    engine = EngineOptions(device="cpu").checked()
    timing = TimingReport()
    device = find_device("cpu")
    collision = prepare_collision(placed, motion, options, engine, device, timing, reads=())
    with closing(collision.blocks(timing)) as blocks:
        distances = [block.groups[SOFT_CONTACTS.name].columns["distance"] for block in blocks]
    return max(0.0, -float(np.concatenate(distances).min(initial=0.0)))


def _back(center: np.ndarray | tuple[float, float, float]) -> tuple[float, ...]:
    """The pose that moves a shape's centre, about which its vertices are given, to the origin."""
    x, y, z = (-float(coordinate) for coordinate in center)
    return x, y, z, 0.0, 0.0, 0.0, 1.0
