"""Reading of the next block of a file while the current one is processed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Block = TypeVar("Block")


def read_ahead(blocks: Iterator[Block]) -> Iterator[Block]:
    """Iterates over `blocks`; a second thread takes the next block while the caller processes the current one.

    Two blocks at a time are in memory. Exceptions of `blocks` are raised at the position of their block.
    """
    with ThreadPoolExecutor(1, "collide-read") as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block
