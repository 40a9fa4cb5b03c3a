"""The words for a pair of shapes, and for a world."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict


def pair_words(row: ResultDict) -> str:
    """The two shapes of a row as one text."""
    return f"{row['shape0']} and {row['shape1']}"


def world_name(result: ResultDict, world: int) -> str:
    """The name of the demonstration in a world, or the number of the world."""
    names = result["demonstrations"]
    return names[world] if names else f"world {world}"
