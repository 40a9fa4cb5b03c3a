"""The mask of usable frames of an audit, with the depths of every frame, as NPZ, HDF5 or CSV."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from collidecli.exporters.arrays import held, texts, write_npz
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import AUDIT_FORMAT, arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import TableColumn, cell_columns, csv_table

if TYPE_CHECKING:
    from collidecli.verbs.audit.audit import Audit

MASK_ENDINGS = (".npz", *HDF5_ENDINGS, ".csv")
UNITS = {"time": "s", "depth": "m", "self_depth": "m", "ground_depth": "m"}


def write_mask(path: str, audit: Audit, force: bool) -> None:
    """Writes the arrays of an audit. Raises OutputError; then there is no file."""
    with AtomicOutput(path, force) as output:
        ending = os.path.splitext(path)[1].lower()
        if ending == ".csv":
            words = ("", *audit.shape_path)
            (frame, world) = np.nonzero(audit.recorded)
            columns = (
                *cell_columns(None),
                TableColumn("usable", np.dtype(bool)),
                *(
                    TableColumn(name, np.dtype(np.float32), "m")
                    for name in ("depth", "self_depth", "ground_depth")
                ),
                *(
                    TableColumn(name, np.dtype(np.int32), words=words)
                    for name in ("shape0", "shape1")
                ),
            )
            rows = {name: getattr(audit, name)[frame] for name in ("frame", "step", "time")} | {
                "world": world
            }
            dense = [name for name in OF_CELLS if name not in ("recorded", "deepest")]
            rows |= {name: getattr(audit, name)[frame, world] for name in dense}
            rows["shape0"], rows["shape1"] = audit.deepest[frame, world].T + 1
            with csv_table(output, columns) as append:
                if len(frame):
                    append(rows)
        elif ending == ".npz":
            arrays = [held(name, values) for name, values in _arrays(audit).items()]
            write_npz(output, (*arrays, texts("shape_path", audit.shape_path)))
        else:
            about = {"scene": audit.result.scene, "limits": audit.result.limits}
            tables = _arrays(audit) | {"shape_path": np.array(audit.shape_path, object)}
            with arrays_h5(output, AUDIT_FORMAT, about, tables, UNITS):
                pass
        output.commit()


OF_CELLS = ("usable", "recorded", "depth", "self_depth", "ground_depth", "deepest")


def _arrays(audit: Audit) -> dict[str, np.ndarray]:
    arrays = {name: getattr(audit, name) for name in OF_CELLS}
    return arrays | {
        "frame_index": audit.frame.astype(np.int64),
        "step": audit.step,
        "time": audit.time,
    }
