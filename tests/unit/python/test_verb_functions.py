"""Python's functions of verbs: results equal to those of the command, as tables too."""

import json
from pathlib import Path

import mujoco
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.results.result import Result

BALL = '<collision><geometry><sphere radius=".1"/></geometry></collision>'
ROBOT = f"""<robot name="r"><link name="a">{BALL}</link><link name="b">{BALL}</link><link name="c">{BALL}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3.1" upper="3.1" effort="1" velocity="1"/></joint>
<joint name="k" type="revolute"><parent link="b"/><child link="c"/><origin xyz="0.5 0 0"/><axis xyz="0 0 1"/>
<limit lower="-3.1" upper="3.1" effort="1" velocity="1"/></joint></robot>"""
FALL = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/><geom name="<b>" pos="5 0 0" size=".1"/>
<body name="ball" pos="0 0 .25"><freejoint/><geom name="ball" size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(ROBOT)
    (tmp_path / "fall.xml").write_text(FALL)
    return tmp_path


@pytest.fixture
def fallen(here) -> collidecli.Contacts:
    collidecli.record("fall.xml", "fall.h5", 60, every=3)
    return collidecli.run("fall.xml", "fall.h5", device="cpu", gap=0.02)


def test_a_matrix_is_that_of_the_command_with_its_files(here):
    told = []
    found = collidecli.matrix(
        "robot.urdf", output=["new/m.srdf", "new/m.json"], samples=400, seed=3, device="cpu",
        progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert {(p["body0"], p["body1"]): p["reason"] for p in found.pairs} == {
        ("a", "b"): "Adjacent",
        ("a", "c"): None,
        ("b", "c"): "Adjacent",
    }
    assert told[-1] == (400, 400)
    assert Path("new/m.srdf").read_text().count("<disable_collisions") == 2
    assert json.loads(Path("new/m.json").read_text())["pairs"] == found.as_dict()["pairs"]
    frame = found.to_pandas()
    assert frame.columns.tolist() == ["body0", "body1", "reason", "touched", "at_rest"]
    assert frame.touched.tolist() == [pair["touched"] for pair in found.pairs]
    dataset = found.to_xarray()
    assert dict(dataset.sizes) == {"row": 3}
    assert dataset.attrs["samples"] == 400
    with pytest.raises(collidecli.OutputError, match="exists already"):
        collidecli.matrix("robot.urdf", output="new/m.srdf", samples=5, device="cpu")
    for given, words in (({"samples": 0}, "samples is 0"), ({"seed": -1}, "seed is -1")):
        with pytest.raises(collidecli.InputError, match=words):
            collidecli.matrix("robot.urdf", **given)
    with pytest.raises(collidecli.InputError, match="did you mean samples"):
        collidecli.matrix("robot.urdf", sample=3)


def test_a_recorded_motion_is_that_of_mujoco(here):
    told = []
    made = collidecli.record(
        "fall.xml", "a/m.h5", 5, every=10, progress=lambda done, total: told.append((done, total))
    )
    assert (made.output, told[-1]) == ("a/m.h5", (5, 5))
    model = mujoco.MjModel.from_xml_path("fall.xml")
    data = mujoco.MjData(model)
    heights = [data.qpos[2]]
    for _ in range(4):
        mujoco.mj_step(model, data, 10)
        heights.append(data.qpos[2])
    _, motion = collidecli.open_recording("a/m.h5").with_scene("fall.xml")
    np.testing.assert_allclose(motion.read(range(5))[:, 0, 0, 2], heights, atol=1e-12)
    motion.close()


def test_differences_of_sets_in_memory(fallen, here):
    assert collidecli.diff(fallen, fallen).equal
    deeper = collidecli.run("fall.xml", "fall.h5", device="cpu", gap=0.02, margin=0.001)
    found = collidecli.diff(fallen, deeper)
    assert not found.equal
    rows = found.to_pandas().set_index("name")
    assert rows.largest["distance"] == pytest.approx(0.002, abs=1e-6)  # both margins
    assert rows.largest["normal"] == 0.0
    atol = ["distance=3mm", "offset0=1"]
    allowed = collidecli.diff(fallen, deeper, atol=atol).to_pandas().set_index("name")
    assert (rows.differing["distance"] > 0, allowed.changed["distance"]) == (True, 0)
    with pytest.raises(collidecli.InputError, match="diff: b is 3"):
        collidecli.diff(fallen, 3)


def test_a_profile_has_the_times_of_each_phase(here):
    found = collidecli.profile("fall.xml", repeats=1, device="cpu")
    assert found.identical
    frame = found.to_pandas()
    assert {"nxn", "sap", "explicit"} <= {*frame["name"]}
    shown = repr(found)
    assert shown.startswith("<Profile frames=")
    assert f" fastest='{found.fastest}' " in shown
    assert "phases=['nxn', 'sap', 'explicit', " in shown
    assert len(shown) < 200


def test_a_probe_has_the_nearest_vertices(here):
    found = collidecli.probe("fall.xml", vertices_of="ball", output="map.npz", device="cpu")
    assert isinstance(found, Result)
    frame = found.to_pandas()
    assert len(frame) == len(found.listed) > 0
    with np.load("map.npz") as arrays:
        assert np.nanmin(arrays["distance"]) == pytest.approx(frame.least_distance.min(), abs=1e-6)
    with pytest.raises(collidecli.InputError, match="nothing to measure is given"):
        collidecli.probe("fall.xml")


def test_an_engine_that_is_right_passes(here):
    Path("deep.xml").write_text(FALL.replace("0 0 .25", "0 0 .095"))
    found = collidecli.fidelity("deep.xml", engines="mujoco", max_missed=0, max_depth_error="1mm")
    assert (isinstance(found, Result), found.passed) == (True, True)
    frame = found.to_pandas()
    assert (len(frame), frame.engine.tolist()) == (len(found.rows), ["mujoco"])
    assert frame.asked.sum() == 1


def test_merged_parts_are_the_whole(here, fallen):
    for name, frames in (("a", slice(0, 30)), ("b", slice(30, 60))):
        collidecli.run("fall.xml", "fall.h5", f"{name}.h5", frames=frames, device="cpu", gap=0.02)
    collidecli.merge(["a.h5", "b.h5"], "new/all.h5")
    whole = collidecli.run("fall.xml", "fall.h5", "whole.h5", device="cpu", gap=0.02)
    hashes = {collidecli.open_contacts(path).content_sha256 for path in (whole, "new/all.h5")}
    assert len(hashes) == 1
    assert collidecli.check("new/all.h5").good
    assert collidecli.check("new/all.h5").to_pandas().empty


def test_an_exported_log_comes_back(here, fallen):
    collidecli.run("fall.xml", "fall.h5", "a.h5", device="cpu", gap=0.02)
    contacts = collidecli.open_contacts("a.h5")
    contacts.export("mujoco", "log.npz", scene="fall.xml")
    made = collidecli.import_contacts(
        "log.npz", "back.h5", "fall.xml", "fall.h5", layout="mujoco", gap=0.02
    )
    assert collidecli.open_contacts(made.output).contact_count == contacts.contact_count > 0


def names_of(cell: collidecli.Contacts) -> set[str]:
    return {name for name in dir(cell) if not name.startswith("_")}


def test_cells_in_memory_and_of_a_file_have_equal_names_and_values(fallen):
    stored = fallen.contact_set
    for frame in (0, 40, 59):
        ours, theirs = fallen.cell(frame), stored.cell(frame)
        assert names_of(ours) == names_of(theirs)
        assert ours.contact_count == theirs.contact_count == len(ours)
        assert ours.columns.keys() == theirs.columns.keys()
        for name, values in ours.columns.items():
            np.testing.assert_array_equal(values, theirs.columns[name])
            assert getattr(ours, name, values) is values
        np.testing.assert_array_equal(ours.depth, np.maximum(-theirs.distance, 0.0))
        assert (ours.shape_path, ours.time.tolist()) == (theirs.shape_path, theirs.time.tolist())
    for method in ("events", "pairs", "to_pandas", "to_xarray", "export"):
        assert getattr(type(fallen), method) is getattr(type(stored), method)


def test_labels_and_clearances_and_audits_are_datasets(fallen):
    labels = collidecli.label(fallen, sensors="ball")
    dataset = labels.to_xarray()
    assert dict(dataset.sizes) == {"frame": 60, "world": 1, "sensor": 1, "partner": 3}
    at = dataset.touch.sel(sensor="ball", partner="floor", world=0)
    np.testing.assert_array_equal(at, labels.touch[:, 0, 0, labels.partners.index("floor")])
    assert dataset.distance.attrs["units"] == "m"
    assert dataset.recorded.dims == ("frame", "world")
    assert dataset.present.dims == ("world", "sensor", "partner")

    model, motion = collidecli.open_recording("fall.h5").with_scene("fall.xml")
    near = collidecli.clearance(model, motion, device="cpu")
    motion.close()
    dataset = near.to_xarray()
    assert dataset.normal.dims == ("frame", "world", "item", "axis")
    np.testing.assert_array_equal(dataset.distance, near.distance)
    assert (dataset.item_shape0.values[0], dataset.time.dims) == (near.items[0][0], ("frame",))

    audit = collidecli.audit(fallen, max_depth="1mm")
    dataset = audit.to_xarray()
    np.testing.assert_array_equal(dataset.usable, audit.usable)
    assert dataset.deepest.dims == ("frame", "world", "deepest_part")
    assert len(audit.to_pandas()) == len(audit.pairs)
    assert isinstance(audit.to_pandas(), pandas.DataFrame)

    model, motion = collidecli.open_recording("fall.h5").with_scene("fall.xml")
    touches = collidecli.sweep(model, motion, device="cpu")
    motion.close()
    frame = touches.to_pandas()
    assert len(frame) == len(touches)
    np.testing.assert_array_equal(frame.normal_z, touches.normal[:, 2])
    assert touches.to_xarray().sizes["row"] == len(touches)
    assert fallen.events().to_xarray().sizes["row"] == fallen.events().row_count


def test_notebooks_have_tables_with_escaped_names(fallen):
    builder = collidecli.ModelBuilder()
    builder.source.append("<script>")
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.1)
    model = builder.finalize()
    assert repr(builder) == "<ModelBuilder shapes=1 bodies=1 worlds=0>"
    audit = collidecli.audit(fallen)
    for shown in (
        builder,
        model,
        fallen,
        fallen.contact_set,
        fallen.events(),
        fallen.pairs(),
        collidecli.label(fallen),
        audit,
        audit.result,
        collidecli.diff(fallen, fallen),
        collidecli.sweep(model, np.tile([0.0, 0, 0, 0, 0, 0, 1], (2, 1, 1, 1)), device="cpu"),
    ):
        text = shown._repr_html_()
        assert text.startswith("<table>"), type(shown)
        assert text.count("<table>") == text.count("</table>") == 1
        assert not {"<script>", "<b>"} & {text[k : k + 8] for k in range(len(text))}
    assert "1 sphere" in model._repr_html_()
    assert "&lt;script&gt;" in builder._repr_html_()


@pytest.mark.parametrize("call", ["collide", "run", "file", "audit", "clearance"])
def test_progress_ends_with_all_frames(here, call):
    collidecli.record("fall.xml", "fall.h5", 20)
    model, motion = collidecli.open_recording("fall.h5").with_scene("fall.xml")
    told = []
    calls = {
        "collide": lambda **more: collidecli.collide(model, motion, device="cpu", **more),
        "run": lambda **more: collidecli.run("fall.xml", "fall.h5", device="cpu", **more),
        "file": lambda **more: collidecli.run("fall.xml", "fall.h5", "o.h5", force=True, **more),
        "audit": lambda **more: collidecli.audit("fall.xml", "fall.h5", device="cpu", **more),
        "clearance": lambda **more: collidecli.clearance(model, motion, device="cpu", **more),
    }
    calls[call](progress=lambda done, total: told.append((done, total)))
    motion.close()
    assert told[-1] == (20, 20)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_bar_is_shown_on_stderr(here, capsys, monkeypatch):
    for is_terminal in (True, False):
        if is_terminal:
            monkeypatch.setenv("FORCE_COLOR", "1")
        else:
            monkeypatch.delenv("FORCE_COLOR")
        collidecli.run("fall.xml", device="cpu", progress=True)
        captured = capsys.readouterr()
        assert (captured.out, "colliding" in captured.err) == ("", is_terminal)


def test_a_motion_is_public(here):
    collidecli.record("fall.xml", "fall.h5", 3)
    _, motion = collidecli.open_recording("fall.h5").with_scene("fall.xml")
    for name in collidecli.Motion.__annotations__:
        assert hasattr(motion, name)
    motion.close()
