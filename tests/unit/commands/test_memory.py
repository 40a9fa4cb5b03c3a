"""What a limit of memory leaves for each, and when it is refused."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.commands.collision import (
    HELD_BATCHES,
    HELD_CHUNKS,
    LEAST_CHUNK_ROWS,
    POSE_BYTES,
    WRITING_BYTES,
    shared_out,
)
from collidecli.errors import InputError
from collidecli.scene.arguments import memory
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.tables import RIGID_COLUMNS
from collidecli.storage.h5_chunks import CHUNK_ROWS
from tests.support.motions import ArrayMotion

MIB = 1 << 20


def model_and_motion(bodies: int, worlds: int = 1, recorded: int = 1):
    builder = ModelBuilder()
    for _ in range(bodies):
        builder.add_shape_sphere(builder.add_body(), radius=0.1)
    poses = np.zeros((2, recorded, bodies, 7))
    poses[..., 6] = 1.0
    return builder.finalize(world_count=worlds), ArrayMotion(poses)


def taken(shares, frame_bytes: int, worlds: int = 1) -> int:
    row_bytes = sum(c.width * c.dtype_for(np.dtype(np.float64)).itemsize for c in RIGID_COLUMNS)
    frames = -(-shares.chunk_cells // worlds)
    return HELD_BATCHES * frames * frame_bytes + HELD_CHUNKS * shares.chunk_rows * row_bytes + WRITING_BYTES


def test_what_is_enough_is_not_cut():
    shares = shared_out(1024 * MIB, *model_and_motion(10), 3000)
    assert (shares.chunk_cells, shares.chunk_rows) == (3000, CHUNK_ROWS)


@pytest.mark.parametrize("limit", [8 * MIB, 64 * MIB, 256 * MIB])
@pytest.mark.parametrize(("bodies", "worlds", "recorded"), [(3, 1, 1), (50, 64, 64), (50, 64, 1)])
def test_the_shares_add_up_to_the_limit(limit, bodies, worlds, recorded):
    shares = shared_out(limit, *model_and_motion(bodies, worlds, recorded), 10_000 * worlds)
    assert taken(shares, POSE_BYTES * bodies * recorded, worlds) + shares.engine_bytes == limit
    assert shares.engine_bytes >= limit // 2
    assert shares.chunk_cells % worlds == 0


def test_a_limit_too_small_for_a_frame_is_refused_with_what_is_enough():
    model, motion = model_and_motion(400, 64, 64)
    frame = POSE_BYTES * 400 * 64
    with pytest.raises(InputError, match=f"{memory(frame)} of poses") as refusal:
        shared_out(8 * MIB, model, motion, 640)
    assert refusal.value.where == "--memory-limit"
    enough = int(refusal.value.fix.split()[3].removesuffix("MiB"))
    shares = shared_out(enough * MIB, model, motion, 640)
    assert shares.chunk_cells == 64
    assert shares.chunk_rows == LEAST_CHUNK_ROWS
    with pytest.raises(InputError):
        shared_out((enough - 1) * MIB, model, motion, 640)
