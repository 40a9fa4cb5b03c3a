"""The content hash in a contact set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.storage.contact_sets.header import BLOCK_HASHES, BLOCK_ROWS_ATTRIBUTE
from collidecli.storage.content_hash import HASHED_ROWS, DatasetDigest, block_hashes
from collidecli.storage.new_objects import NewObjects


def write_content_hash(
    objects: NewObjects, version: tuple[int, int], digests: Sequence[DatasetDigest], content: str
) -> None:
    """Writes the content hash and, of version 2, the hashes of its blocks."""
    objects.attribute("/", "content_sha256", content)
    if version[0] > 1:
        objects.attribute("/", BLOCK_ROWS_ATTRIBUTE, np.int64(HASHED_ROWS))
        objects.numbers(BLOCK_HASHES, block_hashes(digests))
