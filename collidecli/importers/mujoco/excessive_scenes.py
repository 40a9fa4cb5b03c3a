"""Refuses MJCF and URDF files that expand to a scene of excessive size, before MuJoCo reads
them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from collidecli.errors import InputError
from collidecli.importers.mujoco.scene_files import FILE_ELEMENTS, file_of, files_named
from collidecli.importers.mujoco.xml_elements import Element, elements_of, values_of

MOST_COPIES = 100_000
"""Of one element: MuJoCo's time grows with the square, to ten minutes for this number."""
MOST_BODIES = 50_000
"""Bodies of MJCF and links of URDF in all files of a scene, with copies: MuJoCo's time grows with
the square, from 12 s for 4,000 links to half an hour for this number."""
MOST_GEOMS = 100_000
"""Geoms of MJCF, collisions and visuals of URDF, as bodies: 20,000 take 15 s, 50,000 71 s."""
MOST_ELEMENTS = 1_000_000
"""Elements of any kind, as bodies."""
MOST_VALUES = 1_000_000
"""Of keyframes, and of user values of one element."""
MOST_ATTRIBUTES = 1000
"""Of one element: MuJoCo's reader compares each attribute with all others."""
MOST_PIXELS = 1 << 28
"""Of a heightfield or a procedural texture: one gigabyte."""
_SIZES = re.compile(r"nkey|nuser_\w+|nrow|ncol|width|height")
_WHOLE = re.compile(r"\+?0*([0-9]{1,19})")
_SIZED = (b"size", b"hfield", b"texture")
_COUNTED = (b"replicate", b"flexcomp", b"composite")
_COUNT = {b"flexcomp": "10 10 10"}
"""Counts of elements without the attribute."""
_BODIES = (b"body", b"link")
_GEOMS = (b"geom", b"collision", b"visual")
_UNNAMED = "MuJoCo Model"
"""MuJoCo's name of a scene without a name."""


@dataclass
class _Contents:
    """What one file has, copies included.

    model: name of its scene. found: numbers of bodies, geoms and elements. included: numbers of
    copies of the files of `include`, by their names. models: names of attached scenes, "" without
    one, and of their files. attached: numbers of copies, by the names of the scenes.
    """

    model: str = _UNNAMED
    found: Counter[str] = field(default_factory=Counter)
    included: Counter[str] = field(default_factory=Counter)
    models: list[tuple[str, str]] = field(default_factory=list)
    attached: Counter[str] = field(default_factory=Counter)


def refuse_excessive_scene(texts: Mapping[str, bytes], location: str) -> None:
    """Raises InputError for an element with too many copies, values, pixels or attributes, and
    where all files of a scene have too many bodies, geoms or elements.

    texts: contents of the scene's files by their absolute paths, its own first. location: name of
    its own file, or of its text, in errors.
    """
    own = next(iter(texts))
    contents = {
        file: _contents_of(text, location if file == own else file) for file, text in texts.items()
    }
    # Numbers and attached files of each scene. Scenes that attach each other are left to MuJoCo.
    scenes: dict[str, tuple[Counter[str], Counter[str]]] = {}

    def attached(file: str) -> Iterable[str]:
        scenes[file] = _scene_of(file, contents)
        return scenes[file][1]

    copies = Counter({own: 1})
    found: Counter[str] = Counter()
    limits = {"bodies": MOST_BODIES, "geoms": MOST_GEOMS, "elements": MOST_ELEMENTS}
    for file in _each_before_its_own(own, attached):
        in_scene, in_files = scenes[file]
        for other, count in in_files.items():
            copies[other] += copies[file] * count
        for what, most in limits.items():
            found[what] += copies[file] * in_scene[what]
            if found[what] > most:
                fix = f"at most {most:,}: split it into several scenes"
                raise InputError(
                    f"the scene has {found[what]:,} {what}, with copies", location, fix
                )


def _contents_of(text: bytes, location: str) -> _Contents:
    """The contents of a file. Raises InputError for an element that exceeds a limit."""
    contents = _Contents()
    found = contents.found
    copies = [1]
    for element in elements_of(text):
        name = element.name
        if element.is_end:
            if name == b"replicate" and len(copies) > 1:
                copies.pop()
            continue
        if element.attributes.count(b"=") > MOST_ATTRIBUTES:
            _refuse_attributes(element, location)
        found["elements"] += copies[-1]
        if name in _BODIES:
            found["bodies"] += copies[-1]
        elif name in _GEOMS:
            found["geoms"] += copies[-1]
        elif name in _SIZED:
            _refuse_sizes(element, location)
        elif name in FILE_ELEMENTS or name in (b"attach", b"mujoco"):
            _add_file(contents, element, copies[-1])
        elif name in _COUNTED:
            count = _copies_of(element, copies[-1], location)
            if name != b"replicate":
                found["elements"] += count
                found["bodies"] += count if _has_bodies(element) else 0
            elif not element.is_empty:
                copies.append(count)
    return contents


def _add_file(contents: _Contents, element: Element, copies: int) -> None:
    """Adds what an element tells of the scene's name and of other files."""
    values = values_of(element.attributes)
    if element.name == b"mujoco":
        contents.model = values.get("model", contents.model)
    elif element.name == b"attach":
        contents.attached[values.get("model", "")] += copies
    elif element.name == b"include":
        contents.included[file_of(values)] += copies
    else:
        contents.models.append((values.get("name", ""), file_of(values)))


def _scene_of(own: str, contents: Mapping[str, _Contents]) -> tuple[Counter[str], Counter[str]]:
    """The numbers of bodies, geoms and elements of a file with those that it includes; the numbers
    of copies of the files that it attaches. A file that is included twice is refused by MuJoCo."""
    found: Counter[str] = Counter()
    attached: Counter[str] = Counter()
    models: list[tuple[str, str]] = []
    seen = {own}
    pending = [(own, 1)]
    while pending:
        file, copies = pending.pop()
        of_file = contents[file]
        for what, count in of_file.found.items():
            found[what] += copies * count
        for name, count in of_file.attached.items():
            attached[name] += copies * count
        for element, name, other in (
            *(("include", "", name) for name in of_file.included),
            *(("model", *model) for model in of_file.models),
        ):
            paths = files_named(other, element == "include", file, own) if other else []
            path = next((path for path in paths if path in contents), None)
            if path is None:
                continue
            if element == "model":
                models.append((name or contents[path].model, path))
            elif path not in seen:
                seen.add(path)
                pending.append((path, copies * of_file.included[other]))
    in_files: Counter[str] = Counter()
    for name, path in models:
        in_files[path] += max(attached[name], 1)
    return found, in_files


def _each_before_its_own(first: str, attached: Callable[[str], Iterable[str]]) -> list[str]:
    """Files in an order in which each is before those that it attaches, where no file attaches
    itself."""
    order: list[str] = []
    seen = {first}
    pending = [(first, iter(attached(first)))]
    while pending:
        file, others = pending[-1]
        other = next((other for other in others if other not in seen), None)
        if other is None:
            order.append(file)
            pending.pop()
        else:
            seen.add(other)
            pending.append((other, iter(attached(other))))
    return order[::-1]


def _refuse_attributes(element: Element, location: str) -> None:
    attributes = len(values_of(element.attributes))
    if attributes > MOST_ATTRIBUTES:
        name = element.name[:60].decode("utf-8", "replace")
        what = f"<{name}> has {attributes} attributes"
        raise InputError(what, location, f"at most {MOST_ATTRIBUTES:,}")


def _refuse_sizes(element: Element, location: str) -> None:
    sizes = {
        name: number
        for name, value in values_of(element.attributes).items()
        if _SIZES.fullmatch(name) and (number := _whole(value.strip())) is not None
    }
    if element.name == b"size":
        for name, number in sizes.items():
            if number > MOST_VALUES:
                what = f"<size> has {name}={number}"
                raise InputError(what, location, f"at most {MOST_VALUES:,}")
    elif math.prod(sizes.values()) > MOST_PIXELS:
        shown = " ".join(f"{name}={number}" for name, number in sizes.items())
        what = f"<{element.name.decode()}> has {shown}"
        raise InputError(what, location, f"at most {MOST_PIXELS:,} in all")


def _copies_of(element: Element, copies: int, location: str) -> int:
    """The number of copies that an element stands for, itself in a number of copies. Raises
    InputError for too many."""
    given = values_of(element.attributes).get("count", _COUNT.get(element.name, ""))
    # 1 without a number, which MuJoCo reports.
    copies *= math.prod(max(1, _whole(word) or 1) for word in given.split())
    if copies > MOST_COPIES:
        what = f"<{element.name.decode()}> stands for {copies:.3g} copies"
        raise InputError(what, location, f"at most {MOST_COPIES:,}")
    return copies


def _has_bodies(element: Element) -> bool:
    """Whether each vertex of a flexcomp, or element of a composite, is a body."""
    values = values_of(element.attributes)
    return values.get("rigid") != "true" and values.get("dof") not in ("trilinear", "quadratic")


def _whole(word: str) -> int | None:
    number = _WHOLE.fullmatch(word)
    return None if number is None else int(number[1])
