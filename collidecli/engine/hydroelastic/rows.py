"""Rows of /hydro_patches and /hydro_faces."""

from __future__ import annotations

import numpy as np

from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.contact_columns import HYDRO_FACES, HYDRO_PATCHES


def patch_rows(
    patch: np.ndarray,
    row0: np.ndarray,
    row1: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
    torque_error: np.ndarray | None,
) -> GroupRows:
    """The rows of /hydro_patches. patch: `HydroPatch` of every pair. cell: of every pair, within
    the block. torque_error: of the reduced contacts of every pair [N m]; None without them."""
    kept = np.flatnonzero(patch["face_count"] > 0)
    rows = patch[kept]
    columns = {name: rows[name] + 0.0 for name in ("area", "force", "torque", "depth")}
    columns |= {"shape0": row0[kept], "shape1": row1[kept], "face_count": rows["face_count"].copy()}
    columns["center"] = rows["center"].astype(float_type) + np.zeros(1, float_type)
    columns["torque_error"] = np.zeros(len(kept)) if torque_error is None else torque_error[kept]
    ordered = {column.name: columns[column.name] for column in HYDRO_PATCHES.columns}
    return GroupRows(np.bincount(cell[kept], minlength=cell_count).astype(np.int64), ordered)


def joined_faces(lists: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The existing faces of several lists ordered by pair, and their corners, each pair's in the
    order of its list."""
    faces = [face[face["count"] > 0] for face, _ in lists]
    face = np.concatenate(faces)
    corner_pair = np.repeat(face["pair"], face["count"])
    vertices = np.concatenate([vertex for _, vertex in lists])[
        np.argsort(corner_pair, kind="stable")
    ]
    return face[np.argsort(face["pair"], kind="stable")], vertices


def face_rows(
    patch: np.ndarray,
    face: np.ndarray,
    vertices: np.ndarray,
    cell: np.ndarray,
    cell_count: int,
    float_type: np.dtype,
) -> GroupRows:
    """The rows of /hydro_faces, from `HydroFace` in the world and their corners, both ordered by
    pair."""
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
    columns = {
        name: values + np.zeros(1, values.dtype) for name, values in columns.items()
    }  # -0 becomes 0
    counts = np.bincount(cell[face["pair"]], minlength=cell_count).astype(np.int64)
    vertices = vertices.astype(float_type) + np.zeros(1, float_type)
    return GroupRows(counts, columns, {"vertices": (face["count"].astype(np.int64), vertices)})
