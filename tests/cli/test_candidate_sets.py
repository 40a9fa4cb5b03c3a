"""A run with --candidates-only: its set against the candidates that a full run counts, what reads
it, and what refuses it with one message."""

from pathlib import Path

import h5py
import numpy as np
import pandas
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.pytest_plugin.regression import warn_of_no_contacts
from tests.cli.conftest import FRAMES, arrays, attributes, refusals, write_jobs, write_poses
from tests.cli.test_touch_sets import CLOTH, SCENE, motion

RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu", "--gap", "0.05", "-q", "-o")
TOLD = ("is of a run with --candidates-only", "does not tell which of them touch")


@pytest.fixture
def candidates(here, collide) -> str:
    """A set of candidates of two worlds in the current folder."""
    Path("scene.xml").write_text(SCENE)
    write_poses("motion.h5", motion(2), ["a", "b", "c"])
    collide.ok(*RUN, "pairs.h5", "--candidates-only")
    return "pairs.h5"


def test_the_rows_are_the_candidates_of_a_full_run(candidates, collide):
    """As many, and each pair with a contact is one of them."""
    collide.ok(*RUN, "full.h5")
    with h5py.File("full.h5") as file:
        tested = file["timing"].attrs["candidate_count"]
    with (
        collidecli.ContactSet.open(candidates) as found,
        collidecli.ContactSet.open("full.h5") as full,
    ):
        rows = found.groups["candidates"].rows(0, 80)
        assert rows.row_count == tested > 100
        cell = np.repeat(np.arange(80), rows.cell_counts)
        pairs = set(zip(cell, rows.columns["shape0"], rows.columns["shape1"], strict=True))
        cell = np.repeat(np.arange(80), np.diff(full.cell_start()))
        contacts = set(zip(cell, full.column("shape0"), full.column("shape1"), strict=True))
        assert contacts
        assert contacts < pairs


def test_broad_phases_threads_and_chunks_write_one_content(candidates, collide):
    expected = attributes(candidates)["content_sha256"]
    divisions = (
        ("--broad-phase", "sap", "--chunk-cells", "3"),
        ("--broad-phase", "nxn", "--threads", "2"),
        ("--pipeline", "standard", "--memory-limit", "64MiB"),
    )
    for number, options in enumerate(divisions):
        collide.ok(*RUN, f"{number}.h5", "--candidates-only", *options)
        assert attributes(f"{number}.h5")["content_sha256"] == expected
    collide.ok("check", "0.h5")
    collide.ok("diff", candidates, "0.h5")
    wider = ("0.2" if word == "0.05" else word for word in RUN)
    collide.ok(*wider, "wider.h5", "--candidates-only")
    collide.found("diff", candidates, "wider.h5", told="candidates")


def test_a_run_states_that_nothing_was_tested(candidates, collide):
    result = collide.result(*RUN, "again.h5", "--candidates-only")
    assert result["false_positive_ratio"] is None
    assert result["contacts"] == 0
    assert result["groups"]["candidates"]["rows"] == result["candidates"] > 100
    with h5py.File("again.h5") as file:
        timing = dict(file["timing"].attrs)
    assert timing["candidate_count"] == result["candidates"]
    assert not {"false_positive_ratio", "touching_pair_count"} & timing.keys()
    words = (word for word in RUN if word != "-q")
    shown = collide.ok(*words, "third.h5", "--candidates-only").out
    assert "not tested" in shown
    assert "without contact" not in shown
    assert "contacts     none" not in shown
    (line,) = [line for line in shown.splitlines() if line.startswith("candidates")]
    assert line.endswith("cells, not tested")
    assert "narrow phase" not in shown


def test_tables_and_frames_have_the_rows(candidates, collide):
    export = ("export", candidates, "--group", "candidates", "-q", "--to")
    collide.ok(*export, "csv", "-o", "pairs.csv")
    collide.ok(*export, "parquet", "-o", "pairs.parquet")
    collide.ok(*export, "npz", "-o", "pairs.npz")
    csv = pandas.read_csv("pairs.csv", keep_default_na=False)
    table = pandas.read_parquet("pairs.parquet")
    with collidecli.open_contacts(candidates) as contacts:
        frame = contacts.to_pandas(group="candidates")
        rows = contacts.groups["candidates"].rows(0, 80)
        paths = np.array(contacts.shapes.path)
    assert len(frame) == rows.row_count > 100
    cell = np.repeat(np.arange(80), rows.cell_counts)
    for one in (csv, table, frame):
        for name in ("shape0", "shape1"):
            assert (one[name].astype(str) == paths[rows.columns[name]]).all()
        assert (one["frame"] * 2 + one["world"] == cell).all()
    with np.load("pairs.npz") as arrays_of:
        assert np.array_equal(arrays_of["shape0"], rows.columns["shape0"])
    some = pandas.read_csv("pairs.csv")["shape0"].value_counts()
    collide.ok(*export, "csv", "-o", "a.csv", "--include", "a", "--frames", "3:9")
    kept = pandas.read_csv("a.csv")
    assert 0 < len(kept) < some.sum()
    assert ((kept["shape0"] == "a") | (kept["shape1"] == "a")).all()


def test_python_runs_and_reads_the_pairs(candidates):
    found = collidecli.run("scene.xml", "motion.h5", gap=0.05, candidates_only=True, device="cpu")
    with collidecli.open_contacts(candidates) as contacts:
        there = contacts.groups["candidates"].rows(0, 80)
        assert found.contact_set.content_sha256 != ""
        for name, values in found.groups["candidates"].columns.items():
            assert np.array_equal(values, there.columns[name])
    for query in ("pairs", "events", "to_pandas", "to_xarray"):
        with pytest.raises(InputError, match="does not tell which of them touch"):
            getattr(found, query)()
    with pytest.raises(InputError, match="does not tell which of them touch"):
        found.nominal_forces(1e4)
    with pytest.raises(InputError, match="does not tell which of them touch"):
        collidecli.label(candidates)


def test_inspection_and_texts_have_the_table(candidates, collide):
    shown = collide.result("inspect", candidates)
    assert shown["groups"]["candidates"]["rows"] > 100
    assert "by_world" not in shown
    text = collide.ok("inspect", candidates).out
    assert "column of candidates" not in text
    assert "no contact" not in text
    assert "not computed, by --candidates-only" in text
    words = "export", candidates, "--to", "parquet", "-o", "x.parquet"
    collide.refused(*words, told="--group candidates and --to csv or --to parquet")
    assert "candidates, frame 0, world 0" in collide.ok("textconv", candidates).out
    for frames in ("0:15", "15:"):
        name = f"{frames.partition(':')[0]}.h5"
        collide.ok(*RUN, name, "--candidates-only", "--frames", frames)
    collide.ok("merge", "0.h5", "15.h5", "-o", "both.h5")
    assert arrays("both.h5")["candidates/shape1"].tolist() == (
        arrays(candidates)["candidates/shape1"].tolist()
    )
    with h5py.File("both.h5") as file:
        assert file["timing"].attrs["candidate_count"] == shown["groups"]["candidates"]["rows"]
        assert "false_positive_ratio" not in file["timing"].attrs
    collide.found("check", _edited(candidates), told="candidates")
    warn_of_no_contacts(Path(candidates))  # it has rows: no warning, which tests raise


def _edited(path: str) -> str:
    """A copy with two pairs of a cell in another order."""
    Path("edited.h5").write_bytes(Path(path).read_bytes())
    with h5py.File("edited.h5", "r+") as file:
        start = arrays(path)["candidates/cell_start"]
        row = start[np.argmax(np.diff(start) > 1)]
        for name in ("shape0", "shape1"):
            values = file[f"candidates/{name}"]
            values[row : row + 2] = values[row : row + 2][::-1]
    return "edited.h5"


test_verbs_that_need_touches_refuse_a_set_of_candidates = refusals(
    "",
    ("events pairs.h5", TOLD),
    ("events pairs.h5 --threshold any", TOLD),
    ("events pairs.h5 --by particles", TOLD),
    ("label pairs.h5 -o l.npz", TOLD),
    ("report pairs.h5 -o r.html", TOLD),
    ("plot pairs.h5 -o p.svg", TOLD),
    ("audit pairs.h5", TOLD),
    ("view pairs.h5 --export v.html", TOLD),
    ("inspect pairs.h5 --sizes", TOLD),
    ("diff pairs.h5 pairs.h5 --by-pair", TOLD),
    *(
        (f"export pairs.h5 --to {form}", TOLD)
        for form in ("csv", "parquet", "npz", "newton", "usd")
    ),
    needs="candidates",
)

test_options_that_do_not_go_together_are_refused = refusals(
    "run scene.xml",
    ("--candidates-only --touch-only", "touch_only tests the candidates"),
    ("--candidates-only --columns friction", "candidates_only finds pairs alone, which have no"),
    ("--candidates-only --sweep", "sweep applies to contacts, and candidates_only finds pairs"),
    ("--candidates-only --engine mujoco", "--candidates-only has no effect with --engine mujoco"),
    needs="candidates",
)


def test_a_profile_times_and_compares_the_broad_phases_alone(candidates, collide):
    words = ("profile", "scene.xml", "-t", "motion.h5", "--repeats", "1")
    result = collide.result(*words, "--candidates-only", "-o", "p.h5")
    run = [phase for phase in result["phases"] if not phase["skipped"]]
    assert {phase["false_positive_ratio"] for phase in run} == {None}
    assert {phase["stages"]["narrow_phase"]["most"] for phase in run} == {0.0}
    (narrow,) = {phase["contacts_sha256"] for phase in run}
    wider = collide.result(*words, "--candidates-only", "--gap", "0.3", "-o", "w.h5")
    assert {phase["contacts_sha256"] for phase in wider["phases"]} != {narrow}
    shown = collide.ok(*words, "--candidates-only", "-o", "s.h5").out
    assert "candidates bit-identical from nxn, sap, explicit" in " ".join(shown.split())
    assert "without contact" not in shown
    told = ("--sizes counts contacts", "--candidates-only")
    collide.refused(*words, "--candidates-only", "--sizes", "--force", told=told)


def test_episodes_of_a_batch_have_the_table(here, collide):
    write_jobs(here, [FRAMES, FRAMES - 1])
    text = Path("jobs.toml").read_text()
    Path("jobs.toml").write_text(text.replace("gap =", "candidates_only = true, gap ="))
    collide.ok("batch plan jobs.toml -o B")
    collide.ok("batch run B --workers 1")
    collide.ok("batch gather B --to parquet -o tables")
    rows = pandas.read_parquet("tables/candidates-00000.parquet")
    assert len(rows) > 3
    assert not len(pandas.read_parquet("tables/contacts-00000.parquet"))
    collide.refused("batch gather B --to lerobot -o l", told="has candidates")
    collide.refused("batch gather B --to lerobot -o l --pairs ball,base", told="has candidates")


def test_particles_are_left_out_with_a_note(here, collide):
    Path("cloth.usda").write_text(CLOTH % "0.3")
    answer = collide.ok("run cloth.usda --candidates-only -o c.h5")
    assert "particles have no candidates" in answer.err
