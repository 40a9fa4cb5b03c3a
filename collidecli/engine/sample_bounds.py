"""Inflated bounds of every shape over a sample of the motion, for planning a sweep."""

from __future__ import annotations

import numpy as np

from collidecli.engine.cells import BOUND_NUMBERS, LOWER, UPPER, PoseBatch, place_chunk
from collidecli.engine.device_model import LANES, DeviceModel
from collidecli.engine.workspace import Workspace


def sample_bounds(device_model: DeviceModel, sample_poses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper inflated bounds, float64[samples, S, 3] [m], each row seen in the first world of its template.

    sample_poses: float64[samples, recorded worlds, B, 7].
    """
    model, device, layout = device_model.model, device_model.device, device_model.layout
    samples = len(sample_poses)
    shape = (samples, len(model.shapes), 3)
    lower, upper = np.zeros(shape), np.zeros(shape)
    workspace = Workspace(device, 1 << 62)
    for template, rows in enumerate(device_model.places):
        world = int(np.flatnonzero(model.world_template == template)[0])
        for sample in range(samples):
            batch = PoseBatch(sample * model.world_count + world, 1, 0, sample_poses)
            instances = place_chunk(device_model, batch, workspace).instances
            bound = instances.bound.numpy()[: BOUND_NUMBERS * layout.width].reshape(-1, BOUND_NUMBERS, LANES)
            of_shape = bound.transpose(0, 2, 1).reshape(-1, BOUND_NUMBERS)[: len(rows)]
            lower[sample, rows] = of_shape[:, int(LOWER) : int(LOWER) + 3]
            upper[sample, rows] = of_shape[:, int(UPPER) : int(UPPER) + 3]
    return lower, upper
