"""The mask of usable frames of an audit, with the depths of every frame, as NPZ, HDF5 or CSV."""

from __future__ import annotations

import os

import numpy as np

from collidecli.commands.audit import Audit
from collidecli.commands.output_paths import HDF5_ENDINGS, check_ending
from collidecli.exporters.arrays import held, texts, write_npz
from collidecli.storage.array_files import AUDIT, write_arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import TableColumn, csv_table

MASK_ENDINGS = (".npz", *HDF5_ENDINGS, ".csv")
UNITS = {"time": "s", "depth": "m", "self_depth": "m", "ground_depth": "m"}


def check_mask(path: str) -> None:
    """Raises InputError for a path without one of MASK_ENDINGS."""
    check_ending(path, MASK_ENDINGS, "a mask")


def write_mask(path: str, audit: Audit, force: bool) -> None:
    """Writes the arrays of an audit. Raises OutputError; then there is no file."""
    with AtomicOutput(path, force) as output:
        ending = os.path.splitext(path)[1].lower()
        if ending == ".csv":
            _write_csv(output, audit)
        elif ending == ".npz":
            arrays = [held(name, values) for name, values in _arrays(audit).items()]
            write_npz(output, (*arrays, texts("shape_path", audit.shape_path)))
        else:
            about = {"scene": audit.result.scene, "limits": audit.result.limits}
            tables = _arrays(audit) | {"shape_path": np.array(audit.shape_path, object)}
            write_arrays_h5(output, AUDIT, about, tables, UNITS)
        output.commit()


def _arrays(audit: Audit) -> dict[str, np.ndarray]:
    return {
        "usable": audit.usable, "recorded": audit.recorded, "depth": audit.depth, "self_depth": audit.self_depth,
        "ground_depth": audit.ground_depth, "deepest": audit.deepest, "frame_index": audit.frame.astype(np.int64),
        "step": audit.step, "time": audit.time,
    }  # fmt: skip


def _write_csv(output: AtomicOutput, audit: Audit) -> None:
    """A row for each recorded frame of each world."""
    whole, real, words = np.dtype(np.int64), np.dtype(np.float32), ("", *audit.shape_path)
    columns = (
        TableColumn("frame", whole),
        TableColumn("step", whole),
        TableColumn("time", np.dtype(np.float64), "s"),
        TableColumn("world", whole),
        TableColumn("usable", np.dtype(bool)),
        *(TableColumn(name, real, "m") for name in ("depth", "self_depth", "ground_depth")),
        *(TableColumn(name, np.dtype(np.int32), words=words) for name in ("shape0", "shape1")),
    )
    frame, world = np.nonzero(audit.recorded)
    at = frame, world
    with csv_table(output, columns) as append:
        if len(frame):
            append(
                {
                    "frame": audit.frame[frame], "step": audit.step[frame], "time": audit.time[frame], "world": world,
                    "usable": audit.usable[at], "depth": audit.depth[at], "self_depth": audit.self_depth[at],
                    "ground_depth": audit.ground_depth[at], "shape0": audit.deepest[at][:, 0] + 1,
                    "shape1": audit.deepest[at][:, 1] + 1,
                }
            )  # fmt: skip
