"""The interface of the result of a scene importer; the asset map, and pairs of links that SRDF
disables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Protocol

from collidecli.scene.kinematics import ArticulatedScene, Kinematics
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.sensors import Chosen, DeclaredSensors, any_sensor

EXPAND_XACRO = "expand it first: xacro FILE > robot.urdf"
"""Remedy for a URDF that is still a template of ROS's xacro."""


class SceneImport(Protocol):
    """A scene that an importer has added to a model builder.

    files: every file whose content may affect a contact; the scene file first. warnings: for the
    user, one line each. text: the scene, where it is not a file, else empty. left_out: names of
    geoms that cannot collide and are not in the model. kept: by collider, attributes that are read
    and checked and affect no contact. kinematics: of the scene's generalized coordinates, or None.
    articulated: the joints by name, or None. fixed_links: the body of each static shape that has
    one, both by name. switched: paths of colliders that are enabled and disabled over time. meshes:
    the body of each mesh collider, whose kind an option may choose, both by name.
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
    def fixed_links(self) -> Mapping[str, str]: ...
    @property
    def switched(self) -> Collection[str]: ...
    @property
    def meshes(self) -> Mapping[str, str]: ...
    @property
    def kinematics(self) -> Kinematics | None: ...
    @property
    def articulated(self) -> ArticulatedScene | None: ...

    def sensors(self, chosen: Chosen = any_sensor) -> DeclaredSensors:
        """The sensors that the scene declares. chosen: those that the notes are about."""
        ...

    def motion(self, model: Model) -> Motion | None:
        """The motion that the scene contains, of the bodies of the finalized model; None where it
        has none."""
        ...


def shapes_of_prims(
    body_of: Mapping[str, int], shape_of: Mapping[str, int]
) -> dict[str, list[int]]:
    """Rows of the shapes of each body of a stage, by the last path element, or by the path where
    that is not unique.

    body_of, shape_of: prim path to index. A shape belongs to the nearest body above it.
    """
    last = Counter(path.rpartition("/")[2] for path in body_of)
    name_of = {
        path: path.rpartition("/")[2] if last[path.rpartition("/")[2]] == 1 else path
        for path in body_of
    }
    shapes: dict[str, list[int]] = {name: [] for name in name_of.values()}
    for path, row in shape_of.items():
        owner = path
        while owner and owner not in body_of:
            owner = owner.rpartition("/")[0]
        if owner:
            shapes[name_of[owner]].append(row)
    return shapes
