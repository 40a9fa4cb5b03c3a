"""The depth of a pair and the directions of its deepest contacts do not depend on the gap, for all pairs of types."""

from __future__ import annotations

import numpy as np
import pytest

from tests.matrix.forms import CELLS
from tests.matrix.page import cell_name
from tests.matrix.routes import NEVER, route
from tests.matrix.runs import contacts_of, poses_for

GAPS = (0.0, 1e-3, 1e-2, 0.1, 1.0)
"""Of the size."""
ROUNDING = 1e-9
"""Of the size; a depth below it is a touch. Beyond it float32 of a distance may differ in its last place."""
FLOAT32 = 2.0**-23
TURN = 1e-5
"""Of a normal: mesh contacts merge within 1e-6 rad, and float32 rounds 1e-7."""
TOUCHING = [cell for cell in CELLS if route(*cell) != NEVER]


def deepest_of(contacts, frame: int, world: int) -> tuple[float, np.ndarray]:
    """The least distance, 0 without penetration, and the normals [n, 3] of the contacts that have it."""
    cell = contacts.cell(frame, world)
    least = float(cell.distance.min(initial=0.0))
    if least > -ROUNDING:
        return 0.0, np.zeros((0, 3))
    return least, cell.normal[cell.distance <= least + ROUNDING + FLOAT32 * abs(least)].astype(np.float64)


def covered(normals: np.ndarray, others: np.ndarray) -> bool:
    """Whether each normal is among others."""
    return all((np.abs(others - normal).max(1) < TURN).any() for normal in normals)


def differences(poses: np.ndarray) -> tuple[dict[str, list[str]], int]:
    """Of each pair the poses at which a gap changes what is deepest; and the number of overlaps."""
    runs = [contacts_of(TOUCHING, poses, 1.0, gap) for gap in GAPS]
    wrong: dict[str, list[str]] = {}
    overlaps = 0
    for world, cell in enumerate(TOUCHING):
        for frame in range(len(poses)):
            found = [deepest_of(run, frame, world) for run in runs]
            depth, normals = found[0]
            overlaps += depth < 0.0
            allowed = ROUNDING + FLOAT32 * abs(depth)
            for gap, (other, theirs) in zip(GAPS[1:], found[1:], strict=True):
                if abs(other - depth) > allowed or not (covered(normals, theirs) and covered(theirs, normals)):
                    pose = poses[frame, world].tolist()
                    text = f"{depth} along {normals.tolist()}, at gap {gap:g} {other} along {theirs.tolist()}: {pose}"
                    wrong.setdefault(cell_name(cell), []).append(text)
                    break
    return wrong, overlaps


@pytest.mark.parametrize(("poses", "seed"), [(9, 20), pytest.param(60, 21, marks=pytest.mark.slow)])
def test_the_deepest_contact_does_not_depend_on_the_gap(poses, seed):
    wrong, overlaps = differences(poses_for(TOUCHING, poses, seed))
    assert overlaps > poses * len(TOUCHING) / 5
    assert not wrong, "\n".join(f"{name}: {len(texts)}, first {texts[0]}" for name, texts in wrong.items())
