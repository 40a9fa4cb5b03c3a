"""The verb `probe`: contact maps of bodies, distances of points, and rays, along a motion."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.importers.probe_files import ProbeFile, read_probe_file
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.probes import (
    ProbeBlock,
    ProbedMotion,
    Probes,
    probes_of_file,
    vertices_of,
)
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import MotionResult, scene_in_motion
from collidecli.results.outputs import check_ending, check_output
from collidecli.results.result import ARRAYS, Progress
from collidecli.scene.chosen_pairs import trigger_notes
from collidecli.scene.model import Model
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.verbs.probe.arrays import ProbeArrays, joined_arrays
from collidecli.verbs.probe.files import ENDINGS, MapArrays, Write, written_map

VERTICES = "vertices"
POINTS = "points"
RAYS = "rays"


@dataclass(frozen=True, kw_only=True)
class ProbeRequest(EngineRequest):
    """A scene, its motion, and what is measured: one of vertices_of, points and rays.

    vertices_of: patterns of bodies or shapes. spacing: of their points [m], 0 for vertices alone.
    points, rays: files, or what was read of one. partners: patterns of the shapes that are measured
    from; none is all. threshold: at most which a point is near [m]; None for no array. output: ""
    writes no file. first: number of the nearest points that are listed.
    """

    vertices_of: Sequence[str] = ()
    spacing: float = 0.0
    points: str | ProbeFile = ""
    rays: str | ProbeFile = ""
    partners: Sequence[str] = ()
    threshold: float | None = None
    output: str = ""
    first: int = 20
    force: bool = False

    @property
    def kind(self) -> str:
        """What is measured: VERTICES, POINTS or RAYS."""
        return VERTICES if self.vertices_of else POINTS if self.points else RAYS


@dataclass(frozen=True, kw_only=True)
class ProbeResult(MotionResult, schema="collide.probe/1", rows="listed"):
    """Least distances of the points or rays of a motion. Lengths [m], times [s].

    kind: "vertices", "points" or "rays". points: number of them. found: points in all cells with a
    distance, of rays those with a crossing. near: points in all cells within the threshold, None
    without one. listed: the nearest points over the whole motion, each with its least distance, the
    shape it is from, and the frame, time and world. arrays: all values, of the Python function
    alone.
    """

    kind: str
    frames: int
    worlds: int
    points: int
    found: int
    near: int | None
    listed: list[dict[str, Any]]
    warnings: tuple[str, ...]
    output: str | None
    bytes: int | None
    arrays: ProbeArrays | None = field(
        default=None, repr=False, compare=False, metadata={ARRAYS: True}
    )


def check_probe(request: ProbeRequest) -> None:
    """Raises InputError for options that do not go together, OutputError for an output that cannot
    be written."""
    request.engine.checked()
    request.contact.checked()
    given = [bool(request.vertices_of), bool(request.points), bool(request.rays)]
    if sum(given) != 1:
        what = "nothing to measure is given" if not any(given) else "several things are given"
        raise InputError(what, fix="give one of --vertices-of, --points and --rays")
    if request.spacing and not request.vertices_of:
        what = "the spacing is of points on surfaces, and none are chosen"
        raise InputError(what, "--spacing", "leave it out, or give --vertices-of PATTERN")
    if request.threshold is not None and request.rays:
        what = "a threshold is for distances of points, and rays are given"
        raise InputError(what, "--threshold", "leave it out")
    if request.output:
        check_ending(request.output, ENDINGS, "a file of distances")
        files = [file for file in (request.points, request.rays) if file and isinstance(file, str)]
        check_output(request.output, request.force, (*request.scenes, request.trajectory, *files))


def probe(
    request: ProbeRequest, progress: Progress = None, *, keep_arrays: bool = False
) -> ProbeResult:
    """Measures the points or rays of a motion and writes the output.

    keep_arrays: whether the result has all values.

    Raises InputError for an unusable scene, recording, file or selection, OutputError; then there
    is no output.
    """
    check_probe(request)
    device = find_device(request.engine.device)
    scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        probed = ProbedMotion(
            request.engine, model, motion, chosen_probes(request, scene, model), device
        )
        tally = _Tally(probed, request)
        values = map_arrays(request).values
        kept: list[dict[str, np.ndarray]] = []
        done = 0
        with _written(request, scene, probed) as write:
            for block in probed.blocks():
                write(block)
                tally.add(block)
                if keep_arrays:
                    kept.append(values(block))
                done += len(block.distance)
                if progress:
                    progress(done, len(motion.time))
        result = tally.result(request, scene)
        return replace(result, arrays=joined_arrays(probed, kept)) if kept else result
    finally:
        motion.close()


def chosen_probes(request: ProbeRequest, scene: LoadedScene, model: Model) -> Probes:
    """The points or rays of a request. Raises InputError."""
    if request.vertices_of:
        return vertices_of(scene, model, request.vertices_of, request.partners, request.spacing)
    given = request.points or request.rays
    file = read_probe_file(given, bool(request.rays)) if isinstance(given, str) else given
    option = "--rays" if request.rays else "--points"
    return probes_of_file(scene, model, file, option, request.partners)


def map_arrays(request: ProbeRequest) -> MapArrays:
    """The arrays of the output: of a map of vertices float32, of points and rays float64."""
    real = np.dtype(np.float32 if request.vertices_of else np.float64)
    return MapArrays(real, request.threshold, bool(request.rays))


@contextmanager
def _written(request: ProbeRequest, scene: LoadedScene, probed: ProbedMotion) -> Iterator[Write]:
    """A function that writes a block to the output, which appears when the `with` block ends
    without an error."""
    if not request.output:
        yield lambda block: None
        return
    about: dict[str, Any] = {
        "scene": scene.name,
        "scene_sha256": scene.sha256,
        "kind": request.kind,
        "config": _config(request),
    }
    with AtomicOutput(request.output, request.force) as output:
        with written_map(output, request.output, probed, map_arrays(request), about) as write:
            yield write
        output.commit()


def _config(request: ProbeRequest) -> dict[str, object]:
    importing = {**asdict(request.scene_options), **asdict(request.recording)}
    given = {name: value for name, value in importing.items() if value}
    chosen = {
        "vertices_of": list(request.vertices_of),
        "spacing": request.spacing,
        "partners": list(request.partners),
        "threshold": request.threshold,
        "margin": request.contact.margin,
        "static_pairs": request.contact.static_pairs,
    }
    return {**given, **chosen, "frames": request.frames, "worlds": request.worlds}


class _Tally:
    """Sums over the blocks, and the least distance of each point."""

    def __init__(self, probed: ProbedMotion, request: ProbeRequest) -> None:
        self._probed = probed
        self._arrays = map_arrays(request)
        count = len(probed.probes)
        self._least = np.full(count, np.inf)
        self._cell = np.zeros(count, np.int64)
        self._shape = np.full(count, -1, np.int64)
        self._found = 0
        self._near = 0

    def add(self, block: ProbeBlock) -> None:
        _, worlds, count = block.distance.shape
        found = block.shape >= 0
        self._found += int(found.sum())
        if self._arrays.threshold is not None:
            self._near += int(self._arrays.values(block)["near"].sum())
        values = np.where(found, block.distance, np.inf).reshape(-1, count)
        cell = values.argmin(axis=0)
        least = values[cell, np.arange(count)]
        nearer = np.flatnonzero(least < self._least)
        self._least[nearer] = least[nearer]
        self._cell[nearer] = cell[nearer] + block.first * worlds
        self._shape[nearer] = block.shape.reshape(-1, count)[cell[nearer], nearer]

    def result(self, request: ProbeRequest, scene: LoadedScene) -> ProbeResult:
        probed = self._probed
        motion = probed.motion
        frames, worlds, count = probed.shape
        order = np.argsort(self._least, kind="stable")
        order = order[np.isfinite(self._least[order])]
        return ProbeResult(
            **MotionResult.source(request, scene, motion),
            kind=request.kind,
            frames=frames,
            worlds=worlds,
            points=count,
            found=self._found,
            near=None if request.threshold is None else self._near,
            listed=[self._row(point) for point in order[: request.first].tolist()],
            warnings=(
                *scene.warnings,
                *motion.warnings,
                *probed.notes,
                *trigger_notes(scene.model.shapes.is_trigger),
            ),
            output=request.output or None,
            bytes=os.path.getsize(request.output) if request.output else None,
        )

    def _row(self, point: int) -> dict[str, Any]:
        probed = self._probed
        probes = probed.probes
        frame, world = divmod(int(self._cell[point]), probed.shape[1])
        paths = probed.model.shapes.path
        body = int(probes.body[point])
        own = int(probes.shape[point])
        return {
            "point": point,
            "of": paths[own] if own >= 0 else probed.model.bodies.path[body] if body >= 0 else "",
            "least_distance": float(self._least[point]),
            "shape": paths[int(self._shape[point])],
            "frame": frame,
            "time": float(probed.motion.time[frame]),
            "world": world,
            "position": probes.point[point].tolist(),
        }
