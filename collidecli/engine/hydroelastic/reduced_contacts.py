"""Reduced contacts of hydroelastic patches: a few points that have the patch's total force.

Each face is cut into triangles around its centroid. The triangles of a patch are grouped by the
direction of their normal, and by the quadrant around the group's centre of pressure. A group is one
contact: at its centre of pressure, along its force, with stiffness times depth equal to the force.
The forces of all contacts add up to that of the patch; their moment differs by the parts of the
groups' moments along their own forces, which vanish for flat groups.
"""

from __future__ import annotations

import numpy as np

from collidecli.engine.reduction_directions import (
    BIN_COUNT,
    DIRECTION_COUNT,
    bin_directions,
    bin_normals,
)
from collidecli.numerics.products import cross, dot, norm
from collidecli.scene.contact_columns import KIND_PATCH

QUADRANTS = 4


def reduced_contacts(
    patch: np.ndarray, face: np.ndarray, vertex: np.ndarray, margin: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """The contacts of patches, ordered by patch, then by group: int64[n], number of the
    hydroelastic pair of each; columns of /rigid_contacts without shapes and offsets, with points in
    float64; and float64[pairs], torque error of each pair [N m].

    patch: `HydroPatch` of each pair. face: `HydroFace` of existing faces ordered by pair, in the
    world. vertex: their corners in the world, float64[total, 3]. margin: float64[pairs], sum of
    both shapes' margins [m]: the points are on the surfaces without margins.
    """
    of_pair, area, pressures, moment, depth, normal = _triangles(patch, face, vertex)
    bins = np.argmax(
        [dot(normal, axis) for axis in bin_normals()], axis=0
    )  # of equally near ones the first
    key = of_pair * BIN_COUNT + bins
    group = _numbered(key)
    center = _sums(group, moment) / _sums(group, pressures)[:, None]
    axes = bin_directions().reshape(BIN_COUNT, DIRECTION_COUNT, 3)[bins, 0]
    off = moment / pressures[:, None] - center[group]
    right = dot(off, axes) > 0.0
    up = dot(off, cross(bin_normals()[bins], axes)) > 0.0
    key = key * QUADRANTS + 2 * right + up
    group = _numbered(key)
    first = np.unique(key, return_index=True)[1]
    force = _sums(group, pressures[:, None] * normal)
    size = norm(force)
    pressure = _sums(group, pressures)
    local = _sums(group, moment) / pressure[:, None]
    distance = (_sums(group, depth) / pressure).astype(np.float32)
    pair = of_pair[first]
    torque = np.stack(
        [np.bincount(pair, values, len(patch)) for values in cross(local, force).T], axis=1
    )
    kept = (size > 0.0) & (distance < 0.0)
    point = (patch["center"][pair] + local)[kept]
    along = force[kept] / size[kept, None]
    pair = pair[kept]
    distance = distance[kept]
    between = distance.astype(np.float64)
    half = 0.5 * (between + margin[pair])[:, None] * along
    feature = (key[first] % (BIN_COUNT * QUADRANTS))[kept].astype(np.int32)
    columns = {
        "distance": distance,
        "normal": along.astype(np.float32) + np.float32(0.0),
        "point0": point - half,
        "point1": point + half,
        "feature0": feature,
        "feature1": feature,
        "kind": np.full(len(pair), KIND_PATCH, np.uint8),
        "stiffness": size[kept] / -between,
        "area": _sums(group, area)[kept],
    }
    return pair, columns, norm(torque - patch["torque"])


def _triangles(patch: np.ndarray, face: np.ndarray, vertex: np.ndarray) -> tuple[np.ndarray, ...]:
    """The triangles of all faces around their centroids that have pressure, relative to the patch's
    centre.

    Arrays of the pair, the area, the force, which is the integral of the pressure [N], the moment,
    of pressure times position, the depth, of the separation times pressure, and the normal of the
    face.
    """
    counts = face["count"].astype(np.int64)
    face_of = np.repeat(np.arange(len(face)), counts)
    start = np.cumsum(counts) - counts
    following = np.arange(len(face_of)) + 1
    last = start + counts - 1
    following[last] = start
    center = patch["center"][face["pair"]]
    corner = vertex - center[face_of]
    middle = (face["area_moment"] - center)[face_of]
    mean = (face["pressure"] / face["area"])[face_of]
    places = (middle, corner, corner[following])
    pressures = [
        np.maximum(mean + dot(face["pressure_slope"][face_of], place - middle), 0.0)
        for place in places
    ]
    area = 0.5 * norm(cross(places[1] - middle, places[2] - middle))
    total = pressures[0] + pressures[1] + pressures[2]
    middles = places[0] + places[1] + places[2]
    weighted = sum(
        (p[:, None] * (place + middles) for p, place in zip(pressures, places, strict=True)),
        start=0.0,
    )
    force = area * total / 3.0
    # The separation is proportional to the pressure within the rounding of one face, so its own
    # mean is used.
    depth = force * face["separation"][face_of]
    kept = np.flatnonzero(force > 0.0)
    moment = area[:, None] / 12.0 * weighted
    pair = face["pair"][face_of][kept].astype(np.int64)
    normal = face["normal"][face_of][kept]
    return pair, area[kept], force[kept], moment[kept], depth[kept], normal


def _numbered(key: np.ndarray) -> np.ndarray:
    """Index of each key among the distinct keys, ascending."""
    return np.unique(key, return_inverse=True)[1]


def _sums(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums of each group's values, one after the other in their order."""
    count = int(group.max()) + 1 if len(group) else 0
    if values.ndim == 1:
        return np.bincount(group, values, count)
    return np.stack(
        [np.bincount(group, values[:, k], count) for k in range(values.shape[1])], axis=1
    )
