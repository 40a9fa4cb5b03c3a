"""Files of `package://` paths, which ROS resolves by the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_PACKAGE = re.compile(r"package:/+([^/]+)/+(.+)")
"""MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF."""


def package_file(path: str, folder: str) -> str | None:
    """Absolute path of the existing file that a `package://NAME/...` path names; None for another path or no file.

    A package NAME is a folder of that name in a folder of ROS_PACKAGE_PATH or in `share` of a prefix of
    AMENT_PREFIX_PATH, or such a folder itself; then the same for `folder`, that of the scene, and its parents.
    """
    named = _PACKAGE.fullmatch(path)
    if named is None:
        return None
    name, rest = named.groups()
    for root in _roots(folder):
        for package in (os.path.join(root, name), root):
            found = os.path.join(package, rest)
            if os.path.basename(package) == name and os.path.isfile(found):
                return os.path.abspath(found)
    return None


def _roots(folder: str) -> Iterator[str]:
    for entry in _entries("ROS_PACKAGE_PATH"):
        yield entry.rstrip(os.sep)
    for prefix in _entries("AMENT_PREFIX_PATH"):
        yield os.path.join(prefix, "share")
    scene = Path(os.path.abspath(folder))
    yield from map(str, (scene, *scene.parents))


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
