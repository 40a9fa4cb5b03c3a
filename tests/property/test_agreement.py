"""Contacts, touch_only, clearance, signed distances and sweeps agree about every pair, at any gap.

Each answer has its own entry point; the rules between them are in tests/support/answer_rules.py.
"""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli.scene.tables import RIGID_COLUMNS, ContactBlock
from tests.support.answer_forms import SPHERE, Form, forms
from tests.support.answer_rules import FLOAT32, ROUNDING, report, rules, touches_a_back
from tests.support.answers import Answers, PairCase, answers, deepest, model_of, placed, random_case
from tests.support.contact_sets import write_contact_set

CLASSES = {
    "convex-convex": ("convex", "convex"),
    "closed-convex": ("closed", "convex"),
    "crossing-convex": ("crossing", "convex"),
    "open-convex": ("open", "convex"),
    "one_sided-convex": ("one-sided", "convex"),
    "heightfield-convex": ("heightfield", "convex"),
    "mesh-mesh": ("closed", "open"),
    "mesh-heightfield": ("heightfield", "closed"),
    "field-convex": ("field", "convex"),
}
SIZES = (1e-3, 1.0, 1e3)
PAIRS, CONFIGURATIONS = 14, 36
"""Pairs of shapes of a draw, and configurations of each."""
DRAWS = 10
SLOW_CLASSES, FEWER = ("mesh-mesh", "mesh-heightfield", "field-convex"), 12
"""Of these classes the draw in `make test` has fewer configurations of each pair."""


def drawn(name: str, draw: int) -> list[PairCase]:
    """Cases of a class. Every second shape comes up in each draw; sizes and first shapes change from draw to draw."""
    rng = np.random.default_rng([draw, *name.encode()])
    first, second = (forms()[one] for one in CLASSES[name])
    count = FEWER if draw == 0 and name in SLOW_CLASSES else CONFIGURATIONS
    return [
        random_case(
            rng,
            first[int(rng.integers(len(first)))],
            second[k % len(second)],
            SIZES[(k + draw) % len(SIZES)],
            count,
        )
        for k in range(PAIRS)
    ]


@pytest.mark.parametrize("draw", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))])
@pytest.mark.parametrize("name", CLASSES)
def test_answers_agree(name, draw):
    cases = drawn(name, draw)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # repairs of the meshes
        found = answers(cases)
        overlap, apart = found.clearance < -1e-3, found.clearance > 1e-9
        assert overlap.mean() > 0.1
        assert apart.mean() > 0.1
        broken = report(cases, found, rules(cases, found))
    assert not broken, "\n" + "\n".join(broken)


@pytest.fixture(scope="module")
def planted() -> tuple[list[PairCase], Answers]:
    """Balls at a closed mesh and hulls at a one-sided sheet, and what the program answers."""
    rng = np.random.default_rng(5)
    hull = forms()["convex"][-1]
    cases = [
        random_case(rng, forms()["closed"][1], SPHERE, 1.0, 60),
        random_case(rng, forms()["one-sided"][0], hull, 1.0, 60),
    ]
    return cases, answers(cases)


FAULTS = {
    "a contact within": lambda f: {"least": np.where(np.arange(5)[:, None] == 1, np.inf, f.least)},
    "no contact beyond": lambda f: {"least": np.where(f.clearance > 0.05, f.clearance, f.least)},
    "no contact behind": lambda f: {"least": np.where(np.isinf(f.least), np.minimum(f.clearance, 0.09), f.least)},
    "no distance of the gap": lambda f: {"least": np.where(f.least > 0.0, 2.0, f.least)},
    "touch_only": lambda f: {"touch_only": ~f.touch_only},
    "contacts have the clearance": lambda f: {"least": f.least * 1.001},
    "the error of a distance": lambda f: {"error": f.error + 1e-8},
    "the depth at gap 0.1": lambda f: {"least": f.least * np.array([1.0, 1.0, 1.0, 0.99, 1.0])[:, None]},
    "the sign of contacts": lambda f: {"least": -f.least},
    "the depth at gap 0.001": lambda f: {"least": f.least * np.array([1.0, 0.99, 1.0, 1.0, 1.0])[:, None]},
    "the depth at gap 0.01": lambda f: {"least": f.least * np.array([1.0, 1.0, 0.99, 1.0, 1.0])[:, None]},
    "the depth at gap 1": lambda f: {"least": f.least * np.array([1.0, 1.0, 1.0, 1.0, 0.99])[:, None]},
    "a distance of 0": lambda f: {"clearance": np.where(f.clearance > 0.0, 0.0, f.clearance)},
    "a sweep at rest touches": lambda f: {"swept": np.where(f.clearance < -0.1, 0, f.swept)},
    "a sweep at rest is apart": lambda f: {"swept": np.where(f.clearance > 0.1, -1, f.swept)},
    "no farther than": lambda f: {"clearance": f.clearance + 0.01},
    "no less deep": lambda f: {"least": np.where(f.least < 0.0, 0.5 * f.least, f.least)},
    "a sphere is": lambda f: {"clearance": np.where(f.clearance > 0.0, 0.99 * f.clearance, f.clearance)},
}
"""Each rule, by its first words, and a fault that it must see."""


@pytest.mark.parametrize("rule", FAULTS)
def test_each_rule_sees_a_fault(planted, rule):
    cases, found = planted
    counts = [
        sum(int(where.sum()) for name, where in rules(cases, answer) if name.startswith(rule))
        for answer in (found, replace(found, **FAULTS[rule](found)))
    ]
    assert counts[1] > counts[0] + 2


def test_each_rule_has_a_fault(planted):
    names = [name for name, _ in rules(*planted)]
    assert all(any(name.startswith(rule) for rule in FAULTS) for name in names)


@pytest.mark.parametrize("name", CLASSES)
def test_distance_is_the_clearance(name):
    """`distance` of two shapes is that of the model's pair, bit for bit."""
    case = drawn(name, 0)[2]
    if case.first.voxels:
        pytest.skip("a Shape has no signed distance field")
    poses = case.poses * [*[case.scale] * 3, 1.0, 1.0, 1.0, 1.0]
    found = collidecli.distance(
        case.first.shape(case.scale), case.second.shape(case.scale), pose_a=poses[:, 0], pose_b=poses[:, 1]
    )
    near = collidecli.clearance(model_of([case], 0.0), placed([case]))
    np.testing.assert_array_equal(found.distance, near.distance[0, :, 0])


@pytest.mark.parametrize("name", CLASSES)
def test_an_audit_reports_the_depths_of_the_contacts(name, tmp_path):
    cases = drawn(name, 0)[:3]
    model = model_of(cases, 0.1)
    contacts = collidecli.collide(model, placed(cases), cache_limit=0)
    columns = {column.name: getattr(contacts, column.name) for column in RIGID_COLUMNS}
    block = ContactBlock(0, np.diff(contacts.cell_start), columns)
    write_contact_set(tmp_path / "a.h5", model, block)
    depth = collidecli.audit(tmp_path / "a.h5").depth[0]
    np.testing.assert_array_equal(depth, np.maximum(-deepest(contacts)[0], 0.0))
    assert (depth > 0.0).sum() > 10


@pytest.mark.parametrize("scale", SIZES)
@pytest.mark.parametrize("name", ["convex", "closed", "crossing", "open", "one-sided", "heightfield", "field"])
def test_particles_are_balls(name, scale):
    """A particle's contacts and sweep have the sign of a ball's, and its distance where they are apart."""
    for index, form in enumerate(forms()[name]):
        case = random_case(np.random.default_rng([index, *name.encode()]), form, SPHERE, scale, 80)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, (soft, swept) = answers([case]), particle_answers(form, scale, case.poses[:, 1, :3])
        # The radius is float32, too.
        slack = (
            ROUNDING
            + FLOAT32 * (np.abs(found.clearance) + SPHERE.size[0])
            + (form.extent / form.voxels if form.voxels else 0.0)
        )
        apart, overlap = found.clearance > slack, found.clearance < -slack
        assert min(apart.sum(), overlap.sum()) > 8, form.name
        wrong = apart & np.isfinite(soft) & (np.abs(soft - found.clearance) > slack)
        wrong |= overlap & ~(soft < slack)
        if form.two_sided:  # else the ball may leave over the border
            wrong |= overlap & (soft < found.clearance - slack)
        present = np.isfinite(found.least[-1])
        wrong |= (apart & (found.clearance < 0.99)) & (np.isfinite(soft) != present)
        wrong |= (apart & (found.clearance > 2e-6) & (swept != 0)) | (overlap & (swept != 1))
        rows = np.flatnonzero(wrong & ~touches_a_back([case], found))
        texts = [
            f"{case}, pose {case.poses[row, 1].tolist()}: particle {soft[row]:.9g}, sweep {swept[row]}, ball "
            f"{found.least[:, row].tolist()}, clearance {found.clearance[row]:.9g}"
            for row in rows[:6]
        ]
        assert not texts, "\n".join([f"{len(rows)} of {len(soft)}", *texts])


def particle_answers(form: Form, scale: float, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of particles of SPHERE's radius the distance of their contact within the unit size, and a sweep at rest."""
    builder = collidecli.ModelBuilder()
    form.add(builder, -1, scale, 0.0)
    builder.add_particles(scale * points, radius=scale * SPHERE.size[0])
    model = builder.finalize()
    rows = collidecli.collide(model, soft_gap=scale, soft_elements="vertices", cache_limit=0).groups["soft_contacts"]
    least, swept = np.full(len(points), np.inf), np.zeros(len(points), int)
    np.minimum.at(least, rows.columns["indices"][:, 0], rows.columns["distance"] / scale)
    rest = np.tile(scale * points, (2, 1, 1, 1))
    found = collidecli.sweep(model, None, particle_q=rest, tolerance=1e-6 * scale, cache_limit=0).particles
    assert found is not None
    swept[found.particle] = np.where(found.touches, 1, -1)
    return least, swept
