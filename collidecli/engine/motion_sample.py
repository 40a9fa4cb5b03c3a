"""Inflated bounds of every shape over a sample of the motion, and what follows for broad phases."""

import numpy as np

from collidecli.engine.cells import (
    BOUND_NUMBERS,
    LOWER,
    MAX_SHIFT,
    MIN_LANES,
    POSED_SHAPES,
    UPPER,
    BlockShape,
    PoseBatch,
    transform_chunk,
)
from collidecli.engine.device_model import LANES, DeviceModel
from collidecli.engine.runtime.workspace import Workspace, load_launched
from collidecli.numerics.poses import compose_poses
from collidecli.scene.model import Model
from collidecli.scene.poses import first_worlds
from collidecli.scene.shape_types import ShapeType

MOVED_IN_A_BLOCK = 0.5
FAST_SHAPES = 0.75
"""A block has as many frames as this part of the shapes needs to move by MOVED_IN_A_BLOCK of its
extent; the two numbers affect the speed alone, and others were not measured."""


def sample_bounds(
    device_model: DeviceModel, sample_poses: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper inflated bounds, float64[samples, S, 3] [m], of each row in the first world
    of its template.

    sample_poses: float64[samples, recorded worlds, B, 7].
    """
    model = device_model.model
    device = device_model.device
    layout = device_model.layout
    samples = len(sample_poses)
    shape = (samples, len(model.shapes), 3)
    lower = np.zeros(shape)
    upper = np.zeros(shape)
    load_launched(POSED_SHAPES, device)
    workspace = Workspace(device, 1 << 62)
    for template, rows in enumerate(device_model.template_rows):
        world = int(np.flatnonzero(model.world_template == template)[0])
        for sample in range(samples):
            batch = PoseBatch(sample * model.world_count + world, 1, 0, sample_poses)
            instances = transform_chunk(device_model, batch, workspace).instances
            bound = workspace.host(instances.bound, BOUND_NUMBERS * layout.width).reshape(
                -1, BOUND_NUMBERS, LANES
            )
            of_shape = bound.transpose(0, 2, 1).reshape(-1, BOUND_NUMBERS)[: len(rows)]
            lower[sample, rows] = of_shape[:, int(LOWER) : int(LOWER) + 3]
            upper[sample, rows] = of_shape[:, int(UPPER) : int(UPPER) + 3]
    return lower, upper


def world_offset(model: Model, sample_poses: np.ndarray) -> np.ndarray:
    """float64[W, 3]: offset of each world from the first world of its template [m].

    The position of a world is the median of the positions of its template's bodies over the sample,
    or its origin without bodies.
    """
    first = first_worlds(model.world_template)
    offset = np.zeros((model.world_count, 3))
    for world in np.flatnonzero(first != np.arange(model.world_count)):
        in_template = model.bodies.template == model.world_template[world]
        recorded = sample_poses.shape[1] > 1 and in_template.any()
        middle = np.array(model.world_pose[first[world]])
        if in_template.any():
            of_first = sample_poses[:, first[world] if recorded else 0, in_template, :3]
            middle[:3] = np.median(of_first, axis=(0, 1))
        if recorded:
            offset[world] = (
                np.median(sample_poses[:, world, in_template, :3], axis=(0, 1)) - middle[:3]
            )
        elif model.world_shift is not None:
            offset[world] = compose_poses(model.world_shift[world], middle)[:3] - middle[:3]
    return offset


def blocks_of_motion(
    model: Model, lower: np.ndarray, upper: np.ndarray, of_one_world: bool
) -> BlockShape:
    """Blocks of as many frames as most shapes need for half of their extent.

    Boxes around more frames overlap so often that the tests of single frames cost more than the
    boxes save.

    Args:
        lower, upper: float64[samples, S, 3], bounds in pairs of consecutive frames [m].
    """
    finite = model.shapes.type != ShapeType.PLANE
    shift = MAX_SHIFT
    if len(lower) > 1 and finite.any():
        pairs = len(lower) // 2 * 2
        step = np.abs(
            np.diff(lower[:pairs, finite].reshape(-1, 2, int(finite.sum()), 3), axis=1)
        ).max(axis=(0, 1, 3))
        extent = (upper - lower)[:, finite].mean(axis=(0, 2))
        part = np.quantile(step / np.maximum(extent, 1e-30), FAST_SHAPES)
        while 1 << shift > MIN_LANES and part * (1 << shift) > MOVED_IN_A_BLOCK:
            shift -= 1
    return BlockShape(shift, of_one_world)
