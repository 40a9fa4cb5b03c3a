"""The Python API of distances: `clearance`, as the command `collide clearance`, `distance` and `signed_distance`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.commands.clearance import ClearanceRequest, MeasuredMotion, check_clearance
from collidecli.commands.python_api import motion_of
from collidecli.engine.distances import PairDistances, point_distances
from collidecli.engine.pipeline import find_device
from collidecli.errors import InputError
from collidecli.numerics.matrices import compose_as_kernels, compose_poses, inverse_poses
from collidecli.scene.arguments import float_array
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield import solid_mesh
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import DEFAULT_CACHE_LIMIT, ContactOptions, EngineOptions
from collidecli.scene.shape_types import IDENTITY_POSE, ShapeType, checked_pose

KINDS = tuple(
    name.removeprefix("add_shape_")
    for name in ("add_shape_plane", "add_shape_sphere", "add_shape_capsule", "add_shape_box", "add_shape_cylinder",
                 "add_shape_cone", "add_shape_ellipsoid", "add_shape_convex_hull", "add_shape_mesh",
                 "add_shape_heightfield")
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Clearances:
    """Least distances of a model in motion as NumPy arrays: F frames, W worlds, I items.

    distance: float64[F, W, I], signed as that of a contact, less margins [m]; NaN where a world does not have the item.
    normal, point0, point1: float64[F, W, I, 3], unit from shape0 to shape1 and the witness points on both surfaces
    without margins, in world [m]. error: float64[F, W, I], bound of the distance's error [m], infinite for depths that
    are not certified. shape0, shape1: int32[F, W, I], rows of the nearest pair's shapes; -1 for none. items: pairs of
    paths, or paths of bodies, or the two patterns. time: float64[F] [s]. shape_path: paths of the model's shapes.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    items: tuple[tuple[str, str], ...] | tuple[str, ...]
    time: np.ndarray
    shape_path: tuple[str, ...]

    def __repr__(self) -> str:
        frames, worlds, items = self.distance.shape
        return f"<Clearances frames={frames} worlds={worlds} items={items}>"


def clearance(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    by: str = "",
    between: Sequence[str] = (),
    top: int = 0,
    margin: float | None = None,
    device: str = "",
    threads: int = 0,
    cache_dir: str = "",
    cache_limit: int = DEFAULT_CACHE_LIMIT,
) -> Clearances:
    """The least distances of a model's shapes in every frame of a motion, without a cutoff.

    Args:
        model, body_q: as in `collide`.
        by: "pair", each pair of shapes that may touch; "body", each body and static shape; "all", all pairs together;
            "" is "all" with `between`, else "pair".
        between: two patterns of paths of shapes or bodies; only pairs with one of each are measured.
        top: only the pairs that come nearest in the whole motion; 0 is all.
        margin: in place of every shape's own [m].
        device, threads, cache_dir, cache_limit: as in `collide`.
    Returns:
        `Clearances`.
    Raises:
        InputError: as `collide clearance` does.
    """
    if not isinstance(model, Model):
        raise InputError(f"model is a {type(model).__name__}", "clearance", "give a result of ModelBuilder.finalize()")
    engine = EngineOptions(device=device, threads=threads, cache_dir=cache_dir, cache_limit=cache_limit)
    request = ClearanceRequest(
        scenes=(), contact=ContactOptions(margin=margin), engine=engine, by=by, between=tuple(between), top=top
    )
    check_clearance(request)
    motion = motion_of(model, body_q)
    measured = MeasuredMotion(request, request.contact.apply(model), motion, find_device(device))
    for note in measured.notes:
        warnings.warn(note, RuntimeWarning, stacklevel=2)
    blocks = list(measured.blocks())
    names = ("distance", "normal", "point0", "point1", "error", "pair")
    arrays = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in names}
    pair, rows = arrays.pop("pair"), measured.items.pair
    shape0, shape1 = (np.where(pair < 0, -1, rows[np.maximum(pair, 0), k]).astype(np.int32) for k in (0, 1))
    first, second = measured.items.first, measured.items.second
    items = first if request.kind == "body" else tuple(zip(first, second, strict=True))
    paths = tuple(model.shapes.path)
    return Clearances(**arrays, shape0=shape0, shape1=shape1, items=items, time=motion.time, shape_path=paths)


class Shape:
    """A shape for `distance` and `signed_distance`.

    Args:
        kind: "plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "convex_hull", "mesh" or
            "heightfield".
        xform: its pose, x y z qx qy qz qw; None is the identity.
        arguments: sizes and geometry, as of `ModelBuilder.add_shape_<kind>`: radius=0.5, or vertices=v, faces=f [m].
    Raises InputError for an unknown kind or invalid arguments.
    """

    def __init__(self, kind: str, xform: Sequence[float] | None = None, **arguments: Any) -> None:
        if kind not in KINDS:
            raise InputError(f"kind is {kind!r}", "Shape", f"give one of: {', '.join(KINDS)}")
        self.kind, self.pose = kind, checked_pose(xform, "Shape")
        self._arguments = arguments
        self.model = _model_of(self)

    def add_to(self, builder: ModelBuilder) -> None:
        """Adds the shape to a builder, on a body of its own."""
        try:
            getattr(builder, f"add_shape_{self.kind}")(builder.add_body(), **self._arguments)
        except TypeError as error:
            raise InputError(str(error), f"Shape {self.kind}", "give the arguments of the builder's method") from None

    def __repr__(self) -> str:
        return f"<Shape {self.kind}>"


@dataclass(frozen=True, repr=False)
class Distances:
    """Least distances of two shapes.

    distance: signed, negative is the penetration depth [m]. normal: unit, from a to b.
    point_a, point_b: witness points [m]. error: bound of the distance's error [m], infinite for depths that are not
    certified. float64, [n] and [n, 3] for n poses, else a number and [3].
    """

    distance: Any
    normal: np.ndarray
    point_a: np.ndarray
    point_b: np.ndarray
    error: Any

    def __repr__(self) -> str:
        return f"<Distances distance={self.distance}>"


def distance(
    a: Shape, b: Shape, *, pose_a: np.ndarray | None = None, pose_b: np.ndarray | None = None, device: str = ""
) -> Distances:
    """The least distance of two shapes, exact, without a cutoff.

    Args:
        pose_a, pose_b: poses [7] or [n, 7], x y z qx qy qz qw, that move the shapes with their own poses; None is the
            identity. n pairs are measured together.
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        `Distances`.
    Raises:
        InputError: two planes, or invalid poses.
    """
    _check_shapes("distance", a, b)
    single = all(pose is None or np.ndim(pose) == 1 for pose in (pose_a, pose_b))
    poses = [_poses(pose, name) for pose, name in ((pose_a, "pose_a"), (pose_b, "pose_b"))]
    count = max(map(len, poses))
    if any(len(each) not in (1, count) for each in poses):
        raise InputError(f"there are {len(poses[0])} and {len(poses[1])} poses", "distance", "give as many of both")
    builder = ModelBuilder()
    for shape in (a, b):
        shape.add_to(builder)
    model = builder.finalize()
    placed = np.empty((count, 2, 7))
    for k, shape in enumerate((a, b)):
        placed[:, k] = compose_as_kernels(compose_poses(poses[k], shape.pose), model.shapes.pose[k])
    rows = np.tile(np.array([0, 1], np.int32), (count, 1))
    found = PairDistances(model, find_device(device), rows[:1]).measure(rows, placed)
    values = (found.distance, found.normal, found.point0, found.point1, found.error)
    if single:
        return Distances(float(values[0][0]), *(each[0] for each in values[1:4]), error=float(values[4][0]))
    return Distances(*values)


def signed_distance(points: np.ndarray, shape: Shape, *, device: str = "") -> Any:
    """The signed distance of points from a shape's surface, exact [m]: negative inside a closed shape.

    Args:
        points: [3] or [n, 3], in the frame in which the shape's pose is given [m].
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        float, or float64[n]. Never negative for an open mesh, which has no inside.
    Raises:
        InputError: points of another shape, or that are not finite.
    """
    _check_shapes("signed_distance", shape)
    given = float_array("points", points, "signed_distance")
    if given.shape[-1:] != (3,) or given.ndim > 2 or not np.isfinite(given).all():
        what = f"points have shape {given.shape}" if np.isfinite(given).all() else "a point is not finite"
        raise InputError(what, "signed_distance", "give finite numbers [3] or [n, 3]")
    model = shape.model
    if model.shapes.type[0] == ShapeType.HEIGHTFIELD:
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), solid_mesh(model.heightfields[0]))
        offset = model.shapes.pose[0]
        model = builder.finalize()
    else:
        offset = model.shapes.pose[0]
    in_world = np.zeros((given.reshape(-1, 3).shape[0], 7))
    in_world[:, :3], in_world[:, 6] = given.reshape(-1, 3), 1.0
    local = compose_poses(inverse_poses(compose_poses(shape.pose, offset)), in_world)[:, :3]
    found = point_distances(model, 0, local, find_device(device))
    return float(found[0]) if given.ndim == 1 else found


def _model_of(shape: Shape) -> Model:
    builder = ModelBuilder()
    shape.add_to(builder)
    return builder.finalize()


def _check_shapes(where: str, *shapes: object) -> None:
    for shape in shapes:
        if not isinstance(shape, Shape):
            raise InputError(f"a value of type {type(shape).__name__} is no shape", where, "give a collidecli.Shape")


def _poses(pose: np.ndarray | None, name: str) -> np.ndarray:
    """float64[n, 7]: poses with normalized quaternions."""
    if pose is None:
        return np.array([IDENTITY_POSE])
    given = float_array(name, pose, "distance")
    if given.ndim not in (1, 2) or given.shape[-1] != 7 or not len(given):
        raise InputError(f"{name} has shape {given.shape}", "distance", "give poses [7] or [n, 7]")
    return np.array([checked_pose(each, f"distance: {name}") for each in given.reshape(-1, 7).tolist()])
