"""The verb `label`: which bodies touch in each frame of each world of a contact set, as dense arrays or a table."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from collidecli.analysis.contact_summary import time_bins
from collidecli.commands.contact_labels import ContactLabels, LabelBlock, LabelOptions
from collidecli.commands.output_paths import HDF5_ENDINGS, check_ending, check_output
from collidecli.commands.result import Progress, Result
from collidecli.exporters.arrays import Array, episode_arrays, held, texts, write_npz
from collidecli.storage.array_files import LABELS, write_arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import TableColumn, parquet_table, require_pyarrow
from collidecli.storage.process_activity import reading

MAX_BINS = 160
LABEL_ENDINGS = (".parquet", ".npz", *HDF5_ENDINGS)
DENSE = {"touch": ("bool", ""), "distance": ("float32", "m"), "slip": ("float32", "m/s")}
"""Types and units of the dense arrays; the slip only on request."""


@dataclass(frozen=True)
class LabelRequest:
    """A contact set, options and the output. first: number of listed pairs; 0 lists none."""

    path: str
    output: str
    options: LabelOptions = field(default_factory=LabelOptions)
    first: int = 20
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class LabelResult(Result):
    """Labels of a contact set. shape: frames, worlds, sensors, partners. recorded: cells with a frame of the recording.

    labelled: labels that are true; runs: of consecutive ones. pairs: number of labelled pairs of sensor and partner.
    listed: the first of them, with most labels first. series: of bins of frames, and `labelled` of each listed pair:
    the fraction of the recorded cells of the bin that have the label. chart: path of the picture.
    """

    SCHEMA: ClassVar[str] = "collide.label/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("chart",)

    file: str
    scene: str
    scene_sha256: str
    trajectory_sha256: str
    options: dict[str, Any]
    shape: dict[str, int]
    sensors: list[str]
    partners: list[str]
    recorded: int
    contacts: int
    labelled: int
    runs: int
    pairs: int
    listed: list[dict[str, Any]]
    series: dict[str, Any]
    warnings: list[str]
    output: str
    bytes: int
    chart: str | None = None


@dataclass(frozen=True)
class Labels:
    """Labels of contacts as arrays; F frames, W worlds, S sensors, P partners.

    touch: bool[F, W, S, P]. distance: float32[F, W, S, P], least distance of the contacts [m], negative is penetration,
    infinite without a contact in the set. slip: float32[F, W, S, P] [m/s], greatest of the contacts, NaN without one;
    None without slip=True. sensors, partners: paths. frame, step: int64[F], numbers in the set and of the recorder.
    time: float64[F] [s]. world: int64[W]. recorded: bool[F, W], false after the end of a demonstration.
    """

    touch: np.ndarray
    distance: np.ndarray
    slip: np.ndarray | None
    sensors: tuple[str, ...]
    partners: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray
    world: np.ndarray
    recorded: np.ndarray

    def __repr__(self) -> str:
        frames, worlds, sensors, partners = self.touch.shape
        return f"<Labels frames={frames} worlds={worlds} sensors={sensors} partners={partners}>"


def label(request: LabelRequest, progress: Progress = None) -> LabelResult:
    """Labels a contact set and writes the output.

    Raises InputError for a file that is not a contact set and options that do not fit it, OutputError; then there is
    no output.
    """
    check_ending(request.output, LABEL_ENDINGS, "a file of labels")
    check_output(request.output, request.force, (request.path,))
    if request.output.lower().endswith(".parquet"):
        require_pyarrow("Parquet")
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts:
        labels = ContactLabels(contacts, request.options, progress)
        tally = _Tally(labels)
        with AtomicOutput(request.output, request.force) as output:
            _WRITERS[os.path.splitext(request.output)[1].lower()](output, contacts, labels, tally, request.options)
            output.commit()
        return _result(request, contacts, labels, tally)


def labels_in_memory(contacts: ContactSet, options: LabelOptions) -> Labels:
    """The labels of a contact set as arrays. Raises InputError for options that do not fit it."""
    labels = ContactLabels(contacts, options)
    for note in labels.notes:
        warnings.warn(note, stacklevel=3)
    blocks = list(labels.blocks())
    empty = np.zeros((0, *labels.shape[1:]))

    def whole(name: str) -> np.ndarray:
        kind = np.dtype(DENSE[name][0])
        return np.concatenate([empty.astype(kind), *(getattr(block, name) for block in blocks)])

    number = labels.frames.number
    return Labels(
        whole("touch"), whole("distance"), whole("slip") if labels.has_slip else None, tuple(labels.sensors),
        tuple(labels.partners), number, contacts.step[number], labels.frames.time, labels.worlds, labels.recorded,
    )  # fmt: skip


class _Tally:
    """Sums over the blocks that are written: labels, and of each pair the cells, the least distance and the slip."""

    def __init__(self, labels: ContactLabels) -> None:
        self._labels = labels
        shape = labels.shape[2:]
        self.cells, self.slipping = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        self.distance, self.slip = np.full(shape, np.inf, np.float32), np.zeros(shape)

    def blocks(self) -> Iterator[LabelBlock]:
        """The blocks of the labels, each counted once it is taken."""
        for block in self._labels.blocks():
            self.cells += block.touch.sum(axis=(0, 1))
            least = np.where(block.touch, block.distance, np.inf).min(axis=(0, 1), initial=np.inf)
            self.distance = np.minimum(self.distance, least.astype(np.float32))
            if block.slip is not None:
                known = ~np.isnan(block.slip)
                self.slipping += known.sum(axis=(0, 1))
                self.slip += np.where(known, block.slip, 0.0).sum(axis=(0, 1), dtype=np.float64)
            yield block


def _small_arrays(contacts: ContactSet, labels: ContactLabels) -> tuple[Array, ...]:
    number = labels.frames.number
    return (
        held("frame_index", number.astype(np.int64)),
        held("step", contacts.step[number]),
        held("time", labels.frames.time),
        held("world", labels.worlds),
        held("recorded", labels.recorded),
        *episode_arrays(labels.frames.episodes and labels.frames.episodes.of_worlds(labels.worlds)),
    )


def _dense(labels: ContactLabels) -> dict[str, tuple[np.dtype, str]]:
    names = [name for name in DENSE if name != "slip" or labels.has_slip]
    return {name: (np.dtype(DENSE[name][0]), DENSE[name][1]) for name in names}


def _write_npz(
    output: AtomicOutput, contacts: ContactSet, labels: ContactLabels, tally: _Tally, _: LabelOptions
) -> None:
    def pieces(name: str) -> Callable[[], Iterator[np.ndarray]]:
        return lambda: (getattr(block, name) for block in (tally if name == "touch" else labels).blocks())

    dense = [Array(name, dtype, labels.shape, pieces(name)) for name, (dtype, _) in _dense(labels).items()]
    names = (texts("sensors", labels.sensors), texts("partners", labels.partners))
    write_npz(output, (*dense, *names, *_small_arrays(contacts, labels)))


def _write_h5(
    output: AtomicOutput, contacts: ContactSet, labels: ContactLabels, tally: _Tally, options: LabelOptions
) -> None:
    small = (*_small_arrays(contacts, labels), texts("sensors", labels.sensors), texts("partners", labels.partners))
    dense = _dense(labels)
    blocks = ((block.first, {name: getattr(block, name) for name in dense}) for block in tally.blocks())
    about = {"scene": contacts.scene, "contacts_sha256": contacts.content_sha256, "options": _options(options)}
    units = {"time": "s", **{name: unit for name, (_, unit) in dense.items() if unit}}
    shapes = {name: (dtype, labels.shape) for name, (dtype, _) in dense.items()}
    tables = {array.name: next(array.pieces()) for array in small}
    write_arrays_h5(output, LABELS, about, tables, units, shapes, blocks)


def _write_parquet(
    output: AtomicOutput, contacts: ContactSet, labels: ContactLabels, tally: _Tally, _: LabelOptions
) -> None:
    dense, episodes, whole = _dense(labels), labels.frames.episodes, np.dtype(np.int64)
    columns = (
        TableColumn("frame", whole),
        TableColumn("step", whole),
        TableColumn("time", np.dtype(np.float64), "s"),
        TableColumn("world", whole),
        *([] if episodes is None else [TableColumn("episode", whole, words=("", *episodes.name))]),
        TableColumn("sensor", np.dtype(np.int32), words=tuple(labels.sensors)),
        TableColumn("partner", np.dtype(np.int32), words=tuple(labels.partners)),
        *(TableColumn(name, dtype, unit, nan_is_none=name == "slip") for name, (dtype, unit) in dense.items()),
    )
    differ = np.array(labels.sensors, object)[:, None] != np.array(labels.partners, object)[None]
    about = {"scene": contacts.scene, "content_sha256": contacts.content_sha256}
    with parquet_table(output, columns, about) as append:
        for block in tally.blocks():
            rows = labels.recorded[block.first : block.first + len(block.touch), :, None, None] & differ
            frame, world, sensor, partner = np.nonzero(rows)
            index = frame + block.first
            number = labels.frames.number[index]
            held_in = {} if episodes is None else {"episode": episodes.row(labels.worlds[world], index) + 1}
            append(
                {
                    "frame": number, "step": contacts.step[number], "time": labels.frames.time[index],
                    "world": labels.worlds[world], **held_in, "sensor": sensor, "partner": partner,
                    **{name: getattr(block, name)[rows] for name in dense},
                }
            )  # fmt: skip


_WRITERS = {".npz": _write_npz, ".parquet": _write_parquet, **dict.fromkeys(HDF5_ENDINGS, _write_h5)}


def _options(options: LabelOptions) -> dict[str, Any]:
    rule = options.rule
    return {
        "sensors": list(options.sensors), "partners": list(options.partners), "by": options.by, "enter": rule.enter,
        "leave": rule.leave, "min_frames": rule.min_frames, "slip": options.slip, "frames": options.frames,
    }  # fmt: skip


def _series(contacts: ContactSet, labels: ContactLabels, listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The series of `LabelResult`."""
    number = labels.frames.number
    bin_of = time_bins(len(number), MAX_BINS)
    first = np.flatnonzero(np.diff(bin_of, prepend=-1))
    cells = np.bincount(bin_of, labels.recorded.sum(axis=1), len(first)) if len(number) else np.zeros(0)
    key, frame = labels.runs.cells()
    low, high = labels.keys.items(key)
    labelled = []
    for one in listed:
        rows = sorted(labels.keys.paths.index(one[name]) for name in ("sensor", "partner"))
        held = bin_of[frame[(low == rows[0]) & (high == rows[1])]]
        labelled.append((np.bincount(held, minlength=len(first)) / np.maximum(cells, 1)).tolist())
    return {
        "frames_per_bin": int(np.count_nonzero(bin_of == 0)) or 1, "frame": number[first].tolist(),
        "time": labels.frames.time[first].tolist(), "labelled": labelled,
    }  # fmt: skip


def _result(request: LabelRequest, contacts: ContactSet, labels: ContactLabels, tally: _Tally) -> LabelResult:
    listed = _listed(labels, tally, request.first)
    return LabelResult(
        file=contacts.path,
        scene=contacts.scene,
        scene_sha256=contacts.scene_sha256,
        trajectory_sha256=contacts.trajectory_sha256,
        options=_options(request.options),
        shape=dict(zip(("frames", "worlds", "sensors", "partners"), labels.shape, strict=True)),
        sensors=labels.sensors,
        partners=labels.partners,
        recorded=int(labels.recorded.sum()),
        contacts=labels.contact_count,
        labelled=int(tally.cells.sum()),
        runs=len(labels.runs),
        pairs=int((tally.cells > 0).sum()),
        listed=listed,
        series=_series(contacts, labels, listed),
        warnings=labels.notes,
        output=os.fspath(request.output),
        bytes=os.path.getsize(request.output),
    )


def _listed(labels: ContactLabels, tally: _Tally, first: int) -> list[dict[str, Any]]:
    """The pairs with most labels. share: fraction of the recorded cells. slip: mean of the cells that have one."""
    sensor, partner = np.nonzero(tally.cells)
    order: Sequence[int] = np.lexsort((partner, sensor, -tally.cells[sensor, partner])).tolist()
    total = max(1, int(labels.recorded.sum()))
    found = []
    for row in order[:first]:
        at = sensor[row], partner[row]
        slipping = int(tally.slipping[at])
        found.append(
            {
                "sensor": labels.sensors[at[0]],
                "partner": labels.partners[at[1]],
                "cells": int(tally.cells[at]),
                "share": float(tally.cells[at] / total),
                "least_distance": float(tally.distance[at]),
                **({"mean_slip": float(tally.slip[at] / slipping) if slipping else None} if labels.has_slip else {}),
            }
        )
    return found
