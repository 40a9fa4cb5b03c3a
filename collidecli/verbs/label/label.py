"""The verb `label`: which bodies touch in each frame of each world, as dense arrays or a table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.results.outputs import check_ending, check_output
from collidecli.results.result import Progress, Result
from collidecli.scene.motion import check_seconds
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.header import TIME
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import require_pyarrow
from collidecli.storage.process_activity import reading
from collidecli.verbs.label.contact_labels import ContactLabels, LabelOptions, options_dict
from collidecli.verbs.label.files import ENDINGS, check_wide, write_labels
from collidecli.verbs.label.tally import LabelTally


@dataclass(frozen=True)
class LabelRequest:
    """A contact set, options and the output, "" for no file. first: number of listed pairs; 0 lists
    none. wide: a table with a row for each frame and world; columns: its arrays, () is all."""

    path: str
    output: str
    options: LabelOptions = field(default_factory=LabelOptions)
    first: int = 20
    force: bool = False
    wide: bool = False
    columns: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class LabelResult(Result, schema="collide.label/1", optional=("chart", "bytes")):
    """Labels of a contact set. shape: frames, worlds, sensors, partners. recorded: cells with a
    frame of the recording.

    output: None without a file. bytes: of the output, None for a part of one. labelled: labels that
    are true; runs: of consecutive ones. pairs: number of labelled pairs of sensor and
    partner. listed: the first of them, with most labels first. series: of bins of frames, and
    `labelled` of each listed pair: the fraction of the recorded cells of the bin that have the
    label. chart: path of the picture.
    """

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
    output: str | None
    bytes: int | None
    chart: str | None = None


def label(request: LabelRequest, progress: Progress = None) -> LabelResult:
    """Labels a contact set and writes the output, if there is one.

    Raises InputError for a file that is not a contact set and options that do not fit it,
    OutputError; then there is no output.
    """
    check_wide(request.wide, request.output)
    if request.output:
        check_ending(request.output, ENDINGS, "a file of labels")
        check_output(request.output, request.force, (request.path,))
        if request.output.lower().endswith(".parquet"):
            require_pyarrow("Parquet")
    with reading("contact set", request.path), ContactSet.open(request.path) as contacts:
        check_seconds(contacts.time_unit, f"{request.path}: {TIME}")
        tally = LabelTally(ContactLabels(contacts, request.options), progress)
        if not request.output:
            for _ in tally.blocks():
                pass
            return label_result(request, tally)
        with AtomicOutput(request.output, request.force) as output:
            write_labels(output, request.output, tally, request.columns if request.wide else None)
            output.commit()
        return label_result(request, tally)


def label_result(request: LabelRequest, tally: LabelTally, whole: bool = True) -> LabelResult:
    """The result of `label` from the sums over its written blocks.

    whole: the output is of this set alone, so that it has a size.
    """
    labels = tally.labels
    contacts = tally.labels.contacts
    listed = _listed(tally, request.first)
    labelled = []
    for row in listed:
        at = labels.sensors.index(row["sensor"]), labels.partners.index(row["partner"])
        cells = np.add.reduceat(labels.cells(*at), tally.bins.start)
        labelled.append((tally.labelled(*at) / np.maximum(cells, 1)).tolist())
    return LabelResult(
        file=contacts.path,
        scene=contacts.scene,
        scene_sha256=contacts.scene_sha256,
        trajectory_sha256=contacts.trajectory_sha256,
        options=options_dict(request.options),
        shape=axis_sizes(labels.shape),
        sensors=labels.sensors,
        partners=labels.partners,
        recorded=int(labels.recorded.sum()),
        contacts=labels.contact_count,
        labelled=int(tally.cells.sum()),
        runs=labels.run_count,
        pairs=int((tally.cells > 0).sum()),
        listed=listed,
        series={**tally.bins.axis(labels.frames.time, labels.frames.number), "labelled": labelled},
        warnings=labels.notes,
        output=os.fspath(request.output) if request.output else None,
        bytes=os.path.getsize(request.output) if whole and request.output else None,
    )


def _listed(tally: LabelTally, first: int) -> list[dict[str, Any]]:
    """The pairs with most labels. share: part of recorded cells that have the pair. least_distance:
    None where no distance is known. slip: mean of those with one. greatest_force: nominal [N],
    None where no force is known."""
    labels = tally.labels
    (sensor, partner) = np.nonzero(tally.cells)
    order: Sequence[int] = np.lexsort((partner, sensor, -tally.cells[sensor, partner])).tolist()
    rows = []
    for row in order[:first]:
        at = sensor[row], partner[row]
        slipping = int(tally.slipping[at])
        force = tally.force[at]
        rows.append(
            {
                "sensor": labels.sensors[at[0]],
                "partner": labels.partners[at[1]],
                "cells": int(tally.cells[at]),
                "share": float(tally.cells[at] / labels.cells(*at).sum()),
                "least_distance": float(tally.distance[at])
                if np.isfinite(tally.distance[at])
                else None,
                **(
                    {"mean_slip": float(tally.slip[at] / slipping) if slipping else None}
                    if labels.options.slip
                    else {}
                ),
                **(
                    {"greatest_force": None if np.isnan(force) else float(force)}
                    if labels.options.nominal_stiffness is not None
                    else {}
                ),
            }
        )
    return rows


def axis_sizes(shape: tuple[int, ...]) -> dict[str, int]:
    """Sizes of the axes of labels by name."""
    return dict(zip(("frames", "worlds", "sensors", "partners"), shape, strict=True))
