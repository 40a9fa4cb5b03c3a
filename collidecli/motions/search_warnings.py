"""Warnings of searches that ended at their limit."""

from __future__ import annotations

from collections.abc import Sequence

from collidecli.motions.timing import TimingReport


def search_warnings(timing: TimingReport, paths: Sequence[str]) -> tuple[str, ...]:
    """Warnings if some depths are only upper bounds, or if surfaces were not found. paths: of the
    shapes."""
    count = timing.inexact_count
    inexact = (
        (f"{count} pairs hit the limit of the depth search; their depth is an upper bound",)
        if count
        else ()
    )
    return (*inexact, *timing.missed_surfaces(paths))
