"""Shares of the memory limit of a run."""

import numpy as np
import pytest

from collidecli import InputError, ModelBuilder
from collidecli.motions import memory_shares
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.storage.h5_chunks import CHUNK_ROWS
from collidecli.wording import memory
from tests.support.engine_runs import ArrayMotion

MIB = 1 << 20


def model_and_motion(bodies: int, worlds: int = 1, recorded: int = 1):
    builder = ModelBuilder()
    for _ in range(bodies):
        builder.add_shape_sphere(builder.add_body(), radius=0.1)
    poses = np.zeros((2, recorded, bodies, 7))
    poses[..., 6] = 1.0
    return builder.finalize(world_count=worlds), ArrayMotion(poses)


@pytest.mark.parametrize("limit", [8 * MIB, 64 * MIB, 256 * MIB])
@pytest.mark.parametrize("in_flight", [1, 2])
@pytest.mark.parametrize(("bodies", "worlds", "recorded"), [(3, 1, 1), (50, 64, 64), (50, 64, 1)])
def test_the_shares_add_up_to_the_limit(limit, bodies, worlds, recorded, in_flight):
    """in_flight: chunks whose poses a device reads at a time."""
    given = model_and_motion(bodies, worlds, recorded)
    shares = memory_shares.shared_out(limit, *given, 10_000 * worlds, in_flight=in_flight)
    row_bytes = sum(c.width * c.dtype_for(np.dtype(np.float64)).itemsize for c in RIGID_COLUMNS)
    poses = (
        (memory_shares.HELD_BATCHES + in_flight - 1)
        * -(-shares.chunk_cells // worlds)
        * memory_shares.POSE_BYTES
        * bodies
        * recorded
    )
    held = memory_shares.HELD_CHUNKS * shares.chunk_rows * row_bytes
    assert poses + held + memory_shares.WRITING_BYTES + shares.engine_bytes == limit
    assert shares.engine_bytes >= limit // 2
    assert shares.chunk_cells % worlds == 0


def test_an_ample_limit_cuts_no_chunk():
    shares = memory_shares.shared_out(1024 * MIB, *model_and_motion(10), 3000)
    assert (shares.chunk_cells, shares.chunk_rows) == (3000, CHUNK_ROWS)


def test_a_limit_too_small_for_a_frame_is_refused_with_what_is_enough():
    model, motion = model_and_motion(400, 64, 64)
    frame = memory_shares.POSE_BYTES * 400 * 64
    with pytest.raises(InputError, match=f"{memory(frame)} of poses") as refusal:
        memory_shares.shared_out(8 * MIB, model, motion, 640)
    assert refusal.value.where == "--memory-limit"
    enough = int(refusal.value.fix.split()[3].removesuffix("MiB"))
    shares = memory_shares.shared_out(enough * MIB, model, motion, 640)
    assert (shares.chunk_cells, shares.chunk_rows) == (64, memory_shares.LEAST_CHUNK_ROWS)
    with pytest.raises(InputError):
        memory_shares.shared_out((enough - 1) * MIB, model, motion, 640)
