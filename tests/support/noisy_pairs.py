"""Pairs of shapes, each with copies whose vertices and positions have noise, collided in one
run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import collidecli
from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from tests.support.meshes import Mesh
from tests.support.poses import random_quaternions


@dataclass(frozen=True)
class NoisyShape:
    """A mesh, or a shape that `add` adds to a builder. two_sided: of the mesh."""

    mesh: Mesh | None = None
    two_sided: bool = True
    add: Callable[[ModelBuilder, int], object] | None = None

    def add_to(self, builder: ModelBuilder, noise: float, rng: np.random.Generator) -> None:
        """Adds the shape on a body of its own, each vertex of a mesh moved by up to the noise
        [m]."""
        body = builder.add_body()
        if self.add is not None:
            self.add(builder, body)
            return
        vertices, faces = self.mesh
        moved = vertices + noise * rng.uniform(-1.0, 1.0, vertices.shape)
        builder.add_shape_mesh(body, moved, faces, two_sided=self.two_sided)


@dataclass(frozen=True)
class NoisyPair:
    """Two shapes at poses float64[2, 7]; seed: of the noise of its copies."""

    first: NoisyShape
    second: NoisyShape
    poses: np.ndarray
    seed: tuple[int, ...]


def random_pose_pair(rng: np.random.Generator, most: float) -> np.ndarray:
    """float64[2, 7]: two poses in any orientation, up to `most` apart [m]."""
    poses = np.zeros((2, 7))
    poses[:, 3:] = random_quaternions(rng, 2)
    direction = rng.normal(size=3)
    direction /= np.sqrt((direction * direction).sum())
    poses[1, :3] = direction * rng.uniform(0.0, most)
    return poses


def contacts_of_copies(
    pairs: Sequence[NoisyPair], copies: int, noise: float, gap: float = 0.01
) -> list[list[Contacts]]:
    """The contacts of each pair as it is, and of its copies."""
    builder = ModelBuilder()
    worlds = len(pairs) * (copies + 1)
    body_q = np.zeros((1, worlds, 2 * worlds, 7))
    body_q[..., 6] = 1.0
    world = 0
    for pair in pairs:
        rng = np.random.default_rng(pair.seed)
        for copy in range(copies + 1):
            amount = noise if copy else 0.0
            builder.begin_world()
            pair.first.add_to(builder, amount, rng)
            pair.second.add_to(builder, amount, rng)
            builder.end_world()
            body_q[0, world, 2 * world : 2 * world + 2] = pair.poses
            world += 1
    contacts = collidecli.collide(builder.finalize(), body_q, gap=gap)
    cells = [contacts.cell(0, number) for number in range(worlds)]
    return [cells[k : k + copies + 1] for k in range(0, worlds, copies + 1)]


def deepest(cell: Contacts) -> tuple[float, np.ndarray]:
    """Distance and unit normal of the deepest contact; infinite and zero without one."""
    if not len(cell.distance):
        return np.inf, np.zeros(3)
    row = int(np.argmin(cell.distance))
    normal = cell.normal[row].astype(np.float64)
    return float(cell.distance[row]), normal / np.sqrt((normal * normal).sum())
