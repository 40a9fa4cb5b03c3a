"""Which shapes are hydroelastic, and how stiff: authored values, options, and shapes that cannot
be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.model import Model
from collidecli.scene.option_values import LEAST_RESOLUTION, RESOLUTION_LIMIT
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

LEAST_VOXELS = 2.0
"""Voxels across a wall, below which a warning names the mesh: forces are a fifth too small, or
more."""
VOXELS_ACROSS = 4.0
"""Voxels across the shortest side of a shape's box, or more."""
HALVINGS_OF_MESHES = 4
"""Halvings of a voxel of meshes and heightfields, whose bounds are loose, where many blocks are
left."""
ENOUGH = 4.0
"""Voxels across a wall for forces within some 5 %."""


@dataclass(frozen=True)
class HydroShapes:
    """stiffness: float64[S] [N/m^3] of each shape; 0 for a shape without a pressure field, infinite
    for a rigid one.

    notes: warnings about shapes that were to be hydroelastic and have no volume, and about thin
    walls of meshes.
    """

    stiffness: np.ndarray
    notes: tuple[str, ...] = ()

    @property
    def has_pairs(self) -> bool:
        """Whether a pair of shapes can be hydroelastic: two with a field, one of them compliant."""
        finite = (self.stiffness > 0.0) & np.isfinite(self.stiffness)
        return bool(finite.any()) and int((self.stiffness > 0.0).sum()) > 1

    def is_pair(self, rows: np.ndarray) -> np.ndarray:
        """bool[n]: whether pairs of shapes int[n, 2] are hydroelastic."""
        first = self.stiffness[rows[:, 0]]
        second = self.stiffness[rows[:, 1]]
        return (first > 0.0) & (second > 0.0) & (np.isfinite(first) | np.isfinite(second))


def hydro_shapes(model: Model, options: ContactOptions) -> HydroShapes:
    """The hydroelastic shapes of a model by the options `hydro`, `hydro_stiffness` and
    `hydro_fallback`.

    Raises InputError for an open mesh that is to be hydroelastic, with the fallback "refuse".
    """
    shapes = model.shapes
    marked = (
        np.zeros(len(shapes), bool)
        if options.hydro == "off" or options.finds_pairs_alone
        else shapes.is_hydroelastic
    )
    if options.hydro == "all":
        marked = np.ones(len(shapes), bool)
    marked = marked & ~shapes.is_trigger
    if not marked.any():
        return HydroShapes(np.zeros(len(shapes)))
    open_mesh = np.array([not mesh.is_closed for mesh in model.meshes] + [False])[shapes.mesh]
    refused = np.flatnonzero(marked & open_mesh & (shapes.type == ShapeType.MESH))
    notes: tuple[str, ...] = ()
    if len(refused):
        path = shapes.path[refused[0]]
        others = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        if options.hydro_fallback == "refuse":
            fix = "close the mesh, collide with its convex hull, or give --hydro-fallback point"
            raise InputError(
                f"an open mesh cannot be hydroelastic: it has no inside{others}",
                f"shape '{path}'",
                fix,
            )
        notes += (
            f"shape '{path}'{others} is an open mesh, which has no inside: it has point contacts",
        )
    given = np.where(
        np.isnan(shapes.hydro_stiffness), options.hydro_stiffness, shapes.hydro_stiffness
    )
    result = np.where(marked, given, 0.0)
    result[refused] = 0.0
    hydro = HydroShapes(result, notes)
    return (
        replace(hydro, notes=(*notes, *_thin_notes(model, options, hydro)))
        if hydro.has_pairs
        else hydro
    )


def _thin_notes(model: Model, options: ContactOptions, hydro: HydroShapes) -> tuple[str, ...]:
    """A warning that names the mesh whose mean wall has the fewest voxels, of those with fewer than
    LEAST_VOXELS."""
    shapes = model.shapes
    across = np.full(len(shapes), np.inf)
    for row in np.flatnonzero((hydro.stiffness > 0.0) & (shapes.type == ShapeType.MESH)).tolist():
        if model.convex_surfaces[shapes.mesh[row]] is None:
            across[row] = _voxels_across_wall(model, row, options.hydro_resolution)
    count = int((across < LEAST_VOXELS).sum())
    row = int(across.argmin())
    if not count:
        return ()
    enough = (
        n
        for n in range(LEAST_RESOLUTION, RESOLUTION_LIMIT + 1)
        if _voxels_across_wall(model, row, n) >= ENOUGH
    )
    wanted = next(enough, None)
    fix = (
        f"give --hydro-resolution {wanted}"
        if wanted
        else "give it thicker walls, or point contacts (--hydro off)"
    )
    others = f" (and {count - 1} more)" if count > 1 else ""
    mesh = (
        f"mesh '{shapes.path[row]}'{others} has walls of"
        f" {model.meshes[shapes.mesh[row]].mean_wall:.3g} m"
    )
    what = (
        f"{mesh}, {across[row]:.2g} voxels of --hydro-resolution {options.hydro_resolution}:"
        " hydroelastic forces on it"
    )
    return (f"{what} may be several times too small; {fix}",)


def _voxels_across_wall(model: Model, row: int, resolution: int) -> float:
    """Voxels across the mean wall of a mesh against a shape that is not smaller, without halvings
    for small patches."""
    mesh = model.meshes[model.shapes.mesh[row]]
    margin = float(model.shapes.margin[row])
    half = mesh.half_extents + margin
    voxel = 2.0 * half.max() / resolution
    for _ in range(HALVINGS_OF_MESHES):
        if VOXELS_ACROSS * voxel <= 2.0 * half.min():
            break
        voxel *= 0.5
    return (mesh.mean_wall + 2.0 * margin) / float(voxel)
