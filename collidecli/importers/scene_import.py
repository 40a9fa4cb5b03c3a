"""The interface of the result of a scene importer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion


class SceneImport(Protocol):
    """A scene that an importer has added to a model builder.

    files: every file whose content may affect a contact; the scene file first. warnings: for the user, one line each.
    text: the scene, where it is not a file, else empty. left_out: names of geoms that cannot collide and are not in
    the model. kept: by collider, attributes that are read and checked and affect no contact.
    kinematics: of the scene's generalized coordinates, or None. articulated: the joints by name, or None.
    """

    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def text(self) -> str: ...
    @property
    def left_out(self) -> tuple[str, ...]: ...
    @property
    def kept(self) -> Mapping[str, Mapping[str, Any]]: ...
    @property
    def kinematics(self) -> Kinematics | None: ...
    @property
    def articulated(self) -> ArticulatedScene | None: ...

    def motion(self, model: Model) -> Motion | None:
        """The motion that the scene contains, of the bodies of the finalized model; None where it has none."""
        ...
