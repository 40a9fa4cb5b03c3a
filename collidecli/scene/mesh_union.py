"""Union of overlapping or touching bodies of one closed mesh, by the library Manifold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from collidecli.scene.connected_parts import connected_parts
from collidecli.scene.distinct_values import distinct, numbered
from collidecli.scene.mesh_crossings import crossed_triangles
from collidecli.scene.mesh_edges import (
    bodies_of,
    boxes_of,
    containment,
    edges_of,
    is_balanced,
    volumes_of,
)
from collidecli.scene.mesh_repair import RepairedMesh, has_area

MERGED = 1e-12
"""Fraction of the volume that a union must remove to be accepted, unless it reduces the number of
bodies."""


def united(mesh: RepairedMesh) -> RepairedMesh:
    """The mesh with the union of its overlapping bodies; the argument itself if it is open, or no
    bodies overlap.

    `bodies_of` defines the bodies; a cavity belongs to its enclosing body. A group of overlapping
    solids is unchanged if a surface crosses itself, or if Manifold rejects it. Triangles of other
    bodies come first, unchanged; those of each union follow, in the order of their vertices; new
    vertices of a union follow the old ones.
    """
    face = mesh.face
    if not len(face):
        return mesh
    edges = edges_of(face)
    if not is_balanced(face, edges):
        return mesh
    label = bodies_of(mesh.vertex, face, edges)
    count = int(label.max()) + 1
    if count == 1:
        return mesh
    low, high = boxes_of(mesh.vertex, face, label)
    overlaps = _overlapping_boxes(low, high)
    if not len(overlaps):
        return mesh
    near = np.zeros(count, bool)
    near[overlaps.reshape(-1)] = True
    rows = np.flatnonzero(near[label])
    groups, simple = _groups(mesh.vertex, face[rows], label[rows], count)
    vertex = mesh.vertex
    kept = np.ones(len(face), bool)
    added = []
    joined = 0
    for group in groups:
        if not all(simple[body] for solid in group for body in solid):
            continue
        parts = [face[np.isin(label, solid)] for solid in group]
        made = _union(mesh.vertex, parts)
        if made is None:
            continue
        points, triangles = made
        # Vertices of the union that are not among the mesh's own follow them.
        known = {
            row.tobytes(): number
            for number, row in reversed(list(enumerate(vertex[: len(mesh.vertex)])))
        }
        number = np.array([known.get(row.tobytes(), -1) for row in points], np.int64)
        new = np.flatnonzero(number < 0)
        number[new] = len(vertex) + np.arange(len(new))
        vertex = np.concatenate([vertex, points[new]])
        triangles = number[triangles]
        added.append(triangles)
        kept &= ~np.isin(label, [body for solid in group for body in solid])
        joined += len(group)
    if not joined:
        return mesh
    return RepairedMesh(
        vertex, np.concatenate([face[kept], *added]), replace(mesh.repairs, united=joined)
    )


def _overlapping_boxes(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """int64[n, 2]: pairs of bodies whose AABBs overlap."""
    order = np.argsort(low[:, 0], kind="stable")
    pairs = []
    for index, body in enumerate(order):
        stop = (
            index
            + 1
            + int(np.searchsorted(low[order[index + 1 :], 0], high[body, 0], side="right"))
        )
        others = order[index + 1 : stop]
        overlap = ((low[others] <= high[body]) & (low[body] <= high[others])).all(axis=1)
        pairs += [(int(body), int(other)) for other in others[overlap]]
    return np.array(pairs, np.int64).reshape(-1, 2)


def _groups(
    vertex: np.ndarray, face: np.ndarray, label: np.ndarray, count: int
) -> tuple[list[list[list[int]]], np.ndarray]:
    """Groups of solids that cross, touch or contain each other; and bool[bodies], True for a
    surface without self-intersection. A solid is a body and its cavities."""
    pairs = crossed_triangles(vertex, face)
    first = label[pairs[:, 0]]
    second = label[pairs[:, 1]]
    simple = np.ones(count, bool)
    simple[first[first == second]] = False
    labels = distinct(label)
    number = np.searchsorted(labels, label)
    inside = np.zeros((count, count), np.int64)
    inside[np.ix_(labels, labels)] = containment(vertex, face, number)
    volume = np.zeros(count)
    volume[labels] = volumes_of(vertex, face, number)
    owner = np.arange(count)
    for body in labels[volume[labels] < 0.0]:
        holders = labels[(inside[body, labels] > 0) & (volume[labels] > 0.0)]
        if len(holders):
            owner[body] = holders[np.argmin(volume[holders])]
    # A point in a cavity is inside the outer body, and outside the solid.
    held_by = np.zeros((count, count), np.int64)
    np.add.at(held_by.T, owner, inside.T)
    links = np.concatenate([np.stack([first, second], axis=1), np.argwhere(held_by > 0)])
    links = owner[links]
    links = links[links[:, 0] != links[:, 1]]
    group = connected_parts(links[:, 0], links[:, 1], count)
    members: dict[int, dict[int, list[int]]] = {}
    for body in labels.tolist():
        members.setdefault(int(group[owner[body]]), {}).setdefault(int(owner[body]), []).append(
            body
        )
    return [list(solids.values()) for solids in members.values() if len(solids) > 1], simple


def _union(vertex: np.ndarray, solids: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of the union of solids, each given by its triangles; None for a
    rejected union.

    The result is sorted, so that it does not depend on the scheduling of Manifold's threads.
    Source: github.com/elalish/manifold; Smith 2009 for the guarantee that the result is manifold.
    """
    import manifold3d

    parts: list[Any] = []
    for face in solids:
        used, number = numbered(face)
        points = np.ascontiguousarray(vertex[used])
        part = manifold3d.Manifold(
            manifold3d.Mesh64(points, number.reshape(-1, 3).astype(np.uint64))
        )
        if part.status() != manifold3d.Error.NoError or part.is_empty():
            return None
        parts.append(part)
    whole = manifold3d.Manifold.batch_boolean(parts, manifold3d.OpType.Add)
    if whole.status() != manifold3d.Error.NoError or whole.is_empty():
        return None
    mesh = whole.to_mesh64()
    points, face = _sorted(
        np.asarray(mesh.vert_properties, np.float64)[:, :3], np.asarray(mesh.tri_verts, np.int64)
    )
    kept = has_area(points, face)
    if not kept.all() or not edges_of(face).is_manifold:
        return None
    before = [
        float(volumes_of(vertex, solid, np.zeros(len(solid), np.int64))[0]) for solid in solids
    ]
    after = float(volumes_of(points, face, np.zeros(len(face), np.int64))[0])
    slack = MERGED * sum(before)
    if not max(before) - slack <= after <= sum(before) + slack:
        return None
    parts_before = sum(int(bodies_of(vertex, solid, edges_of(solid)).max()) + 1 for solid in solids)
    parts_after = int(bodies_of(points, face, edges_of(face)).max()) + 1
    if after >= sum(before) - slack and parts_after >= parts_before:
        return None
    return points, face


def _sorted(vertex: np.ndarray, face: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct vertices sorted by coordinates, and triangles sorted by vertices, each from its
    lowest vertex."""
    points, number = numbered(vertex + 0.0, axis=0)
    face = number[face]
    turn = np.argmin(face, axis=1)
    rows = np.arange(len(face))
    face = np.stack([face[rows, (turn + k) % 3] for k in range(3)], axis=1)
    return points, face[np.lexsort(face.T[::-1])]
