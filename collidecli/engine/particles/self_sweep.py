"""Motion of a vertex and a triangle, or of two edges, between two frames, and how long they
certainly stay apart.

Every particle moves in a straight line. The differences u = b - a of the corners b of the second
element and a of the first are linear in time, and the distance of the elements is that of the
origin from the convex hull of all u. So for a unit vector n the separation min n.u is a lower bound
of the distance:

- along a fixed n each n.u is linear in time, so that the time at which the first of them is at the
    goal is exact;
- along n that goes linearly from n0 at one time to n1 at another, at most 1 long, each n.u is a
  quadratic polynomial with the Bernstein coefficients n0.u0, (n0.u1 + n1.u0) / 2 and n1.u1: it is
  nowhere below the least of them.

Source: docs/adr/0111.
"""

from typing import Any

import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch, has_step
from collidecli.engine.compaction import row_writers
from collidecli.engine.contact_record import start_of
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.particles.self_contacts import (
    VERTEX_FACE,
    Element,
    SelfCells,
    SelfScene,
    SelfStage,
    element_of,
    is_joined,
    is_near_at_rest,
    pair_of,
    particles_of,
    partner_of,
    self_traversal,
)
from collidecli.engine.particles.surfaces import (
    CloudCells,
    Inputs,
    PrimitiveSurfaces,
    position_at,
    position_in_cell,
)
from collidecli.engine.particles.swept_points import (
    CLEAR,
    SHORTENED,
    TOUCH,
    UNDECIDED,
    FirstTouch,
    least_distance_function,
)
from collidecli.engine.runtime.kernel import counted_kernels, kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.tables import SELF_SWEEP

ROUNDS = 400
"""Largest number of advances of a pair in a step, after which it is undecided."""
ROUNDING = wp.constant(Real(2.0**-45))
"""Of the sizes in a sum or a separation: 128 times the spacing of float64, more than their
rounding."""
LONGER = wp.constant(Real(4.0))
"""Times the advance along a fixed direction, for which a direction that turns is tried first."""
DIFFERENCES = 4
"""Corners of a hull: one of a triangle is there twice."""


@wp.struct
class ElementStep:
    """Two elements in a step, which lasts from time 0 to 1.

    kind: VERTEX_FACE or EDGE_EDGE. begin, shift: positions of the second to fourth particle from
    the first one at time 0, and their changes over the step [m]. speed: the largest change of a
    difference of corners [m]. rounding: bound of the rounding of a separation [m]. limit,
    tolerance: they touch at a distance of at most `limit`, or up to `tolerance` more [m].
    """

    kind: int
    begin1: Vec3
    begin2: Vec3
    begin3: Vec3
    shift1: Vec3
    shift2: Vec3
    shift3: Vec3
    speed: Real
    rounding: Real
    limit: Real
    tolerance: Real


@wp.struct
class Nearest:
    """Two elements at a time.

    point0, point1: of the first and the second, from the first particle [m]. distance: of these
    points; lower: lower bound of all distances [m]. weights: of the four particles, at the points;
    those of each element sum to 1. normal: unit, from the first element to the second.
    """

    point0: Vec3
    point1: Vec3
    distance: Real
    lower: Real
    weights: wp.vec4d
    normal: Vec3


@wp.struct
class SelfTouch:
    """Result of a pair in a step. status: CLEAR, TOUCH or UNDECIDED; the rest is not set where it
    is CLEAR.

    enter, leave: begin of the first touch and end of the last one, in 0 to 1. least, least_bound:
    least distance that was found, and a lower bound of all [m].
    """

    status: int
    enter: Real
    leave: Real
    least: Real
    least_bound: Real


@wp.func
def difference_of(kind: int, index: int, p: Vec3, q: Vec3, r: Vec3) -> Vec3:
    """A difference of a corner of the second element and one of the first, of DIFFERENCES.
    p, q, r: the second to fourth particle, from the first one."""
    if kind == VERTEX_FACE:
        return p if index == 0 else wp.where(index == 1, q, r)
    corner = wp.where(index % 2 == 0, q, r)
    return wp.where(index < 2, corner, corner - p)


@wp.func
def difference_at(step: ElementStep, index: int, time: Real) -> Vec3:
    """`difference_of` at a time [m]."""
    return difference_of(
        step.kind, index, step.begin1, step.begin2, step.begin3
    ) + time * difference_of(step.kind, index, step.shift1, step.shift2, step.shift3)


@wp.func
def nearest_at(step: ElementStep, time: Real) -> Nearest:
    """The elements at a time. Any weights give a distance of two points, and any normal a lower
    bound of all."""
    p = step.begin1 + time * step.shift1
    q = step.begin2 + time * step.shift2
    r = step.begin3 + time * step.shift3
    point0 = Vec3()
    point1 = Vec3()
    pair = pair_of(step.kind, Vec3(), p, q, r)
    weights = pair.weights
    if step.kind == VERTEX_FACE:
        # The coordinates of a point in a narrow triangle may be rounded to points beside it.
        a = wp.clamp(pair.weights[1], Real(0.0), Real(1.0))
        b = wp.clamp(pair.weights[2], Real(0.0), Real(1.0) - a)
        weights = wp.vec4d(Real(1.0), a, b, Real(1.0) - a - b)
        point1 = a * p + b * q + weights[3] * r
    else:
        point0 = weights[1] * p
        point1 = weights[2] * q + weights[3] * r
    lower = wp.dot(pair.normal, difference_at(step, 0, time))
    for index in range(1, wp.static(DIFFERENCES)):
        lower = wp.min(lower, wp.dot(pair.normal, difference_at(step, index, time)))
    return Nearest(
        point0, point1, wp.length(point1 - point0), lower - step.rounding, weights, pair.normal
    )


@wp.func
def time_along(step: ElementStep, time: Real, sign: Real, normal: Vec3, goal: Real) -> Real:
    """How long the separation along a unit vector is above `goal` [m], from a time on; infinite if
    for ever."""
    contact_time = Real(wp.inf)
    for index in range(wp.static(DIFFERENCES)):
        height = wp.dot(normal, difference_at(step, index, time)) - step.rounding - goal
        rate = -sign * wp.dot(
            normal, difference_of(step.kind, index, step.shift1, step.shift2, step.shift3)
        )
        if height <= Real(0.0):
            contact_time = Real(0.0)
        elif rate > Real(0.0):
            contact_time = wp.min(contact_time, height / rate)
    return contact_time


@wp.func
def is_apart_between(
    step: ElementStep, time: Real, near: Nearest, other: Real, far: Nearest, goal: Real
) -> bool:
    """Whether a direction that turns from that of one time to that of another has separations above
    `goal` between."""
    if near.lower <= goal or far.lower <= goal:
        return False
    for index in range(wp.static(DIFFERENCES)):
        middle = wp.dot(near.normal, difference_at(step, index, other))
        middle += wp.dot(far.normal, difference_at(step, index, time))
        if Real(0.5) * middle - step.rounding <= goal:
            return False
    return True


@wp.func(inline=False)
def first_touch(step: ElementStep, start: Real, sign: Real) -> FirstTouch:
    """The first touch of a pair from `start` on, 0 forwards (sign 1) or 1 backwards (sign -1)."""
    status = UNDECIDED
    goal = step.limit + Real(0.5) * step.tolerance
    end = Real(1.0) - start
    time = start
    longer = LONGER
    near = nearest_at(step, time)
    rounds = int(0)
    while rounds < wp.static(ROUNDS):
        rounds += 1
        rest = wp.abs(end - time)
        ahead = SHORTENED * time_along(step, time, sign, near.normal, goal)
        if near.distance + step.rounding <= step.limit + step.tolerance:
            status = TOUCH
            rounds = wp.static(ROUNDS)
        elif near.lower <= goal:
            rounds = wp.static(ROUNDS)
        elif ahead >= rest:
            status = CLEAR
            rounds = wp.static(ROUNDS)
        elif rounds < wp.static(ROUNDS):
            part = longer * ahead
            other = end if part >= rest else time + sign * part
            far = nearest_at(step, other)
            if is_apart_between(step, time, near, other, far, goal):
                longer = Real(2.0) * longer
                time = other
                near = far
            else:
                longer = wp.max(Real(0.5) * longer, Real(2.0))
                if time + sign * ahead == time:
                    rounds = wp.static(ROUNDS)
                time = time + sign * ahead
                near = nearest_at(step, time)
    return FirstTouch(status, time, near.distance, near.lower, Vec3(), Vec3())


@wp.func
def measured_at(surfaces: PrimitiveSurfaces, step: ElementStep, time: Real, known: Real) -> Vec2:
    """Distance of two elements at a time, and its lower bound [m]."""
    near = nearest_at(step, time)
    return Vec2(near.distance, near.lower)


least_distance: Any = least_distance_function(ElementStep, measured_at)


@wp.func(inline=False)
def touch_in_step(step: ElementStep) -> SelfTouch:
    """The touch of a pair in its step."""
    result = SelfTouch()
    entered = first_touch(step, Real(0.0), Real(1.0))
    if entered.status != CLEAR:
        left = first_touch(step, Real(1.0), Real(-1.0))
        # Backwards a pair may be found clear that forwards is undecided; and a touch between the
        # goal and the limit with the tolerance may be found in one direction only.
        if entered.status == TOUCH or left.status != CLEAR:
            status = wp.where(left.status == TOUCH, TOUCH, entered.status)
            if left.status == CLEAR or left.time < entered.time:
                left = entered
            least = least_distance(PrimitiveSurfaces(), step, entered, left, Real(0.0))
            if least.found + step.rounding <= step.limit + step.tolerance:
                status = TOUCH
            # Outside of the touch no distance is below the goal.
            bound = wp.min(least.bound, step.limit + Real(0.5) * step.tolerance)
            result = SelfTouch(status, entered.time, left.time, least.found, bound)
    return result


# Kernels of the touches of deformable objects with themselves between frames, see `self_sweep`.

EQUAL_TIMES = wp.constant(Real(1.0e-12))
"""Of a step: larger than the rounding of a time of two boxes."""


@wp.struct
class MovingBox:
    """A box whose corners move in straight lines: at the begin and the end of a step [m]. stop: end
    of the nodes that its element traverses, none without a step."""

    low: Vec3
    high: Vec3
    last_low: Vec3
    last_high: Vec3
    stop: int


@wp.func
def box_of(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    cell: int,
    element: Element,
) -> MovingBox:
    """The box of a vertex or an edge in the step of a cell, grown by the distance."""
    a = position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, element.p)
    b = position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, element.q)
    grown = Vec3(scene.distance, scene.distance, scene.distance)
    stop = wp.where(part.has_step[cell] == 1, element.stop, element.node)
    return MovingBox(element.low, element.high, wp.min(a, b) - grown, wp.max(a, b) + grown, stop)


@wp.func
def is_near(scene: SelfScene, part: SelfCells, box: MovingBox, at: int) -> bool:
    """Whether a moving box overlaps that of a node of `SelfCells` at any time of the step.
    Along each axis both overlap while two linear functions of time are not negative."""
    last_at = at + part.cell_count * scene.node_width
    lower = Vec3(part.lower[at])
    upper = Vec3(part.upper[at])
    last_lower = Vec3(part.lower[last_at])
    last_upper = Vec3(part.upper[last_at])
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
def may_touch(
    scene: SelfScene, chunk: ChunkCells, cells: CloudCells, cell: int, element: Element, leaf: int
) -> bool:
    """Whether an element and the triangle or edge of a leaf are a pair, whatever their
    positions."""
    if leaf <= element.after:
        return False
    partner = partner_of(scene.elements, element, leaf)
    return not is_joined(scene.elements, element, partner)


@wp.func
def step_of(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    cell: int,
    kind: int,
    particles: wp.vec4i,
) -> ElementStep:
    """The step of the elements of four particles in a cell."""
    cloud = scene.cloud
    last = cell + part.cell_count
    first = position_in_cell(cloud, cells, chunk, cell, particles[0])
    first_last = position_at(cloud, cells, chunk, cell, last, particles[0])
    step = ElementStep()
    step.kind = kind
    step.limit = part.limit
    step.tolerance = part.tolerance
    step.begin1 = position_in_cell(cloud, cells, chunk, cell, particles[1]) - first
    step.begin2 = position_in_cell(cloud, cells, chunk, cell, particles[2]) - first
    step.begin3 = position_in_cell(cloud, cells, chunk, cell, particles[3]) - first
    step.shift1 = (
        position_at(cloud, cells, chunk, cell, last, particles[1]) - first_last
    ) - step.begin1
    step.shift2 = (
        position_at(cloud, cells, chunk, cell, last, particles[2]) - first_last
    ) - step.begin2
    step.shift3 = (
        position_at(cloud, cells, chunk, cell, last, particles[3]) - first_last
    ) - step.begin3
    size = Real(0.0)
    for index in range(wp.static(DIFFERENCES)):
        shift = difference_of(kind, index, step.shift1, step.shift2, step.shift3)
        step.speed = wp.max(step.speed, wp.length(shift))
        size += wp.length(
            difference_of(kind, index, step.begin1, step.begin2, step.begin3)
        ) + wp.length(shift)
    step.rounding = ROUNDING * (size + (wp.length(step.begin1) + wp.length(step.shift1)))
    step.speed = step.speed + step.rounding
    return step


@kernel
def sweep_self_steps(
    scene: SelfScene,
    chunk: ChunkCells,
    cells: CloudCells,
    part: SelfCells,
    pair: wp.array[wp.vec2i],
    touch: wp.array[SelfTouch],
    kept: wp.array[wp.int32],
):
    """One thread per pair: its touch in the step. kept: 1 where it is not clear."""
    row = wp.tid()
    thread = pair[row][0]
    cell = thread // part.width
    element = element_of(scene, chunk, cells, part, thread)
    of = particles_of(element, partner_of(scene.elements, element, pair[row][1]))
    result = SelfTouch()
    if not is_near_at_rest(scene, element.kind, of):
        step = step_of(scene, chunk, cells, part, cell, element.kind, of)
        result = touch_in_step(step)
    touch[row] = result
    kept[row] = wp.where(result.status == CLEAR, 0, 1)


def _compaction(columns_type: Any, point_type: Any) -> wp.Kernel:
    @kernel
    def write_self_touches(
        scene: SelfScene,
        chunk: ChunkCells,
        cells: CloudCells,
        part: SelfCells,
        pair: wp.array[wp.vec2i],
        touch: wp.array[SelfTouch],
        end: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per pair: its row, unless it is clear; the addition of 0 turns -0 into 0.
        end: inclusive scan of the rows of the pairs."""
        index = wp.tid()
        row = start_of(end, index)
        if row == end[index]:
            return
        swept = touch[index]
        thread = pair[index][0]
        cell = thread // part.width
        element = element_of(scene, chunk, cells, part, thread)
        particles = particles_of(element, partner_of(scene.elements, element, pair[index][1]))
        step = step_of(scene, chunk, cells, part, cell, element.kind, particles)
        near = nearest_at(step, swept.enter)
        first = position_in_cell(scene.cloud, cells, chunk, cell, particles[0])
        first += swept.enter * (
            position_at(scene.cloud, cells, chunk, cell, cell + part.cell_count, particles[0])
            - first
        )
        is_between = swept.status == TOUCH and swept.enter > Real(0.0) and swept.leave < Real(1.0)
        columns.kind[row] = wp.uint8(element.kind)
        columns.indices[row] = particles
        columns.barycentric[row] = wp.vec4f(near.weights) + wp.vec4f()
        columns.status[row] = wp.uint8(swept.status)
        columns.tunnel[row] = wp.uint8(wp.where(is_between, 1, 0))
        columns.enter[row] = swept.enter
        columns.leave[row] = swept.leave
        columns.least[row] = swept.least
        columns.least_bound[row] = swept.least_bound
        columns.point0[row] = point_type(first + near.point0) + point_type()
        columns.point1[row] = point_type(first + near.point1) + point_type()
        columns.normal[row] = wp.vec3f(near.normal) + wp.vec3f()

    return write_self_touches


FIND_SELF_STEPS = counted_kernels("self_steps", self_traversal, box_of, is_near, may_touch)
SELF_SWEEP_ROWS = row_writers("SelfSweepColumns", SELF_SWEEP.columns, _compaction)


class SelfSweepStage(SelfStage):
    """Finds the touches of a model's deformable objects with themselves and each other between
    frames."""

    group = SELF_SWEEP
    writers = SELF_SWEEP_ROWS
    traversal = FIND_SELF_STEPS

    def kernels(self) -> list[wp.Kernel]:
        return [*super().kernels(), sweep_self_steps]

    def inputs(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, width: int
    ) -> Inputs | None:
        is_step = has_step(self.device_model.model, batch)
        return (
            self.fitted(chunk, batch, workspace, begin, width, is_step) if is_step.any() else None
        )

    def evaluate(
        self, arguments: list[Any], pair: wp.array, count: int, workspace: Workspace
    ) -> tuple[list[Any], int, wp.array]:
        touch = workspace.array("self_touch", count, SelfTouch)
        end = workspace.array("element_row_end", count, wp.int32)
        workspace.launch(sweep_self_steps, count, [*arguments, pair, touch, end])
        return [touch, end], workspace.scan(end, count), end
