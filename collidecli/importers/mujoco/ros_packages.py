"""Files that a URDF names by `package://`, by `file://` or relative to itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

PACKAGE_URI = re.compile(r"package:/+([^/]+)/+(.+)")
"""MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF."""
FILE_URI = "file://"


def package_file(path: str, folder: str, folders: Sequence[str] = ()) -> str | None:
    """Absolute path of the existing file that a `package://NAME/...` path names; None for another
    path or no file.

    A package NAME is a folder of that name in one of `folders`, in a folder of ROS_PACKAGE_PATH or
    in `share` of a prefix of AMENT_PREFIX_PATH, or such a folder itself; then the same for
    `folder`, the scene's, and its parents.
    """
    named = PACKAGE_URI.fullmatch(path)
    if named is None:
        return None
    name, rest = named.groups()
    for root in (*folders, *_roots(folder)):
        root = root.rstrip(os.sep)
        for package in (os.path.join(root, name), root):
            candidate = os.path.join(package, rest)
            if os.path.basename(package) == name and os.path.isfile(candidate):
                return os.path.abspath(candidate)
    return None


def file_of_urdf(path: str, folder: str, mesh_folder: str) -> str | None:
    """Absolute path of the existing file of a `file://` path, or of a path relative to the URDF
    that leads nowhere from its mesh folder; None for another path or no file.

    MuJoCo looks in the mesh folder of `<compiler>` alone, while ROS knows no such folder: the same
    files serve both where their paths have it already. folder: of the URDF.
    """
    if path.startswith(FILE_URI):
        named = unquote(urlsplit(path).path)
        return named if os.path.isfile(named) else None
    if not mesh_folder or os.path.isfile(os.path.join(folder, mesh_folder, path)):
        return None
    beside = os.path.abspath(os.path.join(folder, path))
    return beside if os.path.isfile(beside) else None


def _roots(folder: str) -> Iterator[str]:
    yield from _entries("ROS_PACKAGE_PATH")
    for prefix in _entries("AMENT_PREFIX_PATH"):
        yield os.path.join(prefix, "share")
    scene = Path(os.path.abspath(folder))
    yield from map(str, (scene, *scene.parents))


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
