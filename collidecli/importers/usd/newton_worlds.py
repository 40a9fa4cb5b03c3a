"""Worlds of a USD stage by the attribute `newton:world` of its colliders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from collidecli.errors import InputError
from collidecli.importers.usd.colliders import ColliderAttributes
from collidecli.importers.usd.stage import Physics
from collidecli.scene.builder import ModelBuilder


@dataclass(frozen=True)
class NewtonWorlds:
    """The values of `newton:world` of a stage that has several, ascending, one world each; else
    none.

    value_of: value of each body, collider and deformable prim that is not in every world, by path.
    """

    values: tuple[int, ...] = ()
    value_of: Mapping[str, int] = field(default_factory=dict)

    def add_to(self, builder: ModelBuilder) -> dict[int, int]:
        """Adds the worlds, whose contents may differ; returns the index of each value's."""
        worlds = {}
        for value in self.values:
            worlds[value] = builder.begin_world()
            builder.end_world()
        return worlds

    def name_of(self, path: str) -> str:
        """Name of a prim's world; "" for every world."""
        return f"newton:world {self.value_of[path]}" if path in self.value_of else ""


def newton_worlds(
    physics: Physics, attributes: ColliderAttributes, owner_of: Mapping[str, str]
) -> NewtonWorlds:
    """The worlds of a stage without environments. owner_of: collider's path to its body's, ""
    without a body.

    As in Newton, -1 and no value are every world; but a body is in the world of its colliders, and
    all of them in the body's. Raises InputError, with the prim, for a body whose colliders are in
    several worlds.
    """
    value_of = {path: attributes.world(path) for path in (*physics.shapes, *physics.deformables)}
    given = {path: value for path, value in value_of.items() if value is not None}
    values = sorted(set(given.values()))
    if len(values) < 2:
        return NewtonWorlds()
    of_body: dict[str, int] = {}
    for path, value in given.items():
        body = owner_of.get(path, "")
        if body and of_body.setdefault(body, value) != value:
            what = (
                f"newton:world is {value}, and {of_body[body]} on another collider of the body"
                f" <{body}>"
            )
            raise InputError(what, physics.where(path), "give the colliders of a body one value")
    of_owned = {path: of_body[body] for path, body in owner_of.items() if body in of_body}
    if values != list(range(len(values))):
        named = ", ".join(map(str, values[:8])) + (", ..." if len(values) > 8 else "")
        physics.warnings.append(
            f"newton:world: the values {named} are the worlds 0 to {len(values) - 1}, in this order"
        )
    return NewtonWorlds(tuple(values), {**given, **of_owned, **of_body})
