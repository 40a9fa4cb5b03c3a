"""collide report --audit, --labels and --clearance: sections of the results of other verbs, and what is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from collidecli.storage.result_files import AUDIT, CLEARANCE, LABELS, fits
from tests.cli.conftest import FRAMES, distances


def printed(path, answer) -> dict:
    assert answer.code in (0, 1), answer.err
    path.write_text(answer.out)
    return json.loads(answer.out)


@pytest.fixture
def results(here, collide) -> tuple[dict, dict]:
    """An audit and labels of contacts.h5: one sphere that oscillates against another."""
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "-q").code == 0
    audit = printed(here / "audit.json", collide("audit", "out.h5", "--max-depth", "1mm", "--json"))
    labels = printed(here / "labels.json", collide("label", "out.h5", "-o", "l.npz", "--json", "--chart", "l.svg"))
    return audit, labels


def test_the_page_has_both(results, here, collide):
    audit, labels = results
    answer = collide("report", "out.h5", "--audit", "audit.json", "--labels", "labels.json", "--json")
    record = json.loads(answer.out)
    assert (answer.code, record["audit"], record["labels"], record["warnings"]) == (0, audit, labels, [])
    text = (here / "out.html").read_text()
    over = int((-distances().astype(np.float32) > np.float32(1e-3)).sum())
    assert re.search(r'class="verdict different"><strong>Audit failed: 1 finding, 1 pair penetrates', text)
    assert f"Usable frames: {FRAMES - over} of {FRAMES}" in text
    assert f"above its limit in {over} frames" in text
    for name in ("audit", "labels"):
        assert f'id="{name}-title"' in text
        assert f'id="{name}-wide-' in text
    assert "<title>frame 0: " in text  # of the chart of depth
    assert "1 mm" in text
    assert "touching</title>" in text


@pytest.mark.parametrize("by", ["pair", "body", "all"])
def test_the_page_has_the_clearance(by, here, collide):
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "-q").code == 0
    found = printed(here / "near.json", collide("clearance", "scene.xml", "-t", "motion.h5", "--by", by, "--json"))
    assert fits(found, CLEARANCE)
    answer = collide("report", "out.h5", "--clearance", "near.json", "--json")
    record = json.loads(answer.out)
    assert (answer.code, record["clearance"], record["warnings"]) == (0, found, [])
    text = (here / "out.html").read_text()
    nearest = found["listed"][0]
    assert found["series"]["least"][0] == pytest.approx(distances().tolist(), abs=1e-9)
    assert nearest["least_distance"] == min(found["series"]["least"][0])
    assert 'id="clearance-title"' in text
    assert 'id="clearance-wide-' in text
    assert ("body" in nearest) == (by == "body")
    assert (">body<" in text) == (by == "body")
    other = json.dumps({**found, "trajectory_sha256": "0"})
    (here / "other.json").write_text(other)
    answer = collide("report", "out.h5", "--clearance", "other.json", "--force")
    assert (answer.code, "other.json is of another recording" in answer.err) == (0, True)


def test_a_damaged_clearance_is_refused(here, collide):
    assert collide("run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "-q").code == 0
    found = printed(here / "near.json", collide("clearance", "scene.xml", "-t", "motion.h5", "--json"))
    series = found["series"]
    cases = [{"by": "frame"}, {"by": "body"}, {"listed": []}, {"series": None}, {"items": -1.5}]
    cases += [{"series": {**series, "least": [["nan"] * FRAMES]}}, {"series": {**series, "time": []}}]
    for case in cases:
        (here / "bad.json").write_text(json.dumps({**found, **case}))
        answer = collide("report", "out.h5", "--clearance", "bad.json")
        assert (answer.code, answer.err.startswith("error: bad.json: ")) == (2, True), (case, answer.err)
    found = printed(here / "near.json", collide("clearance", "scene.xml", "-t", "motion.h5", "--first", "0", "--json"))
    assert "series" not in found
    assert collide("report", "out.h5", "--clearance", "near.json").code == 2


def test_series_of_labels(results, here):
    """The fraction of the labelled frames in each bin; one world and bins of one frame."""
    labels = results[1]
    with np.load(here / "l.npz") as held:
        (sensor, partner) = (held[name].tolist() for name in ("sensors", "partners"))
        one = labels["listed"][0]
        touch = held["touch"][:, 0, sensor.index(one["sensor"]), partner.index(one["partner"])]
    assert labels["series"]["frames_per_bin"] == 1
    assert labels["series"]["labelled"][0] == touch.astype(float).tolist()
    assert labels["chart"] == "l.svg"
    assert (here / "l.svg").read_text().startswith("<?xml")


def test_results_of_another_motion_have_a_warning(results, here, collide):
    for name in ("audit", "labels"):
        text = (here / f"{name}.json").read_text()
        (here / "other.json").write_text(re.sub(r'"scene_sha256": "[^"]*"', '"scene_sha256": "0"', text))
        answer = collide("report", "out.h5", f"--{name}", "other.json", "--force")
        assert (answer.code, "other.json is of another scene" in answer.err) == (0, True)


def test_damaged_results_are_refused(results, here, collide):
    audit, labels = results
    cases = [("audit", {**audit, "checks": [{"name": "x"}]}), ("audit", {**audit, "baseline": {}})]
    cases += [("audit", {**audit, "series": {**audit["series"], "depth": []}}), ("audit", labels)]
    cases += [("audit", {**audit, "series": {**audit["series"], "depth": [float("nan")] * FRAMES}})]
    cases += [("labels", {**labels, "series": {**labels["series"], "labelled": []}}), ("labels", audit), ("labels", [])]
    for name, value in cases:
        (here / "bad.json").write_text(json.dumps(value))
        answer = collide("report", "out.h5", f"--{name}", "bad.json")
        assert (answer.code, answer.err.startswith("error: bad.json: ")) == (2, True), answer.err
        assert not (here / "out.html").exists()
    for words in (["missing.json"], ["out.h5"]):
        assert collide("report", "out.h5", "--audit", *words).code == 2
    assert collide("report", "out.h5", "--audit", "audit.json", "-o", "audit.json", "--force").code == 3
    assert collide("report", "out.h5", "out.h5", "--audit", "audit.json", "-o", "pages/").code == 2
    assert collide("label", "out.h5", "-o", "x.npz", "--chart", "x.svg", "--first", "0").code == 2
    assert collide("label", "out.h5", "-o", "x.npz", "--chart", "x.txt").code == 2


def test_forms_of_values(results):
    audit, labels = results
    assert fits(audit, AUDIT)
    assert fits(labels, LABELS)
    for value, form in ((1, int), (1, float), (None, (int, None)), ([], [str]), ({"a": 1, "b": 2}, {"a": int})):
        assert fits(value, form)
    for value, form in ((True, int), (True, float), (float("inf"), float), ("x", int), ({}, {"a": int}), ([1], [str])):
        assert not fits(value, form)
