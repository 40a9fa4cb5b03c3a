"""Rotations that MuJoCo's parser has computed while it read the text: `rpy` of a URDF, `euler` of MJCF's `<replicate>`.

A spec holds their quaternions alone, made with the C library's sine and cosine, whose last bit depends on the
processor. They are computed again from the text, by `numerics.elementary`, and each takes the place of the parser's
that agrees with it to rounding.
"""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from xml.etree import ElementTree

import mujoco
import numpy as np

from collidecli.importers.mujoco.orientation import euler_quaternions
from collidecli.numerics.matrices import cross

ROUNDING = 1e-13
"""How far two computations of one frame may differ, as a share of its position where that is beyond 1 m."""


def restore_urdf_origins(spec: mujoco.MjSpec, text: bytes) -> None:
    """Sets the orientations of a URDF's bodies and geoms, as computed from the `rpy` of its origins."""
    angles = [_numbers(origin.get("rpy", ""), 3) for root in _roots([text]) for origin in root.iter("origin")]
    found = np.unique([a for a in angles if a is not None], axis=0).reshape(-1, 3)
    elements = [*spec.bodies, *spec.geoms]
    for element, quaternion in _matches(
        elements, [e.quat for e in elements], euler_quaternions(found, ["XYZ"] * len(found))
    ):
        element.quat = quaternion


def restore_replicates(spec: mujoco.MjSpec, texts: Iterable[bytes]) -> None:
    """Sets the frames of a scene's replicas, as computed from `count`, `offset` and `euler` in its files."""
    replicates = [
        element
        for root in _roots(text for text in texts if b"<replicate" in text)
        for element in root.iter("replicate")
    ]
    frames = list(spec.frames) if replicates else []
    settings = {("".join(map(str, frame.compiler.eulerseq)), bool(frame.compiler.degree)) for frame in frames}
    made = [pose for element in replicates for setting in sorted(settings) for pose in _replicas(element, *setting)]
    held = [np.concatenate([frame.pos, frame.quat]) for frame in frames]
    for frame, pose in _matches(frames, held, np.array(made, np.float64).reshape(-1, 7)):
        frame.pos, frame.quat = pose[:3], pose[3:]


def _replicas(element: ElementTree.Element, sequence: str, degree: bool) -> list[np.ndarray]:
    """float64[7] of each replica's frame: each is the one before, moved by the offset and turned."""
    count = element.get("count", "")
    euler = _numbers(element.get("euler", ""), 3)
    offset = _numbers(element.get("offset", "0 0 0"), 3)
    if not count.isdigit() or euler is None or offset is None or set(sequence.lower()) - set("xyz"):
        return []
    turn = euler_quaternions((euler / 180.0 * np.pi if degree else euler)[None], [sequence])[0]
    position, rotation, found = np.zeros(3), np.array([1.0, 0.0, 0.0, 0.0]), []
    for _ in range(int(count)):
        found.append(np.concatenate([position, rotation]))
        position = position + _rotated(offset, rotation)
        rotation = _product(rotation, turn)
    return found


def _matches(elements: list[Any], held: list[Any], made: np.ndarray) -> Iterable[tuple[Any, np.ndarray]]:
    """Elements with the one of `made` that what they hold agrees with."""
    from scipy.spatial import KDTree

    if not elements or not len(made):
        return
    rows = np.array(held, np.float64)
    sound = np.flatnonzero(np.isfinite(rows).all(axis=1))
    distance, nearest = KDTree(made).query(rows[sound])
    near = distance <= ROUNDING * np.maximum(1.0, np.abs(rows[sound]).max(axis=1, initial=0.0))
    for row, place in zip(sound[near].tolist(), np.asarray(nearest)[near].tolist(), strict=True):
        yield elements[row], made[place]


def _roots(texts: Iterable[bytes]) -> Iterable[ElementTree.Element]:
    """Root elements of the texts that Python's parser reads too; MuJoCo's is more lenient."""
    for text in texts:
        try:
            yield ElementTree.fromstring(text)
        except ElementTree.ParseError:
            continue


def _numbers(text: str, count: int) -> np.ndarray | None:
    try:
        found = np.array([float(word) for word in text.split()])
    except ValueError:
        return None
    return found if len(found) == count and np.isfinite(found).all() else None


def _rotated(vector: np.ndarray, q: np.ndarray) -> np.ndarray:
    half = q[0] * vector + cross(q[1:], vector)
    return vector + 2.0 * cross(q[1:], half)


def _product(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    imaginary = p[0] * q[1:] + q[0] * p[1:] + cross(p[1:], q[1:])
    return np.array([p[0] * q[0] - p[1] * q[1] - p[2] * q[2] - p[3] * q[3], *imaginary])
