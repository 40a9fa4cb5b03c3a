"""Positions of the nodes of deformable objects in Isaac Lab's recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import h5_damage
from collidecli.scene.model import Model
from collidecli.scene.particles import EVERY_TEMPLATE
from collidecli.scene.text_format import some_names
from collidecli.storage.trajectories.particles import check_positions

DEFORMABLE = "deformable_object"
NODES = "nodal_position"
AGAIN = "run it with the scene that it was recorded from"


class DeformableStates:
    """Positions of a model's particles from the deformable objects of demonstrations, each of which is a world.

    An object that a demonstration does not have rests. Positions are relative to the world's origin.
    """

    def __init__(self, demos: Sequence[Sequence[Any]], model: Model, origins: np.ndarray, path: str) -> None:
        """demos: groups of states of each demonstration, in the order of time. origins: float64[W, 3] [m].

        Raises InputError for an object that the scene does not have, or with another number of particles.
        """
        self._model, self._origins, self._path = model, origins, path
        self._worlds = [self._parts(groups, world) for world, groups in enumerate(demos)]
        self._rest = model.particles_moved_with_worlds(model.particles.position[None])
        held = {row for parts in self._worlds for row in parts}
        resting = [name for row, name in enumerate(model.particles.path) if row not in held]
        self.warnings = (
            (f"{path}: the recording has no positions of {some_names(resting)}, which rest",) if resting else ()
        )

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, P, 3]; frames after a demonstration's end have its last positions."""
        particles = self._model.particles
        out = np.empty((len(frames), len(self._worlds), len(particles), 3))
        for world, parts in enumerate(self._worlds):
            out[:, world] = self._rest[world if len(self._rest) > 1 else 0]
            for row, data in parts.items():
                held = slice(int(particles.first[row]), int(particles.first[row + 1]))
                recorded = self._rows(data, frames)
                check_positions(recorded[:, None], frames, f"{self._path}: {data[-1].name} (demonstration {world})")
                out[:, world, held] = recorded + self._origins[world]
        return out

    def _rows(self, data: list[Any], frames: range) -> np.ndarray:
        starts = np.cumsum([0, *(len(part) for part in data)])
        rows = np.minimum(np.asarray(frames, np.intp), starts[-1] - 1)
        out = np.empty((len(rows), *data[0].shape[1:]))
        for start, end, part in zip(starts[:-1], starts[1:], data, strict=True):
            within = (rows >= start) & (rows < end)
            if within.any():
                held = rows[within] - start
                with h5_damage(f"{self._path}: {part.name}"):
                    out[within] = part[int(held.min()) : int(held.max()) + 1][held - held.min()]
        return out

    def _parts(self, groups: Sequence[Any], world: int) -> dict[int, list[Any]]:
        """Datasets of each recorded object of a world, by the object's row in the scene."""
        template = int(self._model.world_template[min(world, self._model.world_count - 1)])
        found: dict[int, list[Any]] = {}
        for group in groups:
            objects: Any = group.get(DEFORMABLE)
            if not isinstance(objects, h5py.Group):
                continue
            for name, held in objects.items():
                where = f"{self._path}: {objects.name}/{name}"
                data = held.get(NODES) if isinstance(held, h5py.Group) else None
                if not isinstance(data, h5py.Dataset):
                    raise InputError(f"there is no dataset {NODES}", where, "record the scene's state again")
                row = self._row_of(str(name), template, where)
                wanted = int(np.diff(self._model.particles.first)[row])
                if data.dtype.kind != "f" or data.ndim != 3 or data.shape[2] != 3 or data.shape[1] != wanted:
                    what = f"{NODES} is {data.dtype}{list(data.shape)}, not floats [frames, {wanted}, 3]"
                    raise InputError(what, where, AGAIN)
                found.setdefault(row, []).append(data)
        short = [row for row, parts in found.items() if len({len(groups), len(parts)}) > 1]
        if short:
            name = self._model.particles.path[short[0]]
            raise InputError(
                f"'{name}' is not in all of the recorded states", f"{self._path}: {groups[-1].name}", AGAIN
            )
        return found

    def _row_of(self, name: str, template: int, where: str) -> int:
        """The object of a template whose path is `name` or has it as an element; else refuses it."""
        paths = self._model.particles.path
        own = np.isin(self._model.particles.template, (template, EVERY_TEMPLATE))
        for wanted in (str, str.lower):
            fitting = [
                row for row, path in enumerate(paths) if own[row] and wanted(name) in map(wanted, path.split("/"))
            ]
            if len(fitting) == 1:
                return fitting[0]
        what = f"the scene has {'no' if not fitting else 'several'} deformable objects '{name}'"
        raise InputError(what, where, f"the scene has {some_names(list(paths))}")
