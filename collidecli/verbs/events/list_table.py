"""Columns of the touches of several contact sets."""

from __future__ import annotations

from collidecli.pages.quantities import seconds_text
from collidecli.pages.several_inputs import ListTable
from collidecli.wording import count

LIST_TABLE = ListTable(
    "contact set",
    [
        ("frames", "right", lambda one: count(one["frames"]["count"])),
        ("pairs", "right", lambda one: count(one["intervals"]["pairs"])),
        ("touches", "right", lambda one: count(one["intervals"]["count"])),
        ("longest", "right", lambda one: seconds_text(one["intervals"]["longest"])),
    ],
)
