"""The verb `engine pack`: a motion as a problem for other engines."""

from __future__ import annotations

import os
from dataclasses import dataclass

from collidecli.adapters.problem import ProblemResult, about, load_problem, write_problem
from collidecli.motions.requests import EngineRequest
from collidecli.results.outputs import check_output
from collidecli.results.result import Progress


@dataclass(frozen=True, kw_only=True)
class PackResult(ProblemResult, schema="collide.engine_pack/1"):
    """A written problem."""

    output: str
    bytes: int


def pack(
    request: EngineRequest, output: str, force: bool = False, progress: Progress = None
) -> PackResult:
    """Writes the problem of a scene in motion. Raises InputError as `load_problem`, OutputError."""
    check_output(output, force, (*request.scenes, request.trajectory), (".npz",), "a problem")
    problem = load_problem(request, progress)
    write_problem(problem, output, force)
    return PackResult(**about(problem), output=output, bytes=os.path.getsize(output))
