"""Reader and writer of profiles, in HDF5 and JSON with equal contents (schema collide.profile/1).

HDF5, `format = "collide-profile"` 1.0: `/phase` string[P]; `/skipped` string[P], empty for a phase
that ran; `/stage` string[G]; `/compute_seconds` and `/wall_seconds` float64[P, R]; `/stage_seconds`
float64[P, R, G], NaN for skipped phases; `/candidates`, `/touching_pairs`, `/contacts` int64[P], -1
for skipped phases; `/contacts_sha256` string[P]. The other values are root attributes, `versions`
and `auto` as JSON. With `--sizes`, the attribute `sizes` is JSON without the worlds, which are
`/world_<count>` and `/world_<count>_frame` int64[W] of each count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.storage.array_files import VERSION, arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.attribute_rules import (
    AttributeRule,
    json_object,
    one_of,
    refuse_attributes,
    refuse_values,
    sha256,
    text,
    version,
)
from collidecli.storage.h5_files import format_of, open_h5
from collidecli.storage.process_activity import reading
from collidecli.storage.text_files import read_json

PROFILE_FORMAT = "collide-profile"
SCHEMA = "collide.profile/1"
FIX = "give a file of collide profile"
TIMES = ("compute_seconds", "wall_seconds", "stage_seconds")
ATTRIBUTE_RULES = (
    AttributeRule("", "format_version", version(VERSION[0])),
    AttributeRule("", "creator", text),
    *(AttributeRule(f"/{name}", "unit", one_of(("s",)), required=False) for name in TIMES),
    *(AttributeRule("", name, json_object, required=False) for name in ("versions", "auto")),
)
"""Of the HDF5 file alone."""
VALUE_RULES = (
    AttributeRule("", "scene_sha256", sha256),
    AttributeRule("", "scene", text, required=False),
)
"""Of root attributes in HDF5 and of values in JSON."""
COUNTS = ("candidates", "touching_pairs", "contacts")


def write_profile_h5(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes the HDF5 file. Raises OutputError; then no file remains."""
    phases = profile["phases"]
    run = [phase for phase in phases if not phase["skipped"]]
    stages = list(run[0]["stages"]) if run else []
    shape = (len(phases), profile["repeats"])
    tables = {
        "phase": np.array([phase["name"] for phase in phases], object),
        "skipped": np.array([phase["skipped"] or "" for phase in phases], object),
        "stage": np.array(stages, object),
        "contacts_sha256": np.array([phase.get("contacts_sha256", "") for phase in phases], object),
        "stage_seconds": np.full((*shape, len(stages)), np.nan),
        **{name: np.array([phase.get(name, -1) for phase in phases], np.int64) for name in COUNTS},
        **{name: np.full(shape, np.nan) for name in ("compute_seconds", "wall_seconds")},
    }
    for row, phase in enumerate(phases):
        if not phase["skipped"]:
            tables["stage_seconds"][row] = np.transpose(
                [phase["stages"][stage]["repeats"] for stage in stages]
            )
            for name in ("compute_seconds", "wall_seconds"):
                tables[name][row] = phase[name]["repeats"]
    about = {
        n: value
        for n, value in profile.items()
        if n not in ("phases", "schema") and value is not None
    }
    if sizes := about.get("sizes"):
        about["sizes"] = {name: value for name, value in sizes.items() if name != "worlds"}
        tables |= _of_worlds(sizes["worlds"])
    units: dict[str, str] = dict.fromkeys(TIMES, "s")
    with AtomicOutput(path, force) as output:
        with arrays_h5(output, PROFILE_FORMAT, about, tables, units):
            pass
        output.commit()


OF_WORLDS = {
    "candidates": ("world_candidates", "world_candidates_frame"),
    "pairs": ("world_pairs", "world_pairs_frame"),
    "contacts": ("world_contacts", "world_contacts_frame"),
}
"""Datasets of each count: the greatest of a world, and the first frame with it."""


def _of_worlds(worlds: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Greatest counts of each world, and their frames."""
    return {
        dataset: np.array([world[name][key] for world in worlds], np.int64)
        for name, datasets in OF_WORLDS.items()
        if worlds and name in worlds[0]
        for key, dataset in zip(("count", "frame"), datasets, strict=True)
    }


def write_json(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes a JSON file. Raises OutputError; then no file remains."""
    with AtomicOutput(path, force) as output:
        output.write(json.dumps(profile, indent=2, allow_nan=False).encode() + b"\n")
        output.commit()


def read_profile(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Scene hash and phases of a profile, JSON or HDF5: `name` and `skipped` of each phase, and of
    phases that ran `compute_seconds` (the median) and the counts. Raises InputError for a file that
    is no profile."""
    name = os.fspath(path)
    with reading("profile", name):
        is_hdf5 = os.path.isfile(name) and h5py.is_hdf5(name)
        try:
            profile = (
                _from_h5(name) if is_hdf5 else read_json(name, FIX, "is neither JSON nor HDF5")
            )
            if not isinstance(profile, dict) or profile.get("schema") != SCHEMA:
                raise InputError("is no profile", name, FIX)
            refuse_values(profile, VALUE_RULES, name, FIX)
            return {
                "scene_sha256": profile["scene_sha256"],
                "phases": [_phase(phase) for phase in profile["phases"]],
            }
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            raise InputError(f"is an incomplete profile: {error}", name, FIX) from error


def _phase(phase: Mapping[str, Any]) -> dict[str, Any]:
    figures: dict[str, Any] = {"name": str(phase["name"]), "skipped": str(phase["skipped"] or "")}
    if not figures["skipped"]:
        figures["compute_seconds"] = float(phase["compute_seconds"]["median"])
        figures |= {name: int(np.int64(phase[name])) for name in COUNTS}
    return figures


def _from_h5(path: str) -> dict[str, Any]:
    """The values of an HDF5 file that `read_profile` reads, by their names in JSON."""
    with open_h5(path) as file:
        if format_of(file) != PROFILE_FORMAT:
            raise InputError("is no profile", path, FIX)
        refuse_attributes(file, (*ATTRIBUTE_RULES, *VALUE_RULES), path, FIX)
        columns = [
            *(_values(file, name, True) for name in ("phase", "skipped")),
            _values(file, "compute_seconds"),
        ]
        counts = {name: _values(file, name) for name in COUNTS}
        phases = [
            {"name": name, "skipped": skipped, "compute_seconds": {"median": np.median(seconds)}}
            | {count: values[row] for count, values in counts.items()}
            for row, (name, skipped, seconds) in enumerate(zip(*columns, strict=True))
        ]
        return {"schema": SCHEMA, "scene_sha256": str(file.attrs["scene_sha256"]), "phases": phases}


def _values(file: h5py.File, name: str, text: bool = False) -> np.ndarray:
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise TypeError(f"{name} is no dataset")
    return np.asarray((dataset.asstr() if text else dataset)[()])
