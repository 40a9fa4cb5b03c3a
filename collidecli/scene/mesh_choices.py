"""Colliders of meshes that the option `meshes` chooses: triangles, hull, convex parts or a signed
distance field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from collidecli.errors import InputError
from collidecli.scene.name_patterns import matcher
from collidecli.scene.option_values import MESH_COLLIDERS, SDF_MESH
from collidecli.wording import did_you_mean

OPTION = "--meshes"
EVERY = "*"
"""Matches all meshes, also where there is none: a setting for all scenes."""
USE = f"give PATTERN=KIND, of {', '.join(MESH_COLLIDERS)} or {SDF_MESH}:RESOLUTION"


class MeshChoice(NamedTuple):
    """The collider of a mesh. kind: of `MESH_COLLIDERS`. resolution: voxels along the longest side
    of a field; None is the default."""

    kind: str
    resolution: int | None = None


class MeshChoices(NamedTuple):
    """Patterns of paths with their choices, in order of increasing precedence."""

    entries: tuple[tuple[str, MeshChoice], ...] = ()

    def of(self, *paths: str) -> MeshChoice | None:
        """The choice of the last pattern that matches one of the paths, those of a collider and of
        its body; None without one."""
        for pattern, choice in reversed(self.entries):
            if any(map(matcher(pattern, OPTION), paths)):
                return choice
        return None

    def check(self, meshes: Mapping[str, str]) -> None:
        """Raises InputError for a pattern that matches no mesh, but for EVERY. meshes: path of the
        body of each mesh collider, by the path of the collider."""
        patterns = [pattern for pattern, _ in self.entries if pattern != EVERY]
        if not patterns:
            return
        if not meshes:
            raise InputError("the scene has no mesh that collides", OPTION, "leave it out")
        import numpy as np

        from collidecli.scene.patterns import NamedItems

        bodies = list(dict.fromkeys(meshes.values()))
        rows = np.array([bodies.index(body) for body in meshes.values()], np.int64)
        items = NamedItems(list(meshes), rows, bodies, "mesh collider")
        items.matching(patterns, OPTION)


def mesh_choices(texts: Sequence[str]) -> MeshChoices:
    """The choices of texts `PATTERN=KIND`, and `PATTERN=sdf:RESOLUTION`. Raises InputError for a
    text of another form."""
    return MeshChoices(tuple(_entry(text) for text in texts))


def _entry(text: str) -> tuple[str, MeshChoice]:
    pattern, separator, chosen = text.rpartition("=")
    pattern = pattern.strip()
    kind, colon, resolution = chosen.strip().partition(":")
    if not (separator and pattern):
        raise InputError(f"'{text}' has no pattern or no kind", OPTION, USE)
    if kind not in MESH_COLLIDERS:
        what = f"'{kind}' is no collider of a mesh"
        raise InputError(what, OPTION, did_you_mean(kind, MESH_COLLIDERS, USE))
    if not colon:
        return pattern, MeshChoice(kind)
    if kind != SDF_MESH:
        raise InputError(f"'{text}': '{kind}' has no resolution", OPTION, USE)
    return pattern, MeshChoice(kind, _resolution(resolution, text))


def _resolution(text: str, entry: str) -> int:
    from collidecli.scene.sdf_options import MOST_RESOLUTION

    if not (text.isascii() and text.isdecimal() and 0 < int(text) <= MOST_RESOLUTION):
        what = f"'{entry}': the resolution is '{text}'"
        raise InputError(what, OPTION, f"give an integer from 1 to {MOST_RESOLUTION}")
    return int(text)
