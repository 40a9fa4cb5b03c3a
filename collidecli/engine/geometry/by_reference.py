"""Kernel arguments passed as arrays of one struct.

A non-inlined Warp function receives a struct by value: a copy of a kilobyte and more for a struct of many arrays. An
array of one struct is passed by address, and `meshes[0].point` reads only the named member.
"""

from __future__ import annotations

from typing import Any

import warp as wp


def by_reference(kind: Any, value: Any, device: wp.Device) -> wp.array:
    """Array with one copy of the struct `value`; later changes of `value` are not in it. Keeps the struct's arrays
    alive.
    """
    result = wp.array([value], dtype=kind, device=device)
    vars(result)["held"] = value
    return result


def referenced(array: wp.array) -> Any:
    """The struct of which `by_reference` copied the array's element."""
    return vars(array)["held"]
