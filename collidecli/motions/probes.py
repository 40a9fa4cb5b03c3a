"""Distances of vertices and points, and crossings of rays, from the shapes of a model in motion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collidecli.analysis.cell_poses import body_poses
from collidecli.engine.distances.points import PointDistances
from collidecli.engine.distances.probes import ProbePlan
from collidecli.engine.distances.rays import RayCaster
from collidecli.engine.joint_kinematics import begin_loading_kinematics
from collidecli.engine.scheduler import processing_threads
from collidecli.errors import InputError
from collidecli.importers.probe_files import ProbeFile
from collidecli.motions.clearance import shape_poses
from collidecli.motions.frame_blocks import blocks_in_order
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.numerics.poses import moved_points
from collidecli.scene.allowed_pairs import allowed_pairs, pair_lengths
from collidecli.scene.chosen_pairs import scene_items, without_triggers
from collidecli.scene.distinct_values import distinct
from collidecli.scene.episodes import Episodes, recorded_cells
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.options import EngineOptions
from collidecli.scene.particles import Particles
from collidecli.scene.patterns import NamedItems
from collidecli.scene.records import may_share_world
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.surface_samples import surface_samples
from collidecli.wording import did_you_mean, plural

POINTS_AT_ONCE = 1 << 16
"""Points times cells of a block; a block has one frame at least."""
WORLD = -1
ABSENT = -2


@dataclass(frozen=True)
class Probes:
    """Points or rays, what each is fixed in, and the shapes that it is measured from.

    point: float64[V, 3], in the frame of `body` [m]. along: float64[V, 3], unit directions of rays,
    else None. body: int32[V], rows of bodies, -1 for the world. shape: int32[V], row of the shape
    of a vertex, -1 of a point or ray. plan, start: for the engine; start is in the plan's frames.
    frame_shape: int64[O], rows of the shapes whose frames those are; else frame_body: int64[T, O],
    rows of bodies in each template, -1 the world, -2 none.
    """

    point: np.ndarray
    along: np.ndarray | None
    body: np.ndarray
    shape: np.ndarray
    plan: ProbePlan
    start: np.ndarray
    frame_shape: np.ndarray | None = None
    frame_body: np.ndarray | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.point)


@dataclass(frozen=True)
class ProbeBlock:
    """Results of consecutive frames; F frames, W worlds, V points or rays.

    first: number of the first frame. distance: float64[F, W, V] [m], less margins for points;
    infinite where there is no shape or no crossing, NaN where a world does not have the point, and
    outside every episode. shape: int32[F, W, V], row of the nearest shape, -1 for none. normal:
    float64[F, W, V, 3], of rays outward normals in the world, NaN for none; else None.
    """

    first: int
    distance: np.ndarray
    shape: np.ndarray
    normal: np.ndarray | None


def _items(scene: LoadedScene) -> NamedItems:
    without = replace(scene.model, particles=Particles())
    return scene_items(without, scene.shape_bodies)


def _partners_of(model: Model, scene: LoadedScene, to: Sequence[str]) -> np.ndarray:
    """bool[S]: the shapes that are measured from: those of the patterns, without triggers."""
    if not to:
        return ~model.shapes.is_trigger
    return _items(scene).matching(to, "--partners") & ~model.shapes.is_trigger


def vertices_of(
    scene: LoadedScene, model: Model, of: Sequence[str], to: Sequence[str], spacing: float
) -> Probes:
    """The vertices of the shapes that match a pattern, each measured from the shapes that its shape
    may touch.

    to: patterns of these; none is all. spacing: see `surface_samples`. Raises InputError for a
    pattern without a match, for planes alone, and where no shape may be touched.
    """
    chosen = np.flatnonzero(_items(scene).matching(of, "--vertices-of") & ~model.shapes.is_trigger)
    partners = _partners_of(model, scene, to)
    is_plane = model.shapes.type[chosen] == ShapeType.PLANE
    rows = chosen[~is_plane]
    if not len(rows):
        what = "the pattern matches planes or triggers alone, which have no vertices"
        raise InputError(what, "--vertices-of", "name a body with other shapes")
    notes = (f"{plural(int(is_plane.sum()), 'plane')} without vertices left out",)
    lists = _partner_lists(model, rows, partners)
    start = np.cumsum([0, *(len(each) for each in lists)])
    if not start[-1]:
        what = "none of the shapes may touch another one" + (
            " that matches --partners" if to else ""
        )
        fix = "collide inspect SCENE --why A B says which rule forbids a pair"
        if len(model.particles):
            fix += "; particles are not measured, collide clearance measures them"
        raise InputError(what, "--vertices-of", fix)
    own = np.repeat(rows, np.diff(start))
    other = np.concatenate(lists)
    pair = np.sort(np.stack([own, other], axis=1), axis=1)
    samples = [surface_samples(model, int(row), spacing) for row in rows]
    number = np.repeat(np.arange(len(rows)), [len(each) for each in samples]).astype(np.int32)
    local = np.concatenate(samples)
    margin = pair_lengths(model, pair, "margin")
    return Probes(
        moved_points(model.shapes.pose[rows[number]], local),
        None,
        model.shapes.body[rows[number]].astype(np.int32),
        rows[number].astype(np.int32),
        ProbePlan(model, number, number, start, other, margin),
        local,
        frame_shape=rows,
        notes=notes if is_plane.any() else (),
    )


def _partner_lists(model: Model, rows: np.ndarray, partners: np.ndarray) -> list[np.ndarray]:
    """The shapes that each of some shapes may touch, of those that are partners, ascending."""
    filtered = without_triggers(model)
    templates = range(int(model.world_template.max(initial=0)) + 1)
    every = np.concatenate([allowed_pairs(filtered, template) for template in templates])
    both = np.concatenate([every, every[:, ::-1]])
    both = distinct(both[partners[both[:, 1]]], axis=0)
    return [both[both[:, 0] == row, 1] for row in rows]


def probes_of_file(
    scene: LoadedScene, model: Model, file: ProbeFile, option: str, to: Sequence[str]
) -> Probes:
    """The points or rays of a file, each measured from all shapes but those of its own body.

    to: patterns of the shapes; none is all. Raises InputError for a body that the scene does not
    have, and where no shape is left.
    """
    partners = _partners_of(model, scene, to)
    paths = list(dict.fromkeys(file.body))
    templates = int(model.world_template.max(initial=0)) + 1
    frame_body = np.full((templates, len(paths)), WORLD, np.int64)
    lists = []
    for column, path in enumerate(paths):
        others = partners
        if path:
            bodies = _body_rows(model, path, option)
            frame_body[:, column] = ABSENT
            for row in bodies:
                owner = model.bodies.template[row]
                frame_body[slice(None) if owner == GLOBAL_TEMPLATE else owner, column] = row
            others = partners & ~np.isin(model.shapes.body, bodies)
        lists.append(np.flatnonzero(others))
        if not len(lists[-1]):
            of_what = f" beside those of body '{path}'" if path else ""
            what = f"there is no shape to measure from{of_what}"
            raise InputError(what, option, "collide inspect lists the shapes")
    frame = np.array([paths.index(path) for path in file.body], np.int32)
    start = np.cumsum([0, *map(len, lists)])
    row = np.concatenate(lists)
    margin = np.zeros(len(row)) if file.along is not None else model.shapes.margin[row]
    first_body = np.where(frame_body == ABSENT, WORLD, frame_body).max(axis=0)
    plan = ProbePlan(model, frame, frame, start, row, margin)
    return Probes(
        file.point,
        file.along,
        first_body[frame].astype(np.int32),
        np.full(len(frame), -1, np.int32),
        plan,
        file.point,
        frame_body=frame_body,
    )


def _body_rows(model: Model, path: str, option: str) -> np.ndarray:
    rows = np.flatnonzero([each == path for each in model.bodies.path])
    if not len(rows):
        fix = did_you_mean(path, model.bodies.path, "collide inspect lists the bodies")
        raise InputError(f"'{path}' is no body of the scene that moves", option, fix)
    return rows


class ProbedMotion:
    """Points or rays of a model in motion and their results, block by block of frames.

    notes: warnings.
    """

    def __init__(
        self, engine: EngineOptions, model: Model, motion: Motion, probes: Probes, device: Any
    ) -> None:
        self.model = model
        self.motion = motion
        self.probes = probes
        begin_loading_kinematics(motion)
        self._workers = processing_threads(engine.threads)
        self._caster: PointDistances | RayCaster
        if probes.along is None:
            self._caster = PointDistances(probes.plan, probes.start, device)
        else:
            self._caster = RayCaster(probes.plan, probes.start, probes.along, device)
        frames, worlds, _ = self.shape
        self._recorded = recorded_cells(self.episodes, frames, worlds)
        left_out = "distances from particles are not measured"
        self.notes = (*probes.notes, *([left_out] if len(model.particles) else []))

    @property
    def episodes(self) -> Episodes | None:
        """Of the motion in the worlds of the model."""
        return episodes_in(self.motion, self.model.world_count)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of frames, worlds and points or rays."""
        return len(self.motion.time), self.model.world_count, len(self.probes)

    def blocks(self, at_once: int = POINTS_AT_ONCE) -> Iterator[ProbeBlock]:
        """The results of all frames, in order. at_once: points times cells of a block."""
        _, worlds, count = self.shape
        size = max(1, at_once // max(1, worlds * count))
        yield from blocks_in_order(self.motion, size, self._workers, lambda: self._block)

    def _block(self, first: int, poses: np.ndarray) -> ProbeBlock:
        worlds = self.model.world_count
        frames = len(poses)
        placed = shape_poses(self.model, poses)
        owners = self._frame_poses(poses, placed)
        owners[~self._recorded[first : first + frames]] = np.nan
        template = np.tile(self.model.world_template, frames)
        cells = frames * worlds
        found = self._caster.measure(
            placed.reshape(cells, -1, 7), owners.reshape(cells, -1, 7), template
        )
        shape = (frames, worlds, len(self.probes))
        distance = found[0].reshape(shape).copy()
        has_frame = np.logical_and.reduce(np.isfinite(owners), axis=3)
        distance[~has_frame[:, :, self.probes.plan.frame]] = np.nan
        nearest = found[1].reshape(shape)
        normal = None
        if len(found) > 2:
            normal = found[2].reshape(*shape, 3).copy()
            normal[nearest < 0] = np.nan
        return ProbeBlock(first, distance, nearest, normal)

    def _frame_poses(self, poses: np.ndarray, placed: np.ndarray) -> np.ndarray:
        """float64[F, W, O, 7]: poses of the plan's frames; NaN where a world lacks one."""
        model = self.model
        template = model.world_template
        if self.probes.frame_shape is not None:
            rows = self.probes.frame_shape
            owners = placed[:, :, rows]
            owner = model.shapes.template[rows]
            is_there = np.asarray(may_share_world(owner[None, :], template[:, None]))
            owners[:, ~is_there] = np.nan
            return owners
        assert self.probes.frame_body is not None
        body = self.probes.frame_body[template]
        shape = (len(poses), *body.shape)
        frame, world, _ = (axis.reshape(-1) for axis in np.indices(shape))
        rows = np.broadcast_to(body, shape).reshape(-1)
        owners = body_poses(model, poses, frame, world, np.maximum(rows, WORLD))
        if model.world_shift is not None:
            fixed = rows == WORLD
            owners[fixed] = model.world_shift[world[fixed]]
        owners[rows == ABSENT] = np.nan
        return owners.reshape(*shape, 7)
