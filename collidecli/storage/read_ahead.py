"""The next block of a file is read while this one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """The same blocks in the same order; each is taken by a thread of its own while the one before is in use.

    Two are in memory at a time. What `blocks` raises is raised where its block would have come.
    """
    with ThreadPoolExecutor(1, "collide-read") as thread:
        waiting = thread.submit(next, blocks, None)
        while (block := waiting.result()) is not None:
            waiting = thread.submit(next, blocks, None)
            yield block
