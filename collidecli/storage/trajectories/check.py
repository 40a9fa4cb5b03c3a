"""Validation of a recorded trajectory: its header and every pose."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.storage.contact_sets.rules import Finding
from collidecli.storage.h5_files import open_h5
from collidecli.storage.trajectories.motion import bad_poses, bad_positions, dataset, header_of, pose_fault

BLOCK_BYTES = 16 << 20


def check_trajectory(path: str | os.PathLike[str]) -> list[Finding]:
    """All faults of the trajectory at `path`, without a scene; empty for a valid file.

    Each dataset has at most one finding, with its first bad entry and the count. Reads in blocks, in bounded memory.
    """
    name = os.fspath(path)
    try:
        with open_h5(name) as file:
            header = header_of(file, name)
            twice = [body for body, count in Counter(header.body_names).items() if count > 1][:1]
            findings = [Finding(f"{name}: /body_name", f"body '{body}' is named twice") for body in twice]
            findings += _entry_findings(file, name, header.kind, header.body_names)
            for optional, held in (("mocap_q", header.mocap_count), ("particle_q", header.particle_count)):
                if held >= 0:
                    findings += _entry_findings(file, name, optional, ())
            return findings
    except InputError as error:
        return [Finding(error.where, error.what)]


def _entry_findings(file: h5py.File, name: str, kind: str, body_names: tuple[str, ...]) -> list[Finding]:
    """Faults of one dataset [frames, worlds, entries, ...]; joint_q's entries are its coordinates."""
    data = dataset(file, kind, name)
    faulty, words = _RULES.get(kind, (bad_poses, ""))
    frame_bytes = max(1, 8 * int(np.prod(data.shape[1:])))
    step = max(1, BLOCK_BYTES // frame_bytes)
    first, total = "", 0
    for start in range(0, data.shape[0], step):
        try:
            block = data[start : start + step].astype(np.float64)
        except OSError as error:
            what = f"frames {start} to {min(start + step, data.shape[0]) - 1} cannot be read: {error}"
            return [Finding(f"{name}: /{kind}", what)]
        if kind == "joint_q":
            block = block[..., None]
        bad = faulty(block)
        if bad.any() and not first:
            frame, world, entry = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
            what = words or pose_fault(block[frame, world, entry])
            body = f", body '{body_names[entry]}'" if body_names else f", entry {entry}"
            first = f"{name}: /{kind}, frame {start + frame}, world {world}{body}|{what}"
        total += int(bad.sum())
    if not total:
        return []
    where, what = first.split("|", 1)
    return [Finding(where, what + (f" ({total} faults)" if total > 1 else ""))]


def _not_finite(block: np.ndarray) -> np.ndarray:
    return np.asarray(~np.isfinite(block).all(axis=-1))


_RULES: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "joint_q": (_not_finite, "the value is not finite"),
    "particle_q": (bad_positions, f"the position is not finite, or beyond {POSITION_LIMIT:g} m"),
}
"""Rule of bad entries of a dataset, and its words; other datasets hold poses."""
