"""Arrays on a device: of values, and of one struct as an argument of kernels.

A non-inlined Warp function receives a struct by value: a copy of a kilobyte and more for a struct
of many arrays. An array of one struct is passed by address, and `meshes[0].point` reads only the
named member.
"""

from typing import Any

import numpy as np
import warp as wp


def by_reference(kind: Any, values: list[Any], device: wp.Device) -> wp.array:
    """Array with copies of structs, which later changes of `values` do not change. Keeps the
    structs' arrays alive."""
    result = wp.array(values, dtype=kind, device=device)
    vars(result)["held"] = values
    return result


def device_array(values: np.ndarray, dtype: Any, device: wp.Device) -> wp.array:
    """Array of values on a device; of none, one unused element: Warp passes no array of length zero
    by pointer."""
    filled = values if len(values) else np.zeros((1, *values.shape[1:]), values.dtype)
    return wp.array(np.ascontiguousarray(filled), dtype=dtype, device=device)


def referenced(array: wp.array) -> Any:
    """The struct of which `by_reference` copied the array's only element."""
    return vars(array)["held"][0]
