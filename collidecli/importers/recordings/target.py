"""What a recording is to move: the model, and what the scene's doors know beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collidecli.errors import InputError
from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model


@dataclass(frozen=True)
class Target:
    """A loaded scene, as a recording's reader sees it.

    imports: what each door brought in, one a scene (`UsdImport`, `MjcfImport`, ...). world_import: of each of the
    model's worlds, the index of its scene.
    """

    model: Model
    imports: tuple[Any, ...]
    world_import: tuple[int, ...]

    def kinematics(self, where: str) -> Kinematics:
        """The forward kinematics of the one scene that all worlds have.

        Raises InputError at `where`: the scene has none, or there are several scenes.
        """
        found = self.find_kinematics()
        if found is None:
            several = len(set(self.world_import)) > 1
            raise InputError(
                "generalized coordinates need a scene with joints"
                + (", and there are several scenes" if several else ", and this one has no kinematics"),
                where,
                "run it with the one scene that it was recorded from",
            )
        return found

    def find_kinematics(self) -> Kinematics | None:
        """The forward kinematics of the one scene that all worlds have, if there is one."""
        used = set(self.world_import)
        return getattr(self.imports[used.pop()], "kinematics", None) if len(used) == 1 else None

    def articulated(self, where: str) -> ArticulatedScene:
        """The articulations and free bodies of the one scene that all worlds have, their joints by name.

        Raises InputError at `where`: the scene has none, or there are several scenes.
        """
        used = set(self.world_import)
        scene = self.imports[next(iter(used))] if len(used) == 1 else None
        found = getattr(scene, "articulated", None) or getattr(self.find_kinematics(), "articulated", None)
        if found is None:
            raise InputError(
                "the recording names articulations and joints"
                + (", and there are several scenes" if len(used) > 1 else ", and this scene has none"),
                where,
                "run it with the one scene that it was recorded from",
            )
        return found
