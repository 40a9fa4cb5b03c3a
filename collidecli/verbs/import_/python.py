"""The Python function `import_contacts`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal

from collidecli.adapters.contact_sets import ImportRequest, ImportResult
from collidecli.adapters.contact_sets import import_contacts as write_contacts
from collidecli.python.option_parameters import (
    SOURCE_PARAMETERS,
    option_parameters,
    with_options,
)
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import source_request
from collidecli.results.result import PathLike
from collidecli.scene.arguments import python_call
from collidecli.scene.option_values import CONTACT_FORMATS
from collidecli.scene.options import ContactOptions

OPTIONS = {
    **SOURCE_PARAMETERS,
    **option_parameters(ContactOptions, names=["gap", "margin", "gap_rule", "static_pairs"]),
}


@python_call
@with_options(OPTIONS)
def import_contacts(
    source: PathLike,
    output: PathLike,
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None = None,
    *,
    layout: Literal["rows", "mujoco", "newton", "dart", "genesis", "raisim"] = "rows",
    compression: Literal["gzip", "none", "lzf", "zstd"] = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> ImportResult:
    """Writes contacts of another engine, or those that a simulation logged, as a contact set.

    Args:
        source: rows of an adapter, or a log in the `layout` of an export. output: the contact set.
        scene, recording: those of the simulation, as of `run`.
        compression, force, format: of the output. progress: show a bar, or a function of the frames
            done and of all.
        options: of `collide import` for scenes and recordings, with underscores.
    Returns:
        `output`, counts, and the `engine`.
    Raises:
        InputError, OutputError: as `collide import` does. Its warnings are `UserWarning`.
    """
    request = source_request(
        ImportRequest,
        scene,
        recording,
        options,
        source=os.fspath(source),
        output=os.fspath(output),
        layout=layout,
        compression=compression,
        format=format,
        force=force,
    )
    with shown_progress(progress, "importing") as advance:
        result = write_contacts(request, advance)
    for text in result.warnings:
        warnings.warn(text, stacklevel=3)
    return result
