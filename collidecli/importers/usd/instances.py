"""Instances and prototypes of a stage."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from pxr import Usd, UsdPhysics

from collidecli.importers.usd.environments import upwards


@dataclass
class Instances:
    """Instances of point instancers as prims of their own.

    prototype_of: path of an instance's root to that of its prototype. In nested instancers, the
    prototype of an inner instance is in an instance of the outer one.
    """

    prototype_of: dict[str, str] = field(default_factory=dict)
    _copies_of: dict[str, list[str]] = field(default_factory=dict)

    def add(self, instance: str, prototype: str) -> None:
        self.prototype_of[instance] = prototype
        self._copies_of.setdefault(prototype, []).append(instance)

    def sources(self, path: str) -> Iterator[str]:
        """The prototype's prim of an instance's prim, then that prim's own prototype, and so on;
        none elsewhere."""
        for root in upwards(path):
            if root in self.prototype_of:
                source = self.prototype_of[root] + path[len(root) :]
                yield source
                yield from self.sources(source)
                return

    def copies(self, path: str) -> list[str]:
        """The instances of a prim in a prototype, including nested instancers; none elsewhere."""
        copies = []
        for root in upwards(path):
            for instance in self._copies_of.get(root, ()):
                copy = instance + path[len(root) :]
                copies += [copy, *self.copies(copy)]
        return copies


class PrototypeGroups:
    """Membership of instances in collision groups: that of the prototype's prim.

    Where the prototype is not below the instancer, the members of a group with the instancer
    include its instances.
    """

    def __init__(self, stage: Usd.Stage, instances: Instances) -> None:
        self._stage = stage
        self._instances = instances

    @cached_property
    def _members(self) -> dict[str, Usd.UsdCollectionMembershipQuery]:
        prims = Usd.PrimRange.Stage(self._stage, Usd.TraverseInstanceProxies())
        groups = [prim for prim in prims if prim.IsA(UsdPhysics.CollisionGroup)]
        return {
            str(p.GetPath()): Usd.CollectionAPI(p, "colliders").ComputeMembershipQuery()
            for p in groups
        }

    def including(self, path: str) -> set[str]:
        """The groups whose collections contain a prim."""
        return {group for group, members in self._members.items() if members.IsPathIncluded(path)}

    def of(self, path: str, groups: set[str]) -> set[str]:
        """The groups of a collider. groups: those whose collections contain its own path."""
        sources = list(self._instances.sources(path)) if self._instances.prototype_of else []
        if not sources:
            return groups
        for source in sources:
            for group, members in self._members.items():
                if members.IsPathIncluded(source):
                    groups.add(group)
                elif _is_excluded(members, source):
                    groups.discard(group)
        return groups


def _is_excluded(members: Usd.UsdCollectionMembershipQuery, path: str) -> bool:
    """Whether the nearest rule of a prim or its ancestors excludes it."""
    rules = {str(known): rule for known, rule in members.GetAsPathExpansionRuleMap().items()}
    for above in upwards(path):
        if above in rules:
            return rules[above] == "exclude"
    return False
