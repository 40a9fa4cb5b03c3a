"""Large structs for kernels, by reference.

A function that is not inlined gets its own copy of a struct, a kilobyte and more where that holds many arrays. Of an
array of one struct it gets the address, and `meshes[0].point` reads what it names alone.
"""

from __future__ import annotations

from typing import Any

import warp as wp


def by_reference(kind: Any, value: Any, device: wp.Device) -> wp.array:
    """An array of one struct, as it is now: later changes of `value` are not in it. Keeps its arrays alive."""
    result = wp.array([value], dtype=kind, device=device)
    vars(result)["held"] = value
    return result
