"""The number of prims that layers compose to, counted before USD composes them.

Composition arcs multiply: a text of 3 kB in which each prim references another twice, 20 times in a
row, is a million prims. The count is linear in the specs that are read: the paths of a target, the
path of an arc in a layer stack, are counted once, and added for each arc to it.

The count is an estimate. It is above the number of prims that a traversal meets where a prim has
specs at several targets, as an `over` of a referenced prim has: each target counts it. It is below
where a class is inherited across files (implied inherits), where the target of an arc exists in a
variant of an ancestor alone, for relocates, for expressions in asset paths, and beyond 10,000
targets that exist by arcs of their ancestors. The memory limit bounds what is missed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pxr import Sdf, Usd

from collidecli.errors import InputError
from collidecli.importers.usd.arc_targets import ArcTargets, LayerStack, Target
from collidecli.importers.usd.reached_layers import open_reached_layers

MOST_PRIMS = 2_000_000
"""Of one stage, as a traversal meets them: those of every instance count, although OpenUSD composes
a prototype once; of equal environments those of one count. OpenUSD takes 20 to 50 s of a core and
0.9 to 1.7 GiB to compose a million."""
MOST_ARCS = 250
"""In a chain, each at the target of the one before: OpenUSD takes 4 s for 200, and over 100 s for
1000."""


@dataclass(frozen=True)
class _Counts:
    """Number of prims of a target, and of arcs in its longest chain."""

    prims: int = 1
    arcs: int = 0


@dataclass
class _Content:
    """Paths from a target downwards that have specs, without those of arcs: their number, the
    targets of their arcs, and of each variant set the targets of its variants, of which one is
    composed."""

    count: int = 0
    targets: list[Target] = field(default_factory=list)
    variants: list[list[Target]] = field(default_factory=list)

    def pending(self, counts: dict[Target, _Counts]) -> list[Target]:
        """The targets that are not counted."""
        every = [*self.targets, *(target for group in self.variants for target in group)]
        return [target for target in every if target not in counts]

    def total(self, counts: dict[Target, _Counts]) -> _Counts:
        """Counts with those of the arcs; the prim at a target is merged with the one that has the
        arc."""
        below = [counts.get(target, _Counts()) for target in self.targets]
        groups = [[counts.get(target, _Counts()) for target in group] for group in self.variants]
        prims = sum(max(found.prims - 1, 0) for found in below)
        prims += sum(max(found.prims for found in group) - 1 for group in groups)
        arcs = [
            *(found.arcs + 1 for found in below),
            *(found.arcs for group in groups for found in group),
        ]
        return _Counts(self.count + prims, max(arcs, default=0))


def refuse_excessive_stage(stage: Usd.Stage, paths: Iterable[str], file: str) -> None:
    """Raises InputError where the prims at these paths, and those below them, are too many, or
    their chains of arcs too long.

    paths: of prims whose parents are composed.
    """
    arcs = ArcTargets()
    counts: dict[Target, _Counts] = {}
    total = 0
    for path in map(Sdf.Path, paths):
        targets = list(dict.fromkeys(_targets_at(stage, path)))
        for target in targets:
            _count(target, counts, arcs)
        found = _Content(min(len(targets), 1), targets).total(counts)
        total += found.prims
        if found.arcs - 1 > MOST_ARCS:
            what = f"references and other arcs are {found.arcs - 1} deep, at most {MOST_ARCS}"
            raise InputError(what, f"{file} <{path}>", "flatten a part of the scene")
        if total > MOST_PRIMS:
            what = f"the scene composes to over {MOST_PRIMS:,} prims (up to {total:.3g})"
            raise InputError(what, file, "split it into several scenes")


def open_whole(path: str, load: Usd.Stage.InitialLoadSet = Usd.Stage.LoadAll) -> Usd.Stage:
    """A stage with all prims of a file. Raises InputError where they are too many, and as
    `open_reached_layers` does."""
    reached = open_reached_layers(path)
    stage = Usd.Stage.OpenMasked(path, Usd.StagePopulationMask(), load)
    del reached  # the stage holds those that it uses
    refuse_excessive_stage(stage, ["/"], path)
    stage.SetPopulationMask(Usd.StagePopulationMask.All())
    return stage


def _targets_at(stage: Usd.Stage, path: Sdf.Path) -> Iterator[Target]:
    """Where a prim's own specs are: in the layers of the stage, and at the targets of its parent's
    arcs."""
    is_root = path == Sdf.Path.absoluteRootPath
    above = stage.GetPseudoRoot() if is_root else stage.GetPrimAtPath(path.GetParentPath())
    nodes = [above.GetPrimIndex().rootNode] if above else []
    for node in nodes:
        nodes += node.children
        if node.hasSpecs:
            stack = LayerStack(node.layerStack.identifier.rootLayer, tuple(node.layerStack.layers))
            yield Target(stack, path if is_root else node.path.AppendChild(path.name))


def _count(first: Target, counts: dict[Target, _Counts], arcs: ArcTargets) -> None:
    """Adds the counts of a target, arcs included, and of those of its arcs to `counts`.

    A target in a cycle of arcs, which USD refuses, counts once.
    """
    contents: dict[Target, _Content] = {}
    waiting = [first]
    while waiting:
        target = waiting[-1]
        if target in counts:
            waiting.pop()
        elif target in contents:
            counts[target] = contents[target].total(counts)
            waiting.pop()
        else:
            contents[target] = _content(target, arcs)
            waiting += [t for t in contents[target].pending(counts) if t not in contents]


def _content(target: Target, arcs: ArcTargets) -> _Content:
    content = _Content()
    at_root = target.stack.specs(target.path)
    waiting = [at_root] if at_root else []
    while waiting:
        specs = waiting.pop()
        content.count += 1
        content.targets += arcs.of(target.stack, specs)
        content.variants += _variants(target.stack, specs)
        children: dict[str, list[Sdf.PrimSpec]] = {}
        for spec in specs:
            for child in spec.nameChildren.values():
                children.setdefault(child.name, []).append(child)
        waiting += children.values()
    return content


def _variants(stack: LayerStack, specs: list[Sdf.PrimSpec]) -> list[list[Target]]:
    """Of each variant set of a prim the targets of its variants."""
    groups: dict[str, dict[Target, None]] = {}
    for spec in specs:
        for name, group in spec.variantSets.items() if spec.HasInfo("variantSetNames") else ():
            paths = (variant.primSpec.path for variant in group.variants.values())
            groups.setdefault(name, {}).update(dict.fromkeys(Target(stack, path) for path in paths))
    return [list(group) for group in groups.values() if group]
