# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

from collidecli.results.result import PathLike
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion

class RecordingFile:
    path: str
    kind: str
    label: str
    frames: int | None
    worlds: int | None
    bodies: tuple[str, ...]
    start: float | None
    end: float | None
    needs: tuple[str, ...]

    def __init__(self, path: PathLike) -> None: ...
    def __repr__(self) -> str: ...
    def with_scene(
        self,
        scene: PathLike | Sequence[PathLike] | None = None,
        *,
        worlds: int | None = None,
        frames: str | int | slice = "",
        demos: str | Sequence[str] = (),
        uneven_demos: Literal["cut", "hold", ""] = "",
        state: str = "",
        root: str = "",
        time: str = "",
        joint_names: str | Sequence[str] = (),
        ignore_joints: str | Sequence[str] = (),
        joint_units: Literal["radians", "degrees", "normalised", ""] = "",
        length_units: Literal["m", "cm", "mm", ""] = "",
        euler_order: Literal[
            "fixed-xyz",
            "fixed-xzy",
            "fixed-yxz",
            "fixed-yzx",
            "fixed-zxy",
            "fixed-zyx",
            "body-xyz",
            "body-xzy",
            "body-yxz",
            "body-yzx",
            "body-zxy",
            "body-zyx",
            "",
        ] = "",
        up_axis: Literal["y", "z", ""] = "",
        root_offset: str = "",
        joint_scale: str | Sequence[str] = (),
        body_names: str | Sequence[str] = (),
        strict_bodies: bool = False,
        prefer: Literal["bodies", "joints", ""] = "",
        quaternion_order: Literal["wxyz", "xyzw", ""] = "",
        state_spec: str = "",
        first_axis: Literal["worlds", "frames", ""] = "",
        fps: float | None = None,
        ignore_particles: bool = False,
        joint_topics: str | Sequence[str] = (),
        trajectory_topic: str = "",
        base_from: str = "",
        body_from: str | Sequence[str] = (),
        rate: float | None = None,
        on_message: str = "",
        clock: Literal["header", "receive", ""] = "",
        max_gap: float | None = None,
        from_time: float | None = None,
        to_time: float | None = None,
        variants: str | Sequence[str] = (),
        environments: str = "",
        ignore_missing: bool = False,
        asset_map: Mapping[str, str] | str | Sequence[str] = (),
        package_path: str | Sequence[str] = (),
        floating_base: bool = False,
        ground: bool = False,
        include: str | Sequence[str | tuple[str, str]] = (),
        exclude: str | Sequence[str | tuple[str, str]] = (),
        pairs_file: str | os.PathLike[str] = "",
        triggers: str | Sequence[str] = (),
        disabled_pairs: str | os.PathLike[str] = "",
        self_collisions: Literal["on", "off", ""] = "",
        mjcf_margin: Literal["included", "legacy", ""] = "",
        meshes: Mapping[str, str] | str | Sequence[str] = (),
        strict_meshes: bool = False,
        visuals_as_colliders: str | Sequence[str] = (),
    ) -> tuple[Model, Motion]: ...

def open_recording(path: PathLike) -> RecordingFile: ...
