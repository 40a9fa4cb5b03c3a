"""The engine's contacts and candidates of random scenes and of motions in memory."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import warp as wp

from collidecli.elapsed import NOT_RUN
from collidecli.engine.block_pairs import BlockPairs
from collidecli.engine.candidates import expand
from collidecli.engine.cells import FULL_BLOCKS, Chunk, PoseBatch, transform_chunk
from collidecli.engine.geometry.sdf_construction import FieldStore
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.pipeline_build import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.scheduler import Workers
from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import merged_contacts
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.poses import random_quaternions

PHASES = {
    "nxn": {"broad_phase": "nxn"},
    "sap": {"broad_phase": "sap"},
    "explicit": {"broad_phase": "explicit"},
    "standard": {"pipeline": "standard"},
}
MEMORY = 1 << 40


class EveryPair:
    """A broad phase that tests no bounds: every allowed pair of every cell is a candidate."""

    name = "every pair"
    blocks = FULL_BLOCKS

    def __init__(self, pipeline: CollisionPipeline) -> None:
        self._model = pipeline.device_model
        self._pairs = [
            np.searchsorted(rows, allowed_pairs(self._model.model, template))
            for template, rows in enumerate(self._model.template_rows)
        ]

    def find(self, chunk: Chunk, workspace: Workspace) -> BlockPairs:
        width = self._model.layout.width
        templates, sizes = (
            a.numpy()[: chunk.block_count]
            for a in (chunk.cells.block_template, chunk.cells.block_size)
        )
        pairs = [self._pairs[template] + block * width for block, template in enumerate(templates)]
        mask = [
            np.full(len(each), (1 << int(size)) - 1)
            for each, size in zip(pairs, sizes, strict=True)
        ]
        found = np.concatenate(pairs).astype(np.int32)
        slots = wp.array(found, dtype=wp.vec2i, device=workspace.device)
        masks = wp.array(
            np.concatenate(mask).astype(np.uint32), dtype=wp.uint32, device=workspace.device
        )
        return BlockPairs(slots, masks, len(found))

    def kernels(self) -> list:
        return []


def pipeline_of(
    model: Model,
    sample: np.ndarray,
    contact: ContactOptions | None = None,
    float_type: str = "float64",
    device: str = "cpu",
    store: FieldStore | None = None,
    **engine: object,
) -> CollisionPipeline:
    """A pipeline on a device. sample: float64[samples, W, B, 7], what a sweep is planned from."""
    options = replace(EngineOptions(), **engine)
    where = find_device(device)
    return build_pipeline(
        model,
        contact or ContactOptions(),
        options,
        where,
        lambda: sample,
        np.dtype(float_type),
        store,
    )[0]


def contacts_of(
    pipeline: CollisionPipeline,
    poses: np.ndarray,
    chunk: int = 0,
    threads: int = 1,
    memory: int = MEMORY,
) -> Contacts:
    """The contacts of poses float64[F, W, B, 7] in chunks of `chunk` cells; 0 is one chunk."""
    world_count = pipeline.device_model.model.world_count
    cells = len(poses) * world_count
    step = chunk or cells
    batches = [
        PoseBatch(first, min(step, cells - first), 0, poses) for first in range(0, cells, step)
    ]
    with Workers(pipeline, threads, memory) as pool:
        blocks = [block for block, _ in pool.collide(batches)]
    return merged_contacts(blocks, len(poses), world_count)


def candidates_of(pipeline: CollisionPipeline, poses: np.ndarray) -> np.ndarray:
    """int64[n, 3]: cell and rows of every candidate, in the broad phase's order."""
    model = pipeline.device_model.model
    cells = len(poses) * model.world_count
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    workspace.counts.begin(cells)
    most = pipeline.broad_phase.blocks
    chunk = transform_chunk(pipeline.device_model, PoseBatch(0, cells, 0, poses), workspace, most)
    found = pipeline.broad_phase.find(chunk, workspace)
    table = pipeline.narrow_phase.table
    buckets = table.of_kinds, table.kind_count, max(1, len(table.colliders))
    listed = expand(pipeline.device_model, chunk, found, buckets, "candidate", workspace)
    cell_end = workspace.host(listed.cell_end(cells, workspace), cells)
    cell = np.repeat(np.arange(cells), np.diff(cell_end, prepend=0))
    return np.column_stack([cell, workspace.host(listed.row, listed.count).reshape(-1, 2)]).astype(
        np.int64
    )


def cells_of(contacts: Contacts) -> np.ndarray:
    """int64[n]: the cell of each contact."""
    return np.repeat(np.arange(len(contacts.cell_start) - 1), np.diff(contacts.cell_start))


def assert_identical(first: Contacts, second: Contacts) -> None:
    """Bit for bit, all columns and the cells."""
    np.testing.assert_array_equal(first.cell_start, second.cell_start)
    for column in RIGID_COLUMNS:
        ours = getattr(first, column.name)
        theirs = getattr(second, column.name)
        assert ours.dtype == theirs.dtype
        # As bytes: -0.0 is not 0.0 then.
        assert ours.tobytes() == theirs.tobytes(), column.name
    assert list(first.columns) == list(second.columns)
    for name, values in first.columns.items():
        assert values.dtype == second.columns[name].dtype
        assert values.tobytes() == second.columns[name].tobytes(), name


class ArrayMotion:
    """Poses already in memory, as a motion (see `scene.motion.Motion`): reading costs nothing.

    poses: float64[frames, worlds, B, 7], xyzw.
    """

    def __init__(self, poses: np.ndarray, episodes=None) -> None:
        self.poses = poses
        self.time = np.arange(len(poses), dtype=float)
        self.step = np.arange(len(poses))
        self.world_count, self.float_type, self.sha256 = poses.shape[1], np.dtype(np.float64), ""
        self.warnings = ()
        self.kinematics_time = NOT_RUN
        self.episodes = episodes

    def read(self, frames: range) -> np.ndarray:
        return self.poses[frames.start : frames.stop]

    def close(self) -> None:
        pass


ROUND_AND_FLAT = (
    ShapeType.SPHERE,
    ShapeType.CAPSULE,
    ShapeType.BOX,
    ShapeType.CYLINDER,
    ShapeType.CONE,
    ShapeType.ELLIPSOID,
    ShapeType.CONVEX_MESH,
)
SIZE_COUNTS = {ShapeType.SPHERE: 1, ShapeType.BOX: 3, ShapeType.ELLIPSOID: 3}
PLANE_TILT = np.array([0.1, -0.2, 0.0, 1.0]) / np.linalg.norm([0.1, -0.2, 0.0, 1.0])

Config = Callable[[int], ShapeConfig | None]


def random_poses(rng: np.random.Generator, counts: Sequence[int], spread: float) -> np.ndarray:
    """float64[*counts, 7]: positions within `spread` of the origin along each axis, uniform
    rotations."""
    total = int(np.prod(counts))
    position = rng.uniform(-spread, spread, (total, 3))
    return np.concatenate([position, random_quaternions(rng, total)], 1).reshape(*counts, 7)


def add_shapes(
    builder: ModelBuilder,
    rng: np.random.Generator,
    count: int,
    config: Config = lambda index: None,
    types: Sequence[ShapeType] = ROUND_AND_FLAT,
    name: str = "s",
) -> None:
    """`count` bodies of one shape each, of sizes 0.05 to 0.3 m, every third one off its body's
    origin."""
    for index in range(count):
        shape_type = types[index % len(types)]
        size = rng.uniform(0.05, 0.3, SIZE_COUNTS.get(shape_type, 2))
        local = random_poses(rng, (1,), 0.1)[0] if index % 3 == 0 else None
        body = builder.add_body(key=f"{name}{index}")
        if shape_type == ShapeType.CONVEX_MESH:
            builder.add_shape_convex_hull(
                body, random_cloud(rng), local, config(index), key=f"{name}{index}"
            )
        else:
            builder.add_shape(body, shape_type, size, local, config(index), key=f"{name}{index}")


def random_cloud(rng: np.random.Generator) -> np.ndarray:
    """float64[5 to 60, 3]: points within some 0.3 m."""
    return rng.uniform(-1.0, 1.0, (rng.integers(5, 60), 3)) * rng.uniform(0.05, 0.3, 3)


def add_planes(builder: ModelBuilder, config: Config = lambda index: None) -> None:
    """The ground, and a tilted plane that stands still below it."""
    builder.add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.6, 0, 0, 0, 1], config(0), key="ground")
    builder.add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.8, *PLANE_TILT], config(1), key="slope")


def mixed_builder(seed: int, count: int = 24, config: Config = lambda index: None) -> ModelBuilder:
    """A small scene of every type: two planes first, then `count` moving shapes."""
    builder = ModelBuilder()
    add_planes(builder, config)
    add_shapes(builder, np.random.default_rng(seed), count, config)
    return builder
