"""The order of one pair's contacts, and which of them stay when their number is limited.

A pair's contacts stand at first, first + stride, first + 2 stride, ... in the staging.
"""

import warp as wp

from collidecli.engine.contact_buffer import ContactRecord


@wp.func
def swap_contacts(contact: wp.array[ContactRecord], i: int, j: int):
    """Exchanges two contacts."""
    held = contact[i]
    contact[i] = contact[j]
    contact[j] = held


@wp.func
def features_before(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Whether x's features stand before y's, shape0's first; `swapped` says that b is shape0."""
    first_x = x.feature_a
    second_x = x.feature_b
    first_y = y.feature_a
    second_y = y.feature_b
    if swapped:
        first_x = x.feature_b
        second_x = x.feature_a
        first_y = y.feature_b
        second_y = y.feature_a
    return first_x < first_y or (first_x == first_y and second_x < second_y)


@wp.func
def is_deeper(x: ContactRecord, y: ContactRecord, swapped: bool) -> bool:
    """Whether x's separation is less than y's; of equal ones, whether its features stand before."""
    if x.separation != y.separation:
        return x.separation < y.separation
    return features_before(x, y, swapped)


@wp.func
def deepest_to_front(contact: wp.array[ContactRecord], first: int, stride: int, found: int, kept: int, swapped: bool):
    """Moves the `kept` deepest of `found` contacts to the front; of equals those whose features stand before."""
    for i in range(kept):
        deepest = int(i)
        for j in range(i + 1, found):
            if is_deeper(contact[first + j * stride], contact[first + deepest * stride], swapped):
                deepest = j
        if deepest != i:
            swap_contacts(contact, first + i * stride, first + deepest * stride)


@wp.func
def sort_by_features(contact: wp.array[ContactRecord], first: int, stride: int, count: int, swapped: bool):
    """Insertion sort of a pair's contacts by feature0, then feature1."""
    for i in range(1, count):
        for back in range(i):
            j = first + (i - back) * stride
            if not features_before(contact[j], contact[j - stride], swapped):
                break
            swap_contacts(contact, j, j - stride)


@wp.func
def sink_by_features(contact: wp.array[ContactRecord], first: int, stride: int, root: int, count: int, swapped: bool):
    """Restores a heap, the last on top, below one place."""
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        beside = wp.min(child + 1, count - 1)
        if features_before(contact[first + child * stride], contact[first + beside * stride], swapped):
            child = beside
        if not features_before(contact[first + at * stride], contact[first + child * stride], swapped):
            return
        swap_contacts(contact, first + at * stride, first + child * stride)
        at = child


@wp.func
def sort_many_by_features(contact: wp.array[ContactRecord], first: int, stride: int, count: int, swapped: bool):
    """Heap sort of a pair's contacts by feature0, then feature1, where there may be thousands in any order."""
    for i in range(count / 2):
        sink_by_features(contact, first, stride, count / 2 - 1 - i, count, swapped)
    for i in range(count - 1):
        last = count - 1 - i
        swap_contacts(contact, first, first + last * stride)
        sink_by_features(contact, first, stride, 0, last, swapped)
