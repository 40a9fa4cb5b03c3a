"""Columns of contacts that leave a device, and columns that stay there."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import warp as wp

from collidecli.engine import column_destination, pipeline_build
from collidecli.engine.cells import PoseBatch
from collidecli.engine.column_destination import ColumnDestination, KeptColumns
from collidecli.engine.ordered_contacts import CONTACT_ROWS
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.workspace import ALIGNMENT, Workspace
from collidecli.engine.scheduler import Workers
from collidecli.errors import InputError
from collidecli.scene.contact_columns import FRICTION_SCALE, PAIR_TABLES, RIGID_COLUMNS, TOUCHES
from collidecli.scene.options import ContactOptions
from tests.support.device_scenes import REDUCED, SCENES, Scene, scene_blocks, scene_pipeline
from tests.support.engine_runs import MEMORY

TOUCHED = frozenset({"shape0", "shape1", "distance"})
NAMES = [
    TOUCHED,
    frozenset({"offset1", "kind"}),
    frozenset({"normal"}),
    frozenset({"feature0", "feature1", "kind"}),
    frozenset({"point0", "feature1", FRICTION_SCALE.name}),
    frozenset({column.name for column in RIGID_COLUMNS} - {"offset0", "shape1"}),
    frozenset(),
]
OPTIONS = {"all": ContactOptions(), "reduced": REDUCED}
SIZES_READ = 400
"""More than the bytes of the sizes that the host reads of a chunk, and less than a column has."""


@pytest.fixture(params=["cpu", "cpu as a device"])
def own_memory(request, monkeypatch) -> bool:
    """Whether the CPU's arrays are copied as a device's."""
    own = request.param != "cpu"
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"} if own else set())
    monkeypatch.setattr(pipeline_build, "keep_freed_memory", lambda device: None)
    return own


def scene_of(options: ContactOptions, name: str = "primitives") -> Scene:
    return SCENES[name](options)


def one_chunk(pipeline, scene: Scene):
    """The block of all cells, and what was copied."""
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    cells = len(scene.poses) * scene.model.world_count
    with workspace.turn():
        block, _ = pipeline.collide(PoseBatch(0, cells, 0, scene.poses), workspace)
    return block, workspace.traffic


@pytest.mark.parametrize("float_type", ["float64", "float32"])
@pytest.mark.parametrize("options", OPTIONS)
def test_wanted_columns_have_the_bits_of_all(own_memory, options, float_type):
    """On a device they alone are copied, in one transfer; the others have no array in the
    kernel."""
    scene = scene_of(OPTIONS[options])
    pipeline = scene_pipeline(scene, "explicit", float_type=float_type)
    whole, everything = one_chunk(pipeline, scene)
    assert whole.contact_count > 100
    for names in NAMES:
        some, traffic = one_chunk(replace(pipeline, destination=ColumnDestination(names)), scene)
        assert list(some.columns) == [name for name in whole.columns if name in names]
        np.testing.assert_array_equal(some.cell_counts, whole.cell_counts)
        for name, values in some.columns.items():
            assert values.dtype == whole.columns[name].dtype
            assert values.shape == whole.columns[name].shape
            assert values.tobytes() == whole.columns[name].tobytes(), (names, name)
        if own_memory:
            size = sum(values.nbytes for values in some.columns.values())
            size += 4 * len(some.cell_counts)
            assert traffic.downloads == everything.downloads
            assert size < traffic.downloaded_bytes
            assert traffic.downloaded_bytes < size + SIZES_READ + ALIGNMENT * (len(names) + 1)


def test_columns_do_not_change_the_size_of_chunks(own_memory):
    """Which the records of the contacts in scratch memory bound, whatever is copied."""
    scene = scene_of(ContactOptions())
    pipeline = scene_pipeline(scene, "explicit")
    kept = KeptColumns(wp.get_device("cpu"))
    limits = set()
    for destination in (
        ColumnDestination(),
        ColumnDestination(TOUCHED),
        ColumnDestination(None, kept),
    ):
        with Workers(replace(pipeline, destination=destination), 1, MEMORY) as pool:
            list(pool.collide([PoseBatch(0, 6, 0, scene.poses)]))
            limits.add(pool._bytes_per_cell)
    (size,) = limits
    assert size > 105.0


@pytest.mark.parametrize(("float_type", "size"), [("float64", 105), ("float32", 81)])
def test_bytes_of_a_contact(float_type, size):
    """As the page on GPUs has them."""
    assert CONTACT_ROWS[np.dtype(float_type)].row_bytes == size


def test_touching_pairs_are_copied_alone(own_memory):
    """Two numbers a pair that touches, of the pairs that have contacts."""
    full = scene_blocks(
        scene_pipeline(scene_of(ContactOptions()), "sap"), scene_of(ContactOptions())
    )
    scene = scene_of(ContactOptions(touch_only=True))
    block, traffic = one_chunk(scene_pipeline(scene, "sap"), scene)
    cell = np.repeat(np.arange(len(full[0].cell_counts)), full[0].cell_counts)
    rows = np.column_stack([cell, full[0].shape0, full[0].shape1])
    touches = block.groups[TOUCHES.name]
    cell = np.repeat(np.arange(len(touches.cell_counts)), touches.cell_counts)
    found = np.column_stack([cell, touches.columns["shape0"], touches.columns["shape1"]])
    np.testing.assert_array_equal(found, np.unique(rows, axis=0))
    assert all(values.dtype == np.int32 for values in touches.columns.values())
    if own_memory:
        size = 8 * len(found) + 4 * len(touches.cell_counts)
        assert size < traffic.downloaded_bytes < size + SIZES_READ + 3 * ALIGNMENT


PAIRS_ALONE = [ContactOptions(touch_only=True), ContactOptions(candidates_only=True)]


@pytest.mark.parametrize("options", [*OPTIONS.values(), *PAIRS_ALONE])
@pytest.mark.parametrize(("chunk", "threads"), [(0, 1), (1, 3), (2, 1)])
def test_kept_columns_are_those_of_the_host(own_memory, options, chunk, threads):
    scene = scene_of(options)
    pipeline = scene_pipeline(scene, "explicit")
    whole = scene_blocks(pipeline, scene)[0]
    kept = KeptColumns(wp.get_device("cpu"))
    pipeline = replace(pipeline, destination=ColumnDestination(None, kept))
    blocks = scene_blocks(pipeline, scene, chunk, threads)
    table = PAIR_TABLES[options.finds_pairs_alone].name if options.finds_pairs_alone else ""
    tables = [block.groups.get(table, block) for block in blocks]
    of_host = whole.groups.get(table, whole)
    np.testing.assert_array_equal(
        np.concatenate([table.cell_counts for table in tables]), of_host.cell_counts
    )
    assert_kept(kept, of_host.columns)


def assert_kept(kept: KeptColumns, columns: dict[str, np.ndarray]) -> None:
    joined = kept.joined()
    assert list(joined) == list(columns)
    for name, array in joined.items():
        assert array.numpy().dtype == columns[name].dtype
        assert array.numpy().shape == columns[name].shape
        assert array.numpy().tobytes() == columns[name].tobytes(), name


@pytest.mark.parametrize("names", NAMES[:5])
def test_kept_columns_stay(own_memory, names):
    """Of a chunk the ends of its cells and the sizes that the host reads are copied."""
    scene = scene_of(REDUCED)
    pipeline = scene_pipeline(scene, "explicit")
    whole, _ = one_chunk(pipeline, scene)
    kept = KeptColumns(wp.get_device("cpu"))
    pipeline = replace(pipeline, destination=ColumnDestination(names, kept))
    block, traffic = one_chunk(pipeline, scene)
    assert not block.columns
    assert traffic.downloaded_bytes < 4 * len(block.cell_counts) + SIZES_READ
    assert_kept(kept, {name: whole.columns[name] for name in whole.columns if name in names})


def test_kept_columns_of_a_cell_in_parts(own_memory):
    """The cell exceeds the scratch memory, so that its candidates are collided one after the
    other."""
    scene = scene_of(ContactOptions())
    scene = replace(scene, poses=scene.poses[:1])
    pipeline = scene_pipeline(scene, "explicit")
    whole = scene_blocks(pipeline, scene)[0]
    kept = KeptColumns(wp.get_device("cpu"))
    pipeline = replace(pipeline, destination=ColumnDestination(None, kept))
    with Workers(pipeline, 1, 80_000) as pool:
        reports = [report for _, report in pool.collide([PoseBatch(0, 2, 0, scene.poses)])]
    in_parts = [part for report in reports for part in report.parts if part.candidate_count]
    assert len(in_parts) == 6
    assert_kept(kept, whole.columns)


def test_a_device_without_memory_for_kept_columns_is_named(monkeypatch):
    def empty(*_, **__):
        raise RuntimeError("Failed to allocate 1 byte on device 'cuda:0'")

    monkeypatch.setattr(column_destination.wp, "empty", empty)
    device: Any = SimpleNamespace(alias="cuda:0")
    kept = KeptColumns(device)
    with pytest.raises(InputError, match=r"takes 3\.81 MiB, and cuda:0 has less left"):
        kept.new(1_000_000, wp.float32)
