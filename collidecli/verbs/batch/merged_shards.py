"""Contact sets of a batch merged to fewer, larger ones, in which every episode is a world of its
own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes, episodes_of_worlds
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.stored_tables import check_groups
from collidecli.verbs.batch.gathered_episodes import DoneEpisode
from collidecli.verbs.merge.merge import MergePlan, merge_episodes

if TYPE_CHECKING:
    from collidecli.verbs.batch.gathered_episodes import Gathered

SHARD_BYTES = 64 << 20
"""Least size of the contact sets that are merged to one, except the last ones of a job."""
MOST_SETS = 256
"""Number of contact sets that are open at a time: systems limit open files to 1024."""


def write_merged_shards(folder: str, gathered: Gathered) -> None:
    """Writes `<job>/shard-00000.h5` and further contact sets, each of episodes of one job.

    Raises InputError for episodes of a job whose scenes, options or times differ.
    """
    for job, episodes, below in gathered.jobs():
        os.makedirs(os.path.join(folder, job), exist_ok=True)
        for number, shard in enumerate(_shards(gathered, episodes)):
            names = [_name(done, below) for done in shard]
            with ExitStack() as stack:
                sets = [stack.enter_context(gathered.open(done)) for done in shard]
                for contact_set in sets:
                    check_groups(contact_set)
                output = os.path.join(folder, job, f"shard-{number:05d}.h5")
                plan = _plan(sets, shard)
                merge_episodes(sets, plan, _episodes(sets, names, plan), output)


def _shards(gathered: Gathered, episodes: Sequence[DoneEpisode]) -> Iterator[list[DoneEpisode]]:
    shard = list[DoneEpisode]()
    size = 0
    for done in episodes:
        size += gathered.sizes[done.episode.key]
        shard.append(done)
        if size >= SHARD_BYTES or len(shard) == MOST_SETS:
            yield shard
            shard = []
            size = 0
    if shard:
        yield shard


def _name(done: DoneEpisode, below: str) -> str:
    """Path of the recording below the folder of all, without extension, and the demonstration; else
    the job."""
    motion = (
        os.path.splitext(os.path.relpath(done.episode.motion, below))[0]
        if done.episode.motion
        else ""
    )
    return "/".join(filter(None, (motion, done.episode.demo))) or done.episode.job


def _plan(sets: Sequence[ContactSet], shard: Sequence[DoneEpisode]) -> MergePlan:
    """Worlds in the order of the sets; frames from each set's first. Raises InputError for other
    times or steps."""
    longest = max(sets, key=lambda contact_set: contact_set.frame_count)
    for contact_set, done in zip(sets, shard, strict=True):
        for name in ("step", "time"):
            ours = getattr(contact_set, name)
            theirs = getattr(longest, name)[: contact_set.frame_count]
            if not np.array_equal(ours, theirs):
                frame = int(np.argmax(ours != theirs))
                what = (
                    f"frame {frame} has {name} {ours[frame]:g}, and another episode has"
                    f" {theirs[frame]:g}"
                )
                fix = (
                    "one contact set has one time for each frame: use --to parquet, or run with"
                    " --fps"
                )
                raise InputError(what, done.episode.label, fix)
    counts = [contact_set.world_count for contact_set in sets]
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    frames = tuple(np.arange(contact_set.frame_count) for contact_set in sets)
    return MergePlan(frames, first, sum(counts), longest.step, longest.time)


def _episodes(sets: Sequence[ContactSet], names: Sequence[str], plan: MergePlan) -> Episodes:
    """Each world of a set as an episode; names that are not unique end with `#` and the merged
    world."""
    parts = []
    for contact_set, name in zip(sets, names, strict=True):
        world = np.arange(contact_set.world_count)
        parts.append(
            Episodes((name,) * len(world), world, world * 0, world * 0 + contact_set.frame_count)
        )
    return episodes_of_worlds(parts, plan.first_world)
