"""Motion of a USD stage: transforms of its bodies, and points of its deformable prims."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.stage import REST_TIME, authored_value, constant, reading_samples
from collidecli.importers.usd.transforms import (
    ROUNDING,
    PrimTransforms,
    TransformError,
    WorldTransforms,
    check_columns,
    columns_of,
    located_transform,
    pose_of,
    rotation_of,
    scales_of,
)
from collidecli.scene.builder import ModelBuilder, ShapeConfig
from collidecli.scene.model import Model
from collidecli.scene.motion import TimedMotion
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.scene.triangle_mesh import triangulated

# Particles, cloths and soft bodies of a USD stage: Points, Mesh and TetMesh prims whose points move.

POINTS, CLOTH_MESH, SOFT_MESH = "Points", "Mesh", "TetMesh"
DEFORMABLE = "collide:deformable"
"""Attribute of collide: whether a prim is deformable, whatever else the stage has of it."""
RADIUS = "collide:particleRadius"
"""Attribute of collide: radius of a prim's particles, in stage units."""
SCHEMAS = ("Deformable", "ParticleCloth", "ParticleSet")
"""Words in the names of applied schemas of deformable prims."""
OFFSET = "newton:particleOffset"
"""Attribute of Newton on the mesh of a deformable body."""


@dataclass(frozen=True)
class Deformable:
    """A prim of particles. triangle, tetrahedron: int64[n, 3 or 4]; of length 0 for none. radius: float64[n] [m]."""

    prim: Usd.Prim
    points: Usd.Attribute
    count: int
    radius: np.ndarray
    triangle: np.ndarray
    tetrahedron: np.ndarray

    @property
    def path(self) -> str:
        return str(self.prim.GetPath())


def deformable_prims(stage: Usd.Stage, file: str) -> dict[str, Usd.Prim]:
    """The deformable prims of a stage, by path, in its order.

    A prim with the attribute `collide:deformable` is what that says. Others are deformable if they have
    `newton:particleOffset`, or an applied schema whose name contains Deformable, ParticleCloth or ParticleSet, or if
    they are colliders whose points have several time samples: in many stages points move that only show something.
    Raises InputError for `collide:deformable` on a prim of another type.
    """
    prims = stage.Traverse(Usd.TraverseInstanceProxies())
    return {str(prim.GetPath()): prim for prim in prims if is_deformable(prim, file)}


def is_deformable(prim: Usd.Prim, file: str) -> bool:
    """Whether a prim of a file is deformable, see `deformable_prims`."""
    kind = str(prim.GetTypeName())
    where = f"{file} <{prim.GetPath()}>"
    value = authored_value(prim, DEFORMABLE)
    if value not in (None, False, True):
        raise InputError(f"{DEFORMABLE} is {value!r}", where, "give a bool")
    if kind not in (POINTS, CLOTH_MESH, SOFT_MESH):
        if value:
            what = f"{DEFORMABLE} is set on a prim of type {kind or 'none'}"
            raise InputError(what, where, f"set it on {POINTS}, {CLOTH_MESH} or {SOFT_MESH}")
        return False
    if value is not None:
        return bool(value)
    if prim.HasAttribute(OFFSET):
        return True
    # GetAppliedSchemas leaves out schemas of other programs, which no plugin defines.
    applied = prim.GetPrimTypeInfo().GetAppliedAPISchemas()
    if any(word in schema for schema in applied for word in SCHEMAS):
        return True
    moves = UsdGeom.PointBased(prim).GetPointsAttr().ValueMightBeTimeVarying()
    return moves and prim.HasAPI(UsdPhysics.CollisionAPI)


def read_deformable(prim: Usd.Prim, metres_per_unit: float, file: str) -> Deformable:
    """The particles of a prim at rest. Raises InputError with the prim for missing or invalid arrays."""
    where = f"{file} <{prim.GetPath()}>"
    based = UsdGeom.PointBased(prim)
    point = _array(based.GetPointsAttr(), where, 3).astype(np.float64)
    _check_points(point * metres_per_unit, where)
    triangle, tetrahedron = np.zeros((0, 3), np.int64), np.zeros((0, 4), np.int64)
    if str(prim.GetTypeName()) == CLOTH_MESH:
        mesh = UsdGeom.Mesh(prim)
        counts, indices = (_array(a, where) for a in (mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()))
        if counts.sum() != len(indices) or (counts < 3).any():
            raise InputError("faceVertexCounts and faceVertexIndices disagree", where, "correct the mesh")
        _check_indices(indices, len(point), where)
        triangle = triangulated(point, counts.astype(np.int32), indices.astype(np.int32), where)
        if mesh.GetOrientationAttr().Get() == UsdGeom.Tokens.leftHanded:
            triangle = triangle[:, ::-1]
    elif str(prim.GetTypeName()) == SOFT_MESH:
        tetrahedron = _array(prim.GetAttribute("tetVertexIndices"), where, 4)
        _check_indices(tetrahedron, len(point), where)
    radius = _radius(prim, len(point), where) * metres_per_unit
    return Deformable(prim, based.GetPointsAttr(), len(point), radius, triangle, tetrahedron)


def _array(attribute: Usd.Attribute, where: str, width: int = 0) -> np.ndarray:
    name = attribute.GetName() if attribute else "its elements"
    if attribute and name != "points":
        constant(attribute, where, "keep the elements over time")
    value = attribute.Get(REST_TIME) if attribute else None
    if value is None or not len(value):
        raise InputError(f"the deformable prim has no {name}", where, "give it points and elements, or leave it out")
    array = np.array(value)
    return array.reshape(-1, width) if width else array


def _check_points(point: np.ndarray, where: str) -> None:
    good = (np.abs(point) <= POSITION_LIMIT).all(axis=1)
    if not good.all():
        row = int(np.argmin(good))
        shown = ", ".join(f"{x:g}" for x in point[row])
        what = f"point {row} is at ({shown})"
        raise InputError(what, where, f"give finite positions of at most {POSITION_LIMIT:g} m")


def _check_indices(indices: np.ndarray, count: int, where: str) -> None:
    wrong = np.flatnonzero((indices < 0) | (indices >= count))
    if len(wrong):
        value = int(indices.flat[wrong[0]])
        raise InputError(f"an index is {value}, and the points are 0 to {count - 1}", where, "correct the indices")


def _radius(prim: Usd.Prim, count: int, where: str) -> np.ndarray:
    """float64[count]: `collide:particleRadius`, else half of the widths of Points, else 0, in stage units."""
    value = authored_value(prim, RADIUS)
    widths = UsdGeom.Points(prim).GetWidthsAttr() if str(prim.GetTypeName()) == POINTS else None
    if value is None and widths is not None and widths.Get(REST_TIME):
        value = 0.5 * np.array(widths.Get(REST_TIME), np.float64)
        value = value[0] if len(value) == 1 else value
    radii = np.asarray(0.0 if value is None else value, np.float64)
    if radii.ndim and len(radii) != count:
        raise InputError(f"there are {len(radii)} widths for {count} points", where, "give one for each, or one")
    if not ((radii >= 0.0) & np.isfinite(radii)).all():
        raise InputError(f"a particle's radius is {radii.min():g}", where, "give radii and widths of at least zero")
    return np.broadcast_to(radii, (count,)).copy()


class DeformableMotion:
    """Positions of the particles of a stage's deformable prims at time codes, in the order of a model's particles."""

    def __init__(self, deformables: dict[str, Deformable], metres_per_unit: float, file: str) -> None:
        self._deformables, self._metres_per_unit, self._file = deformables, metres_per_unit, file
        self._transforms = PrimTransforms(REST_TIME)

    @property
    def codes(self) -> set[float]:
        """Time codes of the samples of all points."""
        return {code for deformable in self._deformables.values() for code in deformable.points.GetTimeSamples()}

    def positions(self, paths: tuple[str, ...], codes: np.ndarray) -> np.ndarray:
        """float64[codes, P, 3]: world positions of the particles of the prims of `paths` [m]."""
        deformables = [self._deformables[path] for path in paths]
        with reading_samples(self._file):
            matrix = self._transforms.matrices_at([deformable.prim for deformable in deformables], codes)
            parts = [self._points(deformable, matrix[:, k], codes) for k, deformable in enumerate(deformables)]
        return np.concatenate(parts, axis=1)

    def _points(self, deformable: Deformable, matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
        points = np.empty((len(codes), deformable.count, 3))
        for frame, code in enumerate(codes):
            where = f"{self._file} <{deformable.path}>, time code {code:g}"
            value = deformable.points.Get(Usd.TimeCode(float(code)))
            point = np.zeros((0, 3)) if value is None else np.array(value, np.float64)
            if len(point) != deformable.count:
                fix = "keep the number of points over time"
                raise InputError(f"there are {len(point)} points, and {deformable.count} at rest", where, fix)
            x, y, z, origin = matrix[frame, :, :3]
            point = point[:, :1] * x + point[:, 1:2] * y + (point[:, 2:] * z + origin)
            point *= self._metres_per_unit
            _check_points(point, where)
            points[frame] = point
        return points


def add_deformable(builder: ModelBuilder, prim: Deformable, motion: DeformableMotion, cfg: ShapeConfig) -> None:
    """Adds a prim's particles at rest to a builder's open world, with the prim's path as key.

    cfg: its filters, and its margin, which is added to the radii; a gap has no effect.
    """
    cfg, radius = cfg.changed(gap=None), prim.radius
    position = motion.positions((prim.path,), np.array([REST_TIME.GetValue()]))[0]
    if len(prim.tetrahedron):
        builder.add_soft_mesh(
            vertices=position, indices=prim.tetrahedron, particle_radius=radius, cfg=cfg, key=prim.path
        )
    elif len(prim.triangle):
        builder.add_cloth_mesh(vertices=position, indices=prim.triangle, particle_radius=radius, cfg=cfg, key=prim.path)
    else:
        builder.add_particles(position, radius=radius, cfg=cfg, key=prim.path)


# Motion of a USD stage: time samples of the transforms of its bodies.

_MOST_STEP = 2**53
"""Largest number up to which float64 represents every integer."""


@dataclass(frozen=True)
class RestPose:
    """A body prim at rest: pose float64[7] [m], xyzw, and world scale float64[3], which must be constant."""

    pose: np.ndarray
    scale: np.ndarray


def transform_chain(prim: Usd.Prim) -> Iterator[UsdGeom.Xformable]:
    """The transforms of a prim's world pose: its own and its ancestors', up to one that resets the stack."""
    while prim and not prim.IsPseudoRoot():
        xformable = UsdGeom.Xformable(prim)
        if xformable:
            yield xformable
            if xformable.GetResetXformStack():
                return
        prim = prim.GetParent()


def is_animated(prim: Usd.Prim, known: dict[str, bool] | None = None) -> bool:
    """Whether the prim's world transform has more than one time sample.

    known: results for prims of the stage, by path; this function adds to it.
    """
    known = {} if known is None else known
    passed: list[str] = []
    moves = False
    while prim and not prim.IsPseudoRoot():
        path = str(prim.GetPath())
        if path in known:
            moves = known[path]
            break
        passed.append(path)
        xformable = UsdGeom.Xformable(prim)
        if xformable:
            moves = xformable.TransformMightBeTimeVarying()
            if moves or xformable.GetResetXformStack():
                break
        prim = prim.GetParent()
    known.update(dict.fromkeys(passed, moves))
    return moves


def _refuse_splines(prim: Usd.Prim, file: str) -> None:
    for xformable in transform_chain(prim):
        for op in xformable.GetOrderedXformOps():
            if op.GetAttr().HasSpline():
                what = f"{op.GetAttr().GetName()} is animated by a spline"
                raise InputError(what, f"{file} <{xformable.GetPath()}>", "bake it to time samples")


def rest_poses(
    transforms: PrimTransforms, prims: dict[str, Usd.Prim], metres_per_unit: float, file: str
) -> dict[str, RestPose]:
    """Poses of bodies' prims at the time of `transforms`, by path.

    Raises InputError with the first prim whose transform has a shear or a zero scale.
    """
    world = WorldTransforms(transforms, prims)
    for path in prims:
        with located_transform("the body", f"{file} <{path}>"):
            world.check(path)
    columns = world.columns
    poses, scales = pose_of(rotation_of(columns), world.position * metres_per_unit), scales_of(columns)
    return {path: RestPose(pose, scale) for path, pose, scale in zip(prims, poses, scales, strict=True)}


class UsdMotion(TimedMotion):
    """Body poses at the stage's time samples; see `scene.motion.Motion`.

    There is a frame at every time at which any body, or a prim above one, has an authored sample; between its own
    samples a body has USD's interpolated pose. time is time code / timeCodesPerSecond; step is the time codes where
    all are integers, else the frame's number. Only bodies with more than one sample are evaluated per frame.
    """

    def __init__(
        self,
        model: Model,
        stage: Usd.Stage,
        file: str,
        rest: dict[str, RestPose],
        metres_per_unit: float,
        particles: DeformableMotion | None = None,
    ) -> None:
        known: dict[str, bool] = {}
        prims = {path: stage.GetPrimAtPath(path) for path in rest}
        moving = {path: prim for path, prim in prims.items() if is_animated(prim, known)}
        self._rows = np.array([row for row, path in enumerate(model.bodies.path) if path in moving], np.intp)
        self._prims = [moving[model.bodies.path[row]] for row in self._rows]
        self._scale = np.array([rest[model.bodies.path[row]].scale for row in self._rows]).reshape(-1, 3)
        self._rest = np.array(model.bodies.pose)
        self._path, self._file, self._metres_per_unit = model.bodies.path, file, metres_per_unit
        self._stage, self._transforms = stage, PrimTransforms(Usd.TimeCode.EarliestTime())
        for prim in moving.values():
            _refuse_splines(prim, file)
        self._particles, self._particle_path = particles, model.particles.path
        codes = set() if particles is None else particles.codes
        codes |= {t for prim in moving.values() for x in transform_chain(prim) for t in x.GetTimeSamples()}
        self._codes = np.array(sorted(codes))
        whole = np.all((self._codes == np.rint(self._codes)) & (np.abs(self._codes) <= _MOST_STEP))
        rate = stage.GetTimeCodesPerSecond()
        if not rate > 0.0:
            raise InputError(f"timeCodesPerSecond is {rate:g}", file, "give a number greater than zero")
        with np.errstate(over="ignore"):
            super().__init__(self._codes / rate)
        if not np.isfinite(self.time).all():
            raise InputError(f"time codes over timeCodesPerSecond ({rate:g}) are not finite times", file, "correct it")
        if whole:
            self.step = self._codes.astype(np.int64)
        self.sha256 = ""

    def close(self) -> None:
        self._prims, self._transforms = [], PrimTransforms(Usd.TimeCode.EarliestTime())

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), 1, B, 7]: world pose of each of the model's bodies, xyzw, normalized.

        Raises InputError with file, time code and body of a transform that is not finite, has a shear, a zero scale, or
        another scale than the body at rest.
        """
        codes = self._codes[np.asarray(frames, np.intp)]
        poses = np.broadcast_to(self._rest, (len(codes), 1, *self._rest.shape)).copy()
        if not len(codes) or not len(self._prims):
            return poses
        with reading_samples(self._file):
            matrix = self._transforms.matrices_at(self._prims, codes)
        columns = columns_of(matrix)
        self._check(codes, matrix, columns)
        poses[:, 0, self._rows] = pose_of(rotation_of(columns), matrix[..., 3, :3] * self._metres_per_unit)
        return poses

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), 1, P, 3], see `scene.motion.recorded_particles`; None without deformable prims."""
        if self._particles is None:
            return None
        return self._particles.positions(self._particle_path, self._codes[np.asarray(frames, np.intp)])[:, None]

    def _check(self, codes: np.ndarray, matrix: np.ndarray, columns: np.ndarray) -> None:
        """Checks the chunk at once; on an error checks one by one to find the frame and body."""
        with np.errstate(all="ignore"):
            scale = scales_of(columns)
            same_scale = np.abs(scale - self._scale) <= ROUNDING * np.abs(self._scale)
        try:
            check_columns(columns)
            if np.all(same_scale) and np.all(np.abs(matrix) <= POSITION_LIMIT):
                return
        except TransformError:
            pass
        for frame, body in np.ndindex(matrix.shape[:2]):
            where = f"{self._file} <{self._path[self._rows[body]]}>, time code {codes[frame]:g}"
            try:
                if not np.all(np.abs(matrix[frame, body]) <= POSITION_LIMIT):
                    raise TransformError(f"a transform that is not finite, or beyond {POSITION_LIMIT:g}")
                check_columns(columns[frame, body])
            except TransformError as error:
                raise InputError(f"the body has {error}", where, "correct the body's time samples") from None
            if not np.all(same_scale[frame, body]):
                shown = ", ".join(f"{s:g}" for s in scale[frame, body])
                what = f"the body's scale changes over time (here it is {shown})"
                raise InputError(what, where, "keep the scale of a body constant")
