"""Kernels of the touches of deformable objects with themselves between frames, see `self_sweep`."""

import warp as wp

from collidecli.engine.cells import ChunkCells
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.particles.cloud import CloudCells, position_at, position_in_cell
from collidecli.engine.particles.self_queries import (
    VERTEX_FACE,
    Element,
    SelfCells,
    SelfScene,
    element_of,
    is_joined,
    is_near_at_rest,
    partner_of,
)
from collidecli.engine.particles.self_steps import ROUNDING, ElementStep, SelfTouch, element_step, touch_in_step
from collidecli.engine.particles.swept_queries import CLEAR
from collidecli.engine.runtime.kernel import kernel

EQUAL_TIMES = wp.constant(Real(1.0e-12))
"""Of a step: larger than the rounding of a time of two boxes."""


@wp.struct
class SelfSteps:
    """The steps of the cells of a chunk. has_step: 1 for a cell with a next frame in its episode.

    limit: distance of a touch, which is `SelfScene.distance` without the tolerance [m].
    """

    has_step: wp.array[wp.int32]
    limit: Real
    tolerance: Real


@wp.struct
class MovingBox:
    """A box whose corners move in straight lines: at the begin and the end of a step [m]."""

    low: Vec3
    high: Vec3
    last_low: Vec3
    last_high: Vec3


@wp.func
def box_of(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells, cell: int, element: Element
) -> MovingBox:
    """The box of a vertex or an edge in the step of a cell, grown by the distance."""
    box = MovingBox()
    box.low = element.low
    box.high = element.high
    a = position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, element.p)
    b = position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, element.q)
    grown = Vec3(scene.distance, scene.distance, scene.distance)
    box.last_low = wp.min(a, b) - grown
    box.last_high = wp.max(a, b) + grown
    return box


@wp.func
def boxes_meet(box: MovingBox, lower: Vec3, upper: Vec3, last_lower: Vec3, last_upper: Vec3) -> bool:
    """Whether a moving box overlaps another, with these corners at the begin and the end, at any time of the step.

    Along each axis both overlap while two linear functions of time are not negative.
    """
    begin = Real(0.0)
    end = Real(1.0)
    for side in range(6):
        axis = side // 2
        first = box.high[axis] - lower[axis]
        last = box.last_high[axis] - last_lower[axis]
        if side % 2 == 1:
            first = upper[axis] - box.low[axis]
            last = last_upper[axis] - box.last_low[axis]
        slack = wp.abs(box.high[axis]) + wp.abs(box.last_high[axis]) + wp.abs(first) + wp.abs(last)
        first += ROUNDING * slack
        last += ROUNDING * slack
        if first < Real(0.0) and last < Real(0.0):
            return False
        if first < Real(0.0):
            begin = wp.max(begin, first / (first - last))
        elif last < Real(0.0):
            end = wp.min(end, first / (first - last))
    return begin <= end + EQUAL_TIMES


@wp.func
def is_near(scene: SelfScene, part: SelfCells, box: MovingBox, at: int) -> bool:
    """Whether a moving box overlaps that of a node of `SelfCells`."""
    last = at + part.cell_count * scene.node_width
    return boxes_meet(box, Vec3(part.lower[at]), Vec3(part.upper[at]), Vec3(part.lower[last]), Vec3(part.upper[last]))


@wp.func
def may_touch(scene: SelfScene, element: Element, leaf: int) -> bool:
    """Whether an element and the triangle or edge of a leaf are a pair, whatever their positions."""
    if leaf <= element.after:
        return False
    partner = partner_of(scene.elements, element, leaf)
    return not is_joined(scene.elements, element, partner[0], partner[1], partner[2])


@wp.func
def first_node(steps: SelfSteps, element: Element, cell: int) -> int:
    """First node that an element traverses: none without a step."""
    if element.kind < 0 or steps.has_step[cell] == 0:
        return element.stop
    return element.node


@kernel
def count_self_steps(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    steps: SelfSteps,
    found: wp.array[wp.int32],
):
    """One thread per vertex and edge of a cell: its number of pairs whose moving boxes overlap, with edges after it."""
    thread = wp.tid()
    cell = thread // part.width
    element = element_of(scene, chunk, cells, part, thread)
    count = int(0)
    node = first_node(steps, element, cell)
    box = MovingBox()
    if node < element.stop:
        box = box_of(scene, chunk, cells, part, cell, element)
    while node < element.stop:
        if is_near(scene, part, box, element.box + node - element.node):
            leaf = scene.elements.leaf[node]
            if leaf >= 0:  # noqa: SIM102
                if may_touch(scene, element, leaf):
                    count += 1
            node += 1
        else:
            node = element.node + scene.elements.skip[node]
    found[thread] = count


@kernel
def write_self_steps(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    steps: SelfSteps,
    end: wp.array[wp.int32],
    pair: wp.array[wp.vec2i],
):
    """One thread per vertex and edge of a cell: its pairs (thread, leaf), ascending by leaf.

    end: inclusive scan of their numbers.
    """
    thread = wp.tid()
    first_pair = int(0)
    if thread > 0:
        first_pair = end[thread - 1]
    if first_pair == end[thread]:
        return
    cell = thread // part.width
    element = element_of(scene, chunk, cells, part, thread)
    box = box_of(scene, chunk, cells, part, cell, element)
    node = element.node
    written = int(first_pair)
    while node < element.stop:
        if is_near(scene, part, box, element.box + node - element.node):
            leaf = scene.elements.leaf[node]
            if leaf >= 0:  # noqa: SIM102
                if may_touch(scene, element, leaf):
                    # Insertion sort.
                    place = int(written)
                    while place > first_pair and pair[wp.max(place - 1, 0)][1] > leaf:
                        pair[place] = pair[place - 1]
                        place -= 1
                    pair[place] = wp.vec2i(thread, leaf)
                    written += 1
            node += 1
        else:
            node = element.node + scene.elements.skip[node]


@wp.func
def particles_of(element: Element, partner: wp.vec3i) -> wp.vec4i:
    """The four particles of a pair: of a vertex and a triangle, or of two edges."""
    if element.kind == VERTEX_FACE:
        return wp.vec4i(element.p, partner[0], partner[1], partner[2])
    return wp.vec4i(element.p, element.q, partner[0], partner[1])


@wp.func
def step_of(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, part: SelfCells, cell: int, kind: int, of: wp.vec4i
) -> ElementStep:
    """The step of the elements of four particles in a cell."""
    cloud = scene.cloud
    last = cell + part.cell_count
    return element_step(
        kind,
        position_in_cell(cloud, cells, chunk, cell, of[0]),
        position_in_cell(cloud, cells, chunk, cell, of[1]),
        position_in_cell(cloud, cells, chunk, cell, of[2]),
        position_in_cell(cloud, cells, chunk, cell, of[3]),
        position_at(cloud, cells, chunk, cell, last, of[0]),
        position_at(cloud, cells, chunk, cell, last, of[1]),
        position_at(cloud, cells, chunk, cell, last, of[2]),
        position_at(cloud, cells, chunk, cell, last, of[3]),
    )


@kernel
def sweep_self_steps(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    steps: SelfSteps,
    pair: wp.array[wp.vec2i],
    touch: wp.array[SelfTouch],
    kept: wp.array[wp.int32],
):
    """One thread per pair: its touch in the step. kept: 1 where it is not clear."""
    row = wp.tid()
    thread = pair[row][0]
    cell = thread // part.width
    element = element_of(scene, chunk, cells, part, thread)
    partner = partner_of(scene.elements, element, pair[row][1])
    found = SelfTouch()
    if not is_near_at_rest(scene, element, partner):
        step = step_of(scene, chunk, cells, part, cell, element.kind, particles_of(element, partner))
        found = touch_in_step(step, steps.limit, steps.tolerance)
    touch[row] = found
    kept[row] = wp.where(found.status == CLEAR, 0, 1)
