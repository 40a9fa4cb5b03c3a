"""What a view draws: colours, meshes of shapes, hydroelastic surfaces; poses and contacts of its frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from collidecli.numerics import moved_points
from collidecli.scene.heightfield import Heightfield, solid_mesh
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, recorded_particles
from collidecli.scene.shape_types import SOLIDS, ShapeType, half_extents
from collidecli.scene.tables import (
    HYDRO_FACES,
    HYDRO_PATCHES,
    RIGID_CONTACTS,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    SWEEP,
    GroupRows,
)
from collidecli.storage.contact_sets.check import check_group_rows, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet, rows_of_cells
from collidecli.storage.process_activity import reading

# Colours of the viewer: cool greys and blues for shapes, in contrast to the warm colours of contacts.

STATIC = (128, 136, 148)
BODIES = (
    (38, 78, 128),
    (36, 108, 98),
    (82, 70, 146),
    (30, 62, 96),
    (66, 108, 148),
    (40, 98, 72),
    (70, 54, 118),
    (24, 88, 122),
)
"""Colours of bodies, used cyclically."""
PICKED = ((29, 90, 200), (12, 140, 110))
"""Colours of the two shapes of the selected pair."""
GAP = (20, 190, 235)
"""Colour of contacts within the gap."""
AGAINST = (16, 16, 24)
"""Colour of the contacts of a second set, of any depth."""
PARTICLES = (168, 158, 226)
"""Colour of particles, cloths and soft bodies."""
SELF_COLOUR = (22, 150, 76)
"""Colour of contacts of cloths and soft bodies with themselves, which have no depth."""
DEPTHS = ((255, 214, 64), (250, 140, 30), (226, 55, 40), (146, 10, 70))
"""Colour gradient of touching contacts, from depth 0 to the greatest depth of all."""


def depth_colours(depth: np.ndarray, deepest: float) -> np.ndarray:
    """Colours uint8[n, 3] of depths [m]; the first colour for all if `deepest` is 0."""
    fraction = np.clip(depth / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(depth))
    stops = np.linspace(0.0, 1.0, len(DEPTHS))
    return np.stack([np.interp(fraction, stops, channel) for channel in zip(*DEPTHS, strict=True)], axis=-1).astype(
        np.uint8
    )


def shape_colours(body: np.ndarray) -> np.ndarray:
    """Colours uint8[n, 3] of shapes by their bodies, -1 for static shapes."""
    palette = np.array([*BODIES, STATIC], np.uint8)
    return palette[np.where(body < 0, len(BODIES), body % len(BODIES))]


def css(colour: tuple[int, int, int]) -> str:
    """A colour in CSS."""
    return f"rgb({colour[0]}, {colour[1]}, {colour[2]})"


OPACITY, OPACITY_OVER_SURFACES = 0.45, 0.25
"""Initial opacity of shapes; with hydroelastic surfaces, whose faces and forces are seen through the shapes."""


# Hydroelastic surfaces of a cell as a view draws them: polygons coloured by pressure, or a force for each surface.

LEVELS = 16
"""Number of colours of faces: each is a mesh, as a mesh of viser's has one colour."""


@dataclass(frozen=True)
class SurfaceScale:
    """What surfaces are coloured by. greatest: of all frames; pressure of the faces [Pa], or force of a surface [N]."""

    greatest: float
    has_faces: bool

    @property
    def quantity(self) -> str:
        """Pressure or force."""
        return "pressure" if self.has_faces else "force"

    @property
    def unit(self) -> str:
        """Unit of the quantity."""
        return "Pa" if self.has_faces else "N"

    def fraction(self, values: np.ndarray) -> np.ndarray:
        """float64: values relative to the greatest one, from 0 to 1."""
        return np.clip(values / self.greatest, 0.0, 1.0) if self.greatest > 0.0 else np.zeros(len(values))

    def level(self, values: np.ndarray) -> np.ndarray:
        """uint8: number of the colour of values, from 0 to LEVELS - 1."""
        return np.minimum(LEVELS * self.fraction(values), LEVELS - 1).astype(np.uint8)


@dataclass(frozen=True)
class Faces:
    """Polygons. patch: int64[n], row of their surface. pressure: float64[n] [Pa]. lengths: int64[n], their corners.

    corner: float64[sum of lengths, 3] [m].
    """

    patch: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    pressure: np.ndarray = field(default_factory=lambda: np.zeros(0))
    lengths: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    corner: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))


@dataclass(frozen=True)
class Surfaces:
    """The surfaces of a cell. pair: int32[n, 2], rows of shapes. center: float64[n, 3] [m].

    force: float64[n, 3], on the second shape [N].
    """

    pair: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int32))
    center: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    force: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    faces: Faces = field(default_factory=Faces)

    def __len__(self) -> int:
        return len(self.pair)

    def of_pair(self, pair: tuple[int, int]) -> np.ndarray:
        """bool[n]: the surfaces of a pair of shapes."""
        return (self.pair == pair).all(axis=1)


def triangle_fans(lengths: np.ndarray) -> np.ndarray:
    """uint32[T, 3]: triangles of polygons with `lengths` corners, the polygons' corners one after the other."""
    first, count = np.cumsum(lengths) - lengths, np.maximum(lengths - 2, 0)
    begin = np.repeat(first, count)
    second = begin + np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count) + 1
    return np.stack([begin, second, second + 1], axis=1).astype(np.uint32)


# Triangle meshes of shapes for drawing. Shapes that differ only by a scale along x, y and z share a mesh.

AROUND = 32
"""Number of vertices of a circle."""
SMOOTH_COSINE = 0.8
"""Cosine of the angle of two triangles above which their edge is shaded smooth."""
MAX_GRID = 256
"""Largest number of rows and columns of a heightfield that are drawn; above it some are skipped, with a note."""


@dataclass(frozen=True)
class DrawnMesh:
    """vertex: float32[V, 3]. face: uint32[F, 3], counterclockwise from outside.

    flat: shade the faces flat, not smoothly. open: draw the back of the faces too.
    """

    vertex: np.ndarray
    face: np.ndarray
    flat: bool
    open: bool = False


@dataclass(frozen=True)
class ShapeGroup:
    """Shapes that share a mesh.

    rows: int[n], rows of the model's shapes. scale: float32[n, 3]. planes: they are planes, drawn as squares of 2 by 2
    before the scale.
    """

    mesh: DrawnMesh
    rows: np.ndarray
    scale: np.ndarray
    planes: bool

    def of_rows(self, rows: np.ndarray) -> ShapeGroup:
        """The shapes of the group that are among some rows."""
        is_kept = np.isin(self.rows, rows)
        return replace(self, rows=self.rows[is_kept], scale=self.scale[is_kept])


def shape_groups(model: Model, shape_count: int) -> list[ShapeGroup]:
    """Every shape of a model, in groups by mesh; planes, which are infinite, have scale 1.

    Shapes from row `shape_count` on, which are visual geometry, are in groups of their own.
    """
    meshes: dict[tuple, DrawnMesh] = {}
    members: dict[tuple, list[tuple[int, np.ndarray]]] = {}
    for row, kind in enumerate(model.shapes.types()):
        size = model.shapes.size[row]
        if kind in _TABLES:
            key, scale = (kind, int(getattr(model.shapes, _TABLES[kind])[row])), np.ones(3)
        elif kind == ShapeType.PLANE or not SOLIDS[kind].scales:
            key, scale = (kind, tuple(size / (size[0] or 1.0))), np.full(3, size[0] or 1.0)
        else:
            key, scale = (kind, ()), half_extents(kind, size)
        if key not in meshes:
            meshes[key] = _mesh(model, key)
        members.setdefault((*key, row >= shape_count), []).append((row, scale))
    return [
        ShapeGroup(
            meshes[key[:2]],
            np.array([row for row, _ in rows]),
            np.array([scale for _, scale in rows], np.float32),
            key[0] == ShapeType.PLANE,
        )
        for key, rows in members.items()
    ]


def coarse_heightfields(model: Model) -> int:
    """Number of heightfields with more rows or columns than are drawn."""
    return sum(max(field.data.shape) > MAX_GRID for field in model.heightfields)


_TABLES = {ShapeType.CONVEX_MESH: "hull", ShapeType.MESH: "mesh", ShapeType.HEIGHTFIELD: "heightfield"}


def _mesh(model: Model, key: tuple) -> DrawnMesh:
    kind, which = key
    if kind == ShapeType.CONVEX_MESH:
        return _drawn(model.hulls[which].vertex, model.hulls[which].triangles, flat=True)
    if kind == ShapeType.MESH:
        mesh = model.meshes[which]
        return _drawn(mesh.vertex, mesh.face, flat=True, open=not mesh.is_closed)
    if kind == ShapeType.HEIGHTFIELD:
        return _heightfield(model.heightfields[which])
    make = SOLIDS[kind].triangles
    if make is None:
        corners = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)])
        return _drawn(corners, np.array([(0, 1, 2), (0, 2, 3)]), flat=True, open=True)
    return _smooth(*make(np.array(which or (1.0, 1.0, 1.0)), AROUND))


def _smooth(vertex: np.ndarray, face: np.ndarray) -> DrawnMesh:
    """A closed surface whose triangles on both sides of a sharp edge have vertices of their own, for smooth shading."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    a, b, c = (vertex[face[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    edges = np.sort(np.concatenate([face[:, [k, (k + 1) % 3]] for k in range(3)]), axis=1)
    order = np.lexsort(edges.T).reshape(-1, 2)  # each edge is of two triangles
    left, right = (order % len(face)).T
    near = (normal[left] * normal[right]).sum(axis=1) > SMOOTH_COSINE
    links = coo_matrix((np.ones(near.sum()), (left[near], right[near])), shape=(len(face), len(face)))
    side = connected_components(links, directed=False)[1]
    corners, number = np.unique(side[:, None] * len(vertex) + face, return_inverse=True)
    return _drawn(vertex[corners % len(vertex)], number.reshape(face.shape), flat=False)


def _drawn(vertex: np.ndarray, face: np.ndarray, flat: bool, open: bool = False) -> DrawnMesh:
    return DrawnMesh(np.ascontiguousarray(vertex, np.float32), np.ascontiguousarray(face, np.uint32), flat, open)


def _heightfield(field: Heightfield) -> DrawnMesh:
    """Top surface, walls and base; if rows or columns are skipped, the outermost are kept."""
    rows, cols = (np.unique(np.linspace(0, n - 1, min(n, MAX_GRID)).astype(int)) for n in field.data.shape)
    mesh = solid_mesh(replace(field, data=np.ascontiguousarray(field.data[np.ix_(rows, cols)])))
    vertex = mesh.vertex.copy()
    for axis, half, kept in ((0, field.half_x, cols), (1, field.half_y, rows)):
        even, uneven = (np.linspace(-half, half, n) for n in (len(kept), field.data.shape[1 - axis]))
        vertex[:, axis] = np.interp(vertex[:, axis], even, uneven[kept])
    return _drawn(vertex, mesh.face, flat=True)


# The further groups of a contact set for a view: hydroelastic surfaces, and contacts of particles as contacts.

PATCHES, FACES, SOFT, SELF, SWEPT, SOFT_SWEPT, SELF_SWEPT = (
    each.name for each in (HYDRO_PATCHES, HYDRO_FACES, SOFT_CONTACTS, SELF_CONTACTS, SWEEP, SOFT_SWEEP, SELF_SWEEP)
)
READ = {
    PATCHES: ("shape0", "shape1", "center", "force"),
    FACES: ("patch", "pressure", "vertices"),
    SOFT: ("shape", "distance", "normal", "point_world"),
    SELF: ("point0", "point1"),
    SWEPT: ("tunnel", "shape0", "shape1", "least", "normal", "point0", "point1"),
    SOFT_SWEPT: ("tunnel", "shape", "least", "normal", "point_world"),
    SELF_SWEPT: ("tunnel", "point0", "point1"),
}
NO_SHAPE = -1
"""shape1 of the contact of a particle."""


def _rows(contacts: ContactSet, names: tuple[str, ...], cell: int) -> dict[str, GroupRows]:
    tables = {name: contacts.groups[name] for name in names if name in contacts.groups}
    rows = rows_of_cells(tables, cell, cell + 1, READ)
    check_group_rows(contacts, rows, cell, cell + 1)
    return rows


def surface_scale(contacts: ContactSet, first: int, last: int) -> SurfaceScale | None:
    """What the surfaces of cells first to last - 1 are coloured by; None without surfaces."""
    if PATCHES not in contacts.groups:
        return None
    has_faces = FACES in contacts.groups
    column = "pressure" if has_faces else "force"
    greatest = 0.0
    for block in contacts.groups[FACES if has_faces else PATCHES].blocks(names=(column,), first=first, last=last):
        values = block.columns[column]
        values = values if has_faces else np.linalg.norm(values, axis=1)
        greatest = max(greatest, float(values.max(initial=0.0)))
    return SurfaceScale(greatest, has_faces)


def depth_of_groups(contacts: ContactSet, first: int, last: int) -> float:
    """Greatest depth of the contacts of particles and of swept touches in cells first to last - 1 [m]."""
    deepest = 0.0
    for name, column in ((SOFT, "distance"), (SWEPT, "least"), (SOFT_SWEPT, "least")):
        if name in contacts.groups:
            for block in contacts.groups[name].blocks(names=(column,), first=first, last=last):
                deepest = max(deepest, -float(block.columns[column].min(initial=0.0)))
    return deepest


def with_soft_contacts(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with those of its particles, whose shape1 is NO_SHAPE."""
    if SOFT not in contacts.groups:
        return rigid
    return _with_rows(rigid, _of_particles(_rows(contacts, (SOFT,), cell)[SOFT].columns, "distance"))


def with_missed_touches(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with the touches from it to the next frame that neither has, where they begin."""
    for name, swept_rows in _rows(contacts, (SWEPT, SOFT_SWEPT), cell).items():
        missed = np.flatnonzero(swept_rows.columns["tunnel"] == 1)
        columns = {key: values[missed] for key, values in swept_rows.columns.items()}
        rows = columns | {"distance": columns["least"]} if name == SWEPT else _of_particles(columns, "least")
        rigid = _with_rows(rigid, rows)
    return rigid


def _of_particles(soft: dict[str, np.ndarray], distance: str) -> dict[str, np.ndarray]:
    """Columns of contacts from those of particles with shapes; `distance` is the name of theirs."""
    point, normal = soft["point_world"], soft["normal"]
    return {
        "shape0": soft["shape"],
        "shape1": np.full(len(point), NO_SHAPE, np.int32),
        "distance": soft[distance],
        "normal": normal,
        "point0": point,
        "point1": point + soft[distance][:, None] * normal,
    }


def _with_rows(rigid: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([values, more[name].astype(values.dtype)]) for name, values in rigid.items()}


COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
AHEAD = 16
"""Number of frames that are read together, as a recording is compressed in chunks of many frames."""
NO_COLOURS = np.zeros((0, 3), np.uint8)


class ViewFrames:
    """The selected frames of a contact set. number: int64[K], frame numbers. time: float64[K] [s].

    against: name of a second set, whose contacts are drawn too; "" is none.

    model: its shapes from row `shape_count` on are visual geometry, with `visual_colours`, uint8[V, 3].
    surface_scale: of hydroelastic surfaces; None in a contact set without them. depth_of_groups: greatest depth of the
    contacts of particles and of touches between frames [m]. has_particles: whether the scene has some.
    has_self_contacts: whether the set has contacts of cloths and soft bodies with themselves.

    Poses and contacts of a frame index are read in any order.
    """

    def __init__(
        self,
        contacts: ContactSet,
        picked: range,
        model: Model | None = None,
        visual_colours: np.ndarray = NO_COLOURS,
        motion: Motion | None = None,
        frame_of: Sequence[int] | None = None,
        second: ContactSet | None = None,
        against: str = "",
    ) -> None:
        """picked: frames of the set. frame_of: frame of the motion for each of the set. second: a set of the same
        shapes and cells, named `against`.
        """
        self.against, self._second = against, second
        self.number = np.arange(picked.start, picked.stop, picked.step)
        self.time, self.world_count = contacts.time[self.number], contacts.world_count
        self.model, self.visual_colours = model, visual_colours
        self.shape_count = 0 if model is None else len(model.shapes) - len(visual_colours)
        self._contacts, self._motion = contacts, motion
        self._frame_of = self.number if frame_of is None else np.asarray(frame_of, int)[self.number]
        self._read: dict[int, np.ndarray] = {}
        self.has_particles = model is not None and len(model.particles) > 0
        self.has_self_contacts = SELF in contacts.groups
        self._positions: dict[int, np.ndarray] = {}
        first, last = (int(self.number.min()), int(self.number.max())) if len(self.number) else (0, -1)
        self._cells = first * self.world_count, (last + 1) * self.world_count
        with reading("contact set", contacts.path):
            self.surface_scale: SurfaceScale | None = surface_scale(contacts, *self._cells)
            self.depth_of_groups = depth_of_groups(contacts, *self._cells)

    def __len__(self) -> int:
        return len(self.number)

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        """COLUMNS of the contacts of a cell, of the touches that it and the next frame miss, and of the contacts of its
        particles, whose shape1 is -1; `second`, bool, is true for those of the second set.
        """
        cell, parts = self._cell(index, world), []
        for contacts in (self._contacts, self._second) if self._second else (self._contacts,):
            with reading("contact set", contacts.path):
                block = contacts.cells(cell, cell + 1, COLUMNS)
                check_shape_rows(contacts, block)
                parts.append(with_soft_contacts(contacts, cell, with_missed_touches(contacts, cell, block.columns)))
        joined = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
        return joined | {"second": np.arange(len(joined["distance"])) >= len(parts[0]["distance"])}

    def _cell(self, index: int, world: int) -> int:
        return int(self.number[index]) * self.world_count + world

    def surfaces(self, index: int, world: int) -> Surfaces:
        """The hydroelastic surfaces of a cell, with their faces if the view draws them."""
        with reading("contact set", self._contacts.path):
            tables = _rows(self._contacts, (PATCHES, FACES) if self.has_faces else (PATCHES,), self._cell(index, world))
            if PATCHES not in tables:
                return Surfaces()
            patches = tables[PATCHES].columns
            pair = np.stack([patches["shape0"], patches["shape1"]], axis=1)
            faces = Faces()
            if FACES in tables:
                rows = tables[FACES]
                lengths, corner = rows.lists["vertices"]
                faces = Faces(rows.columns["patch"], rows.columns["pressure"], lengths, corner.astype(float))
            return Surfaces(pair, patches["center"].astype(float), patches["force"], faces)

    @property
    def has_faces(self) -> bool:
        """Whether the view draws faces of hydroelastic surfaces."""
        return self.surface_scale is not None and self.surface_scale.has_faces

    def self_contacts(self, index: int, world: int) -> np.ndarray:
        """float64[n, 3]: places of the contacts of cloths and soft bodies with themselves in a cell [m]."""
        with reading("contact set", self._contacts.path):
            # And of each touch from the cell to the next frame that neither has, where it begins.
            points = [np.zeros((0, 3))]
            for name, rows in _rows(self._contacts, (SELF, SELF_SWEPT), self._cell(index, world)).items():
                columns = rows.columns
                middle = 0.5 * (columns["point0"].astype(float) + columns["point1"])
                points.append(middle[columns["tunnel"] == 1] if name == SELF_SWEPT else middle)
            return np.concatenate(points)

    def counts(self, worlds: Sequence[int]) -> dict[str, int]:
        """Numbers of what some worlds have in all frames: poses of moving shapes, contacts, faces, particles."""
        cells = (self.number[:, None] * self.world_count + np.asarray(worlds)).ravel()
        counts, tables = {"pose": 0, "particle": 0}, self._contacts.tables
        with reading("contact set", self._contacts.path):
            for name, group in (("contact", RIGID_CONTACTS.name), ("face", FACES), ("self-contact", SELF)):
                start = tables[group].cell_start() if group in tables else np.zeros(cells.max(initial=0) + 2, int)
                counts[name] = int((start[cells + 1] - start[cells]).sum())
            if self._second is not None:
                start = self._second.tables[RIGID_CONTACTS.name].cell_start()
                counts["contact"] += int((start[cells + 1] - start[cells]).sum())
        if (model := self.model) is not None:
            for world in worlds:
                counts["pose"] += len(self) * int((model.shapes.body[self.rows(world)] >= 0).sum())
                counts["particle"] += len(self) * len(model.particles.of_template(int(model.world_template[world])))
        return counts

    def particles(self, index: int, world: int) -> np.ndarray:
        """float64[P, 3]: world positions of the model's particles; those of other templates are anywhere."""
        model, motion = self.model, self._motion
        assert model is not None
        assert motion is not None
        frame = int(self._frame_of[index])
        with reading("motion"):
            if frame not in self._positions:
                recorded = recorded_particles(motion, range(frame, frame + 1))
                resting = model.particles.position[None, None]
                if recorded is None and not (model.particles.body >= 0).any():
                    recorded = resting
                else:
                    poses = motion.read(range(frame, frame + 1))
                    recorded = model.with_attached_particles(poses, resting if recorded is None else recorded)
                self._positions = {frame: recorded[0]}
            positions = self._positions[frame]
        placed = positions[world if len(positions) > 1 else 0]
        if model.world_shift is None or len(positions) > 1:
            return placed
        shifted = moved_points(model.world_shift[world], placed)
        stays = model.particles.template[model.particles.owner] == GLOBAL_TEMPLATE
        return np.where(stays[:, None], placed, shifted)

    def ended(self, index: int, world: int) -> bool:
        """Whether a cell is outside every demonstration: it repeats the last recorded pose, and has no contacts."""
        episodes = self._contacts.episodes
        return episodes is not None and not episodes.name_at(world, int(self.number[index]))

    def world_name(self, world: int) -> str:
        """The demonstrations of a world, or its number."""
        episodes = self._contacts.episodes
        names = () if episodes is None else episodes.of_worlds(np.array([world])).name
        return ", ".join(names) or f"world {world}"

    def rows(self, world: int) -> np.ndarray:
        """Rows of the model's shapes in a world."""
        assert self.model is not None
        return self.model.template_shapes(int(self.model.world_template[world]))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        """Poses float64[S, 7], xyzw, of all shapes in the world frame; shapes of other templates have any pose."""
        assert self.model is not None
        assert self._motion is not None
        frame = int(self._frame_of[index])
        if frame not in self._read:
            first = index - index % AHEAD
            wanted = self._frame_of[first : first + AHEAD]
            run = range(int(wanted[0]), int(wanted[0]) + len(wanted))
            many = bool(np.array_equal(wanted, np.arange(run.start, run.stop)))
            frames = run if many else range(frame, frame + 1)
            with reading("motion"):
                poses = self._motion.read(frames)
            self._read = dict(zip(frames, poses, strict=True))
        return self.model.placed_shapes(self._read[frame], world)
