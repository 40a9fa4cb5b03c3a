"""Names of environments, the root prims of worlds, in paths of shapes and bodies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from collidecli.scene.name_patterns import matcher, path_patterns

DEFAULT_PATTERN = "/World/envs/[Ee]nv_[0-9]*"
"""Default pattern of environments: the names that Isaac Lab and Newton give them."""
GUIDE_PATTERN = "/World/[Ee]nv_[0-9]*"
"""Default pattern where none matches the first: the names of Isaac Lab's guide. Names must end with
the number: a prim beside the environments may have a name such as Env_0_light."""
NO_ENVIRONMENTS = "none"
ENV_NUMBER = re.compile(r"_[0-9]+$")
"""The end of a name that GUIDE_PATTERN is for."""


def environment_root(path: str, roots: Collection[str]) -> str:
    """The environment's root at the start of a path; "" for none."""
    end = len(path) if roots else 0
    while end > 0:
        if path[:end] in roots:
            return path[:end]
        end = path.rfind("/", 0, end)
    return ""


def local_path(path: str, roots: Collection[str]) -> str:
    """The path relative to its environment's root; "." for the root itself."""
    root = environment_root(path, roots)
    return (path[len(root) + 1 :] or ".") if root else path


def roots_by_pattern(paths: Iterable[str], pattern: str) -> frozenset[str]:
    """The roots of environments in paths of shapes, where no scene is at hand that has them.

    pattern: the run's option `environments`; "" stands for the default patterns.
    """
    if pattern == NO_ENVIRONMENTS:
        return frozenset()
    given = list(paths)
    roots = _matching(given, pattern or DEFAULT_PATTERN)
    if pattern or roots:
        return roots
    return frozenset(path for path in _matching(given, GUIDE_PATTERN) if ENV_NUMBER.search(path))


def _matching(paths: Iterable[str], pattern: str) -> frozenset[str]:
    """The starts of paths whose names match those of a pattern."""
    tests = [matcher(name, "--environments") for name in path_patterns(pattern)]
    starts = (path.split("/")[: len(tests)] for path in paths)
    return frozenset(
        "/".join(names)
        for names in starts
        if len(names) == len(tests)
        and all(is_met(name) for is_met, name in zip(tests, names, strict=True))
    )
