"""Settings of MJCF that older versions of MuJoCo read, and the installed one refuses."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from collidecli.importers.mujoco.xml_elements import elements_of, values_of

ANY = None
WITHOUT_EFFECT: Mapping[tuple[str, str], frozenset[str] | None] = {
    ("option", "apirate"): ANY,
    ("option", "mpr_iterations"): ANY,
    ("option", "mpr_tolerance"): ANY,
    ("option", "collision"): frozenset({"all"}),
    ("compiler", "convexhull"): ANY,
    ("compiler", "exactmeshinertia"): frozenset({"false"}),
    ("contact", "internal"): ANY,
    ("flag", "passive"): ANY,
    ("flag", "sensornoise"): ANY,
    ("flag", "solverstat"): ANY,
}
"""Values of attributes on which no contact depends, by element and attribute; ANY: all values.

Meshes without a hull collided by their vertices, whose hull is equal. `internal` is of constraints
inside an element of a flex, not of contacts between two objects.
"""
REMEDIES = {
    ("composite", ""): "MuJoCo has no <composite> from version 4 on: load the scene with MuJoCo 3,"
    " save it with mujoco.mj_saveLastXML, and delete <extension> and each <plugin> of elasticity",
    ("option", "collision"): 'delete it: with "predefined" also give every geom contype="0"'
    ' conaffinity="0", so that the pairs of <contact> alone are left, and with "dynamic" delete'
    " these pairs",
    ("compiler", "exactmeshinertia"): 'delete it, and give each mesh inertia="exact"',
}
"""What to do about other values, which change geometry or filters, and about an element, whose
attribute is ""."""
OTHERS = "correct the file; a part of a scene is read with the scene that includes it"
_UNRECOGNIZED = re.compile(
    r"unrecognized (?:attribute: '(?P<attribute>[^']*)'|element) Element '(?P<element>[^']*)'"
)


def refuses_attribute(message: str) -> bool:
    """Whether a message of MuJoCo's parser is about an attribute that it does not know."""
    found = _UNRECOGNIZED.search(message)
    return found is not None and found["attribute"] is not None


def remedy(message: str) -> str | None:
    """What to do about the attribute or element that a message of MuJoCo's parser refuses; None
    for another message."""
    found = _UNRECOGNIZED.search(message)
    if found is None:
        return None
    of_others = None if found["attribute"] else OTHERS
    return REMEDIES.get((found["element"], found["attribute"] or ""), of_others)


def without_obsolete(text: bytes) -> tuple[bytes, list[str]]:
    """A text of MJCF with spaces in place of the attributes of WITHOUT_EFFECT, so that lines keep
    their numbers; the names of these attributes, with their elements."""
    blanked = bytearray(text)
    names = []
    known = {element for element, _ in WITHOUT_EFFECT}
    for element in elements_of(text):
        owner = element.name.decode("utf-8", "replace")
        if owner not in known:
            continue
        for attribute, value in values_of(element.attributes).items():
            if not _has_no_effect(owner, attribute, value):
                continue
            start = text.index(element.attributes, element.start)
            pattern = rb"""(?<=\s)%s\s*=\s*(?:"[^"]*"|'[^']*')""" % re.escape(attribute.encode())
            for found in re.finditer(pattern, element.attributes):
                blanked[start + found.start() : start + found.end()] = b" " * len(found[0])
            names.append(f"{attribute} of <{owner}>")
    return bytes(blanked), names


def _has_no_effect(element: str, attribute: str, value: str) -> bool:
    key = element, attribute
    if key not in WITHOUT_EFFECT:
        return False
    values = WITHOUT_EFFECT[key]
    return values is None or value.strip() in values


def removal_note(names: Iterable[str], version: str) -> str:
    """The warning about removed settings. names: of `without_obsolete`, of all files."""
    shown = [name if n == 1 else f"{name} ({n})" for name, n in Counter(names).items()]
    return (
        f"removed, as MuJoCo {version} no longer reads it and it affects no contact:"
        f" {', '.join(shown)}"
    )
