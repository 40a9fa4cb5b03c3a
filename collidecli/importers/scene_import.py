"""The interface of the result of a scene importer."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from collidecli.errors import InputError
from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion

# The option `asset_map`: replacement of the beginning of asset paths.


class AssetMap:
    """Entries `OLD=NEW`; the longest that matches a path applies, and matches whole components of the path only.

    Raises InputError at `location` for an entry of another form.
    """

    def __init__(self, entries: Sequence[str], location: str) -> None:
        found = [_entry(text, location) for text in entries]
        self._entries = sorted(found, key=lambda entry: -len(entry[0]))
        self._used: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def replaced(self, path: str) -> str | None:
        """The path with its beginning replaced; None without a match."""
        for old, new in self._entries:
            rest = _under(path, old)
            if rest is not None:
                self._used.add(old)
                return os.path.join(new, rest) if rest else new
        return None

    def warnings(self) -> list[str]:
        """A warning for each entry that no path has matched."""
        return [f"asset map: no asset's path begins with '{old}'" for old, _ in self._entries if old not in self._used]


def _entry(text: str, location: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"the asset map has '{text}'", location, "write OLD=NEW: a path prefix and its replacement")
    return old, os.path.abspath(new)


def _under(path: str, old: str) -> str | None:
    """The remainder of a path that begins with the components of `old`; else None."""
    # MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF.
    path, old = (re.sub("/+", "/", text) for text in (path, old))
    if not path.startswith(old):
        return None
    rest = path[len(old) :]
    return rest.lstrip("/\\") if not rest or old[-1] in "/\\" or rest[0] in "/\\" else None


class SceneImport(Protocol):
    """A scene that an importer has added to a model builder.

    files: every file whose content may affect a contact; the scene file first. warnings: for the user, one line each.
    text: the scene, where it is not a file, else empty. left_out: names of geoms that cannot collide and are not in
    the model. kept: by collider, attributes that are read and checked and affect no contact.
    kinematics: of the scene's generalized coordinates, or None. articulated: the joints by name, or None.
    fixed_links: the body of each static shape that has one, both by name.
    """

    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def fixed_links(self) -> Mapping[str, str]: ...
    @property
    def kinematics(self) -> Kinematics | None: ...
    @property
    def articulated(self) -> ArticulatedScene | None: ...

    def motion(self, model: Model) -> Motion | None:
        """The motion that the scene contains, of the bodies of the finalized model; None where it has none."""
        ...
