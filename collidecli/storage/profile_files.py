"""Reader and writer of profiles, in HDF5 and JSON with equal contents (schema collide.profile/1).

HDF5, `format = "collide-profile"` 1.0: `/phase` string[P]; `/skipped` string[P], empty for a phase that ran;
`/stage` string[G]; `/compute_seconds` and `/wall_seconds` float64[P, R]; `/stage_seconds` float64[P, R, G], NaN for
skipped phases; `/candidates`, `/touching_pairs`, `/contacts` int64[P], -1 for skipped phases; `/contacts_sha256`
string[P]. The other values are root attributes, `versions` and `auto` as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from collidecli.errors import InputError
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
from collidecli.storage.contact_sets.schema import creator
from collidecli.storage.h5_input import format_of, open_h5
from collidecli.storage.process_activity import reading

FORMAT, SCHEMA = "collide-profile", "collide.profile/1"
FIX = "give a file of collide profile"
VERSION = (1, 0)
ATTRIBUTE_RULES = (
    AttributeRule("", "format_version", version(VERSION[0])),
    AttributeRule("", "creator", text),
    *(
        AttributeRule(f"/{name}", "unit", one_of(("s",)), required=False)
        for name in ("compute_seconds", "wall_seconds", "stage_seconds")
    ),
    *(AttributeRule("", name, json_object, required=False) for name in ("versions", "auto")),
)
"""Of the HDF5 file alone."""
VALUE_RULES = (AttributeRule("", "scene_sha256", sha256), AttributeRule("", "scene", text, required=False))
"""Of root attributes in HDF5 and of values in JSON."""
COUNTS = ("candidates", "touching_pairs", "contacts")


def write_profile_h5(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes the HDF5 file. Raises OutputError; then no file remains."""
    phases = profile["phases"]
    run = [phase for phase in phases if not phase["skipped"]]
    stages = list(run[0]["stages"]) if run else []
    shape = (len(phases), profile["repeats"])
    with AtomicOutput(path, force) as output:
        with h5py.File(output, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["format_version"] = np.array(VERSION, np.int32)
            file.attrs["creator"] = creator()
            for name, value in profile.items():
                if name not in ("phases", "schema") and value is not None:
                    file.attrs[name] = json.dumps(value) if isinstance(value, (dict, list)) else value
            _strings(file, "phase", [phase["name"] for phase in phases])
            _strings(file, "skipped", [phase["skipped"] or "" for phase in phases])
            _strings(file, "stage", stages)
            _strings(file, "contacts_sha256", [phase.get("contacts_sha256", "") for phase in phases])
            for name in ("compute_seconds", "wall_seconds"):
                file[name] = _filled(shape, phases, lambda phase, name=name: phase[name]["repeats"])
                file[name].attrs["unit"] = "s"
            file["stage_seconds"] = _filled(
                (*shape, len(stages)),
                phases,
                lambda phase: np.transpose([phase["stages"][s]["repeats"] for s in stages]),
            )
            file["stage_seconds"].attrs["unit"] = "s"
            for name in COUNTS:
                file[name] = np.array([phase.get(name, -1) for phase in phases], np.int64)
        output.commit()


def write_json(path: str | os.PathLike[str], profile: Mapping[str, Any], force: bool) -> None:
    """Writes a JSON file. Raises OutputError; then no file remains."""
    with AtomicOutput(path, force) as output:
        output.write(json.dumps(profile, indent=2, allow_nan=False).encode() + b"\n")
        output.commit()


def read_profile(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Scene hash and phases of a profile, JSON or HDF5: `name` and `skipped` of each phase, and of phases that ran
    `compute_seconds` (the median) and the counts. Raises InputError for a file that is no profile."""
    name = os.fspath(path)
    with reading("profile", name):
        if os.path.isfile(name) and h5py.is_hdf5(name):
            return _from_h5(name)
        try:
            profile = json.loads(Path(name).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {(error.strerror or str(error)).lower()}", name) from error
        except (ValueError, RecursionError) as error:
            raise InputError("is neither JSON nor HDF5", name, FIX) from error
        if not isinstance(profile, dict) or profile.get("schema") != SCHEMA:
            raise InputError("is no profile", name, FIX)
        refuse_values(profile, VALUE_RULES, name, FIX)
        try:
            return {
                "scene_sha256": profile["scene_sha256"],
                "phases": [_phase(phase) for phase in profile["phases"]],
            }
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(f"is an incomplete profile: {error}", name, FIX) from error


def _phase(phase: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": str(phase["name"]), "skipped": str(phase["skipped"] or "")}
    if not found["skipped"]:
        found["compute_seconds"] = float(phase["compute_seconds"]["median"])
        found |= {name: int(phase[name]) for name in COUNTS}
    return found


def _from_h5(path: str) -> dict[str, Any]:
    with open_h5(path) as file:
        if format_of(file) != FORMAT:
            raise InputError("is no profile", path, FIX)
        refuse_attributes(file, (*ATTRIBUTE_RULES, *VALUE_RULES), path, FIX)
        try:
            names, skipped = ([str(text) for text in _values(file, name, True)] for name in ("phase", "skipped"))
            compute, counts = _values(file, "compute_seconds"), {name: _values(file, name) for name in COUNTS}
            phases = [
                _phase(
                    {
                        "name": names[row],
                        "skipped": skipped[row],
                        "compute_seconds": {"median": np.median(compute[row])},
                        **{name: values[row] for name, values in counts.items()},
                    }
                )
                for row in range(len(names))
            ]
        except (LookupError, TypeError, ValueError) as error:
            raise InputError(f"is an incomplete profile: {error}", path, FIX) from error
        return {"scene_sha256": str(file.attrs["scene_sha256"]), "phases": phases}


def _values(file: h5py.File, name: str, text: bool = False) -> np.ndarray:
    dataset = file[name]
    if not isinstance(dataset, h5py.Dataset):
        raise TypeError(f"{name} is no dataset")
    return np.asarray((dataset.asstr() if text else dataset)[()])


def _strings(file: h5py.File, name: str, values: list[str]) -> None:
    file.create_dataset(name, (len(values),), h5py.string_dtype(), data=np.array(values, object))


def _filled(shape: tuple[int, ...], phases: list[Mapping[str, Any]], values) -> np.ndarray:
    table = np.full(shape, np.nan)
    for row, phase in enumerate(phases):
        if not phase["skipped"]:
            table[row] = values(phase)
    return table
