"""Reader of contact maps, `format = "collide-contact-map"`: distances of the vertices of shapes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.array_files import VERSION
from collidecli.storage.attribute_rules import (
    AttributeRule,
    json_object,
    one_of,
    refuse_attributes,
    sha256,
    sha256_or_empty,
    text,
    version,
)
from collidecli.storage.h5_files import exact_texts, format_of
from collidecli.storage.process_activity import reading

MAP_FORMAT = "collide-contact-map"
FIX = "give a file of collide probe --vertices-of PATTERN -o FILE"
RULES = (
    AttributeRule("", "format_version", version(VERSION[0])),
    AttributeRule("", "creator", text),
    AttributeRule("", "kind", one_of(("vertices", "points", "rays"))),
    AttributeRule("", "scene_sha256", sha256),
    AttributeRule("", "trajectory_sha256", sha256_or_empty),
    AttributeRule("", "config", json_object),
)
KINDS = {"distance": "f", "point": "f", "point_shape": "i", "time": "f", "step": "i"}
"""Kind of NumPy's type of each array that is read."""


@dataclass(frozen=True)
class ContactMap:
    """An open contact map of vertices of F frames and W worlds.

    path: of the file. scene_sha256, trajectory_sha256: of scene and recording. threshold: of
    `/near` [m]; None without it. point: float64[V, 3], in the frame of its body [m]. point_shape:
    int64[V], rows of shape_path. time: float64[F] [s]. step: int64[F].
    """

    path: str
    scene_sha256: str
    trajectory_sha256: str
    threshold: float | None
    point: np.ndarray
    point_shape: np.ndarray
    shape_path: tuple[str, ...]
    time: np.ndarray
    step: np.ndarray
    world_count: int
    _distance: h5py.Dataset

    def distance(self, first: int, last: int, world: int) -> np.ndarray:
        """float32[last - first, V]: distances of frames first to last - 1 in a world [m]."""
        with reading("contact map", self.path):
            return np.asarray(self._distance[first:last, world], np.float32)


def contact_map_of(file: h5py.File, name: str) -> ContactMap:
    """The contact map of vertices in an open file. Raises InputError for a file that is none."""
    if format_of(file) != MAP_FORMAT:
        raise InputError("is no contact map", name, FIX)
    refuse_attributes(file, RULES, name, FIX)
    if (kind := str(file.attrs["kind"])) != "vertices":
        raise InputError(f"has {kind}, not the vertices of shapes", name, FIX)
    arrays = {array: _dataset(file, array, name) for array in (*KINDS, "shape_path")}
    paths = arrays["shape_path"]
    if h5py.check_string_dtype(paths.dtype) is None or paths.ndim != 1:
        raise InputError("is not a list of strings", f"{name}: /shape_path", FIX)
    for array, kind in KINDS.items():
        if arrays[array].dtype.kind != kind:
            raise InputError(f"has the type {arrays[array].dtype}", f"{name}: /{array}", FIX)
    if arrays["distance"].ndim != 3:
        raise InputError("has not the axes of frames, worlds and points", f"{name}: /distance", FIX)
    frames, worlds, points = arrays["distance"].shape
    shapes = {"point": (points, 3), "point_shape": (points,), "time": (frames,), "step": (frames,)}
    for array, shape in shapes.items():
        if arrays[array].shape != shape:
            what = f"has the shape {list(arrays[array].shape)}, and {list(shape)} is expected"
            raise InputError(what, f"{name}: /{array}", FIX)
    values = {array: np.asarray(arrays[array][()]) for array in shapes}
    shape_path = exact_texts(paths[()], f"{name}: /shape_path")
    rows = values["point_shape"].astype(np.int64)
    if len(rows) and not 0 <= rows.min() <= rows.max() < len(shape_path):
        raise InputError("has rows that /shape_path does not have", f"{name}: /point_shape", FIX)
    if not np.isfinite(values["point"]).all():
        raise InputError("has values that are not finite", f"{name}: /point", FIX)
    return ContactMap(
        name,
        str(file.attrs["scene_sha256"]),
        str(file.attrs["trajectory_sha256"]),
        _threshold(json.loads(str(file.attrs["config"]))),
        values["point"].astype(np.float64),
        rows,
        shape_path,
        values["time"].astype(np.float64),
        values["step"].astype(np.int64),
        worlds,
        arrays["distance"],
    )


def _threshold(config: dict[str, object]) -> float | None:
    value = config.get("threshold")
    if isinstance(value, (int, float)) and math.isfinite(value) and value > 0.0:
        return float(value)
    return None


def _dataset(file: h5py.File, array: str, name: str) -> h5py.Dataset:
    dataset = file.get(array)
    if not isinstance(dataset, h5py.Dataset):
        raise InputError("is missing", f"{name}: /{array}", FIX)
    return dataset
