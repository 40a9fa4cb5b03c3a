"""Blocks of a motion's frames, computed on threads and returned in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from collidecli.scene.motion import Motion
from collidecli.storage.process_activity import reading


def blocks_in_order(
    motion: Motion,
    frames_at_once: int,
    workers: int,
    compute_now: Callable[[], Callable[[int, Any], Any]],
    read: Callable[[range], Any] | None = None,
) -> Iterator[Any]:
    """Results of blocks of at most `frames_at_once` frames, computed on threads, in order.

    compute_now: called before each block, returns its function of the first frame and of what
    `read` returns; by default the body poses float64[F, 1 or W, B, 7].
    """
    waiting: deque[Future] = deque()
    frames = len(motion.time)
    with ThreadPoolExecutor(workers, "collide") as pool:
        try:
            for first in range(0, frames, frames_at_once):
                with reading("motion"):
                    block = (read or motion.read)(range(first, min(first + frames_at_once, frames)))
                waiting.append(pool.submit(compute_now(), first, block))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
