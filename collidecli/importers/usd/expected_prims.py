"""The number of prims that layers compose to, counted before USD composes them.

Composition arcs multiply: a text of 3 kB in which each prim references another twice, 20 times in a
row, is a million prims. The count is an upper bound, linear in the specs that are read: the target
of an arc is counted once and added for each arc to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from pxr import Sdf, Tf, Usd

from collidecli.errors import InputError
from collidecli.importers.usd.reached_layers import open_reached_layers

MOST_PRIMS = 2_000_000
"""Of one stage, prims of instances and of environments that are composed included: OpenUSD takes 20
to 50 s of a core and 0.9 to 1.7 GiB for a million."""
MOST_ARCS = 250
"""In a chain, each at the target of the one before: OpenUSD takes 4 s for 200, and over 100 s for
1000."""
_ARCS = ("references", "payload", "inheritPaths", "specializes")
"""Fields of a spec that name further specs."""


@dataclass(frozen=True)
class _Target:
    """A path in a layer and its sublayers."""

    layer: Sdf.Layer
    path: Sdf.Path


@dataclass(frozen=True)
class _Counts:
    """Number of prims of a target, and of arcs in its longest chain."""

    prims: int = 1
    arcs: int = 0


@dataclass
class _Content:
    """Specs below a target without those of arcs: their number, the targets of their arcs, and of
    each variant set the targets of its variants, of which one is composed."""

    count: int = 0
    targets: list[_Target] = field(default_factory=list)
    variants: list[list[_Target]] = field(default_factory=list)

    def pending(self, counts: dict[_Target, _Counts]) -> list[_Target]:
        """The targets that are not counted."""
        every = [*self.targets, *(target for group in self.variants for target in group)]
        return [target for target in every if target not in counts]

    def total(self, counts: dict[_Target, _Counts]) -> _Counts:
        """Counts with those of the arcs; the prim at a target is merged with the one that has the
        arc."""
        below = [counts.get(target, _Counts()) for target in self.targets]
        groups = [[counts.get(target, _Counts()) for target in group] for group in self.variants]
        prims = sum(found.prims - 1 for found in below)
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
    counts: dict[_Target, _Counts] = {}
    total = 0
    for path in map(Sdf.Path, paths):
        for target in _targets_at(stage, path):
            found = _counted(target, counts)
            total += found.prims
            if found.arcs > MOST_ARCS:
                what = f"references and other arcs are {found.arcs} deep, at most {MOST_ARCS}"
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


def _targets_at(stage: Usd.Stage, path: Sdf.Path) -> Iterator[_Target]:
    """Where a prim's own specs are: in the layers of the stage, and at the specs of its parent."""
    if path == Sdf.Path.absoluteRootPath:
        yield _Target(stage.GetRootLayer(), path)
        yield _Target(stage.GetSessionLayer(), path)
        return
    parent = stage.GetPrimAtPath(path.GetParentPath())
    if parent.IsPseudoRoot():
        above = [layer.pseudoRoot for layer in (stage.GetRootLayer(), stage.GetSessionLayer())]
    else:
        above = parent.GetPrimStack() if parent else []
    for spec in above:
        yield _Target(spec.layer, spec.path.AppendChild(path.name))


def _counted(first: _Target, counts: dict[_Target, _Counts]) -> _Counts:
    """Counts of a target, arcs included; adds them and those of its arcs to `counts`.

    A target in a cycle of arcs, which USD refuses, counts once.
    """
    contents: dict[_Target, _Content] = {}
    waiting = [first]
    while waiting:
        target = waiting[-1]
        if target in counts:
            waiting.pop()
        elif target in contents:
            counts[target] = contents[target].total(counts)
            waiting.pop()
        else:
            contents[target] = _content(target)
            waiting += [t for t in contents[target].pending(counts) if t not in contents]
    return counts[first]


def _content(target: _Target) -> _Content:
    content = _Content()
    for layer in _with_sublayers(target.layer):
        specs = [layer.GetPrimAtPath(target.path)]
        while specs:
            spec = specs.pop()
            if spec is None:
                continue
            content.count += 1
            specs += spec.nameChildren.values()
            for name in _ARCS:
                if spec.HasInfo(name):
                    content.targets += _arcs(spec, name)
            for group in spec.variantSets.values() if spec.HasInfo("variantSetNames") else ():
                every = (variant.primSpec.path for variant in group.variants.values())
                variants = [_Target(layer, path) for path in every]
                content.variants += [variants] if variants else []
    return content


def _arcs(spec: Sdf.PrimSpec, name: str) -> Iterator[_Target]:
    """The targets of a spec's arcs of one kind; a file that cannot be read is reported when the
    stage composes it."""
    for arc in spec.GetInfo(name).GetAppliedItems():
        if isinstance(arc, Sdf.Path):
            yield _Target(spec.layer, arc)
            continue
        layer = spec.layer
        if arc.assetPath:
            with suppress(Tf.ErrorException):
                layer = Sdf.Layer.FindOrOpenRelativeToLayer(spec.layer, arc.assetPath)
            if layer is None or (layer == spec.layer and not arc.primPath):
                continue
        path = arc.primPath or Sdf.Path.absoluteRootPath.AppendChild(layer.defaultPrim)
        yield _Target(layer, path)


def _with_sublayers(layer: Sdf.Layer) -> list[Sdf.Layer]:
    layers = [layer]
    for above in layers:
        for path in above.subLayerPaths:
            with suppress(Tf.ErrorException):
                sublayer = Sdf.Layer.FindOrOpenRelativeToLayer(above, path)
                if sublayer is not None and sublayer not in layers:
                    layers.append(sublayer)
    return layers
