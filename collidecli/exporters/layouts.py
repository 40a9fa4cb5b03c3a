"""The contact set's own columns and tables as arrays."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.arrays import (
    POINTS,
    Array,
    Layout,
    depth,
    frames_and_worlds,
    held,
    midpoint,
    per_cell,
    per_contact,
    starts,
    texts,
    towards_shape0,
)
from collidecli.exporters.parquet_parts import ParquetParts
from collidecli.exporters.surfaces import Surfaces
from collidecli.numerics import cross, dot
from collidecli.scene.tables import ContactBlock, ListColumn
from collidecli.storage.contact_sets.selected import SINGLE_PARTICLE, SelectedContacts, rows_of
from collidecli.storage.result_files import require_pyarrow


def unknown_columns(selected: SelectedContacts) -> tuple[str, ...]:
    """Messages for columns that are unknown to this version."""
    known = selected.group.dataset_names
    names = selected.contacts.tables[selected.group.name].names
    return tuple(f"{name}: a column unknown to this version" for name in names if name not in known)


def stored(selected: SelectedContacts, field: str, source: str, dtype: str, row: tuple[int, ...] = ()) -> Array:
    """The values of a column `source` under another name and type. row: shape of those of a contact."""
    return per_contact(selected, field, dtype, row, (source,), itemgetter(source))


def mixed(
    selected: SelectedContacts,
    surfaces: Surfaces,
    field: str,
    name: str,
    dtype: str = "float32",
    row: tuple[int, ...] = (),
) -> Array:
    """A parameter `name` of the pairs of shapes, see `Surfaces.of`. row: shape of those of a contact."""
    return per_contact(selected, field, dtype, row, PAIR, lambda c: surfaces.of(name, *_pair(c), dtype))


def npz_layout(selected: SelectedContacts) -> Layout:
    """Every column under its name, and the tables of shapes, bodies, frames and worlds."""
    contacts = selected.contacts
    shapes = contacts.shapes
    arrays: list[Array] = [*frames_and_worlds(selected)]
    for column in selected.columns:
        row = () if column.width == 1 else (column.width,)
        arrays.append(stored(selected, column.name, column.name, column.dtype_for(contacts.float_type).name, row))
    for held_list in selected.group.lists:
        arrays += _list(selected, held_list)
    arrays += [
        texts("shape_path", shapes.path),
        texts("shape_type", shapes.type),
        held("shape_body", shapes.body),
        held("shape_template", shapes.template),
        held("shape_margin", shapes.margin),
        held("shape_gap", shapes.gap),
        texts("body_path", contacts.body_path),
        *_objects(selected),
        held("world_template", np.asarray(contacts.world_template)[selected.worlds]),
    ]
    return Layout(tuple(arrays), unknown_columns(selected))


def _objects(selected: SelectedContacts) -> list[Array]:
    objects = selected.contacts.particle_objects
    if not selected.group.objects:
        return []
    return [
        texts("particle_object_path", objects.path),
        texts("particle_object_kind", objects.kind),
        held("particle_object_template", objects.template),
        held("particle_object_first_particle", objects.first_particle),
        held("particle_object_particle_count", objects.particle_count),
    ]


def _list(selected: SelectedContacts, entries: ListColumn) -> tuple[Array, Array]:
    """The values of a list column, and the first of each row."""
    name, group, width = entries.column.name, selected.group.name, entries.column.width

    def values() -> Iterator[np.ndarray]:
        return (block.groups[group].lists[name][1] for block in selected.blocks((name,)))

    def lengths(block: ContactBlock) -> np.ndarray:
        return block.groups[group].lists[name][0]

    shape = (selected.value_count(name), *(() if width == 1 else (width,)))
    first = starts(entries.start, selected.contact_count, (name,), selected, lengths)
    return Array(name, entries.column.dtype_for(selected.contacts.float_type), shape, values), first


# DART's collision result: manifolds of pairs of objects, the normal from object 2 to object 1, depth positive.

PAIR = ("shape0", "shape1")
TYPES = ("Point", "Edge", "Face", "Patch", "Unknown")
"""Types of manifolds by number: the first four are the kinds of a contact; Unknown has contacts of several kinds."""
UNKNOWN = TYPES.index("Unknown")


def dart_layout(selected: SelectedContacts) -> Layout:
    """A manifold has all contacts of a pair of shapes in one cell; object 1 is shape0. Vectors are float64."""
    count = sum(len(_first_rows(block)) for block in selected.blocks(PAIR))

    def per_manifold(name: str, dtype: str, row: tuple[int, ...], columns: tuple[str, ...], made) -> Array:
        def pieces():
            for block in selected.blocks((*PAIR, *columns)):
                yield np.ascontiguousarray(made(block, _first_rows(block)), dtype)

        return Array(name, np.dtype(dtype), (count, *row), pieces)

    def manifolds(block: ContactBlock) -> np.ndarray:
        return np.bincount(_cells(block)[_first_rows(block)], minlength=len(block.cell_counts))

    arrays = (
        *frames_and_worlds(selected),
        starts("manifold_start", selected.cell_count, PAIR, selected, manifolds),
        starts("contact_start", count, PAIR, selected, lambda b: np.diff([*_first_rows(b).tolist(), b.contact_count])),
        per_manifold("object1", "int32", (), (), lambda b, first: b.columns["shape0"][first]),
        per_manifold("object2", "int32", (), (), lambda b, first: b.columns["shape1"][first]),
        per_manifold("type", "uint8", (), ("kind",), _types),
        per_manifold("shared_normal", "float64", (3,), ("normal",), _shared_normals),
        per_contact(selected, "position", "float64", (3,), POINTS, midpoint),
        per_contact(selected, "normal", "float64", (3,), ("normal",), towards_shape0),
        per_contact(selected, "depth", "float64", (), ("distance",), depth),
        stored(selected, "feature_index1", "feature0", "int32"),
        stored(selected, "feature_index2", "feature1", "int32"),
        texts("object_name", selected.contacts.shapes.path),
        texts("type_name", TYPES),
    )
    return Layout(arrays)


def _cells(block: ContactBlock) -> np.ndarray:
    return np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)


def _first_rows(block: ContactBlock) -> np.ndarray:
    """intp: the first contact of each manifold of a block of whole cells."""
    keys = np.stack([_cells(block), block.columns["shape0"], block.columns["shape1"]])
    return np.flatnonzero(np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: block.contact_count])


def _types(block: ContactBlock, first: np.ndarray) -> np.ndarray:
    if not len(first):
        return first
    kind = block.columns["kind"]
    lowest, highest = np.minimum.reduceat(kind, first), np.maximum.reduceat(kind, first)
    return np.where((lowest == highest) & (lowest < UNKNOWN), lowest, UNKNOWN)


def _shared_normals(block: ContactBlock, first: np.ndarray) -> np.ndarray:
    """Normals from object 2 to object 1; zero for a manifold with several normals."""
    normal = towards_shape0(block.columns)
    of_first = np.repeat(normal[first], np.diff([*first.tolist(), block.contact_count]), axis=0)
    differs = (normal != of_first).any(axis=1).astype(np.int64)
    several = np.add.reduceat(differs, first) > 0 if len(first) else np.zeros(0, bool)
    return np.where(several[:, None], 0.0, normal[first].astype(np.float64))


# Genesis' contact data: penetration positive, the normal from B to A, the position at the middle of the overlap.


def genesis_layout(selected: SelectedContacts) -> Layout:
    """A is shape0. Friction and sol_params follow from the file's materials, if those define them."""
    contacts = selected.contacts
    surfaces = Surfaces(contacts)
    body = contacts.shapes.body
    arrays = [
        *frames_and_worlds(selected),
        per_cell(selected, "n_contacts", (), lambda block: block.cell_counts),
        stored(selected, "geom_a", "shape0", "int32"),
        stored(selected, "geom_b", "shape1", "int32"),
        per_contact(selected, "link_a", "int32", (), PAIR, lambda c: body[c["shape0"]]),
        per_contact(selected, "link_b", "int32", (), PAIR, lambda c: body[c["shape1"]]),
        per_contact(selected, "penetration", "float32", (), ("distance",), depth),
        per_contact(selected, "normal", "float32", (3,), ("normal",), towards_shape0),
        per_contact(selected, "pos", contacts.float_type.name, (3,), POINTS, midpoint),
    ]
    left_out = []
    if "friction" in surfaces.names:
        arrays.append(mixed(selected, surfaces, "friction", "friction"))
    else:
        left_out.append(surfaces.absent("friction"))

    def solver_parameters(c: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.concatenate([surfaces.of(name, *_pair(c)) for name in ("solref", "solimp")], axis=1)

    if {"solref", "solimp"} <= set(surfaces.names):
        arrays.append(per_contact(selected, "sol_params", "float32", (7,), PAIR, solver_parameters))
    else:
        left_out.append(surfaces.absent("sol_params"))
    arrays += [texts("geom_name", contacts.shapes.path), texts("link_name", contacts.body_path)]
    return Layout(tuple(arrays), (*left_out, "force: a contact set has no forces"))


# Jacobian of the contacts' distances over joint velocities, as a sparse matrix that SciPy reads.
#
# The points of a contact are taken as fixed to their bodies: d distance / d qvel = normal . (J(point1) - J(point0)).

STRIP = 1 << 16
"""Velocities of all cells in one vectorized step."""


@dataclass(frozen=True)
class MovingJoints:
    """The joint velocities of a scene in motion.

    names: of the nv velocities. affects: bool[S, nv], whether a velocity moves a shape of the contact set. at: of
    frames and worlds of the contact set, [n] each: angular velocities, and velocities of the point at the world's
    origin, float64[n, 2, nv, 3].
    """

    names: Sequence[str]
    affects: np.ndarray
    at: Callable[[np.ndarray, np.ndarray], np.ndarray]


def jacobian_layout(selected: SelectedContacts, joints: MovingJoints) -> Layout:
    """A row a contact, a column a velocity; entries of the velocities that move either shape, in ascending order."""
    entries = _Entries(selected, joints)
    arrays = (
        *frames_and_worlds(selected),
        stored(selected, "distance", "distance", "float32"),
        held("format", np.array(b"csr")),
        held("shape", np.array([selected.contact_count, len(joints.names)], np.int64)),
        starts("indptr", selected.contact_count, PAIR, selected, entries.lengths),
        Array("indices", np.dtype(np.int64), (entries.count,), entries.indices),
        Array("data", np.dtype(np.float64), (entries.count,), entries.values),
        texts("velocity_name", joints.names),
    )
    return Layout(arrays)


class _Entries:
    def __init__(self, selected: SelectedContacts, joints: MovingJoints) -> None:
        self._selected, self._joints = selected, joints
        self._of_pair: dict[tuple[int, int], np.ndarray] = {}

    @property
    def count(self) -> int:
        return sum(int(self.lengths(block).sum()) for block in self._selected.blocks(PAIR))

    def indices(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks(PAIR):
            yield np.concatenate([np.zeros(0, np.int64), *self._columns(block.columns)])

    def values(self) -> Iterator[np.ndarray]:
        for block in self._selected.blocks((*PAIR, *POINTS, "normal")):
            ends = np.cumsum(block.cell_counts)
            cells_in_use = np.flatnonzero(block.cell_counts)
            step = max(1, STRIP // (1 + len(self._joints.names)))
            for first in range(0, len(cells_in_use), step):
                cells = cells_in_use[first : first + step]
                rows = slice(int(ends[cells[0]] - block.cell_counts[cells[0]]), int(ends[cells[-1]]))
                yield self._of_cells(block, rows, cells)

    def _columns(self, contacts: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        pairs = zip(contacts["shape0"].tolist(), contacts["shape1"].tolist(), strict=True)
        return [self._union(*pair) for pair in pairs]

    def lengths(self, block: ContactBlock) -> np.ndarray:
        """int64[n]: number of entries of each contact."""
        return np.array([len(columns) for columns in self._columns(block.columns)], np.int64)

    def _union(self, shape0: int, shape1: int) -> np.ndarray:
        dofs = self._of_pair.get((shape0, shape1))
        if dofs is None:
            affects = self._joints.affects
            dofs = self._of_pair[shape0, shape1] = np.flatnonzero(affects[shape0] | affects[shape1])
        return dofs

    def _of_cells(self, block: ContactBlock, rows: slice, cells: np.ndarray) -> np.ndarray:
        selected, columns = self._selected, {name: values[rows] for name, values in block.columns.items()}
        frame, world = np.divmod(block.first_cell + cells, selected.world_count)
        axes = self._joints.at(np.asarray(selected.frames)[frame], selected.worlds[world])
        of_contact = self._columns(columns)
        contact = np.repeat(np.arange(len(of_contact)), [len(entries) for entries in of_contact])
        column = np.concatenate(of_contact)
        cell = np.repeat(np.arange(len(cells)), block.cell_counts[cells])[contact]
        turn, velocity = axes[cell, 0, column], axes[cell, 1, column]
        total = np.zeros((len(column), 3))
        for side, sign in ((0, -1.0), (1, 1.0)):
            moves = self._joints.affects[columns[f"shape{side}"][contact], column]
            point = columns[f"point{side}"][contact].astype(np.float64)
            total += (sign * moves)[:, None] * (velocity + cross(turn, point))
        return dot(total, columns["normal"][contact].astype(np.float64))


# MuJoCo's `mjContact`: distance without margins, a frame with the normal first, ids of geoms in the compiled scene.

SOLVER = "mu, H, exclude, efc_address: results of the solver"


@dataclass(frozen=True)
class CompiledGeoms:
    """The geoms of a compiled scene. name, type (mjtGeom): by id. of_path: ids by a shape's path."""

    name: Sequence[str]
    type: np.ndarray
    of_path: Mapping[str, int]


def mujoco_layout(selected: SelectedContacts, geoms: CompiledGeoms) -> Layout:
    """Fields of `mjData.contact`, float64 and int32 as in MuJoCo; contacts have the order of the contact set.

    Raises InputError for another material rule than "mujoco", and for a shape that is no geom of the scene.
    """
    contacts = selected.contacts
    if contacts.material_rule != "mujoco":
        rule = contacts.material_rule or "of a file of version 1.0"
        what = f"mjContact requires the material rule 'mujoco', and the contact set has '{rule}'"
        raise InputError(what, contacts.path, "run an MJCF or URDF scene, or choose another layout")
    surfaces, sides = Surfaces(contacts), _Sides(selected, geoms)

    def include_margin(c: Mapping[str, np.ndarray]) -> np.ndarray:
        return surfaces.of("margin0", *_pair(c), "float64") + surfaces.of("margin1", *_pair(c), "float64")

    arrays = (
        *frames_and_worlds(selected),
        per_cell(selected, "ncon", (), lambda block: block.cell_counts),
        per_contact(selected, "dist", "float64", (), (*PAIR, "distance"), lambda c: c["distance"] + include_margin(c)),
        per_contact(selected, "pos", "float64", (3,), POINTS, midpoint),
        per_contact(selected, "frame", "float64", (9,), (*PAIR, "normal"), sides.frames),
        per_contact(selected, "includemargin", "float64", (), PAIR, include_margin),
        mixed(selected, surfaces, "friction", "friction5", "float64", (5,)),
        mixed(selected, surfaces, "solref", "solref", "float64", (2,)),
        mixed(selected, surfaces, "solimp", "solimp", "float64", (5,)),
        mixed(selected, surfaces, "dim", "condim", "int32"),
        per_contact(selected, "geom1", "int32", (), PAIR, lambda c: sides.geoms(c)[:, 0]),
        per_contact(selected, "geom2", "int32", (), PAIR, lambda c: sides.geoms(c)[:, 1]),
        per_contact(selected, "geom", "int32", (2,), PAIR, sides.geoms),
        texts("geom_name", geoms.name),
    )
    return Layout(arrays, (SOLVER, "solreffriction, flex, elem, vert: not in a contact set"))


def _pair(columns: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    return columns["shape0"], columns["shape1"]


class _Sides:
    """MuJoCo's order of a contact's geoms: geom 1 has the lower type, or the lower id of equal types."""

    def __init__(self, selected: SelectedContacts, geoms: CompiledGeoms) -> None:
        paths = selected.contacts.shapes.path
        missing = next((path for path in paths if path not in geoms.of_path), None)
        if missing is not None:
            what = f"'{missing}' is no geom of the scene"
            raise InputError(what, selected.contacts.path, "give the scene of the run")
        self._id = np.array([geoms.of_path[path] for path in paths], np.int32)
        self._order = geoms.type[self._id].astype(np.int64) * len(geoms.type) + self._id

    def _swapped(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        shape0, shape1 = _pair(columns)
        return self._order[shape0] > self._order[shape1]

    def geoms(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """int32[n, 2]: ids of geom 1 and geom 2."""
        ids = self._id[np.stack(_pair(columns), axis=1)]
        return np.where(self._swapped(columns)[:, None], ids[:, ::-1], ids)

    def frames(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """float64[n, 9]: the axes x, y, z in world coordinates; x is the normal from geom 1 to geom 2."""
        normal = columns["normal"].astype(np.float64)
        return frames_about(np.where(self._swapped(columns)[:, None], 0.0 - normal, normal)).reshape(-1, 9)


def frames_about(normal: np.ndarray) -> np.ndarray:
    """float64[n, 3, 3]: frames with rows x, along the normal [n, 3], and y and z of MuJoCo's mju_makeFrame.

    y is the component of the world's y axis orthogonal to the normal; of its z axis if the normal is within 60 degrees
    of y.
    """
    x = normal / np.linalg.norm(normal, axis=1, keepdims=True)
    level = (np.abs(x[:, 1]) < 0.5)[:, None]
    y = np.where(level, [0.0, 1.0, 0.0], [0.0, 0.0, 1.0])
    y = y - x * np.einsum("ni,ni->n", x, y)[:, None]
    y /= np.linalg.norm(y, axis=1, keepdims=True)
    return np.stack([x, y, np.cross(x, y)], axis=1)


# Newton's `Contacts`: points and offsets in body frames, the normal from shape 0 to shape 1.
#
# Fields are those of Newton 1.8. Newton's point of a sphere is its centre, with the radius in margin and offset; here
# every point is on the surface, with the authored margin. The separation
# dot(normal, point1 - point0) - margin0 - margin1, and point + offset on the inflated surface, are equal in both.
# `soft_contact_*`: body_pos is the point of the shape's surface in its body frame, the normal points to the particle.


def newton_layout(selected: SelectedContacts) -> Layout:
    """The arrays `rigid_contact_*`, float32 and int32 as in Newton; offsets only if no margin is set."""
    contacts = selected.contacts
    surfaces = Surfaces(contacts)

    arrays = [
        *frames_and_worlds(selected),
        per_cell(selected, "rigid_contact_count", (), lambda block: block.cell_counts),
        stored(selected, "rigid_contact_shape0", "shape0", "int32"),
        stored(selected, "rigid_contact_shape1", "shape1", "int32"),
        stored(selected, "rigid_contact_point0", "offset0", "float32", (3,)),
        stored(selected, "rigid_contact_point1", "offset1", "float32", (3,)),
        stored(selected, "rigid_contact_normal", "normal", "float32", (3,)),
        mixed(selected, surfaces, "rigid_contact_margin0", "margin0"),
        mixed(selected, surfaces, "rigid_contact_margin1", "margin1"),
    ]
    left_out = []
    margins = (contacts.shapes.margin, np.nan_to_num(contacts.forced.margin))
    offsets = ("rigid_contact_offset0", "rigid_contact_offset1")
    if any((margin != 0.0).any() for margin in margins):
        left_out.append(f"{', '.join(offsets)}: margins in body frames, which require the bodies' poses")
    else:
        zeros = (lambda c: np.zeros((len(c["shape0"]), 3), np.float32),)
        arrays += [per_contact(selected, name, "float32", (3,), ("shape0",), *zeros) for name in offsets]
    if "soft_contacts" in contacts.groups:
        soft, without = _soft_arrays(selected)
        arrays += soft
        left_out += without
    arrays += [
        texts("shape_label", contacts.shapes.path),
        held("shape_body", contacts.shapes.body),
        texts("body_label", contacts.body_path),
    ]
    return Layout(tuple(arrays), tuple(left_out))


def _soft_arrays(selected: SelectedContacts) -> tuple[list[Array], list[str]]:
    """The arrays `soft_contact_*` of contacts of single particles, and what is left out."""
    every, rows = (rows_of(selected, "soft_contacts", kind) for kind in (None, SINGLE_PARTICLE))

    arrays = [
        per_cell(rows, "soft_contact_count", (), lambda block: block.cell_counts),
        starts("soft_contact_cell_start", rows.cell_count, (), rows, lambda block: block.cell_counts),
        per_contact(rows, "soft_contact_particle", "int32", (), ("indices",), lambda c: c["indices"][:, 0]),
        stored(rows, "soft_contact_shape", "shape", "int32"),
        stored(rows, "soft_contact_body_pos", "point_body", "float32", (3,)),
        stored(rows, "soft_contact_normal", "normal", "float32", (3,)),
    ]
    left_out = [
        "soft_contact_body_vel, soft_contact_tids: velocities and threads, which a contact set does not contain"
    ]
    unhandled = every.contact_count - rows.contact_count
    if unhandled:
        left_out.append(f"{unhandled} soft contacts of edges and faces, which have no particle")
    return arrays, left_out


# RaiSim's contacts: a frame at each contact; its z axis is the normal from object B to object A.


def raisim_layout(selected: SelectedContacts) -> Layout:
    """A is shape0. Each contact is listed once; RaiSim lists it for each of its two objects."""
    contacts = selected.contacts
    body = contacts.shapes.body
    arrays = (
        *frames_and_worlds(selected),
        stored(selected, "object_a", "shape0", "int32"),
        stored(selected, "object_b", "shape1", "int32"),
        per_contact(selected, "body_a", "int32", (), PAIR, lambda c: body[c["shape0"]]),
        per_contact(selected, "body_b", "int32", (), PAIR, lambda c: body[c["shape1"]]),
        per_contact(selected, "position", "float64", (3,), POINTS, midpoint),
        per_contact(selected, "normal", "float64", (3,), ("normal",), towards_shape0),
        per_contact(selected, "contact_frame", "float64", (3, 3), ("normal",), contact_frames),
        per_contact(selected, "depth", "float64", (), ("distance",), depth),
        texts("object_name", contacts.shapes.path),
        texts("body_name", contacts.body_path),
    )
    return Layout(arrays, ("impulse, inverse inertia: not in a contact set",))


def contact_frames(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """float64[n, 3, 3]: the rows are the frame's axes in the world: the matrix transforms world vectors to the frame.

    z is the normal towards A; x is horizontal, +x of the world for a vertical z; y is z cross x.
    """
    z = towards_shape0(columns).astype(np.float64)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    x = np.stack([z[:, 1], -z[:, 0], np.zeros(len(z))], axis=1)
    x[(z[:, 0] == 0.0) & (z[:, 1] == 0.0)] = (1.0, 0.0, 0.0)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return np.stack([x, np.cross(z, x), z], axis=1)


# LeRobot's data sets, version v3.0: a row for each frame, features of one size; those of size 1 are plain values.
#
# The layout is that of `lerobot.datasets` 0.4 (`utils.py`, `lerobot_dataset.py`). Its reader finds episode k in row k
# of the table of episodes, and wants the episodes 0 to total_episodes - 1.

FILES_PER_CHUNK = 1000
"""LeRobot's DEFAULT_CHUNK_SIZE."""
DATA_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
RATE_TOLERANCE = 1e-3
"""Relative difference of frame rates that are equal."""
QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}
ONE_JOB = "choose a job by --job"


class LeRobotWriter:
    """A data set in a folder, which `close` completes. names: of the components of a feature."""

    def __init__(self, folder: str, names: Mapping[str, Sequence[str]]) -> None:
        self._folder, self._names = folder, names
        self._pa = require_pyarrow("--to lerobot")
        self._parts = ParquetParts(self._path_of)
        self._tasks: dict[str, int] = {}
        self._first, self._rate, self._frames = "", 0.0, 0
        self._features: dict[str, Any] = {}
        self._statistics: dict[str, dict[str, np.ndarray]] = {}
        self._episodes: list[dict[str, Any]] = []

    def add(
        self,
        task: str,
        time: np.ndarray,
        rows: Iterable[Mapping[str, np.ndarray]],
        about: Mapping[str, Any],
        label: str,
    ) -> None:
        """Appends an episode.

        Args:
            time: float64[n] [s] of its frames. rows: each feature [k] or [k, width] of some frames, in order.
            about: further columns of its row in the table of episodes. label: of the episode in messages.
        Raises InputError for other features or another frame rate than those of the first episode.
        """
        self._first = self._first or label
        step = float(np.median(np.diff(time))) if len(time) > 1 else 0.0
        rate = 1.0 / step if step > 0.0 else 0.0
        if rate and self._rate and abs(rate / self._rate - 1.0) > RATE_TOLERANCE:
            what = f"has {rate:g} frames per second, and {self._first} has {self._rate:g}"
            raise InputError(what, label, f"a LeRobot data set has one rate: {ONE_JOB}")
        self._rate = self._rate or rate
        chunk, file = divmod(self._parts.number, FILES_PER_CHUNK)
        episode, first, done = len(self._episodes), self._frames, 0
        whole = {"episode_index": episode, "task_index": self._tasks.setdefault(task, len(self._tasks))}
        for values in rows:
            frames = done + np.arange(len(next(iter(values.values()))))
            place = {"index": first + frames, "frame_index": frames, "timestamp": np.float32(time[frames] - time[0])}
            place |= {name: np.full(len(frames), number, np.int64) for name, number in whole.items()}
            self._append({**place, **values}, label)
            done += len(frames)
        self._parts.end_episode()
        self._frames += done
        places = {"data/chunk_index": chunk, "data/file_index": file}
        places |= {"dataset_from_index": first, "dataset_to_index": self._frames}
        places |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
        self._episodes.append({"episode_index": episode, "tasks": [task], "length": done, **places, **about})

    def _write(self, name: str, table: Any) -> None:
        path = os.path.join(self._folder, *name.split("/"))
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._pa.parquet.write_table(table, path, compression="zstd")

    def _path_of(self, number: int) -> str:
        chunk, file = divmod(number, FILES_PER_CHUNK)
        return os.path.join(self._folder, DATA_PATH.format(chunk_index=chunk, file_index=file))

    def _append(self, features: Mapping[str, np.ndarray], label: str) -> None:
        columns, described = {}, dict[str, Any]()
        for name, values in features.items():
            flat, width = self._pa.array(values.reshape(-1)), values.size // len(values)
            columns[name] = flat if width == 1 else self._pa.FixedSizeListArray.from_arrays(flat, width)
            described[name] = {"dtype": values.dtype.name, "shape": [width], "names": self._names.get(name)}
            new = statistics_of(values)
            self._statistics[name] = joined_statistics(self._statistics[name], new) if name in self._statistics else new
        self._features = self._features or described
        if described != self._features:
            every = {**described, **self._features}
            names = [name for name in every if described.get(name) != self._features.get(name)]
            raise InputError(f"differs from {self._first} in the columns {', '.join(names)}", label, ONE_JOB)
        self._parts.append(self._pa.RecordBatch.from_pydict(columns))

    def close(self, shapes: Mapping[str, Any]) -> None:
        """Completes the data and writes meta. shapes: columns of meta/shapes.parquet."""
        self._parts.close()
        self._write("meta/shapes.parquet", self._pa.table(dict(shapes)))
        self._write("meta/episodes/chunk-000/file-000.parquet", self._pa.Table.from_pylist(self._episodes))
        # As pandas writes it, with the task as its index: LeRobot reads it by pandas.
        tasks = self._pa.table({"task_index": list(self._tasks.values()), "task": list(self._tasks)})
        kinds = (("task_index", "int64"), ("task", "unicode"))
        about = {
            "index_columns": ["task"],
            "column_indexes": [],
            "columns": [{"name": n, "field_name": n, "pandas_type": kind, "numpy_type": kind} for n, kind in kinds],
        }
        self._write("meta/tasks.parquet", tasks.replace_schema_metadata({"pandas": json.dumps(about)}))
        stats = {name: {key: value.tolist() for key, value in of.items()} for name, of in self._statistics.items()}
        for name, value in (("info", self._info()), ("stats", stats)):
            with open(os.path.join(self._folder, "meta", f"{name}.json"), "w", encoding="utf-8") as file:
                json.dump(value, file, indent=4)

    def _info(self) -> dict[str, Any]:
        whole, episodes = round(self._rate), len(self._episodes)
        near = whole and abs(self._rate / whole - 1.0) <= RATE_TOLERANCE
        return {
            **{"codebase_version": "v3.0", "robot_type": None, "fps": whole if near else self._rate},
            **{"total_episodes": episodes, "total_frames": self._frames, "total_tasks": len(self._tasks)},
            **{"chunks_size": FILES_PER_CHUNK, "data_files_size_in_mb": 100, "video_files_size_in_mb": 200},
            **{"splits": {"train": f"0:{episodes}"}, "data_path": DATA_PATH, "video_path": None},
            "features": self._features,
        }


def statistics_of(values: np.ndarray) -> dict[str, np.ndarray]:
    """LeRobot's statistics of a feature, [width] each: of the rows of `values`, [n] or [n, width], n > 0."""
    rows = values.reshape(len(values), -1).astype(np.float64)
    figures = {name: getattr(rows, name)(axis=0) for name in ("min", "max", "mean", "std")}
    quantiles = np.quantile(rows, list(QUANTILES.values()), axis=0)
    return {**figures, **dict(zip(QUANTILES, quantiles, strict=True)), "count": np.array([len(rows)])}


def joined_statistics(first: Mapping[str, np.ndarray], second: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Statistics of the rows of both; quantiles are weighted means, as of LeRobot's `aggregate_stats`."""
    total = first["count"] + second["count"]
    share = second["count"] / total
    means = {name: first[name] + (second[name] - first[name]) * share for name in ("mean", *QUANTILES)}
    variance = first["std"] ** 2 * (1.0 - share) + second["std"] ** 2 * share
    variance += (second["mean"] - first["mean"]) ** 2 * share * (1.0 - share)
    ends = {"min": np.minimum(first["min"], second["min"]), "max": np.maximum(first["max"], second["max"])}
    return {**means, **ends, "std": np.sqrt(variance), "count": total}
