"""Keys whose equality makes two environments equal: their opinions, composition arcs and scale.

Keys are compared completely: `Texts` numbers each text, so that no hash collision is possible.
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
