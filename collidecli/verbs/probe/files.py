"""Contact maps, distances of points and crossings of rays as HDF5 and NPZ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.exporters.array_npz import arrays_npz
from collidecli.exporters.arrays import episode_arrays
from collidecli.motions.probes import ProbeBlock, ProbedMotion
from collidecli.pages.view.map_file import MAP_FORMAT
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import arrays_h5
from collidecli.storage.atomic_output import AtomicOutput

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
    with arrays_npz(output, path, MAP_FORMAT, about, tables, dense) as append:
        yield lambda block: append(arrays.values(block))


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
