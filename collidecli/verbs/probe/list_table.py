"""Columns of the least distances of points or rays of several recordings."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.several_inputs import WRITTEN, ListTable, counted


def _least(result: ResultDict) -> str:
    return length(result["listed"][0]["least_distance"]) if result["listed"] else ""


def _shape(result: ResultDict) -> str:
    return result["listed"][0]["shape"] if result["listed"] else ""


LIST_TABLE = ListTable(
    "recording",
    [
        *counted("frames", "points"),
        ("least", "right", _least),
        ("nearest shape", "left", _shape),
        WRITTEN,
    ],
)
