"""Searches in lists that are ordered by pair."""

from __future__ import annotations

from typing import Any

import warp as wp


@wp.func
def first_of_pair(item: wp.array[Any], count: int, pair: int) -> int:
    """Number of items of earlier pairs in a list of structs ordered by their member `pair`."""
    low = int(0)
    high = count
    while low < high:
        middle = (low + high) // 2
        if item[middle].pair < pair:
            low = middle + 1
        else:
            high = middle
    return low
