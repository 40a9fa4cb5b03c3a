# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas

from collidecli.exporters.dense_columns import NamedColumns
from collidecli.python.scenes import MotionSource, SceneSource
from collidecli.results.result import PathLike
from collidecli.verbs.label.sensor_labels import SensorLabels

OPTIONS: Any

@dataclass(frozen=True, repr=False)
class Sensors:
    touch: np.ndarray
    count: np.ndarray
    distance: np.ndarray
    shape: np.ndarray
    partner: np.ndarray
    point: np.ndarray
    partner_point: np.ndarray
    position: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    tangent: np.ndarray | None
    nominal_force: np.ndarray | None
    pressure_centre: np.ndarray | None
    sensors: tuple[str, ...]
    declared: tuple[str, ...]
    shapes: tuple[str, ...]
    frame: np.ndarray
    step: np.ndarray
    time: np.ndarray
    world: np.ndarray
    recorded: np.ndarray
    present: np.ndarray
    begins: np.ndarray | None = ...
    ends: np.ndarray | None = ...
    contact_time: np.ndarray | None = ...
    air_time: np.ndarray | None = ...
    last_contact_time: np.ndarray | None = ...
    last_air_time: np.ndarray | None = ...

    def __repr__(self) -> str: ...
    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    @property
    def _rows(self) -> np.ndarray: ...
    def _axes(self, **of_frames: np.ndarray) -> list[dict[str, np.ndarray]]: ...
    def to_pandas(self) -> pandas.DataFrame: ...
    def events(self) -> NamedColumns: ...

def label_sensors(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    sensors: PathLike = "scene",
    enter: float | str = 0.0,
    leave: float | str | None = None,
    min_frames: int = 1,
    nominal_stiffness: float | None = None,
    times: bool = False,
    worlds: int | None = None,
    frames: str | int | slice = "",
    demos: str | Sequence[str] = (),
    uneven_demos: Literal["cut", "hold", ""] = "",
    state: str = "",
    root: str = "",
    time: str | Sequence[float] | np.ndarray = "",
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
    particle_q: np.ndarray | None = None,
    gap: float | str | None = None,
    margin: float | str | None = None,
    gap_rule: Literal["max", "sum"] | None = None,
    static_pairs: bool = False,
    broad_phase: Literal["auto", "nxn", "sap", "explicit"] = "auto",
    pipeline: Literal["standard", "unified"] = "unified",
    device: str = "",
    threads: int = 0,
    memory_limit: int = 0,
    chunk_cells: int = 0,
    cache_dir: str = "",
    cache_limit: int = 1073741824,
) -> Sensors: ...
def _in_memory(labels: SensorLabels) -> Sensors: ...
