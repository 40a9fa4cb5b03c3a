"""References, payloads and sublayers of a stage that do not compose: refused, or passed over with a
warning each."""

from __future__ import annotations

import os
import re

from pxr import Pcp, Usd

from collidecli.errors import InputError
from collidecli.storage.regular_files import FETCH, pointer_text
from collidecli.wording import plural, some_names

NAMED_ERRORS = 5
"""Maximum number of broken references in one message."""
MISSING = (Pcp.ErrorInvalidAssetPath, Pcp.ErrorInvalidSublayerPath, Pcp.ErrorUnresolvedPrimPath)
"""Composition errors about a file or a prim that does not exist."""
_MATERIALS = re.compile(r"Could not open asset @([^@]*\.mtlx)@", re.IGNORECASE)
"""Begin of an error about a MaterialX file, which usd-core of PyPI does not read. It has materials
alone, and none of physics."""
_ASSET = re.compile(r"@([^@]*)@")
_REPORTED = re.compile(r"Could not (open asset|load sublayer)|Unresolved (reference|payload)")


def check_composition(stage: Usd.Stage, file: str, ignore_missing: bool = False) -> list[str]:
    """Raises InputError with the references, payloads and sublayers of a stage that do not compose.

    ignore_missing: a file or prim that does not exist is passed over; the returned warnings name
    each. A MaterialX file that is not read is passed over, as no contact depends on it, and counted
    in a warning. Asset paths are as written in their layers.
    """
    found = stage.GetCompositionErrors()
    materials = {error: match[1] for error in found if (match := _MATERIALS.match(str(error)))}
    errors = [error for error in found if error not in materials]
    passed = [error for error in errors if ignore_missing and isinstance(error, MISSING)]
    written = _written_paths(stage) if errors else {}
    broken = sorted({_text(error, written) for error in errors if error not in passed})
    if broken:
        more = f"; and {len(broken) - NAMED_ERRORS} more" if len(broken) > NAMED_ERRORS else ""
        fix = (
            "put the referenced file beside the scene, or replace the path, as written, with"
            " --asset-map"
        )
        if all(isinstance(error, MISSING) for error in errors):
            fix += "; --ignore-missing leaves it out"
        raise InputError(
            f"the scene does not compose: {'; '.join(broken[:NAMED_ERRORS])}{more}", file, fix
        )
    warnings = [f"left out: {text}" for text in sorted({_text(error, written) for error in passed})]
    if materials:
        names = sorted({os.path.basename(path) for path in materials.values()})
        count = plural(len(names), "MaterialX file")
        warnings.append(f"{count} not read, which affects no contact: {some_names(names)}")
    return warnings


def is_report_of_missing(warning: str) -> bool:
    """Whether a warning of pxr reports a missing file or prim, which `check_composition` names."""
    return _REPORTED.search(warning) is not None


def _text(error: Pcp.ErrorBase, written: dict[str, str]) -> str:
    text = str(error).removesuffix("; skipping.").rstrip(".")
    pointer = next(filter(None, map(pointer_text, _ASSET.findall(text))), "")
    if pointer:
        text += f", which is {pointer}: {FETCH}"
    return _ASSET.sub(lambda match: f"@{written.get(_key(match[1]), match[1])}@", text)


def _written_paths(stage: Usd.Stage) -> dict[str, str]:
    """Asset paths as written in the stage's layers, by the forms that pxr prints: normalized, and
    anchored."""
    paths: dict[str, str] = {}
    for layer in stage.GetUsedLayers():
        folder = os.path.dirname(layer.realPath)
        for path in layer.GetCompositionAssetDependencies():
            paths.setdefault(_key(path), path)
            paths.setdefault(_key(os.path.join(folder, path)), path)
    return paths


def _key(path: str) -> str:
    return os.path.normpath(re.sub("/+", "/", path))
