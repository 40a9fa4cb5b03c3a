"""Columns of the least distances of several recordings."""

from __future__ import annotations

from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.several_inputs import WRITTEN, ListTable, counted
from collidecli.pages.tables import Column


def _nearest(title: str, side: str, name: str) -> Column:
    return title, side, lambda result: str(result["listed"][0][name]) if result["listed"] else ""


def _least(result: ResultDict) -> str:
    return length(result["listed"][0]["least_distance"]) if result["listed"] else ""


LIST_TABLE = ListTable(
    "recording",
    [
        *counted("frames", "pairs"),
        ("least", "right", _least),
        _nearest("shape 0", "left", "shape0"),
        _nearest("shape 1", "left", "shape1"),
        _nearest("in frame", "right", "frame"),
        WRITTEN,
    ],
)
