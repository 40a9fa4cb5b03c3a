"""Convex shapes above flat surfaces of triangles, with their gap in extended precision."""

import numpy as np
from scipy.spatial.transform import Rotation

from collidecli.numerics.poses import compose_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import SHAPES
from tests.support.supports import HULL, support_height, support_point

TYPES = [
    ShapeType.SPHERE,
    ShapeType.CAPSULE,
    ShapeType.ELLIPSOID,
    ShapeType.CYLINDER,
    ShapeType.BOX,
    ShapeType.CONE,
    ShapeType.CONVEX_MESH,
]
PROPORTIONS = {each: np.array(SHAPES.get(each, (0.5, 0.8, 0.3))) for each in TYPES}
CORNERS = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [1.0, 1.0, 0.0], [-1.0, 1.0, 0.0]])
"""Of a sheet of half size 1 in its plane z = 0."""


def add_sheet(builder: ModelBuilder, half: float, is_heightfield: bool) -> int:
    """A body with two triangles, or with a heightfield whose surface they are."""
    body = builder.add_body()
    if is_heightfield:
        return builder.add_shape_heightfield(body, np.zeros((2, 2)), half, half, 0.1 * half)
    return builder.add_shape_mesh(body, half * CORNERS, np.array([(0, 1, 2), (0, 2, 3)]))


def add_convex(builder: ModelBuilder, shape_type: ShapeType, size: float) -> int:
    """A body with a convex shape of half extents of about `size` [m]."""
    body = builder.add_body()
    sizes = size * PROPORTIONS[shape_type]
    if shape_type == ShapeType.CONVEX_MESH:
        return builder.add_shape_convex_hull(body, HULL * sizes)
    return builder.add_shape(body, shape_type, sizes[sizes > 0.0])


def local_poses_above(
    rng: np.random.Generator,
    shape_type: ShapeType,
    size: float,
    half: float,
    gap: np.ndarray,
    top: float = 0.0,
) -> np.ndarray:
    """Poses float64[n, 7] in a sheet's frame of a shape whose lowest point is a gap [m] above the
    sheet; half of them stand on a face, rim or side. top: z of the sheet [m].
    """
    count = len(gap)
    turned = Rotation.random(count, random_state=rng.integers(2**31))
    upright = Rotation.from_euler(
        "zx", np.stack([rng.uniform(0, 7, count), rng.integers(0, 4, count) * np.pi / 2], 1)
    )
    quaternion = np.where(rng.random(count)[:, None] < 0.5, turned.as_quat(), upright.as_quat())
    down = -Rotation.from_quat(quaternion).as_matrix()[:, None, 2]
    sizes = np.broadcast_to(size * PROPORTIONS[shape_type], (count, 3))
    lowest = Rotation.from_quat(quaternion).apply(support_point(shape_type, sizes, down)[:, 0])
    position = (
        np.concatenate([rng.uniform(-0.9, 0.9, (count, 2)) * half, gap[:, None] + top], axis=1)
        - lowest
    )
    return np.concatenate([position, quaternion], axis=1)


def sheet_poses(rng: np.random.Generator, half: float, count: int) -> np.ndarray:
    """float64[count, 7]: turned and tilted at random, up to the half size off the origin."""
    turned = Rotation.random(count, random_state=rng.integers(2**31))
    return np.concatenate([rng.uniform(-half, half, (count, 3)), turned.as_quat()], axis=1)


def poses_above(
    rng: np.random.Generator,
    shape_type: ShapeType,
    size: float,
    half: float,
    gap: np.ndarray,
    top: float = 0.0,
) -> np.ndarray:
    """float64[n, 2, 7]: poses of a sheet and of a shape above it, see `local_poses_above`."""
    local = local_poses_above(rng, shape_type, size, half, gap, top)
    sheet = sheet_poses(rng, half, len(gap))
    return np.stack([sheet, compose_poses(sheet, local)], axis=1)


def gap_above(
    shape_type: ShapeType, size: float, poses: np.ndarray, top: float = 0.0
) -> np.ndarray:
    """longdouble[n]: gap of poses float64[n, 2, 7] of a sheet and a shape; of rounded poses too
    [m].

    top: z of the sheet in its own frame [m].
    """
    exact = poses.astype(np.longdouble)
    matrix = exact_rotations(exact[..., 3:])
    up = matrix[:, 0, :, 2]
    down = -np.einsum("nij,ni->nj", matrix[:, 1], up)
    sizes = np.broadcast_to((size * PROPORTIONS[shape_type]).astype(np.longdouble), (len(poses), 3))
    height = support_height(shape_type, sizes, down[:, None])[:, 0]
    return (
        np.einsum("ni,ni->n", up, exact[:, 1, :3] - exact[:, 0, :3]) - height - np.longdouble(top)
    )


def exact_rotations(quaternion: np.ndarray) -> np.ndarray:
    """longdouble[..., 3, 3]: rotations of quaternions xyzw of any length."""
    x, y, z, w = np.moveaxis(
        quaternion / np.sqrt((quaternion**2).sum(axis=-1, keepdims=True)), -1, 0
    )
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))
