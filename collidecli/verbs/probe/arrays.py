"""The values of all points or rays of a motion as NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.exporters.dense_columns import dense_dataset, dense_rows
from collidecli.html_tables import html_table
from collidecli.motions.probes import ProbedMotion

if TYPE_CHECKING:
    import pandas
    import xarray


@dataclass(frozen=True, repr=False)
class ProbeArrays:
    """Distances of points, or crossings of rays, of a motion: F frames, W worlds, P points.

    distance: float[F, W, P], less margins for points, along the ray for rays [m]; infinite without
    a shape or a crossing, NaN where a world does not have the point; float32 of vertices, else
    float64. shape: int32[F, W, P], rows of shape_path, -1 for none. near: bool[F, W, P], whether a
    point is within the threshold; None without one. hit: bool[F, W, P], whether a ray crosses a
    shape. normal: float64[F, W, P, 3], unit outward normal there in the world, NaN for none. hit
    and normal are None for points. point: float64[P, 3], in the frame of its body, or of the world
    [m]. time: float64[F] [s]. shape_path: of the model's shapes.
    """

    distance: np.ndarray
    shape: np.ndarray
    point: np.ndarray
    time: np.ndarray
    shape_path: tuple[str, ...]
    near: np.ndarray | None = None
    hit: np.ndarray | None = None
    normal: np.ndarray | None = None

    def __repr__(self) -> str:
        frames, worlds, points = self.distance.shape
        return f"<ProbeArrays frames={frames} worlds={worlds} points={points}>"

    def _repr_html_(self) -> str:
        return html_table(
            dict(zip(("frames", "worlds", "points"), self.distance.shape, strict=True))
        )

    @property
    def _further(self) -> dict[str, np.ndarray]:
        """The arrays beside distance and shape that there are."""
        arrays = {"near": self.near, "hit": self.hit, "normal": self.normal}
        return {name: values for name, values in arrays.items() if values is not None}

    def _axes(self) -> list[dict[str, np.ndarray]]:
        frames, worlds, points = self.distance.shape
        return [
            {"frame": np.arange(frames), "time": self.time},
            {"world": np.arange(worlds)},
            {"point": np.arange(points)},
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each frame, world and point that has a shape or a crossing, with `shape` as a
        path.

        Raises InputError without pandas.
        """
        paths = np.array(self.shape_path, object)
        arrays = {"shape": paths[self.shape], "distance": self.distance, **self._further}
        return dense_rows(self._axes(), arrays, self.shape >= 0).to_pandas()

    def to_xarray(self) -> xarray.Dataset:
        """The arrays over the dimensions frame, world and point.

        Raises InputError without xarray.
        """
        arrays = {"distance": self.distance, "shape": self.shape, **self._further}
        return dense_dataset(("frame", "world", "point"), self._axes(), arrays, {"distance": "m"})


def joined_arrays(probed: ProbedMotion, blocks: Sequence[Mapping[str, np.ndarray]]) -> ProbeArrays:
    """The arrays of all blocks of a motion. blocks: of `MapArrays.values`."""
    arrays = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    paths = tuple(probed.model.shapes.path)
    return ProbeArrays(
        **arrays, point=probed.probes.point, time=probed.motion.time, shape_path=paths
    )
