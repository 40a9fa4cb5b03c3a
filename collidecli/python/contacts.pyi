# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from collidecli.motions.collision import Collision
from collidecli.python.contact_set import Contacts, ContactSet
from collidecli.python.device_contacts import DeviceContacts
from collidecli.python.progress import ShowProgress
from collidecli.results.result import Progress
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import Column, ContactGroup
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.storage.contact_sets.writer import ContactWriter

Other = TypeVar("Other")

@overload
def collide(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    keep_on_device: Literal[False] = False,
    particle_q: np.ndarray | None = None,
    time: Sequence[float] | np.ndarray | None = None,
    fps: float | None = None,
    columns: str | Sequence[str] = (),
    progress: ShowProgress = False,
    gap: float | str | None = None,
    margin: float | str | None = None,
    gap_rule: Literal["max", "sum"] | None = None,
    max_contacts_per_pair: int = 0,
    reduce_contacts: bool = False,
    reduce_pairs: Literal["meshes", "all"] = "meshes",
    reduce_by: Literal["shapes", "bodies"] = "shapes",
    betas: Sequence[float] = (10.0, -0.5),
    normal_matching: bool = False,
    moment_matching: bool = False,
    anchor_contact: bool = False,
    soft_gap: float | str = 0.01,
    soft_elements: Literal["vertices", "all", "nearest"] = "all",
    self_contacts: float | str = 0.0,
    self_contact_rings: int = 1,
    self_contact_rest: float | str | None = None,
    sticky_contacts: float | str = 0.0,
    touch_only: bool = False,
    candidates_only: bool = False,
    contact_ids: bool = False,
    contact_id_angle: float | None = None,
    narrow_phase: Literal["gjk", "mpr"] = "gjk",
    hydro: Literal["off", "authored", "all"] = "authored",
    hydro_stiffness: float = 10000000000.0,
    hydro_resolution: int = 64,
    hydro_surface: bool = False,
    hydro_reduce: bool = False,
    hydro_fallback: Literal["point", "refuse"] = "point",
    sweep: bool = False,
    sweep_tolerance: float | str = 1e-06,
    broad_phase: Literal["auto", "nxn", "sap", "explicit"] = "auto",
    pipeline: Literal["standard", "unified"] = "unified",
    device: str = "",
    threads: int = 0,
    memory_limit: int = 0,
    chunk_cells: int = 0,
    cache_dir: str = "",
    cache_limit: int = 1073741824,
) -> Contacts: ...
@overload
def collide(
    model: Model,
    body_q: np.ndarray | Motion | None = None,
    *,
    keep_on_device: Literal[True] | Sequence[str],
    particle_q: np.ndarray | None = None,
    time: Sequence[float] | np.ndarray | None = None,
    fps: float | None = None,
    columns: str | Sequence[str] = (),
    progress: ShowProgress = False,
    gap: float | str | None = None,
    margin: float | str | None = None,
    gap_rule: Literal["max", "sum"] | None = None,
    max_contacts_per_pair: int = 0,
    reduce_contacts: bool = False,
    reduce_pairs: Literal["meshes", "all"] = "meshes",
    reduce_by: Literal["shapes", "bodies"] = "shapes",
    betas: Sequence[float] = (10.0, -0.5),
    normal_matching: bool = False,
    moment_matching: bool = False,
    anchor_contact: bool = False,
    soft_gap: float | str = 0.01,
    soft_elements: Literal["vertices", "all", "nearest"] = "all",
    self_contacts: float | str = 0.0,
    self_contact_rings: int = 1,
    self_contact_rest: float | str | None = None,
    sticky_contacts: float | str = 0.0,
    touch_only: bool = False,
    candidates_only: bool = False,
    contact_ids: bool = False,
    contact_id_angle: float | None = None,
    narrow_phase: Literal["gjk", "mpr"] = "gjk",
    hydro: Literal["off", "authored", "all"] = "authored",
    hydro_stiffness: float = 10000000000.0,
    hydro_resolution: int = 64,
    hydro_surface: bool = False,
    hydro_reduce: bool = False,
    hydro_fallback: Literal["point", "refuse"] = "point",
    sweep: bool = False,
    sweep_tolerance: float | str = 1e-06,
    broad_phase: Literal["auto", "nxn", "sap", "explicit"] = "auto",
    pipeline: Literal["standard", "unified"] = "unified",
    device: str = "",
    threads: int = 0,
    memory_limit: int = 0,
    chunk_cells: int = 0,
    cache_dir: str = "",
    cache_limit: int = 1073741824,
) -> DeviceContacts[Contacts]: ...
def contact_options(**options: Any) -> ContactOptions: ...

class SceneFiles(NamedTuple):
    name: str
    sha256: str
    config: str

def contacts_in_memory(
    model: Model,
    motion: Motion,
    contact: ContactOptions,
    engine: EngineOptions,
    columns: Sequence[str],
    progress: Progress = None,
    scene: SceneFiles | None = None,
) -> Contacts: ...
def contacts_of_columns(
    model: Model, collision: Collision, counts: np.ndarray, values: Mapping[str, np.ndarray]
) -> Contacts: ...
def of_collision(
    merged: Contacts,
    model: Model,
    collision: Collision,
    optional: Sequence[Column] = (),
    groups: Sequence[ContactGroup] | None = None,
    scene: SceneFiles | None = None,
) -> Contacts: ...
def _writer_of(
    path: str, source: Model, scene: SceneFiles | None, config: str, **options: Any
) -> ContactWriter: ...
def set_of(contacts: Other | Contacts) -> Other | ContactSet: ...
def open_contacts(path: str | os.PathLike[str]) -> ContactSet: ...
def entry_texts(entries: Mapping[str, str] | str | Sequence[str]) -> tuple[str, ...]: ...
def check_extension(
    path: str | os.PathLike[str], endings: tuple[str, ...], what: str, method: str
) -> None: ...
def motion_of(
    model: Model,
    body_q: np.ndarray | Motion | None,
    particle_q: np.ndarray | None = None,
    time: Any = None,
    fps: Any = None,
) -> Motion: ...
def merged_contacts(
    blocks: Iterable[ContactBlock], frame_count: int, world_count: int
) -> Contacts: ...
