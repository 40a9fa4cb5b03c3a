"""Pairs of a model in motion that have a particle object, and their least distances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.device_model import bounding_radius
from collidecli.engine.distances.object_pairs import ObjectPairDistances, ObjectPairRows
from collidecli.engine.distances.particles import ParticleDistanceRows, ParticleDistances
from collidecli.numerics.poses import inverse_poses, moved_points
from collidecli.numerics.products import norm
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, recorded_particles
from collidecli.scene.particles import EVERY_TEMPLATE
from collidecli.scene.shape_types import ShapeType

BOUND_ROUNDING = 1e-9
"""Relative reduction of the lower bounds of distances, above their rounding."""


@dataclass(frozen=True)
class RecordedFrames:
    """A block of frames of a motion. first: number of the first. poses: float64[F, 1 or W, B, 7].
    positions: float64[F or 1, 1 or W, P, 3], of particles; None where they are not read."""

    first: int
    poses: np.ndarray
    positions: np.ndarray | None = None


def recorded_frames(motion: Motion, model: Model, frames: range, moving: bool) -> RecordedFrames:
    """The poses of frames, and with `moving` the positions of a model's particles."""
    poses = motion.read(frames)
    if not moving:
        return RecordedFrames(frames.start, poses)
    recorded = recorded_particles(motion, frames)
    resting = model.particles.position[None, None]
    positions = model.with_attached_particles(poses, resting if recorded is None else recorded)
    return RecordedFrames(frames.start, poses, positions)


def object_pairs(model: Model) -> list[np.ndarray]:
    """int32[K, 2] of each template: a shape and an object, counted behind the shapes, of which a
    particle may touch the shape; without triggers."""
    particles = model.particles
    shapes = model.shapes
    found = []
    for template in range(int(model.world_template.max(initial=0)) + 1):
        rows = model.template_shapes(template)
        rows = (
            rows[particles.touched_shapes[rows] & ~shapes.is_trigger[rows]]
            if len(particles)
            else rows[:0]
        )
        pairs = [np.zeros((0, 2), np.int32)]
        for owner in range(len(particles.path)):
            if particles.template[owner] not in (template, EVERY_TEMPLATE):
                continue
            own = slice(int(particles.first[owner]), int(particles.first[owner + 1]))
            bodies = distinct(particles.body[own][particles.active[own]])
            may = particles.class_table[particles.object_class[owner], particles.shape_class[rows]]
            # A particle does not touch the shapes of the body that it moves with.
            others = len(bodies) - np.isin(shapes.body[rows], bodies[bodies >= 0])
            touched = rows[may & (others > 0)]
            behind = np.full(len(touched), len(shapes) + owner)
            pairs.append(np.stack([touched, behind], axis=1).astype(np.int32))
        found.append(np.concatenate(pairs))
    return found


def pairs_of_two_objects(model: Model) -> list[np.ndarray]:
    """int32[K, 2] of each template: two objects with active particles that may touch each other,
    counted behind the shapes."""
    particles = model.particles
    classes = particles.object_class
    has_active = np.bincount(particles.owner[particles.active], minlength=len(particles.path)) > 0
    found = []
    for template in range(int(model.world_template.max(initial=0)) + 1):
        is_present = np.isin(particles.template, (template, EVERY_TEMPLATE)) & has_active
        present = np.flatnonzero(is_present)
        one, other = (present[k] for k in np.triu_indices(len(present), 1))
        may = particles.object_table[classes[one], classes[other]]
        pairs = np.stack([one[may], other[may]], axis=1)
        found.append((len(model.shapes) + pairs).astype(np.int32))
    return found


class ObjectDistances:
    """Least distances of pairs with a particle object in blocks of a motion's frames.

    pairs: int32[K, 2] of `object_pairs` and `pairs_of_two_objects`, those that will be measured.
    Any number of threads may share it.
    """

    def __init__(self, model: Model, device: Any, pairs: np.ndarray) -> None:
        self._model = model
        shapes = len(model.shapes)
        of_shapes = pairs[pairs[:, 0] < shapes]
        if len(of_shapes):
            self._distances = ParticleDistances(model, device, of_shapes - [0, shapes])
        self.has_two = len(of_shapes) < len(pairs)
        """Whether a pair is of two objects."""
        if self.has_two:
            self._of_two = ObjectPairDistances(model, device)

    def weight(self, pairs: np.ndarray) -> int:
        """Particles of the objects of pairs int32[K, 2], each as often as it is in a pair."""
        owner = pairs - len(self._model.shapes)
        return int(np.diff(self._model.particles.first)[owner[owner >= 0]].sum())

    def bounds(self, pairs: np.ndarray, poses: np.ndarray, recorded: RecordedFrames) -> np.ndarray:
        """float64[F, W, K]: lower bounds of the distances of pairs, less radii, without margins, by
        bounding balls [m]; a plane by itself. poses: float64[F, W, S, 7]."""
        ball, inflated = self._balls(recorded)
        bounds = np.empty((*poses.shape[:2], len(pairs)))
        has_shape = pairs[:, 0] < len(self._model.shapes)
        bounds[..., has_shape] = self._bounds_of_shapes(pairs[has_shape], poses, ball, inflated)
        one, other = pairs[~has_shape].T - len(self._model.shapes)
        radii = inflated[:, :, one] + inflated[:, :, other]
        scale = np.abs(ball[:, :, one]).max(-1) + np.abs(ball[:, :, other]).max(-1) + radii
        away = norm(ball[:, :, one] - ball[:, :, other])
        bounds[..., ~has_shape] = away - radii - BOUND_ROUNDING * scale
        return bounds

    def _bounds_of_shapes(
        self, pairs: np.ndarray, poses: np.ndarray, ball: np.ndarray, inflated: np.ndarray
    ) -> np.ndarray:
        """float64[F, W, K]: as `bounds`, of pairs of a shape and an object."""
        shapes = self._model.shapes
        shape, owner = pairs.T
        owner = owner - len(shapes)
        away = ball[:, :, owner, :3]
        radius = bounding_radius(shapes.type, shapes.size)[shape].astype(np.float64)
        distance = norm(away - poses[:, :, shape, :3]) - radius
        is_plane = shapes.type[shape] == ShapeType.PLANE
        if is_plane.any():
            to_plane = inverse_poses(poses[:, :, shape[is_plane]])
            distance[:, :, is_plane] = moved_points(to_plane, away[:, :, is_plane])[..., 2]
        scale = np.abs(away).max(-1) + np.abs(poses[:, :, shape, :3]).max(-1)
        scale = scale + np.where(is_plane, 0.0, radius) + inflated[:, :, owner]
        return distance - inflated[:, :, owner] - BOUND_ROUNDING * scale

    def _balls(self, recorded: RecordedFrames) -> tuple[np.ndarray, np.ndarray]:
        """float64[F, W, O, 3] and float64[F, W, O]: middles and radii of balls around the particles
        of each object [m]."""
        model = self._model
        particles = model.particles
        positions = self._positions(recorded)
        shape = (*positions.shape[:2], len(particles.path))
        middle = np.zeros((*shape, 3))
        radius = np.zeros(shape)
        for owner in range(len(particles.path)):
            own = np.arange(particles.first[owner], particles.first[owner + 1])
            own = own[particles.active[own]]
            if not len(own):
                continue
            points = positions[:, :, own]
            middle[:, :, owner] = 0.5 * (points.min(axis=2) + points.max(axis=2))
            away = norm(points - middle[:, :, owner, None])
            radius[:, :, owner] = (away + particles.radius[own]).max(axis=2)
        cells = (len(recorded.poses), model.world_count)
        return (
            np.broadcast_to(middle, (*cells, *middle.shape[2:])),
            np.broadcast_to(radius, (*cells, shape[2])),
        )

    def measure(
        self,
        recorded: RecordedFrames,
        poses: np.ndarray,
        frame: np.ndarray,
        world: np.ndarray,
        pairs: np.ndarray,
    ) -> ParticleDistanceRows:
        """Distances without margins of pairs of a shape and an object int32[N, 2] in cells of a
        block. poses: float64[F, W, S, 7]."""
        frames, worlds, shapes = poses.shape[:3]
        batch = PoseBatch(
            recorded.first * worlds,
            frames * worlds,
            recorded.first,
            recorded.poses,
            recorded.positions,
        )
        shape, owner = pairs.T
        placed = poses.reshape(-1, shapes, 7)
        return self._distances.measure(batch, placed, frame * worlds + world, shape, owner - shapes)

    def measure_two(
        self, recorded: RecordedFrames, frame: np.ndarray, world: np.ndarray, pairs: np.ndarray
    ) -> ObjectPairRows:
        """Distances of pairs of two objects int32[N, 2] in cells of a block."""
        positions = self._positions(recorded)
        frame = frame if len(positions) > 1 else np.zeros_like(frame)
        world = world if positions.shape[1] > 1 else np.zeros_like(world)
        cell = frame * positions.shape[1] + world
        one, other = pairs.T - len(self._model.shapes)
        placed = positions.reshape(-1, *positions.shape[2:])
        return self._of_two.measure(placed, cell, one, other)

    def _positions(self, recorded: RecordedFrames) -> np.ndarray:
        """float64[F or 1, 1 or W, P, 3]: positions of the particles in their worlds [m]."""
        positions = recorded.positions
        assert positions is not None
        if positions.shape[1] == 1:
            positions = self._model.particles_moved_with_worlds(positions)
        return np.asarray(positions, np.float64)
