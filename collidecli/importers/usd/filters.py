"""Collision filters of a USD stage: filtered pairs, joints, and articulations with their
self-collision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from pxr import Usd

from collidecli.errors import InputError
from collidecli.importers.usd.collision_groups import targets_of
from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.typed_attributes import FLAG, read_authored
from collidecli.scene.builder import ModelBuilder

SELF_COLLISION = ("newton:selfCollisionEnabled", "physxArticulation:enabledSelfCollisions")
"""Attributes of the articulation root; the first authored one is used. Without one the bodies may
collide."""


@dataclass(frozen=True)
class Articulation:
    """Connected bodies and their articulation roots, by prim path.

    self_collision: the bodies may collide with each other.
    """

    bodies: tuple[str, ...]
    roots: tuple[str, ...]
    self_collision: bool


def articulations_of(physics: Physics) -> Iterator[Articulation]:
    """The articulations of a stage; each body is in at most one.

    A PhysicsArticulationRootAPI applies to every chain of joints with a root below it, so that two
    robots under one root are two articulations. A chain ends at joints that are disabled or
    excluded from articulations, and at the world: two arms that are fixed to the world are two
    chains. A chain with several roots (nested ones, or one at either end) is one articulation;
    roots that do not define self-collision have no effect on it. Raises InputError where two roots
    contradict each other.
    """
    chain_of = _chains(physics)
    roots_of: dict[tuple[str, ...], list[str]] = {}
    for root, articulation in physics.articulations.items():
        prims = [physics.joints.get(str(prim)) or str(prim) for prim in articulation.rootPrims]
        bodies = [
            body for x in prims for body in ((x,) if isinstance(x, str) else (x.body0, x.body1))
        ]
        for chain in dict.fromkeys(chain_of[str(body)] for body in bodies if str(body) in chain_of):
            roots_of.setdefault(chain, []).append(root)
    for chain, roots in roots_of.items():
        values = {
            root: [
                read_authored(physics.prim(root), name, FLAG, physics.where(root))
                for name in SELF_COLLISION
            ]
            for root in roots
        }
        given = {
            root: [value for value in authored if value is not None]
            for root, authored in values.items()
        }
        flags = {root: bool(authored[0]) for root, authored in given.items() if authored}
        if len(set(flags.values())) > 1:
            on, off = (
                next(root for root, value in flags.items() if value is want)
                for want in (True, False)
            )
            what = (
                f"<{on}> and <{off}> are roots of one articulation, with self-collision on and off"
            )
            raise InputError(
                what,
                physics.where(off),
                "apply PhysicsArticulationRootAPI once to a chain of joints",
            )
        if len(roots) > 1:
            named = ", ".join(f"<{root}>" for root in roots)
            physics.warnings.append(
                f"{named}: several roots of one articulation; simulators require one"
            )
        yield Articulation(chain, tuple(roots), next(iter(flags.values()), True))


def _chains(physics: Physics) -> dict[str, tuple[str, ...]]:
    """Body's path to the bodies, in the stage's order, that enabled joints of articulations connect
    it to."""
    chain: dict[str, list[str]] = {path: [path] for path in physics.bodies}
    for joint in physics.joints.values():
        body0 = str(joint.body0)
        body1 = str(joint.body1)
        if (
            not joint.jointEnabled
            or joint.excludeFromArticulation
            or body0 not in chain
            or body1 not in chain
        ):
            continue
        kept = chain[body0]
        joined = chain[body1]
        if kept is joined:
            continue
        if len(kept) < len(joined):
            kept, joined = joined, kept
        kept += joined
        chain |= dict.fromkeys(joined, kept)
    index = {path: i for i, path in enumerate(physics.bodies)}
    ordered = {
        id(bodies): tuple(sorted(bodies, key=index.__getitem__)) for bodies in chain.values()
    }
    return {path: ordered[id(bodies)] for path, bodies in chain.items()}


class PairFilters:
    """Adds a stage's filtered pairs, joints and articulations to a builder.

    shapes_of, body_of: prim path to the builder's indices, several for a mesh of convex parts.
    owner_of: collider's path to that of its body, also of one that is not enabled; "" without a
    body. world_of: name of the world of a body or collider where there are several; "" for every
    world. self_collisions: "on" or "off" replaces what the articulations have.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        physics: Physics,
        shapes_of: dict[str, list[int]],
        body_of: dict[str, int],
        owner_of: dict[str, str],
        world_of: Callable[[str], str],
        self_collisions: str = "",
    ) -> None:
        self._builder = builder
        self._physics = physics
        self._self_collisions = self_collisions
        self._shapes_of = shapes_of
        self._body_of = body_of
        self._owner_of = owner_of
        self._world_of = world_of
        self._owned: dict[str, list[str]] = {}
        for path, owner in owner_of.items():
            self._owned.setdefault(owner, []).append(path)
        self._owned.pop("", None)
        self._articulations = list(articulations_of(physics))

    def add_all(self) -> None:
        """Adds filtered pairs, of which each side is expanded to its shapes, then joints and
        articulations."""
        for prim in self._physics.stage.Traverse(Usd.TraverseInstanceProxies()):
            targets = targets_of(prim, "physics:filteredPairs")
            if targets:
                path = str(prim.GetPath())
                own_shapes = self._shapes_under(path, path)
                for target in (
                    linked for named in targets for linked in self._physics.targets(named)
                ):
                    self._filter(own_shapes, self._shapes_under(target, path), "filteredPairs")
        self._add_joints()
        self._add_articulations()

    def _shapes_under(self, path: str, holder: str) -> list[int]:
        """Shapes of a side of a filtered pair: of a collider, body or articulation."""
        if self._physics.environments.is_left_out(path):
            return []  # the equal prim of the composed environment has the filter
        if path in self._physics.deformables:
            what = f"physics:filteredPairs with the deformable prim <{path}> are not handled"
            raise InputError(what, self._physics.where(holder), "use collision groups")
        paths = [path] if path in self._shapes_of else []
        paths += self._owned.get(path, [])
        if path in self._physics.articulations:
            for articulation in self._articulations:
                if path in articulation.roots:
                    paths += [p for body in articulation.bodies for p in self._owned.get(body, [])]
        elif not paths and path not in self._physics.bodies:
            what = f"<{path}> is not a collider, body or articulation"
            self._physics.warnings.append(f"<{holder}>: physics:filteredPairs: {what}")
        return [row for p in dict.fromkeys(paths) for row in self._shapes_of.get(p, ())]

    def _filter(self, first: Iterable[int], second: Iterable[int], rule: str) -> None:
        pairs = {(min(a, b), max(a, b)) for a, b in product(first, second) if a != b}
        for a, b in sorted(pairs):
            self._builder.add_shape_collision_filter_pair(a, b, rule)

    def _add_joints(self) -> None:
        """Joined bodies do not collide unless the joint has `physics:collisionEnabled`.

        A side that is a static collider means the colliders of that prim. A side that is the world
        frame (an empty relationship, or a prim that is neither body nor collider) has no collider:
        the joint filters nothing. A joint that is not enabled filters nothing.
        """
        for path, joint in self._physics.joints.items():
            if joint.collisionEnabled or not joint.jointEnabled:
                continue
            ends = ((joint.body0, joint.rel0), (joint.body1, joint.rel1))
            sides = [self._side(path, str(body), str(rel)) for body, rel in ends]
            if self._joins_worlds(path, joint):
                continue
            (body0, shapes0), (body1, shapes1) = sides
            if body0 is None or body1 is None:
                self._filter(shapes0, shapes1, f"joint <{path}>")
            elif body0 != body1:
                self._builder.add_joint(body0, body1, collision_filter_parent=True)

    def _joins_worlds(self, path: str, joint: Any) -> bool:
        """Whether a joint is between two worlds, whose shapes cannot collide, so that it filters
        nothing."""
        sides = [
            str(body or rel) for body, rel in ((joint.body0, joint.rel0), (joint.body1, joint.rel1))
        ]
        worlds = [self._world_of(side) for side in sides]
        apart = all(worlds) and worlds[0] != worlds[1]
        if apart:
            what = "environments" if self._physics.environments.several else "worlds"
            self._physics.warnings.append(
                f"<{path}>: the joint is between two {what}, which cannot collide"
            )
        return apart

    def _side(self, joint: str, body: str, rel: str) -> tuple[int | None, list[int]]:
        """(body index or None, shapes) of a joint's side: the body that pxr has found, else the
        target prim."""
        path = body or rel
        if path and not self._physics.prim(path):
            self._physics.warnings.append(
                f"<{joint}>: the joint names <{path}>, which does not exist"
            )
        path = path if path in self._body_of else self._owner_of.get(path) or path
        colliders = self._owned.get(path, [path])
        return self._body_of.get(path), [
            row for p in colliders for row in self._shapes_of.get(p, ())
        ]

    def _add_articulations(self) -> None:
        for articulation in self._articulations:
            collide = (
                self._self_collisions == "on"
                if self._self_collisions
                else articulation.self_collision
            )
            by_world: dict[str, list[int]] = {}
            for body in (path for path in articulation.bodies if path in self._body_of):
                by_world.setdefault(self._world_of(body), []).append(self._body_of[body])
            for bodies in [] if collide else by_world.values():
                if len(bodies) > 1:
                    self._builder.add_articulation(bodies, self_collision=False)
