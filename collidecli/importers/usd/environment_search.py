"""Search for the environments of a USD stage; of equal environments only one is composed.

The stage is opened with an empty population mask. The roots of all environments are composed
without their descendants. Two environments whose prim indices have equal arcs to equal targets, and
equal opinions of their own, are equal by the rules of composition. The first of each class is
composed completely; classes whose flattened content is equal are then merged. For every
environment, only one prim is thus composed and its own specs are read.

What makes two environments equal: their opinions, composition arcs, scale, and references from
prims outside. Keys are compared completely: `Texts` numbers each text, so that no hash collision is
possible. References from outside are those of collision groups, joints and filtered pairs.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
from pxr import Pcp, Sdf, Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.asset_mapping import reload_stage
from collidecli.importers.usd.environments import Environment, Environments, upwards
from collidecli.importers.usd.expected_prims import refuse_excessive_stage
from collidecli.importers.usd.motion import is_animated
from collidecli.importers.usd.stage import metres_per_unit
from collidecli.importers.usd.transforms import (
    TransformError,
    check_columns,
    columns_of,
    located_transform,
    pose_of,
    rotation_of,
    scale_keys,
)
from collidecli.importers.usd.typed_attributes import (
    EXPRESSION,
    FLAG,
    REST_TIME,
    TOKEN,
    read_authored,
)
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.numerics.products import matmul
from collidecli.scene.environment_names import (
    DEFAULT_PATTERN,
    ENV_NUMBER,
    GUIDE_PATTERN,
    NO_ENVIRONMENTS,
)
from collidecli.scene.name_patterns import matcher, path_patterns
from collidecli.wording import in_order

DIGITS = 10
"""Scales that agree to this number of digits are equal: rounding leaves 1e-16 of a rotation."""
PLACING = re.compile(
    r"^    (?:custom )?(?:uniform )?[\w\[\]]+ xformOp(?:Order|:[\w:]+) = .*\n", re.MULTILINE
)
"""A line of a root's own transform; lines of its descendants are indented further."""
NUMBERING = re.compile(r"^ *custom \w+ physics:newton:\w+ = \d+\n", re.MULTILINE)
"""A line with Kit's number of an object of Newton, consecutive over all environments; it is not
used here."""
NAME = re.compile(r'^(\w+(?: \w+)?) "[^"\n]*"')
PRIM = re.compile(r"[^.{\[]*")
"""The part of a path that names a prim."""
PATH = re.compile(r"<(/[^<>\n]*)>")
"""A path in a layer's text."""
Texts = dict[str, int]
"""Number of each distinct text."""


def _node_key(node: Pcp.NodeRef, root: str, names: dict[str, str], texts: Texts) -> Hashable:
    """Key of an environment's composition, without its root's transform.

    Prims with equal keys have equal content: the composition below a prim depends on the tree of
    arcs of its index and on the specs at their targets. Of a target outside, the key contains the
    path; of a target in the environment, its text. names: names that replace paths of the
    environment. texts: of all environments that are compared.
    """
    stack = node.layerStack
    path = node.path
    target: Hashable
    if node.IsRootNode() or node.IsDueToAncestor():
        known = {str(path): names[root], **names}
        target = tuple(
            (
                layer.identifier,
                _relocated(layer) and root,
                spec and texts.setdefault(text_key(spec, known), len(texts)),
            )
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
    """Whether a layer has relocations, which act from outside: an environment in it equals no
    other."""
    return layer.pseudoRoot.HasInfo("layerRelocates")


def text_key(spec: Sdf.PrimSpec, names: dict[str, str]) -> str:
    """A root's spec and descendants as text, without its name, transform and numbering; own paths
    replaced by names."""
    text = NAME.sub(r'\1 ""', spec.GetAsText(), count=1)
    # Where the transform was a root's only content, an empty line remains before its children.
    text = NUMBERING.sub("", PLACING.sub("", text))
    return _renamed(text.replace("\n{\n\n", "\n{\n", 1), names)


def _renamed(text: str, names: dict[str, str]) -> str:
    """The text with each path in <...> that is in `names`, or below one of them, replaced by its
    name."""

    def renamed(match: re.Match[str]) -> str:
        path = match[1]
        prim = PRIM.match(path)[0]  # type: ignore[index]
        named = next((above for above in upwards(prim) if above in names), "")
        return f"<{names[named]}{path[len(named) :]}>" if named else match[0]

    return PATH.sub(renamed, text)


Targets = dict[str, list[Sdf.Path]]
"""Of one prim: name of each relationship to its targets."""
OWN = "."
"""Name of an environment's root in relative paths."""


@dataclass
class Links:
    """Relationships of prims outside of the environments, by environment.

    A *satellite* of an environment is a collision group or a joint outside that refers to no other
    environment; a copy of the environment has a copy of the satellite, as cloners create them.

    targets: of the prims outside that refer to an environment or a satellite. satellites_of:
    environment to its satellites, in the stage's order. environment_of: satellite to environment.
    by_expression: a collection is given by a path expression, which may match any prim. file: of
    the stage, in errors.
    """

    roots: set[str]
    file: str
    targets: dict[str, Targets] = field(default_factory=dict)
    satellites_of: dict[str, list[str]] = field(default_factory=dict)
    environment_of: dict[str, str] = field(default_factory=dict)
    by_expression: bool = False
    _references: dict[str, list[Hashable]] = field(default_factory=dict)
    _content: dict[str, Hashable] = field(default_factory=dict)

    @classmethod
    def read(cls, stage: Usd.Stage, roots: list[str], file: str) -> Links:
        """The links of a stage that is populated with all prims outside; environments need not be
        populated."""
        links = cls(set(roots), file)
        for prim in stage.Traverse(Usd.TraverseInstanceProxies()):
            path = str(prim.GetPath())
            if path in links.roots:
                continue
            targets = {r.GetName(): r.GetTargets() for r in prim.GetAuthoredRelationships()}
            targets = {name: linked for name, linked in targets.items() if linked}
            if targets:
                links.targets[path] = targets
                links._add_satellite(prim, targets)
            links.by_expression = links.by_expression or cls.has_expression(prim, file, below=False)
        for path in links.environment_of:
            links._content[path] = links._relative_content(stage.GetPrimAtPath(path))
        for path, targets in links.targets.items():
            if path not in links.environment_of:
                links._add_references(path, targets)
        return links

    @staticmethod
    def has_expression(prim: Usd.Prim, file: str, below: bool = True) -> bool:
        """Whether a prim, or one below it, has a collection by path expression."""
        prims = Usd.PrimRange(prim, Usd.TraverseInstanceProxies()) if below else (prim,)
        return any(
            schema.startswith("CollectionAPI:")
            and bool(
                read_authored(
                    prim_above,
                    f"collection:{schema.partition(':')[2]}:membershipExpression",
                    EXPRESSION,
                    f"{file} <{prim_above.GetPath()}>",
                )
            )
            for prim_above in prims
            for schema in prim_above.GetAppliedSchemas()
            if schema.startswith("CollectionAPI:")
        )

    def key(self, root: str) -> Hashable:
        """Key of all references to an environment from outside, by relative paths."""
        references = tuple(sorted(map(repr, self._references.get(root, ()))))
        return references, tuple(self._content[path] for path in self.satellites_of.get(root, ()))

    def names(self, root: str) -> dict[str, str]:
        """Relative names of an environment's root and satellites."""
        return {
            root: OWN,
            **{path: f"satellite {k}" for k, path in enumerate(self.satellites_of.get(root, ()))},
        }

    def without_dropped(self, stage: Usd.Stage, outside: list[str], dropped: set[str]) -> list[str]:
        """The prims outside without the dropped ones: a prim above a dropped one is replaced by its
        children."""
        above = {path for dropped_path in dropped for path in upwards(dropped_path)} - dropped
        kept = []
        pending = outside[::-1]
        while pending:
            path = pending.pop()
            if path in dropped:
                continue
            if path not in above:
                kept.append(path)
                continue
            pending += [
                str(child.GetPath()) for child in stage.GetPrimAtPath(path).GetAllChildren()
            ][::-1]
        return kept

    def _root_of(self, target: Sdf.Path) -> str:
        return next((path for path in upwards(str(target.GetPrimPath())) if path in self.roots), "")

    def _add_satellite(self, prim: Usd.Prim, targets: Targets) -> None:
        """Adds a prim if it is a satellite: a group or joint whose members or bodies are all in one
        environment."""
        path = str(prim.GetPath())
        members = {
            self._root_of(t)
            for name, linked in targets.items()
            if name != "physics:filteredGroups"
            for t in linked
        }
        if prim.IsA(UsdPhysics.CollisionGroup):
            where = f"{self.file} <{path}>"
            merged = read_authored(prim, "physics:mergeGroup", TOKEN, where)
            everything = read_authored(prim, "collection:colliders:includeRoot", FLAG, where)
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
        """Content of a satellite. References to satellites of other environments have no effect and
        are ignored."""
        root = self.environment_of[str(prim.GetPath())]
        names = self.names(root)
        attributes = tuple(
            (a.GetName(), repr(a.Get()), *((t, repr(a.Get(t))) for t in a.GetTimeSamples()))
            for a in prim.GetAuthoredAttributes()
        )
        relationships = tuple(
            (
                name,
                tuple(
                    relative
                    for target in linked
                    if (relative := self._relative_name(target, root, names))
                ),
            )
            for name, linked in self.targets[str(prim.GetPath())].items()
        )
        parent = str(prim.GetParent().GetPath())
        return (
            parent,
            str(prim.GetTypeName()),
            tuple(prim.GetAppliedSchemas()),
            attributes,
            relationships,
        )

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
        """Adds the references of a prim that is not a satellite to environments and their
        satellites."""
        for name, linked in targets.items():
            for target in linked:
                prim = str(target.GetPrimPath())
                root = self._root_of(target) or self.environment_of.get(prim, "")
                if root:
                    relative = self._relative_name(target, root, self.names(root))
                    self._references.setdefault(root, []).append((path, name, relative))


NOTHING = "__no_such_prim__"
"""A mask for a child of this name composes a prim without its descendants."""


def populate(stage: Usd.Stage, pattern: str, file: str) -> Environments:
    """Finds the environments and sets the stage's population mask to one of each class and all
    prims outside.

    pattern: of root prims, a path whose names may have the wildcards *, ? and [...]; "" is
    DEFAULT_PATTERN, then GUIDE_PATTERN; "none" makes the stage one world. Raises InputError for a
    pattern that is not a path or matches no prim, and for a root with a shear or zero scale.
    """
    roots = [] if pattern == NO_ENVIRONMENTS else _matching(stage, pattern or DEFAULT_PATTERN)
    if not (pattern or roots):
        roots = [path for path in _matching(stage, GUIDE_PATTERN) if ENV_NUMBER.search(path)]
    if pattern not in ("", NO_ENVIRONMENTS) and not roots:
        raise InputError(
            f"no prim of the scene is '{pattern}'",
            "--environments",
            "name root prims, or write none",
        )
    if len(roots) < 2:
        refuse_excessive_stage(stage, ["/"], file)
        _set_mask(stage, ["/"])
        poses = _Roots(stage, roots, file).pose
        return Environments(tuple(Environment(root, poses[root], root) for root in roots))
    return _Search(stage, roots, file).run()


def _matching(stage: Usd.Stage, pattern: str) -> list[str]:
    """Paths of the active, defined prims that match a pattern, ordered by name, with numbers by
    value."""
    root, *names = path_patterns(pattern)
    if root or not all(names):
        raise InputError(
            f"'{pattern}' is no path of prims",
            "--environments",
            f"write one such as {DEFAULT_PATTERN}",
        )
    paths = ["/"]
    for name in names:
        is_met = matcher(name, "--environments")
        candidates = [
            f"{parent.rstrip('/')}/{child}"
            for parent in paths
            for child in _child_names(stage.GetPrimAtPath(parent))
            if is_met(child)
        ]
        _set_mask(stage, [f"{path}/{NOTHING}" for path in candidates])
        paths = [path for path in candidates if _is_in_scene(stage.GetPrimAtPath(path))]
    return in_order(paths)


def _child_names(prim: Usd.Prim) -> list[str]:
    names, prohibited = prim.GetPrimIndex().ComputePrimChildNames()
    return [name for name in names if name not in prohibited]


def _is_in_scene(prim: Usd.Prim) -> bool:
    return bool(
        prim
        and prim.IsActive()
        and prim.IsDefined()
        and not prim.IsAbstract()
        and not prim.IsInstanceProxy()
    )


def _set_mask(stage: Usd.Stage, paths: Iterable[str]) -> None:
    """Composes these prims and their descendants; reloads layers, which pxr may have kept from
    another stage."""
    stage.SetPopulationMask(Usd.StagePopulationMask([Sdf.Path(path) for path in paths]))
    reload_stage(stage)


class _Roots:
    """Transforms of the roots of environments.

    pose: float64[7] of each [m]. scale: key of its transform without the pose, see `scale_keys`.
    moving: roots that are animated, by themselves or by an ancestor.
    """

    def __init__(self, stage: Usd.Stage, roots: list[str], file: str) -> None:
        unit = metres_per_unit(stage, file, [])
        prims = [stage.GetPrimAtPath(root) for root in roots]
        matrices = PrimTransforms(REST_TIME, file).matrices(prims)
        columns = columns_of(matrices)
        _check(columns, roots, file)
        rotations = rotation_of(columns)
        self.pose = dict(zip(roots, pose_of(rotations, matrices[:, 3, :3] * unit), strict=True))
        stretch = matmul(np.swapaxes(rotations, 1, 2), columns)
        self.scale = dict(zip(roots, scale_keys(stretch, DIGITS), strict=True))
        parents = {prim.GetParent() for prim in prims}
        animated = {str(parent.GetPath()): is_animated(parent) for parent in parents}
        self.moving = {
            root
            for root, prim in zip(roots, prims, strict=True)
            if animated[root.rpartition("/")[0] or "/"]
            or (
                prim.IsA(UsdGeom.Xformable)
                and UsdGeom.Xformable(prim).TransformMightBeTimeVarying()
            )
        }


def _check(columns: np.ndarray, roots: list[str], file: str) -> None:
    """Checks all roots at once; on an error checks one by one to find the root."""
    with suppress(TransformError):
        check_columns(columns)
        return
    for column, root in zip(columns, roots, strict=True):
        with located_transform("the environment", f"{file} <{root}>"):
            check_columns(column)


@dataclass
class _Search:
    """Search for classes of equal environments in one stage.

    alone: environments that are not merged with others: they move as a whole, or other prims refer
    to them.
    """

    stage: Usd.Stage
    roots: list[str]
    file: str
    alone: set[str] = field(default_factory=set)

    def run(self) -> Environments:
        outside = self._outside()
        refuse_excessive_stage(self.stage, outside, self.file)
        _set_mask(self.stage, [*outside, *(f"{root}/{NOTHING}" for root in self.roots)])
        transforms = _Roots(self.stage, self.roots, self.file)
        self.alone |= transforms.moving
        links = Links.read(self.stage, self.roots, self.file)
        above = {path for root in self.roots for path in upwards(root)} - set(self.roots)
        # Colliders of environments below a body do not have the poses of their roots.
        of_body = any(
            self.stage.GetPrimAtPath(path).HasAPI(UsdPhysics.RigidBodyAPI) for path in above
        )
        if links.by_expression or of_body:
            self.alone |= set(self.roots)
        around: dict[str, Hashable] = {
            root: (root.rpartition("/")[0], transforms.scale[root], links.key(root))
            for root in self.roots
        }
        texts: Texts = {}
        keys: dict[str, Hashable] = {}
        for root in self.roots:
            prim = self.stage.GetPrimAtPath(root)
            node = prim.GetPrimIndex().rootNode
            keys[root] = str(prim.GetTypeName()), _node_key(node, root, links.names(root), texts)
        kept = links.without_dropped(self.stage, outside, set())
        while True:
            classes = self._classes(
                {root: (keys[root], around[root]) for root in self.roots}, self.roots
            )
            firsts = set(classes.values())
            refuse_excessive_stage(self.stage, sorted(firsts), self.file)
            _set_mask(self.stage, [*kept, *(root for root in self.roots if root in firsts)])
            more = self._not_mergeable(firsts, classes) - self.alone
            if not more:
                break
            self.alone |= more
        if len(firsts) > 1:
            classes = self._merged(classes, around, links)
        left_out = {root for root in self.roots if classes[root] != root}
        dropped = {path for path, root in links.environment_of.items() if root in left_out}
        if dropped or firsts != set(classes.values()):
            kept = links.without_dropped(self.stage, outside, dropped)
            _set_mask(self.stage, [*kept, *(root for root in self.roots if root not in left_out)])
        environments = tuple(
            Environment(root, transforms.pose[root], classes[root]) for root in self.roots
        )
        return Environments(environments, frozenset(dropped))

    def _outside(self) -> list[str]:
        """The topmost prims that are neither in an environment nor above one."""
        roots = set(self.roots)
        above = dict.fromkeys(
            str(p) for root in self.roots for p in Sdf.Path(root).GetParentPath().GetPrefixes()
        )
        outside = []
        for path in ["/", *above]:
            for name in _child_names(self.stage.GetPrimAtPath(path)):
                child = f"{path.rstrip('/')}/{name}"
                if child not in roots and child not in above:
                    outside.append(child)
        return outside

    def _classes(self, key: Mapping[str, Hashable], roots: Iterable[str]) -> dict[str, str]:
        first: dict[Hashable, str] = {}
        return {
            root: root if root in self.alone else first.setdefault(key[root], root)
            for root in roots
        }

    def _not_mergeable(self, firsts: set[str], classes: dict[str, str]) -> set[str]:
        """Environments to which another one refers, and those whose content does not move rigidly
        with their root.

        The first of a class has every opinion of the others, so that only the first ones are
        examined.
        """
        roots = set(self.roots)
        refused: set[str] = set()
        for first in firsts:
            fixed = False
            for prim in Usd.PrimRange(
                self.stage.GetPrimAtPath(first), Usd.TraverseInstanceProxies()
            ):
                for relationship in prim.GetAuthoredRelationships():
                    prefixes = (
                        path
                        for to in relationship.GetTargets()
                        for path in to.GetPrimPath().GetPrefixes()
                    )
                    refused |= {
                        str(path) for path in prefixes if str(path) in roots and str(path) != first
                    }
                if str(prim.GetPath()) != first:
                    xformable = UsdGeom.Xformable(prim)
                    resets = bool(xformable and xformable.GetResetXformStack())
                    fixed = fixed or prim.IsA(UsdPhysics.Scene) or resets
            if fixed or Links.has_expression(self.stage.GetPrimAtPath(first), self.file):
                refused |= {root for root in roots if classes[root] == first}
        return refused

    def _merged(
        self, classes: dict[str, str], around: dict[str, Hashable], links: Links
    ) -> dict[str, str]:
        flat = self.stage.Flatten(addSourceFileComment=False)
        firsts = dict.fromkeys(classes.values())
        key = {
            first: (text_key(flat.GetPrimAtPath(first), links.names(first)), around[first])
            for first in firsts
        }
        merged = self._classes(key, firsts)
        return {root: merged[first] for root, first in classes.items()}
