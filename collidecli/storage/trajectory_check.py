"""Validation of the header and of every pose of a trajectory."""

from __future__ import annotations

import os
from collections import Counter

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.storage.attribute_rules import Finding
from collidecli.storage.h5_files import open_h5
from collidecli.storage.pose_checks import bad_entries, pose_fault
from collidecli.storage.trajectory_header import dataset, header_of

POSE_FAULTS = {
    "body_q": "a pose is not finite or no rotation",
    "mocap_q": "a pose is not finite or no rotation",
    "joint_q": "a coordinate is not finite",
    "particle_q": f"a position is not finite, or beyond {POSITION_LIMIT:g} m",
}
"""What is wrong with a bad entry of a dataset."""
BLOCK_BYTES = 16 << 20


def check_trajectory(path: str | os.PathLike[str]) -> list[Finding]:
    """All faults of the trajectory at `path`, without a scene; empty for a valid file.

    Each dataset has at most one finding, with its first bad entry and the count. Reads in blocks,
    in bounded memory.
    """
    name = os.fspath(path)
    try:
        with open_h5(name) as file:
            header = header_of(file, name)
            twice = [body for body, count in Counter(header.body_names).items() if count > 1][:1]
            findings = [
                Finding(f"{name}: /body_name", f"body '{body}' is named twice") for body in twice
            ]
            findings += _entry_findings(file, name, header.kind, header.body_names)
            for optional, recorded in (
                ("mocap_q", header.mocap_count),
                ("particle_q", header.particle_count),
            ):
                findings += _entry_findings(file, name, optional, ()) if recorded >= 0 else []
            return findings
    except InputError as error:
        return [Finding(error.where, error.what)]


def _entry_findings(
    file: h5py.File, name: str, kind: str, body_names: tuple[str, ...]
) -> list[Finding]:
    """Faults of one dataset [frames, worlds, entries, ...]; joint_q's entries are its
    coordinates."""
    data = dataset(file, kind, name)
    step = max(1, BLOCK_BYTES // max(1, 8 * int(np.prod(data.shape[1:]))))
    first = Finding("", "")
    total = 0
    for start in range(0, data.shape[0], step):
        try:
            block = data[start : start + step].astype(np.float64)
        except OSError as error:
            what = (
                f"frames {start} to {min(start + step, data.shape[0]) - 1} cannot be read: {error}"
            )
            return [Finding(f"{name}: /{kind}", what)]
        bad = bad_entries(kind, block)
        if bad.any() and not total:
            frame, world, entry = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            words = {
                "joint_q": "the value is not finite",
                "particle_q": POSE_FAULTS["particle_q"].replace("a ", "the ", 1),
            }
            what = words[kind] if kind in words else pose_fault(block[frame, world, entry])
            body = f"body '{body_names[entry]}'" if body_names else f"entry {entry}"
            first = Finding(f"{name}: /{kind}, frame {start + frame}, world {world}, {body}", what)
        total += int(bad.sum())
    more = f" ({total} faults)" if total > 1 else ""
    return [Finding(first.where, first.what + more)] if total else []
