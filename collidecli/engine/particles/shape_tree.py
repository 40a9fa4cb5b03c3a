"""Bounding volume hierarchy over the shapes of each cell, for queries by particles.

Its topology is built once for each template, from one frame of the motion, by median splits. The
boxes are computed for every cell from the poses of its shapes. Contacts do not depend on the
topology.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, ChunkCells, Instances, instance_of
from collidecli.engine.device_model import DeviceModel, Layout, ShapeRows
from collidecli.engine.geometry.bounds import bounding_box, rounded_down, rounded_up
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.mesh_tree import split_tree
from collidecli.engine.geometry.real import Real
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.shape_types import ShapeType


@wp.struct
class ShapeTree:
    """The nodes of all templates, in depth-first order, `width` a template.

    count: nodes of each template. skip: the node after a node's descendants. slot: of a leaf, else
    -1. Planes are leaves after the tree of the other shapes, each with an infinite box.
    """

    width: int
    count: wp.array[wp.int32]
    skip: wp.array[wp.int32]
    slot: wp.array[wp.int32]


@wp.struct
class NodeBoxes:
    """AABBs of the nodes in each cell, inflated by the shapes' margins: node n of cell c at c *
    width + n."""

    lower: wp.array[wp.vec3f]
    upper: wp.array[wp.vec3f]


@kernel
def fit_boxes(
    rows: ShapeRows,
    layout: Layout,
    chunk: ChunkCells,
    instances: Instances,
    margin: wp.array[Real],
    tree: ShapeTree,
    boxes: NodeBoxes,
):
    """One thread per cell: the boxes of its nodes, descendants first."""
    cell = wp.tid()
    template = chunk.cell_template[cell]
    first = template * tree.width
    node = tree.count[template] - 1
    while node >= 0:
        slot = tree.slot[first + node]
        at = cell * tree.width + node
        if slot >= 0:
            row = layout.slot_row[template * layout.width + slot]
            pose = instances.pose[instance_of(chunk, layout, cell, slot)]
            box = bounding_box(rows.type[row], rows.size[row], pose, margin[row])
            boxes.lower[at] = rounded_down(box.lower)
            boxes.upper[at] = rounded_up(box.upper)
        else:
            left = at + 1
            right = cell * tree.width + tree.skip[first + node + 1]
            boxes.lower[at] = wp.min(boxes.lower[left], boxes.lower[right])
            boxes.upper[at] = wp.max(boxes.upper[left], boxes.upper[right])
        node -= 1


@wp.func
def boxes_overlap(low: wp.vec3d, high: wp.vec3d, lower: wp.vec3f, upper: wp.vec3f) -> bool:
    """Whether a box in float64 and one in float32 have a point in common."""
    for axis in range(3):
        if low[axis] > Real(upper[axis]) or high[axis] < Real(lower[axis]):
            return False
    return True


def tree_of(
    centers: np.ndarray, slots: np.ndarray, planes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Skip and slot of the nodes of one template, see `ShapeTree`: the tree of shapes, then the
    planes. centers: float64[n, 3] of `slots`, int[n] [m]. planes: slots of planes."""
    skip, item, _ = split_tree(centers, np.arange(len(slots)))
    slot = np.append(slots, -1)[item]
    return np.append(skip, len(skip) + 1 + np.arange(len(planes))), np.append(slot, planes)


def build_tree(device_model: DeviceModel, touched: np.ndarray, poses: np.ndarray) -> ShapeTree:
    """The trees of a model's templates on its device. touched: bool[S], shapes that may touch a
    particle. poses: float64[recorded worlds, B, 7] of one frame."""
    model = device_model.model
    shapes = model.shapes
    is_plane = shapes.type == ShapeType.PLANE
    trees = []
    for template, rows in enumerate(device_model.template_rows):
        world = int(np.argmax(model.world_template == template))
        pose = poses[world if len(poses) > 1 else 0]
        touched_rows = np.flatnonzero(touched[rows])
        solid = touched_rows[~is_plane[rows[touched_rows]]]
        body = shapes.body[rows[solid]]
        places = np.concatenate([pose[:, :3], np.zeros((1, 3))])[body]
        trees.append(
            tree_of(
                places + shapes.pose[rows[solid], :3],
                solid,
                touched_rows[is_plane[rows[touched_rows]]],
            )
        )
    tree = ShapeTree()
    put = partial(device_array, dtype=wp.int32, device=device_model.device)
    tree.width = max(1, *(len(skip) for skip, _ in trees))
    skip = np.zeros((len(trees), tree.width), np.int32)
    slot = np.full((len(trees), tree.width), -1, np.int32)
    for template, (skips, slots) in enumerate(trees):
        skip[template, : len(skips)] = skips
        slot[template, : len(slots)] = slots
    tree.count = put(np.array([len(skips) for skips, _ in trees], np.int32))
    tree.skip = put(skip.ravel())
    tree.slot = put(slot.ravel())
    return tree


def fitted_boxes(
    device_model: DeviceModel, tree: ShapeTree, chunk: Chunk, workspace: Workspace
) -> NodeBoxes:
    """The boxes of all nodes in all cells of a chunk."""
    sides = {
        side: workspace.array(f"node_{side}", chunk.cell_count * tree.width, wp.vec3f)
        for side in ("lower", "upper")
    }
    boxes = workspace.struct(NodeBoxes, **sides)
    margin = device_model.margins.margin
    arguments = [
        device_model.rows,
        device_model.layout,
        chunk.cells,
        chunk.instances,
        margin,
        tree,
        boxes,
    ]
    workspace.launch(fit_boxes, chunk.cell_count, arguments)
    return boxes
