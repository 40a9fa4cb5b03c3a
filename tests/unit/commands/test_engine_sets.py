"""Contact sets of other engines: import of rows and of logs, runs of an engine, and comparisons by pair."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.commands.check import check
from collidecli.commands.diff import DiffRequest, diff
from collidecli.commands.diff_pairs import PairDiffRequest, diff_pairs
from collidecli.commands.engine_sets import ImportRequest, import_contacts
from collidecli.commands.fidelity import FidelityRequest, fidelity
from collidecli.commands.merge import MergeRequest, merge
from collidecli.commands.textconv import contact_text
from collidecli.errors import InputError
from collidecli.scene.options import LOG_FORMATS
from collidecli.storage.contact_sets.check import BELOW_GAP, EQUATION
from collidecli.storage.contact_sets.reader import ContactSet
from tests.unit.commands.test_fidelity import PLAN, some
from tests.unit.commands.test_fidelity import falling as falling
from tests.unit.commands.test_fidelity import planned as planned
from tests.unit.commands.test_fidelity import rows as rows
from tests.unit.commands.test_fidelity import saved as saved
from tests.unit.storage.contact_sets.test_check import attribute, edit, replaced

DEPTHS = 0.01 + np.arange(5) ** 1.2 * 0.002
"""Of the box `low` in the floor, in each frame [m]."""


def imported(scene: tuple[str, str], path: str | Path, layout: str = "rows", **options) -> str:
    """The contact set of a file of rows or of a log, beside it."""
    output, given = str(Path(path).with_suffix(".h5")), {"source": str(path), "layout": layout} | options
    import_contacts(ImportRequest(scenes=[scene[0]], trajectory=scene[1], output=output, **given))
    return output


@pytest.mark.parametrize("rule", ["both", "midpoint", "on0", "on1", "unspecified"])
def test_import_of_rows(rule: str, falling, rows, saved):
    """Depths are those of the motion, points are on both surfaces, and `fidelity` finds no fault in the set."""
    middle, half = rows["point"], 0.5 * rows["distance"][:, None] * rows["normal"]
    points = {"on0": middle - half, "on1": middle + half, "both": middle - half}
    rows |= {"point": points.get(rule, middle), "point_rule": np.array(rule)}
    rows |= {"point1": middle + half} if rule == "both" else {}
    path = imported(falling, saved(rows))
    result = check(path)
    assert result.good, result.findings
    notes = {note.what for note in result.notes or ()}
    assert f"{BELOW_GAP} (5 rows)" in notes
    assert any(EQUATION in note for note in notes) == (rule == "unspecified")
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 5)
        engine = contacts.engine
        assert (engine.name, engine.point_rule, engine.stateful, engine.reports_gap) == ("planned", rule, False, None)
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
    assert all(one[name] == 0 for one in found.rows for name in ("missed", "phantom", "unusable_rows", "not_asked"))
    assert max(one["depth_error"]["worst"] for one in found.rows if one["depth_error"]) < 1e-8
    edit(path, attribute("format_version", np.array([1, 4], np.int32)))
    with ContactSet.open(path) as contacts:
        assert contacts.engine is None


def test_rows_of_an_engine_are_kept_as_they_are(falling, rows, saved, tmp_path: Path):
    """Wrong rows are notes with their number; equal pairs are ordered by distance, then by point."""
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
        same = (np.diff(block.cell) == 0) & (np.diff(block.shape0) == 0) & (np.diff(block.shape1) == 0)
        assert same.any()
        assert (np.diff(block.distance)[same] >= 0.0).all()
    assert "engine name planned" in contact_text(path)
    with pytest.raises(InputError, match="contacts of another engine: planned"):
        merge(MergeRequest([path, path], str(tmp_path / "merged.h5")))
    name = "rigid_contacts/distance"
    edit(path, lambda file: replaced(name, file[name][()][::-1])(file))
    assert any("out of order" in finding.what for finding in check(path).findings)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_the_deepest_contact_has_a_finite_distance(value: float, falling, rows, saved, tmp_path, capsys):
    """Of rows of which some, and then all, have distances that are not finite numbers."""
    deepest = rows["distance"].argmin()
    rows["distance"][deepest] = value
    words = ["import", "--scene", falling[0], "-t", falling[1], "-o", str(tmp_path / "set.h5"), "--force"]
    for expected in (rows["distance"][np.isfinite(rows["distance"])].min(), None):
        assert main([*words, saved(rows)]) == 0
        assert main([*words, saved(rows), "--json"]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])["deepest"]
        assert found is None if expected is None else found["distance"] == pytest.approx(expected, abs=1e-7)
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


@pytest.mark.parametrize("layout", LOG_FORMATS)
def test_export_and_import_of_a_log(layout: str, falling: tuple[str, str], tmp_path: Path):
    ours, log = str(tmp_path / "ours.h5"), tmp_path / "log.npz"
    options = ["--margin", "2mm", "--gap", "5mm"]
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q", *options]) == 0
    scene = ["--scene", falling[0]] if layout == "mujoco" else []
    assert main(["export", ours, "--to", layout, "-o", str(log), "-q", *scene]) == 0
    if layout == "newton":  # as Newton has it: the point of a sphere is its centre, and the radius is in the margin
        with np.load(log) as file:
            arrays = dict(file)
        for k in (0, 1):
            ball = arrays[f"rigid_contact_shape{k}"] == arrays["shape_label"].tolist().index("high")
            arrays[f"rigid_contact_point{k}"][ball] = 0.0
            arrays[f"rigid_contact_margin{k}"][ball] += 0.1
        np.savez(log, **arrays)
    path = str(tmp_path / "logged.h5")
    call = ["import", str(log), "--layout", layout, "--scene", falling[0], "-t", falling[1], "-o", path, "-q", *options]
    assert main(call) == 0
    assert check(path).good
    fields = ("distance", "normal", "point0", "point1", "offset0", "offset1")
    found = diff(DiffRequest(ours, path, fields=fields, atol=("2e-8", "normal=1e-7")))
    assert found.equal, found.reasons
    assert found.contacts["matched"] > 10
    by_pair = diff_pairs(PairDiffRequest(ours, path, band=3e-8, max_angle=1e-5))
    assert by_pair.equal
    assert by_pair.counts["both"] == by_pair.counts["a"] == by_pair.counts["b"] > 5


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("geom_name", lambda names: np.char.add(names, "x"), "no shape of the scene"),
        ("step", lambda step: step + 1, "1 frame of .* is not in the motion"),
        ("cell_start", lambda start: start[::-1], "not ascending"),
        ("geom_b", lambda rows: rows * 0, "contact of 'floor' with itself"),
        ("geom_a", lambda rows: rows + 40, "are not .* indices of geom_name"),
        ("pos", lambda points: points[:, :2], "pos: is float64"),
        ("world", lambda world: world + 1, "worlds"),
    ],
)
def test_logs_that_do_not_fit(name: str, change, what: str, falling: tuple[str, str], tmp_path: Path):
    ours, log = str(tmp_path / "ours.h5"), tmp_path / "log.npz"
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q"]) == 0
    assert main(["export", ours, "--to", "genesis", "-o", str(log), "-q"]) == 0
    with np.load(log) as file:
        arrays = dict(file)
    np.savez(log, **{**arrays, name: change(arrays[name])})
    with pytest.raises(InputError, match=what):
        imported(falling, log, "genesis")
    assert not log.with_suffix(".h5").exists()


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (["--engine", "{adapter}"], 0, ""),
        (["--engine", "{adapter}", "--engine-option", "fast=1"], 2, "did not use 'fast=1'"),
        (["--engine", "{adapter}", "--broad-phase", "sap"], 2, "--broad-phase has no effect with --engine"),
        (["--engine", "{adapter}", "--columns", "friction"], 2, "--columns has no effect with --engine"),
        (["--engine-option", "fast=1"], 2, "--engine-option has no effect without --engine"),
        (["--engine", "mujoko"], 2, "there is no adapter of 'mujoko'"),
    ],
)
def test_run_of_an_engine(options, code: int, what: str, falling, rows, saved, tmp_path: Path, capsys):
    adapter, output = tmp_path / "planned.py", tmp_path / "out.h5"
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


EDITS = {"missing": ("missing", 1), "shallow": ("missing", 0), "not_asked": ("missing", 0)}
EDITS |= {"deeper": ("changed", 1), "turned": ("changed", 1), "zero": ("changed", 0), "long": ("changed", 0)}


@pytest.mark.parametrize("edit", EDITS)
def test_differences_by_pair(edit: str, falling, rows, saved):
    """Each edit of one pair in one frame is counted once, as what it is; swapped sets exchange missing and extra."""
    chosen, angle = np.argmin(rows["distance"]), np.radians(2.0)
    turned = {"turned": [0.0, np.sin(angle), np.cos(angle)], "long": [0.0, 2.0, 0.0], "zero": [0.0] * 3}
    if edit == "shallow":
        rows["distance"][chosen] = -5e-5
    baseline = imported(falling, saved(rows, "a"))
    if edit == "not_asked":
        rows["pair_asked"][rows["pair"][chosen]] = False
        rows = some(rows, rows["pair"] != rows["pair"][chosen])
    elif edit in ("missing", "shallow"):
        rows = some(rows, np.arange(len(rows["cell"])) != chosen)
    elif edit == "deeper":
        rows["distance"][chosen] -= 2e-4
    else:
        rows["normal"][chosen] = turned[edit]
    other = imported(falling, saved(rows, "b"))
    found, swapped = diff_pairs(PairDiffRequest(baseline, other)), diff_pairs(PairDiffRequest(other, baseline))
    kind, number = EDITS[edit]
    totals = {name: found.counts[name] for name in ("missing", "extra", "changed")}
    assert totals == {"missing": 0, "extra": 0, "changed": 0, kind: number}
    assert swapped.counts["extra"] == totals["missing"]
    assert found.equal == (edit in ("shallow", "not_asked"))
    assert found.not_asked == swapped.not_asked == (5 if edit == "not_asked" else 0)
    assert found.normals["b"] == {"unusable": int(edit in ("zero", "long")), "zero": int(edit == "zero")}
    if number:
        assert [(one["shape0"], one["shape1"], one[kind]) for one in found.pairs] == [("low", "high", 1)]
        assert found.pairs[0]["first"]["frame_a"] == 4
    if edit == "turned":
        assert found.angle["worst"] == pytest.approx(2.0, abs=1e-5)
        assert diff_pairs(PairDiffRequest(baseline, other, max_angle=2.1)).equal
    if edit == "not_asked":
        of_set = fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[other]))
        assert [sum(one[name] for one in of_set.rows) for name in ("not_asked", "missed")] == [5, 0]
    if edit == "missing":
        assert diff_pairs(PairDiffRequest(baseline, other, max_missing=1)).equal
