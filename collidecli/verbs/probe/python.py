"""The Python function `probe`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.probe_files import ProbeFile, probe_array
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.results.result import PathLike
from collidecli.scene.argument_types import is_integer
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.patterns import listed
from collidecli.verbs.probe.probe import ProbeRequest, ProbeResult
from collidecli.verbs.probe.probe import probe as measure

OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, names=["margin", "static_pairs"]),
    **option_parameters(EngineOptions, names=["device", "threads", "cache_dir", "cache_limit"]),
}


@python_call
@with_options(OPTIONS)
def probe(
    scene: SceneSource,
    recording: MotionSource = None,
    output: PathLike | None = None,
    *,
    vertices_of: str | Sequence[str] = (),
    spacing: float | str = 0.0,
    points: PathLike | np.ndarray = "",
    rays: PathLike | np.ndarray = "",
    partners: str | Sequence[str] = (),
    threshold: float | str | None = None,
    first: int = 20,
    force: bool = False,
    arrays: bool = True,
    progress: ShowProgress = False,
    **options: Any,
) -> ProbeResult:
    """Contact maps of bodies, distances of points, or rays, in every frame of a motion.

    One of vertices_of, points and rays is given.

    Args:
        scene, recording: as of `run`.
        output: a file of all values, .h5 or .npz; None writes none.
        vertices_of: patterns of bodies or shapes, whose vertices are measured. spacing: of points
            on their edges and faces, in metres or as a text such as "5mm"; 0 is vertices alone.
        points, rays: a file, as of `collide probe`, or an array of points [n, 3] or rays [n, 6] in
            the frame of the world [m]: x, y, z, of rays then a direction of any length but 0.
            Points that are fixed in bodies are in a CSV file with the column `body`.
        partners: patterns of the shapes that are measured from; () is all others.
        threshold: add an array of which points are at most this near, in metres or as a text.
        first: number of the nearest points in `listed`. force: replace the output.
        arrays: keep all values in memory, 12 bytes or more for each point, world and frame; False
            for outputs that are larger than that.
        progress: show a bar, or a function of the frames done and of all.
        options: of `collide probe` for scenes and recordings, with underscores.
    Returns:
        `listed`, the nearest points over the whole motion with distance [m], shape, frame and time
        [s]; counts; and `to_pandas()`, a row for each of them. `arrays`, the `ProbeArrays` of all
        frames, worlds and points, with `to_pandas()` and `to_xarray()` of their own.
    Raises:
        InputError: as `collide probe` does. OutputError. Its warnings are `UserWarning`.
    """
    if not is_integer(first) or first < 0:
        raise InputError(f"first is {first!r}", "probe", "give an integer of at least 0")
    request = source_request(
        ProbeRequest,
        scene,
        recording,
        options,
        output="" if output is None else os.fspath(output),
        vertices_of=listed(vertices_of),
        spacing=checked_metres(spacing, "spacing"),
        points=_points(points, of_rays=False),
        rays=_points(rays, of_rays=True),
        partners=listed(partners),
        threshold=None if threshold is None else checked_metres(threshold, "threshold"),
        first=first,
        force=force,
    )
    with shown_progress(progress, "measuring") as advance:
        result = measure(request, advance, keep_arrays=arrays)
    for text in result.warnings:
        warnings.warn(text, stacklevel=3)
    return result


def _points(given: PathLike | np.ndarray, of_rays: bool) -> str | ProbeFile:
    """The path of a file, or the points or rays of an array. Raises InputError."""
    if isinstance(given, str | os.PathLike):
        return os.fspath(given)
    return probe_array(given, of_rays)
