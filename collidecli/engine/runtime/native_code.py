"""C++ of native functions from the `.h` files beside modules."""

from __future__ import annotations

import os
import re
from functools import cache
from string import Formatter
from typing import Any


@cache
def _sections(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        _, *parts = re.split(r"^// == (\w+)$", file.read(), flags=re.M)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def native(module_file: str, section: str, /, **values: Any) -> str:
    """C++ for `wp.func_native` from the `.h` file beside a module: a section begins with the line
    "// == NAME".

    values: of ${NAME} and ${NAME[k]} in it: numbers, and texts that are C++.
    """

    def written(place: re.Match[str]) -> str:
        value, _ = Formatter().get_field(place[1], (), values)
        value = getattr(value, "value", value)  # of a constant of Warp
        return (
            value
            if isinstance(value, str)
            else repr(value if isinstance(value, int) else float(value))
        )

    return re.sub(
        r"\$\{(.+?)\}", written, _sections(os.path.splitext(module_file)[0] + ".h")[section]
    )
