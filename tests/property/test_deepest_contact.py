"""The deepest contact of a set: one of several equally deep ones, the same in every answer."""

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import collidecli
from collidecli.scene.model import Model
from collidecli.verbs.audit.audit import audit
from collidecli.verbs.audit.request import AuditRequest
from collidecli.verbs.inspect.inspect import inspect_contact_set
from collidecli.verbs.report.report import ReportRequest, report
from tests.cli.conftest import CommandLine, write_poses
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

FRAMES = 5
WORLDS = 3
NAMES = ("shape0", "shape1", "frame", "world")


def model_of(is_mixed: bool) -> Model:
    """Three worlds. is_mixed: the last has a template of its own, whose shapes are in another
    order than those of equal names."""
    model = small_model(WORLDS)
    if not is_mixed:
        return model
    shapes = model.shapes
    path = ("ground", "ball", "box", "box", "ball")
    template = np.array([-1, 0, 0, 1, 1], np.int32)
    shapes = replace(shapes, path=path, template=template)
    return replace(model, shapes=shapes, world_template=np.array([0, 0, 1], np.int32))


def first_of_deepest(path: str) -> tuple:
    """Depth, then NAMES of the deepest contact by plain loops over the rows."""
    with collidecli.open_contacts(path) as contacts:
        rows = contacts.to_pandas()
        order = {name: at for at, name in reversed(list(enumerate(contacts.shapes.path)))}
    found = []
    for row in rows.to_dict("records"):
        pair = sorted((row["shape0"], row["shape1"]), key=lambda name: order[name])
        key = row["distance"], row["frame"], row["world"], [order[name] for name in pair]
        found.append((*key, pair))
    distance, frame, world, _, pair = min(found)
    return distance, *pair, frame, world


def of_entry(entry: dict, distance: float) -> tuple:
    return distance, *(entry[name] for name in NAMES)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.integers(0, 2**31), is_mixed=st.booleans())
def test_all_answers_name_one_contact_of_equal_ones(seed, is_mixed):
    model = model_of(is_mixed)
    block = made_up_block(model, FRAMES, seed=seed)
    of_template = model.shapes.template
    rng = np.random.default_rng(seed)
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    world = model.world_template[cell % WORLDS]
    kept = np.ones(len(cell), bool)
    for name in ("shape0", "shape1"):
        template = of_template[block.columns[name]]
        kept &= (template < 0) | (template == world)
    columns = {name: values[kept] for name, values in block.columns.items()}
    columns["distance"] = rng.integers(-3, 0, kept.sum()).astype(np.float32) / 8
    counts = np.bincount(cell[kept], minlength=len(block.cell_counts))
    block = replace(block, columns=columns, cell_counts=counts)
    if not counts.any():
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "set.h5")
        write_contact_set(Path(path), model, block)
        expected = first_of_deepest(path)
        deepest = vars(inspect_contact_set(path).deepest)
        assert of_entry(deepest, deepest["distance"]) == expected
        page = report(ReportRequest(path)).as_dict()
        for entry in (page["deepest"], page["worst"][0]):
            assert of_entry(entry, entry["distance"]) == expected
        audited = audit(AuditRequest(contacts=path))
        first = audited.result.pairs[0]
        assert of_entry(first, -first["depth"]) == expected
        with pytest.warns(UserWarning, match="cables, cloths and soft bodies"):
            assert collidecli.audit(path).pairs[0] == first
        pair = audited.deepest[expected[3], expected[4]]
        names = sorted(expected[1:3])
        assert sorted(model.shapes.path[shape] for shape in pair) == names


STACK = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 .1"/>
<body name="a" pos="0 0 .09"><freejoint/><geom name="zed" type="sphere" size=".1"/></body>
<body name="b" pos="1 0 .09"><freejoint/><geom name="abe" type="sphere" size=".1"/></body>
</worldbody></mujoco>"""


def test_run_names_the_contact_that_the_other_verbs_name(tmp_path, monkeypatch):
    """The second ball is as deep as the first, two frames before it."""
    monkeypatch.chdir(tmp_path)
    Path("stack.xml").write_text(STACK)
    poses = np.zeros((6, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 1, 0] = 1.0
    poses[..., 2] = 0.095
    poses[4, 0, 0, 2] = poses[2, 0, 1, 2] = 0.0625
    write_poses("motion.h5", poses, ["a", "b"])
    collide = CommandLine()
    answers = [
        collide.result("run stack.xml -t motion.h5 -o set.h5")["deepest"],
        collide.result("inspect set.h5")["deepest"],
        collide.result("report set.h5 -o page.html")["deepest"],
        collidecli.audit("set.h5").pairs[0],
        collidecli.audit("stack.xml", "motion.h5").pairs[0],
    ]
    found = [tuple(answer[name] for name in NAMES) for answer in answers]
    assert found == [("floor", "abe", 2, 0)] * 5
