"""The interface of the result of a scene importer; the asset map, and pairs of links that SRDF disables."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Protocol
from xml.parsers import expat

from collidecli.errors import InputError
from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.texts import did_you_mean

# The option `asset_map`: replacement of the beginning of asset paths.


class AssetMap:
    """Entries `OLD=NEW`; the longest that matches a path applies, and matches whole components of the path only.

    Raises InputError at `location` for an entry of another form.
    """

    def __init__(self, entries: Sequence[str], location: str) -> None:
        assets = [_entry(text, location) for text in entries]
        self._entries = sorted(assets, key=lambda entry: -len(entry[0]))
        self._used: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._entries)

    def replaced(self, path: str) -> str | None:
        """The path with its beginning replaced; None without a match."""
        for old, new in self._entries:
            rest = _under(path, old)
            if rest is not None:
                self._used.add(old)
                return os.path.join(new, rest) if rest else new
        return None

    def warnings(self) -> list[str]:
        """A warning for each entry that no path has matched."""
        return [f"asset map: no asset's path begins with '{old}'" for old, _ in self._entries if old not in self._used]


def _entry(text: str, location: str) -> tuple[str, str]:
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise InputError(f"the asset map has '{text}'", location, "write OLD=NEW: a path prefix and its replacement")
    return old, os.path.abspath(new)


def _under(path: str, old: str) -> str | None:
    """The remainder of a path that begins with the components of `old`; else None."""
    # MuJoCo's parser writes package:// with one slash in MJCF, and unchanged in URDF.
    path, old = (re.sub("/+", "/", text) for text in (path, old))
    if not path.startswith(old):
        return None
    rest = path[len(old) :]
    return rest.lstrip("/\\") if not rest or old[-1] in "/\\" or rest[0] in "/\\" else None


class SceneImport(Protocol):
    """A scene that an importer has added to a model builder.

    files: every file whose content may affect a contact; the scene file first. warnings: for the user, one line each.
    text: the scene, where it is not a file, else empty. left_out: names of geoms that cannot collide and are not in
    the model. kept: by collider, attributes that are read and checked and affect no contact.
    kinematics: of the scene's generalized coordinates, or None. articulated: the joints by name, or None.
    fixed_links: the body of each static shape that has one, both by name.
    """

    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def fixed_links(self) -> Mapping[str, str]: ...
    @property
    def kinematics(self) -> Kinematics | None: ...
    @property
    def articulated(self) -> ArticulatedScene | None: ...

    def motion(self, model: Model) -> Motion | None:
        """The motion that the scene contains, of the bodies of the finalized model; None where it has none."""
        ...


# Reader of SRDF: pairs of a robot's links that are excluded from collision.
#
# expat parses it, as MuJoCo does not, and only the attributes of the collision elements are used. A document type is
# refused, as it can define entities that expand without limit or name other files.

LinkPair = tuple[str, str]


@dataclass
class LinkRules:
    """The collision rules of an SRDF file.

    silent: links that collide with no other link (`disable_default_collisions`). enabled: exceptions from `silent`.
    disabled: excluded pairs, each with its reason; these take precedence. Links of a pair are in alphabetical order.
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
        with open(location, "rb") as file:
            parser.ParseFile(file)
    except OSError as error:
        what = f"the SRDF file cannot be read: {(error.strerror or str(error)).lower()}"
        raise InputError(what, location, "see --disabled-pairs") from error
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

    Of two rules for a pair, the one that names both links is used. shapes_of_link: rows of shapes by link.
    """
    named = [*rules.silent, *(link for pair in (*sorted(rules.enabled), *rules.disabled) for link in pair)]
    unknown = [link for link in dict.fromkeys(named) if link not in shapes_of_link]
    disabled: dict[tuple[int, int], str] = {}

    def disable(first: str, second: str, rule: str) -> None:
        for a, b in product(shapes_of_link.get(first, ()), shapes_of_link.get(second, ())):
            if a != b:
                disabled.setdefault((min(a, b), max(a, b)), rule)

    for (first, second), reason in rules.disabled.items():
        disable(first, second, f"<disable_collisions> of '{first}' and '{second}'" + (f": {reason}" if reason else ""))
    for link in rules.silent:
        for other in shapes_of_link:
            pair = (min(link, other), max(link, other))
            if other != link and pair not in rules.enabled:
                disable(link, other, f"<disable_default_collisions> of '{link}'")
    hints = {link: did_you_mean(link, shapes_of_link, "") for link in unknown}
    shown = [f"'{link}'" + (f"; {hint}" if hint else "") for link, hint in hints.items()]
    return disabled, [f"{rules.path}: the scene has no link {text}" for text in shown]


def shapes_of_prims(body_of: Mapping[str, int], shape_of: Mapping[str, int]) -> dict[str, list[int]]:
    """Rows of the shapes of each body of a stage, by the last path element, or by the path where that is not unique.

    body_of, shape_of: prim path to index. A shape belongs to the nearest body above it.
    """
    last = Counter(path.rpartition("/")[2] for path in body_of)
    name_of = {path: path.rpartition("/")[2] if last[path.rpartition("/")[2]] == 1 else path for path in body_of}
    shapes: dict[str, list[int]] = {name: [] for name in name_of.values()}
    for path, row in shape_of.items():
        owner = path
        while owner and owner not in body_of:
            owner = owner.rpartition("/")[0]
        if owner:
            shapes[name_of[owner]].append(row)
    return shapes
