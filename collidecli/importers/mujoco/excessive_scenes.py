"""Refuses MJCF files whose small text expands to a scene of excessive size, before MuJoCo reads
them."""

from __future__ import annotations

import math
import re

from collidecli.errors import InputError

MOST_COPIES = 100_000
"""Of one element: MuJoCo's time grows with the square, to ten minutes for this number."""
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
    open_counts: list[int] = []
    for close, name, attributes in _COUNTED.findall(text):
        if close:
            if name == b"replicate" and open_counts:
                open_counts.pop()
            continue
        # 1 without a number, which MuJoCo reports.
        match = _COUNT.search(attributes)
        words = match[1].split() if match else []
        count = math.prod(max(1, int(word)) for word in words if word.isdigit() and len(word) < 20)
        copies = math.prod(open_counts) * count
        if copies > MOST_COPIES:
            raise InputError(
                f"<{name.decode()}> stands for {copies:.3g} copies",
                location,
                f"at most {MOST_COPIES:,}",
            )
        if name == b"replicate" and not attributes.endswith(b"/"):
            open_counts.append(count)
