"""Refuses MJCF and URDF files that expand to a scene of excessive size, before MuJoCo reads
them."""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from collidecli.errors import InputError

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
_SIZED = re.compile(rb"""<(size|hfield|texture)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_SIZE = re.compile(rb"""\b(nkey|nuser_\w+|nrow|ncol|width|height)\s*=\s*["']\s*(\d{1,19})\s*["']""")
_COUNTED = re.compile(rb"""<(/?)(replicate|flexcomp|composite)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_COUNT = re.compile(rb"""\bcount\s*=\s*["']([^"']*)["']""")
_BODY = re.compile(rb"<(?:body|link)[\s/>]")
_GEOM = re.compile(rb"<(?:geom|collision|visual)[\s/>]")
_FILED = re.compile(rb"""<(include|model|attach)\b((?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_NAMED = re.compile(rb"""\b(file|name|model)\s*=\s*["']([^"']*)["']""")
_COMMENT = re.compile(rb"<!--.*?-->", re.S)


def refuse_excessive_scene(text: bytes, location: str) -> None:
    """Raises InputError for elements with too many copies, values, pixels or attributes."""
    text = _COMMENT.sub(b"", text)
    if max(part.count(b"=") for part in text.split(b"<")) > MOST_ATTRIBUTES:
        for part in text.split(b"<"):
            attributes = len(re.findall(rb"""[\w:.-]+\s*=\s*["']""", part))
            if attributes > MOST_ATTRIBUTES:
                name = part.split()[0][:60].decode("utf-8", "replace")
                raise InputError(
                    f"<{name}> has {attributes} attributes",
                    location,
                    f"at most {MOST_ATTRIBUTES:,}",
                )
    for element, attributes in _SIZED.findall(text):
        sizes = {name.decode(): int(number) for name, number in _SIZE.findall(attributes)}
        if element == b"size":
            for name, number in sizes.items():
                if number > MOST_VALUES:
                    raise InputError(
                        f"<size> has {name}={number}", location, f"at most {MOST_VALUES:,}"
                    )
        elif math.prod(sizes.values()) > MOST_PIXELS:
            shown = " ".join(f"{name}={number}" for name, number in sizes.items())
            raise InputError(
                f"<{element.decode()}> has {shown}", location, f"at most {MOST_PIXELS:,} in all"
            )
    for _ in _copied_parts(text, location):
        pass


def refuse_excessive_files(texts: Sequence[tuple[str, bytes]], location: str) -> None:
    """Raises InputError where all files of a scene have too many bodies, geoms or elements.

    texts: file names and contents, the scene's first and each before those that it includes.
    """
    copies = Counter({os.path.basename(texts[0][0]): 1})
    found: Counter[str] = Counter()
    for file, text in texts:
        text = _COMMENT.sub(b"", text)
        of_file = max(copies[os.path.basename(file)], 1)
        attached: Counter[bytes] = Counter()
        models: dict[bytes, str] = {}
        for of_part, part in _copied_parts(text, file):
            count = of_file * of_part
            found["elements"] += count * (part.count(b"<") - part.count(b"</"))
            found["bodies"] += count * len(_BODY.findall(part))
            found["geoms"] += count * len(_GEOM.findall(part))
            for element, attributes in _FILED.findall(part):
                named = dict(_NAMED.findall(attributes))
                name = os.path.basename(named.get(b"file", b"").decode("utf-8", "replace"))
                if element == b"include":
                    copies[name] += count
                elif element == b"attach":
                    attached[named.get(b"model", b"")] += count
                else:
                    models[named.get(b"name", b"")] = name
        for model, name in models.items():
            copies[name] += max(attached[model], 1) if model else max(attached.total(), 1)
        limits = {"bodies": MOST_BODIES, "geoms": MOST_GEOMS, "elements": MOST_ELEMENTS}
        for what, most in limits.items():
            if found[what] > most:
                fix = f"at most {most:,}: split it into several scenes"
                raise InputError(
                    f"the scene has {found[what]:,} {what}, with copies", location, fix
                )


def _copied_parts(text: bytes, location: str) -> Iterator[tuple[int, bytes]]:
    """The parts of a text between elements that copy, with their numbers of copies. Raises
    InputError for an element with too many."""
    open_counts: list[int] = []
    start = 0
    for match in _COUNTED.finditer(text):
        yield math.prod(open_counts), text[start : match.end()]
        start = match.end()
        close, name, attributes = match.groups()
        if close:
            if name == b"replicate" and open_counts:
                open_counts.pop()
            continue
        # 1 without a number, which MuJoCo reports.
        given = _COUNT.search(attributes)
        words = given[1].split() if given else []
        count = math.prod(max(1, int(word)) for word in words if word.isdigit() and len(word) < 20)
        copies = math.prod(open_counts) * count
        if copies > MOST_COPIES:
            raise InputError(
                f"<{name.decode()}> stands for {copies:.3g} copies",
                location,
                f"at most {MOST_COPIES:,}",
            )
        if name == b"replicate":
            if not attributes.endswith(b"/"):
                open_counts.append(count)
        else:
            yield copies, b"<%s>" % name
    yield math.prod(open_counts), text[start:]
