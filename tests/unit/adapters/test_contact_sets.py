"""Contact sets of rows of an engine, imported or of a run."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.errors import InputError
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import EQUATION, WITHIN_GAP
from collidecli.verbs.check.check import check
from collidecli.verbs.fidelity.fidelity import fidelity
from collidecli.verbs.fidelity.request import FidelityRequest
from collidecli.verbs.merge.merge import MergeRequest, merge
from collidecli.verbs.textconv.textconv import contact_text
from tests.support.planned_engine import PLAN, imported, some
from tests.unit.storage.contact_sets.test_check import attribute, edit, replaced

DEPTHS = 0.01 + np.arange(5) ** 1.2 * 0.002
"""Of the box `low` in the floor, in each frame [m]."""


@pytest.mark.parametrize("rule", ["both", "midpoint", "on0", "on1", "unspecified"])
def test_import_of_rows(rule: str, falling, rows, saved):
    """Depths are those of the motion, points are on both surfaces, and `fidelity` finds no fault in
    the set."""
    middle = rows["point"]
    half = 0.5 * rows["distance"][:, None] * rows["normal"]
    points = {"on0": middle - half, "on1": middle + half, "both": middle - half}
    rows |= {"point": points.get(rule, middle), "point_rule": np.array(rule)}
    rows |= {"point1": middle + half} if rule == "both" else {}
    path = imported(falling, saved(rows))
    result = check(path)
    assert result.good, result.findings
    notes = {note.what for note in result.notes or ()}
    assert f"{WITHIN_GAP} (5 rows)" in notes
    assert any(EQUATION in note for note in notes) == (rule == "unspecified")
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 5)
        engine = contacts.engine
        assert (engine.name, engine.point_rule, engine.stateful, engine.reports_gap) == (
            "planned",
            rule,
            False,
            None,
        )
        assert contacts.shapes.path[:2] == ("floor", "low")
        block = contacts.cells(0, contacts.cell_count)
        floor = (block.shape0 == 0) & (block.shape1 == 1)
        assert np.abs(block.distance[floor] + DEPTHS).max() < 1e-8
        assert set(block.kind.tolist()) == {255}
        assert set(block.feature0.tolist()) == {-1}
        if rule != "unspecified":
            assert np.abs(block.point0[floor][:, 2]).max() < 1e-9
            assert np.abs(block.offset1[floor][:, 2] + 0.1).max() < 1e-7
    found = fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[path]))
    assert all(
        one[name] == 0
        for one in found.rows
        for name in ("missed", "phantom", "unusable_rows", "not_asked")
    )
    assert max(one["depth_error"]["worst"] for one in found.rows if one["depth_error"]) < 1e-8
    edit(path, attribute("format_version", np.array([1, 4], np.int32)))
    with ContactSet.open(path) as contacts:
        assert contacts.engine is None


def test_rows_of_an_engine_are_kept_as_they_are(falling, rows, saved, tmp_path: Path):
    """Wrong rows are notes with their number; equal pairs are ordered by distance, then by
    point."""
    extent = len(rows["cell"])
    doubled = some(rows, np.tile(np.arange(extent), 2))
    doubled["point"][extent:, 0] -= 0.01
    doubled["normal"][0] = 0.0
    doubled["normal"][1] = np.nan
    doubled["distance"][2] = 5.0
    path = imported(falling, saved(doubled))
    result = check(path)
    assert result.good
    notes = {note.what.split(" (")[0] for note in result.notes or ()}
    assert {"normal is not finite", "the normal has not unit length"} <= notes
    with ContactSet.open(path) as contacts:
        block = contacts.cells(0, contacts.cell_count)
        assert block.contact_count == 2 * extent
        assert (np.linalg.norm(block.normal, axis=1) == 0.0).sum() == 1
        same = (
            (np.diff(block.cell) == 0) & (np.diff(block.shape0) == 0) & (np.diff(block.shape1) == 0)
        )
        assert same.any()
        assert (np.diff(block.distance)[same] >= 0.0).all()
    assert "engine name planned" in contact_text(path)
    with pytest.raises(InputError, match="contacts of another engine: planned"):
        merge(MergeRequest([path, path], str(tmp_path / "merged.h5")))
    name = "rigid_contacts/distance"
    edit(path, lambda file: replaced(name, file[name][()][::-1])(file))
    assert any("out of order" in finding.what for finding in check(path).findings)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_the_deepest_contact_has_a_finite_distance(
    value: float, falling, rows, saved, tmp_path, capsys
):
    """Of rows of which some, and then all, have distances that are not finite numbers."""
    deepest = rows["distance"].argmin()
    rows["distance"][deepest] = value
    words = [
        "import",
        "--scene",
        falling[0],
        "-t",
        falling[1],
        "-o",
        str(tmp_path / "set.h5"),
        "--force",
    ]
    for expected in (rows["distance"][np.isfinite(rows["distance"])].min(), None):
        assert main([*words, saved(rows)]) == 0
        assert main([*words, saved(rows), "--json"]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])["deepest"]
        assert (
            found is None
            if expected is None
            else found["distance"] == pytest.approx(expected, abs=1e-7)
        )
        rows["distance"][:] = value


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (attribute("name", None, "engine"), "name is missing"),
        (attribute("point_rule", "middle", "engine"), "point_rule"),
        (attribute("stateful", np.int32(2), "engine"), "stateful is not 0 or 1"),
        (replaced("engine/shape/treated_as", ["exact"] * 3), "rows for 4 shapes"),
        (replaced("engine/shape/treated_as", ["guessed"] * 4), "is not exact, hull"),
        (replaced("engine/pair_not_asked/shape0", np.array([7], np.int32)), "has 1 rows|0 rows"),
    ],
)
def test_damaged_engine_groups(change, what: str, falling, rows, saved):
    path = imported(falling, saved(rows))
    edit(path, change)
    assert any(re.search(what, finding.what) for finding in check(path).findings)
    with pytest.raises(InputError):
        ContactSet.open(path)


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (["--engine", "{adapter}"], 0, ""),
        (["--engine", "{adapter}", "--engine-option", "fast=1"], 2, "did not use 'fast=1'"),
        (
            ["--engine", "{adapter}", "--broad-phase", "sap"],
            2,
            "--broad-phase has no effect with --engine",
        ),
        (
            ["--engine", "{adapter}", "--columns", "friction"],
            2,
            "--columns has no effect with --engine",
        ),
        (["--engine-option", "fast=1"], 2, "--engine-option has no effect without --engine"),
        (["--engine", "mujoko"], 2, "there is no adapter of 'mujoko'"),
    ],
)
def test_run_of_an_engine(
    options, code: int, what: str, falling, rows, saved, tmp_path: Path, capsys
):
    adapter = tmp_path / "planned.py"
    output = tmp_path / "out.h5"
    adapter.write_text(PLAN.format(answers=saved(rows)))
    call = ["run", falling[0], "-t", falling[1], "-o", str(output), "--json"]
    assert main([*call, *(option.format(adapter=adapter) for option in options)]) == code
    text = capsys.readouterr().out
    assert what in text
    assert output.exists() == (code == 0)
    if code == 0:
        assert json.loads(text)["engine"]["engine"] == "planned"
        assert check(output).good


def test_options_of_an_engine(falling: tuple[str, str], tmp_path: Path):
    pytest.importorskip("mujoco")
    options = ["multiccd=0", "ccd_iterations=17"]
    path = imported(falling, tmp_path / "mujoco", "", source="mujoco", engine_options=options)
    with ContactSet.open(path) as contacts:
        assert json.loads(contacts.engine.options) == {"multiccd": 0.0, "ccd_iterations": 17.0}
