"""Contact patches: sums over the faces of each pair, and the rows of /hydro_patches and /hydro_faces."""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells
from collidecli.engine.contacts.compaction import offset_in_body
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.hydroelastic.pairs import HydroPair
from collidecli.engine.hydroelastic.polygon import HydroFace, PatchSums, with_face, with_sums
from collidecli.engine.hydroelastic.ranges import first_of_pair
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.contact_groups import HYDRO_FACES, HYDRO_PATCHES, GroupRows


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
    patch: np.ndarray,
    face: np.ndarray,
    vertices: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
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
