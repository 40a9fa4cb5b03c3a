"""The order of one pair's contacts, and which of them stay when their number is limited."""

import warp as wp

from collidecli.engine.narrow_phase.staging import Staging


@wp.func
def swap_rows(out: Staging, i: int, j: int):
    point = out.point[i]
    normal = out.normal[i]
    separation = out.separation[i]
    feature = out.feature[i]
    kind = out.kind[i]
    out.point[i] = out.point[j]
    out.normal[i] = out.normal[j]
    out.separation[i] = out.separation[j]
    out.feature[i] = out.feature[j]
    out.kind[i] = out.kind[j]
    out.point[j] = point
    out.normal[j] = normal
    out.separation[j] = separation
    out.feature[j] = feature
    out.kind[j] = kind


@wp.func
def features_before(out: Staging, i: int, j: int, first: int) -> bool:
    """Whether row i's features stand before row j's; `first` is which of the two is shape0's."""
    if out.feature[i][first] != out.feature[j][first]:
        return out.feature[i][first] < out.feature[j][first]
    return out.feature[i][1 - first] < out.feature[j][1 - first]


@wp.func
def keep_deepest(out: Staging, row: int, count: int, limit: int) -> int:
    """Moves the `limit` deepest of `count` contacts to the front; of equals the earlier row stays. Returns how many."""
    if limit <= 0 or count <= limit:
        return count
    for kept in range(limit):
        deepest = row + kept
        for i in range(row + kept + 1, row + count):
            if out.separation[i] < out.separation[deepest]:
                deepest = i
        if deepest != row + kept:
            swap_rows(out, row + kept, deepest)
    return limit


@wp.func
def sort_by_features(out: Staging, row: int, count: int, first: int):
    """Insertion sort of a pair's contacts by feature0, then feature1."""
    for i in range(row + 1, row + count):
        j = int(i)
        while j > row and features_before(out, j, j - 1, first):
            swap_rows(out, j, j - 1)
            j -= 1
