"""Demonstrations of Isaac Lab's recorder: named articulations and rigid objects, relative to
environment origins."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import articulations
from collidecli.importers.recordings.articulations import ORDERS, ArticulationMotion
from collidecli.importers.recordings.content import Content, h5_damage, h5_masks, held_rows
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.deformable_states import DEFORMABLE, DeformableStates
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recorded_assets import (
    RecordedAsset,
    asset_articulations,
    assets_of_world,
)
from collidecli.importers.recordings.recording import RecordingDescription, Target
from collidecli.importers.recordings.times import (
    UNEVEN,
    DemonstrationRecording,
    rate_time,
    shared_length,
)
from collidecli.scene.episodes import Episodes
from collidecli.scene.kinematics import ArticulationKinematics
from collidecli.scene.options import RecordingOptions
from collidecli.storage.h5_files import text_of
from collidecli.storage.process_activity import structure, structure_step
from collidecli.wording import in_order, some_names

KINDS = ("articulation", "rigid_object")
GROUPS = ("initial_state", "states")
"""In the order of time: the state at the reset, then the states after each step."""

JOINT_ORDER = " (Isaac Lab's Articulation.joint_names)"
"""Where Isaac Lab has the joints in the recorded order."""
ORDER_OF_VERSION = {0: "wxyz", 1: "xyzw"}


@dataclass(frozen=True)
class _Asset:
    """One named asset of a demonstration. parts: its groups, in the order of time. frames: of each
    part."""

    parts: tuple[h5py.Group, ...]
    frames: tuple[int, ...]

    def width(self) -> int:
        """Number of joint columns; 0 where no joints are recorded."""
        joints = self.parts[-1].get("joint_position")
        return int(joints.shape[1]) if isinstance(joints, h5py.Dataset) else 0


_Demo = tuple[dict[str, _Asset], int, tuple[str, ...]]
"""A demonstration's assets by name, its length in frames, and its groups that are not read."""


class IsaacLabRecording(DemonstrationRecording):
    """Demonstrations of which each is a world. Names are read when the file is opened, states when
    they are used."""

    NAME = "isaac-lab"
    LABEL = (
        "Isaac Lab recorder demonstrations (HDF5: data/demo_k/states/articulation/<name>/root_pose)"
    )
    OPTIONS = ("demos", "uneven_demos", "joint_names", "quaternion_order", "fps")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._file = content.h5_file
        self._path = content.path
        self.where = f"{self._path}: /data"
        with h5_damage(self._path), structure():
            self._names = in_order(_groups(self._file["data"]))

    @staticmethod
    def recognise(content: Content) -> bool:
        """A group `data` of groups in which `states` or `initial_state` is a group."""
        data = content.h5.get("data") if content.h5 is not None else None
        if not isinstance(data, h5py.Group):
            return False
        groups = [item for item in map(data.get, data) if isinstance(item, h5py.Group)]
        return any(isinstance(group.get(name), h5py.Group) for group in groups for name in GROUPS)

    def describe(self) -> RecordingDescription:
        file = self._file
        path = self._path
        with h5_damage(path), structure():
            demos = {name: _demo(file, path, name) for name in self._names}
            if not demos:
                raise InputError(
                    "the recording has no demonstrations", self.where, "record at least one"
                )
            lengths = {name: length for name, (_, length, _) in demos.items()}
            assets = next(iter(demos.values()))[0]
            rate = _rate(file)
            frames = max(lengths.values())
            needs = (
                ["--joint-names"]
                if any(a.width() and not _file_names(a) for a in assets.values())
                else []
            )
            needs += [] if rate else ["--fps"]
            needs += [UNEVEN] if len(set(lengths.values())) > 1 else []
            shown = [f"{name} ({asset.width()} joints)" for name, asset in assets.items()]
            return RecordingDescription(
                frames=frames,
                worlds=len(demos),
                start=0.0 if rate else None,
                end=(frames - 1) / rate if rate else None,
                quaternion_order=_file_order(file, path),
                needs=tuple(needs),
                details=(
                    ("demonstrations", some_names(list(lengths))),
                    *h5_masks(file),
                    ("assets", ", ".join(shown) or "none"),
                ),
            )

    def stored(self) -> list[str]:
        return self._names

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """The chosen demonstrations as worlds, in order; positions are relative to the origins of
        the worlds."""
        file = self._file
        path = self._path
        with h5_damage(path), structure():
            names = self.chosen(options)
            check_world_count(len(names), target, self.where)
            demos = {name: _demo(file, path, name) for name in names}
            lengths = {name: length for name, (_, length, _) in demos.items()}
            frames = shared_length(lengths, options, self.where)
            order = articulations.quaternion_order(_file_order(file, path), options, path)
            scene = target.articulated(path)
            has_particles = len(target.model.particles) > 0
            worlds = [
                _world(assets, assets_of_world(scene, target, world), ORDERS[order], options, path)
                for world, (assets, *_) in enumerate(demos.values())
            ]
            unused = [group for *_, groups in demos.values() for group in groups]
            used = f"/{DEFORMABLE}" if has_particles else "/"
            warnings = [
                *scene.warnings,
                *(f"{path}: {name}: not used" for name in unused if not name.endswith(used)),
            ]
            time = rate_time(frames, _rate(file) if options.fps is None else options.fps, path)
            origins = target.model.world_pose[: len(worlds), :3]
            states = [_state_groups(file[f"data/{name}"]) for name in names]
            particles = (
                DeformableStates(states, target.model, origins, path) if has_particles else None
            )
        episodes = Episodes.of_demonstrations(lengths, frames)
        return ArticulationMotion(
            path, target, worlds, origins, time, warnings, self.close, episodes, particles
        )


def _world(
    assets: dict[str, _Asset],
    articulations: Sequence[ArticulationKinematics],
    order: list[int],
    options: RecordingOptions,
    path: str,
) -> list[RecordedArticulation]:
    """The recorded articulations and bodies of a demonstration. Raises InputError for one that the
    scene lacks."""
    structure_step()
    recorded = []
    for name, asset in assets.items():
        location = f"{path}: {asset.parts[-1].name}"
        width = asset.width()
        recorded.append(
            RecordedAsset(
                name=name,
                joint_count=width,
                joint_names=_file_names(asset) if width else (),
                root=_reader(asset, "root_pose", order, path),
                joints=_reader(asset, "joint_position", list(range(width)), path)
                if width
                else None,
                location=location,
                root_location=f"{location}/root_pose",
                joint_location=f"{location}/joint_position",
            )
        )
    return asset_articulations(recorded, articulations, options, path, JOINT_ORDER)


def _reader(
    asset: _Asset, name: str, order: list[int], path: str
) -> Callable[[range], np.ndarray] | None:
    """A function that reads rows of a dataset, the last row after the end; None where the asset has
    no such dataset."""
    data = [item for part in asset.parts if isinstance(item := part.get(name), h5py.Dataset)]
    if not data:
        return None
    return lambda frames: np.take(held_rows(data, frames, path), order, axis=1)


def _groups(group: Any) -> list[str]:
    return [str(name) for name in group if isinstance(group.get(name), h5py.Group)]


def _demo(file: h5py.File, path: str, name: str) -> _Demo:
    """One scanned demonstration. Raises InputError: no states, other shapes or types, assets of
    unequal lengths."""
    structure_step()
    demo = file[f"data/{name}"]
    assert isinstance(demo, h5py.Group)
    groups = _state_groups(demo)
    where = f"{path}: {demo.name}"
    if not groups:
        raise InputError(
            "the demonstration has no states", where, "record states with Isaac Lab's recorder"
        )
    unused = [f"{group.name}/{kind}" for group in groups for kind in group if kind not in KINDS]
    parts_of: dict[str, list[h5py.Group]] = {}
    for group in groups:
        for kind in KINDS:
            assets = group.get(kind)
            if isinstance(assets, h5py.Group):
                for asset in _groups(assets):
                    parts_of.setdefault(asset, []).append(assets[asset])  # type: ignore[arg-type]
    short = [asset for asset, parts in parts_of.items() if len(parts) != len(groups)]
    if short:
        raise InputError(
            f"'{short[0]}' is not in both of {' and '.join(GROUPS)}", where, "record it in both"
        )
    assets = {asset: _asset(asset, parts, path) for asset, parts in parts_of.items()}
    lengths = {asset.frames for asset in assets.values()}
    if len(lengths) > 1:
        shown = ", ".join(f"{name} {sum(asset.frames)}" for name, asset in assets.items())
        raise InputError(
            f"the assets have different numbers of frames: {shown}", where, "record it again"
        )
    if not assets:
        raise InputError(
            "neither articulations nor rigid objects are recorded",
            where,
            "record the scene's state",
        )
    return assets, sum(next(iter(lengths))), tuple(unused)


def _state_groups(demo: Any) -> list[h5py.Group]:
    return [group for key in GROUPS if isinstance(group := demo.get(key), h5py.Group)]


def _asset(name: str, parts: list[h5py.Group], path: str) -> _Asset:
    frames = []
    widths: set[int | None] = set()
    for part in parts:
        root = _dataset(part, "root_pose", 7, path)
        joint = _dataset(part, "joint_position", None, path) if "joint_position" in part else None
        if joint is not None and joint.shape[0] != root.shape[0]:
            what = f"{joint.shape[0]} frames are recorded, and {root.shape[0]} of root_pose"
            raise InputError(what, f"{path}: {joint.name}", "record it again")
        frames.append(int(root.shape[0]))
        widths.add(None if joint is None else int(joint.shape[1]))
    if len(widths) > 1:
        where = f"{path}: {parts[-1].name}"
        raise InputError(
            "the number of joints differs from that in the initial state", where, "record it again"
        )
    return _Asset(tuple(parts), tuple(frames))


def _dataset(group: h5py.Group, name: str, width: int | None, path: str) -> h5py.Dataset:
    item = group.get(name)
    where = f"{path}: {group.name}/{name}"
    if not isinstance(item, h5py.Dataset):
        raise InputError(
            "there is no such dataset", where, "record the scene's state with Isaac Lab's recorder"
        )
    shape = item.shape
    if (
        item.dtype.kind != "f"
        or shape is None
        or len(shape) != 2
        or (width is not None and shape[1] != width)
    ):
        wanted = f"[frames, {'joints' if width is None else width}]"
        raise InputError(
            f"is {item.dtype}{list(shape or ())}, not floats {wanted}",
            where,
            "record it in that shape",
        )
    return item


def _file_names(asset: _Asset) -> tuple[str, ...]:
    """Joint names in the file: attribute `joint_names` of the asset or of its joint positions; ()
    without it."""
    part = asset.parts[-1]
    joints: Any = part.get("joint_position")
    for holder in (part,) if joints is None else (joints, part):
        names: Any = holder.attrs.get("joint_names")
        if names is not None and np.ndim(names) == 1:
            return tuple(map(text_of, names))
    return ()


def _file_order(file: h5py.File, path: str) -> str:
    """The quaternion order by the attribute `format_version`; files without the attribute have
    version 0."""
    versions: set[int] = set()
    for group in (file, file["data"]):
        value: Any = group.attrs.get("format_version")
        if value is None:
            continue
        if (
            np.ndim(value)
            or np.asarray(value).dtype.kind not in "iu"
            or int(value) not in ORDER_OF_VERSION
        ):
            where = f"{path}: {group.name}, attribute format_version"
            fix = (
                f"known versions: {', '.join(map(str, ORDER_OF_VERSION))}, and files without the"
                " attribute"
            )
            raise InputError(f"format_version is {value}", where, fix)
        versions.add(int(value))
    if len(versions) > 1:
        raise InputError(
            "format_version differs between / and /data", path, "correct the one that is wrong"
        )
    return ORDER_OF_VERSION[versions.pop() if versions else 0]


def _rate(file: h5py.File) -> float | None:
    """Frames per second from `env_args`: a step lasts `dt` times `decimation`. None where they are
    not given."""
    try:
        args = json.loads(str(file["data"].attrs.get("env_args", "{}")))["sim_args"]
        period = float(args["dt"]) * float(args["decimation"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return 1.0 / period if np.isfinite(period) and period > 0.0 else None
