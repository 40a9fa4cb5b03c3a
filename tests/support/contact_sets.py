"""Contact sets made up, edited and written; their groups; touches and intervals in plain Python."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

from collidecli.scene.contact_blocks import ContactBlock, GroupRows, groups_of_cells
from collidecli.scene.contact_columns import (
    GROUPS,
    GROUPS_BY_NAME,
    OF_STEPS,
    RIGID_COLUMNS,
    Column,
    ContactGroup,
)
from collidecli.scene.materials import Material, Materials
from collidecli.scene.model import Bodies, Model, PairFilter, Shapes
from collidecli.scene.particles import CLOTH, SOFT, Particles
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.contact_sets.writer import ContactWriter

ATTRIBUTES = {
    "scene": "made_up.xml",
    "scene_sha256": "ab" * 32,
    "trajectory_sha256": "cd" * 32,
    "config": json.dumps({"gap_rule": "max", "narrow_phase": "gjk"}),
}


PARTICLES = Particles(
    path=("/cloth", "gel"),
    kind=(CLOTH, SOFT),
    template=np.array([-1, 0], np.int32),
    first=np.array([0, 6, 9]),
    position=np.zeros((9, 3)),
    radius=np.zeros(9),
    active=np.ones(9, bool),
    body=np.full(9, -1, np.int32),
    local=np.zeros((9, 3)),
    object_class=np.zeros(2, np.int32),
    shape_class=np.zeros(5, np.int32),
    class_table=np.ones((1, 1), bool),
)
"""A cloth of every world and a soft body of template 0, without elements."""


def small_model(world_count: int = 3, forced: bool = False) -> Model:
    """A global plane and four moving shapes of template 0, and PARTICLES; pair (1, 2) is forced
    with a margin of 0.5 if asked.
    """
    shape_count = 5
    body_count = 4
    pairs = np.array([[1, 2], [2, 4]], np.int32) if forced else np.zeros((0, 2), np.int32)
    return Model(
        Bodies(
            tuple(f"body{i}" for i in range(body_count)),
            np.zeros(body_count, np.int32),
            np.zeros((body_count, 7)),
        ),
        Shapes(
            path=("ground", "ball", "bøx", "pin", "egg"),
            type=np.array(
                [
                    ShapeType.PLANE,
                    ShapeType.SPHERE,
                    ShapeType.BOX,
                    ShapeType.CAPSULE,
                    ShapeType.ELLIPSOID,
                ]
            ),
            body=np.array([-1, 0, 1, 2, 3], np.int32),
            template=np.array([-1, 0, 0, 0, 0], np.int32),
            pose=np.zeros((shape_count, 7)),
            size=np.ones((shape_count, 3)),
            margin=np.array([0.0, 0.01, 0.02, 0.0, 0.125]),
            gap=np.array([0.1, 0.2, 0.05, 0.1, 0.1]),
            material=Materials.of([Material(friction=1.0)] * shape_count),
            hull=np.full(shape_count, -1, np.int32),
            mesh=np.full(shape_count, -1, np.int32),
            heightfield=np.full(shape_count, -1, np.int32),
            sdf=np.full(shape_count, -1, np.int32),
        ),
        PairFilter(
            np.zeros(shape_count, np.int32),
            np.ones((1, 1), bool),
            np.zeros((0, 2), np.int32),
            (),
            pairs,
        ),
        np.zeros(world_count, np.int32),
        forced_gap=np.array([np.nan, 0.3]) if forced else np.zeros(0),
        forced_margin=np.array([0.5, np.nan]) if forced else np.zeros(0),
        particles=PARTICLES,
    )


def pair_margin(model: Model, shape0: int, shape1: int) -> float:
    forced = [tuple(pair) for pair in model.pair_filter.forced]
    if (shape0, shape1) in forced and not np.isnan(
        own := model.forced_margin[forced.index((shape0, shape1))]
    ):
        return float(own)
    return float(model.shapes.margin[shape0] + model.shapes.margin[shape1])


def made_up_block(
    model: Model,
    frame_count: int,
    contacts_per_cell: int = 8,
    float_type: str = "float64",
    seed: int = 5,
) -> ContactBlock:
    """All cells in one block; up to `contacts_per_cell` in each, and some with none."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, contacts_per_cell + 1, frame_count * model.world_count)
    shape_count = len(model.shapes)
    every_pair = [(a, b) for a in range(shape_count) for b in range(a + 1, shape_count)]
    keys = [
        (*every_pair[p], f0, f1)
        for p in range(len(every_pair))
        for f0 in (-1, 3)
        for f1 in (-1, 0, 7)
    ]
    chosen = [
        keys[i] for count in counts for i in sorted(rng.choice(len(keys), count, replace=False))
    ]
    shape0, shape1, feature0, feature1 = np.array(chosen, np.int32).reshape(-1, 4).T
    n = len(shape0)

    normal = rng.normal(size=(n, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    distance = rng.uniform(-0.2, 0.05, n)
    margin = np.array(
        [pair_margin(model, int(a), int(b)) for a, b in zip(shape0, shape1, strict=True)]
    )
    point0 = rng.normal(size=(n, 3))
    point1 = point0 + normal * (distance + margin)[:, None]
    columns = {
        "shape0": shape0,
        "shape1": shape1,
        "distance": distance,
        "normal": normal,
        "point0": point0,
        "point1": point1,
        "offset0": rng.normal(size=(n, 3)),
        "offset1": rng.normal(size=(n, 3)),
        "feature0": feature0,
        "feature1": feature1,
        "kind": rng.integers(0, 3, n),
    }
    types = {column.name: column.dtype_for(np.dtype(float_type)) for column in RIGID_COLUMNS}
    return ContactBlock(
        0, counts.astype(np.int64), {name: columns[name].astype(types[name]) for name in types}
    )


def split(block: ContactBlock, cells_per_block: int) -> list[ContactBlock]:
    """The same contacts in blocks of so many cells."""
    if cells_per_block >= len(block.cell_counts):
        return [block]
    start = np.concatenate([[0], np.cumsum(block.cell_counts)])
    blocks = []
    for first in range(0, len(block.cell_counts), cells_per_block):
        last = min(first + cells_per_block, len(block.cell_counts))
        columns = {
            name: values[start[first] : start[last]] for name, values in block.columns.items()
        }
        groups = groups_of_cells(block.groups, np.arange(first, last))
        blocks.append(
            ContactBlock(block.first_cell + first, block.cell_counts[first:last], columns, groups)
        )
    return blocks


def write_contact_set(
    path: Path,
    model: Model,
    block: ContactBlock,
    cells_per_block: int = 10**9,
    timing: dict | None = None,
    **options,
) -> None:
    frame_count = len(block.cell_counts) // model.world_count
    time = np.arange(frame_count) * 0.01
    step = np.arange(frame_count) * 5
    float_type = block.columns["point0"].dtype
    options.setdefault("groups", [GROUPS_BY_NAME[name] for name in block.groups])
    with ContactWriter(
        path, model, frame_count, time, step, float_type, ATTRIBUTES, **options
    ) as writer:
        for part in split(block, cells_per_block):
            writer.append(part)
        writer.end_contacts()
        writer.write_timing(timing or {})
        writer.finish()


def documented_hash(file: h5py.File, block_rows: int | None = None) -> tuple[str, bytes]:
    """Content hash and hashes of blocks by the definition, with h5py and hashlib alone; of format 1
    without block_rows.
    """
    lines = {}
    blocks = {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(item, h5py.Dataset) or name.split("/")[0] in (
            "timing",
            block_rows and "content_hash",
        ):
            return
        values = item[()]
        key = f"/{name}".encode()
        parts = (
            [values[k : k + block_rows] for k in range(0, len(values), block_rows)]
            if block_rows
            else [values]
        )
        is_text = h5py.check_string_dtype(item.dtype) is not None
        hashed = [
            hashlib.sha256(
                b"".join(v + b"\0" for v in part) if is_text else part.tobytes()
            ).digest()
            for part in parts
        ]
        blocks[key] = b"".join(hashed)
        digest = hashlib.sha256(blocks[key]).hexdigest() if block_rows else hashed[0].hex()
        shape = ",".join(map(str, item.shape))
        lines[key] = (
            f"/{name}\t{'utf8' if is_text else item.dtype.str}\t{shape}\t{digest}\n".encode()
        )

    file.visititems(visit)
    content = hashlib.sha256(b"".join(lines[key] for key in sorted(lines))).hexdigest()
    return content, b"".join(blocks[key] for key in sorted(blocks))


OF_CELLS = tuple(group for group in GROUPS if group.name not in OF_STEPS)
"""The groups of contacts in a frame."""


def with_groups(
    block: ContactBlock, model: Model, seed: int = 11, groups: tuple[ContactGroup, ...] = OF_CELLS
):
    """The block with rows of `groups`; some cells have none of a group."""
    made = made_up_groups(model, len(block.cell_counts), block.columns["point0"].dtype, seed)
    return replace(block, groups={group.name: made[group.name] for group in groups})


def block_with_groups(
    model: Model,
    frame_count: int,
    float_type: str = "float64",
    seed: int = 5,
    groups: tuple[ContactGroup, ...] = OF_CELLS,
) -> ContactBlock:
    """All cells in one block, with rows of `groups`."""
    return with_groups(
        made_up_block(model, frame_count, float_type=float_type, seed=seed), model, seed, groups
    )


def _soft_keys(cloth: int, total: int, shape_count: int) -> np.ndarray:
    """Keys of contacts of particles, and of edges of the first `cloth` of them, with shapes."""
    soft = np.array(
        [(0, p, -1, -1, s, f) for p in range(total) for s in range(shape_count) for f in (-1, 2)]
    )
    triples = [(1, p, p + 1, -1, s, 4) for p in range(cloth - 1) for s in range(shape_count)]
    return np.concatenate([soft, triples])


def _self_keys(cloth: int) -> np.ndarray:
    """Keys of contacts of the particles and edges of a cloth with a face."""
    faces = [(0, p, cloth, cloth + 1, cloth + 2) for p in range(cloth)]
    return np.array([*faces, *((1, p, p + 1, cloth + 1, cloth + 2) for p in range(cloth - 1))])


def _between_frames(
    model: Model,
    cell_count: int,
    seed: int,
    pairs: np.ndarray,
    soft: np.ndarray,
    self_keys: np.ndarray,
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, list[np.ndarray]]]:
    """Columns of the tables of steps, and the keys of each cell."""

    def of_steps(rng: np.random.Generator, keys: np.ndarray, most: int) -> list[np.ndarray]:
        """As `_keys`, for the cells but those of the last frame, which have no step after them."""
        found = _keys(rng, max(0, cell_count - model.world_count), keys, most)
        return found + [keys[:0]] * (cell_count - len(found))

    given = {}
    swept = of_steps(np.random.default_rng(seed + 1), pairs, 2)
    pair = np.concatenate(swept)
    given["sweep"] = {"shape0": pair[:, 0], "shape1": pair[:, 1]} | _swept(
        np.random.default_rng(seed + 2), len(pair)
    )
    of_soft, of_selves = (np.random.default_rng(seed + more) for more in (3, 4))
    soft_swept = of_steps(of_soft, soft[soft[:, 5] >= 0], 4)
    key = np.concatenate(soft_swept)
    given["soft_sweep"] = {"kind": key[:, 0], "indices": key[:, 1:4], "shape": key[:, 4]} | _swept(
        of_soft, len(key)
    )
    self_swept = of_steps(of_selves, self_keys, 3)
    key = np.concatenate(self_swept)
    given["self_sweep"] = {"kind": key[:, 0], "indices": key[:, 1:5]} | _swept(
        of_selves, len(key), least=1.0
    )
    return given, {"sweep": swept, "soft_sweep": soft_swept, "self_sweep": self_swept}


def made_up_groups(
    model: Model, cell_count: int, float_type: np.dtype, seed: int
) -> dict[str, GroupRows]:
    rng = np.random.default_rng(seed)
    shape_count = len(model.shapes)
    pairs = np.array([(a, b) for a in range(shape_count) for b in range(a + 1, shape_count)])
    patches = _keys(rng, cell_count, pairs, 3)
    face_counts = rng.integers(0, 4, sum(map(len, patches)))
    faces_of = np.split(face_counts, np.cumsum([len(rows) for rows in patches])[:-1])
    total = int(model.particles.first[-1])
    cloth, _ = np.diff(model.particles.first)
    soft = _soft_keys(cloth, total, shape_count)
    self_keys = _self_keys(cloth)
    soft_rows = _keys(rng, cell_count, soft, 5)
    self_rows = _keys(rng, cell_count, self_keys, 2)
    touches = _keys(np.random.default_rng(seed), cell_count, pairs, 3)
    candidates = _keys(np.random.default_rng(seed + 1), cell_count, pairs, 4)
    shapes = np.concatenate(patches)
    soft_key = np.concatenate(soft_rows)
    self_key = np.concatenate(self_rows)
    given = {
        "hydro_patches": {
            "shape0": shapes[:, 0],
            "shape1": shapes[:, 1],
            "face_count": face_counts,
        },
        "hydro_faces": {"patch": np.repeat(np.arange(len(shapes)), face_counts)},
        "soft_contacts": {
            "kind": soft_key[:, 0],
            "indices": soft_key[:, 1:4],
            "shape": soft_key[:, 4],
            "feature": soft_key[:, 5],
        },
        "self_contacts": {"kind": self_key[:, 0], "indices": self_key[:, 1:5]},
        "touches": dict(zip(("shape0", "shape1"), np.concatenate(touches).T, strict=True)),
        "candidates": dict(zip(("shape0", "shape1"), np.concatenate(candidates).T, strict=True)),
    }

    given_steps, steps = _between_frames(model, cell_count, seed, pairs, soft, self_keys)
    given |= given_steps
    rows = {
        "hydro_patches": patches,
        "soft_contacts": soft_rows,
        "self_contacts": self_rows,
        "touches": touches,
        "candidates": candidates,
    }
    rows |= steps
    counts = {name: list(map(len, cells)) for name, cells in rows.items()}
    counts["hydro_faces"] = [int(cell.sum()) for cell in faces_of]
    return {
        group.name: _rows(
            rng, group, np.array(counts[group.name], np.int64), given[group.name], float_type
        )
        for group in GROUPS
    }


def _swept(rng: np.random.Generator, count: int, least: float = -np.inf) -> dict[str, np.ndarray]:
    """Columns of rows of steps: some are in contact at the begin of the step, some at its end, some
    are undecided.

    least: of the least distances [m].
    """
    times = np.sort(np.clip(rng.uniform(-0.5, 1.5, (count, 2)), 0.0, 1.0), axis=1)
    status = rng.integers(1, 3, count)
    found = np.maximum(rng.normal(size=count), least)
    tunnel = (status == 1) & (times[:, 0] > 0.0) & (times[:, 1] < 1.0)
    return {
        "status": status, "tunnel": tunnel, "enter": times[:, 0],
        "leave": times[:, 1], "least": found, "least_bound": found - rng.uniform(0.0, 1.0, count),
    }  # fmt: skip


def _keys(
    rng: np.random.Generator, cell_count: int, keys: np.ndarray, most: int
) -> list[np.ndarray]:
    """Up to `most` different rows of `keys` for each cell, in ascending order."""
    keys = keys[np.lexsort(keys.T[::-1])]
    return [
        keys[np.sort(rng.choice(len(keys), rng.integers(0, most + 1), replace=False))]
        for _ in range(cell_count)
    ]


def _rows(
    rng: np.random.Generator,
    group: ContactGroup,
    counts: np.ndarray,
    given: dict[str, np.ndarray],
    float_type: np.dtype,
) -> GroupRows:
    count = int(counts.sum())

    def values(column: Column, rows: int) -> np.ndarray:
        found = rng.normal(size=(rows, column.width))
        if column.name == "normal":
            found /= np.linalg.norm(found, axis=1, keepdims=True)
        elif column.name == "barycentric":
            found = np.abs(found) / np.abs(found).sum(axis=1, keepdims=True)
        elif column.name in ("area", "pressure", "gradient"):
            found = np.abs(found)
        return (found if column.width > 1 else found[:, 0]).astype(column.dtype_for(float_type))

    # weights of as many particles as the kind has
    if group.name in ("soft_contacts", "soft_sweep"):
        held = (given["indices"] >= 0) * rng.uniform(0.1, 1.0, (count, 3))
        given = {**given, "barycentric": held / held.sum(axis=1, keepdims=True)}
    columns = {
        column.name: (
            given[column.name].astype(column.dtype_for(float_type))
            if column.name in given
            else values(column, count)
        )
        for column in group.columns
    }
    lists = {}
    for held in group.lists:
        lengths = rng.integers(3, 7, count)
        lists[held.column.name] = lengths, values(held.column, int(lengths.sum()))
    return GroupRows(counts, columns, lists)


def changed(block, group, column, row, amount):
    """The block with an amount added to one row of a column of a group."""
    rows = block.groups[group]
    values = rows.columns[column].copy()
    values[row] += amount
    other = replace(rows, columns={**rows.columns, column: values})
    return replace(block, groups={**block.groups, group: other})


STEP = 5
TIME_STEP = 0.01
COLUMNS = (
    "shape0",
    "shape1",
    "distance",
    "normal",
    "point0",
    "point1",
    "offset0",
    "offset1",
    "feature0",
    "feature1",
)
PAIRED = (
    ("shape0", "shape1"),
    ("point0", "point1"),
    ("offset0", "offset1"),
    ("feature0", "feature1"),
)


@dataclass
class Edited:
    """cell: int64[n]; columns: by name. The rest is the model and the frames. Rows are sorted when
    it is written."""

    cell: np.ndarray
    columns: dict[str, np.ndarray]
    path: list[str]
    type: list[str]
    body: np.ndarray
    margin: np.ndarray
    gap: np.ndarray
    worlds: int
    step: np.ndarray
    time: np.ndarray
    version: tuple[int, int] = (1, 0)
    optional: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def frames(self) -> int:
        return len(self.step)

    def copy(self) -> Edited:
        columns = {name: values.copy() for name, values in self.columns.items()}
        return replace(
            self, cell=self.cell.copy(), columns=columns, path=list(self.path), type=list(self.type)
        )

    def rows(self, wanted: np.ndarray) -> Edited:
        columns = {name: values[wanted] for name, values in self.columns.items()}
        return replace(self, cell=self.cell[wanted], columns=columns)

    def with_shape_order(self, order: list[int]) -> Edited:
        """Shape order[k] comes k-th; contacts whose shapes change places have 0 and 1 exchanged."""
        new = self.copy()
        place = np.argsort(order).astype(np.int32)
        new.path = [self.path[k] for k in order]
        new.type = [self.type[k] for k in order]
        new.body = self.body[order]
        new.margin = self.margin[order]
        new.gap = self.gap[order]
        for name in ("shape0", "shape1"):
            new.columns[name] = place[self.columns[name]]
        for row in np.flatnonzero(new.columns["shape0"] > new.columns["shape1"]):
            for one, other in PAIRED:
                new.columns[one][row], new.columns[other][row] = (
                    new.columns[other][row].copy(),
                    new.columns[one][row].copy(),
                )
            new.columns["normal"][row] *= -1.0
        return new

    def write(self, path: Path, sha: str = "", packed: int = 0) -> str:
        """Writes in canonical order; returns the path. packed: rows of a chunk, 0 packs nothing."""
        keys = [self.columns[name] for name in ("feature1", "feature0", "shape1", "shape0")]
        order = np.lexsort((*keys, self.cell))
        counts = np.bincount(self.cell, minlength=self.frames * self.worlds)
        with h5py.File(path, "w") as file:
            sources = {
                "scene": "s",
                "scene_sha256": "5" * 64,
                "trajectory_sha256": "",
                "config": '{"frames": ""}',
            }
            for name, value in {**sources, "creator": "a test"}.items():
                file.attrs[name] = value
            file.attrs["format"] = "collide-contacts"
            file.attrs["format_version"] = np.array(self.version, np.int32)
            file.attrs["content_sha256"] = (
                sha or hashlib.sha256(str(path).encode()).hexdigest()
            )  # no two files are equal by it
            file.attrs["complete"] = 1
            file.create_group("model").attrs.update({"gap_rule": "max", "up_axis": "Z"})
            strings = {"/model/shape/path": self.path, "/model/shape/type": self.type}
            strings["/model/body/path"] = [
                f"body{n}" for n in range(int(self.body.max(initial=-1)) + 1)
            ]
            for name, values in strings.items():
                file.create_dataset(
                    name, (len(values),), h5py.string_dtype(), data=np.array(values, object)
                )
            file["/model/shape/body"] = self.body.astype(np.int32)
            file["/model/shape/template"] = np.where(self.body < 0, -1, 0).astype(np.int32)
            file["/model/shape/margin"] = self.margin.astype(np.float32)
            file["/model/shape/gap"] = self.gap.astype(np.float32)
            file["/model/world/template"] = np.zeros(self.worlds, np.int32)
            file["/time/step"] = self.step
            file["/time/time"] = self.time
            file["/rigid_contacts/cell_start"] = np.concatenate([[0], np.cumsum(counts)]).astype(
                np.int64
            )
            for name, values in (self.columns | self.optional).items():
                options = {
                    "chunks": (packed, *values.shape[1:]),
                    "maxshape": (None, *values.shape[1:]),
                }
                options |= {"shuffle": True, "compression": "gzip", "fletcher32": True}
                held = values[order]
                file.create_dataset(
                    f"/rigid_contacts/{name}", data=held, **(options if packed else {})
                )
        return str(path)


def _edited(
    worlds: int,
    cell: np.ndarray,
    columns: dict[str, np.ndarray],
    step: np.ndarray,
    time: np.ndarray,
) -> Edited:
    """Contacts of the shapes of `small_model`: a static plane, and four bodies of one shape."""
    shapes = small_model(worlds).shapes
    types = ["plane", "sphere", "box", "capsule", "ellipsoid"]
    body, margin, gap = (np.array(values) for values in (shapes.body, shapes.margin, shapes.gap))
    return Edited(cell, columns, list(shapes.path), types, body, margin, gap, worlds, step, time)


def made_up(frames: int = 6, worlds: int = 3, contacts_per_cell: int = 6, seed: int = 5) -> Edited:
    """Contacts of `small_model`, no two pairs of a cell nearer than chance has it."""
    block = made_up_block(small_model(worlds), frames, contacts_per_cell, seed=seed)
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    steps = np.arange(frames, dtype=np.int64)
    return _edited(worlds, cell, dict(block.columns), steps * STEP, steps * TIME_STEP)


class Touch(NamedTuple):
    frame: int
    world: int
    shape0: int
    shape1: int
    distance: float


def touching_set(
    rows: Sequence[Touch], frames: int, worlds: int, time: Sequence[float] | None = None
) -> Edited:
    """A set with these contacts."""
    n = len(rows)
    columns = {
        name: np.array([getattr(row, name) for row in rows], np.int32)
        for name in ("shape0", "shape1")
    }
    columns["distance"] = np.array([row.distance for row in rows], np.float32)
    columns["normal"] = np.tile(np.array([0, 0, 1], np.float32), (n, 1))
    for name, kind in (("point0", "f8"), ("point1", "f8"), ("offset0", "f4"), ("offset1", "f4")):
        columns[name] = np.zeros((n, 3), kind)
    # Contacts of one pair in one cell must differ in their features.
    columns["feature0"] = np.arange(n, dtype=np.int32)
    columns["feature1"] = np.full(n, -1, np.int32)
    columns["kind"] = np.zeros(n, np.uint8)
    cell = np.array([row.frame * worlds + row.world for row in rows], np.int64)
    steps = np.arange(frames, dtype=np.int64)
    return _edited(
        worlds, cell, columns, steps, steps * 0.25 if time is None else np.array(time, float)
    )


def intervals(
    rows: Iterable[Touch],
    frames: range,
    time: Sequence[float],
    continues: Callable[[int, int], bool],
    name: Callable[[int], str],
    threshold: float = 0.0,
) -> list[dict]:
    """What `collide events` should say of each interval, by begin, world and pair of names.

    frames: those looked at. continues: of two places in `frames`, the last touch and the next.
    name: of a shape.
    """
    met: dict[tuple, dict[int, list[float]]] = {}
    for row in rows:
        if row.frame in frames and np.float32(row.distance) <= np.float32(threshold):
            pair = tuple(sorted((name(row.shape0), name(row.shape1))))
            places = met.setdefault((row.world, pair), {})
            places.setdefault(frames.index(row.frame), []).append(float(np.float32(row.distance)))
    found = []
    for (world, pair), places in met.items():
        runs: list[list[int]] = []
        for place in sorted(places):
            if runs and continues(runs[-1][-1], place):
                runs[-1].append(place)
            else:
                runs.append([place])
        for run in runs:
            first = run[0]
            last = run[-1]
            least = min(min(places[place]) for place in run)
            deepest = next(place for place in run if least in places[place])
            known = last + 1 < len(frames)
            found.append(
                {
                    "world": world,
                    "pair": pair,
                    "begin_frame": frames[first],
                    "last_frame": frames[last],
                    "begin_time": time[frames[first]],
                    "end_time": time[frames[last + 1]] if known else None,
                    "begin_known": first > 0,
                    "end_known": known,
                    "seconds": time[frames[min(last + 1, len(frames) - 1)]] - time[frames[first]],
                    "touching_frames": len(run),
                    "pauses": sum(after > before + 1 for before, after in pairwise(run)),
                    "contacts": sum(len(places[place]) for place in run),
                    "most_contacts": max(len(places[place]) for place in run),
                    "least_distance": least,
                    "deepest_frame": frames[deepest],
                    "deepest_time": time[frames[deepest]],
                }
            )
    return ordered(found)


def ordered(found: Iterable[dict]) -> list[dict]:
    """One order for what is compared: by begin, world, pair, whichever of its two names came
    first."""
    plain = []
    for one in found:
        row = dict(one)
        for noun in ("shape", "body"):
            if f"{noun}0" in row:
                row["pair"] = tuple(sorted((row.pop(f"{noun}0"), row.pop(f"{noun}1"))))
        plain.append(row)
    return sorted(plain, key=lambda row: (row["begin_frame"], row["world"], row["pair"]))
