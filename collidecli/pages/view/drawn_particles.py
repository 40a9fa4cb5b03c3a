"""What a view draws of the particles of a world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.particles import LOOSE, Particles

LEAST_POINT = 0.01
"""Diameter of points of particles without a radius, relative to the radius of the scene."""


@dataclass(frozen=True)
class DrawnParticles:
    """Particles of a world. points: rows of the loose ones. corners: rows of others.

    triangle, line: uint32[T, 3], uint32[L, 2], of corners. diameter, thickness: of the points and
    of the lines [m], the median ones.
    """

    points: np.ndarray
    corners: np.ndarray
    triangle: np.ndarray
    line: np.ndarray
    diameter: float
    thickness: float

    @property
    def rows(self) -> np.ndarray:
        """Rows of the points, then of the corners."""
        return np.concatenate([self.points, self.corners])

    def spacing(self, particles: Particles) -> float:
        """Median length at rest of the first edges of the triangles [m]; infinite without any."""
        corner = particles.position[self.corners[self.triangle[:, :2].astype(int)]]
        return (
            float(np.median(np.linalg.norm(corner[:, 1] - corner[:, 0], axis=1)))
            if len(corner)
            else np.inf
        )


def drawn_particles(particles: Particles, template: int, radius: float) -> DrawnParticles:
    """What is drawn of the particles of a world. radius: of the scene [m]."""
    rows = particles.of_template(template)
    loose = np.array([kind == LOOSE for kind in particles.kind], bool)[particles.owner[rows]]
    points = rows[loose]
    corners = rows[~loose]
    triangle = _numbered(particles.triangle, corners, len(particles))
    line = _numbered(particles.line, corners, len(particles))
    diameter, thickness = (
        2.0 * float(np.median(particles.radius[of])) if len(of) else 0.0
        for of in (points, corners[line.astype(int)].ravel())
    )
    least = LEAST_POINT * radius
    return DrawnParticles(points, corners, triangle, line, diameter or least, thickness or least)


def _numbered(elements: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """uint32[n, k]: the elements of particles that are all in `rows`, by entries of it. count: of
    all particles."""
    number = np.full(count, -1, np.int64)
    number[rows] = np.arange(len(rows))
    found = number[elements]
    return found[(found >= 0).all(axis=1)].astype(np.uint32)
