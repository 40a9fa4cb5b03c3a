"""What an audit measures: limits, depths of a scene in motion or of a contact set, tunnelling."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from collidecli.analysis.overlap_volume import surface_of
from collidecli.analysis.patterns import NamedItems
from collidecli.analysis.summary import TOUCHES
from collidecli.analysis.touches import Frames, Names
from collidecli.commands.collision import prepare_collision
from collidecli.commands.event_stream import touching_blocks
from collidecli.commands.python_api import ModelBuilder, collide
from collidecli.commands.run import search_warnings
from collidecli.commands.scenes import EngineRequest, LoadedScene, parse_frames, scene_in_motion
from collidecli.commands.timing import TimingReport
from collidecli.engine.pipeline import find_device, load_ahead
from collidecli.errors import InputError
from collidecli.numerics import compose_poses, inverse_poses
from collidecli.scene.arguments import checked_metres
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.particles import Particles
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from collidecli.scene.tables import HYDRO_PATCHES, SELF_CONTACTS, SOFT_CONTACTS, SWEEP, ContactBlock, GroupRows
from collidecli.storage.contact_sets.check import check_body_rows, check_group_rows, check_has_contacts
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet
from collidecli.storage.input_files import read_toml
from collidecli.texts import did_you_mean

# Depth of the deepest point of two overlapping shapes: how far a point of one surface is below the other's surface.


def deepest_point(model: Model, poses: np.ndarray, shape0: int, shape1: int) -> tuple[float, float]:
    """The greatest depth of a point of either surface below the other one, without margins, and the bound of its error
    where a surface is round [m].

    poses: float64[S, 7], xyzw, of the shapes in world. A surface is a cloth of its triangles, which the engine's search
    for the least distance of triangles measures (docs/adr/0098); the other shape is itself. A round surface is
    replaced by triangles with corners on it, which it is nowhere farther from than the error. Planes have no points.
    """
    deepest = 0.0, 0.0
    for surface, solid in ((shape0, shape1), (shape1, shape0)):
        if model.shapes.type[surface] == ShapeType.PLANE:
            continue
        vertex, face, error = surface_of(model, surface)
        to_solid = compose_poses(inverse_poses(poses[solid]), poses[surface])
        placed = np.zeros((len(vertex), 7))
        placed[:, :3], placed[:, 6] = vertex, 1.0
        depth = _depth(model, solid, compose_poses(to_solid, placed)[:, :3], face)
        if depth > deepest[0]:
            deepest = depth, error
    return deepest


def _depth(model: Model, row: int, vertex: np.ndarray, face: np.ndarray) -> float:
    """Greatest depth of triangles in the frame of a shape below its surface [m]."""
    builder, shapes = ModelBuilder(), model.shapes
    kind = ShapeType(shapes.type[row])
    if kind == ShapeType.CONVEX_MESH:
        hull = model.hulls[shapes.hull[row]]
        builder.add_shape_convex_hull(-1, hull, _back(hull.center))
    elif kind == ShapeType.MESH:
        mesh = model.meshes[shapes.mesh[row]]
        builder.add_shape_mesh(-1, mesh, xform=_back(mesh.center))
    elif kind == ShapeType.HEIGHTFIELD:
        field = model.heightfields[shapes.heightfield[row]]
        builder.add_shape_heightfield(-1, field, xform=_back((0.0, 0.0, field.center)))
    else:
        builder.add_shape(-1, kind, shapes.size[row][: SIZE_COUNT[kind]].tolist())
    builder.add_cloth_mesh(vertices=vertex, indices=face, particle_radius=0.0)
    contacts = collide(builder.finalize(), soft_gap=0.0, device="cpu")
    return max(0.0, -float(contacts.groups["soft_contacts"].columns["distance"].min(initial=0.0)))


def _back(center: np.ndarray | tuple[float, float, float]) -> tuple[float, ...]:
    """The pose that moves a shape's centre, about which its vertices are given, to the origin."""
    x, y, z = (-float(coordinate) for coordinate in center)
    return x, y, z, 0.0, 0.0, 0.0, 1.0


# Limits of an audit: options, or a file in TOML, and the limit of each pair of shapes.

GROUND_TYPES = ("plane", "heightfield")
"""Static shapes of these types are the ground, unless shapes are named."""
Pattern = tuple[str, str]


@dataclass(frozen=True)
class AuditLimits:
    """Limits of depth [m], None for none, and the classes of pairs.

    max_depth: of every pair without another one. self: of two bodies of one robot. max_ground: of pairs with the
    ground. max_start: of every pair in the first frame of a world or demonstration. pairs: patterns of two paths and
    their own limit. allow: patterns of two paths without a limit. ground_shapes: patterns of the ground's shapes; () is
    every static plane and heightfield. self_bodies: patterns of the bodies of one robot; () is those that joints
    connect.
    """

    max_depth: float | None = None
    self: float | None = None
    max_ground: float | None = None
    max_start: float | None = None
    pairs: Sequence[tuple[Pattern, float]] = ()
    allow: Sequence[Pattern] = ()
    ground_shapes: Sequence[str] = ()
    self_bodies: Sequence[str] = ()

    def checked(self) -> AuditLimits:
        """These limits. Raises InputError for a limit that is negative or not finite."""
        for name in LENGTHS:
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0.0):
                option = "--" + name.replace("_", "-")
                raise InputError(f"{value} is not a depth", option, "give at least 0, such as 2mm")
        return self

    @property
    def has_any(self) -> bool:
        """Whether a limit is given."""
        return bool(self.pairs) or any(getattr(self, name) is not None for name in LENGTHS)

    def over(self, file: AuditLimits) -> AuditLimits:
        """The limits of a file, replaced by these where these are given; patterns `allow` and `pairs` of both."""
        given = {name: value for name in LENGTHS if (value := getattr(self, name)) is not None}
        given |= {name: value for name in ("ground_shapes", "self_bodies") if (value := getattr(self, name))}
        return replace(file, **given, allow=(*file.allow, *self.allow), pairs=(*file.pairs, *self.pairs))


LENGTHS = ("max_depth", "self", "max_ground", "max_start")
_PATTERNS = ("ground_shapes", "self_bodies")


def read_limits(path: str) -> AuditLimits:
    """The limits of a TOML file. Raises InputError for a file that cannot be read, an unknown key or a wrong value."""
    table = read_toml(path, "see --limits")
    known = [*LENGTHS, *_PATTERNS, "allow", "pair"]
    limits: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in known:
            fix = did_you_mean(name.replace("_", "-"), [known_name.replace("_", "-") for known_name in known])
            raise InputError(f"'{key}' is no limit", path, fix)
        if name in LENGTHS:
            limits[name] = _length(value, path, key)
        elif name in _PATTERNS:
            limits[name] = tuple(_texts([value] if isinstance(value, str) else value, path, key))
        elif name == "allow":
            limits["allow"] = tuple(_pattern(item, path, key) for item in _list(value, path, key))
        else:
            limits["pairs"] = tuple(_pair(item, path) for item in _list(value, path, key))
    return AuditLimits(**limits).checked()


def _length(value: object, path: str, key: str) -> float:
    metres = checked_metres(value, f"{path}: {key}")
    if metres < 0.0:
        raise InputError(f"'{key}' is {value!r}, below 0", path, 'give a depth of at least 0, such as "2mm"')
    return metres


def _list(value: object, path: str, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"'{key}' is {value!r}, not a list", path, f"see [[{key}]] and lists in TOML")
    return value


def _texts(value: object, path: str, key: str) -> list[str]:
    texts = _list(value, path, key)
    if not all(isinstance(text, str) for text in texts):
        raise InputError(f"'{key}' is {value!r}, not a list of patterns", path, f'write {key} = ["floor*"]')
    return texts


def _pattern(value: object, path: str, key: str) -> Pattern:
    patterns = _texts(value, path, key)
    if len(patterns) != 2:
        raise InputError(f"'{key}' has {value!r}, not two patterns", path, 'write ["hand*", "cup*"]')
    return patterns[0], patterns[1]


def _pair(value: object, path: str) -> tuple[Pattern, float]:
    if not isinstance(value, Mapping) or set(value) != {"between", "max-depth"}:
        fix = 'write [[pair]], then between = ["hand*", "cup*"] and max-depth = "2mm"'
        raise InputError(f"[[pair]] is {value!r}", path, fix)
    return _pattern(value["between"], path, "between"), _length(value["max-depth"], path, "max-depth")


@dataclass(frozen=True)
class AuditedShapes:
    """Shapes, and other items that touch, of an audit; in the order of the items.

    path: of each item. names: of the items. body_path: path of its body, which may be fixed to the world, or "".
    is_static: bool[n]. type: labels. robot: int[n], number of the robot of its body, -1 for none.
    """

    path: Sequence[str]
    names: Names
    body_path: Sequence[str]
    is_static: np.ndarray
    type: Sequence[str]
    robot: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))

    @property
    def is_ground(self) -> np.ndarray:
        """bool[n]: static planes and heightfields."""
        return self.is_static & np.isin(np.array(self.type), GROUND_TYPES)

    def items(self, where: str) -> NamedItems:
        """The items, for patterns of their paths and of the paths of their bodies. where: for errors."""
        return NamedItems(self.path, np.arange(len(self.path)), self.body_path, f"shape or body of {where}")


class PairLimits:
    """The class and the limit of pairs of items. Raises InputError for patterns that match nothing."""

    def __init__(self, limits: AuditLimits, shapes: AuditedShapes, where: str) -> None:
        self._limits, items = limits, shapes.items(where)
        self._ground = shapes.is_ground
        if limits.ground_shapes:
            self._ground = items.matching(limits.ground_shapes, "--ground-shapes")
        self._robot = np.where(self._ground, -1, shapes.robot)  # the ground is no part of a robot
        if limits.max_ground is not None and not self._ground.any():
            what = f"{where} has no static plane or heightfield"
            raise InputError(what, "--max-ground", "name the ground with --ground-shapes")
        if limits.self is not None and not self.has_robot:
            raise InputError(f"joints connect no bodies of {where}", "--self", "name the bodies with --self-bodies")
        self._pairs = [(items.sides(pattern, "--limits: [[pair]]"), limit) for pattern, limit in limits.pairs]
        self._allow = [items.sides(pattern, "--allow") for pattern in limits.allow]

    @property
    def has_robot(self) -> bool:
        """Whether an item belongs to a robot."""
        return bool((self._robot >= 0).any())

    def has_own(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs with a limit of their own, of [[pair]]."""
        masks = [sides.of_pairs(item0, item1) for sides, _ in self._pairs]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(item0), bool)

    def classes(self, item0: np.ndarray, item1: np.ndarray) -> dict[str, np.ndarray]:
        """bool[n]: pairs of two bodies of one robot ("self"), pairs with the ground ("ground")."""
        robot = self._robot
        return {
            "self": (robot[item0] >= 0) & (robot[item0] == robot[item1]),
            "ground": self._ground[item0] | self._ground[item1],
        }

    def allowed(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: pairs without a limit by --allow."""
        masks = [sides.of_pairs(item0, item1) for sides in self._allow]
        return np.logical_or.reduce(masks) if masks else np.zeros(len(item0), bool)

    def limit(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """float64[n]: limit of each pair [m]; infinite for none."""
        limits, classes = self._limits, self.classes(item0, item1)
        limit_of_pair = np.full(len(item0), np.inf if limits.max_depth is None else limits.max_depth)
        if limits.max_ground is not None:
            limit_of_pair[classes["ground"]] = limits.max_ground
        if limits.self is not None:
            limit_of_pair[classes["self"]] = limits.self
        for sides, limit in self._pairs:
            limit_of_pair[sides.of_pairs(item0, item1)] = limit
        limit_of_pair[self.allowed(item0, item1)] = np.inf
        return limit_of_pair


# Tunnelling of a motion: pairs that are apart in two consecutive frames and touch between them, of a sweep.

COLUMNS = ("shape0", "shape1", "status", "tunnel", "enter", "least")


@dataclass(frozen=True)
class Tunnels:
    """Steps in which pairs tunnel, in order. cell: int64, of the frame before the step. shape0, shape1: rows. enter:
    float64, part of the step. depth: float64 [m], of the deepest penetration in the step. undecided: number of pairs of
    which a touch in a step is undecided.
    """

    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    enter: np.ndarray
    depth: np.ndarray
    undecided: int = 0


def tunnel_steps(
    tunnels: Tunnels, names: Names, frames: Frames, worlds: int, allowed: np.ndarray
) -> list[dict[str, Any]]:
    """Each pair that tunnels, with most steps first: their number, the first one, and the greatest depth [m].

    tunnels: cells of selected frames. allowed: bool[n], without a limit.
    """
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    pairs = (rows.tolist() for rows in names.pair(tunnels.shape0, tunnels.shape1))
    for n, pair in enumerate(zip(*pairs, strict=True)):
        frame, world = divmod(int(tunnels.cell[n]), worlds)
        if pair not in rows:
            after = frames.time[min(frame + 1, len(frames) - 1)]
            rows[pair] = {
                "shape0": names.text[pair[0]], "shape1": names.text[pair[1]], "allowed": bool(allowed[n]), "steps": 0,
                "frame": int(frames.number[frame]), "world": world,
                "time": float(frames.time[frame] + tunnels.enter[n] * (after - frames.time[frame])), "depth": 0.0,
            }  # fmt: skip
        row = rows[pair]
        row["steps"] += 1
        row["depth"] = max(row["depth"], float(tunnels.depth[n]))
    return sorted(rows.values(), key=lambda row: (-row["steps"], row["shape0"], row["shape1"]))


STEPS_LEFT_OUT = "tunnelling is not checked: the frames are not consecutive"
PARTICLES_LEFT_OUT = "particles, cloths and soft bodies are not audited: collide events lists their contacts"


@dataclass
class AuditSource:
    """Contacts to audit. name: for messages. scene, trajectory: names of files, or "". scene_sha256,
    trajectory_sha256: their hashes. frames: with numbers in the input; step: int64[F].

    contents: columns shape0, shape1 and distance of every cell from the first selected frame on; to be read once.
    loaded, motion: of a scene. notes: warnings, complete after the last block. swept: rows of contacts between frames,
    each with its first cell, complete after the last block; None without a sweep.
    """

    name: str
    scene: str
    scene_sha256: str
    trajectory: str
    trajectory_sha256: str
    shapes: AuditedShapes
    frames: Frames
    step: np.ndarray
    world_count: int
    contents: Generator[ContactBlock, None, None]
    notes: list[str]
    loaded: LoadedScene | None = None
    motion: Motion | None = None
    swept: list[tuple[int, GroupRows]] | None = None

    def tunnels(self) -> Tunnels | None:
        """Steps of selected frames in which pairs tunnel; None without a sweep. To be called after `rows`."""
        if self.swept is None:
            return None
        none = [np.zeros(0, np.int64)] * 3 + [np.zeros(0)] * 2
        parts, undecided = [none], 0
        for first, rows in self.swept:
            columns = rows.columns
            undecided += int((columns["status"] != TOUCHES).sum())
            at = np.flatnonzero(columns["tunnel"] == 1)
            cell, kept = self._selected(first + np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)[at])
            inside = np.flatnonzero(cell < (len(self.frames) - 1) * self.world_count)
            at = at[kept[inside]]
            shapes = (columns[name][at].astype(np.int64) for name in ("shape0", "shape1"))
            parts.append([cell[inside], *shapes, columns["enter"][at], np.maximum(0.0, -columns["least"][at])])
        return Tunnels(*map(np.concatenate, zip(*parts, strict=True)), undecided=undecided)

    def _selected(self, cell: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cells of the selected frames, and their rows among cells of the input."""
        start = int(self.frames.number[0]) if len(self.frames) else 0
        step = int(self.frames.number[1]) - start if len(self.frames) > 1 else 1
        frame, world = np.divmod(cell, self.world_count)
        index, between = np.divmod(frame - start, step)
        kept = np.flatnonzero((between == 0) & (index >= 0) & (index < len(self.frames)))
        return (index * self.world_count + world)[kept], kept

    def rows(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Frames done, and cell (of the selected frames), shape0, shape1, distance of contacts, block by block."""
        with closing(self.contents) as blocks:
            for block in blocks:
                cell = np.repeat(block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts)
                cells, kept = self._selected(cell)
                done = self._selected(np.arange(block.first_cell + len(block.cell_counts)))[0]
                shape0, shape1, distance = (block.columns[name][kept] for name in ("shape0", "shape1", "distance"))
                yield len(done) // self.world_count, cells, shape0, shape1, distance


def audited_contact_set(contacts: ContactSet, frames: str, self_bodies: Sequence[str]) -> AuditSource:
    """The contacts of an open contact set, with a robot of the named bodies.

    Raises InputError for a set without contacts, and for unknown frames and bodies.
    """
    check_has_contacts(contacts)
    check_body_rows(contacts)
    picked = parse_frames(frames, contacts.frame_count)
    number = np.arange(picked.start, picked.stop, picked.step)
    episodes = None if contacts.episodes is None else contacts.episodes.sliced(picked)
    shapes = contacts.shapes
    bodies = ["" if row < 0 else contacts.body_path[row] for row in shapes.body.tolist()]
    names = Names.of(shapes.path, shapes.template)
    audited = AuditedShapes(shapes.path, names, bodies, shapes.body < 0, shapes.type)
    worlds = contacts.world_count
    notes = []
    if HYDRO_PATCHES.name in contacts.groups:
        what = "depths of hydroelastic pairs are those of their contact surfaces"
        notes.append(f"{what}: audit the scene for translations")
    if SOFT_CONTACTS.name in contacts.groups or SELF_CONTACTS.name in contacts.groups:
        notes.append(PARTICLES_LEFT_OUT)
    first, last = (int(number[0]) * worlds, (int(number[-1]) + 1) * worlds) if len(number) else (0, 0)
    swept = None
    if SWEEP.name in contacts.groups and picked.step > 1 and len(number) > 1:
        notes.append(STEPS_LEFT_OUT)
    elif SWEEP.name in contacts.groups:
        rows = contacts.groups[SWEEP.name].rows(first, last, COLUMNS)
        check_group_rows(contacts, {SWEEP.name: rows}, first, last)
        swept = [(first, rows)]
    return AuditSource(
        name=contacts.path,
        scene=contacts.scene,
        scene_sha256=contacts.scene_sha256,
        trajectory="",
        trajectory_sha256=contacts.trajectory_sha256,
        shapes=_with_named_robot(audited, self_bodies, contacts.path),
        frames=Frames(number, contacts.time[number], episodes),
        step=contacts.step[number],
        world_count=worlds,
        contents=touching_blocks(contacts, BLOCK_ROWS, first, last, with_particles=False, each_particle=False),
        notes=notes,
        swept=swept,
    )


@contextmanager
def audited_scene(request: EngineRequest, self_bodies: Sequence[str]) -> Iterator[AuditSource]:
    """The contacts of a scene in motion, with point contacts and without a gap. Raises InputError as `run` does."""
    request.engine.checked()
    contact = replace(request.contact, gap=0.0, hydro="off").checked()
    timing = TimingReport()
    device = find_device(request.engine.device)
    load_ahead(device)
    scene, motion = scene_in_motion(request)
    with closing(motion):
        notes = [*scene.warnings, *motion.warnings]
        if len(scene.model.particles):
            scene = replace(scene, model=replace(scene.model, particles=Particles()))
            notes.append(PARTICLES_LEFT_OUT)
        model = scene.model
        with scene.named():
            collision = prepare_collision(model, motion, contact, request.engine, device, timing)
        notes += collision.notes
        swept: list[tuple[int, GroupRows]] | None = [] if contact.sweep else None

        def contents() -> Generator[ContactBlock, None, None]:
            with closing(collision.blocks(timing)) as blocks:
                for block in blocks:
                    if swept is not None:
                        swept.append((block.first_cell, block.groups[SWEEP.name]))
                    yield block
            notes.extend(search_warnings(timing, model.shapes.path))

        frames = Frames(np.arange(len(motion.time)), motion.time, episodes_in(motion, model.world_count))
        yield AuditSource(
            name=scene.name,
            scene=scene.name,
            scene_sha256=scene.sha256,
            trajectory=request.trajectory or "",
            trajectory_sha256=motion.sha256,
            shapes=_with_named_robot(_shapes_of(scene), self_bodies, scene.name),
            frames=frames,
            step=motion.step,
            world_count=model.world_count,
            contents=contents(),
            notes=notes,
            loaded=scene,
            motion=motion,
            swept=swept,
        )


def _shapes_of(scene: LoadedScene) -> AuditedShapes:
    shapes = scene.model.shapes
    names, types = Names.of(shapes.path, shapes.template), [kind.label for kind in shapes.types()]
    return AuditedShapes(shapes.path, names, scene.shape_bodies, shapes.body < 0, types, _robots(scene))


def _robots(scene: LoadedScene) -> np.ndarray:
    """int64[S]: number of the joint tree of each shape's body, which may be fixed to the world; -1 for a body that no
    joint connects with another one, and for the world."""
    of_path: dict[tuple[int, str], int] = {}
    number = 0
    for source, imported in enumerate(scene.imports):
        for tree in imported.articulated.articulations if imported.articulated is not None else ():
            if len(tree.body_path) > 1:
                of_path |= {(source, path): number for path in tree.body_path}
                number += 1
    rows = zip(scene.template_import(scene.model.shapes.template), scene.shape_bodies, strict=True)
    return np.array([of_path.get(row, -1) for row in rows], np.int64)


def _with_named_robot(shapes: AuditedShapes, patterns: Sequence[str], where: str) -> AuditedShapes:
    """The shapes with one robot, of the bodies that match; with those of the joints without patterns."""
    if not patterns:
        return shapes if len(shapes.robot) else replace(shapes, robot=np.full(len(shapes.path), -1, np.int64))
    named = shapes.items(where).matching(patterns, "--self-bodies") & ~shapes.is_ground
    owners = {shapes.body_path[row] or shapes.path[row] for row in np.flatnonzero(named).tolist()}
    if len(owners) < 2 or shapes.is_static[named].all():
        what = f"{', '.join(patterns)} names no two bodies of {where} of which one moves"
        raise InputError(what, "--self-bodies", "name all bodies of the robot; the ground is none of them")
    return replace(shapes, robot=np.where(named, 0, -1))
