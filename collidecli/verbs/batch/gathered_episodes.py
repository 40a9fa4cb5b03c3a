"""The episodes that have a contact set, numbered and opened in order, for every output of
`gather`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.files import is_data_set
from collidecli.importers.recordings.lerobot import episode_number
from collidecli.results.result import Progress
from collidecli.scene.contact_columns import GROUPS_BY_NAME, RIGID_CONTACTS
from collidecli.storage.contact_sets.reader import ContactSet, is_complete
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.storage.process_activity import reading
from collidecli.verbs.batch.episodes import Episode
from collidecli.verbs.batch.log import History, counts_of, dataset_hash
from collidecli.verbs.batch.plan import Plan
from collidecli.verbs.batch.store import Store
from collidecli.wording import number_parts

AGAIN = "work on it with collide batch run"
SAMPLE = 100
MOST_SAMPLES = 500
"""Of so many contact sets, one is opened with all checks, of large batches so many in all; the
others are trusted to be as `run` wrote them."""


@dataclass(frozen=True)
class DoneEpisode:
    """An episode with a contact set. index: its number in the order of job, recording and
    demonstration.

    Episodes that failed have numbers too, so that a later computation of them changes no other
    number. In a plan of one LeRobot data set, the index is that of the data set.
    """

    index: int
    episode: Episode


class Gathered:
    """The done episodes of a batch, and the number of failed ones.

    job: only its episodes, else all. slot: k and n, of these the k-th of n parts, in order.
    is_data_set: whether all are of one job and one LeRobot data set. keys_sha256: hash over the
    keys of the parts of all slots. sizes: of the contact sets [bytes], by key. Raises InputError
    for an unknown job, and where an episode has neither a contact set nor a failure.
    """

    def __init__(
        self,
        store: Store,
        plan: Plan,
        progress: Progress = None,
        job: str = "",
        slot: tuple[int, int] = (0, 1),
    ) -> None:
        self.store = store
        self._progress = progress
        self._rows: list[dict[str, Any]] = []
        self._like: ContactSet | None = None
        if job and job not in plan.requests:
            fix = f"its jobs: {', '.join(plan.requests)}"
            raise InputError(f"the batch {store.location} has no job '{job}'", "--job", fix)
        self.sizes = store.results()
        failures = store.failures()
        done = []
        chosen = (episode for episode in plan.episodes if job in ("", episode.job))
        ordered = sorted(chosen, key=lambda item: (item.job, item.motion, number_parts(item.demo)))
        self.is_data_set = len({(episode.job, episode.motion) for episode in ordered}) == 1 and all(
            is_data_set(episode.motion) and episode.demo for episode in ordered
        )
        left = [
            episode
            for episode in ordered
            if episode.key not in self.sizes and episode.key not in failures
        ]
        if left:
            what = (
                f"{len(left)} of {len(ordered)} episodes have no contact set; the first is"
                f" {left[0].label}"
            )
            raise InputError(
                what, store.location, f"compute them with collide batch run {store.location}"
            )
        for number, episode in enumerate(ordered):
            index = episode_number(episode.demo) if self.is_data_set else number
            if episode.key in self.sizes:
                done.append(DoneEpisode(index, episode))
        first, end = (len(done) * part // slot[1] for part in (slot[0], slot[0] + 1))
        self.episodes = tuple(done[first:end])
        self.keys_sha256 = dataset_hash({item.episode.key: str(item.index) for item in done})
        self.failed = len(ordered) - len(done)

    def __iter__(self) -> Iterator[tuple[DoneEpisode, ContactSet]]:
        """Every done episode with its open contact set."""
        for done in self.episodes:
            with self.open(done) as contacts:
                yield done, contacts

    @contextmanager
    def open(self, done: DoneEpisode) -> Iterator[ContactSet]:
        """The open contact set of an episode. Raises InputError for one that is damaged or was
        removed meanwhile."""
        with self._path(done) as path, self._opened(done, path) as contacts:
            yield contacts
            if not is_complete(contacts.file):
                raise InputError(
                    "the contact set is incomplete: its writer was stopped",
                    contacts.file.filename,
                    AGAIN,
                )
            self._append(done, str(contacts.file.attrs["content_sha256"]), counts_of(contacts.file))

    def _opened(self, done: DoneEpisode, path: str) -> ContactSet:
        """Checks the whole file, of the first set of a job and of one in SAMPLE; the others are
        trusted."""
        checked = self._is_checked(done)
        self._like = (
            ContactSet.open(path)
            if checked
            else ContactSet(h5py.File(path), path, True, self._like)
        )
        return self._like

    def _is_checked(self, done: DoneEpisode) -> bool:
        last = self._rows[-1]["done"].episode.job if self._rows else ""
        every = max(SAMPLE, len(self.episodes) // MOST_SAMPLES)
        return last != done.episode.job or len(self._rows) % every == 0

    def measure(self) -> None:
        """Adds all episodes to `table`, as the logs of the batch have them where these have the
        size of the file.

        Raises InputError where a log and an opened contact set differ.
        """
        logged = History(self.store.logs(), {}).results
        for done in self.episodes:
            key = done.episode.key
            event = logged.get(key, {})
            is_logged = event.get("bytes") == self.sizes[key]
            if is_logged and not self._is_checked(done):
                self._append(done, event["content_sha256"], event["counts"])
                continue
            with self.open(done):
                pass
            logged_row = {
                "done": done,
                "content_sha256": event.get("content_sha256"),
                **event.get("counts", {}),
            }
            if is_logged and self._rows[-1] != logged_row:
                what = "has another content hash, or other numbers of rows, than its log"
                raise InputError(what, self.store.result_location(key), AGAIN)

    def _append(self, done: DoneEpisode, content_sha256: str, counts: Mapping[str, int]) -> None:
        self._rows.append({"done": done, "content_sha256": content_sha256, **counts})
        if self._progress:
            self._progress(len(self._rows), len(self.episodes))

    def jobs(self) -> Iterator[tuple[str, list[DoneEpisode], str]]:
        """Name, episodes and folder of each job. Folder: the one that contains all recordings of
        the job.

        Raises InputError for a name that cannot be that of a folder, in a changed plan.
        """
        for job, of_job in groupby(self.episodes, key=lambda done: done.episode.job):
            if os.path.basename(job) != job or job in (".", "..") or "\0" in job:
                raise InputError(
                    f"the job '{job}' cannot be the name of a folder",
                    "name",
                    "give the job another name",
                )
            episodes = list(of_job)
            yield (
                job,
                episodes,
                os.path.commonpath([os.path.dirname(done.episode.motion) for done in episodes]),
            )

    def most_contacts(self, done: DoneEpisode) -> int:
        """Largest number of rigid contacts of a frame of an episode of one world."""
        with self._path(done) as path, h5py.File(path) as file:
            starts: Any = file[f"{RIGID_CONTACTS.name}/cell_start"]
            return int(np.diff(starts[:]).max(initial=0))

    @contextmanager
    def _path(self, done: DoneEpisode) -> Iterator[str]:
        """A local path of the contact set of an episode. Raises InputError as `open`."""
        try:
            with self.store.result(done.episode.key) as path, reading("contact set", path):
                yield path
        except FileNotFoundError as error:
            location = self.store.result_location(done.episode.key)
            raise InputError("was removed while it was gathered", location, AGAIN) from error

    @property
    def table(self) -> Any:
        """A table of pyarrow with a row per read contact set; a column with the rows of each group
        that any has."""
        columns: dict[str, list[Any]] = {"episode_index": [row["done"].index for row in self._rows]}
        for name in ("key", "job", "motion", "demo"):
            columns[name] = [getattr(row["done"].episode, name) for row in self._rows]
        for name in ("content_sha256", "contacts", *GROUPS_BY_NAME, "frames"):
            if name not in GROUPS_BY_NAME or any(name in row for row in self._rows):
                columns[name] = [row.get(name, 0) for row in self._rows]
        return require_pyarrow("batch gather").table(columns)
