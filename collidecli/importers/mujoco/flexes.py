"""Flexes of an MJCF scene as cables, cloths and soft bodies, whose vertices move with their
bodies."""

from __future__ import annotations

import mujoco
import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.numerics.poses import moved_points
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig

LINES = 1
TRIANGLES = 2
"""Dimensions of a flex; one of tetrahedra has dimension 3."""


def may_collide(mj_model: mujoco.MjModel, flex: int) -> bool:
    """Whether a flex collides with shapes, or with itself."""
    masks = mj_model.flex_contype[flex], mj_model.flex_conaffinity[flex]
    return any(masks) or bool(mj_model.flex_selfcollide[flex])


def flex_name(mj_model: mujoco.MjModel, flex: int) -> str:
    """Name of a flex, or its number."""
    return mujoco.mj_id2name(mj_model, mujoco.mjtObj.mjOBJ_FLEX, flex) or f"flex#{flex}"


def add_flexes(
    builder: ModelBuilder,
    mj_model: mujoco.MjModel,
    data: mujoco.MjData,
    body_row: np.ndarray,
    location: str,
) -> None:
    """Adds the flexes of a compiled model that may collide: one particle a vertex, with the flex's
    radius and masks.

    data: poses of the bodies at rest. body_row: the builder's body of each body of the model; the
    static world is -1. Raises InputError for a flex whose vertices are interpolated between nodes.
    """
    for flex in range(mj_model.nflex):
        if not may_collide(mj_model, flex):
            continue
        masks = int(mj_model.flex_contype[flex]), int(mj_model.flex_conaffinity[flex])
        name = flex_name(mj_model, flex)
        if mj_model.flex_interp[flex]:
            what = (
                f"the vertices of flex '{name}' are interpolated between nodes, which is not"
                " handled"
            )
            raise InputError(
                what,
                location,
                'give it dof="full", or contype="0" conaffinity="0" selfcollide="none"',
            )
        first = int(mj_model.flex_vertadr[flex])
        count = int(mj_model.flex_vertnum[flex])
        position = _positions(mj_model, data, flex, slice(first, first + count))
        bodies = body_row[mj_model.flex_vertbodyid[first : first + count]]
        place = {"cfg": ShapeConfig(mask_either=masks), "key": name, "bodies": bodies}
        radius = float(mj_model.flex_radius[flex])
        dimension = int(mj_model.flex_dim[flex])
        if dimension == LINES:
            add = builder.add_cable
        else:
            add = builder.add_cloth_mesh if dimension == TRIANGLES else builder.add_soft_mesh
        add(vertices=position, indices=_elements(mj_model, flex), particle_radius=radius, **place)


def _positions(
    mj_model: mujoco.MjModel, data: mujoco.MjData, flex: int, vertices: slice
) -> np.ndarray:
    """float64[n, 3]: vertices `vertices` of a flex in the world, from the frames of their bodies
    [m]."""
    body = mj_model.flex_vertbodyid[vertices]
    local = (
        np.zeros((len(body), 3)) if mj_model.flex_centered[flex] else mj_model.flex_vert[vertices]
    )
    pose = np.concatenate([data.xpos[body], data.xquat[body][:, WXYZ_TO_XYZW]], axis=1)
    return moved_points(pose, local)


def _elements(mj_model: mujoco.MjModel, flex: int) -> np.ndarray:
    """int32[n, dimension + 1]: vertices of each element, counted within the flex."""
    width = int(mj_model.flex_dim[flex]) + 1
    first = int(mj_model.flex_elemdataadr[flex])
    count = int(mj_model.flex_elemnum[flex])
    return np.array(mj_model.flex_elem[first : first + count * width]).reshape(count, width)
