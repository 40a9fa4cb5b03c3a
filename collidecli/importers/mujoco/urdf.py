"""What is URDF's own where MuJoCo reads it: how it is told from MJCF, and what its shapes are called."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import re
from collections import Counter

import mujoco

_PROLOG = re.compile(rb"\s*(?:\xef\xbb\xbf|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*>|\s+)*", re.S)


def is_urdf(text: bytes) -> bool:
    """Whether the root element of an XML text is `robot`."""
    start = _PROLOG.match(text)
    return start is not None and re.match(rb"<robot[\s>/]", text[start.end() :]) is not None


def urdf_shape_names(mj_model: mujoco.MjModel) -> list[str]:
    """A name for each geom of a URDF scene: that of its collision element, or `<link>/collision#<k>`.

    k counts the link's collision elements from 0, the named ones too. Visual elements, if MuJoCo kept them, are
    `<link>/visual#<k>`.
    """
    seen: Counter[tuple[int, str]] = Counter()
    names = []
    for geom in range(mj_model.ngeom):
        body = int(mj_model.geom_bodyid[geom])
        kind = "collision" if mj_model.geom_contype[geom] or mj_model.geom_conaffinity[geom] else "visual"
        names.append(mj_model.geom(geom).name or f"{mj_model.body(body).name}/{kind}#{seen[body, kind]}")
        seen[body, kind] += 1
    return names
