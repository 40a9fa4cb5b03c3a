"""What a view draws and how: its colours and options, meshes of shapes, hydroelastic surfaces; and its framing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from collidecli.scene.heightfield import Heightfield, solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.shape_types import SOLIDS, ShapeType, half_extents

# What the camera of a view is aimed at: the moving shapes; the floor; and whether the view follows the shapes.

# Colours of the viewer: cool greys and blues for shapes, in contrast to the warm colours of contacts.

STATIC = (128, 136, 148)
BODIES = (
    (38, 78, 128),
    (36, 108, 98),
    (82, 70, 146),
    (30, 62, 96),
    (66, 108, 148),
    (40, 98, 72),
    (70, 54, 118),
    (24, 88, 122),
)
"""Colours of bodies, used cyclically."""
PICKED = ((29, 90, 200), (12, 140, 110))
"""Colours of the two shapes of the selected pair."""
GAP = (20, 190, 235)
"""Colour of contacts within the gap."""
AGAINST = (16, 16, 24)
"""Colour of the contacts of a second set, of any depth."""
PARTICLES = (168, 158, 226)
"""Colour of particles, cloths and soft bodies."""
SELF = (22, 150, 76)
"""Colour of contacts of cloths and soft bodies with themselves, which have no depth."""
DEPTHS = ((255, 214, 64), (250, 140, 30), (226, 55, 40), (146, 10, 70))
"""Colour gradient of touching contacts, from depth 0 to the greatest depth of all."""


def depth_colours(depth: np.ndarray, deepest: float) -> np.ndarray:
    """Colours uint8[n, 3] of depths [m]; the first colour for all if `deepest` is 0."""
    fraction = np.clip(depth / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(depth))
    stops = np.linspace(0.0, 1.0, len(DEPTHS))
    return np.stack([np.interp(fraction, stops, channel) for channel in zip(*DEPTHS, strict=True)], axis=-1).astype(
        np.uint8
    )


def shape_colours(body: np.ndarray) -> np.ndarray:
    """Colours uint8[n, 3] of shapes by their bodies, -1 for static shapes."""
    palette = np.array([*BODIES, STATIC], np.uint8)
    return palette[np.where(body < 0, len(BODIES), body % len(BODIES))]


def css(colour: tuple[int, int, int]) -> str:
    """A colour in CSS."""
    return f"rgb({colour[0]}, {colour[1]}, {colour[2]})"


def depth_gradient() -> str:
    """The gradient DEPTHS from left to right, in CSS."""
    return f"linear-gradient(90deg, {', '.join(map(css, DEPTHS))})"


OPACITY, OPACITY_OVER_SURFACES = 0.45, 0.25
"""Initial opacity of shapes; with hydroelastic surfaces, whose faces and forces are seen through the shapes."""


# Hydroelastic surfaces of a cell as a view draws them: polygons coloured by pressure, or a force for each surface.

LEVELS = 16
"""Number of colours of faces: each is a mesh, as a mesh of viser's has one colour."""


@dataclass(frozen=True)
class SurfaceScale:
    """What surfaces are coloured by. greatest: of all frames; pressure of the faces [Pa], or force of a surface [N]."""

    greatest: float
    has_faces: bool

    @property
    def quantity(self) -> str:
        """Pressure or force."""
        return "pressure" if self.has_faces else "force"

    @property
    def unit(self) -> str:
        """Unit of the quantity."""
        return "Pa" if self.has_faces else "N"

    def fraction(self, values: np.ndarray) -> np.ndarray:
        """float64: values relative to the greatest one, from 0 to 1."""
        return np.clip(values / self.greatest, 0.0, 1.0) if self.greatest > 0.0 else np.zeros(len(values))

    def level(self, values: np.ndarray) -> np.ndarray:
        """uint8: number of the colour of values, from 0 to LEVELS - 1."""
        return np.minimum(LEVELS * self.fraction(values), LEVELS - 1).astype(np.uint8)


@dataclass(frozen=True)
class Faces:
    """Polygons. patch: int64[n], row of their surface. pressure: float64[n] [Pa]. lengths: int64[n], their corners.

    corner: float64[sum of lengths, 3] [m].
    """

    patch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    pressure: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    corner: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class Surfaces:
    """The surfaces of a cell. pair: int32[n, 2], rows of shapes. center: float64[n, 3] [m].

    force: float64[n, 3], on the second shape [N].
    """

    pair: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    center: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    force: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    faces: Faces = field(default_factory=Faces)

    def __len__(self) -> int:
        return len(self.pair)

    def of_pair(self, pair: tuple[int, int]) -> np.ndarray:
        """bool[n]: the surfaces of a pair of shapes."""
        return (self.pair == pair).all(axis=1)


def triangle_fans(lengths: np.ndarray) -> np.ndarray:
    """uint32[T, 3]: triangles of polygons with `lengths` corners, the polygons' corners one after the other."""
    first, count = np.cumsum(lengths) - lengths, np.maximum(lengths - 2, 0)
    begin = np.repeat(first, count)
    second = begin + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + 1
    return np.stack([begin, second, second + 1], axis=1).astype(np.uint32)


# Triangle meshes of shapes for drawing. Shapes that differ only by a scale along x, y and z share a mesh.

AROUND = 32
"""Number of vertices of a circle."""
SMOOTH_COSINE = 0.8
"""Cosine of the angle of two triangles above which their edge is shaded smooth."""
MAX_GRID = 256
"""Largest number of rows and columns of a heightfield that are drawn; above it some are skipped, with a note."""


@dataclass(frozen=True)
class DrawnMesh:
    """vertex: float32[V, 3]. face: uint32[F, 3], counterclockwise from outside.

    flat: shade the faces flat, not smoothly. open: draw the back of the faces too.
    """

    vertex: np.ndarray
    face: np.ndarray
    flat: bool
    open: bool = False


@dataclass(frozen=True)
class ShapeGroup:
    """Shapes that share a mesh.

    rows: int[n], rows of the model's shapes. scale: float32[n, 3]. planes: they are planes, drawn as squares of 2 by 2
    before the scale.
    """

    mesh: DrawnMesh
    rows: np.ndarray
    scale: np.ndarray
    planes: bool

    def of_rows(self, rows: np.ndarray) -> ShapeGroup:
        """The shapes of the group that are among some rows."""
        is_kept = np.isin(self.rows, rows)
        return replace(self, rows=self.rows[is_kept], scale=self.scale[is_kept])


def shape_groups(model: Model, shape_count: int) -> list[ShapeGroup]:
    """Every shape of a model, in groups by mesh; planes, which are infinite, have scale 1.

    Shapes from row `shape_count` on, which are visual geometry, are in groups of their own.
    """
    meshes: dict[tuple, DrawnMesh] = {}
    members: dict[tuple, list[tuple[int, np.ndarray]]] = {}
    for row, kind in enumerate(model.shapes.types()):
        key, scale = _key(model, row, kind)
        if key not in meshes:
            meshes[key] = _mesh(model, key)
        members.setdefault((*key, row >= shape_count), []).append((row, scale))
    return [
        ShapeGroup(
            meshes[key[:2]],
            np.array([row for row, _ in rows]),
            np.array([scale for _, scale in rows], np.float32),
            key[0] == ShapeType.PLANE,
        )
        for key, rows in members.items()
    ]


def coarse_heightfields(model: Model) -> int:
    """Number of heightfields with more rows or columns than are drawn."""
    return sum(max(field.data.shape) > MAX_GRID for field in model.heightfields)


_TABLES = {ShapeType.CONVEX_MESH: "hull", ShapeType.MESH: "mesh", ShapeType.HEIGHTFIELD: "heightfield"}


def _key(model: Model, row: int, kind: ShapeType) -> tuple[tuple, np.ndarray]:
    """A shape's type with the index of its surface or the size of its mesh, and its scale."""
    size = model.shapes.size[row]
    if kind in _TABLES:
        return (kind, int(getattr(model.shapes, _TABLES[kind])[row])), np.ones(3)
    if kind == ShapeType.PLANE or not SOLIDS[kind].scales:
        return (kind, tuple(size / (size[0] or 1.0))), np.full(3, size[0] or 1.0)
    return (kind, ()), half_extents(kind, size)


def _mesh(model: Model, key: tuple) -> DrawnMesh:
    kind, which = key
    if kind == ShapeType.CONVEX_MESH:
        return _drawn(model.hulls[which].vertex, model.hulls[which].triangles, flat=True)
    if kind == ShapeType.MESH:
        mesh = model.meshes[which]
        return _drawn(mesh.vertex, mesh.face, flat=True, open=not mesh.is_closed)
    if kind == ShapeType.HEIGHTFIELD:
        return _heightfield(model.heightfields[which])
    make = SOLIDS[kind].triangles
    if make is None:
        corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
        return _drawn(corners, np.array([(0, 1, 2), (0, 2, 3)]), flat=True, open=True)
    return _smooth(*make(np.array(which or (1.0, 1.0, 1.0)), AROUND))


def _smooth(vertex: np.ndarray, face: np.ndarray) -> DrawnMesh:
    """A closed surface whose triangles on both sides of a sharp edge have vertices of their own, for smooth shading."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    a, b, c = (vertex[face[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    edges = np.sort(np.concatenate([face[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
    order = np.lexsort(edges.T).reshape(-1, 2)  # each edge is of two triangles
    left, right = (order % len(face)).T
    near = (normal[left] * normal[right]).sum(axis=1) > SMOOTH_COSINE
    links = coo_matrix((np.ones(near.sum()), (left[near], right[near])), shape=(len(face), len(face)))
    side = connected_components(links, directed=False)[1]
    corners, number = np.unique(side[:, None] * len(vertex) + face, return_inverse=True)
    return _drawn(vertex[corners % len(vertex)], number.reshape(face.shape), flat=False)


def _drawn(vertex: np.ndarray, face: np.ndarray, flat: bool, open: bool = False) -> DrawnMesh:
    return DrawnMesh(np.ascontiguousarray(vertex, np.float32), np.ascontiguousarray(face, np.uint32), flat, open)


def _heightfield(field: Heightfield) -> DrawnMesh:
    """Top surface, walls and base; if rows or columns are skipped, the outermost are kept."""
    rows, cols = (np.unique(np.linspace(0, n - 1, min(n, MAX_GRID)).astype(int)) for n in field.data.shape)
    mesh = solid_mesh(replace(field, data=np.ascontiguousarray(field.data[np.ix_(rows, cols)])))
    vertex = mesh.vertex.copy()
    for axis, half, kept in ((0, field.half_x, cols), (1, field.half_y, rows)):
        even, uneven = (np.linspace(-half, half, n) for n in (len(kept), field.data.shape[1 - axis]))
        vertex[:, axis] = np.interp(vertex[:, axis], even, uneven[kept])
    return _drawn(vertex, mesh.face, flat=True)
