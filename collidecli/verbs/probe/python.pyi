# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from collidecli.importers.probe_files import ProbeFile
from collidecli.python.progress import ShowProgress
from collidecli.python.scenes import MotionSource, SceneSource
from collidecli.results.result import PathLike
from collidecli.verbs.probe.probe import ProbeResult

OPTIONS: Any

def probe(
    scene: SceneSource,
    recording: MotionSource = None,
    output: PathLike | None = None,
    *,
    vertices_of: str | Sequence[str] = (),
    spacing: float | str = 0.0,
    points: PathLike | np.ndarray = "",
    rays: PathLike | np.ndarray = "",
    partners: str | Sequence[str] = (),
    threshold: float | str | None = None,
    first: int = 20,
    force: bool = False,
    arrays: bool = True,
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
) -> ProbeResult: ...
def _points(given: PathLike | np.ndarray, of_rays: bool) -> str | ProbeFile: ...
