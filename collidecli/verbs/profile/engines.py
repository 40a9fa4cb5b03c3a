"""Other engines of a profile."""

from __future__ import annotations

import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.motions.machine import versions
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.profile.measured import spread_of

if TYPE_CHECKING:
    from collidecli.verbs.profile.measured import DeviceProfile
    from collidecli.verbs.profile.request import ProfileRequest

ABOUT = ("engine", "version", "options", "interpreter", "shapes", "reasons")


def profile_engines(request: ProfileRequest) -> list[dict[str, Any]]:
    """The entries of `engines` of other engines, each run `repeats` times, in turn, in processes of
    their own.

    Raises InputError as `load_problem` and `run_adapter`.
    """
    from collidecli.adapters.contact_sets import about_engine
    from collidecli.adapters.problem import load_problem, write_problem

    # a profile of this engine alone needs none of these
    from collidecli.adapters.processes import run_adapter
    from collidecli.adapters.requested_engines import check_engines

    sources = check_engines(request, with_files=False)
    problem = load_problem(request)
    runs: dict[str, list[Any]] = {name: [] for name in sources}
    with TemporaryFolder("problem") as folder:
        path = os.path.join(folder, "problem.npz")
        write_problem(problem, path, False)
        for _ in range(request.repeats):
            for name, (source, python, options) in sources.items():
                runs[name].append(run_adapter(source, python, path, problem.shape, options))
    engines = []
    for name, rows in runs.items():
        about = {
            key: value for key, value in about_engine(problem, rows[0]).items() if key in ABOUT
        }
        setup, cells = np.array([timed.seconds for timed in rows]).T
        about |= {"contacts": len(rows[0].cell), "python_loop": rows[0].python_loop or None}
        seconds = {
            "setup_seconds": spread_of(setup),
            "cell_seconds": spread_of(cells / max(1, problem.shape[0])),
        }
        engines.append({"name": name, **about, **seconds})
    return engines


def own_engine(run: DeviceProfile, cells: int) -> dict[str, Any]:
    """The entry of `engines` of the fastest broad phase of this engine."""
    fastest = run.fastest
    return {
        **{
            "name": f"collide, {fastest.name}",
            "engine": "collide",
            "version": versions()["collidecli"],
        },
        **{"options": "{}", "interpreter": platform.python_version(), "shapes": {}, "reasons": []},
        "contacts": fastest.passes[0].contact_count,
        "python_loop": "chunks",
        "setup_seconds": spread_of(np.array([fastest.setup_seconds])),
        "cell_seconds": spread_of(fastest.compute_seconds() / max(1, cells)),
    }
