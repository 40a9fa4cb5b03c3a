"""Parts of a collide diff result about contacts, and the expected cell of an edited set."""

from __future__ import annotations

from tests.support.contact_edits import Edited

COUNTS = ("missing", "extra", "changed")


def counts(result: dict) -> tuple[int, ...]:
    return tuple(result["contacts"][kind] for kind in COUNTS)


def nothing_but_contacts(result: dict) -> None:
    assert result["model"]["differences"] == 0
    frames = result["frames"]
    assert (frames["only_a"], frames["only_b"], frames["times_changed"]) == (0, 0, 0)


def where(edited: Edited, row: int) -> dict:
    frame, world = divmod(int(edited.cell[row]), edited.worlds)
    place = {"frame_a": frame, "frame_b": frame, "step": int(edited.step[frame]), "world": world}
    return place | {"time": float(edited.time[frame])}


def pair(edited: Edited, row: int) -> tuple[str, str]:
    return edited.path[edited.columns["shape0"][row]], edited.path[edited.columns["shape1"][row]]
