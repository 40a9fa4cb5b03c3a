"""Opening of all layers that a layer reaches, before a stage opens them."""

from __future__ import annotations

import os
from contextlib import suppress

from pxr import Ar, Sdf, Tf, UsdUtils

from collidecli.storage.regular_files import (
    open_input,
    refuse_special_file,
    require_text_path,
)


def open_reached_layers(path: str) -> list[Sdf.Layer]:
    """The layer of a file and all that it reaches by sublayers, references, payloads and clips.

    A stage that is opened while they are held does not read them again. Raises InputError for a
    pipe, a device or a socket in place of any asset, at which OpenUSD would wait without end.
    Layers that cannot be opened are left out: the stage that composes them reports them.
    """
    refuse_special_file(path)
    require_text_path(os.path.abspath(path), "OpenUSD")
    layers: dict[str, Sdf.Layer] = {}
    pending = [Sdf.Layer.FindOrOpen(path)]
    while pending:
        layer = pending.pop()
        if layer is None or layer.identifier in layers:
            continue
        layers[layer.identifier] = layer
        pending += [open_asset(layer, asset) for asset in _assets(layer)]
    return list(layers.values())


def open_asset(layer: Sdf.Layer, asset: str) -> Sdf.Layer | None:
    """The layer of an asset path in a layer; None for one that is missing, broken or of another
    format than USD's. Raises InputError for a pipe, a device or a socket."""
    with suppress(Tf.ErrorException):
        identifier = Sdf.ComputeAssetPathRelativeToLayer(layer, asset)
        location = Sdf.Layer.SplitIdentifier(identifier)[0]
        package = Ar.SplitPackageRelativePathOuter(location)[0]
        file = str(Ar.GetResolver().Resolve(package))
        if file:
            refuse_special_file(file, layer.realPath or layer.identifier)
        if file and Sdf.FileFormat.FindByExtension(location):
            return Sdf.Layer.FindOrOpen(identifier)
    return None


def _assets(layer: Sdf.Layer) -> list[str]:
    """All asset paths in a layer, as written."""
    if layer.anonymous or not _may_have_assets(layer.realPath):
        return []
    with suppress(Tf.ErrorException):
        sublayers, others, payloads = UsdUtils.ExtractExternalReferences(layer.identifier)
        return list(dict.fromkeys([*sublayers, *others, *payloads]))
    return []


def _may_have_assets(path: str) -> bool:
    """Whether a file may have an asset path, which text writes between @; the search for them takes
    as long as to open the layer."""
    if not os.path.isfile(path):
        return True
    with open_input(path) as file:
        return not file.read(8).startswith(b"#usda") or b"@" in file.read()
