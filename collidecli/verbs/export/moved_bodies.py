"""Bodies that a recording moves, as prims of a USD layer over the scene."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.environment_names import environment_root, local_path
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.storage.contact_sets.selected import SelectedContacts
from collidecli.storage.process_activity import reading
from collidecli.verbs.export.articulation import export_sources
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.exporters.usd_bodies import MovedBodies
    from collidecli.importers.usd.scene import UsdImport
    from collidecli.motions.sources import Sources
    from collidecli.verbs.export.request import ExportRequest


MOTION = "motion of "
"""How what is left out of the motion begins."""


@dataclass(frozen=True)
class BodyPrims:
    """The prims of the bodies of some worlds, each once. path: of the prims. row: int[n], of the
    model's bodies. world: int[n], the first of the worlds in which the prim is that body.

    shared: rows of the bodies whose prim is that of several of the worlds.
    """

    path: tuple[str, ...]
    row: np.ndarray
    world: np.ndarray
    shared: frozenset[int]

    @classmethod
    def of_worlds(cls, model: Model, worlds: Sequence[int], rows: Sequence[int]) -> BodyPrims:
        """The prims of the given bodies in each world that has them.

        A body of an environment has a prim in each environment of its template; any other has one.
        """
        roots = frozenset(model.world_path) - {""}
        found: dict[str, tuple[int, int]] = {}
        shared = set()
        for world in worlds:
            for row in rows:
                template = int(model.bodies.template[row])
                if template not in (GLOBAL_TEMPLATE, int(model.world_template[world])):
                    continue
                path = _path_in(model.bodies.path[row], model.world_path[world], roots)
                if found.setdefault(path, (row, world)) != (row, world):
                    shared.add(row)
        numbers = np.array(list(found.values()), int).reshape(-1, 2)
        return cls(tuple(found), numbers[:, 0], numbers[:, 1], frozenset(shared))


def _path_in(path: str, root: str, roots: frozenset[str]) -> str:
    """Path of a body of a template in the environment at `root`; its own if it is in none."""
    if not root or not environment_root(path, roots):
        return path
    local = local_path(path, roots)
    return root if local == "." else f"{root}/{local}"


def moved_bodies(
    request: ExportRequest, selected: SelectedContacts
) -> tuple[MovedBodies | None, tuple[str, ...]]:
    """The bodies that the run's recording moves, and what is left out.

    They move in the selected worlds that are environments, else in the first selected world. None
    for a run without a recording: the scene moves by itself. Raises InputError for another
    recording.
    """
    from collidecli.exporters.usd_bodies import MovedBodies
    from collidecli.importers.usd.scene import UsdImport

    contacts = selected.contacts
    if not contacts.trajectory_sha256:
        if request.trajectory:
            raise InputError(
                "the run had no recording: the scene moves by itself", contacts.path, "remove -t"
            )
        return None, ()
    sources = export_sources(request, contacts)
    if sources.scene is None or sources.motion is None:
        return None, (f"{MOTION}the bodies: give the recording of the run with -t",)
    (imported,) = sources.scene.imports
    assert isinstance(imported, UsdImport)
    model = sources.scene.model
    paths = model.bodies.path
    rows = [row for row, path in enumerate(paths) if imported.is_in_file(path)]
    prims = BodyPrims.of_worlds(model, selected.worlds.tolist(), rows)
    resting = _resting_prims(model, imported, prims, rows)
    left_out = _left_out(prims, selected, sources.motion.world_count)
    if resting:
        left_out += (f"{MOTION}the bodies in worlds that are not selected: they rest",)
    if len(rows) < len(paths):
        left_out = (
            f"{MOTION}{plural(len(paths) - len(rows), 'body', 'bodies')} in instances",
            *left_out,
        )
    scale = np.array([imported.rest[paths[row]].scale for row in prims.row]).reshape(-1, 3)
    read = _reader(sources, selected, prims)
    return MovedBodies(prims.path, scale, read, sources.close, resting), left_out


def _reader(sources: Sources, selected: SelectedContacts, prims: BodyPrims):
    """A function that returns the poses of the prims, float64[n, 7], in a selected frame."""
    assert sources.scene is not None
    motion = sources.motion
    model = sources.scene.model
    assert motion is not None

    def read(frame: int) -> np.ndarray:
        at = int(sources.frame_of[selected.frames[frame]])
        with reading("motion"):
            poses = motion.read(range(at, at + 1))[0]
        if len(poses) == 1:  # recorded in the first world of each template
            poses = model.moved_with_worlds(poses)
        return poses[prims.world if len(poses) > 1 else 0, prims.row]

    return read


def _resting_prims(
    model: Model, imported: UsdImport, prims: BodyPrims, rows: Sequence[int]
) -> dict[str, Sequence[str]]:
    """The operations of each body's prim in worlds that are not selected, by path.

    Such a prim may inherit from that of a selected environment, and would move with it.
    """
    every = BodyPrims.of_worlds(model, range(model.world_count), rows)
    row_of = dict(zip(every.path, every.row.tolist(), strict=True))
    orders = {}
    for path in row_of.keys() - set(prims.path):
        prim = imported.stage.GetPrimAtPath(model.bodies.path[row_of[path]])
        order = prim.GetAttribute("xformOpOrder")
        orders[path] = tuple((order.Get() if order else None) or ())
    return dict(sorted(orders.items()))


def _left_out(
    prims: BodyPrims, selected: SelectedContacts, recorded_worlds: int
) -> tuple[str, ...]:
    """What the layer lacks of the motion of bodies with one prim in several selected worlds."""
    if not prims.shared or recorded_worlds < 2:
        return ()
    every = len(prims.shared) == len(set(prims.row.tolist()))
    which = (
        "the bodies"
        if every
        else f"{plural(len(prims.shared), 'body', 'bodies')} of several worlds,"
    )
    return (f"{MOTION}{which} in other worlds than {int(selected.worlds[0])}",)
