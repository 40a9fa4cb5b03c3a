"""What charts plot: the values, their labels, and the units of their axes, read from matplotlib's
figures."""

from typing import Any

import numpy as np
import pytest

from collidecli.pages.canvas import LEAST_OPACITY, PAGE, THEMES, Canvas, drawing
from collidecli.pages.quantities import plain
from collidecli.verbs.report import selectable
from collidecli.verbs.report.charts.kinds import KINDS
from collidecli.wording import count

TIMES = [0.5, 0.75, 1.0, 1.25]
SERIES = {
    "frames_per_bin": 1,
    "frame": [0, 1, 2, 3],
    "time": TIMES,
    "contacts": [1.0, 4.0, 2.0, 3.0],
    "most": [2, 5, 2, 4],
    "penetrating": [0.0, 3.0, 1.0, 2.0],
    "depth": [0.0, 0.004, 0.001, 0.002],
}
LISTED = [
    {
        "shape0": f"/World/{one}",
        "shape1": f"/World/{other}",
        "contacts_per_frame": counts,
        "depth": depths,
    }
    for one, other, counts, depths in (
        ("arm/tip", "box", [0, 4, 2, 0], [-1.0, 0.004, 0.0, -1.0]),
        ("box", "ground", [1, 0, 0, 3], [0.0, -1.0, -1.0, 0.002]),
    )
]
PAIRS = {
    "count": 7,
    "of_particles": 0,
    "listed": LISTED,
    "frames_per_bin": 1,
    "frame": [0, 1, 2, 3],
    "time": TIMES,
}
BINS = ((0.0, 1e-6, 100), (1e-5, 1e-4, 3), (1e-4, 1e-3, 0), (1e-3, 1e-2, 20000), (1.0, None, 100))
DEPTHS = [dict(zip(("from", "to", "contacts"), row, strict=True)) for row in BINS]
STAGES = {"load": 2.0, "broad_phase": 0.25, "order": 0.0, "narrow_phase": 4.0}
RESULT = {
    "contacts": 10,
    "penetrating": 6,
    "frames": 4,
    "contact_pair_cells": 9,
    "series": SERIES,
    "pairs": PAIRS,
    "depths": DEPTHS,
    "groups": None,
    "deepest": {"distance": -0.004, "frame": 1},
    "timing": {
        "stages": [{"stage": name, "seconds": seconds} for name, seconds in STAGES.items()],
        "broad_phase": "sap",
        "candidate_count": 12000,
        "touching_pair_count": 800,
        "contact_count": 1500,
    },
    "profile": None,
    "difference": None,
}


def drawn(kind: str, width: int = 920, colours: dict[str, str] = THEMES["light"], **changed) -> Any:
    with drawing():
        figure = KINDS[kind].draw({**RESULT, **changed}, Canvas(width, colours))
        figure.canvas.draw()
    return figure


def hovers(kind: str, **changed) -> list[tuple]:
    """(x, y, text) of each rectangle with a text."""
    canvas = Canvas(920, THEMES["light"])
    with drawing():
        KINDS[kind].draw({**RESULT, **changed}, canvas)
    return [(hover.x, hover.y, hover.text) for hover in canvas.hovers]


def texts(owner) -> list[str]:
    """Of axes or of a legend."""
    return [text.get_text() for text in owner.texts]


def ticks(axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def filled(axes) -> list[np.ndarray]:
    """The corners of every filled band."""
    from matplotlib.collections import PolyCollection

    return [
        np.asarray(band.get_paths()[0].vertices)
        for band in axes.collections
        if isinstance(band, PolyCollection)
    ]


def bars(axes) -> list[tuple[float, float, float]]:
    """(left, width, centre of the height) of horizontal bars."""
    return [
        (bar.get_x(), bar.get_width(), bar.get_y() + bar.get_height() / 2) for bar in axes.patches
    ]


def test_contacts_over_time():
    (axes,) = drawn("contacts").axes
    light = THEMES["light"]
    legend = texts(axes.get_legend())
    assert legend == ["contacts", "that penetrate"]
    kinds = zip(axes.lines, legend, ("contacts", "penetrating"), ("accent", "warm"), strict=True)
    for line, label, name, colour in kinds:
        assert (line.get_label(), line.get_color()) == (label, light[colour])
        np.testing.assert_array_equal(line.get_xydata(), np.transpose([TIMES, SERIES[name]]))
    assert (axes.get_xlabel(), axes.get_xlim(), axes.get_ylim()[0]) == (
        "time [s]",
        (0.5, 1.25),
        0.0,
    )
    assert axes.get_ylim()[1] >= 4.0


def test_contacts_of_bins_have_a_band_to_their_maximum():
    for bins, names in ((1, ["contacts"]), (5, ["contacts", "most"])):
        (axes,) = drawn("contacts", series={**SERIES, "frames_per_bin": bins}).axes
        points = set(map(tuple, filled(axes)[0]))
        assert len(filled(axes)) == len(names)
        assert all(points >= set(zip(TIMES, SERIES[name], strict=True)) for name in names)


@pytest.mark.parametrize("time", [[0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 1.0, 3.0], [0.0, 1.0, 1.0, 2.0]])
def test_times_that_do_not_increase_give_an_axis_of_frames(time):
    for kind in ("contacts", "depth"):
        (axes,) = drawn(kind, series={**SERIES, "time": time, "frame": [0, 5, 10, 15]}).axes
        assert (axes.get_xlabel(), axes.lines[0].get_xdata().tolist()) == ("frame", [0, 5, 10, 15])
    # One frame is in the middle.
    one = {
        name: values[:1] if isinstance(values, list) else values for name, values in SERIES.items()
    }
    (axes,) = drawn("contacts", series=one).axes
    assert (axes.get_xlabel(), axes.get_xlim()) == ("frame", (-0.5, 0.5))


UNITS = [(1, 1e3, "mm"), (1e3, 1, "m"), (1e-3, 1e6, "µm"), (1e-6, 1e9, "nm")]


@pytest.mark.parametrize(("scale", "factor", "unit"), UNITS)
def test_depth_over_time_has_the_unit_of_its_deepest(scale, factor, unit):
    depth = [value * scale for value in SERIES["depth"]]
    (axes,) = drawn("depth", series={**SERIES, "depth": depth}).axes
    (line,) = axes.lines
    np.testing.assert_allclose(
        line.get_xydata(), np.transpose([TIMES, np.array(depth) * factor]), rtol=1e-12
    )
    assert max(line.get_ydata()) == pytest.approx(4.0)
    assert (axes.get_title(loc="left"), axes.get_ylim()[0]) == (
        f"deepest penetration [{unit}]",
        0.0,
    )
    (axes,) = drawn("depth", colours=PAGE, series={**SERIES, "depth": depth}).axes
    assert axes.get_title(loc="left") == f"[{unit}]"


def scale_words(axes) -> list[str]:
    from matplotlib.offsetbox import AnchoredOffsetbox, TextArea

    (box,) = [artist for artist in axes.artists if isinstance(artist, AnchoredOffsetbox)]
    return [
        part.get_text() for part in box.get_child().get_children() if isinstance(part, TextArea)
    ]


def opacities(axes) -> np.ndarray:
    (image,) = axes.images
    return image.get_array()[..., 3]


def test_the_map_of_pairs():
    (axes,) = drawn("pairs").axes
    counts = np.array([pair["contacts_per_frame"] for pair in LISTED], float)
    expected = np.where(counts > 0, LEAST_OPACITY + (1 - LEAST_OPACITY) * counts / 4, 0.0)
    np.testing.assert_allclose(opacities(axes), expected)
    assert scale_words(axes) == ["0", "4 contacts in a frame"]
    assert (ticks(axes.yaxis), axes.get_yticks().tolist()) == (
        ["tip · box", "box · ground"],
        [0, 1],
    )
    # The last bin ends one step after its beginning.
    assert (axes.get_xlabel(), axes.get_xlim()) == ("time [s]", (0.5, 1.5))
    assert axes.images[0].get_extent() == [0.5, 1.5, 1.5, -0.5]


@pytest.mark.parametrize(
    ("scale", "words"), [(1.0, "4 mm deep"), (1e-3, "4 µm deep"), (1e3, "4 m deep")]
)
def test_the_map_of_depths(scale, words):
    listed = [
        {**pair, "depth": [d * scale if d > 0 else d for d in pair["depth"]]} for pair in LISTED
    ]
    (axes,) = drawn("pair-depths", pairs={**PAIRS, "listed": listed}).axes
    assert scale_words(axes) == ["0", words]
    least = LEAST_OPACITY
    rest = 1 - LEAST_OPACITY
    np.testing.assert_allclose(opacities(axes), [[0, 1, least, 0], [least, 0, 0, least + rest / 2]])


def test_the_histogram_of_depths():
    """The bins without a lower or an upper edge are as wide as the others, at their only edge."""
    (axes,) = drawn("depths").axes
    found = [(bar.get_x(), bar.get_height()) for bar in axes.patches]
    np.testing.assert_allclose(found, [(-7, 100), (-5, 3), (-4, 0), (-3, 20000), (0, 100)])
    assert {round(bar.get_width(), 9) for bar in axes.patches} == {0.9}
    labels = dict(zip(axes.get_xticks().tolist(), ticks(axes.xaxis), strict=True))
    assert (labels[-6], labels[-5], labels[-3], labels[0]) == ("1 µm", "10 µm", "1 mm", "1 m")
    assert "20k" in ticks(axes.yaxis)
    assert axes.get_title(loc="left") == "contacts, by depth"


def test_stages():
    during, before = drawn("stages").axes
    np.testing.assert_allclose(bars(during), [(0, 0.25, 0), (0, 4, 1)])
    np.testing.assert_allclose(bars(before), [(0, 2, 0)])
    assert (ticks(during.yaxis), ticks(before.yaxis)) == (["broad phase", "narrow phase"], ["load"])
    assert (texts(during), texts(before)) == (["250 ms", "4 s"], ["2 s"])
    titles = [axes.get_title(loc="left") for axes in (during, before)]
    assert titles == ["of the run", "before the run: scene and kernels"]
    assert [text.get_position()[1] for text in during.texts] == [0, 1]
    assert during.get_ylim() == (1.5, -0.5), "the first on top"
    assert all(
        text.get_position()[0] > end for text, end in zip(during.texts, (0.25, 4), strict=True)
    )


def test_the_broad_phase_of_a_run():
    (axes,) = drawn("phases").axes
    assert ticks(axes.yaxis) == ["sap"]
    np.testing.assert_allclose(bars(axes), [(0, 12000, -0.27), (0, 800, 0), (0, 1500, 0.27)])
    assert texts(axes) == ["12k", "800", "1500"]
    assert texts(axes.get_legend()) == ["candidates", "touching pairs", "contacts"]


def test_the_broad_phases_of_a_profile():
    ran = {"skipped": None, "touching_pairs": 50, "contacts": 60}
    phases = [
        {"name": "nxn", "skipped": "too many pairs"},
        ran | {"name": "sap", "candidates": 70, "compute_seconds": 0.5},
        ran | {"name": "explicit", "candidates": 90, "compute_seconds": 2e-3},
    ]
    counts, times = drawn("phases", profile={"phases": phases}).axes
    assert ticks(counts.yaxis) == ticks(times.yaxis) == ["sap", "explicit"]
    counted = enumerate([(70, 90), (50, 50), (60, 60)])
    expected = [(0, n, k + (j - 1) * 0.27) for j, of in counted for k, n in enumerate(of)]
    np.testing.assert_allclose(bars(counts), expected)
    np.testing.assert_allclose(bars(times), [(0, 0.5, 0), (0, 2e-3, 1)])
    assert texts(times) == ["500 ms", "2 ms"]
    assert times.get_title(loc="left") == "time of the engine"


DIFFERENCE = {
    "pairs": {
        "listed": [
            {"shape0": "a", "shape1": "b", "missing": 2, "extra": 0, "changed": 5},
            {"shape0": "b", "shape1": "c", "missing": 0, "extra": 3, "changed": 1},
        ]
    },
    "fields": [
        {
            "name": name,
            "unit": unit,
            "histogram": [dict(zip(("from", "to", "contacts"), row, strict=True)) for row in rows],
        }
        for name, unit, rows in (
            ("distance", "m", [(None, 1e-9, 3), (1e-3, 1e-2, 7)]),
            ("kind", "", []),
            ("point0", "m", [(1e-6, 1e-5, 12000)]),
        )
    ],
}


def test_differences_by_pair():
    (axes,) = drawn("differences", difference=DIFFERENCE).axes
    np.testing.assert_allclose(
        bars(axes), [(0, 2, 0), (0, 0, 1), (2, 0, 0), (0, 3, 1), (2, 5, 0), (3, 1, 1)]
    )
    assert (ticks(axes.yaxis), texts(axes)) == (["a · b", "b · c"], ["7", "4"])
    assert texts(axes.get_legend()) == ["missing", "extra", "changed"]


def test_deviations_by_field():
    (axes,) = drawn("deviations", difference=DIFFERENCE).axes
    assert ticks(axes.yaxis) == ["distance", "point0"]
    assert ticks(axes.xaxis) == ["<1e-9", "1 µm", "1 mm"]
    found = {(*text.get_position(), text.get_text()) for text in axes.texts}
    assert found == {(0, 0, "3"), (2, 0, "7"), (1, 1, "12k")}
    scaled = (0.75 - LEAST_OPACITY) * np.log1p([3, 7]) / np.log1p(12000)
    first, last = LEAST_OPACITY + scaled
    np.testing.assert_allclose(opacities(axes), [[first, 0, last], [0, 0.75, 0]])
    assert axes.get_title(loc="left") == "deviation from [m] to ten times that"
    normal = {
        "name": "normal",
        "unit": "rad",
        "histogram": [{"from": 1.0, "to": 10, "contacts": 1}],
    }
    mixed = [*DIFFERENCE["fields"], normal]
    (axes,) = drawn("deviations", difference={**DIFFERENCE, "fields": mixed}).axes
    assert ticks(axes.xaxis) == ["<1e-9", "1e-6", "1e-3", "1"]
    assert axes.get_title(loc="left") == "deviation from [m or rad] to ten times that"


@pytest.mark.parametrize("kind", KINDS)
def test_a_description_has_the_numbers_of_the_chart(kind):
    words = {
        "contacts": "Contacts in each of 4 frames: 10 in all, 5 at most.",
        "depth": "Deepest penetration over time: at most 4 mm, in frame 1.",
        **dict.fromkeys(
            ("pairs", "pair-depths"), "When 2 of 7 pairs of shapes touch, over 4 frames."
        ),
        "depths": "Histogram of the depths of 6 contacts.",
        "stages": "Seconds of each stage: load 2 s, broad_phase 250 ms, narrow_phase 4 s",
        "phases": "Candidates, touching pairs and contacts of each broad phase.",
        "differences": "Contacts missing, extra and changed, by pair of shapes.",
        "deviations": "Number of contacts by field and deviation.",
        **dict.fromkeys(
            ("areas", "forces", "pressures"), "Hydroelastic surfaces of 1 of 3 pairs over 4 frames."
        ),
        "particles": (
            "Contacts of particles in each of 4 frames: 7 soft contacts, 0 self contacts in all."
        ),
    }
    counts = {"soft_contacts": {"rows": 7}, "self_contacts": {"rows": 0}}
    result = {
        **RESULT,
        "groups": {"surfaces": {"rows": 9, "pairs": 3, "listed": [{}]}, "counts": counts},
    }
    assert KINDS[kind].words(result) == words[kind]
    assert bool(KINDS[kind].missing(result)) is (kind in ("differences", "deviations"))


def test_what_has_no_data_is_named():
    no_pairs = {**PAIRS, "count": 0, "listed": []}
    nothing = {**RESULT, "contacts": 0, "penetrating": 0, "timing": {}, "pairs": no_pairs}
    words = {
        **dict.fromkeys(("contacts", "pairs"), "it has no contacts"),
        **dict.fromkeys(("depth", "depths", "pair-depths"), "no contact penetrates"),
        **dict.fromkeys(("areas", "forces", "pressures"), "it has no hydroelastic surfaces"),
        "stages": "it has no timing of stages",
        "particles": "it has no contacts of particles",
        "phases": "it has no count of candidates",
    }
    assert {kind: KINDS[kind].missing(nothing) for kind in words} == words
    untested = {**nothing, "timing": {"candidate_count": 0}}
    assert KINDS["phases"].missing(untested) == "the run had no candidates"
    assert KINDS["phases"].missing({**nothing, "timing": {"candidate_count": 1}}) == ""
    counts = {"soft_contacts": {"rows": 3, "per_frame": [3.0]}}
    particles = {**nothing, "groups": {"surfaces": None, "counts": counts}}
    told = "it has no contacts of shapes; --kind particles draws those of particles"
    for kind in ("contacts", "depth", "depths"):
        assert KINDS[kind].missing(particles) == told
    same = {**RESULT, "difference": {"pairs": {"listed": []}, "fields": [{"histogram": []}]}}
    assert KINDS["differences"].missing(same) == "no pair differs"
    assert KINDS["deviations"].missing(same) == "no field differs"


def test_values_on_hover():
    found = hovers("contacts")
    assert [x for x, _, _ in found] == [(0.5, 0.625), (0.625, 0.875), (0.875, 1.125), (1.125, 1.25)]
    assert found[1][2] == "frame 1, 0.75 s: 4 contacts, 3 penetrate"
    expected = ["frame 1, 0.75 s: 4 mm", "frame 2, 1 s: 1 mm", "frame 3, 1.25 s: 2 mm"]
    assert [text for _, _, text in hovers("depth")][1:] == expected
    assert [(x, text) for x, _, text in hovers("pairs")] == [
        (None, "/World/arm/tip and /World/box"),
        ((0.75, 1.0), "tip · box, frame 1, 0.75 s: 4 contacts"),
        ((1.0, 1.25), "tip · box, frame 2, 1 s: 2 contacts"),
        (None, "/World/box and /World/ground"),
        ((0.5, 0.75), "box · ground, frame 0, 0.5 s: 1 contacts"),
        ((1.25, 1.5), "box · ground, frame 3, 1.25 s: 3 contacts"),
    ]
    depths = [text.split(": ")[-1] for x, _, text in hovers("pair-depths") if x]
    assert depths == ["4 mm", "within the gap", "within the gap", "2 mm"]
    assert [(x, text) for x, _, text in hovers("depths")] == [
        ((-7.0, -6.0), "below 1 µm: 100 contacts"),
        ((-5.0, -4.0), "10 µm to 100 µm: 3 contacts"),
        ((-4.0, -3.0), "100 µm to 1 mm: 0 contacts"),
        ((-3.0, -2.0), f"1 mm to 10 mm: {count(20000)} contacts"),
        ((0.0, 1.0), "over 1 m: 100 contacts"),
    ]
    assert (None, (-0.5, 0.5), "a and b: 2 missing, 0 extra, 5 changed") in hovers(
        "differences", difference=DIFFERENCE
    )
    assert ((1.5, 2.5), (-0.5, 0.5), "distance: 7 contacts") in hovers(
        "deviations", difference=DIFFERENCE
    )
    last = hovers("phases")[-1][2]
    assert last == f"sap: {count(12000)} candidates, 800 touching pairs, {count(1500)} contacts"


def test_the_last_bin_on_hover_ends_at_the_last_frame():
    binned = {**SERIES, "frames_per_bin": 3, "frame": [0, 3, 6, 9]}
    found = [text.split(",")[0] for _, _, text in hovers("contacts", series=binned, frames=11)]
    assert found == ["frames 0 to 2", "frames 3 to 5", "frames 6 to 8", "frames 9 to 10"]
    same = [{**LISTED[0], "contacts_per_frame": [2, 2, 2, 2]}]
    pairs = {**PAIRS, "frame": [0, 3, 6, 9], "frames_per_bin": 3, "listed": same}
    _, (_, _, text) = hovers("pairs", pairs=pairs, frames=10)
    assert text.startswith("tip · box, frames 0 to 9, 0.5 s")


def test_counts_have_no_exponents():
    many = {
        **SERIES,
        "contacts": [1020.4, 12345.0, 2.5, 0.25],
        "most": [1500, 20000, 4, 1],
        "time": [0, 1e4, 2e4, 3e4],
    }
    found = [text for _, _, text in hovers("contacts", series=many)]
    assert [text.split(": ")[1].split(" contacts")[0] for text in found] == [
        "1020",
        "12 345",
        "2.5",
        "0.25",
    ]
    assert not any("e+" in text for text in found)
    listed = [{**LISTED[0], "contacts_per_frame": [0, 1020, 20, 0]}]
    found = [text for _, _, text in hovers("pairs", pairs={**PAIRS, "listed": listed})]
    assert any(text.endswith("1 020 contacts") for text in found)
    shown = {plain(value, 3) for value in (1020.0, 999.4, 0.001, 123456.0)}
    assert shown == {"1 020", "999", "0.001", "123 456"}


def test_forces_of_a_selected_group_have_a_chart_of_their_own():
    groups = {"hydro_patches": {"per_frame": [1.0, 2.0], "force": [30.0, 40.0]}}
    series = {"frame": [0, 1], "time": [0.0, 0.5]}
    rows, force = selectable._group_steps(groups, "", series, 2)
    assert [run["text"] for run in force["runs"]] == ["frame 0, 0 s: 30 N", "frame 1, 0.5 s: 40 N"]
    assert force["title"].endswith("at most 40 N")
    assert rows["title"].endswith("at most 2")
