"""Replacement of asset paths in the layers of a stage, in memory: `--asset-map` of USD scenes."""

from __future__ import annotations

from contextvars import ContextVar

from pxr import Sdf, Usd

from collidecli.importers.asset_map import AssetMap
from collidecli.importers.usd.reached_layers import open_asset

_mapped: ContextVar[tuple[Sdf.Layer, ...]] = ContextVar("mapped", default=())
"""Layers that are edited for the stage that is being read; pxr drops a layer, and the edit, that
nothing refers to."""


def map_assets(stage: Usd.Stage, assets: AssetMap) -> None:
    """Replaces paths of sublayers, references and payloads, as written, in every layer that the
    root layer reaches.

    No file changes. Layers in usdz packages are not editable and keep their paths.
    """
    edited: dict[str, Sdf.Layer] = {}
    pending = [stage.GetRootLayer()] if assets else []
    seen = set()
    while pending:
        layer = pending.pop()
        if layer.identifier in seen:
            continue
        seen.add(layer.identifier)
        if layer.dirty and layer.realPath:
            layer.Reload(force=True)  # from another stage with another map
        for path in layer.GetCompositionAssetDependencies():
            new = assets.replaced(path) if layer.permissionToEdit else None
            if new is not None:
                layer.UpdateCompositionAssetDependency(path, new)
                edited[layer.identifier] = layer
            opened = open_asset(layer, new or path)
            pending += [opened] if opened is not None else []
    _mapped.set(tuple(edited.values()))


def end_mapping() -> None:
    """Releases the edited layers, which the composed stage keeps."""
    _mapped.set(())


def reload_stage(stage: Usd.Stage) -> None:
    """Reads changed files of the stage's layers again, which pxr may have kept from another stage.

    Layers with mapped paths are kept, since reading them again would undo the replacement.
    """
    if _mapped.get():
        Sdf.Layer.ReloadLayers(set(stage.GetUsedLayers()) - set(_mapped.get()))
    else:
        stage.Reload()
