"""Targets of composition arcs, found in layers that USD has not composed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from pxr import Sdf

from collidecli.importers.usd.reached_layers import open_asset

_ARCS = ("references", "payload", "inheritPaths", "specializes")
"""Fields of a spec that name further specs."""
_MOST_INHERITED = 10_000
"""Targets that are found through arcs of ancestors: those of prims that reference each other's
children have no end."""
_MOST_NAMES = 250
"""In the path of such a target."""


@dataclass(frozen=True)
class LayerStack:
    """A layer with its sublayers.

    layers: of the stack, the strongest first; in the stack of a stage, those of its session too.
    """

    root: Sdf.Layer
    layers: tuple[Sdf.Layer, ...]

    def specs(self, path: Sdf.Path) -> list[Sdf.PrimSpec]:
        """The specs at a path, the strongest first."""
        found = (layer.GetPrimAtPath(path) for layer in self.layers)
        return [spec for spec in found if spec is not None]


@dataclass(frozen=True)
class Target:
    """A path in a layer stack."""

    stack: LayerStack
    path: Sdf.Path


@dataclass
class ArcTargets:
    """The search for the targets of arcs; layers are opened, and ancestors are searched, once."""

    _assets: dict[tuple[Sdf.Layer, str], LayerStack | None] = field(default_factory=dict)
    _of_ancestors: dict[Target, list[Target]] = field(default_factory=dict)
    _inherited: dict[Target, list[Target]] = field(default_factory=dict)
    _left: int = _MOST_INHERITED

    def of(self, stack: LayerStack, specs: list[Sdf.PrimSpec]) -> list[Target]:
        """The targets of a prim's arcs, each once, and the targets to which arcs of their ancestors
        lead.

        specs: of the prim in the stack, the strongest first. A file that cannot be read is reported
        when the stage composes it.
        """
        direct = self._direct(stack, specs)
        inherited = chain.from_iterable(map(self._through_ancestors, direct))
        return list(dict.fromkeys([*direct, *inherited]))

    def _direct(self, stack: LayerStack, specs: list[Sdf.PrimSpec]) -> list[Target]:
        """The targets of a prim's arcs, by USD's rule: a stronger layer edits the list of the
        weaker ones."""
        every: dict[Target, None] = {}
        for name in _ARCS:
            found: dict[Target, None] = {}
            for spec in reversed(specs):
                if spec.HasInfo(name):
                    edits = spec.GetInfo(name)
                    if edits.isExplicit:
                        found.clear()
                    for target in self._named(stack, spec, edits.deletedItems):
                        found.pop(target, None)
                    found.update(dict.fromkeys(self._named(stack, spec, edits.GetAppliedItems())))
            every.update(found)
        return list(every)

    def _named(
        self,
        stack: LayerStack,
        spec: Sdf.PrimSpec,
        arcs: list[Sdf.Path] | list[Sdf.Reference] | list[Sdf.Payload],
    ) -> Iterator[Target]:
        for arc in arcs:
            if isinstance(arc, Sdf.Path):
                yield Target(stack, arc)
                continue
            found = self._opened(spec.layer, arc.assetPath) if arc.assetPath else stack
            path = arc.primPath or (found.root.GetDefaultPrimAsPath() if found else None)
            if found and path:
                yield Target(found, path)

    def _opened(self, layer: Sdf.Layer, asset: str) -> LayerStack | None:
        """The layer stack of an asset path in a layer."""
        key = layer, asset
        if key not in self._assets:
            root = open_asset(layer, asset)
            self._assets[key] = root and LayerStack(root, tuple(_with_sublayers(root)))
        return self._assets[key]

    def _through_ancestors(self, first: Target) -> list[Target]:
        """The targets to which the arcs of a target's ancestors lead, and those of the ancestors of
        these: of </W/c>, where W references P, </P/c>."""
        if first not in self._inherited:
            known = {first}
            found = [first]
            for target in found:
                for further in self._of_one(target) if self._left > 0 else ():
                    if further not in known and further.path.pathElementCount <= _MOST_NAMES:
                        known.add(further)
                        found.append(further)
                        self._left -= 1
            self._inherited[first] = found[1:]
        return self._inherited[first]

    def _of_one(self, target: Target) -> Iterator[Target]:
        """The targets to which the arcs of a target's ancestors lead."""
        for path in target.path.GetParentPath().GetPrefixes():
            ancestor = Target(target.stack, path)
            if ancestor not in self._of_ancestors:
                specs = target.stack.specs(path)
                if not specs:
                    return  # nor have the ancestors below
                self._of_ancestors[ancestor] = self._direct(target.stack, specs)
            for found in self._of_ancestors[ancestor]:
                yield Target(found.stack, target.path.ReplacePrefix(path, found.path))


def _with_sublayers(root: Sdf.Layer) -> list[Sdf.Layer]:
    """A layer and its sublayers, the strongest first."""
    layers: dict[Sdf.Layer, None] = {}
    waiting: list[Sdf.Layer | None] = [root]
    while waiting:
        layer = waiting.pop()
        if layer is not None and layer not in layers:
            layers[layer] = None
            waiting += [open_asset(layer, path) for path in reversed(layer.subLayerPaths)]
    return list(layers)
