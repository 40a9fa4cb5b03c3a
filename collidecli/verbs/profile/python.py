"""The Python function `profile`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from collidecli.analysis.buffer_margin import DEFAULT_MARGIN
from collidecli.errors import InputError
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.scene.arguments import check_count, python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.patterns import listed
from collidecli.verbs.profile.profile import ProfileResult
from collidecli.verbs.profile.profile import profile as measure
from collidecli.verbs.profile.request import ProfileRequest

OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, without=["sweep", "sweep_tolerance"]),
    **option_parameters(EngineOptions, without=["broad_phase", "pipeline"]),
}


@python_call
@with_options(OPTIONS)
def profile(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    repeats: int = 5,
    devices: str | Sequence[str] = (),
    engines: str | Sequence[str] = (),
    engine_python: str | Sequence[str] = (),
    engine_option: str | Sequence[str] = (),
    sizes: bool = False,
    size_margin: float = DEFAULT_MARGIN,
    progress: ShowProgress = False,
    **options: Any,
) -> ProfileResult:
    """The times of every broad phase on one motion, and which is fastest.

    Args:
        scene, recording: as of `run`.
        repeats: least number of measurements of each. devices: to compare, such as ["cpu", "cuda"].
        engines: other engines to time, as [NAME=]ADAPTER; engine_python, engine_option: of these,
            as of `collide profile`.
        sizes: count what buffers of physics engines take; `sizes` of the result. size_margin: of
            the advised sizes over the bounds, at least 1.
        progress: show a bar, or a function of the frames done and of all.
        options: of `collide profile` for scenes, recordings and contacts, with underscores.
    Returns:
        `phases` with times [s] and counts, `fastest`, `identical`, and `to_pandas()`, a row for
        each phase.
    Raises:
        InputError: as `collide profile` does. Its warnings are `UserWarning`.
    """
    check_count("repeats", repeats, "profile")
    if not size_margin >= 1.0:
        raise InputError(f"is {size_margin!r}", "size_margin", "give a factor of at least 1")
    request = source_request(
        ProfileRequest,
        scene,
        recording,
        options,
        repeats=repeats,
        devices=",".join(listed(devices)),
        engines=listed(engines),
        engine_python=listed(engine_python),
        engine_option=listed(engine_option),
        sizes=sizes,
        size_margin=size_margin,
    )
    with shown_progress(progress, "profiling") as advance:
        result = measure(request, advance)
    for text in result.warnings:
        warnings.warn(text, stacklevel=3)
    return result
