"""The matrix of shape types: forms, their signed distances, poses, measured errors, and the
page."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

import collidecli
from collidecli.engine.narrowphase.collider_table import FIELD, OWN_SURFACE, ROUTES, ordered
from collidecli.scene.shape_types import ShapeType
from tests.support.answers import Form, PairCase, deepest, model_of
from tests.support.answers import placed as placed_cases
from tests.support.mesh_pairs import crosses, deepest_vertex, mesh_distance, placed
from tests.support.meshes import blob, rough, triangle_distances, windings
from tests.support.oracle import golden_section, rotation_of, signed_distance
from tests.support.poses import relative_pose
from tests.support.supports import HULL, hull_faces, surface_residual

# Signed distances of points from convex solids, and of triangles by a search over each; float64
# NumPy.

STEPS = 32
"""Of a golden section, which leave 2e-7 of the side of a triangle."""
NEWTON_STEPS = 12
TINY = 1e-9
"""Coordinates nearer to a plane of symmetry than this are moved there: nothing else is off by
more."""

Field = Callable[[np.ndarray], np.ndarray]


def field_of(shape_type: ShapeType, size: np.ndarray) -> Field:
    """The signed distance of points [..., 3] from a convex shape in its own frame: negative inside,
    and convex.

    Outside a convex mesh it is that from the planes of its faces, which is less, but above 0.
    """
    if shape_type == ShapeType.CONVEX_MESH:
        return _hull_field(size)
    if shape_type == ShapeType.ELLIPSOID:
        return lambda points: _ellipsoid(points.reshape(-1, 3), size).reshape(points.shape[:-1])

    def field(points: np.ndarray) -> np.ndarray:
        flat = points.reshape(-1, 3)
        sizes = np.broadcast_to(size, (len(flat), 3))
        return surface_residual(shape_type, sizes, flat).reshape(points.shape[:-1])

    return field


def _hull_field(size: np.ndarray) -> Field:
    planes = ConvexHull(HULL * size).equations
    return lambda points: (points @ planes[:, :3].T + planes[:, 3]).max(-1)


def _ellipsoid(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    """The nearest point is e² y / (t + e²) for the one root t > -min(e²) of sum (e y / (t + e²))² =
    1 (Eberly).

    Newton's method on that convex function, from where one of its terms alone is 1, never passes
    the root.
    """
    y = np.maximum(np.abs(points), TINY)
    square = size**2
    t = (size * y - square).max(1)
    for _ in range(NEWTON_STEPS):
        part = size * y / (t[:, None] + square)
        t = t + 0.5 * ((part**2).sum(1) - 1.0) / (part**2 / (t[:, None] + square)).sum(1)
    foot = square * y / (t[:, None] + square)
    distance = np.linalg.norm(foot - y, axis=1)
    return np.where(((y / size) ** 2).sum(1) < 1.0, -distance, distance)


def least_over_triangles(
    field: Field, corners: np.ndarray, owner: np.ndarray, count: int
) -> np.ndarray:
    """float64[count]: the least of a convex field over the triangles [n, 3, 3] of each owner.

    A convex function has one minimum over a triangle, which a golden section within a golden
    section finds. field: no steeper than 1, so that triangles far from the best are passed over.
    """
    middle = corners.mean(1)
    max_separation = np.linalg.norm(corners - middle[:, None], axis=2).max(1)
    at_middle = field(middle)
    at_corners = field(corners).min(1)
    best = np.full(count, np.inf)
    np.minimum.at(best, owner, np.minimum(at_middle, at_corners))
    near = at_middle - max_separation <= best[owner]
    a, b, c = (corners[near, k] for k in range(3))

    def along(s: np.ndarray) -> np.ndarray:
        start = a + s[:, None] * (b - a)
        end = a + s[:, None] * (c - a)
        return _golden(lambda t: field(start + t[:, None] * (end - start)), len(s))

    np.minimum.at(best, owner[near], _golden(along, len(a)))
    return best


def _golden(value: Field, count: int) -> np.ndarray:
    """The least of convex functions over [0, 1], one a row."""
    low = np.zeros(count)
    high = np.ones(count)
    best = golden_section(lambda t: -value(t), low, high, STEPS)
    return np.minimum(value(best), np.minimum(value(low), value(high)))


# What is true of a pair of forms, in float64 and without the engine.


@dataclass(frozen=True)
class Truth:
    """Of P poses. distance: float64[P], that of the solids where they are apart, else not above 0.

    is_exact: bool[P], whether `distance` is the signed distance where they overlap too; else there
    -distance is how deep the deepest place of one of the surfaces is inside the other solid, which
    is never more than the least translation that parts them.
    """

    distance: np.ndarray
    is_exact: np.ndarray


def truth_of(first: Form, second: Form, poses: np.ndarray) -> Truth:
    """poses: float64[P, 2, 7] of the two, in the world; x y z, quaternion xyzw."""
    if first.is_convex and second.is_convex:
        relative = relative_pose(poses[:, 0], poses[:, 1])
        distance, _ = signed_distance(
            first.type, first.full_size, second.type, second.full_size, relative
        )
        return Truth(distance, np.ones(len(poses), bool))
    if first.type == ShapeType.PLANE:
        return _over_plane(second, poses)
    if first.is_convex:
        return _convex_and_solid(first, second, poses)
    return _two_solids(first, second, poses)


def _over_plane(form: Form, poses: np.ndarray) -> Truth:
    """The lowest vertex."""
    assert form.mesh is not None
    relative = relative_pose(poses[:, 0], poses[:, 1])
    heights = np.einsum("pj,vj->pv", rotation_of(relative)[:, 2], form.mesh[0]) + relative[:, 2:3]
    return Truth(heights.min(1), np.ones(len(poses), bool))


def _convex_and_solid(convex: Form, solid: Form, poses: np.ndarray) -> Truth:
    """Outside, the least over the solid's triangles; a sphere's centre has an exact signed distance
    inside too."""
    assert solid.mesh is not None
    vertices, faces = solid.mesh
    count = len(poses)
    relative = relative_pose(poses[:, 0], poses[:, 1])
    vertices_there = (
        np.einsum("pij,vj->pvi", rotation_of(relative), vertices) + relative[:, None, :3]
    )
    corners = vertices_there[:, faces]
    field = field_of(convex.type, convex.full_size)
    least = least_over_triangles(
        field, corners.reshape(-1, 3, 3), np.repeat(np.arange(count), len(faces)), count
    )
    if convex.type == ShapeType.CONVEX_MESH:
        own = (HULL * convex.size)[hull_faces()]
        least = np.array(
            [
                mesh_distance(own, corners[k]) if value > 0.0 else value
                for k, value in enumerate(least)
            ]
        )
    middle = relative_pose(poses[:, 1], poses[:, 0])[:, :3]
    inside = np.array([_is_inside(solid, point) for point in middle])
    depth = np.array([_way_out(solid, point) for point in middle])
    if convex.type == ShapeType.SPHERE:
        return Truth(np.where(inside, -depth - convex.size[0], least), np.ones(count, bool))
    if solid.voxels:
        # Contacts are of vertices there, and of the convex shape's own places in the field.
        floor = np.minimum(field(vertices_there).min(1), 0.0)
        return Truth(np.where((least > 0.0) & ~inside, least, floor), (least > 0.0) & ~inside)
    # Its middle inside, all of it has as far to go as the middle has.
    return Truth(
        np.where(inside, np.minimum(-depth, np.minimum(least, 0.0)), least), ~inside & (least > 0.0)
    )


def _is_inside(solid: Form, point: np.ndarray) -> bool:
    return (
        TERRAIN.is_inside(point) if solid.terrain else windings(solid.corners, point[None])[0] > 0.5
    )


def _way_out(solid: Form, point: np.ndarray) -> float:
    """From a point inside to the surface; that of a heightfield is without its base."""
    if solid.terrain:
        return -TERRAIN.signed_distance(point)
    return float(triangle_distances(point[None], solid.corners)[0])


def _two_solids(first: Form, second: Form, poses: np.ndarray) -> Truth:
    """Outside, the surfaces' distance; else the deepest vertex of either in the other."""
    assert first.mesh is not None
    assert second.mesh is not None
    distance = np.empty(len(poses))
    for k, (pose_a, pose_b) in enumerate(poses):
        a = placed(first.mesh, pose_a)
        b = placed(second.mesh, pose_b)
        apart = mesh_distance(a, b)
        deep = max(deepest_vertex(a, b), deepest_vertex(b, a))
        distance[k] = -deep if deep > 0.0 or crosses(a, b) or crosses(b, a) else apart
    return Truth(distance, distance > 0.0)


DENTED = blob(np.random.default_rng(8), 6, 8, 0.4)
"""A closed mesh that is not convex."""
TERRAIN = rough(4, 5, 6)
HULL_SIZE = (0.6, 0.7, 0.5)
ROUND = (HULL * HULL_SIZE, hull_faces())
"""A closed mesh that is convex."""


def max_separation_of(form: Form) -> float:
    """How far a form goes from its origin; half the size for a plane."""
    if form.type == ShapeType.PLANE:
        return 0.5
    return float(
        np.linalg.norm(form.size) if form.size else np.linalg.norm(form.vertices, axis=1).max()
    )


FORMS = (
    Form("plane", ShapeType.PLANE),
    Form("sphere", ShapeType.SPHERE, (0.5,)),
    Form("capsule", ShapeType.CAPSULE, (0.3, 0.5)),
    Form("box", ShapeType.BOX, (0.6, 0.4, 0.3)),
    Form("cylinder", ShapeType.CYLINDER, (0.4, 0.5)),
    Form("cone", ShapeType.CONE, (0.5, 0.5)),
    Form("ellipsoid", ShapeType.ELLIPSOID, (0.7, 0.5, 0.3)),
    Form("convex mesh", ShapeType.CONVEX_MESH, HULL_SIZE, mesh=ROUND),
    Form("triangle mesh", ShapeType.MESH, mesh=DENTED),
    Form("heightfield", ShapeType.HEIGHTFIELD, mesh=TERRAIN.solid(), terrain=TERRAIN),
    Form("mesh with an SDF", ShapeType.MESH, mesh=DENTED, voxels=32),
)
CONVEX_AS_TRIANGLES = Form("convex triangle mesh", ShapeType.MESH, mesh=ROUND)
CELLS = tuple((a, b) for i, a in enumerate(FORMS) for b in FORMS[i:])
"""Every unordered pair."""


# All cells of the matrix in one model, a world each, through the public API.

SIZES = (1e-3, 1.0, 1e3)
GAP = 0.25
"""Of the size."""
SPREAD = 1.15
"""How far apart two bodies are put at most, of what both reach from their origins."""
FAR = 10.0
"""A gap in which everything is found, of the size."""

GOALS = (None, 0.0, GAP * 1.01, None, 1e-4, GAP * 0.99, None, -1e-2, GAP * 0.5)
"""Distances that poses are moved to, of the size; None leaves them."""

Cell = tuple[Form, Form]


def contacts_of(cells: Sequence[Cell], poses: np.ndarray, scale: float, gap: float = GAP):
    """Least distance [P, cells] at poses [P, cells, 2, 7] of unit size, scaled, and its normal; inf
    without a contact.

    A world per cell and pose.
    """
    cases = [PairCase(*cell, scale, poses[:, k]) for k, cell in enumerate(cells)]
    found = collidecli.collide(
        model_of(cases, gap), placed_cases(cases), device="cpu", cache_limit=0
    )
    least, normal, _ = deepest(found)
    shape = len(cells), len(poses)
    return least.reshape(shape).T, np.moveaxis(normal.reshape(*shape, 3), 0, 1)


def poses_for(cells: Sequence[Cell], count: int, seed: int = 0) -> np.ndarray:
    """float64[count, cells, 2, 7] of unit size: a third as they fall, the others near to touching
    or the gap.

    The others are moved along what the engine says is the normal: where it is wrong they are only
    elsewhere, as what is true of them is asked of the oracle. They start far off, so that most of
    them are not deep.
    """
    rng = np.random.default_rng(seed)
    poses = rng.normal(size=(count, len(cells), 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    goals = [GOALS[frame % len(GOALS)] for frame in range(count)]
    least = np.array([0.0 if goal is None else 0.6 for goal in goals])[:, None, None]
    max_separation = np.array(
        [max_separation_of(first) + max_separation_of(second) for first, second in cells]
    )[:, None]
    way = rng.normal(size=(count, len(cells), 3))
    way *= (
        max_separation
        * rng.uniform(least, SPREAD, (*way.shape[:2], 1))
        / np.linalg.norm(way, axis=-1, keepdims=True)
    )
    poses[:, :, 1, :3] = poses[:, :, 0, :3] + way
    distance, normal = contacts_of(cells, poses, 1.0, FAR)
    for frame, goal in enumerate(goals):
        if goal is None:
            continue
        hit = np.isfinite(distance[frame])
        poses[frame, hit, 1, :3] += ((goal - distance[frame])[:, None] * normal[frame])[hit]
    return poses


# The engine's answers held against what is true, cell by cell.

ROUNDING_BAND = 1e-6
"""A distance this near to the gap may be on either side of it, of the size: contacts are written in
float32."""


@dataclass(frozen=True)
class Errors:
    """Of one cell over all poses and sizes, relative to the size.

    apart, overlapping: poses of each kind, those that are found. apart_error: the largest, of
    distances. depth_error: the largest, of depths, where the true one is known. least_share, short:
    else the least depth, as a share of how deep the deepest place of one is inside the other, and
    by how much it falls short of that at most. strays: poses with a contact at the gap or beyond,
    or with none below it; but for those nearer to the gap than rounding, or than half a voxel.
    """

    poses: int
    apart: int
    overlapping: int
    apart_error: float
    depth_error: float | None
    least_share: float | None
    short: float | None
    strays: int


def measure(cells: Sequence[Cell], count: int, seed: int = 0) -> dict[Cell, Errors]:
    """`count` random poses of each cell, at every size."""
    poses = poses_for(cells, count, seed)
    truths = [truth_of(*cell, poses[:, world]) for world, cell in enumerate(cells)]
    found = _least_distances(cells, poses)
    return {
        cell: _errors(truths[world], found[:, :, world], _band(cell))
        for world, cell in enumerate(cells)
    }


def _least_distances(cells: Sequence[Cell], poses: np.ndarray) -> np.ndarray:
    """float64[sizes, poses, cells], relative to the size; infinite where nothing is found."""
    return np.stack([contacts_of(cells, poses, size)[0] / size for size in SIZES])


def field_voxel(cell: Cell) -> float | None:
    """Side of a voxel, of the size, of pairs that a signed distance field answers for; else
    None."""
    is_exact = cell[0].type == ShapeType.PLANE or any(
        form.type == ShapeType.HEIGHTFIELD for form in cell
    )
    fields = [form.voxel for form in cell if form.voxels]
    return None if is_exact or not fields else max(fields)


def _band(cell: Cell) -> float:
    voxel = field_voxel(cell)
    return ROUNDING_BAND if voxel is None else 0.5 * voxel


def _errors(truth: Truth, found: np.ndarray, band: float) -> Errors:
    true = np.broadcast_to(truth.distance, found.shape)
    exact = np.broadcast_to(truth.is_exact, found.shape)
    is_found = np.isfinite(found)
    strays = (is_found != (true < GAP)) & (np.abs(true - GAP) > band)
    apart = is_found & (true > 0.0)
    over = is_found & (true <= 0.0)
    off = np.abs(np.where(is_found, found, 0.0) - true)
    deep = over & ~exact & (true < -band)
    known = (over & exact).any()
    return Errors(
        poses=found.size,
        apart=int(apart.sum()),
        overlapping=int(over.sum()),
        apart_error=float(off[apart].max(initial=0.0)),
        depth_error=float(off[over & exact].max()) if known else None,
        least_share=float((found[deep] / true[deep]).min()) if deep.any() else None,
        short=float((found - true)[deep].max()) if deep.any() else None,
        strays=int(strays.sum()),
    )


@dataclass(frozen=True)
class Depths:
    """Of a shape in a convex mesh of triangles: how many overlap, how deep at most; the largest
    error of a depth."""

    overlapping: int
    deepest: float
    error: float


def measure_depths(count: int, seed: int = 1) -> dict[Form, Depths]:
    """Each convex form, and such a mesh itself, against the triangles of a convex mesh: the least
    translation is known.

    Half of the poses are deep ones.
    """
    hull = next(form for form in FORMS if form.name == "convex mesh")
    forms = [*(form for form in FORMS[1:] if form.is_convex), CONVEX_AS_TRIANGLES]
    cells = [(form, CONVEX_AS_TRIANGLES) for form in forms]
    poses = poses_for(cells, count, seed)
    way = poses[::2, :, 1, :3] - poses[::2, :, 0, :3]
    poses[::2, :, 1, :3] -= 0.7 * way
    found = _least_distances(cells, poses)
    result = {}
    for world, form in enumerate(forms):
        solid = hull if form is CONVEX_AS_TRIANGLES else form
        true = np.broadcast_to(truth_of(solid, hull, poses[:, world]).distance, found.shape[:2])
        over = true <= 0.0
        result[form] = Depths(
            overlapping=int(over.sum()),
            deepest=-float(true.min()),
            error=float(np.abs(found[:, :, world] - true)[over].max()),
        )
    return result


# Which collider of the engine computes each cell.

NEVER = "no contact"
"""Of two planes, which are infinite."""


def route(first: Form, second: Form) -> str:
    """The method of the engine for a cell, in words."""
    kinds = [FIELD if form.voxels else form.type.label for form in (first, second)]
    found = ROUTES[ordered(*kinds)]
    if found is OWN_SURFACE:
        found = ROUTES[ordered(first.type.label, second.type.label)]
    return found.method


# The tables of docs/reference/shape-matrix.md.

MARKS = re.compile(r"(<!-- matrix: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| pair | found by | apart | error | overlapping | depth |\n|---|---|---|---|---|---|"
ROW = re.compile(r"^\| ([\w ]+)–([\w ]+) \| ([^|]+) \|", re.MULTILINE)


def cell_name(cell: Cell) -> str:
    return f"{cell[0].name}–{cell[1].name}"


def error_table(errors: Mapping[Cell, Errors]) -> str:
    """A row a cell."""
    rows = [HEAD]
    for cell in CELLS:
        if cell not in errors:
            rows.append(f"| {cell_name(cell)} | {route(*cell)} | | | | |")
            continue
        facts = errors[cell]
        voxel = field_voxel(cell)
        columns = (
            cell_name(cell),
            route(*cell),
            str(facts.apart),
            _length(facts.apart_error, voxel),
            str(facts.overlapping),
            _depth(facts, voxel),
        )
        rows.append(f"| {' | '.join(columns)} |")
    return "\n".join(rows)


def _length(value: float, voxel: float | None) -> str:
    return f"{value:.0e}" if voxel is None else f"{value / voxel:.2f} voxel"


def _depth(facts: Errors, voxel: float | None) -> str:
    if facts.depth_error is not None:
        return _length(facts.depth_error, voxel)
    if facts.short is None or facts.least_share is None:
        return ""
    if voxel is not None:
        return f"short by {_length(max(facts.short, 0.0), voxel)}"
    return f"{min(facts.least_share, 1.0):.2f} of the deepest"


def depth_table(depths: Mapping[Form, Depths]) -> str:
    """A row a form."""
    rows = ["| in a convex triangle mesh | overlapping | deepest | error |", "|---|---|---|---|"]
    for form, facts in depths.items():
        rows.append(
            f"| {form.name} | {facts.overlapping} | {facts.deepest:.2f} | {facts.error:.0e} |"
        )
    return "\n".join(rows)


def collider_table() -> str:
    """A row a pair of kinds, as `collide inspect --colliders --all` lists them."""
    rows = ["| pair | kind | most contacts | collider | `mpr` | `--touch-only` |", "|" + "---|" * 6]
    for (first, second), found in ROUTES.items():
        most = "any number" if found.contacts is None else str(found.contacts)
        functions = (
            f"`{name}`" if name else "" for name in (found.collider, found.mpr, found.touch)
        )
        pair = f"{first}–{second}".replace("_", " ")
        most = "" if found is OWN_SURFACE else most
        rows.append(f"| {' | '.join((pair, found.kind, most, *functions))} |")
    return "\n".join(rows)


def refreshed(text: str, tables: Mapping[str, str]) -> str:
    """A page with each of the tables between its two marks."""
    return MARKS.sub(
        lambda mark: f"{mark[1]}{tables[mark[2]]}\n{mark[3]}" if mark[2] in tables else mark[0],
        text,
    )


def table_between(text: str, name: str) -> str:
    """The table of a page between the marks of a name."""
    (found,) = (mark for mark in MARKS.finditer(text) if mark[2] == name)
    return found[0].removeprefix(found[1]).removesuffix(f"\n{found[3]}")


def listed(text: str) -> dict[tuple[str, str], str]:
    """The cells that a page lists, by the names of both, and what it says of how they are found."""
    table = table_between(text, "pairs")
    return {(first, second): words for first, second, words in ROW.findall(table)}


def expected() -> dict[tuple[str, str], str]:
    """What a page must list."""
    return {(cell[0].name, cell[1].name): route(*cell) for cell in CELLS}
