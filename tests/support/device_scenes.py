"""Scenes for the path of a device, their pipelines, content hashes and differences between
devices."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import CollisionPipeline
from collidecli.engine.scheduler import Workers
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import ContactBlock, consecutive_groups
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import (
    MEMORY,
    add_planes,
    add_shapes,
    mixed_builder,
    pipeline_of,
    random_poses,
)
from tests.support.fields import HULL, RING, add
from tests.support.hydroelastic import soft
from tests.support.meshes import box, grid, rough, tube

FRAMES = 3
PHASES = ("nxn", "sap", "explicit")
REDUCED = ContactOptions(
    reduce_contacts=True, reduce_pairs="all", normal_matching=True, moment_matching=True
)


@dataclass(frozen=True)
class Scene:
    """A model in motion. poses: float64[F, W, B, 7]. positions: float64[F, W, P, 3] of particles,
    or None."""

    model: Model
    poses: np.ndarray
    options: ContactOptions
    positions: np.ndarray | None = None


def _of(builder: ModelBuilder, spread: float, options: ContactOptions, worlds: int = 1) -> Scene:
    model = builder.finalize(world_count=worlds)
    poses = random_poses(np.random.default_rng(1), (FRAMES, worlds, len(model.bodies)), spread)
    return Scene(model, poses, options)


def closed_forms(options: ContactOptions) -> Scene:
    """Spheres, capsules and boxes over two planes, in two worlds."""
    builder = ModelBuilder()
    add_planes(builder)
    add_shapes(
        builder,
        np.random.default_rng(0),
        14,
        types=(ShapeType.SPHERE, ShapeType.CAPSULE, ShapeType.BOX),
    )
    return _of(builder, 0.4, options, worlds=2)


def primitives(options: ContactOptions) -> Scene:
    """Every type of convex shape twice, over two planes, in two worlds."""
    return _of(mixed_builder(0, 14), 0.4, options, worlds=2)


def meshes(options: ContactOptions) -> Scene:
    """Closed and open meshes, and a convex one, with each other and with convex shapes and a
    plane."""
    builder = ModelBuilder()
    builder.default_gap = 0.1
    builder.add_ground_plane(-0.6)
    for name in ("blob", "ring", "blob", "sphere", "box", "capsule", "cone", "hull"):
        add(builder, builder.add_body(), name)
    builder.add_shape_mesh(builder.add_body(), *tube(0.4, sides=8))
    builder.add_shape_mesh(builder.add_body(), *box(0.4, 0.4, 0.4))
    return _of(builder, 0.8, options)


def templates(options: ContactOptions) -> Scene:
    """Worlds of three templates, one of them repeated, over planes that all share."""
    builder = ModelBuilder()
    builder.default_gap = 0.1
    add_planes(builder)
    rng = np.random.default_rng(3)
    kinds = []
    for count in (9, 5, 7):
        kind = ModelBuilder()
        kind.default_gap = 0.1
        add_shapes(kind, rng, count)
        kinds.append(kind)
    for index in (0, 1, 0, 2):
        builder.add_world(kinds[index])
    model = builder.finalize()
    poses = random_poses(rng, (FRAMES, model.world_count, len(model.bodies)), 0.4)
    return Scene(model, poses, options)


def heightfields(options: ContactOptions) -> Scene:
    """Every type of shape on rough ground."""
    builder = ModelBuilder()
    builder.default_gap = 0.1
    terrain = rough(3, 6, 7)
    builder.add_shape_heightfield(-1, terrain.heights, terrain.hx, terrain.hy, terrain.base)
    for name in ("sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "hull", "ring"):
        add(builder, builder.add_body(), name)
    return _of(builder, 0.7, options)


def terrains(options: ContactOptions) -> Scene:
    """Heightfields on each other and on a plane."""
    builder = ModelBuilder()
    builder.default_gap = 0.1
    builder.add_ground_plane(-0.3)
    for seed in range(4):
        terrain = rough(seed, 5, 6)
        builder.add_shape_heightfield(
            builder.add_body(), terrain.heights, terrain.hx, terrain.hy, terrain.base
        )
    return _of(builder, 0.7, options)


def fields(options: ContactOptions) -> Scene:
    """Shapes with signed distance fields, with each other and with shapes that have none."""
    builder = ModelBuilder()
    builder.default_gap = 0.1
    builder.add_ground_plane(-0.6)
    for index, name in enumerate(("ring", "box", "sphere", "hull", "blob")):
        add(
            builder,
            builder.add_body(),
            name,
            ShapeConfig(sdf_max_resolution=16) if index < 3 else None,
        )
    return _of(builder, 0.7, options)


def hydroelastic(options: ContactOptions) -> Scene:
    """Compliant boxes, hulls and spheres on a compliant ground."""
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=soft(5e6))
    for index in range(6):
        body = builder.add_body()
        cfg = soft(1e6 * (1 + index))
        if index % 3 == 0:
            builder.add_shape_box(body, hx=0.2, hy=0.3, hz=0.25, cfg=cfg)
        elif index % 3 == 1:
            builder.add_shape_sphere(body, radius=0.3, cfg=cfg)
        else:
            builder.add_shape_convex_hull(body, vertices=HULL * 0.4, cfg=cfg)
    changed = {
        "hydro_surface": True,
        "hydro_reduce": not options.reduce_contacts,
        "hydro_resolution": 8,
    }
    return _of(builder, 0.3, ContactOptions(**{**vars(options), **changed}))


def particles(options: ContactOptions, soft_elements: str = "vertices") -> Scene:
    """A cloth and points on moving shapes, with contacts of the cloth with itself."""
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for index in range(4):
        body = builder.add_body()
        (builder.add_shape_box if index % 2 else builder.add_shape_cone)(body, None)
    builder.add_ground_plane(-0.5)
    builder.add_shape_mesh(-1, *RING)
    vertices, triangles = grid(6)
    builder.add_cloth_mesh(vertices=vertices, indices=triangles, particle_radius=0.02)
    builder.add_particles(rng.uniform(-1.0, 1.0, (20, 3)), radius=0.05)
    changed = {"soft_gap": 0.05, "self_contacts": 0.08, "soft_elements": soft_elements}
    scene = _of(builder, 0.8, ContactOptions(**{**vars(options), **changed}))
    resting = scene.model.particles.position
    return Scene(
        scene.model,
        scene.poses,
        scene.options,
        resting + rng.normal(size=(FRAMES, 1, *resting.shape)) * 0.1,
    )


def elements(options: ContactOptions) -> Scene:
    """As `particles`, with contacts of the cloth's edges and triangles."""
    return particles(options, "all")


SCENES: dict[str, Callable[[ContactOptions], Scene]] = {
    "primitives": primitives,
    "templates": templates,
    "meshes": meshes,
    "heightfields": heightfields,
    "terrains": terrains,
    "fields": fields,
    "hydroelastic": hydroelastic,
    "particles": particles,
    "elements": elements,
}
CONVEX = ("primitives", "templates")
"""Scenes whose depths are one minimum each."""
RECORDED = {"closed_forms": closed_forms, **SCENES}
"""Scenes of which every access is recorded: before all a small one, whose kernels are compiled
soon."""


def scene_pipeline(
    scene: Scene, phase: str, device: str = "cpu", float_type: str = "float64"
) -> CollisionPipeline:
    """The pipeline of a scene with a broad phase. float_type: of the motion, and of the witness
    points."""
    return pipeline_of(
        scene.model, scene.poses, scene.options, float_type, device, broad_phase=phase
    )


def scene_blocks(
    pipeline: CollisionPipeline, scene: Scene, chunk: int = 0, threads: int = 1
) -> list[ContactBlock]:
    """The contacts of a scene. chunk: cells of a batch, 0 for all."""
    cells = len(scene.poses) * scene.model.world_count
    step = chunk or cells
    batches = [
        PoseBatch(first, min(step, cells - first), 0, scene.poses, scene.positions)
        for first in range(0, cells, step)
    ]
    with Workers(pipeline, threads, MEMORY) as pool:
        return [block for block, _ in pool.collide(batches)]


def answer(
    pipeline: CollisionPipeline, scene: Scene, chunk: int = 0, threads: int = 1
) -> tuple[str, int]:
    """Hash of all rows of all groups, and their number. chunk: cells of a batch, 0 for all."""
    blocks = scene_blocks(pipeline, scene, chunk, threads)
    digest = hashlib.sha256()
    rows = 0
    columns = {
        name: np.concatenate([block.columns[name] for block in blocks])
        for name in blocks[0].columns
    }
    columns["cell_counts"] = np.concatenate([block.cell_counts for block in blocks])
    rows += int(columns["cell_counts"].sum())

    for name, group in sorted(consecutive_groups([block.groups for block in blocks]).items()):
        rows += group.row_count
        columns |= {f"{name}/{key}": values for key, values in group.columns.items()}
        columns[f"{name}/cell_counts"] = group.cell_counts
        for key, (lengths, values) in group.lists.items():
            columns |= {f"{name}/{key}/lengths": lengths, f"{name}/{key}": values}
    for name, values in sorted(columns.items()):
        digest.update(f"{name} {values.dtype} {values.shape}".encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest(), rows


ROUNDING = 1e-6
"""Distances are stored in float32, with an error of 1e-7 of some metres here [m]."""
SUM_ROUNDING = 1e-4
"""Largest difference of the sum of a column of a group, in parts of the sum of its absolute
values."""
MOST_BEYOND = 0.03
"""Part of the pairs of meshes, or of groups' rows, that may differ beyond rounding; of convex pairs
none may. A change of the poses by 1e-12 m does that to at most 1 of 63 pairs of a kind."""

TIED = ("normal", "point_body", "point_world", "point0", "point1")
"""Columns of groups that are not compared: the deepest point of an edge is where two faces of a
shape are equally near, and rounding decides whose normal it has."""


@dataclass
class Difference:
    """Difference of the contacts of two devices.

    pairs: pairs of shapes with contacts, counted once a cell. contacts: on the first device.
    largest: difference of the least distances of a pair [m]. beyond: pairs that differ by more than
    ROUNDING, or that one device alone reports farther than ROUNDING from the largest reported
    distance. other_counts: pairs with another number of contacts. groups: of each group the rows on
    both devices, and the largest difference of a column's sum, relative.
    """

    pairs: int = 0
    contacts: int = 0
    largest: float = 0.0
    beyond: int = 0
    other_counts: int = 0
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    def is_rounding(self, part_beyond: float = 0.0) -> bool:
        """Whether at most this part of the pairs differs beyond rounding, and the groups agree."""
        agree = all(
            abs(group["rows"][0] - group["rows"][1]) <= MOST_BEYOND * group["rows"][0]
            and group["largest"] <= SUM_ROUNDING
            for group in self.groups.values()
        )
        return agree and self.beyond <= part_beyond * self.pairs


def difference(here: Sequence[ContactBlock], there: Sequence[ContactBlock]) -> Difference:
    """Difference of the contacts of the same cells on two devices."""
    ours = _least_distances(here)
    theirs = _least_distances(there)
    found = Difference(
        pairs=len(ours.keys() | theirs.keys()), contacts=sum(block.contact_count for block in here)
    )
    edge = max((least for least, _ in (*ours.values(), *theirs.values())), default=0.0)
    for pair in ours.keys() | theirs.keys():
        if pair in ours and pair in theirs:
            apart = abs(ours[pair][0] - theirs[pair][0])
            found.largest = max(found.largest, apart)
            found.beyond += apart > ROUNDING
            found.other_counts += ours[pair][1] != theirs[pair][1]
        else:
            least, _ = ours.get(pair) or theirs[pair]
            # at the gap a contact may be on either side of it
            found.beyond += least < edge - ROUNDING
            found.other_counts += 1
    found.groups = _groups(here, there)
    return found


def _least_distances(
    blocks: Sequence[ContactBlock],
) -> dict[tuple[int, int, int], tuple[float, int]]:
    """The least distance [m] and number of contacts of each cell, shape0, shape1."""
    least: dict[tuple[int, int, int], tuple[float, int]] = {}
    for block in blocks:
        cells = block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        columns = (
            cells,
            block.columns["shape0"],
            block.columns["shape1"],
            block.columns["distance"],
        )
        for cell, shape0, shape1, distance in zip(
            *(column.tolist() for column in columns), strict=True
        ):
            before, count = least.get((cell, shape0, shape1), (np.inf, 0))
            least[cell, shape0, shape1] = min(before, distance), count + 1
    return least


def _groups(
    here: Sequence[ContactBlock], there: Sequence[ContactBlock]
) -> dict[str, dict[str, Any]]:
    """Rows and sums of the groups; faces of a surface are ordered alike, their sums do not depend
    on the order."""
    ours, theirs = (
        consecutive_groups([block.groups for block in blocks]) for blocks in (here, there)
    )
    assert ours.keys() == theirs.keys()
    found = {}
    for name, group in ours.items():
        largest = 0.0
        for key, values in group.columns.items():
            if values.dtype.kind == "f" and key not in TIED:
                sums = (
                    values.sum(axis=0, dtype=np.float64),
                    theirs[name].columns[key].sum(axis=0, dtype=np.float64),
                )
                scale = np.abs(values).sum(dtype=np.float64) or 1.0
                largest = max(largest, float(np.abs(sums[0] - sums[1]).max()) / float(scale))
        found[name] = {"rows": [group.row_count, theirs[name].row_count], "largest": largest}
    return found
