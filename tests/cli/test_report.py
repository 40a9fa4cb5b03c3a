"""collide report and collide plot: the result against sums by hand, the page's text, results of
other verbs."""

import json
import re
import shutil
from contextlib import chdir
from pathlib import Path
from xml.etree import ElementTree

import h5py
import numpy as np
import pytest

from collidecli.pages.canvas import PAGE, THEMES, Canvas, drawing
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.option_values import CHART_KINDS, CHART_THEMES
from collidecli.storage.json_results import AUDIT, CLEARANCE, LABELS, fits
from collidecli.storage.profile_files import write_json, write_profile_h5
from collidecli.verbs.report.charts.kinds import KINDS
from collidecli.verbs.report.page import report_page
from collidecli.verbs.report.report import ReportRequest, report
from tests.cli.conftest import FRAMES, RUN, SCENE, CommandLine, distances, refusals, write_motion
from tests.support.contact_sets import (
    Edited,
    block_with_groups,
    made_up,
    made_up_block,
    small_model,
    write_contact_set,
)
from tests.support.html_page import Page

HOSTILE = '<script>alert("x")</script>&amp;'
SAMPLE = (
    Path(__file__).parents[2]
    / "samples"
    / "03_regression_tests"
    / "tests"
    / "test_contacts"
    / "fall.h5"
)


@pytest.fixture
def moved(here) -> tuple[str, str]:
    """A baseline, and the same with a contact moved, one gone, and a name that is markup."""
    a = made_up(frames=9, worlds=2)
    a.path[2] = HOSTILE
    b = a.rows(np.arange(len(a.cell)) != 7).copy()
    b.columns["point0"][20] += 0.03
    b.columns["distance"][20] -= 0.03
    return a.write(here / "a.h5"), b.write(here / "b.h5")


def check_totals(result: dict, a: Edited, rows: np.ndarray) -> None:
    """Those of some contacts, in 9 frames."""
    distance = a.columns["distance"][rows].astype(float)
    frame = a.cell[rows] // a.worlds
    penetrating = distance < 0
    assert (result["contacts"], result["penetrating"]) == (len(distance), penetrating.sum())
    assert sum(one["contacts"] for one in result["depths"]) == result["penetrating"]
    least = np.zeros(9)
    np.minimum.at(least, frame, distance)
    series = {
        "contacts": np.bincount(frame, minlength=9),
        "penetrating": np.bincount(frame[penetrating], minlength=9),
    }
    for name, values in (series | {"depth": -least}).items():
        np.testing.assert_allclose(result["series"][name], values, err_msg=name)
    deepest = result["deepest"]
    row = np.flatnonzero(rows)[np.argmin(distance)]
    assert (deepest["frame"], deepest["world"]) == divmod(int(a.cell[row]), a.worlds)
    assert deepest["distance"] == pytest.approx(distance.min())
    assert deepest["shape0"] == a.path[a.columns["shape0"][row]]


def test_the_facts(here):
    a = made_up(frames=9, worlds=2)
    result = report(ReportRequest(a.write(here / "a.h5"))).as_dict()
    check_totals(result, a, np.ones(len(a.cell), bool))
    distance = a.columns["distance"].astype(float)
    frame = a.cell // a.worlds
    assert sum(one["contacts"] for one in result["pairs"]["listed"]) == len(a.cell)
    firsts = [one["first_frame"] for one in result["pairs"]["listed"]]
    assert firsts == sorted(firsts)
    for one in result["pairs"]["listed"]:
        pair = [a.path.index(one["shape0"]), a.path.index(one["shape1"])]
        mine = (a.columns["shape0"] == pair[0]) & (a.columns["shape1"] == pair[1])
        assert one["contacts_per_frame"] == np.bincount(frame[mine], minlength=9).tolist()
        deepest = {f: max(0.0, -distance[mine & (frame == f)].min()) for f in frame[mine]}
        assert one["depth"] == pytest.approx([deepest.get(f, -1.0) for f in range(9)])
    worst = [one["distance"] for one in result["worst"]]
    assert worst == sorted(value for value in worst if value < 0.0)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"worlds": (1,)}, lambda a, *pair, world: world == 1),
        (
            {"include": ("s?here*",)},
            lambda a, *pair, world: any("sphere" in a.path[shape] for shape in pair),
        ),
        (
            {"exclude": ("*sphere*",)},
            lambda a, *pair, world: not any("sphere" in a.path[shape] for shape in pair),
        ),
        ({"bodies": ("body1",)}, lambda a, *pair, world: 1 in a.body[list(pair)]),
        (
            {"bodies": ("body1",), "worlds": (0, 2)},
            lambda a, *pair, world: world != 1 and 1 in a.body[list(pair)],
        ),
    ],
)
def test_selected_contacts(here, options, wanted, no_charts):
    a = made_up(frames=9, worlds=3)
    a.path = [f"{kind}{n}" for n, kind in enumerate(a.type)]
    result = report(ReportRequest(a.write(here / "a.h5"), **options)).as_dict()
    cells = zip(a.columns["shape0"], a.columns["shape1"], a.cell % 3, strict=True)
    rows = np.array([wanted(a, *pair, world=world) for *pair, world in cells])
    assert 0 < rows.sum() < len(rows)
    check_totals(result, a, rows)
    assert result["selection"] == {name: list(value) for name, value in options.items()}
    page = Page(report_page(result))
    assert any(words.startswith("Selected: ") for words in page.words)


def test_every_subset_has_the_figures_of_its_contacts(here, no_charts):
    a = made_up(frames=300, worlds=3)
    a.path = [f"{kind}{n}" for n, kind in enumerate(a.type)]
    result = report(ReportRequest(a.write(here / "a.h5"), subsets=True)).as_dict()
    found = result["subsets"]
    assert (found["frames_per_bin"], found["left_out"]) == (4, {"worlds": 0, "bodies": 0})
    kinds = [one["kind"] for one in found["listed"]]
    assert (kinds[:3], set(kinds[3:])) == (["world"] * 3, {"body", "shape"})
    body = np.asarray(a.body)
    for one in found["listed"]:
        sides = a.columns["shape0"], a.columns["shape1"]
        if one["kind"] == "world":
            rows = a.cell % 3 == one["row"]
        elif one["kind"] == "body":
            rows = np.isin(one["row"], body) & (
                (body[sides[0]] == one["row"]) | (body[sides[1]] == one["row"])
            )
        else:
            rows = (sides[0] == one["row"]) | (sides[1] == one["row"])
            assert one["name"] == a.path[one["row"]]
        frame = a.cell[rows] // 3
        distance = a.columns["distance"][rows].astype(float)
        assert one["contacts"] == rows.sum() > 0
        counts = np.bincount(frame // 4, minlength=75) / 4.0
        np.testing.assert_allclose(one["contacts_per_frame"], counts)
        least = np.zeros(75)
        np.minimum.at(least, frame // 4, distance)
        np.testing.assert_allclose(one["depth"], -least)
        assert one["pair_count"] == len(
            set(zip(sides[0][rows].tolist(), sides[1][rows].tolist(), strict=True))
        )
        deepest = [pair["distance"] for pair in one["pairs"]]
        assert (deepest[0], len(deepest)) == (
            pytest.approx(distance.min()),
            min(8, one["pair_count"]),
        )
        assert deepest == sorted(deepest)
        for pair in one["pairs"]:
            names = [a.path.index(pair["shape0"]), a.path.index(pair["shape1"])]
            mine = rows & (sides[0] == names[0]) & (sides[1] == names[1])
            touched = np.isin(np.arange(75), a.cell[mine] // 12)
            assert [depth >= 0.0 for depth in pair["depth"]] == touched.tolist()


def test_what_cannot_be_selected_on_the_page_is_stated(here, no_charts, monkeypatch):
    monkeypatch.setattr("collidecli.verbs.report.subsets.MAX_WORLDS", 2)
    path = made_up(frames=9, worlds=3).write(here / "a.h5")
    result = report(ReportRequest(path, subsets=True)).as_dict()
    assert result["subsets"]["left_out"]["worlds"] == 1
    text = report_page(result)
    assert "1 more can be selected with --world" in text
    assert text.count("pick-only-") == 2 * len(result["subsets"]["listed"]), (
        "an input and a rule of the style sheet"
    )
    assert "One world (2)" in text
    assert (
        report(ReportRequest(path, worlds=(1,), subsets=True)).as_dict()["subsets"]["listed"][0][
            "kind"
        ]
        == "body"
    )
    assert report(ReportRequest(path)).as_dict()["subsets"] is None


def test_worlds_are_named_after_their_demonstrations(here, no_charts):
    path = made_up(frames=9, worlds=2).write(here / "a.h5")
    with h5py.File(path, "r+") as file:
        file.attrs["config"] = json.dumps({"demos": ["demo_3", "demo_8"]})
    result = report(ReportRequest(path, worlds=(1,))).as_dict()
    text = report_page(result)
    assert "Selected: only demo_8" in text
    assert result["deepest"]["world"] == 1
    assert "demo_8" in text.split("Worst penetrations")[-1]
    assert "demo_3" not in text.split("Worst penetrations")[-1].split("Source")[0]


def test_stages_before_the_run_have_a_scale_of_their_own(no_charts):
    result = report(ReportRequest(str(SAMPLE))).as_dict()
    seconds = {"load": 100.0, "compile": 50.0, "read": 0.5, "write": 0.25}
    result["timing"]["stages"] = [
        {"stage": name, "seconds": spent, "calls": 1} for name, spent in seconds.items()
    ]
    with drawing():
        during, before = KINDS["stages"].draw(result, Canvas(920, PAGE)).axes
    assert [bar.get_width() for bar in during.patches] == [0.5, 0.25]
    assert [bar.get_width() for bar in before.patches] == [100.0, 50.0]
    assert during.get_xlim()[1] < 1.0
    assert "before it load 100 s, compile 50 s" in report_page(result)


def test_the_page(moved, here, collide, no_charts):
    a, b = moved
    answer = collide.ok("report", b, "--against", a, "-o", "page.html")
    assert "different: 1 contact missing, 1 contact changed" in answer.out
    text = Path("page.html").read_text()
    page = Page(text)
    assert ("wbr" in page.tags, "&lt;wbr" in text) == (True, False), "names may break after / and _"
    page.check()
    whole = Page(text.replace("<wbr>", "")).words
    assert any(HOSTILE in words for words in whole), "a name is text, whatever it is made of"
    assert "Different: 1 contact missing, 1 contact changed." in page.words
    assert text.count('role="img"') == len([tag for tag in page.tags if tag == "svg"]) > 8
    assert not [colour for colour in PAGE.values() if colour in text]
    assert "var(--accent)" in text
    assert report_page(report(ReportRequest(b, a, subsets=True)).as_dict()) == text, (
        "equal results are equal pages"
    )
    assert (
        text.index("Different: 1 contact missing")
        < text.index('id="summary"')
        < text.index('id="difference"')
    )


def test_a_page_that_is_there_is_replaced_by_force_alone(moved, collide, no_charts):
    collide.ok("report", moved[1], "--against", moved[0], "-o", "p.html")
    assert "Compared with" in Path("p.html").read_text()
    collide.refused("report", moved[1], "-o", "p.html", code=3)
    collide.ok("report", moved[1], "-o", "p.html", "--force")
    assert "Compared with" not in Path("p.html").read_text()
    result = collide.result("report a.h5 --against a.h5 -o p.html --force")
    assert (result["schema"], result["output"], result["difference"]["equal"]) == (
        "collide.report/1",
        "p.html",
        True,
    )
    assert 'class="verdict equal"' in Path("p.html").read_text()
    within = report(ReportRequest("b.h5", "a.h5", atol=("point0=0.1", "distance=0.04"))).as_dict()
    contacts = within["difference"]["contacts"]
    assert (contacts["missing"], contacts["changed"]) == (1, 0)


def test_a_set_without_contacts(here, collide):
    a = made_up()
    nothing = a.rows(np.zeros(len(a.cell), bool))
    collide.ok("report", nothing.write(here / "none.h5"))
    Page(Path("none.html").read_text())
    collide.refused(
        "plot none.h5 --kind pairs", told="--kind pairs has nothing to show: it has no contacts"
    )


def test_a_profile(moved, here, collide, no_charts):
    def spread(values):
        return {"median": float(np.median(values)), "repeats": values}

    phases = [{"name": "nxn", "skipped": "too many pairs"}]
    for n, name in enumerate(("sap", "explicit")):
        times = {
            "compute_seconds": spread([1.0 + n, 4.0, 0.5]),
            "wall_seconds": spread([2.0, 3.0, 4.0]),
        }
        counts = {
            "candidates": 70 + n,
            "touching_pairs": 50,
            "contacts": 60,
            "contacts_sha256": "ab",
        }
        phases.append(
            {
                "name": name,
                "skipped": None,
                **times,
                **counts,
                "stages": {"order": spread([0.1, 0.2, 0.3])},
            }
        )
    result = {
        "schema": "collide.profile/1",
        "scene_sha256": "5" * 64,
        "repeats": 3,
        "phases": phases,
    }
    write_profile_h5(here / "p.h5", result, False)
    write_json(here / "p.json", result, False)
    for name in ("p.h5", "p.json"):
        found = report(ReportRequest(moved[0], profile=name)).as_dict()["profile"]
        assert [one["name"] for one in found["phases"]] == ["nxn", "sap", "explicit"]
        assert found["phases"][0] == {"name": "nxn", "skipped": "too many pairs"}
        assert [(one["compute_seconds"], one["candidates"]) for one in found["phases"][1:]] == [
            (1.0, 70),
            (2.0, 71),
        ]
    write_json(here / "q.json", {**result, "scene_sha256": "6" * 64}, False)
    answer = collide("report", moved[0], "--profile", "q.json")
    assert (answer.code, answer.err) == (
        0,
        "warning: q.json profiles another scene than this one (a scene is its files with those of"
        " --disabled-pairs and --pairs-file)\n",
    )


@pytest.mark.rest
def test_every_kind_of_chart(moved, collide):
    assert tuple(KINDS) == CHART_KINDS
    a, b = moved
    model = small_model()
    write_contact_set(Path("groups.h5"), model, block_with_groups(model, 6))
    for number, kind in enumerate(CHART_KINDS):
        source = [str(SAMPLE)] if kind in ("stages", "phases") else [b, "--against", a]
        source = ["groups.h5"] if kind in ("areas", "forces", "pressures", "particles") else source
        theme = CHART_THEMES[number % 2]
        result = collide.result(
            "plot", *source, "--kind", kind, "-o", f"{kind}.svg", "--theme", theme
        )
        assert (result["schema"], result["kind"]) == ("collide.plot/1", kind)
        assert ElementTree.parse(f"{kind}.svg").getroot().attrib["width"] == "920pt"
        assert THEMES[theme]["paper"] in Path(f"{kind}.svg").read_text()
    collide.ok("plot", a, "-o", "c.png", "--width", "400")
    head = Path("c.png").read_bytes()[:24]
    assert (head[:8], int.from_bytes(head[16:20], "big")) == (b"\x89PNG\r\n\x1a\n", 800)


test_refusals = refusals(
    "",
    ("plot a.h5 -o x.pdf", "x.pdf: a chart has the extension .png or .svg"),
    ("plot a.h5 --kind differences", "give --against"),
    ("plot a.h5 --width 9", "9 is not from 240 to 4000"),
    ("plot a.h5 --kind stages", "it has no timing of stages"),
    ("report a.h5 --atol 1", "need --against"),
    ("report a.h5 --world 7", "world 7 is not there"),
    ("plot a.h5 --include none*", "'none*' matches no shape or body of a.h5"),
    ("plot a.h5 --body none*", "'none*' matches no body of a.h5"),
    ("report a.h5 --body none* -o a.h5", "'none*' matches no body of a.h5"),
    ("report a.h5 --against b.h5 --world 0", "leave out --world and --body"),
    ("report scene.xml", "scene.xml"),
    ("report a.h5 --profile scene.xml", "scene.xml: is neither JSON nor HDF5"),
    ("report a.h5 --profile a.h5", "a.h5: is no profile"),
    ("report a.h5 --against none.h5", "none.h5"),
    ("report a.h5 -o a.h5/x.html", "a file has its name", 3),
    ("report a.h5 -o x.json", "x.json: a page has the extension .html or .htm"),
    needs="moved",
)


NOT_FINITE = "/rigid_contacts/distance, frame 2, world 1: is not a finite number"


@pytest.mark.parametrize(
    ("dataset", "value", "told"),
    [
        *(("rigid_contacts/distance", value, NOT_FINITE) for value in (np.nan, -np.inf)),
        *(
            (f"rigid_contacts/shape{k}", row, f"{row} is no row of /model/shape")
            for k, row in ((1, 99), (0, -1))
        ),
        ("time/time", np.nan, "/time/time, frame 5: is not a finite number"),
    ],
)
def test_values_that_no_sum_can_be_made_of(here, collide, dataset, value, told):
    a = made_up(frames=9, worlds=2)
    row = 5 if dataset.startswith("time") else int(np.flatnonzero(a.cell == 2 * 2 + 1)[-1])
    with h5py.File(a.write(here / "a.h5"), "r+") as file:
        file[dataset][row] = value
    collide.refused("plot a.h5", told=told)


def test_a_timing_report_that_means_nothing(here, no_charts):
    with h5py.File(made_up().write(here / "a.h5"), "r+") as file:
        timing = file.create_group("timing")
        timing.attrs.update(
            {
                "wall_seconds": "x",
                "candidate_count": np.array([1, 2]),
                "device": 3,
                "contact_count": 7,
            }
        )
        timing.update({"stage": [b"read", b"write"], "seconds": [np.nan, 0.5], "calls": [1, 2]})
    result = report(ReportRequest(str(here / "a.h5"))).as_dict()
    assert result["timing"] == {
        "contact_count": 7,
        "stages": [{"stage": "write", "seconds": 0.5, "calls": 2}],
    }
    assert result["warnings"] == [
        "ignored entries of the timing that are no amounts: device, wall_seconds, candidate_count,"
        " stage read"
    ]
    Page(report_page(result))


RESULTS = {
    "audit": "audit out.h5 --max-depth 1mm",
    "labels": "label out.h5 -o l.npz --chart l.svg",
    "pair": "clearance scene.xml -t motion.h5",
    "body": "clearance scene.xml -t motion.h5 --by body",
    "all": "clearance scene.xml -t motion.h5 --by all",
    "none": "clearance scene.xml -t motion.h5 --first 0",
}
"""Verbs whose results a page can have: of one sphere that oscillates against another."""


@pytest.fixture(scope="module")
def computed(tmp_path_factory) -> Path:
    """A folder with the contact set out.h5 and NAME.json of each of RESULTS."""
    folder = tmp_path_factory.mktemp("results")
    collide = CommandLine()
    (folder / "scene.xml").write_text(SCENE)
    write_motion(folder / "motion.h5")
    with chdir(folder):
        collide.ok(*RUN, "-o", "out.h5")
        for name, words in RESULTS.items():
            Path(f"{name}.json").write_text(
                json.dumps(collide.result(words, code=int(name == "audit")))
            )
    return folder


@pytest.fixture
def results(computed, here) -> dict[str, dict]:
    """The results by name; the current folder has them too."""
    shutil.copytree(computed, here, dirs_exist_ok=True)
    return {name: json.loads((here / f"{name}.json").read_text()) for name in RESULTS}


def test_the_page_has_all_results(results, here, collide):
    record = collide.result(
        "report out.h5 --audit audit.json --labels labels.json --clearance pair.json"
    )
    assert record["warnings"] == []
    for name, other in (("audit", "audit"), ("labels", "labels"), ("clearance", "pair")):
        assert record[name] == results[other]
    text = (here / "out.html").read_text()
    over = int((-distances().astype(np.float32) > np.float32(1e-3)).sum())
    assert re.search(
        r'class="verdict different"><strong>Audit failed: 1 finding, 1 pair penetrates', text
    )
    assert f"Usable frames: {FRAMES - over} of {FRAMES}" in text
    assert f"above its limit in {over} frames" in text
    assert all(
        f'id="{name}-{part}' in text
        for name in ("audit", "labels", "clearance")
        for part in ('title"', "wide-")
    )
    assert "<title>frame 0: " in text  # of the chart of depth
    assert "1 mm" in text
    assert "touching</title>" in text


@pytest.mark.parametrize("by", ["pair", "body", "all"])
def test_the_page_has_the_clearance(by, results, here, collide, no_charts):
    found = results[by]
    assert fits(found, CLEARANCE)
    assert collide.result(f"report out.h5 --clearance {by}.json")["clearance"] == found
    nearest = found["listed"][0]
    assert found["series"]["least"][0] == pytest.approx(distances().tolist(), abs=1e-9)
    assert nearest["least_distance"] == min(found["series"]["least"][0])
    assert ("body" in nearest) == (">body<" in (here / "out.html").read_text()) == (by == "body")
    assert "series" not in results["none"]


def test_series_of_labels(results, here):
    """The fraction of the labelled frames in each bin; one world and bins of one frame."""
    labels = results["labels"]
    with np.load(here / "l.npz") as held:
        sensor, partner = (held[name].tolist() for name in ("sensors", "partners"))
        one = labels["listed"][0]
        touch = held["touch"][:, 0, sensor.index(one["sensor"]), partner.index(one["partner"])]
    assert labels["series"]["frames_per_bin"] == 1
    assert labels["series"]["labelled"][0] == touch.astype(float).tolist()
    assert labels["chart"] == "l.svg"
    assert (here / "l.svg").read_text().startswith("<?xml")


def test_results_of_another_motion_have_a_warning(results, here, collide, no_charts):
    scene = ("scene_sha256", "scene")
    recording = ("trajectory_sha256", "recording")
    cases = (
        ("audit", "audit", scene),
        ("labels", "labels", scene),
        ("clearance", "pair", recording),
    )
    for option, name, (key, what) in cases:
        (here / "other.json").write_text(json.dumps({**results[name], key: "0"}))
        answer = collide.ok(f"report out.h5 --{option} other.json --force")
        assert f"other.json is of another {what}" in answer.err
        assert ("with those of --disabled-pairs" in answer.err) == (what == "scene")


DAMAGE = [
    *(("audit", "audit", change) for change in ({"checks": [{"name": "x"}]}, {"baseline": {}})),
    *(
        ("audit", "audit", {"series": {"depth": values}})
        for values in ([], [float("nan")] * FRAMES)
    ),
    ("audit", "labels", {}),
    ("labels", "audit", {}),
    ("labels", "labels", {"series": {"labelled": []}}),
    *(
        ("clearance", "pair", change)
        for change in ({"by": "frame"}, {"by": "body"}, {"listed": []}, {"items": -1.5})
    ),
    ("clearance", "pair", {"series": None}),
    *(
        ("clearance", "pair", {"series": change})
        for change in ({"least": [["nan"] * FRAMES]}, {"time": []})
    ),
]


@pytest.mark.share(3)
@pytest.mark.parametrize(("option", "name", "change"), DAMAGE)
def test_damaged_results_are_refused(results, here, collide, option, name, change):
    held = results[name]
    if isinstance(change.get("series"), dict):
        change = {"series": {**held["series"], **change["series"]}}
    (here / "bad.json").write_text(json.dumps({**held, **change}))
    assert collide.refused(f"report out.h5 --{option} bad.json").startswith("error: bad.json: ")


test_results_that_are_none = refusals(
    "report out.h5",
    ("--audit missing.json", "missing.json"),
    ("--audit out.h5", "out.h5"),
    ("--labels list.json", "list.json"),
    ("--clearance none.json", "none.json"),
    ("--audit audit.json -o audit.json --force", "audit.json", 3),
    ("out.h5 --audit audit.json -o pages/", "--audit"),
    needs="listed",
)


@pytest.fixture
def listed(results, here) -> None:
    """The results, beside JSON that is a list."""
    (here / "list.json").write_text("[]")


def test_forms_of_values(results):
    good = (
        (results["audit"], AUDIT),
        (results["labels"], LABELS),
        (1, int),
        (1, float),
        (None, (int, None)),
        ([], [str]),
    )
    for value, form in (*good, ({"a": 1, "b": 2}, {"a": int})):
        assert fits(value, form)
    for value, form in (
        (True, int),
        (True, float),
        (float("inf"), float),
        ("x", int),
        ({}, {"a": int}),
        ([1], [str]),
    ):
        assert not fits(value, form)


def test_the_progress_covers_every_pass(here):
    made_up(frames=7, worlds=3).write(here / "a.h5")
    calls = []
    for subsets in (False, True):
        told: list[tuple[int, int]] = []
        report(
            ReportRequest("a.h5", subsets=subsets),
            lambda done, total, told=told: told.append((done, total)),
        )
        assert told == sorted(told)
        assert (told[0][0] < 7, told[-1]) == (True, (7, 7))
        calls.append(len(told))
    assert calls[1] == 2 * calls[0], "four passes in place of two"


def test_worlds_are_drawn_with_the_outlier_first(tmp_path, monkeypatch):
    worlds, frames = 12, 20
    model = small_model(worlds)
    whole = made_up_block(model, frames)
    cell = np.repeat(np.arange(worlds * frames), whole.cell_counts)
    kept = np.flatnonzero((cell % worlds == 7) | (np.diff(cell, prepend=-1) > 0))
    columns = {name: values[kept] for name, values in whole.columns.items()}
    counts = np.bincount(cell[kept], minlength=worlds * frames).astype(np.int64)
    path = tmp_path / "worlds.h5"
    write_contact_set(path, model, ContactBlock(0, counts, columns))
    result = report(ReportRequest(str(path), by="world")).as_dict()
    listed = result["by_world"]["listed"]
    table = counts.reshape(frames, worlds)
    assert listed[0]["world"] == 7
    assert listed[0]["outlier"]
    assert sorted(row["world"] for row in listed) == list(range(worlds))
    for row in listed:
        assert row["series"] == table[:, row["world"]].tolist()
        assert row["contacts"] == table[:, row["world"]].sum()
        own = columns["distance"][cell[kept] % worlds == row["world"]]
        assert row["deepest"] == own.min()
    page = report_page(result)
    assert "Worlds" in page
    assert "a path stands for its shape in each of 12 worlds" in page
    selected = report(ReportRequest(str(path), by="world", worlds=(2, 7))).as_dict()
    assert {row["world"] for row in selected["by_world"]["listed"]} == {2, 7}
    for row in selected["by_world"]["listed"]:
        assert row["series"] == table[:, row["world"]].tolist()
    assert "by_world" not in report(ReportRequest(str(path))).as_dict()
    monkeypatch.setattr("collidecli.verbs.report.report.MAX_PANELS", 2)
    few = report(ReportRequest(str(path), by="world")).as_dict()
    assert (len(few["by_world"]["listed"]), few["by_world"]["left_out"]) == (2, worlds - 2)
    for one in (few, result):  # of all worlds, however few are drawn
        assert one["by_world"]["median"] == np.median(table, axis=1).tolist()
    assert "the grey line is the median of all 12 worlds" in report_page(few)
