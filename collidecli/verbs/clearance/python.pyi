# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas
import xarray

from collidecli.exporters.dense_columns import (
    NamedColumns,
)
from collidecli.motions.clearance import ClearanceBlock, MeasuredMotion
from collidecli.python.progress import ShowProgress
from collidecli.python.scenes import MotionSource, SceneSource
from collidecli.results.result import Progress

@dataclass(frozen=True, repr=False)
class Clearances:
    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    items: tuple[tuple[str, str], ...] | tuple[str, ...]
    time: np.ndarray
    shape_path: tuple[str, ...]
    gradient0: np.ndarray | None = ...
    gradient1: np.ndarray | None = ...
    gradient_exact: np.ndarray | None = ...
    indices: np.ndarray | None = ...
    barycentric: np.ndarray | None = ...
    indices0: np.ndarray | None = ...
    barycentric0: np.ndarray | None = ...

    def __repr__(self) -> str: ...
    def __len__(self) -> int: ...
    def _repr_html_(self) -> str: ...
    @property
    def _of_elements(self) -> tuple[str, ...]: ...
    def _axes(self, names: Sequence[str]) -> list[dict[str, np.ndarray]]: ...
    def to_pandas(self) -> pandas.DataFrame: ...
    def to_xarray(self) -> xarray.Dataset: ...
    def events(self, threshold: float | str = 0.0) -> NamedColumns: ...

OPTIONS: Any

def clearance(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    by: Literal["pair", "body", "all", ""] = "",
    between: str | Sequence[str] = (),
    top: int = 0,
    gradient: bool = False,
    progress: ShowProgress = False,
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
    margin: float | str | None = None,
    static_pairs: bool = False,
    device: str = "",
    threads: int = 0,
    cache_dir: str = "",
    cache_limit: int = 1073741824,
) -> Clearances: ...
def _all_blocks(
    measured: MeasuredMotion, kind: str, gradient: bool, time: np.ndarray, progress: Progress
) -> Clearances: ...
def _gradients(measured: MeasuredMotion, block: ClearanceBlock) -> dict[str, np.ndarray]: ...
