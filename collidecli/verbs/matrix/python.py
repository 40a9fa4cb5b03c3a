"""The Python function `matrix`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from collidecli.errors import InputError
from collidecli.python.option_parameters import (
    SOURCE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import source_request
from collidecli.results.endings import MATRIX_ENDINGS
from collidecli.results.outputs import check_output
from collidecli.results.result import PathLike
from collidecli.scene.argument_types import is_integer
from collidecli.scene.arguments import python_call
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.verbs.matrix.files import check_format, write_matrix
from collidecli.verbs.matrix.matrix import (
    DEFAULT_SAMPLES,
    MOST_SAMPLES,
    MatrixRequest,
    MatrixResult,
)
from collidecli.verbs.matrix.matrix import matrix as find_matrix

FILTERS = ("disabled_pairs", "include", "exclude", "pairs_file", "self_collisions")
"""Options of scenes without an effect on a matrix."""
OPTIONS = {
    **{name: each for name, each in SOURCE_PARAMETERS.items() if name not in FILTERS},
    **option_parameters(ContactOptions, names=["margin"]),
    **option_parameters(EngineOptions, without=["broad_phase", "pipeline"]),
}


@python_call
@with_options(OPTIONS)
def matrix(
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None = None,
    output: PathLike | Sequence[PathLike] = (),
    *,
    samples: int | None = None,
    seed: int | None = None,
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> MatrixResult:
    """Which links of a robot never, always or at rest touch, over random configurations or a
    motion.

    Args:
        scene: a scene file of one robot. recording: a file whose frames are the configurations;
            None draws `samples` random ones within the joint limits, by default 10 000, from
            `seed`.
        output: files to write, by their extensions: .srdf, .xml (MJCF), .usda or .json. force:
            replace them.
        progress: show a bar, or a function of the frames done and of all.
        options: of `collide matrix` for scenes and recordings, with underscores.
    Returns:
        `pairs` with the reason of each, counts, and `to_pandas()`, a row for each pair.
    Raises:
        InputError, OutputError: as `collide matrix` does. Its warnings are `UserWarning`.
    """
    if recording is not None and (samples is not None or seed is not None):
        what = "are of random configurations, and a recording is given"
        raise InputError(what, "samples, seed", "leave one of the two out")
    outputs = [output] if isinstance(output, (str, os.PathLike)) else list(output)
    random = {
        "samples": DEFAULT_SAMPLES if samples is None else samples,
        "seed": 0 if seed is None else seed,
    }
    for name, value, least in (("samples", random["samples"], 1), ("seed", random["seed"], 0)):
        if not is_integer(value) or not least <= value <= MOST_SAMPLES:
            fix = f"give a whole number from {least} to {MOST_SAMPLES}"
            raise InputError(f"{name} is {value!r}", "matrix", fix)
    request = source_request(MatrixRequest, scene, recording, options, **random)
    for path in outputs:
        check_output(path, force, (*request.scenes, request.trajectory), MATRIX_ENDINGS, "a matrix")
        check_format(tuple(request.scenes), os.fspath(path))
    with shown_progress(progress, "testing") as advance:
        found = find_matrix(request, advance)
    written = [os.fspath(path) for path in outputs]
    found = replace(found, result=replace(found.result, written=written))
    for path in written:
        write_matrix(found, path, force)
    for text in found.result.warnings:
        warnings.warn(text, stacklevel=3)
    return found.result
