"""What makes two environments equal: their opinions, composition arcs, scale, and references from prims outside.

Keys are compared completely: `Texts` numbers each text, so that no hash collision is possible. References from outside
are those of collision groups, joints and filtered pairs.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from pxr import Pcp, Sdf, Usd, UsdPhysics

from collidecli.importers.usd.environments import upwards

DIGITS = 10
"""Scales that agree to this number of digits are equal: rounding leaves 1e-16 of a rotation."""

PLACING = re.compile(r"^    (?:custom )?(?:uniform )?[\w\[\]]+ xformOp(?:Order|:[\w:]+) = .*\n", re.MULTILINE)
"""A line of a root's own transform; lines of its descendants are indented further."""

NUMBERING = re.compile(r"^ *custom \w+ physics:newton:\w+ = \d+\n", re.MULTILINE)
"""A line with Kit's number of an object of Newton, consecutive over all environments; it is not used here."""

NAME = re.compile(r'^(\w+(?: \w+)?) "[^"\n]*"')


PRIM = re.compile(r"[^.{\[]*")
"""The part of a path that names a prim."""

PATH = re.compile(r"<(/[^<>\n]*)>")
"""A path in a layer's text."""

Texts = dict[str, int]
"""Number of each distinct text."""


def scale_keys(scale: np.ndarray) -> list[Hashable]:
    """Keys of the roots' transforms without rotation, [n, 3, 3], to DIGITS relative to the largest entry."""
    largest = np.abs(scale).max(axis=(1, 2))
    relative = np.round(scale / largest[:, None, None], DIGITS) + 0.0  # makes -0.0 equal to 0.0
    return [(f"{size:.{DIGITS - 1}e}", matrix.tobytes()) for size, matrix in zip(largest, relative, strict=True)]


def index_key(prim: Usd.Prim, names: dict[str, str], texts: Texts) -> Hashable:
    """Key of an environment's composition, without its root's transform.

    Prims with equal keys have equal content: the composition below a prim depends on the tree of arcs of its index and
    on the specs at their targets. Of a target outside, the key contains the path; of a target in the environment, its
    text. names: names that replace paths of the environment. texts: of all environments that are compared.
    """
    index = prim.GetPrimIndex()
    return str(prim.GetTypeName()), _node_key(index.rootNode, str(prim.GetPath()), names, texts)


def _node_key(node: Pcp.NodeRef, root: str, names: dict[str, str], texts: Texts) -> Hashable:
    stack, path = node.layerStack, node.path
    target: Hashable
    if node.IsRootNode() or node.IsDueToAncestor():
        own = {str(path): names[root], **names}
        target = tuple(
            (layer.identifier, _relocated(layer) and root, spec and texts.setdefault(text_key(spec, own), len(texts)))
            for layer in stack.layers
            for spec in (layer.GetPrimAtPath(path),)
        )
    else:
        target = (
            *((layer.identifier, _relocated(layer) and root) for layer in stack.layers),
            _renamed(f"<{path}>", names),
        )
    offset = node.mapToParent.timeOffset
    children = tuple(_node_key(child, root, names, texts) for child in node.children)
    return str(node.arcType), target, (offset.offset, offset.scale), children


def _relocated(layer: Sdf.Layer) -> bool:
    """Whether a layer has relocations, which act from outside: an environment in it equals no other."""
    return layer.pseudoRoot.HasInfo("layerRelocates")


def text_key(spec: Sdf.PrimSpec, names: dict[str, str]) -> str:
    """A root's spec and descendants as text, without its name, transform and numbering; own paths replaced by names."""
    text = NAME.sub(r'\1 ""', spec.GetAsText(), count=1)
    # Where the transform was a root's only content, an empty line remains before its children.
    text = NUMBERING.sub("", PLACING.sub("", text))
    return _renamed(text.replace("\n{\n\n", "\n{\n", 1), names)


def _renamed(text: str, names: dict[str, str]) -> str:
    """The text with each path in <...> that is in `names`, or below one of them, replaced by its name."""

    def renamed(match: re.Match[str]) -> str:
        path = match[1]
        prim = PRIM.match(path)[0]  # type: ignore[index]
        own = next((above for above in upwards(prim) if above in names), "")
        return f"<{names[own]}{path[len(own) :]}>" if own else match[0]

    return PATH.sub(renamed, text)


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
