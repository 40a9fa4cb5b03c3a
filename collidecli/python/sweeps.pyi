# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
import pandas
import xarray

from collidecli.engine.device_model import DeviceModel
from collidecli.exporters.dense_columns import NamedColumns
from collidecli.motions.requests import EngineRequest
from collidecli.python.scenes import MotionSource, SceneSource
from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.option_values import DEFAULT_SWEEP_TOLERANCE
from collidecli.scene.options import ContactOptions
from collidecli.storage.field_cache import FieldCache

CELLS_AT_ONCE: Any
OF_ELEMENTS: Any
MEMORY_LIMIT: Any

@dataclass(frozen=True, repr=False)
class SweepRows:
    frame: np.ndarray
    world: np.ndarray
    touches: np.ndarray
    tunnel: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    enter_time: np.ndarray
    leave_time: np.ndarray
    least: np.ndarray
    least_bound: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int: ...
    def _columns(self) -> NamedColumns: ...
    def to_pandas(self) -> pandas.DataFrame: ...
    def to_xarray(self) -> xarray.Dataset: ...
    def _repr_html_(self) -> str: ...
    def __repr__(self) -> str: ...

@dataclass(frozen=True, repr=False)
class ParticleSweep(SweepRows):
    particle: np.ndarray
    shape: np.ndarray
    point: np.ndarray
    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray

@dataclass(frozen=True, repr=False)
class SelfSweep(SweepRows):
    kind: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray
    point0: np.ndarray
    point1: np.ndarray

@dataclass(frozen=True, repr=False)
class Sweep(SweepRows):
    shape0: np.ndarray
    shape1: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    shape_path: tuple[str, ...] = ...
    particles: ParticleSweep | None = ...
    elements: SelfSweep | None = ...

Found = TypeVar("Found", bound=SweepRows)

def _swept_groups(
    device_model: DeviceModel,
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    tolerance: float,
    store: FieldCache,
) -> dict[str, GroupRows]: ...

OPTIONS: Any

def sweep(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    tolerance: float | str = DEFAULT_SWEEP_TOLERANCE,
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
    self_contacts: float | str = 0.0,
    self_contact_rings: int = 1,
    self_contact_rest: float | str | None = None,
    device: str = "",
    cache_dir: str = "",
    cache_limit: int = 1073741824,
) -> Sweep: ...
def _swept(model: Model, motion: Motion, request: EngineRequest, tolerance: float) -> Sweep: ...
def _result(kind: type[Found], rows: GroupRows, model: Model, motion: Motion) -> Found: ...
