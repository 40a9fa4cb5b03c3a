"""Collision filters of a USD stage: filtered pairs, joints and articulations."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

from pxr import Usd

from collidecli.importers.usd.articulations import articulations_of
from collidecli.importers.usd.groups import targets_of
from collidecli.importers.usd.stage import Physics
from collidecli.scene.builder import ModelBuilder


class PairFilters:
    """Adds a stage's filtered pairs, joints and articulations to a builder.

    shapes_of, body_of: prim path to the builder's indices, several for a mesh of convex parts. owner_of: collider's
    path to that of its body, also of one that is not enabled; "" without a body.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        physics: Physics,
        shapes_of: dict[str, list[int]],
        body_of: dict[str, int],
        owner_of: dict[str, str],
    ) -> None:
        self._builder, self._physics = builder, physics
        self._shapes_of, self._body_of = shapes_of, body_of
        self._owner_of = owner_of
        self._owned: dict[str, list[str]] = {}
        for path, owner in owner_of.items():
            self._owned.setdefault(owner, []).append(path)
        self._owned.pop("", None)
        self._articulations = list(articulations_of(physics))

    def add_all(self) -> None:
        self._add_filtered_pairs()
        self._add_joints()
        self._add_articulations()

    def _add_filtered_pairs(self) -> None:
        """`physics:filteredPairs` of colliders, bodies and articulations, each side expanded to its shapes."""
        for prim in self._physics.stage.Traverse(Usd.TraverseInstanceProxies()):
            targets = targets_of(prim, "physics:filteredPairs")
            if targets:
                path = str(prim.GetPath())
                own = self._shapes_under(path, path)
                for target in (each for named in targets for each in self._physics.targets(named)):
                    self._filter(own, self._shapes_under(target, path), "filteredPairs")

    def _shapes_under(self, path: str, holder: str) -> list[int]:
        """Shapes of a side of a filtered pair: of a collider, body or articulation."""
        if self._physics.environments.is_left_out(path):
            return []  # the equal prim of the composed environment has the filter
        paths = [path] if path in self._shapes_of else []
        paths += self._owned.get(path, [])
        if path in self._physics.articulations:
            for articulation in self._articulations:
                if path in articulation.roots:
                    paths += [p for body in articulation.bodies for p in self._owned.get(body, [])]
        elif not paths and path not in self._physics.bodies:
            self._physics.warnings.append(
                f"<{holder}>: physics:filteredPairs: <{path}> is not a collider, body or articulation"
            )
        return [row for p in dict.fromkeys(paths) for row in self._shapes_of.get(p, ())]

    def _filter(self, first: Iterable[int], second: Iterable[int], rule: str) -> None:
        pairs = {(min(a, b), max(a, b)) for a, b in product(first, second) if a != b}
        for a, b in sorted(pairs):
            self._builder.add_shape_collision_filter_pair(a, b, rule)

    def _add_joints(self) -> None:
        """Joined bodies do not collide unless the joint has `physics:collisionEnabled`.

        A side that is a static collider means the colliders of that prim. A side that is the world frame (an empty
        relationship, or a prim that is neither body nor collider) has no collider: the joint filters nothing. A joint
        that is not enabled filters nothing.
        """
        for path, joint in self._physics.joints.items():
            if joint.collisionEnabled or not joint.jointEnabled:
                continue
            sides = [
                self._side(path, str(body), str(rel))
                for body, rel in ((joint.body0, joint.rel0), (joint.body1, joint.rel1))
            ]
            if self._joins_environments(path, joint):
                continue
            (body0, shapes0), (body1, shapes1) = sides
            if body0 is None or body1 is None:
                self._filter(shapes0, shapes1, f"joint <{path}>")
            elif body0 != body1:
                self._builder.add_joint(body0, body1, collision_filter_parent=True)

    def _joins_environments(self, path: str, joint: Any) -> bool:
        """Whether a joint is between two environments, which cannot collide, so that it filters nothing."""
        sides = [str(body or rel) for body, rel in ((joint.body0, joint.rel0), (joint.body1, joint.rel1))]
        apart = self._physics.environments.are_apart(*sides)
        if apart:
            self._physics.warnings.append(f"<{path}>: the joint is between two environments, which cannot collide")
        return apart

    def _side(self, joint: str, body: str, rel: str) -> tuple[int | None, list[int]]:
        """(body index or None, shapes) of a joint's side: the body that pxr has found, else the target prim."""
        path = body or rel
        if path and not self._physics.prim(path):
            self._physics.warnings.append(f"<{joint}>: the joint names <{path}>, which does not exist")
        path = path if path in self._body_of else self._owner_of.get(path) or path
        colliders = self._owned.get(path, [path])
        return self._body_of.get(path), [row for p in colliders for row in self._shapes_of.get(p, ())]

    def _add_articulations(self) -> None:
        for articulation in self._articulations:
            bodies = [self._body_of[body] for body in articulation.bodies if body in self._body_of]
            if len(bodies) > 1 and not articulation.self_collision:
                self._builder.add_articulation(bodies, self_collision=False)
