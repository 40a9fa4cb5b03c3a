"""The Python function `merge`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.results.result import PathLike
from collidecli.scene.arguments import python_call
from collidecli.verbs.merge.merge import MergeRequest, MergeResult
from collidecli.verbs.merge.merge import merge as join


@python_call
def merge(
    contacts: Sequence[PathLike],
    output: PathLike,
    *,
    worlds: bool = False,
    compression: Literal["gzip", "none", "lzf", "zstd"] = "gzip",
    format: int | None = None,
    force: bool = False,
    progress: ShowProgress = False,
) -> MergeResult:
    """Joins contact sets of disjoint frames, or with worlds=True of disjoint worlds, to the contact
    set of a single run.

    Args:
        contacts: paths of two contact sets at least. output: the contact set.
        compression, force, format: of the output; None is the format of the sets.
        progress: show a bar, or a function of the parts done and of all.
    Returns:
        `output` and its size.
    Raises:
        InputError, OutputError: as `collide merge` does.
    """
    files = [os.fspath(path) for path in contacts]
    request = MergeRequest(files, os.fspath(output), worlds, compression, format, force)
    with shown_progress(progress, "merging") as advance:
        return join(request, advance)
