"""World matrices of prims from the values of their transform operations. They equal those of UsdGeom.XformCache, are
bit-identical on every processor (`xform_ops`), and are computed for many prims and times at once."""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt

from collidecli.importers.usd.xform_ops import XformOp, op_matrices, parsed_order, slerp
from collidecli.numerics.matrices import matmul

_ARRAY_OF = {
    Gf.Vec3d: Vt.Vec3dArray,
    Gf.Vec3f: Vt.Vec3fArray,
    Gf.Vec3h: Vt.Vec3hArray,
    Gf.Quatd: Vt.QuatdArray,
    Gf.Quatf: Vt.QuatfArray,
    Gf.Quath: Vt.QuathArray,
    Gf.Matrix4d: Vt.Matrix4dArray,
}
"""Array type by type of value; NumPy reads it without a call per number. A quaternion becomes xyzw."""
_DIMENSIONS = {"rotateX": 1, "rotateY": 1, "rotateZ": 1, "transform": 3}
"""Dimensions of an array of values by kind; 2 for other kinds."""


class _Node:
    """A prim with transform operations. parent: index of the node above, -1 for none. ops: the outermost first.

    varies: the transform has more than one time sample. depth: number of nodes above.
    """

    __slots__ = ("_samples", "attributes", "depth", "ops", "parent", "prim", "varies")

    def __init__(self, prim: Usd.Prim, parent: int, depth: int, ops: tuple[XformOp, ...]) -> None:
        self.prim, self.parent, self.depth, self.ops = prim, parent, depth, ops
        self.attributes: list[Any] = [prim.GetAttribute(op.name) for op in ops]
        self.varies = any(attribute.ValueMightBeTimeVarying() for attribute in self.attributes)
        if self.varies:  # read many times: a query resolves the value's source once
            self.attributes = [Usd.AttributeQuery(attribute) for attribute in self.attributes]
        self._samples: dict[str, np.ndarray] = {}

    def samples(self, op: XformOp, attribute: Any) -> np.ndarray:
        """float64[n]: time codes of an operation's samples."""
        if op.name not in self._samples:
            self._samples[op.name] = np.array(attribute.GetTimeSamples(), np.float64)
        return self._samples[op.name]


class PrimTransforms:
    """World matrices of prims of a stage, in its units, at one or several times. The stage must not change meanwhile.

    time: of `matrix` and `matrices`.
    """

    def __init__(self, time: Usd.TimeCode) -> None:
        self._time = time
        self._nodes: list[_Node] = []
        self._index: dict[Any, int] = {}
        self._world: dict[int, np.ndarray] = {}

    def matrix(self, prim: Usd.Prim) -> np.ndarray:
        """float64[4, 4]: local to world; vectors are rows."""
        return self.matrices([prim])[0]

    def matrices(self, prims: Sequence[Usd.Prim]) -> np.ndarray:
        """float64[n, 4, 4]: local to world of each prim."""
        indices = [self._node_of(prim) for prim in prims]
        self._compute([self._time], self._world, indices)
        return np.array([self._world[index][0] for index in indices]).reshape(-1, 4, 4)

    def matrices_at(self, prims: Sequence[Usd.Prim], codes: np.ndarray) -> np.ndarray:
        """float64[times, n, 4, 4]: local to world of each prim at each time code."""
        indices = [self._node_of(prim) for prim in prims]
        world: dict[int, np.ndarray] = {}
        self._compute([Usd.TimeCode(float(code)) for code in codes], world, indices)
        found = np.empty((len(codes), len(prims), 4, 4))
        for column, index in enumerate(indices):
            found[:, column] = world[index]
        return found

    def _node_of(self, prim: Usd.Prim) -> int:
        """Index of a prim's node; -1 where neither the prim nor its ancestors have operations."""
        new: list[tuple[Usd.Prim, Any]] = []
        index = -1
        while prim and not prim.IsPseudoRoot():
            path = prim.GetPath()
            if path in self._index:
                index = self._index[path]
                break
            new.append((prim, path))
            prim = prim.GetParent()
        for below, path in reversed(new):
            index = self._index[path] = self._added(below, index)
        return index

    def _added(self, prim: Usd.Prim, parent: int) -> int:
        """Index of a new node below `parent`; `parent` where the prim has no operations."""
        order = prim.GetAttribute("xformOpOrder").Get() if prim.IsA(UsdGeom.Xformable) else None
        if not order:
            return parent
        reset, ops = _parsed(order)
        ops = tuple(op for op in ops if prim.HasAttribute(op.name))
        if reset:
            parent = -1
        if not ops and not reset:
            return parent
        depth = self._nodes[parent].depth + 1 if parent >= 0 else 0
        self._nodes.append(_Node(prim, parent, depth, ops))
        return len(self._nodes) - 1

    def _compute(self, times: list[Usd.TimeCode], world: dict[int, np.ndarray], indices: Sequence[int]) -> None:
        """Adds to `world` float64[times, 4, 4] of these nodes and their ancestors; [1, 4, 4] of constant ones."""
        needed: set[int] = set()
        for index in indices:
            while index >= 0 and index not in world and index not in needed:
                needed.add(index)
                index = self._nodes[index].parent
        world.setdefault(-1, np.eye(4)[None])
        local = self._local(sorted(needed), times)
        by_depth: defaultdict[int, list[int]] = defaultdict(list)
        for index in needed:
            by_depth[self._nodes[index].depth].append(index)
        for depth in sorted(by_depth):
            if depth:
                self._multiply(by_depth[depth], local, world)
            else:
                world.update((index, local[index]) for index in by_depth[0])

    def _multiply(self, indices: list[int], local: dict[int, np.ndarray], world: dict[int, np.ndarray]) -> None:
        """World matrices of nodes whose parents are computed; arrays of equal shapes are multiplied together."""
        groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        for index in indices:
            groups[len(local[index]), len(world[self._nodes[index].parent])].append(index)
        for group in groups.values():
            own = np.array([local[index] for index in group])
            above = np.array([world[self._nodes[index].parent] for index in group])
            world.update(zip(group, matmul(own, above), strict=True))

    def _local(self, indices: list[int], times: list[Usd.TimeCode]) -> dict[int, np.ndarray]:
        """float64[times, 4, 4], or [1, 4, 4], of each node; nodes with equal operations are computed together."""
        groups: defaultdict[tuple, list[int]] = defaultdict(list)
        for index in indices:
            node = self._nodes[index]
            groups[tuple((op.kind, op.inverse) for op in node.ops), node.varies].append(index)
        found: dict[int, np.ndarray] = {}
        for (_, varies), group in groups.items():
            nodes = [self._nodes[index] for index in group]
            at = times if varies else times[:1]
            total = np.eye(4)[None]
            # The innermost operation is applied first and is the left factor.
            for number in range(len(nodes[0].ops) - 1, -1, -1):
                matrices = _matrices_of([(node, node.ops[number], node.attributes[number]) for node in nodes], at)
                total = matmul(total, matrices) if number < len(nodes[0].ops) - 1 else matrices
            total = np.broadcast_to(total, (len(group) * len(at), 4, 4)).reshape(len(group), len(at), 4, 4)
            found.update(zip(group, total, strict=True))
        return found


_ORDERS: dict[str, tuple[bool, tuple[XformOp, ...]]] = {}


def _parsed(order: Vt.TokenArray) -> tuple[bool, tuple[XformOp, ...]]:
    """`parsed_order`, cached by the array's text: conversion of its tokens to strings takes five times as long."""
    text = str(order)
    if text not in _ORDERS:
        if len(_ORDERS) > 10_000:
            _ORDERS.clear()
        _ORDERS[text] = parsed_order(tuple(order))
    return _ORDERS[text]


def _matrices_of(column: list[tuple[_Node, XformOp, Any]], times: list[Usd.TimeCode]) -> np.ndarray:
    """float64[nodes * times, 4, 4] of one operation of each node, all of one kind; the identity without a value."""
    op = column[0][1]
    values: list[Any] = []
    for _, _, attribute in column:
        if len(times) > 1 and not attribute.ValueMightBeTimeVarying():
            values += [attribute.Get(times[0])] * len(times)
        else:
            values += [attribute.Get(time) for time in times]
    found = np.broadcast_to(np.eye(4), (len(values), 4, 4)).copy()
    by_type: defaultdict[type, list[int]] = defaultdict(list)
    for row, value in enumerate(values):
        if value is not None:
            by_type[type(value)].append(row)
    for kind, rows in by_type.items():
        if kind not in _ARRAY_OF and kind is not float:
            found[rows] = [_by_pxr(column[row // len(times)], times[row % len(times)]) for row in rows]
            continue
        chosen = [values[row] for row in rows]
        numbers = np.array(chosen if kind is float else _ARRAY_OF[kind](chosen), np.float64)
        if op.kind == "orient":
            _interpolate(numbers, rows, column, times)
        made = op_matrices(op, numbers) if numbers.ndim == _DIMENSIONS.get(op.kind, 2) else None
        if made is None:
            made = np.array([_by_pxr(column[row // len(times)], times[row % len(times)]) for row in rows])
        found[rows] = made
    return found


def _by_pxr(entry: tuple[_Node, XformOp, Any], time: Usd.TimeCode) -> np.ndarray:
    """float64[4, 4] of an operation that calls no function of the C library."""
    node, op, _ = entry
    for each in UsdGeom.Xformable(node.prim).GetOrderedXformOps():
        if each.GetAttr().GetName() == op.name and each.IsInverseOp() == op.inverse:
            return np.array(each.GetOpTransform(time))
    return np.eye(4)


def _interpolate(
    numbers: np.ndarray, rows: list[int], column: list[tuple[_Node, XformOp, Any]], times: list[Usd.TimeCode]
) -> None:
    """Replaces quaternions between samples, for which pxr uses the C library's functions, by those of `slerp`."""
    if column[0][0].prim.GetStage().GetInterpolationType() != Usd.InterpolationTypeLinear:
        return
    between: list[tuple[int, float, Any, Any]] = []
    index = np.full(len(column) * len(times), -1)
    index[rows] = np.arange(len(rows))
    codes = np.array([time.GetValue() for time in times])
    for k, (node, op, attribute) in enumerate(column):
        for at in np.flatnonzero(~np.isin(codes, node.samples(op, attribute))) if node.varies else ():
            bracket, number = attribute.GetBracketingTimeSamples(codes[at]), int(index[k * len(times) + at])
            if bracket and bracket[0] < codes[at] < bracket[1] and number >= 0:
                first, second = (attribute.Get(code) for code in bracket)
                if first is not None and second is not None:
                    between.append((number, (codes[at] - bracket[0]) / (bracket[1] - bracket[0]), first, second))
    if between:
        chosen, t, first, second = zip(*between, strict=True)
        kind = _ARRAY_OF[type(first[0])]
        ends = np.array(kind(list(first)), np.float64), np.array(kind(list(second)), np.float64)
        numbers[list(chosen)] = slerp(np.array(t), *ends)
