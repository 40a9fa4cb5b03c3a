"""Differences of contact sets by pair and frame."""

import numpy as np
import pytest

from collidecli.verbs.diff.pairs import PairDiffRequest, diff_pairs
from collidecli.verbs.fidelity.fidelity import fidelity
from collidecli.verbs.fidelity.request import FidelityRequest
from tests.support.planned_engine import imported, some

EDITS = {"missing": ("missing", 1), "shallow": ("missing", 0), "not_asked": ("missing", 0)}
EDITS |= {
    "deeper": ("changed", 1),
    "turned": ("changed", 1),
    "zero": ("changed", 0),
    "long": ("changed", 0),
}


@pytest.mark.parametrize("edit", EDITS)
def test_differences_by_pair(edit: str, falling, rows, saved):
    """Each edit of one pair in one frame is counted once, as what it is; swapped sets exchange
    missing and extra."""
    chosen = np.argmin(rows["distance"])
    angle = np.radians(2.0)
    turned = {
        "turned": [0.0, np.sin(angle), np.cos(angle)],
        "long": [0.0, 2.0, 0.0],
        "zero": [0.0] * 3,
    }
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
    found = diff_pairs(PairDiffRequest(baseline, other))
    swapped = diff_pairs(PairDiffRequest(other, baseline))
    kind, number = EDITS[edit]
    totals = {name: found.counts[name] for name in ("missing", "extra", "changed")}
    assert totals == {"missing": 0, "extra": 0, "changed": 0, kind: number}
    assert swapped.counts["extra"] == totals["missing"]
    assert found.equal == (edit in ("shallow", "not_asked"))
    assert found.not_asked == swapped.not_asked == (5 if edit == "not_asked" else 0)
    assert found.normals["b"] == {
        "unusable": int(edit in ("zero", "long")),
        "zero": int(edit == "zero"),
    }
    if number:
        assert [(one["shape0"], one["shape1"], one[kind]) for one in found.pairs] == [
            ("low", "high", 1)
        ]
        assert found.pairs[0]["first"]["frame_a"] == 4
    if edit == "turned":
        assert found.angle["worst"] == pytest.approx(2.0, abs=1e-5)
        assert diff_pairs(PairDiffRequest(baseline, other, max_angle=2.1)).equal
    if edit == "not_asked":
        of_set = fidelity(
            FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[other])
        )
        assert [sum(one[name] for one in of_set.rows) for name in ("not_asked", "missed")] == [5, 0]
    if edit == "missing":
        assert diff_pairs(PairDiffRequest(baseline, other, max_missing=1)).equal
