"""Result of `inspect --colliders`: the collider of every pair of kinds of shapes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from collidecli.engine.narrowphase.collider_table import ROUTES
from collidecli.results.result import Result


@dataclass(frozen=True)
class CollidersResult(Result, schema="collide.inspect.colliders/1"):
    """The routes of all pairs of kinds. pairs: first and second kind, and the fields of `Route`."""

    pairs: tuple[dict[str, Any], ...]


def inspect_colliders() -> CollidersResult:
    """The table of routes of this version."""
    return CollidersResult(
        tuple(
            {"first": first, "second": second, **asdict(route)}
            for (first, second), route in ROUTES.items()
        )
    )
