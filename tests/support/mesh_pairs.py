"""Two triangle meshes by brute force over all pairs of their features, by winding numbers and by
FCL."""

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
from pathlib import Path

import fcl
import numpy as np
import warp as wp
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from collidecli.engine.geometry.mesh_points import is_inside_mesh, nearest_mesh_point
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.triangle_mesh import TriangleMesh
from tests.support.meshes import (
    Mesh,
    goes_through,
    nearest_to_segments,
    triangle_distances,
    windings,
)
from tests.support.oracle import rotation_of


def placed(mesh: tuple[np.ndarray, np.ndarray], pose: np.ndarray, size: float = 1.0) -> np.ndarray:
    """float64[F, 3, 3]: a mesh's triangles in the world."""
    vertices, faces = mesh
    return (size * vertices @ rotation_of(pose[None])[0].T + pose[:3])[faces]


def posed(vertices: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Vertices [V, 3] at a pose: position, then quaternion xyzw."""
    return np.asarray(vertices, float) @ rotation_of(pose).T + np.asarray(pose[:3], float)


def is_closed(faces: np.ndarray) -> bool:
    """Whether each edge belongs to two triangles that run along it in opposite directions."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ahead = {(int(p), int(q)) for p, q in edges}
    return len(ahead) == len(edges) and all((q, p) in ahead for p, q in ahead)


def part_vertices(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """float64[K, 3]: one vertex of each connected part of a mesh."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_matrix(
        (np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(vertices), len(vertices))
    )
    _, label = connected_components(graph, directed=False)
    used = np.unique(faces)
    return vertices[used[np.unique(label[used], return_index=True)[1]]]


def sides(corners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both ends, float64[E, 3], of every side of triangles, each once."""
    ends = np.stack([corners, np.roll(corners, -1, axis=1)], axis=2).reshape(-1, 2, 3)
    low_first = np.lexsort((ends[..., 2], ends[..., 1], ends[..., 0]), axis=1)
    ends = np.take_along_axis(ends, low_first[..., None], axis=1)
    ends = distinct(ends.reshape(-1, 6)).reshape(-1, 2, 3)
    return ends[:, 0], ends[:, 1]


def distinct(rows: np.ndarray) -> np.ndarray:
    """Rows [n, K], each once, in some order; `np.unique` takes several times as long, as it
    compares bytes."""
    rows = rows[np.lexsort(rows.T)]
    return rows[np.append(True, (rows[1:] != rows[:-1]).any(axis=1))]


def crosses(corners_a: np.ndarray, corners_b: np.ndarray) -> bool:
    """Whether a side of a goes through a triangle of b."""
    return bool(goes_through(*(x[:, None] for x in sides(corners_a)), corners_b).any())


def mesh_distance(corners_a: np.ndarray, corners_b: np.ndarray) -> float:
    """Distance of two surfaces; 0 where they cross."""
    if crosses(corners_a, corners_b) or crosses(corners_b, corners_a):
        return 0.0
    of_a = triangle_distances(distinct(corners_a.reshape(-1, 3)), corners_b).min()
    of_b = triangle_distances(distinct(corners_b.reshape(-1, 3)), corners_a).min()
    (p, q), (a, b) = sides(corners_a), sides(corners_b)
    of_edges = nearest_to_segments(p[:, None], q[:, None], a[None], b[None]).min()
    return float(min(of_a, of_b, of_edges))


def deepest_vertex(corners_a: np.ndarray, corners_b: np.ndarray) -> float:
    """How deep the deepest vertex of a is inside closed b; 0 where none is inside."""
    points = distinct(corners_a.reshape(-1, 3))
    box = (points > corners_b.min(axis=(0, 1))).all(axis=1) & (
        points < corners_b.max(axis=(0, 1))
    ).all(axis=1)
    points = points[box]
    inside = windings(corners_b, points) > 0.5
    return float(triangle_distances(points[inside], corners_b).max()) if inside.any() else 0.0


ENDINGS = (".stl", ".obj", ".ply", ".off", ".glb", ".msh")
MODULES = ("gymnasium_robotics", "dm_control", "robosuite")
DISTRIBUTION = "example-robot-data"
FOLDERS = "COLLIDE_ROBOT_MESHES"
"""Environment variable: further folders with meshes, between colons."""


@kernel
def ask_inside(
    meshes: Meshes, points: wp.array[Vec3], inside: wp.array[int], distance: wp.array[Real]
):
    """One thread a point of the first mesh's frame."""
    row = wp.tid()
    place = nearest_mesh_point(meshes, 0, points[row])
    inside[row] = int(is_inside_mesh(meshes, 0, points[row], place))
    distance[row] = wp.sqrt(place.square)


def engine_inside(mesh: TriangleMesh, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[n] and the distance from the surface float64[n] of points in the frame of a closed
    mesh."""
    device = wp.get_device("cpu")
    meshes = upload_meshes([mesh], device)
    inside = wp.zeros(len(points), dtype=int, device=device)
    distance = wp.zeros(len(points), dtype=Real, device=device)
    arguments = [meshes, wp.array(points, dtype=Vec3, device=device), inside, distance]
    wp.launch(ask_inside, len(points), arguments, device=device)
    return inside.numpy() == 1, distance.numpy()


def scattered_points(rng: np.random.Generator, corners: np.ndarray, count: int) -> np.ndarray:
    """float64[count, 3]: half of them anywhere in the box, half within 1e-6 to 3 % of the size of
    the surface."""
    low = corners.min(axis=(0, 1))
    high = corners.max(axis=(0, 1))
    size = float((high - low).max())
    anywhere = rng.uniform(low - 0.02 * size, high + 0.02 * size, (count // 2, 3))
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.sqrt((across * across).sum(-1))
    # By area and by number in equal parts, so that small parts have points too.
    near = count - count // 2
    rows = rng.choice(len(corners), near, p=0.5 * area / area.sum() + 0.5 / len(corners))
    weight = rng.dirichlet([1.0, 1.0, 1.0], near)
    foot = (weight[:, :, None] * corners[rows]).sum(axis=1)
    off = rng.normal(size=(near, 3))
    off *= size * 10.0 ** rng.uniform(-6.0, -1.5, (near, 1)) / np.sqrt((off * off).sum(-1))[:, None]
    return np.concatenate([anywhere, foot + off])


def robot_meshes(ends: tuple[str, ...] = ENDINGS) -> list[Path]:
    """Mesh files of the public robots that are installed, one of each content, in order. ends: of
    their paths."""
    roots = [importlib.util.find_spec(name) for name in MODULES]
    found = [
        path
        for spec in roots
        if spec is not None
        for folder in spec.submodule_search_locations or ()
        for path in Path(folder).rglob("*")
    ]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found += [Path(str(file.locate())) for file in importlib.metadata.files(DISTRIBUTION) or ()]
    found += [
        path
        for folder in filter(None, os.environ.get(FOLDERS, "").split(":"))
        for path in Path(folder).rglob("*")
    ]
    seen: dict[bytes, Path] = {}
    for path in sorted(found):
        if path.suffix.lower() in ENDINGS and (ends is ENDINGS or path.as_posix().endswith(ends)):
            seen.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return list(seen.values())


def bvh(mesh: Mesh) -> fcl.BVHModel:
    """A mesh's tree."""
    vertices, faces = mesh
    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(faces))
    model.addSubModel(
        np.ascontiguousarray(vertices, np.float64), np.ascontiguousarray(faces, np.int32)
    )
    model.endModel()
    return model


class FclPair:
    """Meshes a and b at poses (position, quaternion xyzw) [7]. closed: whether each is a solid;
    None to find out."""

    def __init__(
        self,
        mesh_a: Mesh,
        mesh_b: Mesh,
        pose_a: np.ndarray,
        pose_b: np.ndarray,
        closed: tuple[bool, bool] | None = None,
    ) -> None:
        self._at_b = np.asarray(pose_b[:3], np.float64)
        rotations = [rotation_of(np.asarray(pose)) for pose in (pose_a, pose_b)]
        self._a = fcl.CollisionObject(
            bvh(mesh_a), fcl.Transform(rotations[0], np.asarray(pose_a[:3], np.float64))
        )
        self._b = fcl.CollisionObject(bvh(mesh_b), fcl.Transform(rotations[1], self._at_b))
        placed = [posed(mesh_a[0], pose_a), posed(mesh_b[0], pose_b)]
        faces = [np.asarray(mesh[1]) for mesh in (mesh_a, mesh_b)]
        self._corners = [vertices[of] for vertices, of in zip(placed, faces, strict=True)]
        self._closed = closed or [is_closed(of) for of in faces]
        self._parts = [
            part_vertices(vertices, of) for vertices, of in zip(placed, faces, strict=True)
        ]

    def crosses(self, moved: np.ndarray | None = None) -> bool:
        """Whether a triangle of a crosses one of b, once b is moved."""
        self._b.setTranslation(self._at_b + (0.0 if moved is None else moved))
        request = fcl.CollisionRequest(num_max_contacts=1)
        return fcl.collide(self._a, self._b, request, fcl.CollisionResult()) > 0

    def overlaps(self, moved: np.ndarray | None = None) -> bool:
        """Whether they cross, or one that is closed has a part of the other inside."""
        if self.crosses(moved):
            return True
        shift = np.zeros(3) if moved is None else moved
        if self._closed[0] and np.any(
            np.abs(windings(self._corners[0], self._parts[1] + shift)) > 0.5
        ):
            return True
        return bool(
            self._closed[1]
            and np.any(np.abs(windings(self._corners[1], self._parts[0] - shift)) > 0.5)
        )

    def distance(self) -> float:
        """Distance of the two surfaces [m]."""
        self._b.setTranslation(self._at_b)
        request = fcl.DistanceRequest(enable_nearest_points=False)
        return float(fcl.distance(self._a, self._b, request, fcl.DistanceResult()))

    def crossing_pairs(self) -> np.ndarray:
        """int[n, 2]: the triangles of a and of b that cross or touch where they are."""
        self._b.setTranslation(self._at_b)
        request = fcl.CollisionRequest(num_max_contacts=1_000_000, enable_contact=True)
        result = fcl.CollisionResult()
        fcl.collide(self._a, self._b, request, result)
        return np.array([(contact.b1, contact.b2) for contact in result.contacts], int).reshape(
            -1, 2
        )

    def region_count(self) -> int:
        """Number of boxes of crossing triangle pairs, merged as long as any two of them overlap."""
        a, b = (
            corners[pairs]
            for corners, pairs in zip(self._corners, self.crossing_pairs().T, strict=True)
        )
        boxes: list[np.ndarray] = []
        for box in np.stack(
            [np.maximum(a.min(1), b.min(1)), np.minimum(a.max(1), b.max(1))], axis=1
        ):
            merged = box
            near = True
            while near:
                near = [
                    one
                    for one in boxes
                    if (one[0] <= merged[1]).all() and (merged[0] <= one[1]).all()
                ]
                boxes = [one for one in boxes if not any(one is other for other in near)]
                every = np.array([merged, *near])
                merged = np.array([every[:, 0].min(0), every[:, 1].max(0)])
            boxes.append(merged)
        return len(boxes)

    def least_translation(self, depth: float, directions: np.ndarray, factor: float) -> float:
        """The least of depth / factor^k [m] at which b, moved along one of the directions, is
        separated; or `depth`."""
        best = depth
        for direction in directions:
            while best > 1e-3 * depth and not self.overlaps(best / factor * direction):
                best /= factor
        return best
