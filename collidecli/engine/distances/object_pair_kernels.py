"""Kernels of the least distances of particle objects from each other.

A segment of one object, or a particle, searches the tree of the other one's targets. The distance
of two elements is that of their nearest points, less the interpolated radii there. A particle
inside a soft body has its distance from the nearest triangle of the surface as a depth.
"""

import warp as wp

from collidecli.engine.distances.object_elements import ObjectTrees
from collidecli.engine.geometry.bounds import rounded_down, rounded_up
from collidecli.engine.geometry.mesh_points import edge_crossing
from collidecli.engine.geometry.meshes import barycentric_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.triangle_elements import edge_and_edge, vertex_and_face
from collidecli.engine.runtime.kernel import kernel


@wp.struct
class ObjectBoxes:
    """Boxes of the nodes of objects in cells, each from its first node in `first` on."""

    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@wp.struct
class PlacedObject:
    """An object in a cell. first_position: of the cell's particles. first_box: of its nodes."""

    owner: int
    first_position: int
    first_box: int


@wp.struct
class ObjectSearch:
    """A segment, or a particle twice, and the entry of the placed object that it searches. limit:
    of the values that count [m]. is_inside: 1 for a particle that is searched inside a soft body.
    """

    placed: int
    p: int
    q: int
    is_inside: int
    limit: Real


@wp.struct
class NearestElements:
    """Closest points of a segment and a target. point0: of the segment; point1: of the target [m].
    normal: unit, from the segment to the target. part: of the segment's second particle. weights:
    of the target's particles.
    """

    square: Real
    point0: Vec3
    point1: Vec3
    normal: Vec3
    part: Real
    weights: Vec3


@wp.struct
class ObjectNearest:
    """Least value of a search [m], infinite where none is within the limit; its target, counted
    within the object."""

    value: Real
    leaf: int


@wp.func
def corner_of(position: wp.array[Vec3], placed: PlacedObject, target: wp.vec3i, k: int) -> Vec3:
    """Position of a particle of a target [m]."""
    return position[placed.first_position + target[k]]


@kernel
def fit_object_boxes(
    trees: ObjectTrees,
    position: wp.array[Vec3],
    objects: wp.array[PlacedObject],
    boxes: ObjectBoxes,
):
    """One thread per object in a cell: the boxes of its nodes, descendants first."""
    placed = objects[wp.tid()]
    first = trees.first_node[placed.owner]
    box = placed.first_box
    node = trees.node_count[placed.owner] - 1
    while node >= 0:
        leaf = trees.leaf[first + node]
        if leaf >= 0:
            target = trees.target[trees.first_target[placed.owner] + leaf]
            a = corner_of(position, placed, target, 0)
            b = corner_of(position, placed, target, 1)
            c = corner_of(position, placed, target, 2)
            boxes.lower[box + node] = rounded_down(wp.min(a, wp.min(b, c)))
            boxes.upper[box + node] = rounded_up(wp.max(a, wp.max(b, c)))
        else:
            right = trees.skip[first + node + 1]
            boxes.lower[box + node] = wp.min(boxes.lower[box + node + 1], boxes.lower[box + right])
            boxes.upper[box + node] = wp.max(boxes.upper[box + node + 1], boxes.upper[box + right])
        node -= 1


@wp.func
def of_side(
    best: NearestElements, p: Vec3, q: Vec3, a: Vec3, b: Vec3, first: int
) -> NearestElements:
    """The nearer of what was found and of a segment and a side of a target; first: number of the
    side's first corner."""
    pair = edge_and_edge(p, q, a, b)
    if pair.square >= best.square:
        return best
    weights = Vec3()
    weights[first] = pair.weights[2]
    second = wp.where(first == 2, 0, first + 1)
    weights[second] = pair.weights[3]
    return NearestElements(
        pair.square, pair.point0, pair.point1, pair.normal, pair.weights[1], weights
    )


@wp.func
def of_end(
    best: NearestElements, end: Vec3, part: Real, a: Vec3, b: Vec3, c: Vec3
) -> NearestElements:
    """The nearer of what was found and of an end of a segment and a triangle."""
    pair = vertex_and_face(end, a, b, c)
    if pair.square >= best.square:
        return best
    weights = Vec3(pair.weights[1], pair.weights[2], pair.weights[3])
    return NearestElements(pair.square, pair.point0, pair.point1, pair.normal, part, weights)


@wp.func
def of_crossing(
    best: NearestElements, p: Vec3, q: Vec3, a: Vec3, b: Vec3, c: Vec3
) -> NearestElements:
    """The point in which a segment goes through a triangle, if it does; else what was found."""
    across = wp.cross(b - a, c - a)
    low = wp.dot(p - a, across)
    high = wp.dot(q - a, across)
    if low * high >= Real(0.0):
        return best
    part = low / (low - high)
    point = p + part * (q - p)
    weights = barycentric_of(a, b, c, point)
    if wp.min(weights) < Real(0.0):
        return best
    return NearestElements(Real(0.0), point, point, wp.normalize(across), part, weights)


@wp.func(inline=False)
def nearest_elements(
    p: Vec3, q: Vec3, of_point: bool, a: Vec3, b: Vec3, c: Vec3, target: wp.vec3i
) -> NearestElements:
    """Closest points of a segment, or a point twice, and a target.

    Of a triangle the least of the ends of the segment, of its sides, and of a crossing, of which
    the distance is 0 and the normal that of the triangle.
    """
    best = NearestElements()
    best.square = Real(wp.inf)
    if target[1] == target[2]:
        return of_side(best, p, q, a, b, 0)
    best = of_end(best, p, Real(0.0), a, b, c)
    if of_point:
        return best
    best = of_end(best, q, Real(1.0), a, b, c)
    best = of_side(best, p, q, a, b, 0)
    best = of_side(best, p, q, b, c, 1)
    best = of_side(best, p, q, c, a, 2)
    return of_crossing(best, p, q, a, b, c)


@wp.func
def radii_at(
    trees: ObjectTrees, search: ObjectSearch, target: wp.vec3i, nearest: NearestElements
) -> Real:
    """Sum of the interpolated radii at the closest points [m]."""
    radius = (Real(1.0) - nearest.part) * trees.radius[search.p]
    radius += nearest.part * trees.radius[search.q]
    for k in range(3):
        radius += nearest.weights[k] * trees.radius[target[k]]
    return radius


@wp.func
def gap_to_box(low: Vec3, high: Vec3, lower: wp.vec3f, upper: wp.vec3f) -> Real:
    """Distance of two boxes [m]."""
    square = Real(0.0)
    for axis in range(3):
        gap = wp.max(
            Real(0.0), wp.max(low[axis] - Real(upper[axis]), Real(lower[axis]) - high[axis])
        )
        square += gap * gap
    return wp.sqrt(square)


@wp.func
def crossing_of(
    position: wp.array[Vec3], placed: PlacedObject, target: wp.vec3i, point: Vec3
) -> int:
    """1 if a ray along +x from a point leaves through a triangle, -1 if it enters, 0 if it misses.

    Triangles of an edge share its comparison with the point, so that a ray through an edge or a
    vertex counts once; see `mesh_points.triangle_crossing`.
    """
    crossing = int(0)
    for k in range(3):
        first = target[k]
        second = target[(k + 1) % 3]
        low = position[placed.first_position + wp.min(first, second)]
        high = position[placed.first_position + wp.max(first, second)]
        crossing += edge_crossing(low, high, point, first < second)
    if crossing == 0:
        return 0
    p = corner_of(position, placed, target, 0)
    q = corner_of(position, placed, target, 1)
    r = corner_of(position, placed, target, 2)
    height = wp.dot(point - p, wp.cross(q - p, r - p)) * Real(crossing)
    if point[0] < wp.min(p[0], wp.min(q[0], r[0])) or height < Real(0.0):
        return crossing
    return 0


@wp.func(inline=False)
def is_inside(
    trees: ObjectTrees,
    position: wp.array[Vec3],
    boxes: ObjectBoxes,
    placed: PlacedObject,
    point: Vec3,
) -> bool:
    """Whether a point is inside the surface of a soft body, whose winding number is then not 0.

    Exact except within rounding of the surface. Source: see `scene.mesh_crossings.winding_at`.
    """
    number = int(0)
    first = trees.first_node[placed.owner]
    node = int(0)
    while node < trees.node_count[placed.owner]:
        lower = boxes.lower[placed.first_box + node]
        upper = boxes.upper[placed.first_box + node]
        apart = Real(upper[0]) < point[0]
        for axis in range(1, 3):
            apart = apart or Real(lower[axis]) > point[axis] or Real(upper[axis]) < point[axis]
        if apart:
            node = trees.skip[first + node]
        else:
            leaf = trees.leaf[first + node]
            if leaf >= 0:
                target = trees.target[trees.first_target[placed.owner] + leaf]
                if target[1] != target[2]:
                    number += crossing_of(position, placed, target, point)
            node += 1
    return number != 0


@wp.func
def nearest_of_leaf(
    trees: ObjectTrees,
    position: wp.array[Vec3],
    placed: PlacedObject,
    search: ObjectSearch,
    leaf: int,
) -> NearestElements:
    """Closest points of a search's segment and a target."""
    target = trees.target[trees.first_target[placed.owner] + leaf]
    return nearest_elements(
        position[placed.first_position + search.p],
        position[placed.first_position + search.q],
        search.p == search.q,
        corner_of(position, placed, target, 0),
        corner_of(position, placed, target, 1),
        corner_of(position, placed, target, 2),
        target,
    )


@kernel
def search_nearest(
    trees: ObjectTrees,
    position: wp.array[Vec3],
    objects: wp.array[PlacedObject],
    boxes: ObjectBoxes,
    searches: wp.array[ObjectSearch],
    found: wp.array[ObjectNearest],
):
    """One thread per search: its least value, the first in the order of the tree of equal ones.

    Of a particle inside a soft body the nearest triangle is searched without a limit, and its
    distance is a depth; a particle outside has no value.
    """
    index = wp.tid()
    search = searches[index]
    placed = objects[search.placed]
    p = position[placed.first_position + search.p]
    q = position[placed.first_position + search.q]
    low = wp.min(p, q)
    high = wp.max(p, q)
    best = search.limit
    leaf = int(-1)
    radii = Real(0.0)
    reach = trees.largest[placed.owner] + wp.max(trees.radius[search.p], trees.radius[search.q])
    node = int(0)
    count = trees.node_count[placed.owner]
    if search.is_inside == 1:
        reach = Real(0.0)
        best = Real(wp.inf)
        if not is_inside(trees, position, boxes, placed, p):
            count = 0
    first = trees.first_node[placed.owner]
    while node < count:
        box = placed.first_box + node
        if gap_to_box(low, high, boxes.lower[box], boxes.upper[box]) - reach <= best:
            number = trees.leaf[first + node]
            if number >= 0:
                target = trees.target[trees.first_target[placed.owner] + number]
                if search.is_inside == 0 or target[1] != target[2]:
                    nearest = nearest_of_leaf(trees, position, placed, search, number)
                    value = wp.sqrt(nearest.square)
                    of_both = radii_at(trees, search, target, nearest)
                    if search.is_inside == 0:
                        value -= of_both
                    if value < best or (value == best and leaf < 0):
                        best = value
                        leaf = number
                        radii = of_both
            node += 1
        else:
            node = trees.skip[first + node]
    if leaf < 0:
        best = Real(wp.inf)
    elif search.is_inside == 1:
        best = -best - radii
    found[index] = ObjectNearest(best, leaf)


@wp.struct
class ObjectPairRecord:
    """Closest points of the surfaces of two objects, see `NearestElements`. distance: of the
    elements without radii [m]. radius0, radius1: at the closest points [m]."""

    distance: Real
    point0: Vec3
    point1: Vec3
    normal: Vec3
    part: Real
    weights: Vec3
    target: wp.vec3i
    radius0: Real
    radius1: Real


@kernel
def describe_nearest(
    trees: ObjectTrees,
    position: wp.array[Vec3],
    objects: wp.array[PlacedObject],
    searches: wp.array[ObjectSearch],
    found: wp.array[ObjectNearest],
    record: wp.array[ObjectPairRecord],
):
    """One thread per search with a target: its closest points."""
    index = wp.tid()
    search = searches[index]
    placed = objects[search.placed]
    leaf = found[index].leaf
    nearest = nearest_of_leaf(trees, position, placed, search, leaf)
    target = trees.target[trees.first_target[placed.owner] + leaf]
    radius0 = (Real(1.0) - nearest.part) * trees.radius[search.p]
    radius0 += nearest.part * trees.radius[search.q]
    record[index] = ObjectPairRecord(
        wp.sqrt(nearest.square),
        nearest.point0,
        nearest.point1,
        nearest.normal,
        nearest.part,
        nearest.weights,
        target,
        radius0,
        radii_at(trees, search, target, nearest) - radius0,
    )
