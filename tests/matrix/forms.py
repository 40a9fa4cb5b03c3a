"""What meets what: the eleven forms of the matrix, of about unit size, and the solids that they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.heightfields import rough
from tests.support.meshes import blob
from tests.support.supports import HULL, hull_faces

VOXELS = 32
"""Along the longest side of a shape with a signed distance field."""
BAND = 0.4
"""How far from its surface such a field is kept, of the size."""
DENTED = blob(np.random.default_rng(8), 6, 8, 0.4)
"""A closed mesh that is not convex."""
TERRAIN = rough(4, 5, 6)
HULL_SIZE = (0.6, 0.7, 0.5)
ROUND = (HULL * HULL_SIZE, hull_faces())
"""A closed mesh that is convex."""


@dataclass(frozen=True, eq=False)
class Form:
    """A shape type, and what else tells it apart. size: of a convex one, as `ShapeType` has it.

    mesh: vertices and triangles of the closed surface of one that is not convex by its type.
    """

    name: str
    type: ShapeType
    size: tuple[float, ...] = ()
    mesh: tuple[np.ndarray, np.ndarray] | None = None
    has_field: bool = False

    @property
    def is_convex(self) -> bool:
        return self.mesh is None

    @property
    def full_size(self) -> np.ndarray:
        return np.array([*self.size, 0.0, 0.0, 0.0][:3])

    @property
    def max_separation(self) -> float:
        """How far it goes from its origin; half the size for a plane."""
        if self.mesh is not None:
            return float(np.linalg.norm(self.mesh[0], axis=1).max())
        return 0.5 if self.type == ShapeType.PLANE else float(np.linalg.norm(self.size))

    @property
    def voxel(self) -> float:
        """Side of a voxel of its field."""
        assert self.mesh is not None
        return float(np.ptp(self.mesh[0], axis=0).max()) / VOXELS

    def add(self, builder: ModelBuilder, scale: float, gap: float) -> int:
        """Adds it to a body of its own, `scale` times as large."""
        body = builder.add_body()
        cfg = ShapeConfig(gap=gap)
        if self.has_field:
            cfg = ShapeConfig(gap=gap, sdf_max_resolution=VOXELS, sdf_narrow_band_range=(-BAND * scale, BAND * scale))
        if self.type == ShapeType.HEIGHTFIELD:
            terrain = TERRAIN.scaled(scale)
            return builder.add_shape_heightfield(body, terrain.heights, terrain.hx, terrain.hy, terrain.base, cfg=cfg)
        if self.mesh is not None:
            return builder.add_shape_mesh(body, scale * self.mesh[0], self.mesh[1], cfg=cfg)
        if self.type == ShapeType.CONVEX_MESH:
            return builder.add_shape_convex_hull(body, scale * HULL * self.size, cfg=cfg)
        return builder.add_shape(body, self.type, [scale * s for s in self.size], cfg=cfg)


FORMS = (
    Form("plane", ShapeType.PLANE),
    Form("sphere", ShapeType.SPHERE, (0.5,)),
    Form("capsule", ShapeType.CAPSULE, (0.3, 0.5)),
    Form("box", ShapeType.BOX, (0.6, 0.4, 0.3)),
    Form("cylinder", ShapeType.CYLINDER, (0.4, 0.5)),
    Form("cone", ShapeType.CONE, (0.5, 0.5)),
    Form("ellipsoid", ShapeType.ELLIPSOID, (0.7, 0.5, 0.3)),
    Form("convex mesh", ShapeType.CONVEX_MESH, HULL_SIZE),
    Form("triangle mesh", ShapeType.MESH, mesh=DENTED),
    Form("heightfield", ShapeType.HEIGHTFIELD, mesh=TERRAIN.solid()),
    Form("mesh with an SDF", ShapeType.MESH, mesh=DENTED, has_field=True),
)
CONVEX_AS_TRIANGLES = Form("convex triangle mesh", ShapeType.MESH, mesh=ROUND)
CELLS = tuple((a, b) for i, a in enumerate(FORMS) for b in FORMS[i:])
"""Every unordered pair."""
