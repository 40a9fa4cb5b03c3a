"""Contact patches: sums over the faces of each pair, and the rows of /hydro_patches and /hydro_faces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells
from collidecli.engine.contacts.compaction import offset_in_body
from collidecli.engine.contacts.reduction import BIN_COUNT, DIRECTION_COUNT, bin_directions, bin_normals
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.pairs import HydroPair, first_of_pair
from collidecli.engine.hydroelastic.polytopes import HydroFace, PatchSums, with_face, with_sums
from collidecli.engine.runtime.kernel import kernel
from collidecli.numerics.matrices import cross, dot, norm
from collidecli.scene.tables import HYDRO_FACES, HYDRO_PATCHES, KIND_PATCH, GroupRows


@wp.struct
class HydroPatch:
    """Sums over a pair's faces, in the world: see `HYDRO_PATCHES`."""

    face_count: int
    area: Real
    force: Vec3
    center: Vec3
    torque: Vec3
    depth: Real


@wp.func
def patch_of(pair: HydroPair, sums: PatchSums) -> HydroPatch:
    """The patch of a pair, in the world."""
    result = HydroPatch()
    result.face_count = sums.face_count
    result.area = sums.area
    result.depth = sums.depth
    if sums.face_count > 0:
        center = sums.area_moment / sums.area
        if sums.pressure > Real(0.0):
            center = sums.pressure_moment / sums.pressure
        rotation = wp.transform_get_rotation(pair.world)
        result.torque = wp.quat_rotate(rotation, sums.torque - wp.cross(center, sums.force))
        result.force = wp.quat_rotate(rotation, sums.force)
        result.center = wp.transform_point(pair.world, center)
    return result


@kernel
def sum_faces(hydro: wp.array[HydroPair], face: wp.array[HydroFace], count: int, patch: wp.array[HydroPatch]):
    """One thread a pair: its patch, by sums in the order of the faces."""
    thread = wp.tid()
    sums = PatchSums()
    for k in range(first_of_pair(face, count, thread), first_of_pair(face, count, thread + 1)):
        sums = with_face(sums, face[k])
    patch[thread] = patch_of(hydro[thread], sums)


@kernel
def sum_parts(hydro: wp.array[HydroPair], part: wp.array[PatchSums], count: int, patch: wp.array[HydroPatch]):
    """One thread a pair: its patch, by sums in the order of its parts; unchanged if it has none."""
    thread = wp.tid()
    first = first_of_pair(part, count, thread)
    end = first_of_pair(part, count, thread + 1)
    if first == end:
        return
    sums = PatchSums()
    for k in range(first, end):
        sums = with_sums(sums, part[k])
    patch[thread] = patch_of(hydro[thread], sums)


@kernel
def move_faces(hydro: wp.array[HydroPair], face: wp.array[HydroFace]):
    """One thread a face: its normal in the world, and in `area_moment` its centroid in the world."""
    thread = wp.tid()
    if face[thread].count > 0:
        world = hydro[face[thread].pair].world
        face[thread].area_moment = wp.transform_point(world, face[thread].area_moment / face[thread].area)
        rotation = wp.transform_get_rotation(world)
        face[thread].normal = wp.quat_rotate(rotation, face[thread].normal)
        face[thread].pressure_slope = wp.quat_rotate(rotation, face[thread].pressure_slope)


def patch_rows(
    patch: np.ndarray,
    row0: np.ndarray,
    row1: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
    torque_error: np.ndarray | None,
) -> GroupRows:
    """The rows of /hydro_patches. patch: `HydroPatch` of every pair. cell: of every pair, within the block.

    torque_error: of the reduced contacts of every pair [N m]; None without them.
    """
    kept = np.flatnonzero(patch["face_count"] > 0)
    held = patch[kept]
    columns = {name: held[name] + 0.0 for name in ("area", "force", "torque", "depth")}
    columns |= {"shape0": row0[kept], "shape1": row1[kept], "face_count": held["face_count"].copy()}
    columns["center"] = held["center"].astype(float_type) + np.zeros(1, float_type)
    columns["torque_error"] = np.zeros(len(kept)) if torque_error is None else torque_error[kept]
    ordered = {column.name: columns[column.name] for column in HYDRO_PATCHES.columns}
    return GroupRows(np.bincount(cell[kept], minlength=cell_count).astype(np.int64), ordered)


def joined_faces(lists: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The existing faces of several lists ordered by pair, and their corners, each pair's in the order of its list."""
    faces = [face[face["count"] > 0] for face, _ in lists]
    face = np.concatenate(faces)
    corner_pair = np.repeat(face["pair"], face["count"])
    vertices = np.concatenate([vertex for _, vertex in lists])[np.argsort(corner_pair, kind="stable")]
    return face[np.argsort(face["pair"], kind="stable")], vertices


def face_rows(
    patch: np.ndarray, face: np.ndarray, vertices: np.ndarray, cell: np.ndarray, cell_count: int, float_type: np.dtype
) -> GroupRows:
    """The rows of /hydro_faces, from `HydroFace` in the world and their corners, both ordered by pair."""
    number = np.cumsum(patch["face_count"] > 0) - 1
    columns = {
        "patch": number[face["pair"]].astype(np.int64),
        "centroid": face["area_moment"].astype(float_type),
        "area": face["area"].copy(),
        "normal": face["normal"].astype(np.float32),
        "pressure": face["pressure"] / face["area"],
        "separation": face["separation"].copy(),
        "gradient": face["gradient"].copy(),
    }
    columns = {column.name: columns[column.name] for column in HYDRO_FACES.columns}
    columns = {name: values + np.zeros(1, values.dtype) for name, values in columns.items()}  # -0 becomes 0
    counts = np.bincount(cell[face["pair"]], minlength=cell_count).astype(np.int64)
    vertices = vertices.astype(float_type) + np.zeros(1, float_type)
    return GroupRows(counts, columns, {"vertices": (face["count"].astype(np.int64), vertices)})


@kernel
def find_offsets(
    rows: ShapeRows,
    chunk: ChunkCells,
    cell: wp.array[wp.int32],
    row: wp.array[wp.int32],
    point: wp.array[Vec3],
    offset: wp.array[wp.vec3f],
):
    """One thread a point: its place in the frame of its shape's body; in the world for a static shape."""
    thread = wp.tid()
    offset[thread] = offset_in_body(rows, chunk, cell[thread], row[thread], point[thread]) + wp.vec3f()


# Reduced contacts of hydroelastic patches: a few points that have the patch's total force.
#
# Each face is cut into triangles around its centroid. The triangles of a patch are grouped by the direction of their
# normal, and by the quadrant around the group's centre of pressure. A group is one contact: at its centre of pressure,
# along its force, with stiffness times depth equal to the force. The forces of all contacts add up to that of the
# patch; their moment differs by the parts of the groups' moments along their own forces, which vanish for flat groups.

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
