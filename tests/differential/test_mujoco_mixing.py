"""Contact parameters of MJCF scenes against MuJoCo's own contacts: friction, dim, solref, solimp of every pair."""

# MuJoCo's names come from compiled modules, which pyright cannot see.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.commands.python_api import Contacts
from collidecli.importers.mujoco.compile import collected_messages
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.mixing import ContactMixing

COLUMNS = ("friction", "torsional_friction", "rolling_friction", "condim", "friction5", "solref", "solimp")
GEOMS = 24
ROUNDING = 2.0**-23
"""Of float32 columns: one rounding of MuJoCo's float64, and one in the last place of a sum taken in another order."""


def numbers(values) -> str:
    return " ".join(repr(float(value)) for value in np.atleast_1d(values))


def random_solref(rng: np.random.Generator) -> np.ndarray:
    """Standard, direct (both negative), mixed signs, zeros."""
    kind = rng.integers(5)
    standard = rng.uniform(0.005, 0.1), rng.uniform(0.5, 2.0)
    direct = -rng.uniform(100.0, 5000.0), -rng.uniform(10.0, 100.0)
    return np.array([standard, standard, direct, (standard[0], direct[1]), (0.0, 0.0)][kind])


def random_solimp(rng: np.random.Generator) -> np.ndarray:
    return np.array([*np.sort(rng.uniform(0.1, 0.99, 2)), *rng.uniform(0.001, 0.01, 1), 0.5, rng.integers(1, 4)])


def attributes(rng: np.random.Generator, friction_count: int) -> str:
    return (
        f'condim="{rng.choice([1, 3, 4, 6])}" friction="{numbers(random_friction(rng, friction_count))}" '
        f'solref="{numbers(random_solref(rng))}" solimp="{numbers(random_solimp(rng))}"'
    )


def random_friction(rng: np.random.Generator, count: int) -> np.ndarray:
    """Some zero: MuJoCo raises them to its least coefficient."""
    return np.where(rng.random(count) < 0.2, 0.0, rng.uniform(1e-6, 2.0, count))


def heap(seed: int, option: str = "") -> str:
    """Spheres and boxes, all in one place, no two alike, and every sixth pair of neighbours a <pair>."""
    rng = np.random.default_rng(seed)
    bodies, pairs = [], []
    for k in range(GEOMS):
        solmix = rng.choice([0.0, 1.0, rng.uniform(0.0, 5.0), 1e-16, -1.0])
        kind = 'type="sphere" size="0.5"' if rng.random() < 0.7 else 'type="box" size="0.4 0.5 0.6"'
        bodies.append(
            f'<body pos="{numbers(rng.uniform(-0.05, 0.05, 3))}"><freejoint/><geom name="g{k}" {kind} '
            f'priority="{rng.integers(-1, 2)}" solmix="{numbers(solmix)}" {attributes(rng, 3)}/></body>'
        )
        if k % 6 == 5:
            own = attributes(rng, 5) if rng.random() < 0.7 else ""
            pairs.append(f'<pair geom1="g{k}" geom2="g{k - 1}" margin="0.01" {own}/>')
    return f"<mujoco>{option}<worldbody>{''.join(bodies)}</worldbody><contact>{''.join(pairs)}</contact></mujoco>"


@dataclass(frozen=True)
class Both:
    """A scene's contacts here, MuJoCo's, and the row of our shapes of each geom."""

    ours: Contacts
    theirs: Any
    shape_row: np.ndarray

    def rows_of(self, contact: int) -> np.ndarray:
        """Our contacts of the pair of one of MuJoCo's."""
        a, b = np.sort(self.shape_row[self.theirs.geom[contact]])
        return np.flatnonzero((self.ours.shape0 == a) & (self.ours.shape1 == b))


def in_both(folder: Path, text: str, **options) -> Both:
    path = folder / "scene.xml"
    path.write_text(text)
    builder = collidecli.ModelBuilder()
    imported = add_mjcf(builder, path)
    ours = collidecli.collide(builder.finalize(), device="cpu", columns=COLUMNS, **options)
    data = mujoco.MjData(imported.mj_model)
    with collected_messages():
        mujoco.mj_forward(imported.mj_model, data)
    return Both(ours, data.contact, imported.shape_row)


def compare(both: Both) -> int:
    """Asserts that each of MuJoCo's contacts has its parameters in ours; how many there were."""
    columns, theirs = both.ours.columns, both.theirs
    for k in range(len(theirs.dist)):
        rows = both.rows_of(k)
        assert len(rows), "the pair has no contact here"
        expected = {
            "condim": theirs.dim[k],
            "friction5": theirs.friction[k],
            "friction": theirs.friction[k, 0],
            "torsional_friction": theirs.friction[k, 2],
            "rolling_friction": theirs.friction[k, 3],
            "solref": theirs.solref[k],
            "solimp": theirs.solimp[k],
        }
        for name, value in expected.items():
            for row in rows:
                np.testing.assert_allclose(columns[name][row], value, rtol=ROUNDING, atol=0, err_msg=name)
    return len(theirs.dist)


@pytest.mark.share(2)
@pytest.mark.parametrize("seed", range(6))
def test_random_surfaces_and_pairs(tmp_path, seed):
    assert compare(in_both(tmp_path, heap(seed))) > 150


def test_the_heaps_hold_every_case():
    """Priorities that differ and agree, weights of every kind, solref of either sign, zero friction."""
    models = [mujoco.MjModel.from_xml_string(heap(seed)) for seed in range(6)]
    for model in models:
        assert set(model.geom_priority) == {-1, 0, 1}
        assert (model.geom_solref[:, 0] > 0).any()
        assert (model.geom_solref < 0).any()
    assert {True, False} == set(np.concatenate([m.geom_solmix for m in models]) >= 1e-15)
    assert any((m.geom_friction == 0).any() for m in models)
    assert any((m.pair_friction[:, 0] != m.pair_friction[:, 1]).any() for m in models)
    assert {1, 3, 4, 6} == {int(dim) for m in models for dim in m.pair_dim}


def test_override(tmp_path):
    """The option's own friction and solver parameters in place of all others; condim stays the geoms'."""
    option = (
        '<option o_friction="0.7 0.7 0.03 0.002 0.002" o_solref="0.05 0.9" o_solimp="0.3 0.6 0.01 0.4 3" '
        'o_margin="0.02"><flag override="enable"/></option>'
    )
    both = in_both(tmp_path, heap(1, option))
    assert compare(both) > 150
    assert set(both.ours.columns["condim"]) == {1, 3, 4, 6}


@pytest.mark.parametrize(
    ("friction", "warns"),
    [("0.7 0.1 0.03 0.002 0.002", True), ("0.7 0.7 0.03 0.002 0.001", True), ("0.7 0.7 0.03 0.002 0.002", False)],
)
def test_override_with_two_directions_is_warned_of(tmp_path, friction, warns):
    option = f'<option o_friction="{friction}"><flag override="enable"/></option>'
    path = tmp_path / "scene.xml"
    path.write_text(heap(1, option))
    warnings = add_mjcf(collidecli.ModelBuilder(), path).warnings
    assert len([w for w in warnings if w.startswith(f"o_friction is {friction}")]) == warns


def test_pairs_own_friction_in_tangent_directions_is_warned_of(tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(heap(1).replace('margin="0.01"', 'margin="0.01" solreffriction="0.1 1"', 1))
    warnings = add_mjcf(collidecli.ModelBuilder(), path).warnings
    assert "solreffriction of the <pair> of 'g4' and 'g5' is not stored in a contact set" in warnings


def test_what_mujoco_clamps_to_its_least_friction(tmp_path):
    both = in_both(tmp_path, heap(2))
    least = both.ours.columns["friction5"].min()
    assert least == np.float32(1e-5)
    assert least == np.float32(both.theirs.friction.min())


def suite_scenes() -> list[Path]:
    """The control suite's scenes that ship with dm_control; none where that is not installed."""
    found = importlib.util.find_spec("dm_control")
    if found is None or found.origin is None:
        return []
    return sorted((Path(found.origin).parent / "suite").glob("*.xml"))


def test_scenes_of_the_control_suite():
    """Surfaces that people wrote: contacts of random poses, each against what its two geoms mix to here."""
    scenes = suite_scenes()
    if not scenes:
        pytest.skip("dm_control is not installed")
    rng = np.random.default_rng(0)
    compared: dict[str, int] = {}
    refused: list[str] = []
    for path in scenes:
        builder = collidecli.ModelBuilder()
        try:
            imported = add_mjcf(builder, path)
        except collidecli.InputError as error:
            refused.append(error.what)
            continue
        mixing = ContactMixing.of_model(builder.finalize())
        mj_model, data = imported.mj_model, mujoco.MjData(imported.mj_model)
        for _ in range(40):
            data.qpos[:] = mj_model.qpos0 + rng.uniform(-1.0, 1.0, mj_model.nq)
            mujoco.mj_fwdPosition(mj_model, data)
            theirs = data.contact
            rows = np.sort(imported.shape_row[theirs.geom.reshape(-1, 2)], axis=1)
            ours = mixing.of_pairs(rows[:, 0], rows[:, 1])
            for name, value in (("friction5", theirs.friction), ("solref", theirs.solref), ("solimp", theirs.solimp)):
                np.testing.assert_allclose(ours[name], value.reshape(ours[name].shape), rtol=1e-15, err_msg=str(path))
            np.testing.assert_array_equal(ours["condim"], theirs.dim)
            compared[path.stem] = compared.get(path.stem, 0) + len(rows)
    assert not refused
    assert len(compared) > 15
    assert sum(compared.values()) > 1000
