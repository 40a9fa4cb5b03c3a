"""Names and labels that stay distinct when they are shortened."""

from __future__ import annotations

import pytest

from collidecli.report.tables import pair_labels, short_names, shortened


def pairs(*names: tuple[str, str]) -> list[dict[str, str]]:
    return [{"shape0": one, "shape1": other} for one, other in names]


def test_a_common_end_is_left_out():
    paths = ["/r/left_arm/collision/mesh", "/r/right_arm/collision/mesh", "/r/base/collision/mesh"]
    assert short_names(paths) == ["left_arm", "right_arm", "base"]
    assert short_names([*paths, "/floor"]) == [
        "left_arm/collision/mesh",
        "right_arm/collision/mesh",
        "base/collision/mesh",
        "floor",
    ]
    assert short_names(["/a/x", "/a/x"]) == ["a/x #0", "a/x #1"]


@pytest.mark.parametrize("most", [18, 26, 44])
def test_labels_are_distinct(most):
    names = [
        ("/World/robot/left_shoulder_pitch_link_with_a_long_name/collision", "/World/ground/plane"),
        ("/World/robot/right_shoulder_pitch_link_with_a_long_name/collision", "/World/ground/plane"),
        ("/World/robot/right_shoulder_pitch_link_with_a_longer_name/collision", "/World/ground/plane"),
        ("/World/robot/right_shoulder_pitch_link_with_a_long_name/visual", "/World/ground/plane"),
    ]
    labels = pair_labels(pairs(*names), most)
    assert len(set(labels)) == 4, labels
    assert all(len(label) <= most for label in labels)


def test_labels_of_names_that_differ_in_their_middle_alone():
    names = [(f"{'a' * 40}{n}{'b' * 40}", "floor") for n in range(12)]
    labels = pair_labels(pairs(*names), 26)
    assert len(set(labels)) == 12, labels
    assert all(len(label) <= 26 for label in labels)


def test_the_middle_is_left_out():
    assert shortened("left_shoulder_collision", 12) == "left…llision"
    assert shortened("short", 12) == "short"
