"""Contact sets of a batch merged to fewer, larger ones, in which every episode is a world of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby

import numpy as np

from collidecli.batch.gather_robomimic import folder_name
from collidecli.batch.gathered import DoneEpisode, Gathered
from collidecli.commands.merge import MergePlan, merge_episodes
from collidecli.errors import InputError
from collidecli.scene.episodes import Episodes
from collidecli.storage.contact_sets.merged_writer import check_groups
from collidecli.storage.contact_sets.reader import ContactSet

SHARD_BYTES = 64 << 20
"""Least size of the contact sets that are merged to one, except the last ones of a job."""
MOST_SETS = 256
"""Number of contact sets that are open at a time: systems limit open files to 1024."""


def write_merged_shards(folder: str, gathered: Gathered) -> None:
    """Writes `<job>/shard-00000.h5` and further contact sets, each of episodes of one job.

    Raises InputError for episodes of a job whose scenes, options or times differ.
    """
    for job, of_job in groupby(gathered.episodes, key=lambda done: done.episode.job):
        os.makedirs(os.path.join(folder, folder_name(job)), exist_ok=True)
        held = list(of_job)
        below = os.path.commonpath([os.path.dirname(done.episode.motion) for done in held])
        for number, shard in enumerate(_shards(gathered, held)):
            names = [_name(done, below) for done in shard]
            with ExitStack() as stack:
                sets = [stack.enter_context(gathered.open(done)) for done in shard]
                for one in sets:
                    check_groups(one)
                output = os.path.join(folder, job, f"shard-{number:05d}.h5")
                plan = _plan(sets, shard)
                merge_episodes(sets, plan, _episodes(sets, names, plan), output)


def _shards(gathered: Gathered, episodes: Sequence[DoneEpisode]) -> Iterator[list[DoneEpisode]]:
    shard: list[DoneEpisode] = []
    size = 0
    for done in episodes:
        with gathered.store.result(done.episode.key) as path:
            size += os.path.getsize(path)
        shard.append(done)
        if size >= SHARD_BYTES or len(shard) == MOST_SETS:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def _name(done: DoneEpisode, below: str) -> str:
    """Path of the recording below the folder of all, without extension, and the demonstration; else the job."""
    motion = os.path.splitext(os.path.relpath(done.episode.motion, below))[0] if done.episode.motion else ""
    return "/".join(filter(None, (motion, done.episode.demo))) or done.episode.job


def _plan(sets: Sequence[ContactSet], shard: Sequence[DoneEpisode]) -> MergePlan:
    """Worlds in the order of the sets; frames from each set's first. Raises InputError for other times or steps."""
    longest = max(sets, key=lambda one: one.frame_count)
    for one, done in zip(sets, shard, strict=True):
        for name in ("step", "time"):
            ours, theirs = getattr(one, name), getattr(longest, name)[: one.frame_count]
            if not np.array_equal(ours, theirs):
                frame = int(np.argmax(ours != theirs))
                what = f"frame {frame} has {name} {ours[frame]:g}, and another episode has {theirs[frame]:g}"
                fix = "one contact set has one time for each frame: use --to parquet, or run with --fps"
                raise InputError(what, done.label, fix)
    counts = [one.world_count for one in sets]
    first = tuple(int(world) for world in np.cumsum([0, *counts[:-1]]))
    frames = tuple(np.arange(one.frame_count) for one in sets)
    return MergePlan(frames, first, sum(counts), longest.step, longest.time)


def _episodes(sets: Sequence[ContactSet], names: Sequence[str], plan: MergePlan) -> Episodes:
    """Each set as one episode, or one per world if it has several, with `#` and the merged world after the name."""
    found: list[tuple[str, int, int]] = []
    for one, name, first in zip(sets, names, plan.first_world, strict=True):
        worlds = range(first, first + one.world_count)
        found += [(name if len(worlds) == 1 else f"{name}#{world}", world, one.frame_count) for world in worlds]
    taken = [name for name, _, _ in found]
    unique = [name if taken.count(name) == 1 else f"{name}#{world}" for name, world, _ in found]
    frames = np.array([count for _, _, count in found], np.int64)
    world = np.array([world for _, world, _ in found], np.int32)
    return Episodes(tuple(unique), world, np.zeros(len(found), np.int64), frames)
