"""Emitted contacts, their reduction in plain Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import PoseBatch, transform_chunk
from collidecli.engine.contact_record import ContactRecord, new_candidates
from collidecli.engine.device_model import upload_model
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.reduction import Reduction, reduction_of
from collidecli.engine.reduction_directions import bin_directions, bin_normals
from collidecli.engine.runtime.chunk_counts import ElementCount
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.support.meshes import torus

MARGIN = 0.25
FIELDS = ("point", "normal", "separation", "feature_a", "feature_b", "kind")


@dataclass(frozen=True)
class EmittedContacts:
    """Contacts of one pair, a's frame. point, normal: float64[n, 3]. separation: float64[n].
    Others: int32[n]."""

    point: np.ndarray
    normal: np.ndarray
    separation: np.ndarray
    feature_a: np.ndarray
    feature_b: np.ndarray
    kind: np.ndarray

    def __len__(self) -> int:
        return len(self.separation)

    @property
    def depth(self) -> np.ndarray:
        return MARGIN - self.separation

    @property
    def middle(self) -> np.ndarray:
        return self.point + 0.5 * self.separation[:, None] * self.normal

    def rows(self, rows: Any) -> EmittedContacts:
        return EmittedContacts(*(getattr(self, name)[rows] for name in FIELDS))


def emitted(array: np.ndarray) -> EmittedContacts:
    """Of a structured array, as Warp gives it."""
    return EmittedContacts(*(np.ascontiguousarray(array[name]) for name in FIELDS))


def reduced(
    pairs: list[EmittedContacts],
    radii: tuple[float, float] | None = None,
    turn: Any = (0.0, 0, 0, 1),
    **options: Any,
) -> tuple[list[EmittedContacts], np.ndarray]:
    """What the engine keeps of each of several pairs of a box and a mesh, and float32[pairs, 2]
    scales of friction.

    The scales are those of the contacts and of the anchor, 1 where moments are not matched.

    The mesh is shape0 and a the box, so that features are ordered by feature_b first. With `radii`
    both are meshes of these sizes, and a is shape0. turn: quaternion xyzw of shape1 in the frame of
    shape0.
    """
    device = find_device("cpu")
    builder = ModelBuilder()
    margin = ShapeConfig(margin=MARGIN / 2)
    vertices, faces = torus(8, 6)
    for size in radii or (1.0,):
        builder.add_shape_mesh(builder.add_body(), size * vertices, faces, cfg=margin)
    if radii is None:
        builder.add_shape_box(builder.add_body(), hx=1.0, hy=1.0, hz=1.0, cfg=margin)
    model = upload_model(builder.finalize(), device)
    asked = ContactOptions(reduce_contacts=True, **options).checked()
    reduction = reduction_of(asked, {(8, 3) if radii is None else (8, 8)}, device)
    assert isinstance(reduction, Reduction)
    workspace = Workspace(device, 1 << 40)
    poses = np.array([[[[0.0, 0, 0, 0, 0, 0, 1], [0.0, 0, 0, *turn]]]])
    chunk = transform_chunk(model, PoseBatch(0, 1, 0, poses), workspace)
    count = len(pairs)
    pair, row = (wp.array([[0, 1]] * count, dtype=wp.vec2i, device=device) for _ in range(2))
    candidates = new_candidates(workspace, pair, row, count)
    sizes = [len(pair) for pair in pairs]
    most = max(sizes)
    contact = np.zeros(most * count, ContactRecord.numpy_dtype())
    for place, pair in enumerate(pairs):
        for name in FIELDS:  # as the pair colliders do: the first contacts of all pairs together
            contact[name][place::count][: len(pair)] = getattr(pair, name)
    held = wp.array(contact, dtype=ContactRecord, device=device)
    for array, values in (
        (candidates.found, sizes),
        (candidates.count, sizes),
        (candidates.first, np.arange(count)),
        (candidates.stride, np.full(count, count)),
    ):
        array.numpy()[:count] = values
    known = ElementCount(count, workspace.counts.unbounded)
    scale = reduction.reduce(model, chunk.instances, candidates, known, held, workspace)
    workspace.finish()
    found = held.numpy()
    kept = [
        emitted(found[place::count][:size])
        for place, size in enumerate(candidates.found.numpy()[:count])
    ]
    return kept, np.ones((count, 2), np.float32) if scale is None else scale.numpy()[:count]


def in_order(pair: EmittedContacts) -> EmittedContacts:
    """By feature_b, then feature_a: in canonical order."""
    return pair.rows(np.lexsort((pair.feature_a, pair.feature_b)))


def led_by_a(pair: EmittedContacts) -> EmittedContacts:
    """By feature_a, then feature_b: as a reduction goes through them."""
    return pair.rows(np.lexsort((pair.feature_b, pair.feature_a)))


NORMALS = bin_normals()
DIRECTIONS = bin_directions().reshape(20, 6, 3)


def along(vectors: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """float64[n]: dot products, summed from x to z."""
    return vectors[:, 0] * axis[0] + vectors[:, 1] * axis[1] + vectors[:, 2] * axis[2]


def kept_contacts(
    normal: np.ndarray,
    middle: np.ndarray,
    depth: np.ndarray,
    betas: tuple[float, ...] = (10.0, -0.5),
) -> list[int]:
    """Ascending numbers of the contacts that stay. normal, middle: float64[n, 3]. depth:
    float64[n], below 0 apart.

    The contacts are in canonical order, in the frame of the reduction.
    """
    bins = np.argmax(
        np.stack([along(normal, n).astype(np.float32) for n in NORMALS], axis=1), axis=1
    )
    kept: set[int] = set()
    for k in np.unique(bins):
        rows = np.flatnonzero(bins == k)
        kept.add(int(rows[np.argmax(depth[rows])]))
        offset = middle[rows] - np.cumsum(middle[rows], axis=0)[-1] / len(rows)
        deep = depth[rows] > 0.0
        for beta in betas:
            for direction in DIRECTIONS[k]:
                place = along(offset, direction)
                if beta >= 0.0:
                    score = place + depth[rows] * beta
                elif deep.any():
                    score = np.where(
                        deep, place * np.where(deep, depth[rows], 1.0) ** -beta, -np.inf
                    )
                else:
                    score = place
                kept.add(int(rows[np.argmax(score.astype(np.float32))]))
    return _balanced(kept, normal, depth)


def total_force(normal: np.ndarray, depth: np.ndarray) -> np.ndarray:
    """float64[3]: depths times normals of what penetrates, in order."""
    total = np.zeros(3)
    for n, d in zip(normal, depth, strict=True):
        total = total + max(d, 0.0) * n
    return total


def cosine(force: np.ndarray, direction: np.ndarray) -> float:
    size = math.sqrt(force[0] * force[0] + force[1] * force[1] + force[2] * force[2])
    return float(along(force[None], direction)[0] / size) if size else -1.0


def _balanced(kept: set[int], normal: np.ndarray, depth: np.ndarray) -> list[int]:
    """With what turns the force of those kept to within a degree of that of all: deep ones first,
    at last any."""
    whole = total_force(normal, depth)
    strength = math.sqrt(along(whole[None], whole)[0])
    if strength <= 1e-6 * np.maximum(depth, 0.0).sum():
        return sorted(kept)
    direction = whole / strength
    aligned = math.cos(math.radians(1.0))
    order = sorted(kept)
    force = total_force(normal[order], depth[order])
    now = cosine(force, direction)
    for least in [*(depth.max() * 0.5**step for step in range(1, 13)), 0.0, None]:
        for row in range(len(depth)):
            if now >= aligned:
                return sorted(kept)
            if row in kept or depth[row] <= (least or 0.0):
                continue
            moved = force + depth[row] * normal[row]
            then = cosine(moved, direction)
            if then > now + 1e-9 or least is None:
                kept.add(row)
                force = moved
                now = then
    return sorted(kept)
