"""Pairs of shapes at poses aligned to each other's features, and neighbours of these poses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from collidecli.numerics.poses import compose_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.flat_faces import LETTER_L, upright_prism
from tests.support.meshes import Mesh, Terrain, box, grid
from tests.support.poses import facing_poses

GAP = 0.01
"""Of both shapes [units]; a unit is the size of a scene."""
PARTICLE_RADIUS = 0.25
HEIGHTS = (
    0.02,
    GAP,
    1e-3,
    1e-6,
    1e-8,
    2e-9,
    0.0,
    -1e-9,
    -2e-9,
    -5e-9,
    -1e-8,
    -1e-7,
    -1e-6,
    -1e-4,
    -5e-3,
)
"""Of one feature above the other [units], from apart through touching to shallow overlaps."""
NOISES = (1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5)
"""Size of the motion from a pose to its neighbour: units of a translation, rad of a rotation."""
SIZES = (1e-3, 1.0, 1e3)
VOXELS = 32
"""Along the longest side of a shape with a field."""
HULL = np.array(
    [
        [-0.5, -0.5, -0.5],
        [0.5, -0.5, -0.5],
        [0.5, 0.5, -0.5],
        [-0.5, 0.5, -0.5],
        [-0.5, 0.0, 0.5],
        [0.5, 0.0, 0.5],
    ]
)
"""A roof: a rectangle, two slopes that meet in an edge, and two triangles [units]."""
BOX_HALVES = (0.5, 0.5, 0.25)
ROUND_SIZES = {"cylinder": (0.5, 0.5), "capsule": (0.25, 0.5), "cone": (0.5, 0.5), "sphere": (0.5,)}
"""Radius and half height [units]."""


@dataclass(frozen=True)
class Features:
    """Points float64[n, 3] of a surface [units], a unit vector of the normal cone, and a
    tangent."""

    point: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray


@dataclass(frozen=True)
class AlignedShape:
    """One shape of a class. add: adds it to a body of a builder, at a size [m/unit], with a
    configuration.

    reach: greatest distance of its points from its body's origin [units]. extent: its largest half
    extent. has_field: of distances. is_ridged: of a surface, whether it has a ridge.
    """

    name: str
    add: Callable[[ModelBuilder, int, float, ShapeConfig], object] | None
    features: Features
    reach: float
    extent: float
    is_convex: bool = False
    has_field: bool = False
    is_ridged: bool = False


def surface_features(mesh: Mesh, only_salient: bool = True, is_open: bool = False) -> Features:
    """Faces, edges and vertices of a mesh, with tangents along an edge; faces have one feature a
    triangle.

    only_salient: those alone at which the whole mesh lies below the plane across the normal.
    """
    vertices, faces = mesh
    corners = vertices[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    middle = 0.25 * corners[:, 0] + 0.25 * corners[:, 1] + 0.5 * corners[:, 2]
    found = [(middle, normal, corners[:, 1] - corners[:, 0])]
    ends = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owner = np.tile(normal, (3, 1))
    edges, which = np.unique(ends, axis=0, return_inverse=True)
    of_edge = np.zeros((len(edges), 3))
    np.add.at(of_edge, which.reshape(-1), owner)
    start = vertices[edges[:, 0]]
    end = vertices[edges[:, 1]]
    found.append((0.5 * (start + end), of_edge, end - start))
    of_vertex = np.zeros_like(vertices)
    tangent = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(of_vertex, faces[:, k], np.round(normal, 12))
        tangent[faces[:, k]] = corners[:, (k + 1) % 3] - corners[:, k]
    found.append((vertices, of_vertex, tangent))
    point, normal, tangent = (np.concatenate(column) for column in zip(*found, strict=True))
    length = np.linalg.norm(normal, axis=1)
    kept = (length > 1e-6) & (np.linalg.norm(tangent, axis=1) > 1e-6)
    point = point[kept]
    normal = normal[kept] / length[kept, None]
    tangent = tangent[kept]
    if only_salient:
        below = ((vertices[None] - point[:, None]) * normal[:, None]).sum(axis=2).max(axis=1) < 1e-9
        point = point[below]
        normal = normal[below]
        tangent = tangent[below]
    return Features(point, normal, tangent)


def _listed(rows: list[tuple]) -> Features:
    columns = [np.array(column, float) for column in zip(*rows, strict=True)]
    columns[1] /= np.linalg.norm(columns[1], axis=1, keepdims=True)
    return Features(*columns)


def round_features(kind: str) -> Features:
    """Caps, sides, rims and apexes of a round shape, at azimuths of an eighth of a turn."""
    radius, half = (*ROUND_SIZES[kind], 0.0)[:2]
    up = np.array([0.0, 0.0, 1.0])
    rows = []
    for angle in np.arange(8) * np.pi / 4.0:
        radial = np.round([np.cos(angle), np.sin(angle), 0.0], 16)
        around = np.array([-radial[1], radial[0], 0.0])
        if kind == "cone":
            slant = 2.0 * half * radial + radius * up
            line = radius * radial - 2.0 * half * up
            rows += [
                (0.5 * radius * radial - half * up, -up, radial),
                (0.5 * radius * radial, slant, line),
                (radius * radial - half * up, radial - up, around),
                (half * up, up, radial),
                (-half * up, -up, radial),
            ]
            continue
        rows.append((radius * radial, radial, up))
        for side in (-1.0, 1.0):
            end = side * half * up
            if kind == "cylinder":
                rows += [
                    (end, side * up, radial),
                    (radius * radial + end, radial + side * up, around),
                ]
            else:
                rows += [
                    (end + side * radius * up, side * up, radial),
                    (radius * radial + end, radial, up),
                ]
    return _listed(rows)


def letter() -> Mesh:
    """A closed solid with an L-shaped base, one unit and a half wide, around the origin."""
    vertices, faces = upright_prism(tuple((0.5 * x, 0.5 * y) for x, y in LETTER_L), 0.5)
    return vertices - np.array([0.5, 0.5, 0.25]), faces


def ridged(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A ridge along y, a quarter of a unit high, on a plane."""
    return np.maximum(0.0, 0.25 - 0.5 * np.abs(x - 0.5))


def _terrain(is_ridged: bool) -> Terrain:
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 5), np.linspace(-1.0, 1.0, 5))
    heights = ridged(x, y) if is_ridged else np.zeros_like(x)
    return Terrain(heights.astype(np.float32), 1.0, 1.0, 1.0)


def _top(features: Features) -> Features:
    """Features that look upwards."""
    kept = features.normal[:, 2] > 0.5
    return Features(features.point[kept], features.normal[kept], features.tangent[kept])


def _convex(name: str) -> AlignedShape:
    if name == "box":
        hx, hy, hz = BOX_HALVES
        mesh = box(hx, hy, hz)

        def add(builder, body, size, cfg):
            builder.add_shape_box(body, hx=size * hx, hy=size * hy, hz=size * hz, cfg=cfg)

        return AlignedShape(
            name, add, surface_features(mesh), float(np.hypot(np.hypot(hx, hy), hz)), hx, True
        )
    if name == "hull":
        hull = ConvexHull(HULL)
        faces = hull.simplices.copy()
        corners = HULL[faces]
        inwards = (
            np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
            * hull.equations[:, :3]
        ).sum(1) < 0
        faces[inwards] = faces[inwards][:, ::-1]

        def add(builder, body, size, cfg):
            builder.add_shape_convex_hull(body, size * HULL, cfg=cfg)

        return AlignedShape(
            name, add, surface_features((HULL, faces)), float(np.sqrt(0.75)), 0.5, True
        )
    sizes = ROUND_SIZES[name]
    keys = ("radius", "half_height")[: len(sizes)]

    def add(builder, body, size, cfg):
        values = {key: size * value for key, value in zip(keys, sizes, strict=True)}
        getattr(builder, f"add_shape_{name}")(body, cfg=cfg, **values)

    extent = sum(sizes) if name == "capsule" else max(sizes)
    reach = extent if name != "cylinder" else float(np.hypot(*sizes))
    return AlignedShape(
        name,
        add,
        round_features(name),
        max(reach, float(np.hypot(*sizes)) if name == "cone" else 0.0),
        extent,
        True,
    )


def _surface(name: str, is_ridged: bool) -> AlignedShape:
    if name == "heightfield":
        terrain = _terrain(is_ridged)
        features = _top(surface_features((terrain.vertices(), terrain.faces()), only_salient=False))

        def add(builder, body, size, cfg):
            heights = (terrain.heights * size).astype(np.float64)
            builder.add_shape_heightfield(body, heights, size, size, size, cfg=cfg)

        return AlignedShape(name, add, features, 1.8, 1.0, is_ridged=is_ridged)
    vertices, faces = grid(4, 2.0, ridged if is_ridged else None)
    features = _top(surface_features((vertices, faces), only_salient=False))

    def add(builder, body, size, cfg):
        builder.add_shape_mesh(body, size * vertices, faces, two_sided=name == "sheet", cfg=cfg)

    return AlignedShape(name, add, features, 1.5, 1.0, is_ridged=is_ridged)


CONVEX = ("box", "cylinder", "capsule", "cone", "sphere", "hull")
SHEETS = ("sheet", "one-sided sheet")
SURFACES = (*SHEETS, "heightfield")
INNER = 0.5
"""Half size of the part of a one-sided sheet on which shapes stand [units]; of the sheet it is
1."""
CLASSES = (*SURFACES, "mesh", "field", *CONVEX, "particle")
"""In the order of the first and the second shape of a pair."""


def aligned_shape(name: str, variant: int) -> AlignedShape:
    """The shape of a class. variant: 0 or 1; surfaces are flat, or have a ridge."""
    if name in CONVEX:
        return _convex(name)
    if name in SURFACES:
        return _surface(name, variant % 2 == 1)
    if name == "particle":
        normals = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, 0, 0], [0, 0, -1]], float)
        features = Features(PARTICLE_RADIUS * normals, normals, np.roll(normals, 1, axis=1))
        return AlignedShape(name, None, features, PARTICLE_RADIUS, PARTICLE_RADIUS, True)
    vertices, faces = letter()

    def add(builder, body, size, cfg):
        builder.add_shape_mesh(body, size * vertices, faces, cfg=cfg)

    reach = float(np.linalg.norm(vertices, axis=1).max())
    return AlignedShape(
        name, add, surface_features((vertices, faces)), reach, 0.75, has_field=name == "field"
    )


@dataclass(frozen=True)
class AlignedPair:
    """Two shapes in a scene of `size` [m/unit]."""

    first: AlignedShape
    second: AlignedShape
    size: float

    def model(self, world_count: int | None = None) -> Model:
        """Both shapes on bodies of their own; or the first, and a particle."""
        builder = ModelBuilder()
        for shape in (self.first, self.second):
            if shape.add is None:
                builder.add_particles([[0.0, 0.0, 0.0]], radius=self.size * PARTICLE_RADIUS)
                continue
            fields = {"sdf_max_resolution": VOXELS} if shape.has_field else {}
            if shape.has_field:
                fields["sdf_narrow_band_range"] = (-0.5 * self.size, 0.5 * self.size)
            shape.add(
                builder, builder.add_body(), self.size, ShapeConfig(gap=GAP * self.size, **fields)
            )
        return builder.finalize(world_count=world_count)

    @property
    def extent(self) -> float:
        """The larger half extent [units]."""
        return max(self.first.extent, self.second.extent)


def aligned_poses(pair: AlignedPair, rng: np.random.Generator, count: int) -> np.ndarray:
    """float64[count, 7]: poses of the second shape in the first one's frame [units].

    A feature of the one lies on a feature of the other, its tangent along the other's or turned by
    eighths of a turn, moved across it by quarters of a unit or not at all, at one of HEIGHTS. One
    in eight poses of two solids is of a lattice: quarter turns and quarters of a unit, equal poses
    among them.

    The definition is discontinuous where a sheet has been passed, and beside the border of a
    one-sided one, behind which nothing has a contact: two sheets are apart, and what stands on a
    one-sided sheet stands inside its border.
    """
    first = pair.first.features
    second = pair.second.features
    is_sheet_pair = pair.first.name in SHEETS and pair.second.name in SHEETS
    k = rng.integers(len(first.point), size=count)
    m = rng.integers(len(second.point), size=count)
    turn = rng.integers(8, size=count) * 0.25 * np.pi
    turn = np.where(rng.uniform(size=count) < 0.7, 0.5 * np.pi * rng.integers(4, size=count), turn)
    height = rng.choice([h for h in HEIGHTS if h > 5e-5] if is_sheet_pair else HEIGHTS, count)
    normal = first.normal[k]
    across = 0.25 * rng.integers(-2, 3, (count, 3)) * (rng.uniform(size=(count, 1)) < 0.5)
    across -= (across * normal).sum(axis=1, keepdims=True) * normal
    point = first.point[k] + across
    if "one-sided sheet" in (pair.first.name, pair.second.name):
        point[:, :2] = np.clip(point[:, :2], -INNER, INNER)
        if pair.first.name in SHEETS:
            point[:, 2] = ridged(point[:, 0], 0.0) if pair.first.is_ridged else 0.0
    pose = facing_poses(
        point,
        normal,
        second.point[m],
        second.normal[m],
        turn,
        height,
        first.tangent[k],
        second.tangent[m],
    )
    if pair.first.name in SURFACES or pair.second.name == "particle":
        return pose
    on_lattice = rng.uniform(size=count) < 0.125
    quarter = Rotation.from_euler("zyx", 0.5 * np.pi * rng.integers(0, 4, (count, 3))).as_quat()
    is_equal = rng.uniform(size=count) < 0.25
    lattice = np.concatenate([0.25 * rng.integers(-4, 5, (count, 3)), quarter], axis=1)
    lattice[is_equal] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    pose[on_lattice] = lattice[on_lattice]
    return pose


@dataclass(frozen=True)
class Neighbours:
    """Poses of a pair and their neighbours.

    local: float64[n, 7], poses of the second shape in the first one's frame [units]. base:
    int64[n], the row that each is a neighbour of; its own row of a pose. motion: float64[n], bound
    of the motion of any point of the second shape [units]. turn: float64[n], of the rotation alone.
    """

    local: np.ndarray
    base: np.ndarray
    motion: np.ndarray
    turn: np.ndarray

    def poses(self, rng: np.random.Generator, size: float, is_turned: bool) -> np.ndarray:
        """float64[n, 1, 2, 7]: world poses of both bodies [m]; is_turned: a general pose of the
        first."""
        frame = np.zeros((len(self.local), 7))
        frame[:, 6] = 1.0
        if is_turned:
            frame[:] = np.concatenate(
                [
                    rng.normal(size=3),
                    Rotation.random(random_state=int(rng.integers(2**31))).as_quat(),
                ]
            )
        local = self.local.copy()
        local[:, :3] *= size
        frame[:, :3] *= size
        return np.stack([frame, compose_poses(frame, local)], axis=1)[:, None]


def neighbours_of(
    pose: np.ndarray, reach: float, rng: np.random.Generator, copies: int
) -> Neighbours:
    """Each pose [n, 7], then its neighbours; reach: of the second shape from its origin [units]."""
    count = len(pose)
    base = np.repeat(np.arange(count), copies)
    noise = rng.choice(NOISES, (count, copies)).reshape(-1)
    kind = rng.integers(3, size=count * copies)
    shift = rng.uniform(-1.0, 1.0, (count * copies, 3)) * (noise * (kind != 1))[:, None]
    spin = rng.uniform(-1.0, 1.0, (count * copies, 3)) * (noise * (kind != 0))[:, None]
    moved = pose[base].copy()
    moved[:, :3] += shift
    moved[:, 3:] = (Rotation.from_rotvec(spin) * Rotation.from_quat(pose[base, 3:])).as_quat()
    turn = np.linalg.norm(spin, axis=1) * reach
    motion = np.linalg.norm(shift, axis=1) + turn
    nothing = np.zeros(count)
    return Neighbours(
        np.concatenate([pose, moved]),
        np.concatenate([np.arange(count), base]),
        np.concatenate([nothing, motion]),
        np.concatenate([nothing, turn]),
    )
