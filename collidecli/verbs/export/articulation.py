"""What an export takes of the scene in motion: layers, sources, moving joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.scene_of_set import compiled_geoms, loaded_scene
from collidecli.motions.scenes import MUJOCO_ENDINGS, USD_ENDINGS
from collidecli.scene.motion import Motion, RecordsCoordinates, RestingMotion
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading

if TYPE_CHECKING:
    from collidecli.exporters.layouts.jacobian import MovingJoints
    from collidecli.exporters.usd_layer import SceneLayers
    from collidecli.motions.sources import Sources
    from collidecli.verbs.export.request import ExportRequest


def layers_under(contacts: ContactSet, path: str, output: str) -> SceneLayers:
    """Layers below a USD layer of the contacts: those of the scene at `path`, or none if the scene
    is not USD.

    Raises InputError for a missing USD scene, and for a scene that is not USD.
    """
    from collidecli.exporters.usd_layer import SceneLayers, layers_of
    from collidecli.importers.usd.scene import UsdImport

    ending = Path(contacts.scene).suffix.lower()
    if not path:
        if ending in USD_ENDINGS:
            what = f"a layer over {contacts.scene} needs the scene's units and path"
            raise InputError(what, contacts.path, "give the scene of the run with --scene")
        return SceneLayers(up_axis=contacts.up_axis)
    if Path(path).suffix.lower() in MUJOCO_ENDINGS:
        raise InputError(
            "a USD layer needs a USD scene",
            path,
            "leave --scene out to write a layer without a scene",
        )
    scene = loaded_scene(contacts, path)
    (imported,) = scene.imports
    assert isinstance(imported, UsdImport)  # scenes have no other extensions
    layers = layers_of(imported.stage, (path,), output, imported.metres_per_unit)
    return replace(layers, environments=scene.model.world_path)


SOURCES = "give scene and recording of the run with --scene and -t"


def export_sources(request: ExportRequest, contacts: ContactSet) -> Sources:
    """Scene and motion of the contact set of an export. Raises InputError if they do not fit it."""
    from collidecli.motions.sources import find_sources

    try:
        return find_sources(contacts, request.scene, request.trajectory, False, False)
    except InputError as error:
        raise InputError(error.what, error.where, SOURCES) from error


def moving_joints(scene: LoadedScene, motion: Motion, frame_of: Sequence[int]) -> MovingJoints:
    """The joint velocities of a scene in motion. frame_of: frame of the motion for each of the
    contact set.

    Raises InputError for a scene that is not MJCF or URDF, and for a recording of body poses.
    """
    from collidecli.exporters.layouts.jacobian import MovingJoints
    from collidecli.importers.mujoco.joint_axes import JointAxes
    from collidecli.importers.mujoco.scene import MjcfImport

    geoms = compiled_geoms(scene)
    (imported,) = scene.imports
    assert isinstance(imported, MjcfImport)  # else `compiled_geoms` has refused it
    axes = JointAxes(imported.mj_model, imported.kinematics)
    body = imported.mj_model.geom_bodyid[[geoms.of_path[path] for path in scene.model.shapes.path]]

    def coordinates(frame: int) -> tuple[np.ndarray, np.ndarray | None]:
        at = int(frame_of[frame])
        with reading("motion"):
            values = (
                motion.read_coordinates(range(at, at + 1))
                if isinstance(motion, RecordsCoordinates)
                else None
            )
        if isinstance(motion, RestingMotion):
            values = np.tile(imported.mj_model.qpos0, (1, motion.world_count, 1)), None
        if values is None:
            what = "the recording has body poses; velocities of joints need their positions"
            fix = "give a recording of joints (collide record --joint)"
            columns = "the columns distance_grad0 and distance_grad1 of collide run"
            raise InputError(what, scene.name, f"{fix}, or use {columns}")
        return values

    def at(frames: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        of_frame = {frame: coordinates(frame) for frame in dict.fromkeys(frames.tolist())}
        recorded = worlds if motion.world_count > 1 else np.zeros_like(worlds)
        cells = list(zip(frames.tolist(), recorded.tolist(), strict=True))
        qpos = np.stack([of_frame[frame][0][0, world] for frame, world in cells])
        mocap = [
            poses[0, world] for frame, world in cells if (poses := of_frame[frame][1]) is not None
        ]
        return axes.at(qpos, np.stack(mocap) if mocap else None)

    coordinates(0)  # refuses a recording of body poses before the output is created
    return MovingJoints(axes.names, axes.affects[body], at)
