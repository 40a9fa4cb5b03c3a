"""World poses of every shape in every cell, against NumPy: recorded worlds, global bodies, chunks within a batch."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.cells import BlockShape, PoseBatch, transform_chunk
from collidecli.engine.runtime.workspace import Workspace
from collidecli.numerics.matrices import IDENTITY
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.placement import compose
from tests.support.engine_runs import pipeline_of

PLACES = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (10.0, -20.0, 5.0, 0.0, 0.6, 0.0, 0.8))
FRAMES = 3


def scene() -> Model:
    """In each of two worlds a moving and a static sphere; for both a global body's sphere and a global static one."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body())
    builder.add_shape_sphere(-1, (7.0, 8.0, 9.0, 0.0, 0.0, 0.0, 1.0))
    builder.begin_world("e0", PLACES[0])
    builder.add_shape_sphere(builder.add_body())
    builder.add_shape_sphere(-1, (1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0))
    builder.end_world()
    builder.repeat_world(0, "e1", PLACES[1])
    return builder.finalize()


def motion(recorded: int) -> np.ndarray:
    """float64[FRAMES, recorded, 2, 7]: every pose another one."""
    rng = np.random.default_rng(recorded)
    poses = rng.normal(size=(FRAMES, recorded, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    return poses


@pytest.mark.parametrize("recorded", [1, 2])
@pytest.mark.parametrize("first_frame", [0, 5])
@pytest.mark.parametrize(("first", "count"), [(0, 2 * FRAMES), (1, 3), (3, 2)])
def test_shapes_are_where_their_bodies_and_worlds_are(recorded, first_frame, first, count):
    """A recorded world is moved to each world, its global bodies are not; `first` cells of the batch come before."""
    model, poses = scene(), motion(recorded)
    device_model = pipeline_of(model, poses, broad_phase="nxn").device_model
    batch = PoseBatch(2 * first_frame + first, count, first_frame, poses)
    workspace = Workspace(device_model.device, 1 << 40)
    instances = transform_chunk(device_model, batch, workspace).instances
    found = workspace.host(instances.pose, count * device_model.layout.width).reshape(count, -1, 7)[:, :4]
    is_global = model.bodies.template < 0
    assert is_global.tolist() == [True, False]
    for cell in range(count):
        frame, world = divmod(first + cell, 2)
        place = np.array(PLACES[world])
        body = poses[frame, world % recorded]
        own = body[1] if recorded == 2 else compose(place, body[1])
        expected = [body[0], model.shapes.pose[1], own, compose(place, np.array([1.0, 2.0, 3.0, 0, 0, 0, 1.0]))]
        np.testing.assert_allclose(found[cell], expected, atol=1e-12)


def test_chunks_of_whole_blocks_share_a_layout():
    """Chunks of fewer blocks read the beginning of a larger chunk's arrays; a last, incomplete block has its own."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body())
    model, poses = builder.finalize(), np.tile(IDENTITY, (200, 1, 1, 1))
    poses[:, 0, 0, 0] = np.arange(200)
    device_model = pipeline_of(model, poses[:2], broad_phase="nxn").device_model
    workspace = Workspace(device_model.device, 1 << 40)
    first_cell, layouts = 0, []
    for count in (96, 32, 64, 8):
        batch = PoseBatch(first_cell, count, 0, poses)
        chunk = transform_chunk(device_model, batch, workspace, BlockShape(5))
        width = device_model.layout.width
        pose = workspace.host(chunk.instances.pose, count * width).reshape(chunk.block_count, width, chunk.lanes, 7)
        x = pose[:, 0, :, 0].reshape(-1)
        np.testing.assert_array_equal(x, np.arange(first_cell, first_cell + count))
        assert (chunk.block_count, chunk.lanes) == (max(1, count // 32), min(count, 32))
        layouts.append(len(workspace.cell_layouts))
        first_cell += count
    assert layouts == [1, 1, 1, 2]
