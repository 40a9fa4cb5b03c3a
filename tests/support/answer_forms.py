"""Shapes of the agreement tests: how each is added to a builder, and points of its features with their normals."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.feature_poses import FEATURES, FeatureSample, HullSet, sample_feature
from tests.support.heightfields import Terrain, rough, smooth
from tests.support.meshes import blob, grid, prism, torus
from tests.support.open_meshes import channel, strip, tube
from tests.support.solids import box, joined, knot

SIZES = {
    ShapeType.SPHERE: ("radius",),
    ShapeType.CAPSULE: ("radius", "half_height"),
    ShapeType.BOX: ("hx", "hy", "hz"),
    ShapeType.CYLINDER: ("radius", "half_height"),
    ShapeType.CONE: ("radius", "half_height"),
    ShapeType.ELLIPSOID: ("rx", "ry", "rz"),
}
"""Arguments of `ModelBuilder.add_shape_<kind>`."""
Mesh = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Form:
    """A shape of about unit size. size: of a primitive. mesh: triangles of the surface, in the body's frame.

    terrain: of a heightfield, whose solid `mesh` is. voxels: along the longest side, of a signed distance field.
    """

    name: str
    type: ShapeType
    size: tuple[float, ...] = ()
    mesh: Mesh | None = None
    terrain: Terrain | None = None
    two_sided: bool = True
    is_solid: bool = True
    voxels: int = 0

    def add(self, builder: ModelBuilder, body: int, scale: float, gap: float) -> int:
        """Adds the shape, `scale` times as large, with a gap of `gap` of the unit size."""
        cfg = ShapeConfig(gap=gap * scale, is_solid=self.is_solid)
        if self.voxels:
            cfg = cfg.changed(sdf_max_resolution=self.voxels, sdf_narrow_band_range=(-0.4 * scale, 0.4 * scale))
        if self.terrain is not None:
            here = self.terrain.scaled(scale)
            return builder.add_shape_heightfield(body, here.heights, here.hx, here.hy, here.base, cfg=cfg)
        if self.type == ShapeType.CONVEX_MESH:
            return builder.add_shape_convex_hull(body, scale * self.vertices, cfg=cfg)
        if self.mesh is not None:
            return builder.add_shape_mesh(body, scale * self.vertices, self.mesh[1], cfg=cfg, two_sided=self.two_sided)
        return builder.add_shape(body, self.type, [scale * one for one in self.size], cfg=cfg)

    def shape(self, scale: float) -> collidecli.Shape:
        """The shape of `collidecli.distance` and `signed_distance`."""
        if self.terrain is not None:
            here = self.terrain.scaled(scale)
            return collidecli.Shape("heightfield", heights=here.heights, hx=here.hx, hy=here.hy, base=here.base)
        if self.type == ShapeType.CONVEX_MESH:
            return collidecli.Shape("convex_hull", vertices=scale * self.vertices)
        if self.mesh is not None:
            given = {"vertices": scale * self.vertices, "faces": self.mesh[1], "two_sided": self.two_sided}
            return collidecli.Shape("mesh", **given, cfg=ShapeConfig(is_solid=self.is_solid))
        return collidecli.Shape(
            self.type.label, **{k: scale * v for k, v in zip(SIZES[self.type], self.size, strict=True)}
        )

    @property
    def vertices(self) -> np.ndarray:
        assert self.mesh is not None
        return np.asarray(self.mesh[0], np.float64)

    @property
    def corners(self) -> np.ndarray:
        """float64[F, 3, 3] of a mesh's triangles."""
        assert self.mesh is not None
        return self.vertices[np.asarray(self.mesh[1])]

    @property
    def extent(self) -> float:
        """The largest half extent."""
        if self.mesh is not None:
            return 0.5 * float(np.ptp(self.vertices, axis=0).max())
        return float(sum(self.size)) if self.type == ShapeType.CAPSULE else float(max(self.size))

    @cached_property
    def _hull(self) -> HullSet:
        return HullSet([self.vertices])

    def sample(self, count: int, rng: np.random.Generator) -> FeatureSample:
        """Points of faces, edges and vertices, or of the primitive's features, in equal parts."""
        if self.type == ShapeType.CONVEX_MESH:
            kinds = [self._hull.sample(one, np.zeros(count, int), rng) for one in FEATURES[self.type]]
        elif self.mesh is not None:
            kinds = [triangle_features(self.corners, corner, count, rng) for corner in (1, 2, 3)]
        else:
            size = np.tile(np.array([*self.size, 0.0, 0.0, 0.0][:3]), (count, 1))
            kinds = [sample_feature(self.type, one, size, rng) for one in FEATURES[self.type]]
        which, row = rng.integers(len(kinds), size=count), np.arange(count)
        columns = (
            np.stack([getattr(one, name) for one in kinds])[which, row] for name in ("point", "normal", "tangent")
        )
        return FeatureSample.of(*columns)


def triangle_features(corners: np.ndarray, dimension: int, count: int, rng: np.random.Generator) -> FeatureSample:
    """Points inside faces (3), on edges (2) and at vertices (1) of triangles [F, 3, 3].

    The normal is that of the face; off an edge or a vertex, a mean of those of all faces there by random weights.
    """
    row = rng.integers(len(corners), size=count)
    weight = np.zeros((count, 3))
    weight[:, :dimension] = rng.dirichlet(np.ones(dimension), count)
    weight = np.take_along_axis(weight, np.argsort(rng.uniform(size=(count, 3)), 1), 1)
    chosen = corners[row]
    point = (weight[:, :, None] * chosen).sum(1)
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    normal = np.empty((count, 3))
    for k in range(count):
        shared = np.ones(len(corners), bool)
        for corner in chosen[k][weight[k] > 0.0]:
            shared &= (corners == corner).all(2).any(1)
        normal[k] = rng.dirichlet(np.ones(int(shared.sum()))) @ across[shared]
        if np.linalg.norm(normal[k]) < 1e-3:
            normal[k] = across[row[k]]
    return FeatureSample.of(point, normal, chosen[:, 1] - chosen[:, 0])


def _mesh(name: str, mesh: Mesh, **fields: object) -> Form:
    return Form(name, ShapeType.MESH, mesh=(np.asarray(mesh[0], np.float64), np.asarray(mesh[1])), **fields)


def _terrain(name: str, terrain: Terrain) -> Form:
    return Form(name, ShapeType.HEIGHTFIELD, mesh=terrain.solid(), terrain=terrain)


ELBOW = prism([(0.0, 0.0), (1.0, 0.0), (1.0, 0.4), (0.4, 0.4), (0.4, 1.0), (0.0, 1.0)], 0.2)
FOLD = strip(np.array([[-1.0, 0.3], [-0.3, 0.0], [0.3, 0.0], [0.5, 0.6], [1.0, 0.5]]), -0.8, 0.8)
SPHERE = Form("sphere", ShapeType.SPHERE, (0.4,))


@cache
def forms() -> dict[str, tuple[Form, ...]]:
    """Shapes by class."""
    rng = np.random.default_rng(8)
    hull = rng.normal(size=(14, 3))
    dented, ring, elbow = ("dented", blob(rng, 6, 8, 0.4)), ("ring", torus(12, 7)), ("elbow", ELBOW)
    sheets = (
        ("flat", grid(4, 2.0)),
        ("waves", grid(5, 2.0, lambda x, y: 0.25 * np.sin(3.0 * x) * np.cos(2.0 * y))),
        ("fold", FOLD),
    )
    return {
        "convex": (
            SPHERE,
            Form("capsule", ShapeType.CAPSULE, (0.2, 0.3)),
            Form("box", ShapeType.BOX, (0.4, 0.3, 0.2)),
            Form("cylinder", ShapeType.CYLINDER, (0.3, 0.3)),
            Form("cone", ShapeType.CONE, (0.3, 0.4)),
            Form("ellipsoid", ShapeType.ELLIPSOID, (0.4, 0.3, 0.2)),
            Form("hull", ShapeType.CONVEX_MESH, mesh=(0.4 * hull / np.abs(hull).max(), np.zeros((0, 3), int))),
        ),
        "closed": tuple(_mesh(*one) for one in (dented, ring, elbow)),
        "crossing": (
            _mesh("knot", (0.5 * knot()[0], knot()[1])),
            _mesh("pierced", joined((0.5 * knot()[0], knot()[1]), box(0.2, 0.1, 0.1, (1.5, 0.0, 0.5)))),
        ),
        "open": (
            *(_mesh(*one) for one in sheets),
            _mesh("tube", tube(0.7, 0.6, 9)),
            _mesh("channel", channel(0.7, 0.6, 0.8)),
            _mesh("hollow", ring[1], is_solid=False),
        ),
        "one-sided": tuple(_mesh(*one, two_sided=False) for one in sheets),
        "heightfield": (_terrain("rough", rough(4, 5, 6)), _terrain("smooth", smooth(8, 10))),
        "field": tuple(_mesh(*one, voxels=32) for one in (ring, elbow)),
    }
