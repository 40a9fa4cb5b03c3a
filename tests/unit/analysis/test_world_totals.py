"""Totals of worlds against sums over the rows, outliers, and differences of templates."""

import numpy as np
import pytest

from collidecli.analysis.differing_touches import DifferingTouches
from collidecli.analysis.template_differences import column_differences, template_rows
from collidecli.analysis.world_totals import WorldTotals
from collidecli.pages.world_tables import SCENE_TEMPLATE_COLUMNS, TEMPLATE_COLUMNS, outlier_text
from collidecli.scene.contact_blocks import ContactBlock


def of_one_template(worlds):
    return DifferingTouches(np.zeros(worlds, int), 6)


def block_of(cell, shape0, shape1, distance, cells, first=0):
    columns = {
        "shape0": np.array(shape0, np.int32),
        "shape1": np.array(shape1, np.int32),
        "distance": np.array(distance, np.float32),
    }
    return ContactBlock(first, np.bincount(cell, minlength=cells).astype(np.int64), columns)


@pytest.mark.parametrize("seed", range(6))
def test_totals_are_those_of_the_rows(seed):
    rng = np.random.default_rng(seed)
    worlds, frames = 4, 6
    rows = []
    for cell in range(worlds * frames):
        for pair in sorted(rng.choice(9, rng.integers(0, 4), replace=False).tolist()):
            for _ in range(rng.integers(1, 4)):
                distance = float(np.float32(rng.integers(-3, 3) * 0.01))
                rows.append((cell, pair // 3, 3 + pair % 3, distance))
    totals = WorldTotals(of_one_template(worlds), np.arange(frames) // 2)
    split = 3 * worlds + 1
    for low, high in ((0, split), (split, worlds * frames)):
        part = [row for row in rows if low <= row[0] < high]
        cell, shape0, shape1, distance = zip(*part, strict=True)
        totals.add(block_of(np.array(cell) - low, shape0, shape1, distance, high - low, low))
    for world in range(worlds):
        own = [row for row in rows if row[0] % worlds == world]
        assert totals.contacts[world] == len(own)
        touching = {row[:3] for row in own if row[3] <= 0.0}
        assert totals.touches[world] == len(touching)
        least = min(row[3] for row in own)
        assert totals.deepest[world] == least
        assert totals.frame[world] == min(r[0] // worlds for r in own if r[3] == least)
        for number in range(3):
            of_bin = [row for row in own if row[0] // worlds // 2 == number]
            assert totals.series[number, world] == len(of_bin)


def test_an_outlier_names_its_quantity_and_the_median():
    totals = WorldTotals(of_one_template(12))
    totals.contacts[:] = [10, 11, 9, 10, 10, 11, 9, 10, 40, 10, 10, 9]
    totals.deepest[:] = -1e-3
    totals.deepest[3] = -9e-3
    first, second, *rest = totals.rows(np.zeros(12, int), ())
    assert (first["world"], first["score_of"], first["median"]) == (3, "depth", 1e-3)
    assert (second["world"], second["score_of"], second["median"]) == (8, "contacts", 10.0)
    assert outlier_text(first) == "over 100 deviations in depth, median 1 mm"
    assert outlier_text(second) == f"{second['score']:.1f} deviations in contacts, median 10"
    assert not any(row["outlier"] for row in rest)
    few = WorldTotals(of_one_template(3)).rows(np.zeros(3, int), ())
    assert {(row["score"], row["score_of"], row["median"]) for row in few} == {(0.0, None, None)}


def test_outlier_is_first_and_equal_worlds_are_none():
    totals = WorldTotals(of_one_template(12))
    totals.contacts[:] = [10, 11, 9, 10, 10, 11, 9, 10, 40, 10, 10, 9]
    rows = totals.rows(np.zeros(12, int), ())
    assert rows[0]["world"] == 8
    assert [row["outlier"] for row in rows] == [True] + [False] * 11
    totals.contacts[:] = 10
    rows = totals.rows(np.zeros(12, int), ())
    assert not any(row["outlier"] for row in rows)
    assert [row["world"] for row in rows] == list(range(12))


def test_triggers_have_no_depth():
    totals = WorldTotals(of_one_template(1), trigger=np.array([False, True, False]))
    totals.add(block_of([0, 0], [0, 0], [1, 2], [-0.5, -0.1], 1))
    assert totals.deepest[0] == np.float32(-0.1)
    assert totals.contacts[0] == 2


@pytest.mark.parametrize(
    ("columns", "of_scene"), [(TEMPLATE_COLUMNS, False), (SCENE_TEMPLATE_COLUMNS, True)]
)
def test_templates_of_equal_shapes_say_what_is_not_known(columns, of_scene):
    """A scene has the sizes of its shapes, which a contact set lacks."""
    text = columns[-1][2]({"reference": 0, "differences": []})
    assert ("sizes" in text) != of_scene
    assert ("joints" in text) == of_scene


def test_templates_name_the_attribute_that_differs():
    paths = ["floor", "a", "b", "a", "b", "a"]
    template = np.array([-1, 0, 0, 1, 1, 2])
    columns = {
        "friction": [1.0, 0.5, 0.5, 0.9, 0.5, 0.5],
        "solref": [[np.nan], [np.nan], [1.0], [np.nan], [1.0], [np.nan]],
    }
    rows = template_rows(
        paths,
        template,
        np.array([1, 0, 0, 2]),
        lambda first, second: column_differences(columns, first, second),
    )
    assert [row["worlds"] for row in rows] == [2, 1, 1]
    assert [row["world"] for row in rows] == [1, 0, 3]
    assert [row["reference"] for row in rows] == [None, 0, 0]
    example = {"path": "a", "a": 0.5, "b": 0.9}
    assert rows[1]["differences"] == [{"what": "friction", "shapes": 1, "examples": [example]}]
    assert [group["what"] for group in rows[2]["differences"]] == ["missing shape"]
