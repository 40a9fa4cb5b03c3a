"""Edits of a stage on its session layer, which change no file: variant selections, instances made editable."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re
from collections.abc import Iterable

from pxr import Sdf, Usd

from collidecli.errors import InputError

NAMED_PRIMS = 10
"""Maximum number of prims with variants in one message."""

HOW_TO_SELECT = "write --variants PRIM:SET=VALUE, as in /robot:gripper=closed"


def select_variants(stage: Usd.Stage, variants: Iterable[str], file: str) -> None:
    """Selects variants, each `prim:set=value`, in order: a later prim may exist only in an earlier variant.

    Raises InputError for another form, for one that is given twice, or whose prim, set or value does not exist.
    """
    chosen: dict[tuple[str, str], str] = {}
    for text in variants:
        parts = re.fullmatch(r"(/[^:=]*):([^=]+)=(.+)", text)
        if not parts or not Sdf.Path.IsValidPathString(parts[1]):
            raise InputError(f"the variant '{text}' is not PRIM:SET=VALUE", "--variants", HOW_TO_SELECT)
        path, name, value = parts.groups()
        if (path, name) in chosen:
            raise InputError(f"'{path}:{name}' is given twice", "--variants", "select one value of a variant set")
        chosen[path, name] = value
        prim = editable(stage, path)
        if not prim:
            raise InputError(f"--variants names <{path}>, which does not exist", file, _known_prims(stage))
        sets = prim.GetVariantSets()
        if name not in sets.GetNames():
            known = ", ".join(sets.GetNames()) or "none"
            raise InputError(f"the prim has no variant set '{name}'", f"{file} <{path}>", f"its variant sets: {known}")
        values = sets.GetVariantSet(name).GetVariantNames()
        if value not in values:
            known = ", ".join(values) or "none"
            raise InputError(
                f"the variant set '{name}' has no variant '{value}'", f"{file} <{path}>", f"its variants: {known}"
            )
        Sdf.CreatePrimInLayer(stage.GetSessionLayer(), path).variantSelections[name] = value


def editable(stage: Usd.Stage, path: str, below: bool = False) -> Usd.Prim:
    """A prim that the session layer can edit: instances above it are made non-instanceable; an invalid prim if none.

    Opinions below an instanceable prim have no effect; its prims and paths do not depend on instancing.
    below: make the prims below it editable too.
    """
    prim = stage.GetPrimAtPath(path)
    while prim and (prim.IsInstanceProxy() or (below and prim.IsInstance())):
        above = prim
        while not above.IsInstance() or above.IsInstanceProxy():
            above = above.GetParent()
        Sdf.CreatePrimInLayer(stage.GetSessionLayer(), above.GetPath()).SetInfo("instanceable", False)
        prim = stage.GetPrimAtPath(path)
    return prim


def _known_prims(stage: Usd.Stage) -> str:
    every = Usd.PrimRange.Stage(stage, Usd.TraverseInstanceProxies(Usd.PrimAllPrimsPredicate))
    known = [str(prim.GetPath()) for prim in every if prim.HasVariantSets()]
    if not known:
        return "the scene has no variants: remove the option"
    more = f" and {len(known) - NAMED_PRIMS} more" if len(known) > NAMED_PRIMS else ""
    return f"prims with variants: {', '.join(known[:NAMED_PRIMS])}{more}"
