"""Contact maps, distances of points and crossings of rays as HDF5 and NPZ."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.exporters.arrays import Array, episode_arrays, held, write_npz
from collidecli.motions.probes import ProbeBlock, ProbedMotion
from collidecli.pages.view.map_file import ATTRIBUTES, MAP_FORMAT
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import VERSION, arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import creator
from collidecli.storage.regular_files import open_input
from collidecli.temporary_folders import TemporaryFolder

ENDINGS = (".npz", *HDF5_ENDINGS)
Write = Callable[[ProbeBlock], None]


@dataclass(frozen=True)
class MapArrays:
    """The arrays over frames, worlds and points of a file: type, shape of an element and unit of
    each by name, and their values of a block.

    real: type of the distances. threshold: at most which a point is near [m]; None for no array.
    """

    real: np.dtype
    threshold: float | None
    of_rays: bool

    def dense(self) -> dict[str, tuple[np.dtype, tuple[int, ...], str]]:
        """Type, shape of an element and unit of each array."""
        arrays: dict[str, tuple[np.dtype, tuple[int, ...], str]] = {
            "distance": (self.real, (), "m"),
            "shape": (np.dtype(np.int32), (), ""),
        }
        if self.threshold is not None:
            arrays["near"] = (np.dtype(bool), (), "")
        if self.of_rays:
            arrays |= {"hit": (np.dtype(bool), (), ""), "normal": (self.real, (3,), "")}
        return arrays

    def values(self, block: ProbeBlock) -> dict[str, np.ndarray]:
        """The arrays of a block. A point is near by the distance that is stored."""
        values = {"distance": block.distance.astype(self.real), "shape": block.shape}
        if self.threshold is not None:
            values["near"] = values["distance"] <= self.threshold
        if block.normal is not None:
            values["hit"] = block.shape >= 0
            values["normal"] = block.normal.astype(self.real)
        return values


@contextmanager
def written_map(
    output: AtomicOutput, path: str, probed: ProbedMotion, arrays: MapArrays, about: dict[str, Any]
) -> Iterator[Write]:
    """A function that writes a block; the file is complete when the `with` block ends."""
    dense = {
        name: (kind, (*probed.shape, *element))
        for name, (kind, element, _) in arrays.dense().items()
    }
    tables = _tables(probed)
    about = {**about, "trajectory_sha256": probed.motion.sha256}
    if path.lower().endswith(HDF5_ENDINGS):
        units = {name: unit for name, (_, _, unit) in arrays.dense().items()}
        units |= {"time": "s", "point": "m"}
        with arrays_h5(output, MAP_FORMAT, about, tables, units, dense) as append:
            yield lambda block: append(block.first, arrays.values(block))
        return
    parent = os.path.dirname(os.path.abspath(path))
    with TemporaryFolder("probe", parent) as folder:
        files = {name: os.path.join(folder, name) for name in dense}
        opened = {name: open(file, "wb") for name, file in files.items()}  # noqa: SIM115
        try:

            def write(block: ProbeBlock) -> None:
                for name, values in arrays.values(block).items():
                    opened[name].write(np.ascontiguousarray(values, dense[name][0]).tobytes())

            yield write
        finally:
            for file in opened.values():
                file.close()
        tables[ATTRIBUTES] = np.array(_attributes(about))
        write_npz(output, [*_stored(files, dense), *(held(*table) for table in tables.items())])


def _stored(
    files: Mapping[str, str], dense: Mapping[str, tuple[np.dtype, tuple[int, ...]]]
) -> Iterator[Array]:
    """The arrays of the temporary files, a frame at a time."""
    for name, (kind, shape) in dense.items():

        def pieces(
            path: str = files[name], kind: np.dtype = kind, shape: tuple[int, ...] = shape
        ) -> Iterator[np.ndarray]:
            size = int(np.prod(shape[1:], dtype=np.int64))
            with open_input(path) as file:
                for _ in range(shape[0]):
                    content = file.read(size * kind.itemsize)
                    yield np.frombuffer(content, kind).reshape(1, *shape[1:])

        yield Array(name, kind, shape, pieces)


def _attributes(about: Mapping[str, Any]) -> str:
    """The attributes of a contact map as the text that an NPZ file has. about: further ones."""
    root = {"format": MAP_FORMAT, "format_version": list(VERSION), "creator": creator()}
    return json.dumps({**root, **about}, sort_keys=True)


def _tables(probed: ProbedMotion) -> dict[str, np.ndarray]:
    probes = probed.probes
    model = probed.model
    directions = {} if probes.along is None else {"direction": probes.along}
    return {
        "point": probes.point,
        **directions,
        "point_body": probes.body,
        "point_shape": probes.shape,
        "body_path": np.array(model.bodies.path or ("",), dtype=str)[: len(model.bodies.path)],
        "shape_path": np.array(model.shapes.path, dtype=str),
        "time": probed.motion.time,
        "step": probed.motion.step,
        **{array.name: next(iter(array.pieces())) for array in episode_arrays(probed.episodes)},
    }
