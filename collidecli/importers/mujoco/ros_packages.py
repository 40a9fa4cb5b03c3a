"""Files that a URDF names by `package://`, by `file://` or relative to itself."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from collidecli.storage.regular_files import open_input
from collidecli.wording import first_and_count

PACKAGE_URI = re.compile(r"package:/+([^/]+)/+(.+)")
"""MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF."""
FILE_URI = "file://"
MANIFEST = "package.xml"
_HIGHEST = 2
"""Folders above that of a URDF in which its files are searched."""
_LARGEST_MANIFEST = 1 << 20
_DECLARED = re.compile(rb"<name>\s*([^<\s]+)\s*</name>")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)


def package_file(path: str, folder: str, folders: Sequence[str] = ()) -> str | None:
    """Absolute path of the existing file that a `package://NAME/...` path names; None for another
    path or no file.

    A package NAME is a folder of that name, or one whose `package.xml` has that name. It is
    searched in `folders`, in the folders of ROS_PACKAGE_PATH and in `share` of the prefixes of
    AMENT_PREFIX_PATH, each of which may also be the package itself; then among `folder`, the
    scene's, and its parents, and as a folder beside them. A path `package://FILE` without a package
    is relative to `folder`.
    """
    if not path.startswith("package:"):
        return None
    named = PACKAGE_URI.fullmatch(path)
    if named is None:
        beside = os.path.abspath(os.path.join(folder, path.removeprefix("package:").lstrip("/")))
        return beside if os.path.isfile(beside) else None
    name, rest = named.groups()
    for package in _packages(name, folder, folders):
        candidate = os.path.join(package, rest)
        if os.path.isfile(candidate):
            return os.path.abspath(candidate)
    return None


def _packages(name: str, folder: str, folders: Sequence[str]) -> Iterator[str]:
    """Folders that may be the package of a name, the most explicit first."""
    for root in (*folders, *_listed_roots()):
        root = root.rstrip(os.sep)
        yield os.path.join(root, name)
        yield from (each for each in (root, *_packages_in(root)) if name in _names_of(each))
    scene = Path(os.path.abspath(folder))
    for root in map(str, (scene, *scene.parents)):
        yield os.path.join(root, name)
        if name in _names_of(root):
            yield root


def _names_of(folder: str) -> tuple[str, ...]:
    """The names of a package in a folder: that of the folder, and that in its `package.xml`."""
    path = os.path.join(folder, MANIFEST)
    declared = None
    if os.path.isfile(path):
        with open_input(path) as file:
            declared = _DECLARED.search(_COMMENT.sub(b"", file.read(_LARGEST_MANIFEST)))
    name = () if declared is None else (declared[1].decode("utf-8", "replace"),)
    return (os.path.basename(folder), *name)


def _packages_in(root: str) -> tuple[str, ...]:
    """The folders in a folder that have a `package.xml`."""
    try:
        inside = sorted(os.listdir(root))
    except OSError:
        return ()
    paths = (os.path.join(root, entry) for entry in inside)
    return tuple(path for path in paths if os.path.isfile(os.path.join(path, MANIFEST)))


def file_of_urdf(path: str, folder: str, mesh_folder: str) -> str | None:
    """Absolute path of the existing file of a `file://` path, or of a relative path that leads
    nowhere from the mesh folder of the URDF; None for another path or no file.

    Such a path is relative to the URDF, else to the folder above, else to the one above that.
    MuJoCo looks in the mesh folder of `<compiler>` alone, while ROS knows no such folder: the same
    files serve both where their paths have it already. Bullet looks in the folders above, where a
    package has its meshes beside the folder of its URDF. folder: of the URDF. Source: bullet3,
    examples/Importers/ImportURDFDemo/UrdfFindMeshFile.h.
    """
    if path.startswith(FILE_URI):
        named = unquote(urlsplit(path).path)
        return named if os.path.isfile(named) else None
    of_other_kind = not path or os.path.isabs(path) or path.startswith("package:")
    if of_other_kind or os.path.isfile(os.path.join(folder, mesh_folder, path)):
        return None
    bases = (os.path.join(folder, *[os.pardir] * steps) for steps in range(_HIGHEST + 1))
    found = (os.path.abspath(os.path.join(base, path)) for base in bases)
    return next(filter(os.path.isfile, found), None)


def found_above(located: Mapping[str, str], folder: str) -> list[str]:
    """A note about files that are not where a URDF names them but in a folder above, of which one
    of another robot may be; none without such files.

    located: the file of each path. folder: of the URDF.
    """
    above = [
        f"'{path}' is '{file}'"
        for path, file in located.items()
        if "://" not in path
        and not PACKAGE_URI.fullmatch(path)
        and file != os.path.abspath(os.path.join(folder, path))
    ]
    if not above:
        return []
    return [f"{first_and_count(above)}: not beside the URDF, found in a folder above"]


def _listed_roots() -> Iterator[str]:
    yield from _entries("ROS_PACKAGE_PATH")
    for prefix in _entries("AMENT_PREFIX_PATH"):
        yield os.path.join(prefix, "share")


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]
