"""The solids of sizes, each described once: bounds, support function and triangles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import dot, norm
from collidecli.numerics.trigonometry import sincos
from collidecli.scene.arguments import float_array
from collidecli.scene.shape_types import (
    LENGTH_LIMIT,
    SHAPE_FORMS,
    SIZE_COUNT,
    SIZE_WIDTH,
    ShapeType,
)


@dataclass(frozen=True)
class Solid:
    """A shape type whose geometry is its sizes of SHAPE_FORMS [m] alone, which are numbers, or
    arrays over shapes.

    triangles: vertices on its surface, and triangles counterclockwise from
    outside, of a size and a number of segments of a circle; None of an infinite solid. half: half
    extents of its box about the origin; None is the sizes. height: support function, the greatest
    direction.p over its points p; None is that of a box. radius: of the least ball about the
    origin; None is the length of the sizes. segments: with which volumes are bounded; 0 of a
    polyhedron, whose triangles are its surface. may_be_zero: index of the size that may be 0.
    scales: sizes scale it along the axes.
    """

    triangles: Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]] | None
    half: Callable[..., Sequence[Any]] | None = None
    height: Callable[..., Any] | None = None
    radius: Callable[..., Any] | None = None
    segments: int = 0
    may_be_zero: int = -1
    scales: bool = True


def _circle(segments: int) -> np.ndarray:
    angle = np.arange(segments) / segments * 2.0 * np.pi
    sine, cosine = sincos(angle)
    return np.stack([cosine, sine], axis=1)


def fan(outline: Sequence[int]) -> list[tuple[int, int, int]]:
    """The triangles of a convex polygon from its first vertex."""
    return [(outline[0], outline[k], outline[k + 1]) for k in range(1, len(outline) - 1)]


def _box(half: np.ndarray, _segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Corners are numbered as in the conventions."""
    corner = np.array([[(k >> axis & 1) * 2 - 1 for axis in range(3)] for k in range(8)]) * half
    sides = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
    return corner, np.array([t for side in sides for t in fan(side)])


def _prism(size: np.ndarray, segments: int) -> tuple[np.ndarray, np.ndarray]:
    ring = size[0] * _circle(segments)
    vertex = np.concatenate(
        [np.column_stack([ring, np.full(segments, z)]) for z in (-size[1], size[1])]
    )
    low = tuple(range(segments))
    face = [*fan(low[::-1]), *fan(tuple(k + segments for k in low))]
    for k in low:
        following = (k + 1) % segments
        face += [(k, following, following + segments), (k, following + segments, k + segments)]
    return vertex, np.array(face)


def _pyramid(size: np.ndarray, segments: int) -> tuple[np.ndarray, np.ndarray]:
    ring = np.column_stack([size[0] * _circle(segments), np.full(segments, -size[1])])
    face = [
        *fan(tuple(range(segments))[::-1]),
        *((k, (k + 1) % segments, segments) for k in range(segments)),
    ]
    return np.concatenate([ring, [[0.0, 0.0, size[1]]]]), np.array(face)


def _ball(half: np.ndarray, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Of rings between two poles, half as many as segments."""
    polar = np.arange(1, segments // 2) / (segments // 2) * np.pi
    circle = _circle(segments)
    sines = zip(*sincos(polar), strict=True)
    rings = [np.column_stack([sine * circle, np.full(segments, -cosine)]) for sine, cosine in sines]
    vertex = np.concatenate([*rings, [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]])
    return vertex * half, _between_poles(len(vertex), segments)


def _between_poles(vertices: int, segments: int) -> np.ndarray:
    """Triangles of rings of vertices, from the lowest, with two poles after them."""
    low = vertices - 2
    high = vertices - 1
    last = vertices - 2 - segments
    here = np.arange(segments)
    following = (here + 1) % segments
    low = np.full(segments, low)
    high = np.full(segments, high)
    poles = np.array([[low, following, here], [high, last + here, last + following]])
    first = np.arange(0, last, segments)[:, None]
    a = first + here
    b = first + following
    sides = np.array([[a, b, b + segments], [a, b + segments, a + segments]])
    ordered = [poles.transpose(2, 0, 1), sides.transpose(3, 2, 0, 1).reshape(segments, -1, 3)]
    return np.concatenate(ordered, axis=1).reshape(-1, 3)


def _capsule(size: np.ndarray, segments: int) -> tuple[np.ndarray, np.ndarray]:
    """Of two half balls of one ring more, at the ends of the inner segment; a ball for a segment
    without length."""
    ball, face = _ball(np.full(3, size[0]), segments)
    if size[1] == 0.0:
        return ball, face
    middle = segments // 4 * segments
    doubled = np.concatenate([ball[:middle], ball[middle - segments :]])
    doubled[:middle, 2] -= size[1]
    doubled[middle:, 2] += size[1]
    doubled[-2, 2] = -size[0] - size[1]
    return doubled, _between_poles(len(doubled), segments)


def _sphere(size: np.ndarray, segments: int) -> tuple[np.ndarray, np.ndarray]:
    return _ball(np.full(3, size[0]), segments)


SOLIDS = {
    ShapeType.PLANE: Solid(None, lambda: (np.inf,) * 3, lambda d: np.inf, lambda: np.inf),
    ShapeType.SPHERE: Solid(
        _sphere, lambda x: (x, x, x), lambda x, d: x, lambda x: x, segments=256
    ),
    ShapeType.CAPSULE: Solid(
        _capsule,
        lambda x, y: (x, x, x + y),
        lambda x, y, d: x + y * abs(d[:, 2]),
        lambda x, y: x + y,
        segments=256,
        may_be_zero=1,
        scales=False,
    ),
    ShapeType.BOX: Solid(_box),
    ShapeType.CYLINDER: Solid(
        _prism,
        lambda x, y: (x, x, y),
        lambda x, y, d: x * norm(d[:, :2]) + y * abs(d[:, 2]),
        segments=1024,
    ),
    ShapeType.CONE: Solid(
        _pyramid,
        lambda x, y: (x, x, y),
        lambda x, y, d: np.maximum(y * d[:, 2], x * norm(d[:, :2]) - y * d[:, 2]),
        segments=1024,
    ),
    ShapeType.ELLIPSOID: Solid(
        _ball,
        height=lambda x, y, z, d: norm(np.column_stack([x, y, z]) * d),
        radius=lambda x, y, z: np.maximum(np.maximum(x, y), z),
        segments=256,
    ),
}
"""The types other than meshes and heightfields, which are described by their vertices."""


def solid_triangles(
    type_: ShapeType, size: np.ndarray, segments: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Vertices and triangles of a type of SOLIDS, see `Solid`; None of a plane. size: float64[n],
    of which the first are the type's."""
    make = SOLIDS[type_].triangles
    return None if make is None else make(size[: SIZE_COUNT[type_]], segments)


def _sizes_of(type_: ShapeType, size: np.ndarray) -> np.ndarray:
    """The sizes of a type of arrays [..., SIZE_WIDTH], first axis first."""
    return np.moveaxis(size, -1, 0)[: SIZE_COUNT[type_]]


def check_three_sizes(shape_type: np.ndarray, paths: Sequence[str], what: str) -> None:
    """Raises InputError for shapes whose type has more than three sizes. shape_type: int[n]. what:
    is not computed of them.

    `Primitive` has all sizes; functions of a type and three sizes do not read the others.
    """
    for row, kind in enumerate(shape_type.tolist() if SIZE_WIDTH > 3 else ()):
        if SIZE_COUNT[ShapeType(kind)] > 3:
            label = ShapeType(kind).label.replace("_", " ")
            fix = "leave it out, or add a convex mesh in its place"
            raise InputError(f"{what} of a {label} are not computed", paths[row], fix)


def has_support(shape_type: np.ndarray) -> np.ndarray:
    """bool[...]: types with a support function, which of a plane is infinite."""
    return shape_type <= ShapeType.CONVEX_MESH


def checked_size(
    shape_type: ShapeType, size: Sequence[float] | np.ndarray, where: str
) -> np.ndarray:
    """`size` as float64[SIZE_WIDTH]. Raises InputError for a wrong count and for sizes that are not
    finite and positive.

    A capsule's half length may be zero: the capsule is then a sphere.
    """
    given = float_array("size", size, where)
    count = SIZE_COUNT[shape_type]
    if given.shape != (count,):
        shown = f"{len(given)} sizes" if given.ndim == 1 else f"sizes of shape {given.shape}"
        names = f": {', '.join(SHAPE_FORMS[shape_type].sizes)}" if count else ""
        raise InputError(
            f"{shape_type.label} has {shown}", where, f"give {count}, in metres{names}"
        )
    full = np.zeros(SIZE_WIDTH)
    full[:count] = given
    numbers = given.tolist()
    may_be_zero = SOLIDS[shape_type].may_be_zero if shape_type in SOLIDS else -1
    if not all(
        0.0 < x <= LENGTH_LIMIT or (x == 0.0 and index == may_be_zero)
        for index, x in enumerate(numbers)
    ):
        shown = ", ".join(f"{x:g}" for x in numbers)
        limits = f"every size must be greater than zero and at most {LENGTH_LIMIT:g} m"
        raise InputError(f"{shape_type.label} has size ({shown})", where, limits)
    return full


def half_extents(shape_type: np.ndarray | int, size: np.ndarray) -> np.ndarray:
    """float64[..., 3]: half extents of the boxes about the origins of shapes [m]; infinite for a
    plane.

    shape_type: int[...]. size: float64[..., SIZE_WIDTH].
    """
    kind = np.asarray(shape_type)[..., None]
    given = np.asarray(size, np.float64)
    half = np.array(given[..., :3])
    for type_, solid in SOLIDS.items():
        if solid.half is not None:
            sides = np.broadcast_arrays(*solid.half(*_sizes_of(type_, given)), half[..., 0])[:3]
            half = np.where(kind == type_, np.stack(sides, axis=-1), half)
    return half


def ball_radius(shape_type: np.ndarray, size: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """float64[...]: radii of balls about the origins of shapes that contain them [m]; infinite for
    a plane.

    corner: float64[..., 3 or more], sizes or half extents; the length of the first three is the
    radius of the types without a smaller ball.
    """
    radius = norm(corner[..., :3])
    for type_, solid in SOLIDS.items():
        if solid.radius is not None:
            radius = np.where(shape_type == type_, solid.radius(*_sizes_of(type_, size)), radius)
    return radius


def support_heights(shape_type: np.ndarray, size: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """float64[n]: greatest direction.p over the points p of shapes in their frames [m]; infinite
    for a plane, of meshes and heightfields that of their boxes.
    """
    height = dot(size[:, :3], np.abs(direction))
    for type_, solid in SOLIDS.items():
        if solid.height is not None:
            of_type = solid.height(*_sizes_of(type_, size), direction)
            height = np.where(shape_type == type_, of_type, height)
    return height
