"""What prims outside say of environments: collision groups that hold them, joints, filtered pairs."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from pxr import Sdf, Usd, UsdPhysics

from collidecli.importers.usd.environments import upwards

Targets = dict[str, list[Sdf.Path]]
"""Of one prim: name of each relationship to what it names."""

OWN = "."
"""What an environment's root is called in its own words."""


@dataclass
class Links:
    """Relationships of prims outside, those that lead into environments sorted out.

    A *satellite* of an environment is a collision group or a joint outside that speaks of it and of no other; a copy
    of the environment has a copy of the satellite, as cloners make them.

    targets: of the prims outside that name anything in an environment, or a satellite. satellites_of: environment to
    its satellites, in the stage's order. environment_of: the way back. by_expression: a collection is given by a path
    expression, which may mean anything.
    """

    roots: set[str]
    targets: dict[str, Targets] = field(default_factory=dict)
    satellites_of: dict[str, list[str]] = field(default_factory=dict)
    environment_of: dict[str, str] = field(default_factory=dict)
    by_expression: bool = False
    _said_of: dict[str, list[Hashable]] = field(default_factory=dict)
    _words: dict[str, Hashable] = field(default_factory=dict)

    @classmethod
    def read(cls, stage: Usd.Stage, roots: list[str]) -> Links:
        """The links of a stage that is populated with all that is outside; of environments it needs nothing."""
        links = cls(set(roots))
        for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
            path = str(prim.GetPath())
            if path in links.roots:
                continue
            targets = {r.GetName(): r.GetTargets() for r in prim.GetAuthoredRelationships()}
            targets = {name: found for name, found in targets.items() if found}
            if targets:
                links.targets[path] = targets
                links._sort_in(prim, targets)
            links.by_expression = links.by_expression or cls.has_expression(prim, below=False)
        for path in links.environment_of:
            links._words[path] = links._in_own_words(stage.GetPrimAtPath(path))
        for path, targets in links.targets.items():
            if path not in links.environment_of:
                links._note(path, targets)
        return links

    @staticmethod
    def has_expression(prim: Usd.Prim, below: bool = True) -> bool:
        """Whether a prim, or one below it, has a collection by path expression."""
        prims = Usd.PrimRange(prim, Usd.TraverseInstanceProxies()) if below else (prim,)
        return any(
            schema.startswith("CollectionAPI:")
            and bool(each.GetAttribute(f"collection:{schema.partition(':')[2]}:membershipExpression").Get())
            for each in prims
            for schema in each.GetAppliedSchemas()
            if schema.startswith("CollectionAPI:")
        )

    def key(self, root: str) -> Hashable:
        """All that is said of an environment from outside, in its own words."""
        said = tuple(sorted(map(repr, self._said_of.get(root, ()))))
        return said, tuple(self._words[path] for path in self.satellites_of.get(root, ()))

    def names(self, root: str) -> dict[str, str]:
        """What an environment calls its own root and its satellites."""
        return {root: OWN, **{path: f"satellite {k}" for k, path in enumerate(self.satellites_of.get(root, ()))}}

    def satellites(self, roots: set[str]) -> set[str]:
        """The satellites of some environments."""
        return {path for path, root in self.environment_of.items() if root in roots}

    def without_dropped(self, stage: Usd.Stage, outside: list[str], dropped: set[str]) -> list[str]:
        """The prims outside, taken apart where some below them are dropped; the stage has them all."""
        above = {path for each in dropped for path in upwards(each)} - dropped
        found, waiting = [], outside[::-1]
        while waiting:
            path = waiting.pop()
            if path in dropped:
                continue
            if path not in above:
                found.append(path)
                continue
            waiting += [str(child.GetPath()) for child in stage.GetPrimAtPath(path).GetAllChildren()][::-1]
        return found

    def _root_of(self, target: Sdf.Path) -> str:
        return next((path for path in upwards(str(target.GetPrimPath())) if path in self.roots), "")

    def _sort_in(self, prim: Usd.Prim, targets: Targets) -> None:
        """Notes a satellite: a group or joint by itself, all of whose members or bodies are in one environment."""
        path = str(prim.GetPath())
        members = {
            self._root_of(t) for name, found in targets.items() if name != "physics:filteredGroups" for t in found
        }
        if prim.IsA(UsdPhysics.CollisionGroup):
            merged = prim.GetAttribute("physics:mergeGroup").Get()
            everything = prim.GetAttribute("collection:colliders:includeRoot").Get()
            if merged or everything or len(members) != 1:
                return
        elif prim.IsA(UsdPhysics.Joint):
            members.discard("")
        else:
            return
        if len(members) != 1 or "" in members or prim.GetAllChildren() or prim.IsInstanceProxy():
            return
        root = members.pop()
        self.satellites_of.setdefault(root, []).append(path)
        self.environment_of[path] = root

    def _in_own_words(self, prim: Usd.Prim) -> Hashable:
        """What a satellite says. Satellites of other environments, which rule nothing in this one, are left out."""
        root = self.environment_of[str(prim.GetPath())]
        names = self.names(root)
        attributes = tuple(
            (a.GetName(), repr(a.Get()), *((t, repr(a.Get(t))) for t in a.GetTimeSamples()))
            for a in prim.GetAuthoredAttributes()
        )
        relationships = tuple(
            (name, tuple(words for target in found if (words := self._named(target, root, names))))
            for name, found in self.targets[str(prim.GetPath())].items()
        )
        parent = str(prim.GetParent().GetPath())
        return parent, str(prim.GetTypeName()), tuple(prim.GetAppliedSchemas()), attributes, relationships

    def _named(self, target: Sdf.Path, root: str, names: dict[str, str]) -> str:
        """A target in an environment's own words; "" for what is another's."""
        path = str(target)
        for above in upwards(str(target.GetPrimPath())):
            if above in names:
                return names[above] + path[len(above) :]
            if above in self.roots or above in self.environment_of:
                return ""
        return path

    def _note(self, path: str, targets: Targets) -> None:
        """Notes what a prim that is no satellite says of environments and of their satellites."""
        for name, found in targets.items():
            for target in found:
                held = str(target.GetPrimPath())
                root = self._root_of(target) or self.environment_of.get(held, "")
                if root:
                    words = self._named(target, root, self.names(root))
                    self._said_of.setdefault(root, []).append((path, name, words))
