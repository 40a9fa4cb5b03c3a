"""The order of one pair's contacts, and which of them stay when their number is limited."""

import warp as wp

from collidecli.engine.narrow_phase.staging import StagedContact, Staging, place_of


@wp.func
def swap_rows(out: Staging, i: int, j: int):
    at = place_of(out, i)
    to = place_of(out, j)
    held = out.contact[at]
    out.contact[at] = out.contact[to]
    out.contact[to] = held


@wp.func
def features_before(x: StagedContact, y: StagedContact, swapped: int) -> bool:
    """Whether x's features stand before y's, shape0's first; `swapped` says that b is shape0."""
    first_x = x.feature_a
    second_x = x.feature_b
    first_y = y.feature_a
    second_y = y.feature_b
    if swapped != 0:
        first_x = x.feature_b
        second_x = x.feature_a
        first_y = y.feature_b
        second_y = y.feature_a
    return first_x < first_y or (first_x == first_y and second_x < second_y)


@wp.func
def keep_deepest(out: Staging, row: int, count: int, limit: int) -> int:
    """Moves the `limit` deepest of `count` contacts to the front; of equals the earlier row stays. Returns how many."""
    if limit <= 0 or count <= limit:
        return count
    for kept in range(limit):
        deepest = row + kept
        for i in range(row + kept + 1, row + count):
            if out.contact[place_of(out, i)].separation < out.contact[place_of(out, deepest)].separation:
                deepest = i
        if deepest != row + kept:
            swap_rows(out, row + kept, deepest)
    return limit


@wp.func
def sort_by_features(out: Staging, row: int, count: int, swapped: int):
    """Insertion sort of a pair's contacts by feature0, then feature1."""
    for i in range(row + 1, row + count):
        j = int(i)
        while j > row and features_before(out.contact[place_of(out, j)], out.contact[place_of(out, j - 1)], swapped):
            swap_rows(out, j, j - 1)
            j -= 1
