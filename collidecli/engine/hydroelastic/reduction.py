"""Reduced contacts of hydroelastic patches: a few points that have the patch's total force.

Each face is cut into triangles around its centroid. The triangles of a patch are grouped by the direction of their
normal, and by the quadrant around the group's centre of pressure. A group is one contact: at its centre of pressure,
along its force, with stiffness times depth equal to the force. The forces of all contacts add up to that of the patch;
their moment differs by the parts of the groups' moments along their own forces, which vanish for flat groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.engine.contacts.direction_bins import BIN_COUNT, DIRECTION_COUNT, bin_directions, bin_normals
from collidecli.numerics.matrices import cross, dot, norm
from collidecli.scene.contacts import KIND_PATCH

QUADRANTS = 4


@dataclass(frozen=True)
class ReducedContacts:
    """Contacts of patches, ordered by patch, then by group. pair: int64[n], number of the hydroelastic pair.

    point, normal: float64[n, 3], world. distance: float32[n] [m], negative. stiffness [N/m], area [m^2]: float64[n].
    feature: int32[n], number of the group. torque_error: float64[pairs] [N m].
    """

    pair: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    distance: np.ndarray
    stiffness: np.ndarray
    area: np.ndarray
    feature: np.ndarray
    torque_error: np.ndarray


@dataclass(frozen=True)
class _Triangles:
    """Triangles of faces. force: integral of the pressure [N]; moment: of pressure times position. depth: of the
    separation times pressure. normal: of the face."""

    pair: np.ndarray
    area: np.ndarray
    force: np.ndarray
    moment: np.ndarray
    depth: np.ndarray
    normal: np.ndarray


def reduced_contacts(patch: np.ndarray, face: np.ndarray, vertex: np.ndarray) -> ReducedContacts:
    """The contacts of patches.

    patch: `HydroPatch` of each pair. face: `HydroFace` of existing faces ordered by pair, in the world. vertex: their
    corners in the world, float64[total, 3].
    """
    triangles = _triangles(patch, face, vertex)
    bins = _nearest_bins(triangles.normal)
    key = triangles.pair * BIN_COUNT + bins
    group = _numbered(key)
    center = _sums(group, triangles.moment) / _sums(group, triangles.force)[:, None]
    axes = bin_directions().reshape(BIN_COUNT, DIRECTION_COUNT, 3)[bins, 0]
    off = triangles.moment / triangles.force[:, None] - center[group]
    right = dot(off, axes) > 0.0
    up = dot(off, cross(bin_normals()[bins], axes)) > 0.0
    key = key * QUADRANTS + 2 * right + up
    group = _numbered(key)
    first = np.unique(key, return_index=True)[1]
    force = _sums(group, triangles.force[:, None] * triangles.normal)
    size = norm(force)
    pressure = _sums(group, triangles.force)
    local = _sums(group, triangles.moment) / pressure[:, None]
    distance = (_sums(group, triangles.depth) / pressure).astype(np.float32)
    pair = triangles.pair[first]
    torque = np.zeros((len(patch), 3))
    for axis in range(3):
        torque[:, axis] = np.bincount(pair, cross(local, force)[:, axis], len(patch))
    kept = (size > 0.0) & (distance < 0.0)
    return ReducedContacts(
        pair=pair[kept],
        point=(patch["center"][pair] + local)[kept],
        normal=force[kept] / size[kept, None],
        distance=distance[kept],
        stiffness=size[kept] / -distance[kept].astype(np.float64),
        area=_sums(group, triangles.area)[kept],
        feature=(key[first] % (BIN_COUNT * QUADRANTS))[kept].astype(np.int32),
        torque_error=norm(torque - patch["torque"]),
    )


def _nearest_bins(normal: np.ndarray) -> np.ndarray:
    """int64[n]: the bin of each normal; of equally near ones the first."""
    best = np.full(len(normal), -np.inf)
    bins = np.zeros(len(normal), np.int64)
    for number, axis in enumerate(bin_normals()):
        cosine = dot(normal, axis)
        bins[cosine > best] = number
        best = np.maximum(best, cosine)
    return bins


def _triangles(patch: np.ndarray, face: np.ndarray, vertex: np.ndarray) -> _Triangles:
    """The triangles of all faces around their centroids that have pressure, relative to the patch's centre."""
    counts = face["count"].astype(np.int64)
    of = np.repeat(np.arange(len(face)), counts)
    start = np.cumsum(counts) - counts
    following = np.arange(len(of)) + 1
    last = start + counts - 1
    following[last] = start
    center = patch["center"][face["pair"]]
    corner = vertex - center[of]
    middle = (face["area_moment"] - center)[of]
    mean = (face["pressure"] / face["area"])[of]
    places = (middle, corner, corner[following])
    pressures = [np.maximum(mean + dot(face["pressure_slope"][of], place - middle), 0.0) for place in places]
    area = 0.5 * norm(cross(places[1] - middle, places[2] - middle))
    total = pressures[0] + pressures[1] + pressures[2]
    middles = places[0] + places[1] + places[2]
    weighted = sum((p[:, None] * (place + middles) for p, place in zip(pressures, places, strict=True)), start=0.0)
    force = area * total / 3.0
    # The separation is proportional to the pressure within the rounding of one face, so its own mean is used.
    depth = force * face["separation"][of]
    kept = np.flatnonzero(force > 0.0)
    moment = area[:, None] / 12.0 * weighted
    return _Triangles(
        face["pair"][of][kept].astype(np.int64), area[kept], force[kept], moment[kept], depth[kept],
        face["normal"][of][kept],
    )  # fmt: skip


def _numbered(key: np.ndarray) -> np.ndarray:
    """Index of each key among the distinct keys, ascending."""
    return np.unique(key, return_inverse=True)[1]


def _sums(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of each group's values, one after the other in their order."""
    count = int(group.max()) + 1 if len(group) else 0
    if values.ndim == 1:
        return np.bincount(group, values, count)
    return np.stack([np.bincount(group, values[:, k], count) for k in range(values.shape[1])], axis=1)


def contact_columns(contacts: ReducedContacts, margin: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of /rigid_contacts without shapes and offsets; points in float64.

    margin: float64[pairs], sum of both shapes' margins [m]: the points are on the surfaces without margins.
    """
    between = contacts.distance.astype(np.float64) + margin[contacts.pair]
    half = 0.5 * between[:, None] * contacts.normal
    return {
        "distance": contacts.distance,
        "normal": contacts.normal.astype(np.float32) + np.float32(0.0),
        "point0": contacts.point - half,
        "point1": contacts.point + half,
        "feature0": contacts.feature,
        "feature1": contacts.feature,
        "kind": np.full(len(contacts.pair), KIND_PATCH, np.uint8),
        "stiffness": contacts.stiffness,
        "area": contacts.area,
    }
