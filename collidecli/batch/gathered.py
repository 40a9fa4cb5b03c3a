"""The episodes of a batch that have a contact set, numbered and opened in order, for every output of `gather`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from collidecli.batch.episodes import Episode
from collidecli.batch.events import dataset_hash
from collidecli.batch.plan import Plan
from collidecli.batch.store import Store
from collidecli.commands.result import Progress
from collidecli.errors import InputError
from collidecli.importers.recordings.lerobot import episode_number
from collidecli.importers.recordings.recording_files import is_data_set
from collidecli.scene.contact_groups import GROUPS_BY_NAME
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading

AGAIN = "work on it with collide batch run"


@dataclass(frozen=True)
class DoneEpisode:
    """An episode with a contact set. index: its number in the order of job, recording and demonstration.

    Episodes that failed have numbers too, so that a later computation of them changes no other number. In a plan of
    one LeRobot data set, the index is that of the data set.
    """

    index: int
    episode: Episode

    @property
    def label(self) -> str:
        """Recording and demonstration, or the job of a scene that moves by itself."""
        return _label(self.episode)


@dataclass(frozen=True)
class EpisodeSize:
    """Content hash, and numbers of contacts, of rows of each other group and of frames, of an episode's contact set."""

    done: DoneEpisode
    content_sha256: str
    contacts: int
    groups: dict[str, int]
    frames: int


class Gathered:
    """The done episodes of a batch. sizes: of the contact sets that were opened. failed: number of failed episodes.

    is_data_set: whether the plan is of one job and one LeRobot data set.

    Raises InputError where an episode has neither a contact set nor a failure.
    """

    def __init__(self, store: Store, plan: Plan, progress: Progress = None) -> None:
        self.store, self._progress = store, progress
        self.sizes: list[EpisodeSize] = []
        keys, failures = set(store.results()), store.failures()
        done = []
        ordered = sorted(plan.episodes, key=_order)
        self.is_data_set = len({(episode.job, episode.motion) for episode in ordered}) == 1 and all(
            is_data_set(episode.motion) and episode.demo for episode in ordered
        )
        left = [episode for episode in ordered if episode.key not in keys and episode.key not in failures]
        if left:
            what = f"{len(left)} of {len(ordered)} episodes have no contact set; the first is {_label(left[0])}"
            raise InputError(what, store.location, f"compute them with collide batch run {store.location}")
        for number, episode in enumerate(ordered):
            index = episode_number(episode.demo) if self.is_data_set else number
            if episode.key in keys:
                done.append(DoneEpisode(index, episode))
        self.episodes = tuple(done)
        self.failed = len(plan.episodes) - len(done)

    def __iter__(self) -> Iterator[tuple[DoneEpisode, ContactSet]]:
        """Every done episode with its open contact set."""
        for done in self.episodes:
            with self.open(done) as contacts:
                yield done, contacts

    @contextmanager
    def open(self, done: DoneEpisode) -> Iterator[ContactSet]:
        """The open contact set of an episode. Raises InputError for one that is damaged or was removed meanwhile."""
        location = self.store.result_location(done.episode.key)
        try:
            with self.store.result(done.episode.key) as path, reading("contact set", path):
                contacts = ContactSet.open(path)
                with contacts:
                    counts = contacts.contact_count, contacts.group_rows, frames_of(contacts)
                    self.sizes.append(EpisodeSize(done, contacts.content_sha256, *counts))
                    yield contacts
        except FileNotFoundError as error:
            raise InputError("was removed while it was gathered", location, AGAIN) from error
        if self._progress:
            self._progress(len(self.sizes), len(self.episodes))

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups of contacts beside the rigid ones that an opened contact set has, in the order of the format."""
        return tuple(name for name in GROUPS_BY_NAME if any(name in size.groups for size in self.sizes))

    @property
    def dataset_sha256(self) -> str:
        """Hash over the keys and content hashes of all opened contact sets."""
        return dataset_hash({size.done.episode.key: size.content_sha256 for size in self.sizes})


def _label(episode: Episode) -> str:
    return " ".join(filter(None, (episode.motion, episode.demo))) or episode.job


def frames_of(contacts: ContactSet) -> int:
    """Number of recorded frames: those of all demonstrations, or of the motion."""
    return int(contacts.episodes.frame_count.sum()) if contacts.episodes else contacts.frame_count


def _order(episode: Episode) -> tuple[str, str, list[tuple[int, str]]]:
    """Numbers in names of demonstrations in numeric order: demo_2 before demo_10."""
    parts = re.split(r"(\d+)", episode.demo)
    return episode.job, episode.motion, [(int(part), "") if part.isdecimal() else (-1, part) for part in parts]
