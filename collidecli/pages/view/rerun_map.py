"""A contact map in a recording of Rerun: a mesh for each measured shape, with a texture of a pixel
for each of its points, which changes over time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from collidecli.pages.view.contact_map import MapTriangles, ViewMap, level_colours
from collidecli.scene.distinct_values import distinct

WIDEST = 1024
"""Greatest width of a texture [pixels]."""


class MappedShape:
    """A measured shape. points: int64[n], its points that have triangles, among those of
    `MapTriangles.points`.

    The corners of a triangle have one place in the texture, the middle of a pixel, so that the
    triangle has one colour.
    """

    def __init__(self, triangles: MapTriangles, row: int) -> None:
        own = triangles.row == row
        self.points, pixel = np.unique(triangles.point[own], return_inverse=True)
        self._corner = triangles.corner[own].reshape(-1, 3)
        self.width = min(len(self.points), WIDEST)
        self.height = math.ceil(len(self.points) / self.width)
        line, column = np.divmod(pixel.reshape(-1), self.width)
        middle = np.stack([(column + 0.5) / self.width, (line + 0.5) / self.height], axis=1)
        self._texcoord = np.repeat(middle, 3, axis=0).astype(np.float32)

    def mesh(self, rr: Any) -> Any:
        """The mesh in the frame of the shape, without the texture's pixels."""
        rgb = rr.components.ImageFormat(
            self.width, self.height, color_model="RGB", channel_datatype=rr.ChannelDatatype.U8
        )
        return rr.Mesh3D.from_fields(
            vertex_positions=self._corner,
            triangle_indices=np.arange(len(self._corner), dtype=np.uint32).reshape(-1, 3),
            vertex_texcoords=self._texcoord,
            albedo_texture_format=rgb,
        )

    def pixels(self, levels: np.ndarray) -> np.ndarray:
        """uint8[n, height * width * 3]: the texture in frames. levels: uint8[n, K] of the points of
        `MapTriangles.points`."""
        colours = np.array(level_colours(), np.uint8)
        pixels = np.zeros((len(levels), self.height * self.width, 3), np.uint8)
        pixels[:, : len(self.points)] = colours[levels[:, self.points]]
        return pixels.reshape(len(levels), -1)


def mapped_shapes(shown: ViewMap, template: int) -> dict[int, MappedShape]:
    """The measured shapes of a template that have triangles, by their rows."""
    triangles = shown.of_template(template)
    return {row: MappedShape(triangles, row) for row in distinct(triangles.row).tolist()}
