"""Particles, cloths and soft bodies of a USD stage: Points, Mesh and TetMesh prims whose points
move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.mesh_contents import is_left_handed
from collidecli.importers.usd.stage import reading_samples
from collidecli.importers.usd.typed_attributes import (
    FLAG,
    INDICES,
    NUMBERS,
    RADII,
    REST_TIME,
    TETRAHEDRA,
    VECTORS,
    Kind,
    read_array,
    read_authored,
    read_constant_array,
)
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.scene.builder import ModelBuilder, ShapeConfig
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.scene.triangulation import triangulated

POINTS = "Points"
CLOTH_MESH = "Mesh"
SOFT_MESH = "TetMesh"
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
    """A prim of particles. triangle, tetrahedron: int64[n, 3 or 4]; of length 0 for none. radius:
    float64[n] [m]."""

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

    A prim with the attribute `collide:deformable` is what that says. Others are deformable if they
    have `newton:particleOffset`, or an applied schema whose name contains Deformable, ParticleCloth
    or ParticleSet, or if they are colliders whose points have several time samples: in many stages
    points move that only show something. Raises InputError for `collide:deformable` on a prim of
    another type.
    """
    prims = stage.Traverse(Usd.TraverseInstanceProxies())
    return {str(prim.GetPath()): prim for prim in prims if is_deformable(prim, file)}


def is_deformable(prim: Usd.Prim, file: str) -> bool:
    """Whether a prim of a file is deformable, see `deformable_prims`."""
    kind = str(prim.GetTypeName())
    where = f"{file} <{prim.GetPath()}>"
    value = read_authored(prim, DEFORMABLE, FLAG, where)
    if kind not in (POINTS, CLOTH_MESH, SOFT_MESH):
        if value:
            what = f"{DEFORMABLE} is set on a prim of type {kind or 'none'}"
            raise InputError(what, where, f"set it on {POINTS}, {CLOTH_MESH} or {SOFT_MESH}")
        return False
    if value is not None:
        return value
    if prim.HasAttribute(OFFSET):
        return True
    # GetAppliedSchemas leaves out schemas of other programs, which no plugin defines.
    applied = prim.GetPrimTypeInfo().GetAppliedAPISchemas()
    if any(word in schema for schema in applied for word in SCHEMAS):
        return True
    moves = UsdGeom.PointBased(prim).GetPointsAttr().ValueMightBeTimeVarying()
    return moves and prim.HasAPI(UsdPhysics.CollisionAPI)


def read_deformable(prim: Usd.Prim, metres_per_unit: float, file: str) -> Deformable:
    """The particles of a prim at rest. Raises InputError with the prim for missing or invalid
    arrays."""
    where = f"{file} <{prim.GetPath()}>"
    based = UsdGeom.PointBased(prim)
    point = _required(based.GetPointsAttr(), VECTORS, where)
    _check_points(point * metres_per_unit, where)
    triangle = np.zeros((0, 3), np.int64)
    tetrahedron = np.zeros((0, 4), np.int64)
    if str(prim.GetTypeName()) == CLOTH_MESH:
        mesh = UsdGeom.Mesh(prim)
        counts, indices = (
            _required(a, INDICES, where)
            for a in (mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr())
        )
        if counts.sum(dtype=np.int64) != len(indices) or (counts < 3).any():
            raise InputError(
                "faceVertexCounts and faceVertexIndices disagree", where, "correct the mesh"
            )
        _check_indices(indices, len(point), where)
        triangle = triangulated(point, counts, indices, where)
        if is_left_handed(mesh, where):
            triangle = triangle[:, ::-1]
    elif str(prim.GetTypeName()) == SOFT_MESH:
        tetrahedron = _required(prim.GetAttribute("tetVertexIndices"), TETRAHEDRA, where)
        _check_indices(tetrahedron, len(point), where)
    radius = _radius(prim, len(point), where) * metres_per_unit
    return Deformable(prim, based.GetPointsAttr(), len(point), radius, triangle, tetrahedron)


def _required(attribute: Usd.Attribute, kind: Kind, where: str) -> np.ndarray:
    """The array of an attribute at rest, of which only points may change over time; refused where
    it is missing."""
    name = attribute.GetName() if attribute else "its elements"
    array = (
        read_array(attribute, kind, where)
        if name == "points"
        else read_constant_array(attribute, kind, where, "keep the elements over time")
    )
    if not len(array):
        what = f"the deformable prim has no {name}"
        raise InputError(what, where, "give it points and elements, or leave it out")
    return array


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
        raise InputError(
            f"an index is {value}, and the points are 0 to {count - 1}",
            where,
            "correct the indices",
        )


def _radius(prim: Usd.Prim, count: int, where: str) -> np.ndarray:
    """float64[count]: `collide:particleRadius`, else half of the widths of Points, else 0, in stage
    units."""
    value = read_authored(prim, RADIUS, RADII, where)
    if value is None and str(prim.GetTypeName()) == POINTS:
        widths = 0.5 * read_array(UsdGeom.Points(prim).GetWidthsAttr(), NUMBERS, where)
        value = (widths[0] if len(widths) == 1 else widths) if len(widths) else None
    radii = np.asarray(0.0 if value is None else value, np.float64)
    if radii.ndim and len(radii) != count:
        raise InputError(
            f"there are {len(radii)} widths for {count} points", where, "give one for each, or one"
        )
    if not ((radii >= 0.0) & np.isfinite(radii)).all():
        raise InputError(
            f"a particle's radius is {radii.min():g}",
            where,
            "give radii and widths of at least zero",
        )
    return np.broadcast_to(radii, (count,)).copy()


class DeformableMotion:
    """Positions of the particles of a stage's deformable prims at time codes, in the order of a
    model's particles."""

    def __init__(
        self, deformables: dict[str, Deformable], metres_per_unit: float, file: str
    ) -> None:
        self._deformables = deformables
        self._metres_per_unit = metres_per_unit
        self._file = file
        self._transforms = PrimTransforms(REST_TIME, file)

    @property
    def codes(self) -> set[float]:
        """Time codes of the samples of all points."""
        return {
            code
            for deformable in self._deformables.values()
            for code in deformable.points.GetTimeSamples()
        }

    def positions(self, paths: tuple[str, ...], codes: np.ndarray) -> np.ndarray:
        """float64[codes, P, 3]: world positions of the particles of the prims of `paths` [m]."""
        deformables = [self._deformables[path] for path in paths]
        with reading_samples(self._file):
            matrix = self._transforms.matrices_at(
                [deformable.prim for deformable in deformables], codes
            )
            parts = [
                self._points(deformable, matrix[:, k], codes)
                for k, deformable in enumerate(deformables)
            ]
        return np.concatenate(parts, axis=1)

    def _points(self, deformable: Deformable, matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
        points = np.empty((len(codes), deformable.count, 3))
        for frame, code in enumerate(codes):
            where = f"{self._file} <{deformable.path}>, time code {code:g}"
            point = read_array(deformable.points, VECTORS, where, Usd.TimeCode(float(code)))
            if len(point) != deformable.count:
                fix = "keep the number of points over time"
                raise InputError(
                    f"there are {len(point)} points, and {deformable.count} at rest", where, fix
                )
            x, y, z, origin = matrix[frame, :, :3]
            point = point[:, :1] * x + point[:, 1:2] * y + (point[:, 2:] * z + origin)
            point *= self._metres_per_unit
            _check_points(point, where)
            points[frame] = point
        return points


def add_deformable(
    builder: ModelBuilder, prim: Deformable, motion: DeformableMotion, cfg: ShapeConfig
) -> None:
    """Adds a prim's particles at rest to a builder's open world, with the prim's path as key.

    cfg: its filters, and its margin, which is added to the radii; a gap has no effect.
    """
    cfg = cfg.changed(gap=None)
    radius = prim.radius
    position = motion.positions((prim.path,), np.array([REST_TIME.GetValue()]))[0]
    if len(prim.tetrahedron):
        builder.add_soft_mesh(
            vertices=position,
            indices=prim.tetrahedron,
            particle_radius=radius,
            cfg=cfg,
            key=prim.path,
        )
    elif len(prim.triangle):
        builder.add_cloth_mesh(
            vertices=position, indices=prim.triangle, particle_radius=radius, cfg=cfg, key=prim.path
        )
    else:
        builder.add_particles(position, radius=radius, cfg=cfg, key=prim.path)
