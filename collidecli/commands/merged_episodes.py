"""The episodes of merged contact sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes
from collidecli.storage.contact_sets.reader import ContactSet

SAME_EPISODES = "make the sets again, of one recording and with the same demonstrations"


def merged_episodes(
    sets: Sequence[ContactSet], frame_of: Sequence[np.ndarray], first_world: Sequence[int], worlds: bool
) -> Episodes | None:
    """The episodes of the merged set; None if no set has any.

    frame_of: for each set, intp[its frames], merged frames. first_world: merged number of each set's first world.
    worlds: the sets have disjoint worlds; names that several sets have are followed by `#` and the merged world.
    Otherwise they have disjoint frames, and an episode consists of its frames in all of them.
    Raises InputError for sets of which only some have episodes, and for episodes that differ or have a gap.
    """
    held = [one.episodes for one in sets]
    lacking = next((one for one in sets if one.episodes is None), None)
    having = next((one for one in sets if one.episodes is not None), None)
    if having is None:
        return None
    if lacking is not None:
        what = f"has no table of demonstrations, and {having.path} has one"
        raise InputError(what, lacking.path, "merge sets of recordings that consist of demonstrations by themselves")
    found = [one for one in held if one is not None]
    return _of_worlds(found, first_world) if worlds else _of_frames(sets, found, frame_of)


def _of_worlds(held: Sequence[Episodes], first_world: Sequence[int]) -> Episodes:
    world = np.concatenate([one.world + first for one, first in zip(held, first_world, strict=True)])
    names = [name for one in held for name in one.name]
    if len(set(names)) < len(names):
        names = [f"{name}#{number}" for name, number in zip(names, world.tolist(), strict=True)]
    first_frame, frame_count = (
        np.concatenate([getattr(one, column) for one in held]) for column in ("first_frame", "frame_count")
    )
    return Episodes(tuple(names), world.astype(np.int32), first_frame, frame_count)


def _of_frames(sets: Sequence[ContactSet], held: Sequence[Episodes], frame_of: Sequence[np.ndarray]) -> Episodes:
    first = held[0]
    for one, contacts in zip(held[1:], sets[1:], strict=True):
        if one.name != first.name or not np.array_equal(one.world, first.world):
            raise InputError(f"differs from {sets[0].path} in the models: /episode", contacts.path, SAME_EPISODES)
    begin, count = np.zeros(len(first), np.int64), np.zeros(len(first), np.int64)
    for row, name in enumerate(first.name):
        parts = [
            frames[int(one.first_frame[row]) : int(one.end_frame[row])]
            for one, frames in zip(held, frame_of, strict=True)
        ]
        frames = np.sort(np.concatenate(parts))
        if len(frames) and frames[-1] - frames[0] + 1 != len(frames):
            files = ", ".join(one.path for one in sets)
            raise InputError(f"the frames of demonstration '{name}' have a gap", files, SAME_EPISODES)
        begin[row], count[row] = (frames[0] if len(frames) else 0), len(frames)
    return Episodes(first.name, first.world, begin, count)
