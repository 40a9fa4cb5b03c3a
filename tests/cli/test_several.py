"""Verbs called with several inputs: one result each, a failure that does not end the others, one
table."""

import json
import os
import shutil
from pathlib import Path
from unittest.mock import Mock
from xml.etree import ElementTree

import h5py
import pandas
import pytest

from collidecli.cli.several_inputs import Job, computed
from collidecli.cli.stop import Stopped
from collidecli.cli.streams import Streams
from collidecli.errors import InputError, OutputError
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.run import run as run_module
from tests.cli.conftest import SCENE, refusals, write_motion
from tests.support.contact_sets import made_up

RUN = ("run", "scene.xml", "--device", "cpu")
FRAMES = {"a": 15, "b": 18, "sub/a": 20}


@pytest.fixture
def demos(here: Path) -> Path:
    """The current folder with three recordings of different lengths in `demos`, beside a damaged
    file and a text."""
    (here / "demos" / "sub").mkdir(parents=True)
    for name, frames in FRAMES.items():
        write_motion(here / "demos" / f"{name}.h5", frames)
    (here / "demos" / "bad.h5").write_bytes((here / "motion.h5").read_bytes()[:700])
    (here / "demos" / "README.md").write_text("no recording")
    return here


@pytest.fixture
def sets(here: Path) -> Path:
    """The current folder with contact sets in `runs`, and files of other kinds."""
    (here / "runs" / "sub").mkdir(parents=True)
    for name in ("a", "b", "sub/a"):
        made_up().write(here / "runs" / f"{name}.h5")
    shutil.copy("motion.h5", "runs/motion.h5")
    (here / "runs" / "notes.txt").write_text("no contact set")
    return here


def outputs(folder: str) -> list[str]:
    return sorted(
        path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()
    )


def listed(result: dict, schema: str) -> dict[str, dict]:
    """The items of the printed object, by input."""
    assert result["schema"] == f"collide.{schema}/1"
    assert sum(result["counts"].values()) == len(result["items"])
    return {item["input"]: item for item in result["items"]}


def test_every_recording_of_a_folder_but_a_damaged_one_is_run(demos, collide):
    answer = collide(*RUN, "-t", "demos", "-o", "out/", "--json")
    assert answer.code == 1
    items = listed(json.loads(answer.out), "run_list")
    assert list(items) == ["demos/a.h5", "demos/b.h5", "demos/bad.h5", "demos/sub/a.h5"]
    assert outputs("out") == ["a.contacts.h5", "b.contacts.h5", "sub/a.contacts.h5"]
    for name, frames in FRAMES.items():
        item = items[f"demos/{name}.h5"]
        assert (item["state"], item["error"], item["result"]["frames"]) == ("done", None, frames)
        assert item["output"] == item["result"]["output"] == f"out/{name}.contacts.h5"
    alone = collide.result(*RUN, "-t", "demos/b.h5", "-o", "b.h5")
    assert alone["content_sha256"] == items["demos/b.h5"]["result"]["content_sha256"]
    bad = items["demos/bad.h5"]
    assert (bad["state"], bad["result"], bad["error"]["exit_code"]) == ("failed", None, 2)
    assert answer.err.startswith("error: demos/bad.h5: the file is truncated")
    # A warning that all recordings have is printed once.
    assert answer.err.count("warning: demos/a.h5 and 2 more: 1 of the scene's bodies") == 1


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("-t", "demos/[ab].h5"), ["a", "b"]),
        (("-t", "demos/**/a.h5"), ["a", "sub/a"]),
        (("-t", "demos/b.h5", "-t", "demos/sub"), ["a", "b"]),
        (("-t", "demos/a.h5", "-t", "demos/sub/a.h5"), ["a", "sub/a"]),
        (("-t", "demos/b*.h5", "-t", "demos/b.h5", "--gap", "1"), ["b", "bad"]),
    ],
)
def test_outputs_have_the_names_of_the_recordings(demos, collide, monkeypatch, words, names):
    def no_run(request, progress=None, cache=None):
        Path(request.output).touch()
        raise InputError("not run")

    monkeypatch.setattr(run_module, "run", no_run)
    assert collide(*RUN, *words, "-o", "out").code == 2
    assert outputs("out") == [f"{name}.contacts.h5" for name in names]


def test_a_pattern_of_one_file_gives_a_list(demos, collide):
    items = listed(collide.result(*RUN, "-t", "demos/sub/*.h5", "-o", "out"), "run_list")
    assert list(items) == ["demos/sub/a.h5"]
    assert (
        collide.result(*RUN, "-t", "demos/a.h5", "-o", "single/")["output"]
        == "single/a.contacts.h5"
    )


def test_existing_outputs_are_refused_before_any_run_or_skipped(demos, collide):
    collide.ok(*RUN, "-t", "demos/a.h5", "-o", "out/")
    before = Path("out/a.contacts.h5").stat()
    told = "out/a.contacts.h5: the output exists already"
    collide.refused(*RUN, "-t", "demos/[ab].h5", "-o", "out", told=told, code=3)
    items = listed(
        collide.result(*RUN, "-t", "demos/[ab].h5", "-o", "out", "--skip-existing"), "run_list"
    )
    assert [item["state"] for item in items.values()] == ["skipped", "done"]
    assert Path("out/a.contacts.h5").stat().st_mtime_ns == before.st_mtime_ns
    collide.ok(*RUN, "-t", "demos/[ab].h5", "-o", "out", "--force")
    assert Path("out/a.contacts.h5").stat().st_mtime_ns > before.st_mtime_ns


@pytest.mark.parametrize(
    ("error", "code", "told", "kept"),
    [
        (KeyboardInterrupt(), 130, "interrupted", {"a"}),
        (OutputError("no space left", "out/b.contacts.h5"), 3, "no space left", {"a"}),
        (
            ZeroDivisionError("oh"),
            70,
            "demos/b.h5: internal error: ZeroDivisionError: oh",
            {"a", "sub/a"},
        ),
    ],
)
def test_an_error_keeps_only_what_is_finished(demos, collide, monkeypatch, error, code, told, kept):
    """An interruption and a full disk end the list; an error in collide does not."""
    real = run_module.run

    def run(request, progress=None, cache=None):
        if request.trajectory == "demos/b.h5":
            raise error
        return real(request, progress, cache)

    monkeypatch.setattr(run_module, "run", run)
    answer = collide(*RUN, "-t", "demos", "-o", "out/")
    assert (answer.code, told in answer.err) == (code, True)
    assert outputs("out") == sorted(f"{name}.contacts.h5" for name in kept)
    assert os.path.exists("out/sub") == ("sub/a" in kept)
    with ContactSet.open("out/a.contacts.h5") as contacts:
        assert contacts.frame_count == FRAMES["a"]


def test_a_signal_whose_exception_a_library_replaced_ends_the_list():
    streams = Streams()
    streams.is_stopping = lambda: True

    def compute(job, progress):
        raise InputError("the exception of a library")

    with pytest.raises(Stopped):
        list(computed(streams, [Job("a.h5"), Job("b.h5")], compute, "reading"))


@pytest.fixture
def more(demos) -> None:
    """The recordings, another one of the same name, and a folder without any."""
    (demos / "empty").mkdir()
    (demos / "demos" / "b.npz").write_bytes(b"x")


test_refused_before_any_work = refusals(
    "",
    *((f"run scene.xml -t {words}", *told) for words, *told in (
        ("nothing/*.h5 -o out", "'nothing/*.h5' matches no file"),
        ("demos/a.h5 -t nix.h5 -o out", "'nix.h5': there is no such file"),
        ("empty -o out", "empty: the folder has no file with the extension .h5"),
        ("demos", "5 recordings have no default output: name a folder with -o"),
        ("demos -o out.h5", "give a folder, such as out/", 3),
        ("demos -o scene.xml", "this is a file", 3),
        ("demos -o out --trace t.json", "--trace is for one run"),
        ("demos/[ab].h5 -o out --force --skip-existing", "exclude each other"),
        ("demos/a.h5 -o x.h5 --skip-existing", "--skip-existing is for several runs"),
        ("demos/b.h5 -t demos/b.npz -o out", "has the output b.contacts.h5, and so has"),
        ("demos --each -o out", "--each runs several scenes, each with one recording"),
    )),
    ("run demos -o out", "for its recordings -t demos"),
    ("run *.xml nothing*.xml -o x.h5", "'nothing*.xml' matches no file"),
    ("diff demos scene.xml", "is no folder, and demos is one"),
    ("events demos/a.h5 demos/b.h5 --graph", "--graph and --dot are for one contact set"),
    ("report demos/a.h5 demos/b.h5", "need a folder: name it with -o"),
    ("inspect demos --pairs", "--pairs, --why and --sizes are for one file"),
    needs="more",
)  # fmt: skip


def test_scenes_are_worlds_or_with_each_runs(here, collide):
    for name in ("scenes/one", "scenes/two", "old/a/arm", "old/b/hand"):
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        (here / f"{name}.xml").write_text(SCENE)
    assert collide.result("run scenes/*.xml -o worlds.h5 --device cpu")["worlds"] == 2
    items = listed(
        collide.result("run --each scenes/*.xml -t motion.h5 -o out --device cpu"), "run_list"
    )
    assert outputs("out") == ["one.contacts.h5", "two.contacts.h5"]
    assert items["scenes/two.xml"]["result"]["scene"] == "two.xml"
    assert items["scenes/two.xml"]["result"]["trajectory"] == "motion.h5"
    for scenes, output in (("old/*/*.xml", "a"), ("old/a/arm.xml old/b/hand.xml", "b")):
        collide.ok(f"run --each {scenes} -o {output} --device cpu")
        assert outputs(output) == ["a/arm.contacts.h5", "b/hand.contacts.h5"], (
            "quoted or expanded by a shell"
        )
    assert collide.result("diff a b")["counts"]["done"] == 2


def test_recordings_that_contain_their_scene_take_the_place_of_scenes(demos, collide, monkeypatch):
    run = Mock(side_effect=InputError("not run"))
    monkeypatch.setattr(run_module, "run", run)
    assert collide("run demos/[ab].h5 -o out").code == 2
    requests = [call.args[0] for call in run.call_args_list]
    assert [(one.scenes, one.trajectory) for one in requests] == [
        ((), "demos/a.h5"),
        ((), "demos/b.h5"),
    ]


def test_a_variable_names_one_recording(demos, collide, monkeypatch):
    (demos / "a file.h5").write_bytes(Path("motion.h5").read_bytes())
    monkeypatch.setenv("COLLIDE_TRAJECTORY", "a file.h5")
    assert collide.result(*RUN)["trajectory"] == "a file.h5"


def test_check_of_a_folder(sets, collide):
    items = listed(collide.result("check runs/", code=1), "check_list")
    assert list(items) == ["runs/a.h5", "runs/b.h5", "runs/motion.h5", "runs/sub/a.h5"]
    assert items["runs/motion.h5"]["result"]["good"]
    findings = items["runs/sub/a.h5"]["result"]["findings"]
    assert "2 good, 0 faulty" in collide.ok("check runs/motion.h5 motion.h5").out
    (sets / "runs" / "cut.h5").write_bytes(b"\x89HDF")
    answer = collide("check runs")
    assert (answer.code, "runs/cut.h5" in answer.err, "1 cannot be checked" in answer.out) == (
        1,
        True,
        True,
    )
    assert all(f"runs/sub/a.h5: {one['where']}: {one['what']}" in answer.out for one in findings)
    assert findings
    assert collide("check runs/cut.h5 runs/cut.h5 runs/c*.h5").code == 2


def test_events_of_several_sets_are_one_table(sets, collide):
    (sets / "runs" / "cut.h5").write_bytes(b"\x89HDF")
    renamed = made_up()
    renamed.path = [f"new/{path}" for path in renamed.path]
    renamed.write(sets / "runs" / "b.h5")
    answer = collide("events runs --csv all.csv --parquet all.parquet --json")
    assert answer.code == 1
    items = listed(json.loads(answer.out), "events_list")
    assert (
        "1 file of a folder is left out, as they are not contact sets: runs/motion.h5" in answer.err
    )
    assert [name for name, item in items.items() if item["state"] == "failed"] == ["runs/cut.h5"]
    rows = pandas.read_csv("all.csv", dtype=str, keep_default_na=False).to_dict("records")
    for name in ("runs/a.h5", "runs/b.h5", "runs/sub/a.h5"):
        collide.ok("events", name, "--csv", "one.csv", "--force")
        alone = pandas.read_csv("one.csv", dtype=str, keep_default_na=False)
        assert len(alone) == items[name]["result"]["intervals"]["count"]
        assert alone.to_dict("records") == [row for row in rows if row["file"] == name]
    parquet = pytest.importorskip("pyarrow.parquet").read_table("all.parquet").to_pylist()
    assert [(row["file"], row["shape0"]) for row in parquet] == [
        (row["file"], row["shape0"]) for row in rows
    ]
    assert collide("events runs/cut.h5 runs/c*.h5 --csv none.csv").code == 2
    assert not os.path.exists("none.csv")


def test_report_writes_a_page_each(sets, collide, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("collidecli.verbs.report.page.report_page", lambda result: result["file"])
    names = ("runs/a.h5", "runs/sub/a.h5", "runs/motion.h5")
    items = listed(collide.result("report", *names, "-o", "pages", code=1), "report_list")
    assert outputs("pages") == ["a.html", "sub/a.html"]
    assert Path("pages/sub/a.html").read_text() == "runs/sub/a.h5"
    assert items["runs/motion.h5"]["state"] == "failed"
    answer = collide.ok("report runs -o pages --skip-existing")
    assert "1 done, 2 skipped" in answer.out


def test_inspect_has_a_row_for_each(sets, collide):
    items = listed(collide.result("inspect runs scene.xml"), "inspect_list")
    schemas = {name: item["result"]["schema"] for name, item in items.items()}
    assert schemas["scene.xml"] == "collide.inspect.scene/1"
    assert schemas["runs/motion.h5"] == "collide.inspect.trajectory/1"
    assert "contact set" in collide("inspect runs").out


@pytest.fixture
def folders(sets: Path) -> Path:
    """Folders `runs` and `now`: a.h5 is equal, sub/a.h5 differs, b.h5 is only in A, new.h5 only in
    B."""
    shutil.copytree("runs", "now")
    os.rename("now/b.h5", "now/new.h5")
    edited = made_up()
    edited.columns["distance"][3] += 1e-3
    edited.write(sets / "now" / "sub" / "a.h5")
    return sets


def test_diff_of_two_folders(folders, collide):
    pages = ("--junit-xml", "d.xml", "--markdown", "d.md", "--github")
    answer = collide("diff runs now --json", *pages)
    items = listed(json.loads(answer.out), "diff_list")
    states = {
        name: item["result"]["equal"] if item["result"] else item["state"]
        for name, item in items.items()
    }
    assert states == {"a.h5": True, "b.h5": "only_a", "new.h5": "only_b", "sub/a.h5": False}
    root = ElementTree.parse("d.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("14", "3", "0")
    failed = {suite.get("name") for suite in root if suite.get("failures") != "0"}
    assert failed == {"collide diff: b.h5", "collide diff: new.h5", "collide diff: sub/a.h5"}
    text = Path("d.md").read_text()
    assert ("| `b.h5` | only in A |" in text, "### sub/a.h5: different" in text) == (True, True)
    assert (answer.code, answer.err.count("::error")) == (1, 3)
    table = collide("diff runs now").out
    assert "4 contact sets: 1 equal, 1 different, 1 only in A, 1 only in B" in table


def test_exit_codes_of_diff_of_folders(folders, collide):
    collide.ok("diff runs runs")
    collide.ok("diff now/sub runs/sub --atol 1e-2")
    for name in ("runs/sub/a.h5", "now/sub/a.h5"):
        with h5py.File(name, "r+") as file:
            del file["rigid_contacts"]
    answer = collide("diff runs runs --junit-xml d.xml --github")
    assert (answer.code, ElementTree.parse("d.xml").getroot().get("errors")) == (1, "1")
    assert "::error title=collide diff%3A sub/a.h5::failed" in answer.err
    assert collide("diff runs/sub now/sub").code == 2


def test_each_of_several_audits_is_as_alone(demos, collide):
    """Each item is the audit alone; the exit code is 1 if one is over a limit or cannot be
    audited."""
    collide("run scene.xml -t demos -o runs --device cpu")
    shutil.copy("motion.h5", "runs/motion.h5")
    # in frame k the spheres are 105 - 10 k mm apart: 35, 65 and 85 mm deep
    limits = ("--max-depth", "70mm")
    answer = collide("audit runs --json", *limits)
    items = listed(json.loads(answer.out), "audit_list")
    assert (answer.code, [item["result"]["passed"] for item in items.values()]) == (
        1,
        [True, True, False],
    )
    assert "1 file of a folder is left out" in answer.err
    for name, item in items.items():
        assert item["result"] == collide.result(
            "audit", name, *limits, code=0 if item["result"]["passed"] else 1
        )
    assert "over a limit" in collide("audit runs", *limits).out
    assert collide("audit runs/a.contacts.h5 runs/b.contacts.h5", *limits).code == 0
    found = listed(
        collide.result("audit scene.xml -t demos --device cpu", *limits, code=1), "audit_list"
    )
    assert [item["state"] for item in found.values()] == ["done", "done", "failed", "done"]
    assert [item["result"]["passed"] for item in found.values() if item["result"]] == [
        True,
        True,
        False,
    ]
    for words in ("--mask m.npz", "--chart c.svg", "--junit-xml x.xml", "--against b.json"):
        collide.refused(f"audit runs {words}", told="is for one audit")


def test_clearance_of_several_recordings(demos, collide):
    items = listed(
        collide.result("clearance scene.xml -t demos -o near --device cpu", code=1),
        "clearance_list",
    )
    assert outputs("near") == ["a.clearance.h5", "b.clearance.h5", "sub/a.clearance.h5"]
    for name, frames in FRAMES.items():
        found = items[f"demos/{name}.h5"]["result"]
        assert (found["frames"], found["output"]) == (frames, f"near/{name}.clearance.h5")
        alone = collide.result(f"clearance scene.xml -t demos/{name}.h5 --device cpu")
        assert found["listed"] == alone["listed"]
    collide.refused("clearance scene.xml -t demos -o near", told="exists already", code=3)
    collide.refused("clearance scene.xml -t demos --plot x.svg", told="--plot is for one recording")
