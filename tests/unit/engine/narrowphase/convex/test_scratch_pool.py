"""Slots of memory for EPA's arrays, as the CPU has them."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.primitives import Primitive, Vertex
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.epa import (
    CPU_SLOT_COUNT,
    FAN_END,
    LARGE_CAPACITY,
    SLOT_BYTES,
    active_lanes,
    all_done,
    depth_in_slot,
    depth_with_capacity,
    give_back_slot,
    is_on_gpu,
    spread_tetrahedron,
    take_slot,
)
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType

SMALL_CAPACITY = 36
large_local_arrays = depth_with_capacity(LARGE_CAPACITY, "large_local_arrays")


def take_all(address: wp.array[wp.uint64], found: wp.array[int]):
    found[0] = is_on_gpu()
    for k in range(wp.static(CPU_SLOT_COUNT)):
        address[k] = take_slot()
    address[wp.static(CPU_SLOT_COUNT)] = take_slot()
    give_back_slot(address[5])
    address[wp.static(CPU_SLOT_COUNT + 1)] = take_slot()
    for k in range(wp.static(CPU_SLOT_COUNT)):
        give_back_slot(address[k])
    found[1] = all_done(active_lanes(), 0)
    found[2] = all_done(active_lanes(), 1)


def test_a_slot_is_held_by_one_until_it_is_given_back():
    find_device("cpu")
    address = wp.zeros(CPU_SLOT_COUNT + 2, dtype=wp.uint64, device="cpu")
    found = wp.zeros(3, dtype=int, device="cpu")
    take_all_slots = kernel(take_all)
    for _ in range(2):  # all slots are free again after a launch
        wp.launch(take_all_slots, 1, inputs=[address, found], device="cpu")
        taken = np.sort(address.numpy()[:CPU_SLOT_COUNT].astype(np.int64))
        assert taken[0] > 0
        assert np.all(np.diff(taken) >= SLOT_BYTES)
        assert address.numpy()[CPU_SLOT_COUNT] == 0  # none is free
        assert address.numpy()[CPU_SLOT_COUNT + 1] == address.numpy()[5]
        assert found.numpy().tolist() == [0, 0, 1]


def both_depths(poses: wp.array[Pose], depth: wp.array2d[Real], normal: wp.array2d[Vec3], count: wp.array2d[int]):
    pair = wp.tid()
    a = Primitive()
    a.type = wp.static(int(ShapeType.CYLINDER))
    a.size = Vec3(Real(0.3), Real(0.4), Real(0.0))
    b = Primitive()
    b.type = wp.static(int(ShapeType.CONE))
    b.size = Vec3(Real(0.5), Real(0.6), Real(0.0))
    difference = minkowski_difference(a, b, poses[pair])
    simplex = wp.zeros(shape=4, dtype=Vertex)
    spread_tetrahedron(difference, simplex)
    local = large_local_arrays(difference, simplex)
    pooled = depth_in_slot(difference, simplex)
    depth[pair, 0] = local.depth
    depth[pair, 1] = pooled.depth
    normal[pair, 0] = local.normal
    normal[pair, 1] = pooled.normal
    count[pair, 0] = local.vertex_count
    count[pair, 1] = pooled.vertex_count


def test_depths_with_slots_are_those_with_local_arrays():
    find_device("cpu")
    pairs = 4 * CPU_SLOT_COUNT  # so that slots are used again, with the contents of earlier searches
    rng = np.random.default_rng(0)
    poses = np.concatenate([rng.uniform(-0.3, 0.3, (pairs, 3)), rng.normal(size=(pairs, 4))], axis=1)
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    poses[: pairs // 4] = [0, 0, 0.1, 0, 0, 0, 1]  # coaxial: rings of equal minima
    depth, normal = wp.zeros((pairs, 2), dtype=Real, device="cpu"), wp.zeros((pairs, 2), dtype=Vec3, device="cpu")
    count = wp.zeros((pairs, 2), dtype=int, device="cpu")
    inputs = [wp.array(poses, dtype=Pose, device="cpu"), depth, normal, count]
    wp.launch(kernel(both_depths), pairs, inputs=inputs, device="cpu")
    for values in (depth, normal, count):
        local, pooled = np.moveaxis(values.numpy(), 1, 0)
        np.testing.assert_array_equal(local, pooled)
    assert np.all(depth.numpy() > 0.0)
    assert count.numpy().max() > SMALL_CAPACITY


def test_the_arrays_of_a_search_fit_into_a_slot():
    assert pytest.approx(SLOT_BYTES, rel=0.1) == FAN_END
    assert FAN_END <= SLOT_BYTES
