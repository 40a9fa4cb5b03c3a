"""Stable partition of the candidates by collider: count, scan, write."""

from __future__ import annotations

import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, row_of
from collidecli.engine.contact_record import Candidates
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.narrowphase.collider import ColliderTable
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace

BLOCK = wp.constant(128)
"""Candidates of one thread."""


@kernel
def count_buckets(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    candidates: Candidates,
    candidate_count: int,
    kind_count: int,
    buckets: wp.array[wp.int32],
    bucket_count: int,
    block_count: int,
    bucket: wp.array[wp.uint8],
    end: wp.array[wp.int32],
):
    """Rows and buckets of a block's candidates, and the count of each bucket; one thread a block."""
    block = wp.tid()
    for b in range(bucket_count):
        end[b * block_count + block] = 0
    for index in range(block * BLOCK, wp.min((block + 1) * BLOCK, candidate_count)):
        pair = candidates.pair[index]
        row0 = row_of(chunk, layout, pair[0])
        row1 = row_of(chunk, layout, pair[1])
        candidates.row[index] = wp.vec2i(row0, row1)
        b = buckets[rows.kind[row0] * kind_count + rows.kind[row1]]
        bucket[index] = wp.uint8(b)
        end[b * block_count + block] = end[b * block_count + block] + 1


@kernel
def write_buckets(
    candidate_count: int,
    bucket_count: int,
    block_count: int,
    bucket: wp.array[wp.uint8],
    end: wp.array[wp.int32],
    order: wp.array[wp.int32],
):
    """Writes candidate indices from last to first, each before the end of its bucket's range in the block; one thread a
    block.
    """
    block = wp.tid()
    last = wp.min((block + 1) * BLOCK, candidate_count) - 1
    for back in range(last - block * BLOCK + 1):
        index = last - back
        slot = int(bucket[index]) * block_count + block
        end[slot] = end[slot] - 1
        order[end[slot]] = index


def partition(
    device_model: DeviceModel,
    chunk: Chunk,
    candidates: Candidates,
    count: int,
    table: ColliderTable,
    workspace: Workspace,
) -> tuple[wp.array, list[int]]:
    """Candidate indices ordered by collider, ascending within one; and the start of each collider's range, colliders +
    1.
    """
    collider_count = len(table.colliders)
    block_count = -(-count // int(BLOCK))
    bucket = workspace.array("bucket", count, wp.uint8)
    end = workspace.array("bucket_end", collider_count * block_count, wp.int32)
    order = workspace.array("bucket_order", count, wp.int32)
    arguments = [
        device_model.rows,
        device_model.layout,
        chunk.cells,
        candidates,
        count,
        table.kind_count,
        table.of_kinds,
    ]
    workspace.launch(count_buckets, block_count, [*arguments, collider_count, block_count, bucket, end])
    workspace.launch_scan(end, collider_count * block_count)
    # The scan's last block of each bucket is the bucket's end; it is read before the write pass decrements it.
    starts = [0, *workspace.every(end, collider_count * block_count, block_count)]
    workspace.launch(write_buckets, block_count, [count, collider_count, block_count, bucket, end, order])
    return order, starts
