"""Newton, coal and MuJoCo on meshes, hulls and piles: computing alone, one core each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.pipeline_build import find_device
from collidecli.importers.mujoco.compile import compile_mjcf
from collidecli.python.contacts import collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions
from tests.bench.passes import SCENES
from tests.bench.result import BenchTable, interleaved
from tests.bench.scenes import FOLDER, BenchScene
from tests.bench.timing import CLOCKS, Mujoco, Ours, model_and_poses
from tests.support.meshes import bumpy
from tests.support.oracle import rotation_of

BROAD_PHASES = ("explicit", "sap", "nxn")
NEWTON_FRAMES = {"humanoid": 2000, "pile_100": 100, "pile_1000": 10}
"""Frames of a pass: the frames of the scene, evenly spread."""


def measure_newton(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame of Newton, with the fastest of its broad phases, and of this engine on one
    core."""
    table = BenchTable(
        "newton",
        "Against Newton, one core each",
        [
            "scene",
            "frames",
            "broad phase",
            "contacts a frame",
            "frame by frame",
            "one batch",
            "ours",
            "batch over ours",
        ],
    )
    version = newton_version(table)
    if not version:
        return table
    table.notes = [
        f"Newton {version} works in float32; kernels are launched, not captured as graphs. Its"
        " shapes have no gap here, as in ours. Each engine derives the allowed pairs and the"
        " contacts of a pair from the same MJCF by its own rules."
    ]
    for key, frame_count in NEWTON_FRAMES.items():
        scene = SCENES[key]()
        model, poses = model_and_poses(scene)
        poses = poses[np.linspace(0, len(poses) - 1, frame_count).astype(int)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _compare(
                table,
                key,
                scene,
                Ours(model, poses, clock=CLOCKS[clock]),
                poses,
                repeats,
                CLOCKS[clock],
            )
    return table


def _compare(
    table: BenchTable,
    key: str,
    scene: BenchScene,
    ours: Ours,
    poses: np.ndarray,
    repeats: int,
    clock: Callable[[], float],
) -> None:
    frames = len(poses)
    batches = {name: newton_batch(scene, poses, frames, name, clock) for name in BROAD_PHASES}
    first = {name: min(batch.measure() for _ in range(2)) for name, batch in batches.items()}
    fastest = min(first, key=lambda name: first[name])
    single = newton_batch(scene, poses, 1, fastest, clock)
    batch = batches[fastest]
    times = interleaved(
        {
            "frame by frame": single.measure,
            "batch": batch.measure,
            "ours": lambda: ours.measure().seconds,
        },
        repeats,
    )
    counts = f"{batch.contacts / frames:.1f}, ours {ours.measure().contacts / frames:.1f}"
    table.add_times((scene.name, frames, fastest, counts), times, key, frames, "batch", "ours")


def newton_version(table: BenchTable) -> str:
    """Newton's version; empty where it is not installed, which the table then says. Warp says
    nothing from here on."""
    find_device("cpu")
    try:
        import newton
    except ImportError:
        table.notes.append("Newton is not installed: it was not measured.")
        return ""
    return newton.__version__


def newton_batch(
    scene: BenchScene, poses: np.ndarray, worlds: int, broad_phase: str, clock: Callable[[], float]
) -> NewtonFrames:
    """A scene in `worlds` copies, so many frames at a time."""
    import newton

    one = newton.ModelBuilder()
    many = newton.ModelBuilder()
    one.default_shape_cfg.gap = 0.0
    one.add_mjcf(str(scene.path))
    assert one.body_count == poses.shape[2], "Newton has other bodies"
    many.replicate(one, worlds)
    model = many.finalize(device="cpu")
    model.shape_gap.zero_()
    return NewtonFrames(
        model, poses.reshape(-1, worlds * poses.shape[2], 7), clock, broad_phase=broad_phase
    )


class NewtonFrames:
    """Newton's collision pipeline of a model, at poses [turns, bodies, 7]; `measure_newton`
    collides them in turn.

    contacts: found in the last pass. Raises where a buffer was too small: then contacts were lost.
    options: of the pipeline.
    """

    def __init__(
        self, model: Any, poses: np.ndarray, clock: Callable[[], float], **options: Any
    ) -> None:
        import newton

        self._pipeline = newton.CollisionPipeline(model, **options)
        self._buffer = self._pipeline.contacts()
        self._state = model.state()
        self._poses = [
            wp.array(turn, dtype=wp.transform, device="cpu") for turn in poses.astype(np.float32)
        ]
        self._clock = clock
        self.contacts = 0

    def measure_newton(self) -> float:
        seconds = 0.0
        self.contacts = 0
        for pose in self._poses:
            self._state.body_q = pose
            start = self._clock()
            self._pipeline.collide(self._state, self._buffer)
            seconds += self._clock() - start
            found = int(self._buffer.rigid_contact_count.numpy()[0])
            if found > self._buffer.rigid_contact_max:
                raise RuntimeError(
                    f"{found} contacts, capacity for {self._buffer.rigid_contact_max}"
                )
            self.contacts += found
        return seconds


BODIES = 100
FORMS = 5
FRAMES = 3
GAP = 0.002
"""What all of them look ahead in a pair of the pile [m]."""
ROUNDS = 25
"""Of pulling the pile together and pushing apart what overlaps."""
HULL_VERTICES = (8, 20, 40, 162, 1000)
HULL_FRAMES = 4000
HULL_GAP = 0.03
HULL_DISTANCES = {"overlapping": -0.2, "near": 0.005}
"""What is meant by it: how far apart the hulls' bounding balls are [m]; a hull is some 1 m wide."""


def measure_meshes(repeats: int, clock: str) -> BenchTable:
    """Seconds a frame or a pair of each peer and of this engine, and how many times as fast this
    is."""
    table = BenchTable(
        "meshes",
        "Meshes and hulls, one core each",
        ["scene", "peer", "contacts a frame", "peer, a frame", "ours, a frame", "times as fast"],
        notes=[
            f"The pile: {BODIES} closed bodies of 5000 triangles each, not convex, of {FORMS}"
            f" forms, pulled together and pushed apart until they rest on each other; {FRAMES}"
            " frames. Without reduction collide reports every contact of a vertex or an edge with"
            " the other surface, Newton the contacts of its edge queries. A pair's gap is"
            f" {GAP * 1e3:g} mm there for both; Newton adds the gaps of two shapes, so each has"
            f" half. Hulls 1 m wide: a pair a frame, {HULL_FRAMES} frames, each within a gap of"
            f" {HULL_GAP * 1e3:g} mm."
        ],
    )
    _measure_pile(table, repeats, CLOCKS[clock])
    _measure_hulls(table, repeats, CLOCKS[clock])
    return table


def pile_of_meshes() -> tuple[Model, np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """The pile as a model, float64[FRAMES, 1, BODIES, 7], and its forms."""
    forms = [bumpy(np.random.default_rng(seed), 51, 50, 0.1) for seed in range(FORMS)]
    builder = ModelBuilder()
    for k in range(BODIES):
        builder.add_shape_mesh(builder.add_body(), *forms[k % FORMS])
    model = builder.finalize()
    path = FOLDER / "mesh_pile.npy"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, _settled(model))
    return model, np.load(path), forms


def _settled(model: Model) -> np.ndarray:
    """Poses of frames: from a lattice, pulled to the middle; each pair is pushed apart by its
    deepest contact."""
    rng = np.random.default_rng(0)
    pose = np.zeros((BODIES, 7))
    pose[:, :3] = 0.23 * (
        np.stack(np.unravel_index(np.arange(BODIES), (5, 5, 4)), axis=1) - [2.0, 2.0, 1.5]
    )
    pose[:, 3:] = rng.normal(size=(BODIES, 4))
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    frames = []
    for turn in range(ROUNDS):
        pose[:, :3] *= 0.985 if turn < ROUNDS - FRAMES - 8 else 0.9995
        cell = collide(model, pose[None, None], gap=0.0).cell(0)
        pairs, place = np.unique(
            np.stack([cell.shape0, cell.shape1], axis=1), axis=0, return_inverse=True
        )
        for k, (a, b) in enumerate(pairs):
            here = np.flatnonzero(place.reshape(-1) == k)
            deepest = here[np.argmin(cell.distance[here])]
            push = 0.4 * cell.distance[deepest] * cell.normal[deepest]
            pose[a, :3] += push
            pose[b, :3] -= push
        frames.append(pose.copy())
    return np.array(frames[-FRAMES:])[:, None]


def _measure_pile(table: BenchTable, repeats: int, clock: Callable[[], float]) -> None:
    model, poses, forms = pile_of_meshes()
    version = newton_version(table)
    if not version:
        return
    table.notes.append(
        f"Newton {version} by its trees of boxes, in float32; its signed distance fields need a"
        " CUDA device to be built, so that path has no figure on the CPU."
    )
    for reduced in (False, True):
        ours = Ours(
            model, poses, clock=clock, contact=ContactOptions(gap=GAP, reduce_contacts=reduced)
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = newton_meshes(forms, poses, reduced, clock)
            sides = {
                "newton": theirs.measure_newton,
                "ours": lambda ours=ours: ours.measure().seconds,
            }
            times = interleaved(sides, repeats)
        what = "reduced contacts" if reduced else "all contacts"
        counts = f"{theirs.contacts / FRAMES:.0f}, ours {ours.measure().contacts / FRAMES:.0f}"
        _add(table, f"pile of meshes, {what}", "newton", counts, times, FRAMES)


def _add(
    table: BenchTable, scene: str, peer: str, counts: str, times: dict[str, np.ndarray], frames: int
) -> None:
    """A row of the table. times: seconds of `peer` and of "ours"."""
    label = {"newton": "Newton", "coal": "coal", "mujoco": "MuJoCo"}[peer]
    sides = {side: times[side] for side in (peer, "ours")}
    table.add_times((scene, label, counts), sides, f"{scene} {label}", frames, peer, "ours")


def newton_meshes(
    forms: list[tuple[np.ndarray, np.ndarray]],
    poses: np.ndarray,
    reduced: bool,
    clock: Callable[[], float],
) -> NewtonFrames:
    """The pile, a frame at a time, on pairs listed beforehand."""
    import newton

    builder = newton.ModelBuilder()
    builder.default_shape_cfg.gap = 0.5 * GAP
    meshes = [newton.Mesh(v.astype(np.float32), f.reshape(-1).astype(np.int32)) for v, f in forms]
    for k in range(BODIES):
        builder.add_shape_mesh(builder.add_body(), mesh=meshes[k % FORMS])
    model = builder.finalize(device="cpu")
    limits = {"reduce_contacts": reduced, "rigid_contact_max": 200_000}
    return NewtonFrames(model, poses[:, 0], clock, broad_phase="explicit", **limits)


def hull_points(count: int) -> np.ndarray:
    """float64[count, 3]: points of a ball of half a metre, all of them corners of their hull."""
    points = np.random.default_rng(count).normal(size=(count, 3))
    return 0.5 * points / np.linalg.norm(points, axis=1)[:, None]


def hull_poses(distance: float) -> np.ndarray:
    """float64[HULL_FRAMES, 1, 2, 7]: two bodies turned at random, their balls `distance` apart
    [m]."""
    rng = np.random.default_rng(1)
    poses = rng.normal(size=(HULL_FRAMES, 1, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses[..., 0, :3] = 0.0
    away = poses[:, 0, 1, :3]
    poses[:, 0, 1, :3] = (1.0 + distance) * away / np.linalg.norm(away, axis=1)[:, None]
    return poses


def _measure_hulls(table: BenchTable, repeats: int, clock: Callable[[], float]) -> None:
    table.notes.append(
        "coal is called from Python, a pair at a time, and the time of such a call on two distant"
        " spheres is subtracted; it gives one contact a pair, MuJoCo up to four, collide the"
        " corners of the touching faces."
    )
    for count in HULL_VERTICES:
        points = hull_points(count)
        builder = ModelBuilder()
        for _ in range(2):
            builder.add_shape_convex_hull(builder.add_body(), points)
        model = builder.finalize()
        for name, distance in HULL_DISTANCES.items():
            poses = hull_poses(distance)
            ours = Ours(model, poses, clock=clock, contact=ContactOptions(gap=HULL_GAP))
            mujoco = Mujoco(_hull_scene(points, poses), clock)
            sides = {
                "ours": lambda o=ours: o.measure().seconds,
                "mujoco": lambda m=mujoco: m.measure().seconds,
            }
            contacts = {"ours": ours.measure().contacts, "mujoco": mujoco.measure().contacts}
            try:
                coal = CoalHulls(points, poses, clock)
                sides["coal"] = coal.measure
                coal.measure()
                contacts["coal"] = coal.contacts
            except ImportError:
                table.notes.append("coal is not installed: it was not measured.")
            times = interleaved(sides, repeats)
            for peer in ("coal", "mujoco"):
                if peer in times:
                    counts = (
                        f"{contacts[peer] / HULL_FRAMES:.2f}, ours"
                        f" {contacts['ours'] / HULL_FRAMES:.2f}"
                    )
                    _add(
                        table,
                        f"hulls of {count} vertices, {name}",
                        peer,
                        counts,
                        times,
                        HULL_FRAMES,
                    )


def _hull_scene(points: np.ndarray, poses: np.ndarray) -> BenchScene:
    """The same pair in MuJoCo."""
    path = FOLDER / f"hulls_{len(points)}.xml"
    path.parent.mkdir(parents=True, exist_ok=True)
    vertices = " ".join(f"{x:.17g}" for x in points.reshape(-1))
    body = f'<body><freejoint/><geom type="mesh" mesh="hull" margin="{0.5 * HULL_GAP}"/></body>'
    path.write_text(
        '<mujoco><asset><mesh name="hull"'
        f' vertex="{vertices}"/></asset><worldbody>{2 * body}</worldbody></mujoco>'
    )
    model = compile_mjcf(path).mj_model
    # MuJoCo moves a mesh to its own middle and axes, and the geom with it: the bodies' poses are
    # the same.
    qpos = np.concatenate([poses[:, 0, :, :3], poses[:, 0][..., [6, 3, 4, 5]]], axis=-1).reshape(
        len(poses), -1
    )
    return BenchScene(path.stem, path, model, qpos)


class CoalHulls:
    """A pair of hulls in coal. contacts: found in the last pass."""

    def __init__(self, points: np.ndarray, poses: np.ndarray, clock: Callable[[], float]) -> None:
        import coal

        vertices = coal.StdVec_Vec3s()
        for point in points:
            vertices.append(point)
        self._coal = coal
        self._clock = clock
        self._hull = coal.Convex.convexHull(vertices, True, "Qt")
        self._places = [
            [coal.Transform3s(rotation_of(pose[None])[0], pose[:3]) for pose in cell]
            for cell in poses[:, 0]
        ]
        self.contacts = 0

    def measure(self) -> float:
        ball = self._coal.Sphere(1e-3)
        idle, _ = self._pass(ball)
        seconds, self.contacts = self._pass(self._hull)
        return seconds - idle

    def _pass(self, shape: object) -> tuple[float, int]:
        coal = self._coal
        clock = self._clock
        request = coal.CollisionRequest()
        result = coal.CollisionResult()
        request.security_margin = HULL_GAP
        contacts = 0
        start = clock()
        for first, second in self._places:
            result.clear()
            coal.collide(shape, first, shape, second, request, result)
            contacts += result.numContacts()
        return clock() - start, contacts
