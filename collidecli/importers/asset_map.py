"""The option `asset_map`: replacement of the beginning of asset paths."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from collidecli.errors import InputError
from collidecli.storage.regular_files import require_text_path


class AssetMap:
    """Entries `OLD=NEW`; the longest that matches a path applies, and matches whole components of
    the path only.

    Raises InputError at `location` for an entry of another form.
    """

    def __init__(self, entries: Sequence[str], location: str) -> None:
        assets = [_entry(text, location) for text in entries]
        self._entries = sorted(assets, key=lambda entry: -len(entry[0]))
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
        return [
            f"asset map: no asset's path begins with '{old}'"
            for old, _ in self._entries
            if old not in self._used
        ]


def _entry(text: str, location: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(
            f"the asset map has '{text}'",
            location,
            "write OLD=NEW: a path prefix and its replacement",
        )
    new = os.path.abspath(new)
    require_text_path(new, "the scene's reader")
    return old, new


def _under(path: str, old: str) -> str | None:
    """The remainder of a path that begins with the components of `old`; else None."""
    # MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF.
    path, old = (re.sub("/+", "/", text) for text in (path, old))
    if not path.startswith(old):
        return None
    rest = path[len(old) :]
    return rest.lstrip("/\\") if not rest or old[-1] in "/\\" or rest[0] in "/\\" else None
