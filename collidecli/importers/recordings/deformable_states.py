"""Positions of the nodes of deformable objects in Isaac Lab's recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import held_rows
from collidecli.importers.recordings.coordinates import RECORDED_FROM
from collidecli.scene.model import Model
from collidecli.scene.particles import EVERY_TEMPLATE
from collidecli.storage.pose_checks import check_positions
from collidecli.wording import some_names

DEFORMABLE = "deformable_object"
NODES = "nodal_position"


class DeformableStates:
    """Positions of a model's particles from the deformable objects of demonstrations, each of which
    is a world.

    An object that a demonstration does not have rests. Positions are relative to the world's
    origin.
    """

    def __init__(
        self, demos: Sequence[Sequence[Any]], model: Model, origins: np.ndarray, path: str
    ) -> None:
        """demos: groups of states of each demonstration, in the order of time. origins: float64[W,
        3] [m].

        Raises InputError for an object that the scene does not have, or with another number of
        particles.
        """
        self._model = model
        self._origins = origins
        self._path = path
        self._worlds = [self._parts(groups, world) for world, groups in enumerate(demos)]
        self._rest = model.particles_moved_with_worlds(model.particles.position[None])
        recorded = {row for parts in self._worlds for row in parts}
        resting = [name for row, name in enumerate(model.particles.path) if row not in recorded]
        what = f"{path}: the recording has no positions of {some_names(resting)}, which rest"
        self.warnings = (what,) if resting else ()

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, P, 3]; frames after a demonstration's end have its last
        positions."""
        particles = self._model.particles
        out = np.empty((len(frames), len(self._worlds), len(particles), 3))
        for world, parts in enumerate(self._worlds):
            out[:, world] = self._rest[world if len(self._rest) > 1 else 0]
            for row, data in parts.items():
                vertices = slice(int(particles.first[row]), int(particles.first[row + 1]))
                recorded = held_rows(data, frames, self._path)
                check_positions(
                    recorded[:, None],
                    frames,
                    f"{self._path}: {data[-1].name} (demonstration {world})",
                )
                out[:, world, vertices] = recorded + self._origins[world]
        return out

    def _parts(self, groups: Sequence[Any], world: int) -> dict[int, list[Any]]:
        """Datasets of each recorded object of a world, by the object's row in the scene."""
        template = int(self._model.world_template[min(world, self._model.world_count - 1)])
        parts_of: dict[int, list[Any]] = {}
        for group in groups:
            objects: Any = group.get(DEFORMABLE)
            if not isinstance(objects, h5py.Group):
                continue
            for name, item in objects.items():
                where = f"{self._path}: {objects.name}/{name}"
                data = item.get(NODES) if isinstance(item, h5py.Group) else None
                if not isinstance(data, h5py.Dataset):
                    raise InputError(
                        f"there is no dataset {NODES}", where, "record the scene's state again"
                    )
                row = self._row_of(str(name), template, where)
                wanted = int(np.diff(self._model.particles.first)[row])
                if (
                    data.dtype.kind != "f"
                    or data.ndim != 3
                    or data.shape[2] != 3
                    or data.shape[1] != wanted
                ):
                    what = (
                        f"{NODES} is {data.dtype}{list(data.shape)}, not floats [frames,"
                        f" {wanted}, 3]"
                    )
                    raise InputError(what, where, RECORDED_FROM)
                parts_of.setdefault(row, []).append(data)
        short = [row for row, parts in parts_of.items() if len({len(groups), len(parts)}) > 1]
        if short:
            name = self._model.particles.path[short[0]]
            where = f"{self._path}: {groups[-1].name}"
            raise InputError(f"'{name}' is not in all of the recorded states", where, RECORDED_FROM)
        return parts_of

    def _row_of(self, name: str, template: int, where: str) -> int:
        """The object of a template whose path is `name` or has it as an element; else refuses
        it."""
        paths = self._model.particles.path
        fits = np.isin(self._model.particles.template, (template, EVERY_TEMPLATE))
        for wanted in (str, str.lower):
            fitting = [
                k
                for k, path in enumerate(paths)
                if fits[k] and wanted(name) in map(wanted, path.split("/"))
            ]
            if len(fitting) == 1:
                return fitting[0]
        what = f"the scene has {'no' if not fitting else 'several'} deformable objects '{name}'"
        raise InputError(what, where, f"the scene has {some_names(list(paths))}")
