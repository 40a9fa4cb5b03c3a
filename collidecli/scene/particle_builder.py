"""Additions of particles to a builder: loose particles, cables, cloths and soft bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.poses import moved_points
from collidecli.numerics.products import cross, dot
from collidecli.scene import argument_types, arguments
from collidecli.scene.distinct_values import distinct
from collidecli.scene.materials import Material
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY
from collidecli.scene.particles import (
    CABLE,
    CLOTH,
    LOOSE,
    SOFT,
    DeformableRecord,
    checked_active,
    checked_corners,
    checked_positions,
    checked_radii,
    surface_triangles,
)
from collidecli.scene.poses import checked_pose
from collidecli.scene.records import SceneRecords
from collidecli.scene.shape_config import ShapeConfig, check_config

Cfg = ShapeConfig | None
DYNAMICS = frozenset(
    ("tri_ke", "tri_ka", "tri_kd", "tri_drag", "tri_lift", "edge_ke", "edge_kd", "edge_callback")
)
DYNAMICS |= {"add_springs", "spring_ke", "spring_kd", "face_callback", "k_mu", "k_lambda", "k_damp"}
"""Further arguments of other builders that change no contact; they have no effect."""


class ParticleBuilder:
    """The methods of `ModelBuilder` that add particles."""

    default_shape_cfg: ShapeConfig
    default_particle_radius: float
    _records: SceneRecords
    _open_template: int
    _sound_materials: dict[int, Material]

    @property
    def particle_count(self) -> int:
        """Particles added so far, in all templates."""
        return sum(record.count for record in self._records.deformables)

    def add_particle(
        self,
        pos: Sequence[float],
        vel: Sequence[float] | None = None,
        mass: float = 0.0,
        radius: float | None = None,
        flags: int | None = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds one particle; returns its index. See `add_particles`.

        radius: [m]; None is `default_particle_radius`. flags: bit 0 is set for an active particle;
        None is active.
        """
        return self.add_particles([pos], vel, mass, radius, flags, cfg, key)

    def add_particles(
        self,
        pos: Any,
        vel: Any = None,
        mass: Any = None,
        radius: Any = None,
        flags: Any = None,
        cfg: Cfg = None,
        key: str | None = None,
        bodies: Any = None,
    ) -> int:
        """Adds loose particles at pos[n, 3]; returns the index of the first.

        radius [m], flags: one, or one for each. Loose particles that follow each other in one
        world, with equal `cfg` and `key`, form one object. vel, mass: accepted and without effect.
        bodies: as of `add_cloth_mesh`.
        """
        where = arguments.location_of("particles", key, len(self._records.deformables))
        position = checked_positions(pos, where)
        _check_velocities(vel, len(position), where)
        cfg, radii = self._cfg_and_radii(cfg, radius, len(position), where)
        part = position, radii, checked_active(flags, len(position), where)
        first = self.particle_count
        last = self._records.deformables[-1:]
        identity = LOOSE, self._open_template, key
        grows = (
            last
            and (last[0].kind, last[0].template, last[0].key) == identity
            and last[0].cfg == cfg
        )
        if grows and bodies is None and last[0].body is None:
            last[0].parts.append(part)
            last[0].count += len(position)
            return first
        record = DeformableRecord(key, self._open_template, LOOSE, cfg, [part], len(position))
        return self._added(record, bodies, where)

    def add_cable(
        self,
        pos: Sequence[float] = (0.0, 0.0, 0.0),
        rot: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        scale: float = 1.0,
        vel: Any = None,
        vertices: Any = (),
        indices: Any = None,
        density: float = 0.0,
        particle_radius: Any = None,
        cfg: Cfg = None,
        key: str | None = None,
        bodies: Any = None,
        **dynamics: Any,
    ) -> int:
        """Adds a cable: one particle a vertex, and lines between them, which are round with its
        radius; returns the index of its first particle.

        indices: two vertices a line; None joins each vertex and the next. Other arguments as of
        `add_cloth_mesh`. Raises InputError for fewer than two vertices.
        """
        record, where = self._deformable(
            CABLE, (pos, rot, scale), vertices, particle_radius, cfg, key, dynamics
        )
        _check_velocities(vel, record.count, where)
        if indices is None:
            first = np.arange(record.count - 1)
            indices = np.stack([first, first + 1], axis=1)
        record.line = checked_corners("lines", indices, 2, record.count, where)
        return self._added(record, bodies, where)

    def add_cloth_mesh(
        self,
        pos: Sequence[float] = (0.0, 0.0, 0.0),
        rot: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        scale: float = 1.0,
        vel: Any = None,
        vertices: Any = (),
        indices: Any = (),
        density: float = 0.0,
        particle_radius: Any = None,
        cfg: Cfg = None,
        key: str | None = None,
        bodies: Any = None,
        **dynamics: Any,
    ) -> int:
        """Adds a cloth: one particle a vertex, and triangles; returns the index of its first
        particle.

        pos, rot, scale: of the mesh, quaternion xyzw. vertices: [n, 3] [m]. indices: three vertices
        a triangle. particle_radius: one, or one a vertex [m]; None is `default_particle_radius`.
        bodies: body that each vertex moves with, or one for all; None for none. cfg: as of
        `add_particles`. vel, density and dynamics (`tri_ke`, `edge_kd`, `k_mu` and the like of
        Newton's builder): accepted and without effect.
        """
        record, where = self._deformable(
            CLOTH, (pos, rot, scale), vertices, particle_radius, cfg, key, dynamics
        )
        _check_velocities(vel, record.count, where)
        record.triangle = checked_corners("triangles", indices, 3, record.count, where)
        return self._added(record, bodies, where)

    def add_soft_mesh(
        self,
        pos: Sequence[float] = (0.0, 0.0, 0.0),
        rot: Sequence[float] = (0.0, 0.0, 0.0, 1.0),
        scale: float = 1.0,
        vel: Any = None,
        vertices: Any = (),
        indices: Any = (),
        density: float = 0.0,
        particle_radius: Any = None,
        cfg: Cfg = None,
        key: str | None = None,
        bodies: Any = None,
        **dynamics: Any,
    ) -> int:
        """Adds a soft body: one particle a vertex, and tetrahedra; returns the index of its first
        particle.

        indices: four vertices a tetrahedron, in either order; other arguments as of
        `add_cloth_mesh`. Its triangles are the faces of only one tetrahedron.
        """
        record, where = self._deformable(
            SOFT, (pos, rot, scale), vertices, particle_radius, cfg, key, dynamics
        )
        _check_velocities(vel, record.count, where)
        corners = checked_corners("tetrahedra", indices, 4, record.count, where)
        a, b, c, d = (record.parts[0][0][corners[:, k]] for k in range(4))
        turned = dot(cross(b - a, c - a), d - a) < 0.0
        record.tetrahedron = np.where(turned[:, None], corners[:, [0, 2, 1, 3]], corners).astype(
            np.int32
        )
        record.triangle = surface_triangles(record.tetrahedron)
        return self._added(record, bodies, where)

    def _deformable(
        self,
        kind: str,
        place: tuple[Sequence[float], Sequence[float], float],
        vertices: Any,
        radius: Any,
        cfg: Cfg,
        key: str | None,
        dynamics: Mapping[str, Any],
    ) -> tuple[DeformableRecord, str]:
        where = arguments.location_of(kind, key, len(self._records.deformables))
        unknown = sorted(set(dynamics) - DYNAMICS)
        if unknown:
            raise InputError(f"there is no argument {unknown[0]}", where, "leave it out")
        pos, rot, scale = place
        pose = checked_pose([*pos, *rot], where)
        if not argument_types.is_number(scale) or not 0.0 < abs(scale) < float("inf"):
            raise InputError(f"scale is {scale!r}", where, "give a number that is not zero")
        points = checked_positions(vertices, where) * scale
        points = checked_positions(moved_points(pose, points), where)
        cfg, radii = self._cfg_and_radii(cfg, radius, len(points), where)
        part = points, radii, np.ones(len(points), bool)
        return DeformableRecord(key, self._open_template, kind, cfg, [part], len(points)), where

    def _added(self, record: DeformableRecord, bodies: Any, where: str) -> int:
        first = self.particle_count
        if bodies is not None:
            record.body = self._checked_bodies(bodies, record.count, where)
        self._records.deformables.append(record)
        return first

    def _checked_bodies(self, bodies: Any, count: int, where: str) -> np.ndarray:
        """int32[count] of one body for all or one for each."""
        rows = (
            np.broadcast_to(np.asarray(bodies), (count,))
            if np.ndim(bodies) == 0
            else np.asarray(bodies)
        )
        if rows.shape != (count,):
            raise InputError(
                f"there are {len(rows)} bodies for {count} particles", where, "give one for each"
            )
        for body in distinct(rows).tolist():
            arguments.check_index(
                body, len(self._records.bodies), "body", where, lowest=STATIC_BODY
            )
            template = (
                GLOBAL_TEMPLATE if body == STATIC_BODY else self._records.bodies[body].template
            )
            if template not in (GLOBAL_TEMPLATE, self._open_template):
                raise InputError(
                    f"body {body} is in another world",
                    where,
                    "add the particles in its body's world",
                )
        return rows.astype(np.int32)

    def _cfg_and_radii(
        self, cfg: Cfg, radius: Any, count: int, where: str
    ) -> tuple[ShapeConfig, np.ndarray]:
        """The configuration of particles, and float64[count] of their radii with its margin."""
        cfg = self.default_shape_cfg.changed(margin=None, gap=None) if cfg is None else cfg
        arguments.check_kind("cfg", cfg, ShapeConfig, where)
        check_config(cfg, where, self._sound_materials)
        if cfg.gap is not None:
            what = f"the configuration has a gap of {cfg.gap:g} m, which has no effect on particles"
            raise InputError(
                what, where, "leave it out; the option soft_gap is the gap of all particles"
            )
        radii = checked_radii(
            self.default_particle_radius if radius is None else radius, count, where
        )
        return cfg.changed(), radii + (cfg.margin or 0.0)


def _check_velocities(velocities: Any, count: int, where: str) -> None:
    """Raises InputError for velocities, which have no effect, that are no [3] or [n, 3]: another
    argument may be meant."""
    if velocities is None:
        return
    shape = arguments.float_array("vel", velocities, where).shape
    if shape not in ((3,), (count, 3)):
        raise InputError(
            f"vel has the shape {shape}, and {count} particles have velocities of three numbers",
            where,
            "give None, or an argument by its name, such as radius=0.005",
        )
