"""Bodies with a flat base on flat surfaces: scenes, poses on the surface's grid lines, and an exact
clipping."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from collidecli.numerics.poses import compose_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.meshes import Mesh, grid, prism
from tests.support.poses import random_quaternions

CELLS = 8
HALF = 0.5 * CELLS
"""Half size of every surface: squares of one unit around the origin, at z = 0 [units]."""
GAP = 1e-3
"""Of both shapes [units]."""
RECTANGLE = ((0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (0.0, 1.0))
LETTER_L = ((0.0, 0.0), (3.0, 0.0), (3.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.0, 3.0))
LETTER_T = (
    (0.0, 0.0),
    (3.0, 0.0),
    (3.0, 1.0),
    (2.0, 1.0),
    (2.0, 3.0),
    (1.0, 3.0),
    (1.0, 1.0),
    (0.0, 1.0),
)
LETTER_U = (
    (0.0, 0.0),
    (3.0, 0.0),
    (3.0, 3.0),
    (2.0, 3.0),
    (2.0, 1.0),
    (1.0, 1.0),
    (1.0, 3.0),
    (0.0, 3.0),
)
PARTS = {
    RECTANGLE: (RECTANGLE,),
    LETTER_L: (((0, 0), (3, 0), (3, 1), (0, 1)), ((0, 0), (1, 0), (1, 3), (0, 3))),
    LETTER_T: (((0, 0), (3, 0), (3, 1), (0, 1)), ((1, 0), (2, 0), (2, 3), (1, 3))),
}
"""Rectangles that cover an outline."""
DENTS = {RECTANGLE: (), LETTER_L: ((1.0, 1.0),), LETTER_T: ((1.0, 1.0), (2.0, 1.0))}
"""Corners of an outline where it is concave."""
SURFACES = ("sheet", "one-sided sheet", "slab", "heightfield", "box")
BODIES = {
    "L of triangles": LETTER_L,
    "T of triangles": LETTER_T,
    "box of triangles": RECTANGLE,
    "box": RECTANGLE,
    "hull": RECTANGLE,
}


def upright_prism(outline: tuple[tuple[float, float], ...], height: float = 1.0) -> Mesh:
    """A closed solid from z = 0 to `height` over a counterclockwise polygon of (x, y)."""
    vertices, faces = prism(list(outline), 0.5 * height)
    standing = vertices[:, [0, 2, 1]] + np.array([0.0, 0.0, 0.5 * height])
    return standing, faces[:, ::-1]


def dented_slab() -> Mesh:
    """A closed slab, one unit thick, whose top is the grid; a dent below keeps it from being a
    hull."""
    vertices, faces = grid(CELLS, float(CELLS))
    count = len(vertices)
    row = np.arange(count).reshape(CELLS + 1, CELLS + 1)
    border = np.concatenate([row[:-1, 0], row[-1, :-1], row[:0:-1, -1], row[0, :0:-1]])
    after = np.roll(border, -1)
    below = vertices - np.array([0.0, 0.0, 1.0])
    below[row[CELLS // 2, CELLS // 2], 2] += 0.3
    walls = [
        np.stack([border, border + count, after + count], axis=1),
        np.stack([border, after + count, after], axis=1),
    ]
    return np.concatenate([vertices, below]), np.concatenate(
        [faces, faces[:, ::-1] + count, *walls]
    )


def add_surface(builder: ModelBuilder, kind: str, size: float, config: ShapeConfig) -> None:
    """A body with a surface of SURFACES, of `size` [m] a unit."""
    body = builder.add_body()
    if kind in ("sheet", "one-sided sheet"):
        vertices, faces = grid(CELLS, float(CELLS))
        builder.add_shape_mesh(body, size * vertices, faces, two_sided=kind == "sheet", cfg=config)
    elif kind == "slab":
        vertices, faces = dented_slab()
        builder.add_shape_mesh(body, size * vertices, faces, cfg=config)
    elif kind == "heightfield":
        heights = np.zeros((CELLS + 1, CELLS + 1))
        builder.add_shape_heightfield(body, heights, size * HALF, size * HALF, size, cfg=config)
    else:
        half = size * HALF
        lowered = (0.0, 0.0, -0.5 * size, 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_box(body, hx=half, hy=half, hz=0.5 * size, xform=lowered, cfg=config)


def add_standing_body(builder: ModelBuilder, kind: str, size: float, config: ShapeConfig) -> None:
    """A body of BODIES with its base at z = 0, one unit high."""
    body = builder.add_body()
    vertices, faces = upright_prism(BODIES[kind])
    if kind.endswith("triangles"):
        builder.add_shape_mesh(body, size * vertices, faces, cfg=config)
    elif kind == "hull":
        builder.add_shape_convex_hull(body, size * vertices, cfg=config)
    else:
        middle = (size, 0.5 * size, 0.5 * size, 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_box(body, hx=size, hy=0.5 * size, hz=0.5 * size, xform=middle, cfg=config)


def flat_scene(surface: str, body: str, size: float = 1.0) -> Model:
    """A surface and a standing body, of `size` [m] a unit."""
    builder = ModelBuilder()
    config = ShapeConfig(gap=GAP * size)
    add_surface(builder, surface, size, config)
    add_standing_body(builder, body, size, config)
    return builder.finalize()


def offsets_on_grid(rng: np.random.Generator, placing: str, count: int) -> np.ndarray:
    """float64[count, 2]: places of a body whose walls stand on grid lines, or between them.

    placing: inside, on grid lines away from the border; border, on grid lines anywhere; half, some
    of the walls on grid lines.
    """
    if placing == "inside":
        return rng.integers(1 - CELLS // 2, CELLS // 2 - 3, (count, 2)).astype(float)
    on_lines = rng.integers(-CELLS // 2 - 1, CELLS // 2, (count, 2)).astype(float)
    if placing == "half":
        on_lines += 0.25 * rng.integers(0, 4, (count, 2))
    return on_lines


@dataclass(frozen=True)
class Standing:
    """Poses of a body on a surface, in units.

    offset: float64[n, 2]. height: float64[n], of the base's plane at the body's origin. yaw:
    float64[n] [rad]. tilt: float64[n, 3], a small rotation [rad] about the body's origin, after the
    others.
    """

    offset: np.ndarray
    height: np.ndarray
    yaw: np.ndarray
    tilt: np.ndarray

    def turned(self, points: np.ndarray, k: int) -> np.ndarray:
        """float64[m, 2]: points of the base's plane in the frame of the surface, without the
        tilt."""
        cosine = np.cos(self.yaw[k])
        sine = np.sin(self.yaw[k])
        return points @ np.array([[cosine, sine], [-sine, cosine]]) + self.offset[k]

    def heights_at(self, points: np.ndarray, k: int) -> np.ndarray:
        """float64[m]: heights of the base at points of the surface, to the square of the tilt."""
        arm = points - self.offset[k]
        return self.height[k] + self.tilt[k, 0] * arm[:, 1] - self.tilt[k, 1] * arm[:, 0]

    def local_poses(self, size: float) -> np.ndarray:
        """float64[n, 7]: poses of the body in the surface's frame [m]."""
        turn = Rotation.from_rotvec(self.tilt) * Rotation.from_euler("z", self.yaw[:, None])
        return np.concatenate(
            [size * self.offset, size * self.height[:, None], turn.as_quat()], axis=1
        )

    def poses(self, rng: np.random.Generator, size: float, turned: bool) -> np.ndarray:
        """float64[n, 1, 2, 7]: poses of surface and body; turned: both by the same general pose."""
        local = self.local_poses(size)
        base = np.zeros_like(local)
        base[:, 6] = 1.0
        if turned:
            base[:, :3] = size * rng.normal(size=(len(local), 3))
            base[:, 3:] = random_quaternions(rng, len(local))
        return np.stack([base, compose_poses(base, local)], axis=1)[:, None]


def clipped(polygon: np.ndarray) -> np.ndarray:
    """float64[m, 2]: a convex polygon cut to the square of the surface (Sutherland and Hodgman)."""
    points = list(polygon)
    for axis in (0, 1):
        for side in (1.0, -1.0):
            kept = []
            for k, here in enumerate(points):
                after = points[(k + 1) % len(points)]
                inside = HALF - side * here[axis]
                next_inside = HALF - side * after[axis]
                if inside >= 0.0:
                    kept.append(here)
                if inside * next_inside < 0.0:
                    kept.append(here + inside / (inside - next_inside) * (after - here))
            points = kept
            if not points:
                return np.zeros((0, 2))
    return np.array(points)


def hull_area(points: np.ndarray) -> float:
    """Area of the convex hull of points of a plane; 0 where they are on a line."""
    if len(points) < 3 or np.linalg.matrix_rank(points[1:] - points[0], tol=1e-9) < 2:
        return 0.0
    return float(ConvexHull(points).volume)


def contact_patch(body: str, standing: Standing, k: int) -> np.ndarray | None:
    """float64[m, 2]: points whose hull is that of the base's part over the surface; empty where
    there is none.

    None where the answer depends on what is infinitely thin: where a part of the base has a side,
    and no more, or a concave corner on the border.
    """
    outline = BODIES[body]
    parts = [clipped(standing.turned(np.array(part, float), k)) for part in PARTS[outline]]
    is_thin = any(len(part) and hull_area(part) < 1e-4 for part in parts)
    dents = standing.turned(np.array(DENTS[outline], float).reshape(-1, 2), k)
    if is_thin or (np.abs(np.abs(dents) - HALF) < 1e-4).any():
        return None
    return np.concatenate(parts)
