"""World matrices of prims from the values of their transform operations.

They equal those of UsdGeom.XformCache, are bit-identical on every processor (`transform`), and are
computed for many prims and times at once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
from pxr import Gf, Usd, UsdGeom, Vt

from collidecli.importers.usd.transforms import (
    TransformError,
    check_columns,
    columns_of,
    rotation_of,
    scales_of,
)
from collidecli.importers.usd.typed_attributes import (
    MATRIX,
    QUATERNION,
    REAL,
    TOKENS,
    VECTOR,
    check_type,
    read_value,
)
from collidecli.numerics.products import dot, matmul, norm
from collidecli.numerics.trigonometry import acos, sin, sincos

RESET = "!resetXformStack!"
INVERSE = "!invert!"
_SHORTEST = 1e-10
"""GF_MIN_VECTOR_LENGTH: length of a quaternion's imaginary part below which pxr uses the
identity."""
_UNIT = 1e-10
"""Deviation of an axis' squared length from 1 above which pxr normalizes it."""
_NEARLY_EQUAL = 1e-5
"""1 - cosine of the angle between two quaternions below which pxr interpolates them linearly."""


@dataclass(frozen=True)
class XformOp:
    """One operation of a prim. name: of its attribute. kind: for example `translate` or
    `rotateXYZ`."""

    name: str
    kind: str
    inverse: bool


@cache
def parsed_order(order: tuple[str, ...]) -> tuple[bool, tuple[XformOp, ...]]:
    """Whether xformOpOrder resets the transform stack, and its operations, the outermost first.

    As in pxr, operations before a reset have no effect, and an operation next to its inverse
    cancels it.
    """
    reset = RESET in order
    ops: list[XformOp] = []
    for token in order[len(order) - order[::-1].index(RESET) :] if reset else order:
        name = token.removeprefix(INVERSE)
        op = XformOp(name, name.removeprefix("xformOp:").split(":")[0], token.startswith(INVERSE))
        if ops and ops[-1].name == op.name and ops[-1].inverse != op.inverse:
            ops.pop()
        else:
            ops.append(op)
    return reset, tuple(ops)


def op_matrices(op: XformOp, value: np.ndarray) -> np.ndarray | None:
    """float64[n, 4, 4] of an operation's values [n], [n, 3], [n, 4] xyzw or [n, 4, 4]; None for a
    kind not handled.

    The kinds that are not handled use no function of the C library: pxr's matrix has equal bits on
    every processor.
    """
    value = np.asarray(value, np.float64)
    if op.kind == "orient":
        return _matrices4(_of_axis(*_axis_and_angle(value), op.inverse))
    if op.kind.startswith("rotate"):
        letters = op.kind.removeprefix("rotate")
        if len(letters) == 1:
            axis = np.eye(3)["XYZ".index(letters)]
            return _matrices4(_of_axis(axis, value, op.inverse))
        rotations = {
            letter: _of_axis(np.eye(3)[k], value[:, k], False) for k, letter in enumerate("XYZ")
        }
        product = matmul(
            matmul(rotations[letters[0]], rotations[letters[1]]), rotations[letters[2]]
        )
        return _matrices4(np.swapaxes(product, -1, -2) if op.inverse else product)
    if op.kind == "translate":
        matrices = _identities(len(value))
        matrices[:, 3, :3] = -value if op.inverse else value
        return matrices
    if op.kind == "transform" and not op.inverse:
        return value
    if op.kind == "scale" and not op.inverse:
        matrices = _identities(len(value))
        matrices[:, (0, 1, 2), (0, 1, 2)] = value
        return matrices
    return None


def slerp(t: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[n, 4]: quaternions [n, 4] interpolated on the shorter arc at parameters t [n], with
    pxr's formula.

    In float64; pxr rounds each step of the interpolation of float32 quaternions to float32.
    """
    cosine = dot(first, second)
    sign = np.where(cosine < 0.0, -1.0, 1.0)
    angle = acos(np.minimum(np.abs(cosine), 1.0))
    nearly = 1.0 - np.abs(cosine) <= _NEARLY_EQUAL
    sine = np.where(nearly, 1.0, sin(angle))
    left = np.where(nearly, 1.0 - t, sin((1.0 - t) * angle) / sine)
    right = np.where(nearly, t, sin(t * angle) / sine)
    return left[:, None] * first + (sign * right)[:, None] * second


def _axis_and_angle(quaternion: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Axis, float64[n, 3], and angle [degree] of quaternions xyzw, which need not be of unit
    length: pxr's GfRotation.

    The angle is computed from the real part only: pxr does not normalize.
    """
    imaginary = quaternion[:, :3]
    length = norm(imaginary)
    rotates = length > _SHORTEST
    with np.errstate(all="ignore"):
        angle = np.where(
            rotates, 2.0 * (acos(np.clip(quaternion[:, 3], -1.0, 1.0)) * (180.0 / np.pi)), 0.0
        )
        axis = np.where(
            rotates[:, None], imaginary * (1.0 / length)[:, None], np.array([1.0, 0.0, 0.0])
        )
        size = norm(axis)
        off = np.abs(size * size - 1.0) >= _UNIT
        return np.where(off[:, None], axis * (1.0 / size)[:, None], axis), angle


def _of_axis(axis: np.ndarray, angle: np.ndarray, inverse: bool) -> np.ndarray:
    """float64[n, 3, 3]: rotations about an axis by angles [degree]."""
    sine, cosine = sincos((-angle if inverse else angle) * (np.pi / 180.0) / 2.0)
    x, y, z = np.moveaxis(axis * sine[:, None], -1, 0)
    length = np.sqrt(cosine * cosine + ((x * x + y * y) + z * z))
    factor = 1.0 / length
    x = x * factor
    y = y * factor
    z = z * factor
    w = cosine * factor
    matrices = np.empty((len(sine), 3, 3))
    matrices[:, 0] = np.stack(
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + z * w), 2.0 * (z * x - y * w)], axis=-1
    )
    matrices[:, 1] = np.stack(
        [2.0 * (x * y - z * w), 1.0 - 2.0 * (z * z + x * x), 2.0 * (y * z + x * w)], axis=-1
    )
    matrices[:, 2] = np.stack(
        [2.0 * (z * x + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (y * y + x * x)], axis=-1
    )
    return matrices


def _matrices4(rotation: np.ndarray) -> np.ndarray:
    matrices = _identities(len(rotation))
    matrices[:, :3, :3] = rotation
    return matrices


def _identities(count: int) -> np.ndarray:
    return np.broadcast_to(np.eye(4), (count, 4, 4)).copy()


_ARRAY_OF = {
    Gf.Vec3d: Vt.Vec3dArray,
    Gf.Vec3f: Vt.Vec3fArray,
    Gf.Vec3h: Vt.Vec3hArray,
    Gf.Quatd: Vt.QuatdArray,
    Gf.Quatf: Vt.QuatfArray,
    Gf.Quath: Vt.QuathArray,
    Gf.Matrix4d: Vt.Matrix4dArray,
}
"""Array type by type of value; NumPy reads it without a call per number. A quaternion becomes
xyzw."""
_KINDS = {
    "orient": QUATERNION,
    "transform": MATRIX,
    **dict.fromkeys(("translate", "scale"), VECTOR),
    **{f"{part}{axis}": REAL for part in ("rotate", "translate", "scale") for axis in "XYZ"},
    **{"rotate" + "".join(order): VECTOR for order in permutations("XYZ")},
}
"""Kinds of values by kind of operation."""
_DIMENSIONS = {"rotateX": 1, "rotateY": 1, "rotateZ": 1, "transform": 3}
"""Dimensions of an array of values by kind; 2 for other kinds."""


class _Node:
    """A prim with transform operations. parent: index of the node above, -1 for none. ops: the
    outermost first.

    varies: the transform has more than one time sample. depth: number of nodes above.
    """

    __slots__ = ("_samples", "attributes", "depth", "ops", "parent", "prim", "varies")

    def __init__(self, prim: Usd.Prim, parent: int, depth: int, ops: tuple[XformOp, ...]) -> None:
        self.prim = prim
        self.parent = parent
        self.depth = depth
        self.ops = ops
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
    """World matrices of prims of a stage, in its units, at one or several times. The stage must not
    change meanwhile.

    time: of `matrix` and `matrices`. file: of the stage, in errors. Raises InputError with the prim
    for an operation of another type.
    """

    def __init__(self, time: Usd.TimeCode, file: str) -> None:
        self._time = time
        self._file = file
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
        matrices = np.empty((len(codes), len(prims), 4, 4))
        for column, index in enumerate(indices):
            matrices[:, column] = world[index]
        return matrices

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
        if not prim.IsA(UsdGeom.Xformable):
            return parent
        attribute = prim.GetAttribute("xformOpOrder")
        order = read_value(attribute, TOKENS, self._where(prim), Usd.TimeCode.Default())
        if not order:
            return parent
        # Cached by the array's text: conversion of its tokens to strings takes five times as long.
        text = str(order)
        if text not in _ORDERS:
            if len(_ORDERS) > 10_000:
                _ORDERS.clear()
            _ORDERS[text] = parsed_order(tuple(order))
        reset, ops = _ORDERS[text]
        ops = tuple(op for op in ops if prim.HasAttribute(op.name))
        if reset:
            parent = -1
        if not ops and not reset:
            return parent
        depth = self._nodes[parent].depth + 1 if parent >= 0 else 0
        self._nodes.append(_Node(prim, parent, depth, ops))
        return len(self._nodes) - 1

    def _where(self, prim: Usd.Prim) -> str:
        return f"{self._file} <{prim.GetPath()}>"

    def _compute(
        self, times: list[Usd.TimeCode], world: dict[int, np.ndarray], indices: Sequence[int]
    ) -> None:
        """Adds to `world` float64[times, 4, 4] of these nodes and their ancestors; [1, 4, 4] of
        constant ones."""
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
                # Arrays of equal shapes are multiplied together.
                groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
                for index in by_depth[depth]:
                    groups[len(local[index]), len(world[self._nodes[index].parent])].append(index)
                for group in groups.values():
                    of_group = np.array([local[index] for index in group])
                    above = np.array([world[self._nodes[index].parent] for index in group])
                    world.update(zip(group, matmul(of_group, above), strict=True))
            else:
                world.update((index, local[index]) for index in by_depth[0])

    def _local(self, indices: list[int], times: list[Usd.TimeCode]) -> dict[int, np.ndarray]:
        """float64[times, 4, 4], or [1, 4, 4], of each node; nodes with equal operations are
        computed together."""
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
                column = [(node, node.ops[number], node.attributes[number]) for node in nodes]
                matrices = self._matrices_of(column, at)
                total = matmul(total, matrices) if number < len(nodes[0].ops) - 1 else matrices
            total = np.broadcast_to(total, (len(group) * len(at), 4, 4)).reshape(
                len(group), len(at), 4, 4
            )
            found.update(zip(group, total, strict=True))
        return found

    def _matrices_of(
        self, column: list[tuple[_Node, XformOp, Any]], times: list[Usd.TimeCode]
    ) -> np.ndarray:
        """float64[nodes * times, 4, 4] of one operation of each node, all of one kind; the identity
        without a value."""
        op = column[0][1]
        values: list[Any] = []
        for _, _, attribute in column:
            if len(times) > 1 and not attribute.ValueMightBeTimeVarying():
                values += [attribute.Get(times[0])] * len(times)
            else:
                values += [attribute.Get(time) for time in times]
        matrices = np.broadcast_to(np.eye(4), (len(values), 4, 4)).copy()
        by_type: defaultdict[type, list[int]] = defaultdict(list)
        for row, value in enumerate(values):
            if value is not None:
                by_type[type(value)].append(row)
        for kind, rows in by_type.items():
            chosen = [values[row] for row in rows]
            if op.kind in _KINDS:
                prim = column[rows[0] // len(times)][0].prim
                check_type(chosen[0], op.name, _KINDS[op.kind], self._where(prim))
            made = None
            if kind in _ARRAY_OF or kind is float:
                numbers = np.array(chosen if kind is float else _ARRAY_OF[kind](chosen), np.float64)
                if op.kind == "orient":
                    _interpolate(numbers, rows, column, times)
                if numbers.ndim == _DIMENSIONS.get(op.kind, 2):
                    made = op_matrices(op, numbers)
            if made is None:
                made = np.array(
                    [_by_pxr(column[row // len(times)], times[row % len(times)]) for row in rows]
                )
            matrices[rows] = made
        return matrices


_ORDERS: dict[str, tuple[bool, tuple[XformOp, ...]]] = {}


def _by_pxr(entry: tuple[_Node, XformOp, Any], time: Usd.TimeCode) -> np.ndarray:
    """float64[4, 4] of an operation that calls no function of the C library."""
    node, op, _ = entry
    for xform_op in UsdGeom.Xformable(node.prim).GetOrderedXformOps():
        if xform_op.GetAttr().GetName() == op.name and xform_op.IsInverseOp() == op.inverse:
            return np.array(xform_op.GetOpTransform(time))
    return np.eye(4)


def _interpolate(
    numbers: np.ndarray,
    rows: list[int],
    column: list[tuple[_Node, XformOp, Any]],
    times: list[Usd.TimeCode],
) -> None:
    """Replaces quaternions between samples, for which pxr uses the C library's functions, by those
    of `slerp`."""
    if column[0][0].prim.GetStage().GetInterpolationType() != Usd.InterpolationTypeLinear:
        return
    between: list[tuple[int, float, Any, Any]] = []
    index = np.full(len(column) * len(times), -1)
    index[rows] = np.arange(len(rows))
    codes = np.array([time.GetValue() for time in times])
    for k, (node, op, attribute) in enumerate(column):
        if not node.varies:
            continue
        # To read the list of samples pays for many times only.
        for at in (
            [0] if len(codes) == 1 else np.flatnonzero(~np.isin(codes, node.samples(op, attribute)))
        ):
            bracket = attribute.GetBracketingTimeSamples(codes[at])
            number = int(index[k * len(times) + at])
            if bracket and bracket[0] < codes[at] < bracket[1] and number >= 0:
                first, second = (attribute.Get(code) for code in bracket)
                if first is not None and second is not None:
                    between.append(
                        (
                            number,
                            (codes[at] - bracket[0]) / (bracket[1] - bracket[0]),
                            first,
                            second,
                        )
                    )
    if between:
        chosen, t, first, second = zip(*between, strict=True)
        kind = _ARRAY_OF[type(first[0])]
        ends = np.array(kind(list(first)), np.float64), np.array(kind(list(second)), np.float64)
        numbers[list(chosen)] = slerp(np.array(t), *ends)


AXIS_ORDER = {"X": (1, 2, 0), "Y": (2, 0, 1), "Z": (0, 1, 2)}
"""Prim axes of the shape's x, y, z, for each axis of symmetry; a cyclic order, which adds no
reflection."""


@dataclass(frozen=True)
class ReorderedAxes:
    """The prims with permuted axes: scale, as rows of positive floats, and rotation float64[N, 3,
    3].

    A reflection is applied across the middle axis, which does not change shapes that are symmetric
    about the last axis.
    """

    scale: list[list[float]]
    rotation: np.ndarray


class WorldTransforms:
    """Transforms of prims in the world, at the time of `transforms`.

    position: float64[N, 3], in stage units. columns: float64[N, 3, 3], images of the axes. The
    rotations of transforms that `check` refuses are undefined.
    """

    def __init__(self, transforms: PrimTransforms, prims: Mapping[str, Usd.Prim]) -> None:
        self._row = {path: row for row, path in enumerate(prims)}
        matrix = transforms.matrices(list(prims.values()))
        self.position = matrix[:, 3, :3]
        self.columns = columns_of(matrix)
        self._reordered: dict[str, ReorderedAxes] = {}
        try:
            check_columns(self.columns)
            self._all_valid = True
        except TransformError:
            self._all_valid = False

    def row(self, path: str) -> int:
        return self._row[path]

    def check(self, path: str) -> None:
        """Raises TransformError for a prim with a shear, a zero scale or a value that is not
        finite."""
        if not self._all_valid:
            check_columns(self.columns[self._row[path]])

    def reordered(self, axis: str) -> ReorderedAxes:
        """All prims with axes permuted so that `axis` (X, Y or Z) is last."""
        if axis not in self._reordered:
            columns = self.columns[:, :, AXIS_ORDER[axis]]
            with np.errstate(all="ignore"):
                signed = scales_of(columns)
                mirrored = np.where(signed[:, :1] < 0.0, -1.0, 1.0)
                proper = columns.copy()
                proper[:, :, 1] *= mirrored
                self._reordered[axis] = ReorderedAxes(np.abs(signed).tolist(), rotation_of(proper))
        return self._reordered[axis]
