"""Contacts of a batch as HDF5 files beside robomimic's recordings: one per recording, with its
names."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.scene.contact_columns import RIGID_CONTACTS
from collidecli.storage.contact_sets.readable_rows import check_body_rows, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.files import is_url
from collidecli.verbs.batch.plan import check_one_world
from collidecli.verbs.label.named_pairs import NamedPairs

if TYPE_CHECKING:
    from collidecli.verbs.batch.gathered_episodes import DoneEpisode, Gathered

FORMAT = "collide-robomimic-contacts"


def write_robomimic(folder: str, gathered: Gathered, pairs: NamedPairs) -> None:
    """Writes `<job>/<path of the recording below the folder that has all of the job>` for each
    recording.

    Raises InputError for an episode that is no demonstration of an HDF5 file, or has several
    worlds.
    """
    for done in gathered.episodes:
        motion = done.episode.motion
        is_hdf5 = (
            motion.endswith(HDF5_ENDINGS)
            if is_url(motion)
            else os.path.isfile(motion) and h5py.is_hdf5(motion)
        )
        if not done.episode.demo or not is_hdf5:
            what = "is no demonstration of an HDF5 recording, and robomimic's files consist of them"
            raise InputError(what, done.episode.label, "use --to parquet or --to lerobot")
    for job, of_job, below in gathered.jobs():
        for motion, episodes in groupby(of_job, key=lambda done: done.episode.motion):
            path = os.path.join(folder, job, os.path.relpath(motion, below))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with h5py.File(path, "w") as file:
                _write_recording(file, list(episodes), gathered, pairs)


def _write_recording(
    file: h5py.File, episodes: Sequence[DoneEpisode], gathered: Gathered, pairs: NamedPairs
) -> None:
    first = episodes[0].episode
    file.attrs["format"] = FORMAT
    file.attrs["format_version"] = np.array((1, 0), np.int32)
    file.attrs["recording"] = first.motion
    file.attrs["recording_sha256"] = first.motion_sha256
    for done in episodes:
        with gathered.open(done) as contacts:
            check_one_world(contacts, done.episode.label, "--to robomimic")
            demo = file.create_group(f"data/{done.episode.demo}")
            demo.attrs["num_samples"] = contacts.frame_count
            demo.attrs["key"] = done.episode.key
            demo.attrs["content_sha256"] = contacts.content_sha256
            _write_contacts(demo.create_group("contacts"), contacts)
            if pairs.names:
                group = demo.create_group("pairs")
                group.attrs["names"] = pairs.names
                for name, values in pairs.labels(contacts).items():
                    group[name] = values
                group["distance"].attrs["unit"] = "m"


def _write_contacts(group: h5py.Group, contacts: ContactSet) -> None:
    """The contacts of frame f are rows contact_start[f] to contact_start[f + 1] - 1 of every other
    dataset."""
    check_body_rows(contacts)
    group["contact_start"] = contacts.cell_start()
    group.create_dataset("shape_path", data=list(contacts.shapes.path), dtype=h5py.string_dtype())
    group.attrs["kinds"] = RIGID_CONTACTS.kinds
    made = {}
    for column in contacts.columns:
        shape = (contacts.contact_count, *((column.width,) if column.width > 1 else ()))
        dtype = column.dtype_for(contacts.float_type)
        packing = (
            {"chunks": True, "compression": "gzip", "shuffle": True}
            if contacts.contact_count
            else {}
        )
        made[column.name] = group.create_dataset(column.name, shape, dtype, **packing)
        if column.unit:
            made[column.name].attrs["unit"] = column.unit
    row = 0
    for block in contacts.blocks(names=tuple(made)):
        check_shape_rows(contacts, block)
        for name, dataset in made.items():
            dataset[row : row + block.contact_count] = block.columns[name]
        row += block.contact_count
