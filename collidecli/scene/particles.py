"""Particles of a scene and the deformable objects that they form: frozen arrays, and records before
they are finalized.

A deformable object is a set of loose particles, a cable of lines, a cloth of triangles or a soft
body of tetrahedra.
Its particles are consecutive rows of the model's particles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from functools import cached_property

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_integer
from collidecli.scene.arguments import float_array
from collidecli.scene.distinct_values import distinct
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import LENGTH_LIMIT, POSITION_LIMIT

EVERY_TEMPLATE = -1
"""Template of the objects that are in every world."""
PARTICLE_LIMIT = 2**31 - 1
LOOSE = "particles"
CABLE = "cable"
CLOTH = "cloth"
SOFT = "soft"
"""Kinds of deformable objects."""


class ParticleFlags(IntFlag):
    """Flags of a particle; one without ACTIVE has no contacts."""

    NONE = 0
    ACTIVE = 1


@dataclass(frozen=True)
class Particles:
    """The particles of every template, and their objects.

    path: of each object, unique within a template. kind: "particles", "cable", "cloth" or "soft".
    template: int32[O]; -1 is in every world. first: int64[O + 1], first particle of each object,
    and the number of particles. position: float64[P, 3], rest position in the first world of the
    object's template [m]. radius: float64[P] [m]. active: bool[P], whether the particle has
    contacts. body: int32[P], row of the body that the particle moves with, with whose shapes it has
    no contact; -1 for none. local: float64[P, 3], its position in the body's frame [m]. line:
    int32[L, 2], of cables. triangle: int32[T, 3], of cloths and of the surfaces of soft bodies.
    tetrahedron: int32[K, 4]. All three number particles, those of one object. object_class,
    shape_class: int32[O], int32[S], filter classes; class_table: bool[classes of objects, classes
    of shapes], whether a particle of an object may touch a shape; object_table: bool[classes of
    objects, classes of objects], whether two objects may.
    """

    path: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    template: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    first: np.ndarray = field(default_factory=lambda: np.zeros(1, np.int64))
    position: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    radius: np.ndarray = field(default_factory=lambda: np.zeros(0))
    active: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    body: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    local: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    line: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    triangle: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int32))
    tetrahedron: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    object_class: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    shape_class: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    class_table: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))
    object_table: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))

    def __len__(self) -> int:
        return len(self.radius)

    @cached_property
    def edge(self) -> np.ndarray:
        """int32[E, 2]: the lines and the sides of the triangles, each once, ascending."""
        sides = [self.triangle[:, [k, (k + 1) % 3]] for k in range(3)]
        return canonical_lines(np.concatenate([self.line, *sides]))

    @cached_property
    def owner(self) -> np.ndarray:
        """int32[P]: the object of each particle."""
        return np.repeat(np.arange(len(self.path), dtype=np.int32), np.diff(self.first))

    def of_template(self, template: int) -> np.ndarray:
        """int32: rows of the particles of a world of `template`, global ones included,
        ascending."""
        is_present = (self.template == template) | (self.template == EVERY_TEMPLATE)
        return np.flatnonzero(is_present[self.owner]).astype(np.int32)

    @property
    def touched_shapes(self) -> np.ndarray:
        """bool[S]: shapes that particles of any object may touch."""
        return np.any(self.class_table, axis=0)[self.shape_class]

    def may_touch(self, owner: int, shape: int) -> bool:
        """Whether the filters let particles of an object touch a shape."""
        return bool(self.class_table[self.object_class[owner], self.shape_class[shape]])

    def objects_may_touch(self, owner: int, other: int) -> bool:
        """Whether the filters let two objects touch."""
        return bool(self.object_table[self.object_class[owner], self.object_class[other]])


@dataclass
class DeformableRecord:
    """An object before it is finalized. key: None is named at finalize. scope: scene of its
    UsdPhysics groups.

    parts: position float64[n, 3], radius float64[n] and active bool[n] of particles that were added
    together. count: of all. body: of each particle, int32[count]; None for none. line, triangle,
    tetrahedron: int32, counted within the object.
    """

    key: str | None
    template: int
    kind: str
    cfg: ShapeConfig
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]
    count: int
    body: np.ndarray | None = None
    line: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    triangle: np.ndarray = field(default_factory=lambda: np.zeros((0, 3), np.int32))
    tetrahedron: np.ndarray = field(default_factory=lambda: np.zeros((0, 4), np.int32))
    scope: int = 0


def checked_positions(positions: object, where: str) -> np.ndarray:
    """float64[n, 3]. Raises InputError for positions that are not finite, too far away, or no
    points."""
    array = float_array("positions of particles", positions, where)
    if array.size == 0:
        return np.zeros((0, 3))
    if array.ndim != 2 or array.shape[1] != 3:
        raise InputError(
            f"the particles have positions of shape {array.shape}", where, "give three numbers each"
        )
    bad = ~(np.abs(array) <= POSITION_LIMIT).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        shown = ", ".join(f"{x:g}" for x in array[row])
        raise InputError(
            f"particle {row} is at ({shown})",
            where,
            f"give finite numbers of at most {POSITION_LIMIT:g}",
        )
    return array


def checked_radii(radius: object, count: int, where: str) -> np.ndarray:
    """float64[count] of one radius for all or one for each [m]. Raises InputError for one that is
    negative or NaN."""
    radii = float_array("a particle's radius", radius, where)
    if radii.ndim > 1 or (radii.ndim == 1 and len(radii) != count):
        raise InputError(
            f"there are {radii.size} radii for {count} particles", where, "give one for each"
        )
    bad = ~((radii >= 0.0) & (radii <= LENGTH_LIMIT))
    if bad.any():
        value = float(radii[bad][0]) if radii.ndim else float(radii)
        fix = f"give a radius of at least zero and at most {LENGTH_LIMIT:g} m"
        raise InputError(f"a particle's radius is {value:g}", where, fix)
    return np.broadcast_to(radii, (count,)).copy()


def checked_corners(name: str, corners: object, width: int, count: int, where: str) -> np.ndarray:
    """int32[n, width]: particles of lines, triangles or tetrahedra, each with `width` different
    ones of `count`.

    corners: flat, or `width` a row. Raises InputError for indices out of range and for none.
    """
    array = float_array(name, corners, where)
    if (
        array.size == 0
        or array.size % width
        or array.ndim > 2
        or (array.ndim == 2 and array.shape[1] != width)
    ):
        raise InputError(
            f"the {name} have shape {array.shape}", where, f"give {width} particles for each"
        )
    rows = array.reshape(-1, width)
    bad = ~((rows >= 0) & (rows < count) & (rows == np.floor(rows))).all(axis=1)
    if bad.any():
        row = int(np.argmax(bad))
        shown = ", ".join(f"{x:g}" for x in rows[row])
        what = f"element {row} of the {name} is ({shown})"
        raise InputError(what, where, f"number the particles from 0 to {count - 1}")
    ordered = np.sort(rows, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if repeated.any():
        row = int(np.argmax(repeated))
        raise InputError(
            f"element {row} of the {name} has one particle twice", where, "correct or drop it"
        )
    return rows.astype(np.int32)


def checked_active(flags: object, count: int, where: str) -> np.ndarray:
    """bool[count] of flags, `ParticleFlags`; None is active. Raises InputError for flags that are
    no integers."""
    if flags is None:
        return np.ones(count, bool)
    if is_integer(flags):
        return np.full(count, bool(int(flags) & ParticleFlags.ACTIVE))  # pyright: ignore[reportArgumentType]
    values = float_array("particle flags", flags, where)
    if values.shape != (count,) or not np.all(values == np.floor(values)):
        raise InputError(
            f"the particle flags have shape {values.shape}", where, f"give {count} integers"
        )
    return (values.astype(np.int64) & int(ParticleFlags.ACTIVE)) != 0


def canonical_lines(line: np.ndarray) -> np.ndarray:
    """int32[n, 2]: distinct lines from their smaller particle on, in lexical order."""
    return distinct(np.sort(line, axis=1), axis=0).astype(np.int32).reshape(-1, 2)


def canonical_triangles(triangle: np.ndarray) -> np.ndarray:
    """int32[n, 3]: distinct triangles from their smallest particle on, in lexical order."""
    start = np.argmin(triangle, axis=1) if len(triangle) else np.zeros(0, np.int64)
    turned = np.take_along_axis(triangle, (start[:, None] + np.arange(3)) % 3, axis=1)
    return distinct(turned, axis=0).astype(np.int32).reshape(-1, 3)


def surface_triangles(tetrahedron: np.ndarray) -> np.ndarray:
    """int32[n, 3]: the faces of tetrahedra that only one of them has, counterclockwise from
    outside.

    For tetrahedra a, b, c, d with positive volume (b - a) x (c - a) . (d - a), in their order.
    """
    faces = tetrahedron[:, [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]]].reshape(-1, 3)
    _, first, count = np.unique(
        np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True
    )
    return faces[np.sort(first[count == 1])].astype(np.int32)


def particles_of(records: Sequence[DeformableRecord]) -> Particles:
    """The particles of named records in row order, without filter classes."""
    first = np.cumsum([0, *(record.count for record in records)], dtype=np.int64)
    if first[-1] > PARTICLE_LIMIT:
        raise InputError(
            f"the scene has {first[-1]} particles", fix=f"give {PARTICLE_LIMIT} at most"
        )

    def elements(name: str, width: int) -> np.ndarray:
        parts = [
            getattr(record, name) + start for record, start in zip(records, first[:-1], strict=True)
        ]
        return np.concatenate([np.zeros((0, width)), *parts]).astype(np.int32)

    parts = [part for record in records for part in record.parts]
    bodies = [
        np.full(record.count, -1) if record.body is None else record.body for record in records
    ]
    return Particles(
        path=tuple(str(record.key) for record in records),
        kind=tuple(record.kind for record in records),
        template=np.array([record.template for record in records], np.int32),
        first=first,
        position=np.concatenate([np.zeros((0, 3)), *(part[0] for part in parts)]),
        radius=np.concatenate([np.zeros(0), *(part[1] for part in parts)]),
        active=np.concatenate([np.zeros(0, bool), *(part[2] for part in parts)]),
        body=np.concatenate([np.zeros(0), *bodies]).astype(np.int32),
        local=np.zeros((int(first[-1]), 3)),
        line=elements("line", 2),
        triangle=elements("triangle", 3),
        tetrahedron=elements("tetrahedron", 4),
    )
