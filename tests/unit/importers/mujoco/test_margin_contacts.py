"""Margins and gaps of geoms and of pairs through the whole engine: the contacts are those of MuJoCo.

`distance` is MuJoCo's contact.dist - contact.includemargin (docs/reference/conventions.md).
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from collidecli.commands.python_api import Contacts, collide
from tests.support.mujoco_scenes import load

SPHERES = (("a", 0.1, 0.02), ("b", 0.3, 0.04), ("c", 0.0, 0.0), ("d", 0.05, 0.2))
"""Name, margin and gap of each; of radius 1."""
PAIRS = {
    "none": "",
    "of its own": '<pair geom1="a" geom2="b" margin="0.2" gap="0.07"/>',
    "less than the geoms'": '<pair geom1="b" geom2="a" margin="0.01" gap="0"/>',
    "several": '<pair geom1="d" geom2="a" margin="0.5" gap="0.25"/><pair geom1="a" geom2="c" margin="0.03" gap="0.02"/>'
    '<pair geom1="b" geom2="c" margin="0.4"/><pair geom1="floor" geom2="b" margin="0.15" gap="0.1"/>',
}
SURFACES = (-0.4, -0.05, 0.005, 0.019, 0.03, 0.06, 0.1, 0.13, 0.19, 0.21, 0.26, 0.28, 0.35, 0.42, 0.45, 0.6, 0.8)


def scene(contact: str) -> str:
    bodies = "".join(
        f'<body name="{name}"><freejoint/>'
        f'<geom name="{name}" type="sphere" size="1" margin="{margin}" gap="{gap}"/></body>'
        for name, margin, gap in SPHERES
    )
    floor = '<geom name="floor" type="plane" size="9 9 1" pos="0 0 -50" margin="0.02" gap="0.01"/>'
    return f"<mujoco><worldbody>{floor}{bodies}</worldbody><contact>{contact}</contact></mujoco>"


def positions() -> np.ndarray:
    """float64[F, 4, 3]: each two spheres, and each sphere and the floor, at each of the distances, the rest far."""
    far = np.array([[0.0, 0, 0], [100, 0, 0], [200, 0, 0], [300, 0, 0]])
    frames = []
    direction = np.array([0.6, 0.0, 0.8])
    for surface in SURFACES:
        for one in range(4):
            frames.append(far.copy())
            frames[-1][one, 2] = -50 + 1 + surface
            for other in range(one):
                frames.append(far.copy())
                frames[-1][one] = frames[-1][other] + (2 + surface) * direction
    return np.array(frames)


def ours(model, centres: np.ndarray) -> Contacts:
    order = [list(model.bodies.path).index(name) for name, _, _ in SPHERES]
    poses = np.zeros((len(centres), 1, len(model.bodies.path), 7))
    poses[..., 6] = 1.0
    poses[:, 0, order, :3] = centres
    return collide(model, poses)


@pytest.mark.parametrize("contact", PAIRS.values(), ids=PAIRS.keys())
def test_contacts_are_those_of_mujoco(tmp_path, contact):
    imported, model = load(tmp_path, scene(contact))
    centres = positions()
    found = ours(model, centres)
    mj_model, data = imported.mj_model, mujoco.MjData(imported.mj_model)
    seen = []
    for frame, at in enumerate(centres):
        data.qpos.reshape(4, 7)[:, :3] = at
        data.qpos.reshape(4, 7)[:, 3:] = (1, 0, 0, 0)
        mujoco.mj_forward(mj_model, data)
        cell = found.cell(frame)
        assert cell.rigid_contact_count == data.ncon, at
        for theirs in data.contact:
            geoms = sorted(int(imported.shape_row[geom]) for geom in theirs.geom)
            assert [cell.shape0[0], cell.shape1[0]] == geoms
            distance = theirs.dist - theirs.includemargin
            np.testing.assert_allclose(cell.distance[0], distance, atol=1e-7)
            # MuJoCo's position is midway between the two surfaces without margins.
            np.testing.assert_allclose((cell.point0[0] + cell.point1[0]) / 2, theirs.pos, atol=1e-12)
            gap = (cell.point1[0] - cell.point0[0]) @ cell.normal[0].astype(float)
            np.testing.assert_allclose(gap, theirs.dist, atol=1e-6)
            seen.append((distance < 0.0, theirs.dist < 0.0))
        seen.append(data.ncon)
    assert {(True, True), (True, False), (False, False), 0} <= set(seen)


def test_margins_of_columns_are_the_pair_s_halves(tmp_path):
    """margin0 + margin1 is what `distance` is less than the distance of the surfaces."""
    _, model = load(tmp_path, scene(PAIRS["several"]))
    centres = positions()
    rows = list(model.bodies.path)
    poses = np.zeros((len(centres), 1, len(rows), 7))
    poses[..., 6] = 1.0
    poses[:, 0, [rows.index(name) for name, _, _ in SPHERES], :3] = centres
    found = collide(model, poses, columns=("margin0", "margin1"))
    surfaces = np.einsum("ij,ij->i", found.point1 - found.point0, found.normal.astype(float))
    margins = found.columns["margin0"] + found.columns["margin1"]
    np.testing.assert_allclose(surfaces - margins, found.distance, atol=1e-6)
    assert len(np.unique(np.round(margins, 6))) >= 5


def test_given_margin_and_gap_replace_those_of_pairs(tmp_path):
    _, model = load(tmp_path, scene(PAIRS["several"]))
    centres = positions()
    poses = np.zeros((len(centres), 1, 4, 7))
    poses[..., 6] = 1.0
    poses[:, 0, [list(model.bodies.path).index(name) for name, _, _ in SPHERES], :3] = centres
    found = collide(model, poses, margin=0.1, gap=0.05)
    surfaces = np.einsum("ij,ij->i", found.point1 - found.point0, found.normal.astype(float))
    np.testing.assert_allclose(surfaces - 0.2, found.distance, atol=1e-6)
    expected = np.repeat(SURFACES, 10)
    assert found.rigid_contact_count == int(np.sum(expected - 0.2 < 0.1))
