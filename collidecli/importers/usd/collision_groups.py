"""Collision groups and physics scenes of a USD stage, and the pairs of groups that do not
collide."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations_with_replacement

from pxr import Usd, UsdPhysics

from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.typed_attributes import FLAG, TOKEN, read_authored

UNGROUPED = "/no_collision_group"
"""Group of the colliders without a group, which an inverted group filters unless it names it."""


class CollisionGroups:
    """The stage's collision groups, their members, and the pairs of groups that do not collide.

    A collider belongs to the groups whose `colliders` collection contains it and to those that its
    own `physics:collisionGroup` relationship names; the latter need not have the type
    PhysicsCollisionGroup.

    Two groups do not collide where either filters the other: a group that is not inverted filters
    those that it names, an inverted one all that it does not name, including itself and the
    colliders without a group. Groups of one merge name are one group, which filters all that any of
    them filters. This equals pxr's ComputeCollisionGroupTable except for three faults: its rows are
    wrong for a merged group that is not the first of its name, it treats an authored empty merge
    name as a name, and a group that does not exist as the first one.

    Colliders of different physics scenes (`physics:simulationOwner`) do not collide either; each
    set of scenes is an additional group.
    """

    def __init__(self, physics: Physics) -> None:
        self._physics = physics
        every = physics.stage.Traverse(Usd.TraverseInstanceProxies())
        prims = {str(p.GetPath()): p for p in every if p.IsA(UsdPhysics.CollisionGroup)}
        self._member = {
            path: self._groups_of(path) for path in (*physics.shapes, *physics.deformables)
        }
        for name in sorted(
            {name for groups in self._member.values() for name in groups} - set(prims)
        ):
            prims[name] = physics.prim(name)
        self._inverted = any(is_inverted(prim, physics.file) for prim in prims.values())
        for path, prim in prims.items():
            for target in targets_of(prim, "physics:filteredGroups"):
                if target not in prims and not physics.environments.is_left_out(target):
                    what = "is not a collision group" if physics.prim(target) else "does not exist"
                    physics.warnings.append(
                        f"<{path}>: physics:filteredGroups names <{target}>, which {what}"
                    )
        self._scenes = _scenes_of(physics)
        self.filtered = [
            *filtered_groups(prims, self._inverted, physics.file),
            *_apart(set(self._scenes.values())),
        ]

    def of_shape(self, path: str) -> frozenset[str] | None:
        """Names (prim paths) of a collider's groups; None without groups."""
        groups = self._member[path]
        if not groups and self._inverted:
            groups = frozenset({UNGROUPED})
        if path in self._scenes:
            groups |= {_scene_name(self._scenes[path])}
        return groups or None

    def _groups_of(self, path: str) -> frozenset[str]:
        groups = set(self._physics.groups_of(path))
        for target in targets_of(self._physics.prim(path), "physics:collisionGroup"):
            if self._physics.prim(target):
                groups.add(target)
            else:
                what = f"physics:collisionGroup names <{target}>, which does not exist"
                self._physics.warnings.append(f"<{path}>: {what}")
        return frozenset(groups)


def filtered_groups(
    prims: dict[str, Usd.Prim], with_ungrouped: bool, file: str
) -> Iterator[tuple[str, str]]:
    """Pairs of group names, in the order of `prims`, that do not collide; a group may be paired
    with itself.

    with_ungrouped: UNGROUPED is one of the groups. file: of the stage, in errors.
    """
    merge_name = {
        name: read_authored(prim, "physics:mergeGroup", TOKEN, f"{file} <{name}>")
        for name, prim in prims.items()
    }
    # A leading blank, so that a merge name differs from all prim paths; an empty one is none.
    merged = {name: f" {value}" if value else name for name, value in merge_name.items()}
    filters: dict[str, list[tuple[bool, set[str]]]] = {}
    for name, prim in prims.items():
        named = {
            merged.get(target, target) for target in targets_of(prim, "physics:filteredGroups")
        }
        filters.setdefault(merged[name], []).append((is_inverted(prim, file), named))
    if with_ungrouped:
        merged[UNGROUPED] = UNGROUPED

    def is_filtered(group: str, other: str) -> bool:
        return any((other in named) != inverted for inverted, named in filters.get(group, ()))

    for first, second in combinations_with_replacement(merged, 2):
        if is_filtered(merged[first], merged[second]) or is_filtered(merged[second], merged[first]):
            yield first, second


def is_inverted(prim: Usd.Prim, file: str) -> bool:
    """Whether a group is inverted, as authored: the parsed descriptor can be true where nothing is
    authored."""
    return bool(
        read_authored(prim, "physics:invertFilteredGroups", FLAG, f"{file} <{prim.GetPath()}>")
    )


def targets_of(prim: Usd.Prim, relationship: str) -> list[str]:
    """Paths of a relationship's target prims; of an instance proxy, in the instance."""
    relation = prim.GetRelationship(relationship)
    return (
        [str(target.GetPrimPath()) for target in relation.GetForwardedTargets()] if relation else []
    )


def _scenes_of(physics: Physics) -> dict[str, frozenset[str]]:
    """Collider's path to its physics scenes, those of its body first; {} where all colliders have
    equal scenes.

    Deformable prims are colliders too.
    """
    scenes = [str(p.GetPath()) for p in physics.stage.Traverse() if p.IsA(UsdPhysics.Scene)]
    if len(scenes) < 2:
        return {}
    scenes_of_body: dict[str, frozenset[str]] = {}
    for path in (*physics.shapes, *physics.deformables):
        named = _owners_of(physics, path)
        unknown = [name for name in named if name not in scenes]
        if unknown:
            what = (
                f"<{path}>: physics:simulationOwner names <{unknown[0]}>, which is not a"
                " PhysicsScene"
            )
            physics.warnings.append(f"{what}; the first scene is used")
        scenes_of_body[path] = frozenset(named) & set(scenes) or frozenset(scenes[:1])
    return scenes_of_body if len(set(scenes_of_body.values())) > 1 else {}


def _owners_of(physics: Physics, path: str) -> list[str]:
    """Paths of the physics scenes that a collider, or its body, names."""
    shape = physics.shapes.get(path)
    if shape is None:
        return targets_of(physics.prim(path), "physics:simulationOwner")
    body = physics.bodies.get(str(shape.rigidBody))
    return [str(owner) for owner in (body and body.simulationOwners) or shape.simulationOwners]


def _scene_name(scenes: frozenset[str]) -> str:
    return f"simulated by {', '.join(sorted(scenes))}"


def _apart(scene_sets: set[frozenset[str]]) -> Iterator[tuple[str, str]]:
    ordered = sorted(scene_sets, key=sorted)
    for first, second in combinations_with_replacement(ordered, 2):
        if not first & second:
            yield _scene_name(first), _scene_name(second)
