"""The Python function `check`."""

from __future__ import annotations

from collidecli.results.result import PathLike
from collidecli.scene.arguments import python_call
from collidecli.verbs.check.check import CheckResult
from collidecli.verbs.check.check import check as check_rules


@python_call
def check(path: PathLike) -> CheckResult:
    """Whether a contact set or a trajectory is well formed, complete and unchanged.

    Returns:
        `good`, and `findings`, each with `where` and `what`.
    Raises:
        InputError: the file cannot be opened, or is neither a contact set nor a trajectory.
    """
    return check_rules(path)
