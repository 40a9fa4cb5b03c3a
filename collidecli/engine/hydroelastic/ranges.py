"""Searches in lists that are ordered by pair."""

from __future__ import annotations

from typing import Any

import warp as wp


@wp.func
def range_with(end: wp.array[wp.int32], count: int, index: int) -> int:
    """The range that contains an index, where end[k] is the end of range k."""
    low = int(0)
    high = count
    while low < high:
        middle = (low + high) // 2
        if end[middle] <= index:
            low = middle + 1
        else:
            high = middle
    return low


@wp.func
def start_of(end: wp.array[wp.int32], index: int) -> int:
    """Start of a range, where end[k] is the end of range k."""
    if index > 0:
        return end[index - 1]
    return 0


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
