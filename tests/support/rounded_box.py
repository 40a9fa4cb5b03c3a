"""Contacts of a rounded box in a package that has one, against float64 formulas: run as a program.

It imports NumPy and the package alone. Prints what was compared; an assertion fails otherwise.
"""

import sys
from collections.abc import Callable
from functools import cache

import numpy as np

import collidecli
from collidecli.errors import InputError
from collidecli.scene.shape_types import ShapeType

HALF = np.array([0.5, 0.3, 0.2])
RADIUS = 0.12
FRAMES = 60
SCALES = (1e-3, 1.0, 1e3)
BOUND = 1e-6
"""Of the size: distances are float32, with 6e-8 of 1, and points float64; the oracle's random
search ends at steps of 1e-8 rad, and its error against the closed form of the sphere is below."""
OTHERS = {
    "sphere": (0.25,),
    "capsule": (0.15, 0.3),
    "box": (0.3, 0.2, 0.25),
    "cylinder": (0.2, 0.3),
    "ellipsoid": (0.3, 0.2, 0.15),
    "rounded_box": (0.3, 0.25, 0.2, 0.1),
}


def support(kind: str, size: tuple[float, ...], d: np.ndarray) -> np.ndarray:
    """Greatest direction.p of the points of a shape; d: [n, 3]."""
    across = np.hypot(d[:, 0], d[:, 1])
    a = np.array(size)
    if kind == "sphere":
        return np.full(len(d), a[0])
    if kind == "capsule":
        return a[0] + a[1] * abs(d[:, 2])
    if kind == "box":
        return abs(d) @ a
    if kind == "cylinder":
        return a[0] * across + a[1] * abs(d[:, 2])
    if kind == "ellipsoid":
        return np.linalg.norm(d * a, axis=1)
    assert kind == "rounded_box"
    return abs(d) @ (a[:3] - a[3]) + a[3]


def signed_distance(point: np.ndarray) -> np.ndarray:
    """Of points [n, 3] from the rounded box of HALF and RADIUS, in its frame."""
    beyond = abs(point) - (HALF - RADIUS)
    outside = np.linalg.norm(np.maximum(beyond, 0.0), axis=1)
    return outside + np.minimum(beyond.max(axis=1), 0.0) - RADIUS


def rotation(q: np.ndarray) -> np.ndarray:
    """Matrices of unit quaternions [n, 4], xyzw."""
    x, y, z, w = q.T
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)]
    rows += [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)]
    rows += [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def separation(kind: str, size: tuple[float, ...], pose: np.ndarray, rng) -> float:
    """The largest separation of the rounded box at the origin and a shape at a pose over all unit
    directions: their distance, or minus their depth."""
    turn = rotation(pose[None, 3:])[0]

    def along(d: np.ndarray) -> np.ndarray:
        of_box = support("rounded_box", (*HALF, RADIUS), d)
        return d @ pose[:3] - of_box - support(kind, size, -d @ turn)

    # Axes of both shapes and their products are normals of faces and of pairs of edges, at which
    # the separation has a kink that a search only approaches.
    axes = np.concatenate([np.eye(3), turn.T])
    edges = np.cross(axes[:3, None], axes[None, 3:]).reshape(-1, 3)
    first = np.concatenate([axes, -axes, edges, -edges, rng.normal(size=(4000, 3))])
    first /= np.linalg.norm(first, axis=1)[:, None]
    best = first[np.argsort(-along(first))[:8]]
    step = 0.1
    while step > 1e-8:
        tried = best[:, None] + step * rng.normal(size=(len(best), 100, 3))
        tried = np.concatenate([best[:, None], tried], axis=1).reshape(-1, 3)
        tried /= np.linalg.norm(tried, axis=1)[:, None]
        values = along(tried).reshape(len(best), -1)
        best = tried.reshape(len(best), -1, 3)[np.arange(len(best)), values.argmax(axis=1)]
        step *= 0.75
    return float(along(best).max())


def poses(kind: str) -> np.ndarray:
    """Of the other shape in each frame: apart and overlapping, up to the middle of the box."""
    rng = np.random.default_rng(len(kind))
    q = rng.normal(size=(FRAMES, 4))
    q /= np.linalg.norm(q, axis=1)[:, None]
    direction = rng.normal(size=(FRAMES, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    return np.column_stack([direction * rng.uniform(0.15, 1.1, FRAMES)[:, None], q])


@cache
def truth(kind: str) -> np.ndarray:
    """Signed distances of the rounded box and a shape at its poses, at the scale 1."""
    at = poses(kind)
    rng = np.random.default_rng(3)
    found = np.array([separation(kind, OTHERS[kind], pose, rng) for pose in at])
    if kind == "sphere":  # the oracle itself, against the closed form
        exact = signed_distance(at[:, :3]) - OTHERS["sphere"][0]
        assert abs(found - exact).max() < BOUND, abs(found - exact).max()
        return exact
    return found


def compare(kind: str, scale: float) -> tuple[float, int, int]:
    """Largest error, and numbers of separated and overlapping frames."""
    builder = collidecli.ModelBuilder()
    cfg = collidecli.ShapeConfig(gap=2.0 * scale)
    builder.add_shape_rounded_box(-1, None, *(scale * HALF), scale * RADIUS, cfg=cfg)
    add = getattr(builder, f"add_shape_{kind}")
    add(builder.add_body(), None, *(scale * x for x in OTHERS[kind]), cfg=cfg)
    at = poses(kind)
    given = at.copy()
    given[:, :3] *= scale
    found = collidecli.collide(builder.finalize(), given[:, None, None], device="cpu")
    starts = found.cell_start
    assert (np.diff(starts) > 0).all(), "a pair within the gap has no contact"
    least = np.minimum.reduceat(found.distance, starts[:-1]) / scale
    expected = truth(kind)
    on_surface = signed_distance(found.point0.astype(float) / scale)
    assert abs(on_surface).max() < BOUND, "a point is off the rounded box"
    return float(abs(least - expected).max()), int((expected > 0).sum()), int((expected < 0).sum())


def compare_plane(scale: float) -> float:
    """Largest error of the distance from a plane."""
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane(cfg=collidecli.ShapeConfig(gap=2.0 * scale))
    builder.add_shape_rounded_box(builder.add_body(), None, *(scale * HALF), scale * RADIUS)
    at = poses("plane")
    given = at.copy()
    given[:, :3] *= scale
    found = collidecli.collide(builder.finalize(), given[:, None, None], device="cpu")
    down = -rotation(at[:, 3:])[:, 2]
    expected = at[:, 2] - support("rounded_box", (*HALF, RADIUS), down)
    assert len(found.distance) == len(at)
    return float(abs(found.distance / scale - expected).max())


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, 0.3, 0.3]]) - 0.25
DENTED = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 4], [2, 3, 4], [3, 1, 4]])
"""A tetrahedron whose large face has a dent: pairs with it are collided triangle by triangle."""


def least_on_triangle(corners: np.ndarray) -> float:
    """The least signed distance from the rounded box of the points of a triangle [3, 3].

    It is a convex function: each grid around the least point of the one before has half its width.
    """
    middle = np.full(2, 1.0 / 3.0)
    half = 0.7
    while half > 1e-10:
        offset = np.linspace(-half, half, 41)
        u, v = np.meshgrid(middle[0] + offset, middle[1] + offset)
        u = np.clip(u, 0.0, 1.0).ravel()
        v = np.minimum(np.clip(v.ravel(), 0.0, 1.0), 1.0 - u)
        sides = corners[1:] - corners[0]
        distance = signed_distance(corners[0] + np.outer(u, sides[0]) + np.outer(v, sides[1]))
        least = int(distance.argmin())
        middle = np.array([u[least], v[least]])
        half *= 0.5
    return float(distance[least])


def compare_mesh() -> None:
    """Distances from a triangle mesh, and depths of at least half the deepest point's."""
    at = poses("mesh")
    builder = collidecli.ModelBuilder()
    cfg = collidecli.ShapeConfig(gap=2.0)
    builder.add_shape_rounded_box(-1, None, *HALF, RADIUS, cfg=cfg)
    builder.add_shape_mesh(builder.add_body(), CORNERS, DENTED, cfg=cfg)
    found = collidecli.collide(builder.finalize(), at[:, None, None], device="cpu")
    least = np.minimum.reduceat(found.distance, found.cell_start[:-1])
    assert len(least) == len(at)
    world = CORNERS @ rotation(at[:, 3:]).transpose(0, 2, 1) + at[:, None, :3]
    true = np.array([min(map(least_on_triangle, corners[DENTED])) for corners in world])
    apart = true > 0.0
    error = abs(least - true)[apart].max()
    print(f"mesh: {apart.sum()} apart, {(~apart).sum()} overlapping, error {error:.1e}")
    assert error < BOUND, error
    assert (least[~apart] <= 0.5 * true[~apart]).all()
    assert abs(signed_distance(found.point0.astype(float))).max() < BOUND
    assert min(apart.sum(), (~apart).sum()) > FRAMES // 8


def check_refused(words: str, call: Callable[[], object]) -> None:
    """Fails unless a call raises InputError with these words."""
    message = ""
    try:
        call()
    except InputError as error:
        message = str(error)
    assert words in message, (words, message)


def check_refusals() -> None:
    """Sizes of another number, a radius that leaves no core, and what is not computed of it."""
    add = collidecli.ModelBuilder().add_shape
    check_refused("hx, hy, hz, radius", lambda: add(-1, ShapeType.ROUNDED_BOX, (0.5, 0.3)))
    check_refused("less than each", lambda: add(-1, ShapeType.ROUNDED_BOX, (0.5, 0.3, 0.2, 0.2)))
    field = collidecli.ShapeConfig(sdf_max_resolution=16)
    builder = collidecli.ModelBuilder()
    check_refused(
        "signed distance fields of a rounded box are not computed",
        lambda: builder.add_shape_rounded_box(-1, cfg=field),
    )
    builder.add_shape_rounded_box(-1)
    builder.add_shape_box(builder.add_body(), cfg=field)
    pose = np.array([[[[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]]])
    check_refused(
        "signed distance fields of a rounded box are not computed",
        lambda: collidecli.collide(builder.finalize(), pose, device="cpu"),
    )
    check_refused(
        "distances of points of a rounded box are not computed",
        lambda: collidecli.signed_distance(np.zeros((1, 3)), collidecli.Shape("rounded_box")),
    )


def main() -> None:
    """With the argument "mesh" of a triangle mesh alone, whose kernels take minutes to compile."""
    if sys.argv[1:] == ["mesh"]:
        compare_mesh()
        return
    check_refusals()
    for scale in SCALES:
        error = compare_plane(scale)
        assert error < BOUND, ("plane", scale, error)
        for kind in OTHERS:
            error, apart, overlapping = compare(kind, scale)
            print(
                f"{kind} at {scale:g}: {apart} apart, {overlapping} overlapping, error {error:.1e}"
            )
            assert error < BOUND, (kind, scale, error)
            assert min(apart, overlapping) > FRAMES // 8, kind


if __name__ == "__main__":
    main()
