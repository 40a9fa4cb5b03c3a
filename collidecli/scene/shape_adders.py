"""Methods of the builder that add a shape, one for each shape type."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import FLAG, check_kind, float_array, location_of
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.model import STATIC_BODY
from collidecli.scene.placement import checked_pose, compose
from collidecli.scene.shape_config import ShapeConfig, sdf_options
from collidecli.scene.shape_types import LENGTH_LIMIT, ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh

HALF_SQRT = math.sqrt(0.5)
Z_TO_UP = {
    "X": (0.0, HALF_SQRT, 0.0, HALF_SQRT),
    "Y": (-HALF_SQRT, 0.0, 0.0, HALF_SQRT),
    "Z": (0.0, 0.0, 0.0, 1.0),
}
"""The rotation, xyzw, from +z to each up axis."""

Xform = Sequence[float] | None
Cfg = ShapeConfig | None


class ShapeAdders:
    """Methods that add a shape and return its index. `body` -1 is the static world; sizes in metres, see `ShapeType`.

    xform: shape frame in body frame, x y z, qx qy qz qw; None is the identity. cfg None: the builder's default.
    """

    up_axis: str
    default_shape_cfg: ShapeConfig

    @property
    def shape_count(self) -> int:
        raise NotImplementedError

    def _add_shape(
        self,
        body: int,
        shape_type: ShapeType,
        size: Sequence[float] | np.ndarray,
        pose: np.ndarray,
        cfg: Cfg,
        key: str | None,
        hull: ConvexHull | None = None,
        mesh: TriangleMesh | None = None,
        heightfield: Heightfield | None = None,
        cloud: int = -1,
    ) -> int:
        raise NotImplementedError

    def add_shape(
        self,
        body: int,
        type: ShapeType,
        size: Sequence[float] = (),
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        raise NotImplementedError

    def add_shape_plane(self, body: int, xform: Xform = None, cfg: Cfg = None, key: str | None = None) -> int:
        """Adds the infinite plane z = 0 of the shape's frame, with normal +z, solid below; returns its index."""
        return self.add_shape(body, ShapeType.PLANE, (), xform, cfg, key)

    def add_ground_plane(self, height: float = 0.0, cfg: Cfg = None, key: str | None = "ground_plane") -> int:
        """Adds a static plane at `height` [m] along the up axis, solid below; returns its index."""
        if self.up_axis not in tuple(Z_TO_UP):
            where = location_of("shape", key, self.shape_count)
            raise InputError(f"the builder's up_axis is {self.up_axis!r}", where, "set it to 'X', 'Y' or 'Z'")
        position = [height if axis == self.up_axis else 0.0 for axis in "XYZ"]
        return self.add_shape_plane(STATIC_BODY, (*position, *Z_TO_UP[self.up_axis]), cfg, key)

    def add_shape_sphere(
        self, body: int, xform: Xform = None, radius: float = 1.0, cfg: Cfg = None, key: str | None = None
    ) -> int:
        """Adds a sphere; returns its index. radius [m]."""
        return self.add_shape(body, ShapeType.SPHERE, (radius,), xform, cfg, key)

    def add_shape_capsule(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a capsule along z; returns its index. half_height: of the inner segment, without the caps [m]."""
        return self.add_shape(body, ShapeType.CAPSULE, (radius, half_height), xform, cfg, key)

    def add_shape_box(
        self,
        body: int,
        xform: Xform = None,
        hx: float = 0.5,
        hy: float = 0.5,
        hz: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a box; returns its index. hx, hy, hz: half extents along x, y, z [m]."""
        return self.add_shape(body, ShapeType.BOX, (hx, hy, hz), xform, cfg, key)

    def add_shape_cylinder(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a cylinder along z, from -half_height to +half_height [m]; returns its index."""
        return self.add_shape(body, ShapeType.CYLINDER, (radius, half_height), xform, cfg, key)

    def add_shape_cone(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a cone; returns its index. radius: of the base, at z = -half_height; the apex is at +half_height [m]."""
        return self.add_shape(body, ShapeType.CONE, (radius, half_height), xform, cfg, key)

    def add_shape_ellipsoid(
        self,
        body: int,
        xform: Xform = None,
        rx: float = 1.0,
        ry: float = 0.75,
        rz: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds an ellipsoid; returns its index. rx, ry, rz: semi-axes along x, y, z [m]."""
        return self.add_shape(body, ShapeType.ELLIPSOID, (rx, ry, rz), xform, cfg, key)

    def add_shape_convex_hull(
        self,
        body: int,
        vertices: np.ndarray | ConvexHull,
        xform: Sequence[float] | None = None,
        cfg: ShapeConfig | None = None,
        key: str | None = None,
    ) -> int:
        """Adds the convex hull of vertices [n, 3], in the shape's frame [m]; returns its index.

        vertices: or a result of `convex_hull`, which several shapes may share.
        Raises InputError for vertices that are not finite, and for a hull without volume.
        """
        where = location_of("shape", key, self.shape_count)
        hull = vertices if isinstance(vertices, ConvexHull) else convex_hull(vertices, where)
        pose = checked_pose(xform, where)
        pose = compose(pose, np.array([*hull.center, 0.0, 0.0, 0.0, 1.0]))
        return self._add_shape(body, ShapeType.CONVEX_MESH, hull.half_extents, pose, cfg, key, hull)

    def add_shape_mesh(
        self,
        body: int,
        vertices: np.ndarray | TriangleMesh,
        faces: np.ndarray | None = None,
        xform: Sequence[float] | None = None,
        cfg: ShapeConfig | None = None,
        key: str | None = None,
        two_sided: bool = True,
    ) -> int:
        """Adds a triangle mesh of vertices [n, 3], in the shape's frame [m], and triangles [m, 3]; returns its index.

        vertices: or a result of `triangle_mesh`, which several shapes may share; then without faces. Triangles are
        counterclockwise from outside. two_sided: of an open mesh; False makes it one-sided: a shape behind it is
        pushed to its front; a TriangleMesh has its own value. A mesh is hollow if `cfg.is_solid` is False, or if the
        TriangleMesh is.
        Warns of repairs of the mesh, see `triangle_mesh`, and of an open mesh with a signed distance field, which
        treats it as solid. Raises InputError for an invalid mesh, see `triangle_mesh`.
        """
        where = location_of("shape", key, self.shape_count)
        if isinstance(vertices, TriangleMesh) != (faces is None):
            raise InputError(
                "faces are missing, or given beside a TriangleMesh",
                where,
                "give vertices and faces, or a TriangleMesh alone",
            )
        cfg = self.default_shape_cfg if cfg is None else cfg
        check_kind("cfg", cfg, ShapeConfig, where)
        check_kind("two_sided", two_sided, FLAG, where)
        mesh = vertices
        if not isinstance(mesh, TriangleMesh):
            mesh = triangle_mesh(mesh, np.asarray(faces), where, two_sided, cfg.is_solid)
        if mesh.repairs and mesh is not vertices:
            warnings.warn(f"{where}: {'; '.join(mesh.repairs.words())}", stacklevel=2)
        if mesh is not vertices and sdf_options(cfg).wanted and not mesh.is_closed and mesh.is_solid:
            warnings.warn(f"{where}: an open mesh, which its signed distance field treats as solid", stacklevel=2)
        if mesh.is_solid and not cfg.is_solid:
            raise InputError("the TriangleMesh is solid", where, "make it by triangle_mesh(..., is_solid=False)")
        pose = compose(checked_pose(xform, where), np.array([*mesh.center, 0.0, 0.0, 0.0, 1.0]))
        return self._add_shape(body, ShapeType.MESH, mesh.half_extents, pose, cfg, key, mesh=mesh)

    def add_shape_heightfield(
        self,
        body: int,
        heights: np.ndarray | Heightfield,
        hx: float = 1.0,
        hy: float = 1.0,
        base: float = 1.0,
        xform: Sequence[float] | None = None,
        cfg: ShapeConfig | None = None,
        key: str | None = None,
    ) -> int:
        """Adds the solid below heights[rows, cols] over the rectangle from (-hx, -hy) to (hx, hy) [m].

        Rows run along +y, columns along +x; heights are along z of the shape's frame. The solid extends to `base` [m]
        below the lowest height. heights: float32 is referenced without a copy, see `heightfield`; or a result of
        `heightfield`, which several shapes may share and whose sizes replace hx, hy and base. Returns the shape's
        index. Raises InputError for an invalid heightfield.
        """
        where = location_of("shape", key, self.shape_count)
        held = heights if isinstance(heights, Heightfield) else heightfield(heights, hx, hy, base, where)
        pose = compose(checked_pose(xform, where), np.array([0.0, 0.0, held.center, 0.0, 0.0, 0.0, 1.0]))
        return self._add_shape(body, ShapeType.HEIGHTFIELD, held.half_extents, pose, cfg, key, heightfield=held)

    def add_shape_points(
        self,
        body: int,
        points: np.ndarray,
        radius: float | np.ndarray,
        xform: Sequence[float] | None = None,
        cfg: ShapeConfig | None = None,
        key: str | None = None,
    ) -> range:
        """Adds a point cloud: a sphere about each of points[n, 3], in the shape's frame [m]; returns their indices.

        radius: of all points, or [n] of each [m]. The spheres are named `<key>#<i>`, without a key as other
        shapes. They do not collide with each other, also where static shapes may touch.
        Raises InputError for arrays of other shapes, no points, and values that are not finite or radii of zero.
        """
        where = location_of("shape", key, self.shape_count)
        points, radii = float_array("points", points, where), float_array("radius", radius, where)
        if points.ndim != 2 or points.shape[1] != 3 or not len(points):
            raise InputError(f"the points have the shape {list(points.shape)}", where, "give an array [n, 3]")
        if radii.shape not in ((), (len(points),)):
            raise InputError(f"radius has the shape {list(radii.shape)}", where, f"give one, or {len(points)}")
        wrong = np.flatnonzero(~(np.abs(points) <= LENGTH_LIMIT).all(axis=1))
        if len(wrong):
            what = f"point {wrong[0]} is not finite, or beyond {LENGTH_LIMIT:g} m"
            raise InputError(what, where, "correct the points")
        own = np.zeros((len(points), 7))
        own[:, :3], own[:, 6] = points, 1.0
        first = self.shape_count
        sizes = np.broadcast_to(radii, len(points))
        poses = compose(checked_pose(xform, where), own)
        for index, (pose, size) in enumerate(zip(poses, sizes.reshape(-1, 1), strict=True)):
            name = None if key is None else f"{key}#{index}"
            self._add_shape(body, ShapeType.SPHERE, size, pose, cfg, name, cloud=first)
        return range(first, first + len(points))
