"""Endings of the names of files."""

from __future__ import annotations

from collidecli.storage.storage_formats import ENDINGS, HDF5, USD

PAGE_ENDINGS = (".html", ".htm")
HDF5_ENDINGS = ENDINGS[HDF5]
MATRIX_ENDINGS = (".srdf", ".xml", ".usda", ".usd", ".usdc", ".json")
RECORDING_ENDINGS = tuple(
    ending for storage, every in ENDINGS.items() if storage != USD for ending in every
)
"""Extensions of the recordings of a folder. USD layers are named by a path or a pattern: a folder
of them may contain scenes too."""
MUJOCO_ENDINGS = (".xml", ".mjcf", ".urdf")
SCENE_ENDINGS = (*ENDINGS[USD], *MUJOCO_ENDINGS)
FILE_ENDINGS = (*HDF5_ENDINGS, *PAGE_ENDINGS)
"""Extensions of outputs, which the name of a folder of outputs does not have."""
