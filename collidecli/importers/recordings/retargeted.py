"""Motions of retargeting tools by name: root poses and joint positions of one robot, in pickles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.articulations import (
    ORDERS,
    ArticulationMotion,
    quaternion_order,
)
from collidecli.importers.recordings.content import Content
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.joint_states import (
    JOINT_OPTIONS,
    JointStates,
    joint_state_motion,
)
from collidecli.importers.recordings.motion_tables import JOINT_NAMES, RATES, gmr_order
from collidecli.importers.recordings.recording import RecordingDescription, Target
from collidecli.importers.recordings.stored_names import names_of_columns
from collidecli.importers.recordings.times import (
    UNEVEN,
    DemonstrationRecording,
    rate_time,
    shared_length,
)
from collidecli.scene.options import RecordingOptions
from collidecli.storage.h5_files import text_of
from collidecli.storage.reading_limit import check_size
from collidecli.wording import in_order, some_names

ONLY = "motion"
"""Name of the motion of a file that has one without a name."""


@dataclass(frozen=True)
class Layout:
    """Names of the arrays of a motion. order: of its quaternions, "" where it is told besides."""

    name: str
    position: str
    rotation: str
    joints: str
    order: str

    def is_of(self, motion: str, names: Mapping[str, object]) -> bool:
        own = (self.position, self.rotation, self.joints)
        return all(f"{motion}{name}" in names for name in own)


LAYOUTS = (
    Layout("PHC", "root_trans_offset", "root_rot", "dof", "xyzw"),
    Layout("GMR", "root_pos", "root_rot", "dof_pos", ""),
)
"""PHC's, which its followers write too: ASAP, human2humanoid and others. Its quaternions are of
SciPy. Sources: ZhengyiLuo/PHC 09162a9, scripts/data_process/fit_smpl_motion.py;
LeCAR-Lab/human2humanoid 0c6fd6f, scripts/data_process/grad_fit_h1.py."""


@dataclass(frozen=True)
class StoredMotion:
    """A motion in a file. start: what the names of its arrays begin with."""

    start: str
    layout: Layout


class RetargetedRecording(DemonstrationRecording):
    """Motions by name, each with `root_trans_offset`, `root_rot` and `dof`, or with GMR's names."""

    NAME = "retargeted-motions"
    LABEL = (
        "retargeted motions by name (pickles of PHC, ASAP, GMR: root_trans_offset, root_rot, dof)"
    )
    OPTIONS = (*(name for name in JOINT_OPTIONS if name != "state"), "quaternion_order")

    def __init__(self, content: Content) -> None:
        self.content = content
        self._path = content.path
        self.where = content.path
        self._motions = _motions(content)

    @staticmethod
    def recognise(content: Content) -> bool:
        """Values of pickles of which some have all arrays of a layout."""
        return bool(content.values) and bool(_motions(content))

    def stored(self) -> Sequence[str]:
        return list(self._motions)

    def describe(self) -> RecordingDescription:
        motions = in_order(self._motions)
        lengths = {name: self._array(name, "joints").shape[0] for name in motions}
        rates = {self._rate(name) for name in motions}
        first = motions[0]
        order = self._order(first)
        needs = [] if order else ["--quaternion-order"]
        needs += ["--fps"] if None in rates else []
        needs += ["--demos, or --fps: their rates differ"] if len(rates) > 1 else []
        needs += [] if self._names(first) else ["--joint-names"]
        needs += [UNEVEN] if len(set(lengths.values())) > 1 else []
        rate = next(iter(rates))
        frames = max(lengths.values())
        return RecordingDescription(
            frames=frames,
            worlds=len(motions),
            start=0.0 if rate and len(rates) == 1 else None,
            end=(frames - 1) / rate if rate and len(rates) == 1 else None,
            coordinates=self._array(first, "joints").shape[1],
            quaternion_order=order,
            needs=tuple(needs),
            details=(
                ("layout", self._motions[first].layout.name),
                ("motions", some_names(motions)),
            ),
        )

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """The chosen motions as worlds, in order, in the world frame."""
        chosen = self.chosen(options)
        check_world_count(len(chosen), target, self._path)
        joints = {name: self._array(name, "joints") for name in chosen}
        frames = shared_length(
            {name: len(rows) for name, rows in joints.items()}, options, self._path
        )
        size = sum(rows.size for rows in joints.values())
        check_size(24 * size, "the motions", self._path, "choose fewer with --demos")
        fps = self._shared_rate(chosen) if options.fps is None else options.fps
        orders = {self._order(name) for name in chosen}
        order = ORDERS[
            quaternion_order(orders.pop() if len(orders) == 1 else "", options, self._path)
        ]
        first = chosen[0]
        where = self._at(first, self._motions[first].layout.joints)
        return joint_state_motion(
            JointStates(
                self._path,
                where,
                self._shared_names(chosen, options),
                {name: rows.astype(np.float64) for name, rows in joints.items()},
                rate_time(frames, fps, self._path),
                {name: self._root(name, len(joints[name]))[:, order] for name in chosen},
                has_demonstrations=bool(self._motions[first].start),
            ),
            target,
            options,
            self.close,
        )

    def _array(self, motion: str, field: str) -> np.ndarray:
        """An array of a motion by its field in `Layout`, floats [frames, numbers]. Raises
        InputError for another type or shape."""
        name = getattr(self._motions[motion].layout, field)
        array = self.content.values[self._motions[motion].start + name]
        if field == "joints" and array.ndim == 3 and array.shape[2] == 1:
            array = array[..., 0]
        width = {"position": 3, "rotation": 4}.get(field)
        is_wide = array.ndim == 2 and (width is None or array.shape[1] == width)
        if not is_wide or array.dtype.kind != "f" or array.dtype.itemsize not in (4, 8):
            shape = ", ".join(map(str, array.shape))
            what = f"is {array.dtype}[{shape}], not floats [frames, {width or 'joints'}]"
            raise InputError(what, self._at(motion, name), "save it in that shape")
        return array

    def _root(self, motion: str, frames: int) -> np.ndarray:
        """float64[frames, 7]: position, and quaternion as it is recorded. Raises InputError for
        another number of frames."""
        parts = [self._array(motion, field) for field in ("position", "rotation")]
        for part, field in zip(parts, ("position", "rotation"), strict=True):
            if len(part) != frames:
                what = f"has {len(part)} frames, and the joints have {frames}"
                where = self._at(motion, getattr(self._motions[motion].layout, field))
                raise InputError(what, where, "save the motion again")
        return np.concatenate(parts, axis=1, dtype=np.float64)

    def _order(self, motion: str) -> str:
        stored = self._motions[motion]
        return stored.layout.order or gmr_order(self.content, stored.start)

    def _rate(self, motion: str) -> float | None:
        """Frames per second of a motion; None without them. Raises InputError where it is not one
        number."""
        start = self._motions[motion].start
        key = next((key for key in RATES if start + key in self.content.values), "")
        if not key:
            return None
        value = self.content.values[start + key]
        if value.size != 1 or value.dtype.kind not in "iuf":
            what = f"is {value.dtype}{list(value.shape)}, not one number"
            raise InputError(what, self._at(motion, key), "give the rate with --fps")
        return float(value.reshape(-1)[0])

    def _shared_rate(self, motions: Sequence[str]) -> float | None:
        rates = {name: self._rate(name) for name in motions}
        if len(set(rates.values())) > 1:
            shown = ", ".join(
                f"{name} {rate:g}" if rate else f"{name} none"
                for name, rate in list(rates.items())[:5]
            )
            what = f"the motions have different rates: {shown}"
            raise InputError(what, self._path, "choose some with --demos, or give --fps")
        return next(iter(rates.values()))

    def _names(self, motion: str) -> tuple[str, ...]:
        """Names of the joints beside a motion, or of all motions; () without them."""
        start = self._motions[motion].start
        for name in (f"{above}{key}" for above in (start, "") for key in JOINT_NAMES):
            array = self.content.values.get(name)
            if array is not None and array.ndim == 1 and array.dtype.kind in "US":
                return tuple(map(text_of, array))
        return ()

    def _shared_names(self, motions: Sequence[str], options: RecordingOptions) -> tuple[str, ...]:
        """The joints of all motions, or those of --joint-names. Raises InputError where they
        differ."""
        names = {self._names(name) for name in motions}
        if len(names) > 1:
            what = "the motions name different joints"
            raise InputError(what, self._path, "choose some with --demos")
        return names_of_columns(names.pop(), options.joint_names, "--joint-names", self._path)

    def _at(self, motion: str, name: str) -> str:
        return f"{self._path}: {self._motions[motion].start}{name}"


def _motions(content: Content) -> dict[str, StoredMotion]:
    """The motions of a file by name; the one that is the file itself is `ONLY`."""
    found: dict[str, StoredMotion] = {}
    for layout in LAYOUTS:
        if layout.is_of("", content.values):
            return {ONLY: StoredMotion("", layout)}
        for name in content.values:
            motion, slash, last = name.rpartition("/")
            if last == layout.joints and layout.is_of(motion + slash, content.values):
                found[motion] = StoredMotion(motion + slash, layout)
    return found
