# Made by `python -m tests.support.python_stubs`: do not edit.

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas
import xarray

from collidecli.errors import InputError
from collidecli.exporters.dense_columns import NamedColumns
from collidecli.storage.contact_sets import reader
from collidecli.storage.contact_sets.selected import SelectedContacts

EXPORT_PARAMETERS: Any

class ContactQueries:
    @property
    def _set(self) -> reader.ContactSet: ...
    def pairs(self) -> NamedColumns: ...
    def events(
        self,
        *,
        threshold: float | str = 0.0,
        merge_gap: int = 0,
        merge_seconds: float | None = None,
        by: Literal["shapes", "bodies", "particles"] = "shapes",
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        bodies: str | Sequence[str] = (),
        exclude_bodies: str | Sequence[str] = (),
        between: str | Sequence[str] = (),
        worlds: Sequence[int] = (),
        frames: str | int | slice = "",
        sweep: bool = False,
    ) -> NamedColumns: ...
    def nominal_forces(
        self, stiffness: float, *, by: Literal["contacts", "pairs"] = "contacts"
    ) -> NamedColumns: ...
    def _unknown_seconds(self, name: str) -> dict[str, InputError]: ...
    def to_pandas(
        self,
        frames: str | int | slice = "",
        *,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        group: str = "",
    ) -> pandas.DataFrame: ...
    def to_xarray(
        self,
        frames: str | int | slice = "",
        *,
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        group: str = "",
    ) -> xarray.Dataset: ...
    def export(
        self,
        to: str,
        output: str | os.PathLike[str] = "",
        *,
        scene: str | os.PathLike[str] = "",
        trajectory: str | os.PathLike[str] = "",
        frames: str | int | slice = "",
        worlds: Sequence[int] = (),
        include: str | Sequence[str] = (),
        exclude: str | Sequence[str] = (),
        group: str = "",
        normal_length: float = 0.05,
        frame_id: str = "",
        force: bool = False,
    ) -> str: ...
    def _selected(
        self,
        group: str,
        frames: str | int | slice,
        include: str | Sequence[str],
        exclude: str | Sequence[str],
    ) -> SelectedContacts: ...

def _categories(pandas: Any, names: Sequence[str], rows: np.ndarray) -> Any: ...
