"""Bounds of every shape over a sample of the motion, for planning a sweep."""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.cells import ChunkCells, Instances, place_shapes
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Pose


def sample_bounds(device_model: DeviceModel, sample_poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper bounds, float64[samples, S, 3] [m], each row seen in the first world of its template.

    sample_poses: float64[samples, recorded worlds, B, 7].
    """
    model, device, layout = device_model.model, device_model.device, device_model.layout
    samples, recorded_worlds, bodies = sample_poses.shape[:3]
    shape = (samples, len(model.shapes), 3)
    lower, upper = np.zeros(shape), np.zeros(shape)
    instances = Instances()
    instances.pose = wp.empty(layout.width, dtype=Pose, device=device)
    instances.lower = wp.empty(layout.width, dtype=wp.vec3f, device=device)
    instances.upper = wp.empty(layout.width, dtype=wp.vec3f, device=device)
    chunk = ChunkCells()
    chunk.recorded_world_count, chunk.body_count = recorded_worlds, bodies
    poses = np.ascontiguousarray(sample_poses, np.float64).reshape(-1, 7)
    chunk.body_pose = wp.array(poses if len(poses) else np.zeros((1, 7)), dtype=Pose, device=device)
    for template, rows in enumerate(device_model.places):
        world = int(np.flatnonzero(model.world_template == template)[0])
        for sample in range(samples):
            chunk.first_cell = sample * model.world_count + world
            wp.launch(place_shapes, layout.width, [device_model.rows, layout, chunk, instances], device=device)
            lower[sample, rows] = instances.lower.numpy()[: len(rows)]
            upper[sample, rows] = instances.upper.numpy()[: len(rows)]
    return lower, upper
