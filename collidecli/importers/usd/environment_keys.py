"""What two environments must agree in to be the same: opinions of their own, arcs to other places, scale.

Keys are compared as a whole: a text is numbered by `Texts`, never hashed to something that two could share.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import re
from collections.abc import Hashable

import numpy as np
from pxr import Pcp, Sdf, Usd

from collidecli.importers.usd.environments import upwards

DIGITS = 10
"""Scales that agree to so many digits are one: what is left of a rotation is 1 to rounding, 1e-16."""

PLACING = re.compile(r"^    (?:custom )?(?:uniform )?[\w\[\]]+ xformOp(?:Order|:[\w:]+) = .*\n", re.MULTILINE)
"""A line of a root's own transform; lines of prims below it are indented further."""

NUMBERING = re.compile(r"^ *custom \w+ physics:newton:\w+ = \d+\n", re.MULTILINE)
"""A line in which Kit numbers what it has handed to Newton, through all environments: nothing here reads it."""

NAME = re.compile(r'^(\w+(?: \w+)?) "[^"\n]*"')


PRIM = re.compile(r"[^.{\[]*")
"""The part of a path that names a prim."""

PATH = re.compile(r"<(/[^<>\n]*)>")
"""A path in a layer's text."""

Texts = dict[str, int]
"""Every different text met so far, and its number."""


def scale_keys(scale: np.ndarray) -> list[Hashable]:
    """What of each root's transform is no motion, [n, 3, 3], to DIGITS relative to its largest entry."""
    largest = np.abs(scale).max(axis=(1, 2))
    relative = np.round(scale / largest[:, None, None], DIGITS) + 0.0  # -0.0 is 0.0 then
    return [(f"{size:.{DIGITS - 1}e}", held.tobytes()) for size, held in zip(largest, relative, strict=True)]


def index_key(prim: Usd.Prim, names: dict[str, str], texts: Texts) -> Hashable:
    """All that decides what an environment is composed of, its root's placing apart.

    Prims whose keys are equal have the same content: the composition of what is below a prim depends on the tree of
    arcs of its index and on the specs at the places that these lead to. A place outside is named; of a place that is
    the environment's own, what stands there is told. names: what to call paths that are its own in its own words.
    texts: of all environments that are compared.
    """
    index = prim.GetPrimIndex()
    return str(prim.GetTypeName()), _node_key(index.rootNode, str(prim.GetPath()), names, texts)


def _node_key(node: Pcp.NodeRef, root: str, names: dict[str, str], texts: Texts) -> Hashable:
    stack, path = node.layerStack, node.path
    place: Hashable
    if node.IsRootNode() or node.IsDueToAncestor():
        own = {str(path): names[root], **names}
        place = tuple(
            (layer.identifier, _relocated(layer) and root, spec and texts.setdefault(text_key(spec, own), len(texts)))
            for layer in stack.layers
            for spec in (layer.GetPrimAtPath(path),)
        )
    else:
        place = (
            *((layer.identifier, _relocated(layer) and root) for layer in stack.layers),
            _renamed(f"<{path}>", names),
        )
    offset = node.mapToParent.timeOffset
    children = tuple(_node_key(child, root, names, texts) for child in node.children)
    return str(node.arcType), place, (offset.offset, offset.scale), children


def _relocated(layer: Sdf.Layer) -> bool:
    """Relocations say elsewhere what is moved into an environment: one in such a layer is like no other."""
    return layer.pseudoRoot.HasInfo("layerRelocates")


def text_key(spec: Sdf.PrimSpec, names: dict[str, str]) -> str:
    """A root's spec and all below it as text, without its name, placing and numbering; own paths by their names."""
    text = NAME.sub(r'\1 ""', spec.GetAsText(), count=1)
    # Where the placing was all that a root said, an empty line is left before its children.
    text = NUMBERING.sub("", PLACING.sub("", text))
    return _renamed(text.replace("\n{\n\n", "\n{\n", 1), names)


def _renamed(text: str, names: dict[str, str]) -> str:
    """Paths in text, which stand between < and >, that are among `names` or below one of them, called by these."""

    def renamed(match: re.Match[str]) -> str:
        path = match[1]
        prim = PRIM.match(path)[0]  # type: ignore[index]
        own = next((above for above in upwards(prim) if above in names), "")
        return f"<{names[own]}{path[len(own) :]}>" if own else match[0]

    return PATH.sub(renamed, text)
