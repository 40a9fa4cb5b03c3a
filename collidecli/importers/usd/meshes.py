"""Mesh colliders of a stage: their approximations, and the attributes that limit them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.collider_notes import Notes
from collidecli.importers.mesh_shapes import (
    CHOSEN,
    CUBE,
    DEFAULT_THICKNESS,
    FEWER,
    FIELD,
    HULL,
    PARTS,
    SPHERE,
    TRIANGLES,
    Fit,
    MeshLimits,
    field_of_mesh,
    field_resolution,
    fitted,
)
from collidecli.importers.usd.collider_shapes import WorldShape
from collidecli.importers.usd.mesh_contents import MESH, MeshContents
from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.subset_materials import SubsetFaces, SubsetMaterials
from collidecli.importers.usd.transforms import (
    check_columns,
    check_lengths,
    columns_of,
    located_transform,
    scale_keys,
)
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.numerics.products import matvec, polar
from collidecli.scene.mesh_choices import MeshChoice, MeshChoices
from collidecli.scene.sdf_options import DEFAULT_BAND, MOST_RESOLUTION, RESOLUTION_STEP

if TYPE_CHECKING:
    from collidecli.importers.usd.mesh_contents import MeshContent
    from collidecli.scene.triangle_mesh import TriangleMesh

SDF_API = "NewtonSDFCollisionAPI"
"""Newton uses the distance field of a mesh with this API, independent of its approximation."""
RESOLUTION = "physxSDFMeshCollision:sdfResolution"
THICKNESS = "physxSDFMeshCollision:sdfNarrowBandThickness"
NEWTON_RESOLUTION = "newton:sdfMaxResolution"
NEWTON_VOXEL = "newton:sdfTargetVoxelSize"
NEWTON_INNER = "newton:sdfNarrowBandInner"
NEWTON_OUTER = "newton:sdfNarrowBandOuter"
DEFAULT_NEWTON_RESOLUTION = 64
"""Of Newton, along the longest side of a mesh's bounding box."""


def field_options(
    values: dict[str, Any], of_newton: bool, mesh: TriangleMesh, where: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Options of `ShapeConfig` for the field of a mesh, and notes for warnings.

    values: attributes authored on the collider, Newton's in SI; used and overridden ones are
    removed. of_newton: the mesh has Newton's API; the defaults are then Newton's, else PhysX's.
    Newton's attributes take precedence over PhysX's, and a voxel size over a resolution. Raises
    InputError at `where` for an invalid value.
    """
    thickness = values.pop(THICKNESS, DEFAULT_THICKNESS)
    if not isinstance(thickness, float) or not 0.0 < thickness < np.inf:
        raise InputError(
            f"{THICKNESS} is {thickness!r}",
            where,
            "give a fraction of the mesh's diagonal, above 0",
        )
    resolution = DEFAULT_NEWTON_RESOLUTION if of_newton else None
    options, notes = field_of_mesh(mesh, resolution, thickness)
    given = [
        (name, values.pop(name))
        for name in (NEWTON_VOXEL, NEWTON_RESOLUTION, RESOLUTION)
        if name in values
    ]
    notes += tuple(f"{name} is ignored where {given[0][0]} is authored" for name, _ in given[1:])
    if given and given[0][0] == NEWTON_VOXEL:
        options |= {"sdf_max_resolution": None, "sdf_target_voxel_size": given[0][1]}
    elif given:
        options |= field_resolution(_checked_resolution(*given[0], where), mesh)
    band = DEFAULT_BAND if of_newton else options["sdf_narrow_band_range"]
    inner = values.pop(NEWTON_INNER, band[0])
    outer = values.pop(NEWTON_OUTER, band[1])
    if not inner < 0.0 < outer:
        what = f"{NEWTON_INNER} is {inner:g} m, {NEWTON_OUTER} {outer:g} m"
        raise InputError(what, where, "give distances below and above zero")
    options["sdf_narrow_band_range"] = (inner, outer)
    return options, notes


def _checked_resolution(name: str, value: object, where: str) -> int:
    """A resolution. Raises InputError at `where` for one that is invalid, of Newton also for one
    that is not a multiple of RESOLUTION_STEP."""
    step = RESOLUTION_STEP if name == NEWTON_RESOLUTION else 1
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not 0 < value <= MOST_RESOLUTION
        or value % step
    ):
        multiple = f"a multiple of {step}" if step > 1 else "an integer above 0"
        raise InputError(
            f"{name} is {value!r}", where, f"give {multiple}, at most {MOST_RESOLUTION}"
        )
    return value


OF_MUJOCO = "mjc:maxhullvert"
HULL_LIMITS = ("newton:maxHullVertices", "physxConvexHullCollision:hullVertexLimit", OF_MUJOCO)
"""In order of precedence."""
FRACTION_OF_TRIANGLES = "physxTriangleMeshSimplificationCollision:metric"
MOST_PARTS = "physxConvexDecompositionCollision:maxConvexHulls"
MOST_VERTICES = ("newton:maxHullVertices", "physxConvexDecompositionCollision:hullVertexLimit")
LEAST_VERTICES = 4
TWO_SIDED = "collide:twoSided"
SOLID = "collide:solid"
NOT_USED = {
    TRIANGLES: ("physxTriangleMeshCollision:",),
    FEWER: ("physxTriangleMeshSimplificationCollision:",),
    PARTS: ("physxConvexDecompositionCollision:", "mjc:maxhullvert", TWO_SIDED, SOLID),
    HULL: ("physxConvexHullCollision:minThickness", TWO_SIDED, SOLID),
    FIELD: ("physxSDFMeshCollision:", "newton:sdf", "newton:hydroelastic", TWO_SIDED, SOLID),
    CUBE: (TWO_SIDED, SOLID),
    SPHERE: (TWO_SIDED, SOLID),
}
"""Attributes by approximation that cause a warning where they are authored, except for false
flags."""


class Cooking:
    """Limits of mesh approximations. kept: collider's path to authored attributes; used ones are
    removed."""

    def __init__(self, kept: dict[str, dict[str, Any]]) -> None:
        self._kept = kept

    def limits(self, path: str, approximation: str, where: str) -> MeshLimits:
        """Limits of a collider's approximation. Raises InputError at `where` for an invalid
        value."""
        attributes = self._kept.get(path, {})
        limits = MeshLimits()
        if approximation == FEWER and FRACTION_OF_TRIANGLES in attributes:
            fraction = attributes.pop(FRACTION_OF_TRIANGLES)
            if not (isinstance(fraction, float) and 0.0 < fraction <= 1.0):
                what = f"{FRACTION_OF_TRIANGLES} is {fraction!r}"
                raise InputError(what, where, "give a fraction of the triangles, up to 1")
            limits = MeshLimits(fraction=fraction)
        if approximation == PARTS:
            parts = _count(attributes, MOST_PARTS, 1, where)
            most = [_count(attributes, name, LEAST_VERTICES, where) for name in MOST_VERTICES]
            limits = MeshLimits(
                parts=parts, vertices=next((limit for limit in most if limit is not None), None)
            )
        if approximation == HULL:
            hull_limits = [
                (_count(attributes, name, LEAST_VERTICES, where), name) for name in HULL_LIMITS
            ]
            least, name = next((limit for limit in hull_limits if limit[0] is not None), (None, ""))
            limits = MeshLimits(vertices=least, vertices_of_mujoco=name == OF_MUJOCO)
        if approximation in (TRIANGLES, FEWER):
            limits = replace(
                limits, two_sided=attributes.pop(TWO_SIDED, True), solid=attributes.pop(SOLID, True)
            )
        return limits

    def notes(self, path: str, approximation: str) -> Iterator[str]:
        attributes = self._kept.get(path, {})
        for name, value in attributes.items():
            if (value is not False or name in (TWO_SIDED, SOLID)) and name.startswith(
                NOT_USED.get(approximation, ())
            ):
                yield f"{name} is not used"


def _count(attributes: dict[str, Any], name: str, least: int, where: str) -> int | None:
    """Removes an attribute and returns its value; None where it is not authored, zero or negative:
    no limit."""
    value = attributes.pop(name, None)
    if value is None:
        return None
    if not isinstance(value, int) or 0 <= value < least:
        raise InputError(f"{name} is {value!r}", where, f"give an integer of at least {least}")
    return value if value > 0 else None


COLLIDES_AS = {"sphereFill": "as a filling of spheres"}
"""Approximations that are not handled, with a description."""
STRETCH_DIGITS = 6
"""Meshes with equal points whose stretches agree to this number of digits have one hull, of the
first mesh: float32 orientations leave 1e-7 of scale and shear."""


class MeshReader:
    """Reads the mesh colliders of one stage; equal meshes of equal scale have one geometry.

    kept: collider's path to simulators' attributes that are authored on it; used ones are removed.
    metres_per_unit multiplies every length. strict: triangles that would be repaired are refused.
    choices: replace approximations. owner_of: path of a collider's body. subsets: reads materials
    of face subsets. body_of: body of each mesh collider that has been read, by the collider's path.
    """

    def __init__(
        self,
        physics: Physics,
        transforms: PrimTransforms,
        metres_per_unit: float,
        kept: dict[str, dict[str, Any]],
        strict: bool,
        choices: MeshChoices,
        owner_of: Mapping[str, str],
        subsets: SubsetMaterials,
    ) -> None:
        self._physics = physics
        self._transforms = transforms
        self._metres_per_unit = metres_per_unit
        self._kept = kept
        self._cooking = Cooking(kept)
        self._strict = strict
        self._contents = MeshContents()
        self._fitted: dict[tuple, Fit] = {}
        self._noted = Notes()
        self._choices = choices
        self._owner_of = owner_of
        self._subsets = subsets
        self.body_of: dict[str, str] = {}

    def read(self, path: str) -> dict[str, WorldShape]:
        """The shapes of a mesh collider by path: one of its own, or convex parts `<path>#<k>`.

        Raises InputError with the prim for an approximation that is not handled, points or topology
        that change over time, are missing or invalid, a mesh without volume or area, a scale of
        zero, and a sheared box.
        """
        prim = self._physics.prim(path)
        where = self._physics.where(path)
        self.body_of[path] = self._owner_of.get(path, "")
        choice = self._choices.of(path, self.body_of[path])
        approximation = CHOSEN[choice.kind] if choice else self._approximation(path)
        matrix = self._transforms.matrix(prim)
        columns = columns_of(matrix)
        with located_transform(f"the {MESH} collider", where):
            (check_columns if approximation == CUBE else check_lengths)(columns)
        content = self._contents.read(prim, where)
        rotation, stretch = polar(columns)
        limits = replace(self._cooking.limits(path, approximation, where), strict=self._strict)
        # A signed distance field is computed from the triangles.
        fit_as = TRIANGLES if approximation == FIELD else approximation
        key = id(content), fit_as, limits, scale_keys(stretch[None], STRETCH_DIGITS)[0]
        if key not in self._fitted:
            self._fitted[key] = fitted(
                content, fit_as, stretch * self._metres_per_unit, limits, where
            )
        fit = self._fitted[key]
        faces = self._subset_faces(path, content, approximation)
        field = self._field(path, fit, choice, where) if approximation == FIELD else None
        self._note_approximation(path, content, approximation, fit)
        position = matrix[3, :3] * self._metres_per_unit
        shapes = []
        for part in fit.shapes:
            center = position + matvec(rotation, part.center)
            shape = WorldShape(part.type, part.size, rotation, center, part.hull, part.mesh, field)
            if faces is not None:
                assert part.mesh is not None
                scale = stretch * self._metres_per_unit
                authored = self._subsets.authored_faces(key, content, scale, part.mesh)
                shape = replace(shape, subsets=(faces, authored))
            shapes.append(shape)
        return {
            f"{path}#{k}" if approximation == PARTS else path: shape
            for k, shape in enumerate(shapes)
        }

    def warnings(self) -> list[str]:
        """Warnings about the meshes that have been read, one line per kind."""
        return self._noted.warnings()

    def _approximation(self, path: str) -> str:
        """Without PhysicsMeshCollisionAPI a mesh collides as its triangles, and so it does without
        an approximation."""
        prim = self._physics.prim(path)
        where = self._physics.where(path)
        use = (
            "set physics:approximation (PhysicsMeshCollisionAPI) to none, convexHull,"
            " convexDecomposition or another"
        )
        approximation = str(self._physics.shapes[path].approximation)
        if SDF_API in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            if approximation not in (TRIANGLES, FIELD):
                self._noted.add(
                    f"physics:approximation = {approximation} is ignored where {SDF_API} is"
                    " applied",
                    path,
                )
            return FIELD
        if approximation in (TRIANGLES, FEWER, HULL, PARTS, CUBE, SPHERE, FIELD):
            return approximation
        kind = COLLIDES_AS.get(approximation)
        if kind is None:
            raise InputError(f"physics:approximation is '{approximation}'", where, use)
        given = f"physics:approximation = {approximation}"
        raise InputError(f"the {MESH} collides {kind} ({given}), which is not handled", where, use)

    def _field(self, path: str, fit: Fit, choice: MeshChoice | None, where: str) -> dict[str, Any]:
        (shape,) = fit.shapes
        assert shape.mesh is not None
        of_newton = SDF_API in self._physics.prim(path).GetPrimTypeInfo().GetAppliedAPISchemas()
        options, notes = field_options(self._kept.get(path, {}), of_newton, shape.mesh, where)
        for what in notes:
            self._noted.add(what, path)
        if choice is not None and choice.resolution is not None:
            options |= field_resolution(choice.resolution, shape.mesh)
        return options

    def _note_approximation(
        self, path: str, content: MeshContent, approximation: str, fit: Fit
    ) -> None:
        for what in (*fit.notes, *self._cooking.notes(path, approximation)):
            self._noted.add(what, path)
        if content.unused and approximation in (HULL, CUBE, SPHERE):
            self._noted.add(
                "points that no face uses count for its shape, as in PhysX and Newton", path
            )

    def _subset_faces(
        self, path: str, content: MeshContent, approximation: str
    ) -> SubsetFaces | None:
        """The subsets with own materials of a mesh whose shape has triangles; None without."""
        faces = self._subsets.faces(path, len(content.counts))
        if faces is None or approximation in (TRIANGLES, FEWER, FIELD):
            return faces
        self._noted.add(
            "physics materials of its GeomSubsets are not used, as its shape does not have its"
            " triangles; all of it has that of the mesh",
            path,
        )
        return None
