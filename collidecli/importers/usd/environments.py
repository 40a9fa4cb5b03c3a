"""Environments of a USD stage: root prims of worlds, and their equality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Environment:
    """One environment, which is one world.

    path: its root prim. pose: float64[7], the root in world [m], xyzw. template: path of the first
    environment with equal content, possibly its own. Only templates are composed on the stage.
    """

    path: str
    pose: np.ndarray
    template: str


@dataclass(frozen=True)
class Environments:
    """The environments of a stage in the order of their worlds; empty where the whole stage is one
    world.

    dropped: prims outside that refer only to an environment that is not composed: its collision
    groups and joints.
    """

    all: tuple[Environment, ...] = ()
    dropped: frozenset[str] = frozenset()
    _roots: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_roots", {environment.path: environment.template for environment in self.all}
        )

    @property
    def several(self) -> bool:
        """Whether there is more than one: a stage with one environment is one world, which --worlds
        copies."""
        return len(self.all) > 1

    def root_of(self, path: str) -> str:
        """Root of the environment of a prim; "" outside of environments."""
        if not self._roots:
            return ""
        return next((above for above in upwards(path) if above in self._roots), "")

    def is_left_out(self, path: str) -> bool:
        """Whether a prim is not composed because another environment has an equal one."""
        root = self.root_of(path)
        return bool(root and self._roots[root] != root) or any(
            above in self.dropped for above in upwards(path)
        )


def upwards(path: str) -> Iterator[str]:
    """A prim's path and those of its ancestors, the root excluded."""
    while path and path != "/":
        yield path
        path = path.rpartition("/")[0]
