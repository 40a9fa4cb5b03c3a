"""Runs of adapters, each in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from collidecli import started_processes
from collidecli.adapters.rows import read_rows
from collidecli.errors import InputError
from collidecli.scene.model import Model
from collidecli.started_processes import life_line
from collidecli.storage.reading_limit import check_size
from collidecli.temporary_folders import TemporaryFolder
from collidecli.wording import did_you_mean

if TYPE_CHECKING:
    from collidecli.adapters.rows import EngineRows

ADAPTERS = {
    "mujoco": "mujoco",
    "newton": "newton",
    "coal": "coal",
    "fcl": "python-fcl",
    "drake": "drake",
}
ADAPTERS |= {"bullet": "pybullet", "dart": "dartpy", "rapier": "rapier3d"}
"""Engines with an adapter, and the package of each on PyPI."""
OLD_VERSION = "OldVersion: "
"""Begin of the last line of an adapter that refuses a version of its engine, see
`engines/adapter.py`."""
RUN_ADAPTER = """\
import sys
sys.path[:] = [folder for folder in sys.path if folder]
import os, runpy
runpy.run_path(sys.argv[1])["end_at_hangup"](0)
del sys.argv[:2]
sys.path.append(os.path.dirname(os.path.abspath(sys.argv[0])))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs an adapter, which ends with this process. Modules beside it come last, those of the current
folder not at all: a file there, or beside a recording, may have the name of a module of Python."""
STARTED_PROCESSES = started_processes.__file__
LAST_LINES = 4
"""Lines of an adapter's standard error in the message of its failure."""


def adapter_of(engine: str, option: str = "--engines") -> str:
    """Path of an engine's adapter: one of ADAPTERS, or a Python file. Raises InputError for another
    one."""
    if engine.endswith(".py"):
        if not os.path.isfile(engine):
            raise InputError("there is no such adapter", engine, "give a Python file, or an engine")
        return engine
    if engine not in ADAPTERS:
        fix = did_you_mean(
            engine, ADAPTERS, f"the engines are: {', '.join(ADAPTERS)}; NAME=adapter.py is your own"
        )
        raise InputError(f"there is no adapter of '{engine}'", option, fix)
    return str(Path(__file__).parent / "engines" / f"{engine}.py")


def run_adapter(
    engine: str, python: str, problem: str, shape: tuple[int, int, int], options: Sequence[str] = ()
) -> EngineRows:
    """The rows of an engine, which runs in a process of its own.

    Args:
        engine: of `adapter_of`. python: an interpreter; "" is this one. problem: path. shape: as in
            `read_rows`.
        options: texts NAME=VALUE, further arguments of the adapter, which writes those that it
            used.
    Raises InputError: no such interpreter, an engine that is not installed there, a failure,
    invalid rows, or an
    option that the adapter does not have.
    """
    adapter = adapter_of(engine)
    with TemporaryFolder("rows") as folder:
        rows = os.path.join(folder, "rows.npz")
        command = [python or sys.executable, "-c", RUN_ADAPTER, STARTED_PROCESSES, adapter]
        command += [problem, rows, *options]
        try:
            with life_line() as stdin:
                done = subprocess.run(
                    command,
                    stdin=stdin,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                )
        except OSError as error:
            fix = "give the path of a Python interpreter"
            raise InputError(
                f"cannot be started: {error.strerror}", f"--engine-python, {python}", fix
            ) from error
        if done.returncode or not os.path.exists(rows):
            raise _failure(engine, command[0], done)
        answer_rows = read_rows(rows, shape)
    used = json.loads(answer_rows.options)
    unused = [text for text in options if text.partition("=")[0] not in used]
    if unused:
        what = f"the adapter did not use '{unused[0]}'"
        raise InputError(
            what, f"--engine-option, engine {engine}", f"its options are in {adapter_of(engine)}"
        )
    return answer_rows


def _failure(engine: str, python: str, done: subprocess.CompletedProcess[str]) -> InputError:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    where = f"engine {engine}"
    if lines and lines[-1].startswith("ModuleNotFoundError"):
        package = ADAPTERS.get(engine, "the engine")
        fix = (
            f"install it: {python} -m pip install {package}; or name an interpreter that has it"
            " with --engine-python"
        )
        return InputError(lines[-1].removeprefix("ModuleNotFoundError: "), where, fix)
    if lines and lines[-1].startswith(OLD_VERSION):
        what, _, least = lines[-1].removeprefix(OLD_VERSION).rpartition(" ")
        fix = f"install it: {python} -m pip install '{ADAPTERS.get(engine, engine)}>={least}'"
        return InputError(f"{what} {least}", where, fix)
    what = (
        f"the adapter ended with code {done.returncode}"
        if done.returncode
        else "the adapter wrote no rows"
    )
    return InputError(
        f"{what}: {' | '.join(lines[-LAST_LINES:]) or 'without a message'}",
        where,
        "correct the adapter",
    )


def check_problem_size(model: Model, cells: int) -> None:
    """Raises InputError for poses that need more memory than reading may use."""
    check_size(
        cells * len(model.shapes) * 7 * 8,
        f"the poses of {cells} cells",
        "the motion",
        "select --frames",
    )
