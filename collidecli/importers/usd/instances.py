"""Which prims of an expanded stage stand for prototypes of point instancers, and for which."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pxr import Usd, UsdPhysics


@dataclass
class Instances:
    """Instances of point instancers as prims of their own.

    prototype_of: path of an instance's root to that of its prototype. Where instancers are nested, the prototype of an
    inner instance lies in an instance of the outer one.
    """

    prototype_of: dict[str, str] = field(default_factory=dict)
    _copies_of: dict[str, list[str]] = field(default_factory=dict)

    def add(self, instance: str, prototype: str) -> None:
        self.prototype_of[instance] = prototype
        self._copies_of.setdefault(prototype, []).append(instance)

    def sources(self, path: str) -> Iterator[str]:
        """The prototype's prim that a prim stands for, that prim's own prototype's, and so on; none elsewhere."""
        for root in _upwards(path):
            if root in self.prototype_of:
                source = self.prototype_of[root] + path[len(root) :]
                yield source
                yield from self.sources(source)
                return

    def copies(self, path: str) -> list[str]:
        """The prims that stand for a prim in a prototype, those in nested instancers included; none elsewhere."""
        found = []
        for root in _upwards(path):
            for instance in self._copies_of.get(root, ()):
                copy = instance + path[len(root) :]
                found += [copy, *self.copies(copy)]
        return found


def _upwards(path: str) -> Iterator[str]:
    """A prim's path and those of the prims above it."""
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]


class PrototypeGroups:
    """Membership of instances in collision groups: theirs is that of their prototype's prim.

    Where the prototype is not below the instancer, a group that holds the instancer holds its instances too.
    """

    def __init__(self, stage: Usd.Stage, instances: Instances) -> None:
        self._stage, self._instances = stage, instances
        self._members: dict[str, Usd.UsdCollectionMembershipQuery] | None = None

    def of(self, path: str, groups: set[str]) -> set[str]:
        """The groups of a collider, of which `groups` hold it by its own path."""
        sources = list(self._instances.sources(path)) if self._instances.prototype_of else []
        if not sources:
            return groups
        if self._members is None:
            self._members = dict(_collections(self._stage))
        for source in sources:
            for group, members in self._members.items():
                if members.IsPathIncluded(source):
                    groups.add(group)
                elif _is_excluded(members, source):
                    groups.discard(group)
        return groups


def _collections(stage: Usd.Stage) -> Iterator[tuple[str, Usd.UsdCollectionMembershipQuery]]:
    for prim in Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies()):
        if prim.IsA(UsdPhysics.CollisionGroup):
            yield str(prim.GetPath()), Usd.CollectionAPI(prim, "colliders").ComputeMembershipQuery()


def _is_excluded(members: Usd.UsdCollectionMembershipQuery, path: str) -> bool:
    """Whether the nearest word on a prim or those above it is that it is no member."""
    rules = {str(known): rule for known, rule in members.GetAsPathExpansionRuleMap().items()}
    for above in _upwards(path):
        if above in rules:
            return rules[above] == "exclude"
    return False
