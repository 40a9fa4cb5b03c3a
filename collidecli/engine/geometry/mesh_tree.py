"""BVH of boxes over the triangles of a mesh, in depth-first order; depends on the mesh alone."""

from dataclasses import dataclass

import numpy as np

WIDENING = 1e-12
"""Growth of the boxes relative to the mesh's size: exceeds the rounding of the queries."""


@dataclass(frozen=True)
class MeshTree:
    """Boxes in depth-first order: the traversal continues at `skip` when it skips a box and its
    subtree.

    lower, upper: float64[N, 3] [m]. skip: int32[N]. face: int32[N], the triangle of a leaf; -1 for
    inner nodes.
    """

    lower: np.ndarray
    upper: np.ndarray
    skip: np.ndarray
    face: np.ndarray


def tree_of_triangles(
    corners: np.ndarray, size: float, chosen: np.ndarray | None = None
) -> MeshTree:
    """BVH with one triangle a leaf, by median splits of the triangles' centres along the longest
    side of the centres' box.

    corners: float64[F, 3, 3] of the triangles [m]. size: by WIDENING of which boxes are grown [m].
    chosen: int64[n], indices of the triangles to include; None for all.
    """
    low = corners.min(axis=1)
    high = corners.max(axis=1)
    skip, face, inner = split_tree(
        0.5 * (low + high), np.arange(len(low)) if chosen is None else chosen
    )
    lower = np.zeros((len(skip), 3))
    upper = np.zeros((len(skip), 3))
    leaves = face >= 0
    lower[leaves] = low[face[leaves]]
    upper[leaves] = high[face[leaves]]
    for parent, right in reversed(inner):
        lower[parent] = np.minimum(lower[parent + 1], lower[right])
        upper[parent] = np.maximum(upper[parent + 1], upper[right])
    return MeshTree(lower - WIDENING * size, upper + WIDENING * size, skip, face)


def split_tree(
    middle: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """A BVH with one item a leaf, by median splits of the items' centres along the longest side of
    the centres' box.

    middle: float64[n, 3], centres of all items [m]. chosen: int64, items to include; of none there
    are no nodes.
    Returns:
        skip and item of each node, see `MeshTree`; and of each level the inner nodes and their
        second children, the
        first child being the next node.
    """
    order = chosen
    count = max(2 * len(order) - 1, 0)
    skip = np.zeros(count, np.int32)
    item = np.full(count, -1, np.int32)
    first = np.zeros(1, np.int64)
    size = np.array([len(order)])
    node = np.zeros(1, np.int64)
    inner: list[tuple[np.ndarray, np.ndarray]] = []
    while len(order) and len(first):
        # A subtree of n items has 2 n - 1 nodes, so the counts alone determine each node's index.
        skip[node] = node + 2 * size - 1
        leaf = size == 1
        item[node[leaf]] = order[first[leaf]]
        first = first[~leaf]
        size = size[~leaf]
        node = node[~leaf]
        if not len(first):
            break
        order = _halved(order, middle, first, size)
        left = size // 2
        right_node = node + 2 * left
        inner.append((node, right_node))
        first, size, node = (
            np.stack(pair, axis=1).reshape(-1)
            for pair in ((first, first + left), (left, size - left), (node + 1, right_node))
        )
    return skip, item, inner


def _halved(
    order: np.ndarray, middle: np.ndarray, first: np.ndarray, size: np.ndarray
) -> np.ndarray:
    """`order` with each group's slots sorted by item centre along the group's longest side."""
    group = np.repeat(np.arange(len(first)), size)
    starts = np.concatenate([[0], np.cumsum(size)[:-1]])
    slots = np.arange(len(group)) + (first - starts)[group]
    items = order[slots]
    points = middle[items]
    extent = np.maximum.reduceat(points, starts) - np.minimum.reduceat(points, starts)
    along = points[np.arange(len(points)), np.argmax(extent, axis=1)[group]]
    result = order.copy()
    # Ties are broken by the item's index.
    result[slots] = items[np.lexsort((items, along, group))]
    return result
