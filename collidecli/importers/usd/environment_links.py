"""Relationships of prims outside that refer to environments: collision groups, joints, filtered pairs."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from pxr import Sdf, Usd, UsdPhysics

from collidecli.importers.usd.environments import upwards

Targets = dict[str, list[Sdf.Path]]
"""Of one prim: name of each relationship to its targets."""

OWN = "."
"""Name of an environment's root in relative paths."""


@dataclass
class Links:
    """Relationships of prims outside of the environments, by environment.

    A *satellite* of an environment is a collision group or a joint outside that refers to no other environment; a copy
    of the environment has a copy of the satellite, as cloners create them.

    targets: of the prims outside that refer to an environment or a satellite. satellites_of: environment to its
    satellites, in the stage's order. environment_of: satellite to environment. by_expression: a collection is given by
    a path expression, which may match any prim.
    """

    roots: set[str]
    targets: dict[str, Targets] = field(default_factory=dict)
    satellites_of: dict[str, list[str]] = field(default_factory=dict)
    environment_of: dict[str, str] = field(default_factory=dict)
    by_expression: bool = False
    _references: dict[str, list[Hashable]] = field(default_factory=dict)
    _content: dict[str, Hashable] = field(default_factory=dict)

    @classmethod
    def read(cls, stage: Usd.Stage, roots: list[str]) -> Links:
        """The links of a stage that is populated with all prims outside; environments need not be populated."""
        links = cls(set(roots))
        for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
            path = str(prim.GetPath())
            if path in links.roots:
                continue
            targets = {r.GetName(): r.GetTargets() for r in prim.GetAuthoredRelationships()}
            targets = {name: found for name, found in targets.items() if found}
            if targets:
                links.targets[path] = targets
                links._add_satellite(prim, targets)
            links.by_expression = links.by_expression or cls.has_expression(prim, below=False)
        for path in links.environment_of:
            links._content[path] = links._relative_content(stage.GetPrimAtPath(path))
        for path, targets in links.targets.items():
            if path not in links.environment_of:
                links._add_references(path, targets)
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
        """Key of all references to an environment from outside, by relative paths."""
        references = tuple(sorted(map(repr, self._references.get(root, ()))))
        return references, tuple(self._content[path] for path in self.satellites_of.get(root, ()))

    def names(self, root: str) -> dict[str, str]:
        """Relative names of an environment's root and satellites."""
        return {root: OWN, **{path: f"satellite {k}" for k, path in enumerate(self.satellites_of.get(root, ()))}}

    def satellites(self, roots: set[str]) -> set[str]:
        """The satellites of some environments."""
        return {path for path, root in self.environment_of.items() if root in roots}

    def without_dropped(self, stage: Usd.Stage, outside: list[str], dropped: set[str]) -> list[str]:
        """The prims outside without the dropped ones: a prim above a dropped one is replaced by its children."""
        above = {path for each in dropped for path in upwards(each)} - dropped
        found, pending = [], outside[::-1]
        while pending:
            path = pending.pop()
            if path in dropped:
                continue
            if path not in above:
                found.append(path)
                continue
            pending += [str(child.GetPath()) for child in stage.GetPrimAtPath(path).GetAllChildren()][::-1]
        return found

    def _root_of(self, target: Sdf.Path) -> str:
        return next((path for path in upwards(str(target.GetPrimPath())) if path in self.roots), "")

    def _add_satellite(self, prim: Usd.Prim, targets: Targets) -> None:
        """Adds a prim if it is a satellite: a group or joint whose members or bodies are all in one environment."""
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

    def _relative_content(self, prim: Usd.Prim) -> Hashable:
        """Content of a satellite. References to satellites of other environments have no effect and are ignored."""
        root = self.environment_of[str(prim.GetPath())]
        names = self.names(root)
        attributes = tuple(
            (a.GetName(), repr(a.Get()), *((t, repr(a.Get(t))) for t in a.GetTimeSamples()))
            for a in prim.GetAuthoredAttributes()
        )
        relationships = tuple(
            (name, tuple(own for target in found if (own := self._relative_name(target, root, names))))
            for name, found in self.targets[str(prim.GetPath())].items()
        )
        parent = str(prim.GetParent().GetPath())
        return parent, str(prim.GetTypeName()), tuple(prim.GetAppliedSchemas()), attributes, relationships

    def _relative_name(self, target: Sdf.Path, root: str, names: dict[str, str]) -> str:
        """A target relative to an environment; "" for a target in another one."""
        path = str(target)
        for above in upwards(str(target.GetPrimPath())):
            if above in names:
                return names[above] + path[len(above) :]
            if above in self.roots or above in self.environment_of:
                return ""
        return path

    def _add_references(self, path: str, targets: Targets) -> None:
        """Adds the references of a prim that is not a satellite to environments and their satellites."""
        for name, found in targets.items():
            for target in found:
                prim = str(target.GetPrimPath())
                root = self._root_of(target) or self.environment_of.get(prim, "")
                if root:
                    relative = self._relative_name(target, root, self.names(root))
                    self._references.setdefault(root, []).append((path, name, relative))
