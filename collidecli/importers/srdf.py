"""Reader of SRDF: pairs of a robot's links that are excluded from collision.

expat parses it, as MuJoCo does not, and only the attributes of the collision elements are used. A
document type is refused, as it can define entities that expand without limit or name other files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from xml.parsers import expat

from collidecli.errors import InputError
from collidecli.storage.regular_files import open_input
from collidecli.wording import did_you_mean

LinkPair = tuple[str, str]


@dataclass
class LinkRules:
    """The collision rules of an SRDF file.

    silent: links that collide with no other link (`disable_default_collisions`). enabled:
    exceptions from `silent`. disabled: excluded pairs, each with its reason; these take precedence.
    Links of a pair are in alphabetical order.
    """

    path: str
    silent: dict[str, None] = field(default_factory=dict)
    enabled: set[LinkPair] = field(default_factory=set)
    disabled: dict[LinkPair, str] = field(default_factory=dict)


def read_srdf(path: str | os.PathLike[str]) -> LinkRules:
    """The rules of an SRDF file. Raises InputError with the line for a file that is not SRDF."""
    location = os.fspath(path)
    rules = LinkRules(location)
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        where = f"{location}: line {parser.CurrentLineNumber}, <{name}>"
        if not rules_seen and name != "robot":
            what = f"is not SRDF: its root element is <{name}>"
            raise InputError(what, location, "give a file with the root <robot>")
        rules_seen.append(name)
        if name == "disable_default_collisions":
            rules.silent[_attribute(attributes, "link", where)] = None
        elif name in ("enable_collisions", "disable_collisions"):
            first, second = sorted(_attribute(attributes, key, where) for key in ("link1", "link2"))
            if name == "enable_collisions":
                rules.enabled.add((first, second))
            else:
                rules.disabled[first, second] = attributes.get("reason", "")

    def refuse_doctype(*_: object) -> None:
        what = "has a document type, which is not read"
        raise InputError(what, f"{location}: line {parser.CurrentLineNumber}", "remove <!DOCTYPE>")

    rules_seen: list[str] = []
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = refuse_doctype
    try:
        with open_input(location) as file:
            parser.ParseFile(file)
    except OSError as error:
        what = f"the SRDF file cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(
            what, location, "see docs/reference/urdf.md for the file of --disabled-pairs"
        ) from error
    except (expat.ExpatError, LookupError, ValueError) as error:
        # The last two: the declared encoding is unknown to Python, or the text is not in it.
        raise InputError(f"is not XML: {error}", location, "give an SRDF file") from error
    return rules


def _attribute(attributes: Mapping[str, str], name: str, where: str) -> str:
    if not attributes.get(name):
        raise InputError(f"has no attribute '{name}'", where, "name the link")
    return attributes[name]


def disabled_pairs(
    rules: LinkRules, shapes_of_link: Mapping[str, Sequence[int]]
) -> tuple[dict[tuple[int, int], str], list[str]]:
    """Excluded pairs of shapes, lower row first, each with its rule, and warnings of unknown links.

    Of two rules for a pair, the one that names both links is used. shapes_of_link: rows of shapes
    by link.
    """
    named = [
        *rules.silent,
        *(link for pair in (*sorted(rules.enabled), *rules.disabled) for link in pair),
    ]
    unknown = [link for link in dict.fromkeys(named) if link not in shapes_of_link]
    disabled: dict[tuple[int, int], str] = {}

    def disable(first: str, second: str, rule: str) -> None:
        for a, b in product(shapes_of_link.get(first, ()), shapes_of_link.get(second, ())):
            if a != b:
                disabled.setdefault((min(a, b), max(a, b)), rule)

    for (first, second), reason in rules.disabled.items():
        disable(
            first,
            second,
            f"<disable_collisions> of '{first}' and '{second}'" + (f": {reason}" if reason else ""),
        )
    for link in rules.silent:
        for other in shapes_of_link:
            pair = (min(link, other), max(link, other))
            if other != link and pair not in rules.enabled:
                disable(link, other, f"<disable_default_collisions> of '{link}'")
    hints = {link: did_you_mean(link, shapes_of_link, "") for link in unknown}
    shown = [f"'{link}'" + (f"; {hint}" if hint else "") for link, hint in hints.items()]
    return disabled, [f"{rules.path}: the scene has no link {text}" for text in shown]
