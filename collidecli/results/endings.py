"""Endings of the names of files."""

from __future__ import annotations

import os

from collidecli.storage.storage_formats import ENDINGS, HDF5, USD

PAGE_ENDINGS = (".html", ".htm")
HDF5_ENDINGS = ENDINGS[HDF5]
RECORDING_ENDINGS = tuple(
    ending for storage, every in ENDINGS.items() if storage != USD for ending in every
)
"""Extensions of the recordings of a folder. USD layers are named by a path or a pattern: a folder
of them may contain scenes too."""
DATA_SET = os.path.join("meta", "info.json")
"""The file in a folder by which it is one recording, a LeRobot data set."""
FILE_ENDINGS = (*HDF5_ENDINGS, *PAGE_ENDINGS)
"""Extensions of outputs, which the name of a folder of outputs does not have."""
