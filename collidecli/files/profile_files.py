"""A profile as two files, HDF5 and JSON, of the same facts (schema collide.profile/1).

HDF5, `format = "collide-profile"` 1.0: `/phase` string[P]; `/skipped` string[P], empty where the phase was run;
`/stage` string[G]; `/compute_seconds` and `/wall_seconds` float64[P, R]; `/stage_seconds` float64[P, R, G], NaN where
skipped; `/candidates`, `/touching_pairs`, `/contacts` int64[P], -1 where skipped; `/contacts_sha256` string[P]. The
other facts are root attributes, `versions` and `auto` as JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import h5py
import numpy as np

from collidecli.files.atomic_output import AtomicOutput
from collidecli.files.contacts.schema import creator

FORMAT = "collide-profile"
VERSION = (1, 0)
COUNTS = ("candidates", "touching_pairs", "contacts")


def write_profile_h5(path: str | os.PathLike[str], facts: Mapping[str, Any], force: bool) -> None:
    """Writes the HDF5 file. Raises OutputError; nothing is left then."""
    phases = facts["phases"]
    run = [phase for phase in phases if not phase["skipped"]]
    stages = list(run[0]["stages"]) if run else []
    shape = (len(phases), facts["repeats"])
    with AtomicOutput(path, force) as output:
        with h5py.File(output, "w") as file:
            file.attrs["format"] = FORMAT
            file.attrs["format_version"] = np.array(VERSION, np.int32)
            file.attrs["creator"] = creator()
            for name, value in facts.items():
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


def write_json(path: str | os.PathLike[str], facts: Mapping[str, Any], force: bool) -> None:
    """Writes facts as a JSON file. Raises OutputError; nothing is left then."""
    with AtomicOutput(path, force) as output:
        output.write(json.dumps(facts, indent=2, allow_nan=False).encode() + b"\n")
        output.commit()


def _strings(file: h5py.File, name: str, values: list[str]) -> None:
    file.create_dataset(name, (len(values),), h5py.string_dtype(), data=np.array(values, object))


def _filled(shape: tuple[int, ...], phases: list[Mapping[str, Any]], values) -> np.ndarray:
    table = np.full(shape, np.nan)
    for row, phase in enumerate(phases):
        if not phase["skipped"]:
            table[row] = values(phase)
    return table
