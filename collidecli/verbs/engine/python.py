"""The Python function `problem`."""

from __future__ import annotations

from typing import Any

from collidecli.adapters.problem import Problem, load_problem
from collidecli.python.option_parameters import RUN_PARAMETERS, with_options
from collidecli.python.scenes import MotionSource, SceneSource, scene_request
from collidecli.scene.arguments import python_call


@python_call
@with_options(RUN_PARAMETERS)
def problem(scene: SceneSource, recording: MotionSource = None, **options: Any) -> Problem:
    """Scene files in a recorded motion for another engine: shapes, poses, the pairs that may touch,
    exact distances.

    Args:
        scene, recording, options: as of `run`; an option of this engine alone has no effect.
    Raises:
        InputError: as `run` does, and for worlds with different shapes.
    """
    return load_problem(scene_request(scene, recording, options))
