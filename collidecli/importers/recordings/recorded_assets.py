"""Articulations and free bodies of demonstrations, matched by name with those of a scene."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import check_name_count
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.scene.followed_joints import joint_columns
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    coordinate_names,
    find_articulation,
)
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.options import RecordingOptions
from collidecli.wording import some_names


@dataclass(frozen=True)
class RecordedAsset:
    """One named articulation or free body of a demonstration.

    joint_names: in the file, () without them. root: returns poses float64[n, 7] xyzw of frames;
    joints: positions float64[n, joint_count], or is None. location, root_location, joint_location:
    file and group or array, for messages.
    """

    name: str
    joint_count: int
    joint_names: tuple[str, ...]
    root: Callable[[range], np.ndarray] | None
    joints: Callable[[range], np.ndarray] | None
    location: str
    root_location: str
    joint_location: str


def assets_of_world(
    scene: ArticulatedScene, target: Target, world: int
) -> list[ArticulationKinematics]:
    """The articulations and free bodies of a scene that are in a world of the target."""
    bodies = target.model.bodies
    templates = (GLOBAL_TEMPLATE, target.model.world_template[world])
    present = {
        path
        for path, t in zip(bodies.path, bodies.template.tolist(), strict=True)
        if t in templates
    }
    return [
        articulation for articulation in scene.articulations if articulation.body_path[0] in present
    ]


def asset_articulations(
    assets: Sequence[RecordedAsset],
    articulations: Sequence[ArticulationKinematics],
    options: RecordingOptions,
    path: str,
    source: str,
) -> list[RecordedArticulation]:
    """The articulations of a world that the assets of a demonstration move.

    source: where the recorder has the order of the joints, for messages. Raises InputError for an
    asset that the scene lacks, two of one articulation, and joints without names.
    """
    unnamed = [asset.name for asset in assets if asset.joint_count and not asset.joint_names]
    given = _given_names(unnamed, options, path)
    names_by_path: dict[str, str] = {}
    out = []
    for asset in assets:
        articulation = find_articulation(articulations, asset.name, asset.location)
        if articulation.path in names_by_path:
            what = (
                f"'{asset.name}' and '{names_by_path[articulation.path]}' are both"
                f" '{articulation.path}' in the scene"
            )
            raise InputError(what, asset.location, "give each the name that it has in the scene")
        names_by_path[articulation.path] = asset.name
        names = asset.joint_names or given.get(asset.name, ()) if asset.joint_count else ()
        where = asset.joint_location
        check_name_count(
            asset.joint_count, names, "joints", coordinate_names(articulation), where, source
        )
        columns, joints = joint_columns(articulation, names, asset.joints, where)
        out.append(
            RecordedArticulation(
                articulation, columns, asset.root, joints, asset.root_location, where
            )
        )
    return out


def _given_names(
    unnamed: Sequence[str], options: RecordingOptions, path: str
) -> dict[str, tuple[str, ...]]:
    """--joint-names by asset: `asset/joint` where several assets need them."""
    if len(unnamed) == 1 and not any(
        name.startswith(f"{unnamed[0]}/") for name in options.joint_names
    ):
        return {unnamed[0]: options.joint_names}
    out: dict[str, tuple[str, ...]] = dict.fromkeys(unnamed, ())
    for joint in options.joint_names:
        asset, _, rest = joint.partition("/")
        if asset not in out:
            what = (
                f"'{joint}' is of none of the articulations without joint names:"
                f" {some_names(unnamed) or 'none'}"
            )
            raise InputError(what, f"{path}, --joint-names", "write <articulation>/<joint>")
        out[asset] += (rest,)
    return out
