"""The bounding boxes of a model's shapes along a motion."""

from __future__ import annotations

import numpy as np

from collidecli.python.contacts import motion_of
from collidecli.scene.arguments import python_call
from collidecli.scene.bounding_boxes import bounding_boxes as boxes_of
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion


@python_call
def bounding_boxes(
    model: Model, body_q: np.ndarray | Motion | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The axis-aligned bounding boxes of all shapes in every frame and world, exact to rounding.

    Args:
        body_q: poses as `collide` takes them: [frames, worlds, bodies, 7], x y z qx qy qz qw, or a
            motion; None is the resting poses.
    Returns:
        Least and greatest coordinates in the world [m], float64[frames, worlds, shapes, 3] each, of
        the surfaces without margins; infinite of planes, NaN of shapes that are not in the world.
    Raises:
        InputError: body_q does not fit the model or has an invalid pose.
    """
    motion = motion_of(model, body_q)
    poses = np.asarray(motion.read(range(len(motion.time))), np.float64)
    worlds = model.world_count
    placed = np.array(
        [model.placed_shapes(of_frame, world) for of_frame in poses for world in range(worlds)]
    ).reshape(len(poses) * worlds, len(model.shapes), 7)
    template = model.shapes.template
    is_absent = (template != GLOBAL_TEMPLATE) & (template != model.world_template[:, None])
    shape = (len(poses), worlds, len(model.shapes), 3)
    lower, upper = (found.reshape(shape) for found in boxes_of(model, placed))
    lower[:, is_absent] = np.nan
    upper[:, is_absent] = np.nan
    return lower, upper
