"""Cells, blocks, chunks and parts of cells: poses in each, sizes, order, halving and refusal by the
memory limit."""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune
from collidecli.engine.cells import (
    BOUND_NUMBERS,
    LOWER,
    MAX_SHIFT,
    MIN_LANES,
    UPPER,
    BlockShape,
    PoseBatch,
    block_shape,
    cell_blocks,
    has_step,
    transform_chunk,
)
from collidecli.engine.chunk_report import ChunkReport
from collidecli.engine.chunk_sizes import (
    MIN_SECONDS,
    ON_CPU,
    ON_DEVICE,
    UNLIMITED,
    WAITING_BLOCKS,
    batch_cells,
    block_cells,
    cells_within,
    chunk_cells,
    first_batch_cells,
    min_cells,
    probe_cells,
    whole_blocks,
    worker_memory,
)
from collidecli.engine.device_model import LANES
from collidecli.engine.geometry.bounds import bounding_box, rounded_down, rounded_up
from collidecli.engine.motion_sample import blocks_of_motion, world_offset
from collidecli.engine.pipeline import CollisionPipeline, joined_parts
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace
from collidecli.engine.scheduler import Workers
from collidecli.errors import InputError
from collidecli.motions.clearance import shape_poses
from collidecli.numerics.pose_columns import IDENTITY
from collidecli.numerics.poses import compose_poses
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.model import Model
from tests.support.engine_runs import (
    MEMORY,
    PHASES,
    assert_identical,
    candidates_of,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)

PLACES = ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (10.0, -20.0, 5.0, 0.0, 0.6, 0.0, 0.8))
FRAMES = 3


def scene() -> Model:
    """In each of two worlds a moving and a static sphere; for both a global body's sphere and a
    global static one."""
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
def test_shapes_are_where_their_bodies_are(recorded, first_frame, first, count):
    """Bit for bit where distances are measured, which may decide between two depths that are nearly
    least.

    A recorded world is moved to each world, its global bodies are not; `first` cells of the batch
    come before."""
    model = scene()
    poses = motion(recorded)
    device_model = pipeline_of(model, poses, broad_phase="nxn").device_model
    batch = PoseBatch(2 * first_frame + first, count, first_frame, poses)
    workspace = Workspace(device_model.device, 1 << 40)
    instances = transform_chunk(device_model, batch, workspace).instances
    found = workspace.host(instances.pose, count * device_model.layout.width).reshape(count, -1, 7)[
        :, :4
    ]
    is_global = model.bodies.template < 0
    assert is_global.tolist() == [True, False]
    for cell in range(count):
        frame, world = divmod(first + cell, 2)
        place = np.array(PLACES[world])
        body = poses[frame, world % recorded]
        own = body[1] if recorded == 2 else compose_poses(place, body[1])
        expected = [
            body[0],
            model.shapes.pose[1],
            own,
            compose_poses(place, np.array([1.0, 2.0, 3.0, 0, 0, 0, 1.0])),
        ]
        np.testing.assert_allclose(found[cell], expected, atol=1e-12)
        np.testing.assert_array_equal(
            found[cell], shape_poses(model, poses)[frame, world], "the bits of distances"
        )


def test_chunks_of_whole_blocks_share_a_layout():
    """Chunks of fewer blocks read the beginning of a larger chunk's arrays; a last, incomplete
    block has its own."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body())
    model = builder.finalize()
    poses = np.tile(IDENTITY, (200, 1, 1, 1))
    poses[:, 0, 0, 0] = np.arange(200)
    device_model = pipeline_of(model, poses[:2], broad_phase="nxn").device_model
    workspace = Workspace(device_model.device, 1 << 40)
    first_cell = 0
    layouts = []
    for count in (96, 32, 64, 8):
        batch = PoseBatch(first_cell, count, 0, poses)
        chunk = transform_chunk(device_model, batch, workspace, BlockShape(5))
        width = device_model.layout.width
        pose = workspace.host(chunk.instances.pose, count * width).reshape(
            chunk.block_count, width, chunk.lanes, 7
        )
        x = pose[:, 0, :, 0].reshape(-1)
        np.testing.assert_array_equal(x, np.arange(first_cell, first_cell + count))
        assert (chunk.block_count, chunk.lanes) == (max(1, count // 32), min(count, 32))
        layouts.append(len(workspace.cell_layouts))
        first_cell += count
    assert layouts == [1, 1, 1, 2]


# Cells as lanes of blocks, and contacts that do not depend on the size of blocks.


@pytest.mark.parametrize("of_one_world", [False, True])
@pytest.mark.parametrize("shift", [0, 3, 5])
@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("templates", [[0], [0, 0, 0], [0, 1, 0, 2, 1]])
def test_every_cell_is_one_lane_of_a_block_of_its_template(templates, first, shift, of_one_world):
    template = np.array(templates)
    cells = np.arange(first, first + 61)
    frame, world = np.divmod(cells, len(template))
    blocks = cell_blocks(template[world], world, BlockShape(shift, of_one_world))
    lanes = 1 << shift
    assert len(blocks.lane_cell) == lanes * len(blocks.block_size)
    np.testing.assert_array_equal(blocks.lane_cell[blocks.cell_lane], np.arange(61))
    seen = []
    by_block = blocks.lane_cell.reshape(-1, lanes)
    for own, size, of_block in zip(by_block, blocks.block_size, blocks.block_template, strict=True):
        used = own[:size]
        seen += used.tolist()
        assert (own[size:] == own[0]).all()
        assert (template[world[used]] == of_block).all()
        for each in np.unique(world[used]):
            assert (np.diff(frame[used[world[used] == each]]) == 1).all()
        if of_one_world:
            assert len(np.unique(world[used])) == 1
    assert sorted(seen) == list(range(61))


@pytest.mark.parametrize(
    ("cells", "templates", "of_one_world", "lanes"),
    [
        (1, [0], False, 1),
        (2, [0], False, 8),
        (8, [0], False, 8),
        (9, [0], False, 16),
        (31, [0], False, 32),
        (5000, [0], False, 32),
        (32, [0] * 32, False, 32),
        (32, [0] * 32, True, 1),
        (320, [0] * 32, True, 16),
        (16, [0, 1], False, 8),
    ],
)
def test_blocks_hold_only_cells_that_may_share_one(cells, templates, of_one_world, lanes):
    shape = block_shape(cells, np.array(templates), BlockShape(MAX_SHIFT, of_one_world))
    assert shape.lanes == lanes
    assert shape.lanes == 1 or shape.lanes >= MIN_LANES


def in_blocks(pipeline: CollisionPipeline, shape: BlockShape) -> CollisionPipeline:
    """The pipeline with other blocks."""
    return replace(pipeline, broad_phase=replace(pipeline.broad_phase, blocks=shape))


@pytest.mark.parametrize("phase", ["nxn", "sap", "explicit"])
@pytest.mark.parametrize("moving", [0.01, 1.0])
def test_contacts_do_not_depend_on_the_size_of_blocks(phase, moving):
    """Slow motion, and one in which every shape jumps by several sizes a frame; the last block is
    not full."""
    model = mixed_builder(3, 24).finalize()
    rng = np.random.default_rng(5)
    poses = random_poses(rng, (1, 1, 24), 0.8) + np.zeros((45, 1, 1, 1))
    poses[..., :3] += moving * rng.normal(size=poses[..., :3].shape)
    pipeline = pipeline_of(model, poses, **PHASES[phase])
    shapes = [BlockShape(shift, one) for shift in (0, 3, 4, 5) for one in (False, True)]
    found = [contacts_of(in_blocks(pipeline, shape), poses) for shape in shapes]
    assert len(found[0].distance) > 100
    for other in found[1:]:
        assert_identical(found[0], other)


@pytest.mark.parametrize(
    ("speed", "lanes"), [(0.0, 32), (0.01, 32), (0.03, 16), (0.06, 8), (10.0, 8)]
)
def test_blocks_follow_the_motion(speed, lanes):
    """speed: extents a frame of most shapes; a tenth is at rest."""
    model = mixed_builder(3, 24).finalize()
    lower = np.zeros((8, len(model.shapes), 3))
    lower[:, : int(0.9 * len(model.shapes)), 1] = speed * 0.2 * np.arange(8)[:, None]
    expected = BlockShape(lanes.bit_length() - 1, of_one_world=True)
    assert blocks_of_motion(model, lower, lower + 0.2, of_one_world=True) == expected
    assert blocks_of_motion(model, lower[:1], lower[:1] + 0.2, of_one_world=False) == BlockShape(
        MAX_SHIFT
    )


@kernel
def box_of_shapes(
    shape_type: wp.array[wp.int32],
    size: wp.array[wp.vec3d],
    pose: wp.array[wp.transformd],
    inflation: wp.array[wp.float32],
    lower: wp.array[wp.vec3f],
    upper: wp.array[wp.vec3f],
):
    """The boxes of the scalar functions."""
    thread = wp.tid()
    box = bounding_box(
        shape_type[thread], size[thread], pose[thread], wp.float64(inflation[thread])
    )
    lower[thread] = rounded_down(box.lower)
    upper[thread] = rounded_up(box.upper)


@pytest.mark.parametrize("shift", [0, 3, 5])
def test_boxes_in_lanes_are_those_of_the_scalar_functions(shift):
    """To the bit, in vectors and in single lanes, for every type of `mixed_builder`; the last block
    is not full."""
    model = mixed_builder(3, 24).finalize()
    frames = 45
    poses = random_poses(np.random.default_rng(6), (frames, 1, 24), 3.0)
    device_model = pipeline_of(model, poses, broad_phase="nxn").device_model
    workspace = Workspace(device_model.device, 1 << 40)
    chunk = transform_chunk(
        device_model, PoseBatch(0, frames, 0, poses), workspace, BlockShape(shift)
    )
    count = len(model.shapes)
    width = device_model.layout.width
    # Only the first block's lanes, which are consecutive frames.
    first = width * chunk.lanes
    bound = workspace.host(chunk.instances.bound, BOUND_NUMBERS * first).reshape(
        -1, BOUND_NUMBERS, LANES
    )
    bound = bound.transpose(0, 2, 1).reshape(width, chunk.lanes, BOUND_NUMBERS)[:count]
    found = workspace.host(chunk.instances.pose, first).reshape(width, chunk.lanes, 7)[:count]
    rows = device_model.rows
    for lane in range(chunk.lanes):
        lower, upper = (wp.empty(count, dtype=wp.vec3f, device="cpu") for _ in range(2))
        placed = wp.array(np.ascontiguousarray(found[:, lane]), dtype=wp.transformd, device="cpu")
        inputs = [rows.type, rows.size, placed, rows.inflation, lower, upper]
        wp.launch(box_of_shapes, count, inputs=inputs, device="cpu")
        np.testing.assert_array_equal(bound[:, lane, int(LOWER) : int(LOWER) + 3], lower.numpy())
        np.testing.assert_array_equal(bound[:, lane, int(UPPER) : int(UPPER) + 3], upper.numpy())


# Sizes of batches and chunks: whole frames, bounds, equal parts, small chunks at the end of a run.


@pytest.mark.parametrize(
    ("function", "arguments", "expected"),
    [
        (batch_cells, (10**6, 1, 8, 4, ON_CPU), ON_CPU.instances // 8),
        (batch_cells, (10**6, 1, 8, 1, ON_DEVICE), ON_DEVICE.instances // 8),
        (batch_cells, (80, 1, 8, 4, ON_CPU), 80 // (ON_CPU.chunks_per_worker * 4)),
        (batch_cells, (80, 1, 8, 1, ON_DEVICE), 80),
        # A short run: four chunks a worker where each has enough instances and a block of cells.
        (batch_cells, (1000, 1, 112, 1, ON_CPU), 250),
        (batch_cells, (500, 1, 112, 1, ON_CPU), ON_CPU.short_instances // 112),
        (batch_cells, (500, 1, 112, 2, ON_CPU), 125),
        (batch_cells, (500, 1, 20, 1, ON_CPU), 250),
        (batch_cells, (100, 1, 1000, 1, ON_CPU, 32), 32),
        (batch_cells, (60, 1, 1000, 1, ON_CPU, 32), 30),
        (batch_cells, (500, 1, 112, 1, ON_DEVICE), 500),
        (batch_cells, (10**6, 1000, 8, 4, ON_CPU), 12000),  # whole frames of 12288 cells
        (batch_cells, (10**6, 20000, 8, 4, ON_CPU), ON_CPU.instances // 8),  # part of a frame
        (batch_cells, (10, 1, 10**6, 1, ON_CPU), 1),
        (first_batch_cells, (400, 10**4, 1), 100),  # a quarter in whole frames
        (first_batch_cells, (400, 10**4, 30), 90),
        (first_batch_cells, (3, 100, 1), 3),
        (first_batch_cells, (400, 5, 1), 5),
        (whole_blocks, (100, 32), 96),  # whole blocks where one fits
        (whole_blocks, (96, 32), 96),
        (whole_blocks, (31, 32), 31),
        (whole_blocks, (33, 32), 32),
        (whole_blocks, (5, 1), 5),
        (cells_within, (0.2, 1), 1),  # a block of cells may exceed the limit of a chunk
        (cells_within, (9.9, 32), 32),
        (cells_within, (3.9, 32), 3),
        (cells_within, (40.5, 32), 40),
        (worker_memory, (1000 * (2 * 4 + WAITING_BLOCKS), 4), 1000),
        (probe_cells, (8, ON_CPU), ON_CPU.probe_instances // 8),
        (probe_cells, (10 * ON_CPU.probe_instances, ON_CPU), 1),
        (block_cells, (0.0, ON_CPU), UNLIMITED),
        (block_cells, (1000.0, ON_CPU), ON_CPU.block_bytes // 1000),
        (block_cells, (2.0 * ON_CPU.block_bytes, ON_CPU), 1),
        (min_cells, (0, 0.0, 77), 77),
        (min_cells, (500, 500 * MIN_SECONDS / 20, 8), 20),
        (min_cells, (1, 100.0, 8), 1),
    ],
)
def test_numbers_of_cells_keep_to_their_limits(function, arguments, expected):
    assert function(*arguments) == expected


def test_a_batch_is_cut_into_equal_chunks():
    for batch, most in ((1000, 300), (1000, 999), (1000, 1000), (1, 5), (7, 1)):
        left = batch
        sizes = []
        while left:
            sizes.append(chunk_cells(left, UNLIMITED, most, 1, 1))
            left -= sizes[-1]
        assert max(sizes) <= most
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == -(-batch // most)


@pytest.mark.parametrize("workers", [2, 4])
def test_the_last_chunks_of_a_run_are_smaller(workers):
    left = 10**5
    sizes = []
    while left:
        sizes.append(chunk_cells(left, left, 5000, 50, workers))
        left -= sizes[-1]
    assert max(sizes) <= 5000
    assert sizes[-1] < 100
    assert chunk_cells(10**4, 10**4, 5000, 50, 1) == 5000


# A cell that is collided in parts of its candidates: every candidate once, in order, for parts of
# any size.

LIMIT = 1 << 24


def row_of_spheres(count: int) -> tuple[CollisionPipeline, PoseBatch]:
    """`count` spheres in the ground, each as deep as its number, in frame 1 of 2: `count`
    candidates."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    for _ in range(count):
        builder.add_shape_sphere(builder.add_body(), radius=0.5)
    poses = np.zeros((2, 1, count, 7))
    poses[..., 6] = 1.0
    poses[..., 0] = 10.0 * np.arange(count)
    poses[1, 0, :, 2] = -0.01 * np.arange(count)
    return pipeline_of(builder.finalize(), poses, broad_phase="nxn"), PoseBatch(1, 1, 0, poses)


@pytest.mark.parametrize("fitting", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 7, 8])
def test_parts_of_any_size_are_the_whole(count, fitting, monkeypatch):
    pipeline, batch = row_of_spheres(count)
    whole, report = pipeline.collide(batch, Workspace(pipeline.device_model.device, MEMORY))
    sizes: list[int] = []
    collide_part = CollisionPipeline._collide_part

    def limited(self, batch, pairs, workspace):
        if len(pairs) > fitting:
            raise ChunkTooLarge(LIMIT + 1)
        sizes.append(len(pairs))
        return collide_part(self, batch, pairs, workspace)

    monkeypatch.setattr(CollisionPipeline, "_collide_part", limited)
    block, report_of_parts = pipeline.collide_in_parts(batch, LIMIT)
    assert (block.first_cell, block.cell_counts.tolist()) == (1, [count])
    assert list(block.columns) == list(whole.columns)
    for name, values in whole.columns.items():
        assert block.columns[name].tobytes() == values.tobytes(), name
    size = max(1, count)
    while size > fitting:
        size //= 2
    assert sizes == ([size] * (count // size) + ([count % size] if count % size else []) or [0])
    for name in ("cell_count", "candidate_count", "touching_count", "contact_count"):
        assert getattr(report_of_parts, name) == getattr(report, name), name


def test_a_candidate_that_does_not_fit_is_refused(monkeypatch):
    pipeline, batch = row_of_spheres(5)
    seen = []

    def never(self, batch, pairs, workspace):
        seen.append(len(pairs))
        raise ChunkTooLarge(12345)

    monkeypatch.setattr(CollisionPipeline, "_collide_part", never)
    with pytest.raises(ChunkTooLarge) as caught:
        pipeline.collide_in_parts(batch, LIMIT)
    assert seen == [5, 2, 1]
    assert caught.value.needed == 12345 + 5 * 8, "and the candidates, 8 bytes each"


def test_parts_of_one_cell_are_joined():
    columns = [
        {"shape0": np.full(n, n, np.int32), "normal": np.full((n, 3), n, np.float32)}
        for n in (2, 0, 3)
    ]
    parts = [ContactBlock(7, np.array([len(held["shape0"])]), held) for held in columns]
    one = joined_parts(parts)
    assert (one.first_cell, one.cell_counts.tolist()) == (7, [5])
    assert one.columns["shape0"].tolist() == [2, 2, 3, 3, 3]
    assert one.columns["normal"][:, 0].tolist() == [2, 2, 3, 3, 3]


# Sweep and prune of worlds that stand apart: the columns go with each world, and candidates are
# those of all pairs.

HALF_TURN = (0.0, 0.0, 1.0, 0.0)
PLACES_OF_WORLDS = (
    (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    (100.0, 300.0, 0.0, 0.0, 0.0, 0.0, 1.0),
    (-700.0, 50.0, 9.0, *HALF_TURN),
)


def crowd(count: int) -> Model:
    """Boxes on a floor, in three worlds of one template, over a plane and a slab that are in
    all."""
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    builder.default_gap = 0.0
    builder.begin_world("e0", PLACES_OF_WORLDS[0])
    for x, y in rng.uniform(0.0, 8.0, (count, 2)):
        pose = (x, y, 0.2, 0.0, 0.0, 0.0, 1.0)
        builder.add_shape_box(builder.add_body(pose), hx=0.1, hy=0.1, hz=0.1)
    builder.add_shape_sphere(-1, (4.0, 4.0, 0.5, 0.0, 0.0, 0.0, 1.0), radius=0.5)
    builder.end_world()
    for k, place in enumerate(PLACES_OF_WORLDS[1:], 1):
        builder.repeat_world(0, f"e{k}", place)
    builder.add_ground_plane()
    builder.add_shape_box(-1, (0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 1.0), hx=2000.0, hy=2000.0, hz=1.0)
    return builder.finalize()


@pytest.mark.parametrize("recorded", [1, 3])
def test_candidates_of_columns_are_those_of_all_pairs(recorded):
    model = crowd(300)
    poses = model.bodies.pose[None, None] if recorded == 1 else model.resting_poses()[None]
    pipelines = {name: pipeline_of(model, poses, **PHASES[name]) for name in ("nxn", "sap")}
    found = {name: candidates_of(pipeline, poses) for name, pipeline in pipelines.items()}
    np.testing.assert_array_equal(found["sap"], found["nxn"])
    assert len(found["sap"]) > 300
    sweep = pipelines["sap"].broad_phase
    assert isinstance(sweep, SweepAndPrune)
    assert sweep.plan.column_count > 8
    offset = sweep.plan.columns.offset.numpy()
    axes = [sweep.plan.columns.u, sweep.plan.columns.v]
    np.testing.assert_allclose(offset, world_offset(model, poses)[:, axes], rtol=1e-6)


def test_steps_are_within_the_episodes_of_their_world():
    batch = PoseBatch(
        1,
        5,
        0,
        np.zeros((3, 1, 0, 7)),
        has_step=np.array([[True, False], [False, True], [True, True]]),
    )
    model = SimpleNamespace(world_count=2)
    assert has_step(model, batch).tolist() == [False, False, True, False, False]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("recorded", [1, 3])
def test_offsets_are_those_of_the_middle_body(recorded):
    model = crowd(5)
    poses = model.bodies.pose[None, None] if recorded == 1 else model.resting_poses()[None]
    middle = np.median(model.bodies.pose[:, :2], axis=0)
    last = [*(np.array(PLACES_OF_WORLDS[2][:2]) - 2.0 * middle), 9.0]
    expected = [(0.0, 0.0, 0.0), PLACES_OF_WORLDS[1][:3], last]
    np.testing.assert_allclose(world_offset(model, poses), expected, atol=1e-9)


def test_offsets_without_bodies_are_the_places_of_worlds():
    without = world_offset(crowd(0), np.zeros((1, 1, 0, 7)))
    np.testing.assert_allclose(without, [place[:3] for place in PLACES_OF_WORLDS])


def test_offsets_of_worlds_that_only_the_recording_sets_apart():
    one = ModelBuilder()
    several = ModelBuilder()
    one.add_shape_sphere(one.add_body())
    several.add_world(one, count=3)
    model = several.finalize()
    poses = np.zeros((2, 3, 1, 7))
    poses[..., 6] = 1.0
    poses[:, :, 0, 0] = [0.0, 40.0, 80.0]
    np.testing.assert_array_equal(world_offset(model, poses)[:, 0], [0.0, 40.0, 80.0])


# Scheduler: order of blocks, halving of chunks, refusal by the memory limit.


class Stub:
    """Pipeline whose cell c has c contacts, or none, and allocates `needs[c]`: bytes by array
    name."""

    def __init__(
        self, needs: list[dict[str, int]], contacts: bool = True, seconds: float = 0.0
    ) -> None:
        self.cell_width = 8
        self.block_cells = 1
        self.row_bytes = 0
        self.device_model: Any = SimpleNamespace(
            device=find_device("cpu"),
            layout=SimpleNamespace(width=8),
            model=SimpleNamespace(world_count=1),
        )
        self.needs = needs
        self.contacts = contacts
        self.seconds = seconds
        self.sizes: list[int] = []
        self.alone: list[int] = []
        self.inside = 0

    def collide(self, batch: PoseBatch, workspace: Workspace) -> tuple[ContactBlock, ChunkReport]:
        cells = range(batch.first_cell, batch.first_cell + batch.cell_count)
        for name in sorted({name for cell in cells for name in self.needs[cell]}):
            workspace.array(name, sum(self.needs[cell].get(name, 0) for cell in cells), wp.uint8)
        self.sizes.append(batch.cell_count)
        counts = np.array(cells, np.int64) * self.contacts
        report = ChunkReport(
            len(cells), seconds={**ChunkReport().seconds, "transforms": self.seconds * len(cells)}
        )
        return ContactBlock(batch.first_cell, counts, {"shape0": np.repeat(counts, counts)}), report

    def collide_in_parts(
        self, batch: PoseBatch, memory_limit: int
    ) -> tuple[ContactBlock, ChunkReport]:
        assert batch.cell_count == 1
        self.alone.append(batch.first_cell)
        self.inside += 1
        assert self.inside == 1, "no other thread works meanwhile"
        result = self.collide(batch, Workspace(self.device_model.device, memory_limit, exact=True))
        self.inside -= 1
        return result


def blocks_of(stub: Stub, part: int, step: int, threads: int = 1) -> list[ContactBlock]:
    cells = len(stub.needs)
    batches = [
        PoseBatch(first, min(step, cells - first), 0, np.zeros(0))
        for first in range(0, cells, step)
    ]
    limit = part * (2 * threads + WAITING_BLOCKS)
    with Workers(stub, threads, limit) as pool:  # pyright: ignore[reportArgumentType]
        return [block for block, _ in pool.collide(batches)]


def whole_of(blocks: list[ContactBlock], count: int) -> list[int]:
    """Cells of each block; asserts that they hold cells 0 to `count` once and in order, cell c with
    c contacts."""
    sizes = [len(block.cell_counts) for block in blocks]
    assert [block.first_cell for block in blocks] == [0, *np.cumsum(sizes)[:-1]]
    cells = np.arange(count)
    np.testing.assert_array_equal(np.concatenate([block.cell_counts for block in blocks]), cells)
    np.testing.assert_array_equal(
        np.concatenate([b.columns["shape0"] for b in blocks]), np.repeat(cells, cells)
    )
    return sizes


@pytest.mark.parametrize("threads", [1, 3])
def test_chunks_too_large_are_halved_in_their_order(threads):
    count = 200
    stub = Stub([{"x": 1000}] * count)
    sizes = whole_of(blocks_of(stub, 2600, 8, threads), count)
    assert max(stub.sizes) == 2
    # The halves of chunks in progress are concatenated; later chunks have the smaller size.
    assert max(sizes[threads + 2 :]) == 2


@pytest.mark.parametrize("fitting", [1, 2, 3, 5])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 11, 13])
def test_parts_of_odd_chunks_hold_every_cell_once(count, fitting):
    """Later parts of a chunk are no larger than the first that fitted."""
    stub = Stub([{"x": 1000}] * count)
    assert len(whole_of(blocks_of(stub, 1000 * fitting + 500, count), count)) == 1
    size = count
    while size > fitting:
        size //= 2
    assert stub.sizes == [size] * (count // size) + ([count % size] if count % size else [])
    assert stub.alone == []


def test_the_middle_cell_of_an_odd_chunk_is_collided_alone():
    needs = [{"x": 100}] * 7
    needs[3] = {"x": 3000}
    stub = Stub(needs)
    assert whole_of(blocks_of(stub, 1000, 7), 7) == [7]
    assert stub.alone == [3]
    # Three cells fit; of the next three the first is tried by itself, and the others are then too.
    assert stub.sizes == [3, 1, 1, 1, 1]
    stub = Stub([{"x": 1000}] * 35)
    whole_of(blocks_of(stub, 4500, 7), 35)
    assert stub.sizes[:3] == [3, 3, 1]
    assert max(stub.sizes[2 * (1 + 2) :]) <= 3, (
        "chunks that were cut before the first result are halved too"
    )


@pytest.mark.parametrize("least", [1, 500, 2000])
def test_the_last_chunks_of_several_workers_are_smaller(least):
    """A chunk takes at least MIN_SECONDS; all cells have equal cost here."""
    cells = 48000
    step = 8000
    assert step > ON_CPU.probe_instances // 8
    batches = [PoseBatch(first, step, 0, np.zeros(0)) for first in range(0, cells, step)]
    sizes = {}
    for known in (None, cells):
        stub = Stub([{"x": 1}] * cells, contacts=False, seconds=MIN_SECONDS / least)
        with Workers(stub, 2, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
            sizes[known] = [len(block.cell_counts) for block, _ in pool.collide(batches, known)]
        assert sum(sizes[known]) == cells
    assert sizes[None][-1] == step
    assert sizes[cells][-1] <= 1.5 * least
    assert min(sizes[cells]) >= least / 2, "a small rest costs as much Python as a whole chunk"


def test_one_cell_too_large_is_refused():
    stub = Stub([{"x": 1}, {"x": 5 << 20}, {"x": 1}])
    said = "frame 1 of world 0 needs at least 5 MiB; its part of the limit is 4 MiB"
    with pytest.raises(InputError, match=said) as refusal:
        blocks_of(stub, 1 << 20, 2)
    assert refusal.value.where == "--memory-limit"


def test_arrays_of_earlier_cells_are_freed():
    stub = Stub([{"x": 1000}, {"y": 1000}, {"x": 500, "y": 500}, {"z": 1300}])
    assert len(blocks_of(stub, 1300, 1)) == 4


def test_reports_of_chunks_add_up():
    one = ChunkReport(1, 2, 3, 4, {"transforms": 0.5}, inexact_count=5)
    assert one.plus(one) == ChunkReport(2, 4, 6, 8, {"transforms": 1.0}, inexact_count=10)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_cell_above_a_workers_memory_is_collided_alone(threads):
    """The limit is 2 threads + 6 parts of 1000 bytes; a worker has one part, a cell alone half of
    all."""
    needs = [{"x": 1000}, {"x": 3900}, {"y": 1000}, {"z": 2500}, {"x": 10}] * 20
    stub = Stub(needs)
    blocks = blocks_of(stub, 1000, 1, threads)
    assert [block.first_cell for block in blocks] == list(range(100))
    assert sorted(stub.alone) == [
        cell for cell in range(100) if needs[cell].get("x", 0) > 1000 or "z" in needs[cell]
    ]


def test_an_error_of_a_chunk_drops_its_scratch_memory():
    """A launch that was queued before the error may refer to arrays that are freed."""
    stub = Stub([{"x": 1}] * 3)
    used: list[Workspace] = []
    collide = stub.collide

    def failing(batch, workspace):
        used.append(workspace)
        if batch.first_cell == 1:
            raise MemoryError
        return collide(batch, workspace)

    stub.collide = failing  # pyright: ignore[reportAttributeAccessIssue]
    with Workers(stub, 1, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        for cell, fails in enumerate((False, True, False)):
            with pytest.raises(MemoryError) if fails else nullcontext():
                list(pool.collide([PoseBatch(cell, 1, 0, np.zeros(0))]))
    assert used[0] is used[1]
    assert used[2] is not used[1]


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
def test_after_an_error_no_queued_copy_is_executed(error):
    """A chunk fails between its queued copies; the next chunk of the same worker must not fill its
    arrays."""
    copied: list[np.ndarray] = []

    class Failing(Stub):
        def collide(
            self, batch: PoseBatch, workspace: Workspace
        ) -> tuple[ContactBlock, ChunkReport]:
            numbers = workspace.array("numbers", 64, wp.int32)
            if batch.first_cell == 0:
                workspace.fill(numbers, 7)
                copied.append(workspace.copied(numbers, 64))
                copied[0][:] = -1
                raise error
            workspace.finish()
            return super().collide(batch, workspace)

    stub = Failing([{}, {}])
    with Workers(stub, 1, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        with pytest.raises(error):
            list(pool.collide([PoseBatch(0, 1, 0, np.zeros(0))]))
        list(pool.collide([PoseBatch(1, 1, 0, np.zeros(0))]))
    assert set(copied[0].tolist()) == {-1}


def test_stopping_early_leaves_no_thread_waiting():
    stub = Stub([{"x": 1}] * 100)
    with Workers(stub, 2, 1 << 20) as pool:  # pyright: ignore[reportArgumentType]
        blocks = pool.collide([PoseBatch(cell, 1, 0, np.zeros(0)) for cell in range(100)])
        next(blocks)
        blocks.close()
    assert len(stub.sizes) < 100
