"""Adds the geoms of a compiled MuJoCo model to a builder; meshes as the convex hulls that MuJoCo uses for collision.

MuJoCo moves a mesh to its inertial frame when it compiles it, and compensates in the geom's compiled pose: compiled
vertices in the compiled frame of the geom have the positions of the file.
"""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.mujoco.materials import geom_material
from collidecli.importers.mujoco.pairs import collision_disabled
from collidecli.numerics.pose_products import WXYZ_TO_XYZW
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.model import STATIC_BODY
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType

LEFT_OUT = -1
SCANNED_BY_MUJOCO = 10
"""MuJoCo scans all vertices of meshes with fewer, and does not use their decimated hull."""

_GEOM = mujoco.mjtGeom
_MESH = int(_GEOM.mjGEOM_MESH)
_SHAPE_OF = {
    int(_GEOM.mjGEOM_PLANE): ShapeType.PLANE,
    int(_GEOM.mjGEOM_SPHERE): ShapeType.SPHERE,
    int(_GEOM.mjGEOM_CAPSULE): ShapeType.CAPSULE,
    int(_GEOM.mjGEOM_BOX): ShapeType.BOX,
    int(_GEOM.mjGEOM_CYLINDER): ShapeType.CYLINDER,
    int(_GEOM.mjGEOM_ELLIPSOID): ShapeType.ELLIPSOID,
    int(_GEOM.mjGEOM_HFIELD): ShapeType.HEIGHTFIELD,
    _MESH: ShapeType.CONVEX_MESH,
}
_UNHANDLED = {int(_GEOM.mjGEOM_SDF): "sdf"}


def body_name(mj_model: mujoco.MjModel, body: int) -> str:
    """A body's name, or `body#<id>`."""
    return mj_model.body(body).name or f"body#{body}"


def geom_name(mj_model: mujoco.MjModel, geom: int) -> str:
    """A geom's name, or `<body>/geom#<id>`."""
    return mj_model.geom(geom).name or f"{body_name(mj_model, int(mj_model.geom_bodyid[geom]))}/geom#{geom}"


def urdf_shape_names(mj_model: mujoco.MjModel) -> list[str]:
    """A name for each geom of a URDF scene: that of its collision element, or `<link>/collision#<k>`.

    k counts the link's collision elements from 0, including named ones. Visual elements, if MuJoCo has kept them, are
    `<link>/visual#<k>`.
    """
    seen: Counter[tuple[int, str]] = Counter()
    names = []
    for geom in range(mj_model.ngeom):
        body = int(mj_model.geom_bodyid[geom])
        kind = "collision" if mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] else "visual"
        names.append(mj_model.geom(geom).name or f"{mj_model.body(body).name}/{kind}#{seen[body, kind]}")
        seen[body, kind] += 1
    return names


def add_geoms(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    data: mujoco.MjData,
    static: np.ndarray,
    body_row: np.ndarray,
    location: str,
    names: Sequence[str] | None,
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Shape row of each geom, -1 for one left out, and the names of those left out. names: of geoms, else MuJoCo's."""
    shape_row = np.full(mj_model.ngeom, LEFT_OUT, np.int32)
    left_out = []
    hulls: dict[int, ConvexHull] = {}
    fields: dict[int, Heightfield] = {}
    paired = set(mj_model.pair_geom1) | set(mj_model.pair_geom2)
    disabled = collision_disabled(mj_model)
    for geom in range(mj_model.ngeom):
        name = names[geom] if names is not None else geom_name(mj_model, geom)
        if not (mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] or geom in paired):
            left_out.append(name)
            continue
        shape_type = _shape_type(int(mj_model.geom_type[geom]), name, location)
        body = int(mj_model.geom_bodyid[geom])
        row = STATIC_BODY if static[body] else int(body_row[body])
        pose = _geom_pose(mj_model, data, geom, static[body])
        config = _geom_config(mj_model, geom, disabled)
        if shape_type == ShapeType.CONVEX_MESH:
            mesh = int(mj_model.geom_dataid[geom])
            if mesh not in hulls:
                hulls[mesh] = mesh_hull(mj_model, mesh, f"geom '{name}'")
            shape_row[geom] = builder.add_shape_convex_hull(row, hulls[mesh], pose, config, name)
        elif shape_type == ShapeType.HEIGHTFIELD:
            field = int(mj_model.geom_dataid[geom])
            if field not in fields:
                fields[field] = hfield_surface(mj_model, field, f"geom '{name}'")
            shape_row[geom] = builder.add_shape_heightfield(row, fields[field], xform=pose, cfg=config, key=name)
        else:
            size = tuple(mj_model.geom_size[geom][: SIZE_COUNT[shape_type]])
            shape_row[geom] = builder.add_shape(row, shape_type, size, pose, config, name)
    return shape_row, tuple(left_out)


def mesh_hull(mj_model: mujoco.MjModel, mesh: int, where: str) -> ConvexHull:
    """The hull that MuJoCo uses for collisions of a mesh, in the frame of its geoms.

    It is the hull of the mesh's vertices, or with `maxhullvert` of the vertices that MuJoCo's own hull has kept.
    Raises InputError with `where` and the mesh for a mesh without volume.
    """
    first, count = int(mj_model.mesh_vertadr[mesh]), int(mj_model.mesh_vertnum[mesh])
    vertex = mj_model.mesh_vert[first : first + count][hull_vertices(mj_model, mesh)]
    name = mj_model.mesh(mesh).name
    return convex_hull(vertex, f"{where}, mesh '{name}'" if name else where)


def hull_vertices(mj_model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """int[n], indices of the vertices that MuJoCo uses for collision: those of its hull, limited by `maxhullvert`."""
    count, graph = int(mj_model.mesh_vertnum[mesh]), int(mj_model.mesh_graphadr[mesh])
    if graph < 0 or count < SCANNED_BY_MUJOCO:
        return np.arange(count)
    # The graph: counts of vertices and faces, first edge of each vertex, index of each vertex in the mesh.
    kept = int(mj_model.mesh_graph[graph])
    return mj_model.mesh_graph[graph + 2 + kept : graph + 2 + 2 * kept]


def hfield_surface(mj_model: mujoco.MjModel, field: int, where: str) -> Heightfield:
    """A compiled hfield, in the frame of its geoms: elevations are fractions of its height, and 0 is at z = 0.

    The array refers to MuJoCo's data. Raises InputError with `where` and the hfield for data that is not finite.
    """
    first, rows, cols = (
        int(array[field]) for array in (mj_model.hfield_adr, mj_model.hfield_nrow, mj_model.hfield_ncol)
    )
    half_x, half_y, height, base = mj_model.hfield_size[field].tolist()
    data = mj_model.hfield_data[first : first + rows * cols].reshape(rows, cols)
    name = mj_model.hfield(field).name
    where = f"{where}, hfield '{name}'" if name else where
    return heightfield(data, half_x, half_y, base, where, scale=height, bottom=-base)


def _shape_type(kind: int, name: str, location: str) -> ShapeType:
    shape_type = _SHAPE_OF.get(kind)
    if shape_type is None:
        raise InputError(
            f"geom '{name}' is a {_UNHANDLED.get(kind, 'geom of an unknown type')} that may collide, "
            "which is not handled",
            location,
            'replace it by primitives, or give it contype="0" conaffinity="0" if it is visual only',
        )
    return shape_type


def _geom_pose(mj_model: mujoco.MjModel, data: mujoco.MjData, geom: int, static: bool) -> tuple[float, ...]:
    """Pose in the body's frame; of a static geom, in the world frame."""
    position, quaternion = mj_model.geom_pos[geom], mj_model.geom_quat[geom]
    if static:
        body = int(mj_model.geom_bodyid[geom])
        in_world = np.empty(3), np.empty(4)
        mujoco.mju_mulPose(*in_world, data.xpos[body], data.xquat[body], position, quaternion)
        position, quaternion = in_world
    return (*position, *quaternion[WXYZ_TO_XYZW])


def _geom_config(mj_model: mujoco.MjModel, geom: int, disabled: str | None) -> ShapeConfig:
    margin = mj_model.geom_margin[geom]
    if mj_model.opt.enableflags & mujoco.mjtEnableBit.mjENBL_OVERRIDE:
        margin = mj_model.opt.o_margin / 2.0  # a pair adds two margins, and MuJoCo applies o_margin to the pair
    # As unsigned: a bit pattern, independent of the sign in the file.
    masks = (int(mj_model.geom_contype[geom]) & 0xFFFFFFFF, int(mj_model.geom_conaffinity[geom]) & 0xFFFFFFFF)
    return ShapeConfig(
        margin=float(margin),
        gap=float(mj_model.geom_gap[geom]),
        material=geom_material(mj_model, geom),
        mask_either=masks,
        disabled_rule=disabled,
    )
