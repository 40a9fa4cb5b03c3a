"""Scenes that are given as a model and its motion, in place of files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.elapsed import Elapsed
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.sensors import Chosen, DeclaredSensors, any_sensor

if TYPE_CHECKING:
    from collidecli.scene.episodes import Episodes
    from collidecli.scene.kinematics import ArticulatedScene, Kinematics

NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class GivenScene:
    """A model, and its motion, which stays open."""

    model: Model
    motion: Motion


class GivenImport:
    """The interface of an import, `SceneImport`, of a model without a file: it has a motion, and
    neither joints by name nor sensors."""

    files: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    text: str = ""
    left_out: tuple[str, ...] = ()
    kept: Mapping[str, Mapping[str, Any]] = NOTHING
    fixed_links: Mapping[str, str] = NOTHING
    switched: tuple[str, ...] = ()
    meshes: Mapping[str, str] = NOTHING
    kinematics: Kinematics | None = None
    articulated: ArticulatedScene | None = None

    def __init__(self, motion: Motion) -> None:
        self._motion = motion

    def sensors(self, chosen: Chosen = any_sensor) -> DeclaredSensors:
        """None: sensors are declared by scene files."""
        return DeclaredSensors()

    def motion(self, model: Model) -> Motion:
        """The motion that was given."""
        return LentMotion(self._motion)


class LentMotion:
    """A motion of the caller, who closes it: all but `close` is that of the motion."""

    time: np.ndarray
    step: np.ndarray
    world_count: int
    float_type: np.dtype
    episodes: Episodes | None
    warnings: tuple[str, ...]
    kinematics_time: Elapsed
    sha256: str

    def __init__(self, motion: Motion) -> None:
        self._motion = motion

    def __getattr__(self, name: str) -> Any:
        return getattr(self._motion, name)

    def read(self, frames: range) -> np.ndarray:
        """See `Motion.read`."""
        return self._motion.read(frames)

    def close(self) -> None:
        """Nothing: the caller may read the motion again."""


def given_scene(given: GivenScene) -> LoadedScene:
    """A model as a loaded scene; it has no name."""
    model = given.model
    imported = GivenImport(given.motion)
    worlds = (0,) * model.world_count
    return LoadedScene(model, "", "", (imported,), (), worlds)
