"""Signed distance fields, and scenes with them."""

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Vec3
from collidecli.engine.geometry.sdf_grids import SdfGrid, SdfGrids, sample_grid, upload_grids
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.model import Model
from collidecli.scene.sdf_options import SdfOptions, SdfShape, sdf_shape
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.meshes import blob, torus, triangle_distances, windings
from tests.support.poses import poses_of_two


@kernel
def _sample(grids: SdfGrids, number: int, point: wp.array[Vec3], out: wp.array2d[wp.float64]):
    thread = wp.tid()
    found = sample_grid(grids, number, point[thread])
    out[thread, 0] = found.value
    for axis in range(3):
        out[thread, 1 + axis] = found.gradient[axis]
    out[thread, 4] = wp.float64(found.inside)


def sampled(
    grids: list[SdfGrid], points: np.ndarray, number: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value float64[n], gradient float64[n, 3] and whether the grid reaches there, at points of the
    shape's frame."""
    device = find_device("cpu")
    held = upload_grids(grids, device)
    out = wp.zeros((len(points), 5), dtype=wp.float64, device=device)
    wp.launch(
        _sample,
        len(points),
        [held, number, wp.array(points, dtype=Vec3, device=device), out],
        device=device,
    )
    table = out.numpy()
    return table[:, 0], table[:, 1:4], table[:, 4] > 0.0


def field_of(
    shape_type: ShapeType,
    size: tuple[float, ...] = (),
    mesh: TriangleMesh | None = None,
    hull: ConvexHull | None = None,
    **options: object,
) -> SdfShape:
    """What a shape asks for. size: less those that are 0, or of a mesh all."""
    held = mesh or hull
    full = held.half_extents if held is not None else np.array([*size, 0.0, 0.0, 0.0][:3])
    found = sdf_shape(SdfOptions(**options), shape_type, full, hull, mesh, "the test")
    assert found is not None
    return found


def bowl(opening: tuple[float, float, float] = (0.0, 0.0, 1.0), below: float = 0.0) -> TriangleMesh:
    """The part of a unit ball's surface, by default a half, that is not farther than `below`
    towards its opening."""
    vertices, faces = blob(np.random.default_rng(0), 16, 24, 0.0)
    kept = vertices[faces].mean(axis=1) @ opening < below
    return triangle_mesh(vertices, faces[kept], "bowl")


def dirty(seed: int = 3) -> TriangleMesh:
    """Two blobs through each other, with holes, doubled triangles, triangles turned over, and
    shreds between them."""
    rng = np.random.default_rng(seed)
    (v, f), (w, g) = blob(rng, 10, 14, 0.2), blob(rng, 10, 14, 0.2)
    shreds = rng.uniform(-0.4, 0.4, size=(6, 3))
    vertices = np.concatenate([v, w + np.array([0.9, 0.2, 0.1]), shreds])
    faces = np.concatenate([f, g + len(v), np.arange(6).reshape(2, 3) + len(v) + len(w)])
    turned = rng.choice(len(faces), 4, replace=False)
    faces[turned] = faces[turned][:, ::-1]
    kept = np.delete(np.arange(len(faces)), rng.choice(len(faces), 6, replace=False))
    return triangle_mesh(vertices, np.concatenate([faces[kept], faces[:3]]), "dirty")


def ring() -> TriangleMesh:
    return triangle_mesh(*torus(32, 16), "torus")


def exact_of_mesh(mesh: TriangleMesh, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unsigned distance and winding number at each point, by brute force in float64."""
    corners = mesh.vertex[mesh.face]
    return triangle_distances(points, corners), windings(corners, points)


BLOB = blob(np.random.default_rng(8), 8, 12, 0.25)
RING = torus(20, 10)
HULL = np.random.default_rng(4).normal(size=(24, 3)) * 0.5


def add(builder: ModelBuilder, body: int, name: str, cfg: ShapeConfig | None = None) -> int:
    """A shape of about unit size."""
    if name == "blob":
        return builder.add_shape_mesh(body, *BLOB, cfg=cfg)
    if name == "ring":
        return builder.add_shape_mesh(body, *RING, cfg=cfg)
    if name == "hull":
        return builder.add_shape_convex_hull(body, HULL, cfg=cfg)
    sizes = {
        "sphere": {"radius": 0.7},
        "capsule": {"radius": 0.3, "half_height": 0.6},
        "box": {"hx": 0.8, "hy": 0.6, "hz": 0.4},
        "cylinder": {"radius": 0.5, "half_height": 0.6},
        "cone": {"radius": 0.6, "half_height": 0.7},
        "ellipsoid": {"rx": 0.9, "ry": 0.6, "rz": 0.4},
    }
    return getattr(builder, f"add_shape_{name}")(body, cfg=cfg, **sizes[name])


def pair_model(
    first: str, second: str, fields: tuple[bool, bool], resolution: int = 32, gap: float = 0.3
) -> Model:
    """Two bodies with a shape each. fields: which of the two have a signed distance field."""
    builder = ModelBuilder()
    builder.default_gap = gap
    for name, wanted in zip((first, second), fields, strict=True):
        cfg = ShapeConfig(sdf_max_resolution=resolution) if wanted else None
        add(builder, builder.add_body(), name, cfg)
    return builder.finalize()


def random_poses(count: int, spread: float, seed: int = 0) -> np.ndarray:
    """float64[count, 1, 2, 7]: two bodies, the second within `spread` of the first."""
    return poses_of_two(np.random.default_rng(seed), count, spread, 0.6 * spread)


def least(contacts: Contacts, count: int) -> np.ndarray:
    """float64[count]: the least distance of each frame, inf where there is no contact."""
    result = np.full(count, np.inf)
    np.minimum.at(
        result, np.repeat(np.arange(count), np.diff(contacts.cell_start)), contacts.distance
    )
    return result


def found(model: Model, poses: np.ndarray, **options: object) -> Contacts:
    return collide(model, poses, device="cpu", **options)
