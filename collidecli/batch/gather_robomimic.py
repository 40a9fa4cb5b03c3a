"""Contacts of a batch as HDF5 files beside robomimic's recordings: one per recording, with its names and frames."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby

import h5py
import numpy as np

from collidecli.batch.gathered import DoneEpisode, Gathered
from collidecli.batch.pair_labels import NamedPair, check_one_world, pair_labels
from collidecli.errors import InputError
from collidecli.exporters.selection import KINDS
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_body_rows, check_shape_rows

FORMAT = "collide-robomimic-contacts"
TO = "--to robomimic"


def write_robomimic(folder: str, gathered: Gathered, pairs: Sequence[NamedPair]) -> None:
    """Writes `<job>/<path of the recording below the folder that has all of the job>` for each recording.

    Raises InputError for an episode that is no demonstration of an HDF5 file, or has several worlds.
    """
    for done in gathered.episodes:
        if not done.episode.demo or not h5py.is_hdf5(done.episode.motion):
            what = "is no demonstration of an HDF5 recording, and robomimic's files consist of them"
            raise InputError(what, done.label, "use --to parquet or --to lerobot")
    for job, of_job in groupby(gathered.episodes, key=lambda done: done.episode.job):
        held = list(of_job)
        below = os.path.commonpath([os.path.dirname(done.episode.motion) for done in held])
        for motion, episodes in groupby(held, key=lambda done: done.episode.motion):
            path = os.path.join(folder, folder_name(job), os.path.relpath(motion, below))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with h5py.File(path, "w") as file:
                _write_recording(file, list(episodes), gathered, pairs)


def folder_name(job: str) -> str:
    """The name of a job as that of a folder. Raises InputError for a name that cannot be one, in a changed plan."""
    if os.path.basename(job) != job or job in (".", "..") or "\0" in job:
        raise InputError(f"the job '{job}' cannot be the name of a folder", "name", "give the job another name")
    return job


def _write_recording(
    file: h5py.File, episodes: Sequence[DoneEpisode], gathered: Gathered, pairs: Sequence[NamedPair]
) -> None:
    first = episodes[0].episode
    file.attrs["format"], file.attrs["format_version"] = FORMAT, np.array((1, 0), np.int32)
    file.attrs["recording"], file.attrs["recording_sha256"] = first.motion, first.motion_sha256
    for done in episodes:
        with gathered.open(done) as contacts:
            check_one_world(contacts, done.label, TO)
            demo = file.create_group(f"data/{done.episode.demo}")
            demo.attrs["num_samples"] = contacts.frame_count
            demo.attrs["key"], demo.attrs["content_sha256"] = done.episode.key, contacts.content_sha256
            _write_contacts(demo.create_group("contacts"), contacts)
            if pairs:
                _write_pairs(demo.create_group("pairs"), contacts, pairs)


def _write_contacts(group: h5py.Group, contacts: ContactSet) -> None:
    """The contacts of frame f are rows contact_start[f] to contact_start[f + 1] - 1 of every other dataset."""
    check_body_rows(contacts)
    group["contact_start"] = contacts.cell_start()
    group.create_dataset("shape_path", data=list(contacts.shapes.path), dtype=h5py.string_dtype())
    group.attrs["kinds"] = KINDS
    made = {}
    for column in contacts.columns:
        shape = (contacts.contact_count, *((column.width,) if column.width > 1 else ()))
        dtype = column.dtype_for(contacts.float_type)
        packing = {"chunks": True, "compression": "gzip", "shuffle": True} if contacts.contact_count else {}
        made[column.name] = group.create_dataset(column.name, shape, dtype, **packing)
        if column.unit:
            made[column.name].attrs["unit"] = column.unit
    row = 0
    for block in contacts.blocks(names=tuple(made)):
        check_shape_rows(contacts, block)
        for name, dataset in made.items():
            dataset[row : row + block.contact_count] = block.columns[name]
        row += block.contact_count


def _write_pairs(group: h5py.Group, contacts: ContactSet, pairs: Sequence[NamedPair]) -> None:
    touching, distance = pair_labels(contacts, pairs)
    group.attrs["names"] = [pair.name for pair in pairs]
    group["touching"], group["distance"] = touching, distance
    group["distance"].attrs["unit"] = "m"
