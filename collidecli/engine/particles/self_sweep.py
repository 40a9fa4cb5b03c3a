"""Touches of deformable objects with themselves between frames: the stage that finds them, and its
kernels."""

from typing import Any

import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, PoseBatch, has_step
from collidecli.engine.contact_record import start_of
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.ordered_contacts import row_writers
from collidecli.engine.particles.cloud import CloudCells, position_at, position_in_cell
from collidecli.engine.particles.element_stage import Inputs
from collidecli.engine.particles.self_contacts import (
    Element,
    SelfCells,
    SelfScene,
    SelfStage,
    element_of,
    is_joined,
    is_near_at_rest,
    particles_of,
    partner_of,
    self_traversal,
)
from collidecli.engine.particles.swept_pairs import (
    DIFFERENCES,
    ROUNDING,
    ElementStep,
    SelfTouch,
    difference_of,
    nearest_at,
    touch_in_step,
)
from collidecli.engine.particles.swept_points import CLEAR, TOUCH
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.kernel import counted_kernels, kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.contact_columns import SELF_SWEEP

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
    bound: wp.array[wp.int32],
    touch: wp.array[SelfTouch],
    kept: wp.array[wp.int32],
):
    """One thread per pair, as many as the bound: its touch in the step. kept: 1 where it is not
    clear."""
    row = wp.tid()
    if row >= bound[0]:
        return
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
        pair_bound: wp.array[wp.int32],
        bound: wp.array[wp.int32],
        columns: columns_type,
    ):
        """One thread per pair, as many as their bound: its row, unless it is clear; none where the
        bound of the rows is 0. The addition of 0 turns -0 into 0. end: inclusive scan of the rows
        of the pairs."""
        index = wp.tid()
        if bound[0] == 0 or index >= pair_bound[0]:
            return
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
        self, arguments: list[Any], pair: wp.array, count: ElementCount, workspace: Workspace
    ) -> tuple[list[Any], ElementCount, wp.array]:
        touch = workspace.array("self_touch", count.most, SelfTouch)
        end = workspace.array("element_row_end", count.most, wp.int32)
        workspace.launch(sweep_self_steps, count.most, [*arguments, pair, count.bound, touch, end])
        workspace.launch_scan(end, count.most)
        total = workspace.counts.of(f"{self.group.name}_row", end, count)
        return [touch, end, count.bound, total.bound], total, end
