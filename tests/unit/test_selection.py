"""Every test is in one of the three sets, and every campaign in one part."""

import pytest

from tests.support.selection import GOLDEN_RATIO, OnePart, mark_of_share, part, part_of


@pytest.mark.parametrize(("quick", "all"), [(1, 1), (3, 1), (6, 2), (4, 4)])
def test_shares_are_as_large_as_they_say(quick, all):
    marks = [mark_of_share(k * GOLDEN_RATIO % 1.0, quick, all) for k in range(1200)]
    assert abs(marks.count(None) - 1200 / quick) <= 3
    assert abs(marks.count("slow") - (1200 - 1200 / all)) <= 3


@pytest.mark.parametrize(("quick", "all"), [(1, 1), (3, 1), (6, 2), (4, 4)])
def test_the_first_case_of_a_share_is_quick(quick, all):
    marks = [mark_of_share(k * GOLDEN_RATIO % 1.0, quick, all) for k in range(1200)]
    assert marks[0] is None


def test_every_case_is_in_make_test_where_nothing_is_left_out():
    assert {mark_of_share(k / 10, 1) for k in range(10)} == {None}


def test_parts_have_every_test_once():
    names = [f"tests/test_a.py::test_b[{k}]" for k in range(1200)]
    counts = [sum(part_of(name, 12) == k for name in names) for k in range(12)]
    assert sum(counts) == 1200


def test_parts_are_alike():
    names = [f"tests/test_a.py::test_b[{k}]" for k in range(1200)]
    counts = [sum(part_of(name, 12) == k for name in names) for k in range(12)]
    assert min(counts) > 70
    assert max(counts) < 130


def test_one_part_deselects_the_others(request):
    items = list(request.session.items)
    deselected = []

    class Config:
        class hook:  # noqa: N801
            @staticmethod
            def pytest_deselected(items):
                deselected.extend(items)

    left = list(items)
    OnePart(0, 2).pytest_collection_modifyitems(Config, left)
    assert sorted(map(id, [*left, *deselected])) == sorted(map(id, items))
    assert all(part_of(item.nodeid, 2) == 0 for item in left)


def test_a_part_is_a_number_below_the_count():
    assert part("11/12") == (11, 12)
    for text in ("12/12", "-1/12", "3", "a/12"):
        with pytest.raises(ValueError, match=r"K is from|invalid literal"):
            part(text)
