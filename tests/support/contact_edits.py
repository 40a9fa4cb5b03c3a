"""Contact sets in memory that can be edited in every way that a later run may differ, and written as files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np

from tests.support.contact_sets import made_up_block, small_model

STEP, TIME_STEP = 5, 0.01
COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1", "offset0", "offset1", "feature0", "feature1")
PAIRED = (("shape0", "shape1"), ("point0", "point1"), ("offset0", "offset1"), ("feature0", "feature1"))


@dataclass
class Edited:
    """cell: int64[n]; columns: by name. The rest is the model and the frames. Rows are sorted when it is written."""

    cell: np.ndarray
    columns: dict[str, np.ndarray]
    path: list[str]
    type: list[str]
    body: np.ndarray
    margin: np.ndarray
    gap: np.ndarray
    worlds: int
    step: np.ndarray
    time: np.ndarray
    version: tuple[int, int] = (1, 0)
    optional: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def frames(self) -> int:
        return len(self.step)

    def copy(self) -> Edited:
        columns = {name: values.copy() for name, values in self.columns.items()}
        return replace(self, cell=self.cell.copy(), columns=columns, path=list(self.path), type=list(self.type))

    def rows(self, wanted: np.ndarray) -> Edited:
        columns = {name: values[wanted] for name, values in self.columns.items()}
        return replace(self, cell=self.cell[wanted], columns=columns)

    def with_shape_order(self, order: list[int]) -> Edited:
        """Shape order[k] comes k-th; contacts whose shapes change places have 0 and 1 exchanged."""
        new = self.copy()
        place = np.argsort(order).astype(np.int32)
        new.path, new.type = [self.path[k] for k in order], [self.type[k] for k in order]
        new.body, new.margin, new.gap = self.body[order], self.margin[order], self.gap[order]
        for name in ("shape0", "shape1"):
            new.columns[name] = place[self.columns[name]]
        for row in np.flatnonzero(new.columns["shape0"] > new.columns["shape1"]):
            for one, other in PAIRED:
                new.columns[one][row], new.columns[other][row] = (
                    new.columns[other][row].copy(),
                    new.columns[one][row].copy(),
                )
            new.columns["normal"][row] *= -1.0
        return new

    def write(self, path: Path, sha: str = "", packed: int = 0) -> str:
        """Writes in canonical order; returns the path. packed: rows of a chunk, 0 packs nothing."""
        keys = [self.columns[name] for name in ("feature1", "feature0", "shape1", "shape0")]
        order = np.lexsort((*keys, self.cell))
        counts = np.bincount(self.cell, minlength=self.frames * self.worlds)
        with h5py.File(path, "w") as file:
            sources = {"scene": "s", "scene_sha256": "5" * 64, "trajectory_sha256": "", "config": '{"frames": ""}'}
            for name, value in {**sources, "creator": "a test"}.items():
                file.attrs[name] = value
            file.attrs["format"] = "collide-contacts"
            file.attrs["format_version"] = np.array(self.version, np.int32)
            file.attrs["content_sha256"] = (
                sha or hashlib.sha256(str(path).encode()).hexdigest()
            )  # no two files are equal by it
            file.attrs["complete"] = 1
            file.create_group("model").attrs.update({"gap_rule": "max", "up_axis": "Z"})
            strings = {"/model/shape/path": self.path, "/model/shape/type": self.type}
            strings["/model/body/path"] = [f"body{n}" for n in range(int(self.body.max(initial=-1)) + 1)]
            for name, values in strings.items():
                file.create_dataset(name, (len(values),), h5py.string_dtype(), data=np.array(values, object))
            file["/model/shape/body"] = self.body.astype(np.int32)
            file["/model/shape/template"] = np.where(self.body < 0, -1, 0).astype(np.int32)
            file["/model/shape/margin"] = self.margin.astype(np.float32)
            file["/model/shape/gap"] = self.gap.astype(np.float32)
            file["/model/world/template"] = np.zeros(self.worlds, np.int32)
            file["/time/step"], file["/time/time"] = self.step, self.time
            file["/rigid_contacts/cell_start"] = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            for name, values in (self.columns | self.optional).items():
                options = {"chunks": (packed, *values.shape[1:]), "maxshape": (None, *values.shape[1:])}
                options |= {"shuffle": True, "compression": "gzip", "fletcher32": True}
                held = values[order]
                file.create_dataset(f"/rigid_contacts/{name}", data=held, **(options if packed else {}))
        return str(path)


def made_up(frames: int = 6, worlds: int = 3, contacts_per_cell: int = 6, seed: int = 5) -> Edited:
    """Contacts of `small_model`, no two pairs of a cell nearer than chance has it."""
    model = small_model(worlds)
    block = made_up_block(model, frames, contacts_per_cell, seed=seed)
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    return Edited(
        cell=cell,
        columns=dict(block.columns),
        path=list(model.shapes.path),
        type=["plane", "sphere", "box", "capsule", "ellipsoid"],
        body=np.array(model.shapes.body),
        margin=np.array(model.shapes.margin),
        gap=np.array(model.shapes.gap),
        worlds=worlds,
        step=np.arange(frames, dtype=np.int64) * STEP,
        time=np.arange(frames) * TIME_STEP,
    )
