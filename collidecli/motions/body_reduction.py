"""Reduction of the contacts of each pair of bodies, whichever of their shapes these are of.

A body of many convex parts has a contact set for each part that touches: a crate of twenty boards
on a floor has twenty times the contacts of a box. Here the contacts of two bodies in a cell are
one manifold, from which the rule of `engine.reduction` selects rows, in the frame of the body of
the smaller number; the world's frame for a static one.
"""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.analysis.cell_poses import body_poses
from collidecli.engine.contact_record import ContactRecord
from collidecli.engine.reduction import mark_groups, reduced_types, rule_of
from collidecli.engine.reduction_marks import KEPT
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.runtime.workspace import Workspace
from collidecli.numerics.poses import rotated
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.mixing import ContactMixing
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_types import ShapeType

MEMORY = 1 << 62
"""Limit of the scratch memory: that of the block that is reduced."""
INVERSE = (-1.0, -1.0, -1.0, 1.0)
"""Factors that make a unit quaternion xyzw its inverse."""


class BodyReduction:
    """Reduces the rigid contacts of blocks by `options`, whose `reduces_bodies` is true, and then
    limits those of each pair of bodies to `max_contacts_per_pair`.

    The kept rows are rows of the block, bit for bit, in its order. Contacts of two static shapes
    are all kept.
    """

    def __init__(self, model: Model, options: ContactOptions) -> None:
        device = wp.get_device("cpu")
        self._model = model
        self._mixing = ContactMixing.of_model(model)
        self._limit = options.max_contacts_per_pair
        every_pair = [(int(a), int(b)) for a in ShapeType for b in ShapeType]
        self._reduced = reduced_types(options, every_pair) > 0
        self._rule = rule_of(options, self._reduced.astype(np.uint8), device)
        self._workspace = Workspace(device, MEMORY)
        load_kernels([mark_groups], device)

    def reduce(self, block: ContactBlock, first_frame: int, body_pose: np.ndarray) -> ContactBlock:
        """The block without the contacts that are not kept.

        body_pose: float64[frames, recorded worlds, B, 7], from first_frame on: poses of at least
        the block's frames.
        """
        if not block.contact_count:
            return block
        cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        shape = np.stack([block.columns["shape0"], block.columns["shape1"]], axis=1)
        body = self._model.shapes.body[shape]
        moving = (body >= 0).any(axis=1)
        kinds = self._model.shapes.type[shape]
        rows = np.flatnonzero(moving & self._reduced[kinds[:, 0], kinds[:, 1]])
        kept = np.ones(len(cell), bool)
        order, ends = _groups(cell[rows], np.sort(body[rows], axis=1))
        rows = rows[order]
        frame, world = np.divmod(block.first_cell + cell, self._model.world_count)
        place = frame[rows] - first_frame, world[rows]
        kept[rows] = self._marks(block, rows, body[rows], place, body_pose, ends)
        if self._limit:
            rows = np.flatnonzero(moving & kept)
            order, ends = _groups(cell[rows], np.sort(body[rows], axis=1))
            kept[rows[order]] = _deepest(block.columns["distance"][rows[order]], ends, self._limit)
        if kept.all():
            return block
        counts = np.bincount(cell[kept], minlength=len(block.cell_counts)).astype(np.int64)
        columns = {name: values[kept] for name, values in block.columns.items()}
        return ContactBlock(block.first_cell, counts, columns, block.groups)

    def _marks(
        self,
        block: ContactBlock,
        rows: np.ndarray,
        body: np.ndarray,
        place: tuple[np.ndarray, np.ndarray],
        body_pose: np.ndarray,
        ends: np.ndarray,
    ) -> np.ndarray:
        """bool[n]: which of the rows, ordered by group, are kept. body: int64[n, 2], of both
        shapes. place: rows of body_pose, and worlds."""
        if not len(rows):
            return np.zeros(0, bool)
        second_leads = body[:, 1] < body[:, 0]
        leading = np.minimum(body[:, 0], body[:, 1])
        columns = block.columns
        normal = columns["normal"][rows].astype(np.float64)
        normal[second_leads] *= -1.0
        # Offsets of a static shape are its points in the world, but only in float32.
        sides = [
            np.where(
                (leading < 0)[:, None],
                columns[f"point{side}"][rows].astype(np.float64),
                columns[f"offset{side}"][rows].astype(np.float64),
            )
            for side in range(2)
        ]
        pose = body_poses(self._model, body_pose, *place, leading)
        records = struct_rows(ContactRecord, len(rows))
        records["point"] = np.where(second_leads[:, None], sides[1], sides[0])
        records["normal"] = rotated(pose[:, 3:] * INVERSE, normal)
        records["separation"] = columns["distance"][rows]
        # The witness points are on the surfaces without their margins: so the records' midpoint is
        # that of both, and their separation the distance.
        margins = self._margins(columns["shape0"][rows], columns["shape1"][rows])
        records["point"] += 0.5 * margins[:, None] * records["normal"]
        contact = self._workspace.uploaded(records, ContactRecord)
        groups = self._workspace.uploaded(ends.astype(np.int32), wp.int32)
        self._workspace.launch(mark_groups, len(ends), [self._rule, contact, groups])
        marked = self._workspace.host(contact, len(rows))
        return (marked["marks"] & int(KEPT)) != 0

    def _margins(self, shape0: np.ndarray, shape1: np.ndarray) -> np.ndarray:
        """float64[n]: sum of both margins of pairs of shapes [m]."""
        count = len(self._model.shapes)
        pair, inverse = np.unique(shape0.astype(np.int64) * count + shape1, return_inverse=True)
        mixed = self._mixing.of_pairs(pair // count, pair % count)
        return (mixed["margin0"] + mixed["margin1"])[inverse]


def _groups(cell: np.ndarray, body: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int64[n]: contacts ordered by cell and pair of bodies, of one group in their own order; and
    the end of each group. body: int64[n, 2], in ascending order."""
    keys = np.column_stack([cell, body])
    order = np.lexsort((body[:, 1], body[:, 0], cell))
    begins = np.ones(len(order), bool)
    begins[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    return order, np.append(np.flatnonzero(begins)[1:], len(order)) if len(order) else order


def _deepest(distance: np.ndarray, ends: np.ndarray, most: int) -> np.ndarray:
    """bool[n]: the `most` contacts of least distance of each group, of equal ones the first."""
    starts = np.concatenate([[0], ends[:-1]]) if len(ends) else ends
    group = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    order = np.lexsort((distance, group))
    kept = np.zeros(len(distance), bool)
    kept[order] = np.arange(len(order)) - starts[group] < most
    return kept
