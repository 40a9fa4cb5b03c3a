"""The Python function `fidelity`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from collidecli.adapters.requested_engines import check_engines
from collidecli.python.option_parameters import (
    SCENE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import MotionSource, SceneSource, source_request
from collidecli.scene.arguments import checked_metres, python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.patterns import listed
from collidecli.verbs.fidelity.fidelity import FidelityResult
from collidecli.verbs.fidelity.fidelity import fidelity as hold
from collidecli.verbs.fidelity.request import FidelityRequest

OPTIONS = {
    **SCENE_PARAMETERS,
    **option_parameters(ContactOptions, names=["gap", "margin", "gap_rule", "static_pairs"]),
    **option_parameters(EngineOptions, names=["device"]),
}


@python_call
@with_options(OPTIONS)
def fidelity(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    engines: str | Sequence[str],
    engine_python: str | Sequence[str] = (),
    engine_option: str | Sequence[str] = (),
    band: float | str = 1e-4,
    max_missed: int | None = None,
    max_phantom: int | None = None,
    max_depth_error: float | str | None = None,
    max_depth_error_relative: float | None = None,
    max_distance_error: float | str | None = None,
    max_normal_excess: float | str | None = None,
    first: int = 10,
    progress: ShowProgress = False,
    **options: Any,
) -> FidelityResult:
    """Other engines' contacts of a motion held against exact distances.

    Args:
        scene, recording: as of `run`.
        engines: names of adapters, NAME=adapter, or files of contacts, as of `collide fidelity`;
            engine_python, engine_option: of these.
        band: pairs nearer to contact than this may be reported or not. max_missed, max_phantom:
            numbers for each engine and pair of types. max_depth_error, max_distance_error,
            max_normal_excess: lengths in metres, or texts such as "1mm"; max_depth_error_relative:
            part of the depth. None is no limit.
        first: worst answers of each engine. progress: show a bar, or a function of the frames done
            and of all.
        options: of `collide fidelity` for scenes and recordings, with underscores.
    Returns:
        `passed`, `rows` by engine and pair of types, `worst`, and `to_pandas()`, a row for each of
        `rows`.
    Raises:
        InputError: as `collide fidelity` does. Its warnings are `UserWarning`.
    """
    lengths = {
        "max_depth_error": max_depth_error,
        "max_distance_error": max_distance_error,
        "max_normal_excess": max_normal_excess,
    }
    request = source_request(
        FidelityRequest,
        scene,
        recording,
        options,
        engines=listed(engines),
        engine_python=listed(engine_python),
        engine_option=listed(engine_option),
        band=checked_metres(band, "band"),
        max_missed=max_missed,
        max_phantom=max_phantom,
        max_depth_error_relative=max_depth_error_relative,
        first=first,
        **{k: None if x is None else checked_metres(x, k) for k, x in lengths.items()},
    )
    check_engines(request)
    with shown_progress(progress, "reading") as advance:
        result = hold(request, advance)
    for text in result.warnings:
        warnings.warn(text, stacklevel=3)
    return result
