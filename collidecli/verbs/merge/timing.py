"""The timing report of merged contact sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.h5_files import DAMAGE, text_of
from collidecli.storage.process_activity import structure

STAGES = ("stage", "seconds", "calls")
PROCESSOR = "processor_seconds"
"""Column of stages that sets of earlier versions lack: merged where all have it."""
LARGEST = ("peak_memory_bytes",)
"""Attributes whose maximum is taken; other numbers are summed."""
SAME_KIND = ("thread_count", "chunk_cells")
"""Numbers that are settings of a run, which are listed instead of summed."""


def merged_timing(sets: Sequence[ContactSet]) -> dict[str, Any]:
    """Contents of /timing of the merged set; sets without /timing are ignored.

    Raises InputError for a damaged group, or datasets that differ from those of `collide run`.
    """
    try:
        with structure():
            return _merged_timing([contacts.file.get("timing") for contacts in sets])
    except (TypeError, ValueError, LookupError, AttributeError, *DAMAGE) as error:
        files = ", ".join(contacts.path for contacts in sets)
        raise InputError(
            f"/timing is not as a run writes it: {error}", files, "make the contact sets again"
        ) from error


def _merged_timing(timings: Sequence[Any]) -> dict[str, Any]:
    groups: list[Any] = [timing for timing in timings if isinstance(timing, h5py.Group)]
    merged: dict[str, Any] = {"merged_runs": len(timings)}
    merged |= _stages([group for group in groups if all(name in group for name in STAGES)])
    names = sorted(
        {str(name) for group in groups for name in group.attrs}
        - {"false_positive_ratio", "merged_runs"}
    )
    for name in names:
        merged[name] = _merged(name, [group.attrs[name] for group in groups if name in group.attrs])
    candidates = merged.get("candidate_count", 0)
    if "touching_pair_count" in merged or not candidates:  # else they were not tested
        touching = merged.get("touching_pair_count", 0)
        merged["false_positive_ratio"] = 1.0 - touching / candidates if candidates else 0.0
    chunks = [group["chunk"] for group in groups if "chunk" in group]
    shared = sorted(set.intersection(*(set(map(str, chunk)) for chunk in chunks))) if chunks else []
    merged["chunk"] = {
        name: np.concatenate([chunk[name][()] for chunk in chunks]) for name in shared
    }
    return merged


def _stages(groups: Sequence[Any]) -> dict[str, Any]:
    names = (*STAGES, PROCESSOR) if all(PROCESSOR in group for group in groups) else STAGES
    sums: dict[str, list[Any]] = {}
    for group in groups:
        for name, *values in zip(*(group[column][()] for column in names), strict=True):
            stage = sums.setdefault(text_of(name), [value * 0 for value in values])
            stage[:] = [total + value for total, value in zip(stage, values, strict=True)]
    columns = zip(*sums.values(), strict=True) if sums else [[] for _ in names[1:]]
    types = {"seconds": np.float64, "calls": np.int64, PROCESSOR: np.float64}
    return {
        "stage": list(sums),
        **{
            name: np.array(column, types[name])
            for name, column in zip(names[1:], columns, strict=True)
        },
    }


def _merged(name: str, values: Sequence[Any]) -> Any:
    """A merged attribute: the sum or maximum of numbers; the distinct values of texts and
    settings."""
    numbers = all(isinstance(value, (int, float, np.integer, np.floating)) for value in values)
    if numbers and name not in SAME_KIND:
        return max(values) if name in LARGEST else sum(values)
    different = list(dict.fromkeys(values if numbers else map(str, values)))
    return different[0] if len(different) == 1 else "; ".join(map(str, different))
