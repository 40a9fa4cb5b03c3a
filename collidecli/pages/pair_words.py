"""The words for a pair of shapes, and for a world."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict
from collidecli.scene.episodes import shown_name


def pair_words(row: ResultDict) -> str:
    """The two shapes of a row as one text."""
    return f"{row['shape0']} and {row['shape1']}"


def world_name(result: ResultDict, world: int) -> str:
    """The name of the demonstration in a world, or the number of the world."""
    names = result["demonstrations"]
    return shown_name(names[world] if names else "") or f"world {world}"


def has_named_worlds(result: ResultDict) -> bool:
    """Whether the recording names a demonstration."""
    return any(map(shown_name, result["demonstrations"]))
