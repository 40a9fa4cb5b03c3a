"""The episodes of merged contact sets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes, episodes_of_worlds
from collidecli.storage.contact_sets.reader import ContactSet

SAME_EPISODES = "make the sets again, of one recording and with the same demonstrations"


def merged_episodes(
    sets: Sequence[ContactSet],
    frame_of: Sequence[np.ndarray],
    first_world: Sequence[int],
    worlds: bool,
) -> Episodes | None:
    """The episodes of the merged set; None if no set has any.

    frame_of: for each set, intp[its frames], merged frames. first_world: merged number of each
    set's first world. worlds: the sets have disjoint worlds; names that several sets have are
    followed by `#` and the merged world. Otherwise they have disjoint frames, and an episode
    consists of its frames in all of them. Raises InputError for sets of which only some have
    episodes, and for episodes that differ or have a gap.
    """
    tables = [contacts.episodes for contacts in sets]
    lacking = next((contacts for contacts in sets if contacts.episodes is None), None)
    having = next((contacts for contacts in sets if contacts.episodes is not None), None)
    if having is None:
        return None
    if lacking is not None:
        what = f"has no table of demonstrations, and {having.path} has one"
        raise InputError(
            what,
            lacking.path,
            "merge sets of recordings that consist of demonstrations by themselves",
        )
    known = [contacts for contacts in tables if contacts is not None]
    return episodes_of_worlds(known, first_world) if worlds else _of_frames(sets, known, frame_of)


def _of_frames(
    sets: Sequence[ContactSet], tables: Sequence[Episodes], frame_of: Sequence[np.ndarray]
) -> Episodes:
    first = tables[0]
    for episodes, contacts in zip(tables[1:], sets[1:], strict=True):
        if episodes.name != first.name or not np.array_equal(episodes.world, first.world):
            raise InputError(
                f"differs from {sets[0].path} in the models: /episode", contacts.path, SAME_EPISODES
            )
    begin = np.zeros(len(first), np.int64)
    count = np.zeros(len(first), np.int64)
    for row, name in enumerate(first.name):
        both = zip(tables, frame_of, strict=True)
        parts = [
            frames[int(episodes.first_frame[row]) : int(episodes.end_frame[row])]
            for episodes, frames in both
        ]
        frames = np.sort(np.concatenate(parts))
        if len(frames) and frames[-1] - frames[0] + 1 != len(frames):
            files = ", ".join(episodes.path for episodes in sets)
            raise InputError(
                f"the frames of demonstration '{name}' have a gap", files, SAME_EPISODES
            )
        begin[row] = frames[0] if len(frames) else 0
        count[row] = len(frames)
    return Episodes(first.name, first.world, begin, count)
